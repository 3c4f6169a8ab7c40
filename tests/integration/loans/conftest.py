"""The loan service, installed, as its own role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from deploy.local.stack import Stack
from producers.products.loans.service import LoanService, install


@pytest.fixture(scope="session")
def installed(pg_only: Stack) -> Stack:
    with psycopg.connect(pg_only.owner_dsn, autocommit=True) as owner:
        install(owner)
        install(owner)
    return pg_only


@pytest.fixture
def domain(installed: Stack) -> Iterator[Connection[Any]]:
    """A connection of role `loans_service`."""
    with psycopg.connect(installed.domain_dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def loans(domain: Connection[Any], tenant: str) -> LoanService:
    return LoanService(domain, tenant)
