"""`.local/tellonce.env`: the running stack's addresses, for every command started in the clone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from connectors.settings import Settings
from deploy.local import passwords
from deploy.local.layout import write_private


def write(path: Path, settings: Settings, dsns: Mapping[str, str]) -> None:
    """Write the variables `Settings` reads, and the addresses of the other logins."""
    variables = {
        "TELLONCE_DATABASE_URL": settings.database_url.get_secret_value(),
        "TELLONCE_ADMIN_DATABASE_URL": settings.admin_database_url.get_secret_value(),
        "TELLONCE_CONNECT_DATABASE_URL": settings.connect_database_url.get_secret_value(),
        "TELLONCE_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "TELLONCE_CONNECT_URL": settings.connect_url,
        "TELLONCE_DOMAIN_DATABASE_URL": dsns[passwords.DOMAIN],
        "TELLONCE_ANALYST_DATABASE_URL": dsns[passwords.ANALYST],
    }
    lines = (f"{name}={value}\n" for name, value in variables.items())
    write_private(
        path,
        "# Written by `make up`, removed by `make down`; the environment wins over it.\n" + "".join(lines),
    )
