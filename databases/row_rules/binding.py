"""Ties the rules to what the server has: every name in them means one thing, whatever statement they are put into.

In a predicate, columns are found as SQL finds them: the innermost query that has the name counts, and the ruled table
is the outermost. What is found is written down: tables get their schema, columns their table. So no CTE, alias or
column of a user's statement can stand between, and no column that is added to a table later. What can't be told apart
for sure is a mistake in the file: an unqualified column that two tables have, or one beside a subquery or function
whose columns are not written down, or a column that is compared with itself because the inner table has the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from common.values import Catalog
from databases.guard.facts import Key, ServerFacts
from databases.guard.parsing import Node
from databases.guard.walk import strings
from databases.row_rules.format import Grant, RuleFile, TableRule
from databases.row_rules.predicates import Sql, nodes

SYSTEM_COLUMNS = ("tableoid", "ctid", "xmin", "cmin", "xmax", "cmax")
_ROW = "ruled_row"  # what the ruled table is called in its own subquery


class Known(Protocol):
    """What is known of the asked database; `databases.catalog.Knowledge` is one."""

    @property
    def catalog(self) -> Catalog:
        """All tables that the role may read."""

    @property
    def facts(self) -> ServerFacts:
        """What the guard judges by."""


class Unbound(Exception):
    """A rule does not fit the server; the message says why, as part of a sentence."""


@dataclass(frozen=True, eq=False)
class BoundGrant:
    """A grant whose names are resolved.

    Attributes:
        rows: the condition; None: all rows.
        masks: by column.
        problem: why nothing may be shown by it, or None.
    """

    rows: Node | None = None
    masks: Mapping[str, Node] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, eq=False)
class BoundTable:
    """A ruled table as the server has it.

    Attributes:
        key: the table's own.
        rule: the key of the table whose rule this is: a parent's, or the same.
        row: what its predicates call it.
        columns: in order; empty when the server has no such table.
        readable: those that the role may read.
        types: of its columns as PostgreSQL spells them.
        grants: as in the file.
    """

    key: Key
    rule: Key
    row: str
    columns: tuple[str, ...]
    readable: frozenset[str]
    types: Mapping[str, str]
    grants: tuple[BoundGrant, ...]


Refusals = Mapping[tuple[Key, int], str]
"""Why PostgreSQL can't plan what a grant shows, by table and the grant's place."""


def bind(
    file: RuleFile, known: Known, refusals: Refusals = MappingProxyType({})
) -> tuple[dict[Key, BoundTable], tuple[str, ...]]:
    """The tables of the file as the server has them, and what does not fit it, `file:line: text` each."""
    bound = {rule.key: _bound(rule, known, refusals) for rule in file.tables}
    problems = []
    for rule in file.tables:
        if not bound[rule.key].columns:
            problems.append(f"{file.name}:{rule.line}: there is no table {'.'.join(rule.key)} that the role may see")
        for grant, found in zip(rule.grants, bound[rule.key].grants, strict=True):
            if found.problem is not None and bound[rule.key].columns:
                said = f"{found.problem}; until that is mended, nothing of {'.'.join(rule.key)} is shown by this rule"
                problems.append(f"{file.name}:{grant.line}: {said}")
    return bound, tuple(problems)


def _bound(rule: TableRule, known: Known, refusals: Refusals) -> BoundTable:
    columns = tuple(column.name for column in known.facts.attributes.get(rule.key, ()))
    readable = readable_columns(rule.key, columns, known.facts)
    row = _ROW
    while row in columns or any(row in _words(sql) for grant in rule.grants for sql in _expressions(grant)):
        row += "_"
    names = _Names(_Item(row, frozenset(columns), key=rule.key, called=rule.key[1]), known.facts, readable)
    grants = [_bound_grant(grant, names, known) for grant in rule.grants]
    for place, grant in enumerate(grants):
        if (rule.key, place) in refusals and grant.problem is None:
            grants[place] = BoundGrant(problem=refusals[rule.key, place])
    return BoundTable(rule.key, rule.key, row, columns, readable, _types(rule.key, known), tuple(grants))


def readable_columns(key: Key, columns: tuple[str, ...], facts: ServerFacts) -> frozenset[str]:
    """Those of the table's columns that the role may read; of a partition, which the catalogue leaves out, all."""
    return frozenset(facts.columns.get(key, columns if key in facts.parents else ()))


