"""A tenant's messages in every state, without anybody who sends them."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.deliveries import WAY_TO

PHONE = "+4915112345678"
TEXT = "Ada, your loan is approved"
REASONS = {"failed": "rejected", "suppressed": "superseded", "held": "unknown_outcome"}


@dataclass
class Desk:
    """A tenant's deliveries, as preparation and delivery would have left them; nobody claims any."""

    owner: psycopg.Connection[Any]
    tenant: str
    ids: list[str] = field(default_factory=list)

    def delivery(self, state: str = "queued", **columns: object) -> str:
        """A delivery in this state; its id."""
        row: dict[str, object] = {
            "user_id": "ada",
            "role": "applicant",
            "channel": "whatsapp",
            "kind": "loans.sanctioned",
        }
        row |= {"nudge_id": None, "reason": None, "due_at": "now", "subject_id": "L-1", **columns}
        delivery_id = v8()
        self.owner.execute(
            "INSERT INTO platform.delivery (delivery_id, notification_id, tenant_id, product, subject_id, kind,"
            " user_id, role, channel, lane, nudge_id, event_id, due_at, reason, created_at, updated_at)"
            " VALUES (%(id)s, %(id)s, %(tenant)s, 'loans', %(subject_id)s, %(kind)s, %(user_id)s, %(role)s,"
            " %(channel)s, 'events.loans', %(nudge_id)s, uuidv7(), %(due_at)s, %(reason)s, now(), now())",
            {"id": delivery_id, "tenant": self.tenant, **row},
        )
        for later in WAY_TO[state]:
            self.owner.execute(
                "UPDATE platform.delivery SET state = %s::platform.delivery_state, reason = %s,"
                " lease_until = now() + interval '1 hour', attempt_token = uuidv7() WHERE delivery_id = %s",
                [later, REASONS.get(later), delivery_id],
            )
        self.ids.append(delivery_id)
        return delivery_id

    def tried(self, delivery_id: str, attempt: int, outcome: str, **answer: object) -> None:
        """One attempt and its answer."""
        said = {"status": None, "provider_ref": None, "error": None, "latency_ms": None, **answer}
        self.owner.execute(
            "INSERT INTO platform.delivery_attempt (delivery_id, tenant_id, attempt, token, began_at, ended_at,"
            " outcome, status, provider_ref, error, latency_ms)"
            " VALUES (%(id)s, %(tenant)s, %(attempt)s, uuidv7(), now(), now(), %(outcome)s, %(status)s,"
            " %(provider_ref)s, %(error)s, %(latency_ms)s)",
            {"id": delivery_id, "tenant": self.tenant, "attempt": attempt, "outcome": outcome, **said},
        )

    def frozen(self, delivery_id: str) -> None:
        """Its body."""
        self.owner.execute(
            "INSERT INTO platform.delivery_body (delivery_id, tenant_id, address, content, frozen_at)"
            " VALUES (%s, %s, %s, %s::jsonb, now())",
            [delivery_id, self.tenant, PHONE, json.dumps({"text": TEXT})],
        )

    def nudge(self) -> str:
        """A nudge that is due."""
        nudge_id = v8()
        self.owner.execute(
            "INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, state, due_at,"
            " created_at, updated_at) VALUES (%s, %s, 'loans', 'L-1', 'loans.finish_application', 'loans.initiated',"
            " uuidv7(), 'scheduled', now(), now(), now())",
            [nudge_id, self.tenant],
        )
        self.owner.execute("UPDATE platform.nudge SET state = 'pending' WHERE nudge_id = %s", [nudge_id])
        return nudge_id

    def state(self, delivery_id: str) -> tuple[str, str | None]:
        """(state, reason) of a delivery."""
        row = self.owner.execute(
            "SELECT state::text, reason FROM platform.delivery WHERE delivery_id = %s", [delivery_id]
        ).fetchone()
        assert row is not None
        return row[0], row[1]


def v8() -> str:
    seed = uuid.uuid4().hex
    return str(uuid.UUID(f"{seed[:12]}8{seed[13:16]}8{seed[17:]}"))
