"""Refuses statements that build texts or arrays so long, or compare so many, that PostgreSQL would
work on them without end.

Some of PostgreSQL's functions obey neither timeouts nor cancellation: searching a text of a million
characters for one of half a million takes minutes, even while the planner folds constants. So a
value is small only where the text proves it: constants, casts to small types, and functions that
are known to give little. Calls with long values are refused unless they are known to be quick.

    sizes             bounds for values, and what operators make of them
    builtin_costs     what built-ins take that nothing interrupts; `builtin_costs.toml` lists them
    function_sizes    what functions give
    document_paths    what XPaths and JSON paths take
    row_sizes         what queries and tables in FROM give
    expression_sizes  the walk over expressions
    lengths           the walk over queries, and the verdict
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from common.errors import ForbiddenObject, ValidationFailed
from common.word_files import words
from guard import refusal_texts as texts
from guard.document_paths import JSON_PATH_FUNCTIONS
from guard.expression_sizes import PADDED_TYPES, Expressions
from guard.function_sizes import series_rows
from guard.refusal_texts import refusal_of_object
from guard.row_sizes import (
    Place,
    Rows,
    UnknownColumns,
    aggregates,
    is_gathering,
    last_field,
    name_of,
    renamed,
    union,
)
from guard.scopes import with_queries
from guard.sizes import (
    EMPTY,
    LONG_CHARS,
    STORED,
    Size,
    TooLong,
    inexact,
    one_of,
    outgrown,
    unnumbered,
)
from guard.walk import Findings, last_names, strings
from sqltree.parsing import TOO_DEEP, Node

# Nodes looked at: so many, and more for each character. Recursive queries in recursive queries
# would take for ever.
_MAX_VISITS, _MAX_VISITS_PER_CHAR = 2_000, 6
_ROUNDS = 4  # of a recursive query, which show how its values grow
# Without one of these, values are as short as the statement.
_GROWTH = (
    words(
        "repeat lpad rpad array_fill replace array_replace regexp_replace format array_to_string "
        "polygon overlay text varchar bpchar bit concat concat_ws array_cat array_append "
        "array_prepend textcat convert_to encode quote_literal quote_nullable to_json to_jsonb "
        "row_to_json json_build_array json_build_object jsonb_build_array jsonb_build_object "
        "factorial power pow dpow numeric_power exp dexp numeric_exp round trunc xpath xmltable"
    )
    | JSON_PATH_FUNCTIONS
)
_GROWING_OPERATORS = words("|| ^ @> <@ && @? @@ * #-")
_OF_ONE_COLUMN = words(
    "generate_series generate_subscripts regexp_split_to_table string_to_table"
)  # in FROM
# Clauses with which a set operation within another is a query of its own.
_APART = frozenset(("withClause", "limitCount", "sortClause"))
_OTHER_CLAUSES = (
    *("whereClause", "groupClause", "havingClause", "windowClause"),
    *("sortClause", "distinctClause", "limitOffset"),
)
_UNSORTABLE = words("xid cid xmin xmax cmin cmax")
_HUGE_NUMBER = re.compile(r"\d[eE]\+?[\d_]{3}|\\")  # or a text that may spell one


@dataclass(frozen=True)
class Growth:
    """Tells what a query builds.

    Attributes:
        gathered_copies: how many copies of what it gathers from rows are in memory at once; 0 if it
            gathers nothing.
        amounts: where in the text, in bytes, the calls are whose amount PostgreSQL has to prove.
    """

    gathered_copies: float = 0.0
    amounts: frozenset[int] = frozenset()

    @property
    def is_proven_later(self) -> bool:
        """Tell whether PostgreSQL has to prove something while the statement runs."""
        return bool(self.amounts or self.gathered_copies)


NO_GROWTH = Growth()


def may_grow(findings: Findings, text: str) -> bool:
    """Tell whether a query may build something longer than itself, or evaluate a path.

    For the others, `growth_of` need not be called.
    """
    if len(text) > LONG_CHARS:
        return True

    has_growing_syntax = findings.gathers_rows or findings.has_json_syntax
    if has_growing_syntax:
        return True
    if _GROWING_OPERATORS & findings.symbols:
        return True
    if PADDED_TYPES & last_names(findings.types):
        return True
    if _calls_grow(findings):
        return True

    return _HUGE_NUMBER.search(text) is not None


def _calls_grow(findings: Findings) -> bool:
    """Tell whether a function that is called may give something long."""
    names = findings.called
    if not names:
        return False

    is_growing = not _GROWTH.isdisjoint(names)
    uses_series = "generate_series" in names and len(names) > 1
    if is_growing or uses_series:
        return True

    return any(map(is_gathering, names))


def growth_of(
    select: Node, text: str, findings: Findings, builtins: Collection[str] = ()
) -> Growth:
    """Return what the query builds.

    Args:
        text: the text of the statement.
        findings: what the guard found in it.
        builtins: names of the built-in functions; others may do what they like.

    Raises:
        ForbiddenObject: it builds too much, or works on it for too long.
        ValidationFailed: it is nested too deeply.
    """
    visits = _MAX_VISITS + _MAX_VISITS_PER_CHAR * len(text)
    bounds = Bounds(visits, builtins)
    refusal = bounds.refusal(select)
    if refusal is not None and bounds.has_counts:
        # PostgreSQL proves stored counts, which makes it refuse large ones.
        bounds = Bounds(visits, builtins, proves_counts=True)
        refusal = bounds.refusal(select)

    if refusal is not None:
        raise refusal
    if bounds.gathered_copies:
        _refuse_unsortable(findings)

    amounts = frozenset(bounds.amounts)
    return Growth(bounds.gathered_copies, amounts)


def _refuse_unsortable(findings: Findings) -> None:
    """Refuse types by which PostgreSQL can't sort groups, so that it would gather all at once."""
    names = last_names([*findings.types, *findings.columns])
    unsortable = _UNSORTABLE & (names | findings.called)
    if unsortable:
        raise refusal_of_object(min(unsortable), texts.TOO_LONG)


