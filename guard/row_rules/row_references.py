"""Find what a statement says about the tables of its FROMs that would mean something else, or
nothing, of a subquery.

A subquery has no schema, so `schema.table.column` becomes a column of the subquery's name. It has
the columns that it selects, and no system columns (`ctid`, `tableoid`) unless it selects them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from guard.facts import Key
from guard.refusal_texts import refused
from guard.row_rules import texts
from guard.row_rules.name_binding import SYSTEM_COLUMNS
from guard.row_rules.rule_binding import BoundTable
from guard.walk import strings
from sqltree.parsing import Node, nodes


@dataclass(eq=False)
class FromItem:
    """A relation, subquery or function in a FROM.

    Attributes:
        called: by what name the statement calls it.
        key: the table's, where it is a table without an alias.
        table: its rule, where it has one.
        renamed: the first columns' names, from a list behind the alias.
        name: what the subquery in its place is called.
        is_starred: whether `*` in its query's list stands for its columns, too.
    """

    called: str
    key: Key | None = None
    table: BoundTable | None = None
    renamed: Sequence[str] = ()
    name: str = ""
    is_starred: bool = False

    @property
    def columns(self) -> list[str]:
        """Return the names of the ruled table's columns as the statement calls them."""
        if not self.table:
            return list(self.renamed)
        stored = self.table.columns
        return [*self.renamed, *stored[len(self.renamed) :]]


class RowReferences:
    """Holds the names in one statement, as it was written."""

    def __init__(self, tree: Node) -> None:
        self._columns: list[tuple[str, ...]] = []
        self._joined: set[str] = set()
        self._words: set[str] = set()
        self._hides_names = False
        for kind, node in nodes(tree):
            if kind == "ColumnRef":
                self._columns.append(strings(node["fields"]))
            elif kind == "String":
                self._words.add(str(node.get("sval", "")))
            elif kind == "alias":
                self._words.add(node["aliasname"])
            elif kind == "RangeVar":
                self._words.add(node["relname"])
            elif kind == "JoinExpr":
                self._note_join(node)

    def _note_join(self, join: Node) -> None:
        if join.get("isNatural"):
            self._hides_names = True
        alias = join.get("alias")
        if alias is None:
            return
        self._joined.add(alias["aliasname"])
        if "colnames" in alias:
            self._hides_names = True

    def columns_of(self, item: FromItem, table: BoundTable) -> list[str]:
        """Return the columns that the subquery must give.

        These are all columns, or where that is sure to be enough, those that the statement names.

        Raises:
            ForbiddenObject: the statement reads all columns, and the role may not, or system
                columns besides.
        """
        is_whole = self._reads_whole(item)
        needs_all = is_whole or item.renamed
        if needs_all:
            columns = list(table.columns)
        else:
            named = self._words & table.readable
            columns = []
            for column in table.columns:
                if column in named:
                    columns.append(column)
        if not table.readable.issuperset(columns):
            raise refused(".".join(table.key), texts.PART_OF_COLUMNS)
        system = []
        for name in SYSTEM_COLUMNS:
            if self._names(item, name):
                system.append(name)
        shows_system = system and is_whole
        if shows_system:
            raise refused(".".join(table.key), texts.SYSTEM_COLUMN)
        return [*columns, *system]

    def _names(self, item: FromItem, column: str) -> bool:
        """Tell whether the item's column of that name may be meant somewhere."""
        qualifiers = ((), (item.called,))
        for parts in self._columns:
            if parts[-1] != column:
                continue
            if parts[-2:-1] in qualifiers:
                return True
        return False

    def _reads_whole(self, item: FromItem) -> bool:
        """Tell whether all its columns may be meant at once.

        That is `*`, `t.*`, `t` and NATURAL, or the same of a join around it.
        """
        if item.is_starred:
            return True
        if self._hides_names:
            return True
        names = {item.called, *self._joined}
        for parts in self._columns:
            is_star = parts[-1] == "*" and len(parts) > 1
            if is_star:
                parts = parts[-2:-1]
            if len(parts) == 1 and parts[0] in names:
                return True
        return False

    def tell_apart(self, items: Sequence[FromItem]) -> None:
        """Name the subqueries that stand for the ruled tables of one FROM.

        Two tables may have one name where two subqueries may not. So a subquery gets a name of its
        own where all its columns are called by schema and table.

        Raises:
            ForbiddenObject: two tables have one name, and columns are called by that alone.
        """
        counts = Counter(item.called for item in items)
        for item in items:
            item.name = item.called
            if item.table is None:
                continue
            is_shared = counts[item.called] > 1
            if self._is_called_briefly(item):
                if is_shared:
                    raise refused(item.called, texts.SAME_NAME)
            elif is_shared or self._is_called_in_full(item):
                item.name = self._fresh(item.called)

    def _is_called_briefly(self, item: FromItem) -> bool:
        """Tell whether a reference names the item, or its column, without a schema."""
        brief = [parts for parts in self._columns if len(parts) < 3]
        tables = [parts[0] for parts in brief]
        return item.called in tables

    def _is_called_in_full(self, item: FromItem) -> bool:
        if item.key is None:
            return False
        tables = [parts[-3:-1] for parts in self._columns]
        return item.key in tables

    def _fresh(self, name: str) -> str:
        """Return a name that occurs nowhere in the statement."""
        number = 1
        while f"{name}_{number}" in self._words:
            number += 1
        self._words.add(f"{name}_{number}")
        return f"{name}_{number}"


Levels = tuple[Sequence[FromItem], ...]
"""Sources of the queries around some place, from the innermost on."""


def requalify(reference: Node, levels: Levels) -> None:
    """Call a ruled table's column by the table's name alone, where it has a schema before it.

    Raises:
        ForbiddenObject: another table of that name stands between.
    """
    fields = reference["fields"]
    key = strings(fields)[-3:-1]
    if len(key) < 2:
        return
    is_hidden = False
    for level in levels:
        owner = _owner(key, level)
        if owner is None:
            names = [item.name for item in level]
            if key[1] in names:
                is_hidden = True
            continue
        if owner.table:
            is_taken = is_hidden and owner.name == owner.called
            if is_taken:
                raise refused(key[1], texts.SAME_NAME)
            reference["fields"] = [{"String": {"sval": owner.name}}, fields[-1]]
        return


def _owner(key: tuple[str, ...], level: Sequence[FromItem]) -> FromItem | None:
    """Return the table of that key among the items of a FROM."""
    for item in level:
        if item.key == key:
            return item
    return None
