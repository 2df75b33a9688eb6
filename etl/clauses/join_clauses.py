"""Reads clauses that join tables."""

from collections.abc import Iterator, Sequence

from common.values import Table
from etl.binding.join_links import are_comparable
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_names import NamedColumn
from etl.clauses.clause_reading import RequestReading, are_tied
from etl.clauses.clause_tokens import Token, says
from etl.clauses.request_draft import Json, RequestDraft

_LOOKING_UP = ("semi", "anti")
_LEAST_KEY = 0.6  # quality of a name that may be a key


class JoinClauses:
    """Adds the joins of a request.

    Args:
        reading: of the request, which is changed.
    """

    def __init__(self, reading: RequestReading) -> None:
        self._reading = reading
        self._names = reading.names

    def take(self, clause: Clause) -> None:
        """Join the tables that the clause names, by the columns that it gives."""
        keys = _key_tokens(clause.tokens)
        how = "inner" if says(clause.tokens, "inner") else "left"
        read = [token for token in keys if token.arg == "="]
        joined = [table.key for table in self._reading.joined()]
        for table in self._reading.tables_of(clause.tokens):
            self._names.add(table.key)
            if table.key not in joined:
                read += self._join(table, keys, how)
        self._reading.cover([token for token in clause.tokens if token not in read])

    def _join(self, table: Table, keys: Sequence[Token], how: str) -> list[Token]:
        """Join a table; return the words of the columns by which it is joined."""
        parameters: Json = {
            "left": self._reading.left_of(table),
            "right": self._names.name_of(table),
            "how": how,
        }
        pairs: list[list[str]] = []
        used: list[Token] = []
        for first, second in _key_pairs(keys):
            pair = self._pair_of(first, table) if second is None else None
            if second is not None:
                pair = self._equal_pair(first, second, table)
            if pair is not None:
                pairs.append(pair)
                used += [token for token in (first, second) if token is not None]
        if pairs:
            parameters["on"] = pairs
            parameters["left"] = pairs[0][0].partition(".")[0]
        self._reading.draft.add_join(parameters)
        return used

    def _equal_pair(self, first: Token, second: Token, right: Table) -> list[str] | None:
        """Return the pair that "a = b" names, the joined table's column first."""
        joined = [table.key for table in self._reading.joined()]
        for left_token, right_token in ((first, second), (second, first)):
            lefts = [one for one in self._named_by(left_token) if one.table.key in joined]
            rights = [one for one in self._named_by(right_token) if one.table.key == right.key]
            if lefts and rights:
                one, other = lefts[0], rights[0]
                left = self._names.reference(one.table, one.column.name)
                return [left, self._names.reference(other.table, other.column.name)]
        return None

    def take_matched(self) -> None:
        """Keep only rows with a match: the joins so far become inner ones."""
        for parameters in self._reading.draft.of("join"):
            if parameters["how"] == "left":
                parameters["how"] = "inner"

    def take_having(self, clause: Clause) -> None:
        """Join the last table of "only orders that have users" by an inner join."""
        base = self._reading.base
        for table in self._reading.tables_of(clause.tokens):
            if base is not None and table.key != base.key:
                self._names.add(table.key)
                self._join(table, (), "inner")

    def join_others(self) -> None:
        """Join the tables that only a column of the request named, before all else.

        What these are tied to is joined before them, as are tables on which conditions stand.
        """
        draft = self._reading.draft
        first = self._needed_first()
        draft.begin_with(first)
        missing = self._missing()
        while missing:
            table = self._next(missing)
            missing.remove(table)
            left = self._reading.left_of(table)
            first.append({"left": left, "right": self._names.name_of(table), "how": "left"})
            draft.begin_with(first)
            self._names.assume_joined(table)

    def _needed_first(self) -> list[Json]:
        """Return the joins that have to come before others, or before conditions."""
        draft = self._reading.draft
        if self._missing():
            return list(_with_columns(draft))
        conditioned: set[str] = set()
        passed: list[Json] = []
        for action, parameters in draft.operations:
            if action == "filter" and "table" not in parameters:
                conditioned.update(_tables_in(parameters["conditions"]))
            if action != "join" or parameters["how"] in _LOOKING_UP:
                continue
            passed.append(parameters)
            if parameters["right"] in conditioned:
                return passed
        return []

    def _missing(self) -> list[Table]:
        joined = set()
        for table in self._reading.joined():
            joined.add(table.key)
        found: list[Table] = []
        for key in self._names.sources:
            if key not in joined:
                found.append(self._names.of(key))
        return found

    def _next(self, missing: Sequence[Table]) -> Table:
        """Return a table that is tied to one that is joined; else the first."""
        joined = self._reading.joined()
        for table in missing:
            if any(are_tied(table, other) for other in joined):
                return table
        return missing[0]

    # --------------------------------------------------------------------------
    # columns

    def _pair_of(self, token: Token, right: Table) -> list[str] | None:
        """Return the pair of columns of a joined table and this one that a word names.

        A declared key comes first, then columns of one name, then the other table's own key.
        """
        found: dict[int, list[str]] = {}
        for named in self._named_by(token):
            for left in self._reading.joined():
                if named.table.key not in (left.key, right.key) or left.key == right.key:
                    continue
                other = left if named.table.key == right.key else right
                for rank, name in _partners(named.table, named.column.name, other):
                    own = self._names.reference(named.table, named.column.name)
                    partner = self._names.reference(other, name)
                    pair = [partner, own] if other is left else [own, partner]
                    found.setdefault(rank, pair)
        return found[min(found)] if found else None

    def _named_by(self, token: Token) -> Iterator[NamedColumn]:
        """Yield the columns of the request's tables that a word may name, best first."""
        for link in token.links("column"):
            table = self._names.of(link.table)
            column = table.column(link.column or "")
            is_known = link.table in self._names.sources and link.quality >= _LEAST_KEY
            if is_known and column is not None:
                yield NamedColumn(table, column)


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


