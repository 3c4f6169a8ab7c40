"""What a message may speak of: the people, the tenant, the subject and the event that caused it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from babel import Locale

from schemas.templates.formats import LOCALE, ZONE
from schemas.templates.locales import zone_of


@dataclass(frozen=True, slots=True)
class Person:
    """Someone a message is for or about; None is what is not known of them."""

    user_id: str | None = None
    first_name: str | None = None
    role: str | None = None


NOBODY = Person()


@dataclass(frozen=True, slots=True)
class Tenant:
    """The house that writes."""

    tenant_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Context:
    """All that one message is rendered from. Templates read it by the names in `NAMES`."""

    recipient: Person
    tenant: Tenant
    subject_id: str
    payload: Mapping[str, object]
    """The payload of the event that caused it, as `EventContract.read` returns it."""
    link: str
    occurred_at: datetime
    due_at: datetime | None = None
    """When its nudge was due; None for what is sent at once."""
    applicant: Person = NOBODY
    advisor: Person = NOBODY
    """Whom the subject is assigned to, `NOBODY` when that is open."""
    zone: str = "UTC"
    """The recipient's IANA zone."""

    def names(self, written_in: str, conventions: Locale) -> dict[str, object]:
        """The names of a template in the language `written_in`, and what the filters need."""
        return {
            "recipient": _person(self.recipient),
            "applicant": _person(self.applicant),
            "advisor": _person(self.advisor),
            "tenant": {"id": self.tenant.tenant_id, "name": self.tenant.name},
            "subject_id": self.subject_id,
            "payload": self.payload,
            "link": self.link,
            "occurred_at": self.occurred_at,
            "due_at": self.due_at,
            "locale": written_in,
            "zone": self.zone,
            LOCALE: conventions,
            ZONE: zone_of(self.zone),
        }


def _person(person: Person) -> dict[str, object]:
    return {"user_id": person.user_id, "first_name": person.first_name, "role": person.role}


NAMES = frozenset(
    {
        *("recipient", "applicant", "advisor", "tenant", "subject_id", "payload", "link"),
        *("occurred_at", "due_at", "locale", "zone"),
    }
)
"""What a template may name. All of them are always there; `due_at` and what is said of a person may be null."""
