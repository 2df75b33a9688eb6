"""Slots that callers share: nobody holds more than a share, who waits is served in turn, and none
is lost.
"""

import asyncio
import gc
import random
import threading
from collections import Counter, deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from common.actor import (
    NOBODY,
    SERVICE,
    Actor,
    CallerId,
    caller_id,
    caller_id_of,
    charged_to,
)
from common.fair_slots import FairSlots, Slot

ANN, BOB, CAT = (("user", name) for name in ("ann", "bob", "cat"))


def started(caller: CallerId, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    with charged_to(caller):
        return asyncio.create_task(work)


async def steps(count: int = 5) -> None:
    """Lets tasks go on until they wait for something."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("size", "share", "most"),
    [(1, 0.5, 1), (2, 0.5, 1), (3, 0.5, 1), (8, 0.5, 4), (8, 0.01, 1), (100, 0.29, 29), (5, 1, 5)],
)
def test_a_share_is_a_part_and_at_least_one(size: int, share: float, most: int) -> None:
    slots = FairSlots(size, share)

    def taken(caller: CallerId) -> int:
        with charged_to(caller):
            return sum(slots.take() is not None for _ in range(size))

    assert taken(ANN) == most
    assert taken(BOB) == min(most, size - most)
    assert taken(SERVICE) == size - most - min(most, size - most), "the service has no share"


def test_callers_are_served_in_turn_and_each_one_s_own_in_order() -> None:
    served: list[str] = []

    async def crowd() -> None:
        slots = FairSlots(1, 0.5)
        with charged_to(ANN):
            held = deque([await slots.acquire()])

        async def wait(name: str) -> None:
            held.append(await slots.acquire())
            served.append(name)

        tasks = [started(ANN, wait(f"ann {n}")) for n in range(50)]
        await steps()
        tasks += [started(BOB, wait(f"bob {n}")) for n in range(2)]
        tasks += [started(CAT, wait("cat 0"))]
        await steps()
        for number in range(len(tasks)):
            held.popleft().release()
            await tasks[0] if number == 0 else await steps()
        await asyncio.gather(*tasks)
        held.popleft().release()
        assert slots.free == 1

    asyncio.run(crowd())
    assert served[:6] == ["ann 0", "bob 0", "cat 0", "ann 1", "bob 1", "ann 2"]
    assert served[6:] == [f"ann {n}" for n in range(3, 50)]


def test_a_caller_with_its_whole_share_is_passed_over_and_keeps_its_turn() -> None:
    async def crowd() -> None:
        slots = FairSlots(2, 0.5)
        with charged_to(ANN):
            anns = await slots.acquire()
        waiting = started(ANN, slots.acquire())
        await steps()
        with charged_to(BOB):
            bobs = slots.take()
        assert bobs is not None, "a slot is free, and none of those who wait may have it"
        bobs.release()
        await steps()
        assert not waiting.done()
        anns.release()
        (await waiting).release()
        assert slots.free == 2

    asyncio.run(crowd())


def test_who_stops_waiting_loses_nobody_s_slot() -> None:
    """Cancelled while the slot is on its way, too late in time, and on a loop that has ended."""

    async def crowd() -> None:
        slots = FairSlots(1)
        held = await slots.acquire()
        gone, next_one = started(ANN, slots.acquire()), started(BOB, slots.acquire())
        await steps()
        held.release()
        gone.cancel()  # the slot is given, and the task has not run yet
        with pytest.raises(asyncio.CancelledError):
            await gone
        held = await next_one
        with pytest.raises(TimeoutError):
            await slots.acquire(0)
        with charged_to(ANN):
            assert slots.acquire_in_thread(0) is None
        held.release()
        assert slots.free == 1

    asyncio.run(crowd())
    slots = FairSlots(1)
    held = slots.take()
    assert held is not None
    ended = asyncio.new_event_loop()
    waiting = ended.create_task(slots.acquire())
    ended.run_until_complete(asyncio.sleep(0))
    ended.close()
    held.release()
    assert slots.free == 1
    with suppress(RuntimeError):  # says that the loop is closed
        waiting.get_coro().close()
    assert slots.free == 1
    # asyncio complains of the task when it is collected; later, another test would log that.
    del waiting
    gc.collect()


class _Storm:
    """Loops and threads that take, wait, give up, and release at random."""

    def __init__(self, slots: FairSlots) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._holding: Counter[CallerId] = Counter()
        self.most_at_once = self.most_of_one = 0

    def _hold(self, slot: Slot, change: int) -> None:
        with self._lock:
            self._holding[slot.caller] += change
            self.most_at_once = max(self.most_at_once, self._holding.total())
            self.most_of_one = max(self.most_of_one, *self._holding.values())

    async def _use(self, chance: random.Random) -> None:
        slot = await self._slots.acquire(chance.choice((None, 0, 0.001)))
        self._hold(slot, 1)
        try:
            await steps(chance.randrange(4))
        finally:
            self._hold(slot, -1)
            slot.release()
            slot.release()  # without effect

    async def _crowd(self, chance: random.Random) -> None:
        callers = [chance.choice((ANN, BOB, CAT)) for _ in range(12)]
        tasks = [started(caller, self._use(chance)) for caller in callers]
        await steps(chance.randrange(6))
        for task in chance.sample(tasks, 4):
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert ended is None or isinstance(ended, (asyncio.CancelledError, TimeoutError)), ended

    def in_a_loop(self, chance: random.Random) -> None:
        async def crowds() -> None:
            for _ in range(40):
                await self._crowd(chance)

        asyncio.run(crowds())

    def in_a_thread(self, chance: random.Random) -> None:
        caller_id.set(chance.choice((ANN, BOB, CAT)))
        for _ in range(200):
            slot = self._slots.acquire_in_thread(chance.choice((0, 0.001)))
            if slot is not None:
                self._hold(slot, 1)
                self._hold(slot, -1)
                slot.release()


@pytest.mark.parametrize("seed", range(5))
def test_no_slot_is_lost_or_given_twice(seed: int) -> None:
    slots = FairSlots(4, 0.5)
    storm = _Storm(slots)
    works = [storm.in_a_loop, storm.in_a_loop, storm.in_a_thread, storm.in_a_thread]
    threads = [
        threading.Thread(target=work, args=(random.Random(seed * 10 + n),))
        for n, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert (slots.free, slots._waiting, slots._held) == (4, {}, {})
    assert storm.most_at_once <= 4
    assert storm.most_of_one <= 2


SAME = [
    ("192.0.2.1", "192.0.2.1:4711"),
    ("192.0.2.1", "::ffff:192.0.2.1"),
    ("2001:db8::1", "2001:db8::ffff:1"),
    ("2001:db8::1", "[2001:db8::2]:443"),
    ("fe80::1%eth0", "fe80::2%eth1"),
    ("", None),
]
OTHERS = [
    ("192.0.2.1", "192.0.2.2"),
    ("::ffff:192.0.2.1", "::ffff:192.0.2.2"),
    ("2001:db8::1", "2001:db8:0:1::1"),
]


def test_who_is_charged() -> None:
    for one, other in SAME:
        assert caller_id_of(NOBODY, one) == caller_id_of(NOBODY, other)
    for one, other in OTHERS:
        assert caller_id_of(NOBODY, one) != caller_id_of(NOBODY, other)
    keys = [Actor("app", acts_for_others=True), Actor("app", ("staff",))]
    assert {caller_id_of(key, address) for key in keys for address in ("192.0.2.1", None)} == {
        ("user", "app")
    }
    assert caller_id_of(Actor("192.0.2.1"), None) != caller_id_of(NOBODY, "192.0.2.1")
