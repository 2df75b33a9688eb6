"""Writes a `Query` as a PostgreSQL statement that people can read and that counts no row twice."""

from dataclasses import dataclass, replace

from common.meanings import TableKey
from postgres.identifiers import quoted
from rules.query.query import Comparison, Condition, Measure, Query
from rules.schema.reference_graph import Graph
from rules.schema.table_schema import Schema
from rules.sql.column_names import SelectItem, direction
from rules.sql.expressions import DURING
from rules.sql.growth import compared, grown, names_of, with_changes
from rules.sql.statement import (
    SelectStatement,
    Unrenderable,
    clause,
    nested,
    order_and_limit,
    over,
    percentage,
)


def render(query: Query, schema: Schema, graph: Graph) -> str:
    """Write the statement that answers `query`.

    Raises:
        AmbiguousPath: a table can be reached in several equally good ways.
        LookupError: nothing connects the tables.
        Unrenderable: the joins would count rows of a figure more than once.
    """
    text = _text_of(SelectStatement(query, schema, graph))
    if query.counts_rows:
        return f"SELECT count(*) AS row_count\nFROM {nested(text)} AS matching"

    return text


def _text_of(statement: SelectStatement) -> str:
    query = statement.query
    bases = _bases(statement)
    is_special = query.growth or query.share_of_top or query.comparison
    if len(bases) > 1 and is_special:
        raise Unrenderable("figures of several tables only stand side by side")
    if query.growth is not None:
        return grown(statement)
    if query.share_of_top is not None:
        return _share_of_top(statement, query.share_of_top)
    if query.comparison is not None:
        return _compared_sides(statement, query.comparison)
    if len(bases) > 1:
        return _several_bases(statement, bases)
    if any(measure.per for measure in query.measures):
        return _average_of_groups(statement)
    if query.top_per:
        return _top_of_groups(statement)

    return statement.text()


_Base = tuple[TableKey, str | None]
"""Rows that are measured: their table, and the filter of the metric that measures them."""


def _bases(statement: SelectStatement) -> list[_Base]:
    measures = statement.query.measures
    return list(
        dict.fromkeys((measure.table, statement.filter_of(measure)) for measure in measures)
    )


def _compared_sides(statement: SelectStatement, sides: Comparison) -> str:
    """Write the statement for the figures of two sets of rows with their changes."""
    is_plain = not any(
        measure.per or measure.is_share or measure.function == "metric"
        for measure in statement.query.measures
    )
    figures = compared(statement) if is_plain else _of_sides(statement, sides)
    return with_changes(statement, figures)


def _average_of_groups(statement: SelectStatement) -> str:
    """Write the statement for averages of groups.

    An inner one groups by the dimensions and by `per`, the outer one averages its figures.
    """
    query = statement.query
    measure = query.measures[0]
    if len(query.measures) > 1 or query.having or measure.per is None:
        raise Unrenderable("an average of groups stands alone")

    plain = replace(measure, per=None)
    dimensions = (*query.dimensions, measure.per)
    inner = statement.of(replace(query, measures=(plain,), dimensions=dimensions, order=()))
    columns: list[str] = []
    for dimension in dimensions:
        columns += inner.group_columns(dimension)

    outputs = [SelectItem(sql, f"g{index}") for index, sql in enumerate(columns)]
    body = inner.selected([*outputs, SelectItem(inner.aggregate_sql(plain), "figure")])
    outer = outputs[: len(outputs) - len(inner.group_columns(measure.per))]
    alias = quoted(statement.alias(measure))
    lines = [
        *clause("SELECT", [*_renamed(inner, query, outer), f"avg(figure) AS {alias}"]),
        f"FROM {nested(body)} AS grouped",
        *clause("GROUP BY", [str(one.alias) for one in outer]),
    ]
    is_falling = query.order[0].descending if query.order else True
    order = [alias + direction(is_falling)] if outer else []
    return "\n".join([*lines, *order_and_limit(order, query)])


