"""Refuses statements that leave out something that the question says.

A word that is passed over because it mostly says nothing is looked at again once it is known which
tables answer: "now" matters where they tell until when something holds.
"""

from collections.abc import Iterable, Iterator

from common.meanings import TableKey
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.mark import Mark
from rules.query.query import ColumnRef, Condition, Either, Query, touched
from rules.query.refusals import unclear_state, unused_words
from rules.schema.table_facts import tells_end

_STATE = "state"  # the argument of words that say that something holds now


def refuse_unaccounted(asked: Asked, query: Query) -> None:
    """Refuse a query that does not hold all that the question says.

    Raises:
        Refusal: names the words, or asks what they mean.
    """
    _refuse_unasked_states(asked, query)
    _refuse_groups_of_nothing(asked, query)
    _refuse_shares_of_everything(asked, query)
    _refuse_alternatives_within(asked, query)


def _refuse_unasked_states(asked: Asked, query: Query) -> None:
    """Refuse "now" and "still" where a column tells until when, and nothing is asked of it."""
    said = [mark.text for mark in _marks_of_state(asked)]
    if not said:
        return
    asked_of = set(_restricted(query))
    for key in sorted(touched(query)):
        telling = _telling_ends(asked, key)
        if telling and asked_of.isdisjoint(telling):
            table, name = asked.question.schema.table(key), telling[0][1]
            column = asked.question.schema.column(key, name)
            raise unclear_state(said, called(table), called(column))


def _marks_of_state(asked: Asked) -> Iterator[Mark]:
    for word in asked.question.words:
        if word.mark.means("noise") and word.mark.arg == _STATE:
            yield word.mark


def _telling_ends(asked: Asked, key: TableKey) -> list[tuple[TableKey, str]]:
    """Return the columns that tell whether a row of the table has ended."""
    table = asked.question.schema.table(key)
    return [(key, column.name) for column in table.columns if tells_end(column)]


def _restricted(query: Query) -> Iterator[tuple[TableKey, str]]:
    """Yield the columns that conditions of the query are about, whatever they are on."""
    yield from _columns(_conditions(query))
    for dimension in query.dimensions:
        if dimension.column is not None:
            yield dimension.table, dimension.column


def _conditions(query: Query) -> Iterator[Condition]:
    yield from query.conditions
    for measure in query.measures:
        yield from measure.share_of
    for related in query.related:
        yield from related.conditions
    for either in query.either:
        yield from _alternatives(either)


def _alternatives(either: Either) -> Iterator[Condition]:
    yield from either.conditions
    for related in either.related:
        yield from related.conditions


def _columns(conditions: Iterable[Condition]) -> Iterator[tuple[TableKey, str]]:
    for condition in conditions:
        for column in condition.columns:
            yield column.table, column.column


def _refuse_groups_of_nothing(asked: Asked, query: Query) -> None:
    """Refuse groups by a column that has to be empty: "per reason, those without one as well"."""
    grouped = {(one.table, one.column) for one in query.dimensions}
    for condition in query.conditions:
        column = condition.column
        if condition.operator == "null" and (column.table, column.column) in grouped:
            raise unused_words(asked.question.texts("null"))


def _refuse_shares_of_everything(asked: Asked, query: Query) -> None:
    """Refuse the share of rows that hold any of a column's values: "ratio of men and women"."""
    for measure in query.measures:
        for condition in measure.share_of:
            if _takes_all_values(asked, condition):
                raise unused_words(asked.question.texts("share"))
        required = [one for one in measure.share_of if one.operator == "="]
        if len({one.column for one in required}) < len(set(required)):
            raise unused_words(asked.question.texts("share"))


def _takes_all_values(asked: Asked, condition: Condition) -> bool:
    ref: ColumnRef = condition.column
    column = asked.question.schema.table(ref.table).column(ref.column)
    if column is None or condition.operator != "in" or not column.is_complete:
        return False
    return set(column.values) <= {str(operand) for operand in condition.operands}


def _refuse_alternatives_within(asked: Asked, query: Query) -> None:
    """Refuse an "or" of which it is not known how far it reaches.

    "prescribed drugs or creams below 10": the price may be that of both.
    """
    elsewhere = {(one.column.table, one.column.column) for one in query.conditions}
    for either in query.either:
        about = set(_columns(_alternatives(either)))
        if len(about) > 1 and elsewhere & about:
            raise unused_words(asked.question.texts("or"))
