"""What a statement says about the tables of its FROMs that would mean something else, or nothing, of a subquery.

A subquery has no schema, so `schema.table.column` becomes a column of the subquery's name. It has the columns that it
selects, and no system columns (`ctid`, `tableoid`) unless it selects them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from databases.guard.facts import Key
from databases.guard.parsing import Node
from databases.guard.refusal_texts import refused
from databases.guard.walk import strings
from databases.row_rules import texts
from databases.row_rules.binding import BoundTable
from databases.row_rules.naming import SYSTEM_COLUMNS
from databases.row_rules.predicates import nodes


@dataclass(eq=False)
class Item:
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
        """The names of the ruled table's columns as the statement calls them."""
        stored = self.table.columns if self.table else ()
        return [*self.renamed, *stored[len(self.renamed) :]]


class References:
    """The names in one statement, as it was written."""

    def __init__(self, tree: Node) -> None:
        found: dict[str, list[Node]] = {kind: [] for kind in ("ColumnRef", "JoinExpr", "String", "alias", "RangeVar")}
        for kind, node in nodes(tree):
            if kind in found:
                found[kind].append(node)
        self._columns = [strings(node["fields"]) for node in found["ColumnRef"]]
        joined = [node["alias"] for node in found["JoinExpr"] if "alias" in node]
        is_natural = any(node.get("isNatural") for node in found["JoinExpr"])
        self._joined = {alias["aliasname"] for alias in joined}
        self._hides_names = is_natural or any("colnames" in alias for alias in joined)
        self._words = {str(node.get("sval", "")) for node in found["String"]}
        self._words.update(node["aliasname"] for node in found["alias"])
        self._words.update(node["relname"] for node in found["RangeVar"])

    def columns_of(self, item: Item, table: BoundTable) -> list[str]:
        """What the subquery must give: all columns, or where that is sure to be enough, those that the statement names.

        Raises:
            ForbiddenObject: the statement reads all columns, and the role may not, or system columns besides.
        """
        needs_all = bool(item.renamed) or self._reads_whole(item)
        columns = [column for column in table.columns if needs_all or column in self._words & table.readable]
        if not table.readable.issuperset(columns):
            raise refused(".".join(table.key), texts.PART_OF_COLUMNS)
        system = [name for name in SYSTEM_COLUMNS if self._names(item, name)]
        if system and self._reads_whole(item):
            raise refused(".".join(table.key), texts.SYSTEM_COLUMN)
        return [*columns, *system]

    def _names(self, item: Item, column: str) -> bool:
        return any(parts[-1] == column and parts[-2:-1] in ((), (item.called,)) for parts in self._columns)

    def _reads_whole(self, item: Item) -> bool:
        """Whether all its columns may be meant at once: `*`, `t.*`, `t`, NATURAL, or the same of a join around it."""
        names = {item.called, *self._joined}
        is_named = any(
            parts[0] in names if len(parts) == 1 else parts[-1] == "*" and parts[-2] in names for parts in self._columns
        )
        return is_named or item.is_starred or self._hides_names

    def tell_apart(self, items: Sequence[Item]) -> None:
        """Names the subqueries that stand for the ruled tables of one FROM.

        Two tables may have one name where two subqueries may not. So a subquery gets a name of its own where all its
        columns are called by schema and table.

        Raises:
            ForbiddenObject: two tables have one name, and columns are called by that alone.
        """
        for item in items:
            item.name = item.called
            is_shared = sum(other.called == item.called for other in items) > 1
            is_short = any(len(parts) < 3 and parts[0] == item.called for parts in self._columns)
            if item.table is not None and is_shared and is_short:
                raise refused(item.called, texts.SAME_NAME)
            if item.table is not None and not is_short and (is_shared or self._is_called_in_full(item)):
                item.name = self._fresh(item.called)

    def _is_called_in_full(self, item: Item) -> bool:
        return item.key is not None and any(parts[-3:-1] == item.key for parts in self._columns)

    def _fresh(self, name: str) -> str:
        """A name that occurs nowhere in the statement."""
        number = 1
        while f"{name}_{number}" in self._words:
            number += 1
        self._words.add(f"{name}_{number}")
        return f"{name}_{number}"


Levels = tuple[Sequence[Item], ...]
"""What the queries around some place read from, from the innermost on."""


def requalify(reference: Node, levels: Levels) -> None:
    """Calls a column by the name of its table alone, if it is of a ruled table and called by schema and table.

    Raises:
        ForbiddenObject: another table of that name stands between.
    """
    fields = reference["fields"]
    key = strings(fields)[-3:-1]
    if len(key) < 2:
        return
    between = False
    for level in levels:
        owner = next((item for item in level if item.key == key), None)
        if owner is not None:
            if between and owner.table and owner.name == owner.called:
                raise refused(key[1], texts.SAME_NAME)
            if owner.table:
                reference["fields"] = [{"String": {"sval": owner.name}}, fields[-1]]
            return
        between = between or any(item.name == key[1] for item in level)
