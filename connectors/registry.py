"""Product folders on disk: the built-in ones and those that TELLONCE_PRODUCTS names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    for folder in (*builtin_folders(), *_expand(extra)):
        checked = _check(folder)
        problems += [Problem(str(folder / p.file), p.line, p.message) for p in checked.problems]
        if checked.product is None:
            continue
        if checked.product.name in loaded:
            problems.append(
                Problem(
                    str(folder), 0, f"product {checked.product.name} is there already; a name has one folder"
                )
            )
        loaded[checked.product.name] = checked.product
    if problems:
        raise InvalidProduct(problems)
    return Catalogue(loaded.values())


def check_product(folder: Path) -> list[Problem]:
    """Everything that is wrong with one product's folder; paths as seen from where it was named."""
    return [Problem(str(folder / p.file), p.line, p.message) for p in _check(folder).problems]


def check_schemas(folder: Path) -> list[Problem]:
    """What the folder's schemas break against its recorded history, and what is not recorded."""
    if not (folder / PRODUCT_FILE).is_file():
        return check_product(folder)
    return [Problem(str(folder / file), 0, message) for file, message in history.compare(_files(folder))]


def record_schemas(folder: Path) -> list[Path]:
    """Record new and changed schemas as versions; returns the files written, none when nothing changed.

    Raises `InvalidProduct` when a changed schema cannot read what a recorded version wrote.
    """
    broken = [problem for problem in check_schemas(folder) if "not recorded" not in problem.message]
    if broken:
        raise InvalidProduct(broken)
    written = []
    for path, body in history.additions(_files(folder)).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        written.append(target)
    return written


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
