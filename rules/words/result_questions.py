"""Tell questions about an answer ("why is the first one so high?") from questions about the
data.

Of an answer that is a series, so are those about its course ("what is the trend?").
"""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from rules.words import WORDS

Doubt = Literal["why", "reliability", "meaning"]
"""What a question about an answer asks of it, the plainest first."""

_DOUBTS: Mapping[Doubt, re.Pattern[str]] = {
    doubt: WORDS.found(f"doubts.{doubt}") for doubt in get_args(Doubt)
}
_POINTS = WORDS.found("doubts.pointers")


def kind_of_doubt(question: str) -> Doubt | None:
    """Return what a question about an answer asks of it; None when that is something else."""
    for doubt, pattern in _DOUBTS.items():
        match = pattern.search(question)
        if match:
            rest = re.sub(r"[\W_]+", "", question[: match.start()] + question[match.end() :])
            if _POINTS.search(question) or len(rest) <= 2:
                return doubt

            return None

    return None


Course = Literal["outlook", "change", "trend"]
"""What is asked of a series: what may come, what changed against a period before, how it went."""

_ASKED: Mapping[Course, re.Pattern[str]] = {
    course: WORDS.found(f"course.{course}") for course in get_args(Course)
}
_UNITS = ("any", "year", "quarter", "month", "week", "day")
_BEFORE = {unit: WORDS.found(f"course.before.{unit}") for unit in _UNITS}
_RATES = {unit: WORDS.found(f"course.rates.{unit}") for unit in _UNITS}
_PER_YEAR = {"year": 1, "quarter": 4, "month": 12, "week": 52, "day": 365}
_BESIDE = WORDS.found("course.beside")


def course_asked(question: str, unit: str | None, rows: int) -> Course | None:
    """Return what a question asks of a series, if it asks nothing else.

    Args:
        unit: the unit of the periods of the series, `month` for example; None when it is not known.
        rows: how many the series has.

    Returns:
        None also for a question about a period before of which such a series tells nothing, and for
            one that only
        names such a period: it asks for the figures of that.
    """
    left, compares = _without(_RATES, question, unit, rows)
    left, names_before = _without(_BEFORE, left, unit, rows)
    asked: Course | None = "change" if compares else None
    for course, pattern in _ASKED.items():
        match = pattern.search(left)
        left = pattern.sub(" ", left)
        if match and asked is None:
            asked = "change" if names_before else course

    rest = re.sub(r"[\W_]+", "", _BESIDE.sub(" ", left))
    return asked if not rest else None


def _without(
    patterns: Mapping[str, re.Pattern[str]], question: str, unit: str | None, rows: int
) -> tuple[str, bool]:
    """Return the question without what it says of a period before, and whether it says that of one
    the series may have.
    """
    a_year_ago = "year" if rows > _PER_YEAR.get(unit or "", rows) else ""
    for named in ("any", unit or "", a_year_ago):
        if named in patterns and patterns[named].search(question):
            return patterns[named].sub(" ", question), True

    return question, False
