"""What the columns of one table are for: keys, display names, measures, dates, soft deletion.

All of it is a guess from names, types, keys and comments, in one place, so that planning and
rendering agree about it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from common.meanings import TableKey
from common.values import Column, Table
from knowledge.language.codes import flag_of, labels_of
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import comment_names, core_words, english_words
from knowledge.values.stored_values import has_labels
from rules.words import WORDS

ColumnKind = Literal[
    "number", "text", "date", "timestamp", "time", "boolean", "array", "json", "other"
]

_KINDS: tuple[tuple[str, ColumnKind], ...] = (
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
_DATE_SIGNS = ("-", "/", ".", "")
_DATE_FORMS = {
    **{
        f"YYYY{sign}MM{sign}DD": (_MONTH + _DAY).replace("{0}", re.escape(sign))
        for sign in _DATE_SIGNS
    },
    **{f"YYYY{sign}MM": _MONTH.replace("{0}", re.escape(sign)) for sign in _DATE_SIGNS},
}
_EN, _ZH = WORDS.english, WORDS.chinese
_HOUSEKEEPING = _EN.pattern("columns.housekeeping", "^", "$", re.IGNORECASE)
_OUTCOMES = frozenset(map(stem, _EN.phrases("columns.outcomes")))
_OUTCOMES_HAN = _ZH.pattern("columns.outcomes")
_ENDINGS = _EN.one_of("columns.endings")
_ENDINGS_HAN = _ZH.pattern("columns.endings")
_DUE, _DUE_HAN = _EN.one_of("columns.due"), _ZH.pattern("columns.due")
_AMOUNTS_KEPT = frozenset(map(stem, _EN.phrases("columns.amounts_kept")))
_AMOUNTS_KEPT_HAN = _ZH.phrases("columns.amounts_kept")
_LEVELS = frozenset(map(stem, _EN.phrases("columns.levels")))
_LEVELS_HAN = _ZH.pattern("columns.levels", end="$")
_LEVEL_AMOUNTS = frozenset(map(stem, _EN.phrases("columns.level_amounts")))
_FLAG_WORDS = _EN.one_of("columns.flag_words")
_FLAG = _EN.pattern("columns.flags", "^", "(_|(?=[A-Z]))")
_FLAG_HAN = _ZH.phrases("columns.flags")
_BIRTH = re.compile(WORDS.any_of("columns.birth"), re.IGNORECASE)
_YEAR, _YEAR_HAN = _EN.phrases("columns.year"), _ZH.pattern("columns.year", end="$")
_CODE_WORDS, _CODE_HAN = _EN.one_of("columns.codes"), _ZH.pattern("columns.codes", end="$")
_CODED, _CODED_HAN = _EN.one_of("columns.coded"), _ZH.pattern("columns.coded", end="$")
_AVERAGED, _AVERAGED_HAN = _EN.one_of("columns.averaged"), _ZH.pattern("columns.averaged", end="$")
_SCORES, _SCORES_HAN = _EN.one_of("columns.scores"), _ZH.pattern("columns.scores", end="$")
_SUMMED, _SUMMED_HAN = _EN.one_of("columns.summed"), _ZH.phrases("columns.summed")
_DISCOUNTS, _DISCOUNTS_HAN = _EN.one_of("figures.discounts"), _ZH.pattern("figures.discounts")
_SCALED = re.compile(r"^\w+\((\d+),(\d+)\)$")
_COUNTED = _EN.pattern("columns.counted", flags=re.IGNORECASE)
_COUNTED_HAN = _ZH.pattern("columns.counted", end="$")
_UNIT, _NUMBER_WORDS, _NUMBERED = (
    _EN.one_of(f"columns.{one}") for one in ("unit", "numbers", "numbered")
)
_PEOPLE = frozenset(map(stem, _EN.phrases("tables.people")))
_PEOPLE_SAID = re.compile(WORDS.any_of("tables.people_said"))


def kind_of(column: Column) -> ColumnKind:
    """Return what can be done with the column's values.

    Text that is dates, all of one form, is `date` (see `date_form`); enums and domains are `text`
    when values are known, else `other`.
    """
    if date_form(column) is not None:
        return "date"

    kind = _kind_of_type(column.type)
    if kind is not None:
        return kind

    return "text" if column.values else "other"


@lru_cache(maxsize=4096)
def _kind_of_type(type_: str) -> ColumnKind | None:
    spelled = type_.lower().split(".")[-1]
    for pattern, kind in _KINDS:
        if re.match(pattern, spelled):
            return kind

    return None


def date_form(column: Column) -> str | None:
    """Return how a text column spells its dates, in the terms of `to_date` (`YYYY-MM`).

    None when its known values aren't dates of one form.
    """
    # Most columns end here: few hold values that begin like a year.
    if len(column.values) < 2 or not column.values[0].startswith(("19", "20")):
        return None
    if not _SPELLED.match(column.type.lower()):
        return None

    for form, pattern in _DATE_FORMS.items():
        is_form = re.compile(pattern).fullmatch
        if all(map(is_form, column.values)):
            return form

    return None


def is_outcome(column: Column) -> bool:
    """Tell whether a date says when something ended that may not have happened yet."""
    return column.nullable and is_later(column)


def is_due(column: Column) -> bool:
    """Tell whether a date says when something should be, and is there before it has come."""
    if not _DUE.isdisjoint(english_words(column.name)):
        return True

    return _DUE_HAN.search(_said(column, column.name)) is not None


def is_later(column: Column) -> bool:
    """Tell whether a date says when something ended or is due, rather than when it began."""
    words = _stemmed(english_words(column.name))
    if not words.isdisjoint(_OUTCOMES):
        return True

    return _OUTCOMES_HAN.search(_said(column)) is not None


def done_words(name: str) -> set[str]:
    """Return the words of a name for what comes of a row: 完工, `paid`."""
    words = _stemmed(english_words(name)) & _OUTCOMES
    return words | set(_OUTCOMES_HAN.findall(name))


def tells_end(column: Column) -> bool:
    """Tell whether the column says that something has ended, or when: not how much is left."""
    if kind_of(column) == "number" and not _is_flag_word(column):
        return False

    words = english_words(column.name)
    if not _ENDINGS.isdisjoint(words):
        return True

    return _ENDINGS_HAN.search(_said(column, column.name)) is not None


def says_other_than_end(column: Column, word: str) -> bool:
    """Tell whether a word shares a character with the end that the column dates, and is not it.

    在住 is no 退住日期.
    """
    ending = _ENDINGS_HAN.search(f"{column.name} {_said(column)}")
    if ending is None or ending.group() in word:
        return False

    return not set(ending.group()).isdisjoint(word)


def _stemmed(words: Iterable[str]) -> set[str]:
    return {stem(word) for word in words}


def _ends_in(column: Column, words: frozenset[str]) -> bool:
    """Tell whether the last English word of the column's name is one of `words`."""
    return not words.isdisjoint(english_words(column.name)[-1:])


