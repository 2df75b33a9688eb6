"""Reads clauses that join tables."""

from collections.abc import Collection, Iterator, Sequence

from common.meanings import TableKey
from common.values import Table
from etl.binding.join_links import are_comparable
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_names import NamedColumn, named_columns
from etl.clauses.clause_reading import ClauseReader, are_tied
from etl.clauses.clause_tokens import Token, says
from etl.clauses.request_draft import Json, RequestDraft, tables_in

_LOOKING_UP = ("semi", "anti")
_LEAST_KEY = 0.6  # quality of a name that may be a key


class JoinClauses(ClauseReader):
    """Adds the joins of a request."""

    def take(self, clause: Clause) -> None:
        """Join the tables that the clause names, by the columns that it gives."""
        keys = _key_tokens(clause.tokens)
        how = "inner" if says(clause.tokens, "inner") else "left"
        read: list[Token] = []
        for token in keys:
            if token.arg == "=":
                read.append(token)

        joined = self._reading.joined_keys()
        for table in self._reading.tables_of(clause.tokens):
            self._names.add_source(table.key)
            if table.key not in joined:
                read += self._join(table, keys, how)

        for token in clause.tokens:
            if token not in read:
                self._reading.refuse_unread([token])

    def _join(self, table: Table, keys: Sequence[Token], how: str) -> list[Token]:
        """Join a table; return the words of the columns by which it is joined."""
        parameters: Json = {
            "left": self._reading.left_of(table),
            "right": self._names.name_of(table),
            "how": how,
        }
        pairs: list[list[str]] = []
        used: list[Token] = []
        for words in _key_words(keys):
            pair = self._pair_of(words, table)
            if pair is not None:
                pairs.append(pair)
                used += words

        if pairs:
            parameters["on"] = pairs
            parameters["left"] = pairs[0][0].partition(".")[0]

        self._draft.add_join(parameters)
        return used

    def take_matched(self) -> None:
        """Keep only rows with a match: the joins so far become inner ones."""
        for parameters in self._draft.of("join"):
            if parameters["how"] == "left":
                parameters["how"] = "inner"

    def take_having(self, clause: Clause) -> None:
        """Join the last table of "only orders that have users" by an inner join."""
        base = self._reading.base
        for table in self._reading.tables_of(clause.tokens):
            if base is not None and table.key != base.key:
                self._names.add_source(table.key)
                self._join(table, (), "inner")

    def join_others(self) -> None:
        """Join the tables of which only columns are named, before all other operations.

        What these are tied to is joined before them, as are tables on which conditions stand.
        """
        first = self._needed_first()
        self._draft.begin_with(first)
        missing = self._missing()
        while missing:
            table = self._next(missing)
            missing.remove(table)
            left = self._reading.left_of(table)
            first.append({"left": left, "right": self._names.name_of(table), "how": "left"})
            self._draft.begin_with(first)
            self._names.assume_joined(table)

    def _needed_first(self) -> list[Json]:
        """Return the joins that have to come before others, or before conditions."""
        if self._missing():
            return list(_with_columns(self._draft))

        conditioned: set[str] = set()
        passed: list[Json] = []
        for action, parameters in self._draft.operations:
            if action == "filter" and "table" not in parameters:
                conditioned.update(tables_in(parameters["conditions"]))
            if action != "join" or parameters["how"] in _LOOKING_UP:
                continue

            passed.append(parameters)
            if parameters["right"] in conditioned:
                return passed

        return []

    def _missing(self) -> list[Table]:
        """Return the tables of the request that nothing joins yet."""
        joined = self._reading.joined_keys()
        missing: list[Table] = []
        for key in self._names.sources:
            if key not in joined:
                missing.append(self._names.table_by_key(key))

        return missing

    def _next(self, missing: Sequence[Table]) -> Table:
        """Return a table that is tied to one that is joined; else the first."""
        joined = self._reading.joined()
        for table in missing:
            if any(are_tied(table, other) for other in joined):
                return table

        return missing[0]

    # --------------------------------------------------------------------------
    # columns

    def _pair_of(self, words: Sequence[Token], right: Table) -> list[str] | None:
        """Return the columns by which a table is joined, its own one last."""
        if len(words) == 1:
            return self._pair_named(words[0], right)

        first, second = words
        return self._equal_pair(first, second, right) or self._equal_pair(second, first, right)

    def _equal_pair(self, left: Token, right: Token, right_table: Table) -> list[str] | None:
        """Return the pair that "left = right" names; None where one is of no fitting table."""
        joined = self._reading.joined_keys()
        own = self._column_among(left, joined)
        other = self._column_among(right, {right_table.key})
        if own is None or other is None:
            return None

        return [own, other]

    def _column_among(self, token: Token, keys: Collection[TableKey]) -> str | None:
        """Return the first column of these tables that a word may name."""
        for named in self._named_by(token):
            if named.table.key in keys:
                return self._names.reference(named.table, named.column.name)

        return None

    def _pair_named(self, token: Token, right: Table) -> list[str] | None:
        """Return the pair of columns of a joined table and this one that a word names.

        A declared key comes first, then columns of one name, then the other table's own key.
        """
        pairs: dict[int, list[str]] = {}
        for named in self._named_by(token):
            own = self._names.reference(named.table, named.column.name)
            for other in self._tables_opposite(named.table, right):
                for rank, name in _partners(named.table, named.column.name, other):
                    pair = [own, self._names.reference(other, name)]
                    if named.table.key == right.key:
                        pair.reverse()

                    pairs.setdefault(rank, pair)

        if not pairs:
            return None

        return pairs[min(pairs)]

    def _tables_opposite(self, table: Table, right: Table) -> list[Table]:
        """Return the tables that a column of a table may be joined with where `right` is joined."""
        lefts: dict[TableKey, Table] = {}
        for joined in self._reading.joined():
            if joined.key != right.key:
                lefts[joined.key] = joined

        if table.key == right.key:
            return list(lefts.values())
        if table.key in lefts:
            return [right]

        return []

    def _named_by(self, token: Token) -> Iterator[NamedColumn]:
        """Yield the columns of the request's tables that a word may name, best first."""
        for link in token.links("column"):
            if link.table not in self._names.sources or link.quality < _LEAST_KEY:
                continue

            table = self._names.table_by_key(link.table)
            column = link.column or ""
            yield from named_columns(table, [column])


