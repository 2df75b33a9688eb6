"""Count how many relations PostgreSQL plans together: each may be joined to every other.

A view, a subquery in FROM, a CTE that is read once, and the subquery of an IN or EXISTS become part
of the query around them. The time and the memory of planning grow with the square of the relations
and faster; 80 take half a gigabyte, before any limit on a statement's work holds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from common.errors import StatementRejected, ValidationFailed
from common.text import Text
from guard.facts import Key, ServerFacts
from guard.scopes import NOWHERE, Scope
from guard.walk import Findings, Relation, joined_items, relation_of, walk
from sqltree.parsing import Node, parse

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


class JoinRule:
    """Judges how many relations a statement has PostgreSQL plan together.

    Args:
        facts: tell what views join.
    """

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._views: dict[Key, int] = {}

    def refuse_many(self, found: Findings) -> None:
        """Return when PostgreSQL plans at most `MAX_JOINED` relations together.

        Raises:
            ValidationFailed: there are more.
        """
        if self._are_surely_few(found):
            return
        count = _Count(found, self._width_of)
        for select, _ in found.selects:
            if count.of(select) > MAX_JOINED:
                raise ValidationFailed(_TOO_MANY_JOINED)

    def _are_surely_few(self, found: Findings) -> bool:
        """Tell whether the statement has few relations, and each stands for one alone."""
        if len(found.selects) > MAX_JOINED:
            return False
        if found.cte_names:
            return False
        has_view = self._facts.view_definitions and any(map(self._is_view, found.relations))
        if has_view:
            return False
        widths = [len(joined_items(select)) for select, _ in found.selects]
        return sum(widths) <= MAX_JOINED

    def _is_view(self, relation: Relation) -> bool:
        return self._key_of(relation) in self._facts.view_definitions

    def _key_of(self, relation: Relation) -> Key:
        return self._facts.key(relation.schema, relation.name)

    def _width_of(self, relation: Relation) -> int:
        """Return how many relations stand in the relation's place.

        A wide view may be read, but not joined: its owner wrote it, not who asks.
        """
        key = self._key_of(relation)
        if key not in self._views:
            self._views[key] = 1  # until it is known: a view may lead back to itself
            self._views[key] = min(self._width_of_view(key), MAX_JOINED)
        return self._views[key]

    def _width_of_view(self, key: Key) -> int:
        definition = self._facts.view_definitions.get(key)
        if definition is None:
            return 1
        if key in self._facts.materialized_views:
            return 1
        try:
            (statement,) = parse(definition)
            found = walk(statement.kind, statement.node)
        except (StatementRejected, ValueError, RecursionError):
            return 1  # it can't be followed
        return _Count(found, self._width_of).of_query(statement.node)


class _Count:
    """Counts what is planned together with each SELECT of a statement.

    Args:
        width_of: counts the relations that stand in the place of a named one.
    """

    def __init__(self, found: Findings, width_of: Callable[[Relation], int]) -> None:
        self._width_of = width_of
        self._scopes = {id(select): scope for select, scope in found.selects}
        self._counts: dict[int, int] = {}
        self._readers: Counter[int] = Counter()
        for select, scope in found.selects:
            for item in joined_items(select):
                cte = _cte_of(item, scope)
                if cte is not None:
                    self._readers[id(cte)] += 1

    def of(self, select: Node) -> int:
        """Return how many relations are planned together with the SELECT's own."""
        key = id(select)
        if key not in self._counts:
            self._counts[key] = 1  # until it is known: a recursive query reads itself
            self._counts[key] = self._sum(select)
        return self._counts[key]

    def of_query(self, query: Node | None) -> int:
        """Return how many relations stand in the place of a query."""
        if query is None:
            return 1
        is_union = query["op"] != "SETOP_NONE"
        is_own_plan = is_union or not _OWN_PLAN.isdisjoint(query)
        if is_own_plan:
            return 1
        return self.of(query)

    def _sum(self, select: Node) -> int:
        scope = self._scopes.get(id(select), NOWHERE)
        items = [self._of_item(item, scope) for item in joined_items(select)]
        subqueries = [self.of_query(query) for query in _joined_subqueries(select)]
        return sum(items) + sum(subqueries)

    def _of_item(self, item: Node, scope: Scope) -> int:
        if "RangeSubselect" in item:
            return self.of_query(item["RangeSubselect"].get("subquery", {}).get("SelectStmt"))
        if "RangeVar" not in item:
            return 1
        cte = _cte_of(item, scope)
        if cte is not None:
            if self._is_inlined(cte):
                return self.of_query(cte["ctequery"].get("SelectStmt"))
            return 1
        relation = relation_of(item["RangeVar"], scope)
        if relation is None:
            return 1
        return self._width_of(relation)

    def _is_inlined(self, cte: Node) -> bool:
        """Tell whether PostgreSQL puts the CTE's query where the CTE is read."""
        wanted = cte.get("ctematerialized", "CTEMaterializeDefault")
        if wanted == "CTEMaterializeDefault":
            return self._readers[id(cte)] == 1
        return bool(wanted == "CTEMaterializeNever")


def _cte_of(item: Node, scope: Scope) -> Node | None:
    """Return the CTE that an item of a FROM reads; None for anything else."""
    table = item.get("RangeVar")
    if table is None:
        return None
    if "schemaname" in table:
        return None
    found = scope.find(table["relname"])
    if found is not None:
        return found[0]
    return None


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
