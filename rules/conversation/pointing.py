"""Resolves words that point at one thing or period of the result before: `这家店`, "traffic of that month"."""

import datetime
from dataclasses import dataclass

from common.meanings import TableKey
from common.values import Turn
from rules.linking.dates import UNITS
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import ColumnRef, Condition, Dimension, Query
from rules.schema.lexicon import Lexicon
from rules.words import WORDS

_POINTS, _THING, _PERIOD, _PRONOUN, _SUBJECT = (
    WORDS.found(f"questions.pointing.{one}") for one in ("any", "thing", "period", "pronoun", "subject")
)
_ROWS = [WORDS.found(f"questions.pointing.rows.{one}") for one in ("first", "second", "third")]
_PRONOUNS = frozenset(WORDS.both("questions.pointing.pronouns"))
_GOES_ON, _OF = WORDS.chinese.text("questions.pointing.goes_on"), WORDS.chinese.text("names.of")


@dataclass(frozen=True)
class Pointer:
    """What a question points at with its `words`: a row of `table`, a `unit` of time, or the result's `row`, from 0."""

    words: str
    table: TableKey | None = None
    unit: Unit | None = None
    row: int | None = None


def pointer_of(question: str, lexicon: Lexicon) -> Pointer | None:
    """What the question points at; None when it points at nothing."""
    for row, pattern in enumerate(_ROWS):
        if (found := pattern.search(question)) is not None:
            return Pointer(found.group(), row=row)
    if not _POINTS.search(question):
        return None
    period = _PERIOD.search(question)
    if period:
        said = next(group for group in period.groups() if group).lower()
        return Pointer(period.group(), unit=UNITS[said])
    marks = marks_of(question, lexicon)
    for index, mark in enumerate(marks[:-1]):
        place = index + 2 if marks[index + 1].means("unit") and index + 2 < len(marks) else index + 1
        table = _table(marks[place])
        goes_on = mark.text == _GOES_ON and place == index + 1  # `那店铺呢` points at nothing: 那 only continues
        if table is not None and not goes_on and mark.means("noise") and _THING.search(mark.text):
            words = "".join(f"{'' if one.glued else ' '}{one.text}" for one in marks[index : place + 1])
            return Pointer(words.strip(), table)
    return None


def pronoun_of(question: str, lexicon: Lexicon) -> str | None:
    """The word for one thing of the question before (`它的店铺`, "its shops"); None if this question names it first."""
    if not _PRONOUN.search(question):
        return None
    if (subject := _SUBJECT.search(question)) is not None:
        return subject.group().split()[-1]
    for mark in marks_of(question, lexicon):
        if mark.text.lower() in _PRONOUNS:
            return mark.text.rstrip(_OF)
        if mark.links and not mark.means("noise", "list", "which", "with", "of", "and", "verb"):
            return None
    return None


def single_name(turn: Turn, query: Query | None = None) -> bool:
    """Whether the result of `turn` is one row that begins with a name; `query` tells where the turn has no count."""
    single = turn.row_count == 1 or (turn.row_count is None and query is not None and query.limit == 1)
    return single and _begins_with_name(turn, 0)


def _begins_with_name(turn: Turn, row: int) -> bool:
    return len(turn.rows) > row and bool(turn.rows[row]) and isinstance(turn.rows[row][0], str)


def _table(mark: Mark) -> TableKey | None:
    """The table that a singular noun names."""
    if mark.text.isascii() and mark.text.lower().endswith("s"):
        return None
    tables = [link for link in mark.links if link.kind == "table" and link.quality >= max(0.6, mark.quality - 0.15)]
    return tables[0].table if tables else None


def row_conditions(pointer: Pointer, turn: Turn, query: Query | None, lexicon: Lexicon) -> tuple[Condition, ...]:
    """The conditions that a row belongs to the one thing, or the one period, that the result of `turn` is about.

    None of them where the result does not say which one is meant.

    Args:
        pointer: a mere pronoun, of which it has only the words, may as well mean a thing that the question before has
            named itself.
        query: what gave the result, as far as rules know it.
    """
    row, facts, is_pronoun = pointer.row or 0, lexicon.schema.facts, pointer == Pointer(pointer.words)
    is_one = single_name(turn, None if is_pronoun else query) if pointer.row is None else _begins_with_name(turn, row)
    shown: list[Dimension | ColumnRef] = [*query.dimensions, *query.columns] if query is not None else []
    if query is None or not is_one or not shown:
        return ()
    first, value = shown[0], str(turn.rows[row][0])
    if pointer.unit is not None:
        return _in_period(pointer.unit, value, first)
    if is_pronoun and any(one.column.column in facts[one.column.table].display for one in query.conditions):
        return ()
    if pointer.table is None and isinstance(first, Dimension) and first.column is not None:
        column = ColumnRef(first.table, first.column, first.via)
        return (Condition(column, "=", (value,)),) if first.bucket is None else ()
    table = pointer.table or first.table
    display = facts[table].display
    names = [one.column for one in shown[: len(display)]] if isinstance(first, ColumnRef) else [None]
    if first.table != table or not display or names not in ([None], [*display]):
        return ()
    values = turn.rows[row][: len(display)]
    if len(values) < len(display) or not all(isinstance(one, str) for one in values):
        return ()
    return tuple(Condition(ColumnRef(table, name), "=", (one,)) for name, one in zip(display, values, strict=True))


def _in_period(unit: Unit, value: str, dated: Dimension | ColumnRef) -> tuple[Condition, ...]:
    """The period of the result's only row, in this unit."""
    if not isinstance(dated, Dimension) or dated.bucket != unit or dated.column is None:
        return ()
    try:
        start = Moment(datetime.date.fromisoformat(value[:10]))
        period = Period(start, start.shifted(unit, 1), unit)
    except (ValueError, OverflowError):
        return ()
    return (Condition(ColumnRef(dated.table, dated.column), "during", (period,)),)
