"""A `Query` as PostgreSQL: readable, qualified only where needed, never counting a row twice."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agent.skills.offline.frame import Frame
from agent.skills.offline.identifiers import quoted
from agent.skills.offline.joins import Graph
from agent.skills.offline.query import ColumnRef, Dimension, Having, Measure, Order, Query
from agent.skills.offline.schema import Facts, Schema, TableKey, kind_of


class Unrenderable(Exception):
    """The structure can't be put into one correct statement; the message names the reason for the log."""


def render(query: Query, schema: Schema, graph: Graph) -> str:
    """The statement that answers `query`.

    Raises:
        AmbiguousPath: a table can be reached in several equally good ways.
        Unrenderable: tables that nothing connects, or a figure that the joins would multiply.
    """
    statement = _Statement(query, schema, graph)
    text = statement.text()
    if query.counts_rows:
        return f"SELECT count(*) AS row_count\nFROM (\n{_indented(text)}\n) AS matching"
    return text


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


@dataclass(frozen=True)
class _Output:
    """One column of the result: its expression and the name it gets (None keeps the column's own)."""

    sql: str
    alias: str | None = None

    def __str__(self) -> str:
        return f"{self.sql} AS {quoted(self.alias)}" if self.alias else self.sql


class _Statement:
    def __init__(self, query: Query, schema: Schema, graph: Graph) -> None:
        self._query, self._schema, self._graph = query, schema, graph

    def text(self) -> str:
        query = self._query
        bases = list(dict.fromkeys(measure.table for measure in query.measures))
        if len(bases) > 1:
            return self._several_bases(bases)
        if query.measures and any(measure.per for measure in query.measures):
            return self._average_of_groups()
        if query.top_per:
            return self._top_of_groups()
        return self._simple()

    def _frame(self) -> Frame:
        query = self._query
        base = query.measures[0].table if query.measures else query.base
        frame = Frame(self._schema, self._graph, base, query.with_deleted)
        needed = [(dim.table, dim.via) for dim in (*query.dimensions, *query.top_per)]
        needed += [(column.table, column.via) for column in query.columns]
        needed += [(key.column.table, key.column.via) for key in query.order if key.column is not None]
        needed += [(one.column.table, one.column.via) for measure in query.measures for one in measure.share_of]
        preferred = frozenset(related.table for related in query.related)
        if not frame.include(needed, preferred):
            raise Unrenderable(f"nothing connects {base} with {needed}")
        frame.restrict(query.conditions, query.related)
        return frame

    def _simple(self) -> str:
        frame = self._frame()
        query = self._query
        if frame.multiplies and any(measure.function in ("sum", "avg") for measure in query.measures):
            frame = self._deduplicated(frame)
        outputs = [*self._dimension_outputs(frame), *self._column_outputs(frame)]
        outputs += [self._measure_output(frame, measure) for measure in query.measures]
        lines = [
            f"SELECT {'DISTINCT ' if query.distinct else ''}" + ", ".join(map(str, outputs)),
            *frame.from_lines(),
            *_where(frame.conditions()),
            *self._group_by(frame),
            *self._having(frame),
            *self._order_by(frame),
        ]
        if query.limit is not None:
            lines.append(f"LIMIT {query.limit}")
        return "\n".join(lines)

    def _deduplicated(self, frame: Frame) -> Frame:
        """A frame that counts each measured row once per group; only meeting tables keyed by the two sides do."""
        if not frame.is_keyed_by_meeting():
            raise Unrenderable("the joins would count measured rows several times")
        return frame

    # ------------------------------------------------------------------------------------------------------- outputs

    def _facts(self, key: TableKey) -> Facts:
        return self._schema.facts[key]

    def _shown(self, dimension: Dimension) -> tuple[str, ...]:
        """Columns that show a dimension's entity."""
        facts = self._facts(dimension.table)
        return facts.display or facts.key or (facts.table.columns[0].name,)

    def _dimension_outputs(self, frame: Frame) -> list[_Output]:
        outputs: list[_Output] = []
        for dimension in self._query.dimensions:
            if dimension.column is None:
                outputs += [
                    _Output(frame.column(ColumnRef(dimension.table, name, dimension.via)))
                    for name in self._shown(dimension)
                ]
            else:
                outputs.append(_Output(self._dimension_sql(frame, dimension), dimension.bucket))
        return _disambiguated(outputs, self._query, self._schema)

    def _dimension_sql(self, frame: Frame, dimension: Dimension) -> str:
        assert dimension.column is not None
        column = frame.column(ColumnRef(dimension.table, dimension.column, dimension.via))
        if dimension.bucket is None:
            return column
        kind = kind_of(self._schema.column(dimension.table, dimension.column))
        if dimension.bucket == "day" and kind == "date":
            return column
        if dimension.bucket == "day":
            return f"{column}::date"
        return f"date_trunc('{dimension.bucket}', {column})::date"

    def _column_outputs(self, frame: Frame) -> list[_Output]:
        names = [column.column for column in self._query.columns]
        outputs = []
        for column in self._query.columns:
            twice = names.count(column.column) > 1
            alias = f"{column.table[1]}_{column.column}" if twice and column.table != self._query.base else None
            outputs.append(_Output(frame.column(column), alias))
        return outputs

    def _measure_output(self, frame: Frame, measure: Measure) -> _Output:
        return _Output(self._measure_sql(frame, measure), measure_alias(measure, self._query))

    def _measure_sql(self, frame: Frame, measure: Measure) -> str:
        plain = self._aggregate_sql(frame, measure)
        if not measure.is_share:
            return plain
        if measure.share_of:
            part = " AND ".join(frame.condition(condition) for condition in measure.share_of)
            return f"round(100.0 * {plain} FILTER (WHERE {part}) / nullif({plain}, 0), 2)"
        return f"round(100.0 * {plain} / nullif(sum({plain}) OVER (), 0), 2)"

    def _aggregate_sql(self, frame: Frame, measure: Measure) -> str:
        if measure.column is None:
            return self._count_rows_sql(frame, measure)
        column = frame.column(ColumnRef(measure.table, measure.column, is_age=measure.is_age))
        if kind_of(self._schema.column(measure.table, measure.column)) == "number":
            column = frame.numeric(ColumnRef(measure.table, measure.column))
        if measure.times is not None:
            column = f"{column} * {frame.numeric(ColumnRef(measure.table, measure.times))}"
        if measure.function == "count_distinct":
            return f"count(DISTINCT {column})"
        return f"{measure.function}({column})"

    def _count_rows_sql(self, frame: Frame, measure: Measure) -> str:
        if not frame.multiplies:
            return "count(*)"
        key = self._facts(measure.table).key
        if not key:
            raise Unrenderable(f"{measure.table} has no key to count by")
        columns = ", ".join(frame.column(ColumnRef(measure.table, name)) for name in key)
        return f"count(DISTINCT {columns})" if len(key) == 1 else f"count(DISTINCT ({columns}))"

    # ------------------------------------------------------------------------------------------------ group and order

    def _group_columns(self, frame: Frame, dimension: Dimension) -> list[str]:
        if dimension.column is not None:
            return [self._dimension_sql(frame, dimension)]
        names = dict.fromkeys((*self._facts(dimension.table).key, *self._shown(dimension)))
        return [frame.column(ColumnRef(dimension.table, name, dimension.via)) for name in names]

    def _group_by(self, frame: Frame) -> list[str]:
        if not self._query.measures or not self._query.dimensions:
            return []
        columns = dict.fromkeys(sql for dim in self._query.dimensions for sql in self._group_columns(frame, dim))
        return ["GROUP BY " + ", ".join(columns)]

    def _having(self, frame: Frame) -> list[str]:
        if not self._query.having:
            return []
        return ["HAVING " + " AND ".join(self._having_sql(frame, having) for having in self._query.having)]

    def _having_sql(self, frame: Frame, having: Having) -> str:
        return frame.comparison(self._aggregate_sql(frame, having.measure), having.operator, having.operands)

    def _order_by(self, frame: Frame) -> list[str]:
        keys = [self._order_sql(frame, order) for order in self._query.order]
        return ["ORDER BY " + ", ".join(dict.fromkeys(keys))] if keys else []

    def _order_sql(self, frame: Frame, order: Order) -> str:
        if order.measure is not None:
            alias = quoted(measure_alias(order.measure, self._query))
            return f"{alias} DESC NULLS LAST" if order.descending else alias
        if order.column is not None:
            column = frame.column(order.column)
            return f"{column} DESC NULLS LAST" if order.descending else column
        dimension = self._query.dimensions[0]
        columns = self._group_columns(frame, dimension)
        if dimension.column is None:
            columns = [frame.column(ColumnRef(dimension.table, name, dimension.via)) for name in self._shown(dimension)]
        return ", ".join(f"{column} DESC" if order.descending else column for column in columns)

    # ---------------------------------------------------------------------------------------------- composed statements

    def _average_of_groups(self) -> str:
        """Averages of per-group figures: the inner statement groups by the dimensions and `per`, the outer averages."""
        query = self._query
        measure = query.measures[0]
        if len(query.measures) > 1 or query.having or measure.per is None:
            raise Unrenderable("an average of groups stands alone")
        inner_measure = replace(measure, per=None)
        inner_query = replace(
            query,
            measures=(inner_measure,),
            dimensions=(*query.dimensions, measure.per),
            order=(),
            limit=None,
            counts_rows=False,
        )
        inner = _Statement(inner_query, self._schema, self._graph)
        frame = inner._frame()
        groups = [inner._group_columns(frame, dim) for dim in inner_query.dimensions]
        names = [f"g{index}" for index, _ in enumerate(sql for columns in groups for sql in columns)]
        flat = [sql for columns in groups for sql in columns]
        figure = inner._aggregate_sql(frame, inner_measure)
        body = [
            "SELECT "
            + ", ".join([*(f"{sql} AS {name}" for sql, name in zip(flat, names, strict=True)), f"{figure} AS figure"]),
            *frame.from_lines(),
            *_where(frame.conditions()),
            "GROUP BY " + ", ".join(dict.fromkeys(flat)),
        ]
        outer = names[: sum(len(columns) for columns in groups[:-1])]
        alias = quoted(measure_alias(measure, query))
        shown = self._outer_names(frame, inner, outer)
        lines = [
            "SELECT " + ", ".join([*shown, f"avg(figure) AS {alias}"]),
            f"FROM (\n{_indented(chr(10).join(body))}\n) AS grouped",
        ]
        if outer:
            lines.append("GROUP BY " + ", ".join(outer))
            lines.append(
                f"ORDER BY {alias}{'' if query.order and not query.order[0].descending else ' DESC NULLS LAST'}"
            )
        if query.limit is not None:
            lines.append(f"LIMIT {query.limit}")
        return "\n".join(lines)

    def _outer_names(self, frame: Frame, inner: "_Statement", names: list[str]) -> list[str]:
        """The inner statement's group columns that are shown, under their own names."""
        shown: list[str] = []
        index = 0
        for dimension in self._query.dimensions:
            columns = inner._group_columns(frame, dimension)
            visible = {
                frame.column(ColumnRef(dimension.table, name, dimension.via)): name for name in self._shown(dimension)
            }
            for sql in columns:
                if dimension.column is not None:
                    shown.append(f"{names[index]} AS {quoted(dimension.bucket or dimension.column)}")
                elif sql in visible:
                    shown.append(f"{names[index]} AS {quoted(visible[sql])}")
                index += 1
        return shown

    def _top_of_groups(self) -> str:
        """The first rows of each group: a ranked inner statement, cut outside."""
        query = self._query
        inner = _Statement(replace(query, top_per=(), limit=None), self._schema, self._graph)
        frame = self._frame()
        outputs = [*self._dimension_outputs(frame), *self._column_outputs(frame)]
        outputs += [self._measure_output(frame, measure) for measure in query.measures]
        aliases = [output.alias or output.sql.split(".")[-1] for output in outputs]
        partition = [sql for dim in query.top_per for sql in inner._group_columns(frame, dim)]
        order = query.order[0]
        by = (
            self._aggregate_sql(frame, order.measure)
            if order.measure
            else frame.column(order.column or query.columns[0])
        )
        rank = f"rank() OVER (PARTITION BY {', '.join(partition)} ORDER BY {by}{' DESC NULLS LAST' if order.descending else ''})"
        body = [
            "SELECT " + ", ".join([*map(str, outputs), f"{rank} AS place"]),
            *frame.from_lines(),
            *_where(frame.conditions()),
            *inner._group_by(frame),
        ]
        return "\n".join(
            [
                "SELECT " + ", ".join(aliases),
                f"FROM (\n{_indented(chr(10).join(body))}\n) AS ranked",
                f"WHERE place <= {query.limit or 1}",
                "ORDER BY " + ", ".join([aliases[0], "place"]),
            ]
        )

    def _several_bases(self, bases: list[TableKey]) -> str:
        """Figures of different tables side by side: each aggregated alone, then joined on the groups."""
        query = self._query
        if query.having or query.top_per or any(measure.per or measure.is_share for measure in query.measures):
            raise Unrenderable("figures of several tables only stand side by side")
        parts = []
        for base in bases:
            measures = tuple(measure for measure in query.measures if measure.table == base)
            part = replace(query, base=base, measures=measures, order=(), limit=None)
            parts.append((f"by_{base[1]}".lower(), _Statement(part, self._schema, self._graph)._simple(), measures))
        if not query.dimensions:
            columns = [
                f"(SELECT {quoted(measure_alias(m, query))} FROM {quoted(name)})" for name, _, ms in parts for m in ms
            ]
            aliases = [quoted(measure_alias(m, query)) for _, _, ms in parts for m in ms]
            select = "SELECT " + ", ".join(f"{sql} AS {alias}" for sql, alias in zip(columns, aliases, strict=True))
            return _with(parts) + select
        keys = self._shared_names()
        lines = [
            f"SELECT {', '.join([*keys, *(quoted(measure_alias(m, query)) for m in query.measures)])}",
            f"FROM {quoted(parts[0][0])}",
        ]
        lines += [f"FULL JOIN {quoted(name)} USING ({', '.join(keys)})" for name, _, _ in parts[1:]]
        order = query.order[0] if query.order else None
        if order is not None and order.measure is not None:
            alias = quoted(measure_alias(order.measure, query))
            lines.append(f"ORDER BY {alias}{' DESC NULLS LAST' if order.descending else ''}, {keys[0]}")
        else:
            lines.append(f"ORDER BY {keys[0]}")
        if query.limit is not None:
            lines.append(f"LIMIT {query.limit}")
        return _with(parts) + "\n".join(lines)

    def _shared_names(self) -> list[str]:
        names: list[str] = []
        for dimension in self._query.dimensions:
            if dimension.column is not None:
                names.append(dimension.bucket or dimension.column)
            else:
                names += self._shown(dimension)
        return [quoted(name) for name in names]


