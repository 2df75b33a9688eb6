"""Bounds how long a step computes, in processor time, so that a busy machine changes nothing.

A step is a call of `within`; the loops inside it call `check`, every few microseconds to
milliseconds. Steps within steps share the time of the outer one. Of the time between two checks at
most `_MOST_AT_ONCE_S` counts: a longer one is no work of the loop, but Python's garbage collection,
or something that is read once.

A machine that is shared with others counts what they take as processor time. So a step that has
made few checks, as plain questions do, is held up rather than long, and has several times as much.

Processor time is asked of the kernel, which takes ten times as long as a look at the wall clock.
Since none passes without wall time, a check asks only once `_BETWEEN_LOOKS_S` of that are over.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic, thread_time
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

_MOST_AT_ONCE_S = 0.01
_BETWEEN_LOOKS_S = 0.0002
_FEW_CHECKS = 1_000  # plain questions make at most half as many
_PATIENCE = 4  # times a step's time that it has while it has made few checks


class OutOfTime(Exception):
    """A step has computed for longer than it may."""


@dataclass
class _Step:
    """A step under way; times in seconds.

    Attributes:
        allowed: processor time of its thread that the step has.
        left: what is left of it; below 0 where more was used.
        checked: the thread's processor time at the last look at it.
        next_look: the monotonic time before which no check looks at the processor time.
        checks: how many were made.
    """

    allowed: float
    left: float
    checked: float
    next_look: float
    checks: int = 0

    def count(self) -> None:
        """Take off what has passed since the last check."""
        now = thread_time()
        self.left -= min(now - self.checked, _MOST_AT_ONCE_S)
        self.checked = now

    @property
    def rest(self) -> float:
        """Return the processor time until the step is ended; below 0 when it is to end."""
        if self.checks >= _FEW_CHECKS:
            return self.left

        return self.left + (_PATIENCE - 1) * self.allowed


_STEP: ContextVar[_Step | None] = ContextVar("step", default=None)


def check() -> None:
    """Raise `OutOfTime` where the step at hand has had its time; outside of steps do nothing."""
    step = _STEP.get()
    if step is None:
        return

    step.checks += 1
    now = monotonic()
    if now < step.next_look:
        return

    step.next_look = now + _BETWEEN_LOOKS_S
    step.count()
    if step.rest < 0:
        raise OutOfTime


def within(seconds: float, work: Callable[[], T], otherwise: U) -> T | U:
    """Return what `work` gives, or `otherwise` where it needs more processor time than that."""
    try:
        with _step(seconds):
            return work()
    except OutOfTime:
        return otherwise


@contextmanager
def _step(seconds: float) -> Iterator[None]:
    outer = _STEP.get()
    if outer is not None:
        outer.count()
        seconds = min(seconds, outer.rest)

    inner = _Step(seconds, seconds, thread_time(), monotonic() + _BETWEEN_LOOKS_S)
    if outer is not None:
        inner.checks = outer.checks
    token = _STEP.set(inner)
    try:
        yield
    finally:
        _STEP.reset(token)
        if outer is not None:
            inner.count()
            outer.left -= seconds - inner.left
            outer.checked = inner.checked
            outer.checks = inner.checks
