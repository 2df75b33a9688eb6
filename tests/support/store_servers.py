"""Servers for a store, one for each adapter, which tests may stop, kill, freeze and start again.

The fixture `place` gives each of them in turn.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest
from psycopg2.extensions import make_dsn, parse_dsn

from databases.app_database import ensure_app_database
from databases.embedded.embedded_server import EmbeddedServer
from store import Retention, Store
from store.open_store import BACKENDS
from tests.support.databases import execute, rows_of
from tests.support.folders import reachable_folder
from tests.support.live import eventually, is_alive
from tests.support.postgres_wire import Wire
from tests.support.redis_server import PROGRAM, redis_server

PATIENT_S = 30.0


@dataclass(frozen=True)
class StoreServer:
    """A server for a store.

    Attributes:
        stop: ends it, as its operator or, with SIGKILL, as a lost power supply does.
        silent: in this context the server answers nothing.
        severed: while in this context writes wait; when it ends, after one does, their connections
            are cut.
        lose: deletes all data, as if the server came back without its disk; None if the server is
            not ours.
        flush: makes the server write everything to disk.
    """

    name: str
    url: str
    start: Callable[[], None]
    stop: Callable[[signal.Signals], None]
    silent: Callable[[], AbstractContextManager[None]]
    severed: Callable[[], AbstractContextManager[None]]
    lose: Callable[[], None] | None = None
    flush: Callable[[], None] = lambda: None

    def open(self, *, url: str = "", timeout_s: float = PATIENT_S, **retention: Any) -> Store:
        return BACKENDS[self.name](lambda: url or self.url, Retention(**retention), timeout_s)


@contextmanager
def _redis_place() -> Iterator[StoreServer]:
    """A Redis of our own, else that of CITU_TEST_REDIS_URL, which tests may not stop."""
    url = os.environ.get("CITU_TEST_REDIS_URL", "")
    if shutil.which(PROGRAM) is None and url:

        def leave_alone(*_: object) -> Any:
            pytest.skip(f"there is no {PROGRAM} here to stop")

        yield StoreServer("redis", url, leave_alone, leave_alone, leave_alone, leave_alone)
        return
    with redis_server() as server:
        yield StoreServer(
            "redis",
            server.url,
            server.start,
            server.stop,
            server.frozen,
            server.severed,
            server.forget,
        )


@contextmanager
def _postgres_place() -> Iterator[StoreServer]:
    with reachable_folder() as folder, ExitStack() as stack:
        server = EmbeddedServer.acquire(folder / "var")
        stack.callback(server.release)
        wire = stack.enter_context(Wire(ensure_app_database(server), folder))

        def stop(how: signal.Signals) -> None:
            pid = int((server.home / "cluster" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT if how == signal.SIGKILL else signal.SIGINT)
            eventually(lambda: not is_alive(pid))

        @contextmanager
        def silent() -> Iterator[None]:
            wire.is_silent = True
            try:
                yield
            finally:
                wire.is_silent = False

        @contextmanager
        def severed() -> Iterator[None]:
            admin_url = make_dsn(server.admin_url, dbname=parse_dsn(wire.url)["dbname"])
            waiting = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            with closing(psycopg2.connect(admin_url)) as admin, admin.cursor() as cursor:
                cursor.execute("LOCK TABLE citu.run")
                yield
                eventually(lambda: rows_of(admin_url, f"SELECT pid {waiting}"))
                assert rows_of(admin_url, f"SELECT pg_terminate_backend(pid) {waiting}")

        def lose() -> None:
            names = (
                "conversation",
                "turn",
                "run",
                "page",
                "claim",
                "artefact",
                "learned",
                "place",
                "shelf",
            )
            tables = ", ".join(f"citu.{name}" for name in names)
            admin_url = make_dsn(server.admin_url, dbname=parse_dsn(wire.url)["dbname"])
            execute(admin_url, f"TRUNCATE {tables}")

        def flush() -> None:
            execute(server.admin_url, "CHECKPOINT")

        # Writes that don't wait for the disk reach it late, so that a crash loses some of them.
        execute(
            server.admin_url, "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"
        )
        yield StoreServer(
            "postgresql", wire.url, server.ensure_running, stop, silent, severed, lose, flush
        )


STORE_SERVERS: dict[str, Callable[[], AbstractContextManager[StoreServer]]] = {
    "redis": _redis_place,
    "postgresql": _postgres_place,
}


def play(scenario: Callable[..., Awaitable[None]], *stores: Store) -> None:
    """Run a scenario with stores, and close them."""

    async def main() -> None:
        try:
            await scenario(*stores)
        finally:
            for store in stores:
                await store.aclose()

    asyncio.run(main())


async def until(look: Callable[[], Awaitable[Any]], seconds: float = 10.0) -> Any:
    """Poll `look` until its result is true and returns it."""
    async with asyncio.timeout(seconds):
        while not (found := await look()):  # noqa: ASYNC110 - it is the server's clock that gets there
            await asyncio.sleep(0.01)
    return found
