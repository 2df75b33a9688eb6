"""How long the texts and arrays get that a statement builds, and how long built-ins that nothing stops work on them.

Some of PostgreSQL's functions look neither at timeouts nor at cancellation: searching a text of a million characters
for one of half a million takes minutes, also while the planner folds constants. The constants of a statement decide how
much there is to search: `repeat('a', 1000000)`, `lpad`, `array_fill`, an aggregate over `generate_series`, also where
the amount is computed, cast, or comes out of a subquery.

This module computes an upper bound for every value: how large a number may be, and how long its text. What is stored in
tables counts as 1, so that bounds say by how much the statement itself multiplies it. What can be neither computed nor
traced to a table has no bound.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from common.errors import ForbiddenObject, ValidationFailed
from common.text import Text
from databases.guard import xpath
from databases.guard.facts import words
from databases.guard.parsing import TOO_DEEP, Node
from databases.guard.walk import Findings, strings

MAX_LENGTH = 10_000_000
"""Characters or array elements of one value."""
MAX_STEPS = 200_000_000
"""What built-ins that can't be interrupted do in about a second."""

# Nodes looked at, and more for each character of the text; recursive queries in recursive queries would take for ever.
_MAX_VISITS, _MAX_VISITS_PER_CHAR = 2_000, 6
_ROUNDS = 4  # of a recursive query, to see how its values grow
_COPIED = 0.1  # steps for each character that is only copied
_TEXT_OF_NUMBER = 32
_QUOTES = 8  # characters around a value in JSON, XML or an array
_MOST_DIGITS = 150_000  # of a numeric

# Functions that compare every character of the first argument with those of others: steps a pair.
_SEARCHES = {
    **dict.fromkeys(words("strpos position replace split_part string_to_array string_to_table starts_with"), 1),
    **dict.fromkeys(words("like notlike textlike textnlike texticlike bpcharlike bpchariclike bytealike"), 1),
    **dict.fromkeys(words("translate btrim ltrim rtrim"), 4),
}
_SQUARES = {"normalize": 4, "is_normalized": 4}
_OTHERS = 5  # whatever else has two long arguments: polygons, paths, arrays, JSON
_CONCATENATIONS = words(
    "concat concat_ws coalesce greatest least format json_build_array json_build_object jsonb_build_array "
    "jsonb_build_object array_cat array_append array_prepend textcat overlay row_to_json to_json to_jsonb"
)
_ESCAPES = words(
    "encode quote_literal quote_nullable quote_ident to_json to_jsonb row_to_json json_build_array json_build_object "
    "jsonb_build_array jsonb_build_object array_to_json xmlforest text varchar convert_to decode upper"
)
_KEEP_NUMBERS = words(
    "abs ceil ceiling floor round trunc max min avg int2 int4 int8 float4 float8 numeric sign mod div first_value "
    "last_value lag lead nth_value percentile_cont percentile_disc any_value unnest nullif coalesce sqrt cbrt ln log "
    "log10 left right substr substring btrim ltrim rtrim trim upper lower mode"
)
_LENGTHS = words(
    "length char_length character_length octet_length bit_length array_length cardinality json_array_length "
    "jsonb_array_length strpos position array_position array_upper"
)
_COUNTS = words("count row_number rank dense_rank ntile regr_count")
_SMALL = words("random width_bucket cume_dist percent_rank sin cos tan degrees radians pi ascii isfinite")
_GROWTH = words(
    "repeat lpad rpad array_fill replace array_replace regexp_replace format array_to_string polygon overlay text "
    "varchar bpchar bit concat concat_ws array_cat array_append array_prepend textcat convert_to encode quote_literal "
    "quote_nullable to_json to_jsonb row_to_json json_build_array json_build_object jsonb_build_array "
    "jsonb_build_object"
)
_GROWING_OPERATORS = frozenset((("||",), ("@>",), ("<@",), ("&&",)))
_LONG_TEXT = 20_000
_SHORT_TEXT = 1_000  # characters; up to here a text put together from constants is known, not only its length
_AGGREGATES = re.compile(r"(string|array|xml|jsonb?_object|jsonb?|range)_agg(_\w+)?")
_UNBOUNDED_FIELDS = frozenset(("epoch", "julian", "microseconds", "milliseconds"))
_LINEAR_OPERATORS = words("= <> != < > <= >= || + - * / % ^ << >> ~ ~* !~ !~* -> ->> #> #>>")
_LIKES = words("~~ ~~* !~~ !~~*")
_PADDED_TYPES = words("bpchar bit")
_TEXT_TYPES = words("text varchar bpchar json jsonb xml")

_NUMBER = re.compile(r"[-+]?(\d+(?:\.\d*)?|\.\d+)(?:e([-+]?\d+))?", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:e\+?\d+)?|0x[0-9a-f]+|0o[0-7]+|0b[01]+", re.IGNORECASE)
_WIDTH = re.compile(r"%(?:\d+\$)?-?(?:(\d+)|(\*))?(?:\d+\$)?[sIL]?")
_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})")
_STEP = re.compile(r"\s*[-+]?(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours", "hr", "hrs"), 3600.0),
}
_DAY_S = 86_400.0
_UNKNOWN_SPAN_DAYS = 366


