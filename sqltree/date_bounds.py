"""Reads to which days a WHERE restricts the rows of a query, by conditions on one date column.

It reads PostgreSQL's own parse tree. Bounds are dates written as such, or worked out from the
present day as queries usually do (`date_trunc('month', CURRENT_DATE) - INTERVAL '1 month'`).
Whatever it can't tell surely stays unsaid: it gives nothing rather than a part of the truth.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from common.values import Catalog, Column, Table
from sqltree.parsing import Node
from sqltree.references import cte_names, stored_table
from sqltree.tree_values import (
    children_of,
    column_name,
    last_name,
    operands_of,
    parse_query,
    string_constant,
)

_MAX_CHARS = 8_000  # of a statement that is read; such a text takes milliseconds
_DAY = re.compile(r"\A\s*+(\d{4}-\d{2}-\d{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?\s*")
_INTERVAL = re.compile(r"\A\s*+(\d{1,4})\s*+(day|week|month|year)s?\s*", re.IGNORECASE)
_NOW = frozenset(("SVFOP_CURRENT_DATE", "SVFOP_CURRENT_TIMESTAMP", "SVFOP_LOCALTIMESTAMP"))
_INSTANTS = frozenset(("now", "transaction_timestamp", "statement_timestamp"))
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_SIGNS = {"+": 1, "-": -1}
_YEARS = frozenset((("extract", "year"), ("date_part", "year")))
_TIMES = ("date", "timestamp")


@dataclass(frozen=True)
class Days:
    """The days of `column` that rows are of, from `start` and before `end`; None: no bound."""

    column: Column
    start: date | None
    end: date | None


def days_of(sql: str, catalog: Catalog, today: date) -> Days | None:
    """Return the days that the WHERE of `sql` restricts its rows to; None when that is not sure."""
    select = parse_query(sql, _MAX_CHARS)
    if select is None or "whereClause" not in select:  # a UNION has none of its own
        return None

    ctes = cte_names(select)
    from_clause = select.get("fromClause", ())
    sources = tuple(named_sources(from_clause, catalog, ctes))
    try:
        return _Reading(sources, today).days(select["whereClause"])
    except (_Untold, ValueError, OverflowError):  # the latter: beyond the calendar
        return None


class _Untold(Exception):
    """The days can't be told from the text."""


@dataclass(frozen=True)
class NamedSource:
    """An entry of FROM by its name in the query; `table` is None unless it is a stored one."""

    name: str
    table: Table | None


def named_sources(
    nodes: Sequence[Node], catalog: Catalog, ctes: Collection[str]
) -> Iterator[NamedSource]:
    """Yield the entries of a FROM, those of joins each."""
    for wrapped in nodes:
        ((kind, node),) = wrapped.items()
        is_join = kind == "JoinExpr" and "alias" not in node
        if is_join:
            yield from named_sources([node["larg"], node["rarg"]], catalog, ctes)
            continue

        alias = node.get("alias", {})
        name = alias.get("aliasname", node.get("relname", ""))
        table = None
        if kind == "RangeVar":
            table = stored_table(node, catalog, ctes)

        yield NamedSource(name, table)


