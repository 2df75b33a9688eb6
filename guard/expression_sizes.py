"""Walks over a query's expressions: gives the bounds of their values, and adds up what it takes to
compute them.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from common.word_files import words
from guard.amounts import AMOUNT_FUNCTIONS, MOST_COUNT, dimensions_of, is_countable
from guard.builtin_costs import LINEAR_TYPES, TRUTH_OPERATORS, call_ns, operator_ns
from guard.document_paths import (
    JSON_PATH_FUNCTIONS,
    JSON_PATH_OPERATORS,
    MAX_XML_CHARS,
    XPATH_FUNCTIONS,
    json_path_degree,
)
from guard.function_sizes import result_of, series_rows
from guard.row_sizes import Place, Rows, columns_of
from guard.sizes import (
    EMPTY,
    GATHERED_CHARS,
    LONG_CHARS,
    MOST_AMOUNT,
    MOST_DIGITS,
    OPERATORS,
    QUOTES,
    STORED,
    TEXT_OF_NUMBER,
    TODAY,
    TRUTH,
    Size,
    TooLong,
    between,
    days_of,
    element_of,
    inexact,
    of_digits,
    of_number,
    of_text,
    one_of,
    product,
    together,
    unnumbered,
)
from guard.walk import strings
from sqltree.parsing import Node

MAX_LENGTH = 10_000_000
"""Most characters or array elements of one value that a statement builds of its own constants."""
_MAX_BUILT = 40_000_000  # of all of them together
_MAX_GATHERED = 20 * GATHERED_CHARS  # of what is made of gathered values
_MAX_NS = 1e9  # of all that nothing interrupts
_PATH_NS = 5  # for each character of a document that a JSON path of 20 characters reads
_SHORT_PATH = 20
PADDED_TYPES = words("bpchar bit")
_TEXT_TYPES = words("text varchar name json jsonb")
_MOST_WHOLE = {"bool": 1.0, "int2": 2.0**15, "int4": 2.0**31, "oid": 2.0**32, "int8": 2.0**63}
_FLOAT_TYPES = words("float4 float8")
_NUMBERS_OF_FIXED_SIZE = _MOST_WHOLE.keys() | _FLOAT_TYPES
_TIME_TYPES = words("date timestamp timestamptz time timetz interval")
_PLAIN_TYPES = _TEXT_TYPES | _NUMBERS_OF_FIXED_SIZE | _TIME_TYPES | words("numeric uuid")
_SPELLED_TYPES = words("jsonb numeric")
_PLAIN_BYTES, _RENDERED_BYTES = 5, 32  # that a character of an array costs; of rows and ranges
_CHARS_OF_TIME = 12
_EQUALITIES = words(
    "AEXPR_DISTINCT AEXPR_NOT_DISTINCT AEXPR_IN AEXPR_BETWEEN AEXPR_NOT_BETWEEN AEXPR_BETWEEN_SYM "
    "AEXPR_NOT_BETWEEN_SYM"
)


class Expressions(ABC):
    """One walk over a query's expressions.

    Attributes:
        visits: how many nodes may still be looked at.
        gathered_copies: how many copies of what is gathered from rows the statement makes, each
            counted once for its own length; 0 while nothing is gathered.
        amounts: where in the text the calls are whose amount PostgreSQL must prove to be small.
        has_counts: whether there are counts that PostgreSQL could prove to be small.

    Args:
        builtins: names of the built-in functions.
        proves_counts: whether PostgreSQL shall prove stored counts that `factorial` multiplies.
    """

    def __init__(
        self, visits: int, builtins: Collection[str], *, proves_counts: bool = False
    ) -> None:
        self.visits = visits
        self.has_counts = False
        self._proves_counts = proves_counts
        self.gathered_copies = 0.0
        self.amounts: set[int] = set()
        self._builtins = builtins
        self._ns = 0.0
        self._built_chars = 0.0

    @abstractmethod
    def query(self, select: Node, outer: Place) -> Rows:
        """Return what the query gives, after a look at every expression in it."""

    def each(self, nodes: Iterable[Node], place: Place) -> list[Size]:
        """Return the bound of each expression's value."""
        found = []
        for node in nodes:
            found.append(self.value(node, place))
        return found

    def value(self, node: Node, place: Place) -> Size:
        """Return the bound of the expression's value."""
        self._visit()
        for kind, inner in node.items():
            handler = _handler(kind)
            if handler:
                return handler(self, inner, place)
            return self.anything(inner, place)
        return EMPTY

    def _visit(self) -> None:
        self.visits -= 1
        if self.visits < 0:
            raise TooLong("WITH RECURSIVE")

    def anything(self, value: Any, place: Place) -> Size:
        """Return the bound of a value put together from all expressions in a part of the tree."""
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
        if not found:
            return EMPTY
        return self._built("", together(found))

    # --------------------------------------------------------------------------
    # limits

    def _built(self, name: str, size: Size) -> Size:
        """`size`, unless it is too long (`TooLong`)."""
        if not size.is_long:
            return size
        most = MAX_LENGTH
        if size.is_gathered:
            most = _MAX_GATHERED
            self.gathered_copies += size.length / GATHERED_CHARS
        else:
            self._built_chars += size.length
        is_too_long = not size.length <= most or self._built_chars > _MAX_BUILT
        if is_too_long:
            raise TooLong(name)
        return size

    def _spend(self, name: str, nanoseconds: float) -> None:
        self._ns += nanoseconds
        if not self._ns <= _MAX_NS:
            raise TooLong(name)

    def documents(self, name: str, nodes: Iterable[Node], place: Place) -> None:
        """Refuse XML that is too long for a path."""
        try:
            for size in self.each(nodes, place):
                _parse(name, size)
        except TooLong as exc:
            raise TooLong(name) from exc

    def json_path(self, name: str, document: Size, path: Size, others: Iterable[Size] = ()) -> None:
        """Refuse a JSON path that may take too long on the document."""
        if path.text is None:
            is_short = not document.is_long and not path.is_long
            is_plain = path.is_stored and is_short
            if is_plain:
                return
            raise TooLong(name)
        degree = json_path_degree(path.text)
        has_long = any(size.is_long for size in others)
        if degree is None:
            raise TooLong(name)
        if has_long:
            raise TooLong(name)
        read = math.pow(max(document.length, 1.0), degree)
        times = max(1.0, len(path.text) / _SHORT_PATH)
        self._spend(name, _PATH_NS * read * times)

    def json_syntax(self, node: Node, place: Place) -> Size:
        """Return the bound of what `JSON_VALUE` and its like read from a document by paths."""
        document = self.anything(node.get("context_item"), place)
        for path in _paths_in(node):
            self.json_path("json", document, self.value(path, place))
        others = {}
        for key, child in node.items():
            if key != "context_item":
                others[key] = child
        return together([document, self.anything(others, place)])

    # --------------------------------------------------------------------------
    # leaves

    def _column(self, node: Node, place: Place) -> Size:
        parts = strings(node["fields"])
        found: list[Size] = []
        for around in place.outward():
            found += columns_of(parts, around.sources)
        if found:
            return one_of(found)
        return STORED

    def _constant(self, node: Node, _: Place) -> Size:
        if "sval" in node:
            return of_text(node["sval"].get("sval", ""))
        if "ival" in node:
            return of_number(float(node["ival"].get("ival", 0)))
        if "fval" in node:
            return replace(of_digits(node["fval"].get("fval", "0")), text=None)
        if "bsval" in node:
            bits = 4 * len(node["bsval"].get("bsval", ""))
            return Size(0, 2.0 ** min(bits, LONG_CHARS), bits)
        return TRUTH

    def _now(self, _node: Node, _: Place) -> Size:
        return TODAY

    # --------------------------------------------------------------------------
    # operators

    def _cast(self, node: Node, place: Place) -> Size:
        size = self.value(node["arg"], place)
        type_name = node.get("typeName", {})
        name = (strings(type_name.get("names", ())) or ("",))[-1]
        modifiers = self.each(type_name.get("typmods", ()), place)
        is_padded = name in PADDED_TYPES and modifiers
        if is_padded:
            padded = max(size.length, modifiers[0].high)
            return self._built(name, replace(inexact(size), length=padded))
        is_unlisted = size.is_long and name not in LINEAR_TYPES
        if is_unlisted:
            raise TooLong(name)
        if "arrayBounds" in type_name:
            array = replace(size, item=size.item or size.length)
            return self._built(name, _expanded(array, name))
        if name.endswith("multirange"):
            return self._built(name, _expanded(unnumbered(size), name))
        return self._converted(size, name, is_column="ColumnRef" in node["arg"])

    def _converted(self, size: Size, name: str, *, is_column: bool) -> Size:
        """Return the bound of a value that is cast to a type without modifiers."""
        is_parsed = name == "xml" and size.is_long
        if is_parsed:
            _parse(name, size)
        is_any_path = name == "jsonpath" and size.is_unknown
        if is_any_path:
            raise TooLong(name)
        found = _as_type(size, name)
        is_computed = size.text is None and not is_column
        if is_computed:
            return self._respelled(size, found, name)
        return found

    def _respelled(self, size: Size, found: Size, name: str) -> Size:
        """Return the bound of a computed value whose text may be longer once it is converted."""
        may_spell = size.is_unknown and not size.is_number
        is_spelled = name in _SPELLED_TYPES and may_spell
        if is_spelled:
            # A text that nobody knows may be `1e130000`.
            found = self._built(name, _expanded(found, name))
            found = replace(found, length=max(found.length, MOST_DIGITS))
        is_quoted = name in _TEXT_TYPES and size.is_long
        if is_quoted:
            # `\x6162`, or quotes doubled
            return self._built(name, replace(found, length=2 * found.length))
        return found

    def _operation(self, node: Node, place: Place) -> Size:
        """Return an operator's value; a long chain is a deep tree, so it is followed in a loop."""
        chain = []
        left: Node = {"A_Expr": node}
        while "A_Expr" in left:
            chain.append(left["A_Expr"])
            left = left["A_Expr"].get("lexpr", {})
        value = EMPTY
        if left:
            value = self.value(left, place)
        for step in reversed(chain):
            other = step.get("rexpr", {})
            is_list = isinstance(other, list)
            right = self.anything(other, place) if is_list else self.value(other, place)
            value = self._operate(step, value, right)
        return value

    def _operate(self, node: Node, left: Size, right: Size) -> Size:
        self._visit()
        symbol = (strings(node.get("name", ())) or ("",))[-1]
        kind = node.get("kind", "AEXPR_OP")
        if kind == "AEXPR_NULLIF":
            return left
        is_path = symbol in JSON_PATH_OPERATORS and _may_be_json_path(symbol, right)
        if is_path:
            self.json_path(symbol, left, right)
        elif kind not in _EQUALITIES:
            self._spend(symbol, operator_ns(symbol, left, right))
        if _gives_truth(node, symbol):
            return TRUTH
        if symbol in ("->", "->>", "#>", "#>>"):
            return inexact(left)
        combine = OPERATORS.get(symbol)
        if combine is not None:
            return self._built(symbol, combine(left, right))
        both = together((left, right))
        return self._built(symbol, unnumbered(both))

    def _truth(self, node: Node, place: Place) -> Size:
        self.anything(node, place)
        return TRUTH

    # --------------------------------------------------------------------------
    # one of several

    def _select(self, node: Node, place: Place) -> Size:
        rows = self.query(node, place)
        return _value_of(rows)

    def _subquery(self, node: Node, place: Place) -> Size:
        found = self.query(node["subselect"]["SelectStmt"], place)
        self.anything(node.get("testexpr"), place)
        if node["subLinkType"] not in ("EXPR_SUBLINK", "ARRAY_SUBLINK"):
            return TRUTH
        size = _value_of(found)
        if node["subLinkType"] == "ARRAY_SUBLINK":
            rows = Place(place, sources=[("", found)], rows=found.rows)
            return self._called("array_agg", [size], rows, shown="array")
        return size

    def _case(self, node: Node, place: Place) -> Size:
        branches = [branch["CaseWhen"] for branch in node.get("args", ())]
        self.anything(node.get("arg"), place)
        conditions = [branch["expr"] for branch in branches]
        self.anything(conditions, place)
        results = [branch["result"] for branch in branches]
        last = []
        if "defresult" in node:
            last = [node["defresult"]]
        return one_of(self.each([*results, *last], place))

    def _coalesce(self, node: Node, place: Place) -> Size:
        arguments = node.get("args", ())
        sizes = self.each(arguments, place)
        return one_of(sizes)

    def _extreme(self, node: Node, place: Place) -> Size:
        """Return the bound of GREATEST or LEAST. Both pass over what may be NULL, so that only
        constants keep the others in.
        """
        arguments = node.get("args", ())
        sizes = self.each(arguments, place)
        found = one_of(sizes)
        low, high = found.low, found.high
        for argument, size in zip(arguments, sizes, strict=True):
            if not _is_written(argument):
                continue
            if node.get("op") == "IS_LEAST":
                high = min(high, size.high)
            else:
                low = max(low, size.low)
        return between(low, high, found)

    # --------------------------------------------------------------------------
    # put together

    def _array(self, node: Node, place: Place) -> Size:
        sizes = self.each(node.get("elements", ()), place)
        either = one_of(sizes)
        found = replace(together(sizes), item=either.length, text=None, is_number=False)
        return between(either.low, either.high, found)

    def _row(self, node: Node, place: Place) -> Size:
        """Return the bound of a row; its text has each quote twice, also those of rows in it."""
        sizes = self.each(node.get("args", ()), place)
        whole = EMPTY
        if sizes:
            whole = together(sizes)
        length = 2 * whole.length + QUOTES * len(sizes)
        return self._built("row", replace(unnumbered(whole), length=length, item=None))

    def _document(self, node: Node, place: Place) -> Size:
        """XML or JSON that is built by its own syntax; a quote may take two characters in it."""
        whole = self.anything(node, place)
        if node.get("op") == "IS_XMLPARSE":
            _parse("xmlparse", whole)
        length = 2 * whole.length + QUOTES
        return self._built("", replace(unnumbered(whole), length=length))

    def _aggregate(self, node: Node, place: Place) -> Size:
        """Return the bound of `JSON_ARRAYAGG` or `JSON_OBJECTAGG`."""
        return self._called("json_agg", [self.anything(node, place)], place)

    def _json_list(self, node: Node, place: Place) -> Size:
        """Return the bound of `JSON_ARRAY(SELECT …)`."""
        found = self.query(node["query"]["SelectStmt"], place)
        size = _value_of(found)
        rows = Place(place, sources=[("", found)], rows=found.rows)
        return self._called("json_agg", [size], rows)

    def _element(self, node: Node, place: Place) -> Size:
        self.anything(node.get("indirection"), place)
        size = self.value(node["arg"], place)
        steps = node.get("indirection", ())
        is_element = all(map(_is_index, steps))
        if is_element:
            return element_of(size)
        return inexact(size)

    def _call(self, node: Node, place: Place) -> Size:
        name = strings(node["funcname"])[-1]
        arguments = []
        for item in node.get("args", ()):
            named = item.get("NamedArgExpr", {})
            arguments.append(named.get("arg", item))
        if name in XPATH_FUNCTIONS:
            self.documents(name, arguments[1:], place)
        sizes = self.each(arguments, place)
        if node.get("agg_within_group"):
            sizes = [self.anything(node["agg_order"], place), *sizes]
        for clause in ("agg_order", "agg_filter", "over"):
            self.anything(node.get(clause), place)
        has_amount = name in AMOUNT_FUNCTIONS and len(sizes) > 1
        if has_amount:
            sizes[1] = self._amount(node, sizes)
        if name == "factorial":
            sizes = self._multiplied(node, sizes)
        if name == "generate_series":
            place.series = max(place.series, series_rows(sizes))
        has_dimensions = name == "array_fill" and len(sizes) > 1
        if has_dimensions:
            cells = self._cells(node, sizes, place)
            length = product(sizes[0].length + QUOTES, cells)
            return self._built(name, replace(unnumbered(sizes[0]), length=length))
        return self._called(name, sizes, place)

    def _amount(self, node: Node, sizes: list[Size]) -> Size:
        """Return the bound of how often or how far a text is repeated or padded.

        Where it comes from tables and may be too large, PostgreSQL has to prove that it is not.
        """
        amount = sizes[1]
        is_small = product(max(sizes[0].length, 1.0), amount.high) <= MAX_LENGTH
        if is_small:
            return amount
        if not amount.is_stored:
            return amount
        self.amounts.add(node.get("location", 0))
        return replace(amount, low=-MOST_AMOUNT, high=MOST_AMOUNT)

    def _multiplied(self, node: Node, sizes: list[Size]) -> list[Size]:
        """Return the bound of what `factorial` is given."""
        is_of_stored = len(sizes) == 1 and sizes[0].is_stored
        if is_of_stored and self._is_proven(node):
            return [replace(sizes[0], low=-MOST_COUNT, high=MOST_COUNT)]
        return sizes

    def _is_proven(self, node: Node) -> bool:
        """Tell whether PostgreSQL has to prove that a call's count is small."""
        if not is_countable(node):
            return False
        self.has_counts = True
        if self._proves_counts:
            self.amounts.add(node.get("location", 0))
        return self._proves_counts

    def _called(self, name: str, sizes: list[Size], place: Place, shown: str | None = None) -> Size:
        """Return the bound of what the function gives; `shown` is its name in a refusal."""
        reads_json = name in JSON_PATH_FUNCTIONS and len(sizes) > 1
        if reads_json:
            document, path, *others = sizes
            self.json_path(name, document, path, others)
        elif name not in XPATH_FUNCTIONS:
            is_builtin = not self._builtins or name in self._builtins
            nanoseconds = call_ns(name, sizes, is_builtin=is_builtin)
            self._spend(name, nanoseconds)
        return self._built(shown or name, result_of(name, sizes, place))

    def _cells(self, call: Node, sizes: Sequence[Size], place: Place) -> float:
        """Return how many elements `array_fill` makes."""
        dimensions = dimensions_of(call)
        if not dimensions:
            return _cells_of_text(sizes[1])
        counts = self.each(dimensions, place)
        cells = _cells_of(counts)
        is_small = product(max(sizes[0].length, 1.0), cells) <= MAX_LENGTH
        is_of_stored = any(count.is_stored for count in counts)
        if is_small or not is_of_stored:
            return cells
        self.amounts.add(call.get("location", 0))
        return _cells_of([_limited_count(count) for count in counts])


