"""The statements of this package, loaded once."""

from __future__ import annotations

from connectors.postgres.sql import load

QUERIES = load("consumers.preparation", "queries.sql")