class _Reading:
    """Reads the bounds that one WHERE sets."""

    def __init__(self, sources: Sequence[NamedSource], today: date) -> None:
        self._sources = sources
        self._today = today
        self._column: Column | None = None
        self._starts: list[date] = []
        self._ends: list[date] = []

    def days(self, where: Node) -> Days | None:
        """Return the days, if all conditions on times are about one column."""
        for condition in conjuncts(where):
            references = references_in(condition)
            is_of_time = any(map(self._is_time, references))
            if is_of_time:
                self._read_condition(condition)

        if self._column is None:
            return None

        start = max(self._starts, default=None)
        end = min(self._ends, default=None)
        if start is not None and end is not None and end <= start:
            return None

        return Days(self._column, start, end)

    # --------------------------------------------------------------------------
    # conditions

    def _read_condition(self, condition: Node) -> None:
        if condition.get("NullTest", {}).get("nulltesttype") == "IS_NOT_NULL":
            return

        node = condition.get("A_Expr", {})
        kind = node.get("kind")
        if kind == "AEXPR_BETWEEN":
            self._read_between(node)
        elif kind == "AEXPR_OP":
            self._read_comparison(node)
        else:
            raise _Untold

    def _read_between(self, node: Node) -> None:
        bounds = node.get("rexpr", {}).get("List", {})
        low, high = bounds.get("items", ({}, {}))
        column = self._time(node.get("lexpr", {}))
        self._bound(column, ">=", self._day(low))
        self._bound(column, "<=", self._day(high))

    def _read_comparison(self, node: Node) -> None:
        operator = last_name(node.get("name", ()))
        if operator not in _TURNED:
            raise _Untold

        left, right = node.get("lexpr", {}), node.get("rexpr", {})
        if "ColumnRef" in right:
            self._bound(self._time(right), _TURNED[operator], self._day(left))
        elif operator == "=" and "FuncCall" in left:
            self._within(left["FuncCall"], right)
        else:
            self._bound(self._time(left), operator, self._day(right))

    def _bound(self, column: Column, operator: str, day: date) -> None:
        """Take one bound; of timestamps only those that hold for whole days are read."""
        is_rounded = operator not in (">=", "<") and column.type != "date"
        if is_rounded:
            raise _Untold

        self._take_column(column)
        day_after = day + timedelta(days=1)
        match operator:
            case ">=":
                self._starts.append(day)
            case ">":
                self._starts.append(day_after)
            case "<":
                self._ends.append(day)
            case "<=":
                self._ends.append(day_after)
            case "=":
                self._starts.append(day)
                self._ends.append(day_after)

    def _within(self, call: Node, value: Node) -> None:
        """Read `date_trunc('month', column) = …` or `extract(year FROM column) = 2026`."""
        name = last_name(call.get("funcname", ()))
        arguments = call.get("args", ())
        if len(arguments) != 2:
            raise _Untold

        unit = string_constant(arguments[0]).lower()
        column = self._time(arguments[1])
        if (name, unit) in _YEARS:
            start = date(_whole(value), 1, 1)
        elif name == "date_trunc" and unit in _MONTHS:
            start = self._first_day(value, unit)
        else:
            raise _Untold

        self._take_column(column)
        self._starts.append(start)
        self._ends.append(_shifted(start, _MONTHS[unit]))

    def _first_day(self, value: Node, unit: str) -> date:
        """Return the day; raises `_Untold` unless it is the first of a month, quarter or year."""
        day = self._day(value)
        if day != _start_of_unit(day, unit):
            raise _Untold

        return day

    def _take_column(self, column: Column) -> None:
        if self._column not in (None, column):
            raise _Untold

        self._column = column

    # --------------------------------------------------------------------------
    # columns

    def _time(self, node: Node) -> Column:
        column = self._column_of(node)
        if column is None or not column.type.startswith(_TIMES):
            raise _Untold

        return column

    def _is_time(self, node: Node) -> bool:
        """Tell whether it is a column of time; raises `_Untold` if it may be one."""
        column = self._column_of(node)
        return column is not None and column.type.startswith(_TIMES)

    def _column_of(self, node: Node) -> Column | None:
        parts = column_name(node)
        if not parts:
            return None

        columns = []
        for table in self._tables(parts[:-1]):
            column = table.column(parts[-1])
            if column is not None:
                columns.append(column)

        if len(columns) != 1:
            return None

        return columns[0]

    def _tables(self, qualifier: Sequence[str]) -> list[Table]:
        """Return the tables that a column with this qualifier may be of."""
        tables = []
        for source in self._sources:
            if qualifier and source.name != qualifier[-1]:
                continue
            if source.table is None:
                raise _Untold  # it may be a time of a subquery or the like

            tables.append(source.table)

        return tables

    # --------------------------------------------------------------------------
    # days

    def _day(self, node: Node) -> date:
        """Return the day that an expression of constants gives."""
        if not node:
            raise _Untold

        ((kind, value),) = node.items()
        match kind:
            case "TypeCast":
                return self._cast_day(value)
            case "A_Const":
                return _written_day(node)
            case "FuncCall":
                return self._cut_day(value)
            case "A_Expr":
                return self._moved_day(value)

        is_today = kind == "SQLValueFunction" and value.get("op") == "SVFOP_CURRENT_DATE"
        if is_today:
            return self._today

        raise _Untold

    def _cast_day(self, cast: Node) -> date:
        name = last_name(cast["typeName"].get("names", ()))
        if not name.startswith(_TIMES):
            raise _Untold

        argument = cast.get("arg", {})
        if name == "date":
            return self._instant(argument)

        return self._day(argument)

    def _cut_day(self, call: Node) -> date:
        name = last_name(call.get("funcname", ()))
        arguments = call.get("args", ())
        is_other = name != "date_trunc" or len(arguments) != 2
        if is_other:
            raise _Untold

        unit = string_constant(arguments[0]).lower()
        if unit not in ("day", *_MONTHS):
            raise _Untold

        return _start_of_unit(self._instant(arguments[1]), unit)

    def _instant(self, node: Node) -> date:
        """Return a day, or that of the present moment."""
        while "TypeCast" in node:
            inner = node["TypeCast"].get("arg", {})
            if "A_Const" in inner:  # the cast says how the constant is read
                return self._day(node)

            node = inner

        keyword = node.get("SQLValueFunction", {})
        function = node.get("FuncCall", {})
        called = last_name(function.get("funcname", ()))
        is_now = keyword.get("op") in _NOW or called in _INSTANTS
        if is_now:
            return self._today
        if "A_Expr" in node:
            return self._moved_day(node["A_Expr"], of_instant=True)

        return self._day(node)

    def _moved_day(self, node: Node, *, of_instant: bool = False) -> date:
        operator = last_name(node.get("name", ()))
        operands = operands_of(node)
        is_sum = node.get("kind") == "AEXPR_OP" and operator in _SIGNS
        if not is_sum or len(operands) != 2:
            raise _Untold

        left, right = operands
        day = self._instant(left) if of_instant else self._day(left)
        count, unit = _moved_by(right)
        signed_count = _SIGNS[operator] * count
        if unit in _MONTHS:
            return _shifted(day, signed_count * _MONTHS[unit])

        return day + timedelta(days=signed_count * _DAYS[unit])


