"""Walk over one query's tree: prove that it only reads, and note what it reads.

It does not recurse, because trees may be deep. With each node it keeps the scope of the CTEs that
are visible there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import ForbiddenStatement, ValidationFailed
from common.text import Text
from guard.document_paths import XPATH_FUNCTIONS
from guard.facts import SHOWING_FUNCTIONS, Name
from guard.functions import Call, QualifiedName
from guard.grammar import (
    FORBIDDEN_FIELDS,
    QUERY_FIELDS,
    QUERY_NODES,
    SYNTAX_NODES,
    lock_of,
    operation_of,
    place_of,
    syntax_word,
)
from guard.scopes import NOWHERE, Scope, with_queries
from sqltree.parsing import MAX_NESTING, MAX_TABLES, TOO_DEEP, Node, nodes

# Places where a value of a catalogue type meets no value of another type: cast to text, compared,
# sorted, counted.
_TEXT_TYPES = frozenset(("text", "varchar", "bpchar"))
_GROUPINGS, _ORDERINGS = (
    ("groupClause", "distinctClause", "partitionClause"),
    ("sortClause", "orderClause"),
)
_SHOWING_CLAUSES = frozenset((*_GROUPINGS, *_ORDERINGS))
_SHOWING_NODES = frozenset(("TypeCast", "FuncCall", "A_Expr", "NullTest"))
_VALUE_NODES = frozenset(("FuncCall", "TypeCast"))

# The left sides of operators and set operations: chains of these make trees deep, but don't count
# as nesting.
_CHAIN_STARTS = frozenset(("lexpr", "larg"))

_SELECT_KEYS = frozenset(("SelectStmt", "larg", "rarg"))
_STAR = {"sval": "*"}
_NAME_FIELDS = ("catalogname", "schemaname", "relname")

_TOO_MANY_TABLES = Text(
    f"查询的表过多（上限{MAX_TABLES}个）。", f"Too many tables (at most {MAX_TABLES})."
)

# Planning takes about 10 ns for each unit: the levels of subqueries, cubed, times the columns and
# conditions of one.
_MAX_PLANNED = 50_000_000
_LEVEL_WIDTH = 15  # columns: what a level costs by itself
_MAX_COLUMNS = 1_664  # of a row
# The whole statement, among ids of queries; it reads all CTEs, because unused ones are planned, too
_WHOLE = 0


@dataclass(frozen=True)
class Relation(QualifiedName):
    """A table as written."""


@dataclass
class Findings:
    """Lists the objects and syntax that a query uses, in the order in which the walk meets it."""

    relations: list[Relation] = field(default_factory=list)
    cte_names: set[str] = field(default_factory=set)  # in FROM
    calls: list[Call] = field(default_factory=list)
    syntax: list[Call] = field(default_factory=list)
    selects: list[tuple[Node, Scope]] = field(default_factory=list)
    columns: list[Name] = field(default_factory=list)
    stars: list[Name] = field(default_factory=list)  # `t.*` among what is selected
    used_columns: list[Name] = field(default_factory=list)  # not only shown, sorted or grouped by
    fields: list[str] = field(default_factory=list)
    types: list[Name] = field(default_factory=list)
    casts: list[tuple[Name, str]] = field(default_factory=list)
    made_types: list[str] = field(default_factory=list)  # by syntax that names no type
    operators: list[Name] = field(default_factory=list)
    value_functions: list[str] = field(default_factory=list)
    sampling_methods: list[Name] = field(default_factory=list)
    mixed_values: list[str] = field(default_factory=list)
    xml_paths: list[tuple[str, str | None]] = field(default_factory=list)
    has_table_names: bool = False
    renames_tableoid: bool = False  # something else may be meant by the name
    gathers_rows: bool = False  # by ARRAY(SELECT …) or a recursive query
    has_json_syntax: bool = False  # with paths: JSON_VALUE, JSON_TABLE and their like

    @property
    def called(self) -> set[str]:
        """Return the names of the functions, without schemas."""
        return {call.name for call in self.calls}

    @property
    def symbols(self) -> set[str]:
        """Return the symbols of the operators, without schemas."""
        return last_names(self.operators)


def last_names(names: Iterable[Name]) -> set[str]:
    """Return the last part of each name that has any."""
    return {name[-1] for name in filter(None, names)}


def walk(kind: str, node: Node) -> Findings:
    """Return what the query uses.

    Raises:
        ForbiddenStatement: something in it is not a query.
        ValidationFailed: it is nested too deeply or reads too many tables.
    """
    return _Walk().run(kind, node)


class _Walk:
    def __init__(self) -> None:
        self.findings = Findings()
        self.pending: list[
            tuple[Any, Scope, int, int]
        ] = []  # what to visit, its scope, depth and query
        self.width = 1  # of the longest list: columns, conditions, tables
        self.inner: defaultdict[int, set[int]] = defaultdict(
            set
        )  # query → queries it reads; by ids of nodes
        self.shown: set[int] = set()
        self.entered: set[int] = set()

    def run(self, kind: str, node: Node) -> Findings:
        self.pending.append(({kind: node}, NOWHERE, 0, _WHOLE))
        if node.get("op") == "SETOP_NONE":
            targets = [item.get("ResTarget", {}) for item in node.get("targetList", ())]
            self.show(target.get("val") for target in targets)

        while self.pending:
            self.visit(*self.pending.pop())

        if len(self.findings.relations) > MAX_TABLES:
            raise ValidationFailed(_TOO_MANY_TABLES)
        if _is_too_much(len(self.inner), self.width):
            self.measure()

        return self.findings

    def visit(self, value: Any, scope: Scope, depth: int, query: int) -> None:
        """Look at a list, or at all fields of a node."""
        if depth > MAX_NESTING:
            raise ValidationFailed(TOO_DEEP)
        if isinstance(value, list):
            self.width = max(self.width, len(value))
            for item in value:
                self.pending.append((item, scope, depth + 1, query))

            return

        for key, child in value.items():
            is_scalar = not isinstance(child, (dict, list))
            if is_scalar or id(child) in self.entered:
                continue

            self.child(key, child, scope, depth, query)

    def child(self, key: str, child: Any, scope: Scope, depth: int, query: int) -> None:
        """Look at a field of a node, in whose SELECT, scope and depth it stands."""
        _refuse_unlisted(key, child)
        is_select = key in _SELECT_KEYS and isinstance(child, dict) and "op" in child
        if is_select:
            if key == "SelectStmt":
                self.inner[query].add(id(child))
                query = id(child)

            scope = self.enter_select(child, scope, depth)

        if key == "RangeVar":
            self.read_cte(child, scope, query)

        self.look_at_value(key, child)
        self.note(key, child, scope)
        inner_depth = depth + 1
        if key in _CHAIN_STARTS:
            inner_depth = depth - 1

        self.pending.append((child, scope, inner_depth, query))

    def read_cte(self, table: Node, scope: Scope, query: int) -> None:
        """Note that the query reads a CTE's, where the table's name is one of a CTE."""
        known_cte = cte_of(table, scope)
        if known_cte is not None:
            cte, _ = known_cte
            self.inner[query].add(id(cte["ctequery"].get("SelectStmt")))

    def enter_select(self, select: Node, scope: Scope, depth: int) -> Scope:
        """Note a SELECT; return the scope inside."""
        if _adds_columns(select):
            self.width = _MAX_COLUMNS

        inner = self.enter(select, scope, depth)
        self.findings.selects.append((select, inner))
        return inner

    def note(self, key: str, child: Any, scope: Scope) -> None:
        note = _NOTES.get(key)
        if note is not None:
            note(child, scope, self.findings)
        if key in _MADE_BY_SYNTAX:
            self.findings.made_types.extend(_MADE_BY_SYNTAX[key])
        if key in SYNTAX_NODES:
            word = syntax_word(key, child)
            self.findings.syntax.append(Call((word,), location=place_of(child)))

    def measure(self) -> None:
        """Refuse subqueries and CTEs that are nested through too many others.

        PostgreSQL copies them into each other while it plans, and nothing interrupts that.
        """
        levels: dict[int, int] = {}
        pending: list[tuple[int, int, bool]] = [(_WHOLE, 0, False)]
        under_way: set[int] = set()
        while pending:
            query, level, is_left = pending.pop()
            if is_left:
                under_way.discard(query)
                continue

            reads_itself = query in under_way
            known_level = levels.get(query, -1)
            if reads_itself or known_level >= level:
                continue
            if _is_too_much(level, self.width):
                raise ValidationFailed(TOO_DEEP)

            levels[query] = level
            under_way.add(query)
            pending.append((query, level, True))
            for inner in self.inner.get(query, ()):
                pending.append((inner, level + 1, False))

    def look_at_value(self, key: str, node: Any) -> None:
        """Note where a value of a catalogue type meets others, which are converted to its type.

        `CASE WHEN … THEN tableoid::regclass ELSE n END` tells the name of any relation by its
        number n.
        """
        if not isinstance(node, dict):
            return

        may_show = key in _SHOWING_NODES or not _SHOWING_CLAUSES.isdisjoint(node)
        if may_show:
            shown_nodes = _shown_by(key, node)
            self.show(shown_nodes)

        is_shown = id(node) in self.shown
        if is_shown:
            return
        if key == "ColumnRef":
            name = strings(node["fields"])
            self.findings.used_columns.append(name)
        elif key in _VALUE_NODES:
            value = _catalog_value({key: node})
            if value is not None:
                self.findings.mixed_values.append(value)

    def show(self, nodes: Iterable[Node | None]) -> None:
        """Remember that the values of these nodes are only shown."""
        for node in filter(None, nodes):
            self.shown.update(map(id, node.values()))

    def enter(self, select: Node, scope: Scope, depth: int) -> Scope:
        """Return the scope inside a SELECT, with the CTEs of its WITH. A CTE sees those before
        it, or all under RECURSIVE.
        """
        clause = select.get("withClause")
        if not clause:
            return scope

        whole = scope.entered(clause)
        for place, cte in enumerate(with_queries(clause)):
            self.pending.append(({"CommonTableExpr": cte}, whole.before(place), depth + 2, _WHOLE))

        self.findings.gathers_rows |= bool(clause.get("recursive"))
        # The CTEs are walked above, each in its own scope, so the WITH itself must not be walked
        # again.
        self.entered.add(id(clause))
        return whole


def _refuse_unlisted(key: str, child: Any) -> None:
    """Refuse a field or node that may not occur in a query."""
    if key == "lockingClause":
        raise ForbiddenStatement(lock_of(child))
    if key in FORBIDDEN_FIELDS:
        raise ForbiddenStatement(FORBIDDEN_FIELDS[key])

    is_listed = key in QUERY_NODES or key in QUERY_FIELDS
    if is_listed:
        return

    fields = {}
    if isinstance(child, dict):
        fields = child

    operation = operation_of(key, fields)
    raise ForbiddenStatement(operation)


def _is_too_much(levels: int, width: int) -> bool:
    return levels**3 * (_LEVEL_WIDTH + width) > _MAX_PLANNED


def _adds_columns(select: Node) -> bool:
    """Tell whether `*` may give the SELECT more columns than it has items and reads."""
    targets = select.get("targetList", ())
    if not any(map(_has_star, targets)):
        return False
    if len(targets) > 1:
        return True

    return len(joined_items(select)) > 1


def _has_star(target: Node) -> bool:
    """Tell whether an item of a SELECT's list is `*` or `t.*`."""
    reference = target["ResTarget"].get("val", {}).get("ColumnRef", {})
    last_field = reference.get("fields", ({},))[-1]
    return "A_Star" in last_field


