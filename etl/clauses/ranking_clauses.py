"""Reads clauses that compute over the rows of the result: running totals, earlier values, ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.text import Text
from common.values import Table
from etl.clauses.clause_cutting import Clause
from etl.clauses.clause_figures import FigureReading
from etl.clauses.clause_names import NamedColumn, named_columns
from etl.clauses.clause_reading import ClauseReader, are_tied, text_of_words
from etl.clauses.clause_tokens import Token, naming_words, place_of, says, table_words, token_at
from etl.clauses.request_draft import Json, condition
from etl.meaning.bound import BoundColumn, BoundCondition
from etl.meaning.decisions import FilteredRows, TargetRows

_TIES_STAY = Text(
    "并列的行名次相同，都保留。", "Rows that tie have the same rank, and all of them stay."
)
_RANKING_WORDS = ("top", "each", "by", "within", "super")


@dataclass(frozen=True)
class TopParts:
    """The parts of "top N X per D by M"."""

    count: int | None
    direction: str
    things: tuple[Token, ...]
    groups: tuple[Token, ...]
    figure: tuple[Token, ...]


@dataclass(frozen=True)
class _Group:
    """The columns within whose values rows are ranked: one, or the key of a table's rows."""

    columns: tuple[NamedColumn, ...]


class RankingClauses(ClauseReader):
    """Adds the windows of a request."""

    # --------------------------------------------------------------------------
    # along the periods

    def take_window(self, clause: Clause) -> None:
        """Add running totals, or the values of the period before."""
        reading = self._reading.figures(clause.tokens)
        aggregate = self._reading.add_figures(reading)
        measures = reading.measures or aggregate["measures"]
        sorting = self._sorting_key(aggregate)
        if sorting is None or not measures:
            self._reading.refuse_clause(clause.tokens)
            return

        others = []
        for key in aggregate["group_by"]:
            if key["as"] != sorting:
                others.append(key["as"])

        make = _running if clause.kind == "running" else _previous
        for measure in measures:
            self._draft.add("window", make(measure["as"], others, sorting))

    def _sorting_key(self, aggregate: Json) -> str | None:
        """Return the name of the period in the result, else of the first key."""
        period = self._draft.period
        if period is not None:
            return str(period["as"])

        keys = aggregate["group_by"]
        if keys:
            return str(keys[0]["as"])

        return None

    # --------------------------------------------------------------------------
    # the first of each group

    def take_top(self, clause: Clause) -> None:
        """Rank rows or groups, and keep the first ones."""
        parts = top_parts(clause.tokens)
        self._reading.refuse_unread(_unknown_words(clause.tokens))
        thing = self._thing(parts.things)
        measure = self._ranked_measure(parts)
        if parts.count is None or measure is None:
            self._reading.refuse_clause(clause.tokens)
            return

        groups = self._groups(parts.groups, thing)
        values = self._ranked_values(parts.things) if thing is None else []
        is_known = self._known_measure(measure) is not None
        if is_known or values or self._is_summed(thing, measure):
            keys = [self._key(named) for named in values]
            self._rank_groups(parts, thing, groups, measure, keys)
        else:
            self._rank_rows(parts, groups, measure)

    def _thing(self, tokens: Sequence[Token]) -> Table | None:
        """Return the table whose rows are ranked, which is the base when there is none yet."""
        for token in table_words(tokens):
            table = self._names.table(token, self._reading.order)
            if table is not None:
                self._names.add_source(table.key)
                return table

        return None

    def _ranked_values(self, tokens: Sequence[Token]) -> list[NamedColumn]:
        """Return the columns whose values are ranked, "top 3 cities", each with all of its rows.

        A column that alone is a table's key stands for the rows.
        """
        named: list[NamedColumn] = []
        for token in tokens:
            if token.names and token.table is None:
                column = self._names.column(token, self._reading.order)
                if column is not None and not _is_key(column):
                    named.append(column)

        return named

    def _ranked_measure(self, parts: TopParts) -> Json | None:
        """Return the figure that ranks: the one that is said, else the aggregate's only one."""
        if parts.figure:
            measures = self._reading.figures(parts.figure).measures
            if measures:
                return measures[0]

            return None

        known = self._draft.measures
        if not known:
            return self._asked_measure(parts)

        if len(known) == 1:
            return known[0]

        return None

    def _asked_measure(self, parts: TopParts) -> Json | None:
        """Return the figure to rank by where none is said; of several the user is asked."""
        base = self._reading.base
        if not parts.things or base is None:
            return None

        columns = self._names.measures_of(base)
        for table in self._reading.catalog.tables:
            if are_tied(base, table):
                columns += self._names.measures_of(table)

        if not columns:
            return None

        return self._reading.asked_sum(text_of_words(parts.things), columns)

    def _groups(self, tokens: Sequence[Token], thing: Table | None) -> list[_Group]:
        groups: list[_Group] = []
        for token in tokens:
            group = self._group(token, thing)
            if group is not None:
                groups.append(group)

        return groups

    def _group(self, token: Token, thing: Table | None) -> _Group | None:
        if token.table is not None:
            return self._group_of_table(token, thing)
        if not token.names:
            self._reading.refuse_unread([token])
            return None

        named = self._names.column(token, self._reading.order)
        if named is not None:
            return _Group((named,))
        if token.text not in self._names.asked:
            self._reading.refuse_word(token.text)

        return None

    def _group_of_table(self, token: Token, thing: Table | None) -> _Group | None:
        """Return the columns by which rows of one table are in one group."""
        table = self._names.table(token, self._reading.order)
        if table is None:
            return None

        ranked = thing or self._reading.base
        if ranked is not None:
            for key in ranked.foreign_keys:
                if key.target == table.key:
                    return _Group(tuple(named_columns(ranked, key.columns)))

        if not table.primary_key:
            self._reading.refuse_word(token.text)
            return None

        return _Group(tuple(named_columns(table, table.primary_key)))

    def _known_measure(self, measure: Json) -> Json | None:
        """Return the aggregate's figure that is computed alike; None where there is none."""
        signature = (measure["function"], measure.get("column"))
        for one in self._draft.measures:
            if (one["function"], one.get("column")) == signature:
                return one

        return None

    def _is_summed(self, thing: Table | None, measure: Json) -> bool:
        """Tell whether a thing has several values of the figure, which are summed."""
        if thing is None:
            return False
        if "column" not in measure:
            return True

        owner = str(measure["column"].partition(".")[0])
        return owner != self._names.name_of(thing)

    def _rank_groups(
        self,
        parts: TopParts,
        thing: Table | None,
        groups: Sequence[_Group],
        measure: Json,
        values: Sequence[Json],
    ) -> None:
        """Rank the groups of an aggregate by a figure of theirs.

        Args:
            values: keys of the aggregate beside the groups' and the thing's.
        """
        columns: list[NamedColumn] = []
        for group in groups:
            columns += group.columns

        if self._draft.aggregate is None:
            self._group_by(columns, thing, measure, values)

        partition: list[str] = []
        for named in columns:
            called = self._name_in_result(named)
            if called is None:
                self._reading.refuse_word(named.column.comment or named.column.name)
                return

            partition.append(called)

        ranked = self._known_measure(measure) or measure
        self._rank(parts, partition, str(ranked["as"]))

    def _group_by(
        self,
        columns: Sequence[NamedColumn],
        thing: Table | None,
        measure: Json,
        values: Sequence[Json],
    ) -> None:
        """Add the aggregate whose groups are ranked."""
        keys = [self._key(named) for named in columns]
        if thing is not None:
            keys += self._keys_of_rows(thing, keys)

        taken = {key["column"] for key in keys}
        for key in values:
            if key["column"] not in taken:
                keys.append(key)

        self._reading.add_figures(FigureReading(keys=keys, measures=[measure]))

    def _keys_of_rows(self, thing: Table, taken: Sequence[Json]) -> list[Json]:
        """Return the keys that tell a table's rows apart, but those that are taken."""
        columns = {key["column"] for key in taken}
        keys: list[Json] = []
        for key in self._names.row_keys(thing):
            if key["column"] not in columns:
                keys.append(key)

        return keys

    def _name_in_result(self, named: NamedColumn) -> str | None:
        """Return the column's name in the result; None where a group has several values of it.

        A column of a table that is grouped by its primary key is added to the keys.
        """
        keys = self._draft.keys
        column = self._names.reference(named.table, named.column.name)
        columns = {key.get("column"): str(key["as"]) for key in keys}
        if column in columns:
            return columns[column]

        own = {self._names.reference(named.table, name) for name in named.table.primary_key}
        is_row = bool(own) and own <= columns.keys()
        if not is_row:
            return None

        key = self._key(named)
        if key["as"] in columns.values():
            key["as"] = self._names.key_name(named.table, named.column.name)

        keys.append(key)
        return str(key["as"])

    def _key(self, named: NamedColumn) -> Json:
        self._names.add_source(named.table.key)
        column = self._names.reference(named.table, named.column.name)
        return {"column": column, "as": named.column.name}

    def _rank_rows(self, parts: TopParts, groups: Sequence[_Group], measure: Json) -> None:
        """Rank the base's rows by a column of theirs."""
        partition: list[str] = []
        for group in groups:
            for named in group.columns:
                self._names.add_source(named.table.key)
                partition.append(self._names.reference(named.table, named.column.name))

        self._rank(parts, partition, measure["column"])

    def _leave_out_missing(self, column: str) -> None:
        """Leave out what has no value to rank by: PostgreSQL would rank it before all others."""
        self._draft.add("filter", {"conditions": [{"column": column, "operator": "not_null"}]})
        source, _, name = column.rpartition(".")
        bound = BoundColumn(source, name)
        order = len(self._draft.operations)
        text = Text(f"没有 {name} 的行不参加排名。", f"Rows without {name} are not ranked.")
        decides = FilteredRows(order, bound, ((BoundCondition(bound, "is_null"),),))
        self._reading.findings.assume("not_ranked", text, order, decides=decides)

    def _rank(self, parts: TopParts, partition: Sequence[str], column: str) -> None:
        self._leave_out_missing(column)
        window = {
            "function": "rank",
            "partition_by": list(partition),
            "order_by": [{"column": column, "direction": parts.direction}],
            "as": "rank",
        }
        self._draft.add("window", window)
        self._draft.add("filter", {"conditions": [condition("rank", "<=", parts.count)]})
        order = len(self._draft.operations)
        self._reading.findings.assume("ties_stay", _TIES_STAY, order, decides=TargetRows(ties=True))


