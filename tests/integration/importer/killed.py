"""The process that `test_import` kills: imports a log slowly and says how far it is (DSN TENANT LOG)."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

from producers.importer.pace import Pace
from producers.importer.run import import_log
from tests.integration.importer.conftest import CONTRACTS, spec_of


def main(dsn: str, tenant: str, log: str) -> None:
    """Import twenty rows at a time, so that there is a middle to be killed in."""

    def tell(done: int, _total: int) -> None:
        sys.stdout.write(f"{done}\n")
        sys.stdout.flush()

    with psycopg.connect(dsn, autocommit=True) as conn:
        import_log(conn, spec_of(Path(log), tenant), CONTRACTS, progress=tell, pace=Pace(80.0))


if __name__ == "__main__":
    main(*sys.argv[1:])
