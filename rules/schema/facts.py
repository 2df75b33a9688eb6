"""What the columns of one table are for: keys, display names, measures, dates, soft deletion.

All of it is a guess from names, types, keys and comments, in one place, so that planning and rendering agree about it.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from common.meanings import TableKey
from common.values import Column, Table
from knowledge.atoms import stem
from knowledge.codes import flag_of, labels_of
from knowledge.naming import comment_names, core_words, english_words
from knowledge.stored_values import has_labels
from rules.words import WORDS

Kind = Literal["number", "text", "date", "timestamp", "time", "boolean", "array", "json", "other"]

_KINDS: tuple[tuple[str, Kind], ...] = (
    (r".*\[\]$", "array"),
    (r"(smallint|integer|bigint|numeric|decimal|real|double precision|money|int\d)", "number"),
    (r"timestamp", "timestamp"),
    (r"date\b", "date"),
    (r"(time\b|interval)", "time"),
    (r"bool", "boolean"),
    (r"(text|character|varchar|char|citext|name|bpchar|\"char\")", "text"),
    (r"jsonb?\b", "json"),
)
_SPELLED = re.compile(r"(text|character|varchar|char|citext|name|bpchar)")
_MONTH, _DAY = "(19|20)[0-9]{2}{0}(0[1-9]|1[0-2])", "{0}(0[1-9]|[12][0-9]|3[01])"
_DATE_FORMS = {
    f"YYYY{sign}MM{sign}DD": (_MONTH + _DAY).replace("{0}", re.escape(sign)) for sign in ("-", "/", ".", "")
} | {f"YYYY{sign}MM": _MONTH.replace("{0}", re.escape(sign)) for sign in ("-", "/", ".", "")}
_EN, _ZH = WORDS.english, WORDS.chinese
_HOUSEKEEPING = _EN.pattern("columns.housekeeping", "^", "$", re.IGNORECASE)
_OUTCOMES = frozenset(map(stem, _EN.phrases("columns.outcomes")))
_OUTCOMES_HAN = _ZH.pattern("columns.outcomes")
_FLAG = _EN.pattern("columns.flags", "^", "(_|(?=[A-Z]))")
_FLAG_HAN = _ZH.phrases("columns.flags")
_BIRTH = re.compile(WORDS.any_of("columns.birth"), re.IGNORECASE)
_YEAR, _YEAR_HAN = _EN.phrases("columns.year"), _ZH.pattern("columns.year", end="$")
_CODE_WORDS, _CODE_HAN = _EN.one_of("columns.codes"), _ZH.pattern("columns.codes", end="$")
_CODED, _CODED_HAN = _EN.one_of("columns.coded"), _ZH.pattern("columns.coded", end="$")
_AVERAGED, _AVERAGED_HAN = _EN.one_of("columns.averaged"), _ZH.pattern("columns.averaged", end="$")
_SUMMED, _SUMMED_HAN = _EN.one_of("columns.summed"), _ZH.phrases("columns.summed")
_COUNTED = _EN.pattern("columns.counted", flags=re.IGNORECASE)
_COUNTED_HAN = _ZH.pattern("columns.counted", end="$")
_UNIT, _NUMBER_WORDS, _NUMBERED = (_EN.one_of(f"columns.{one}") for one in ("unit", "numbers", "numbered"))
_PEOPLE = frozenset(map(stem, _EN.phrases("tables.people")))
_PEOPLE_SAID = re.compile(WORDS.any_of("tables.people_said"))


def kind_of(column: Column) -> Kind:
    """What can be done with the column's values; enums and domains are `text` when values are known, else `other`.

    Text that is dates, all of one form, is `date`: see `date_form`.
    """
    if date_form(column) is not None:
        return "date"
    return _kind_of_type(column.type) or ("text" if column.values else "other")


@lru_cache(maxsize=4096)
def _kind_of_type(type_: str) -> Kind | None:
    spelled = type_.lower().split(".")[-1]
    return next((kind for pattern, kind in _KINDS if re.match(pattern, spelled)), None)


def date_form(column: Column) -> str | None:
    """How a text column spells its dates (`2024-03`, `20240315`), as `to_date` has it; None when it holds others."""
    has_any = len(column.values) > 1 and column.values[0].startswith(("19", "20"))  # most columns have none
    if not has_any or not _SPELLED.match(column.type.lower()):
        return None
    patterns = ((form, re.compile(pattern)) for form, pattern in _DATE_FORMS.items())
    return next((form for form, pattern in patterns if all(map(pattern.fullmatch, column.values))), None)


def is_outcome(column: Column) -> bool:
    """Whether a date says when something ended, was paid or the like, which may not have happened yet."""
    return column.nullable and is_later(column)


def is_later(column: Column) -> bool:
    """Whether a date says when something ended, was paid or is due, rather than when it began."""
    said = bool(_OUTCOMES & {stem(word) for word in english_words(column.name)})
    return said or bool(_OUTCOMES_HAN.search(_said(column)))


def _said(column: Column, default: str = "") -> str:
    """What the comment calls the column; `default` without a comment."""
    return next(iter(comment_names(column.comment)), default)


def tells_days(column: Column) -> bool:
    """Whether a date column tells days apart, not only months."""
    return not (date_form(column) or "DD").endswith("MM")


def flag_codes(column: Column) -> tuple[str, str] | None:
    """What a column that is no boolean stores for yes and for no; None when it says anything else."""
    kind = kind_of(column)
    if kind not in ("number", "text"):
        return None
    if labels := labels_of(column.comment):
        return flag_of(dict(labels))
    if not _FLAG.search(column.name) and not any(name.startswith(_FLAG_HAN) for name in comment_names(column.comment)):
        return None
    return ("1", "0") if kind == "number" else flag_of({value: value for value in column.values})


def is_averaged(column: Column) -> bool:
    """Whether the column is a rate, price, age or score, whose plain sum means nothing."""
    name, words = _said(column, column.name), english_words(column.name)
    if _SUMMED & {*words[:1]} or name.startswith(_SUMMED_HAN):
        return False
    return bool(_AVERAGED & {*words[-1:]} or _UNIT & {*words[:1]} or _AVERAGED_HAN.search(name))


def is_housekeeping(column: Column) -> bool:
    """Whether the column by its name serves the application rather than the reader."""
    return bool(_HOUSEKEEPING.match(column.name))


def is_birth_date(column: Column) -> bool:
    """Whether the column holds dates of birth."""
    return any(map(_BIRTH.search, (column.name, *comment_names(column.comment))))


def needs_cast(column: Column) -> bool:
    """Whether the column must be cast to text before text operators apply (enums, domains, uuid, …)."""
    return kind_of(column) in ("text", "other") and not _SPELLED.match(column.type.lower())


def is_year(column: Column) -> bool:
    """Whether a number column holds years."""
    if kind_of(column) != "number":
        return False
    return english_words(column.name)[-1:] == _YEAR or any(map(_YEAR_HAN.search, (column.name, _said(column))))


@lru_cache(maxsize=16384)
def stems(name: str) -> tuple[str, ...]:
    """The words of a table's name that say what it holds, without inflection."""
    return tuple(stem(word) for word in core_words(english_words(name)))


