"""Describes each column of a query's result: the stored column it comes from, and what was done.

It reads PostgreSQL's own parse tree and follows names through subqueries and CTEs. What it can't
tell stays unsaid.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, get_args

from common.values import Catalog, Column, PeriodUnit, Table
from sqltree.parsing import Node
from sqltree.references import relation_parts, table_named
from sqltree.row_order import row_order
from sqltree.tree_values import (
    last_name,
    names_in,
    operands_of,
    parse_query,
    string_constant,
    without_casts,
)

_MAX_CHARS = 8_000  # of a statement that is read; such a text takes milliseconds
_MAX_DEPTH = 20  # of queries in queries

Part = Literal["year", "quarter", "month", "week", "day", "hour", "dow", "isodow"]
Aggregate = Literal[
    "count", "sum", "avg", "min", "max", "stddev", "percentile_cont", "median", "mode"
]
_UNITS: Mapping[str, PeriodUnit] = {name: name for name in get_args(PeriodUnit)}
_PARTS: Mapping[str, Part] = {name: name for name in get_args(Part)}
_AGGREGATES: Mapping[str, Aggregate] = {
    **{name: name for name in get_args(Aggregate)},
    "stddev_samp": "stddev",
    "percentile_disc": "percentile_cont",
}
# Functions whose result is of the kind of their first argument.
_PASSING = frozenset(
    (
        "round",
        "coalesce",
        "nullif",
        "abs",
        "ceil",
        "floor",
        "trunc",
        "trim",
        "btrim",
        "upper",
        "lower",
        "initcap",
        "greatest",
    )
)
# What formats of to_char write, without what stands between.
_WRITTEN_PERIODS: Mapping[str, PeriodUnit] = {
    "YYYY": "year",
    "YYYYQ": "quarter",
    "YYYYMM": "month",
    "IYYYIW": "week",
    "YYYYMMDD": "day",
    "YYYYMMDDHH24": "hour",
}
_WRITTEN_PARTS: Mapping[str, Part] = {
    "Q": "quarter",
    "MM": "month",
    "MON": "month",
    "MONTH": "month",
    "DY": "dow",
    "DAY": "dow",
    "ID": "isodow",
    "HH24": "hour",
}
# Formats of to_char whose texts are in the order of time: from the year down, all in digits,
# whatever stands between.
_IN_ORDER = re.compile(r"YYYY(Q|MM(DD(HH24(MI(SS)?|00(00)?)?)?)?|DDD|WW)?|IYYYIW")
_BETWEEN = re.compile(r'"[^"]*"|[^A-Z0-9]')
_DURATIONS = frozenset(
    ("age", "justify_days", "justify_hours", "justify_interval")
)  # whose years are no dates
_TIME_PARTS = frozenset(("date_trunc", "extract", "date_part"))
_SIGNS = frozenset(("+", "-"))
_FACTORS = frozenset(("*", "/"))
_OF_ROWS = frozenset(("row_number", "rank", "dense_rank", "ntile"))


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result.

    Attributes:
        name: as the result calls it.
        is_named: whether the query gives it this name, and PostgreSQL doesn't derive it.
        table, column: where its values come from; None when they come from several columns, or from
            none.
        function: the aggregate over them, the outer one of two.
        counted: the tables whose joined rows are counted, where rows are.
        period: the unit that its dates are cut to.
        part: the part of a date that it is.
        is_share: a quotient of figures of the same kind, or one over the whole.
        is_percent: it is multiplied by 100.
        is_rank: a position among the rows.
        is_total: a sum or a count, whose figures of several rows may be added up.
        is_computed: more was done to the values than that.
        is_stored: its values are those of the column, as they are stored.
        is_filtered: an aggregate of only those rows that its own FILTER lets through.
        is_running: each figure adds the ones of the rows before it.
        is_windowed: figures of several groups are put together: a moving average.
        subtotals: whether some rows hold the totals of others: of grouping sets they do, of the
            parts of a UNION they may.
        is_sort_key: the rows are sorted by it before anything else.
        is_unordered: nothing in the statement says in which order the rows come.
    """

    name: str
    is_named: bool = False
    table: Table | None = None
    column: Column | None = None
    function: Aggregate | None = None
    counted: tuple[Table, ...] = ()
    period: PeriodUnit | None = None
    part: Part | None = None
    is_share: bool = False
    is_percent: bool = False
    is_rank: bool = False
    is_total: bool = False
    is_computed: bool = False
    is_stored: bool = False
    is_running: bool = False
    is_windowed: bool = False
    is_filtered: bool = False
    subtotals: Literal["certain", "possible"] | None = None
    is_sort_key: bool = False
    is_unordered: bool = False


