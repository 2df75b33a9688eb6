"""Refuses statements that build texts or arrays so long that PostgreSQL would work on them without end.

Some of PostgreSQL's functions obey neither timeouts nor cancellation: searching a text of a million characters for one
of half a million takes minutes, even while the planner folds constants. How much there is to search depends on the
constants of the statement: `repeat('a', 1000000)`, `lpad`, `array_fill`, an aggregate over `generate_series`; the
amount may also be computed, cast, or come out of a subquery.

    sizes             bounds for values
    operator_sizes    what operators make of them
    function_sizes    what functions make of them, and the steps that it takes
    row_sizes         what queries and tables in FROM give
    expression_sizes  the walk over expressions
    lengths           the walk over queries, and the verdict
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from common.errors import ForbiddenObject, ValidationFailed
from databases.guard import refusal_texts as texts
from databases.guard.expression_sizes import PADDED_TYPES, Expressions
from databases.guard.facts import words
from databases.guard.function_sizes import series_rows
from databases.guard.parsing import TOO_DEEP, Node
from databases.guard.refusal_texts import refused
from databases.guard.row_sizes import (
    AGGREGATES,
    Everything,
    Place,
    Rows,
    aggregates,
    last_field,
    name_of,
    outgrown,
    renamed,
    union,
)
from databases.guard.sizes import EMPTY, STORED, Size, TooLong, inexact, one_of
from databases.guard.walk import Findings, strings

# Nodes looked at: so many, and more for each character. Recursive queries in recursive queries would take for ever.
_MAX_VISITS, _MAX_VISITS_PER_CHAR = 2_000, 6
_ROUNDS = 4  # of a recursive query, which show how its values grow
_GROWTH = words(
    "repeat lpad rpad array_fill replace array_replace regexp_replace format array_to_string polygon overlay text "
    "varchar bpchar bit concat concat_ws array_cat array_append array_prepend textcat convert_to encode quote_literal "
    "quote_nullable to_json to_jsonb row_to_json json_build_array json_build_object jsonb_build_array "
    "jsonb_build_object"
)
_GROWING_OPERATORS = frozenset((("||",), ("@>",), ("<@",), ("&&",)))
_LONG_TEXT = 20_000


def may_grow(found: Findings, text_length: int) -> bool:
    """Whether a query may build something longer than itself. For the others, `refusal` need not be called.

    Args:
        text_length: characters of the statement.
    """
    if text_length > _LONG_TEXT or not _GROWING_OPERATORS.isdisjoint(found.operators):
        return True
    names = {call.name for call in found.calls}
    if "generate_series" in names and len(names) > 1:
        return True
    if not _GROWTH.isdisjoint(names) or any(map(AGGREGATES.fullmatch, names)):
        return True
    return any(name[-1] in PADDED_TYPES for name in found.types)


def refusal(select: Node, text_length: int) -> ForbiddenObject | None:
    """The refusal of a query that builds too much, or None.

    Args:
        text_length: characters of the statement.

    Raises:
        ValidationFailed: it is nested too deeply.
    """
    try:
        Bounds(_MAX_VISITS + _MAX_VISITS_PER_CHAR * text_length).query(select, Place())
    except TooLong as exc:
        return refused(str(exc) or "||", texts.TOO_LONG)
    except RecursionError as exc:
        raise ValidationFailed(TOO_DEEP) from exc
    return None


class Bounds(Expressions):
    """One walk over a query: its parts, what it reads from, and all expressions in it."""

    def query(self, select: Node, outer: Place) -> Rows:
        """What the query gives; looks at every expression in it."""
        place = Place(outer)
        self._ctes(select.get("withClause"), place)
        if "larg" in select:
            found = self._set_operation(select, place)
        elif "valuesLists" in select:
            lists = [self.each(row["List"].get("items", ()), place) for row in select["valuesLists"]]
            columns = {f"column{n}": one_of(column) for n, column in enumerate(zip(*lists, strict=False), 1)}
            found = Rows(columns, len(lists))
        else:
            found = self._plain(select, place)
        self._rest(select, place)
        limit = self.value(select["limitCount"], place) if "limitCount" in select else None
        rows = min(found.rows, limit.number) if limit and limit.constant is not None else found.rows
        return Rows(found.columns, rows)

    def _plain(self, select: Node, place: Place) -> Rows:
        for item in select.get("fromClause", ()):
            place.sources.extend(self._source(item, place))
        place.rows = math.prod(max(1.0, rows.rows) for _, rows in place.sources)
        columns: dict[str, Size] = {}
        for number, target in enumerate(select.get("targetList", ())):
            self._target(target["ResTarget"], number, columns, place)
        is_grouped = "groupClause" in select
        return Rows(columns, 1 if not is_grouped and aggregates(select) else place.rows * place.series)

    def _target(self, target: Node, number: int, columns: dict[str, Size], place: Place) -> None:
        value = target.get("val", {})
        if last_field(value) == "*":
            for _, source in place.sources:
                for name, size in (source.columns or {}).items():
                    columns[name] = one_of([columns.get(name, size), size])
            return
        columns[target.get("name") or name_of(value) or f"?{number}"] = self.value(value, place)

    def _rest(self, select: Node, place: Place) -> None:
        """Looks at the clauses that change neither the values nor the number of rows."""
        for clause in ("whereClause", "groupClause", "havingClause", "windowClause", "sortClause", "distinctClause"):
            self.anything(select.get(clause), place)
        self.anything(select.get("limitOffset"), place)

    def _set_operation(self, select: Node, place: Place) -> Rows:
        """What a set operation gives. A long chain makes a deep tree, so it is followed in a loop."""
        parts = []
        while "larg" in select:
            parts.append(self.query(select["rarg"], place))
            select = select["larg"]
            if "larg" in select and (set(select) & {"withClause", "limitCount", "sortClause"}):
                break
        parts.append(self.query(select, place))
        return union(parts[::-1])

    def _ctes(self, clause: Node | None, place: Place) -> None:
        for item in (clause or {}).get("ctes", ()):
            cte = item["CommonTableExpr"]
            place.pending.setdefault(cte["ctename"], (cte, bool((clause or {}).get("recursive"))))
        for item in (clause or {}).get("ctes", ()):
            self._cte(item["CommonTableExpr"]["ctename"], place)

    def _cte(self, name: str, place: Place) -> Rows | None:
        """What the CTE gives, looked at when it is first used: under RECURSIVE, earlier ones may use later ones."""
        if name in place.pending:
            cte, may_recur = place.pending.pop(name)
            query = cte["ctequery"].get("SelectStmt", {})
            names = strings(cte.get("aliascolnames", ()))
            is_recursive = may_recur and "larg" in query
            found = self._recursive(name, query, names, place) if is_recursive else self.query(query, place)
            place.ctes[name] = renamed(found, names)
        return place.ctes.get(name)

    def _recursive(self, name: str, query: Node, names: Sequence[str], place: Place) -> Rows:
        """What a recursive query gives: its first rows, and what some rounds make of them.

        A value that grows by the same amount in each round keeps its bound; one that grows faster has none.
        """
        place = Place(place)
        self._ctes(query.get("withClause"), place)
        history = [renamed(self.query(query["larg"], place), names)]
        for _ in range(_ROUNDS):
            inner = Place(place, ctes={name: history[-1]})
            history.append(union([history[0], self.query(query["rarg"], inner)]))
        columns = dict.fromkeys(history[-1].columns or {})
        sizes = {column: [(rows.columns or {}).get(column, EMPTY) for rows in history] for column in columns}
        return Rows({column: outgrown(found) for column, found in sizes.items()})

    def _source(self, item: Node, place: Place) -> list[tuple[str, Rows]]:
        ((kind, node),) = item.items()
        names = strings(node.get("alias", {}).get("colnames", ()))
        alias = node.get("alias", {}).get("aliasname", "")
        if kind == "RangeVar":
            return [(alias or node["relname"], renamed(self._table(node, place), names))]
        if kind == "RangeSubselect":
            return [(alias, renamed(self.query(node["subquery"]["SelectStmt"], place), names))]
        if kind == "JoinExpr":
            return self._join(node, alias, place)
        if kind == "RangeTableSample":
            return self._source(node["relation"], place)
        if kind == "RangeFunction":
            return [self._function_rows(node, alias, place)]
        if kind == "RangeTableFunc":
            self.parsed("xmltable", self.value(node["docexpr"], place))
        read = self.anything(node, place)
        return [(alias, Rows(Everything(inexact(read))))]

    def _table(self, node: Node, place: Place) -> Rows:
        if "schemaname" not in node:
            for around in place.outward():
                found = self._cte(node["relname"], around)
                if found is not None:
                    return found
        return Rows(None)

    def _join(self, node: Node, alias: str, place: Place) -> list[tuple[str, Rows]]:
        """The sources of a join. A long chain makes a deep tree, so it is followed in a loop."""
        found: list[tuple[str, Rows]] = []
        conditions = []
        while True:
            right = self._source(node["rarg"], Place(place, sources=found))
            found += right
            conditions.append(node.get("quals"))
            ((kind, left),) = node["larg"].items()
            if kind != "JoinExpr" or "alias" in left:
                found += self._source(node["larg"], place)
                break
            node = left
        for condition in conditions:
            self.anything(condition, Place(place, sources=found))
        if not alias:
            return found
        columns = [size for _, rows in found for size in (rows.columns or {"": STORED}).values()]
        return [(alias, Rows(Everything(one_of(columns)), math.prod(max(1.0, rows.rows) for _, rows in found)))]

    def _function_rows(self, node: Node, alias: str, place: Place) -> tuple[str, Rows]:
        around = Place(place, sources=place.sources)
        sizes, rows, called = [], 1.0, ""
        for item in node.get("functions", ()):
            call = item["List"]["items"][0]
            sizes.append(self.value(call, around))
            rows = max(rows, self._row_count(call, around))
            called = called or name_of(call)
        size = one_of(sizes)
        if node.get("ordinality"):
            size = replace(size, number=max(size.number, rows))
        return (alias or called, Rows(Everything(inexact(size)), rows))

    def _row_count(self, call: Node, place: Place) -> float:
        node = call.get("FuncCall", {})
        arguments = node.get("args", ())
        name = name_of(call)
        if name == "generate_series":
            return series_rows(self.each(arguments, place))
        if name == "unnest" and arguments and "A_ArrayExpr" in arguments[0]:
            return len(arguments[0]["A_ArrayExpr"].get("elements", ()))
        given = self.each(arguments, place)
        return 1 if any(size.is_stored for size in given) else max((size.length for size in given), default=1)