def _cells_of(counts: Iterable[Size]) -> float:
    """Return how many elements an array of so many by so many has."""
    cells = [max(1.0, count.high) for count in counts]
    return math.prod(cells)


def _cells_of_text(dimensions: Size) -> float:
    """Return how many elements an array of dimensions like `{3,4}` has."""
    if dimensions.text is None:
        return math.inf
    numbers = re.findall(r"\d+", dimensions.text)[:10]
    return _cells_of([of_number(float(number)) for number in numbers])


def _limited_count(count: Size) -> Size:
    """Return the bound of a count of `array_fill` that PostgreSQL reads as a smallint."""
    if count.constant is not None:
        return count
    return of_number(min(count.high, MOST_AMOUNT))


def _value_of(rows: Rows) -> Size:
    """Return the bound of any of the columns."""
    columns = rows.columns or {"": STORED}
    return one_of(columns.values())


def _parse(name: str, document: Size) -> None:
    """Refuse XML that is too long: libxml compares all attributes of an element with each other."""
    if document.length > MAX_XML_CHARS:
        raise TooLong(name)


def _as_type(size: Size, name: str) -> Size:
    """Return the bound of the value once it is of the type."""
    if name in _TIME_TYPES:
        return replace(days_of(size), length=_CHARS_OF_TIME, is_gathered=False)
    is_text = name in _TEXT_TYPES or name in PADDED_TYPES or name == "jsonpath"
    if is_text:
        return replace(size, is_number=False, is_float=False)
    if name == "numeric":
        return _number_of(size)
    if name in _NUMBERS_OF_FIXED_SIZE:
        return _fixed_number(size, name)
    return replace(unnumbered(size), text=size.text)