class _TooLong(Exception):
    """A value gets too long, or takes too long to compute; the message is the name of the function or operator."""


@dataclass(frozen=True, slots=True)
class Size:
    """A bound for one value.

    Attributes:
        number: its absolute value, if it is a number or is read as one; of an array, the largest of its elements'.
        length: characters of its text, or elements.
        is_stored: whether something stored in a table is in it.
        is_natural: whether it is known not to be negative.
        constant: the number itself, where it is known.
        text: the text itself, where it is known.
    """

    number: float = 1
    length: float = 1
    is_stored: bool = False
    is_natural: bool = False
    constant: float | None = None
    text: str | None = None


_STORED = Size(is_stored=True, is_natural=True)
_TRUTH = Size(1, 5, is_natural=True)
_EMPTY = Size(0, 0)


@dataclass
class _Rows:
    """What a query or a table in FROM gives: columns by name (None: a stored table's, whatever they are), and rows."""

    columns: dict[str, Size] | None
    rows: float = 1

    @property
    def is_stored(self) -> bool:
        return self.columns is None or any(size.is_stored for size in self.columns.values())


@dataclass
class _Place:
    """What is visible at some place: the sources of a SELECT, by alias, and CTEs; then what is visible around it.

    Attributes:
        pending: CTEs that were not looked at yet, each with whether its WITH is RECURSIVE.
        rows: how many rows the sources give together.
        series: how many rows a series in the list of results makes of each.
    """

    outer: "_Place | None" = None
    sources: list[tuple[str, _Rows]] = field(default_factory=list)
    ctes: dict[str, _Rows] = field(default_factory=dict)
    pending: dict[str, tuple[Node, bool]] = field(default_factory=dict)
    rows: float = 1
    series: float = 1

    @property
    def reads_tables(self) -> bool:
        return any(rows.is_stored for _, rows in self.sources)

    def outward(self) -> "Iterator[_Place]":
        place: _Place | None = self
        while place is not None:
            yield place
            place = place.outer


def may_grow(found: Findings, text_length: int) -> bool:
    """Whether a query may build something longer than itself; most can't, and are spared the closer look.

    Args:
        text_length: characters of the statement.
    """
    if text_length > _LONG_TEXT or not _GROWING_OPERATORS.isdisjoint(found.operators):
        return True
    names = {call.name for call in found.calls}
    if "generate_series" in names and len(names) > 1:
        return True
    if not _GROWTH.isdisjoint(names) or any(map(_AGGREGATES.fullmatch, names)):
        return True
    return any(name[-1] in _PADDED_TYPES for name in found.types)


def refusal(select: Node, text_length: int) -> ForbiddenObject | None:
    """The refusal of a query that builds too much, or None.

    Args:
        text_length: characters of the statement.

    Raises:
        ValidationFailed: it is nested too deeply.
    """
    try:
        _Bounds(_MAX_VISITS + _MAX_VISITS_PER_CHAR * text_length).query(select, _Place())
    except _TooLong as exc:
        return _too_long(str(exc))
    except RecursionError as exc:
        raise ValidationFailed(TOO_DEEP) from exc
    return None


