"""Writes a `Query` as a statement for PostgreSQL that people can read and that counts no row twice."""

from dataclasses import replace

from common.postgres.identifiers import quoted
from rules.query.query import ColumnRef, Comparison, Measure, Query
from rules.schema.joins import Graph
from rules.schema.schema import Schema, TableKey
from rules.sql.column_names import group_name
from rules.sql.frame import Frame
from rules.sql.growth import compared, grown, names_of, with_changes
from rules.sql.statement import Statement, Unrenderable, indented, limit_lines, where_lines


def render(query: Query, schema: Schema, graph: Graph) -> str:
    """The statement that answers `query`.

    Raises:
        AmbiguousPath: a table can be reached in several equally good ways.
        LookupError: nothing connects the tables.
        Unrenderable: the joins would count rows of a figure more than once.
    """
    text = _text(Statement(query, schema, graph))
    if query.counts_rows:
        return f"SELECT count(*) AS row_count\nFROM (\n{indented(text)}\n) AS matching"
    return text


def _text(statement: Statement) -> str:
    query = statement.query
    if query.growth is not None:
        return grown(statement)
    if query.comparison is not None:
        is_plain = all(not (one.per or one.is_share or one.function == "metric") for one in query.measures)
        return with_changes(statement, compared(statement) if is_plain else _of_sides(statement, query.comparison))
    bases = list(dict.fromkeys((measure.table, statement.filter_of(measure)) for measure in query.measures))
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
    inner = Statement(
        replace(query, measures=(replace(measure, per=None),), dimensions=(*query.dimensions, measure.per), order=()),
        statement.schema,
        statement.graph,
    )
    frame = inner.frame()
    groups = [inner.group_columns(frame, dimension) for dimension in inner.query.dimensions]
    flat = [sql for columns in groups for sql in columns]
    names = [f"g{index}" for index in range(len(flat))]
    outputs = [f"{sql} AS {name}" for sql, name in zip(flat, names, strict=True)]
    outputs.append(f"{inner.aggregate_sql(frame, inner.query.measures[0])} AS figure")
    body = [
        "SELECT " + ", ".join(outputs),
        *frame.from_lines(),
        *where_lines(frame.conditions()),
        "GROUP BY " + ", ".join(dict.fromkeys(flat)),
    ]
    outer = names[: len(flat) - len(groups[-1])]
    alias = quoted(statement.alias(measure))
    return "\n".join(
        [
            "SELECT " + ", ".join([*_outer_names(statement, inner, frame, outer), f"avg(figure) AS {alias}"]),
            f"FROM (\n{indented(chr(10).join(body))}\n) AS grouped",
            *_outer_order(query, alias, outer),
        ]
    )


def _outer_names(statement: Statement, inner: Statement, frame: Frame, names: list[str]) -> list[str]:
    """The group columns of the inner statement that the outer one shows, under their own names."""
    shown: list[str] = []
    remaining = iter(names)
    for dimension in statement.query.dimensions:
        visible = {
            frame.column(ColumnRef(dimension.table, name, dimension.via)): name for name in statement.shown(dimension)
        }
        for sql in inner.group_columns(frame, dimension):
            name = next(remaining)
            if dimension.column is not None:
                shown.append(f"{name} AS {quoted(group_name(dimension))}")
            elif sql in visible:
                shown.append(f"{name} AS {quoted(visible[sql])}")
    return shown


def _outer_order(query: Query, alias: str, outer: list[str]) -> list[str]:
    lines = []
    if outer:
        ascending = bool(query.order) and not query.order[0].descending
        lines = ["GROUP BY " + ", ".join(outer), f"ORDER BY {alias}{'' if ascending else ' DESC NULLS LAST'}"]
    return [*lines, *limit_lines(query)]


def _top_of_groups(statement: Statement) -> str:
    """The statement for the first rows of each group: an inner one numbers them, the outer one cuts."""
    query = statement.query
    frame = statement.frame()
    outputs = [*statement.dimension_outputs(frame), *statement.column_outputs(frame)]
    outputs += [statement.measure_output(frame, measure) for measure in query.measures]
    aliases = [output.name for output in outputs]
    partition = [sql for dimension in query.top_per for sql in statement.group_columns(frame, dimension)]
    order = query.order[0]
    if order.measure is not None:
        by = statement.aggregate_sql(frame, order.measure)
    else:
        by = frame.column(order.column or query.columns[0])
    direction = " DESC NULLS LAST" if order.descending else ""
    # All that share the first place are shown; of the first three, each place is given to one row.
    ties = (
        ""
        if (query.limit or 1) == 1
        else f", {statement.group_columns(frame, query.dimensions[-1])[0]}"
        if query.dimensions
        else ""
    )
    if not query.dimensions and (query.limit or 1) > 1 and len(query.order) > 1 and query.order[1].column is not None:
        ties = f", {frame.column(query.order[1].column)}"
    function = "row_number" if ties else "rank"
    rank = f"{function}() OVER (PARTITION BY {', '.join(partition)} ORDER BY {by}{direction}{ties})"
    body = [
        "SELECT " + ", ".join([*map(str, outputs), f"{rank} AS place"]),
        *frame.from_lines(),
        *where_lines(frame.conditions()),
        *statement.group_by(frame),
    ]
    return "\n".join(
        [
            "SELECT " + ", ".join(aliases),
            f"FROM (\n{indented(chr(10).join(body))}\n) AS ranked",
            f"WHERE place <= {query.limit or 1}",
            f"ORDER BY {aliases[0]}, place",
        ]
    )