def _types(key: Key, known: Known) -> Mapping[str, str]:
    tables = [known.catalog.by_key.get(one) for one in (*sorted(known.facts.parents.get(key, ())), key)]
    return {column.name: column.type for table in tables if table for column in table.columns}


def _expressions(grant: Grant) -> list[Sql]:
    return [*([grant.rows] if grant.rows else []), *(mask for _, mask in grant.masks)]


def _words(sql: Sql) -> set[str]:
    return {str(node.get("sval", "")) for kind, node in nodes(sql.tree) if kind == "String"} | {
        str(node["aliasname"]) for kind, node in nodes(sql.tree) if kind == "alias"
    }


def _bound_grant(grant: Grant, names: "_Names", known: Known) -> BoundGrant:
    try:
        rows = names.bound(grant.rows) if grant.rows else None
        masks = {column: names.bound(mask) for column, mask in grant.masks}
        for column in masks:
            names.table.surely_has(column)
        names.refuse_computed(frozenset(masks), known.facts)
    except Unbound as error:
        return BoundGrant(problem=str(error))
    return BoundGrant(rows, masks)


@dataclass(frozen=True)
class _Item:
    """What a FROM offers: a name, and columns (None: not known).

    Attributes:
        key: the table's, where it is one without an alias.
        called: what the file calls it, if that is another name.
    """

    name: str
    columns: frozenset[str] | None
    key: Key | None = None
    called: str | None = None

    def surely_has(self, column: str) -> None:
        if self.columns is not None and column not in self.columns and column not in SYSTEM_COLUMNS:
            raise Unbound(f"{self.called or self.name} has no column {column}")


_Levels = tuple[tuple[_Item, ...], ...]
"""What is visible at some place of a predicate: the items of each query, from the innermost on."""


