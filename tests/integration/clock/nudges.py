"""Nudges for the clock to fire: armed by a decided event, as supersession would have done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.integration.clock.conftest import GROUP, TENANT, Database

NOW = timedelta()

_ARM = """
WITH caused AS (
  INSERT INTO platform.outbox (tenant_id, product, subject_id, key_id, topic, event_type, payload, occurred_at,
                               recorded_at, traceparent)
  SELECT %(tenant)s, 'loans', subject, subject, 'events.loans', 'loans.initiated', '{}', now(),
         now() - interval '1 second', '00-' || subject
    FROM unnest(%(subjects)s::text[]) AS subject
  RETURNING event_id, tenant_id, subject_id
), decided AS (
  INSERT INTO platform.decision (event_id, tenant_id, group_name, outcome, decided_at)
  SELECT event_id, tenant_id, %(group)s, 'scheduled', now() FROM caused
)
INSERT INTO platform.nudge (nudge_id, tenant_id, product, subject_id, kind, step, event_id, due_at,
                            created_at, updated_at)
SELECT overlay(uuidv7()::text PLACING '8' FROM 15 FOR 1)::uuid, tenant_id, 'loans', subject_id,
       'loans.run_credit_check', 'loans.initiated', event_id, platform.clock_now() + %(due_in)s, now(), now()
  FROM caused
RETURNING nudge_id::text"""


@dataclass
class Nudges:
    """What is armed in a test's database, and what became of it."""

    database: Database

    def arm(self, subjects: Sequence[str], due_in: timedelta = NOW, tenant: str = TENANT) -> list[str]:
        """One nudge for each subject, due so much from now by the Clock; returns their ids."""
        values = {"tenant": tenant, "subjects": list(subjects), "group": GROUP, "due_in": due_in}
        with self.database.connect(self.database.owner_dsn) as owner:
            return [row[0] for row in owner.execute(_ARM.encode(), values)]

    def tenant(self, name: str) -> str:
        """A further tenant."""
        self.database.run(
            "INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES (%s, 'T', now())", name
        )
        return name

    def in_state(self, state: str) -> set[str]:
        """Subjects whose nudge is in this state."""
        rows = self.database.run("SELECT subject_id FROM platform.nudge WHERE state::text = %s", state)
        return {subject for (subject,) in rows}

    def records(self) -> list[dict[str, Any]]:
        """The timer records, in their order."""
        columns = (
            "event_id",
            "tenant_id",
            "message_key",
            "event_type",
            "payload",
            "occurred_at",
            "traceparent",
        )
        rows = self.database.run(
            f"SELECT event_id::text, {', '.join(columns[1:])} FROM platform.outbox"
            " WHERE topic = 'timers.loans' ORDER BY position"
        )
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def waits(self, subject: str) -> tuple[datetime | None, datetime | None]:
        """Since when the subject's nudge waits, and when it is looked at again."""
        ((since, again),) = self.database.run(
            "SELECT waits_since, retry_at FROM platform.nudge WHERE subject_id = %s", subject
        )
        return since, again

    def retry_now(self) -> None:
        """As if the time of every retry had come."""
        self.database.run("UPDATE platform.nudge SET retry_at = now() WHERE retry_at IS NOT NULL")
