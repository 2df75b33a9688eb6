"""How many relations PostgreSQL plans together: every one of them may be joined to every other.

A subquery in FROM, a CTE that is read once, and the subquery of an IN or EXISTS become part of the
query around them. The time and the memory of planning grow with the square of the relations and
faster; 80 take half a gigabyte, before any limit on a statement's work holds.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from common.errors import ValidationFailed
from common.text import Text
from guard.scopes import Scope
from guard.walk import Findings
from sqltree.parsing import Node

MAX_JOINED = 30
"""Relations planned together: about 100 MB and a second on PostgreSQL 15, less on 18."""

_TOO_MANY_JOINED = Text(
    f"一起连接的表、子查询和函数过多（上限{MAX_JOINED}个），请拆成几次查询。",
    f"Too many tables, subqueries and functions are joined together (at most {MAX_JOINED}); "
    "ask in several queries.",
)
_OWN_PLAN = frozenset(
    ("groupClause", "havingClause", "distinctClause", "sortClause", "limitCount", "limitOffset")
    + ("withClause", "valuesLists")
)
"""Clauses with which a subquery is planned by itself."""
_JOINED_SUBLINKS = frozenset(("ANY_SUBLINK", "EXISTS_SUBLINK"))


def refuse_many(found: Findings) -> None:
    """Return when PostgreSQL plans at most `MAX_JOINED` relations together.

    Raises:
        ValidationFailed: there are more.
    """
    selects = [select for select, _ in found.selects]
    if sum(map(_width, selects)) <= MAX_JOINED:
        return
    count = _Count(found)
    for select in selects:
        if id(select) in count.entered:
            continue
        if count.of(select) > MAX_JOINED:
            raise ValidationFailed(_TOO_MANY_JOINED)


def _width(select: Node) -> int:
    return sum(1 for _ in _joined(select))


def _joined(select: Node) -> Iterator[Node]:
    """Return the relations, functions and subqueries that the SELECT itself joins."""
    pending = list(select.get("fromClause", ()))
    while pending:
        item = pending.pop()
        join = item.get("JoinExpr")
        if join is None:
            yield item
        else:
            pending += [join["larg"], join["rarg"]]


class _Count:
    """Counts what is planned together with a SELECT; no SELECT is entered twice."""

    def __init__(self, found: Findings) -> None:
        self.entered: set[int] = set()
        self._scopes = {id(select): scope for select, scope in found.selects}
        self._readers = Counter(
            item["RangeVar"]["relname"]
            for select, _ in found.selects
            for item in _joined(select)
            if "RangeVar" in item
        )

    def of(self, select: Node) -> int:
        total = 0
        pending = [select]
        while pending:
            one = pending.pop()
            if id(one) in self.entered:
                continue
            self.entered.add(id(one))
            scope = self._scopes.get(id(one))
            inner = [self._query(item, scope) for item in _joined(one)]
            total += inner.count(None)  # what stands for another query counts with that one
            pending += [query for query in inner if query is not None]
            pending += _joined_subqueries(one)
        return total

    def _query(self, item: Node, scope: Scope | None) -> Node | None:
        """Return the query that PostgreSQL puts in the item's place, if any."""
        if "RangeSubselect" in item:
            return _pulled_up(item["RangeSubselect"].get("subquery", {}).get("SelectStmt"))
        if "RangeVar" not in item or scope is None:
            return None
        table = item["RangeVar"]
        is_read_once = self._readers[table["relname"]] == 1
        if "schemaname" in table or not is_read_once:
            return None
        found = scope.find(table["relname"])
        if found is None:
            return None
        return _pulled_up(found[0]["ctequery"].get("SelectStmt"))


def _pulled_up(query: Node | None) -> Node | None:
    """Return the query if it becomes part of the one around; None: it is planned by itself."""
    if query is None or query["op"] != "SETOP_NONE":
        return None
    return query if _OWN_PLAN.isdisjoint(query) else None


def _joined_subqueries(select: Node) -> Iterator[Node]:
    """Yield the subqueries of IN and EXISTS in the SELECT's conditions."""
    pending: list[Any] = [select.get("whereClause"), select.get("fromClause")]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        if not isinstance(node, dict):
            continue
        link = node.get("SubLink", {})
        if link.get("subLinkType") in _JOINED_SUBLINKS:
            yield link["subselect"]["SelectStmt"]
        for key, part in node.items():
            if key not in _QUERIES:
                pending.append(part)


_QUERIES = frozenset(("SubLink", "SelectStmt"))
