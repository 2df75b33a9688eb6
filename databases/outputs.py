"""Says what each column of a query's result is: which stored column it comes from, and what was done to it on the way.

It reads PostgreSQL's own parse tree and follows names through subqueries and CTEs. What it can't tell stays unsaid.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from common.errors import StatementRejected
from common.values import Catalog, Column, Table
from databases.guard.parsing import Node, parse
from databases.references import table_named

_MAX_CHARS = 8_000  # of a statement that is read; such a text takes milliseconds
_MAX_DEPTH = 20  # of queries in queries

Unit = Literal["year", "quarter", "month", "week", "day", "hour"]
Part = Literal["year", "quarter", "month", "week", "day", "hour", "dow", "isodow"]
Aggregate = Literal["count", "sum", "avg", "min", "max", "stddev", "percentile_cont", "mode"]
_UNITS: Mapping[str, Unit] = {one: one for one in get_args(Unit)}
_PARTS: Mapping[str, Part] = {one: one for one in get_args(Part)}
_AGGREGATES: Mapping[str, Aggregate] = {**{one: one for one in get_args(Aggregate)}, "stddev_samp": "stddev"}
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
_FORMATS: Mapping[str, Unit] = {"YYYY": "year", "YYYY-MM": "month", "YYYYMM": "month", "YYYY-MM-DD": "day"}
# Formats of to_char whose texts are in the order of time: from the year down, all in digits, whatever stands between.
_IN_ORDER = re.compile(r"YYYY(Q|MM(DD(HH24(MI(SS)?|00(00)?)?)?)?|DDD|WW)?|IYYYIW")
_BETWEEN = re.compile(r'"[^"]*"|[^A-Z0-9]')
_DURATIONS = frozenset(("age", "justify_days", "justify_hours", "justify_interval"))  # whose years are no dates
_OF_ROWS = frozenset(("row_number", "rank", "dense_rank", "ntile"))


@dataclass(frozen=True)
class Output:
    """One column of the result.

    Attributes:
        name: as the result calls it.
        is_named: whether the query gives it this name, and PostgreSQL doesn't derive it.
        table, column: where its values come from; None when they come from several columns, or from none.
        function: the aggregate over them, the outer one of two.
        counted: the tables whose joined rows are counted, where rows are.
        period: the unit that its dates are cut to.
        part: the part of a date that it is.
        is_share: a quotient of figures of the same kind, or one over the whole.
        is_percent: it is multiplied by 100.
        is_rank: a position among the rows.
        is_total: a sum or a count, whose figures of several rows may be added up.
        is_computed: more was done to the values than that.
    """

    name: str
    is_named: bool = False
    table: Table | None = None
    column: Column | None = None
    function: Aggregate | None = None
    counted: tuple[Table, ...] = ()
    period: Unit | None = None
    part: Part | None = None
    is_share: bool = False
    is_percent: bool = False
    is_rank: bool = False
    is_total: bool = False
    is_computed: bool = False


def outputs(sql: str, columns: Sequence[str], catalog: Catalog) -> tuple[Output, ...]:
    """The columns of the result of `sql`, whose names PostgreSQL gives as `columns`; as many as these."""
    unknown = tuple(Output(name, is_computed=True) for name in columns)
    if len(sql) > _MAX_CHARS:
        return unknown
    try:
        statements = parse(sql)
    except StatementRejected:
        return unknown
    if len(statements) != 1 or statements[0].kind != "SelectStmt":
        return unknown
    found = _Reader(catalog).select(statements[0].node, _Names())
    if len(found) != len(columns):
        return unknown
    return tuple(replace(one, name=name) for one, name in zip(found, columns, strict=True))


@dataclass(frozen=True)
class _Names:
    """What names mean in one query.

    Attributes:
        ctes: columns of the CTEs that can be seen.
        sources: columns of what stands in FROM, by its name.
    """

    ctes: Mapping[str, tuple[Output, ...]] = field(default_factory=dict)
    sources: Mapping[str, tuple[Output, ...]] = field(default_factory=dict)
    depth: int = 0

    def column(self, parts: Sequence[str]) -> Output | None:
        """The column that a reference leads to, if that is certain."""
        places = [self.sources[parts[-2]]] if len(parts) > 1 and parts[-2] in self.sources else []
        if len(parts) == 1:
            places = list(self.sources.values())
        found = [one for place in places for one in place if one.name == parts[-1]]
        return found[0] if len(found) == 1 else None

    def all(self, parts: Sequence[str]) -> tuple[Output, ...]:
        """The columns of `*` or `name.*`."""
        if parts:
            return self.sources.get(parts[-1], ())
        return tuple(one for place in self.sources.values() for one in place)


class _Reader:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def select(self, select: Node, around: _Names) -> tuple[Output, ...]:
        """The columns of a SELECT; none when it can't be told."""
        if around.depth > _MAX_DEPTH:
            return ()
        names = self._with_ctes(select, replace(around, depth=around.depth + 1, sources={}))
        if "larg" in select:  # a UNION has the columns of its first part
            return self.select(select["larg"], names)
        names = replace(names, sources=dict(self._sources(select.get("fromClause", []), names)))
        found: list[Output] = []
        for target in select.get("targetList", []):
            node = target.get("ResTarget", {})
            value = node.get("val", {})
            fields = value.get("ColumnRef", {}).get("fields", ())
            if fields and "A_Star" in fields[-1]:
                found += names.all(_texts(fields))
                continue
            described = self._described(value, names)
            found.append(replace(described, name=node.get("name", described.name), is_named="name" in node))
        return tuple(found)

    def _with_ctes(self, select: Node, names: _Names) -> _Names:
        for cte in select.get("withClause", {}).get("ctes", ()):
            node = cte["CommonTableExpr"]
            query = node.get("ctequery", {}).get("SelectStmt", {})
            renamed = _texts(node.get("aliascolnames", ()))
            columns = _renamed(self.select(query, names), renamed)
            names = replace(names, ctes={**names.ctes, node["ctename"]: columns})
        return names

    def _sources(self, nodes: Sequence[Node], names: _Names) -> Iterator[tuple[str, tuple[Output, ...]]]:
        for wrapped in nodes:
            ((kind, node),) = wrapped.items()
            alias = node.get("alias", {})
            renamed = _texts(alias.get("colnames", ()))
            if kind == "RangeVar":
                columns = self._columns_of(node, names)
                yield alias.get("aliasname") or node["relname"], _renamed(columns, renamed)
            elif kind == "JoinExpr":
                yield from self._sources([node["larg"], node["rarg"]], names)
            elif kind == "RangeSubselect":
                columns = self.select(node.get("subquery", {}).get("SelectStmt", {}), names)
                yield alias.get("aliasname", ""), _renamed(columns, renamed)

    def _columns_of(self, node: Node, names: _Names) -> tuple[Output, ...]:
        parts = tuple(node[key] for key in ("schemaname", "relname") if key in node)
        if len(parts) == 1 and parts[0] in names.ctes:
            return names.ctes[parts[0]]
        table = table_named(parts, self._catalog)
        return tuple(Output(one.name, table=table, column=one) for one in table.columns) if table else ()

    def _described(self, value: Node, names: _Names) -> Output:
        """What the expression gives, without its name in the result."""
        if not value:
            return Output("", is_computed=True)
        ((kind, node),) = value.items()
        if kind == "TypeCast":
            return self._described(node.get("arg", {}), names)
        if kind == "ColumnRef":
            parts = _texts(node.get("fields", ()))
            found = names.column(parts)
            return replace(found, is_named=False) if found else Output(parts[-1] if parts else "", is_computed=True)
        if kind == "FuncCall":
            return self._called(node, names)
        if kind == "CoalesceExpr":
            return self._described(next(iter(node.get("args", ())), {}), names)
        if kind == "A_Expr":
            return self._calculated(node, names)
        if kind == "SubLink":
            inner = self.select(node.get("subselect", {}).get("SelectStmt", {}), names)
            return replace(inner[0], is_total=False) if inner else Output("", is_computed=True)
        return Output("", is_computed=True)

    def _called(self, node: Node, names: _Names) -> Output:
        function = _texts(node.get("funcname", ()))[-1]
        arguments = node.get("args", [])
        if function in _OF_ROWS:
            return Output(function, is_rank=True)
        if function in ("date_trunc", "extract", "date_part") and len(arguments) > 1:
            inner, unit = self._described(arguments[1], names), _text(arguments[0]).lower()
            if inner.name in _DURATIONS:
                return Output(function, function=inner.function, is_computed=True)
            if function == "date_trunc":
                return replace(inner, name=function, period=_UNITS.get(unit, inner.period))
            return replace(inner, name=function, part=_PARTS.get(unit), period=None, is_computed=unit not in _PARTS)
        if function == "to_char" and len(arguments) > 1:
            inner = self._described(arguments[0], names)
            return replace(inner, name=function, period=_written_period(_text(arguments[1]), inner.period))
        if (aggregate := _AGGREGATES.get(function)) is not None:
            return self._aggregated(aggregate, node, names)
        if function in _PASSING and arguments:
            return replace(self._described(arguments[0], names), name=function)
        inners = [self._described(argument, names) for argument in arguments]
        return Output(function, function=next((one.function for one in inners if one.function), None), is_computed=True)

    def _aggregated(self, function: Aggregate, node: Node, names: _Names) -> Output:
        arguments = node.get("args", [])
        ordered = node.get("agg_order", []) if node.get("agg_within_group") else []
        if ordered:  # percentile_cont(0.5) WITHIN GROUP (ORDER BY x)
            arguments = [ordered[0].get("SortBy", {}).get("node", {})]
        if not arguments:
            tables = {table.key: table for place in names.sources.values() if (table := _table_of(place))}
            return Output(
                function, function=function, counted=tuple(tables.values()), is_total=_adds_up(function, node)
            )
        inner = self._described(arguments[0], names)
        if "over" in node and inner.function:  # figures of groups, put together over all of them
            return replace(inner, name=function, is_total=False)
        is_again = inner.function == "count"  # a sum of counts is no count of values
        is_computed, is_total = inner.is_computed or is_again, _adds_up(function, node)
        return replace(inner, name=function, function=function, period=None, is_computed=is_computed, is_total=is_total)

    def _calculated(self, node: Node, names: _Names) -> Output:
        if node.get("kind") == "AEXPR_NULLIF":  # only keeps a division from failing
            return self._described(node.get("lexpr", {}), names)
        operator = _texts(node.get("name", ()))[-1:]
        sides = [
            self._described(node[side], names)
            for side in ("lexpr", "rexpr")
            if side in node and not _is_constant(node[side])
        ]
        if len(sides) == 1 and operator in (("+",), ("-",)):
            return replace(sides[0], is_total=False)
        if len(sides) == 1 and operator in (("*",), ("/",)):
            is_percent = operator == ("*",) and _has_hundred(node)
            return replace(sides[0], is_percent=is_percent, is_computed=sides[0].is_computed or not is_percent)
        function = next((one.function for one in sides if one.function), None)
        if operator == ("/",) and len(sides) == 2:
            left, right = sides
            is_share = left.column is not None and left.column == right.column and left.function == right.function
            is_share = is_share or left.function == right.function == "count"
            return Output(
                "", function=function, is_share=is_share, is_percent=left.is_percent, is_computed=not is_share
            )
        same = {(one.table.key, one.column) for one in sides if one.table and one.column}
        is_total = operator in (("+",), ("-",)) and bool(sides) and all(one.is_total for one in sides)
        if operator in (("+",), ("-",)) and len(same) == 1:
            return replace(sides[0], name="", is_computed=True, is_total=is_total)
        return Output("", function=function, is_computed=True, is_total=is_total)