def joined_items(select: Node) -> list[Node]:
    """Return the tables, functions and subqueries that the SELECT itself joins."""
    items = []
    pending = list(select.get("fromClause", ()))
    while pending:
        item = pending.pop()
        join = item.get("JoinExpr")
        if join is None:
            items.append(item)
        else:
            pending += [join["larg"], join["rarg"]]

    return items


def _catalog_value(node: Node) -> str | None:
    """Return the expression by which the node makes a value of a catalogue type; None for other
    nodes.

    Two are allowed because they are useful: `tableoid::regclass`, the partition that a row is in,
    and `pg_typeof(…)`, the type of a value.
    """
    call, cast = node.get("FuncCall", {}), node.get("TypeCast", {})
    if strings(call.get("funcname", ()))[-1:] == ("pg_typeof",):
        return "pg_typeof"

    column = column_parts(cast.get("arg", {}))
    is_table = column[-1:] == ("tableoid",) and _type_name(cast) == ("regclass",)
    if is_table:
        return "tableoid::regclass"

    return None


def _type_name(cast: Node) -> Name:
    return strings(cast.get("typeName", {}).get("names", ()))


def _shown_by(key: str, node: Node) -> Iterator[Node | None]:
    """Yield the parts of the node whose values are only shown, sorted or grouped by."""
    for clause in _GROUPINGS:
        yield from node.get(clause, ())

    for clause in _ORDERINGS:
        for item in node.get(clause, ()):
            yield item.get("SortBy", {}).get("node")

    shown_by_kind = _SHOWN_BY_KIND.get(key)
    if shown_by_kind is not None:
        yield from shown_by_kind(node)