class _Names:
    """Resolves the names in expressions about one table.

    Args:
        table: as predicates see it.
        readable: its columns that the role may read; a predicate on others would fail.
    """

    def __init__(self, table: _Item, facts: ServerFacts, readable: frozenset[str]) -> None:
        self.table = table
        self._facts = facts
        self._readable = readable

    def bound(self, sql: Sql) -> Node:
        """A copy of the expression's tree with every name resolved.

        Raises:
            Unbound: one can't be.
        """
        tree: Node = _copied(sql.tree)
        self._visit(tree, ((self.table,),))
        return tree

    def refuse_computed(self, masked: frozenset[str], facts: ServerFacts) -> None:
        """Refuses masks that a generated column would see through."""
        key = self.table.key or ("", "")
        for column in sorted((self.table.columns or frozenset()) - masked):
            sources = masked.intersection(facts.column_sources.get((*key, column), ()))
            if sources:
                raise Unbound(f"{column} is computed from {min(sources)}, which is masked: mask {column}, too")

    def _visit(self, value: Any, levels: _Levels) -> None:
        if isinstance(value, list):
            for each in value:
                self._visit(each, levels)
        elif isinstance(value, dict):
            for key, child in value.items():
                if key == "ColumnRef":
                    self._resolve(child, levels)
                elif isinstance(child, dict) and "op" in child and key in ("SelectStmt", "larg", "rarg"):
                    self._select(child, levels)
                else:
                    self._visit(child, levels)
            if "A_Expr" in value:
                self._refuse_itself(value["A_Expr"])

    def _select(self, select: Node, levels: _Levels) -> None:
        if "withClause" in select:
            raise Unbound("WITH is not allowed in it")
        if "larg" in select:
            self._visit({key: select[key] for key in ("larg", "rarg")}, levels)
            return
        items: list[_Item] = []
        for item in select.get("fromClause", ()):
            self._from(item, items, levels)
        inner = (tuple(items), *levels)
        outputs = {target["ResTarget"].get("name") for target in select.get("targetList", ())}
        for key, child in select.items():
            if key == "sortClause":  # what it names may be an output
                child = [each for each in child if _plain_name(each["SortBy"].get("node", {})) not in outputs]
            if key != "fromClause":
                self._visit(child, inner)

    def _from(self, item: Node, items: list[_Item], levels: _Levels) -> None:
        ((kind, node),) = item.items()
        alias = node.get("alias", {})
        if kind == "RangeVar":
            items.append(self._table(node))
        elif kind == "JoinExpr" and not alias and "join_using_alias" not in node:
            self._from(node["larg"], items, levels)
            self._from(node["rarg"], items, levels)
            self._visit(node.get("quals", {}), (tuple(items), *levels))
        elif kind in ("RangeSubselect", "RangeFunction") and alias:
            is_lateral = kind == "RangeFunction" or node.get("lateral")
            self._visit(
                {key: child for key, child in node.items() if key != "alias"},
                (tuple(items), *levels) if is_lateral else levels,
            )
            named = strings(alias.get("colnames", ()))
            items.append(_Item(alias["aliasname"], frozenset(named) if named else None))
        else:
            raise Unbound("its subqueries may read tables, joins, and subqueries and functions that have an alias")

    def _table(self, node: Node) -> _Item:
        """The table; its node gets the schema."""
        key = self._facts.key(node.get("schemaname"), node["relname"])
        columns = self._facts.attributes.get(key)
        if key not in self._facts.relations or columns is None:
            raise Unbound(f"there is no table {'.'.join(key)}")
        node.pop("catalogname", None)
        node["schemaname"] = key[0]
        alias = node.get("alias", {})
        named = strings(alias.get("colnames", ()))
        names = frozenset((*named, *(column.name for column in columns[len(named) :])))
        if not alias:
            node["alias"] = {"aliasname": key[1]}
        return _Item(alias.get("aliasname", key[1]), names, None if alias else key)

    def _resolve(self, reference: Node, levels: _Levels) -> None:
        parts = strings(reference["fields"])
        if parts == ("*",):  # it stands for the subquery's own tables
            return
        item = self._named(parts, levels) if len(parts) > 1 else self._owner(parts[0], levels)
        column = parts[-1]
        if item is self.table:
            if column == "*":
                raise Unbound("name its columns one by one, whole rows are not allowed in it")
            if column in (self.table.columns or ()) and column not in self._readable:
                raise Unbound(f"the role may not read the column {column}")
        if column != "*":
            item.surely_has(column)
        reference["fields"] = [{"String": {"sval": item.name}}, reference["fields"][-1]]

    def _named(self, parts: tuple[str, ...], levels: _Levels) -> _Item:
        """The item that `t.column` or `schema.t.column` means."""
        for level in levels:
            for item in level:
                if len(parts) == 2 and parts[0] == (item.called or item.name):
                    return item
                if len(parts) > 2 and item.key == parts[-3:-1]:
                    return item
        raise Unbound(f"{'.'.join(parts[:-1])} is no table that it reads from")

    def _owner(self, column: str, levels: _Levels) -> _Item:
        """The item that has the unqualified column: in the innermost query where one has it."""
        for level in levels:
            owners = [item for item in level if item.columns is not None and column in item.columns]
            if level[-1:] == (self.table,) and column in SYSTEM_COLUMNS:
                owners = [self.table]
            if len(owners) > 1 or (len(owners) < 2 and any(item.columns is None for item in level)):
                choices = " or ".join(f"{item.called or item.name}.{column}" for item in level)
                raise Unbound(f"write whose column {column} is: {choices}")
            if owners:
                return owners[0]
        raise Unbound(f"{self.table.called} has no column {column}")

    def _refuse_itself(self, expression: Node) -> None:
        """Refuses a comparison of a column with itself, which holds for every row: another table's was meant."""
        sides = [expression.get(side, {}).get("ColumnRef", {}).get("fields") for side in ("lexpr", "rexpr")]
        if sides[0] and sides[0] == sides[1]:
            table, column = strings(sides[0])
            called = self.table.called if table == self.table.name else table
            raise Unbound(f"it compares {called}.{column} with itself: write whose column the other one is")


def _plain_name(node: Node) -> str | None:
    names = strings(node.get("ColumnRef", {}).get("fields", ()))
    return names[0] if len(names) == 1 else None


def _copied(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_copied(each) for each in tree]
    return {key: _copied(child) for key, child in tree.items()} if isinstance(tree, dict) else tree
