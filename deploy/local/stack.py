"""The whole local stack: PostgreSQL, Kafka and Kafka Connect as child processes below one folder."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import SecretStr

from connectors.settings import Settings
from deploy.local import database, environment, jars, passwords, postgres
from deploy.local.errors import StackError
from deploy.local.layout import Layout
from deploy.local.process import Process, ProcessId
from deploy.local.runner import Progress, Runner
from deploy.local.running import ALL, Component, Hold, Running


def silent(_line: str) -> None:
    """Progress that nobody wants to see."""


class Stack:
    """A running stack. Its addresses stay the same until it is stopped, whatever is killed and restarted.

    Made by `start`, or by `attach` for one that `start(detached=True)` left running. As a context manager it
    stops at the end; should this process die first, by whatever signal, the engines' guards stop them.
    Not for use by several threads at once.
    """

    def __init__(self, layout: Layout, running: Running, runner: Runner | None) -> None:
        self.layout = layout
        self._running = running
        self._runner = runner
        self._passwords = passwords.load_or_create(layout.passwords)

    @classmethod
    def start(
        cls,
        root: Path,
        components: Collection[Component] = ALL,
        *,
        progress: Progress = silent,
        detached: bool = False,
    ) -> Self:
        """Start below `root` (made if need be, its data kept) and return when everything answers.

        The database has its roles and an up-to-date schema. Raises StackError with the end of the logs, and
        StackRunningError if a stack of this root runs; what was started is stopped then. Connect needs Kafka.
        """
        layout = Layout(root.resolve())
        layout.create()
        hold = Hold.take(layout)
        try:
            layout.set_logs_aside()
            running = Running(hold.lease_ports(), starter=ProcessId.of(os.getpid()))
            running.write(layout.state)
            engines = jars.ensure(progress)
            if not layout.passwords.exists():
                # A database of root's lies elsewhere and outlives its folder; without its passwords nobody can open it.
                shutil.rmtree(layout.postgres, ignore_errors=True)
            known = passwords.load_or_create(layout.passwords)
            runner = Runner(layout, engines, running.ports, known, hold, progress)
            stack = cls(layout, running, runner)
            try:
                stack.add(components)
                environment.write(layout.settings, stack.settings, stack.dsns)
                if detached:
                    stack._detach(hold)
            except BaseException:
                stack.stop()
                raise
        except BaseException:
            hold.release()
            raise
        return stack

    @classmethod
    def attach(cls, root: Path) -> Self | None:
        """The detached stack that runs below `root`, or None."""
        layout = Layout(root.resolve())
        if Hold.is_free(layout):
            return None
        running = Running.read(layout.state)
        return cls(layout, running, None) if running and running.starter is None else None

    @classmethod
    def erase(cls, root: Path) -> None:
        """Delete everything below `root`, its database and passwords included. Raises StackRunningError."""
        layout = Layout(root.resolve())
        if not layout.root.exists():
            return
        hold = Hold.take(layout)
        try:
            shutil.rmtree(layout.postgres, ignore_errors=True)
            shutil.rmtree(layout.root)
        finally:
            hold.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def components(self) -> tuple[Component, ...]:
        """What was started, dead or alive."""
        return tuple(name for name in ALL if name in self._running.processes)

    def alive(self, component: Component) -> bool:
        """Whether its process exists; a suspended one does."""
        return self._running.processes[component].alive

    def process(self, component: Component) -> Process:
        """Its process ids, for whoever watches it from outside."""
        return self._running.processes[component]

    def add(self, components: Collection[Component]) -> None:
        """Start those of these that were not started yet, as `start` does. Connect needs Kafka."""
        wanted = tuple(name for name in ALL if name in components and name not in self._running.processes)
        if "connect" in wanted and "kafka" not in {*wanted, *self.components}:
            raise ValueError("connect needs kafka")
        if wanted:
            self._start_together(self._its_runner(), wanted)

    def stop(self) -> None:
        """Stop everything gracefully, Connect first: it writes to the others. Data stays; twice is fine."""
        for together in ({"connect"}, {"kafka", "postgres"}):
            waiting = [p for name, p in self._running.processes.items() if name in together]
            for process in waiting:
                process.ask_to_stop()
            for process in waiting:
                process.wait()
        self.layout.state.unlink(missing_ok=True)
        self.layout.settings.unlink(missing_ok=True)
        if self._runner:
            self._runner.hold.release()

    def kill(self, component: Component) -> None:
        """SIGKILL to it and its children: nothing is flushed, nobody is told."""
        self._running.processes[component].kill()

    def restart(self, component: Component) -> None:
        """Stop it gracefully if it runs, start it at its old address, return when it answers."""
        runner = self._its_runner()
        process = self._running.processes[component]
        process.ask_to_stop()
        process.wait()
        self._running.processes[component] = runner.start(component)

    def suspend(self, component: Component) -> None:
        """SIGSTOP to it and its children: it keeps its connections and answers nothing until `resume`."""
        self._running.processes[component].suspend()

    def resume(self, component: Component) -> None:
        """End what `suspend` began."""
        self._running.processes[component].resume()

    @property
    def settings(self) -> Settings:
        """What a process of ours needs to use this stack, whatever the environment says."""
        return Settings.model_construct(
            database_url=SecretStr(self.consumer_dsn),
            admin_database_url=SecretStr(self.owner_dsn),
            connect_database_url=SecretStr(self.connect_dsn),
            kafka_bootstrap=self.bootstrap,
            connect_url=self.connect_url,
        )

    @property
    def dsns(self) -> dict[str, str]:
        """The database's address by login role."""
        at = self._running.ports.postgres
        return {login: postgres.dsn(at, login, self._passwords[login]) for login in passwords.LOGINS}

    @property
    def maintenance_dsn(self) -> str:
        """The superuser's, to the database that is always there."""
        at = self._running.ports.postgres
        return postgres.dsn(at, passwords.SUPERUSER, self._passwords[passwords.SUPERUSER], "postgres")

    @property
    def admin_dsn(self) -> str:
        """The superuser's; nothing of ours runs with it."""
        return self.dsns[passwords.SUPERUSER]

    @property
    def owner_dsn(self) -> str:
        return self.dsns[passwords.OWNER]

    @property
    def consumer_dsn(self) -> str:
        return self.dsns[passwords.CONSUMER]

    @property
    def domain_dsn(self) -> str:
        """The loan service's, a domain role."""
        return self.dsns[passwords.DOMAIN]

    @property
    def connect_dsn(self) -> str:
        """The connector's, which may replicate."""
        return self.dsns[passwords.CONNECT]

    @property
    def analyst_dsn(self) -> str:
        return self.dsns[passwords.ANALYST]

    @property
    def bootstrap(self) -> str:
        return self._running.ports.bootstrap

    @property
    def connect_url(self) -> str:
        return self._running.ports.connect_url

    def _its_runner(self) -> Runner:
        if self._runner is None:
            raise StackError("a detached stack is changed as a whole: `make down`, `make up`")
        return self._runner

    def _detach(self, hold: Hold) -> None:
        self._running.starter = None
        self._running.write(self.layout.state)
        hold.let_go()
        for process in self._running.processes.values():
            process.disown()

    def _start_together(self, runner: Runner, components: Collection[Component]) -> None:
        """PostgreSQL beside Kafka, Connect as soon as the broker listens; the first failure ends them all."""
        processes = self._running.processes
        listening = threading.Event()
        if "kafka" not in components:
            listening.set()

        def run(name: Component, then: Callable[[], None] = lambda: None) -> None:
            processes[name] = runner.start(name, then)

        def run_connect() -> None:
            while not listening.wait(0.05):
                if runner.abandoned.is_set():
                    return
            run("connect")

        def run_postgres() -> None:
            run("postgres")
            database.make_roles(self.maintenance_dsn, self._passwords)
            database.make_schema(self.owner_dsn)

        tasks: dict[Component, Callable[[], None]] = {
            "postgres": run_postgres,
            "kafka": lambda: run("kafka", listening.set),
            "connect": run_connect,
        }
        with ThreadPoolExecutor(len(ALL)) as pool:
            starts: list[Future[None]] = [pool.submit(tasks[name]) for name in ALL if name in components]
            try:
                done, _ = wait(starts, return_when=FIRST_EXCEPTION)
                failed = [error for each in done if (error := each.exception())]
                if failed:
                    raise failed[0]
            finally:
                if not all(each.done() and not each.exception() for each in starts):
                    runner.abandoned.set()
