"""A request while its clauses are read, and what the readers of all kinds of clauses share."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rapidfuzz import process

from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_conditions import ConditionReader, ConditionReading
from etl.clauses.clause_figures import FigureReader, FigureReading
from etl.clauses.clause_names import NamedColumn, NameResolver
from etl.clauses.clause_tokens import Token, table_words
from etl.clauses.request_draft import Json, RequestDraft, alternatives_in
from rules.schema.lexicon import Lexicon

# Kinds of words that change what is meant, so that none of them may be passed over.
_TELLING = (
    *("bucket", "sum", "avg", "max", "min", "median", "count", "distinct", "super", "top"),
    *("not", "cmp", "null", "notnull", "like", "between", "range", "share", "growth", "rank"),
    *("running", "previous", "fill", "exclude", "dedup", "aggregate", "unsupported", "trend"),
    *("instead", "lacking"),
)
_MOST_SUGGESTIONS = 3
_LIKE = 75

_COUNT, _DISTINCT = "count", "count_distinct"


@dataclass(frozen=True)
class Exclusion:
    """Conditions of rows that go.

    Attributes:
        said: as they are said.
        kept: the same turned round, of rows that stay.
    """

    said: Sequence[Json]
    kept: Sequence[Json]


@dataclass
class RequestReading:
    """A request while its clauses are read.

    Attributes:
        lookups: names of tables that are only looked up (semi and anti joins), with their tables.
        selecting: tables that nothing but conditions names, which say which rows are kept.
        owned: tables of which the rows that are meant have some: "orders with refunds".
        together: conditions whose values are listed with "and".
        exclusions: what has been said of rows that go.
        is_follow_up: whether an earlier request is changed.
    """

    catalog: Catalog
    lexicon: Lexicon
    findings: RequestFindings
    names: NameResolver
    draft: RequestDraft
    lookups: dict[str, Table]
    selecting: set[TableKey] = field(default_factory=set)
    owned: set[TableKey] = field(default_factory=set)
    together: list[Json] = field(default_factory=list)
    exclusions: list[Exclusion] = field(default_factory=list)
    is_follow_up: bool = False

    @property
    def order(self) -> int:
        """Return the order that an operation has which is added now."""
        return self.draft.next_order

    # --------------------------------------------------------------------------
    # words

    def refuse_unread(self, tokens: Sequence[Token]) -> None:
        """Refuse the request for each of these words that says something and that nothing reads."""
        for token in tokens:
            if _says_something(token):
                self.refuse_word(token.text)

    def refuse_word(self, word: str, suggestions: Sequence[str] = ()) -> None:
        """Refuse the request because of a word that nothing can be done with."""
        text = Text(
            f"“{word}”在这里没有对应的表、字段或操作，没有被采用。",
            f"“{word}” is no table, column or step that is known here: nothing was done with it.",
        )
        near = suggestions or self._near(word)
        self.findings.refuse("unknown_name", text, near)

    def refuse_clause(self, tokens: Sequence[Token]) -> None:
        """Refuse a clause that gives nothing, unless something is refused or asked already."""
        if self.findings.is_clear:
            self.refuse_word(text_of_words(tokens))

    def _near(self, word: str) -> list[str]:
        """Return names of tables and columns that are spelled like the word."""
        names = set()
        for table in self.catalog.tables:
            names.add(table.name)

        for key in self.names.sources:
            for column in self.names.table_by_key(key).columns:
                names.add(column.name)

        matches = process.extract(
            word.lower(), sorted(names), limit=_MOST_SUGGESTIONS, score_cutoff=_LIKE
        )
        return [name for name, _, _ in matches]

    # --------------------------------------------------------------------------
    # tables

    @property
    def base(self) -> Table | None:
        """Return the table whose rows joins neither lose nor repeat."""
        if not self.names.sources:
            return None

        return self.names.table_by_key(self.names.sources[0])

    def tables_of(self, tokens: Sequence[Token]) -> list[Table]:
        """Return the tables that words name, each once."""
        tables: dict[TableKey, Table] = {}
        for token in table_words(tokens):
            table = self.names.table(token, self.order)
            if table is not None:
                tables.setdefault(table.key, table)

        return list(tables.values())

    def joined(self) -> list[Table]:
        """Return the base and the tables that operations have joined so far."""
        names = set()
        for join in self.draft.of("join"):
            names.add(join["right"])

        tables = []
        for place, key in enumerate(self.names.sources):
            table = self.names.table_by_key(key)
            if place == 0 or self.names.name_of(table) in names:
                tables.append(table)

        return tables

    def joined_keys(self) -> set[TableKey]:
        """Return the keys of the base and of the tables that are joined so far."""
        return {table.key for table in self.joined()}

    def left_of(self, right: Table) -> str:
        """Return the joined table that a foreign key ties to this one; else the base."""
        joined = self.joined()
        tied = []
        for table in joined:
            is_other = table.key != right.key
            if is_other and are_tied(table, right):
                tied.append(table)

        if len(tied) == 1:
            return self.names.name_of(tied[0])

        return self.names.name_of(joined[0])

    # --------------------------------------------------------------------------
    # figures and conditions

    def figures(self, tokens: Sequence[Token]) -> FigureReading:
        """Return the keys and figures of a clause; conditions in it are added."""
        has_base = bool(self.names.sources)
        reading = self._read_figures(tokens)
        if not has_base and self._begin_with_measured(reading):
            reading = self._read_figures(tokens)  # rows of another base are counted otherwise

        for word in reading.uncovered:
            self.refuse_word(word)

        if not reading.conditions:
            return reading

        among = self.conditions(reading.conditions)  # "amount of paid orders in 2024"
        if among.conditions:
            self.add_tables_of(among.conditions)
            self.draft.add_row_filter(among.conditions)

        return reading

    def _read_figures(self, tokens: Sequence[Token]) -> FigureReading:
        reader = FigureReader(tokens, self.names, self.lexicon, self.findings, self.order)
        return reader.read()

    def _begin_with_measured(self, reading: FigureReading) -> bool:
        """Make the table of the figures the base, wherever their groups are said.

        Otherwise rows that belong to no group would be in no group's figure. Where rows of several
        tables are measured, one of them counted, those of one alone are all in it: which is asked.
        """
        tables: dict[TableKey, Table] = {}
        for measure in reading.measures:
            table = self._measured_table(measure)
            if table is not None:
                tables.setdefault(table.key, table)

        if not tables or self.base is None:
            return False

        first = next(iter(tables.values()))
        is_counted = any(measure["function"] == _COUNT for measure in reading.measures)
        if is_counted and len(tables) > 1:
            chosen = self.names.only_base(list(tables.values()), self.order)
            first = chosen or first

        is_other = first.key != self.base.key
        self.names.make_base(first.key)
        return is_other

    def _measured_table(self, measure: Json) -> Table | None:
        """Return the table whose rows a figure adds up or counts; None for different values."""
        if measure["function"] == _DISTINCT:
            return None

        name, dot, column = str(measure.get("column", "")).partition(".")
        if not dot:
            if measure["function"] == _COUNT:
                return self.base

            return None

        table = self.names.table_named(name)
        is_of_values = measure["function"] == _COUNT
        if table is not None and is_of_values and list(table.primary_key) != [column]:
            return None

        return table

    def conditions(
        self,
        tokens: Sequence[Token],
        *,
        names: NameResolver | None = None,
        measures: Sequence[Json] = (),
        excludes: bool = False,
    ) -> ConditionReading:
        """Return the conditions that words say; words that are no part of one are refused.

        Args:
            names: the tables that the words are about; None: those of the request.
            measures: the measures of the aggregate before, which conditions may be about.
            excludes: whether the words say which rows go.
        """
        about = names or self.names
        reader = ConditionReader(tokens, about, self.findings, self.order, measures)
        reading = reader.read(excludes=excludes)
        self.together += reading.together
        for word in reading.uncovered:
            self.refuse_word(word)

        return reading

    def add_tables_of(self, conditions: Sequence[Json], *, excludes: bool = False) -> None:
        """Add the tables whose columns conditions compare to those of the request."""
        for condition in conditions:
            for one in alternatives_in(condition):
                name, dot, _ = one["column"].partition(".")
                if not dot:
                    continue

                table = self.names.table_named(name)
                if table is None:
                    continue
                if not excludes and table.key not in self.names.sources:
                    self.selecting.add(table.key)

                self.names.add_source(table.key)

    def add_figures(self, reading: FigureReading) -> Json:
        """Add keys and figures to the aggregate, which is made when there is none yet."""
        aggregate = self.draft.make_aggregate()
        for key in reading.keys:
            if not _has_key(aggregate["group_by"], key):
                aggregate["group_by"].append(key)

        names = {measure["as"] for measure in aggregate["measures"]}
        for measure in reading.measures:
            if measure["as"] not in names:
                aggregate["measures"].append(measure)

        return aggregate

    def asked_sum(self, words: str, columns: Sequence[NamedColumn]) -> Json | None:
        """Return the sum of the column that words mean; None while the user is asked which one."""
        named = self.names.only("measure", words, columns, self.order)
        if named is None:
            return None

        self.names.add_source(named.table.key)
        column = self.names.reference(named.table, named.column.name)
        return {"function": "sum", "column": column, "as": f"{named.column.name}_sum"}

    def only_date(self, word: str) -> NamedColumn | None:
        """Return the only date of the base, else of any table; None while the user is asked."""
        dates = self.names.dates()
        if not dates:
            self.refuse_word(word)
            return None

        own = []
        for named in dates:
            if named.table.key == self.names.sources[0]:
                own.append(named)

        return self.names.only("date_column", word, own or dates, self.order)


def _has_key(keys: Sequence[Json], key: Json) -> bool:
    """Tell whether a key is there; a period without a date is the one that is cut already."""
    if key in keys:
        return True
    if "unit" not in key or "column" in key:
        return False

    units = {other.get("unit") for other in keys}
    return key["unit"] in units


class ClauseReader:
    """Reads clauses of some kinds into a request.

    Args:
        reading: the reading of the request, which is changed.
    """

    def __init__(self, reading: RequestReading) -> None:
        self._reading = reading
        self._names = reading.names
        self._draft = reading.draft


def _says_something(token: Token) -> bool:
    """Tell whether a request is misunderstood if the word is passed over."""
    mark = token.mark
    if mark.is_unknown and not mark.is_skippable:
        return True
    if mark.date is not None or token.means(*_TELLING):
        return True
    if token.table is not None:
        return False

    return token.names or mark.literal is not None


def are_tied(one: Table, other: Table) -> bool:
    """Tell whether a foreign key of one table refers to the other."""
    forward = {key.target for key in one.foreign_keys}
    backward = {key.target for key in other.foreign_keys}
    return other.key in forward or one.key in backward


def text_of_words(tokens: Sequence[Token]) -> str:
    """Return words as they were written."""
    words = ""
    for token in tokens:
        if words and token.is_apart:
            words += " "

        words += token.text

    return words
