"""Judges what a query may do with values of types for which the user has made operators or casts.

Such an operator or cast may have side effects. PostgreSQL runs it when a value of the type meets a symbol, a function
or another type, although the statement does not name it; `carriers` tells where that may happen.

Values of `regclass` and similar types are judged the same way: a number that meets one is read as a system object.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from common.errors import ForbiddenObject
from databases.guard import refusal_texts as texts
from databases.guard.carriers import Carriers, Group, is_comparison, nodes, targets, targets_or_rows, type_of
from databases.guard.casts import TypeRule
from databases.guard.facts import POPULATING, SHOWING_FUNCTIONS, ServerFacts, words
from databases.guard.grammar import SYNTAX_NODES
from databases.guard.operators import compared, plain_operators_used, symbols
from databases.guard.parsing import Node, parse
from databases.guard.refusal_texts import refused
from databases.guard.walk import Findings, strings

_KINDS = ("operator", "catalog", "check", "from", "implicit", "sorting")  # in this order refusals are given
_MIXING = {"CoalesceExpr": "args", "MinMaxExpr": "args", "A_ArrayExpr": "elements"}
# Clauses whose value must be a boolean or a number, so that PostgreSQL casts it.
_TURNING = words("whereClause havingClause quals agg_filter limitCount limitOffset startOffset endOffset lidx uidx")
_TURNING_NODES = {"BoolExpr": "args", "BooleanTest": "arg", "CaseWhen": "expr", "XmlExpr": "args"}
# Functions written in SQL that cast their argument to text.
_TEXT_MAKERS = words("quote_literal quote_nullable anytextcat textanycat")
_SORTING = ("groupClause", "partitionClause", "orderClause", "sortClause", "distinctClause", "agg_order")
_SORTING_TARGETS = frozenset(("sortClause", "distinctClause", "groupClause"))
_LEAVES = words("ColumnRef A_Const String ival fval sval boolval TypeName typeName A_Star List")
_POPULATING_OPERATOR = "#="  # of the extension hstore
_SYSTEM_COLUMN = "tableoid"


class ValueRule:
    """Judges statements that read such values; for others it only compares the names of relations."""

    def __init__(self, facts: ServerFacts, types: TypeRule) -> None:
        self._facts = facts
        columns = (column.name for row in facts.attributes.values() for column in row)
        self._has_false_column = _SYSTEM_COLUMN in columns
        self._groups: defaultdict[tuple[str, str], Group] = defaultdict(Group)
        for effect in facts.type_effects:
            is_looked_at = effect.kind in ("check", "bounds")
            if effect.kind == "to" or (is_looked_at and not types.is_risky_check(effect)):
                continue
            is_whole = is_looked_at or effect.kind == "catalog"
            group = self._groups["check" if is_looked_at else effect.kind, "" if is_whole else effect.detail]
            if effect.column is not None:
                group.columns[effect.type].add(effect.column)
                continue
            group.types.add(effect.type[1])
            group.rows.add(effect.type)
            if effect.is_own:
                group.own.add(effect.type)

    def refusals(self, found: Findings, text: str) -> Iterator[ForbiddenObject]:
        """Every refusal; `text` is the statement's."""
        groups = self._concerned(found)
        if not groups and not found.has_table_names and not self._facts.plain_operators:
            return
        try:
            tree = {"SelectStmt": parse(text)[0].node}
            if found.has_table_names and (self._has_false_column or _renames_system_column(tree)):
                yield refused("tableoid::regclass", texts.RISKY_VALUE)
            # Inner nodes come first; names and constants are left out, because they are judged where they are used.
            inner = [(key, node) for key, node in nodes(tree) if key not in _LEAVES][::-1]
            if self._facts.plain_operators:
                yield from (
                    refused(symbol, texts.RISKY_OPERATOR_HERE) for symbol in plain_operators_used(self._facts, inner)
                )
            for (kind, detail), group in groups.items():
                yield from _Look(self._facts, group, inner).refusals(kind, detail)
        except RecursionError:
            yield refused("SELECT", texts.RISKY_VALUE)

    def _concerned(self, found: Findings) -> dict[tuple[str, str], Group]:
        if not self._groups:
            return {}
        read = {self._facts.key(relation.schema, relation.name) for relation in found.relations}
        named = {name[-1] for name in found.types}
        return {
            key: group
            for key, group in sorted(self._groups.items(), key=lambda item: _KINDS.index(item[0][0]))
            if not (named.isdisjoint(group.types) and read.isdisjoint(group.rows) and read.isdisjoint(group.columns))
        }


