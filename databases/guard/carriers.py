"""Finds the expressions of a statement that may have values of certain types.

The tree holds no types, so they are followed by names: from a column of the type to the aliases of expressions with it,
and so on until no name is added. A value that may be of the type counts as one that is.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from common.errors import ValidationFailed
from databases.guard.facts import Key, ServerFacts, words
from databases.guard.parsing import TOO_DEEP, Node
from databases.guard.walk import strings

COMPARISONS = words("= <> != < > <= >= ~~ !~~ ~~* !~~* ~ !~ ~* !~* @> <@ && ^@ -|- << >> &< &> ? ?| ?&")
_YES_OR_NO = words("BoolExpr NullTest BooleanTest JsonIsPredicate GroupingFunc A_Const SQLValueFunction")
_NAMED_BY_KIND = {"CaseExpr": "case", "CoalesceExpr": "coalesce", "A_ArrayExpr": "array", "RowExpr": "row"}
_MAX_ROUNDS = 20  # one is enough unless names are used before the place that defines them
_NAMELESS = re.compile(r"f\d+")  # PostgreSQL's names for the fields of ROW(…)


@dataclass
class Group:
    """The types, row types and columns that one effect (`facts.TypeEffect`) is about."""

    types: set[str] = field(default_factory=set)
    own: set[Key] = field(default_factory=set)
    rows: set[Key] = field(default_factory=set)
    columns: defaultdict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))


class Carriers:
    """The names in one statement's tree that stand for values of a group's types.

    Args:
        nodes: all nodes of the tree with their kinds, inner ones first.
        with_rows: whether a row that holds such a value counts as well.

    Raises:
        ValidationFailed: the names depend on each other over too many steps.
    """

    def __init__(self, facts: ServerFacts, group: Group, nodes: list[tuple[str, Node]], *, with_rows: bool) -> None:
        self.names: set[str] = set()
        self.columns = {name for names in group.columns.values() for name in names}
        self._facts = facts
        self._group = group
        self._nodes = nodes
        self._with_rows = with_rows
        self._known: dict[int, bool] = {}
        self._spread()

    def _spread(self) -> None:
        for key, node in self._nodes:
            if key == "RangeVar":
                self.names |= self._of_relation(node)
        for _ in range(_MAX_ROUNDS):
            size = len(self.names)
            self._known = {}
            for key, node in self._nodes:
                self.names |= self._of_alias(key, node)
            if size == len(self.names):
                return
        raise ValidationFailed(TOO_DEEP)

    def _of_relation(self, node: Node) -> set[str]:
        key = self._facts.key(node.get("schemaname"), node["relname"])
        alias = node.get("alias", {})
        names = set(self._group.columns.get(key, ()))
        if names:
            names.update(strings(alias.get("colnames", ())))
        if key in (self._group.rows if self._with_rows else self._group.own):
            names.add(alias.get("aliasname", node["relname"]))
        return names

    def _of_alias(self, key: str, node: Node) -> set[str]:
        """The names that the node gives to values of the group's types."""
        if key == "ResTarget":
            value = node.get("val", {})
            return {node["name"]} if "name" in node and self.carries(value) else self._figured(value)
        if key == "RangeFunction" and self.mentions(node.get("functions")):
            alias = node.get("alias", {})
            return {alias.get("aliasname", ""), *strings(alias.get("colnames", ()))} - {""}
        if key in ("RangeSubselect", "JoinExpr") and "alias" in node and self.mentions(node):
            rows = {node["alias"]["aliasname"]} if self._with_rows else set()
            return rows | set(strings(node["alias"].get("colnames", ())))
        gives_names = key == "CommonTableExpr" and (self._with_rows or "aliascolnames" in node)
        if gives_names and self.mentions(node.get("ctequery")):
            return set(strings(node.get("aliascolnames", ()))) | ({node["ctename"]} if self._with_rows else set())
        if key == "SelectStmt" and "larg" in node:
            return self._of_set_operation(node)
        if key == "SelectStmt" and self.mentions(node.get("valuesLists")):
            width = len(node["valuesLists"][0]["List"]["items"])
            return {f"column{n}" for n in range(1, width + 1)}
        return set()

    def _of_set_operation(self, node: Node) -> set[str]:
        """The names of the first part's columns, which PostgreSQL gives to the columns of all parts."""
        parts = targets_or_rows(node["larg"]) + targets_or_rows(node["rarg"])
        if not any(map(self.carries, parts)):
            return set()
        first = node["larg"]
        while "larg" in first:
            first = first["larg"]
        given = [item["ResTarget"] for item in first.get("targetList", ())]
        values = [target.get("val", {}) for target in given]
        references = {strings(each["ColumnRef"]["fields"])[-1] for each in values if "ColumnRef" in each}
        return ({target["name"] for target in given if "name" in target} | references) - {"*"}

    def _figured(self, value: Node) -> set[str]:
        """The names that PostgreSQL may give the value without AS, if it is of the group's types; else none."""
        if not value or not self.carries(value):
            return set()
        ((kind, node),) = value.items()
        if kind == "FuncCall":
            return {strings(node["funcname"])[-1]}
        if kind == "A_Indirection":
            return set(strings(step for step in node["indirection"] if "String" in step)) | self._figured(node["arg"])
        if kind == "TypeCast":
            return {type_of(node)} | self._figured(node["arg"])
        return {_NAMED_BY_KIND.get(kind, str(node.get("op", "")).removeprefix("IS_").lower())} - {""}

    def mentions(self, value: Any) -> bool:
        """Whether one of the names occurs anywhere within."""
        for key, node in nodes(value):
            if key == "ColumnRef" and self._carries(key, node):
                return True
            if key in ("TypeName", "typeName") and "names" in node and _named(node) in self._group.types:
                return True
        return False

    def carries(self, value: Any) -> bool:
        """Whether the expression's value may be of such a type."""
        if isinstance(value, list):
            return any(map(self.carries, value))
        if not isinstance(value, dict) or not value:
            return False
        if id(value) not in self._known:
            self._known[id(value)] = any(self._carries(key, node) for key, node in value.items())
        return self._known[id(value)]

    def _carries(self, key: str, node: Any) -> bool:
        if key == "ColumnRef":
            last = strings(node["fields"])[-1]
            return last in self.names or (last == "*" and bool(self.names))
        if key == "TypeCast":
            return type_of(node) in self._group.types
        if key in _YES_OR_NO or (key == "A_Expr" and is_comparison(node)):
            return False
        if key == "A_Expr" and node["kind"] == "AEXPR_NULLIF":
            return self.carries(node["lexpr"])
        if key == "CaseExpr":
            results = [item["CaseWhen"]["result"] for item in node["args"]]
            return self.carries([*results, node.get("defresult")])
        if key == "SubLink":
            is_value = node["subLinkType"] in ("EXPR_SUBLINK", "ARRAY_SUBLINK")
            return is_value and any(map(self.carries, targets(node["subselect"]["SelectStmt"])))
        if key == "FuncCall":
            name = strings(node["funcname"])[-1]
            may_return_it = name in self._facts.row_results or name in self._facts.routines
            return may_return_it and self.carries(node.get("args", []))
        if key == "A_Indirection":
            return self._carries_step(node)
        if isinstance(node, list):
            return any(map(self.carries, node))
        return isinstance(node, dict) and any(self._carries(inner, child) for inner, child in node.items())

    def _carries_step(self, node: Node) -> bool:
        """Whether a field or an element of something may be of such a type."""
        last = node["indirection"][-1]
        if "String" not in last:
            return self.carries(node["arg"]) or not self.names.isdisjoint(_field_names(node))
        name = last["String"]["sval"]
        return name in self.names | self.columns or (
            _NAMELESS.fullmatch(name) is not None and self.carries(node["arg"])
        )