def _written_day(node: Node) -> date:
    match = _DAY.fullmatch(string_constant(node))
    if match is None:
        raise _Untold

    return date.fromisoformat(match[1])


def _moved_by(node: Node) -> tuple[int, str]:
    """Read `INTERVAL '3 months'`: the number, and the unit in the singular and in lower case.

    A plain number is one of days.
    """
    if "A_Const" in node:
        return _whole(node), "day"

    cast = node.get("TypeCast", {})
    if last_name(cast.get("typeName", {}).get("names", ())) != "interval":
        raise _Untold

    match = _INTERVAL.fullmatch(string_constant(cast.get("arg", {})))
    if match is None:
        raise _Untold

    return int(match[1]), match[2].lower()


def conjuncts(node: Node) -> Iterator[Node]:
    """Yield the conditions that must all hold."""
    junction = node.get("BoolExpr", {})
    if junction.get("boolop") != "AND_EXPR":
        yield node
        return

    for part in junction.get("args", ()):
        yield from conjuncts(part)


def references_in(condition: Node) -> Iterator[Node]:
    """Yield references to columns, but for those in subqueries: they are of other rows."""
    pending = [condition]
    while pending:
        node = pending.pop()
        if "ColumnRef" in node:
            yield node

        inner = []
        for field, child in children_of(node):
            if field != "SubLink":
                inner.append(child)

        pending.extend(reversed(inner))


def _start_of_unit(day: date, unit: str) -> date:
    months = _MONTHS.get(unit)
    if months is None:
        return day

    first_month = (day.month - 1) // months * months + 1
    return date(day.year, first_month, 1)


def _shifted(day: date, months: int) -> date:
    """Add months as PostgreSQL does: a day that the month lacks becomes its last one."""
    months_before = day.year * 12 + day.month - 1 + months
    first = _first_of_month(months_before)
    last = _first_of_month(months_before + 1) - timedelta(days=1)
    same_day = first + timedelta(days=day.day - 1)
    return min(same_day, last)


def _first_of_month(months_before: int) -> date:
    """Return the first day of the month before which so many months of the calendar lie."""
    year, month = divmod(months_before, 12)
    return date(year, month + 1, 1)


def _whole(node: Node) -> int:
    """Return a whole number; libpg_query leaves a nought out."""
    constant = node.get("A_Const", {})
    if "ival" not in constant:
        raise _Untold

    return int(constant["ival"].get("ival", 0))
