"""Walks over a query's expressions: gives the bounds of their values, and adds up the steps to compute them."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from databases.guard import xpath
from databases.guard.facts import words
from databases.guard.function_sizes import result_of, series_rows, steps_of
from databases.guard.operator_sizes import ARITHMETIC
from databases.guard.parsing import Node
from databases.guard.row_sizes import Place, Rows, columns_of
from databases.guard.sizes import (
    EMPTY,
    QUOTES,
    STORED,
    TRUTH,
    Size,
    TooLong,
    escaped,
    inexact,
    of_number,
    of_text,
    one_of,
    power,
    product,
    together,
)
from databases.guard.walk import strings

MAX_LENGTH = 10_000_000
"""Most characters or array elements of one value."""
MAX_STEPS = 200_000_000
"""Most steps of built-ins that can't be interrupted; these take about a second."""
_COPIED = 0.1  # steps for each character that is only copied
_OTHERS = 5  # steps a pair of characters, for operators that compare all with all: arrays, polygons, JSON
_LINEAR_OPERATORS = words("= <> != < > <= >= || + - * / % ^ << >> ~ ~* !~ !~* -> ->> #> #>>")
_LIKES = words("~~ ~~* !~~ !~~*")
PADDED_TYPES = words("bpchar bit")
_TEXT_TYPES = words("text varchar bpchar json jsonb xml")


