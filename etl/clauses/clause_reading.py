"""What the readers of clauses share: the request so far, its names, and words that are left."""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import process

from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.clause_conditions import ConditionReader
from etl.clauses.clause_figures import FigureReader, FigureReading
from etl.clauses.clause_names import NamedColumn, Names
from etl.clauses.clause_tokens import Token
from etl.clauses.request_draft import Json, RequestDraft
from rules.schema.lexicon import Lexicon

# Kinds of words that change what is meant, so that none of them may be passed over.
_SAYING = (
    *("bucket", "sum", "avg", "max", "min", "median", "count", "distinct", "super", "top"),
    *("not", "cmp", "null", "notnull", "like", "between", "range", "share", "growth", "rank"),
    *("running", "previous", "fill", "exclude", "dedup", "aggregate", "unsupported", "trend"),
    *("instead", "lacking"),
)
_MOST_SUGGESTIONS = 3
_LIKE = 75


@dataclass
class RequestReading:
    """A request while its clauses are read.

    Attributes:
        lookups: names of tables that are only looked up (semi and anti joins), with their tables.
        is_follow_up: whether an earlier request is changed.
    """

    catalog: Catalog
    lexicon: Lexicon
    findings: RequestFindings
    names: Names
    draft: RequestDraft
    lookups: dict[str, Table]
    is_follow_up: bool = False

    @property
    def order(self) -> int:
        """Return the order of the operation that is read."""
        return self.draft.next_order

    # --------------------------------------------------------------------------
    # words

    def cover(self, tokens: Sequence[Token]) -> None:
        """Name the words that say something and that nothing has read."""
        for token in tokens:
            if _says_something(token):
                self.uncovered(token.text)

    def uncovered(self, word: str, suggestions: Sequence[str] = ()) -> None:
        """Refuse the request because of a word without a place."""
        text = Text(
            f"“{word}”在这里没有对应的表、字段或操作，没有被采用。",
            f"“{word}” is no table, column or step that is known here: nothing was done with it.",
        )
        near = suggestions or self._near(word)
        self.findings.refuse("unknown_name", text, near)

    def left_over(self, tokens: Sequence[Token]) -> None:
        """Name a whole clause that gives nothing, unless a word of it is named or asked about."""
        if self.findings.is_clear:
            self.uncovered(said(tokens))

    def _near(self, word: str) -> list[str]:
        """Return names of tables and columns that are spelled like the word."""
        names = set()
        for table in self.catalog.tables:
            names.add(table.name)
        for key in self.names.sources:
            names.update(column.name for column in self.names.of(key).columns)
        found = process.extract(word.lower(), sorted(names), limit=_MOST_SUGGESTIONS)
        kept: list[str] = []
        for name, score, _ in found:
            if score >= _LIKE:
                kept.append(name)
        return kept

    # --------------------------------------------------------------------------
    # tables

    @property
    def base(self) -> Table | None:
        """Return the table whose rows joins neither lose nor repeat."""
        if not self.names.sources:
            return None
        return self.names.of(self.names.sources[0])

    def tables_of(self, tokens: Sequence[Token]) -> list[Table]:
        """Return the tables that words name, each once."""
        tables: dict[TableKey, Table] = {}
        for token in tokens:
            if token.table is None:
                continue
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
            table = self.names.of(key)
            if place == 0 or self.names.name_of(table) in names:
                tables.append(table)
        return tables

    def left_of(self, right: Table) -> str:
        """Return the joined table that a foreign key ties to this one; else the base."""
        joined = self.joined()
        tied = []
        for table in joined:
            if table.key != right.key and are_tied(table, right):
                tied.append(table)
        left = tied[0] if len(tied) == 1 else joined[0]
        return self.names.name_of(left)

    # --------------------------------------------------------------------------
    # figures and conditions

    def figures(self, tokens: Sequence[Token]) -> FigureReading:
        """Return the keys and figures of a clause; conditions in it are added."""
        reader = FigureReader(tokens, self.names, self.lexicon, self.findings, self.order)
        reading = reader.read()
        for word in reading.uncovered:
            self.uncovered(word)
        if reading.conditions:
            self._add_conditions(reading.conditions)
        return reading

    def _add_conditions(self, tokens: Sequence[Token]) -> None:
        """Add the conditions that stand among figures: "amount of paid orders in 2024"."""
        reader = ConditionReader(tokens, self.names, self.findings, self.order)
        reading = reader.read(excludes=False)
        for word in reading.uncovered:
            self.uncovered(word)
        if reading.conditions:
            self.add_tables_of(reading.conditions)
            self.draft.add_row_filter(reading.conditions)

    def add_tables_of(self, conditions: Sequence[Json]) -> None:
        """Add the tables whose columns conditions compare to those of the request."""
        for condition in conditions:
            for one in condition.get("any", [condition]):
                name, dot, _ = one["column"].partition(".")
                table = self.names.called(name) if dot else None
                if table is not None:
                    self.names.add(table.key)

    def add_figures(self, reading: FigureReading) -> Json:
        """Add keys and figures to the aggregate, which is made when there is none yet."""
        aggregate = self.draft.make_aggregate()
        for key in reading.keys:
            if key not in aggregate["group_by"]:
                aggregate["group_by"].append(key)
        names = set()
        for measure in aggregate["measures"]:
            names.add(measure["as"])
        for measure in reading.measures:
            if measure["as"] not in names:
                aggregate["measures"].append(measure)
        return aggregate

    def only_date(self, word: str) -> NamedColumn | None:
        """Return the date of the base, else of any table; of several the user is asked."""
        dates = self.names.dates()
        own = []
        for named in dates:
            if named.table.key == self.names.sources[0]:
                own.append(named)
        if not dates:
            self.uncovered(word)
            return None
        return self.names.only("date_column", word, own or dates, self.order)


def _says_something(token: Token) -> bool:
    if token.mark.is_unknown and not token.mark.is_skippable:
        return True
    if token.mark.date is not None:
        return True
    if token.table is None and (token.names or token.mark.literal is not None):
        return True
    return token.means(*_SAYING)


def are_tied(one: Table, other: Table) -> bool:
    """Tell whether a foreign key of one table refers to the other."""
    forward = any(key.target == other.key for key in one.foreign_keys)
    backward = any(key.target == one.key for key in other.foreign_keys)
    return forward or backward


def said(tokens: Sequence[Token]) -> str:
    """Return words as they were written."""
    parts: list[str] = []
    for token in tokens:
        has_blank = bool(parts) and token.is_apart
        parts.append(f" {token.text}" if has_blank else token.text)
    return "".join(parts)