def _renamed(inner: SelectStatement, query: Query, outer: list[SelectItem]) -> list[str]:
    """Return the columns that show the groups, from their aliases in `inner` to their own names."""
    names: dict[str, str] = {}
    for dimension in query.dimensions:
        names |= {output.sql: output.name for output in inner.shown(dimension)}

    return [f"{one.alias} AS {names[one.sql]}" for one in outer if one.sql in names]


def _top_of_groups(statement: SelectStatement) -> str:
    """Write the statement for the first rows of each group.

    An inner one numbers the rows, the outer one takes the first of them.
    """
    query = statement.query
    outputs = statement.outputs()
    partition = [sql for dimension in query.top_per for sql in statement.group_columns(dimension)]
    order = query.order[0]
    if order.measure is not None:
        by = statement.aggregate_sql(order.measure) + direction(order.descending)
    else:
        by = statement.sort_key(order.column or query.columns[0], order.descending)

    ties = _tie_breakers(statement)
    function = "row_number" if ties else "rank"
    rank = f"{function}() {over(partition, [by, *ties])}"
    names = [output.name for output in outputs]
    lines = [
        "SELECT " + ", ".join(names),
        f"FROM {nested(statement.selected([*outputs, SelectItem(rank, 'place')]))} AS ranked",
        f"WHERE place <= {query.limit or 1}",
        f"ORDER BY {names[0]}, place",
    ]
    return "\n".join(lines)


def _tie_breakers(statement: SelectStatement) -> list[str]:
    """Return the sort keys of rows with the same figure, so that each place is given to one row.

    None where only the first place is asked for: all rows that share it are shown.
    """
    query = statement.query
    if (query.limit or 1) == 1:
        return []
    if query.dimensions:
        return statement.group_columns(query.dimensions[-1])[:1]

    second = query.order[1].column if len(query.order) > 1 else None
    if second is not None:
        return [statement.frame.column(second)]

    return []


def _share_of_top(statement: SelectStatement, count: int) -> str:
    """Write the statement for the share that the first `count` groups have together."""
    query = statement.query
    adds_up = len(query.measures) == 1 and query.measures[0].function in ("sum", "count")
    if not adds_up or not query.dimensions:
        raise Unrenderable("only of a sum or count of groups some have a part")

    measure = query.measures[0]
    figure = statement.aggregate_sql(measure)
    place = f"row_number() {over(order=[figure + direction(True)])}"
    body = statement.selected([SelectItem(figure, "figure"), SelectItem(place, "place")])
    first = f"sum(figure) FILTER (WHERE place <= {count})"
    part = percentage(first, "sum(figure)", statement.is_float(measure))
    name = f"top_{count}_{statement.alias(measure)}_percent"
    return f"SELECT {SelectItem(part, name)}\nFROM {nested(body)} AS ranked"


def _several_bases(statement: SelectStatement, bases: list[_Base]) -> str:
    """Write the statement for figures of different rows.

    The figures of each base are aggregated alone, then they are joined on the groups.
    """
    query = statement.query
    is_of_groups = any(measure.per or measure.is_share for measure in query.measures)
    if query.having or query.top_per or is_of_groups:
        raise Unrenderable("figures of several tables only stand side by side")

    parts = [_part_of_base(statement, bases, index) for index in range(len(bases))]
    names: dict[Measure, str] = {}
    for part in parts:
        names |= dict.fromkeys(part.statement.query.measures, part.name)

    figures = []
    for measure in query.measures:
        alias = quoted(statement.alias(measure))
        figures.append((names[measure], alias, alias))

    lines = _joined(parts, figures)
    if not query.dimensions:
        return lines

    keys = []
    if query.order and query.order[0].measure is not None:
        first = query.order[0]
        keys.append(quoted(statement.alias(query.order[0].measure)) + direction(first.descending))

    keys.append(parts[0].statement.group_names()[0][0])
    return "\n".join([lines, *order_and_limit(keys, query)])


