"""Ids of imported rows: the same row of the same import has the same id, and indexes append.

A UUIDv7 whose time is when the import was first started; the 32 bits after it count the rows, so that ids
grow in the order of insertion, and 42 bits of a hash of tenant and import id keep two imports of one
millisecond apart. The time is the import's, not the row's: what is years old still belongs to the day
partition of its arrival.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

MAX_ROWS = 2**32
"""Rows of one import, by the width of the counter."""


class ImportIds:
    """The ids of one import."""

    def __init__(self, tenant: str, import_id: str, first_started_at: datetime) -> None:
        millis = int(first_started_at.timestamp() * 1000)
        digest = hashlib.sha256(f"{tenant}\0{import_id}".encode()).digest()
        # 48 bits of time, 4 of version, then 12 + 62 free bits around the 2 of the variant.
        self._high = (millis & (2**48 - 1)) << 80 | 0x7 << 76 | 0b10 << 62
        self._salt = int.from_bytes(digest[:6]) & (2**42 - 1)

    def __getitem__(self, row: int) -> str:
        """The id of the row inserted as number `row`, from 0; canonical lower-case text."""
        if not 0 <= row < MAX_ROWS:
            raise IndexError(row)
        free = row << 42 | self._salt
        value = self._high | (free >> 62) << 64 | (free & (2**62 - 1))
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
