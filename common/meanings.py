"""The meanings of a database's objects: names, units and metrics, as a semantic file says them.

The catalogue carries these values beside what PostgreSQL says, so that whoever reads a table or
column also finds its meaning. They are immutable and hashable like the catalogue itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from common.text import Lang, Text

TableKey = tuple[str, str]
"""(schema, name)"""
Columns = Mapping[TableKey, frozenset[str]]
"""The names of the columns of each table."""


def has_columns(columns: Columns, table: TableKey, needed: Iterable[str]) -> bool:
    """Tell whether a table has all of the needed columns."""
    return columns.get(table, frozenset()).issuperset(needed)


@dataclass(frozen=True)
class BilingualNames:
    """People's names for one thing.

    Attributes:
        zh, en: per language, the display name first and its synonyms after it; empty when nothing
            is said.
    """

    zh: tuple[str, ...] = ()
    en: tuple[str, ...] = ()

    def label(self, lang: Lang) -> str | None:
        """Return the display name in the language; None when there is none."""
        names = self.en
        if lang == "zh":
            names = self.zh
        if names:
            return names[0]

        return None

    @property
    def all(self) -> tuple[str, ...]:
        """Return the names in all languages."""
        return self.zh + self.en


@dataclass(frozen=True)
class ValueMeaning:
    """A stored value and what people call it."""

    value: str
    names: BilingualNames


@dataclass(frozen=True)
class ColumnMeaning:
    """The meaning of a column.

    Attributes:
        unit: the unit of its numbers, as it is written after one: 元, kg, %.
        values: the names of stored values that people call otherwise.
        is_sensitive: whether its values are kept from models and answers' suggestions; None: the
            file doesn't say.
        most, least: words for what has the highest or the lowest number of it, in all (busiest,
            quietest).
        is_kind: whether a value's name alone means the rows that have it: restaurants are shops of
            that category.
    """

    names: BilingualNames = field(default_factory=BilingualNames)
    description: Text | None = None
    unit: Text | None = None
    values: tuple[ValueMeaning, ...] = ()
    is_sensitive: bool | None = None
    most: BilingualNames = field(default_factory=BilingualNames)
    least: BilingualNames = field(default_factory=BilingualNames)
    is_kind: bool = False


@dataclass(frozen=True)
class PreferredJoin:
    """The way to take from the table that says it to `target` when there are several."""

    columns: tuple[str, ...]
    target: TableKey
    target_columns: tuple[str, ...]


@dataclass(frozen=True)
class TableMeaning:
    """The meaning of a table.

    Attributes:
        label_columns: what names one of its rows to a person.
        date_column: the one that periods are about unless a question names another.
        default_filter: an SQL condition over the table's own columns that holds unless a question
            says otherwise.
        filter_columns: the columns that it reads.
        verbs: words that say that one of its rows happened (entered, passed through).
    """

    names: BilingualNames = field(default_factory=BilingualNames)
    description: Text | None = None
    label_columns: tuple[str, ...] = ()
    date_column: str | None = None
    default_filter: str | None = None
    filter_columns: tuple[str, ...] = ()
    joins: tuple[PreferredJoin, ...] = ()
    verbs: BilingualNames = field(default_factory=BilingualNames)

    def among(self, key: TableKey, columns: Columns) -> "TableMeaning":
        """Return the meaning of the table `key` where only these columns are there."""
        own = columns[key]
        # The fields that lose their columns, with what is left of them.
        lost: dict[str, Any] = {}
        if not own.issuperset(self.label_columns):
            lost["label_columns"] = ()
        if self.date_column not in own:
            lost["date_column"] = None
        if not own.issuperset(self.filter_columns):
            lost["default_filter"] = None
            lost["filter_columns"] = ()

        joins = []
        for join in self.joins:
            has_target = has_columns(columns, join.target, join.target_columns)
            has_source = own.issuperset(join.columns)
            if has_source and has_target:
                joins.append(join)

        return replace(self, joins=tuple(joins), **lost)


@dataclass(frozen=True)
class Report:
    """A question that is asked again and again, with the SQL that answers it.

    Attributes:
        name: identifies it in the file; users may also ask by one of `names`.
        sql: one query; the guard judges it each time it is run.
        is_broken: whether it could not be run when the catalogue was read last. Why it can't is to
            be told by the caller's own rights, so it is not kept here.
    """

    name: str
    sql: str
    names: BilingualNames = field(default_factory=BilingualNames)
    description: Text | None = None
    is_broken: bool = False


@dataclass(frozen=True)
class Metric:
    """A figure that the business has a name for.

    Attributes:
        name: identifies it in the file.
        table: whose rows it is computed over.
        expression: an SQL aggregate over the table's columns, proven by the guard.
        names: never empty: without others, its name in the file.
        filter: an SQL condition over the table's columns that its rows fulfil, beside the table's
            default filter.
        grain: columns of the table it is meaningful by; empty: any.
        date_column: the column of the table that its periods are about; without one of its own, the
            table's.
        columns: the columns of the table that `expression` and `filter` read.
        most, least: words for what has the highest or the lowest of it.
    """

    name: str
    table: TableKey
    expression: str
    names: BilingualNames = field(default_factory=BilingualNames)
    description: Text | None = None
    unit: Text | None = None
    filter: str | None = None
    grain: tuple[str, ...] = ()
    date_column: str | None = None
    most: BilingualNames = field(default_factory=BilingualNames)
    least: BilingualNames = field(default_factory=BilingualNames)
    columns: tuple[str, ...] = ()

    def among(self, own: frozenset[str]) -> "Metric | None":
        """Return the metric where its table has only these columns.

        None when it can't be computed or compared there.
        """
        if not own.issuperset(self.columns):
            return None

        grain = tuple(column for column in self.grain if column in own)
        has_lost_grain = bool(self.grain) and not grain
        if has_lost_grain:
            return None

        date_column = None
        if self.date_column in own:
            date_column = self.date_column

        return replace(self, grain=grain, date_column=date_column)
