"""Writes one SELECT over one frame: what is shown, grouped, compared and ordered."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from common.meanings import TableKey
from postgres.identifiers import quoted
from rules.query.aggregates import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Dimension, Measure, Order, Query, measured_table
from rules.schema.reference_graph import Graph
from rules.schema.table_facts import Facts, is_birth_date, kind_of
from rules.schema.table_schema import Schema
from rules.sql.column_names import SelectItem, direction, disambiguated, group_name, measure_alias
from rules.sql.expressions import comparison, is_float_type, number
from rules.sql.frame import RestrictedTables


class Unrenderable(Exception):
    """Raised where no correct statement can be made of the query; the message is for the log."""


class SelectStatement:
    """One query as one SELECT.

    Args:
        whole: the query of which this one is a part; its figures decide the names of columns.
    """

    def __init__(
        self, query: Query, schema: Schema, graph: Graph, whole: Query | None = None
    ) -> None:
        self.query, self.schema, self.graph = query, schema, graph
        self._whole = whole or query

    def alias(self, measure: Measure) -> str:
        """Return the name of a figure's column in the result."""
        return measure_alias(measure, self._whole)

    def of(self, query: Query) -> "SelectStatement":
        """Return another statement over the same tables, with the names of columns of this one."""
        return SelectStatement(query, self.schema, self.graph, self._whole)

    @cached_property
    def frame(self) -> RestrictedTables:
        """Return the FROM and WHERE, in which each measured row counts once per group.

        Raises:
            Unrenderable: there is no such FROM.
        """
        query = self.query
        base = measured_table(query)
        frame = RestrictedTables(self.schema, self.graph, query, base)
        needed = self._needed_tables()
        preferred = query.through | {related.table for related in query.related}
        if not frame.include(needed, preferred):
            raise Unrenderable(f"nothing connects {base} with {needed}")

        self._refuse_repeated_rows(frame)
        self._refuse_partial_sums(frame, base)
        if query.all_of is not None:
            self._keep_all(frame, query.all_of)

        frame.restrict(query, self._own_filter())
        return frame

    def _needed_tables(self) -> list[tuple[TableKey, str | None]]:
        """Return the tables of all columns and groups, each with the column that refers to it."""
        query = self.query
        columns = list(query.columns)
        for order in query.order:
            if order.column is not None:
                columns.append(order.column)

        for measure in query.measures:
            columns += [condition.column for condition in measure.share_of]

        groups = (*query.dimensions, *query.top_per)
        needed = [(group.table, group.via) for group in groups]
        needed += [(column.table, column.via) for column in columns]
        return needed

    def _refuse_repeated_rows(self, frame: RestrictedTables) -> None:
        """Refuse joins that repeat measured rows.

        Of tables below the measured one, only a link table whose key consists of its two references
        repeats none within a group.
        """
        is_wrong_if_repeated = any(
            _is_wrong_if_repeated(measure) for measure in self.query.measures
        )
        if is_wrong_if_repeated and frame.multiplies and not frame.is_keyed_by_meeting():
            raise Unrenderable("the joins would count measured rows several times")

    def _refuse_partial_sums(self, frame: RestrictedTables, base: TableKey) -> None:
        """Refuse sums over events by conditions that only parts of an event meet."""
        query = self.query
        adds_up = any(
            _is_wrong_if_repeated(measure) and measure.function != "count"
            for measure in query.measures
        )
        if not adds_up or self._facts(base).is_entity:
            return

        alternatives = [condition for either in query.either for condition in either.conditions]
        if frame.has_beside([*query.conditions, *alternatives]):
            raise Unrenderable(
                "a sum over events can't be restricted by what only parts of them have"
            )

    def _own_filter(self) -> str | None:
        """Return the condition that the metrics of the query put on their rows."""
        measures = [*self.query.measures, *(having.measure for having in self.query.having)]
        filters = {self.filter_of(measure) for measure in measures}
        if len(filters) > 1:
            raise Unrenderable("figures of different rows are compared")

        return filters.pop() if filters else None

    def filter_of(self, measure: Measure) -> str | None:
        """Return the condition that a metric puts on its rows; None for any other figure."""
        if measure.function != "metric":
            return None

        return self.schema.metric(measure.table, measure.column).filter

    def _keep_all(self, frame: RestrictedTables, table: TableKey) -> None:
        """Make every row of a table a group; see `Query.all_of`."""
        dimensions = (*self.query.dimensions, *self.query.top_per)
        vias = [dimension.via for dimension in dimensions if dimension.table == table]
        frame.keep_all(table, vias[0] if vias else None)
        if not all(frame.is_kept(dimension.table, dimension.via) for dimension in dimensions):
            raise Unrenderable(f"a row of {table} without measured rows is in no other group")
        if self.query.related:
            raise Unrenderable("related rows may be meant of the groups or of the measured rows")

    def is_known_by_name(self, dimension: Dimension) -> bool:
        """Tell whether the shown columns of a group are never NULL and tell it from all others."""
        if dimension.column is None:
            return not self._facts(dimension.table).key

        return not self.schema.column(dimension.table, dimension.column).nullable

    def key_outputs(self) -> list[SelectItem]:
        """Return the columns that identify groups which their shown columns don't tell apart."""
        texts: list[str] = []
        for dimension in self.query.dimensions:
            if self.is_known_by_name(dimension):
                continue
            if dimension.column is None:
                texts += self._columns(dimension, self._facts(dimension.table).key)
            else:  # as text, in which NULL equals NULL
                texts.append(f"ROW({self._dimension_sql(dimension)})::text")

        return [SelectItem(sql, f"key{index}") for index, sql in enumerate(texts)]

    def text(self, *, with_keys: bool = False) -> str:
        """Write the statement as SQL, one clause to a line.

        Args:
            with_keys: adds the columns of `key_outputs`, on which it is joined with others.
        """
        query = self.query
        keys = self.key_outputs() if with_keys else []
        having = [
            comparison(self.aggregate_sql(one.measure), one.operator, one.operands)
            for one in query.having
        ]
        order = [key for one in query.order for key in self._order_keys(one)]
        lines = [self.selected([*self.outputs(), *keys]), *clause("HAVING", having, " AND ")]
        return "\n".join([*lines, *order_and_limit(order, query)])

    def selected(self, outputs: Iterable[SelectItem]) -> str:
        """Write the statement of these columns, from SELECT to GROUP BY."""
        select = "SELECT DISTINCT " if self.query.distinct else "SELECT "
        select += ", ".join(map(str, outputs))
        dimensions = self.query.dimensions if self.query.measures else ()
        groups = clause("GROUP BY", (sql for dim in dimensions for sql in self.group_columns(dim)))
        where = clause("WHERE", self.frame.conditions(), "\n  AND ")
        return "\n".join([select, *self.frame.from_lines(), *where, *groups])

    def _facts(self, key: TableKey) -> Facts:
        return self.schema.facts[key]

    def outputs(self) -> list[SelectItem]:
        """Return the columns of the result."""
        figures = [
            SelectItem(self._measure_sql(measure), self.alias(measure))
            for measure in self.query.measures
        ]
        return [*self.dimension_outputs(), *self._column_outputs(), *figures]

    def dimension_outputs(self) -> list[SelectItem]:
        """Return the columns of all dimensions."""
        return [output for outputs in self._outputs_by_dimension() for output in outputs]

    def group_names(self) -> list[list[str]]:
        """Return the names of the columns of each dimension, as SQL writes them."""
        return [[output.name for output in outputs] for outputs in self._outputs_by_dimension()]

    def _outputs_by_dimension(self) -> list[list[SelectItem]]:
        return disambiguated(
            [(dimension.table[1], self.shown(dimension)) for dimension in self.query.dimensions]
        )

    def shown(self, dimension: Dimension) -> list[SelectItem]:
        """Return the columns that show a dimension."""
        if dimension.column is None:
            names = self._facts(dimension.table).shown
            return [SelectItem(sql) for sql in self._columns(dimension, names)]

        name = group_name(dimension)
        alias = name if name != dimension.column else None
        return [SelectItem(self._dimension_sql(dimension), alias)]

    def is_float(self, measure: Measure) -> bool:
        """Tell whether the figure is a floating-point number, which can't be rounded to digits."""
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
        if dimension.bucket != "day":
            return f"date_trunc('{dimension.bucket}', {column})::date"

        is_day = kind_of(self.schema.column(dimension.table, dimension.column)) == "date"
        return column if is_day else f"{column}::date"

    def _column_outputs(self) -> list[SelectItem]:
        often = Counter((column.column, column.part) for column in self.query.columns)
        outputs = []
        for column in self.query.columns:
            is_twin = often[column.column, column.part] > 1 and column.table != self.query.base
            alias = None
            if column.part is not None:
                alias = f"{column.column}_{PARTS[column.part].name}"
            elif column.is_age:
                alias = self._years_name(column)
            elif is_twin:
                alias = f"{column.table[1]}_{column.column}"

            outputs.append(SelectItem(self.frame.column(column), alias))

        return outputs

    def _years_name(self, ref: ColumnRef) -> str:
        """Return the name of the years since a date."""
        if is_birth_date(self.schema.column(ref.table, ref.column)):
            return "age"

        return f"years_since_{ref.column}"

    def _measure_sql(self, measure: Measure) -> str:
        plain = self.aggregate_sql(measure)
        part = plain
        whole = f"sum({plain}) {over()}"
        if measure.is_running:
            part, whole = self._running_sql(measure, plain)
        elif measure.is_share and measure.share_of:
            conditions = [self.frame.condition(one) for one in measure.share_of]
            part = self.aggregate_sql(measure, " AND ".join(conditions))
            whole = plain

        if not measure.is_share:
            return part

        return percentage(part, whole, self.is_float(measure))

    def _running_sql(self, measure: Measure, plain: str) -> tuple[str, str]:
        """Return the figure of a group and of all before it, and the figure of all."""
        dimensions = self.query.dimensions
        dated = [one for one in dimensions if one.bucket is not None]
        if measure.function not in ("sum", "count") or len(dated) > 1 or not dimensions:
            raise Unrenderable("only sums and counts of groups are added up")

        others = []
        for dimension in dimensions:
            if dimension not in dated:
                others += self.group_columns(dimension)

        if dated:
            running = over(others, self.group_columns(dated[0]))
            return f"sum({plain}) {running}", f"sum({plain}) {over(others)}"

        running = over((), [plain + direction(True), *others])
        return f"sum({plain}) {running}", f"sum({plain}) {over()}"

    def aggregate_sql(self, measure: Measure, only: str | None = None) -> str:
        """Write a measure as an aggregate function.

        Args:
            only: a condition on the rows that it is over.
        """
        filtered = f" FILTER (WHERE {only})" if only is not None else ""
        if measure.column is None:
            return f"{self._count_rows_sql(measure)}{filtered}"
        if measure.function == "metric":
            metric = self.schema.metric(measure.table, measure.column)
            return self.frame.expression(measure.table, metric.expression)

        percent = measure.percent if measure.percent is not None else Decimal(50)
        call = FUNCTIONS[measure.function].sql.replace("{at}", number(percent / 100))
        plain = call.replace("{}", self._measured_sql(measure)) + filtered
        is_zero = measure.function == "sum" and self._has_empty_groups()
        return f"coalesce({plain}, 0)" if is_zero else plain

    def _measured_sql(self, measure: Measure) -> str:
        """Return the expression of the column that is measured."""
        table = measure.table
        name = str(measure.column)
        column = self.frame.column(ColumnRef(table, name, is_age=measure.is_age))
        if kind_of(self.schema.column(table, name)) == "number":
            column = self.frame.numeric(ColumnRef(table, name))
        if measure.times is None:
            return column

        product = f"{column} * {self.frame.numeric(ColumnRef(table, measure.times))}"
        if measure.less is None:
            return product

        return f"{product} * (1 - {self._share_off(ColumnRef(table, measure.less))})"

    def _share_off(self, share: ColumnRef) -> str:
        column = self.frame.numeric(share)
        is_nullable = self.schema.column(share.table, share.column).nullable
        return f"coalesce({column}, 0)" if is_nullable else column

    def _has_empty_groups(self) -> bool:
        """Tell whether there are groups without measured rows, whose sums are 0.

        A group that sold nothing in one of two periods sold 0. Where no group sold anything, the
        figures of that period may not be known yet: without groups, they are missing.
        """
        compares_groups = self.query.comparison is not None and bool(self.query.dimensions)
        return self.frame.keeps_all or compares_groups

    def _count_rows_sql(self, measure: Measure) -> str:
        if not self.frame.multiplies:
            if self.frame.keeps_all:
                return f"count({self.frame.presence()})"

            return "count(*)"

        key = self._facts(measure.table).key
        if not key:
            raise Unrenderable(f"{measure.table} has no key to count by")

        columns = ", ".join(self.frame.column(ColumnRef(measure.table, name)) for name in key)
        if len(key) == 1:
            return f"count(DISTINCT {columns})"

        return f"count(DISTINCT ({columns}))"

    def group_columns(self, dimension: Dimension) -> list[str]:
        """Return the columns of GROUP BY: the dimension's, or the key and names of its table."""
        if dimension.column is not None:
            return [self._dimension_sql(dimension)]

        facts = self._facts(dimension.table)
        return self._columns(dimension, dict.fromkeys((*facts.key, *facts.shown)))

    def _columns(self, dimension: Dimension, names: Iterable[str]) -> list[str]:
        return [
            self.frame.column(ColumnRef(dimension.table, name, dimension.via)) for name in names
        ]

    def sort_key(self, column: ColumnRef, descending: bool) -> str:
        """Write the sort key of a column; of ages the date, because many share a whole year."""
        if column.is_age:
            return self.frame.column(replace(column, is_age=False)) + direction(not descending)

        return self.frame.column(column) + direction(descending)

    def _order_keys(self, order: Order) -> list[str]:
        if order.measure is not None:
            return [quoted(self.alias(order.measure)) + direction(order.descending)]
        if order.column is not None:
            return [self.sort_key(order.column, order.descending)]

        first, *others = self.query.dimensions
        keys = [f"{one.sql} DESC" if order.descending else one.sql for one in self.shown(first)]
        for dimension in others:
            if dimension.is_of_time:
                keys += [one.sql for one in self.shown(dimension)]

        return keys


