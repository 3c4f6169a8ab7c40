"""An instant that is another day in Berlin."""

from datetime import UTC, datetime

AT = datetime(2026, 3, 29, 22, 4, tzinfo=UTC)
