"""`real_job_rate`: the real loan log, decided and told as a bank would want it; beside what peers make of the same log.

`decide`: the log is in Kafka, one process decides it. `decide_live`: its events are committed one by one while one
process decides. `deliver`: time moves past all due times, and each lead's last nudge goes to the applicant and the
advisor. What comes out must be what the journey played by hand comes to, or there is no figure.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import psycopg

from connectors.registry import load_catalogue
from deploy.local.passwords import DOMAIN
from producers import tenants
from producers.importer.run import import_log
from producers.importer.spec import ImportSpec
from tests.bench.children import PRODUCTS, running
from tests.bench.figures import Figure, of_rounds
from tests.bench.pipeline import everything, local_provider
from tests.bench.rig import Rig, until
from tests.bench.supersession import WORKER
from tests.integration.runtime import event_log
from tests.integration.runtime.event_log import Row

NAMES: Final = ("real_job_rate",)
PRODUCT: Final = "worklog"
GROUP: Final = f"supersession.{PRODUCT}"
TOPIC: Final = f"events.{PRODUCT}"
TELLING: Final = (GROUP, "delivery.whatsapp", "clock")
TOPICS: Final = 3
"""Supersession reads two, the channel one."""
ROUNDS: Final = 3
LIVE_EVENTS: Final = 20_000
WRITERS: Final = 4
ADVISORS: Final = 342
ADVISORS_ARE_MAILED: Final = "{who: advisor, channels: [inapp, email]}"
WITHOUT_A_PHONE: Final = 10
"""One lead in so many cannot be reached by WhatsApp, as one in so many of the peers' prefers not to be."""

_PEOPLE = """
WITH lead AS (SELECT lead, n FROM unnest(%(leads)s::text[]) WITH ORDINALITY AS lead (lead, n)),
people AS (
  INSERT INTO platform.contact (tenant_id, user_id, first_name, phone, email)
  SELECT %(tenant)s, lead, 'Ada', CASE WHEN n %% %(silent)s > 0 THEN '+491511' || lead END, NULL FROM lead
  UNION ALL
  SELECT %(tenant)s, 'advisor-' || n, 'Grace', '+4930' || 1000000 + n, NULL
    FROM generate_series(0, %(advisors)s::int - 1) AS n)
INSERT INTO platform.assignment (tenant_id, product, subject_id, role, user_id)
SELECT %(tenant)s, 'worklog', lead, 'applicant', lead FROM lead
UNION ALL
SELECT %(tenant)s, 'worklog', lead, 'advisor', 'advisor-' || n %% %(advisors)s FROM lead"""
_CAME_TO = """
SELECT count(*) FILTER (WHERE reason = 'not_further'), count(*) FILTER (WHERE outcome = 'lifecycle'),
       count(*) FILTER (WHERE outcome = 'scheduled'), count(*)
  FROM platform.decision WHERE tenant_id = %(tenant)s AND group_name = %(group)s"""
_APPEND = (
    "SELECT platform.append(%s, 'worklog', %s, %s, jsonb_build_object('activity', %s::int), %s::timestamptz)"
)


def measure(rig: Rig, _wanted: Collection[str]) -> list[Figure]:
    """Nothing, and it is said, where the log is not beside the project."""
    if not event_log.REAL.is_file():
        rig.say(f"real_job_rate: not measured, there is no {event_log.REAL}")
        return []
    rig.stream()
    rig.warm()
    log = sorted(event_log.rows(), key=lambda row: row[2])
    _catch_up(rig)
    decide, deliver = [], []
    sent = 0
    for number in range(1, ROUNDS + 1):
        tenant, rate = _decide(rig, number, log)
        decide.append(rate)
        rig.say(f"real_job_rate decide round {number}: {rate:,.0f} events/s")
        sent, rate = _deliver(rig, tenant, log)
        deliver.append(rate)
        rig.say(f"real_job_rate deliver round {number}: {rate:,.0f} messages/s")
    live = []
    for number in range(1, ROUNDS + 1):
        live.append(_decide_live(rig, number, log[:LIVE_EVENTS]))
        rig.say(f"real_job_rate decide_live round {number}: {live[-1]:,.0f} events/s")
    return [
        of_rounds(
            "real_job_rate",
            "decide",
            "events/s",
            decide,
            len(log),
            "the loan log, in Kafka beforehand, one process; first decision to last",
        ),
        of_rounds(
            "real_job_rate",
            "decide_live",
            "events/s",
            live,
            LIVE_EVENTS,
            f"the log's first events, each its own transaction of {WRITERS} connections;"
            " first commit to last decision",
        ),
        of_rounds(
            "real_job_rate",
            "deliver",
            "messages/s",
            deliver,
            sent,
            "from the moment all fall due to the last request: timers, two audiences, the check at the claim,"
            " attempts, one POST for each message",
        ),
    ]