class _Bounds:
    """One walk over a query's expressions.

    Attributes:
        visits: how many nodes may still be looked at.
        steps: what the built-ins do that nothing interrupts, all together.
    """

    def __init__(self, visits: int) -> None:
        self.visits = visits
        self.steps = 0.0

    # Queries

    def query(self, select: Node, outer: _Place) -> _Rows:
        """What the query gives; looks at every expression in it."""
        place = _Place(outer)
        self.ctes(select.get("withClause"), place)
        if "larg" in select:
            found = self.set_operation(select, place)
        elif "valuesLists" in select:
            lists = [self.each(row["List"].get("items", ()), place) for row in select["valuesLists"]]
            columns = {f"column{n}": _either(column) for n, column in enumerate(zip(*lists, strict=False), 1)}
            found = _Rows(columns, len(lists))
        else:
            found = self.plain(select, place)
        self.rest(select, place)
        limit = self.value(select["limitCount"], place) if "limitCount" in select else None
        rows = min(found.rows, limit.number) if limit and limit.constant is not None else found.rows
        return _Rows(found.columns, rows)

    def plain(self, select: Node, place: _Place) -> _Rows:
        for item in select.get("fromClause", ()):
            place.sources.extend(self.source(item, place))
        place.rows = math.prod(max(1.0, rows.rows) for _, rows in place.sources)
        columns: dict[str, Size] = {}
        for number, target in enumerate(select.get("targetList", ())):
            self.target(target["ResTarget"], number, columns, place)
        is_grouped = "groupClause" in select
        return _Rows(columns, 1 if not is_grouped and _aggregates(select) else place.rows * place.series)

    def target(self, target: Node, number: int, columns: dict[str, Size], place: _Place) -> None:
        value = target.get("val", {})
        if _last_field(value) == "*":
            for _, source in place.sources:
                for name, size in (source.columns or {}).items():
                    columns[name] = _either([columns.get(name, size), size])
            return
        columns[target.get("name") or _name_of(value) or f"?{number}"] = self.value(value, place)

    def rest(self, select: Node, place: _Place) -> None:
        """Looks at the clauses that change neither the values nor the number of rows."""
        for clause in ("whereClause", "groupClause", "havingClause", "windowClause", "sortClause", "distinctClause"):
            self.anything(select.get(clause), place)
        self.anything(select.get("limitOffset"), place)

    def set_operation(self, select: Node, place: _Place) -> _Rows:
        """What a set operation gives. A long chain makes a deep tree, so it is followed in a loop."""
        parts = []
        while "larg" in select:
            parts.append(self.query(select["rarg"], place))
            select = select["larg"]
            if "larg" in select and (set(select) & {"withClause", "limitCount", "sortClause"}):
                break
        parts.append(self.query(select, place))
        return _union(parts[::-1])

    def ctes(self, clause: Node | None, place: _Place) -> None:
        for item in (clause or {}).get("ctes", ()):
            cte = item["CommonTableExpr"]
            place.pending.setdefault(cte["ctename"], (cte, bool((clause or {}).get("recursive"))))
        for item in (clause or {}).get("ctes", ()):
            self.cte(item["CommonTableExpr"]["ctename"], place)

    def cte(self, name: str, place: _Place) -> _Rows | None:
        """What the CTE gives, looked at when it is first used: under RECURSIVE, earlier ones may use later ones."""
        if name in place.pending:
            cte, may_recur = place.pending.pop(name)
            query = cte["ctequery"].get("SelectStmt", {})
            names = strings(cte.get("aliascolnames", ()))
            is_recursive = may_recur and "larg" in query
            found = self.recursive(name, query, names, place) if is_recursive else self.query(query, place)
            place.ctes[name] = _renamed(found, names)
        return place.ctes.get(name)

    def recursive(self, name: str, query: Node, names: Sequence[str], place: _Place) -> _Rows:
        """What a recursive query gives: its first rows, and what some rounds make of them.

        What grows by the same amount each time is as good as stored; what grows faster gets as long as it likes.
        """
        place = _Place(place)
        self.ctes(query.get("withClause"), place)
        history = [_renamed(self.query(query["larg"], place), names)]
        for _ in range(_ROUNDS):
            inner = _Place(place, ctes={name: history[-1]})
            history.append(_union([history[0], self.query(query["rarg"], inner)]))
        columns = dict.fromkeys(history[-1].columns or {})
        sizes = {column: [(rows.columns or {}).get(column, _EMPTY) for rows in history] for column in columns}
        return _Rows({column: _outgrown(found) for column, found in sizes.items()})

    # What a query reads from

    def source(self, item: Node, place: _Place) -> list[tuple[str, _Rows]]:
        ((kind, node),) = item.items()
        names = strings(node.get("alias", {}).get("colnames", ()))
        alias = node.get("alias", {}).get("aliasname", "")
        if kind == "RangeVar":
            return [(alias or node["relname"], _renamed(self.table(node, place), names))]
        if kind == "RangeSubselect":
            return [(alias, _renamed(self.query(node["subquery"]["SelectStmt"], place), names))]
        if kind == "JoinExpr":
            return self.join(node, alias, place)
        if kind == "RangeTableSample":
            return self.source(node["relation"], place)
        if kind == "RangeFunction":
            return [self.function_rows(node, alias, place)]
        if kind == "RangeTableFunc":
            self.parsed("xmltable", self.value(node["docexpr"], place))
        read = self.anything(node, place)
        return [(alias, _Rows(_Everything(_inexact(read))))]

    def table(self, node: Node, place: _Place) -> _Rows:
        if "schemaname" not in node:
            for around in place.outward():
                found = self.cte(node["relname"], around)
                if found is not None:
                    return found
        return _Rows(None)

    def join(self, node: Node, alias: str, place: _Place) -> list[tuple[str, _Rows]]:
        """The sources of a join. A long chain makes a deep tree, so it is followed in a loop."""
        found: list[tuple[str, _Rows]] = []
        conditions = []
        while True:
            right = self.source(node["rarg"], _Place(place, sources=found))
            found += right
            conditions.append(node.get("quals"))
            ((kind, left),) = node["larg"].items()
            if kind != "JoinExpr" or "alias" in left:
                found += self.source(node["larg"], place)
                break
            node = left
        for condition in conditions:
            self.anything(condition, _Place(place, sources=found))
        if not alias:
            return found
        columns = [size for _, rows in found for size in (rows.columns or {"": _STORED}).values()]
        return [(alias, _Rows(_Everything(_either(columns)), math.prod(max(1.0, rows.rows) for _, rows in found)))]

    def function_rows(self, node: Node, alias: str, place: _Place) -> tuple[str, _Rows]:
        around = _Place(place, sources=place.sources)
        sizes, rows, called = [], 1.0, ""
        for item in node.get("functions", ()):
            call = item["List"]["items"][0]
            sizes.append(self.value(call, around))
            rows = max(rows, self.row_count(call, around))
            called = called or _name_of(call)
        size = _either(sizes)
        if node.get("ordinality"):
            size = replace(size, number=max(size.number, rows))
        return (alias or called, _Rows(_Everything(_inexact(size)), rows))

    def row_count(self, call: Node, place: _Place) -> float:
        node = call.get("FuncCall", {})
        arguments = node.get("args", ())
        name = _name_of(call)
        if name == "generate_series":
            return _series_rows(self.each(arguments, place))
        if name == "unnest" and arguments and "A_ArrayExpr" in arguments[0]:
            return len(arguments[0]["A_ArrayExpr"].get("elements", ()))
        given = self.each(arguments, place)
        return 1 if any(size.is_stored for size in given) else max((size.length for size in given), default=1)

    # Expressions

    def each(self, nodes: Iterable[Node], place: _Place) -> list[Size]:
        return [self.value(node, place) for node in nodes]

    def value(self, node: Node, place: _Place) -> Size:
        """The bound of the expression's value."""
        self.visit()
        for kind, inner in node.items():
            handler = _handler(kind)
            return handler(self, inner, place) if handler else self.anything(inner, place)
        return _EMPTY

    def visit(self) -> None:
        self.visits -= 1
        if self.visits < 0:
            raise _TooLong("WITH RECURSIVE")

    def anything(self, value: Any, place: _Place) -> Size:
        """The bound of what all expressions in a part of the tree make together."""
        self.visit()
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
        return self.built("", _joined(found)) if found else _EMPTY

    def document(self, node: Node, place: _Place) -> Size:
        """The bound of XML or JSON made by its own syntax, in which quotes may be written as two characters."""
        return self.built("", _quoted([self.anything(node, place)]))

    def select(self, node: Node, place: _Place) -> Size:
        return _either((self.query(node, place).columns or {"": _STORED}).values())

    def built(self, name: str, size: Size, steps: float = 1) -> Size:
        """`size`, once it is known not to be too long; `steps` is what a character costs."""
        self.spend(name, steps * size.length if size.length > 1000 else 0)
        if size.length > MAX_LENGTH:
            raise _TooLong(name)
        return size

    def spend(self, name: str, steps: float) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS or math.isnan(self.steps):
            raise _TooLong(name)

    def parsed(self, name: str, document: Size) -> None:
        """Refuses a document that is too long for a path."""
        if document.length > xpath.MAX_DOCUMENT_CHARS:
            raise _TooLong(name)

    def column(self, node: Node, place: _Place) -> Size:
        parts = strings(node["fields"])
        found = [size for around in place.outward() for size in _columns_of(parts, around.sources)]
        return _either(found) if found else _STORED

    def constant(self, node: Node, _: _Place) -> Size:
        if "sval" in node:
            return _text(node["sval"].get("sval", ""))
        if "ival" in node:
            return _number(float(node["ival"].get("ival", 0)))
        if "fval" in node:
            return _text(node["fval"].get("fval", "0"))
        return _text(node.get("bsval", {}).get("bsval", "")) if "bsval" in node else _TRUTH

    def cast(self, node: Node, place: _Place) -> Size:
        size = self.value(node["arg"], place)
        type_name = node.get("typeName", {})
        name = strings(type_name.get("names", ()))[-1:]
        modifiers = self.each(type_name.get("typmods", ()), place)
        if name and name[0] in _PADDED_TYPES and modifiers:
            return self.built(
                name[0], replace(size, length=max(size.length, modifiers[0].number), constant=None, text=None)
            )
        if size.constant is not None and not size.constant.is_integer():  # it may be rounded
            size = replace(_inexact(size), number=size.number + 1)
        is_plain = size.constant is not None or size.text is not None or "ColumnRef" in node["arg"]
        if name and name[0] in _TEXT_TYPES and not is_plain and size.length > 1000:
            return self.built(name[0], replace(size, length=2 * size.length))  # `\x6162`, or quotes doubled
        return size

    def operation(self, node: Node, place: _Place) -> Size:
        """An operator's value. A long chain makes a deep tree, so it is followed in a loop."""
        chain = []
        left: Node = {"A_Expr": node}
        while "A_Expr" in left:
            chain.append(left["A_Expr"])
            left = left["A_Expr"].get("lexpr", {})
        value = self.value(left, place) if left else _EMPTY
        for step in reversed(chain):
            right = self.anything(step.get("rexpr"), place) if isinstance(step.get("rexpr"), list) else None
            right = right or self.value(step.get("rexpr", {}), place)
            value = self.operate(step, value, right)
        return value

    def operate(self, node: Node, left: Size, right: Size) -> Size:
        self.visit()
        symbol = strings(node.get("name", ()))[-1:] or ("",)
        kind = node.get("kind", "AEXPR_OP")
        if kind == "AEXPR_NULLIF":
            return left
        if kind in ("AEXPR_LIKE", "AEXPR_ILIKE") or (kind == "AEXPR_OP" and symbol[0] not in _LINEAR_OPERATORS):
            weight = 1 if symbol[0] in _LIKES else _OTHERS
            self.spend(symbol[0] or kind, weight * _product(left.length, right.length))
        if kind != "AEXPR_OP":
            return _TRUTH
        combine = _ARITHMETIC.get(symbol[0])
        if combine is None:
            return replace(_either([left, right]), constant=None, text=None)
        return self.built(symbol[0], combine(left, right), _COPIED)

    def truth(self, node: Node, place: _Place) -> Size:
        self.anything(node, place)
        return _TRUTH

    def subquery(self, node: Node, place: _Place) -> Size:
        found = self.query(node["subselect"]["SelectStmt"], place)
        self.anything(node.get("testexpr"), place)
        if node["subLinkType"] not in ("EXPR_SUBLINK", "ARRAY_SUBLINK"):
            return _TRUTH
        size = _either((found.columns or {"": _STORED}).values())
        if node["subLinkType"] == "ARRAY_SUBLINK":
            size = replace(size, length=_product(size.length, found.rows), constant=None, text=None)
            return self.built("array", size)
        return size

    def case(self, node: Node, place: _Place) -> Size:
        branches = [branch["CaseWhen"] for branch in node.get("args", ())]
        self.anything(node.get("arg"), place)
        self.anything([branch["expr"] for branch in branches], place)
        results = [branch["result"] for branch in branches]
        return _either(self.each([*results, *([node["defresult"]] if "defresult" in node else ())], place))

    def coalesce(self, node: Node, place: _Place) -> Size:
        return _either(self.each(node.get("args", ()), place))

    def extreme(self, node: Node, place: _Place) -> Size:
        """GREATEST and LEAST; the least of what is not negative and 1000 is at most 1000."""
        sizes = self.each(node.get("args", ()), place)
        found = _either(sizes)
        if node.get("op") == "IS_LEAST" and found.is_natural:
            return replace(found, number=min(size.number for size in sizes), constant=None, text=None)
        return _inexact(found) if len(sizes) > 1 else found

    def array(self, node: Node, place: _Place) -> Size:
        sizes = self.each(node.get("elements", ()), place)
        either = _either(sizes)
        return replace(_joined(sizes), number=either.number, is_natural=either.is_natural)

    def element(self, node: Node, place: _Place) -> Size:
        """An element of an array, or a field of a row: no larger than all of it."""
        self.anything(node.get("indirection"), place)
        return replace(self.value(node["arg"], place), constant=None, text=None)

    def call(self, node: Node, place: _Place) -> Size:
        name = strings(node["funcname"])[-1]
        arguments = [item.get("NamedArgExpr", {}).get("arg", item) for item in node.get("args", ())]
        sizes = self.each(arguments, place)
        for clause in ("agg_order", "agg_filter", "over"):
            self.anything(node.get(clause), place)
        if name == "generate_series":
            place.series = max(place.series, _series_rows(sizes))
        if name in xpath.FUNCTIONS and len(sizes) > 1:
            self.parsed(name, sizes[1])
        elif name in _SEARCHES and sizes:
            longest = max((size.length for size in sizes[1:]), default=1)
            self.spend(name, _SEARCHES[name] * _product(sizes[0].length, longest))
        elif name in _SQUARES:
            self.spend(name, _SQUARES[name] * _product(sizes[0].length, sizes[0].length) if sizes else 0)
        elif name not in _CONCATENATIONS and len(sizes) > 1 and not _AGGREGATES.fullmatch(name):
            first, second = sorted((size.length for size in sizes), reverse=True)[:2]
            self.spend(name, _OTHERS * _product(first, second) if second > _TEXT_OF_NUMBER else 0)
        return self.built(name, self.result(name, arguments, sizes, place))

    def result(self, name: str, arguments: Sequence[Node], sizes: list[Size], place: _Place) -> Size:
        builder = _BUILDERS.get(name)
        if builder is not None and sizes:
            return builder(sizes)
        if name == "array_fill" and len(sizes) > 1:
            length = _product(sizes[0].length + _QUOTES, self.cells(arguments[1], sizes[1], place))
            return replace(sizes[0], length=length, constant=None, text=None)
        joined = _quoted(sizes) if name in _ESCAPES else _joined(sizes)
        joined = replace(joined, length=max(joined.length, _TEXT_OF_NUMBER))
        if name in _COUNTS:
            return Size(place.rows, _TEXT_OF_NUMBER, joined.is_stored or place.reads_tables, is_natural=True)
        if _AGGREGATES.fullmatch(name):
            return replace(joined, length=_product(joined.length, place.rows), number=joined.number)
        is_natural = (
            name in _LENGTHS or name == "abs" or (name in _KEEP_NUMBERS and all(size.is_natural for size in sizes))
        )
        number = _number_of(name, sizes, place)
        return Size(number, joined.length, joined.is_stored, is_natural)

    def cells(self, node: Node, size: Size, place: _Place) -> float:
        """How many elements an array of these dimensions has."""
        while "TypeCast" in node:
            node = node["TypeCast"]["arg"]
        if "A_ArrayExpr" in node:
            return math.prod(max(1.0, one.number) for one in self.each(node["A_ArrayExpr"].get("elements", ()), place))
        if size.text is not None:
            return math.prod(max(1.0, float(number)) for number in re.findall(r"\d+", size.text)[:10])
        return max(1.0, size.number) if size.is_stored else _power(size.number, 6)