def _part_of_base(statement: SelectStatement, bases: list[_Base], index: int) -> "_Part":
    """Return the statement for the figures of one base.

    A period on the date of another base does not restrict it.
    """
    query, (table, own_filter) = statement.query, bases[index]
    measures = [
        measure
        for measure in query.measures
        if (measure.table, statement.filter_of(measure)) == (table, own_filter)
    ]
    others = {other for other, _ in bases} - {table}
    conditions = [
        condition
        for condition in query.conditions
        if condition.operator not in DURING or condition.column.table not in others
    ]
    part = statement.of(
        replace(
            query,
            base=table,
            measures=tuple(measures),
            conditions=tuple(conditions),
            order=(),
            limit=None,
        )
    )
    is_again = table in [other for other, _ in bases[:index]]
    again = f"_{index + 1}" if is_again else ""
    name = quoted(f"by_{table[1]}{again}".lower())
    return _Part(name, part, part.text(with_keys=True))


def _of_sides(statement: SelectStatement, sides: Comparison) -> str:
    """Write the figures of both sets of rows by a statement for each.

    Figures that are more than one function over rows need that.
    """
    query = statement.query
    first = _part_of_side(statement, "side_1", sides.first)
    second = _part_of_side(statement, "side_2", sides.second)
    figures = []
    for measure in query.measures:
        alias = quoted(statement.alias(measure))
        first_name, second_name = names_of(measure, statement)
        figures.append((first.name, alias, quoted(first_name)))
        figures.append((second.name, alias, quoted(second_name)))

    return _joined([first, second], figures)


def _part_of_side(statement: SelectStatement, name: str, side: tuple[Condition, ...]) -> "_Part":
    query = statement.query
    part = statement.of(
        replace(
            query,
            conditions=(*query.conditions, *side),
            comparison=None,
            having=(),
            order=(),
            limit=None,
        )
    )
    if any(measure.per for measure in query.measures):
        return _Part(name, part, _average_with_keys(part))

    return _Part(name, part, part.text(with_keys=True))


def _average_with_keys(part: SelectStatement) -> str:
    """Write the statement for averages of groups, with the keys on which it is joined."""
    dimensions = part.query.dimensions
    if any(one.column is None for one in dimensions):
        raise Unrenderable("averages of groups are not kept apart by the keys of other groups")

    keyed = [
        shown[0]
        for dimension, shown in zip(dimensions, part.group_names(), strict=True)
        if not part.is_known_by_name(dimension)
    ]
    keys = [f", ROW({name})::text AS key{index}" for index, name in enumerate(keyed)]
    return f"SELECT *{''.join(keys)}\nFROM {nested(_text_of(part))} AS averages"


@dataclass(frozen=True)
class _Part:
    """A statement for some of the figures, and its name in the WITH clause."""

    name: str
    statement: SelectStatement
    text: str


def _joined(parts: list[_Part], figures: list[tuple[str, str, str]]) -> str:
    """Write the statement that puts figures of several parts beside each other, by their groups.

    Args:
        figures: the name of a part, and of the column in it and in the result.
    """
    statement = parts[0].statement
    named = ",\n".join(f"{part.name} AS {nested(part.text)}" for part in parts)
    with_ = f"WITH {named}\n"
    if not statement.query.dimensions:
        alone = [f"(SELECT {column} FROM {part}) AS {name}" for part, column, name in figures]
        return f"{with_}SELECT {', '.join(alone)}"

    keys = [str(key_output.alias) for key_output in statement.key_outputs()]
    shown: list[str] = []
    for dimension, names in zip(statement.query.dimensions, statement.group_names(), strict=True):
        if statement.is_known_by_name(dimension):
            keys = [*names, *keys]
            shown += names
        else:
            shown += [_first_known(name, parts) for name in names]

    for part_name, column, name in figures:
        alias = f" AS {name}" if name != column else ""
        shown.append(f"{part_name}.{column}{alias}")

    joins = [f"FULL JOIN {part.name} USING ({', '.join(keys)})" for part in parts[1:]]
    return "\n".join([f"{with_}SELECT {', '.join(shown)}", f"FROM {parts[0].name}", *joins])


def _first_known(name: str, parts: list[_Part]) -> str:
    """Write the column of a group that may be missing from some of the parts."""
    columns = ", ".join(f"{part.name}.{name}" for part in parts)
    return f"coalesce({columns}) AS {name}"
