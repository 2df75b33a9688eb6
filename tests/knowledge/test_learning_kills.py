"""A worker dies while it keeps what is learnt: all of it is there afterwards, or none.

Death between two accesses to the store is played in this process, because every single one can be
tried. Then a real process is killed, at any moment.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import Learned, Learning, Retention, Store
from store.learned_repository import LearnedRepository
from store.postgres_records import PostgresRecords
from store.records import RecordRepository
from store.redis_records import RedisRecords
from tests.support.learnt import example, learning
from tests.support.store_servers import StoreServer

MOST_ACCESSES = 6  # of one call
ADAPTERS: dict[str, Callable[[Any], RecordRepository]] = {
    "redis": RedisRecords,
    "postgresql": PostgresRecords,
}
# Keeps feedback for the runs r0, r1, … until it is killed, and says so after each.
WORKER = """
import asyncio, json, sys
from store import Retention
from store.open_store import BACKENDS
from tests.support.learnt import learning

async def main(name, url, source):
    store = BACKENDS[name](lambda: url, Retention(), 5.0)
    for number in range(100_000):
        run, question = f"r{number}", f"q{number}"
        said = learning(source, "need_modification", user=source, run=run, question=question)
        await store.learned.keep(said)
        print(number, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Killed(BaseException):
    """The worker is dead: nothing of its code runs on."""


class MortalShelves:
    """Shelves as a worker reaches them that dies before its access number `at`, or right `after`
    it.
    """

    def __init__(self, shelves: RecordRepository, at: int, *, after: bool) -> None:
        self._shelves = shelves
        self._at = at
        self._after = after
        self._accesses = 0

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def access(*given: Any) -> Any:
            is_last = self._accesses == self._at
            self._accesses += 1
            if is_last and not self._after:
                raise Killed
            found = await getattr(self._shelves, name)(*given)
            if is_last:
                raise Killed
            return found

        return access


def mortal(store: Store, place: StoreServer, at: int, *, after: bool) -> Learned:
    """The store's book in the hands of a worker that will die."""
    shelves = ADAPTERS[place.name](store.learned._record_sets._access)  # type: ignore[attr-defined]  # noqa: SLF001
    return LearnedRepository(MortalShelves(shelves, at, after=after), Retention())  # type: ignore[arg-type]


async def died(work: Awaitable[Any]) -> bool:
    try:
        await work
    except Killed:
        return True
    return False


async def is_whole(learned: Learned, said: Learning) -> bool:
    """Tell whether feedback, example and lesson are all there; fails when only some are."""
    user = said.feedback.user_id
    seen = await learned.visible(said.datasource, user)
    kept = await learned.feedback(user, said.feedback.run_id)
    assert said.example is not None
    there = [
        kept is not None and kept.rating == said.feedback.rating,
        said.example.example_id in [each.example_id for each in seen.examples],
        len(seen.lessons) == 1,
    ]
    assert all(there) or not any(there)
    return all(there)


def test_feedback_is_kept_whole_or_not_at_all(place: StoreServer) -> None:
    store = place.open()

    async def scenario() -> None:
        wholes = set()
        for number in range(2 * MOST_ACCESSES):
            source, user = uuid.uuid4().hex, uuid.uuid4().hex
            said = learning(source, "need_modification", user=user)
            worker = mortal(store, place, number // 2, after=number % 2 == 1)
            has_died = await died(worker.keep(said))
            whole = await is_whole(store.learned, said)
            assert whole or has_died
            wholes.add((has_died, whole))
            await store.learned.keep(said)  # another worker, to which the client sends it again
            assert await is_whole(store.learned, said)
        assert wholes == {(True, False), (True, True), (False, True)}
        await store.aclose()

    asyncio.run(scenario())


def test_feedback_that_replaces_other_feedback_is_whole(place: StoreServer) -> None:
    store = place.open()

    async def scenario() -> None:
        for number in range(2 * MOST_ACCESSES):
            source, user = uuid.uuid4().hex, uuid.uuid4().hex
            first, then = (
                learning(source, rating, user=user) for rating in ("need_modification", "skip")
            )
            await store.learned.keep(first)
            await died(mortal(store, place, number // 2, after=number % 2 == 1).keep(then))
            seen = await store.learned.visible(source, user)
            kept = await store.learned.feedback(user, "run_1")
            assert kept is not None
            assert (kept.rating, len(seen.examples), len(seen.lessons)) in (
                ("need_modification", 1, 1),
                ("skip", 0, 0),
            )
        await store.aclose()

    asyncio.run(scenario())


def test_a_verdict_is_whole(place: StoreServer) -> None:
    store = place.open()

    async def scenario() -> None:
        for number in range(2 * MOST_ACCESSES):
            source = uuid.uuid4().hex
            mine = example(source)
            await store.learned.add(source, [mine])
            worker = mortal(store, place, number // 2, after=number % 2 == 1)
            await died(worker.review(source, mine.example_id, "rev", "approve"))
            own = (await store.learned.visible(source, "ann")).own.examples
            shared = (await store.learned.visible(source, "bob")).examples
            assert len(own) + len(shared) == 1
            assert (
                await store.learned.review(source, mine.example_id, "rev", "approve")
            ).outcome == "done"
        await store.aclose()

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_killed_process_leaves_no_half_of_anything(place: StoreServer) -> None:
    store = place.open()
    kept_most = 0
    for pause in (0.001, 0.004):
        source = uuid.uuid4().hex
        command = [sys.executable, "-c", WORKER, place.name, place.url, source]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
        ) as worker:
            assert worker.stdout is not None
            for _ in range(3):
                worker.stdout.readline()
            threading.Event().wait(pause)
            worker.send_signal(signal.SIGKILL)
            told = 3 + len(worker.stdout.read().splitlines())

        async def look(source: str = source, told: int = told) -> int:
            seen = await store.learned.visible(source, source)
            questions = sorted(each.question for each in seen.examples)
            assert questions == sorted(each.question for each in seen.lessons)
            said = [
                await store.learned.feedback(source, f"r{number}") for number in range(told + 2)
            ]
            assert (
                sorted(f"q{number}" for number, each in enumerate(said) if each is not None)
                == questions
            )
            assert len(questions) >= told
            await store.aclose()
            return len(questions)

        kept_most = max(kept_most, asyncio.run(look()))
    assert kept_most >= 3
