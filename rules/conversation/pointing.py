"""`这家店上个月的收入`, "traffic of that month": one thing or period of the result before, pointed at, not named."""

import datetime
from dataclasses import dataclass

from common.values import Turn
from rules.linking.dates import UNITS, Moment, Period, Unit
from rules.linking.marks import Mark, marks_of
from rules.query.query import ColumnRef, Condition, Query
from rules.query.refusals import which_one
from rules.schema.lexicon import Lexicon
from rules.schema.schema import TableKey
from rules.words import WORDS

_POINTS, _THING, _PERIOD, _PRONOUN, _SUBJECT = (
    WORDS.found(f"questions.pointing.{one}") for one in ("any", "thing", "period", "pronoun", "subject")
)
_PRONOUNS = frozenset(WORDS.both("questions.pointing.pronouns"))
_GOES_ON, _OF = WORDS.chinese.text("questions.pointing.goes_on"), WORDS.chinese.text("names.of")


@dataclass(frozen=True)
class Pointer:
    """What a question points at: a row of `table`, or (None) a `unit` of time; `words` are those that point."""

    words: str
    table: TableKey | None = None
    unit: Unit | None = None


def pointer_of(question: str, lexicon: Lexicon) -> Pointer | None:
    """What the question points at; None when it points at nothing."""
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
        if mark.text == _GOES_ON and place == index + 1:
            continue  # `那店铺呢`: no pointing, only going on
        if table is not None and mark.means("noise") and _THING.search(mark.text):
            words = "".join(f"{'' if one.glued else ' '}{one.text}" for one in marks[index : place + 1])
            return Pointer(words.strip(), table)
    return None


def pronoun_of(question: str, lexicon: Lexicon) -> str | None:
    """The word for one thing said before (`它的店铺`, "its shops"); None where the question itself names it earlier."""
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


def single_name(turn: Turn) -> bool:
    """Whether the result of `turn` is one row that begins with a name."""
    return turn.row_count == 1 and bool(turn.rows) and bool(turn.rows[0]) and isinstance(turn.rows[0][0], str)


def meant_condition(turn: Turn, query: Query | None, lexicon: Lexicon) -> Condition | None:
    """The condition that a row is of the one thing the result of `turn` is about; None when that is not clear.

    Where the question before named a thing itself, `它` may be that one.
    """
    if query is None or not single_name(turn):
        return None
    facts = lexicon.schema.facts
    if any(one.column.column in facts[one.column.table].display for one in query.conditions):
        return None
    value = str(turn.rows[0][0])
    dimension = query.dimensions[0] if query.dimensions else None
    if dimension is not None and dimension.column is not None:
        if dimension.bucket is not None:
            return None
        return Condition(ColumnRef(dimension.table, dimension.column, dimension.via), "=", (value,))
    if dimension is None and not query.columns:
        return None
    table = dimension.table if dimension is not None else query.columns[0].table
    return _thing(Pointer("", table), value, query, lexicon)


def _table(mark: Mark) -> TableKey | None:
    """The table that a singular noun names."""
    if mark.text.isascii() and mark.text.lower().endswith("s"):
        return None
    tables = [link for link in mark.links if link.kind == "table" and link.quality >= max(0.6, mark.quality - 0.15)]
    return tables[0].table if tables else None


def pointed_condition(pointer: Pointer, turn: Turn, query: Query | None, lexicon: Lexicon) -> Condition:
    """The condition that a row is of the one thing, or in the one period, that the result of `turn` is about.

    `query` is the structure that gave the result, as far as rules know it.

    Raises:
        Refusal: the result does not say which one is meant.
    """
    single = query is not None and (turn.row_count == 1 or (turn.row_count is None and query.limit == 1))
    value = turn.rows[0][0] if single and turn.rows and turn.rows[0] else None
    if query is None or not isinstance(value, str):
        raise which_one(pointer.words)
    found = _thing(pointer, value, query, lexicon) if pointer.table else _period(pointer, value, query)
    if found is None:
        raise which_one(pointer.words)
    return found


def _thing(pointer: Pointer, value: str, query: Query, lexicon: Lexicon) -> Condition | None:
    assert pointer.table is not None
    display = lexicon.schema.facts[pointer.table].display
    if query.dimensions:
        shown = (query.dimensions[0].table, query.dimensions[0].column)
    else:
        shown = (query.columns[0].table, query.columns[0].column) if query.columns else (("", ""), None)
    if len(display) != 1 or shown not in ((pointer.table, None), (pointer.table, display[0])):
        return None
    return Condition(ColumnRef(pointer.table, display[0]), "=", (value,))


def _period(pointer: Pointer, value: str, query: Query) -> Condition | None:
    """The period of that unit which the result's only row is of."""
    dated = query.dimensions[0] if query.dimensions else None
    if dated is None or dated.bucket != pointer.unit or dated.column is None or pointer.unit is None:
        return None
    try:
        start = Moment(datetime.date.fromisoformat(value[:10]))
        period = Period(start, start.shifted(pointer.unit, 1), pointer.unit)
    except (ValueError, OverflowError):
        return None
    return Condition(ColumnRef(dated.table, dated.column), "during", (period,))