def percentage(part: str, whole: str, is_float: bool = False) -> str:
    """Write the part in percent of the whole, NULL where the whole is 0."""
    quotient = f"100.0 * {part} / nullif({whole}, 0)"
    if is_float:
        return f"round(({quotient})::numeric, 4)"

    return f"round({quotient}, 4)"


def over(groups: Iterable[str] = (), order: Iterable[str] = (), reach: Iterable[str] = ()) -> str:
    """Write the window over the rows of one group, as far as they reach in the order."""
    parts = [*clause("PARTITION BY", groups), *clause("ORDER BY", order), *reach]
    return f"OVER ({' '.join(parts)})"


def nested(text: str) -> str:
    """Write a statement in brackets, indented, to stand within another."""
    indented = "\n".join(f"    {line}" for line in text.split("\n"))
    return f"(\n{indented}\n)"


def clause(keyword: str, parts: Iterable[str], between: str = ", ") -> list[str]:
    """Return the line of the keyword with each of the parts once; no line without parts."""
    text = between.join(dict.fromkeys(parts))
    return [f"{keyword} {text}"] if text else []


def order_and_limit(keys: Iterable[str], query: Query) -> list[str]:
    """Return the lines ORDER BY and LIMIT, as far as there are keys and a limit.

    Where the first by a figure is asked for, all that share its figure are given: one of them alone
    would be said to have more than the others.
    """
    keys = list(keys)
    if keys and query.limit == 1 and _ranks(query):
        return [f"ORDER BY {keys[0]}", "FETCH FIRST ROW WITH TIES"]

    lines = clause("ORDER BY", keys)
    if query.limit is not None:
        lines.append(f"LIMIT {query.limit}")

    return lines


def _ranks(query: Query) -> bool:
    """Tell whether the first sort key is a figure or a column, and further ones break ties."""
    by = query.order[0] if query.order else None
    return by is not None and (by.measure is not None or len(query.order) > 1)


def _is_wrong_if_repeated(measure: Measure) -> bool:
    """Tell whether a row that a join repeats makes the figure wrong."""
    if measure.function == "metric":
        return True
    if measure.function == "count" and measure.column is None:
        # rows are counted by their key then
        return False

    return FUNCTIONS[measure.function].is_wrong_if_repeated
