"""Which numbers of a question are years: "in 2025", "from 2024 to 2025", `2024-2025`."""

from collections.abc import Sequence

from rules.linking.mark import Mark
from rules.words import WORDS

_BEFORE_YEARS = frozenset(WORDS.english.phrases("dates.before_years"))
TO = "to"  # joins two dates or numbers, and says nothing anywhere else


def joins_ends(mark: Mark) -> bool:
    """Whether the word stands between the two ends of a range."""
    return mark.means("to") or mark.text.lower() == TO


def is_said_as_year(marks: Sequence[Mark], at: int) -> bool:
    """Whether the number is a year by its preposition, or because it and another make a span of years."""
    if not _may_be_year(marks[at]):
        return False
    after_preposition = at > 0 and marks[at - 1].text.lower() in _BEFORE_YEARS
    return after_preposition or _is_span(marks, at) or _is_span(marks, at - 2)


def _is_span(marks: Sequence[Mark], first: int) -> bool:
    """Whether two years and a word between them begin here, and are not counted in a unit."""
    if first < 0 or first + 2 >= len(marks):
        return False
    begin, joint, end = marks[first : first + 3]
    counted = first + 3 < len(marks) and marks[first + 3].means("unit")
    return _may_be_year(begin) and joins_ends(joint) and _may_be_year(end) and not counted


def _may_be_year(mark: Mark) -> bool:
    return mark.date is not None and mark.date.is_bare