def _begins_with(column: Column, words: frozenset[str]) -> bool:
    return not words.isdisjoint(english_words(column.name)[:1])


def _said(column: Column, default: str = "") -> str:
    """Return what the comment calls the column; `default` without a comment.

    Of a column with a Chinese name the comment only explains what it holds.
    """
    if has_han(column.name):
        return column.name

    names = comment_names(column.comment)
    return next(iter(names), default)


def tells_days(column: Column) -> bool:
    """Tell whether a date column tells days apart, not only months."""
    form = date_form(column)
    return form is None or not form.endswith("MM")


def flag_codes(column: Column) -> tuple[str, str] | None:
    """Return what a column that is no boolean stores for yes and for no.

    None when it says anything else.
    """
    kind = kind_of(column)
    if kind not in ("number", "text"):
        return None

    labels = labels_of(column.comment)
    if labels:
        return flag_of(dict(labels))
    if not _is_called_flag(column):
        return None
    if kind == "number":
        return ("1", "0")

    return flag_of({value: value for value in column.values})


def _is_called_flag(column: Column) -> bool:
    if _FLAG.search(column.name) or _is_flag_word(column):
        return True

    return any(name.startswith(_FLAG_HAN) for name in comment_names(column.comment))


def is_whole_number(column: Column) -> bool:
    """Tell whether the column holds integers only, by its type."""
    return column.type.lower().endswith(("int", "integer"))


def _is_flag_word(column: Column) -> bool:
    """Tell whether the name is but a word for what a row is or is not, as `discontinued`."""
    words = english_words(column.name)
    return len(words) == 1 and words[0] in _FLAG_WORDS and not column.nullable


