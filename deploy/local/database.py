"""The stack's database: its login roles, and the schema brought up to date."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from pydantic import SecretStr

from connectors.postgres.bootstrap import Group, Login, bootstrap
from connectors.postgres.migrate import SchemaVersionError, migrate
from deploy.local import passwords
from deploy.local.errors import StackError

GROUPS: Mapping[str, Group | None] = {
    passwords.OWNER: None,
    passwords.CONSUMER: "consumer",
    passwords.CONNECT: "connect",
    passwords.DOMAIN: "domain",
    passwords.ANALYST: "analyst",
}
"""What each login of the local stack may do."""


def make_roles(superuser_dsn: str, known: Mapping[str, str]) -> None:
    """Roles, database and logins; done again at every start, which changes nothing."""
    logins = [Login(role, SecretStr(known[role]), group) for role, group in GROUPS.items()]
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        bootstrap(connection, logins)


def make_schema(owner_dsn: str) -> None:
    """Apply the migrations that are missing. Raises StackError if the data is another program's."""
    with psycopg.connect(owner_dsn, autocommit=True) as connection:
        try:
            migrate(connection)
        except SchemaVersionError as error:
            raise StackError(f"{error}; or, to begin with an empty database: `make reset`") from error