class _Everything(dict[str, Size]):
    """The columns of a source of which only the common bound is known: whatever the name."""

    def __init__(self, size: Size) -> None:
        super().__init__({"*": size})


def _columns_of(parts: Sequence[str], sources: Iterable[tuple[str, _Rows]]) -> Iterator[Size]:
    """What a reference may mean among the sources: a column, or a whole row by its alias."""
    name = parts[-1]
    qualifier = parts[-2] if len(parts) > 1 else None
    for alias, rows in sources:
        if qualifier is not None and alias != qualifier:
            continue
        columns = rows.columns
        if columns is None:
            continue
        if name in columns:
            yield columns[name]
        elif isinstance(columns, _Everything):
            yield columns["*"]
        elif name in ("*", alias):
            yield _joined(columns.values())


def _aggregates(select: Node) -> bool:
    """Whether what is selected is one aggregate."""
    targets = select.get("targetList", ())
    names = [_name_of(target["ResTarget"].get("val", {})) for target in targets]
    return bool(names) and all(_AGGREGATES.fullmatch(name or "") or name in ("count", "sum", "max") for name in names)


def _last_field(node: Node) -> str | None:
    fields = strings(node.get("ColumnRef", {}).get("fields", ()))
    return fields[-1] if fields else None


def _name_of(node: Node) -> str:
    """What PostgreSQL calls the column of an expression without an alias."""
    while "TypeCast" in node:
        node = node["TypeCast"]["arg"]
    call = strings(node.get("FuncCall", {}).get("funcname", ()))
    return _last_field(node) or (call[-1] if call else "")