def outputs(sql: str, columns: Sequence[str], catalog: Catalog) -> tuple[OutputColumn, ...]:
    """Describe the columns of the result of `sql`, which PostgreSQL names `columns`."""
    query = parse_query(sql, _MAX_CHARS)
    columns_of_query: tuple[OutputColumn, ...] = ()
    if query is not None:
        columns_of_query = _Reader(catalog).select(query, _Names())
    if len(columns_of_query) != len(columns):
        return tuple(map(_unknown_output, columns))

    order = row_order(query, columns) if query is not None else None
    described = []
    for place, (column, name) in enumerate(zip(columns_of_query, columns, strict=True)):
        column = replace(column, name=name)
        if order is not None:
            is_key = order.first_key == place
            column = replace(column, is_sort_key=is_key, is_unordered=order.is_open)

        described.append(column)

    return tuple(described)


def _unknown_output(name: str = "") -> OutputColumn:
    return OutputColumn(name, is_computed=True)


@dataclass(frozen=True)
class _Names:
    """The columns that names lead to in one query.

    Attributes:
        ctes: columns of the CTEs that can be seen.
        sources: columns of what stands in FROM, by its name.
        merged: names of columns that joins USING them make one.
    """

    ctes: Mapping[str, tuple[OutputColumn, ...]] = field(default_factory=dict)
    sources: Mapping[str, tuple[OutputColumn, ...]] = field(default_factory=dict)
    merged: frozenset[str] = frozenset()
    depth: int = 0

    def column(self, parts: Sequence[str]) -> OutputColumn | None:
        """Return the column that a reference leads to, if that is certain."""
        if not parts:
            return None

        *qualifier, name = parts
        columns = []
        for column in self.all(qualifier):
            if column.name == name:
                columns.append(column)

        is_merged = bool(columns) and not qualifier and name in self.merged
        if len(columns) != 1 and not is_merged:
            return None

        return columns[0]

    def all(self, parts: Sequence[str]) -> tuple[OutputColumn, ...]:
        """Return the columns of `*` or `name.*`."""
        if parts:
            return self.sources.get(parts[-1], ())

        return tuple(chain.from_iterable(self.sources.values()))


