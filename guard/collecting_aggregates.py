"""Has PostgreSQL prove how much memory it takes to gather values of rows into one value.

Nothing that the planner estimates holds against a hostile query: each condition that is always true
divides the rows that it expects. So beside `string_agg(name, ',')` the statement that is sent adds
up the bytes of what is gathered, scaled so that the sum overflows at the limit:

    CASE WHEN sum(bytes * scale) < 0 THEN NULL ELSE string_agg(name, ',') END

Both are computed row by row, so that PostgreSQL ends the statement at the first row that is too
much. `ARRAY(SELECT …)` is limited by a running sum over its rows. Groups are gathered one after the
other, because PostgreSQL is told to sort them (`enable_hashagg`).
"""

import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from common.errors import ValidationFailed
from guard.row_sizes import is_gathering
from guard.walk import strings
from sqltree.parsing import TOO_DEEP, Node, parse

MEMORY = 224 * 1024 * 1024
"""Most bytes for all that one statement gathers."""
_MOST_NESTED = 4  # gathered within gathered: what is added to the statement doubles with each
# Types of which an array turns into text without a kilobyte for each element.
_PLAIN_TYPES = (
    "bool int2 int4 int8 float4 float8 numeric text varchar bpchar name date time timestamp"
    " timestamptz interval inet json bytea"
)
# What PostgreSQL needs for the values `{}` of one row, until all is sent: measured.
_TEXT_BYTES = "20 + 4 * pg_catalog.octet_length(pg_catalog.concat({}))"
_JSON_BYTES = "64 + 4 * pg_catalog.pg_column_size(pg_catalog.json_build_array({}))"
_JSONB_BYTES = "16 * pg_catalog.pg_column_size(pg_catalog.jsonb_build_array({}))"
_ARRAY_BYTES = (
    "CASE WHEN pg_catalog.pg_typeof({})::pg_catalog.oid = ANY ('{{"
    + _PLAIN_TYPES.replace(" ", ",")
    + "}}'::pg_catalog.regtype[]::pg_catalog.oid[]) THEN 4 * pg_catalog.pg_column_size(ARRAY[{}])"
    " ELSE 3600 + 8 * pg_catalog.pg_column_size(ARRAY[{}]) END"
)
_BYTES_BY_NAME = {"string": _TEXT_BYTES, "xmlagg": _TEXT_BYTES, "json": _JSON_BYTES}
_BYTES_BY_NAME |= {"jsonb": _JSONB_BYTES, "array": _ARRAY_BYTES, "range": _ARRAY_BYTES}
# Equal values are gathered once with DISTINCT. So the bytes of others have to differ a little.
_DISTINCT = (
    "DISTINCT (1::pg_catalog.float8 + pg_catalog.hashtextextended(pg_catalog.concat({}), 0)"
    "::pg_catalog.float8 / '1e23'::pg_catalog.float8) * "
)
_CALL = "SELECT CASE WHEN pg_catalog.sum({}) < 0::pg_catalog.float8 THEN NULL ELSE NULL END"
_ROWS = (
    "SELECT CASE WHEN pg_catalog.sum({}) OVER (ROWS UNBOUNDED PRECEDING)"
    " < 0::pg_catalog.float8"
    " THEN NULL ELSE citu_gathered.v END FROM (SELECT 1) AS citu_gathered (v)"
)
_AGGREGATE_SYNTAXES = ("JsonArrayAgg", "JsonObjectAgg")


@dataclass(frozen=True)
class _Gathering:
    """A part of the tree that gathers values.

    Attributes:
        node: holds it, under its kind.
        depth: within how many others it is.
    """

    node: Node
    depth: int


def limit_collecting_aggregates(select: Node, copies: float) -> bool:
    """Limit all that the query gathers; return whether it gathers anything.

    Args:
        copies: how many copies of what is gathered are in memory at once.

    Raises:
        ValidationFailed: it gathers too deep within what it gathers.
    """
    gatherings = _gatherings(select)
    scale = sys.float_info.max / MEMORY * max(copies, 1.0)
    for gathering in reversed(gatherings):  # those within others first
        if gathering.depth > _MOST_NESTED:
            raise ValidationFailed(TOO_DEEP)

        _limit(gathering.node, f"'{scale:.6g}'::pg_catalog.float8")

    return bool(gatherings)


def _gatherings(select: Node) -> list[_Gathering]:
    """Return all that gathers, each before what is within it."""
    gatherings = []
    pending: list[tuple[Any, int]] = [(select, 0)]
    while pending:
        value, depth = pending.pop()
        children = value
        if isinstance(value, dict):
            children = value.values()
            if _gathers(value):
                depth += 1
                gatherings.append(_Gathering(value, depth))

        for child in children:
            if isinstance(child, (dict, list)):
                pending.append((child, depth))

    return gatherings


