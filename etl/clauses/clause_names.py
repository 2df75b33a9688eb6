"""Finds the tables and columns that the words of a request name."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from common.meanings import TableKey
from common.text import Text
from common.values import Catalog, Column, Table
from etl.binding.request_findings import NotBound, RequestFindings, choices_of
from etl.binding.result_names import name_with_table
from etl.clauses.clause_tokens import Token
from etl.clauses.request_draft import Json
from etl.meaning.bound import BoundColumn, BoundCondition
from etl.meaning.decisions import JoinedRows
from etl.meaning.value_kinds import kind_of_type
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


_PROMPTS: dict[AmbiguityKind, Text] = {
    "measure": Text("“{0}”指哪个数值字段？", "Which figure is “{0}”?"),
    "date_column": Text("按哪个日期？（{0}）", "By which date? ({0})"),
    "column": Text("“{0}”指哪个字段？", "Which column is “{0}”?"),
    "table": Text("“{0}”指哪张表？", "Which table is “{0}”?"),
}
_NUMBERS = frozenset(
    ("smallint", "integer", "bigint", "numeric", "real", "double precision", "money")
)


def _prompt(kind: AmbiguityKind, phrase: str) -> Text:
    form = _PROMPTS[kind]
    return Text(form.zh.format(phrase), form.en.format(phrase))


def anything(_table: Table, _column: Column) -> bool:
    """Accept any column of any table."""
    return True


def is_date(_table: Table, column: Column) -> bool:
    """Tell whether the column holds days or times of days."""
    return column.type.startswith(("date", "timestamp"))


def is_number(_table: Table, column: Column) -> bool:
    """Tell whether the column holds numbers."""
    base = column.type.partition("(")[0]
    return base in _NUMBERS


def named_columns(table: Table, names: Iterable[str]) -> list[NamedColumn]:
    """Return the columns of a table that have these names; names of none are passed over."""
    columns = []
    for name in names:
        column = table.column(name)
        if column is not None:
            columns.append(NamedColumn(table, column))

    return columns


def _is_written(phrase: str, column: Column) -> bool:
    """Tell whether the word is the column's own name or its comment."""
    keys = {key_of(column.name)}
    if column.comment is not None:
        keys.add(key_of(column.comment))

    return key_of(phrase) in keys


def _of_quality(candidates: Sequence[tuple[float, NamedColumn]], least: float) -> list[NamedColumn]:
    columns: list[NamedColumn] = []
    for quality, named in candidates:
        if quality >= least:
            columns.append(named)

    return columns