def _fixed_number(size: Size, name: str) -> Size:
    """Return the bound of a number of a type of fixed size."""
    number = _number_of(size)
    if name in _FLOAT_TYPES:
        return between(size.low, size.high, replace(number, is_float=True))
    is_whole = size.constant is not None and size.constant.is_integer()
    margin = 0.5
    if is_whole:
        margin = 0.0
    most = _MOST_WHOLE[name]
    low = max(size.low - margin, -most)
    high = min(size.high + margin, most)
    return between(low, high, number, length=min(size.length, TEXT_OF_NUMBER))


def _expanded(size: Size, name: str) -> Size:
    """Return what the elements of a long text take in memory as values of the type."""
    if not size.is_long:
        return size
    is_plain = name in _PLAIN_TYPES or name == "jsonb"
    times = _RENDERED_BYTES
    if is_plain:
        times = _PLAIN_BYTES
    return replace(size, length=times * size.length)


def _number_of(size: Size) -> Size:
    """Return a number that is read from a text. What is stored in a text is short."""
    known = replace(size, text=None, is_number=True)
    if not size.is_gathered:
        return known
    return replace(known, length=min(size.length, LONG_CHARS), is_gathered=False)


def _gives_truth(node: Node, symbol: str) -> bool:
    """Tell whether an operator's value is true or false."""
    if node.get("kind", "AEXPR_OP") != "AEXPR_OP":
        return True
    is_prefix = "lexpr" not in node  # `~ n` turns the bits of a number round
    if is_prefix:
        return False
    return symbol in TRUTH_OPERATORS


