"""Resolve words that refer to a thing or period of the last result: `这家店`, "that month"."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.meanings import TableKey
from common.values import Turn
from rules.linking.dates import UNITS
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import ColumnRef, Condition, Dimension, Query
from rules.schema.lexicon import Lexicon
from rules.words import WORDS

_POINTS = WORDS.found("questions.back_references.any")
_THING = WORDS.found("questions.back_references.thing")
_PERIOD = WORDS.found("questions.back_references.period")
_PRONOUN = WORDS.found("questions.back_references.pronoun")
_SUBJECT = WORDS.found("questions.back_references.subject")
_ROWS = [
    WORDS.found(f"questions.back_references.rows.{one}") for one in ("first", "second", "third")
]
_PRONOUNS = frozenset(WORDS.both("questions.back_references.pronouns"))
_GOES_ON = WORDS.chinese.text("questions.back_references.goes_on")
_OF = WORDS.chinese.text("names.of")
# Kinds of words that may stand before a pronoun although a name hides in them
_BEFORE_PRONOUN = ("noise", "list", "which", "with", "of", "and", "verb")


@dataclass(frozen=True)
class BackReference:
    """A reference to one row of the last result.

    Attributes:
        words: as the question has them.
        table: the table of what is pointed at.
        unit: the unit of the period that is pointed at.
        row: place of the row in the result, from 0.
    """

    words: str
    table: TableKey | None = None
    unit: Unit | None = None
    row: int | None = None

    @property
    def is_pronoun(self) -> bool:
        """Tell whether the words don't even tell what kind of thing is meant."""
        return (self.table, self.unit, self.row) == (None, None, None)


def back_reference_of(question: str, lexicon: Lexicon) -> BackReference | None:
    """Return the reference that the question makes to the last result; None without one."""
    for row, pattern in enumerate(_ROWS):
        match = pattern.search(question)
        if match is not None:
            return BackReference(match.group(), row=row)

    if not _POINTS.search(question):
        return None

    period = _PERIOD.search(question)
    if period is not None:
        unit = next(group for group in period.groups() if group).lower()
        return BackReference(period.group(), unit=UNITS[unit])

    return _reference_to_thing(marks_of(question, lexicon))


def _reference_to_thing(marks: Sequence[Mark]) -> BackReference | None:
    """Return the first demonstrative before the name of a table, with a unit between them or
    not.
    """
    for index, mark in enumerate(marks[:-1]):
        has_unit = marks[index + 1].means("unit") and index + 2 < len(marks)
        place = index + 2 if has_unit else index + 1
        if not mark.means("noise") or not _THING.search(mark.text):
            continue
        if mark.text == _GOES_ON and not has_unit:
            continue  # `那店铺呢` points at nothing: 那 only continues

        table = _singular_table(marks[place])
        if table is not None:
            return BackReference(_joined(marks[index : place + 1]), table)

    return None


def _joined(marks: Sequence[Mark]) -> str:
    text = ""
    for mark in marks:
        text += mark.text if mark.glued else f" {mark.text}"

    return text.strip()


def pronoun_of(question: str, lexicon: Lexicon) -> str | None:
    """Return the word for one thing of the question before: `它的店铺`, "its shops".

    None without one, and if this question names the thing first.
    """
    if not _PRONOUN.search(question):
        return None

    subject = _SUBJECT.search(question)
    if subject is not None:
        return subject.group().split()[-1]

    for mark in marks_of(question, lexicon):
        if mark.text.lower() in _PRONOUNS:
            return mark.text.rstrip(_OF)
        if mark.links and not mark.means(*_BEFORE_PRONOUN):
            return None

    return None


def single_name(turn: Turn, query: Query | None = None) -> bool:
    """Tell whether the result of `turn` is one row that begins with a name.

    Args:
        query: tells how many rows there are where the turn has no count.
    """
    if turn.row_count is not None:
        is_single = turn.row_count == 1
    else:
        is_single = query is not None and query.limit == 1

    return is_single and _begins_with_name(turn, 0)


