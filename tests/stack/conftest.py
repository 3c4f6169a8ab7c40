"""A folder for one test's own stack, erased with its database whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import commands


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """In a path that splits at every careless place: a space, a comma, a colon, a hash, an accent."""
    folder = tmp_path / "a clone, here: #1 é" / ".local"
    yield folder
    commands.reset(folder)
