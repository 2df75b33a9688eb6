"""Finds the operators that a tree uses, also where it does not spell them, and tells whether one may be the user's own.

PostgreSQL chooses between operators of one symbol by the types of their operands. The tree holds no types, but the
category of a value's type (number, text, date) is mostly known. A value of unknown category may be of any.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from databases.guard.carriers import is_comparison, targets, targets_or_rows, type_of
from databases.guard.facts import ServerFacts, words
from databases.guard.parsing import Node
from databases.guard.walk import strings

_BETWEEN = frozenset((">=", "<="))
_ARITHMETIC = words("+ - * / %")
# Categories as in pg_type.typcategory: N number, S text, B boolean, D date or time, T interval.
_CATEGORIES = {
    **dict.fromkeys(words("int2 int4 int8 integer int smallint bigint float4 float8 numeric money oid"), "N"),
    **dict.fromkeys(words("text varchar bpchar name"), "S"),
    **dict.fromkeys(words("date time timetz timestamp timestamptz"), "D"),
    "bool": "B",
    "interval": "T",
}
_COUNTED = frozenset("NDT")  # arithmetic with them gives one of them
_ANY_TYPE = frozenset("PX")  # pseudo-types, and constants that are read as whatever is needed
_UNTYPED = "?"
_MADE_OF_OTHERS = frozenset("ARCPUX")  # a part of such a value may be of any category
_ORDERS = words("= <> != < > <= >=")
_PATTERNS = words("~~ !~~ ~~* !~~* ~ !~ ~* !~* ^@")
_COMPARABLE = frozenset("NSBDTIVAER")  # each type of these categories can be compared with itself
_TEXTS = frozenset("S")
_VALUE_AND_NUMBER = 2  # the columns of a function WITH ORDINALITY
_MIXING = frozenset(("CoalesceExpr", "MinMaxExpr"))


def compared(key: str, node: Node, symbol: str) -> Iterator[list[Any]]:
    """The operands of the node where it stands for the operator."""
    if key == "A_Expr" and symbol in symbols(node):
        yield [node.get("lexpr"), node.get("rexpr")]
    elif key == "SortBy" and strings(node.get("useOp", ()))[-1:] == (symbol,):
        yield [node["node"]]
    elif key == "SubLink" and "testexpr" in node and symbol in (strings(node.get("operName", ()))[-1:] or ("=",)):
        yield [node["testexpr"], *targets(node["subselect"]["SelectStmt"])]
    elif key == "CaseExpr" and "arg" in node and symbol == "=":
        yield [node["arg"], *(when["CaseWhen"]["expr"] for when in node["args"])]


def symbols(node: Node) -> frozenset[str]:
    """The symbols that an A_Expr may stand for; none when it is qualified with `pg_catalog`."""
    name = strings(node["name"])
    if name[:-1] == ("pg_catalog",):
        return frozenset()
    return _BETWEEN if "BETWEEN" in name[-1] else frozenset(name[-1:])


def plain_operators_used(facts: ServerFacts, inner: list[tuple[str, Node]]) -> Iterator[str]:
    """The symbols for which PostgreSQL may choose an operator of the user's that takes built-in types."""
    values = _Values(facts, inner)
    for symbol, left, right in facts.plain_operators:
        for key, node in inner:
            pairs = (pair for operands in compared(key, node, symbol) for pair in _pairs(key, node, operands))
            if any(values.may_be(pair, symbol, (left, right)) for pair in pairs):
                yield symbol


