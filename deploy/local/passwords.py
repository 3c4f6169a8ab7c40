"""The local stack's random passwords, made once per database and kept in `secrets.json` (mode 0600)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deploy.local.layout import write_private

SUPERUSER: Final = "postgres"
OWNER: Final = "tellonce_owner"
CONSUMER: Final = "tellonce_consumer"
CONNECT: Final = "tellonce_connect"
DOMAIN: Final = "loans_service"
ANALYST: Final = "tellonce_analyst"
LOGINS: Final = (SUPERUSER, OWNER, CONSUMER, CONNECT, DOMAIN, ANALYST)


def load_or_create(path: Path) -> Mapping[str, str]:
    """Password by login role; the same ones for as long as the file lives."""
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    missing = [login for login in LOGINS if login not in known]
    if missing:
        known |= {login: secrets.token_urlsafe(24) for login in missing}
        write_private(path, json.dumps(known, indent=1) + "\n")
    return known