class _Reader:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def select(self, select: Node, around: _Names) -> tuple[OutputColumn, ...]:
        """Describe the columns of a SELECT; none when it can't be told."""
        if around.depth > _MAX_DEPTH:
            return ()

        inner = replace(around, depth=around.depth + 1, sources={})
        names = self._with_ctes(select, inner)
        if "larg" in select:  # a UNION has the columns of its first part
            first = _not_added(self.select(select["larg"], names), "possible")
            return tuple(replace(column, is_stored=False) for column in first)

        from_clause = select.get("fromClause", [])
        sources = dict(self._sources(from_clause, names))
        names = replace(names, sources=sources, merged=frozenset(_merged(from_clause)))
        output_columns: list[OutputColumn] = []
        for target in select.get("targetList", []):
            columns = self._targeted(target.get("ResTarget", {}), names)
            output_columns.extend(columns)

        if any("GroupingSet" in group for group in select.get("groupClause", ())):
            return _not_added(output_columns, "certain")

        return tuple(output_columns)

    def _targeted(self, target: Node, names: _Names) -> tuple[OutputColumn, ...]:
        """Describe the columns that an entry of a SELECT's list gives: `*` gives several."""
        value = target.get("val", {})
        fields = value.get("ColumnRef", {}).get("fields", ())
        is_star = bool(fields) and "A_Star" in fields[-1]
        if is_star:
            return names.all(names_in(fields))

        described = self._described(value, names)
        if "name" in target:
            return (replace(described, name=target["name"], is_named=True),)

        return (replace(described, is_named=False),)

    def _with_ctes(self, select: Node, names: _Names) -> _Names:
        for cte in select.get("withClause", {}).get("ctes", ()):
            node = cte["CommonTableExpr"]
            query = node.get("ctequery", {}).get("SelectStmt", {})
            new_names = names_in(node.get("aliascolnames", ()))
            selected = self.select(query, names)
            columns = _renamed(selected, new_names)
            ctes = {**names.ctes, node["ctename"]: columns}
            names = replace(names, ctes=ctes)

        return names

    def _sources(
        self, nodes: Sequence[Node], names: _Names
    ) -> Iterator[tuple[str, tuple[OutputColumn, ...]]]:
        for wrapped in nodes:
            ((kind, node),) = wrapped.items()
            if kind == "JoinExpr":
                yield from self._sources([node["larg"], node["rarg"]], names)
                continue

            if kind == "RangeVar":
                columns = self._columns_of(node, names)
            elif kind == "RangeSubselect":
                query = node.get("subquery", {}).get("SelectStmt", {})
                columns = self.select(query, names)
            else:
                continue

            alias = node.get("alias", {})
            name = alias.get("aliasname", node.get("relname", ""))
            new_names = names_in(alias.get("colnames", ()))
            yield name, _renamed(columns, new_names)

    def _columns_of(self, node: Node, names: _Names) -> tuple[OutputColumn, ...]:
        parts = relation_parts(node)
        is_cte = len(parts) == 1 and parts[0] in names.ctes
        if is_cte:
            return names.ctes[parts[0]]

        table = table_named(parts, self._catalog)
        if table is None:
            return ()

        columns = []
        for stored in table.columns:
            column = OutputColumn(stored.name, table=table, column=stored, is_stored=True)
            columns.append(column)

        return tuple(columns)

    def _described(self, value: Node, names: _Names) -> OutputColumn:
        """Describe what the expression gives, without its name in the result."""
        if not value:
            return _unknown_output()

        ((kind, node),) = value.items()
        match kind:
            case "TypeCast":
                return _cast(self._described(node.get("arg", {}), names), node)
            case "ColumnRef":
                return _referred(node, names)

        return replace(self._made(kind, node, names), is_stored=False)

    def _made(self, kind: str, node: Node, names: _Names) -> OutputColumn:
        """Describe what an expression makes of columns."""
        match kind:
            case "FuncCall":
                return self._function_output(node, names)
            case "CoalesceExpr":
                first: Node = next(iter(node.get("args", ())), {})
                return self._described(first, names)
            case "A_Expr":
                return self._operator_output(node, names)
            case "SubLink":
                return self._subquery(node, names)

        return _unknown_output()

    def _subquery(self, node: Node, names: _Names) -> OutputColumn:
        query = node.get("subselect", {}).get("SelectStmt", {})
        columns = self.select(query, names)
        if not columns:
            return _unknown_output()

        return replace(columns[0], is_total=False)

    def _function_output(self, node: Node, names: _Names) -> OutputColumn:
        function = last_name(node.get("funcname", ()))
        arguments = node.get("args", [])
        if function in _OF_ROWS:
            return OutputColumn(function, is_rank=True)

        aggregate = _AGGREGATES.get(function)
        if aggregate is not None:
            return self._aggregate_output(aggregate, node, names)
        if len(arguments) > 1:
            if function in _TIME_PARTS:
                return self._part_of_time(function, arguments, names)
            if function == "to_char":
                return self._written_time(arguments, names)

        inners = []
        for argument in arguments:
            inner = self._described(argument, names)
            inners.append(inner)

        if len(inners) == 1 and function == "date":
            return _as_day(inners[0])
        if inners and function in _PASSING:
            return replace(inners[0], name=function)

        return OutputColumn(function, function=_first_function(inners), is_computed=True)

    def _written_time(self, arguments: Sequence[Node], names: _Names) -> OutputColumn:
        """Describe a time that `to_char(time, form)` writes as text."""
        inner = self._described(arguments[0], names)
        form = string_constant(without_casts(arguments[1]))
        period = _written_period(form, inner.period)
        part = _WRITTEN_PARTS.get(_units_of(form).removeprefix("FM"), inner.part)
        return replace(inner, name="to_char", period=period, part=part)

    def _part_of_time(
        self, function: str, arguments: Sequence[Node], names: _Names
    ) -> OutputColumn:
        inner = self._described(arguments[1], names)
        unit = string_constant(without_casts(arguments[0])).lower()
        if inner.name in _DURATIONS:
            return OutputColumn(function, function=inner.function, is_computed=True)
        if function == "date_trunc":
            return replace(inner, name=function, period=_UNITS.get(unit, inner.period))

        return replace(
            inner,
            name=function,
            part=_PARTS.get(unit),
            period=None,
            is_computed=unit not in _PARTS,
        )

    def _aggregate_output(self, function: Aggregate, node: Node, names: _Names) -> OutputColumn:
        arguments = node.get("args", [])
        ordered = []
        if node.get("agg_within_group"):
            ordered = node.get("agg_order", [])
        if ordered:  # percentile_cont(0.5) WITHIN GROUP (ORDER BY x)
            if function == "percentile_cont" and _is_half(arguments):
                function = "median"
            arguments = [ordered[0].get("SortBy", {}).get("node", {})]

        is_total = _adds_up(function, node)
        is_filtered = "agg_filter" in node
        if not arguments:
            return OutputColumn(
                function,
                function=function,
                counted=_tables_of(names),
                is_total=is_total,
                is_running=_is_running(node),
                is_filtered=is_filtered,
            )

        inner = self._described(arguments[0], names)
        is_running = function in ("sum", "count") and _is_running(node)
        if "over" in node and inner.function:  # figures of groups, put together over all of them
            return replace(
                inner, name=function, is_total=False, is_running=is_running, is_windowed=True
            )

        counts_again = inner.function == "count"  # a sum of counts is no count of values
        return replace(
            inner,
            name=function,
            function=function,
            period=None,
            part=inner.part if function in ("min", "max") else None,
            is_computed=inner.is_computed or counts_again or inner.part is not None,
            is_total=is_total,
            is_running=is_running,
            is_filtered=is_filtered or inner.is_filtered,
        )

    def _operator_output(self, node: Node, names: _Names) -> OutputColumn:
        if node.get("kind") == "AEXPR_NULLIF":  # only keeps a division from failing
            return self._described(node.get("lexpr", {}), names)

        operator = last_name(node.get("name", ()))
        sides = self._sides(node, names)
        if len(sides) == 1:
            return _with_constant(node, operator, sides[0])
        if len(sides) == 2 and operator == "/":
            return _quotient(*sides)
        if operator in _SIGNS:
            return _sum(sides)

        return _mixture(sides)

    def _sides(self, node: Node, names: _Names) -> list[OutputColumn]:
        """Describe the operands that aren't constants."""
        sides = []
        for operand in operands_of(node):
            is_constant = "A_Const" in without_casts(operand)
            if not is_constant:
                sides.append(self._described(operand, names))

        return sides


