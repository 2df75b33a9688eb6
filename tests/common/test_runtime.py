"""The bridge between threads and the event loop."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from common.logs import request_id
from common.runtime import NO_ITEM, ThreadQueue, run

WAIT_S = 10.0


async def _count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


def _drain(feed: ThreadQueue[int]) -> list[int]:
    items = []
    while isinstance(item := feed.take(WAIT_S), int):
        items.append(item)
    assert item is None, "the feed ended"
    return items


def test_items_arrive_in_order_and_the_end_is_seen() -> None:
    assert _drain(ThreadQueue(_count(1000))) == list(range(1000))


def test_take_says_quiet_while_the_source_waits() -> None:
    gate = threading.Event()

    async def gated() -> AsyncIterator[int]:
        await asyncio.to_thread(gate.wait, WAIT_S)
        yield 1

    feed = ThreadQueue(gated())
    assert feed.take(0.01) is NO_ITEM
    gate.set()
    assert feed.take(WAIT_S) == 1
    assert feed.take(WAIT_S) is None


def test_a_slow_reader_does_not_hold_the_source() -> None:
    finished = threading.Event()
    feed = ThreadQueue(_count(500), on_end=finished.set)
    assert finished.wait(WAIT_S), "nobody has read anything yet"
    assert _drain(feed) == list(range(500))


def test_cancelling_reaches_the_source_which_may_say_a_last_word() -> None:
    started = threading.Event()

    async def stubborn() -> AsyncIterator[int]:
        try:
            started.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield 499

    feed = ThreadQueue(stubborn())
    assert started.wait(WAIT_S)
    feed.cancel()
    assert _drain(feed) == [499]


def test_a_feed_cancelled_at_once_still_ends() -> None:
    ended = threading.Event()
    feed = ThreadQueue(_count(3), on_end=ended.set)
    feed.cancel()
    assert len(_drain(feed)) in (0, 3), (
        "cancelled before its first step, or finished before the cancellation"
    )
    assert ended.is_set()


def test_a_feed_that_nobody_wants_any_more_is_cancelled() -> None:
    wanted = threading.Event()
    wanted.set()

    async def endless() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    feed = ThreadQueue(endless(), is_abandoned=lambda: not wanted.is_set())
    assert feed.take(WAIT_S) == 1
    wanted.clear()
    assert feed.take(WAIT_S) is None


@pytest.mark.parametrize("patience_s", [WAIT_S, 0.0001], ids=["patient", "impatient"])
def test_many_readers_each_get_what_is_theirs(patience_s: float) -> None:
    """Readers wake each other; one that times out at that moment, or does not wait, must not break
    the chain.
    """

    async def bursts(reader: int) -> AsyncIterator[tuple[int, int]]:
        for number in range(50):
            await asyncio.sleep(0)
            yield reader, number

    def read(reader: int) -> list[tuple[int, int]]:
        feed, got = ThreadQueue(bursts(reader)), []
        while (item := feed.take(patience_s)) is not None:
            if isinstance(item, tuple):
                got.append(item)
        return got

    with ThreadPoolExecutor(40) as readers:
        for reader, got in enumerate(readers.map(read, range(200), timeout=WAIT_S * 3)):
            assert got == [(reader, number) for number in range(50)]


def test_a_reader_that_is_busy_keeps_no_other_waiting() -> None:
    async def three() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    feeds = [ThreadQueue(three()) for _ in range(5)]
    busy = feeds[0].take(WAIT_S)  # then it takes nothing more, like a reader whose client is stuck
    assert busy == 0
    assert [_drain(feed) for feed in feeds[1:]] == [[0, 1, 2]] * 4


def test_the_source_inherits_the_request_id() -> None:
    async def who() -> AsyncIterator[str]:
        yield request_id.get()

    token = request_id.set("req_inherited")
    try:
        feed = ThreadQueue(who())
    finally:
        request_id.reset(token)
    assert feed.take(WAIT_S) == "req_inherited"


def test_run_returns_results_raises_errors_and_gives_up_in_time() -> None:
    async def fail() -> None:
        raise KeyError("x")

    assert run(asyncio.sleep(0, "done"), WAIT_S) == "done"
    with pytest.raises(KeyError):
        run(fail(), WAIT_S)
    with pytest.raises(TimeoutError):
        run(asyncio.sleep(3600), 0.01)


def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    script = (
        "import asyncio, os, sys\n"
        "from common.runtime import run\n"
        "run(asyncio.sleep(0), 10)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(run(asyncio.sleep(0, 7), 10))\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=240)
    assert done.returncode == 7
