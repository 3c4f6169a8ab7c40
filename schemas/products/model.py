"""What a product says of itself in `product.yaml`: its journey and its kinds, as frozen types.

Names of other files (Avro schemas, templates) are compared with it in `check`; what the model alone can tell
is told here, with the path of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from pydantic import Field, model_validator

from schemas.products.audience import Audience, Channel
from schemas.products.digest import Digest
from schemas.products.part import Duration, Part

ZERO = timedelta(0)

QualifiedName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*\.[a-z][a-z0-9_]{0,79}$")]
"""`<product>.<name>`: what events and kinds are called everywhere."""
SchemaVersion = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*\.[a-z][a-z0-9_]{0,79}@[1-9][0-9]{0,4}$")]
"""`<event type>@<version>`: one recorded version of an event's schema."""
Locale = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?$")]


class UnknownStepError(LookupError):
    """A step that the journey does not have; one that is removed must stay in the list as `retired`."""

    def __init__(self, step: str) -> None:
        super().__init__(f"the journey has no step {step!r}; a step that is removed stays as `retired: true`")
        self.step = step


class Role(StrEnum):
    """What an event type is for; it has exactly one role."""

    STEP = "step"
    END = "end"
    RESTART = "restart"
    LIFECYCLE = "lifecycle"
    """Fires the kinds that name it in `on`; cancels nothing."""
    RULE_INPUT = "rule_input"
    """Has a schema and no other role: rules may read it."""


class Step(Part):
    """Reaching `on` arms the nudge of kind `nudge`, `after` so long. A step's name is its event type."""

    on: QualifiedName
    nudge: QualifiedName
    after: Duration
    retired: bool = False
    """No longer reached or spoken of, but leads that reached it once still stand somewhere."""

    @property
    def is_immediate(self) -> bool:
        """Whether its message is prepared at once instead of being armed."""
        return self.after == ZERO


class Journey(Part):
    """An ordered list of steps: position is rank, and there is no other."""

    steps: tuple[Step, ...] = Field(min_length=1)
    ends_on: frozenset[QualifiedName] = frozenset()
    restarts_on: frozenset[QualifiedName] = frozenset()

    # Cached properties, not private attributes: pydantic reads those through a slow `__getattr__`, and ranks
    # are looked up for every event.
    @cached_property
    def ranks(self) -> dict[str, int]:
        """Each step's place in today's list, from 0."""
        return {step.on: rank for rank, step in enumerate(self.steps)}

    def step(self, name: str) -> Step:
        """The step of this name; raises `UnknownStepError`."""
        return self.steps[self.rank(name)]

    def rank(self, name: str) -> int:
        """A step's place in today's list, from 0; raises `UnknownStepError`."""
        try:
            return self.ranks[name]
        except KeyError:
            raise UnknownStepError(name) from None

    def is_further(self, name: str, reached: Iterable[str]) -> bool:
        """Whether the step is strictly further than every step reached. Raises `UnknownStepError`."""
        ranks = self.ranks
        try:
            return ranks[name] > max((ranks[other] for other in reached), default=-1)
        except KeyError as error:
            raise UnknownStepError(error.args[0]) from None


class Kind(Part):
    """A kind of notification: when it fires by itself, whom it is for, and how it may be held back."""

    on: QualifiedName | None = None
    """The lifecycle event that fires it; a kind without is fired by a step or by a rule."""
    category: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")] | None = None
    """What preferences may name besides the kind itself."""
    required: bool = False
    """Cannot be opted out of; quiet hours do not hold it."""
    expires_after: Duration | None = None
    """Not sent when so much time has passed since the event."""
    audiences: tuple[Audience, ...] = Field(min_length=1)
    digest: Mapping[Channel, Digest] = Field(default_factory=dict)

    @property
    def channels(self) -> frozenset[Channel]:
        """Every channel that some audience of it may be told on."""
        return frozenset(channel for audience in self.audiences for channel in audience.channels)

    @model_validator(mode="after")
    def _is_consistent(self) -> Kind:
        if self.expires_after == ZERO:
            raise ValueError("expires_after: 0 would never send it")
        if self.required and self.digest:
            raise ValueError("digest: a required kind is waited for, so it is never collected")
        for channel in self.digest:
            if channel is Channel.INAPP:
                raise ValueError("digest: in-app is shown at once; collect e-mail or another channel")
            if channel not in self.channels:
                raise ValueError(f"digest: no audience is told on {channel}")
        return self


class Product(Part):
    """A product's journey and kinds. Immutable and safe to share between threads."""

    product: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    subject: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    """What a subject is, in one word: lead, case, order."""
    default_locale: Locale = "en"
    """The locale that every template exists in; others fall back to it."""
    journey: Journey | None = None
    kinds: dict[QualifiedName, Kind] = Field(default_factory=dict)
    confluent_ids: dict[int, SchemaVersion] = Field(default_factory=dict)
    """Ids of a Confluent registry that producers frame bodies with, each as one recorded schema version."""

    @cached_property
    def roles(self) -> dict[str, Role]:
        """The role of each event type that has one."""
        return dict(self.claims())

    def claims(self) -> Iterable[tuple[str, Role]]:
        """Every event type that is given a role, once for each time; a valid product gives each one role."""
        if self.journey is not None:
            yield from ((step.on, Role.STEP) for step in self.journey.steps)
            yield from ((name, Role.END) for name in sorted(self.journey.ends_on))
            yield from ((name, Role.RESTART) for name in sorted(self.journey.restarts_on))
        fired_by = {kind.on: Role.LIFECYCLE for kind in self.kinds.values() if kind.on is not None}
        yield from fired_by.items()

    def role_of(self, event_type: str) -> Role:
        """The one role of an event type; `RULE_INPUT` when nothing else names it."""
        return self.roles.get(event_type, Role.RULE_INPUT)

    def fired_by(self, kind: str) -> tuple[str, ...]:
        """The event types that fire a kind by themselves: its own, and the steps that nudge with it."""
        steps = self.journey.steps if self.journey is not None else ()
        own = self.kinds[kind].on
        return (*((own,) if own else ()), *(step.on for step in steps if step.nudge == kind))

    @property
    def events_topic(self) -> str:
        """Where its facts are."""
        return f"events.{self.product}"

    def kinds_on(self, event_type: str) -> tuple[str, ...]:
        """The kinds that an event of this type fires by itself, in the order of their names."""
        return self._on.get(event_type, ())

    @cached_property
    def _on(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name, kind in sorted(self.kinds.items()):
            if kind.on is not None:
                found[kind.on] = (*found.get(kind.on, ()), name)
        return found
