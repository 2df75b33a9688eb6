"""How thoroughly the product is tried: with a few cases in each run, or with all; properties with
the same few examples, or, to look for mistakes, with many others.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest

EXPLORES = os.environ.get("CITU_TEST_EXPLORE", "") not in ("", "0")
"""Whether this run looks for mistakes: its examples are random, so it may fail for what nobody has
just changed.
"""

_TIMES_MORE = 20


def tries(usual: int) -> int:
    """Return how many examples a property is tried with, which is `usual` unless one explores."""
    return usual * _TIMES_MORE if EXPLORES else usual


def slow_beyond(usual: int, cases: Sequence[Any]) -> list[Any]:
    """Return the cases for `parametrize`, those beyond the first few marked slow."""
    slow = (pytest.param(case, marks=pytest.mark.slow) for case in cases[usual:])
    return [*cases[:usual], *slow]
