"""Writes a `Query` as a statement for PostgreSQL that people can read and that counts no row twice."""

from dataclasses import dataclass, replace

from common.meanings import TableKey
from common.postgres.identifiers import quoted
from rules.query.query import Comparison, Query
from rules.schema.joins import Graph
from rules.schema.schema import Schema
from rules.sql.column_names import Output, direction
from rules.sql.expressions import DURING
from rules.sql.growth import compared, grown, names_of, with_changes
from rules.sql.statement import Statement, Unrenderable, clause, nested, order_and_limit, over, percentage


def render(query: Query, schema: Schema, graph: Graph) -> str:
    """The statement that answers `query`.

    Raises:
        AmbiguousPath: a table can be reached in several equally good ways.
        LookupError: nothing connects the tables.
        Unrenderable: the joins would count rows of a figure more than once.
    """
    text = _text(Statement(query, schema, graph))
    if query.counts_rows:
        return f"SELECT count(*) AS row_count\nFROM {nested(text)} AS matching"
    return text


def _text(statement: Statement) -> str:
    query = statement.query
    bases = list(dict.fromkeys((measure.table, statement.filter_of(measure)) for measure in query.measures))
    if len(bases) > 1 and (query.growth or query.share_of_top or query.comparison):
        raise Unrenderable("figures of several tables only stand side by side")
    if query.growth is not None:
        return grown(statement)
    if query.share_of_top is not None:
        return _share_of_top(statement, query.share_of_top)
    if query.comparison is not None:
        is_plain = not any(one.per or one.is_share or one.function == "metric" for one in query.measures)
        return with_changes(statement, compared(statement) if is_plain else _of_sides(statement, query.comparison))
    if len(bases) > 1:
        return _several_bases(statement, bases)
    if any(measure.per for measure in query.measures):
        return _average_of_groups(statement)
    return _top_of_groups(statement) if query.top_per else statement.text()


def _average_of_groups(statement: Statement) -> str:
    """The statement for averages of groups: an inner one groups by the dimensions and `per`, the outer one averages."""
    query = statement.query
    measure = query.measures[0]
    if len(query.measures) > 1 or query.having or measure.per is None:
        raise Unrenderable("an average of groups stands alone")
    plain = replace(measure, per=None)
    inner = statement.of(replace(query, measures=(plain,), dimensions=(*query.dimensions, measure.per), order=()))
    columns = [sql for dimension in inner.query.dimensions for sql in inner.group_columns(dimension)]
    outputs = [Output(sql, f"g{index}") for index, sql in enumerate(columns)]
    outer = outputs[: len(outputs) - len(inner.group_columns(measure.per))]
    names = {one.sql: one.name for dimension in query.dimensions for one in inner.shown(dimension)}
    shown = [f"{one.alias} AS {names[one.sql]}" for one in outer if one.sql in names]
    alias = quoted(statement.alias(measure))
    body = inner.selected([*outputs, Output(inner.aggregate_sql(plain), "figure")])
    groups = clause("GROUP BY", (str(one.alias) for one in outer))
    order = [alias + direction(not query.order or query.order[0].descending)] if outer else []
    lines = [*clause("SELECT", [*shown, f"avg(figure) AS {alias}"]), f"FROM {nested(body)} AS grouped", *groups]
    return "\n".join([*lines, *order_and_limit(order, query)])


def _top_of_groups(statement: Statement) -> str:
    """The statement for the first rows of each group: an inner one numbers them, the outer one cuts."""
    query, outputs = statement.query, statement.outputs()
    partition = [sql for dimension in query.top_per for sql in statement.group_columns(dimension)]
    order = query.order[0]
    if order.measure is not None:
        by = statement.aggregate_sql(order.measure)
    else:
        by = statement.frame.column(order.column or query.columns[0])
    ties = _ties(statement)
    rank = f"{'row_number' if ties else 'rank'}() {over(partition, [by + direction(order.descending), *ties])}"
    names = [output.name for output in outputs]
    lines = [
        "SELECT " + ", ".join(names),
        f"FROM {nested(statement.selected([*outputs, Output(rank, 'place')]))} AS ranked",
        f"WHERE place <= {query.limit or 1}",
        f"ORDER BY {names[0]}, place",
    ]
    return "\n".join(lines)


def _ties(statement: Statement) -> list[str]:
    """By what rows of the same figure are put in order: of the first three, each place is given to one row.

    All that share the first place are shown.
    """
    query = statement.query
    if (query.limit or 1) == 1:
        return []
    if query.dimensions:
        return statement.group_columns(query.dimensions[-1])[:1]
    second = query.order[1].column if len(query.order) > 1 else None
    return [statement.frame.column(second)] if second is not None else []


