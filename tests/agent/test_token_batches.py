"""Joining pieces of text to events: in order, none lost, none late."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from agent.token_batches import TokenBatches


class Clock:
    """An event loop's clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1.0
        self._due: list[tuple[float, Callable[[], None], Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        handle = asyncio.TimerHandle(when, callback, (), cast(asyncio.AbstractEventLoop, self))
        self._due.append((when, callback, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def get_debug(self) -> bool:
        return False

    def pass_on(self, seconds: float) -> None:
        self.now += seconds
        due = [one for one in self._due if one[0] <= self.now]
        self._due = [one for one in self._due if one not in due]
        for _, callback, handle in due:
            if not handle.cancelled():
                callback()


def batched(steps: list[tuple[str, float]]) -> tuple[list[str], Clock]:
    said: list[str] = []
    clock = Clock()
    batches = TokenBatches(said.append, cast(asyncio.AbstractEventLoop, clock))
    for piece, pause in steps:
        batches(piece)
        clock.pass_on(pause)
    batches.flush()
    return said, clock


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=9), st.sampled_from([0.0, 0.001, 0.02, 0.06, 3.0])),
        max_size=60,
    )
)
def test_the_text_stays_the_same_and_the_first_piece_goes_at_once(
    steps: list[tuple[str, float]],
) -> None:
    said, _ = batched(steps)
    assert "".join(said) == "".join(piece for piece, _ in steps)
    assert said[:1] == [piece for piece, _ in steps[:1]]
    assert all(said)


def test_nothing_waits_for_a_piece_that_does_not_come() -> None:
    said: list[str] = []
    clock = Clock()
    batches = TokenBatches(said.append, cast(asyncio.AbstractEventLoop, clock))
    for piece in "abc":
        batches(piece)
    assert said == ["a"]
    clock.pass_on(0.05)
    assert said == ["a", "bc"]
    clock.pass_on(1)
    batches("d")
    assert said == ["a", "bc", "d"]


def test_the_events_of_a_text_are_bounded() -> None:
    at_once, _ = batched([("x", 0.0)] * 100_000)
    assert len(at_once) <= 52
    slowly, clock = batched([("x", 0.01)] * 60_000)
    assert clock.now > 600
    assert len(slowly) < 1_500