def _unknown_words(tokens: Sequence[Token]) -> list[Token]:
    """Return the words that neither name anything nor belong to a ranking."""
    unknown = []
    for token in tokens:
        if not token.names and not token.means(*_RANKING_WORDS):
            unknown.append(token)

    return unknown


def _is_key(named: NamedColumn) -> bool:
    return list(named.table.primary_key) == [named.column.name]


def _running(name: str, others: Sequence[str], sorting: str) -> Json:
    return {
        "function": "sum",
        "column": name,
        "partition_by": list(others),
        "order_by": [{"column": sorting, "direction": "asc"}],
        "as": f"{name}_running",
    }


def _previous(name: str, others: Sequence[str], sorting: str) -> Json:
    window = _running(name, others, sorting)
    return {**window, "function": "lag", "as": f"{name}_previous", "offset": 1}


# ------------------------------------------------------------------------------
# the words of a ranking


def top_parts(tokens: Sequence[Token]) -> TopParts:
    """Return the parts of a clause that ranks."""
    place = place_of(tokens, "top", "super") or 0
    before, word, behind = tokens[:place], tokens[place], tokens[place + 2 :]
    number = token_at(tokens, place + 1).mark.number
    count = int(number.value) if number is not None else None
    direction = "asc" if word.arg.startswith("-") else "desc"
    bare = TopParts(count, direction, (), (), ())
    if word.text.isascii():
        return _english_parts(bare, behind)

    return _chinese_parts(bare, before, behind)


def _chinese_parts(bare: TopParts, before: Sequence[Token], behind: Sequence[Token]) -> TopParts:
    """Read 每个 D 中 M 前 N 的 X."""
    named = naming_words(before)
    most = 1 if says(before, "each") else 0
    groups, figure = tuple(named[:most]), tuple(named[most:])
    return replace(bare, things=tuple(behind), groups=groups, figure=figure)


def _english_parts(bare: TopParts, behind: Sequence[Token]) -> TopParts:
    """Read top N X per D by M."""
    parts: dict[str, list[Token]] = {"things": [], "groups": [], "figure": []}
    place = "things"
    for token in behind:
        if token.means("each"):
            place = "groups"
        elif token.means("by"):
            place = "figure"
        elif not (token.means("within") or token.is_break):
            parts[place].append(token)

    things, groups, figure = tuple(parts["things"]), tuple(parts["groups"]), tuple(parts["figure"])
    return replace(bare, things=things, groups=groups, figure=figure)
