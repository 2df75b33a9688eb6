"""Writes one SELECT over one frame: what is shown, grouped, compared and ordered."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property

from common.meanings import TableKey
from common.postgres.identifiers import quoted
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Dimension, Measure, Order, Query, measured_table
from rules.schema.facts import Facts, kind_of
from rules.schema.joins import Graph
from rules.schema.schema import Schema
from rules.sql.column_names import Output, direction, disambiguated, group_name, measure_alias
from rules.sql.expressions import comparison, is_float_type, number
from rules.sql.frame import Frame


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

    @cached_property
    def frame(self) -> Frame:
        """The FROM and WHERE that the query needs, in which each measured row counts once per group.

        Below the base that is so only for a link table whose key consists of its two references.

        Raises:
            Unrenderable: there is none.
        """
        query = self.query
        base = measured_table(query)
        frame = Frame(self.schema, self.graph, query, base)
        columns = [*query.columns, *(key.column for key in query.order if key.column is not None)]
        columns += [one.column for measure in query.measures for one in measure.share_of]
        needed = [(one.table, one.via) for one in (*query.dimensions, *query.top_per)]
        needed += [(one.table, one.via) for one in columns]
        preferred = query.through | {related.table for related in query.related}
        if not frame.include(needed, preferred):
            raise Unrenderable(f"nothing connects {base} with {needed}")
        if frame.multiplies and any(map(_weighs, query.measures)) and not frame.is_keyed_by_meeting():
            raise Unrenderable("the joins would count measured rows several times")
        added = any(_weighs(measure) and measure.function != "count" for measure in query.measures)
        alternatives = [one for each in query.either for one in each.conditions]
        if added and not self._facts(base).is_entity and frame.has_beside([*query.conditions, *alternatives]):
            raise Unrenderable("a sum over events can't be restricted by what only parts of them have")
        if query.all_of is not None:
            self._keep_all(frame, query.all_of)
        filters = {self.filter_of(one) for one in (*query.measures, *(having.measure for having in query.having))}
        if len(filters) > 1:
            raise Unrenderable("figures of different rows are compared")
        frame.restrict(query, filters.pop() if filters else None)
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

    def key_outputs(self) -> list[Output]:
        """The columns that identify the groups which are not known by what is shown of them."""
        found: list[str] = []
        for dimension in (one for one in self.query.dimensions if not self.is_known_by_name(one)):
            if dimension.column is not None:  # as text, in which NULL equals NULL
                found.append(f"ROW({self._dimension_sql(dimension)})::text")
            else:
                found += self._columns(dimension, self._facts(dimension.table).key)
        return [Output(sql, f"key{index}") for index, sql in enumerate(found)]

    def text(self, *, with_keys: bool = False) -> str:
        """The statement; `with_keys` adds the columns that identify the groups, on which it is joined with others."""
        query = self.query
        keys = self.key_outputs() if with_keys else []
        having = (comparison(self.aggregate_sql(one.measure), one.operator, one.operands) for one in query.having)
        order = (key for one in query.order for key in self._order_keys(one))
        lines = [self.selected([*self.outputs(), *keys]), *clause("HAVING", having, " AND ")]
        return "\n".join([*lines, *order_and_limit(order, query)])

    def selected(self, outputs: Iterable[Output]) -> str:
        """The statement of these columns as far as its groups."""
        select = f"SELECT {'DISTINCT ' if self.query.distinct else ''}" + ", ".join(map(str, outputs))
        dimensions = self.query.dimensions if self.query.measures else ()
        groups = clause("GROUP BY", (sql for dim in dimensions for sql in self.group_columns(dim)))
        where = clause("WHERE", self.frame.conditions(), "\n  AND ")
        return "\n".join([select, *self.frame.from_lines(), *where, *groups])

    def _facts(self, key: TableKey) -> Facts:
        return self.schema.facts[key]

    def outputs(self) -> list[Output]:
        """The columns of the result."""
        figures = [Output(self._measure_sql(one), self.alias(one)) for one in self.query.measures]
        return [*self.dimension_outputs(), *self._column_outputs(), *figures]

    def dimension_outputs(self) -> list[Output]:
        """The columns of all dimensions."""
        return [output for outputs in self._outputs_by_dimension() for output in outputs]

    def group_names(self) -> list[list[str]]:
        """What the columns of each dimension are called, as SQL writes them."""
        return [[one.name for one in outputs] for outputs in self._outputs_by_dimension()]

    def _outputs_by_dimension(self) -> list[list[Output]]:
        return disambiguated([(one.table[1], self.shown(one)) for one in self.query.dimensions])

    def shown(self, dimension: Dimension) -> list[Output]:
        """The columns that show a dimension."""
        if dimension.column is None:
            return [Output(sql) for sql in self._columns(dimension, self._facts(dimension.table).shown)]
        name = group_name(dimension)
        return [Output(self._dimension_sql(dimension), name if name != dimension.column else None)]

    def is_float(self, measure: Measure) -> bool:
        """Whether the figure is of a type that can't be rounded to digits."""
        if measure.column is None or measure.function == "metric":
            return False
        type_ = self.schema.column(measure.table, measure.column).type
        return is_float_type(type_) or measure.is_age or FUNCTIONS[measure.function].is_float

    def _dimension_sql(self, dimension: Dimension) -> str:
        assert dimension.column is not None
        ref = ColumnRef(dimension.table, dimension.column, dimension.via, part=dimension.part)
        if dimension.bucket is None:
            return self.frame.column(ref)
        column = self.frame.dated(ref)
        if dimension.bucket == "day":
            is_day = kind_of(self.schema.column(dimension.table, dimension.column)) == "date"
            return column if is_day else f"{column}::date"
        return f"date_trunc('{dimension.bucket}', {column})::date"

    def _column_outputs(self) -> list[Output]:
        often = Counter((column.column, column.part) for column in self.query.columns)
        outputs = []
        for column in self.query.columns:
            is_twin = often[column.column, column.part] > 1 and column.table != self.query.base
            alias = f"{column.table[1]}_{column.column}" if is_twin else None
            alias = alias if column.part is None else f"{column.column}_{PARTS[column.part].name}"
            outputs.append(Output(self.frame.column(column), alias))
        return outputs

    def _measure_sql(self, measure: Measure) -> str:
        plain = self.aggregate_sql(measure)
        part, whole = plain, f"sum({plain}) {over()}"
        if measure.is_running:
            part, whole = self._running_sql(measure, plain)
        elif measure.is_share and measure.share_of:
            part, whole = self.aggregate_sql(measure, " AND ".join(map(self.frame.condition, measure.share_of))), plain
        return percentage(part, whole, self.is_float(measure)) if measure.is_share else part

    def _running_sql(self, measure: Measure, plain: str) -> tuple[str, str]:
        """The figure of a group and of all before it, and that of all."""
        dated = [one for one in self.query.dimensions if one.bucket is not None]
        others = [sql for one in self.query.dimensions if one not in dated for sql in self.group_columns(one)]
        if measure.function not in ("sum", "count") or len(dated) > 1 or not self.query.dimensions:
            raise Unrenderable("only sums and counts of groups are added up")
        if dated:
            return f"sum({plain}) {over(others, self.group_columns(dated[0]))}", f"sum({plain}) {over(others)}"
        return f"sum({plain}) {over((), [plain + direction(True), *others])}", f"sum({plain}) {over()}"

    def aggregate_sql(self, measure: Measure, only: str | None = None) -> str:
        """A measure as an aggregate function, of the rows that meet the condition `only`."""
        filtered = f" FILTER (WHERE {only})" if only is not None else ""
        if measure.column is None:
            return f"{self._count_rows_sql(measure)}{filtered}"
        if measure.function == "metric":
            return self.frame.expression(measure.table, self.schema.metric(measure.table, measure.column).expression)
        column = self.frame.column(ColumnRef(measure.table, measure.column, is_age=measure.is_age))
        if kind_of(self.schema.column(measure.table, measure.column)) == "number":
            column = self.frame.numeric(ColumnRef(measure.table, measure.column))
        if measure.times is not None:
            column = f"{column} * {self.frame.numeric(ColumnRef(measure.table, measure.times))}"
        at = number((measure.percent or Decimal(50)) / 100)
        plain = FUNCTIONS[measure.function].sql.replace("{at}", at).replace("{}", column) + filtered
        # A group that sold nothing in one of two periods sold 0; where nobody did, figures may not be known yet.
        is_zero = self.frame.keeps_all or (self.query.comparison is not None and self.query.dimensions)
        return f"coalesce({plain}, 0)" if is_zero and measure.function == "sum" else plain

    def _count_rows_sql(self, measure: Measure) -> str:
        if not self.frame.multiplies:
            return f"count({self.frame.presence()})" if self.frame.keeps_all else "count(*)"
        key = self._facts(measure.table).key
        if not key:
            raise Unrenderable(f"{measure.table} has no key to count by")
        columns = ", ".join(self.frame.column(ColumnRef(measure.table, name)) for name in key)
        return f"count(DISTINCT {columns})" if len(key) == 1 else f"count(DISTINCT ({columns}))"

    def group_columns(self, dimension: Dimension) -> list[str]:
        """What a dimension groups by: its column, or the key and names of its table."""
        if dimension.column is not None:
            return [self._dimension_sql(dimension)]
        facts = self._facts(dimension.table)
        return self._columns(dimension, dict.fromkeys((*facts.key, *facts.shown)))

    def _columns(self, dimension: Dimension, names: Iterable[str]) -> list[str]:
        return [self.frame.column(ColumnRef(dimension.table, name, dimension.via)) for name in names]

    def _order_keys(self, order: Order) -> list[str]:
        if order.measure is not None:
            return [quoted(self.alias(order.measure)) + direction(order.descending)]
        if order.column is not None:
            return [self.frame.column(order.column) + direction(order.descending)]
        return [f"{one.sql} DESC" if order.descending else one.sql for one in self.shown(self.query.dimensions[0])]


