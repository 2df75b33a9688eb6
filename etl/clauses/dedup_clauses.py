"""Reads clauses that leave one row for each key."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.values import ForeignKey, Table
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_names import NamedColumn, named_columns
from etl.clauses.clause_reading import ClauseReader
from etl.clauses.clause_tokens import Token, place_of, words_without
from etl.clauses.request_draft import Json

_DIRECTIONS = {"+": "desc", "-": "asc"}


@dataclass(frozen=True)
class _Parts:
    """The words before the keys of a dedup, the keys, and the words that say which row stays."""

    before: Sequence[Token]
    keys: Sequence[Token]
    newest: Sequence[Token]


class DedupClauses(ClauseReader):
    """Adds the dedup of a request."""

    def take(self, clause: Clause) -> None:
        """Leave one row of a table for each key."""
        parts = _parts_of(clause.tokens)
        table = self._table_before(parts.before) or self._reading.base
        keys: list[NamedColumn] = []
        for token in parts.keys:
            if not token.names:
                self._reading.refuse_unread([token])
                continue

            keys += self._keys_of(token, table)
            if table is None and keys:
                table = keys[0].table

        if table is None or not keys:
            self._reading.refuse_clause(clause.tokens)
            return

        self._names.add_source(table.key)
        parameters = {
            "table": self._names.name_of(table),
            "keys": [named.column.name for named in keys],
            "order_by": self._sorting(parts.newest),
            "keep": "first",
        }
        self._draft.add("dedup", parameters)

    def take_newest(self, clause: Clause) -> None:
        """Set the order of the dedup before, whose first row stays."""
        for parameters in self._draft.of("dedup"):
            parameters["order_by"] = self._sorting(clause.tokens)

    def _table_before(self, tokens: Sequence[Token]) -> Table | None:
        """Return the table that stands before the keys."""
        table = None
        for token in tokens:
            if token.table is not None:
                table = self._names.table(token, self._reading.order)
            elif not token.means("dedup"):
                self._reading.refuse_unread([token])

        return table

    def _keys_of(self, token: Token, table: Table | None) -> list[NamedColumn]:
        """Return the columns that a word of the keys names: for a table, those that refer to it."""
        among = None
        if table is not None:
            among = [table.key]
            referring = _referring(table, token)
            if referring:
                return referring

        named = self._names.column(token, self._reading.order, among=among)
        if named is not None:
            return [named]
        if token.text not in self._names.asked:
            self._reading.refuse_word(token.text)

        return []

    def _sorting(self, tokens: Sequence[Token]) -> list[Json]:
        """Return the order whose first row stays; empty where none is said or the user is asked."""
        place = place_of(tokens, "super")
        if place is None:
            return []

        word = tokens[place]
        named = self._named_column(tokens) or self._reading.only_date(word.text)
        if named is None:
            return []

        column = self._names.reference(named.table, named.column.name)
        direction = _DIRECTIONS.get(word.arg[:1], "desc")
        sorting: Json = {"column": column, "direction": direction}
        if direction == "desc" and named.column.nullable:
            sorting["nulls"] = "last"  # what has no value is neither the latest nor the highest

        return [sorting]

    def _named_column(self, tokens: Sequence[Token]) -> NamedColumn | None:
        """Return the column that stands beside the word for the highest or the newest."""
        for token in words_without(tokens, "super"):
            named = self._names.column(token, self._reading.order)
            if named is not None:
                return named

        return None


def _referring(table: Table, token: Token) -> list[NamedColumn]:
    """Return the columns of a table that refer to the one that a word names."""
    keys: list[ForeignKey] = []
    for key in table.foreign_keys:
        if key.target == token.table:
            keys.append(key)

    if len(keys) != 1:
        return []

    return named_columns(table, keys[0].columns)


def words_before_keys(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the words of a dedup in which its table stands."""
    return _parts_of(tokens).before


def _parts_of(tokens: Sequence[Token]) -> _Parts:
    newest: Sequence[Token] = ()
    end = place_of(tokens, "super")
    if end is not None:
        first = max(end - 1, 0)  # the column of 创建时间最新
        newest = tokens[first:]
        tokens = tokens[:first]

    by = place_of(tokens, "by")
    if by is None:
        return _Parts(tokens, (), newest)

    keys = words_without(tokens[by + 1 :], "dedup", "keep")
    return _Parts(tokens[:by], keys, newest)
