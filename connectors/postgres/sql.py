"""SQL lives in `.sql` files beside the Python that runs it, as named blocks; this loads them.

```sql
-- name: lock_leads
-- What the block is for.
SELECT …
```
A statement with parameters is psycopg's: a literal per cent sign in it is written `%%`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: *(\S+) *$", re.MULTILINE)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


class SqlFileError(Exception):
    """A `.sql` file that is not a list of named, non-empty, distinct blocks; or a name it does not have."""


class Queries:
    """The statements of one file by name, as bytes: what psycopg sends without looking at it again.

    `queries.lock_leads` and `queries["lock_leads"]` are the same.
    """

    __slots__ = ("_blocks", "_source")

    def __init__(self, source: str, blocks: Mapping[str, bytes]) -> None:
        self._source = source
        self._blocks = dict(blocks)

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._blocks[name]
        except KeyError:
            raise SqlFileError(
                f"{self._source} has no block {name!r}; it has {sorted(self._blocks)}"
            ) from None

    def __getattr__(self, name: str) -> bytes:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def __repr__(self) -> str:
        return f"Queries({self._source}: {', '.join(self._blocks)})"


def parse(text: str, source: str) -> Queries:
    """The blocks of a file's text. Comments above the first name are the file's, those below the block's."""
    parts = _NAME.split(text)
    blocks: dict[str, bytes] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if not _IDENTIFIER.fullmatch(name):
            raise SqlFileError(f"{source}: {name!r} is not a lower-case identifier")
        if name in blocks:
            raise SqlFileError(f"{source}: block {name!r} appears twice")
        statement = _without_leading_comments(body)
        if not statement:
            raise SqlFileError(f"{source}: block {name!r} is empty")
        blocks[name] = statement.encode()
    if not blocks:
        raise SqlFileError(f"{source}: no block; one begins with `-- name: …`")
    return Queries(source, blocks)


@cache
def load(package: str, file: str) -> Queries:
    """The named blocks of `file` in `package`, read once per process.

    Raises `SqlFileError` when its user is imported, so that a broken file never reaches a running system.
    """
    return parse(files(package).joinpath(file).read_text("utf-8"), f"{package}/{file}")


def _without_leading_comments(body: str) -> str:
    lines = body.strip().splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("--")):
        lines.pop(0)
    return "\n".join(lines)
