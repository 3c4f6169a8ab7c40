"""Product folders on disk: the built-in ones and those that TELLONCE_PRODUCTS names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

from schemas.products import history
from schemas.products.catalogue import Catalogue, LoadedProduct
from schemas.products.check import PRODUCT_FILE, Checked, Problem, check_folder

_READ = {".yaml", ".avsc", ".json", ".j2"}


class InvalidProduct(Exception):  # noqa: N818 it says what was found
    """One or more product folders are not valid; nothing starts on them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def builtin_folders() -> list[Path]:
    """The folders of the products that come with the package."""
    return _inside(Path(str(files("schemas.products"))))


def product_folders(named: Sequence[Path]) -> list[Path]:
    """What `named` stands for: a product's folder for itself, a folder of such for each of them.

    One that is neither stays: whoever checks it says what is wrong with it.
    """
    folders: list[Path] = []
    for path in named:
        inside = [] if (path / PRODUCT_FILE).is_file() else _inside(path)
        folders += inside or [path]
    return folders


def load_catalogue(extra: Sequence[Path] = ()) -> Catalogue:
    """Every built-in product and those in `extra`, as `product_folders` reads it. Raises `InvalidProduct` with
    all that is wrong, and for two folders of one product.
    """
    problems: list[Problem] = []
    loaded: dict[str, LoadedProduct] = {}
    places: dict[str, Path] = {}
    for folder in (*builtin_folders(), *product_folders(extra)):
        checked = _check(folder)
        problems += _seen_from(folder, checked.problems)
        if checked.product is None:
            continue
        name = checked.product.name
        if name in loaded:
            problems.append(
                Problem(
                    str(folder), 0, f"product {name} is in {places[name]} already; a product has one folder"
                )
            )
        loaded[name], places[name] = checked.product, folder
    if problems:
        raise InvalidProduct(problems)
    return Catalogue(loaded.values())


def check_product(folder: Path) -> list[Problem]:
    """Everything that is wrong with one product's folder; paths as seen from where it was named.

    A folder that is otherwise valid has its templates compiled and rendered as well; loading a catalogue leaves that
    to `schemas.templates.renderer.Renderer`, for only deliveries need it.
    """
    from schemas.templates.lint import lint  # here: it brings 70 ms of imports that no other command needs

    checked = _check(folder)
    return _seen_from(folder, checked.problems if checked.product is None else lint(checked.product))


def check_schemas(folder: Path) -> list[Problem]:
    """Everything that is wrong with the folder, what its schemas break against its recorded history, and what
    is not recorded.
    """
    checked = _check(folder)
    found = _files(folder) if folder.is_dir() else {}
    against = (
        Problem(file, 0, message) for file, message in (*history.breaks(found), *history.unrecorded(found))
    )
    return _seen_from(folder, sorted({*checked.problems, *against}))


def record_schemas(folder: Path) -> list[Path]:
    """Record new and changed schemas as versions; returns the files written, none when nothing changed.

    Raises `InvalidProduct` when the folder is not valid, or a changed schema cannot read what a recorded
    version wrote; then nothing is written.
    """
    checked = _check(folder)
    found = _files(folder) if folder.is_dir() else {}
    breaks = (Problem(file, 0, message) for file, message in history.breaks(found))
    if problems := sorted({*checked.problems, *breaks}):
        raise InvalidProduct(_seen_from(folder, problems))
    written = []
    for path, body in history.additions(found).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        written.append(target)
    return written


def _seen_from(folder: Path, problems: Iterable[Problem]) -> list[Problem]:
    return [Problem(str(folder / problem.file), problem.line, problem.message) for problem in problems]


def _inside(folder: Path) -> list[Path]:
    return sorted(found.parent for found in folder.glob(f"*/{PRODUCT_FILE}") if found.is_file())


def _check(folder: Path) -> Checked:
    if not folder.is_dir():
        return Checked(None, [Problem(PRODUCT_FILE, 0, f"{folder} is not a folder")])
    return check_folder(_files(folder))


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in _READ
    }