def _with_constant(node: Node, operator: str, column: OutputColumn) -> OutputColumn:
    """Describe a column that an operator combines with a constant."""
    if operator in _SIGNS:
        return replace(column, is_total=False)
    if operator in _FACTORS:
        is_percent = operator == "*" and _has_hundred(node)
        return _multiple(column, is_percent=is_percent)

    return _mixture([column])


def _multiple(column: OutputColumn, *, is_percent: bool) -> OutputColumn:
    """Return a column that is multiplied or divided by a constant."""
    is_computed = column.is_computed or not is_percent
    return replace(column, is_percent=is_percent, is_computed=is_computed)


def _referred(node: Node, names: _Names) -> OutputColumn:
    """Return the column that the reference leads to."""
    fields = node.get("fields", ())
    column = names.column(names_in(fields))
    if column is None:
        return _unknown_output(last_name(fields))

    return replace(column, is_named=False)


def _quotient(left: OutputColumn, right: OutputColumn) -> OutputColumn:
    has_one_function = left.function == right.function
    is_of_counts = has_one_function and left.function == "count"
    is_of_column = left.column is not None and left.column == right.column
    is_share = is_of_counts or (is_of_column and has_one_function)
    return OutputColumn(
        "",
        function=_first_function([left, right]),
        is_share=is_share,
        is_percent=left.is_percent,
        is_computed=not is_share,
    )


def _sum(sides: Sequence[OutputColumn]) -> OutputColumn:
    """Return a sum or a difference: one of values of a single column stays that column's."""
    totals = [side.is_total for side in sides]
    is_total = bool(totals) and all(totals)
    sources = set()
    for side in sides:
        if side.table is not None:
            sources.add((side.table.key, side.column))

    if len(sources) == 1:
        stored = next(side for side in sides if side.table is not None)
        combined = replace(stored, name="", part=None, period=None, is_computed=True)
    else:
        combined = _mixture(sides)

    return replace(combined, is_total=is_total)


