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
from guard.walk import Findings, Relation, cte_of, joined_items, relation_of, walk
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

    def refuse_many(self, findings: Findings) -> None:
        """Return when PostgreSQL plans at most `MAX_JOINED` relations together.

        Raises:
            ValidationFailed: there are more.
        """
        if self._are_surely_few(findings):
            return

        count = _Count(findings, self._width_of)
        for select, _ in findings.selects:
            if count.of(select) > MAX_JOINED:
                raise ValidationFailed(_TOO_MANY_JOINED)

    def _are_surely_few(self, findings: Findings) -> bool:
        """Tell whether the statement has few relations, and each stands for one alone."""
        if findings.cte_names or len(findings.selects) > MAX_JOINED:
            return False

        read = map(self._key_of, findings.relations)
        if not self._facts.view_definitions.keys().isdisjoint(read):
            return False

        widths = [len(joined_items(select)) for select, _ in findings.selects]
        total = sum(widths)
        return total <= MAX_JOINED

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
        is_stored = key in self._facts.materialized_views
        if is_stored or definition is None:
            return 1

        try:
            (statement,) = parse(definition)
            findings = walk(statement.kind, statement.node)
        except (StatementRejected, ValueError, RecursionError):
            return 1  # it can't be followed

        count = _Count(findings, self._width_of)
        return count.of_query(statement.node)


class _Count:
    """Counts what is planned together with each SELECT of a statement.

    Args:
        width_of: counts the relations that stand in the place of a named one.
    """

    def __init__(self, findings: Findings, width_of: Callable[[Relation], int]) -> None:
        self._width_of = width_of
        self._scopes = {id(select): scope for select, scope in findings.selects}
        self._counts: dict[int, int] = {}
        self._readers: Counter[int] = Counter()
        for select, scope in findings.selects:
            tables = [item["RangeVar"] for item in joined_items(select) if "RangeVar" in item]
            for table in tables:
                read = cte_of(table, scope)
                if read is not None:
                    cte, _ = read
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
        items = joined_items(select)
        widths = [self._of_item(item, scope) for item in items]
        subqueries = map(self.of_query, _joined_subqueries(select))
        return sum(widths) + sum(subqueries)

    def _of_item(self, item: Node, scope: Scope) -> int:
        """Return how many relations an item of a FROM stands for."""
        if "RangeSubselect" in item:
            subquery = item["RangeSubselect"].get("subquery", {})
            return self.of_query(subquery.get("SelectStmt"))

        if "RangeVar" not in item:
            return 1

        table = item["RangeVar"]
        read = cte_of(table, scope)
        if read is not None:
            cte, _ = read
            return self._of_cte(cte)

        relation = relation_of(table, scope)
        if relation is None:
            return 1

        return self._width_of(relation)

    def _of_cte(self, cte: Node) -> int:
        """Return how many relations a CTE stands for where it is read."""
        if self._is_inlined(cte):
            query = cte["ctequery"].get("SelectStmt")
            return self.of_query(query)

        return 1

    def _is_inlined(self, cte: Node) -> bool:
        """Tell whether PostgreSQL puts the CTE's query where the CTE is read."""
        materialization = cte.get("ctematerialized", "CTEMaterializeDefault")
        if materialization == "CTEMaterializeDefault":
            return self._readers[id(cte)] == 1

        return bool(materialization == "CTEMaterializeNever")


def _joined_subqueries(select: Node) -> Iterator[Node]:
    """Yield the subqueries of IN and EXISTS in the SELECT's conditions."""
    pending: list[Any] = [select.get("whereClause"), select.get("fromClause")]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            link = node.get("SubLink", {})
            is_joined = link.get("subLinkType") in _JOINED_SUBLINKS
            if is_joined:
                yield link["subselect"]["SelectStmt"]

            pending += [part for key, part in node.items() if key not in _QUERIES]


_QUERIES = frozenset(("SubLink", "SelectStmt"))
