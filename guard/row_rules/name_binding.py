"""Finds out what the names in the operator's SQL mean, and writes it down, so that nothing can take
their places.

In a condition, columns are found as SQL finds them: the innermost query that has the name counts,
and the ruled table is the outermost. Then tables get their schema and columns their table. So no
CTE, alias or column of a user's statement can stand between, and no column that is added to a table
later. What can't be told for sure is refused: an unqualified column that two tables have, or one
beside a subquery or function whose columns are not written down, and a column that is compared with
itself, because then another table's of the same name was meant.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

from guard.facts import Key, ServerFacts
from guard.row_rules.predicates import OperatorSql
from guard.walk import column_parts, references_in, strings
from sqltree.parsing import Node
from sqltree.writing import is_equal

SYSTEM_COLUMNS = ("tableoid", "ctid", "xmin", "cmin", "xmax", "cmax")
_SELECT_KEYS = frozenset(("SelectStmt", "larg", "rarg"))
_COMPARISONS = frozenset((symbol,) for symbol in ("=", "<>", "<", "<=", ">", ">="))
# Clauses in which a plain name means an output of the query, if it has one of that name and no
# column of its own.
_NAMING_OUTPUTS = frozenset(("sortClause", "groupClause", "distinctClause"))

_READABLE = "its subqueries may read tables, joins, and subqueries and functions that have an alias"


_NAME_FIELDS = {"String": "sval", "alias": "aliasname", "RangeVar": "relname"}


def name_in(kind: str, node: Node) -> str:
    """Return the name that a node of a tree spells by itself; empty where it spells none."""
    field = _NAME_FIELDS.get(kind, "")
    return str(node.get(field, ""))


class Unbound(Exception):
    """A rule does not fit the server; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class BoundItem:
    """An item of a FROM: a name, and columns (None: not known).

    Attributes:
        key: the table's, where it is one without an alias.
        called: what the file calls it, if that is another name.
    """

    name: str
    columns: frozenset[str] | None
    key: Key | None = None
    called: str | None = None

    @property
    def label(self) -> str:
        """Return what the file calls it."""
        return self.called or self.name

    def surely_has(self, column: str) -> None:
        """Return if it may have the column.

        Raises:
            Unbound: its columns are known, and this is none of them.
        """
        if self.columns is None:
            return

        columns = self.columns.union(SYSTEM_COLUMNS)
        if column not in columns:
            raise Unbound(f"{self.label} has no column {column}")


_Levels = tuple[tuple[BoundItem, ...], ...]
"""Items that are visible at some place of a predicate, by query, from the innermost on."""