class Bounds(Expressions):
    """One walk over a query: its parts, what it reads from, and all expressions in it."""

    def refusal(self, select: Node) -> ForbiddenObject | None:
        """Return why the statement may not be run, after a look at all of it; None: it may.

        Raises:
            ValidationFailed: it is nested too deeply.
        """
        try:
            self.query(select, Place())
        except TooLong as error:
            name = str(error) or "||"
            return refusal_of_object(name, texts.TOO_LONG)
        except RecursionError as error:
            raise ValidationFailed(TOO_DEEP) from error

        return None

    def query(self, select: Node, outer: Place) -> Rows:
        """Return what the query gives; look at every expression in it."""
        place = Place(outer)
        self._ctes(select.get("withClause"), place)
        if "larg" in select:
            rows = self._set_operation(select, place)
        elif "valuesLists" in select:
            rows = self._values(select, place)
        else:
            rows = self._plain(select, place)

        self._rest(select, place)
        return self._limited(rows, select, place)

    def _values(self, select: Node, place: Place) -> Rows:
        lists = []
        for row in select["valuesLists"]:
            items = row["List"].get("items", ())
            sizes = self.each(items, place)
            lists.append(sizes)

        columns = {}
        for number, column in enumerate(zip(*lists, strict=False), 1):
            columns[f"column{number}"] = one_of(column)

        return Rows(columns, len(lists))

    def _limited(self, unlimited: Rows, select: Node, place: Place) -> Rows:
        """Return the rows that the query's LIMIT leaves."""
        if "limitCount" not in select:
            return unlimited

        most = self.value(select["limitCount"], place).constant
        if most is None:
            return unlimited

        rows = min(unlimited.rows, most)
        is_cut = unlimited.is_open and most <= LONG_CHARS
        if is_cut:
            return Rows(unlimited.columns, max(rows, most))

        return Rows(unlimited.columns, rows, unlimited.is_open)

    def _plain(self, select: Node, place: Place) -> Rows:
        for item in select.get("fromClause", ()):
            place.sources += self._source(item, place)

        counts = [max(1.0, rows.rows) for _, rows in place.sources]
        place.rows = math.prod(counts)
        columns: dict[str, Size] = {}
        for number, item in enumerate(select.get("targetList", ())):
            target = item["ResTarget"]
            self._target(target, number, columns, place)

        is_one_row = "groupClause" not in select and aggregates(select)
        if is_one_row:
            return Rows(columns)

        rows = Rows(columns, place.rows, place.reads_tables)
        return _multiplied(rows, place.series)

    def _target(self, target: Node, number: int, columns: dict[str, Size], place: Place) -> None:
        """Add to `columns` what an item of the SELECT's list gives."""
        value = target.get("val", {})
        if last_field(value) != "*":
            name = target.get("name") or name_of(value) or f"?{number}"
            columns[name] = self.value(value, place)
            return

        for _, source in place.sources:
            known_columns = source.columns or {}
            for name, size in known_columns.items():
                before = columns.get(name, size)
                columns[name] = one_of([before, size])

    def _rest(self, select: Node, place: Place) -> None:
        """Look at the clauses that change neither the values nor the number of rows."""
        for clause in _OTHER_CLAUSES:
            part = select.get(clause)
            self.anything(part, place)

    def _set_operation(self, select: Node, place: Place) -> Rows:
        """Return what a set operation gives.

        A long chain makes a deep tree, so it is followed in a loop.
        """
        parts = []
        while "larg" in select:
            parts.append(self.query(select["rarg"], place))
            select = select["larg"]
            is_chained = "larg" in select
            is_apart = is_chained and not _APART.isdisjoint(select)
            if is_apart:
                break

        parts.append(self.query(select, place))
        return union(parts[::-1])

    def _ctes(self, clause: Node | None, place: Place) -> None:
        """Look at the CTEs of a WITH."""
        if clause is None:
            return

        ctes = with_queries(clause)
        may_recur = bool(clause.get("recursive"))
        for cte in ctes:
            place.pending.setdefault(cte["ctename"], (cte, may_recur))

        for cte in ctes:
            self._cte(cte["ctename"], place)

    def _cte(self, name: str, place: Place) -> Rows | None:
        """Return what the CTE gives, which is looked at when it is first used.

        Under RECURSIVE, earlier ones may use later ones.
        """
        if name not in place.pending:
            return place.ctes.get(name)

        cte, may_recur = place.pending.pop(name)
        query = cte["ctequery"].get("SelectStmt", {})
        names = strings(cte.get("aliascolnames", ()))
        is_recursive = may_recur and "larg" in query
        if is_recursive:
            rows = self._recursive(name, query, names, place)
        else:
            rows = self.query(query, place)

        place.ctes[name] = renamed(rows, names)
        return place.ctes[name]

    def _recursive(self, name: str, query: Node, names: Sequence[str], place: Place) -> Rows:
        """Return what a recursive query gives: its first rows, and what rounds make of them.

        A value that grows by the same amount in each round keeps its bound; one that grows faster
        has none.
        """
        place = Place(place)
        self._ctes(query.get("withClause"), place)
        first = renamed(self.query(query["larg"], place), names)
        history = [first]
        for _ in range(_ROUNDS):
            inner = Place(place, ctes={name: history[-1]})
            added = self.query(query["rarg"], inner)
            history.append(union([first, added]))

        columns_by_level = [rows.columns or {} for rows in history]
        grown = {}
        for column in columns_by_level[-1]:
            sizes = [columns.get(column, EMPTY) for columns in columns_by_level]
            grown[column] = outgrown(sizes)

        return Rows(grown, is_open=True)

    def _source(self, item: Node, place: Place) -> list[tuple[str, Rows]]:
        """Return what an item of a FROM gives, with the names it goes by."""
        ((kind, node),) = item.items()
        names = strings(node.get("alias", {}).get("colnames", ()))
        alias = node.get("alias", {}).get("aliasname", "")
        if kind == "RangeVar":
            return [(alias or node["relname"], renamed(self._table(node, place), names))]
        if kind == "RangeSubselect":
            rows = self.query(node["subquery"]["SelectStmt"], place)
            return [(alias, renamed(rows, names))]

        if kind == "JoinExpr":
            return self._join(node, alias, place)
        if kind == "RangeTableSample":
            self.anything([node.get("args"), node.get("repeatable")], place)
            return self._source(node["relation"], place)

        if kind == "RangeFunction":
            called, rows = self._function_rows(node, alias, place)
            return [(called, renamed(rows, names))]

        size = self._document_rows(kind, node, place)
        return [(alias, Rows(UnknownColumns(size), is_open=True))]

    def _document_rows(self, kind: str, node: Node, place: Place) -> Size:
        """Return the bound of what JSON_TABLE, XMLTABLE and the like read from a document."""
        if kind == "JsonTable":
            return self.json_syntax(node, place)

        is_xml = kind == "RangeTableFunc"
        if is_xml:
            self.documents("xmltable", [node["docexpr"]], place)

        read = self.anything(node, place)
        is_computed = is_xml and not read.is_stored
        if is_computed:
            return unnumbered(read)

        return inexact(read)

    def _table(self, node: Node, place: Place) -> Rows:
        stored = Rows(None, is_open=True)
        if "schemaname" in node:
            return stored

        for around in place.outward():
            rows = self._cte(node["relname"], around)
            if rows is not None:
                return rows

        return stored

    def _join(self, node: Node, alias: str, place: Place) -> list[tuple[str, Rows]]:
        """Return the sources of a join.

        A long chain makes a deep tree, so it is followed in a loop.
        """
        sources: list[tuple[str, Rows]] = []
        conditions = []
        while True:
            right = self._source(node["rarg"], Place(place, sources=sources))
            sources += right
            conditions.append(node.get("quals"))
            ((kind, left),) = node["larg"].items()
            is_chained = kind == "JoinExpr" and "alias" not in left
            if not is_chained:
                sources += self._source(node["larg"], place)
                break

            node = left

        for condition in conditions:
            self.anything(condition, Place(place, sources=sources))

        if alias:
            return [(alias, _all_of(sources))]

        return sources

    def _function_rows(self, node: Node, alias: str, place: Place) -> tuple[str, Rows]:
        """Return what functions in FROM give, and the name they go by."""
        around = Place(place, sources=place.sources)
        calls = [item["List"]["items"][0] for item in node.get("functions", ())]
        sizes = []
        counts = []
        for call in calls:
            sizes.append(self.value(call, around))
            counts.append(self._row_count(call, around))

        longest = max((counted.rows for counted in counts), default=1.0)
        is_open = any(counted.is_open for counted in counts)
        rows = Rows({}, max(longest, 1.0), is_open)
        size = one_of(sizes)
        if node.get("ordinality"):
            size = one_of([size, _ordinal(rows)])

        called = next(filter(None, map(name_of, calls)), "")
        columns: dict[str, Size] = UnknownColumns(inexact(size))
        is_one_column = called in _OF_ONE_COLUMN and len(calls) == 1
        if is_one_column:
            columns = {alias or called: inexact(size), "ordinality": _ordinal(rows)}

        return (alias or called, replace(rows, columns=columns))

    def _row_count(self, call: Node, place: Place) -> Rows:
        """Return how many rows a function gives in FROM."""
        arguments = call.get("FuncCall", {}).get("args", [])
        name = name_of(call)
        given = self.each(arguments, place)
        is_stored = any(size.is_stored for size in given)
        if name == "generate_series":
            times = series_rows(given)
            return _multiplied(Rows({}, is_open=is_stored), times)

        first: Node = next(iter(arguments), {})
        is_of_array = name == "unnest" and "A_ArrayExpr" in first
        if is_of_array:
            elements = first["A_ArrayExpr"].get("elements", ())
            return Rows({}, len(elements))

        if is_stored:
            return Rows({}, 1.0, is_open=True)

        lengths = [size.length for size in given]
        longest = max(lengths, default=1.0)
        return Rows({}, longest)


def _multiplied(rows: Rows, times: float) -> Rows:
    """Return rows of which there are `times` as many; endless ones count as one that is open."""
    if math.isinf(times):
        return replace(rows, is_open=True)

    return replace(rows, rows=rows.rows * times)


def _ordinal(rows: Rows) -> Size:
    """Return the bound of a row's number among the rows."""
    most = rows.rows
    if rows.is_open:
        most = math.inf

    return Size(0, most, is_stored=rows.is_open)


def _all_of(sources: list[tuple[str, Rows]]) -> Rows:
    """Return what a join with an alias gives."""
    sizes: list[Size] = []
    count = 1.0
    is_open = False
    for _, rows in sources:
        columns = rows.columns or {"": STORED}
        sizes += columns.values()
        count *= max(1.0, rows.rows)
        is_open |= rows.is_open

    return Rows(UnknownColumns(one_of(sizes)), count, is_open)