def _written_period(form: str, cut_to: Unit | None) -> Unit | None:
    """The unit of times that `to_char` writes; None where their texts, such as `2025 June`, are in no order of time.

    Args:
        form: the format of `to_char`.
        cut_to: the unit that the times are cut to before they are written.
    """
    is_in_order = _IN_ORDER.fullmatch(_BETWEEN.sub("", form.upper())) is not None
    return _FORMATS.get(form, cut_to if is_in_order else None)


def _adds_up(function: Aggregate, node: Node) -> bool:
    """Whether figures of several rows make one of them all: distinct values and running totals would count twice."""
    return function in ("sum", "count") and not node.get("agg_distinct") and "over" not in node


def _table_of(place: tuple[Output, ...]) -> Table | None:
    """The table whose rows these columns are; None for those of a subquery."""
    first = place[0] if place else None
    is_whole = first is not None and first.table is not None and len(place) == len(first.table.columns)
    return first.table if first is not None and is_whole else None


def _renamed(columns: tuple[Output, ...], names: Sequence[str]) -> tuple[Output, ...]:
    renamed = [replace(one, name=name, is_named=True) for one, name in zip(columns, names, strict=False)]
    return (*renamed, *columns[len(renamed) :])


def _texts(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node["String"]["sval"] for node in nodes if "String" in node)


def _text(node: Node) -> str:
    while "TypeCast" in node:
        node = node["TypeCast"].get("arg", {})
    return str(node.get("A_Const", {}).get("sval", {}).get("sval", ""))


def _is_constant(node: Node) -> bool:
    while "TypeCast" in node:
        node = node["TypeCast"].get("arg", {})
    return "A_Const" in node


_HUNDRED = re.compile(r"100(\.0*)?")


def _has_hundred(node: Node) -> bool:
    """Whether one side is the number 100."""
    for side in ("lexpr", "rexpr"):
        constant = node.get(side, {}).get("A_Const", {})
        number = str(constant.get("ival", {}).get("ival", "")) or str(constant.get("fval", {}).get("fval", ""))
        if _HUNDRED.fullmatch(number):
            return True
    return False