def percentage(part: str, whole: str, is_float: bool = False) -> str:
    """The part in percent of the whole, NULL where that is 0."""
    quotient = f"100.0 * {part} / nullif({whole}, 0)"
    return f"round(({quotient})::numeric, 4)" if is_float else f"round({quotient}, 4)"


def over(groups: Iterable[str] = (), order: Iterable[str] = (), reach: Iterable[str] = ()) -> str:
    """The window of the rows of one group, as far as they reach in the order."""
    return f"OVER ({' '.join([*clause('PARTITION BY', groups), *clause('ORDER BY', order), *reach])})"


def nested(text: str) -> str:
    """A statement in brackets, within another."""
    return "(\n{}\n)".format("\n".join(f"    {line}" for line in text.split("\n")))


def clause(keyword: str, parts: Iterable[str], between: str = ", ") -> list[str]:
    """The line of the keyword with each of the parts once; none without any."""
    text = between.join(dict.fromkeys(parts))
    return [f"{keyword} {text}"] if text else []


def order_and_limit(keys: Iterable[str], query: Query) -> list[str]:
    """The lines at the end, where there are any."""
    return [*clause("ORDER BY", keys), *([f"LIMIT {query.limit}"] if query.limit is not None else [])]


def _weighs(measure: Measure) -> bool:
    """Whether the figure would be wrong if a row were joined twice."""
    if measure.function == "metric":
        return True
    return FUNCTIONS[measure.function].weighs and (measure.function != "count" or measure.column is not None)