def _key_tokens(tokens: Sequence[Token]) -> list[Token]:
    """Return the words behind `by` or `on`, which name the columns that join."""
    keys: list[Token] = []
    is_key = False
    for token in tokens:
        if token.means("by", "on"):
            is_key = True
        elif token.means("join", "left", "inner"):
            is_key = False
        elif not is_key or token.table is not None:
            continue
        elif token.links("column") or token.arg == "=":
            keys.append(token)

    return keys


def _key_words(keys: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the words of columns, two together where "=" stands between them."""
    rest = keys
    while rest:
        is_pair = len(rest) > 2 and rest[1].means("cmp")
        if is_pair:
            yield (rest[0], rest[2])
            rest = rest[3:]
        else:
            yield (rest[0],)
            rest = rest[1:]


def _partners(table: Table, column: str, other: Table) -> Iterator[tuple[int, str]]:
    """Yield the columns of `other` that the column may be joined with, each with its rank."""
    for key in table.foreign_keys:
        if key.target == other.key:
            yield from _paired_with(column, key.columns, key.target_columns)

    for key in other.foreign_keys:
        if key.target == table.key:
            yield from _paired_with(column, key.target_columns, key.columns)

    if other.column(column) is not None:
        yield 1, column

    own_key = _key_for(table, column, other)
    if own_key is not None:
        yield 2, own_key


def _paired_with(
    column: str, columns: Sequence[str], others: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield the column of a declared key that stands opposite the column, with the first rank."""
    if column in columns:
        yield 0, others[columns.index(column)]


def _key_for(table: Table, column: str, other: Table) -> str | None:
    """Return the other table's key, if it is one column that this one can refer to."""
    own = table.column(column)
    if own is None or table.primary_key == (column,):
        return None
    if len(other.primary_key) != 1:
        return None

    target = other.column(other.primary_key[0])
    if target is None or not are_comparable(own.type, target.type):
        return None

    return target.name


def _with_columns(draft: RequestDraft) -> Iterator[Json]:
    """Yield the joins that bring in columns, and don't only look something up."""
    for join in draft.of("join"):
        if join["how"] not in _LOOKING_UP:
            yield join