def _renamed(rows: _Rows, names: Sequence[str]) -> _Rows:
    if not names or rows.columns is None or isinstance(rows.columns, _Everything):
        return rows
    old = list(rows.columns.items())
    columns = {names[n] if n < len(names) else name: size for n, (name, size) in enumerate(old)}
    return _Rows(columns, rows.rows)


def _union(parts: Sequence[_Rows]) -> _Rows:
    """The rows of all parts: columns are named as in the first, each as large as the largest in its place."""
    known = [part.columns for part in parts if part.columns is not None]
    if not known:
        return _Rows(None)
    values = [list(columns.values()) for columns in known]
    columns = {
        name: _either([column[place] for column in values if place < len(column)])
        for place, name in enumerate(parts[0].columns or known[0])
    }
    return _Rows(columns, sum(part.rows for part in parts))


def _outgrown(history: Sequence[Size]) -> Size:
    """The bound of a column of a recursive query, from what its rounds gave."""
    last = history[-1]
    number = _extrapolated([size.number for size in history])
    length = _extrapolated([size.length for size in history])
    return Size(number, length, last.is_stored, all(size.is_natural for size in history))


def _extrapolated(values: Sequence[float]) -> float:
    """The last value, or infinity where the steps get larger."""
    before, after = values[-2] - values[-3], values[-1] - values[-2]
    return math.inf if math.isinf(values[-1]) or after > before * 1.01 + 1e-9 else values[-1]


