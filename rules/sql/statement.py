"""Writes one SELECT over one frame: what is shown, grouped, compared and ordered."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from common.meanings import TableKey
from common.postgres.identifiers import quoted
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Dimension, Measure, Order, Query, measured_table
from rules.schema.facts import Facts, kind_of
from rules.schema.joins import Graph
from rules.schema.schema import Schema
from rules.sql.column_names import Output, direction, disambiguated, group_name, measure_alias
from rules.sql.comparisons import comparison
from rules.sql.frame import Frame
from rules.sql.identifiers import is_float_type, number
from rules.sql.joined_tables import Scope


class Unrenderable(Exception):
    """No correct statement can be made of the query; the message gives the reason, for the log."""


class Statement:
    """Writes one query as one SELECT.

    Args:
        whole: the query of which this one is a part; its figures decide the names of columns.
    """

    def __init__(self, query: Query, schema: Schema, graph: Graph, whole: Query | None = None) -> None:
        self.query, self.schema, self.graph = query, schema, graph
        self._whole = whole or query

    def alias(self, measure: Measure) -> str:
        """The name of a figure's column in the result."""
        return measure_alias(measure, self._whole)

    def of(self, query: Query) -> "Statement":
        """Another statement over the same tables, whose figures are called as in this one."""
        return Statement(query, self.schema, self.graph, self._whole)

    def frame(self) -> Frame:
        """The FROM and WHERE that the query needs."""
        query = self.query
        base = measured_table(query)
        frame = Frame(Scope(self.schema, self.graph, query.with_deleted, query.through), base)
        needed = [(dim.table, dim.via) for dim in (*query.dimensions, *query.top_per)]
        needed += [(column.table, column.via) for column in query.columns]
        needed += [(key.column.table, key.column.via) for key in query.order if key.column is not None]
        needed += [(one.column.table, one.column.via) for measure in query.measures for one in measure.share_of]
        preferred = query.through | {related.table for related in query.related}
        if not frame.include(needed, preferred):
            raise Unrenderable(f"nothing connects {base} with {needed}")
        added = any(_weighs(measure) and measure.function != "count" for measure in query.measures)
        alternatives = [one for each in query.either for one in each.conditions]
        if added and not self._facts(base).is_entity and frame.has_beside([*query.conditions, *alternatives]):
            raise Unrenderable("a sum over events can't be restricted by what only parts of them have")
        if query.all_of is not None:
            self._keep_all(frame, query.all_of)
        frame.speak_of((one.table, one.column) for one in (*query.dimensions, *query.top_per))
        filters = {self.filter_of(one) for one in (*query.measures, *(having.measure for having in query.having))}
        if len(filters) > 1:
            raise Unrenderable("figures of different rows are compared")
        sides = (query.comparison.first, query.comparison.second) if query.comparison is not None else ()
        frame.restrict(query.conditions, query.related, query.either, sides, filters.pop() if filters else None)
        return frame

    def filter_of(self, measure: Measure) -> str | None:
        """The condition that a metric puts on its rows."""
        return self.schema.metric(measure.table, measure.column).filter if measure.function == "metric" else None

    def _keep_all(self, frame: Frame, table: TableKey) -> None:
        dimensions = (*self.query.dimensions, *self.query.top_per)
        frame.keep_all(table, next((one.via for one in dimensions if one.table == table), None))
        if not all(frame.is_kept(one.table, one.via) for one in dimensions):
            raise Unrenderable(f"what nothing was measured for is in no group but those of {table}")
        if self.query.related:
            raise Unrenderable("it is not known whether groups or what is measured must have others")

    def is_known_by_name(self, dimension: Dimension) -> bool:
        """Whether what is shown of a group tells it apart from all others, and is never NULL."""
        if dimension.column is None:
            return not self._facts(dimension.table).key
        return not self.schema.column(dimension.table, dimension.column).nullable

    def key_outputs(self, frame: Frame) -> list[Output]:
        """The columns that identify the groups which are not known by what is shown of them."""
        found: list[str] = []
        for dimension in (one for one in self.query.dimensions if not self.is_known_by_name(one)):
            if dimension.column is not None:  # as text, in which NULL equals NULL
                found.append(f"ROW({self._dimension_sql(frame, dimension)})::text")
            else:
                refs = (ColumnRef(dimension.table, one, dimension.via) for one in self._facts(dimension.table).key)
                found += map(frame.column, refs)
        return [Output(sql, f"key{index}") for index, sql in enumerate(found)]

    def text(self, *, with_keys: bool = False) -> str:
        """The statement; `with_keys` adds the columns that identify the groups, on which it is joined with others."""
        query, frame = self.query, self.sound_frame()
        outputs = [*self.dimension_outputs(frame), *self.column_outputs(frame)]
        outputs += [self.measure_output(frame, measure) for measure in query.measures]
        outputs += self.key_outputs(frame) if with_keys else []
        lines = [self.selected(frame, outputs), *self._having(frame), *self._order_by(frame)]
        return "\n".join([*lines, *limit_lines(query)])

    def selected(self, frame: Frame, outputs: Iterable[Output]) -> str:
        """The statement of these columns as far as its groups."""
        select = f"SELECT {'DISTINCT ' if self.query.distinct else ''}" + ", ".join(map(str, outputs))
        return "\n".join([select, *frame.from_lines(), *where_lines(frame.conditions()), *self.group_by(frame)])

    def sound_frame(self) -> Frame:
        """The frame, if it counts each measured row once per group.

        Below the base that is so only for a link table whose key consists of its two references.
        """
        frame = self.frame()
        weighs = frame.multiplies and any(map(_weighs, self.query.measures))
        if weighs and not frame.is_keyed_by_meeting():
            raise Unrenderable("the joins would count measured rows several times")
        return frame

    def _facts(self, key: TableKey) -> Facts:
        return self.schema.facts[key]

    def shown(self, dimension: Dimension) -> tuple[str, ...]:
        """The names of the columns that show a dimension."""
        return self._facts(dimension.table).shown

    def _shown_columns(self, frame: Frame, dimension: Dimension) -> list[str]:
        refs = (ColumnRef(dimension.table, name, dimension.via) for name in self.shown(dimension))
        return [frame.column(ref) for ref in refs]

    def dimension_outputs(self, frame: Frame) -> list[Output]:
        """The columns of all dimensions."""
        outputs: list[Output] = []
        for dimension in self.query.dimensions:
            if dimension.column is None:
                outputs += map(Output, self._shown_columns(frame, dimension))
            else:
                name = group_name(dimension)
                sql = self._dimension_sql(frame, dimension)
                outputs.append(Output(sql, name if name != dimension.column else None))
        return disambiguated(outputs, self.query, self.schema)

    def group_names(self) -> list[list[str]]:
        """What the columns of each dimension are called, as SQL writes them."""
        names = iter(self.dimension_outputs(self.frame()))
        return [
            [next(names).name for _ in (self.shown(one) if one.column is None else "1")]
            for one in self.query.dimensions
        ]

    def is_float(self, measure: Measure) -> bool:
        """Whether the figure is of a type that can't be rounded to digits."""
        if measure.column is None or measure.function == "metric":
            return False
        type_ = self.schema.column(measure.table, measure.column).type
        return is_float_type(type_) or measure.is_age or FUNCTIONS[measure.function].is_float

    def _dimension_sql(self, frame: Frame, dimension: Dimension) -> str:
        assert dimension.column is not None
        ref = ColumnRef(dimension.table, dimension.column, dimension.via, part=dimension.part)
        if dimension.bucket is None:
            return frame.column(ref)
        column = frame.dated(ref)
        if dimension.bucket == "day":
            is_day = kind_of(self.schema.column(dimension.table, dimension.column)) == "date"
            return column if is_day else f"{column}::date"
        return f"date_trunc('{dimension.bucket}', {column})::date"

    def column_outputs(self, frame: Frame) -> list[Output]:
        """The listed columns."""
        names = [(column.column, column.part) for column in self.query.columns]
        outputs = []
        for column in self.query.columns:
            twice = names.count((column.column, column.part)) > 1
            alias = f"{column.table[1]}_{column.column}" if twice and column.table != self.query.base else None
            alias = alias if column.part is None else f"{column.column}_{PARTS[column.part].name}"
            outputs.append(Output(frame.column(column), alias))
        return outputs

    def measure_output(self, frame: Frame, measure: Measure) -> Output:
        """The column of one figure."""
        return Output(self._measure_sql(frame, measure), self.alias(measure))

    def _measure_sql(self, frame: Frame, measure: Measure) -> str:
        plain = self.aggregate_sql(frame, measure)
        if measure.is_running:
            return self._running_sql(frame, measure, plain)
        if not measure.is_share:
            return plain
        if measure.share_of:
            only = " AND ".join(frame.condition(condition) for condition in measure.share_of)
            return percentage(self.aggregate_sql(frame, measure, only), plain, self.is_float(measure))
        return percentage(plain, f"sum({plain}) OVER ()", self.is_float(measure))

    def _running_sql(self, frame: Frame, measure: Measure, plain: str) -> str:
        """The figure of a group and of all before it."""
        dated = [one for one in self.query.dimensions if one.bucket is not None]
        others = [sql for one in self.query.dimensions if one not in dated for sql in self.group_columns(frame, one)]
        if measure.function not in ("sum", "count") or len(dated) > 1 or not self.query.dimensions:
            raise Unrenderable("only sums and counts of groups are added up")
        keys, partition = [f"{plain} DESC NULLS LAST", *others], ""
        if dated:
            keys, partition = self.group_columns(frame, dated[0]), partition_by(others)
        so_far = f"sum({plain}) OVER ({partition}ORDER BY {', '.join(keys)})"
        total = f"sum({plain}) OVER ({partition.strip()})"
        return percentage(so_far, total, self.is_float(measure)) if measure.is_share else so_far

    def aggregate_sql(self, frame: Frame, measure: Measure, only: str | None = None) -> str:
        """A measure as an aggregate function, of the rows that meet the condition `only`."""
        filtered = f" FILTER (WHERE {only})" if only is not None else ""
        if measure.column is None:
            return f"{self._count_rows_sql(frame, measure)}{filtered}"
        if measure.function == "metric":
            return frame.expression(measure.table, self.schema.metric(measure.table, measure.column).expression)
        column = frame.column(ColumnRef(measure.table, measure.column, is_age=measure.is_age))
        if kind_of(self.schema.column(measure.table, measure.column)) == "number":
            column = frame.numeric(ColumnRef(measure.table, measure.column))
        if measure.times is not None:
            column = f"{column} * {frame.numeric(ColumnRef(measure.table, measure.times))}"
        at = number((measure.percent or Decimal(50)) / 100)
        plain = FUNCTIONS[measure.function].sql.replace("{at}", at).replace("{}", column) + filtered
        # A group that sold nothing in one of two periods sold 0; where nobody did, figures may not be known yet.
        is_zero = frame.keeps_all or (self.query.comparison is not None and self.query.dimensions)
        return f"coalesce({plain}, 0)" if is_zero and measure.function == "sum" else plain

    def _count_rows_sql(self, frame: Frame, measure: Measure) -> str:
        if not frame.multiplies:
            return f"count({frame.presence()})" if frame.keeps_all else "count(*)"
        key = self._facts(measure.table).key
        if not key:
            raise Unrenderable(f"{measure.table} has no key to count by")
        columns = ", ".join(frame.column(ColumnRef(measure.table, name)) for name in key)
        return f"count(DISTINCT {columns})" if len(key) == 1 else f"count(DISTINCT ({columns}))"

    def group_columns(self, frame: Frame, dimension: Dimension) -> list[str]:
        """What a dimension groups by: its column, or the key and names of its table."""
        if dimension.column is not None:
            return [self._dimension_sql(frame, dimension)]
        names = dict.fromkeys((*self._facts(dimension.table).key, *self.shown(dimension)))
        return [frame.column(ColumnRef(dimension.table, name, dimension.via)) for name in names]

    def group_by(self, frame: Frame) -> list[str]:
        """The GROUP BY line, when there are groups."""
        if not self.query.measures or not self.query.dimensions:
            return []
        columns = dict.fromkeys(sql for dim in self.query.dimensions for sql in self.group_columns(frame, dim))
        return ["GROUP BY " + ", ".join(columns)]

    def _having(self, frame: Frame) -> list[str]:
        having = [
            comparison(self.aggregate_sql(frame, one.measure), one.operator, one.operands) for one in self.query.having
        ]
        return ["HAVING " + " AND ".join(having)] if having else []

    def _order_by(self, frame: Frame) -> list[str]:
        keys = [self._order_sql(frame, order) for order in self.query.order]
        return ["ORDER BY " + ", ".join(dict.fromkeys(keys))] if keys else []

    def _order_sql(self, frame: Frame, order: Order) -> str:
        if order.measure is not None:
            return quoted(self.alias(order.measure)) + direction(order.descending)
        if order.column is not None:
            return frame.column(order.column) + direction(order.descending)
        dimension = self.query.dimensions[0]
        is_entity = dimension.column is None
        columns = self._shown_columns(frame, dimension) if is_entity else self.group_columns(frame, dimension)
        return ", ".join(f"{column} DESC" if order.descending else column for column in columns)


def percentage(part: str, whole: str, is_float: bool = False) -> str:
    """The part in percent of the whole, NULL where that is 0."""
    quotient = f"100.0 * {part} / nullif({whole}, 0)"
    return f"round(({quotient})::numeric, 4)" if is_float else f"round({quotient}, 4)"


def partition_by(columns: Sequence[str]) -> str:
    """The beginning of a window that is apart for each of the groups."""
    return f"PARTITION BY {', '.join(columns)} " if columns else ""


def limit_lines(query: Query) -> list[str]:
    """The LIMIT line, when there is one."""
    return [f"LIMIT {query.limit}"] if query.limit is not None else []


def indented(text: str) -> str:
    """The lines of a statement within another."""
    return "\n".join(f"    {line}" for line in text.split("\n"))


def where_lines(conditions: Iterable[str]) -> list[str]:
    """The WHERE line, when there are conditions."""
    conditions = list(conditions)
    return ["WHERE " + "\n  AND ".join(conditions)] if conditions else []


def _weighs(measure: Measure) -> bool:
    """Whether the figure would be wrong if a row were joined twice."""
    if measure.function == "metric":
        return True
    return FUNCTIONS[measure.function].weighs and (measure.function != "count" or measure.column is not None)
