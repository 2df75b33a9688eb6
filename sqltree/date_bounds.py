"""Reads to which days a WHERE restricts the rows of a query, by conditions on one date column.

It reads PostgreSQL's own parse tree. Bounds are dates written as such, or worked out from the
present day as queries usually do (`date_trunc('month', CURRENT_DATE) - INTERVAL '1 month'`).
Whatever it can't tell surely stays unsaid: it gives nothing rather than a part of the truth.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from common.errors import StatementRejected
from common.values import Catalog, Column, Table
from sqltree.parsing import Node, parse
from sqltree.references import stored_table

_MAX_CHARS = 8_000  # of a statement that is read; such a text takes milliseconds
_DAY = re.compile(r"\A\s*+(\d{4}-\d{2}-\d{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?\s*")
_INTERVAL = re.compile(r"\A\s*+(\d{1,4})\s*+(day|week|month|year)s?\s*", re.IGNORECASE)
_NOW = frozenset(("SVFOP_CURRENT_DATE", "SVFOP_CURRENT_TIMESTAMP", "SVFOP_LOCALTIMESTAMP"))
_INSTANTS = frozenset(("now", "transaction_timestamp", "statement_timestamp"))
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_TIMES = ("date", "timestamp")


@dataclass(frozen=True)
class Days:
    """The days of `column` that rows are of, from `start` and before `end`; None: no bound."""

    column: Column
    start: date | None
    end: date | None


def days_of(sql: str, catalog: Catalog, today: date) -> Days | None:
    """Return the days that the WHERE of `sql` restricts its rows to; None when that is not sure."""
    select = _select_of(sql)
    if select is None:
        return None
    if "larg" in select:
        return None
    if "whereClause" not in select:
        return None
    ctes = select.get("withClause", {}).get("ctes", ())
    named = {cte["CommonTableExpr"]["ctename"] for cte in ctes}
    sources = tuple(_sources(select.get("fromClause", ()), catalog, named))
    try:
        return _Reading(sources, today).days(select["whereClause"])
    except (_Untold, ValueError, OverflowError):  # the latter: beyond the calendar
        return None


def _select_of(sql: str) -> Node | None:
    """Parse `sql`; None unless it is one query."""
    if len(sql) > _MAX_CHARS:
        return None
    try:
        statements = parse(sql)
    except StatementRejected:
        return None
    if len(statements) != 1:
        return None
    if statements[0].kind != "SelectStmt":
        return None
    return statements[0].node


class _Untold(Exception):
    """The days can't be told from the text."""


@dataclass(frozen=True)
class _Source:
    """An entry of FROM by its name in the query; `table` is None unless it is a stored one."""

    name: str
    table: Table | None


def _sources(nodes: Sequence[Node], catalog: Catalog, ctes: Collection[str]) -> Iterator[_Source]:
    for wrapped in nodes:
        ((kind, node),) = wrapped.items()
        name = node.get("alias", {}).get("aliasname") or node.get("relname", "")
        is_join = kind == "JoinExpr" and "alias" not in node
        if is_join:
            yield from _sources([node["larg"], node["rarg"]], catalog, ctes)
        elif kind == "RangeVar":
            yield _Source(name, stored_table(node, catalog, ctes))
        else:
            yield _Source(name, None)