class NameResolver:
    """Resolves the words of one request; columns of its tables come before all others.

    Attributes:
        asked: words of which the user is asked what they name.
        date_in_use: the date column whose periods the request groups by; days for which no column
            is said are compared with it.
    """

    def __init__(self, catalog: Catalog, lexicon: Lexicon, findings: RequestFindings) -> None:
        self._catalog = catalog
        self._lexicon = lexicon
        self._sources: list[TableKey] = []
        self._findings = findings
        self._aliases: dict[TableKey, str] = {}
        self.asked: set[str] = set()
        self.date_in_use: NamedColumn | None = None

    @property
    def sources(self) -> tuple[TableKey, ...]:
        """Return the tables of the request, the base first."""
        return tuple(self._sources)

    def add_source(self, key: TableKey) -> None:
        """Add a table to those of the request."""
        if key not in self._sources:
            self._sources.append(key)

    def drop_source(self, key: TableKey) -> None:
        """Take a table away from those of the request."""
        self._sources.remove(key)

    def make_base(self, key: TableKey) -> None:
        """Make a table the base of the request."""
        self._sources = [key, *(source for source in self._sources if source != key)]

    def only_base(self, tables: Sequence[Table], operation: int) -> Table | None:
        """Return the table whose rows all count; None while the user is asked."""
        names = [self.name_of(table) for table in tables]
        prompt = Text(
            f"{'、'.join(names)} 都要统计，以哪张表为准？"
            "只有它的行全部计入，其他表只计与它关联的行。",
            f"Rows of {', '.join(names)} are measured. Which table's rows all count? Of the others "
            "only those that it is joined with do.",
        )
        try:
            chosen = self._findings.choose("table", "base", prompt, choices_of(names), operation)
        except NotBound:
            return None

        return self.table_named(chosen)

    def for_tables(self, keys: Collection[TableKey]) -> "NameResolver":
        """Return a resolver of the same request for words that are about other tables."""
        others = NameResolver(self._catalog, self._lexicon, self._findings)
        others.asked = self.asked
        for key in keys:
            others.add_source(key)

        return others

    def with_table(self, table: Table) -> "NameResolver":
        """Return a resolver of the same names for words that may be about one more table."""
        others = self.for_tables([*self._sources, table.key])
        others._aliases = dict(self._aliases)
        return others

    def set_alias(self, table: Table, name: str) -> None:
        """Set the name by which the intent calls a table."""
        self._aliases[table.key] = name

    def table_named(self, name: str) -> Table | None:
        """Return the table that the intent calls so, one of the request before any other."""
        own = [self.table_by_key(key) for key in self._sources]
        for table in (*own, *self._catalog.tables):
            if self.name_of(table) == name:
                return table

        return None

    def use_date(self, reference: str) -> None:
        """Set the date column, as the intent writes it, whose periods the request groups by."""
        name, _, called = reference.partition(".")
        table = self.table_named(name)
        if table is None:
            return

        column = table.column(called)
        if column is not None:
            self.date_in_use = NamedColumn(table, column)

    def assume_joined(self, table: Table) -> None:
        """Note that a table is joined although no clause says so."""
        name = self.name_of(table)
        text = Text(
            f"为取得 {name} 的字段，左连接了 {name}。",
            f"{name} is joined (left) for its columns.",
        )
        self._findings.assume(f"joined_{name}", text, 1, decides=JoinedRows(without=name))

    def key_name(self, table: Table, column: str) -> str:
        """Return the name of a table's column in a result: with the table's name before it."""
        return name_with_table(self.name_of(table), column)

    def table_by_key(self, key: TableKey) -> Table:
        """Return the table with this key."""
        return self._catalog.by_key[key]

    def is_measure(self, table: Table, column: Column) -> bool:
        """Tell whether the column holds figures that can be added, and no keys or codes."""
        if not is_number(table, column):
            return False

        return self._lexicon.schema.facts[table.key].is_measure(column)

    def shown_columns(self, table: Table) -> list[NamedColumn]:
        """Return the column of texts by which people call the table's rows, if there is one."""
        shown = named_columns(table, self._lexicon.schema.facts[table.key].display[:1])
        columns: list[NamedColumn] = []
        for named in shown:
            if kind_of_type(named.column.type) == "text":
                columns.append(named)

        return columns

    def row_keys(self, table: Table) -> list[Json]:
        """Return the keys of an aggregate that tell a table's rows apart and what they are called.

        These are the columns of its primary key and the text by which people call its rows.
        """
        shown = self._lexicon.schema.facts[table.key].display[:1]
        keys: list[Json] = []
        for column in dict.fromkeys((*table.primary_key, *shown)):
            reference = self.reference(table, column)
            keys.append({"column": reference, "as": self.key_name(table, column)})

        return keys

    def measures_of(self, table: Table) -> list[NamedColumn]:
        """Return the columns of the table that hold figures."""
        measures: list[NamedColumn] = []
        for column in table.columns:
            if self.is_measure(table, column):
                measures.append(NamedColumn(table, column))

        return measures

    def label(self, table: Table, column: Column | None = None) -> str:
        """Return the stored name of a table or column, with its comment."""
        stored, comment = table.name, table.comment
        if column is not None:
            stored, comment = f"{table.name}.{column.name}", column.comment
        if not comment:
            return stored

        return f"{stored} ({comment})"

    def reference(self, table: Table, column: str) -> str:
        """Return the column as an intent writes it."""
        return f"{self.name_of(table)}.{column}"

    def name_of(self, table: Table) -> str:
        """Return what the intent calls the table, with the schema where several have its name."""
        if table.key in self._aliases:
            return self._aliases[table.key]

        is_alone = len(self._catalog.by_name[table.name]) == 1
        if is_alone or table.schema == self._catalog.search_path[0]:
            return table.name

        return f"{table.schema}_{table.name}"

    # --------------------------------------------------------------------------
    # tables

    def table(self, token: Token, order: int) -> Table | None:
        """Return the table that the word names; None where it names none or the user is asked.

        Tables of the request come before all others.
        """
        best = 0.0
        tables: dict[TableKey, Table] = {}
        for link in token.links("table"):
            if link.quality < _LEAST_COLUMN:
                continue

            best = best or link.quality
            if link.quality >= best - _NEAR:
                tables[link.table] = self.table_by_key(link.table)

        if not tables:
            return None

        own = [table for key, table in tables.items() if key in self._sources]
        return self.one_of_tables(token.text, own or list(tables.values()), order)

    def one_of_tables(self, phrase: str, tables: Sequence[Table], order: int) -> Table | None:
        """Return the only one of the tables, or the one that was chosen; None while it is asked."""
        if len(tables) == 1:
            return tables[0]

        offered = {}
        choices = []
        for table in tables[:_MOST_CHOICES]:
            value = self._table_value(table)
            offered[value] = table
            choices.append(Choice(value=value, label=self.label(table)))

        chosen = self.ask("table", phrase, _prompt("table", phrase), choices, order)
        if chosen is None:
            return None

        return offered[chosen]

    def _table_value(self, table: Table) -> str:
        is_alone = len(self._catalog.by_name[table.name]) == 1
        if is_alone:
            return table.name

        return f"{table.schema}.{table.name}"

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
        """Return the column that the word names; None where it names none or the user is asked.

        An exact name decides, or the only candidate, which is then an assumption. Of several the
        user is asked. Columns of the request's tables come before all others.
        """
        candidates = self._candidates(token, accepts, among)
        exact = self._exact(token.text, candidates)
        if len(exact) == 1:
            return exact[0]

        rest = exact or _of_quality(candidates, _LEAST_MEANT)
        if not rest:
            return None

        return self.only(kind, token.text, rest, order)

    def _exact(
        self, phrase: str, candidates: Sequence[tuple[float, NamedColumn]]
    ) -> list[NamedColumn]:
        """Return the columns that the word names exactly, without those that equal another."""
        exact = _of_quality(candidates, _EXACT)
        written: list[NamedColumn] = []
        for named in exact:
            if _is_written(phrase, named.column):
                written.append(named)

        if len(written) == 1:
            return written

        return self._without_equal(written or exact)

    def _without_equal(self, columns: Sequence[NamedColumn]) -> list[NamedColumn]:
        """Leave out keys that a column of an earlier table refers to: the two are always equal."""
        independent: list[NamedColumn] = []
        for column in columns:
            if not any(self._refers(other, column) for other in columns):
                independent.append(column)

        return independent

    def _refers(self, column: NamedColumn, other: NamedColumn) -> bool:
        """Tell whether a column of an earlier table of the request refers to the other column."""
        keys = [column.table.key, other.table.key]
        in_order = [key for key in self._sources if key in keys]
        if in_order != keys:
            return False

        column_pair = (column.column.name, other.column.name)
        for key in column.table.foreign_keys:
            if key.target != other.table.key:
                continue
            if column_pair in zip(key.columns, key.target_columns, strict=True):
                return True

        return False

    def only(
        self, kind: AmbiguityKind, phrase: str, columns: Sequence[NamedColumn], order: int
    ) -> NamedColumn | None:
        """Return the only one of the columns, noted as an assumption, or the one that is chosen."""
        if len(columns) == 1:
            self._assume_meant(phrase, columns[0], order)
            return columns[0]

        return self.choose(kind, phrase, columns, order)

    def choose(
        self, kind: AmbiguityKind, phrase: str, columns: Sequence[NamedColumn], order: int
    ) -> NamedColumn | None:
        """Return the column that was chosen of these; None while the user is asked."""
        offered = {}
        for column in columns:
            offered[self.reference(column.table, column.column.name)] = column

        choices = []
        for value, column in list(offered.items())[:_MOST_CHOICES]:
            choices.append(Choice(value=value, label=self.label(column.table, column.column)))

        chosen = self.ask(kind, phrase, _prompt(kind, phrase), choices, order)
        if chosen is None:
            return None

        return offered[chosen]

    def ask(
        self, kind: AmbiguityKind, phrase: str, prompt: Text, choices: Sequence[Choice], order: int
    ) -> str | None:
        """Return the value that was chosen for the word; None while the user is asked."""
        values = ", ".join(choice.value for choice in choices)
        try:
            return self._findings.choose(kind, f"{phrase}: {values}", prompt, choices, order)
        except NotBound:
            self.asked.add(phrase)
            return None

    def may_be_date(self, token: Token) -> bool:
        """Tell whether the word may name a date column."""
        for link in token.links("column"):
            table = self.table_by_key(link.table)
            column = table.column(link.column or "")
            if column is not None and is_date(table, column):
                return True

        return False

    def column_called(self, phrase: str) -> NamedColumn | None:
        """Return the one column of the request's tables with exactly this name or comment."""
        columns = []
        for named in self._own_columns():
            if _is_written(phrase, named.column):
                columns.append(named)

        if len(columns) == 1:
            return columns[0]

        return None

    def _own_columns(self) -> Iterator[NamedColumn]:
        """Yield the columns of the request's tables, those of the base first."""
        for key in self._sources:
            table = self.table_by_key(key)
            for column in table.columns:
                yield NamedColumn(table, column)

    def coded_columns(self) -> list[NamedColumn]:
        """Return the columns of the request's tables whose values are known."""
        columns = []
        for named in self._own_columns():
            if named.column.allowed or named.column.values:
                columns.append(named)

        return columns

    def dates(self) -> list[NamedColumn]:
        """Return the date columns of the request's tables, of the base first.

        Of a base for which the semantic file names the date, this one alone.
        """
        if self.date_in_use is not None:
            return [self.date_in_use]
        if self._sources:
            declared_date = self._meant_date(self.table_by_key(self._sources[0]))
            if declared_date:
                return declared_date

        columns = []
        for named in self._own_columns():
            if is_date(named.table, named.column):
                columns.append(named)

        return columns

    def _meant_date(self, table: Table) -> list[NamedColumn]:
        """Return the date that the semantic file names for a table, if it names one."""
        if table.meaning is None or table.meaning.date_column is None:
            return []

        return named_columns(table, [table.meaning.date_column])

    def _candidates(
        self, token: Token, accepts: Accepts, among: Collection[TableKey] | None
    ) -> list[tuple[float, NamedColumn]]:
        """Return the columns that the word may name, best first, without repeats.

        Those of `among`, else those of the request's tables if there are any.
        """
        candidates = self._columns_named(token, accepts)
        preferred = self._sources if among is None else among
        theirs: list[tuple[float, NamedColumn]] = []
        for (table, _), candidate in candidates.items():
            if table in preferred:
                theirs.append(candidate)

        if theirs or among is not None:
            return theirs

        return list(candidates.values())

    def _columns_named(
        self, token: Token, accepts: Accepts
    ) -> dict[tuple[TableKey, str], tuple[float, NamedColumn]]:
        """Return the columns that the word may name, with the quality of the name."""
        candidates: dict[tuple[TableKey, str], tuple[float, NamedColumn]] = {}
        for own in self._columns_of_views(token.text):
            if accepts(own.table, own.column):
                candidates[own.table.key, own.column.name] = (1.0, own)

        for link in token.links("column"):
            named = self._linked(link)
            if named is None or link.quality < _LEAST_COLUMN:
                continue
            if accepts(named.table, named.column):
                candidates.setdefault((link.table, named.column.name), (link.quality, named))

        return candidates

    def _columns_of_views(self, name: str) -> Iterator[NamedColumn]:
        """Yield the columns so called of the request's views, to which no word is linked."""
        folded_name = name.casefold()
        for own in self._own_columns():
            if own.table.kind == "table":
                continue
            if own.column.name.casefold() == folded_name:
                yield own

    def _linked(self, link: Link) -> NamedColumn | None:
        """Return the column of a link; None of one that is derived, unless it is a product."""
        table = self.table_by_key(link.table)
        column = table.column(link.column or "")
        is_other_derived = link.derived is not None and link.factor is None
        if column is None or is_other_derived:
            return None

        return NamedColumn(table, column, link.factor)

    def _assume_meant(self, phrase: str, named_column: NamedColumn, order: int) -> None:
        label = self.label(named_column.table, named_column.column)
        text = Text(f"“{phrase}”理解为 {label}。", f"“{phrase}” is taken as {label}.")
        column = BoundColumn(self.name_of(named_column.table), named_column.column.name)
        decides = JoinedRows(column.source, ((BoundCondition(column, "not_null"),),))
        assumed = f"meant_{named_column.table.name}_{named_column.column.name}"
        self._findings.assume(assumed, text, order, decides=decides)
