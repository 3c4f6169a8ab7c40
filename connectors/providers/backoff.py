"""When to try again after a provider said no. Pure: time and chance come from the caller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MOST_SECONDS = 7 * 24 * 3600
"""A provider that asks for more is taken at this: beyond every retry's age, and no overflow of dates."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` within `age` of the first one."""

    first: timedelta = timedelta(seconds=10)
    """Outlives a restart of the other side, and is soon enough for a nudge."""
    factor: float = 4.0
    """10 s, 40 s, 3 min, 11 min, 43 min, 3 h, 4 h: seven pauses, a third of a day."""
    longest: timedelta = timedelta(hours=4)
    attempts: int = 8
    age: timedelta = timedelta(hours=24)


def next_attempt(
    policy: RetryPolicy,
    *,
    attempts: int,
    first_attempt_at: datetime,
    now: datetime,
    retry_after: timedelta | None,
    chance: float,
) -> datetime | None:
    """The instant of the next attempt after `attempts` (from 1) were made; None when there is none.

    `chance` is uniform in [0, 1): it spreads a pause over its upper half, so that what failed together does not come
    back together. What the provider asked for is a floor, spread upwards by a tenth.
    """
    if attempts >= policy.attempts:
        return None
    pause = _pause(policy, attempts) * (1.0 - chance / 2)
    if retry_after is not None:
        pause = max(pause, retry_after * (1.0 + chance / 10))
    due = now + pause
    return due if due < first_attempt_at + policy.age else None


def _pause(policy: RetryPolicy, attempts: int) -> timedelta:
    growth: float = policy.factor ** min(attempts - 1, 30)
    return min(policy.longest, policy.first * min(growth, policy.longest / policy.first))


def retry_after(value: str | None, now: datetime) -> timedelta | None:
    """The header `Retry-After` (RFC 9110, 10.2.3): seconds or an HTTP date; None when absent or neither.

    A date that has passed means now.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return timedelta(seconds=min(int(value[:10]), MOST_SECONDS))
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    if at.tzinfo is None:  # "-0000": UTC by RFC 5322, whatever the sender's zone
        at = at.replace(tzinfo=UTC)
    return min(max(at - now, timedelta()), timedelta(seconds=MOST_SECONDS))
