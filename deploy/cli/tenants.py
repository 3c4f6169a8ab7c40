"""`tellonce tenant …`: tenants at run time; the stream notices nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from deploy.cli import session
from deploy.cli.options import Json, TenantArgument, examples, instant
from deploy.cli.output import cell, emit, moment, say, show, table
from producers import tenants

app = typer.Typer(help="Tenants: made, suspended, held and granted while everything runs.")

Role = Annotated[str, typer.Argument(metavar="ROLE", help="A database login of group domain or analyst.")]


@app.command(
    epilog=examples(
        "tellonce tenant create acme --name 'Acme Bank' --role loans_service",
        "tellonce tenant create history --hold-at 2026-01-01T00:00:00Z --own-schema",
    )
)
def create(
    tenant: TenantArgument,
    name: Annotated[str | None, typer.Option(help="Shown to people; the id without it.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="Grant it to this login; may come again.")] = None,
    own_schema: Annotated[bool, typer.Option("--own-schema", help="Give it a schema of views.")] = False,
    hold_at: Annotated[
        str | None, typer.Option(help="Hold its clock at this instant from the first.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a tenant. Its events stream from the first one on."""
    at = instant(hold_at) if hold_at else None
    with session.owner() as conn:
        made = tenants.create(conn, tenant, name, roles=role or (), own_schema=own_schema, held_at=at)
    if json:
        emit(made)
    else:
        say(f"tenant {made.tenant_id} made; granted to {cell(made.roles)}")


@app.command("list", epilog=examples("tellonce tenant list", "tellonce tenant list --json"))
def list_(json: Json = False) -> None:
    """All tenants."""
    with session.owner() as conn:
        found = tenants.every(conn)
    if json:
        emit(found)
        return
    show(
        table(
            ("tenant", "name", "state", "clock held at", "schema", "granted to", "since"),
            ((t.tenant_id, t.name, t.state, t.held_at, t.schema_name, t.roles, t.created_at) for t in found),
        )
    )


@app.command(epilog=examples("tellonce tenant suspend acme"))
def suspend(tenant: TenantArgument) -> None:
    """Fire nothing for it. Its events are still accepted and decided."""
    with session.owner() as conn:
        tenants.suspend(conn, tenant)
    say(f"tenant {tenant} is suspended")


@app.command(epilog=examples("tellonce tenant resume acme"))
def resume(tenant: TenantArgument) -> None:
    """End a suspension: what fell due meanwhile and is still live is due now."""
    with session.owner() as conn:
        tenants.resume(conn, tenant)
    say(f"tenant {tenant} is active")


@app.command(
    epilog=examples("tellonce tenant hold acme", "tellonce tenant hold acme --at 2026-12-01T09:00:00Z")
)
def hold(
    tenant: TenantArgument,
    at: Annotated[
        str | None, typer.Option(help="The instant; without it, where its clock stands now.")
    ] = None,
) -> None:
    """Stop its clock, so that nothing becomes due: for importing history, and for moving time by hand."""
    with session.owner() as conn:
        held = tenants.hold(conn, tenant, instant(at) if at else None)
    say(f"tenant {tenant} is held at {moment(held)}")


@app.command(epilog=examples("tellonce tenant release acme"))
def release(tenant: TenantArgument) -> None:
    """Let its clock follow the platform's again; what lies between the two instants falls due at once."""
    with session.owner() as conn:
        tenants.release(conn, tenant)
    say(f"tenant {tenant} follows the clock")


@app.command(epilog=examples("tellonce tenant grant acme loans_service"))
def grant(tenant: TenantArgument, role: Role) -> None:
    """Let a login see this tenant and append its events, at once."""
    with session.owner() as conn:
        is_new = tenants.grant(conn, tenant, role)
    say(f"{role} {'now sees' if is_new else 'saw already'} tenant {tenant}")


@app.command(epilog=examples("tellonce tenant revoke acme loans_service"))
def revoke(tenant: TenantArgument, role: Role) -> None:
    """Take a grant back, from the login's next statement on."""
    with session.owner() as conn:
        had_it = tenants.revoke(conn, tenant, role)
    say(f"{role} {'no longer sees' if had_it else 'did not see'} tenant {tenant}")