def _either(sizes: Iterable[Size]) -> Size:
    """The bound of what is one of several."""
    found = list(sizes)
    if len(found) == 1:
        return found[0]
    return Size(
        max((size.number for size in found), default=0),
        max((size.length for size in found), default=0),
        any(size.is_stored for size in found),
        all(size.is_natural for size in found),
    )


def _quoted(sizes: Sequence[Size]) -> Size:
    """The bound of several put together, where every character may have to be written as two."""
    joined = _inexact(_joined(sizes))
    return replace(joined, length=2 * joined.length + _QUOTES * len(sizes))


def _inexact(size: Size) -> Size:
    return replace(size, constant=None, text=None)


def _joined(sizes: Iterable[Size]) -> Size:
    """The bound of several put together."""
    found = list(sizes)
    if len(found) == 1:
        return found[0]
    length = sum(size.length for size in found)
    is_stored = any(size.is_stored for size in found)
    number = max((size.number for size in found), default=0)
    return Size(number if is_stored else max(number, _read(length)), length, is_stored)


def _number(value: float) -> Size:
    return Size(abs(value), len(f"{value:.17g}"), is_natural=value >= 0, constant=float(value))


def _read(length: float) -> float:
    """The largest number that a text of that length can spell."""
    return _power(10, length)


def _text(value: str) -> Size:
    """A constant text: it may be read as the number it is, or as the largest one that is in it."""
    match = _NUMBER.fullmatch(value.strip().replace("_", ""))
    if match is not None and len(value) < 100:
        return replace(_number(_float(match[0])), length=len(value), text=value)
    numbers = (_float(number) for number in _NUMBERS.findall(value[:2000]))
    return Size(max(numbers, default=0), len(value), text=value)


def _float(text: str) -> float:
    if text[:2].lower() in ("0x", "0o", "0b"):
        return float(int(text, 0))
    try:
        return float(text)
    except ValueError:
        return math.inf


def _product(left: float, right: float) -> float:
    return 0.0 if left == 0 or right == 0 else left * right


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(max(base, 1.0), exponent)
    except OverflowError:
        return math.inf


def _digits(number: float) -> float:
    return _TEXT_OF_NUMBER + (math.log10(number) if 1 < number < math.inf else 0 if number <= 1 else _MOST_DIGITS)


