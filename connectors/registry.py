"""Product folders on disk: the built-in ones and those that TELLONCE_PRODUCTS names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def builtin_folders() -> Iterator[Path]:
    """The folders of the products that come with the package."""
    root = Path(str(files("schemas.products")))
    yield from sorted(child for child in root.iterdir() if (child / PRODUCT_FILE).is_file())


def load_catalogue(extra: Sequence[Path] = ()) -> Catalogue:
    """Every built-in product and those in `extra` (a product's folder, or a folder of such). Raises
    `InvalidProduct` with all that is wrong, and for two folders of one product.
    """
    problems: list[Problem] = []
    loaded: dict[str, LoadedProduct] = {}
    places: dict[str, Path] = {}
    for folder in (*builtin_folders(), *_expand(extra)):
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
    """Everything that is wrong with one product's folder; paths as seen from where it was named."""
    return _seen_from(folder, _check(folder).problems)


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


def _expand(extra: Sequence[Path]) -> Iterator[Path]:
    for path in extra:
        below = (
            sorted(child for child in path.iterdir() if (child / PRODUCT_FILE).is_file())
            if path.is_dir()
            else []
        )
        if below and not (path / PRODUCT_FILE).is_file():
            yield from below
        else:
            yield path


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