def _mixture(sides: Sequence[OutputColumn]) -> OutputColumn:
    function = _first_function(sides)
    return OutputColumn("", function=function, is_computed=True)


def _first_function(columns: Iterable[OutputColumn]) -> Aggregate | None:
    for column in columns:
        if column.function:
            return column.function

    return None


def _written_period(form: str, cut_to: PeriodUnit | None) -> PeriodUnit | None:
    """Return the unit of times that `to_char` writes.

    None where the texts, such as `2025 June`, are in no order of time.

    Args:
        form: the format of `to_char`.
        cut_to: the unit that the times are cut to before they are written.
    """
    units = _units_of(form)
    if units in _WRITTEN_PERIODS:
        return _WRITTEN_PERIODS[units]

    is_in_order = _IN_ORDER.fullmatch(units) is not None
    if is_in_order:
        return cut_to

    return None


def _units_of(form: str) -> str:
    """Return what a format of `to_char` writes, without what stands between."""
    return _BETWEEN.sub("", form.upper())


def _cast(column: OutputColumn, cast: Node) -> OutputColumn:
    type_name = last_name(cast.get("typeName", {}).get("names", ()))
    return _as_day(column) if type_name == "date" else column


def _as_day(column: OutputColumn) -> OutputColumn:
    """Return the day of a point in time."""
    stored = column.column
    is_moment = stored is not None and stored.type.startswith("timestamp")
    if not is_moment or column.function or column.period:
        return column

    return replace(column, period="day", is_stored=False)


def _merged(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the names of columns by which tables are joined USING them."""
    for node in nodes:
        join = node.get("JoinExpr")
        if join is not None:
            yield from names_in(join.get("usingClause", ()))
            yield from _merged([join["larg"], join["rarg"]])


def _is_running(call: Node) -> bool:
    """Tell whether a window reaches from the first row to the one it is computed for."""
    window = call.get("over", {})
    return "orderClause" in window and "startOffset" not in window


def _is_half(arguments: Sequence[Node]) -> bool:
    constant = without_casts(arguments[0]).get("A_Const", {}) if arguments else {}
    return str(constant.get("fval", {}).get("fval", "")) in (".5", "0.5", "0.50")


def _not_added(
    columns: Iterable[OutputColumn], subtotals: Literal["certain", "possible"]
) -> tuple[OutputColumn, ...]:
    """Return the columns of rows among which some may be the totals of others."""
    return tuple(replace(column, is_total=False, subtotals=subtotals) for column in columns)


def _adds_up(function: Aggregate, node: Node) -> bool:
    """Tell whether the figures of several rows may be added up.

    Distinct values and running totals would count twice.
    """
    if function not in ("sum", "count"):
        return False
    if node.get("agg_distinct"):
        return False

    return "over" not in node


def _tables_of(names: _Names) -> tuple[Table, ...]:
    """Return the tables of FROM, each once."""
    tables: dict[tuple[str, str], Table] = {}
    for columns in names.sources.values():
        table = _table_of(columns)
        if table is not None:
            tables[table.key] = table

    return tuple(tables.values())


def _table_of(columns: tuple[OutputColumn, ...]) -> Table | None:
    """Return the table whose rows these columns are; None for those of a subquery."""
    if not columns:
        return None

    table = columns[0].table
    if table is None:
        return None

    is_whole = len(columns) == len(table.columns)
    return table if is_whole else None


def _renamed(columns: tuple[OutputColumn, ...], names: Sequence[str]) -> tuple[OutputColumn, ...]:
    renamed = []
    for column, name in zip(columns, names, strict=False):
        renamed.append(replace(column, name=name, is_named=True))

    return (*renamed, *columns[len(renamed) :])


_HUNDRED = re.compile(r"100(\.0*)?")


def _has_hundred(node: Node) -> bool:
    """Tell whether one side is the number 100."""
    for operand in operands_of(node):
        constant = operand.get("A_Const", {})
        whole = constant.get("ival", {}).get("ival", "")
        decimal = constant.get("fval", {}).get("fval", "")
        number = str(whole) or str(decimal)
        if _HUNDRED.fullmatch(number):
            return True

    return False