def _tested_by(node: Node) -> Iterator[Node | None]:
    yield node.get("arg")


def _cast_by(node: Node) -> Iterator[Node | None]:
    """Yield what is cast to a text."""
    target = _type_name(node)[-1:]
    if not _TEXT_TYPES.isdisjoint(target):
        yield node.get("arg")


def _shown_by_call(node: Node) -> Iterator[Node | None]:
    function = strings(node["funcname"])[-1]
    if function in SHOWING_FUNCTIONS:
        yield from node.get("args", ())


def _compared_by(node: Node) -> Iterator[Node]:
    """Yield both sides of a comparison of two values of catalogue types."""
    if node.get("kind") == "AEXPR_NULLIF":  # it gives its left side
        return

    sides = (node.get("lexpr", {}), node.get("rexpr", {}))
    if all(map(_catalog_value, sides)):
        yield from sides


_SHOWN_BY_KIND: Mapping[str, Callable[[Node], Iterator[Node | None]]] = {
    "NullTest": _tested_by,
    "TypeCast": _cast_by,
    "FuncCall": _shown_by_call,
    "A_Expr": _compared_by,
}


def _subquery(node: Node, scope: Scope, findings: Findings) -> None:
    findings.gathers_rows |= node.get("subLinkType") == "ARRAY_SUBLINK"
    _equal(node, scope, findings)


