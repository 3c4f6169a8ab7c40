"""A log goes in once, in time order, however often it is begun and whatever ends it in the middle."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from psycopg import Connection

from connectors import tracing
from deploy.local.stack import Stack
from producers.importer.pace import Pace
from producers.importer.read import InvalidLogError
from producers.importer.run import ImportRefusedError, ImportResult, import_log
from tests.integration.importer.conftest import BEGAN, CONTRACTS, rows_of, spec_of

WriteLog = Callable[[list[str]], Path]
ROOT = Path(__file__).parents[3]


def bring(owner: Connection[Any], path: Path, tenant: str, **more: Any) -> ImportResult:
    batch = more.pop("batch", 20)
    progress = more.pop("progress", lambda done, total: None)
    spec = spec_of(path, tenant, **more)
    return import_log(owner, spec, CONTRACTS, batch=batch, progress=progress)


def outbox(owner: Connection[Any], tenant: str) -> list[tuple[Any, ...]]:
    return owner.execute(
        "SELECT event_id::text, subject_id, event_type, occurred_at, payload, topic FROM platform.outbox "
        "WHERE tenant_id = %s ORDER BY position",
        [tenant],
    ).fetchall()


def notes(owner: Connection[Any], tenant: str) -> list[str]:
    return [orjson.loads(row[4])["note"] for row in outbox(owner, tenant)]


class CrashError(Exception):
    """The process ends here."""


def crash_at(rows: int) -> Callable[[int, int], None]:
    def progress(done: int, _total: int) -> None:
        if done >= rows:
            raise CrashError

    return progress


def test_rows_go_in_by_time_and_ties_in_the_logs_order(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    result = bring(owner, write_log(rows_of(100)), tenant)
    assert (result.rows, result.imported, result.already) == (100, 100, 0)
    rows = outbox(owner, tenant)
    assert [row[3] for row in rows] == sorted(row[3] for row in rows)
    for earlier, later in itertools.pairwise(rows):
        if earlier[3] == later[3]:
            assert int(orjson.loads(earlier[4])["note"][4:]) < int(orjson.loads(later[4])["note"][4:])
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert {row[5] for row in rows} == {"events.loans"}
    assert {row[2] for row in rows} == CONTRACTS.keys()


def test_a_second_import_of_the_same_log_changes_nothing(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    path = write_log(rows_of(50))
    bring(owner, path, tenant)
    before = outbox(owner, tenant)
    again = bring(owner, path, tenant)
    assert (again.rows, again.imported, again.already) == (50, 0, 50)
    assert outbox(owner, tenant) == before


@pytest.mark.parametrize("rows", [0, 20, 40, 99])
def test_an_import_that_ended_in_the_middle_goes_on_there(
    owner: Connection[Any], write_log: WriteLog, tenant: str, rows: int
) -> None:
    path = write_log(rows_of(100))
    with pytest.raises(CrashError):
        bring(owner, path, tenant, progress=crash_at(rows))
    result = bring(owner, path, tenant)
    assert result.already + result.imported == 100
    assert sorted(notes(owner, tenant)) == sorted(f"row {number}" for number in range(100))
    times = [row[3] for row in outbox(owner, tenant)]
    assert times == sorted(times)


def test_an_import_killed_with_sigkill_goes_on_where_it_was(
    owner: Connection[Any], pg_only: Stack, write_log: WriteLog, tenant: str
) -> None:
    path = write_log(rows_of(400))
    command = [
        sys.executable,
        "-m",
        "tests.integration.importer.killed",
        pg_only.owner_dsn,
        tenant,
        str(path),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 60:
                process.kill()
                break
    done = len(outbox(owner, tenant))
    assert 60 <= done < 400
    result = bring(owner, path, tenant)
    assert result.already == done
    assert sorted(notes(owner, tenant)) == sorted(f"row {number}" for number in range(400))
    recorded = owner.execute(
        "SELECT rows_done, rows_total, finished_at IS NOT NULL FROM platform.import WHERE tenant_id = %s",
        [tenant],
    ).fetchall()
    assert recorded == [(400, 400, True)]


def test_a_log_that_grew_is_imported_from_where_it_ended(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    bring(owner, write_log(rows_of(50)), tenant)
    before = outbox(owner, tenant)
    grown = write_log(rows_of(110))
    with pytest.raises(CrashError):
        bring(owner, grown, tenant, progress=crash_at(70))
    result = bring(owner, write_log(rows_of(120)), tenant)
    assert (result.already, result.imported) == (70, 50)
    after = outbox(owner, tenant)
    assert after[:50] == before
    assert sorted(notes(owner, tenant)) == sorted(f"row {number}" for number in range(120))


@pytest.mark.parametrize("changed", ["row", "shorter", "map"])
def test_another_log_under_the_same_id_is_refused(
    owner: Connection[Any], write_log: WriteLog, tenant: str, changed: str
) -> None:
    rows = rows_of(30)
    bring(owner, write_log(rows), tenant)
    before = outbox(owner, tenant)
    more: dict[str, Any] = {}
    match changed:
        case "row":
            rows = [rows[0] + " again", *rows[1:]]
        case "shorter":
            rows = rows[:20]
        case _:
            more["type_map"] = {"1": "loans.phone_verified", "2": "loans.initiated"}
    with pytest.raises(ImportRefusedError, match="--id"):
        bring(owner, write_log(rows), tenant, **more)
    assert outbox(owner, tenant) == before
    assert bring(owner, write_log(rows), tenant, import_id="another", **more).imported == len(rows)


def test_a_bad_row_anywhere_and_nothing_is_written(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    path = write_log([*rows_of(60), "lead-1,9,2011-10-01,x"])
    with pytest.raises(InvalidLogError, match=r"log\.csv:62:step: '9' is not in the type map"):
        bring(owner, path, tenant)
    assert outbox(owner, tenant) == []
    assert owner.execute("SELECT FROM platform.import WHERE tenant_id = %s", [tenant]).fetchall() == []


def test_a_payload_over_the_limit_anywhere_and_nothing_is_written(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    path = write_log([*rows_of(60), f"lead-1,2,2011-10-01,{'€' * 100_000}"])
    with pytest.raises(ImportRefusedError, match=r"phone_verified of lead-1 at 2011-10-01T.* admits 262144"):
        bring(owner, path, tenant)
    assert outbox(owner, tenant) == []
    assert owner.execute("SELECT FROM platform.import WHERE tenant_id = %s", [tenant]).fetchall() == []


def test_an_unknown_tenant_or_product_is_refused(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    path = write_log(rows_of(1))
    with pytest.raises(ImportRefusedError, match="tenant 'nobody-here' is unknown"):
        bring(owner, path, "nobody-here")
    with pytest.raises(ImportRefusedError, match="product 'shoes' is not registered"):
        bring(owner, path, tenant, product="shoes")


def test_two_processes_at_the_same_import_one_stops(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    path = write_log(rows_of(100))
    interlopers: list[ImportResult] = []

    def interlope(done: int, _total: int) -> None:
        if done == 40 and not interlopers:
            interlopers.append(bring(owner, path, tenant))

    with pytest.raises(ImportRefusedError, match="another process"):
        bring(owner, path, tenant, progress=interlope)
    assert len(interlopers) == 1
    assert sorted(notes(owner, tenant)) == sorted(f"row {number}" for number in range(100))


def test_the_same_log_in_two_tenants_gives_each_its_own_events(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    other = f"{tenant}-b"
    owner.execute(
        "INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES (%s, 'B', now())", [other]
    )
    path = write_log(rows_of(30))
    bring(owner, path, tenant)
    bring(owner, path, other)
    mine, theirs = outbox(owner, tenant), outbox(owner, other)
    assert {row[0] for row in mine}.isdisjoint(row[0] for row in theirs)
    assert [row[1:] for row in mine] == [row[1:] for row in theirs]


def test_an_import_keeps_its_rate(owner: Connection[Any], write_log: WriteLog, tenant: str) -> None:
    slept: list[float] = []
    pace = Pace(100.0, monotonic=lambda: 1000.0 + sum(slept), sleep=slept.append)
    import_log(owner, spec_of(write_log(rows_of(200)), tenant), CONTRACTS, pace=pace)
    assert sum(slept) == pytest.approx(1.75, abs=0.3)


def test_a_log_without_rows_is_done_at_once(owner: Connection[Any], write_log: WriteLog, tenant: str) -> None:
    assert bring(owner, write_log([]), tenant).rows == 0


def test_what_happened_long_ago_is_recorded_now(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    bring(owner, write_log(rows_of(1)), tenant)
    ((recent, occurred_at),) = owner.execute(
        "SELECT least(recorded_at, uuid_extract_timestamp(event_id)) > now() - interval '1h', occurred_at "
        "FROM platform.outbox WHERE tenant_id = %s",
        [tenant],
    ).fetchall()
    assert recent
    assert occurred_at < BEGAN


def traceparents(owner: Connection[Any], tenant: str) -> list[str | None]:
    rows = owner.execute(
        "SELECT traceparent FROM platform.outbox WHERE tenant_id = %s ORDER BY position", [tenant]
    )
    return [traceparent for (traceparent,) in rows]


def test_rows_carry_the_trace_of_the_batch_that_appended_them(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with tracing.recording(provider):
        bring(owner, write_log(rows_of(5)), tenant, batch=3)
    first, second = spans.get_finished_spans()
    carried = [tracing.traceparent_of(NonRecordingSpan(span.context)) for span in (first, second)]
    assert carried[0] != carried[1]
    assert traceparents(owner, tenant) == [carried[0]] * 3 + [carried[1]] * 2
    assert (first.name, first.attributes) == ("append", {"tellonce.tenant": tenant, "tellonce.events": 3})


def test_where_nothing_is_recorded_rows_carry_the_trace_around_the_import_if_there_is_one(
    owner: Connection[Any], write_log: WriteLog, tenant: str
) -> None:
    around = NonRecordingSpan(SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(1)))
    with trace.use_span(around):
        bring(owner, write_log(rows_of(1)), tenant, import_id="traced")
    bring(owner, write_log(rows_of(1)), tenant, import_id="untraced")
    assert traceparents(owner, tenant) == [f"00-{7:032x}-{9:016x}-01", None]
