"""Moves the groups and conditions of an earlier query to figures of another table, as far as references reach."""

from collections.abc import Iterable
from dataclasses import replace

from common.text import Text
from knowledge.naming import called
from rules.linking.dates import Unit
from rules.planning.event_dates import event_date
from rules.planning.plan import Plan
from rules.query.query import ColumnRef, Condition, Dimension, Query
from rules.query.refusals import not_carried
from rules.schema.schema import TableKey, is_year, kind_of


def carried(plan: Plan, query: Query, table: TableKey) -> Query:
    """The query with its groups and conditions moved to another `table`; its figures stay as they are.

    A date of the earlier events becomes the date of the new ones. Groups and conditions that the new rows have nothing
    to do with are left out, and `plan.warnings` says so.

    Raises:
        Refusal: none of the groups can be kept.
    """
    moved = {one: _dimension(plan, query, one, table) for one in (*query.dimensions, *query.top_per)}
    dimensions = tuple(kept for one in query.dimensions if (kept := moved[one]) is not None)
    if query.dimensions and not dimensions:
        raise not_carried(spoken(plan, query.dimensions[0]), named(plan, table))
    lost = (one for one in query.dimensions if moved[one] is None)
    plan.warnings += [_left_out(plan, spoken(plan, one), table) for one in lost]
    conditions = conditions_for(plan, query, table)
    return replace(
        query,
        base=table,
        dimensions=dimensions,
        top_per=tuple(kept for one in query.top_per if (kept := moved[one]) is not None),
        conditions=conditions,
        with_deleted=_with_deleted(plan, query, conditions, table),
    )


def _with_deleted(plan: Plan, query: Query, conditions: tuple[Condition, ...], table: TableKey) -> frozenset[TableKey]:
    """The tables whose deleted rows take part; `table` is one of them if a condition on deletion has moved to it."""
    moved = any(
        (one.column.table, one.column.column) == (table, plan.reading.facts(table).deleted) for one in conditions
    )
    return (query.with_deleted - {query.base}) | {table} if moved else query.with_deleted


def conditions_for(plan: Plan, query: Query, table: TableKey) -> tuple[Condition, ...]:
    """The query's conditions as conditions on rows of `table`; `plan.warnings` names those that can't be moved."""
    kept: list[Condition] = []
    for condition in query.conditions:
        column = _column(plan, query, condition.column, table)
        if column is None:
            name = named(plan, condition.column.table, condition.column.column)
            plan.warnings.append(_left_out(plan, name, table))
        else:
            kept.append(replace(condition, column=column))
    return tuple(kept)


def spoken(plan: Plan, dimension: Dimension) -> Text:
    """The name of a group, for a sentence."""
    if dimension.bucket is not None:
        return _UNITS[dimension.bucket]
    if dimension.column is None:
        return named(plan, dimension.table)
    return named(plan, dimension.table, dimension.column)


def named(plan: Plan, table: TableKey, column: str | None = None) -> Text:
    """The name of a table, or of a column of it, for a sentence."""
    thing = plan.reading.schema.table(table) if column is None else plan.reading.schema.column(table, column)
    return called(thing)


def listed(names: Iterable[Text]) -> Text:
    """Several names in a row, each once."""
    once = list(dict.fromkeys(names))
    return Text("、".join(name.zh for name in once), ", ".join(name.en for name in once))


def _dimension(plan: Plan, query: Query, dimension: Dimension, table: TableKey) -> Dimension | None:
    if dimension.column is None:
        return dimension if dimension.table in plan.reading.graph.above(table) else None
    column = _column(plan, query, ColumnRef(dimension.table, dimension.column, dimension.via), table, above_only=True)
    return replace(dimension, table=column.table, column=column.column) if column is not None else None


def _column(
    plan: Plan, query: Query, column: ColumnRef, table: TableKey, *, above_only: bool = False
) -> ColumnRef | None:
    """The column that restricts rows of `table` in the same way; None where they have nothing to do with it."""
    if column.table == query.base and column.column == plan.reading.facts(column.table).deleted:
        return _deletion(plan, column, table)
    if column.table in plan.reading.graph.above(table):
        return column
    if column == event_date(plan, query.base):
        date = event_date(plan, table)
        return date if date is not None and _is_year(plan, date) == _is_year(plan, column) else None
    facts = plan.reading.facts(column.table)
    things = plan.reading.facts(table).is_entity and facts.is_entity and column.table in plan.reading.graph.below(table)
    return column if things and not above_only else None


def _deletion(plan: Plan, column: ColumnRef, table: TableKey) -> ColumnRef | None:
    """The column that marks deleted rows of `table`, if it marks them in the same way; else None."""
    if column.table == table:
        return column
    schema, name = plan.reading.schema, plan.reading.facts(table).deleted
    if name is None or kind_of(schema.column(table, name)) != kind_of(schema.column(column.table, column.column)):
        return None
    return ColumnRef(table, name)


def _is_year(plan: Plan, column: ColumnRef) -> bool:
    return is_year(plan.reading.schema.column(column.table, column.column))


def _left_out(plan: Plan, name: Text, table: TableKey) -> Text:
    what = named(plan, table)
    return Text(
        f"“{name.zh}”不适用于“{what.zh}”，没有沿用。",
        f'"{name.en}" does not apply to "{what.en}" and was not carried over.',
    )


_UNITS: dict[Unit, Text] = {
    "day": Text("天", "day"),
    "week": Text("周", "week"),
    "month": Text("月", "month"),
    "quarter": Text("季度", "quarter"),
    "year": Text("年", "year"),
}
