"""Telling questions about an answer ("why is the first one so high?") from questions about the data.

Of an answer that is a series, so are those about its course ("what is the trend?").
"""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from rules.words import WORDS

Doubt = Literal["why", "reliability", "meaning"]
"""What a question about an answer asks of it, the plainest first."""

_DOUBTS: tuple[tuple[Doubt, re.Pattern[str]], ...] = tuple(
    (doubt, WORDS.found(f"doubts.{doubt}")) for doubt in get_args(Doubt)
)
_POINTS = WORDS.found("doubts.pointers")


def kind_of_doubt(question: str) -> Doubt | None:
    """What a question about an answer asks of it; None when it asks something else."""
    for doubt, pattern in _DOUBTS:
        match = pattern.search(question)
        if match:
            rest = re.sub(r"[\W_]+", "", question[: match.start()] + question[match.end() :])
            return doubt if _POINTS.search(question) or len(rest) <= 2 else None
    return None


Course = Literal["outlook", "change", "trend"]
"""What is asked of a series: what may come, what changed against a period before, how it went."""

_ASKED: tuple[tuple[Course, re.Pattern[str]], ...] = tuple(
    (course, WORDS.found(f"course.{course}")) for course in get_args(Course)
)
_BEFORE = {unit: WORDS.found(f"course.before.{unit}") for unit in ("any", "year", "quarter", "month", "week", "day")}
_PER_YEAR = {"year": 1, "quarter": 4, "month": 12, "week": 52, "day": 365}
_BESIDE = WORDS.found("course.beside")


def course_asked(question: str, unit: str | None, rows: int) -> Course | None:
    """What a question asks of a series, if it asks nothing else.

    Args:
        unit: of the periods of the series, `month` for example; None when it is not known.
        rows: how many the series has.

    Returns:
        None also for a question about a period before of which such a series tells nothing.
    """
    left, meant = _without_periods_before(question, unit, rows)
    asked: Course | None = "change" if meant else None
    for course, pattern in _ASKED:
        found = pattern.search(left)
        left = pattern.sub(" ", left)
        if found and asked is None:
            asked = course
    rest = re.sub(r"[\W_]+", "", _BESIDE.sub(" ", left))
    return asked if not rest else None


def _without_periods_before(question: str, unit: str | None, rows: int) -> tuple[str, bool]:
    """The question without the period before that it names, and whether it names one that the series may have."""
    for named in _periods_before(unit, rows):
        if _BEFORE[named].search(question):
            return _BEFORE[named].sub(" ", question), True
    return question, False


def _periods_before(unit: str | None, rows: int) -> Iterator[str]:
    yield "any"
    if unit in _BEFORE:
        yield unit
    if unit in _PER_YEAR and rows > _PER_YEAR[unit]:
        yield "year"