def _several_bases(statement: Statement, bases: list[tuple[TableKey, str | None]]) -> str:
    """The statement for figures of different rows: each is aggregated alone, then they are joined on the groups."""
    query = statement.query
    if query.having or query.top_per or any(measure.per or measure.is_share for measure in query.measures):
        raise Unrenderable("figures of several tables only stand side by side")
    parts: list[tuple[str, str, tuple[Measure, ...]]] = []
    tables = [table for table, _ in bases]
    for number, (base, own_filter) in enumerate(bases):
        measures = tuple(one for one in query.measures if (one.table, statement.filter_of(one)) == (base, own_filter))
        # A period on the date of one table restricts only the figures of that table.
        conditions = tuple(
            one
            for one in query.conditions
            if one.operator not in ("during", "not during")
            or one.column.table == base
            or one.column.table not in tables
        )
        part = replace(query, base=base, measures=measures, conditions=conditions, order=(), limit=None)
        text = Statement(part, statement.schema, statement.graph, whole=query).text(with_keys=True)
        again = f"_{number + 1}" if base in tables[:number] else ""
        parts.append((quoted(f"by_{base[1]}{again}".lower()), text, measures))
    with_ = "WITH " + ",\n".join(f"{name} AS (\n{indented(text)}\n)" for name, text, _ in parts) + "\n"
    return with_ + (_joined(statement, parts) if query.dimensions else _side_by_side(statement, parts))


def _of_sides(statement: Statement, sides: Comparison) -> str:
    """The figures of both sides, where they are more than one function over rows: each side is asked for by itself."""
    query, texts = statement.query, []
    if any(one.per for one in query.measures) and statement.key_names():
        raise Unrenderable("averages of groups are not kept apart by the keys of other groups")
    for side in (sides.first, sides.second):
        part = replace(query, conditions=(*query.conditions, *side), comparison=None, having=(), order=(), limit=None)
        inner = statement.of(part)
        texts.append(_text(inner) if any(one.per for one in query.measures) else inner.text(with_keys=True))
    with_ = "WITH " + ", ".join(
        f"{name} AS (\n{indented(text)}\n)" for name, text in zip(("side_1", "side_2"), texts, strict=True)
    )
    figures = []
    for measure in query.measures:
        alias, names = quoted(statement.alias(measure)), names_of(measure, statement)
        for source, name in (("side_1", names.before), ("side_2", names.after)):
            figure = f"{source}.{alias}" if query.dimensions else f"(SELECT {alias} FROM {source})"
            figures.append(f"{figure} AS {quoted(name)}")
    if not query.dimensions:
        return f"{with_}\nSELECT {', '.join(figures)}"
    shown = [name for names in statement.group_names() for name in names]
    keys = [*shown, *statement.key_names()]
    return f"{with_}\nSELECT {', '.join([*shown, *figures])}\nFROM side_1\nFULL JOIN side_2 USING ({', '.join(keys)})"


def _side_by_side(statement: Statement, parts: list[tuple[str, str, tuple[Measure, ...]]]) -> str:
    aliases = [(name, quoted(statement.alias(measure))) for name, _, measures in parts for measure in measures]
    return "SELECT " + ", ".join(f"(SELECT {alias} FROM {name}) AS {alias}" for name, alias in aliases)


def _joined(statement: Statement, parts: list[tuple[str, str, tuple[Measure, ...]]]) -> str:
    query = statement.query
    shown = _shared_names(statement)
    keys = [*shown, *statement.key_names()]
    figures = [quoted(statement.alias(measure)) for measure in query.measures]
    lines = ["SELECT " + ", ".join([*shown, *figures]), f"FROM {parts[0][0]}"]
    lines += [f"FULL JOIN {name} USING ({', '.join(keys)})" for name, _, _ in parts[1:]]
    order = query.order[0] if query.order else None
    if order is not None and order.measure is not None:
        direction = " DESC NULLS LAST" if order.descending else ""
        lines.append(f"ORDER BY {quoted(statement.alias(order.measure))}{direction}, {keys[0]}")
    else:
        lines.append(f"ORDER BY {keys[0]}")
    return "\n".join([*lines, *limit_lines(query)])


def _shared_names(statement: Statement) -> list[str]:
    names: list[str] = []
    for dimension in statement.query.dimensions:
        if dimension.column is not None:
            names.append(group_name(dimension))
        else:
            names += statement.shown(dimension)
    return [quoted(name) for name in names]