def _begins_with_name(turn: Turn, row: int) -> bool:
    if row >= len(turn.rows) or not turn.rows[row]:
        return False

    return isinstance(turn.rows[row][0], str)


def _singular_table(mark: Mark) -> TableKey | None:
    """Return the table that a noun in the singular names."""
    if mark.text.isascii() and mark.text.lower().endswith("s"):
        return None

    least = max(0.6, mark.quality - 0.15)
    for link in mark.links:
        if link.kind == "table" and link.quality >= least:
            return link.table

    return None


# ------------------------------------------------------------------------------
# conditions


def row_conditions(
    reference: BackReference, turn: Turn, query: Query | None, lexicon: Lexicon
) -> tuple[Condition, ...]:
    """Return the conditions that a row belongs to the thing or period that is pointed at.

    None where the result of `turn` does not say which one is meant.

    Args:
        reference: a mere pronoun may as well mean a thing that the question before has named.
        query: gave the result; None if the rules don't know it.
    """
    if query is None or not _shows_one(reference, turn, query):
        return ()

    shown: list[Dimension | ColumnRef] = [*query.dimensions, *query.columns]
    if not shown:
        return ()

    first = shown[0]
    row = turn.rows[reference.row or 0]
    if reference.unit is not None:
        return _in_period(reference.unit, str(row[0]), first)
    if reference.is_pronoun and _names_thing(query, lexicon):
        return ()
    if isinstance(first, Dimension) and first.column is not None and reference.table is None:
        return _in_group(first, str(row[0]))

    table = reference.table or first.table
    return _with_name(table, lexicon.schema.facts[table].display, shown, row)


def _shows_one(reference: BackReference, turn: Turn, query: Query) -> bool:
    """Tell whether the result has the row that is meant, and it begins with a name."""
    if reference.row is not None:
        return _begins_with_name(turn, reference.row)

    return single_name(turn, None if reference.is_pronoun else query)


def _names_thing(query: Query, lexicon: Lexicon) -> bool:
    """Tell whether a condition of the query is on the name of a thing."""
    facts = lexicon.schema.facts
    for condition in query.conditions:
        column = condition.column
        if column.column in facts[column.table].display:
            return True

    return False


def _in_group(group: Dimension, value: str) -> tuple[Condition, ...]:
    """Return the condition that a row belongs to a group by a column; none for a group by
    periods.
    """
    if group.bucket is not None:
        return ()

    column = ColumnRef(group.table, str(group.column), group.via)
    return (Condition(column, "=", (value,)),)


def _with_name(
    table: TableKey,
    display: Sequence[str],
    shown: Sequence[Dimension | ColumnRef],
    row: Sequence[Any],
) -> tuple[Condition, ...]:
    """Return the conditions that the thing of `table` has the name with which the result's row
    begins.

    None unless the row begins with all `display` columns of the table.
    """
    first = shown[0]
    if first.table != table or not display:
        return ()
    if isinstance(first, ColumnRef):
        names = [one.column for one in shown[: len(display)]]
        if names != [*display]:
            return ()

    values = row[: len(display)]
    if len(values) < len(display) or not all(isinstance(value, str) for value in values):
        return ()

    return tuple(
        Condition(ColumnRef(table, name), "=", (one,))
        for name, one in zip(display, values, strict=True)
    )


def _in_period(unit: Unit, value: str, dated: Dimension | ColumnRef) -> tuple[Condition, ...]:
    """Return the period of the result's only row, in this unit."""
    if not isinstance(dated, Dimension) or dated.bucket != unit or dated.column is None:
        return ()

    try:
        start = Moment(datetime.date.fromisoformat(value[:10]))
        period = Period(start, start.shifted(unit, 1), unit)
    except (ValueError, OverflowError):
        return ()

    return (Condition(ColumnRef(dated.table, dated.column), "during", (period,)),)
