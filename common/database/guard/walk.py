"""The walk over one query's tree: proves that it only reads, and notes what it reads.

Iterative, because trees may be deep. Beside each node travels the set of CTE names visible there: a name that is a CTE
is not a table, but only within its WITH's scope.
"""

from dataclasses import dataclass, field
from typing import Any

from common.database.guard.functions import Call
from common.database.guard.grammar import FORBIDDEN_FIELDS, QUERY_FIELDS, QUERY_NODES, lock_of, operation_of
from common.database.guard.parsing import MAX_JOINS, MAX_NESTING, TOO_DEEP, Node
from common.errors import ForbiddenStatement, ValidationFailed
from common.text import Text

Scope = frozenset[str]
Name = tuple[str, ...]

_TOO_MANY_JOINS = Text(f"连接的表过多（上限{MAX_JOINS}个）。", f"Too many joined tables (at most {MAX_JOINS}).")


@dataclass(frozen=True)
class Relation:
    """A table as written: (`name`,), (`schema`, `name`) or (`database`, `schema`, `name`)."""

    parts: Name

    @property
    def name(self) -> str:
        """The name without its schema."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The schema it is qualified with."""
        return self.parts[-2] if len(self.parts) > 1 else None


@dataclass
class Findings:
    """What a query uses, in the order met."""

    relations: list[Relation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    selects: list[tuple[Node, Scope]] = field(default_factory=list)
    columns: list[Name] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    types: list[Name] = field(default_factory=list)
    operators: list[Name] = field(default_factory=list)
    value_functions: list[str] = field(default_factory=list)
    sampling_methods: list[Name] = field(default_factory=list)


def walk(kind: str, node: Node) -> Findings:
    """What the query uses.

    Raises:
        ForbiddenStatement: something in it is not a query.
        ValidationFailed: it is nested too deeply or joins too many tables.
    """
    return _Walk().run(kind, node)


class _Walk:
    def __init__(self) -> None:
        self.findings = Findings()
        self.pending: list[tuple[Any, Scope, int]] = []

    def run(self, kind: str, node: Node) -> Findings:
        self.pending.append(({kind: node}, frozenset(), 0))
        while self.pending:
            self.visit(*self.pending.pop())
        if len(self.findings.relations) > MAX_JOINS:
            raise ValidationFailed(_TOO_MANY_JOINS)
        return self.findings

    def visit(self, value: Any, scope: Scope, depth: int) -> None:
        if depth > MAX_NESTING:
            raise ValidationFailed(TOO_DEEP)
        if isinstance(value, list):
            self.pending.extend((item, scope, depth + 1) for item in value)
            return
        for key, child in value.items():
            if isinstance(child, (dict, list)):
                self.child(key, child, scope, depth)

    def child(self, key: str, child: Any, scope: Scope, depth: int) -> None:
        if key in FORBIDDEN_FIELDS:
            raise ForbiddenStatement(lock_of(child) if key == "lockingClause" else FORBIDDEN_FIELDS[key])
        if key not in QUERY_NODES and key not in QUERY_FIELDS:
            raise ForbiddenStatement(operation_of(key, child if isinstance(child, dict) else {}))
        if key in ("SelectStmt", "larg", "rarg") and isinstance(child, dict) and "op" in child:
            scope = self.enter(child, scope, depth)
            self.findings.selects.append((child, scope))
        _note(key, child, scope, self.findings)
        self.pending.append((child, scope, depth + 1))

    def enter(self, select: Node, scope: Scope, depth: int) -> Scope:
        """The scope inside a SELECT: what its WITH adds. Each CTE sees the ones before it, or all if RECURSIVE."""
        clause = select.get("withClause")
        if not clause:
            return scope
        ctes = [cte["CommonTableExpr"] for cte in clause.get("ctes", ())]
        names = [cte["ctename"] for cte in ctes]
        whole = scope.union(names)
        visible = whole if clause.get("recursive") else scope
        for cte in ctes:
            self.pending.append(({"CommonTableExpr": cte}, visible, depth + 2))
            visible = visible | {cte["ctename"]}
        # The CTEs are walked above, each in its own scope; what is left of the WITH holds nothing more.
        select.pop("withClause")
        return whole


def _note(key: str, node: Any, scope: Scope, found: Findings) -> None:
    note = _NOTES.get(key)
    if note is not None:
        note(node, scope, found)


def strings(items: Any) -> Name:
    """The strings of a list of String nodes; a star (`t.*`) becomes `*`."""
    return tuple(item["String"]["sval"] if "String" in item else "*" for item in items)


def relation_of(node: Node, scope: Scope) -> Relation | None:
    """The table a RangeVar names, or None when it is a CTE."""
    parts = tuple(node[key] for key in ("catalogname", "schemaname", "relname") if key in node)
    return Relation(parts) if len(parts) > 1 or parts[0] not in scope else None


def _relation(node: Node, scope: Scope, found: Findings) -> None:
    relation = relation_of(node, scope)
    if relation is not None:
        found.relations.append(relation)


def _call(node: Node, _: Scope, found: Findings) -> None:
    arguments = node.get("args", ())
    literals = tuple(argument.get("A_Const", {}).get("sval", {}).get("sval") for argument in arguments)
    found.calls.append(Call(strings(node["funcname"]), literals, node.get("location", 0)))


def _column(node: Node, _: Scope, found: Findings) -> None:
    name = strings(node["fields"])
    found.columns.append(name)
    found.fields.extend(name[1:])


def _indirection(node: Node, _: Scope, found: Findings) -> None:
    found.fields.extend(strings(item for item in node["indirection"] if "String" in item))


def _cast(node: Node, _: Scope, __: Findings) -> None:
    """`tableoid::regclass` names the partition a row is in, and is the one look into the catalogue that is of use."""
    column = node.get("arg", {}).get("ColumnRef", {}).get("fields", ())
    if strings(column)[-1:] == ("tableoid",) and strings(node["typeName"].get("names", ())) == ("regclass",):
        node.pop("typeName")


def _type(node: Node, _: Scope, found: Findings) -> None:
    if "names" in node:
        found.types.append(strings(node["names"]))


def _operator(items: Any, _: Scope, found: Findings) -> None:
    found.operators.append(strings(items))


def _expression(node: Node, scope: Scope, found: Findings) -> None:
    _operator(node.get("name", ()), scope, found)


def _value_function(node: Node, _: Scope, found: Findings) -> None:
    found.value_functions.append(node["op"].removeprefix("SVFOP_").lower())


def _sampling(node: Node, _: Scope, found: Findings) -> None:
    found.sampling_methods.append(strings(node["method"]))


_NOTES = {
    "RangeVar": _relation,
    "FuncCall": _call,
    "ColumnRef": _column,
    "A_Indirection": _indirection,
    "TypeCast": _cast,
    "TypeName": _type,
    "typeName": _type,
    "A_Expr": _expression,
    "operName": _operator,
    "useOp": _operator,
    "SQLValueFunction": _value_function,
    "RangeTableSample": _sampling,
}
