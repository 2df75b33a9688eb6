"""The walk over one query's tree: proves that it only reads, and notes what it reads.

It does not recurse, because trees may be deep. With each node it keeps the scope of the CTEs that are visible there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from common.errors import ForbiddenStatement, ValidationFailed
from common.text import Text
from databases.guard import xpath
from databases.guard.facts import SHOWING_FUNCTIONS
from databases.guard.functions import Call
from databases.guard.grammar import (
    FORBIDDEN_FIELDS,
    QUERY_FIELDS,
    QUERY_NODES,
    SYNTAX_NODES,
    lock_of,
    operation_of,
    place_of,
    syntax_word,
)
from databases.guard.names import Name, Qualified
from databases.guard.parsing import MAX_JOINS, MAX_NESTING, MAX_TABLES, TOO_DEEP, Node
from databases.guard.scopes import NOWHERE, Scope, with_queries

# Places where a value of a catalogue type meets no value of another type: cast to text, compared, sorted, counted.
_TEXT_TYPES = frozenset(("text", "varchar", "bpchar"))
_GROUPINGS, _ORDERINGS = ("groupClause", "distinctClause", "partitionClause"), ("sortClause", "orderClause")
_SHOWING_CLAUSES = frozenset((*_GROUPINGS, *_ORDERINGS))
_SHOWING_NODES = frozenset(("TypeCast", "FuncCall", "A_Expr"))
_VALUE_NODES = frozenset(("FuncCall", "TypeCast"))

# The left sides of operators and set operations: chains of these make trees deep, but don't count as nesting.
_CHAIN_STARTS = frozenset(("lexpr", "larg"))

_TOO_MANY_JOINS = Text(f"连接的表过多（上限{MAX_JOINS}个）。", f"Too many joined tables (at most {MAX_JOINS}).")
_TOO_MANY_TABLES = Text(f"查询的表过多（上限{MAX_TABLES}个）。", f"Too many tables (at most {MAX_TABLES}).")

# Planning takes about 10 ns for each unit: the levels of subqueries, cubed, times the columns and conditions of one.
_MAX_PLANNED = 50_000_000
_LEVEL_WIDTH = 15  # columns: what a level costs by itself
_MAX_COLUMNS = 1_664  # of a row
_WHOLE = 0  # the whole statement, among ids of queries; it reads all CTEs, because unused ones are planned, too


@dataclass(frozen=True)
class Relation(Qualified):
    """A table as written."""


@dataclass
class Findings:
    """What a query uses, in the order in which the walk meets it."""

    relations: list[Relation] = field(default_factory=list)
    cte_names: set[str] = field(default_factory=set)  # in FROM
    calls: list[Call] = field(default_factory=list)
    syntax: list[Call] = field(default_factory=list)
    selects: list[tuple[Node, Scope]] = field(default_factory=list)
    columns: list[Name] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    types: list[Name] = field(default_factory=list)
    casts: list[tuple[Name, str]] = field(default_factory=list)
    operators: list[Name] = field(default_factory=list)
    value_functions: list[str] = field(default_factory=list)
    sampling_methods: list[Name] = field(default_factory=list)
    mixed_values: list[str] = field(default_factory=list)
    xml_paths: list[tuple[str, str | None]] = field(default_factory=list)
    has_table_names: bool = False


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
        self.pending: list[tuple[Any, Scope, int, int]] = []  # what to visit, its scope, depth and query
        self.width = 1  # of the longest list: columns, conditions, tables
        self.inner: defaultdict[int, set[int]] = defaultdict(set)  # query → queries it reads; by ids of nodes
        self.shown: set[int] = set()
        self.entered: set[int] = set()

    def run(self, kind: str, node: Node) -> Findings:
        self.pending.append(({kind: node}, NOWHERE, 0, _WHOLE))
        if node.get("op") == "SETOP_NONE":
            self.show(target.get("ResTarget", {}).get("val") for target in node.get("targetList", ()))
        while self.pending:
            self.visit(*self.pending.pop())
        if len(self.findings.relations) > MAX_TABLES:
            raise ValidationFailed(_TOO_MANY_TABLES)
        if _is_too_much(len(self.inner), self.width):
            self.measure()
        return self.findings

    def visit(self, value: Any, scope: Scope, depth: int, query: int) -> None:
        if depth > MAX_NESTING:
            raise ValidationFailed(TOO_DEEP)
        if isinstance(value, list):
            self.width = max(self.width, len(value))
            self.pending.extend((item, scope, depth + 1, query) for item in value)
            return
        for key, child in value.items():
            if isinstance(child, (dict, list)) and id(child) not in self.entered:
                self.child(key, child, scope, depth, query)

    def child(self, key: str, child: Any, scope: Scope, depth: int, query: int) -> None:
        if key in FORBIDDEN_FIELDS:
            raise ForbiddenStatement(lock_of(child) if key == "lockingClause" else FORBIDDEN_FIELDS[key])
        if key not in QUERY_NODES and key not in QUERY_FIELDS:
            raise ForbiddenStatement(operation_of(key, child if isinstance(child, dict) else {}))
        if key in ("SelectStmt", "larg", "rarg") and isinstance(child, dict) and "op" in child:
            if _adds_columns(child):
                self.width = _MAX_COLUMNS
            if key == "SelectStmt":
                self.inner[query].add(id(child))
                query = id(child)
            scope = self.enter(child, scope, depth)
            self.findings.selects.append((child, scope))
            if _joined(child) > MAX_JOINS:
                raise ValidationFailed(_TOO_MANY_JOINS)
        if key == "RangeVar" and (cte := _cte_of(child, scope)) is not None:
            self.inner[query].add(id(cte["ctequery"].get("SelectStmt")))
        self.look_at_value(key, child)
        _note(key, child, scope, self.findings)
        if key in SYNTAX_NODES:
            self.findings.syntax.append(Call((syntax_word(key, child),), location=place_of(child)))
        self.pending.append((child, scope, depth - 1 if key in _CHAIN_STARTS else depth + 1, query))

    def measure(self) -> None:
        """Refuses subqueries and CTEs that are nested through too many others.

        PostgreSQL copies them into each other while it plans, and nothing interrupts that.
        """
        levels: dict[int, int] = {}
        pending: list[tuple[int, int, bool]] = [(_WHOLE, 0, False)]
        under_way: set[int] = set()
        while pending:
            query, level, is_left = pending.pop()
            if is_left:
                under_way.discard(query)
            elif query not in under_way and levels.get(query, -1) < level:  # a query that is under way reads itself
                if _is_too_much(level, self.width):
                    raise ValidationFailed(TOO_DEEP)
                levels[query] = level
                under_way.add(query)
                pending.append((query, level, True))
                pending += ((inner, level + 1, False) for inner in self.inner.get(query, ()))

    def look_at_value(self, key: str, node: Any) -> None:
        """Notes where a value of a catalogue type meets others, which PostgreSQL would convert to its type.

        `CASE WHEN … THEN tableoid::regclass ELSE n END` tells the name of any relation by its number n.
        """
        if not isinstance(node, dict):
            return
        if key in _SHOWING_NODES or not _SHOWING_CLAUSES.isdisjoint(node):
            self.show(_shown_by(key, node))
        if key in _VALUE_NODES and id(node) not in self.shown and (name := _catalog_value({key: node})) is not None:
            self.findings.mixed_values.append(name)

    def show(self, nodes: Iterable[Node | None]) -> None:
        """Remembers that the values of these nodes are only shown."""
        self.shown.update(id(inner) for node in nodes if node for inner in node.values())

    def enter(self, select: Node, scope: Scope, depth: int) -> Scope:
        """The scope inside a SELECT, with the CTEs of its WITH. A CTE sees those before it, or all under RECURSIVE."""
        clause = select.get("withClause")
        if not clause:
            return scope
        whole = scope.entered(clause)
        for place, cte in enumerate(with_queries(clause)):
            self.pending.append(({"CommonTableExpr": cte}, whole.before(place), depth + 2, _WHOLE))
        # The CTEs are walked above, each in its own scope, so the WITH itself must not be walked again.
        self.entered.add(id(clause))
        return whole


def _is_too_much(levels: int, width: int) -> bool:
    return levels**3 * (_LEVEL_WIDTH + width) > _MAX_PLANNED


def _adds_columns(select: Node) -> bool:
    """Whether `*` may give the SELECT more columns than are written in it and than what it reads has."""
    columns = [target["ResTarget"].get("val", {}).get("ColumnRef") for target in select.get("targetList", ())]
    has_star = any(column and "A_Star" in column["fields"][-1] for column in columns)
    return has_star and (len(columns) > 1 or _joined(select) > 1)


def _joined(select: Node) -> int:
    """How many tables, functions and subqueries the SELECT itself joins."""
    count = 0
    pending = list(select.get("fromClause", ()))
    while pending:
        join = pending.pop().get("JoinExpr")
        count += 1
        if join:
            pending += [join["larg"], join["rarg"]]
    return count


def _catalog_value(node: Node) -> str | None:
    """The expression by which the node makes a value of a catalogue type; None for other nodes.

    Two are allowed because they are useful: `tableoid::regclass`, the partition that a row is in, and `pg_typeof(…)`,
    the type of a value.
    """
    call, cast = node.get("FuncCall", {}), node.get("TypeCast", {})
    if strings(call.get("funcname", ()))[-1:] == ("pg_typeof",):
        return "pg_typeof"
    column = cast.get("arg", {}).get("ColumnRef", {}).get("fields", ())
    is_table = strings(column)[-1:] == ("tableoid",) and _type_name(cast) == ("regclass",)
    return "tableoid::regclass" if is_table else None


def _type_name(cast: Node) -> Name:
    return strings(cast.get("typeName", {}).get("names", ()))


def _shown_by(key: str, node: Node) -> Iterator[Node | None]:
    """The parts of the node whose values are only shown, sorted or grouped by."""
    for clause in _GROUPINGS:
        yield from node.get(clause, ())
    for clause in _ORDERINGS:
        yield from (item.get("SortBy", {}).get("node") for item in node.get(clause, ()))
    if key == "TypeCast" and not _TEXT_TYPES.isdisjoint(_type_name(node)[-1:]):
        yield node.get("arg")
    if key == "FuncCall" and strings(node["funcname"])[-1] in SHOWING_FUNCTIONS:
        yield from node.get("args", ())
    is_comparison = key == "A_Expr" and node.get("kind") != "AEXPR_NULLIF"  # NULLIF gives its left side
    sides = [node.get("lexpr"), node.get("rexpr")] if is_comparison else []
    if all(side and _catalog_value(side) for side in sides):
        yield from sides


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


def _cte_of(node: Node, scope: Scope) -> Node | None:
    """The CTE a RangeVar names, or None when it is a table."""
    found = None if "schemaname" in node else scope.find(node["relname"])
    return found[0] if found is not None else None


def _relation(node: Node, scope: Scope, found: Findings) -> None:
    relation = relation_of(node, scope)
    if relation is not None:
        found.relations.append(relation)
    else:
        found.cte_names.add(node["relname"])


def _call(node: Node, _: Scope, found: Findings) -> None:
    arguments = node.get("args", ())
    literals = tuple(argument.get("A_Const", {}).get("sval", {}).get("sval") for argument in arguments)
    call = Call(strings(node["funcname"]), literals, node.get("location", 0))
    found.calls.append(call)
    if call.name in xpath.FUNCTIONS:
        found.xml_paths.append((call.name, next(iter(literals), None)))


def _column(node: Node, _: Scope, found: Findings) -> None:
    name = strings(node["fields"])
    found.columns.append(name)
    found.fields.extend(name[1:])


def _indirection(node: Node, _: Scope, found: Findings) -> None:
    found.fields.extend(strings(item for item in node["indirection"] if "String" in item))


def _cast(node: Node, _: Scope, found: Findings) -> None:
    """Notes the type and what is cast to it. Casts to catalogue types are left out: `look_at_value` notes them."""
    if _catalog_value({"TypeCast": node}):
        found.has_table_names = found.has_table_names or _catalog_value({"TypeCast": node}) == "tableoid::regclass"
        node.pop("typeName")
    else:
        found.casts.append((_type_name(node), _cast_from(node)))


def _cast_from(node: Node) -> str:
    """`text` for a constant in quotes, which the type itself reads; `row` for `ROW(…)`; else `value`."""
    constant = node.get("arg", {}).get("A_Const")
    if constant is not None and ("sval" in constant or "isnull" in constant):
        return "value" if "typmods" in node.get("typeName", {}) else "text"
    return "row" if "RowExpr" in node.get("arg", {}) else "value"


def _made(node: Node, _: Scope, found: Findings) -> None:
    """Notes a type that JSON or XML is turned into."""
    if "typeName" in node:
        found.casts.append((_type_name(node), "value"))


def _type(node: Node, _: Scope, found: Findings) -> None:
    if "names" in node:
        found.types.append(strings(node["names"]))


def _operator(items: Any, _: Scope, found: Findings) -> None:
    found.operators.append(strings(items))


def _expression(node: Node, scope: Scope, found: Findings) -> None:
    _operator(node.get("name", ()), scope, found)


def _value_function(node: Node, _: Scope, found: Findings) -> None:
    found.value_functions.append(node["op"].removeprefix("SVFOP_").lower())


def _xml_rows(node: Node, _: Scope, found: Findings) -> None:
    """XMLTABLE's path to the rows, and those to the columns that name one."""
    columns = (column.get("RangeTableFuncCol", {}).get("colexpr") for column in node.get("columns", ()))
    for path in (node.get("rowexpr", {}), *filter(None, columns)):
        found.xml_paths.append(("xmltable", path.get("A_Const", {}).get("sval", {}).get("sval")))


def _sampling(node: Node, _: Scope, found: Findings) -> None:
    found.sampling_methods.append(strings(node["method"]))


_NOTES = {
    "RangeVar": _relation,
    "FuncCall": _call,
    "ColumnRef": _column,
    "A_Indirection": _indirection,
    "TypeCast": _cast,
    "XmlSerialize": _made,
    "output": _made,
    "JsonTableColumn": _made,
    "TypeName": _type,
    "typeName": _type,
    "A_Expr": _expression,
    "operName": _operator,
    "useOp": _operator,
    "SQLValueFunction": _value_function,
    "RangeTableSample": _sampling,
    "RangeTableFunc": _xml_rows,
}
