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
_READ_AS_TEXT = _TEXT_TYPES | PADDED_TYPES | {"jsonpath"}
_FIELD_OPERATORS = frozenset(("->", "->>", "#>", "#>>"))
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
        sizes = []
        for node in nodes:
            sizes.append(self.value(node, place))

        return sizes

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
            found = self._fields(value, place)

        if not found:
            return EMPTY

        whole = together(found)
        return self._built("", whole)

    def _fields(self, node: Node, place: Place) -> list[Size]:
        """Return the bounds of a node's fields; what is neither a node nor a list has none."""
        sizes = []
        for key, child in node.items():
            handler = _handler(key)
            if handler is not None:
                size = handler(self, child, place)
                sizes.append(size)
            elif isinstance(child, (dict, list)):
                size = self.anything(child, place)
                sizes.append(size)

        return sizes

    # --------------------------------------------------------------------------
    # limits

    def _built(self, name: str, size: Size) -> Size:
        """Return `size` if values of it may be built.

        Raises:
            TooLong: it is too long, or too much is built by now.
        """
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
                _refuse_long_document(name, size)
        except TooLong as exc:
            raise TooLong(name) from exc

    def json_path(self, name: str, document: Size, path: Size, others: Iterable[Size] = ()) -> None:
        """Refuse a JSON path that may take too long on the document."""
        if path.text is None:
            is_short = not document.is_long and not path.is_long
            is_plain = path.is_stored and is_short
            if not is_plain:
                raise TooLong(name)

            return

        degree = json_path_degree(path.text)
        has_long = any(size.is_long for size in others)
        if degree is None or has_long:
            raise TooLong(name)

        length = max(document.length, 1.0)
        read = math.pow(length, degree)
        times = max(1.0, len(path.text) / _SHORT_PATH)
        self._spend(name, _PATH_NS * read * times)

    def json_syntax(self, node: Node, place: Place) -> Size:
        """Return the bound of what `JSON_VALUE` and its like read from a document by paths."""
        others = dict(node)
        item = others.pop("context_item", None)
        document = self.anything(item, place)
        for written in _paths_in(node):
            path = self.value(written, place)
            self.json_path("json", document, path)

        rest = self.anything(others, place)
        return together([document, rest])

    # --------------------------------------------------------------------------
    # leaves

    def _column(self, node: Node, place: Place) -> Size:
        parts = strings(node["fields"])
        sizes: list[Size] = []
        for around in place.outward():
            sizes += columns_of(parts, around.sources)

        if sizes:
            return one_of(sizes)

        return STORED

    def _constant(self, node: Node, _: Place) -> Size:
        if "sval" in node:
            text = node["sval"].get("sval", "")
            return of_text(text)

        if "ival" in node:
            number = node["ival"].get("ival", 0)
            return of_number(float(number))

        if "fval" in node:
            digits = node["fval"].get("fval", "0")
            return of_digits(digits)

        if "bsval" in node:
            bits = 4 * len(node["bsval"].get("bsval", ""))
            most = 2.0 ** min(bits, LONG_CHARS)
            return Size(0, most, bits)

        return TRUTH

    def _now(self, _node: Node, _: Place) -> Size:
        return TODAY

    # --------------------------------------------------------------------------
    # operators

    def _cast(self, node: Node, place: Place) -> Size:
        size = self.value(node["arg"], place)
        type_name = node.get("typeName", {})
        name = _last_name(type_name.get("names", ()))
        modifiers = self.each(type_name.get("typmods", ()), place)
        is_padded = name in PADDED_TYPES and modifiers
        if is_padded:
            width = modifiers[0].high
            length = max(size.length, width)
            padded = replace(inexact(size), length=length)
            return self._built(name, padded)

        is_unlisted = size.is_long and name not in LINEAR_TYPES
        if is_unlisted:
            raise TooLong(name)
        if "arrayBounds" in type_name:
            array = replace(size, item=size.item or size.length)
            return self._built(name, _expanded(array, name))

        if name.endswith("multirange"):
            ranges = unnumbered(size)
            return self._built(name, _expanded(ranges, name))

        is_column = "ColumnRef" in node["arg"]
        return self._converted(size, name, is_column=is_column)

    def _converted(self, size: Size, name: str, *, is_column: bool) -> Size:
        """Return the bound of a value that is cast to a type without modifiers."""
        if name == "xml":
            _refuse_long_document(name, size)

        is_any_path = name == "jsonpath" and size.is_unknown
        if is_any_path:
            raise TooLong(name)

        converted = _as_type(size, name)
        is_computed = size.text is None and not is_column
        if is_computed:
            return self._respelled(size, converted, name)

        return converted

    def _respelled(self, size: Size, found: Size, name: str) -> Size:
        """Return the bound of a computed value whose text may be longer once it is converted."""
        may_spell = size.is_unknown and not size.is_number
        is_spelled = name in _SPELLED_TYPES and may_spell
        if is_spelled:
            # A text that nobody knows may be `1e130000`.
            found = self._built(name, _expanded(found, name))
            length = max(found.length, MOST_DIGITS)
            found = replace(found, length=length)

        is_quoted = name in _TEXT_TYPES and size.is_long
        if is_quoted:
            # `\x6162`, or quotes doubled
            quoted = replace(found, length=2 * found.length)
            return self._built(name, quoted)

        return found

    def _operation(self, node: Node, place: Place) -> Size:
        """Return an operator's value; a long chain is a deep tree, so it is followed in a loop."""
        chain = []
        left: Node = {"A_Expr": node}
        while "A_Expr" in left:
            step = left["A_Expr"]
            chain.append(step)
            left = step.get("lexpr", {})

        value = EMPTY
        if left:
            value = self.value(left, place)

        for step in reversed(chain):
            other = step.get("rexpr", {})
            if isinstance(other, list):
                right = self.anything(other, place)
            else:
                right = self.value(other, place)

            value = self._operate(step, value, right)

        return value

    def _operate(self, node: Node, left: Size, right: Size) -> Size:
        self._visit()
        symbol = _last_name(node.get("name", ()))
        kind = node.get("kind", "AEXPR_OP")
        if kind == "AEXPR_NULLIF":
            return left
        if _may_be_json_path(symbol, right):
            self.json_path(symbol, left, right)
        elif kind not in _EQUALITIES:
            nanoseconds = operator_ns(symbol, left, right)
            self._spend(symbol, nanoseconds)

        if _gives_truth(node, symbol):
            return TRUTH
        if symbol in _FIELD_OPERATORS:
            return inexact(left)

        combine = OPERATORS.get(symbol)
        if combine is not None:
            combined = combine(left, right)
            return self._built(symbol, combined)

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
        subquery_rows = self.query(node["subselect"]["SelectStmt"], place)
        self.anything(node.get("testexpr"), place)
        kind = node["subLinkType"]
        size = _value_of(subquery_rows)
        if kind == "EXPR_SUBLINK":
            return size
        if kind == "ARRAY_SUBLINK":
            rows = Place(place, sources=[("", subquery_rows)], rows=subquery_rows.rows)
            return self._called("array_agg", [size], rows, shown="array")

        return TRUTH

    def _case(self, node: Node, place: Place) -> Size:
        branches = [branch["CaseWhen"] for branch in node.get("args", ())]
        self.anything(node.get("arg"), place)
        conditions = [branch["expr"] for branch in branches]
        self.anything(conditions, place)
        results = [branch["result"] for branch in branches]
        if "defresult" in node:
            results.append(node["defresult"])

        sizes = self.each(results, place)
        return one_of(sizes)

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
        extreme = one_of(sizes)
        pairs = zip(arguments, sizes, strict=True)
        written = [size for argument, size in pairs if _is_written(argument)]
        low, high = extreme.low, extreme.high
        if node.get("op") == "IS_LEAST":
            highs = [size.high for size in written]
            high = min([high, *highs])
        else:
            lows = [size.low for size in written]
            low = max([low, *lows])

        return between(low, high, extreme)

    # --------------------------------------------------------------------------
    # put together

    def _array(self, node: Node, place: Place) -> Size:
        sizes = self.each(node.get("elements", ()), place)
        either = one_of(sizes)
        array = replace(together(sizes), item=either.length, text=None, is_number=False)
        return between(either.low, either.high, array)

    def _row(self, node: Node, place: Place) -> Size:
        """Return the bound of a row; its text has each quote twice, also those of rows in it."""
        sizes = self.each(node.get("args", ()), place)
        whole = EMPTY
        if sizes:
            whole = together(sizes)

        quotes = QUOTES * len(sizes)
        length = 2 * whole.length + quotes
        row = replace(unnumbered(whole), length=length, item=None)
        return self._built("row", row)

    def _document(self, node: Node, place: Place) -> Size:
        """Return the bound of XML or JSON that is built by its own syntax; a quote may take two
        characters in it.
        """
        whole = self.anything(node, place)
        if node.get("op") == "IS_XMLPARSE":
            _refuse_long_document("xmlparse", whole)

        length = 2 * whole.length + QUOTES
        document = replace(unnumbered(whole), length=length)
        return self._built("", document)

    def _aggregate(self, node: Node, place: Place) -> Size:
        """Return the bound of `JSON_ARRAYAGG` or `JSON_OBJECTAGG`."""
        return self._called("json_agg", [self.anything(node, place)], place)

    def _json_list(self, node: Node, place: Place) -> Size:
        """Return the bound of `JSON_ARRAY(SELECT …)`."""
        subquery_rows = self.query(node["query"]["SelectStmt"], place)
        size = _value_of(subquery_rows)
        rows = Place(place, sources=[("", subquery_rows)], rows=subquery_rows.rows)
        return self._called("json_agg", [size], rows)

    def _element(self, node: Node, place: Place) -> Size:
        steps = node.get("indirection", [])
        self.anything(steps, place)
        size = self.value(node["arg"], place)
        is_element = all(map(_is_index, steps))
        if is_element:
            return element_of(size)

        return inexact(size)

    def _call(self, node: Node, place: Place) -> Size:
        name = strings(node["funcname"])[-1]
        arguments = _arguments_of(node)
        if name in XPATH_FUNCTIONS:
            self.documents(name, arguments[1:], place)

        sizes = self.each(arguments, place)
        if node.get("agg_within_group"):
            ordered = self.anything(node["agg_order"], place)
            sizes = [ordered, *sizes]

        for clause in ("agg_order", "agg_filter", "over"):
            self.anything(node.get(clause), place)

        has_second = len(sizes) > 1
        if has_second and name == "array_fill":
            return self._filled_array(node, sizes, place)
        if has_second and name in AMOUNT_FUNCTIONS:
            sizes[1] = self._amount(node, sizes)
        if name == "factorial":
            sizes = self._multiplied(node, sizes)
        if name == "generate_series":
            place.series = max(place.series, series_rows(sizes))

        return self._called(name, sizes, place)

    def _filled_array(self, call: Node, sizes: list[Size], place: Place) -> Size:
        """Return the bound of what `array_fill` makes."""
        element = sizes[0]
        cells = self._cells(call, sizes, place)
        length = product(element.length + QUOTES, cells)
        array = replace(unnumbered(element), length=length)
        return self._built("array_fill", array)

    def _amount(self, node: Node, sizes: list[Size]) -> Size:
        """Return the bound of how often or how far a text is repeated or padded.

        Where it comes from tables and may be too large, PostgreSQL has to prove that it is not.
        """
        text, amount = sizes[:2]
        length = product(max(text.length, 1.0), amount.high)
        is_small = length <= MAX_LENGTH
        if is_small or not amount.is_stored:
            return amount

        location = node.get("location", 0)
        self.amounts.add(location)
        return replace(amount, low=-MOST_AMOUNT, high=MOST_AMOUNT)

    def _multiplied(self, node: Node, sizes: list[Size]) -> list[Size]:
        """Return the bounds of what `factorial` is given."""
        factor, *others = sizes or [EMPTY]
        may_be_large = factor.is_stored and not others
        if may_be_large and self._leave_to_proof(node):
            count = replace(factor, low=-MOST_COUNT, high=MOST_COUNT)
            return [count]

        return sizes

    def _leave_to_proof(self, node: Node) -> bool:
        """Note a call whose count PostgreSQL can prove small; tell whether it shall prove it."""
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

        result = result_of(name, sizes, place)
        return self._built(shown or name, result)

    def _cells(self, call: Node, sizes: Sequence[Size], place: Place) -> float:
        """Return how many elements `array_fill` makes."""
        dimensions = dimensions_of(call)
        if not dimensions:
            return _cells_of_text(sizes[1])

        counts = self.each(dimensions, place)
        cells = _cells_of(counts)
        length = product(max(sizes[0].length, 1.0), cells)
        is_small = length <= MAX_LENGTH
        is_of_stored = any(count.is_stored for count in counts)
        if is_small or not is_of_stored:
            return cells

        location = call.get("location", 0)
        self.amounts.add(location)
        limited = map(_limited_count, counts)
        return _cells_of(limited)


