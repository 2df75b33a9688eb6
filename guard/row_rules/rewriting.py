"""Puts subqueries in the places of ruled tables, on the tree of a statement."""

from collections.abc import Callable, Mapping
from typing import Any

from common.errors import ValidationFailed
from common.values import Table
from guard.facts import Key, ServerFacts
from guard.row_rules import texts
from guard.row_rules.key_grouping import group_by_all
from guard.row_rules.row_references import FromItem, Levels, RowReferences, requalify
from guard.row_rules.rule_binding import BoundTable
from guard.scopes import NOWHERE, Scope, with_queries
from guard.walk import Relation, is_star, relation_of, strings
from sqltree.parsing import TOO_DEEP, Node, parse
from sqltree.writing import text_of

Shown = Callable[[BoundTable, Node, list[str]], Node]
"""Makes the subquery for a table, from its node in the statement and the columns that are needed of
it.
"""
Rule = Callable[[Relation, bool], BoundTable | None]
"""Limits of a relation; see `Relations.of`."""


def rewrite(  # noqa: PLR0913 - what a statement is rewritten by
    statement: str,
    facts: ServerFacts,
    tables: Mapping[Key, Table],
    rule: Rule,
    show: Shown,
    finish: Callable[[Node], bool],
) -> str:
    """Return the statement with ruled tables replaced; the same text where nothing changes.

    Args:
        statement: one query, proven by the guard.
        tables: those of the catalogue, for their keys.
        finish: changes the tree once more; says whether it did.

    Raises:
        ForbiddenObject: it reads what can't be read under the rules.
        ValidationFailed: it can't be rewritten.
    """
    (parsed,) = parse(statement)
    try:
        rewriting = _Rewriting(parsed.node, facts, tables, rule, show)
        rewriting.select(parsed.node, NOWHERE, ())
    except RecursionError as error:
        raise ValidationFailed(TOO_DEEP) from error

    is_finished = finish(parsed.node)
    if rewriting.replaced:
        return text_of(parsed.node)
    if is_finished:
        return text_of(parsed.node)

    return statement