def _json_syntax(_node: Node, _: Scope, findings: Findings) -> None:
    findings.has_json_syntax = True


def strings(items: Iterable[Node]) -> Name:
    """Return the strings of a list of String nodes; a star (`t.*`) becomes `*`."""
    names = [item.get("String", _STAR)["sval"] for item in items]
    return tuple(names)


def field_names(steps: Iterable[Node]) -> Name:
    """Return the fields among the steps of an indirection, without its subscripts and stars."""
    return strings(step for step in steps if "String" in step)


def column_parts(value: Node) -> Name:
    """Return the parts of a reference to a column; none for any other expression."""
    if "ColumnRef" not in value:
        return ()

    return strings(value["ColumnRef"]["fields"])


def is_star(value: Node) -> bool:
    """Tell whether the expression is `*` alone."""
    return column_parts(value) == ("*",)


def references_in(tree: Any) -> Iterator[Node]:
    """Yield the references to columns below `tree`, which may be a list."""
    for kind, node in nodes(tree):
        if kind == "ColumnRef":
            yield node


def relation_of(node: Node, scope: Scope) -> Relation | None:
    """Return the table a RangeVar names, or None when it is a CTE."""
    if cte_of(node, scope) is not None:
        return None

    parts = [node[key] for key in _NAME_FIELDS if key in node]
    return Relation(tuple(parts))


def cte_of(node: Node, scope: Scope) -> tuple[Node, Scope] | None:
    """Return the CTE a RangeVar names, with the scope of its query; None when it is a table."""
    if "schemaname" in node:
        return None

    return scope.find(node["relname"])


def _relation(node: Node, scope: Scope, findings: Findings) -> None:
    relation = relation_of(node, scope)
    if relation is None:
        findings.cte_names.add(node["relname"])
    else:
        findings.relations.append(relation)


def _call(node: Node, _: Scope, findings: Findings) -> None:
    arguments = node.get("args", ())
    constants = [argument.get("A_Const", {}) for argument in arguments]
    literals = [constant.get("sval", {}).get("sval") for constant in constants]
    location = node.get("location", 0)
    call = Call(strings(node["funcname"]), tuple(literals), location)
    findings.calls.append(call)
    if call.name in XPATH_FUNCTIONS:
        path = next(iter(literals), None)
        findings.xml_paths.append((call.name, path))


def _column(node: Node, _: Scope, findings: Findings) -> None:
    name = strings(node["fields"])
    findings.columns.append(name)
    findings.fields.extend(name[1:])


def _indirection(node: Node, _: Scope, findings: Findings) -> None:
    findings.fields.extend(field_names(node["indirection"]))


def _cast(node: Node, _: Scope, findings: Findings) -> None:
    """Note the type and what is cast to it.

    Casts to catalogue types are left out: `look_at_value` notes them.
    """
    value = _catalog_value({"TypeCast": node})
    if value is None:
        target = _type_name(node)
        source = _cast_from(node)
        findings.casts.append((target, source))
        return

    findings.has_table_names |= value == "tableoid::regclass"
    node.pop("typeName")


def _cast_from(node: Node) -> str:
    """Return what is cast: `text`, `row` or `value`.

    `text` is a constant in quotes, which the type itself reads; `row` is `ROW(…)`.
    """
    source = node.get("arg", {})
    if "RowExpr" in source:
        return "row"

    constant = source.get("A_Const", {})
    is_text = "sval" in constant or "isnull" in constant
    has_modifiers = "typmods" in node.get("typeName", {})
    is_constant = is_text and not has_modifiers
    if is_constant:
        return "text"

    return "value"