class _Reading:
    """Reads the bounds that one WHERE sets."""

    def __init__(self, sources: Sequence[_Source], today: date) -> None:
        self._sources = sources
        self._today = today
        self._column: Column | None = None
        self._starts: list[date] = []
        self._ends: list[date] = []

    def days(self, where: Node) -> Days | None:
        """Return the days, if all conditions on times are about one column."""
        for condition in _conjuncts(where):
            references = _references(condition)
            if any(map(self._is_time, references)):
                self._read(condition)
        if self._column is None:
            return None
        start = max(self._starts, default=None)
        end = min(self._ends, default=None)
        is_open = start is None or end is None
        if not is_open and min(self._ends) <= max(self._starts):
            return None
        return Days(self._column, start, end)

    # --------------------------------------------------------------------------
    # conditions

    def _read(self, condition: Node) -> None:
        if condition.get("NullTest", {}).get("nulltesttype") == "IS_NOT_NULL":
            return
        node = condition.get("A_Expr", {})
        kind, operator = node.get("kind"), _texts(node.get("name", ()))[-1:]
        left, right = node.get("lexpr", {}), node.get("rexpr", {})
        if kind == "AEXPR_BETWEEN":
            low, high = right.get("List", {}).get("items", ({}, {}))
            column = self._time(left)
            self._bound(column, ">=", self._day(low))
            self._bound(column, "<=", self._day(high))
            return
        is_untold = kind != "AEXPR_OP" or operator[0] not in _TURNED
        if is_untold:
            raise _Untold
        if "ColumnRef" in right:
            self._bound(self._time(right), _TURNED[operator[0]], self._day(left))
        elif operator == ("=",) and "FuncCall" in left:
            self._within(left["FuncCall"], right)
        else:
            self._bound(self._time(left), operator[0], self._day(right))

    def _bound(self, column: Column, operator: str, day: date) -> None:
        """Take one bound; of timestamps only those that hold for whole days are read."""
        is_rounded = operator not in (">=", "<") and column.type != "date"
        if is_rounded:
            raise _Untold
        self._of(column)
        day_after = day + timedelta(days=1)
        if operator in (">=", "="):
            self._starts.append(day)
        elif operator == ">":
            self._starts.append(day_after)
        if operator in ("<=", "="):
            self._ends.append(day_after)
        elif operator == "<":
            self._ends.append(day)

    def _within(self, call: Node, value: Node) -> None:
        """Read `date_trunc('month', column) = …` or `extract(year FROM column) = 2026`."""
        name, arguments = _texts(call.get("funcname", ()))[-1], call.get("args", ())
        if len(arguments) != 2:
            raise _Untold
        unit, column = _string(arguments[0]).lower(), self._time(arguments[1])
        is_year = name in ("extract", "date_part") and unit == "year"
        if is_year:
            start = date(_whole(value), 1, 1)
        elif name == "date_trunc" and unit in _MONTHS:
            start = self._day(value)
            if start != _cut(start, unit):
                raise _Untold
        else:
            raise _Untold
        self._of(column)
        self._starts.append(start)
        self._ends.append(_shifted(start, _MONTHS[unit]))

    def _of(self, column: Column) -> None:
        if self._column not in (None, column):
            raise _Untold
        self._column = column

    # --------------------------------------------------------------------------
    # columns

    def _time(self, node: Node) -> Column:
        column = self._column_of(node)
        if column is None:
            raise _Untold
        if not column.type.startswith(_TIMES):
            raise _Untold
        return column

    def _is_time(self, node: Node) -> bool:
        """Tell whether it is a column of time; raises `_Untold` if it may be one."""
        column = self._column_of(node)
        if column is None:
            return False
        return column.type.startswith(_TIMES)

    def _column_of(self, node: Node) -> Column | None:
        parts = _texts(node.get("ColumnRef", {}).get("fields", ()))
        if not parts:
            return None
        sources = self._sources
        if len(parts) > 1:
            sources = [one for one in sources if one.name == parts[-2]]
        found = []
        for source in sources:
            if source.table is None:
                raise _Untold  # it may be a time of a subquery or the like
            for column in source.table.columns:
                if column.name == parts[-1]:
                    found.append(column)
        if len(found) == 1:
            return found[0]
        return None

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
        name = _texts(cast["typeName"].get("names", ()))[-1]
        if not name.startswith(_TIMES):
            raise _Untold
        argument = cast.get("arg", {})
        if name == "date":
            return self._instant(argument)
        return self._day(argument)

    def _cut_day(self, call: Node) -> date:
        name = _texts(call.get("funcname", ()))[-1]
        arguments = call.get("args", ())
        is_other = name != "date_trunc" or len(arguments) != 2
        if is_other:
            raise _Untold
        unit = _string(arguments[0]).lower()
        if unit not in ("day", *_MONTHS):
            raise _Untold
        return _cut(self._instant(arguments[1]), unit)

    def _instant(self, node: Node) -> date:
        """Return a day, or that of the present moment."""
        while "TypeCast" in node and "A_Const" not in node["TypeCast"].get("arg", {}):
            node = node["TypeCast"].get("arg", {})
        if node.get("SQLValueFunction", {}).get("op") in _NOW:
            return self._today
        called = _texts(node.get("FuncCall", {}).get("funcname", ()))
        is_instant = called and called[-1] in _INSTANTS
        if is_instant:
            return self._today
        if "A_Expr" in node:
            return self._moved_day(node["A_Expr"], of_instant=True)
        return self._day(node)

    def _moved_day(self, node: Node, *, of_instant: bool = False) -> date:
        operator = _texts(node.get("name", ()))[-1:]
        is_no_sum = node.get("kind") != "AEXPR_OP" or operator not in (("+",), ("-",))
        if is_no_sum:
            raise _Untold
        if "lexpr" not in node:
            raise _Untold
        day = self._instant(node["lexpr"]) if of_instant else self._day(node["lexpr"])
        sign = -1
        if operator == ("+",):
            sign = 1
        right = node["rexpr"]
        if "A_Const" in right:  # days
            return day + timedelta(days=sign * _whole(right))
        count, unit = _interval_of(right)
        if unit in _MONTHS:
            return _shifted(day, sign * count * _MONTHS[unit])
        days = count
        if unit == "week":
            days = 7 * count
        return day + timedelta(days=sign * days)


