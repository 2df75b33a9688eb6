"""Moves the groups and conditions of an earlier query to rows of another table, as far as references reach."""

from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.linking.moments import Unit
from rules.query.query import ColumnRef, Condition, Dimension, Query
from rules.query.refusals import not_carried
from rules.reading.words import Question
from rules.schema.facts import is_year, kind_of


def carried(asked: Asked, query: Query, table: TableKey, notes: list[Text]) -> Query:
    """The query with its groups and conditions moved to another `table`; its figures stay as they are.

    A date of the earlier events becomes the date of the new ones. Groups and conditions that the new rows have nothing
    to do with are left out, and `notes` get a sentence on each.

    Raises:
        Refusal: none of the groups can be kept.
    """
    moved = {one: _dimension(asked, query, one, table) for one in (*query.dimensions, *query.top_per)}
    dimensions, top_per = (
        tuple(kept for one in groups if (kept := moved[one]) is not None)
        for groups in (query.dimensions, query.top_per)
    )
    if query.dimensions and not dimensions:
        raise not_carried(spoken(asked.question, query.dimensions[0]), named(asked.question, table))
    lost = (one for one in query.dimensions if moved[one] is None)
    notes += [_left_out(asked.question, spoken(asked.question, one), table) for one in lost]
    query = replace(
        query, conditions=conditions_for(asked, query, table, notes), dimensions=dimensions, top_per=top_per
    )
    deleted = asked.question.facts(table).deleted
    if any((one.column.table, one.column.column) == (table, deleted) for one in query.conditions):
        query = replace(query, with_deleted=(query.with_deleted - {query.base}) | {table})
    return replace(query, base=table)


def conditions_for(asked: Asked, query: Query, table: TableKey, notes: list[Text]) -> tuple[Condition, ...]:
    """The query's conditions as conditions on rows of `table`; `notes` name those that can't be moved."""
    moved = [(one, _column(asked, query, one.column, table)) for one in query.conditions]
    lost = (named(asked.question, one.column.table, one.column.column) for one, column in moved if column is None)
    notes += [_left_out(asked.question, name, table) for name in lost]
    return tuple(replace(one, column=column) for one, column in moved if column is not None)


def spoken(question: Question, dimension: Dimension) -> Text:
    """The name of a group, for a sentence."""
    if dimension.bucket is not None:
        return _UNITS[dimension.bucket]
    return named(question, dimension.table, dimension.column)


def named(question: Question, table: TableKey, column: str | None = None) -> Text:
    """The name of a table, or of a column of it, for a sentence."""
    return called(question.schema.table(table) if column is None else question.schema.column(table, column))


def _dimension(asked: Asked, query: Query, dimension: Dimension, table: TableKey) -> Dimension | None:
    if dimension.column is None:
        return dimension if dimension.table in asked.question.graph.above(table) else None
    column = _column(asked, query, ColumnRef(dimension.table, dimension.column, dimension.via), table, above_only=True)
    return replace(dimension, table=column.table, column=column.column) if column is not None else None


def _column(
    asked: Asked, query: Query, column: ColumnRef, table: TableKey, *, above_only: bool = False
) -> ColumnRef | None:
    """The column that restricts rows of `table` in the same way; None where they have nothing to do with it."""
    question = asked.question
    if column.table == query.base and column.column == question.facts(column.table).deleted:
        return _deletion(question, column, table)
    if column.table in question.graph.above(table):
        return column
    if column == asked.event_date(query.base):
        date = asked.event_date(table)
        return date if date is not None and _is_year(question, date) == _is_year(question, column) else None
    things = question.facts(table).is_entity and question.facts(column.table).is_entity
    return column if things and column.table in question.graph.below(table) and not above_only else None


def _deletion(question: Question, column: ColumnRef, table: TableKey) -> ColumnRef | None:
    """The column that marks deleted rows of `table`, if it marks them in the same way; else None."""
    if column.table == table:
        return column
    schema, name = question.schema, question.facts(table).deleted
    if name is None or kind_of(schema.column(table, name)) != kind_of(schema.column(column.table, column.column)):
        return None
    return ColumnRef(table, name)


def _is_year(question: Question, column: ColumnRef) -> bool:
    return is_year(question.schema.column(column.table, column.column))


def _left_out(question: Question, name: Text, table: TableKey) -> Text:
    what = named(question, table)
    return Text(
        f"“{name.zh}”不适用于“{what.zh}”，没有沿用。",
        f'"{name.en}" does not apply to "{what.en}" and was not carried over.',
    )


_UNITS: dict[Unit, Text] = {
    "day": Text("天", "day"), "week": Text("周", "week"), "month": Text("月", "month"),
    "quarter": Text("季度", "quarter"), "year": Text("年", "year"),
}  # fmt: skip
