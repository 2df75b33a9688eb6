"""Measures the store: keeping a question's last event with its turn, and reading the turns before
the next question.

Each adapter has its own server on this machine, with default settings: the embedded PostgreSQL,
which confirms after writing to disk, and a Redis that keeps an append-only file.
"""

import asyncio
import shutil
import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.values import Turn
from databases.source import database_sources
from store import EventFrame, Retention, RunEnd, RunHead, RunWrite, Store
from store.open_store import open_store
from tests.support.redis_server import PROGRAM, redis_server

BUDGET_MS = 2.0  # for the median append and the median read together
_FRAME = (
    b'{"code": 200, "success": true, "data": {"type": "completed", "rows": ['
    + b'["2026-01-01", 12345.67],' * 40
)
_TURNS_READ = 6


def run(data_dir: Path, *, turns: int = 500) -> dict[str, dict[str, float]]:
    """Return median milliseconds per adapter: `append`, `recent`, and `both` of them one after the
    other.

    Args:
        data_dir: where the embedded server runs.
        turns: number of turns written and read, in conversations of twenty.
    """
    found = {}
    for name, opened in (("postgresql", _postgres(data_dir)), ("redis", _redis())):
        with opened as store:
            if store is not None:
                found[name] = asyncio.run(_measured(store, turns))
    return found


@contextmanager
def _postgres(data_dir: Path) -> Iterator[Store]:
    sources = database_sources("", "", data_dir)
    try:
        yield open_store(app_source=sources.app, timeout_s=10.0, retention=Retention())
    finally:
        sources.hold.release()


@contextmanager
def _redis() -> Iterator[Store | None]:
    """A store in its own Redis; None if Redis is not installed."""
    if shutil.which(PROGRAM) is None:
        yield None
        return
    with redis_server() as server:
        yield open_store(app_source="", redis_url=server.url, timeout_s=10.0, retention=Retention())


async def _measured(store: Store, turns: int) -> dict[str, float]:
    appended, looked_back = [], []
    try:
        for n in range(turns + 50):
            write = _turn(f"conversation {n // 20}")
            started = time.perf_counter()
            await store.runs.write([write])
            written = time.perf_counter()
            await store.conversations.recent(
                write.head.user_id, write.head.conversation_id, _TURNS_READ
            )
            appended.append((written - started) * 1000)
            looked_back.append((time.perf_counter() - written) * 1000)
    finally:
        await store.aclose()
    appended, looked_back = (
        appended[50:],
        looked_back[50:],
    )  # the first calls connect and create tables
    both = [sum(pair) for pair in zip(appended, looked_back, strict=True)]
    medians = (statistics.median(times) for times in (appended, looked_back, both))
    return dict(zip(("append", "recent", "both"), medians, strict=True))


def _turn(conversation_id: str) -> RunWrite:
    run_id = uuid.uuid4().hex
    head = RunHead(
        run_id,
        "user",
        conversation_id,
        "各服务区的营业收入排行",
        "zh",
        "worker",
        "2026-01-01T00:00:00+00:00",
    )
    rows = tuple((f"服务区 {n}", n * 1000.5) for n in range(5))
    sql = "SELECT service_area_name, sum(amount) FROM daily_revenue GROUP BY 1 ORDER BY 2 DESC"
    turn = Turn(
        run_id,
        head.question,
        "DATABASE",
        "hybrid",
        "第一名是…" * 20,
        head.started_at,
        sql,
        5,
        ("a", "b"),
        rows,
    )
    return RunWrite(head, (EventFrame(1, _FRAME),), RunEnd("completed", turn))