def _written_day(node: Node) -> date:
    match = _DAY.fullmatch(_string(node))
    if match is None:
        raise _Untold
    return date.fromisoformat(match[1])


def _interval_of(node: Node) -> tuple[int, str]:
    """Read `INTERVAL '3 months'`: the number, and the unit in the singular and in lower case."""
    cast = node.get("TypeCast", {})
    if _texts(cast.get("typeName", {}).get("names", ()))[-1:] != ("interval",):
        raise _Untold
    match = _INTERVAL.fullmatch(_string(cast.get("arg", {})))
    if match is None:
        raise _Untold
    return int(match[1]), match[2].lower()


def _conjuncts(node: Node) -> Iterator[Node]:
    both = node.get("BoolExpr", {})
    if both.get("boolop") != "AND_EXPR":
        yield node
        return
    for part in both.get("args", ()):
        yield from _conjuncts(part)


def _references(value: Any) -> Iterator[Node]:
    """Yield references to columns, but for those in subqueries: they are of other rows."""
    if isinstance(value, list):
        for part in value:
            yield from _references(part)
    elif isinstance(value, dict):
        if "ColumnRef" in value:
            yield value
        for name, part in value.items():
            if name != "SubLink":
                yield from _references(part)


def _cut(day: date, unit: str) -> date:
    months = _MONTHS.get(unit)
    if months is None:
        return day
    first_month = (day.month - 1) // months * months + 1
    return date(day.year, first_month, 1)


def _shifted(day: date, months: int) -> date:
    """Add months as PostgreSQL does: a day that the month lacks becomes its last one."""
    count = day.year * 12 + day.month - 1 + months
    first = date(count // 12, count % 12 + 1, 1)
    following = date((count + 1) // 12, (count + 1) % 12 + 1, 1)
    return min(first + timedelta(days=day.day - 1), following - timedelta(days=1))


def _texts(nodes: Sequence[Node]) -> tuple[str, ...]:
    found = []
    for node in nodes:
        if "String" in node:
            found.append(node["String"]["sval"])
    return tuple(found)


def _string(node: Node) -> str:
    return str(node.get("A_Const", {}).get("sval", {}).get("sval", ""))


def _whole(node: Node) -> int:
    """Return a whole number; libpg_query leaves a nought out."""
    constant = node.get("A_Const", {})
    if "ival" not in constant:
        raise _Untold
    return int(constant["ival"].get("ival", 0))
