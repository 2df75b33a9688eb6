"""Reads clauses that leave one row for each key."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.values import Table
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_names import NamedColumn
from etl.clauses.clause_reading import RequestReading
from etl.clauses.clause_tokens import Token
from etl.clauses.request_draft import Json

_DIRECTIONS = {"+": "desc", "-": "asc"}


@dataclass(frozen=True)
class _Parts:
    """The words before the keys of a dedup, the keys, and the words that say which row stays."""

    before: Sequence[Token]
    keys: Sequence[Token]
    newest: Sequence[Token]


class DedupClauses:
    """Adds the dedup of a request.

    Args:
        reading: of the request, which is changed.
    """

    def __init__(self, reading: RequestReading) -> None:
        self._reading = reading
        self._names = reading.names

    def take(self, clause: Clause) -> None:
        """Leave one row of a table for each key."""
        parts = _parts_of(clause.tokens)
        table = self._table_before(parts.before) or self._reading.base
        keys: list[NamedColumn] = []
        for token in parts.keys:
            if not token.names:
                self._reading.cover([token])
                continue
            found = self._keys_of(token, table)
            keys += found
            table = table or _table_of(found)
        if table is None or not keys:
            self._reading.left_over(clause.tokens)
            return
        self._names.add(table.key)
        parameters = {
            "table": self._names.name_of(table),
            "keys": [named.column.name for named in keys],
            "order_by": self._sorting(parts.newest) if parts.newest else [],
            "keep": "first",
        }
        self._reading.draft.add("dedup", parameters)

    def take_newest(self, clause: Clause) -> None:
        """Say which row of the dedup before stays."""
        for parameters in self._reading.draft.of("dedup"):
            parameters["order_by"] = self._sorting(clause.tokens)

    def _table_before(self, tokens: Sequence[Token]) -> Table | None:
        """Return the table that stands before the keys."""
        table = None
        for token in tokens:
            if token.table is not None:
                table = self._names.table(token, self._reading.order)
            elif not token.means("dedup"):
                self._reading.cover([token])
        return table

    def _keys_of(self, token: Token, table: Table | None) -> list[NamedColumn]:
        """Return the columns that a word of the keys names: of a table, those that refer to it."""
        if table is not None and token.table is not None:
            referring = _referring(table, token)
            if referring:
                return referring
        among = [table.key] if table is not None else None
        named = self._names.column(token, self._reading.order, among=among)
        if named is None:
            if token.text not in self._names.asked:
                self._reading.uncovered(token.text)
            return []
        return [named]

    def _sorting(self, tokens: Sequence[Token]) -> list[Json]:
        """Return the order whose first row stays; nothing when a date has to be asked first."""
        word = next(token for token in tokens if token.means("super"))
        named = self._named_column(tokens) or self._reading.only_date(word.text)
        if named is None:
            return []
        column = self._names.reference(named.table, named.column.name)
        return [{"column": column, "direction": _DIRECTIONS.get(word.arg[:1], "desc")}]

    def _named_column(self, tokens: Sequence[Token]) -> NamedColumn | None:
        for token in tokens:
            if not token.links("column") or token.means("super"):
                continue
            named = self._names.column(token, self._reading.order)
            if named is not None:
                return named
        return None


def _table_of(found: Sequence[NamedColumn]) -> Table | None:
    return found[0].table if found else None


def _referring(table: Table, token: Token) -> list[NamedColumn]:
    """Return the columns of a table that refer to the one that a word names."""
    found: list[NamedColumn] = []
    keys = []
    for key in table.foreign_keys:
        if key.target == token.table:
            keys.append(key)
    if len(keys) != 1:
        return []
    for name in keys[0].columns:
        column = table.column(name)
        if column is not None:
            found.append(NamedColumn(table, column))
    return found


def words_before_keys(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the words of a dedup in which its table stands."""
    return _parts_of(tokens).before


def _parts_of(tokens: Sequence[Token]) -> _Parts:
    end = next((at for at, token in enumerate(tokens) if token.means("super")), None)
    newest: Sequence[Token] = ()
    if end is not None:
        first = max(end - 1, 0)  # the column of 创建时间最新
        newest, tokens = tokens[first:], tokens[:first]
    by = next((at for at, token in enumerate(tokens) if token.means("by")), len(tokens))
    keys = []
    for token in tokens[by + 1 :]:
        if not token.means("dedup", "keep"):
            keys.append(token)
    return _Parts(tokens[:by], keys, newest)
