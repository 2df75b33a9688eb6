"""Moves the groups and conditions of an earlier query to rows of another table, as far as it has
references to what they are about.
"""

from collections.abc import Iterable
from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.moments import Unit
from rules.query.query import ColumnRef, Condition, Dimension, Query
from rules.query.refusals import not_carried
from rules.reading.words import QuestionWords
from rules.schema.table_facts import is_year, kind_of


def retargeted(asked: Asked, query: Query, table: TableKey, notes: list[Text]) -> Query:
    """Return the query with its groups and conditions moved to another `table`.

    Its figures stay as they are. A date of the earlier events becomes the date of the new ones.
    Groups and conditions that the new rows have nothing to do with are left out, and `notes` get a
    sentence on each.

    Raises:
        Refusal: none of the groups can be kept.
    """
    question = asked.question
    dimensions = _retargeted_groups(asked, query, query.dimensions, table)
    if query.dimensions and not any(dimensions):
        raise not_carried(group_name(question, query.dimensions[0]), name_of(question, table))

    for before, after in zip(query.dimensions, dimensions, strict=True):
        if after is None:
            notes.append(_left_out(question, group_name(question, before), table))

    top_per = _retargeted_groups(asked, query, query.top_per, table)
    query = replace(
        query,
        conditions=retargeted_conditions(asked, query, table, notes),
        dimensions=tuple(dimension for dimension in dimensions if dimension is not None),
        top_per=tuple(one for one in top_per if one is not None),
    )
    deleted = question.facts(table).deleted
    if any(
        (condition.column.table, condition.column.column) == (table, deleted)
        for condition in query.conditions
    ):
        query = replace(query, with_deleted=(query.with_deleted - {query.base}) | {table})

    return replace(query, base=table)


def _retargeted_groups(
    asked: Asked, query: Query, dimensions: Iterable[Dimension], table: TableKey
) -> list[Dimension | None]:
    return [_retargeted_group(asked, query, dimension, table) for dimension in dimensions]


def retargeted_conditions(
    asked: Asked, query: Query, table: TableKey, notes: list[Text]
) -> tuple[Condition, ...]:
    """Return the query's conditions as conditions on rows of `table`.

    `notes` get a sentence on each that can't be moved.
    """
    question = asked.question
    moved = []
    for condition in query.conditions:
        column = _retargeted_column(asked, query, condition.column, table)
        if column is not None:
            moved.append(replace(condition, column=column))
        else:
            name = name_of(question, condition.column.table, condition.column.column)
            notes.append(_left_out(question, name, table))

    return tuple(moved)


def group_name(question: QuestionWords, dimension: Dimension) -> Text:
    """Return the name of a group, for a sentence."""
    if dimension.bucket is not None:
        return _UNITS[dimension.bucket]

    return name_of(question, dimension.table, dimension.column)


def name_of(question: QuestionWords, table: TableKey, column: str | None = None) -> Text:
    """Return the name of a table, or of a column of it, for a sentence."""
    if column is None:
        return called(question.schema.table(table))

    return called(question.schema.column(table, column))


def _retargeted_group(
    asked: Asked, query: Query, dimension: Dimension, table: TableKey
) -> Dimension | None:
    if dimension.column is None:
        if dimension.table in asked.question.graph.above(table):
            return dimension

        return None

    before = ColumnRef(dimension.table, dimension.column, dimension.via)
    after = _retargeted_column(asked, query, before, table, above_only=True)
    if after is None:
        return None

    return replace(dimension, table=after.table, column=after.column)


def _retargeted_column(
    asked: Asked, query: Query, column: ColumnRef, table: TableKey, *, above_only: bool = False
) -> ColumnRef | None:
    """Return the column that restricts rows of `table` in the same way.

    None where they have nothing to do with it.
    """
    question = asked.question
    facts = question.facts(column.table)
    is_of_base = column.table == query.base
    if is_of_base and column.column == facts.deleted:
        return _deletion(question, column, table)
    if column.table in question.graph.above(table):
        return column
    if column == asked.event_date(query.base):
        return _same_date(asked, column, table)
    if above_only or column.table not in question.graph.below(table):
        return None

    are_things = facts.is_entity and question.facts(table).is_entity
    return column if are_things else None


def _same_date(asked: Asked, column: ColumnRef, table: TableKey) -> ColumnRef | None:
    """Return when rows of `table` happened, if it tells years or days like the column."""
    date = asked.event_date(table)
    if date is None:
        return None

    question = asked.question
    is_alike = _is_year(question, date) == _is_year(question, column)
    return date if is_alike else None


def _deletion(question: QuestionWords, column: ColumnRef, table: TableKey) -> ColumnRef | None:
    """Return the column that marks deleted rows of `table`, if it marks them in the same way."""
    if column.table == table:
        return column

    name = question.facts(table).deleted
    if name is None:
        return None

    kind = kind_of(question.schema.column(table, name))
    is_alike = kind == kind_of(question.schema.column(column.table, column.column))
    return ColumnRef(table, name) if is_alike else None


def _is_year(question: QuestionWords, column: ColumnRef) -> bool:
    return is_year(question.schema.column(column.table, column.column))


def _left_out(question: QuestionWords, name: Text, table: TableKey) -> Text:
    what = name_of(question, table)
    return Text(
        f"“{name.zh}”不适用于“{what.zh}”，没有沿用。",
        f'"{name.en}" does not apply to "{what.en}" and was not carried over.',
    )


_UNITS: dict[Unit, Text] = {
    "day": Text("天", "day"), "week": Text("周", "week"), "month": Text("月", "month"),
    "quarter": Text("季度", "quarter"), "year": Text("年", "year"),
}  # fmt: skip