def _decide(rig: Rig, number: int, log: Sequence[Row]) -> tuple[str, float]:
    """Held, so that nothing is told yet."""
    tenant = _tenant(rig, f"real-{number}", log)
    before = rig.in_topic(TOPIC)
    with (
        tempfile.TemporaryDirectory() as folder,
        psycopg.connect(rig.stack.owner_dsn, autocommit=True) as owner,
    ):
        path = Path(folder) / "log.csv"
        event_log.write(path, log)
        spec = ImportSpec(
            path=path,
            tenant=tenant,
            product=PRODUCT,
            subject_column="CaseID",
            time_column="CompleteTimestamp",
            type_column="ActivityID",
            type_map=event_log.TYPES,
            fields={"activity": "ActivityID"},
        )
        import_log(owner, spec, load_catalogue([PRODUCTS]).product(PRODUCT).events)
    until(lambda: rig.in_topic(TOPIC) >= before + len(log), "the log is in Kafka")
    rig.superuser.execute("VACUUM (ANALYZE) platform.outbox")
    behind = rig.done(GROUP)
    with running(WORKER, [PRODUCT], rig.settings(), rig.log(GROUP)):
        until(lambda: rig.done(GROUP) > behind, "the first decisions", every_s=0.02)
        began, first = time.perf_counter(), rig.done(GROUP) - behind
        until(lambda: rig.done(GROUP) >= behind + len(log), "every event is decided", every_s=0.02)
        took = time.perf_counter() - began
    _is_what_the_log_comes_to(rig, tenant, log)
    return tenant, (len(log) - first) / took


def _decide_live(rig: Rig, number: int, log: Sequence[Row]) -> float:
    tenant = _tenant(rig, f"real-live-{number}", log)
    behind = rig.done(GROUP)
    with running(WORKER, [PRODUCT], rig.settings(), rig.log(GROUP)):
        began = time.perf_counter()
        _commit(rig, tenant, log)
        until(lambda: rig.done(GROUP) >= behind + len(log), "every event is decided", every_s=0.02)
        took = time.perf_counter() - began
    _is_what_the_log_comes_to(rig, tenant, log)
    return len(log) / took


def _deliver(rig: Rig, tenant: str, log: Sequence[Row]) -> tuple[int, float]:
    reached = {lead for lead, activity, _ in log if activity in event_log.RANK}
    leads = _leads(log)
    silent = sum(1 for place, lead in enumerate(leads, 1) if lead in reached and place % WITHOUT_A_PHONE == 0)
    count = 2 * len(reached) - silent
    with (
        tempfile.TemporaryDirectory() as folder,
        local_provider(rig) as provider,
        everything(
            rig,
            provider,
            "balanced",
            groups=TELLING,
            topics=TOPICS,
            products=str(_with_posts_alone(Path(folder) / PRODUCT)),
        ),
    ):
        began = time.time()
        with psycopg.connect(rig.stack.owner_dsn, autocommit=True) as owner:
            tenants.release(owner, tenant)
        until(lambda: provider.count(tenant) >= count, "everybody is told", every_s=0.25)
        received = provider.received(tenant)
    assert len(received) == count, f"{len(received)} messages, not {count}"
    return count, count / (max(received.values()) - began)


def _with_posts_alone(folder: Path) -> Path:
    """The log's product, but advisors are written to by WhatsApp as well: the peers' job is one POST for each
    message, and a mail's dialogue costs both ends several times as much.
    """
    shutil.copytree(PRODUCTS / PRODUCT, folder)
    written = folder / "product.yaml"
    text = written.read_text()
    assert ADVISORS_ARE_MAILED in text
    written.write_text(text.replace(ADVISORS_ARE_MAILED, "{who: advisor, channels: [whatsapp]}"))
    for template in folder.glob("templates/*/*"):
        if template.parent.name != "fraud_suspected" and not template.name.startswith("whatsapp."):
            template.unlink()
    return folder


def _tenant(rig: Rig, name: str, log: Sequence[Row]) -> str:
    with psycopg.connect(rig.stack.owner_dsn, autocommit=True) as owner:
        tenants.create(owner, name, roles=[DOMAIN])
        tenants.hold(owner, name)
    rig.superuser.execute(
        _PEOPLE.encode(),
        {"tenant": name, "leads": _leads(log), "silent": WITHOUT_A_PHONE, "advisors": ADVISORS},
    )
    rig.superuser.execute("VACUUM (ANALYZE) platform.contact, platform.assignment")
    rig.superuser.execute("CHECKPOINT")
    return name


def _leads(log: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(lead for lead, _, _ in log))


def _commit(rig: Rig, tenant: str, log: Sequence[Row]) -> None:
    """Each event in its own transaction, a lead's by one connection, so in their order."""

    def write(part: int) -> None:
        with psycopg.connect(rig.stack.domain_dsn) as conn:
            for lead, activity, at in log:
                if int(lead) % WRITERS == part:
                    conn.execute(_APPEND, [tenant, lead, event_log.TYPES[activity], activity, f"{at}+00"])
                    conn.commit()

    writers = [threading.Thread(target=write, args=(part,)) for part in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def _catch_up(rig: Rig) -> None:
    """What other figures left in the topic is not this one's."""
    with running(WORKER, [PRODUCT], rig.settings(), rig.log(GROUP)):
        until(lambda: rig.done(GROUP) >= rig.in_topic(TOPIC), "nothing is left in the topic")


def _is_what_the_log_comes_to(rig: Rig, tenant: str, log: Sequence[Row]) -> None:
    want = event_log.expected(log)
    found = rig.superuser.execute(_CAME_TO, {"tenant": tenant, "group": GROUP}).fetchone()
    assert found == (want.dropped, want.lifecycle, want.cancelled + sum(want.live.values()), len(log)), found
