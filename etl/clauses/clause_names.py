"""Finds the tables and columns that the words of a request name."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Column, Table
from etl.binding.request_findings import NotBound, RequestFindings
from etl.clauses.clause_tokens import Token
from etl.meaning.bound import BoundColumn, BoundCondition
from etl.meaning.decisions import JoinedRows
from etl.schemas.requirement import AmbiguityKind, Choice
from knowledge.language.atoms import key_of
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link

_EXACT = 0.93
_NEAR = 0.05
_LEAST_COLUMN = 0.6
_LEAST_MEANT = 0.7  # of a name by another word, which the answer says
_MOST_CHOICES = 12

Accepts = Callable[[Table, Column], bool]


@dataclass(frozen=True)
class NamedColumn:
    """A column of a table of the datasource.

    Attributes:
        factor: the column of the same table that it is multiplied by, if a figure is a product.
    """

    table: Table
    column: Column
    factor: str | None = None


_PROMPTS: dict[str, tuple[str, str]] = {
    "measure": ("“{0}”指哪个数值字段？", "Which figure is “{0}”?"),
    "date_column": ("按哪个日期？（{0}）", "By which date? ({0})"),
    "column": ("“{0}”指哪个字段？", "Which column is “{0}”?"),
    "table": ("“{0}”指哪张表？", "Which table is “{0}”?"),
}


def _prompt(kind: str, said: str) -> Text:
    chinese, english = _PROMPTS[kind]
    return Text(chinese.format(said), english.format(said))


def anything(_table: Table, _column: Column) -> bool:
    """Accept every column."""
    return True


def is_date(_table: Table, column: Column) -> bool:
    """Tell whether the column holds days or times of days."""
    return column.type.startswith(("date", "timestamp"))


def is_number(_table: Table, column: Column) -> bool:
    """Tell whether the column holds numbers."""
    base = column.type.partition("(")[0]
    return base in _NUMBERS


_NUMBERS = frozenset(
    ("smallint", "integer", "bigint", "numeric", "real", "double precision", "money")
)


def _is_written(said: str, column: Column) -> bool:
    """Tell whether the word is the column's own name or its comment."""
    names = [column.name] if column.comment is None else [column.name, column.comment]
    return key_of(said) in map(key_of, names)


