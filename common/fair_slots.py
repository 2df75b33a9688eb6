"""Slots of what all callers share (connections, model calls, questions), given out fairly.

Two rules, both per process:

- A share: one caller holds at most so many of the slots; the rest stays free for others. There is
  always at least one slot in a share, so a single slot serves everybody, one after another.
- Fair turns: who finds no slot waits. When a slot becomes free, the callers who wait are served in
  turn, and each caller's own requests in the order in which they came. Somebody who waits for the
  first time waits for one turn of each of the others, however much these have waiting. A caller
  whose share is taken is passed over and keeps its turn.

Whose slot it is depends on `common.actor.caller_id`, which every request sets and which tasks
inherit. The service's own work (`SERVICE`) has no share, and waits for its turn like a caller.

A slot is its caller's until it is released. Work that goes on after its answer keeps its slot.

How many may wait is not bounded here: questions are, and each waits for one slot at a time. How
long one waits is bounded by who asks.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from common.actor import SERVICE, CallerId, caller_id

_ROUNDING = 1e-9  # 0.29 of 100 are 29, and not 28


class Slot:
    """A slot that a caller holds."""

    def __init__(self, caller: CallerId, give_back: Callable[[CallerId], None]) -> None:
        self.caller = caller
        self._give_back: Callable[[CallerId], None] | None = give_back

    def release(self) -> None:
        """Give the slot to the next who waits; any thread may call it, again without effect."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back(self.caller)


class _Turn:
    """Somebody who waits for a slot.

    Args:
        wake: tells them that `slot` is set; raises RuntimeError when nobody can be told.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake
        self.slot: Slot | None = None


class FairSlots:
    """`size` slots, of which one caller holds at most the part `share`.

    Any thread and event loop may use them.

    Attributes:
        most_of_one: how many one caller may hold.
    """

    def __init__(self, size: int, share: float = 1.0) -> None:
        self.size = size
        self.most_of_one = max(1, int(size * share + _ROUNDING))
        self._free = size
        self._held: dict[CallerId, int] = {}
        # Callers stand in the order in which they are served.
        self._waiting: dict[CallerId, deque[_Turn]] = {}
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        """Return how many wait for a slot."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def most_of(self, caller: CallerId) -> int:
        """Return how many slots the caller may hold."""
        if caller == SERVICE:
            return self.size

        return self.most_of_one

    def has_whole_share(self, caller: CallerId) -> bool:
        """Tell whether the caller holds all it may hold, while others could have one."""
        most = self.most_of(caller)
        if most >= self.size:
            return False

        slots_held = self._held.get(caller, 0)
        return slots_held >= most

    def take(self) -> Slot | None:
        """Take a slot for the current caller; None when they would have to wait."""
        with self._lock:
            return self._take(caller_id.get())

    async def acquire(self, wait_s: float | None = None) -> Slot:
        """Wait for the current caller's turn and take a slot.

        Args:
            wait_s: most seconds to wait; None: as long as it takes.

        Raises:
            TimeoutError: it was not their turn in time.
        """
        caller = caller_id.get()
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        slot, turn = self._take_or_wait(
            caller, partial(loop.call_soon_threadsafe, _set_done, woken)
        )
        if slot is not None:
            return slot

        try:
            async with asyncio.timeout(wait_s):
                await woken
        except BaseException:
            self._leave_queue(caller, turn)
            raise

        assert turn.slot is not None, "who is woken has a slot"
        return turn.slot

    def acquire_in_thread(self, wait_s: float) -> Slot | None:
        """Wait for the caller's turn in a thread; None: it was not their turn in time."""
        caller = caller_id.get()
        woken = threading.Event()
        slot, turn = self._take_or_wait(caller, woken.set)
        if slot is not None:
            return slot
        if woken.wait(wait_s):
            return turn.slot

        with self._lock:
            self._forget(caller, turn)
            return turn.slot

    def _take_or_wait(
        self, caller: CallerId, wake: Callable[[], object]
    ) -> tuple[Slot | None, _Turn]:
        turn = _Turn(wake)
        with self._lock:
            slot = self._take(caller)
            if slot is None:
                self._waiting.setdefault(caller, deque()).append(turn)

        return slot, turn

    def _take(self, caller: CallerId) -> Slot | None:
        """Take a free slot, unless the caller's share is taken.

        Nobody is overtaken: while a slot is free, all who wait have their whole share.
        """
        slots_held = self._held.get(caller, 0)
        if self._free == 0 or slots_held >= self.most_of(caller):
            return None

        self._free -= 1
        self._held[caller] = slots_held + 1
        return Slot(caller, self._take_back)

    def _leave_queue(self, caller: CallerId, turn: _Turn) -> None:
        """Wait no longer; give a slot that came meanwhile to the next."""
        with self._lock:
            self._forget(caller, turn)

        if turn.slot is not None:
            turn.slot.release()

    def _forget(self, caller: CallerId, turn: _Turn) -> None:
        turns = self._waiting.get(caller, ())
        if turn not in turns:
            return

        self._waiting[caller].remove(turn)
        if not self._waiting[caller]:
            del self._waiting[caller]

    def _take_back(self, caller: CallerId) -> None:
        with self._lock:
            self._uncount(caller)
            self._serve()

    def _uncount(self, caller: CallerId) -> None:
        self._free += 1
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]

    def _serve(self) -> None:
        """Give free slots to those whose turn it is."""
        while self._free:
            caller = self._next()
            if caller is None:
                return

            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:  # behind all the others
                self._waiting[caller] = turns

            turn.slot = self._take(caller)
            try:
                turn.wake()
            except RuntimeError:  # their event loop is closed
                turn.slot = None
                self._uncount(caller)

    def _next(self) -> CallerId | None:
        """Return the first caller who waits and whose share is not taken.

        Those before it hold slots, so there are no more of them than slots.
        """
        for caller in self._waiting:
            slots_held = self._held.get(caller, 0)
            if slots_held < self.most_of(caller):
                return caller

        return None


def _set_done(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