def _share_of_top(statement: Statement, count: int) -> str:
    """The statement for how much of all the first groups have together."""
    query = statement.query
    if len(query.measures) != 1 or query.measures[0].function not in ("sum", "count") or not query.dimensions:
        raise Unrenderable("only of a sum or count of groups some have a part")
    measure, figure = query.measures[0], statement.aggregate_sql(query.measures[0])
    place = f"row_number() {over(order=[figure + direction(True)])}"
    body = statement.selected([Output(figure, "figure"), Output(place, "place")])
    first = f"sum(figure) FILTER (WHERE place <= {count})"
    part = percentage(first, "sum(figure)", statement.is_float(measure))
    name = f"top_{count}_{statement.alias(measure)}_percent"
    return f"SELECT {Output(part, name)}\nFROM {nested(body)} AS ranked"


def _several_bases(statement: Statement, bases: list[tuple[TableKey, str | None]]) -> str:
    """The statement for figures of different rows: each is aggregated alone, then they are joined on the groups."""
    query = statement.query
    if query.having or query.top_per or any(measure.per or measure.is_share for measure in query.measures):
        raise Unrenderable("figures of several tables only stand side by side")
    parts: list[_Part] = []
    tables = [table for table, _ in bases]
    for index, (base, own_filter) in enumerate(bases):
        measures = tuple(one for one in query.measures if (one.table, statement.filter_of(one)) == (base, own_filter))
        # A period on the date of one table restricts only the figures of that table.
        others = set(tables) - {base}
        out = [one for one in query.conditions if one.operator in DURING and one.column.table in others]
        conditions = tuple(one for one in query.conditions if one not in out)
        part = statement.of(replace(query, base=base, measures=measures, conditions=conditions, order=(), limit=None))
        again = f"_{index + 1}" if base in tables[:index] else ""
        parts.append(_Part(quoted(f"by_{base[1]}{again}".lower()), part, part.text(with_keys=True)))
    aliases = {one: quoted(statement.alias(one)) for one in query.measures}
    names = {one: part.name for part in parts for one in part.statement.query.measures}
    lines = _joined(parts, [(names[one], alias, alias) for one, alias in aliases.items()])
    if not query.dimensions:
        return lines
    keys = [aliases[one.measure] + direction(one.descending) for one in query.order[:1] if one.measure is not None]
    return "\n".join([lines, *order_and_limit([*keys, parts[0].statement.group_names()[0][0]], query)])


def _of_sides(statement: Statement, sides: Comparison) -> str:
    """The figures of both sides, where they are more than one function over rows: each side is asked for by itself."""
    query, parts = statement.query, []
    for name, side in (("side_1", sides.first), ("side_2", sides.second)):
        conditions = (*query.conditions, *side)
        part = statement.of(replace(query, conditions=conditions, comparison=None, having=(), order=(), limit=None))
        text = _average_with_keys(part) if any(one.per for one in query.measures) else part.text(with_keys=True)
        parts.append(_Part(name, part, text))
    figures = []
    for measure in query.measures:
        alias, names = quoted(statement.alias(measure)), names_of(measure, statement)
        figures += [(part.name, alias, quoted(name)) for part, name in zip(parts, names, strict=True)]
    return _joined(parts, figures)


def _average_with_keys(part: Statement) -> str:
    """The statement for averages of groups, with the keys on which it is joined with others."""
    if any(one.column is None for one in part.query.dimensions):
        raise Unrenderable("averages of groups are not kept apart by the keys of other groups")
    groups = zip(part.query.dimensions, part.group_names(), strict=True)
    names = [shown[0] for one, shown in groups if not part.is_known_by_name(one)]
    keys = [f", ROW({name})::text AS key{index}" for index, name in enumerate(names)]
    return f"SELECT *{''.join(keys)}\nFROM {nested(_text(part))} AS averages"


@dataclass(frozen=True)
class _Part:
    """Figures that are asked for by themselves, under a name."""

    name: str
    statement: Statement
    text: str


def _joined(parts: list[_Part], figures: list[tuple[str, str, str]]) -> str:
    """The figures (a part's name, the column's name there and in the result) beside each other, by their groups."""
    statement = parts[0].statement
    with_ = "WITH " + ",\n".join(f"{part.name} AS {nested(part.text)}" for part in parts) + "\n"
    if not statement.query.dimensions:
        alone = (f"(SELECT {column} FROM {part}) AS {name}" for part, column, name in figures)
        return f"{with_}SELECT {', '.join(alone)}"
    keys = [str(one.alias) for one in statement.key_outputs()]
    shown: list[str] = []
    for dimension, names in zip(statement.query.dimensions, statement.group_names(), strict=True):
        if statement.is_known_by_name(dimension):
            keys = [*names, *keys]
            shown += names
        else:
            shown += [f"coalesce({', '.join(f'{part.name}.{name}' for part in parts)}) AS {name}" for name in names]
    shown += [f"{part}.{column}" + (f" AS {name}" if name != column else "") for part, column, name in figures]
    joins = [f"FULL JOIN {part.name} USING ({', '.join(keys)})" for part in parts[1:]]
    return "\n".join([f"{with_}SELECT {', '.join(shown)}", f"FROM {parts[0].name}", *joins])
