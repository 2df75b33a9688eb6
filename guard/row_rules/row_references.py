"""Find what a statement says about the tables of its FROMs that would mean something else, or
nothing, of a subquery.

A subquery has no schema, so `schema.table.column` becomes a column of the subquery's name. It has
the columns that it selects, and no system columns (`ctid`, `tableoid`) unless it selects them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from guard.facts import Key
from guard.refusal_texts import refusal_of_object
from guard.row_rules import texts
from guard.row_rules.name_binding import SYSTEM_COLUMNS, name_in
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
        self._called_briefly: set[str] = set()  # tables whose columns are named without a schema
        self._called_in_full: set[tuple[str, ...]] = set()
        self._joined: set[str] = set()
        self._words: set[str] = set()
        self._hides_names = False
        for kind, node in nodes(tree):
            self._words.add(name_in(kind, node))
            if kind == "ColumnRef":
                self._note_column(strings(node["fields"]))
            elif kind == "JoinExpr":
                self._note_join(node)

    def _note_column(self, parts: tuple[str, ...]) -> None:
        self._columns.append(parts)
        has_schema = len(parts) > 2  # noqa: PLR2004 - schema, table and column
        if has_schema:
            self._called_in_full.add(parts[-3:-1])
        else:
            self._called_briefly.add(parts[0])

    def _note_join(self, join: Node) -> None:
        alias = join.get("alias", {})
        is_natural = bool(join.get("isNatural"))
        renames = "colnames" in alias
        self._hides_names |= is_natural or renames
        if alias:
            self._joined.add(alias["aliasname"])

    def columns_of(self, item: FromItem, table: BoundTable) -> list[str]:
        """Return the columns that the subquery must give.

        These are all columns, or where that is sure to be enough, those that the statement names.

        Raises:
            ForbiddenObject: the statement reads all columns, and the role may not, or system
                columns besides.
        """
        is_whole = self._reads_whole(item)
        columns = list(table.columns)
        if not (is_whole or item.renamed):
            named = self._words & table.readable
            columns = list(filter(named.__contains__, table.columns))

        name = ".".join(table.key)
        may_read = table.readable.issuperset(columns)
        if not may_read:
            raise refusal_of_object(name, texts.PART_OF_COLUMNS)

        system = [column for column in SYSTEM_COLUMNS if self._names(item, column)]
        shows_system = system and is_whole
        if shows_system:
            raise refusal_of_object(name, texts.SYSTEM_COLUMN)

        return [*columns, *system]

    def _names(self, item: FromItem, column: str) -> bool:
        """Tell whether the item's column of that name may be meant somewhere."""
        alone = (column,)
        qualified = (item.called, column)
        endings = [parts[-2:] for parts in self._columns]
        return alone in endings or qualified in endings

    def _reads_whole(self, item: FromItem) -> bool:
        """Tell whether all its columns may be meant at once.

        That is `*`, `t.*`, `t` and NATURAL, or the same of a join around it.
        """
        if item.is_starred or self._hides_names:
            return True

        names = {item.called, *self._joined}
        for *qualifiers, last in self._columns:
            row = (*qualifiers, last)
            is_star = last == "*" and qualifiers
            if is_star:
                row = (qualifiers[-1],)

            is_row = len(row) == 1 and row[0] in names
            if is_row:
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
            is_shared = counts[item.called] > 1
            may_stay = not is_shared and item.key not in self._called_in_full
            if may_stay or item.table is None:
                continue

            is_called_briefly = item.called in self._called_briefly
            if not is_called_briefly:
                item.name = self._fresh(item.called)
            elif is_shared:
                raise refusal_of_object(item.called, texts.SAME_NAME)

    def _fresh(self, name: str) -> str:
        """Return a name that occurs nowhere in the statement."""
        number = 1
        while f"{name}_{number}" in self._words:
            number += 1

        fresh = f"{name}_{number}"
        self._words.add(fresh)
        return fresh


Levels = tuple[Sequence[FromItem], ...]
"""Sources of the queries around some place, from the innermost on."""


def requalify(reference: Node, levels: Levels) -> None:
    """Call a ruled table's column by the table's name alone, where it has a schema before it.

    Raises:
        ForbiddenObject: another table of that name stands between.
    """
    fields = reference["fields"]
    key = strings(fields)[-3:-1]
    has_schema = len(key) == 2  # noqa: PLR2004 - schema and table
    if not has_schema:
        return

    is_hidden = False
    for level in levels:
        owner = _owner(key, level)
        if owner is None:
            names = [item.name for item in level]
            is_hidden |= key[1] in names
            continue

        if owner.table:
            is_taken = is_hidden and owner.name == owner.called
            if is_taken:
                raise refusal_of_object(key[1], texts.SAME_NAME)

            table = {"String": {"sval": owner.name}}
            reference["fields"] = [table, fields[-1]]

        return


def _owner(key: tuple[str, ...], level: Sequence[FromItem]) -> FromItem | None:
    """Return the table of that key among the items of a FROM."""
    for item in level:
        if item.key == key:
            return item

    return None