def is_averaged(column: Column) -> bool:
    """Tell whether the column is a rate, price, age or score, whose plain sum means nothing."""
    name = _said(column, column.name)
    if _begins_with(column, _SUMMED) or name.startswith(_SUMMED_HAN):
        return False
    if _ends_in(column, _AVERAGED) or _begins_with(column, _UNIT):
        return True

    return _AVERAGED_HAN.search(name) is not None


def is_level(table: Table, column: Column) -> bool:
    """Tell whether the column says how much there is at a moment, as stock and balances do.

    A table of such moments says it in the last word of its name: `daily_stock`, not `stock_moves`.
    """
    if _are_of_moments(english_words(column.name)) or _are_of_moments(stems(table.name)):
        return True

    names = (_said(column, column.name), *comment_names(table.comment))
    return any(map(_LEVELS_HAN.search, names))


def _are_of_moments(words: Iterable[str]) -> bool:
    """Tell whether the last of the words, an amount left out, says how much there is."""
    words = [stem(word) for word in words]
    if len(words) > 1 and words[-1] in _LEVEL_AMOUNTS:
        words.pop()

    return not _LEVELS.isdisjoint(words[-1:])


def _is_discount(column: Column) -> bool:
    if _ends_in(column, _DISCOUNTS):
        return True

    return _DISCOUNTS_HAN.search(_said(column)) is not None


def _is_share_off(column: Column) -> bool:
    """Tell whether a discount is a share of 1 by its type; 折扣 may be the share that remains."""
    if not _ends_in(column, _DISCOUNTS):
        return False
    if column.type.lower() in ("real", "double precision"):
        return True

    scaled = _SCALED.fullmatch(column.type.lower())
    if scaled is None:
        return False

    digits, places = map(int, scaled.groups())
    return places > 0 and digits - places <= 1


def is_score(column: Column) -> bool:
    """Tell whether the column holds what somebody thinks of a thing: of several, the average."""
    if _ends_in(column, _SCORES):
        return True

    return _SCORES_HAN.search(_said(column, column.name)) is not None


def is_housekeeping(column: Column) -> bool:
    """Tell whether the column by its name serves the application rather than the reader."""
    return bool(_HOUSEKEEPING.match(column.name))


def is_birth_date(column: Column) -> bool:
    """Tell whether the column holds dates of birth."""
    names = (column.name, *comment_names(column.comment))
    return any(map(_BIRTH.search, names))


def needs_cast(column: Column) -> bool:
    """Tell whether text operators apply to the column only after a cast (enums, domains, uuid)."""
    if kind_of(column) not in ("text", "other"):
        return False

    return not _SPELLED.match(column.type.lower())


def is_year(column: Column) -> bool:
    """Tell whether a number column holds years."""
    if kind_of(column) != "number":
        return False
    if english_words(column.name)[-1:] == _YEAR:
        return True

    return any(map(_YEAR_HAN.search, (column.name, _said(column))))