def _cells_of(counts: Iterable[Size]) -> float:
    """Return how many elements an array of so many by so many has."""
    cells = [max(1.0, count.high) for count in counts]
    return math.prod(cells)


def _cells_of_text(dimensions: Size) -> float:
    """Return how many elements an array of dimensions like `{3,4}` has."""
    if dimensions.text is None:
        return math.inf

    written = re.findall(r"\d+", dimensions.text)[:10]
    numbers = map(float, written)
    return _cells_of(map(of_number, numbers))


def _limited_count(count: Size) -> Size:
    """Return the bound of a count of `array_fill` that PostgreSQL reads as a smallint."""
    if count.constant is not None:
        return count

    return of_number(min(count.high, MOST_AMOUNT))


def _value_of(rows: Rows) -> Size:
    """Return the bound of any of the columns."""
    columns = rows.columns or {"": STORED}
    return one_of(columns.values())


def _refuse_long_document(name: str, document: Size) -> None:
    """Refuse XML that is too long: libxml compares all attributes of an element with each other."""
    if document.length > MAX_XML_CHARS:
        raise TooLong(name)


def _last_name(parts: Iterable[Node]) -> str:
    """Return the last part of a type's or operator's name; empty where it has none."""
    names = ("", *strings(parts))
    return names[-1]


