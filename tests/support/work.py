"""Counts work in calls of functions, which no other load of the machine changes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(work: Callable[[], Any]) -> int:
    """Return how many functions written in Python `work` calls."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