def _arithmetic(
    bound: Callable[[float, float], float], exact: Callable[[float, float], float], *, may_negate: bool = False
) -> Callable[[Size, Size], Size]:
    """An operator's result, by `bound` from two bounds, or by `exact` from two known numbers (NaN: not known)."""

    def combine(left: Size, right: Size) -> Size:
        is_stored = left.is_stored or right.is_stored
        if left.constant is not None and right.constant is not None:
            try:
                value = exact(left.constant, right.constant)
            except (ArithmeticError, ValueError):
                value = math.inf
            if isinstance(value, float) and math.isfinite(value):
                return replace(_number(value), length=_digits(abs(value)))
        number = bound(left.number, right.number)
        # What is not a number is as long as both: intervals, arrays, JSON.
        length = max(_digits(number), left.length, right.length) if not is_stored else left.length + right.length
        return Size(number, length, is_stored, not may_negate and left.is_natural and right.is_natural)

    return combine


def _divided(left: Size, right: Size) -> Size:
    is_natural = left.is_natural and right.is_natural
    length = left.length + right.length + _TEXT_OF_NUMBER
    if right.constant:
        # Whole numbers are divided into whole numbers: what is left over makes the value unknown, but no larger.
        is_exact = left.constant is not None and left.constant % right.constant == 0
        exact = left.constant / right.constant if left.constant is not None and is_exact else None
        return Size(left.number / abs(right.constant), length, left.is_stored, is_natural, exact)
    number = left.number if right.is_stored else math.inf
    return Size(number, length, left.is_stored or right.is_stored, is_natural)


def _concatenated(left: Size, right: Size) -> Size:
    texts = [_constant_text(left), _constant_text(right)]
    if all(text is not None for text in texts) and left.length + right.length <= _SHORT_TEXT:
        return _text("".join(text or "" for text in texts))
    return _joined([left, right])


def _constant_text(size: Size) -> str | None:
    if size.text is None and size.constant is not None and size.constant.is_integer() and abs(size.constant) < 1e18:
        return f"{size.constant:.0f}"
    return size.text


_ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "+": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a + b, lambda a, b: a - b, may_negate=True),
    "*": _arithmetic(_product, lambda a, b: a * b),
    "/": _divided,
    "%": _arithmetic(min, math.fmod),
    "^": _arithmetic(_power, lambda a, b: a**b),
    "<<": _arithmetic(lambda a, b: _product(a, _power(2, b)), lambda a, b: a * 2.0**b),
    ">>": _arithmetic(max, lambda *_: math.nan),
    "&": _arithmetic(min, lambda *_: math.nan),
    "|": _arithmetic(lambda a, b: a + b, lambda *_: math.nan),
    "||": _concatenated,
}


def _number_of(name: str, sizes: Sequence[Size], place: _Place) -> float:
    """How large the number may be that the function gives."""
    largest = max((size.number for size in sizes), default=0)
    if name in _LENGTHS:
        return max((size.length for size in sizes), default=0)
    if name == "sum":
        return _product(largest, place.rows)
    if name in _SMALL:
        return 1000
    if name in ("extract", "date_part"):
        part = sizes[0].text if sizes else None
        is_bounded = part is not None and part not in _UNBOUNDED_FIELDS
        return 10_000 if is_bounded else math.inf if not any(size.is_stored for size in sizes) else 1
    if name in _KEEP_NUMBERS or any(size.is_stored for size in sizes):
        return largest
    return math.inf


def _repeated(sizes: list[Size]) -> Size:
    times = sizes[1].number if len(sizes) > 1 else 1
    length = _product(sizes[0].length, times)
    return Size(
        _read(length) if not any(size.is_stored for size in sizes) else sizes[0].number,
        length,
        any(size.is_stored for size in sizes),
    )


def _padded(sizes: list[Size]) -> Size:
    width = sizes[1] if len(sizes) > 1 else sizes[0]
    length = width.number if width.constant is not None else max(width.number, sizes[0].length)
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else _read(length), length, is_stored)


def _replaced(sizes: list[Size]) -> Size:
    """At worst every character, or every occurrence of a known text, becomes the new text."""
    if len(sizes) < 3:
        return sizes[0]
    old = max(1.0, sizes[1].length) if sizes[1].text is not None else 1.0
    length = _product(sizes[0].length, max(1.0, sizes[2].length / old))
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else _read(length), length, is_stored)


def _replaced_by_pattern(sizes: list[Size]) -> Size:
    """The same, but the new text may hold the found one (`\\&`)."""
    if len(sizes) < 3:
        return sizes[0]
    new = sizes[2].text or ""
    groups = new.count("\\") or (sizes[2].text is None and not sizes[2].is_stored and sizes[2].length)
    length = _product(sizes[0].length, max(1.0, sizes[2].length, groups or 0))
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else _read(length), length, is_stored)


def _formatted(sizes: list[Size]) -> Size:
    """`format`: the widths it asks for, and its arguments as often as it shows them."""
    longest = max((size.length for size in sizes[1:]), default=0)
    pattern = _constant_text(sizes[0])
    is_stored = any(size.is_stored for size in sizes)
    if pattern is None:
        length = _joined(sizes).length if sizes[0].is_stored else math.inf
        return Size(_joined(sizes).number, length, is_stored)
    length = sizes[0].length
    for match in _WIDTH.finditer(pattern):
        width = float(match[1]) if match[1] else max((s.number for s in sizes[1:]), default=0) if match[2] else 0
        length += max(width, 2 * longest)
    return Size(max((size.number for size in sizes), default=0), length, is_stored)


