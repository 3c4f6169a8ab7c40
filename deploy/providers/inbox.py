"""What arrived, in memory: for people to look at, for tests and figures to count."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

MOST_KEPT = 200_000
"""Arrivals and keys; older ones are forgotten and only their counts remain. A benchmark's run fits."""
MOST_COMPLAINTS = 200


class KeyReusedError(Exception):
    """The key was used before, with something else in it."""


@dataclass(slots=True)
class Arrival:
    """One visible effect at a provider."""

    number: int
    received_at: float
    """Unix time in seconds, when the request had been read."""
    channel: str
    tenant: str
    delivery: str
    key: str
    reference: str
    """What the provider calls the message."""
    to: str
    traceparent: str | None
    content: Mapping[str, object]
    repeats: int = 0
    """How often it came again under its key and was not taken again."""


@dataclass(slots=True)
class Inbox:
    """Arrivals in order. One thread."""

    honours_keys: bool = True
    """Off: like providers that know no keys, the same key twice is two effects."""
    arrivals: deque[Arrival] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    complaints: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_COMPLAINTS))
    """What was wrong with requests that were refused, newest last."""
    counts: Counter[str] = field(default_factory=Counter)
    """accepted, repeated (under a known key), key_reused (with another content), refused."""
    by_tenant: Counter[str] = field(default_factory=Counter)
    _keys: dict[str, tuple[bytes, Arrival]] = field(default_factory=dict)
    _number: int = 0

    def accept(
        self,
        channel: str,
        *,
        key: str,
        tenant: str,
        delivery: str,
        to: str,
        content: Mapping[str, object],
        traceparent: str | None,
        same: bytes,
        reference: str | None = None,
    ) -> Arrival:
        """Take a message, or find the one taken before under its key. `same`: what must not differ between the two.

        Raises `KeyReusedError`.
        """
        digest = hashlib.sha256(same).digest()
        known = self._keys.get(f"{channel} {key}")
        if known is not None and known[0] != digest:
            self.counts["key_reused"] += 1
            self.complain(channel, f"key {key} came with another content")
            raise KeyReusedError
        if known is not None and self.honours_keys:
            self.counts["repeated"] += 1
            known[1].repeats += 1
            return known[1]
        self._number += 1
        arrival = Arrival(
            self._number,
            time.time(),
            channel,
            tenant,
            delivery,
            key,
            reference or f"wamid.{digest.hex()[:24]}{self._number:08x}",
            to,
            traceparent,
            content,
        )
        self.arrivals.append(arrival)
        self._keys[f"{channel} {key}"] = (digest, arrival)
        if len(self._keys) > MOST_KEPT:
            del self._keys[next(iter(self._keys))]
        self.counts["accepted"] += 1
        self.by_tenant[tenant] += 1
        return arrival

    def complain(self, channel: str, why: str) -> None:
        """A request was refused for what it was."""
        self.counts["refused"] += 1
        self.complaints.append(f"{channel}: {why}")

    def clear(self) -> None:
        for kept in (self.arrivals, self.complaints, self.counts, self.by_tenant, self._keys):
            kept.clear()

    def select(
        self, *, after: int = 0, limit: int = 1000, tenant: str | None = None, channel: str | None = None
    ) -> list[dict[str, object]]:
        """The first `limit` arrivals numbered beyond `after`, as JSON values."""
        found: list[dict[str, object]] = []
        for arrival in self.arrivals:
            if (
                arrival.number > after
                and tenant in (None, arrival.tenant)
                and channel in (None, arrival.channel)
            ):
                found.append(asdict(arrival))
                if len(found) >= limit:
                    break
        return found
