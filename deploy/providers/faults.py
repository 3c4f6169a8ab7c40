"""How the local providers misbehave, when told to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Channel = Literal["whatsapp", "email"]
SmtpStage = Literal["greeting", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "content"]


class Fault(BaseModel):
    """One misbehaviour, for the calls it matches, `times` times.

    - `status`: answer with `status`; over HTTP with `code` as the API's error code and `retry_after` as header.
    - `stall`: answer nothing for `seconds`, then go on as if nothing had been.
    - `cut`: end the connection without an answer.
    - `garbage`: answer what is no HTTP, or no SMTP.
    - `nonsense`: a success that is not what the API documents (HTTP), an impossible reply code (SMTP).

    With `accepted` the message is taken before the misbehaviour: the caller cannot know.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["status", "stall", "cut", "garbage", "nonsense"]
    channel: Channel | None = None
    """None: every channel."""
    tenant: str | None = None
    """None: every tenant. In SMTP known from the content on only."""
    to: str | None = None
    """Part of the address; in SMTP known from RCPT on."""
    stage: SmtpStage = "content"
    status: int = Field(default=503, ge=200, le=599)
    code: int | None = None
    retry_after: Annotated[str, Field(pattern=r"^[\x20-\x7e]*$")] | None = None
    seconds: float = Field(default=30.0, ge=0, le=3600)
    accepted: bool = False
    times: int | None = Field(default=None, ge=1)
    """None: until cleared."""

    @model_validator(mode="after")
    def _knowable(self) -> Fault:
        early = self.channel == "email" and self.stage != "content"
        if early and (self.tenant is not None or self.accepted):
            raise ValueError(f"nothing of the message is known at {self.stage}: no tenant, not accepted")
        if early and self.to is not None and self.stage not in ("rcpt", "data"):
            raise ValueError(f"the recipient is not known at {self.stage}")
        return self


class Faults:
    """Those in force, in the order they were told; the first that matches a call is taken."""

    def __init__(self) -> None:
        self._left: list[tuple[Fault, int | None]] = []
        self.taken = 0

    def tell(self, fault: Fault) -> None:
        self._left.append((fault, fault.times))

    def clear(self) -> None:
        self._left.clear()

    def current(self) -> list[dict[str, object]]:
        """As JSON values, each with how many times are left."""
        return [{**fault.model_dump(exclude_defaults=True), "left": left} for fault, left in self._left]

    def take(
        self,
        channel: Channel,
        *,
        stage: SmtpStage = "content",
        tenant: str | None = None,
        to: str | None = None,
    ) -> Fault | None:
        """The fault of this call, counted."""
        for place, (fault, left) in enumerate(self._left):
            if (
                fault.channel in (None, channel)
                and fault.stage == stage
                and fault.tenant in (None, tenant)
                and (fault.to is None or (to is not None and fault.to in to))
            ):
                if left == 1:
                    del self._left[place]
                elif left is not None:
                    self._left[place] = (fault, left - 1)
                self.taken += 1
                return fault
        return None