def _gathers(node: Node) -> bool:
    if "FuncCall" in node:
        return is_gathering(strings(node["FuncCall"]["funcname"])[-1])
    if "SubLink" in node:
        return bool(node["SubLink"].get("subLinkType") == "ARRAY_SUBLINK")

    return any(kind in node for kind in (*_AGGREGATE_SYNTAXES, "JsonArrayQueryConstructor"))


def _limit(node: Node, scale: str) -> None:
    if "FuncCall" in node:
        _limit_call(node, node["FuncCall"], scale)
        return

    for kind in _AGGREGATE_SYNTAXES:
        if kind in node:
            _limit_syntax(node, node[kind], scale)
            return

    if "SubLink" in node:
        _limit_rows(node["SubLink"]["subselect"], _ARRAY_BYTES, scale)
    else:
        _limit_rows(node["JsonArrayQueryConstructor"]["query"], _JSON_BYTES, scale)


def _limit_call(node: Node, call: Node, scale: str) -> None:
    """Put the check of its arguments' bytes around an aggregate call.

    Args:
        node: that holds the call, and then the check.
        call: of an aggregate that gathers values of rows.
        scale: SQL of the factor by which the bytes are multiplied.
    """
    name = strings(call["funcname"])[-1]
    values = []
    for argument in call.get("args", ()):
        named = argument.get("NamedArgExpr", {})
        values.append(named.get("arg", argument))

    if not values:
        return

    is_distinct = bool(call.get("agg_distinct"))
    measured = _BYTES_BY_NAME[name.split("_")[0]]
    total = _sum_of(measured, values, scale, is_distinct=is_distinct)
    _check(node, total, call)


def _limit_syntax(node: Node, syntax: Node, scale: str) -> None:
    """Limit a `JSON_ARRAYAGG` or `JSON_OBJECTAGG`."""
    clauses = syntax["constructor"]
    argument = syntax["arg"]
    values = [argument.get("value", argument)["raw_expr"]]
    if "key" in argument:
        values.append(argument["key"])

    returned = clauses.get("output", {}).get("typeName", {}).get("names", ())
    measured = _JSON_BYTES
    if "jsonb" in strings(returned):
        measured = _JSONB_BYTES

    _check(node, _sum_of(measured, values, scale), clauses)


def _check(node: Node, checked: Node, clauses: Node) -> None:
    """Replace an aggregate by one with a sum that is computed beside it.

    Args:
        checked: the CASE with the sum.
        clauses: says of which rows and windows both are.
    """
    total = _sum_in(checked)
    for clause in ("agg_filter", "over"):
        if clause in clauses:
            total[clause] = deepcopy(clauses[clause])

    checked["CaseExpr"]["defresult"] = dict(node)
    node.clear()
    node.update(checked)


def _limit_rows(subselect: Node, measured: str, scale: str) -> None:
    """Limit what is gathered of the rows of a query, which is replaced."""
    query = subselect["SelectStmt"]
    if len(query.get("targetList", ())) > 1:
        return  # PostgreSQL refuses it

    value = "citu_gathered.v"
    limited = deepcopy(_parse_template(_ROWS.format(_size_expression(measured, [value], scale))))
    limited["fromClause"][0]["RangeSubselect"]["subquery"] = {"SelectStmt": query}
    subselect["SelectStmt"] = limited


def _sum_of(
    measured: str, values: Sequence[Node], scale: str, *, is_distinct: bool = False
) -> Node:
    """Return a CASE with the sum of the bytes of `values`."""
    names = [f"${number}" for number in range(1, len(values) + 1)]
    total = _size_expression(measured, names, scale)
    if is_distinct:
        total = _DISTINCT.format(", ".join(names)) + total

    template = _parse_template(_CALL.format(total))["targetList"][0]["ResTarget"]["val"]
    sum_node: Node = _filled(template, dict(enumerate(values, 1)))
    return sum_node


def _size_expression(measured: str, names: Sequence[str], scale: str) -> str:
    """Return SQL for the scaled bytes of one row's values; `measured` is one of `…_BYTES`."""
    is_array = measured is _ARRAY_BYTES
    if is_array:  # of one value, which its template names three times
        value = names[0]
        size = measured.format(value, value, value)
    else:
        size = measured.format(", ".join(names))

    return f"({size})::pg_catalog.float8 * {scale}"


def _sum_in(checked: Node) -> Node:
    condition = checked["CaseExpr"]["args"][0]["CaseWhen"]["expr"]
    total: Node = condition["A_Expr"]["lexpr"]["FuncCall"]
    return total


@lru_cache(maxsize=256)
def _parse_template(template: str) -> Node:
    return parse(template)[0].node


def _filled(template: Any, values: Mapping[int, Node]) -> Any:
    """Return a copy of the template with the values for its parameters."""
    if isinstance(template, list):
        return [_filled(item, values) for item in template]
    if not isinstance(template, dict):
        return template
    if "ParamRef" in template:
        return deepcopy(values[template["ParamRef"]["number"]])

    return {key: _filled(child, values) for key, child in template.items()}
