"""Puts subqueries in the places of ruled tables, on the tree of a statement."""

from collections.abc import Callable, Mapping
from typing import Any

from common.errors import ValidationFailed
from common.values import Table
from databases.guard.facts import Key, ServerFacts
from databases.guard.parsing import TOO_DEEP, Node, parse
from databases.guard.scopes import NOWHERE, Scope, with_queries
from databases.guard.walk import Relation, relation_of, strings
from databases.row_rules import texts
from databases.row_rules.binding import BoundTable
from databases.row_rules.comparing import text_of
from databases.row_rules.grouping import group_by_all
from databases.row_rules.references import Item, Levels, References, requalify

Shown = Callable[[BoundTable, Node, list[str]], Node]
"""Makes the subquery for a table, from its node in the statement and the columns that are needed of it."""
Rule = Callable[[Relation, bool], BoundTable | None]
"""What limits a relation; see `Relations.of`."""


def rewrite(statement: str, facts: ServerFacts, tables: Mapping[Key, Table], rule: Rule, show: Shown) -> str:
    """The statement with ruled tables replaced; the same text where there are none.

    Args:
        statement: one query, proven by the guard.
        tables: those of the catalogue, for their keys.

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
    return text_of(parsed.node) if rewriting.replaced else statement


class _Rewriting:
    """Goes through one statement's tree and changes it.

    Attributes:
        replaced: how many tables it has replaced.
    """

    def __init__(self, tree: Node, facts: ServerFacts, tables: Mapping[Key, Table], rule: Rule, show: Shown) -> None:
        self.replaced = 0
        self._references = References(tree)
        self._facts = facts
        self._tables = tables
        self._rule = rule
        self._show = show

    def select(self, select: Node, scope: Scope, levels: Levels) -> None:
        """Rewrites a SELECT, `scope` and `levels` being those around it."""
        if "withClause" in select:
            whole = scope.entered(select["withClause"])
            for place, cte in enumerate(with_queries(select["withClause"])):
                self._visit(cte, whole.before(place), levels)
            scope = whole
        found: dict[int, Item] = {}
        for node in select.get("fromClause", ()):
            self._gather(node, scope, found)
        items = list(found.values())
        if any(_is_star(target) for target in select.get("targetList", ())):
            for item in items:
                item.is_starred = True
        self._references.tell_apart(items)
        group_by_all(select, items, [self._primary_key(item) for item in items])
        inner = (items, *levels)
        for key, child in select.items():
            if key in ("larg", "rarg"):
                self.select(child, scope, levels)
            elif key not in ("withClause", "fromClause"):
                self._visit(child, scope, inner)
        if "fromClause" in select:
            select["fromClause"] = [self._replaced(node, scope, inner, found) for node in select["fromClause"]]

    def _gather(self, node: Node, scope: Scope, found: dict[int, Item]) -> None:
        """Notes what a FROM reads, by the ids of the nodes."""
        ((kind, inner),) = node.items()
        alias = inner.get("alias", {})
        if kind == "JoinExpr":
            self._gather(inner["larg"], scope, found)
            self._gather(inner["rarg"], scope, found)
        elif kind == "RangeTableSample":
            self._gather(inner["relation"], scope, found)
        elif kind == "RangeVar":
            found[id(inner)] = self._item(inner, scope)
        elif alias:
            found[id(inner)] = Item(alias["aliasname"])
        for name in ("alias", "join_using_alias") if kind == "JoinExpr" else ():
            if name in inner:
                found[id(inner[name])] = Item(inner[name]["aliasname"])

    def _item(self, node: Node, scope: Scope) -> Item:
        alias = node.get("alias", {})
        called = alias.get("aliasname", node["relname"])
        relation = relation_of(node, scope)
        if relation is None:
            return Item(called)
        key = None if alias else self._facts.key(relation.schema, relation.name)
        table = self._rule(relation, not node.get("inh"))
        return Item(called, key, table, strings(alias.get("colnames", ())))

    def _primary_key(self, item: Item) -> tuple[str, ...]:
        """The columns of the item's primary key; empty when there is none, or it is masked."""
        table = self._tables.get(item.table.key) if item.table else None
        if item.table is None or table is None:
            return ()
        masked = {column for grant in item.table.grants for column in grant.masks}
        return () if masked.intersection(table.primary_key) else table.primary_key

    def _replaced(self, node: Node, scope: Scope, levels: Levels, found: Mapping[int, Item]) -> Node:
        """What stands in an item's place of a FROM."""
        ((kind, inner),) = node.items()
        if kind == "RangeTableSample":
            self._visit({key: child for key, child in inner.items() if key != "relation"}, scope, levels)
            return self._subquery(node, inner["relation"]["RangeVar"], found)
        if kind == "RangeVar":
            return self._subquery(node, inner, found)
        if kind == "JoinExpr":
            for side in ("larg", "rarg"):
                inner[side] = self._replaced(inner[side], scope, levels, found)
            self._visit(inner.get("quals", {}), scope, levels)
        elif kind == "RangeSubselect":
            self.select(inner["subquery"]["SelectStmt"], scope, levels if inner.get("lateral") else levels[1:])
        else:
            self._visit(inner, scope, levels)
        return node

    def _subquery(self, node: Node, relation: Node, found: Mapping[int, Item]) -> Node:
        """The subquery for a table, which `node` samples or is; the node itself when nothing limits the table."""
        item = found[id(relation)]
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
        """Rewrites what is inside of anything that is not a FROM."""
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


def _is_star(target: Node) -> bool:
    return strings(target["ResTarget"].get("val", {}).get("ColumnRef", {}).get("fields", ())) == ("*",)