class Expressions(ABC):
    """One walk over a query's expressions.

    Attributes:
        visits: how many nodes may still be looked at.
        steps: that built-ins take which nothing interrupts, so far.
    """

    def __init__(self, visits: int) -> None:
        self.visits = visits
        self.steps = 0.0

    @abstractmethod
    def query(self, select: Node, outer: Place) -> Rows:
        """What the query gives; looks at every expression in it."""

    def each(self, nodes: Iterable[Node], place: Place) -> list[Size]:
        """The bound of each expression's value."""
        return [self.value(node, place) for node in nodes]

    def value(self, node: Node, place: Place) -> Size:
        """The bound of the expression's value."""
        self._visit()
        for kind, inner in node.items():
            handler = _handler(kind)
            return handler(self, inner, place) if handler else self.anything(inner, place)
        return EMPTY

    def _visit(self) -> None:
        self.visits -= 1
        if self.visits < 0:
            raise TooLong("WITH RECURSIVE")

    def anything(self, value: Any, place: Place) -> Size:
        """The bound of a value put together from all expressions in a part of the tree."""
        self._visit()
        found: list[Size] = []
        if isinstance(value, list):
            found = [self.anything(item, place) for item in value]
        elif isinstance(value, dict):
            for key, child in value.items():
                handler = _handler(key)
                if handler is not None:
                    found.append(handler(self, child, place))
                elif isinstance(child, (dict, list)):
                    found.append(self.anything(child, place))
        return self._built("", together(found)) if found else EMPTY

    def _document(self, node: Node, place: Place) -> Size:
        """The bound of XML or JSON that is built by its own syntax; a quote may take two characters in it."""
        return self._built("", escaped([self.anything(node, place)]))

    def _select(self, node: Node, place: Place) -> Size:
        return one_of((self.query(node, place).columns or {"": STORED}).values())

    def _built(self, name: str, size: Size, steps: float = 1) -> Size:
        """`size`, unless it is too long (`TooLong`); `steps` is what a character costs."""
        self._spend(name, steps * size.length if size.length > 1000 else 0)
        if size.length > MAX_LENGTH:
            raise TooLong(name)
        return size

    def _spend(self, name: str, steps: float) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS or math.isnan(self.steps):
            raise TooLong(name)

    def parsed(self, name: str, document: Size) -> None:
        """Refuses a document that is too long for a path."""
        if document.length > xpath.MAX_DOCUMENT_CHARS:
            raise TooLong(name)

    def _column(self, node: Node, place: Place) -> Size:
        parts = strings(node["fields"])
        found = [size for around in place.outward() for size in columns_of(parts, around.sources)]
        return one_of(found) if found else STORED

    def _constant(self, node: Node, _: Place) -> Size:
        if "sval" in node:
            return of_text(node["sval"].get("sval", ""))
        if "ival" in node:
            return of_number(float(node["ival"].get("ival", 0)))
        if "fval" in node:
            return of_text(node["fval"].get("fval", "0"))
        return of_text(node.get("bsval", {}).get("bsval", "")) if "bsval" in node else TRUTH

    def _cast(self, node: Node, place: Place) -> Size:
        size = self.value(node["arg"], place)
        type_name = node.get("typeName", {})
        name = strings(type_name.get("names", ()))[-1:]
        modifiers = self.each(type_name.get("typmods", ()), place)
        if name and name[0] in PADDED_TYPES and modifiers:
            return self._built(
                name[0], replace(size, length=max(size.length, modifiers[0].number), constant=None, text=None)
            )
        if size.constant is not None and not size.constant.is_integer():  # it may be rounded
            size = replace(inexact(size), number=size.number + 1)
        is_plain = size.constant is not None or size.text is not None or "ColumnRef" in node["arg"]
        if name and name[0] in _TEXT_TYPES and not is_plain and size.length > 1000:
            return self._built(name[0], replace(size, length=2 * size.length))  # `\x6162`, or quotes doubled
        return size

    def _operation(self, node: Node, place: Place) -> Size:
        """An operator's value. A long chain makes a deep tree, so it is followed in a loop."""
        chain = []
        left: Node = {"A_Expr": node}
        while "A_Expr" in left:
            chain.append(left["A_Expr"])
            left = left["A_Expr"].get("lexpr", {})
        value = self.value(left, place) if left else EMPTY
        for step in reversed(chain):
            right = self.anything(step.get("rexpr"), place) if isinstance(step.get("rexpr"), list) else None
            right = right or self.value(step.get("rexpr", {}), place)
            value = self._operate(step, value, right)
        return value

    def _operate(self, node: Node, left: Size, right: Size) -> Size:
        self._visit()
        symbol = strings(node.get("name", ()))[-1:] or ("",)
        kind = node.get("kind", "AEXPR_OP")
        if kind == "AEXPR_NULLIF":
            return left
        if kind in ("AEXPR_LIKE", "AEXPR_ILIKE") or (kind == "AEXPR_OP" and symbol[0] not in _LINEAR_OPERATORS):
            weight = 1 if symbol[0] in _LIKES else _OTHERS
            self._spend(symbol[0] or kind, weight * product(left.length, right.length))
        if kind != "AEXPR_OP":
            return TRUTH
        combine = ARITHMETIC.get(symbol[0])
        if combine is None:
            return replace(one_of([left, right]), constant=None, text=None)
        return self._built(symbol[0], combine(left, right), _COPIED)

    def _truth(self, node: Node, place: Place) -> Size:
        self.anything(node, place)
        return TRUTH

    def _subquery(self, node: Node, place: Place) -> Size:
        found = self.query(node["subselect"]["SelectStmt"], place)
        self.anything(node.get("testexpr"), place)
        if node["subLinkType"] not in ("EXPR_SUBLINK", "ARRAY_SUBLINK"):
            return TRUTH
        size = one_of((found.columns or {"": STORED}).values())
        if node["subLinkType"] == "ARRAY_SUBLINK":
            size = replace(size, length=product(size.length, found.rows), constant=None, text=None)
            return self._built("array", size)
        return size

    def _case(self, node: Node, place: Place) -> Size:
        branches = [branch["CaseWhen"] for branch in node.get("args", ())]
        self.anything(node.get("arg"), place)
        self.anything([branch["expr"] for branch in branches], place)
        results = [branch["result"] for branch in branches]
        return one_of(self.each([*results, *([node["defresult"]] if "defresult" in node else ())], place))

    def _coalesce(self, node: Node, place: Place) -> Size:
        return one_of(self.each(node.get("args", ()), place))

    def _extreme(self, node: Node, place: Place) -> Size:
        """GREATEST and LEAST; the least of what is not negative and 1000 is at most 1000."""
        sizes = self.each(node.get("args", ()), place)
        found = one_of(sizes)
        if node.get("op") == "IS_LEAST" and found.is_natural:
            return replace(found, number=min(size.number for size in sizes), constant=None, text=None)
        return inexact(found) if len(sizes) > 1 else found

    def _array(self, node: Node, place: Place) -> Size:
        sizes = self.each(node.get("elements", ()), place)
        either = one_of(sizes)
        return replace(together(sizes), number=either.number, is_natural=either.is_natural)

    def _element(self, node: Node, place: Place) -> Size:
        """An element of an array, or a field of a row: no larger than all of it."""
        self.anything(node.get("indirection"), place)
        return replace(self.value(node["arg"], place), constant=None, text=None)

    def _call(self, node: Node, place: Place) -> Size:
        name = strings(node["funcname"])[-1]
        arguments = [item.get("NamedArgExpr", {}).get("arg", item) for item in node.get("args", ())]
        sizes = self.each(arguments, place)
        for clause in ("agg_order", "agg_filter", "over"):
            self.anything(node.get(clause), place)
        if name == "generate_series":
            place.series = max(place.series, series_rows(sizes))
        if name in xpath.FUNCTIONS and len(sizes) > 1:
            self.parsed(name, sizes[1])
        else:
            self._spend(name, steps_of(name, sizes))
        if name == "array_fill" and len(sizes) > 1:
            length = product(sizes[0].length + QUOTES, self._cells(arguments[1], sizes[1], place))
            return self._built(name, replace(sizes[0], length=length, constant=None, text=None))
        return self._built(name, result_of(name, sizes, place))

    def _cells(self, node: Node, size: Size, place: Place) -> float:
        """How many elements an array of these dimensions has."""
        while "TypeCast" in node:
            node = node["TypeCast"]["arg"]
        if "A_ArrayExpr" in node:
            return math.prod(max(1.0, one.number) for one in self.each(node["A_ArrayExpr"].get("elements", ()), place))
        if size.text is not None:
            return math.prod(max(1.0, float(number)) for number in re.findall(r"\d+", size.text)[:10])
        return max(1.0, size.number) if size.is_stored else power(size.number, 6)


_HANDLERS: dict[str, Callable[[Expressions, Any, Place], Size]] = {
    "ColumnRef": Expressions._column,
    "ParamRef": lambda *_: STORED,
    "A_Const": Expressions._constant,
    "TypeCast": Expressions._cast,
    "A_Expr": Expressions._operation,
    "BoolExpr": Expressions._truth,
    "NullTest": Expressions._truth,
    "BooleanTest": Expressions._truth,
    "SubLink": Expressions._subquery,
    "CaseExpr": Expressions._case,
    "CoalesceExpr": Expressions._coalesce,
    "MinMaxExpr": Expressions._extreme,
    "A_ArrayExpr": Expressions._array,
    "A_Indirection": Expressions._element,
    "FuncCall": Expressions._call,
    "SelectStmt": Expressions._select,
}


def _handler(kind: str) -> Callable[[Expressions, Any, Place], Size] | None:
    return Expressions._document if kind.startswith(("Json", "Xml")) else _HANDLERS.get(kind)