def _pairs(key: str, node: Node, operands: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Each left operand with each right one that it may be compared with: {} if unknown, None if there is none."""
    first, *rest = operands
    if key == "SortBy":
        yield first, first
    elif key == "SubLink":
        yield from zip(first.get("RowExpr", {}).get("args", [first]), rest, strict=False)
    elif key == "A_Expr" and node["kind"] in ("AEXPR_OP_ANY", "AEXPR_OP_ALL"):
        yield from ((first, item) for item in _elements(rest[0]))
    else:
        for other in rest:
            items = other if isinstance(other, list) else (other or {}).get("List", {}).get("items", [other])
            yield from (pair for item in items for pair in _fields(first, item))


def _elements(array: Node) -> list[Node]:
    """The elements of an array that is written out; a constant in quotes stands for its elements."""
    if "A_ArrayExpr" in array:
        return list(array["A_ArrayExpr"].get("elements", []))
    return [array if "A_Const" in array else {}]


def _fields(left: Any, right: Any) -> list[tuple[Any, Any]]:
    """The pairs of fields of two rows, which are compared one by one; for other values the pair itself."""
    rows = [side.get("RowExpr", {}).get("args") if side else None for side in (left, right)]
    if rows[0] is None:
        return [(left, right)]
    return list(zip(*rows, strict=False)) if rows[1] is not None else [({}, {})]


def _compares_its_like(symbol: str, category: str) -> bool:
    """Whether a built-in operator of the symbol compares every value of the category with others of its type.

    If there is none, PostgreSQL looks for an operator that takes a text.
    """
    return category in (_COMPARABLE if symbol in _ORDERS else _TEXTS if symbol in _PATTERNS else ())


def _fits(categories: set[str] | None, wanted: str) -> bool:
    return categories is None or categories == {_UNTYPED} or wanted in _ANY_TYPE or wanted in categories


class _Values:
    """Categories of expressions' values: a set of letters, or None when every category is possible."""

    def __init__(self, facts: ServerFacts, inner: list[tuple[str, Node]]) -> None:
        self._facts = facts
        self._named: defaultdict[str, set[str] | None] = defaultdict(set)
        self._of_rows: set[str] = set()
        for key, node in inner:
            self._note(key, node)

    def may_be(self, pair: tuple[Any, Any], symbol: str, wanted: tuple[str, str]) -> bool:
        """Whether the operator of the symbol for values of the two categories may be meant for the pair."""
        if (pair[0] is None) != (wanted[0] == ""):
            return False
        sides = [self._of(value) for value in pair if value is not None]
        wants = [want for want in wanted if want]
        untyped = [side == {_UNTYPED} for side in sides]
        if all(untyped):
            sides = [{"S"} for _ in sides]
        elif any(untyped) and wants[0] != wants[1] and _compares_its_like(symbol, wants[untyped[0]]):
            return False  # PostgreSQL reads a constant in quotes as the type of the other side
        return all(map(_fits, sides, wants))

    def _note(self, key: str, node: Node) -> None:
        """Remembers the categories of the names that the node defines."""
        if key == "RangeVar":
            for column in self._facts.attributes.get(self._facts.key(node.get("schemaname"), node["relname"]), ()):
                self._add(column.name, {column.category})
                if column.row is not None:
                    self._of_rows.add(column.name)
        if key == "ResTarget":
            value = node.get("val", {})
            name = node.get("name") or (strings(value["FuncCall"]["funcname"])[-1] if "FuncCall" in value else None)
            if name is not None:
                self._add(name, self._of(value))
        if key == "RangeFunction":
            self._note_function(node)
        elif "alias" in node:
            select = node.get("subquery", {}).get("SelectStmt", {})
            self._add_columns(strings(node["alias"].get("colnames", ())), targets_or_rows(select))
        if "aliascolnames" in node:
            self._add_columns(strings(node["aliascolnames"]), targets_or_rows(node["ctequery"].get("SelectStmt", {})))
        name = node.get("name") if key == "JsonTableColumn" else node.get("colname")
        if name is not None:
            self._add(name, None)

    def _note_function(self, node: Node) -> None:
        calls = [item["List"]["items"][0] for item in node.get("functions", ())]
        alias = node.get("alias", {})
        names = list(strings(alias.get("colnames", ())))
        if (
            len(names) == _VALUE_AND_NUMBER
            and len(calls) == 1
            and node.get("ordinality")
            and self._is_one_column(calls[0])
        ):
            self._add(names.pop(), {"N"})
        self._add(alias.get("aliasname", ""), self._of(calls[0]) if len(calls) == 1 else None)
        self._add_columns(names, [calls])
        for call in calls:
            name = strings(call.get("FuncCall", {}).get("funcname", ()))[-1:]
            for column in self._facts.row_results.get("".join(name), ()):
                self._add(column, None)

    def _is_one_column(self, call: Node) -> bool:
        """Whether the function returns values, or array elements, that are not rows."""
        name = strings(call.get("FuncCall", {}).get("funcname", ()))[-1:]
        if name and name[0] in self._facts.result_categories and name[0] not in self._facts.row_results:
            return True
        arguments = call.get("FuncCall", {}).get("args", [])
        is_plain = len(arguments) == 1 and "ColumnRef" in arguments[0] and self._of(arguments[0]) == {"A"}
        return (
            name == ("unnest",) and is_plain and strings(arguments[0]["ColumnRef"]["fields"])[-1] not in self._of_rows
        )

    def _add_columns(self, names: Iterable[str], rows: list[list[Node]]) -> None:
        """The columns are called `names`; parts of a set operation have columns of the same categories."""
        has_star = any("*" in strings(value.get("ColumnRef", {}).get("fields", ())) for row in rows for value in row)
        for place, name in enumerate(names):
            values = [self._of(row[place]) for row in rows if place < len(row)] if not has_star else []
            self._add(name, next((found for found in values if found and _UNTYPED not in found), None))

    def _add(self, name: str, categories: set[str] | None) -> None:
        known = self._named[name]
        is_sure = known is not None and categories is not None and _UNTYPED not in categories
        self._named[name] = (known or set()) | (categories or set()) if is_sure else None

    def _of(self, value: Node) -> set[str] | None:
        ((key, node),) = value.items() if len(value) == 1 else (("", {}),)
        if key == "A_Const":
            return self._of_constant(node)
        if key == "TypeCast":
            category = None if "arrayBounds" in node["typeName"] else _CATEGORIES.get(type_of(node))
            return {category} if category else None
        if key == "ColumnRef":
            return self._named.get(strings(node["fields"])[-1])
        if key == "FuncCall":
            return self._of_call(node)
        if key in _MIXING:
            return self._of_all(node.get("args", []))
        if key == "CaseExpr":
            results = [item["CaseWhen"]["result"] for item in node["args"]]
            return self._of_all([*results, *([node["defresult"]] if "defresult" in node else [])])
        if key == "SubLink" and node["subLinkType"] == "EXPR_SUBLINK":
            return self._of((targets(node["subselect"]["SelectStmt"]) or [{}])[0])
        if key == "A_Expr":
            return self._of_expression(node)
        return {"B"} if key in ("BoolExpr", "NullTest", "BooleanTest") else None

    def _of_call(self, node: Node) -> set[str] | None:
        """The categories of what the function returns; of its first argument, if the result's type follows it."""
        categories = self._facts.result_categories.get(strings(node["funcname"])[-1])
        if categories is None or not _ANY_TYPE & set(categories):
            return set(categories) if categories else None
        given = self._of_all(node.get("args", [])[:1])
        return given if given and not given & _MADE_OF_OTHERS else None

    def _of_all(self, values: list[Node]) -> set[str] | None:
        """The categories of values that PostgreSQL converts to one type."""
        found = [categories for categories in map(self._of, values) if categories != {_UNTYPED}]
        is_sure = bool(found) and all(found)
        return {letter for categories in found for letter in categories or ()} if is_sure else None

    def _of_constant(self, node: Node) -> set[str] | None:
        if "ival" in node or "fval" in node:
            return {"N"}
        return {"B"} if "boolval" in node else {_UNTYPED} if "sval" in node or "isnull" in node else None

    def _of_expression(self, node: Node) -> set[str] | None:
        if is_comparison(node):
            return {"B"}
        sides = [self._of(node[side]) for side in ("lexpr", "rexpr") if isinstance(node.get(side), dict)]
        if strings(node["name"])[-1] not in _ARITHMETIC or not all(side and side <= _COUNTED for side in sides):
            return None
        return {"N"} if all(side == {"N"} for side in sides) else set(_COUNTED)
