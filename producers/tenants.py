"""Tenants at run time: no restart, no connector change, no table of their own.

A tenant is a row; its events stream from the first one on, because everything is keyed by tenant and
nothing is partitioned by it. All of this runs as the owner (`TELLONCE_ADMIN_DATABASE_URL`). Each function
is one transaction (a savepoint when the caller has one open) and safe to repeat: what is already so, stays
so.

    active ──suspend──► suspended ──resume──► active          (state)
    running ──hold──► held ──release──► running               (clock)

*Suspended*: events are still accepted and journeys still move on, or something stale would go out on resume;
the clock fires nothing. *Held*: the tenant's clock stands at one instant, so that nothing becomes due: for
importing history, and for tests that move time. The two are independent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection, DatabaseError
from psycopg.rows import args_row

from connectors.postgres import sql
from connectors.postgres.errors import Refusal, message, refusal
from schemas.states import TenantState

_QUERIES = sql.load("producers", "tenants.sql")
_DEPENDENT_OBJECTS = "2BP01"
"""SQLSTATE of a DROP that something else still needs."""
_SLUG = re.compile(r"[a-z0-9-]{1,40}")


class TenantError(Exception):
    """A tenant was not changed; the message says which, why and what to do."""


class InvalidTenantError(TenantError):
    """The tenant id is no slug, or the name is empty."""


class TenantExistsError(TenantError):
    """A tenant of this id exists."""


class UnknownTenantError(TenantError):
    """No tenant has this id."""


class UnknownRoleError(TenantError):
    """No database role has this name."""


class SchemaInUseError(TenantError):
    """Somebody else's objects are in the tenant's schema, or depend on its views."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant as it is now. `held_at` is None while its clock runs."""

    tenant_id: str
    name: str
    state: TenantState
    held_at: datetime | None
    schema_name: str | None
    created_at: datetime
    roles: Sequence[str]


def create(
    conn: Connection[Any],
    tenant_id: str,
    name: str | None = None,
    *,
    roles: Sequence[str] = (),
    own_schema: bool = False,
    held_at: datetime | None = None,
) -> Tenant:
    """Make a tenant, grant it to `roles`, with a schema of views if wanted; `held_at` holds it at once.

    All of it or nothing. Raises InvalidTenantError, TenantExistsError, UnknownRoleError.
    """
    if not _SLUG.fullmatch(tenant_id):
        raise InvalidTenantError(
            f"{tenant_id!r} is no tenant id: 1 to 40 of a-z, 0-9 and '-', such as 'acme-bank'"
        )
    shown = tenant_id if name is None else name.strip()
    if not shown:
        raise InvalidTenantError(f"tenant {tenant_id!r} needs a name that is not empty")
    with _transaction(conn):
        made = conn.execute(
            _QUERIES.create, {"tenant_id": tenant_id, "name": shown, "held_at": _aware(held_at)}
        )
        if made.rowcount == 0:
            raise TenantExistsError(f"tenant {tenant_id!r} exists already")
        for role in roles:
            conn.execute(_QUERIES.grant, {"tenant_id": tenant_id, "role": role})
        if own_schema:
            conn.execute(_QUERIES.create_schema, {"tenant_id": tenant_id})
        return get(conn, tenant_id)


def get(conn: Connection[Any], tenant_id: str) -> Tenant:
    """The tenant as it is now; UnknownTenantError."""
    found = _list(conn, tenant_id)
    if not found:
        raise _unknown(tenant_id)
    return found[0]


def every(conn: Connection[Any]) -> list[Tenant]:
    """All tenants by id."""
    return _list(conn, None)


def suspend(conn: Connection[Any], tenant_id: str) -> None:
    """From now on the clock fires nothing for it. Its events are still accepted and decided."""
    _update(conn, "set_state", tenant_id, state=TenantState.SUSPENDED)


def resume(conn: Connection[Any], tenant_id: str) -> None:
    """The clock fires for it again: what fell due meanwhile and is still live is due now."""
    _update(conn, "set_state", tenant_id, state=TenantState.ACTIVE)


def hold(conn: Connection[Any], tenant_id: str, at: datetime | None = None) -> datetime:
    """Stop its clock at `at` (aware), or where it stands now; returns the instant.

    Holding a held one moves it to `at`.
    """
    with _transaction(conn):
        _update(conn, "hold", tenant_id, at=_aware(at))
        held_at = get(conn, tenant_id).held_at
    assert held_at is not None
    return held_at


def release(conn: Connection[Any], tenant_id: str) -> None:
    """Its clock follows the platform's again. What lies between the two instants falls due at once."""
    _update(conn, "release", tenant_id)


def grant(conn: Connection[Any], tenant_id: str, role: str) -> bool:
    """Let a role of group `domain` or `analyst` see this tenant; False when it did already.

    Takes effect at once.
    """
    return bool(_call(conn, "grant", tenant_id, role=role))


def revoke(conn: Connection[Any], tenant_id: str, role: str) -> bool:
    """Take it back; False when the role did not have it. Takes effect with the role's next statement."""
    return bool(_call(conn, "revoke", tenant_id, role=role))


def create_schema(conn: Connection[Any], tenant_id: str) -> str:
    """Give it a schema of views, or bring that up to date; returns its name. The stream notices nothing."""
    return str(_call(conn, "create_schema", tenant_id))


def drop_schema(conn: Connection[Any], tenant_id: str) -> bool:
    """Drop its views and schema; False when it had none. The tenant and its data stay.

    Raises SchemaInUseError, and drops nothing, when somebody built something on them.
    """
    return bool(_call(conn, "drop_schema", tenant_id))


def _list(conn: Connection[Any], tenant_id: str | None) -> list[Tenant]:
    with conn.cursor(row_factory=args_row(_tenant)) as cursor:
        return cursor.execute(_QUERIES.list, {"tenant_id": tenant_id}).fetchall()


def _tenant(tenant_id: str, name: str, state: str, *rest: Any) -> Tenant:
    return Tenant(tenant_id, name, TenantState(state), *rest)


def _update(conn: Connection[Any], query: str, tenant_id: str, **values: object) -> None:
    with _transaction(conn):
        if conn.execute(_QUERIES[query], {"tenant_id": tenant_id, **values}).rowcount == 0:
            raise _unknown(tenant_id)


def _call(conn: Connection[Any], query: str, tenant_id: str, **values: object) -> object:
    with _transaction(conn):
        row = conn.execute(_QUERIES[query], {"tenant_id": tenant_id, **values}).fetchone()
    return row[0] if row else None


@contextmanager
def _transaction(conn: Connection[Any]) -> Iterator[None]:
    """Atomic, and with the database's refusals as our own exceptions."""
    try:
        with conn.transaction():
            yield
    except DatabaseError as error:
        match refusal(error):
            case Refusal.UNKNOWN_TENANT:
                raise UnknownTenantError(message(error)) from error
            case Refusal.UNKNOWN_ROLE:
                raise UnknownRoleError(message(error)) from error
            case _ if error.sqlstate == _DEPENDENT_OBJECTS:
                raise SchemaInUseError(
                    f"{message(error)} {error.diag.message_detail or ''}".strip()
                ) from error
            case _:
                raise


def _unknown(tenant_id: str) -> UnknownTenantError:
    return UnknownTenantError(
        f"tenant {tenant_id!r} is unknown; `tellonce tenant list` shows those there are"
    )


def _aware(instant: datetime | None) -> datetime | None:
    if instant is not None and instant.tzinfo is None:
        raise InvalidTenantError(f"{instant.isoformat()} has no time zone; pass an aware datetime")
    return instant