def _with(parts: list[tuple[str, str, tuple[Measure, ...]]]) -> str:
    return "WITH " + ",\n".join(f"{quoted(name)} AS (\n{_indented(sql)}\n)" for name, sql, _ in parts) + "\n"


def _where(conditions: Iterable[str]) -> list[str]:
    conditions = list(conditions)
    return ["WHERE " + "\n  AND ".join(conditions)] if conditions else []


def _disambiguated(outputs: list[_Output], query: Query, schema: Schema) -> list[_Output]:
    """Two entities shown by columns of one name (customer.name, product.name) get their table's name in front."""
    bare = [output.sql.split(".")[-1] for output in outputs]
    if len(set(bare)) == len(bare):
        return outputs
    owners: list[str] = []
    for dimension in query.dimensions:
        facts = schema.facts[dimension.table]
        shown = 1 if dimension.column else len(facts.display or facts.key or (1,))
        owners += [dimension.table[1]] * shown
    return [
        output if bare.count(name) == 1 or output.alias else _Output(output.sql, f"{owner}_{name}".replace('"', ""))
        for output, name, owner in zip(outputs, bare, owners, strict=True)
    ]


_PREFIXES = {
    "sum": "total",
    "avg": "average",
    "min": "min",
    "max": "max",
    "count": "count",
    "count_distinct": "distinct",
}


def measure_alias(measure: Measure, query: Query) -> str:
    """The result column's name of a measure, unique within the query."""
    if measure.column is None:
        name = f"{measure.table[1]}_count"
    elif measure.function == "count_distinct":
        name = f"{measure.column}_count"
    elif measure.times is not None:
        name = f"{_PREFIXES[measure.function]}_{measure.column}_x_{measure.times}"
    else:
        name = f"{_PREFIXES[measure.function]}_{measure.column}"
    if measure.per is not None:
        name = f"average_{name}"
    if measure.is_share:
        name = f"{name}_percent"
    twins = [other for other in query.measures if other != measure and other.column == measure.column]
    clash = any(other.function == measure.function and other.table != measure.table for other in twins)
    return f"{measure.table[1]}_{name}" if clash and measure.column is not None else name
