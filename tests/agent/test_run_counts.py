"""Ends of runs that a killed worker has kept and not counted: another worker counts them, once."""

import asyncio
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from agent.question import Question
from agent.runs.events import Event, error_event
from agent.runs.run_counts import RunCounts
from agent.runs.uncounted_ends import UncountedEnds
from common.errors import QueryTimeout
from common.text import Text
from store import EventFrame, RunEnd, RunHead, RunWrite, Store
from tests.support.store_servers import StoreServer, play

QUESTION = Question("how many gauges are there")


class Counted:
    """An observer that adds up what it is told."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, ...]] = Counter()

    def span(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        return nullcontext()

    def metric(self, name: str, value: float, attributes: Mapping[str, Any]) -> None:
        self.found[name, *sorted(attributes.values())] += int(value)


class Death:
    """Makes the notes of a process that has ended meanwhile."""

    def __init__(self, folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: ended.pid)
            self.counted = Counted()
            self._counts = counts_of(self.counted, store, UncountedEnds(folder))
        self._store = store

    async def end(self, event: Event, head: RunHead, *, keeps: bool, counts: bool) -> None:
        """End a run and die, at the latest when it is counted."""
        frame = EventFrame(1, event.rendered)
        self._counts.note(head, QUESTION, frame, event)
        if keeps:
            end = RunEnd("error" if event.type == "error" else "completed", event.turn)
            await self._store.runs.write([RunWrite(head, (frame,), end)])
        if counts:
            self._counts.count(head.run_id, QUESTION, event)


def counts_of(observer: Counted, store: Store, uncounted: UncountedEnds) -> RunCounts:
    return RunCounts(observer, lambda _: "ask", store.runs, 0.0, uncounted)


def run_head() -> RunHead:
    run_id = uuid.uuid4().hex
    return RunHead(run_id, "user", "c", "q", "en", "a worker", "2026-01-02T03:04:05.678+00:00")


def completed() -> Event:
    path = ["start", "sql_repair_success"]
    return Event("completed", "Done", lambda: {"agent": "ask", "execution_path": path})


END = ("questions", "ask", "completed", "none")


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Store], Death]:
    return lambda store: Death(tmp_path, store, monkeypatch)


def test_what_was_kept_and_not_counted_is_counted_once_by_whoever_finds_it(
    place: StoreServer, dying: Callable[[Store], Death], tmp_path: Path
) -> None:
    async def scenario(store: Store) -> None:
        dead = dying(store)
        await dead.end(completed(), run_head(), keeps=True, counts=True)
        await dead.end(completed(), run_head(), keeps=True, counts=False)
        failed = run_head()
        error = error_event(QueryTimeout(Text("慢", "slow")), failed)
        await dead.end(error, failed, keeps=True, counts=False)
        await dead.end(completed(), run_head(), keeps=False, counts=False)
        assert dead.counted.found == {END: 1, ("repairs", "success"): 1}

        survivors = [Counted() for _ in range(3)]
        counts = [counts_of(survivor, store, UncountedEnds(tmp_path)) for survivor in survivors]
        await asyncio.gather(*(count.count_left() for count in counts))
        await counts[0].count_left()
        found = sum((survivor.found for survivor in survivors), Counter[tuple[str, ...]]())
        timeout = ("questions", "ask", "error", QueryTimeout.error_type)
        assert found == {END: 1, ("repairs", "success"): 1, timeout: 1}

    play(scenario, place.open())
    assert not list(tmp_path.iterdir())


def test_an_end_of_another_worker_is_not_counted(
    place: StoreServer, dying: Callable[[Store], Death], tmp_path: Path
) -> None:
    async def scenario(store: Store) -> None:
        head = run_head()
        await dying(store).end(completed(), head, keeps=False, counts=False)
        other = error_event(QueryTimeout(Text("慢", "slow")), head)
        frame = EventFrame(1, other.rendered)
        await store.runs.write([RunWrite(head, (frame,), RunEnd("error", other.turn))])
        survivor = Counted()
        await counts_of(survivor, store, UncountedEnds(tmp_path)).count_left()
        assert not survivor.found

    play(scenario, place.open())


def test_while_the_store_is_away_nothing_is_forgotten(
    place: StoreServer, dying: Callable[[Store], Death], tmp_path: Path
) -> None:
    async def scenario(store: Store) -> None:
        await dying(store).end(completed(), run_head(), keeps=True, counts=False)
        survivor = Counted()
        counts = counts_of(survivor, store, UncountedEnds(tmp_path))
        with place.silent(), pytest.raises(Exception, match="store"):
            await counts.count_left()
        assert not survivor.found
        await counts.count_left()
        assert survivor.found[END] == 1

    play(scenario, place.open(timeout_s=2.0))


def test_notes_stay_few_however_many_runs_end(tmp_path: Path) -> None:
    uncounted = UncountedEnds(tmp_path)
    counts = RunCounts(Counted(), lambda _: "ask", None, 0.0, uncounted)  # type: ignore[arg-type]
    event, open_head = completed(), run_head()
    frame = EventFrame(1, event.rendered)
    counts.note(open_head, QUESTION, frame, event)
    for _ in range(1000):
        head = run_head()
        counts.note(head, QUESTION, frame, event)
        counts.count(head.run_id, QUESTION, event)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size < 128 * 1024
    assert open_head.run_id in file.read_text()