@lru_cache(maxsize=16384)
def stems(name: str) -> tuple[str, ...]:
    """Return the words of a table's name that say what it holds, without inflection."""
    words = core_words(english_words(name))
    return tuple(stem(word) for word in words)


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
    """The purpose of one table and its columns.

    Attributes:
        display: columns that name a row to people; empty when nothing does.
        deleted: the column that marks soft deletion.
        dates: columns that say when the row's event happened, best first; housekeeping ones are not
            among them.
        year: the number column that says in which year, where there is one.
        edges: its references to parents.
        date: the one of `dates` that is meant where none is named, as the semantic file says.
        filter: the semantic file's condition on rows that take part, and (`filtered`) the columns
            it is about.
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
        """Tell whether nothing but the filter leaves rows out."""
        if self.filter is None:
            return False

        return self.deleted is None or self.deleted in self.filtered

    @cached_property
    def reference_columns(self) -> frozenset[str]:
        """Return columns that point to other rows."""
        return frozenset(name for edge in self.edges for name in edge.columns)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return columns that identify a row; empty when unknown."""
        return self.table.primary_key

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Return columns that show a row: its names, else the number people know it by, else its
        key.
        """
        if self.display:
            return self.display

        for column in self.table.columns:
            if self._is_own_number(column):
                return (column.name,)

        if self.key:
            return self.key

        return (self.table.columns[0].name,)

    def _is_own_number(self, column: Column) -> bool:
        """Tell whether a text column is the number people know the row by, as `order_number`."""
        if kind_of(column) != "text" or column.name in self.reference_columns:
            return False
        if not _ends_in(column, _NUMBER_WORDS):
            return False

        *words, _number = english_words(column.name)
        own = _NUMBERED.union(stems(self.table.name))
        return _stemmed(words) <= own

    def is_identifier(self, column: Column) -> bool:
        """Tell whether the column's values name things rather than measure them."""
        if self.key == (column.name,) or column.name in self.reference_columns:
            return True

        is_code = _ends_in(column, _CODE_WORDS) or _CODE_HAN.search(_said(column)) is not None
        return is_code and not self.is_count(column)

    def is_count(self, column: Column) -> bool:
        """Tell whether the column says how many there are of something."""
        if _COUNTED.search(column.name):
            return True

        return _COUNTED_HAN.search(_said(column)) is not None

    @cached_property
    def discounts(self) -> tuple[Column, ...]:
        """Return the columns by which the price of a row may be reduced."""
        return tuple(filter(_is_discount, self.measures))

    @cached_property
    def discount_share(self) -> str | None:
        """Return the column with the share by which the price of a row is reduced, if one has."""
        if len(self.discounts) == 1 and _is_share_off(self.discounts[0]):
            return self.discounts[0].name

        return None

    @cached_property
    def own_quantity(self) -> Column | None:
        """Return the column that says how much there is of what the table keeps, if one does.

        Of 库存 it is 库存数量, of `stock` it is `stock_quantity`: nobody counts its rows. Orders
        are counted, though they have quantities.
        """
        if not self.keeps_amounts:
            return None

        for column in self.measures:
            if self.is_count(column) and self._is_called_like_rows(column):
                return column

        return None

    @property
    def keeps_amounts(self) -> bool:
        is_called_so = not self._table_names.isdisjoint(_AMOUNTS_KEPT_HAN)
        return is_called_so or not _AMOUNTS_KEPT.isdisjoint(stems(self.table.name))

    @property
    def _table_names(self) -> set[str]:
        return {self.table.name, *comment_names(self.table.comment)}

    def _is_called_like_rows(self, column: Column) -> bool:
        words = english_words(column.name)
        if len(words) == 1:  # but "quantity"
            return True

        called = _said(column)
        if _COUNTED_HAN.search(called):
            return _COUNTED_HAN.sub("", called) in self._table_names

        return stems(" ".join(words[:-1])) == stems(self.table.name)

    def is_measure(self, column: Column) -> bool:
        """Tell whether totals or averages of the column mean something."""
        if kind_of(column) != "number" or column.name == self.deleted or _is_flag_word(column):
            return False
        if self.is_identifier(column) or has_labels(column):
            return False
        if _ends_in(column, _CODED):
            return False

        return _CODED_HAN.search(_said(column, column.name)) is None

    @cached_property
    def measures(self) -> tuple[Column, ...]:
        """Return the columns whose totals or averages mean something."""
        return tuple(column for column in self.table.columns if self.is_measure(column))

    def is_housekeeping(self, column: Column) -> bool:
        """Tell whether the column serves the application rather than the reader."""
        return is_housekeeping(column) or column.name == self.deleted

    @property
    def is_person(self) -> bool:
        """Tell whether rows are people."""
        if len(self.display) > 1:
            return True

        words = _stemmed(english_words(self.table.name))
        if not words.isdisjoint(_PEOPLE):
            return True

        names = (self.table.name, *self.display, *comment_names(self.table.comment))
        return _PEOPLE_SAID.search(" ".join(names).lower()) is not None

    @property
    def is_entity(self) -> bool:
        """Tell whether rows are things with a name rather than events.

        A label that is only a number names no thing.
        """
        if not self.display:
            return False

        return self.has_names or not all(map(self._is_number, self.display))

    @property
    def is_event(self) -> bool:
        """Tell whether rows happen: they have no name, or only a number."""
        return not self.is_entity or all(map(self._is_number, self.display))

    def _is_number(self, name: str) -> bool:
        column = self.table.column(name)
        if column is None:
            return False

        return kind_of(column) != "text" or self.is_identifier(column)

    @property
    def is_report(self) -> bool:
        """Tell whether a row is a part of a period's figures rather than one thing or event.

        Such rows have a key of several columns, a date among them: day, shop, payment type.
        """
        if self.is_entity or len(self.key) < 2:
            return False

        return not set(self.key).isdisjoint(self.dates)