class _Look:
    """Judges one statement's nodes for one effect."""

    def __init__(self, facts: ServerFacts, group: Group, nodes: list[tuple[str, Node]]) -> None:
        self._facts = facts
        self._group = group
        self._nodes = nodes
        self._carriers = Carriers(facts, group, nodes, with_rows=False)

    def refusals(self, kind: str, detail: str) -> Iterator[ForbiddenObject]:
        """Every refusal for the effect."""
        if kind in ("check", "sorting", "catalog") or detail == "json":
            self._carriers = Carriers(self._facts, self._group, self._nodes, with_rows=True)
        if kind == "operator":
            yield from self._operators(detail)
        elif kind == "from":
            yield from self._casts(detail)
        elif kind == "sorting":
            yield from self._sorted()
        elif kind == "implicit":
            yield from self._turned()
            if detail == "i":
                yield from self._mixed(self._takes_any_type, is_text_like=True)
        else:
            yield from self._populated()
        if kind == "catalog":
            self._carriers = Carriers(self._facts, self._group, self._nodes, with_rows=False)
            yield from self._mixed(_is_showing, is_text_like=False)

    def carries(self, value: Any) -> bool:
        """Whether the expression, or one of several, may have a value that the effect is about."""
        return self._carriers.carries(value)

    def _operators(self, symbol: str) -> Iterator[ForbiddenObject]:
        operands = (values for key, node in self._nodes for values in compared(key, node, symbol))
        is_joined = symbol == "=" and any(self._joins(key, node) for key, node in self._nodes)
        if is_joined or any(map(self.carries, operands)):
            yield refused(symbol, texts.RISKY_OPERATOR_HERE)

    def _joins(self, key: str, node: Node) -> bool:
        """Whether the node is a join by columns with such values."""
        names = self._carriers.names
        if key != "JoinExpr" or not names:
            return False
        return bool(node.get("isNatural")) or not names.isdisjoint(strings(node.get("usingClause", ())))

    def _casts(self, target: str) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            is_cast = key == "TypeCast" and (type_of(node).removeprefix("_") == target or "RowExpr" in node["arg"])
            if is_cast and self.carries(node["arg"]):
                yield refused(type_of(node), texts.RISKY_VALUE)
            if target == "text" and _makes_text(key, node) and self.carries(list(node.values())):
                yield refused("text", texts.RISKY_VALUE)
            # These look for a cast of their argument to JSON.
            is_json = key in SYNTAX_NODES or (key == "FuncCall" and "json" in strings(node["funcname"])[-1])
            if target == "json" and is_json and self.carries(list(node.values())):
                yield refused("json", texts.RISKY_VALUE)

    def _sorted(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            values: list[Any] = [node.get(clause) for clause in _SORTING]
            if key in ("SortBy", "MinMaxExpr") or (key == "A_Expr" and is_comparison(node)):
                values.append(list(node.values()))
            # DISTINCT, a number or an alias to sort by, and a set operation may compare any of the columns.
            if key == "SelectStmt" and ("larg" in node or _SORTING_TARGETS.intersection(node)):
                values.append(targets_or_rows(node))
            is_comparing = key == "FuncCall" and self._takes_any_type(node) and not _is_showing(node)
            if is_comparing or node.get("agg_distinct"):
                values.append(node.get("args"))
            if self._joins(key, node) or any(map(self.carries, values)):
                yield refused(self._example(), texts.RISKY_VALUE)

    def _turned(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            values = [node[clause] for clause in _TURNING.intersection(node)]
            values.append(node.get(_TURNING_NODES.get(key, "")))
            if any(map(self.carries, values)):
                yield refused(self._example(), texts.RISKY_VALUE)

    def _mixed(self, may_take: Callable[[Node], bool], *, is_text_like: bool) -> Iterator[ForbiddenObject]:
        """Refuses what would convert such values to other types, or other values to theirs.

        Args:
            may_take: tells whether a call takes such values without a cast.
            is_text_like: whether a constant beside such a value may be read as one.
        """

        def is_mixed(values: list[Node]) -> bool:
            if not any(map(self.carries, values)):
                return False
            return not all(self.carries(value) or _is_constant(value, is_text_like=is_text_like) for value in values)

        for key, node in self._nodes:
            if key == "FuncCall":
                arguments = [*node.get("args", ()), *(_sort_node(item) for item in node.get("agg_order", ()))]
                wrong = any(map(self.carries, arguments)) and not may_take(node)
            elif key == "A_Expr":
                values = _operands(node)
                wrong = is_mixed(values) or (
                    not is_comparison(node) and node["kind"] != "AEXPR_NULLIF" and any(map(self.carries, values))
                )
            else:
                wrong = any(map(is_mixed, _meeting(key, node)))
            if wrong:
                yield refused(self._example(), texts.RISKY_VALUE)

    def _populated(self) -> Iterator[ForbiddenObject]:
        for key, node in self._nodes:
            name = strings(node["funcname"])[-1] if key == "FuncCall" else ""
            if name in POPULATING and self.carries(node.get("args", [])[:1]):
                yield refused(name, texts.RISKY_VALUE)
            if key == "A_Expr" and _POPULATING_OPERATOR in symbols(node) and self.carries(node.get("lexpr")):
                yield refused(_POPULATING_OPERATOR, texts.RISKY_OPERATOR_HERE)

    def _takes_any_type(self, call: Node) -> bool:
        name = strings(call["funcname"])[-1]
        return name in self._facts.any_type_builtins and name not in self._facts.routines

    def _example(self) -> str:
        """A name for the message."""
        names = self._carriers.names
        return min(names & self._carriers.columns or names, default="SELECT")


def _operands(node: Node) -> list[Node]:
    values: list[Node] = []
    for side in (node.get("lexpr"), node.get("rexpr")):
        values += side if isinstance(side, list) else side.get("List", {}).get("items", [side]) if side else []
    return values


def _is_constant(value: Node, *, is_text_like: bool) -> bool:
    constant = value.get("A_Const", {})
    return "isnull" in constant or (is_text_like and "sval" in constant)


def _sort_node(item: Node) -> Node:
    node: Node = item["SortBy"]["node"]
    return node


def _meeting(key: str, node: Node) -> Iterator[list[Node]]:
    """Groups of the node's expressions that PostgreSQL converts to one type."""
    if key in _MIXING:
        yield node.get(_MIXING[key], [])
    elif key == "CaseExpr":
        whens = [item["CaseWhen"] for item in node["args"]]
        yield [*(when["result"] for when in whens), *([node["defresult"]] if "defresult" in node else [])]
        yield [node["arg"], *(when["expr"] for when in whens)] if "arg" in node else []
    elif key == "SelectStmt" and "larg" in node:
        yield from _columns([targets_or_rows(node["larg"]), targets_or_rows(node["rarg"])])
    elif key == "SelectStmt" and "valuesLists" in node:
        yield from _columns([[row["List"]["items"]] for row in node["valuesLists"]])
    elif key == "SubLink" and "testexpr" in node:
        yield [node["testexpr"], *targets(node["subselect"]["SelectStmt"])]


def _columns(parts: list[list[list[Node]]]) -> Iterator[list[Node]]:
    """The columns of rows of expressions; all in one group when a star makes their order unknown."""
    rows = [row for part in parts for row in part]
    has_star = any(
        strings(value.get("ColumnRef", {}).get("fields", ()))[-1:] == ("*",) for row in rows for value in row
    )
    if has_star or len({len(row) for row in rows}) > 1:
        yield [value for row in rows for value in row]
    else:
        yield from (list(column) for column in zip(*rows, strict=True))


def _is_showing(call: Node) -> bool:
    return strings(call["funcname"])[-1] in SHOWING_FUNCTIONS


def _makes_text(key: str, node: Node) -> bool:
    """Whether the node takes values of any type and casts them to text."""
    if key == "A_Expr":
        return strings(node["name"])[-1] == "||"
    return key == "FuncCall" and strings(node["funcname"])[-1] in _TEXT_MAKERS


def _renames_system_column(tree: Node) -> bool:
    """Whether the query names something else `tableoid`, which could then be any number."""
    for key, node in nodes(tree):
        names = [node.get("aliasname"), node.get("colname"), node.get("name") if key != "A_Expr" else None]
        names += [*strings(node.get("colnames", ())), *strings(node.get("aliascolnames", ()))]
        if _SYSTEM_COLUMN in names:
            return True
    return False
