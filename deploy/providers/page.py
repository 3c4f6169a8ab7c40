"""What arrived, as a page for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from itertools import islice

from deploy.providers.faults import Faults
from deploy.providers.inbox import Arrival, Inbox

MOST_SHOWN = 200

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2"><title>What arrived</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1c1c1e }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .35rem .6rem; vertical-align: top }
tr + tr { border-top: 1px solid #ddd } pre { margin: 0; white-space: pre-wrap; font: inherit } .wrong { color: #a30000 }
</style>
<h1>What arrived</h1>
"""


def page(inbox: Inbox, faults: Faults) -> str:
    """The newest arrivals first; everything that came from outside is escaped."""
    counts = ", ".join(f"{count} {name}" for name, count in sorted(inbox.counts.items())) or "nothing yet"
    tenants = ", ".join(f"{escape(name)} {count}" for name, count in inbox.by_tenant.most_common(20))
    return "".join(
        (
            HEAD,
            f"<p>{escape(counts)}. {tenants}</p>",
            _list("Told to misbehave", map(str, faults.current())),
            _list("Refused", islice(reversed(inbox.complaints), 20)),
            "<table><tr><th>#<th>at (UTC)<th>channel<th>tenant<th>to<th>message<th>repeats</tr>",
            *map(_row, islice(reversed(inbox.arrivals), MOST_SHOWN)),
            "</table></html>",
        )
    )


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<h2>{title}</h2><ul class="wrong">{items}</ul>' if items else ""


def _row(arrival: Arrival) -> str:
    at = datetime.fromtimestamp(arrival.received_at, UTC).strftime("%H:%M:%S.%f")[:-3]
    cells = (at, arrival.channel, arrival.tenant, arrival.to)
    return (
        f"<tr><td>{arrival.number}"
        + "".join(f"<td>{escape(cell)}" for cell in cells)
        + f"<td><pre>{escape(_words(arrival.content))}</pre><td>{arrival.repeats or ''}</tr>\n"
    )


def _words(content: Mapping[str, object]) -> str:
    match content:
        case {"text": {"body": str(text)}}:
            return text
        case {"template": {"name": name, **rest}}:
            return f"{name} {rest.get('components', '')}"
        case {"subject": subject, "text": text}:
            return f"{subject}\n\n{text}"
        case _:
            return str(dict(content))