def _may_be_json_path(symbol: str, right: Size) -> bool:
    """Tell whether the right side is a JSON path that reads the document; `@@` is a text search,
    too.
    """
    if right.text is not None:
        return "$" in right.text
    return symbol == "@?"


def _is_written(node: Node) -> bool:
    """Tell whether the value is a constant that is not NULL."""
    while "TypeCast" in node:
        node = node["TypeCast"]["arg"]
    if "A_Const" not in node:
        return False
    return "isnull" not in node["A_Const"]


def _is_index(item: Node) -> bool:
    if "A_Indices" not in item:
        return False
    return not item["A_Indices"].get("is_slice")


def _paths_in(node: Node) -> Iterator[Node]:
    """Return the JSON paths of a `JSON_VALUE` or a `JSON_TABLE`, also those of its columns."""
    path = node.get("pathspec")
    if path is not None:
        yield path.get("string", path)
    for column in node.get("columns", ()):
        yield from _paths_in(column.get("JsonTableColumn", {}))


_HANDLERS: dict[str, Callable[[Expressions, Any, Place], Size]] = {
    "ColumnRef": Expressions._column,
    "ParamRef": lambda *_: STORED,
    "A_Const": Expressions._constant,
    "SQLValueFunction": Expressions._now,
    "TypeCast": Expressions._cast,
    "A_Expr": Expressions._operation,
    "BoolExpr": Expressions._truth,
    "NullTest": Expressions._truth,
    "BooleanTest": Expressions._truth,
    "JsonIsPredicate": Expressions._truth,
    "SubLink": Expressions._subquery,
    "CaseExpr": Expressions._case,
    "CoalesceExpr": Expressions._coalesce,
    "MinMaxExpr": Expressions._extreme,
    "A_ArrayExpr": Expressions._array,
    "RowExpr": Expressions._row,
    "A_Indirection": Expressions._element,
    "FuncCall": Expressions._call,
    "JsonFuncExpr": Expressions.json_syntax,
    "JsonArrayAgg": Expressions._aggregate,
    "JsonArrayQueryConstructor": Expressions._json_list,
    "JsonObjectAgg": Expressions._aggregate,
    "SelectStmt": Expressions._select,
}


def _handler(kind: str) -> Callable[[Expressions, Any, Place], Size] | None:
    found = _HANDLERS.get(kind)
    if found is None and kind.startswith(("Json", "Xml")):
        return Expressions._document
    return found