def nodes(value: Any) -> Iterator[tuple[str, Node]]:
    """Every node within, with the key that it stands under; a query within a set operation as a `SelectStmt`."""
    pending = [("", value)]
    while pending:
        key, current = pending.pop()
        if isinstance(current, list):
            pending += [("", item) for item in current]
        elif isinstance(current, dict):
            if key:
                yield ("SelectStmt" if key in ("larg", "rarg") and "limitOption" in current else key), current
            pending += [(inner, child) for inner, child in current.items() if isinstance(child, (dict, list))]


def _named(type_name: Node) -> str:
    return strings(type_name["names"])[-1]


def type_of(cast: Node) -> str:
    """The name of a TypeCast's type, without its schema."""
    return _named(cast["typeName"])


def _field_names(node: Node) -> tuple[str, ...]:
    return strings(step for step in node["indirection"] if "String" in step)


def is_comparison(node: Node) -> bool:
    """Whether an A_Expr is true or false."""
    if node["kind"] == "AEXPR_NULLIF":
        return False
    return node["kind"] != "AEXPR_OP" or strings(node["name"])[-1] in COMPARISONS


def targets(select: Node) -> list[Node]:
    """What a query gives; of a set operation, its first part."""
    while "larg" in select:
        select = select["larg"]
    return [item["ResTarget"].get("val", {}) for item in select.get("targetList", ())]


def targets_or_rows(select: Node) -> list[list[Node]]:
    """For each query that a set operation is made of, its rows of expressions."""
    if "larg" in select:
        return targets_or_rows(select["larg"]) + targets_or_rows(select["rarg"])
    if "valuesLists" in select:
        return [row["List"]["items"] for row in select["valuesLists"]]
    return [targets(select)]