def _made(node: Node, _: Scope, findings: Findings) -> None:
    """Note a type that JSON or XML is turned into."""
    if "typeName" in node:
        type_name = _type_name(node)
        findings.casts.append((type_name, "value"))


def _type(node: Node, _: Scope, findings: Findings) -> None:
    if "names" in node:
        name = strings(node["names"])
        findings.types.append(name)


def _named(node: Node, _: Scope, findings: Findings) -> None:
    """Note whether something is called like the system column that tells a row's table, and
    whether all columns are selected.
    """
    if "val" in node:
        selected = column_parts(node["val"])
        if selected[-1:] == ("*",):
            findings.stars.append(selected)

    names = {node.get("aliasname"), node.get("colname"), node.get("name")}
    names.update(strings(node.get("colnames", ())), strings(node.get("aliascolnames", ())))
    findings.renames_tableoid |= "tableoid" in names


def _json_column(node: Node, scope: Scope, findings: Findings) -> None:
    _made(node, scope, findings)
    _named(node, scope, findings)


def _operator(items: Any, _: Scope, findings: Findings) -> None:
    findings.operators.append(strings(items))


def _expression(node: Node, scope: Scope, findings: Findings) -> None:
    symbols = _BETWEEN.get(node["kind"])
    if symbols is None:
        _operator(node.get("name", ()), scope, findings)
    else:
        findings.operators += symbols


def _equal(node: Node, _: Scope, findings: Findings) -> None:
    """Note the operator that compares, in syntax that doesn't spell it."""
    if "testexpr" in node:
        is_comparing = "operName" not in node
    elif "args" in node:
        is_comparing = "arg" in node
    else:
        is_comparing = "usingClause" in node or bool(node.get("isNatural"))

    if is_comparing:
        findings.operators.append(("=",))


def _value_function(node: Node, _: Scope, findings: Findings) -> None:
    findings.value_functions.append(node["op"].removeprefix("SVFOP_").lower())


def _xml_rows(node: Node, _: Scope, findings: Findings) -> None:
    """Note XMLTABLE's path to the rows, and those to the columns that name one."""
    columns = [item.get("RangeTableFuncCol", {}) for item in node.get("columns", ())]
    column_paths = [column.get("colexpr") for column in columns]
    row_path = node.get("rowexpr", {})
    for path in (row_path, *filter(None, column_paths)):
        constant = path.get("A_Const", {})
        text = constant.get("sval", {}).get("sval")
        findings.xml_paths.append(("xmltable", text))


def _sampling(node: Node, _: Scope, findings: Findings) -> None:
    findings.sampling_methods.append(strings(node["method"]))


_BETWEEN: Mapping[str, tuple[Name, ...]] = {
    **dict.fromkeys(("AEXPR_BETWEEN", "AEXPR_BETWEEN_SYM"), ((">=",), ("<=",))),
    **dict.fromkeys(("AEXPR_NOT_BETWEEN", "AEXPR_NOT_BETWEEN_SYM"), (("<",), (">",))),
}
_JSON = ("json", "jsonb")
_MADE_BY_SYNTAX: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SYNTAX_NODES, _JSON),
    "JsonObjectAgg": _JSON,
    "XmlExpr": ("xml",),
    "XmlSerialize": ("xml",),
}
_NOTES = {
    "CaseExpr": _equal,
    "JoinExpr": _equal,
    "RangeVar": _relation,
    "FuncCall": _call,
    "ColumnRef": _column,
    "A_Indirection": _indirection,
    "TypeCast": _cast,
    "XmlSerialize": _made,
    "output": _made,
    "JsonTableColumn": _json_column,
    **dict.fromkeys(
        ("ResTarget", "alias", "ColumnDef", "RangeTableFuncCol", "CommonTableExpr"), _named
    ),
    "JsonFuncExpr": _json_syntax,
    "JsonTable": _json_syntax,
    "JsonArrayAgg": _json_syntax,
    "JsonArrayQueryConstructor": _json_syntax,
    "JsonObjectAgg": _json_syntax,
    "SubLink": _subquery,
    "TypeName": _type,
    "typeName": _type,
    "A_Expr": _expression,
    "operName": _operator,
    "useOp": _operator,
    "SQLValueFunction": _value_function,
    "RangeTableSample": _sampling,
    "RangeTableFunc": _xml_rows,
}