class _Rewriting:
    """Goes through one statement's tree and changes it.

    Attributes:
        replaced: how many tables it has replaced.
    """

    def __init__(
        self, tree: Node, facts: ServerFacts, tables: Mapping[Key, Table], rule: Rule, show: Shown
    ) -> None:
        self.replaced = 0
        self._references = RowReferences(tree)
        self._facts = facts
        self._tables = tables
        self._rule = rule
        self._show = show

    def select(self, select: Node, scope: Scope, levels: Levels) -> None:
        """Rewrite a SELECT, `scope` and `levels` being those around it."""
        if "withClause" in select:
            whole = scope.entered(select["withClause"])
            for place, cte in enumerate(with_queries(select["withClause"])):
                self._visit(cte, whole.before(place), levels)

            scope = whole

        from_items = self._items_of(select, scope)
        items = list(from_items.values())
        self._references.tell_apart(items)
        keys = [self._primary_key(item) for item in items]
        group_by_all(select, items, keys)
        inner = (items, *levels)
        for key, child in select.items():
            if key in ("larg", "rarg"):
                self.select(child, scope, levels)
            elif key not in ("withClause", "fromClause"):
                self._visit(child, scope, inner)

        if "fromClause" in select:
            sources = select["fromClause"]
            select["fromClause"] = [
                self._replaced(node, scope, inner, from_items) for node in sources
            ]

    def _items_of(self, select: Node, scope: Scope) -> dict[int, FromItem]:
        """Return what the SELECT reads from, by the ids of the nodes."""
        items: dict[int, FromItem] = {}
        for node in select.get("fromClause", ()):
            self._gather(node, scope, items)

        targets = [item["ResTarget"] for item in select.get("targetList", ())]
        values = [target.get("val", {}) for target in targets]
        is_starred = any(map(is_star, values))
        for item in items.values():
            item.is_starred = is_starred

        return items

    def _gather(self, node: Node, scope: Scope, items: dict[int, FromItem]) -> None:
        """Note what a FROM reads, by the ids of the nodes."""
        ((kind, inner),) = node.items()
        alias = inner.get("alias", {})
        if kind == "JoinExpr":
            self._gather(inner["larg"], scope, items)
            self._gather(inner["rarg"], scope, items)
        elif kind == "RangeTableSample":
            self._gather(inner["relation"], scope, items)
        elif kind == "RangeVar":
            items[id(inner)] = self._item(inner, scope)
        elif alias:
            items[id(inner)] = FromItem(alias["aliasname"])

        if kind != "JoinExpr":
            return

        for name in ("alias", "join_using_alias"):
            if name in inner:
                join_alias = inner[name]
                items[id(join_alias)] = FromItem(join_alias["aliasname"])

    def _item(self, node: Node, scope: Scope) -> FromItem:
        alias = node.get("alias", {})
        called = alias.get("aliasname", node["relname"])
        relation = relation_of(node, scope)
        if relation is None:
            return FromItem(called)

        key = None
        if not alias:
            key = self._facts.key(relation.schema, relation.name)

        table = self._rule(relation, not node.get("inh"))
        return FromItem(called, key, table, strings(alias.get("colnames", ())))

    def _primary_key(self, item: FromItem) -> tuple[str, ...]:
        """Return the columns of the item's primary key; none if there is none or it is masked."""
        if item.table is None:
            return ()

        table = self._tables.get(item.table.key)
        if table is None:
            return ()

        masks = [grant.masks for grant in item.table.grants]
        masked = set().union(*masks)
        is_open = masked.isdisjoint(table.primary_key)
        if is_open:
            return table.primary_key

        return ()

    def _replaced(
        self, node: Node, scope: Scope, levels: Levels, items: Mapping[int, FromItem]
    ) -> Node:
        """Return what stands in an item's place of a FROM."""
        ((kind, inner),) = node.items()
        if kind == "RangeTableSample":
            others = {key: child for key, child in inner.items() if key != "relation"}
            self._visit(others, scope, levels)
            return self._subquery(node, inner["relation"]["RangeVar"], items)

        if kind == "RangeVar":
            return self._subquery(node, inner, items)
        if kind == "JoinExpr":
            for side in ("larg", "rarg"):
                inner[side] = self._replaced(inner[side], scope, levels, items)

            self._visit(inner.get("quals", {}), scope, levels)
        elif kind == "RangeSubselect":
            around = levels[1:]
            if inner.get("lateral"):
                around = levels

            self.select(inner["subquery"]["SelectStmt"], scope, around)
        else:
            self._visit(inner, scope, levels)

        return node

    def _subquery(self, node: Node, relation: Node, items: Mapping[int, FromItem]) -> Node:
        """Return the subquery for a table, which `node` samples or is; the node itself when
        nothing limits the table.
        """
        item = items[id(relation)]
        if item.table is None:
            return node

        self.replaced += 1
        alias = relation.get("alias", {"aliasname": item.name})
        columns = self._references.columns_of(item, item.table)
        relation["schemaname"], relation["alias"] = item.table.key[0], {"aliasname": item.table.row}
        relation.pop("catalogname", None)
        shown = self._show(item.table, node, columns)
        return {"RangeSubselect": {"subquery": {"SelectStmt": shown}, "alias": alias}}

    def _visit(self, value: Any, scope: Scope, levels: Levels) -> None:
        """Rewrite what is inside of anything that is not a FROM."""
        if isinstance(value, list):
            for each in value:
                self._visit(each, scope, levels)
        elif isinstance(value, dict):
            for key, child in value.items():
                if key == "RangeVar":  # PostgreSQL's grammar has no relations elsewhere in a query
                    raise ValidationFailed(texts.NOT_REWRITABLE)
                if key == "SelectStmt":
                    self.select(child, scope, levels)
                elif key == "ColumnRef":
                    requalify(child, levels)
                else:
                    self._visit(child, scope, levels)