def _arguments_of(call: Node) -> list[Node]:
    """Return the values that a call is given, also those with a name (`f(a => 1)`)."""
    arguments = []
    for item in call.get("args", ()):
        named = item.get("NamedArgExpr", {})
        value = named.get("arg", item)
        arguments.append(value)

    return arguments


def _as_type(size: Size, name: str) -> Size:
    """Return the bound of the value once it is of the type."""
    if name in _TIME_TYPES:
        days = days_of(size)
        return replace(days, length=_CHARS_OF_TIME, is_gathered=False)

    if name in _READ_AS_TEXT:
        return replace(size, is_number=False, is_float=False)
    if name == "numeric":
        return _number_of(size)
    if name in _NUMBERS_OF_FIXED_SIZE:
        return _fixed_number(size, name)

    other = unnumbered(size)
    return replace(other, text=size.text)


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

    times = _RENDERED_BYTES
    if name in _PLAIN_TYPES:
        times = _PLAIN_BYTES

    length = times * size.length
    return replace(size, length=length)


def _number_of(size: Size) -> Size:
    """Return a number that is read from a text. What is stored in a text is short."""
    number = replace(size, text=None, is_number=True)
    if not size.is_gathered:
        return number

    length = min(size.length, LONG_CHARS)
    return replace(number, length=length, is_gathered=False)


def _gives_truth(node: Node, symbol: str) -> bool:
    """Tell whether an operator's value is true or false."""
    if node.get("kind", "AEXPR_OP") != "AEXPR_OP":
        return True

    is_prefix = "lexpr" not in node  # `~ n` turns the bits of a number round
    if is_prefix:
        return False

    return symbol in TRUTH_OPERATORS


def _may_be_json_path(symbol: str, right: Size) -> bool:
    """Tell whether an operator reads the left side by a JSON path on its right; `@@` is a text
    search, too.
    """
    if symbol not in JSON_PATH_OPERATORS:
        return False
    if right.text is None:
        return symbol == "@?"

    return "$" in right.text


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
    handler = _HANDLERS.get(kind)
    if handler is None and kind.startswith(("Json", "Xml")):
        return Expressions._document

    return handler
