"""Every message of a product rendered from its samples, so that what fails does so before it is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from schemas.codec import EventContract
from schemas.products.catalogue import LoadedProduct
from schemas.products.problems import Problem
from schemas.products.templates import TEMPLATES
from schemas.templates.context import Context, Person, Tenant
from schemas.templates.failure import TemplateFailure
from schemas.templates.messages import Messages

_AT = datetime(2026, 3, 29, 10, 4, tzinfo=UTC)
_TENANT = Tenant("acme", "Acme & Sons")
_LINK = "https://example.org/l/sample?a=1&b=2"


def lint(loaded: LoadedProduct) -> list[Problem]:
    """What does not compile, and what does not render for each kind, channel and locale, with file and line.

    Rendered twice for each event that fires the kind: with all there can be, and with all null that can be null
    (a first name, an advisor, a due time, nullable payload fields).
    """
    messages = Messages(loaded)
    problems = {Problem(TEMPLATES + found.file, found.line, found.what) for found in messages.failures}
    for kind, channel, locale in messages:
        found = messages.find(kind, channel, locale)
        for told, context in _contexts(loaded, kind):
            try:
                found.message.render(context.names(found.locale, found.conventions))
            except TemplateFailure as failure:
                problems.add(Problem(TEMPLATES + failure.file, failure.line, f"{failure.what} ({told})"))
                break
    return sorted(problems)


def _contexts(loaded: LoadedProduct, kind: str) -> Iterator[tuple[str, Context]]:
    events = loaded.product.fired_by(kind)
    if not events:  # fired by a rule, on whatever event: it can count on no payload
        yield from _with("without a payload", {}, {})
    for event in events:
        contract, sample = loaded.events[event], loaded.samples[event]
        full = contract.accept(sample)
        sparse = contract.accept({**sample, **dict.fromkeys(_nullable(contract))})
        yield from _with(f"with the sample of {event}", full, sparse)


def _with(
    told: str, full: Mapping[str, object], sparse: Mapping[str, object]
) -> Iterator[tuple[str, Context]]:
    yield (
        told,
        Context(
            recipient=Person("user-1", "Ada", "applicant"),
            tenant=_TENANT,
            subject_id="subject-1",
            payload=full,
            link=_LINK,
            occurred_at=_AT,
            due_at=_AT,
            applicant=Person("user-1", "Ada", "applicant"),
            advisor=Person("user-2", "Grace", "advisor"),
            zone="Europe/Berlin",
        ),
    )
    yield (
        f"{told}, and all null that can be",
        Context(Person(), _TENANT, "subject-1", sparse, _LINK, _AT),
    )


def _nullable(contract: EventContract) -> Iterator[str]:
    for name, kind in contract.fields.items():
        if kind == "null" or (isinstance(kind, list) and "null" in kind):
            yield name
