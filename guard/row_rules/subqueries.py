"""Write what stands in a ruled table's place: a tree of
`(SELECT columns FROM table WHERE predicate OFFSET 0)`.

Rights add up. A row is shown when any of the actor's grants shows it. A column is shown as it is in
the rows that a grant without a mask for it shows; in other rows the first grant of the file that
shows the row masks it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from guard.refusal_texts import refusal_of_object
from guard.row_rules import texts
from guard.row_rules.predicates import ActorValues, with_constants
from guard.row_rules.rule_binding import BoundGrant, BoundTable
from guard.walk import strings
from sqltree.parsing import Node, parse

_NO_ROWS: Node = {"A_Const": {"boolval": {}}}
_NULL: Node = {"A_Const": {"isnull": True}}
_FENCE: Node = {"A_Const": {"ival": {}}}
_LIMITED_TEXTS = (("pg_catalog", "varchar"), ("pg_catalog", "bpchar"))


def subquery(
    table: BoundTable,
    grants: Sequence[int],
    values: ActorValues,
    source: Node,
    columns: Sequence[str],
) -> Node:
    """Return the SELECT that shows what the grants show.

    Args:
        grants: the places of those that count for the actor.
        source: what it reads from: the table, called `table.row`.
        columns: what it gives, in order; system columns may be among them.

    Raises:
        ForbiddenObject: one of the grants does not fit the server.
    """
    chosen = [table.grants[place] for place in grants]
    has_problem = any(grant.problem is not None for grant in chosen)
    if has_problem:
        raise refusal_of_object(".".join(table.key), texts.CLOSED_BY_MISTAKE)

    select = {
        "targetList": [_target(table, chosen, column) for column in columns],
        "limitOffset": _FENCE,
        "limitOption": "LIMIT_OPTION_COUNT",
        "op": "SETOP_NONE",
    }
    shows_all = any(grant.rows is None for grant in chosen)
    if not shows_all:
        select["whereClause"] = _any_of(chosen)
    if not columns:
        del select["targetList"]

    return {**with_constants(select, values), "fromClause": [source]}


def masked_columns(grants: Sequence[Any]) -> frozenset[str]:
    """Return the columns that grants mask in some or all rows.

    The grants may be bound or as in the file.
    """
    masks = [dict(grant.masks) for grant in grants]
    names: set[str] = set().union(*masks)
    for grant, masked in zip(grants, masks, strict=True):
        shows_all_rows = grant.rows is None
        if shows_all_rows:
            names &= masked.keys()

    return frozenset(names)


def _target(table: BoundTable, grants: Sequence[BoundGrant], column: str) -> Node:
    name = [{"String": {"sval": part}} for part in (table.row, column)]
    plain: Node = {"ColumnRef": {"fields": name}}
    if column not in masked_columns(grants):
        return {"ResTarget": {"val": plain}}

    clear = [grant for grant in grants if column not in grant.masks]
    cases = [(_any_of(clear), plain)] if clear else []
    cases += _masked_cases(table, grants, column)
    return {"ResTarget": {"name": column, "val": _first_of(cases)}}


def _masked_cases(
    table: BoundTable, grants: Sequence[BoundGrant], column: str
) -> list[tuple[Node, Node]]:
    """Return the masks of a column with the rows that they hold for, up to one for all rows."""
    type_name = _type_name(table.types.get(column, "text"))
    cases = []
    for grant in grants:
        if column in grant.masks:
            mask = _as(type_name, grant.masks[column])
            cases.append((grant.rows or _NO_ROWS, mask))
            if grant.rows is None:
                break

    return cases


def _first_of(cases: Sequence[tuple[Node, Node]]) -> Node:
    """Return the value of the first condition that holds; the last value where none of those
    before it does.
    """
    (*before, (_, default)) = cases
    if not before:
        return default

    branches = [{"CaseWhen": {"expr": condition, "result": result}} for condition, result in before]
    return {"CaseExpr": {"args": branches, "defresult": default}}


def _any_of(grants: Sequence[BoundGrant]) -> Node:
    """Return a condition that holds where the condition of any of the grants holds. PostgreSQL's
    parser keeps ORs flat.
    """
    conditions: list[Node] = []
    for grant in grants:
        rows = grant.rows or _NO_ROWS
        chain = rows.get("BoolExpr", {})
        parts = [rows]
        if chain.get("boolop") == "OR_EXPR":
            parts = chain["args"]

        conditions += parts

    if len(conditions) > 1:
        return {"BoolExpr": {"boolop": "OR_EXPR", "args": conditions}}

    return next(iter(conditions), _NO_ROWS)


def _as(type_name: Node, value: Node) -> Node:
    """Return the value in its column's type, so that statements about the column stay valid."""
    return {"TypeCast": {"arg": value, "typeName": type_name}}


@lru_cache(maxsize=1024)
def _type_name(text: str) -> Node:
    """Return the tree of a type's name. A mask may be longer than the column's texts, so these
    lose their length.
    """
    (statement,) = parse(f"SELECT NULL::{text}")
    type_name: Node = statement.node["targetList"][0]["ResTarget"]["val"]["TypeCast"]["typeName"]
    if strings(type_name["names"]) in _LIMITED_TEXTS:
        type_name.pop("typmods", None)
        del type_name["names"][:-1]  # pg_catalog.bpchar would be written char, which is char(1)

    return type_name
