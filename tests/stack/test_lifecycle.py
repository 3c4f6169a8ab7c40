"""What a stack promises while it lives."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from deploy.local import commands, jars, runner
from deploy.local.errors import StackError
from deploy.local.process import Process
from deploy.local.running import ALL, Component, StackRunningError
from deploy.local.stack import Stack, silent

ONLY: tuple[Component, ...] = ("postgres",)


def rows(dsn: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT name FROM platform.tenant").fetchall()


def add_row(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO platform.tenant (tenant_id, name, created_at) VALUES ('acme', 'Acme', now())"
        )


def test_everything_answers_survives_a_kill_and_ends(root: Path) -> None:
    lines: list[str] = []
    with Stack.start(root, progress=lines.append) as stack:
        assert stack.components == ("postgres", "kafka", "connect")
        assert sum("answers after" in line for line in lines) == 3
        admin = AdminClient({"bootstrap.servers": stack.bootstrap})
        for created in admin.create_topics([NewTopic("kept", 3)]).values():
            created.result(10)
        for engine in ALL:
            stack.kill(engine)
            assert not stack.alive(engine)
        for engine in ALL:
            stack.restart(engine)
        assert len(admin.list_topics(timeout=10).topics["kept"].partitions) == 3
        admin.list_topics("typo", timeout=10)
        assert "typo" not in admin.list_topics(timeout=10).topics, "asking for a topic must not create it"
        assert rows(stack.owner_dsn) == []
    assert not any(stack.alive(engine) for engine in ALL)
    stack.stop()
    archives = [archive.name for archive in jars.ensure(silent).archives.iterdir()]
    for engine in ("kafka", "connect"):
        assert any(name.startswith(engine) for name in archives), "the next start is the faster one"


def test_data_is_kept_until_reset(root: Path) -> None:
    with Stack.start(root, ONLY) as stack:
        add_row(stack.owner_dsn)
    with Stack.start(root, ONLY) as stack:
        assert rows(stack.owner_dsn) == [("Acme",)]
        data = stack.layout.postgres
    assert commands.reset(root).changed
    assert not root.exists()
    assert not data.exists()
    with Stack.start(root, ONLY) as stack:
        assert rows(stack.owner_dsn) == []


def test_a_folder_that_was_deleted_by_hand_begins_anew(root: Path) -> None:
    """Root's databases lie elsewhere, by the folder's path: a clone made again must not find the old one."""
    with Stack.start(root, ONLY) as stack, psycopg.connect(stack.admin_dsn, autocommit=True) as conn:
        conn.execute("CREATE TABLE kept ()")
    shutil.rmtree(root)
    with Stack.start(root, ONLY) as stack, psycopg.connect(stack.admin_dsn, autocommit=True) as conn:
        assert conn.execute("SELECT to_regclass('kept')").fetchone() == (None,)


def test_two_stacks_stand_side_by_side_and_one_root_has_one(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    try:
        with Stack.start(root, ONLY) as one, Stack.start(other, ONLY) as two:
            add_row(one.owner_dsn)
            assert rows(two.owner_dsn) == []
            with pytest.raises(StackRunningError, match=f"process {os.getpid()} ends it"):
                Stack.start(root, ONLY)
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                rows(one.owner_dsn.replace(":" + password_of(one), ":" + password_of(two)))
    finally:
        commands.reset(other)


def password_of(stack: Stack) -> str:
    return stack.owner_dsn.split(":")[2].partition("@")[0]


def test_up_leaves_it_running_and_down_ends_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_postgres(path: Path, *, progress: runner.Progress, detached: bool) -> Stack:
        return start(path, ONLY, progress=progress, detached=detached)

    start = Stack.start
    monkeypatch.setattr(Stack, "start", only_postgres)
    first = commands.up(root)
    assert first.changed
    assert first.alive == {"postgres": True}
    assert not commands.up(root).changed
    with pytest.raises(StackRunningError, match="make down"):
        start(root, ONLY)
    attached = Stack.attach(root)
    assert attached is not None
    add_row(attached.owner_dsn)
    with pytest.raises(StackError, match="make down"):
        attached.restart("postgres")
    assert first.settings_file is not None
    assert attached.consumer_dsn in first.settings_file.read_text()

    attached.kill("postgres")
    assert commands.state(root).alive == {}, "nothing is left of a stack whose only engine died"
    assert commands.up(root).changed
    assert commands.down(root).changed
    assert not commands.down(root).changed
    assert not first.settings_file.exists()


def test_it_writes_settings_that_nobody_else_can_read(root: Path) -> None:
    with Stack.start(root, ONLY) as stack:
        lines = stack.layout.settings.read_text().splitlines()
        modes = {
            path: stat.S_IMODE(path.stat().st_mode)
            for path in (root, stack.layout.passwords, stack.layout.settings, stack.layout.logs)
        }
        data = stat.S_IMODE((stack.layout.postgres / "data").stat().st_mode)
    assert list(modes.values()) == [0o700, 0o600, 0o600, 0o700]
    assert data == 0o700
    variables = dict(line.split("=", 1) for line in lines if line[0] != "#")
    assert variables["TELLONCE_DATABASE_URL"] == stack.consumer_dsn
    assert variables["TELLONCE_ADMIN_DATABASE_URL"] == stack.owner_dsn
    assert stack.settings.database_url.get_secret_value() == stack.consumer_dsn


def test_a_suspended_engine_answers_nothing_and_still_stops(root: Path) -> None:
    with Stack.start(root, ONLY) as stack:
        stack.suspend("postgres")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(stack.owner_dsn, connect_timeout=2)
        stack.resume("postgres")
        assert rows(stack.owner_dsn) == []
        stack.suspend("postgres")
    assert not stack.alive("postgres")


def test_a_failed_start_shows_the_log_and_leaves_nothing(root: Path) -> None:
    with Stack.start(root, ONLY) as stack:
        control = stack.layout.postgres / "data" / "global" / "pg_control"
    control.rename(control.with_suffix(".lost"))
    with pytest.raises(StackError, match=r"(?s)postgres ended while .*postgres\.log.*pg_control"):
        Stack.start(root, ONLY)
    control.with_suffix(".lost").rename(control)
    Stack.start(root, ONLY).stop()


def test_data_of_another_program_is_refused_with_a_way_out(root: Path) -> None:
    with Stack.start(root, ONLY) as stack, psycopg.connect(stack.owner_dsn) as owner:
        owner.execute("UPDATE platform.schema_migration SET checksum = repeat('0', 64) WHERE version = 1")
    with pytest.raises(StackError, match=r"0001_foundation .* `make reset`"):
        Stack.start(root, ONLY)


def test_one_failure_ends_the_whole_start(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Event()
    begin = runner.Runner.start

    def fail_kafka(self: runner.Runner, component: Component, listening: Callable[[], None]) -> Process:
        if component == "kafka":
            started.wait(30)
            raise StackError("no broker today")
        process = begin(self, component, listening)
        started.set()
        return process

    monkeypatch.setattr(runner.Runner, "start", fail_kafka)
    with pytest.raises(StackError, match="no broker today"):
        Stack.start(root)
    assert Stack.attach(root) is None
    monkeypatch.undo()
    Stack.start(root, ONLY).stop()


def test_connect_without_kafka_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="connect needs kafka"):
        Stack.start(root, ("postgres", "connect"))