class BoundNames:
    """Resolves the names in expressions about one table.

    Args:
        table: as predicates see it.
        readable: its columns that the role may read; a predicate on others would fail.
    """

    def __init__(self, table: BoundItem, facts: ServerFacts, readable: frozenset[str]) -> None:
        self.table = table
        self._facts = facts
        self._readable = readable

    def bound(self, sql: OperatorSql) -> Node:
        """Return a copy of the expression's tree with every name resolved.

        Raises:
            Unbound: one can't be.
        """
        tree: Node = _copy_tree(sql.tree)
        self._visit(tree, ((self.table,),))
        return tree

    def refuse_computed(self, masked: frozenset[str], facts: ServerFacts) -> None:
        """Refuse masks that a generated column would see through."""
        key = self.table.key or ("", "")
        columns = self.table.columns or frozenset()
        for column in sorted(columns - masked):
            computed_from = facts.column_sources.get((*key, column), ())
            sources = masked.intersection(computed_from)
            if sources:
                raise Unbound(
                    f"{column} is computed from {min(sources)}, which is masked: mask {column}, too"
                )

    def _visit(self, value: Any, levels: _Levels) -> None:
        if isinstance(value, list):
            for each in value:
                self._visit(each, levels)

        if not isinstance(value, dict):
            return

        for key, child in value.items():
            if key == "ColumnRef":
                self._resolve(child, levels)
            elif key in _SELECT_KEYS and "op" in child:
                self._select(child, levels)
            else:
                self._visit(child, levels)

        if "A_Expr" in value:
            self._refuse_itself(value["A_Expr"])

    def _select(self, select: Node, levels: _Levels) -> None:
        if "withClause" in select:
            raise Unbound("WITH is not allowed in it")
        if "larg" in select:
            sides = [{"larg": select["larg"]}, {"rarg": select["rarg"]}]
            self._visit(sides, levels)
            return

        items: list[BoundItem] = []
        for item in select.get("fromClause", ()):
            self._from(item, items, levels)

        inner = (tuple(items), *levels)
        outputs = set(_output_names(select))
        clauses = _without(select, "fromClause")
        for key in _NAMING_OUTPUTS & clauses.keys():
            clauses[key] = [each for each in select[key] if _plain_name(each) not in outputs]

        self._visit(list(clauses.values()), inner)

    def _from(self, item: Node, items: list[BoundItem], levels: _Levels) -> None:
        """Add to `items` what an item of a FROM offers."""
        ((kind, node),) = item.items()
        has_alias = "alias" in node
        if kind == "RangeVar":
            items.append(self._table(node))
        elif kind == "RangeTableSample":
            self._from(node["relation"], items, levels)
            self._visit(_without(node, "relation"), levels)
        elif kind == "JoinExpr" and not has_alias and "join_using_alias" not in node:
            self._from(node["larg"], items, levels)
            self._from(node["rarg"], items, levels)
            self._visit(node.get("quals", {}), (tuple(items), *levels))
        elif kind in ("RangeSubselect", "RangeFunction") and has_alias:
            is_lateral = kind == "RangeFunction" or bool(node.get("lateral"))
            visible = levels
            if is_lateral:
                visible = (tuple(items), *levels)

            self._visit(_without(node, "alias"), visible)
            items.append(BoundItem(node["alias"]["aliasname"], _columns_of(node)))
        else:
            raise Unbound(_READABLE)

    def _table(self, node: Node) -> BoundItem:
        """Return the table; its node gets the schema."""
        key = self._facts.key(node.get("schemaname"), node["relname"])
        columns = self._facts.attributes.get(key)
        if key not in self._facts.relations:
            raise Unbound(f"there is no table {'.'.join(key)}")
        if columns is None:
            raise Unbound(f"there is no table {'.'.join(key)}")

        node.pop("catalogname", None)
        node["schemaname"] = key[0]
        alias = node.get("alias", {})
        named = strings(alias.get("colnames", ()))
        unnamed = columns[len(named) :]
        names = frozenset(named).union(column.name for column in unnamed)
        if not alias:
            node["alias"] = {"aliasname": key[1]}

        return BoundItem(alias.get("aliasname", key[1]), names, None if alias else key)

    def _resolve(self, reference: Node, levels: _Levels) -> None:
        parts = strings(reference["fields"])
        if parts == ("*",):  # it stands for the subquery's own tables
            return

        is_qualified = len(parts) > 1
        item = self._named(parts, levels) if is_qualified else self._owner(parts[0], levels)
        column = parts[-1]
        if item is self.table:
            self._refuse_unreadable(column)
        if column != "*":
            item.surely_has(column)

        reference["fields"] = [{"String": {"sval": item.name}}, reference["fields"][-1]]

    def _refuse_unreadable(self, column: str) -> None:
        if column == "*":
            raise Unbound("name its columns one by one, whole rows are not allowed in it")

        columns = self.table.columns or frozenset()
        unreadable = columns - self._readable
        if column in unreadable:
            raise Unbound(f"the role may not read the column {column}")

    def _named(self, parts: tuple[str, ...], levels: _Levels) -> BoundItem:
        """Return the item that `t.column` or `schema.t.column` means."""
        qualifier = parts[-3:-1]
        for item in chain.from_iterable(levels):
            is_meant = qualifier in ((item.label,), item.key)
            if is_meant:
                return item

        name = ".".join(parts[:-1])
        raise Unbound(f"{name} is no table that it reads from")

    def _owner(self, column: str, levels: _Levels) -> BoundItem:
        """Return the item that has the unqualified column: of the innermost query where one has."""
        for level in levels:
            owners = self._owners(column, level)
            columns = [item.columns for item in level]
            is_ambiguous = len(owners) > 1 or None in columns
            if is_ambiguous:
                meanings = [f"{item.label}.{column}" for item in level]
                choices = " or ".join(meanings)
                raise Unbound(f"write whose column {column} is: {choices}")

            if owners:
                return owners[0]

        raise Unbound(f"{self.table.called} has no column {column}")

    def _owners(self, column: str, level: tuple[BoundItem, ...]) -> list[BoundItem]:
        """Return the items of one query that surely have the column."""
        is_of_system = level[-1:] == (self.table,) and column in SYSTEM_COLUMNS
        if is_of_system:
            return [self.table]

        owners = []
        for item in level:
            columns = item.columns or ()
            if column in columns:
                owners.append(item)

        return owners

    def _refuse_itself(self, expression: Node) -> None:
        """Refuse a comparison of a column with itself: it always holds, so another was meant."""
        symbol = strings(expression.get("name", ()))[-1:]
        left, right = expression.get("lexpr"), expression.get("rexpr")
        is_same = symbol in _COMPARISONS and is_equal(left, right)
        column = next(references_in(left), None)
        if column is None or not is_same:
            return

        table, name = strings(column["fields"])
        called = table
        if table == self.table.name:
            called = self.table.label

        raise Unbound(
            f"it compares {called}.{name} with itself: write whose column the other one is"
        )


def _columns_of(node: Node) -> frozenset[str] | None:
    """Return the columns of a subquery or function in a FROM, None when they are not all written
    down.
    """
    named = strings(node["alias"].get("colnames", ()))
    if "subquery" not in node:
        return frozenset(named) or None

    outputs = _output_names(node["subquery"]["SelectStmt"])
    names = {*named, *outputs[len(named) :]}
    is_known = names.isdisjoint((None, "*"))
    if is_known:
        return frozenset(filter(None, names))

    return None


def _output_names(select: Node) -> tuple[str | None, ...]:
    """Return the names of a query's columns as far as they are plain: `*` for a star, None for
    others.
    """
    while "larg" in select:
        select = select["larg"]

    names = []
    for item in select.get("targetList", ()):
        target = item["ResTarget"]
        reference = column_parts(target.get("val", {}))
        own_name = next(reversed(reference), None)
        names.append(target.get("name") or own_name)

    return tuple(names)


def _plain_name(node: Node) -> str:
    """Return the name of an unqualified column, also of one to sort by; empty for other values."""
    value = node
    if "SortBy" in node:
        value = node["SortBy"].get("node", {})

    names = column_parts(value)
    if len(names) == 1:
        return names[0]

    return ""


def _copy_tree(tree: Any) -> Any:
    if isinstance(tree, list):
        copies = []
        for each in tree:
            copies.append(_copy_tree(each))

        return copies

    if isinstance(tree, dict):
        fields = {}
        for key, child in tree.items():
            fields[key] = _copy_tree(child)

        return fields

    return tree


def _without(node: Node, field: str) -> Node:
    """Return the node without one of its fields."""
    others = dict(node)
    others.pop(field, None)
    return others