class Names:
    """The names of one request; columns of its tables come before all others.

    Attributes:
        asked: words of which the user is asked what they name.
    """

    def __init__(self, catalog: Catalog, lexicon: Lexicon, findings: RequestFindings) -> None:
        self._catalog = catalog
        self._lexicon = lexicon
        self._sources: list[TableKey] = []
        self._findings = findings
        self.asked: set[str] = set()

    @property
    def sources(self) -> tuple[TableKey, ...]:
        """Return the tables of the request, the base first."""
        return tuple(self._sources)

    def add(self, key: TableKey) -> None:
        """Add a table to those of the request."""
        if key not in self._sources:
            self._sources.append(key)

    def of(self, key: TableKey) -> Table:
        """Return the table."""
        return self._catalog.by_key[key]

    def is_measure(self, table: Table, column: Column) -> bool:
        """Tell whether the column holds figures that can be added, and no keys or codes."""
        if not is_number(table, column):
            return False
        return self._lexicon.schema.facts[table.key].is_measure(column)

    def label(self, table: Table, column: Column | None = None) -> str:
        """Return how people read the name, with the stored one."""
        stored = table.name if column is None else f"{table.name}.{column.name}"
        comment = table.comment if column is None else column.comment
        return f"{stored} ({comment})" if comment else stored

    def reference(self, table: Table, column: str) -> str:
        """Return the column as an intent writes it."""
        return f"{self.name_of(table)}.{column}"

    def name_of(self, table: Table) -> str:
        """Return what the intent calls the table: of several with its name, one with its schema."""
        if len(self._catalog.by_name[table.name]) == 1:
            return table.name
        if table.schema == self._catalog.search_path[0]:
            return table.name
        return f"{table.schema}_{table.name}"

    # --------------------------------------------------------------------------
    # tables

    def table(self, token: Token, order: int) -> Table | None:
        """Return the table that the word names; None when it names none or has to be asked."""
        links = [link for link in token.links("table") if link.quality >= _LEAST_COLUMN]
        if not links:
            return None
        best = [link for link in links if link.quality >= links[0].quality - _NEAR]
        keys = list(dict.fromkeys(link.table for link in best))
        if len(keys) == 1:
            return self.of(keys[0])
        choices = [self._table_choice(key) for key in keys[:_MOST_CHOICES]]
        chosen = self.ask("table", token.text, _prompt("table", token.text), choices, order)
        for key in keys:
            if chosen == self._table_choice(key).value:
                return self.of(key)
        return None

    def _table_choice(self, key: TableKey) -> Choice:
        table = self.of(key)
        is_alone = len(self._catalog.by_name[table.name]) == 1
        value = table.name if is_alone else f"{table.schema}.{table.name}"
        return Choice(value=value, label=self.label(table))

    # --------------------------------------------------------------------------
    # columns

    def column(
        self,
        token: Token,
        order: int,
        accepts: Accepts = anything,
        kind: AmbiguityKind = "column",
        among: Collection[TableKey] | None = None,
    ) -> NamedColumn | None:
        """Return the column that the word names; None when it names none or has to be asked.

        An exact name decides, or the only candidate, which is then an assumption. Of several the
        user is asked. Columns of the request's tables come before all others.
        """
        candidates = self._candidates(token, accepts, among)
        if not candidates:
            return None
        exact = [found for quality, found in candidates if quality >= _EXACT]
        written = [found for found in exact if _is_written(token.text, found.column)]
        exact = written or exact
        if len(exact) == 1:
            return exact[0]
        rest = exact or [found for quality, found in candidates if quality >= _LEAST_MEANT]
        if not rest:
            return None
        if len(rest) == 1:
            self._assume_meant(token.text, rest[0], order)
            return rest[0]
        return self.choose(kind, token.text, rest, order)

    def only(
        self, kind: AmbiguityKind, said: str, columns: Sequence[NamedColumn], order: int
    ) -> NamedColumn | None:
        """Return the only one of the columns, as an assumption; of several ask."""
        if len(columns) == 1:
            self._assume_meant(said, columns[0], order)
            return columns[0]
        return self.choose(kind, said, columns, order)

    def choose(
        self, kind: AmbiguityKind, said: str, columns: Sequence[NamedColumn], order: int
    ) -> NamedColumn | None:
        """Ask which of the columns is meant; return the answer if there is one already."""
        offered = {self.reference(one.table, one.column.name): one for one in columns}
        choices = []
        for value, one in list(offered.items())[:_MOST_CHOICES]:
            choices.append(Choice(value=value, label=self.label(one.table, one.column)))
        chosen = self.ask(kind, said, _prompt(kind, said), choices, order)
        return None if chosen is None else offered[chosen]

    def ask(
        self, kind: AmbiguityKind, said: str, prompt: Text, choices: Sequence[Choice], order: int
    ) -> str | None:
        """Return the value that was chosen for the word; None when it is asked first."""
        values = ", ".join(choice.value for choice in choices)
        try:
            return self._findings.choose(kind, f"{said}: {values}", prompt, choices, order)
        except NotBound:
            self.asked.add(said)
            return None

    def column_called(self, said: str) -> NamedColumn | None:
        """Return the one column of the request's tables with exactly this name or comment."""
        found = []
        for key in self._sources:
            table = self.of(key)
            for column in table.columns:
                if _is_written(said, column):
                    found.append(NamedColumn(table, column))
        return found[0] if len(found) == 1 else None

    def dates(self) -> list[NamedColumn]:
        """Return the date columns of the request's tables, of the base first.

        Of a base for which the semantic file names the date, this one alone.
        """
        found = []
        for key in self._sources:
            table = self.of(key)
            meant = self._meant_date(table)
            if meant is not None and key == self._sources[0]:
                return [meant]
            for column in table.columns:
                if is_date(table, column):
                    found.append(NamedColumn(table, column))
        return found

    def _meant_date(self, table: Table) -> NamedColumn | None:
        if table.meaning is None or table.meaning.date_column is None:
            return None
        column = table.column(table.meaning.date_column)
        return NamedColumn(table, column) if column is not None else None

    def _candidates(
        self, token: Token, accepts: Accepts, among: Collection[TableKey] | None
    ) -> list[tuple[float, NamedColumn]]:
        """Return the columns that the word may name, best first, without repeats."""
        found: dict[tuple[TableKey, str], tuple[float, NamedColumn]] = {}
        for link in token.links("column"):
            named = self._linked(link)
            if named is None or link.quality < _LEAST_COLUMN:
                continue
            if not accepts(named.table, named.column):
                continue
            found.setdefault((link.table, named.column.name), (link.quality, named))
        own = {key: value for key, value in found.items() if key[0] in self._sources}
        if among is not None:
            own = {key: value for key, value in found.items() if key[0] in among}
        return list((own or found).values())

    def _linked(self, link: Link) -> NamedColumn | None:
        table = self.of(link.table)
        column = table.column(link.column or "")
        if column is None:
            return None
        if link.derived is not None and link.factor is None:
            return None
        return NamedColumn(table, column, link.factor)

    def _assume_meant(self, said: str, found: NamedColumn, order: int) -> None:
        label = self.label(found.table, found.column)
        text = Text(f"“{said}”理解为 {label}。", f"“{said}” is taken as {label}.")
        column = BoundColumn(self.name_of(found.table), found.column.name)
        decides = JoinedRows(column.source, ((BoundCondition(column, "not_null"),),))
        assumed = f"meant_{found.table.name}_{found.column.name}"
        self._findings.assume(assumed, text, order, decides=decides)