@dataclass(frozen=True)
class Edge:
    """A row of `child` has at most one row of `parent`: the equality of these columns, in order.

    `is_preferred`: the semantic file says to take this way where there are several.
    """

    child: TableKey
    columns: tuple[str, ...]
    parent: TableKey
    parent_columns: tuple[str, ...]
    is_declared: bool = True
    is_preferred: bool = False


@dataclass(frozen=True)
class Facts:
    """What one table is for.

    Attributes:
        display: columns that name a row to people; empty when nothing does.
        deleted: the column that marks soft deletion.
        dates: columns that say when the row's event happened, best first; housekeeping ones are not among them.
        year: the number column that says in which year, where there is one.
        edges: its references to parents.
        date: the one of `dates` that is meant where none is named, as the semantic file says.
        filter: the semantic file's condition on rows that take part, and (`filtered`) the columns it is about.
        has_names: whether `display` would name things also without the semantic file's label.
    """

    table: Table
    display: tuple[str, ...]
    deleted: str | None
    dates: tuple[str, ...]
    edges: tuple[Edge, ...]
    year: str | None = None
    date: str | None = None
    filter: str | None = None
    filtered: frozenset[str] = frozenset()
    has_names: bool = True

    @property
    def has_one_default(self) -> bool:
        """Whether nothing but the filter leaves rows out."""
        return self.filter is not None and (self.deleted is None or self.deleted in self.filtered)

    @cached_property
    def reference_columns(self) -> frozenset[str]:
        """Columns that point to other rows."""
        return frozenset(name for edge in self.edges for name in edge.columns)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Columns that identify a row; empty when unknown."""
        return self.table.primary_key

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Columns that show a row: its names, else the number people know it by, else its key."""
        own = set(stems(self.table.name)) | _NUMBERED
        numbers = [
            (column.name,)
            for column in self.table.columns
            if kind_of(column) == "text"
            and column.name not in self.reference_columns
            and _NUMBER_WORDS & {*(words := english_words(column.name))[-1:]}
            and {stem(word) for word in words[:-1]} <= own
        ]
        return self.display or next(iter(numbers), self.key or (self.table.columns[0].name,))

    def is_identifier(self, column: Column) -> bool:
        """Whether the column's values name things rather than measure them."""
        if self.key == (column.name,) or column.name in self.reference_columns:
            return True
        coded = _CODE_WORDS & {*english_words(column.name)[-1:]} or _CODE_HAN.search(_said(column))
        return bool(coded) and not self.is_count(column)

    def is_count(self, column: Column) -> bool:
        """Whether the column says how many there are of something."""
        return bool(_COUNTED.search(column.name) or _COUNTED_HAN.search(_said(column)))

    def is_measure(self, column: Column) -> bool:
        """Whether totals or averages of the column mean something."""
        if kind_of(column) != "number" or column.name == self.deleted or self.is_identifier(column):
            return False
        coded = _CODED & {*english_words(column.name)[-1:]} or _CODED_HAN.search(_said(column, column.name))
        return not coded and not has_labels(column)

    @cached_property
    def measures(self) -> tuple[Column, ...]:
        """The columns whose totals or averages mean something."""
        return tuple(column for column in self.table.columns if self.is_measure(column))

    def is_housekeeping(self, column: Column) -> bool:
        """Whether the column serves the application rather than the reader."""
        return is_housekeeping(column) or column.name == self.deleted

    @property
    def is_person(self) -> bool:
        """Whether rows are people."""
        named = " ".join((self.table.name, *self.display, *comment_names(self.table.comment))).lower()
        is_called = _PEOPLE & {stem(word) for word in english_words(self.table.name)} or _PEOPLE_SAID.search(named)
        return len(self.display) > 1 or bool(is_called)

    @property
    def is_entity(self) -> bool:
        """Whether rows are things with a name rather than events; a label that is only a number names no thing."""
        return bool(self.display) and (self.has_names or not all(map(self._is_number, self.display)))

    def _is_number(self, name: str) -> bool:
        column = self.table.column(name)
        return column is not None and (kind_of(column) != "text" or self.is_identifier(column))

    @property
    def is_report(self) -> bool:
        """Whether a row is a part of a period's figures (`day, shop, payment type`) rather than one thing or event."""
        return not self.is_entity and len(self.key) > 1 and bool({*self.key} & {*self.dates})