def _key_pairs(keys: Sequence[Token]) -> Iterator[tuple[Token, Token | None]]:
    """Yield the words of columns, two together where "=" stands between them."""
    place = 0
    while place < len(keys):
        joint = keys[place + 1 : place + 2]
        is_pair = bool(joint) and joint[0].means("cmp") and place + 2 < len(keys)
        yield keys[place], keys[place + 2] if is_pair else None
        place += 3 if is_pair else 1


def _partners(table: Table, column: str, other: Table) -> Iterator[tuple[int, str]]:
    """Yield the columns of `other` that the column may be joined with, each with its rank."""
    for key in table.foreign_keys:
        if key.target == other.key and column in key.columns:
            yield 0, key.target_columns[key.columns.index(column)]
    for key in other.foreign_keys:
        if key.target == table.key and column in key.target_columns:
            yield 0, key.columns[key.target_columns.index(column)]
    if other.column(column) is not None:
        yield 1, column
    own_key = _key_for(table, column, other)
    if own_key is not None:
        yield 2, own_key


def _key_for(table: Table, column: str, other: Table) -> str | None:
    """Return the other table's key, if it is one column that this one can refer to."""
    own = table.column(column)
    is_own_key = table.primary_key == (column,)
    if own is None or is_own_key or len(other.primary_key) != 1:
        return None
    target = other.column(other.primary_key[0])
    if target is None or not are_comparable(own.type, target.type):
        return None
    return target.name


def _tables_in(conditions: Sequence[Json]) -> Iterator[str]:
    """Yield the names of the tables whose columns conditions compare."""
    for condition in conditions:
        for one in condition.get("any", [condition]):
            yield one["column"].partition(".")[0]


def _with_columns(draft: RequestDraft) -> Iterator[Json]:
    """Yield the joins that bring in columns, and don't only look something up."""
    for join in draft.of("join"):
        if join["how"] not in _LOOKING_UP:
            yield join