def _joined_by(sizes: list[Size]) -> Size:
    """Array elements with a text between them: between any two characters of the array's, at worst."""
    joined = _joined(sizes)
    between = sizes[1].length if len(sizes) > 1 else 1
    return replace(joined, length=sizes[0].length + _product(sizes[0].length, between), constant=None, text=None)


def _separated(sizes: list[Size]) -> Size:
    joined = _joined(sizes)
    return replace(joined, length=joined.length + _product(sizes[0].length, len(sizes)), constant=None, text=None)


def _cut(sizes: list[Size]) -> Size:
    wanted = sizes[-1]
    if len(sizes) < 2 or wanted.constant is None:
        return _inexact(sizes[0])
    is_stored = any(size.is_stored for size in sizes)
    length = min(sizes[0].length, wanted.number) if wanted.constant >= 0 else sizes[0].length
    return Size(sizes[0].number if is_stored else _read(length), length, is_stored)


def _substring(sizes: list[Size]) -> Size:
    return _cut(sizes) if len(sizes) > 2 else _inexact(sizes[0])


def _polygon(sizes: list[Size]) -> Size:
    return Size(0, max(sizes[0].length, sizes[0].number if len(sizes) > 1 else 0), sizes[0].is_stored)


def _raised(sizes: list[Size]) -> Size:
    return _ARITHMETIC["^"](sizes[0], sizes[1]) if len(sizes) > 1 else replace(sizes[0], number=math.inf)


def _exponential(sizes: list[Size]) -> Size:
    return _ARITHMETIC["^"](_number(math.e), sizes[0])


def _series(sizes: list[Size]) -> Size:
    limits = _either(sizes[:2])
    return replace(_inexact(limits), length=_TEXT_OF_NUMBER, is_stored=any(size.is_stored for size in sizes))


_BUILDERS: dict[str, Callable[[list[Size]], Size]] = {
    "repeat": _repeated,
    "lpad": _padded,
    "rpad": _padded,
    "replace": _replaced,
    "array_replace": _replaced,
    "regexp_replace": _replaced_by_pattern,
    "format": _formatted,
    "array_to_string": _joined_by,
    "concat_ws": _separated,
    "polygon": _polygon,
    "power": _raised,
    "pow": _raised,
    "dpow": _raised,
    "exp": _exponential,
    "generate_series": _series,
    "to_number": lambda sizes: sizes[0],
    "left": _cut,
    "right": _cut,
    "substr": _substring,
    "substring": _substring,
}


def _series_rows(sizes: Sequence[Size]) -> float:
    """How many rows `generate_series` gives."""
    if len(sizes) < 2:
        return 1
    step = sizes[2] if len(sizes) > 2 else _number(1)
    is_of_dates = len(sizes) > 2 and (step.constant is None or sizes[0].text is not None)
    if is_of_dates:
        return _days(sizes[0], sizes[1]) * _DAY_S / _seconds(step)
    first, last = sizes[0].constant, sizes[1].constant
    is_known = first is not None and last is not None
    distance = abs((last or 0) - (first or 0)) if is_known else sizes[0].number + sizes[1].number
    by = abs(step.constant) if step.constant is not None and step.constant else 1.0 if step.is_stored else 1e-9
    return distance / by + 1


def _days(first: Size, last: Size) -> float:
    dates = [_DATE.match(size.text) for size in (first, last) if size.text is not None]
    known = [int(date[1]) * 366 + int(date[2]) * 31 + int(date[3]) for date in dates if date]
    return abs(known[1] - known[0]) + 1 if len(known) == 2 else _UNKNOWN_SPAN_DAYS


def _seconds(step: Size) -> float:
    match = _STEP.match(step.text or "")
    if match is None:
        return _DAY_S
    return max(1e-6, float(match[1]) * _SECONDS.get(match[2].lower(), _DAY_S))


_HANDLERS: dict[str, Callable[[_Bounds, Any, _Place], Size]] = {
    "ColumnRef": _Bounds.column,
    "ParamRef": lambda *_: _STORED,
    "A_Const": _Bounds.constant,
    "TypeCast": _Bounds.cast,
    "A_Expr": _Bounds.operation,
    "BoolExpr": _Bounds.truth,
    "NullTest": _Bounds.truth,
    "BooleanTest": _Bounds.truth,
    "SubLink": _Bounds.subquery,
    "CaseExpr": _Bounds.case,
    "CoalesceExpr": _Bounds.coalesce,
    "MinMaxExpr": _Bounds.extreme,
    "A_ArrayExpr": _Bounds.array,
    "A_Indirection": _Bounds.element,
    "FuncCall": _Bounds.call,
    "SelectStmt": _Bounds.select,
}


def _handler(kind: str) -> Callable[[_Bounds, Any, _Place], Size] | None:
    return _Bounds.document if kind.startswith(("Json", "Xml")) else _HANDLERS.get(kind)


def _too_long(name: str) -> ForbiddenObject:
    name = name or "||"
    zh = f"{name} 会生成过长的值或过长时间的计算，且无法中途停止。请使用更小的常量，例如 least(n, 1000)。"
    en = f"{name} would build too much, or work on it for too long, and nothing could stop it: use smaller constants,"
    return ForbiddenObject(name, Text(zh, f"{en} least(n, 1000) for example."))
