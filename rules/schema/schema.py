"""What each table and column is for: keys, display names, measures, dates, soft deletion — derived from the catalogue.

Everything here is a guess from names, types and keys, made once per catalogue, in one place, so that planning and
rendering agree about it.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

from common.meanings import ColumnMeaning, Metric
from common.values import Catalog, Column, Table
from knowledge.atoms import stem
from knowledge.codes import flag_of, labels_of
from knowledge.naming import comment_names, core_words, english_words, has_han
from knowledge.stored_values import has_labels
from rules.words import WORDS

TableKey = tuple[str, str]
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
_CREATED = _EN.pattern("columns.created", "^", "$", re.IGNORECASE)
_DELETED = _EN.pattern("columns.deleted", "^", "$", re.IGNORECASE)
_DELETED_HAN = _ZH.pattern("columns.deleted")
_OUTCOMES = frozenset(map(stem, _EN.phrases("columns.outcomes")))
_OUTCOMES_HAN = _ZH.pattern("columns.outcomes")
_RECORDING = frozenset(map(stem, _EN.phrases("columns.recording")))
_FLAG = _EN.pattern("columns.flags", "^", "(_|(?=[A-Z]))")
_FLAG_HAN = _ZH.phrases("columns.flags")
_BIRTH = re.compile(WORDS.any_of("columns.birth"), re.IGNORECASE)
_PLAIN_DATES = _EN.one_of("columns.plain_dates")
_YEAR, _YEAR_HAN = _EN.phrases("columns.year"), _ZH.phrases("columns.year")
_NAME_WORDS, _NAME_END = _EN.one_of("columns.names"), _EN.text("columns.name_end")
_HAN_NAME = _ZH.pattern("columns.names", end="$")
_GIVEN = [tuple(name.split(" ")) for name in _EN.phrases("columns.given_names")]
_FAMILY = [tuple(name.split(" ")) for name in _EN.phrases("columns.family_names")]
_WHOLE_NAMES = frozenset(map(stem, _EN.phrases("columns.whole_names")))
_TEXT_KEYS, _ID, _KEYS = _EN.one_of("columns.text_keys"), _EN.text("columns.id"), _EN.one_of("columns.keys")
_CODE_WORDS, _CODE_HAN = _EN.one_of("columns.codes"), _ZH.pattern("columns.codes", end="$")
_CODED, _CODED_HAN = _EN.one_of("columns.coded"), _ZH.pattern("columns.coded", end="$")
_AVERAGED, _AVERAGED_HAN = _EN.one_of("columns.averaged"), _ZH.pattern("columns.averaged", end="$")
_SUMMED, _SUMMED_HAN = _EN.one_of("columns.summed"), _ZH.phrases("columns.summed")
_COUNTED = _EN.pattern("columns.counted", flags=re.IGNORECASE)
_COUNTED_HAN = _ZH.pattern("columns.counted", end="$")
_UNIT, _NUMBER_WORDS, _NUMBERED = (_EN.one_of(f"columns.{one}") for one in ("unit", "numbers", "numbered"))
_OWN_KIND = {tuple(name.split(" ")) for name in _EN.phrases("columns.own_kind")}
_PEOPLE = frozenset(map(stem, _EN.phrases("tables.people")))
_PEOPLE_SAID = re.compile(WORDS.any_of("tables.people_said"))
_LINES_HAN = _ZH.pattern("tables.lines")
_ADJECTIVES = frozenset(map(stem, _EN.phrases("tables.adjectives")))


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
    if len(column.values) < 2 or not column.values[0].startswith(("19", "20")):
        return None  # most columns, at once
    if not _SPELLED.match(column.type.lower()):
        return None
    return next(
        (form for form, pattern in _DATE_FORMS.items() if all(map(re.compile(pattern).fullmatch, column.values))), None
    )


def is_outcome(column: Column) -> bool:
    """Whether a date says when something ended, was paid or the like, which may not have happened yet."""
    said = bool(_OUTCOMES & {stem(word) for word in english_words(column.name)})
    return column.nullable and (said or any(_OUTCOMES_HAN.search(name) for name in comment_names(column.comment)[:1]))


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
    names = comment_names(column.comment) or [column.name]
    words = english_words(column.name)
    if _SUMMED & {*words[:1]} or names[0].startswith(_SUMMED_HAN):
        return False
    return bool(_AVERAGED & {*words[-1:]} or _UNIT & {*words[:1]}) or bool(_AVERAGED_HAN.search(names[0]))


def is_birth_date(column: Column) -> bool:
    """Whether the column holds dates of birth."""
    texts = (column.name, *comment_names(column.comment))
    return any(map(_BIRTH.search, texts))


def needs_cast(column: Column) -> bool:
    """Whether the column must be cast to text before text operators apply (enums, domains, uuid, …)."""
    return kind_of(column) in ("text", "other") and not _SPELLED.match(column.type.lower())


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
        own = set(_stems(self.table.name)) | _NUMBERED
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
        words = english_words(column.name)
        names = comment_names(column.comment)
        single_key = self.key == (column.name,)
        coded = bool(words and words[-1] in _CODE_WORDS) or any(_CODE_HAN.search(name) for name in names[:1])
        return single_key or column.name in self.reference_columns or (coded and not self.is_count(column))

    def is_count(self, column: Column) -> bool:
        """Whether the column says how many there are of something."""
        return bool(_COUNTED.search(column.name)) or any(
            _COUNTED_HAN.search(name) for name in comment_names(column.comment)[:1]
        )

    def is_measure(self, column: Column) -> bool:
        """Whether totals or averages of the column mean something."""
        coded = bool(english_words(column.name)[-1:] and english_words(column.name)[-1] in _CODED)
        coded = (
            coded or bool(_CODED_HAN.search((comment_names(column.comment) or [column.name])[0])) or has_labels(column)
        )
        return (
            kind_of(column) == "number" and not coded and not self.is_identifier(column) and column.name != self.deleted
        )

    @cached_property
    def measures(self) -> tuple[Column, ...]:
        """The columns whose totals or averages mean something."""
        return tuple(column for column in self.table.columns if self.is_measure(column))

    def is_averaged(self, column: Column) -> bool:
        """Whether the column is a rate, price, age or score, whose plain sum means nothing."""
        return is_averaged(column)

    def is_housekeeping(self, column: Column) -> bool:
        """Whether the column serves the application rather than the reader."""
        return bool(_HOUSEKEEPING.match(column.name)) or column.name == self.deleted

    @property
    def is_person(self) -> bool:
        """Whether rows are people."""
        if len(self.display) > 1:
            return True
        named = " ".join((self.table.name, *self.display, *comment_names(self.table.comment))).lower()
        return bool(_PEOPLE & {stem(word) for word in english_words(self.table.name)}) or bool(
            _PEOPLE_SAID.search(named)
        )

    @property
    def is_entity(self) -> bool:
        """Whether rows are things with a name rather than events."""
        return bool(self.display)

    @property
    def is_report(self) -> bool:
        """Whether a row is a part of a period's figures (`day, shop, payment type`) rather than one thing or event."""
        return not self.is_entity and len(self.key) > 1 and bool({*self.key} & {*self.dates})


def deletion_column(table: Table) -> str | None:
    """The column that marks soft-deleted rows, by its name or comment."""
    for column in table.columns:
        by_comment = any(_DELETED_HAN.search(text) for text in (column.comment or "", column.name))
        if (_DELETED.match(column.name) or by_comment) and kind_of(column) in (
            "boolean",
            "number",
            "date",
            "timestamp",
            "text",
        ):
            return column.name
    return None


def _display(table: Table, edges: list[Edge]) -> tuple[str, ...]:
    if table.meaning is not None and table.meaning.label_columns:
        return table.meaning.label_columns
    references = {name for edge in edges for name in edge.columns}
    points_up = any(edge.parent != edge.child for edge in edges)
    texts = [column for column in table.columns if kind_of(column) == "text" and column.name not in references]
    by_words = {english_words(column.name): column.name for column in texts}
    for first, last in itertools.product(_GIVEN, _FAMILY):
        if first in by_words and last in by_words:
            return (by_words[first], by_words[last])
    own = set(_stems(table.name))
    ranked = sorted(
        (
            (score, -index, column.name)
            for index, column in enumerate(texts)
            if (score := _display_score(column, table, own, points_up=points_up)) > 0
        ),
        reverse=True,
    )
    return (ranked[0][2],) if ranked else ()


@lru_cache(maxsize=16384)
def _stems(name: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in core_words(english_words(name)))


def _display_score(column: Column, table: Table, own: set[str], *, points_up: bool) -> int:
    """How well the column names the rows; 0 not at all. Names of other things serve where nothing points up."""
    words = english_words(column.name)
    spelled = [name for name in (*comment_names(column.comment)[:1], column.name) if _HAN_NAME.search(name)]
    if spelled:
        owner = "".join(name for name in (*comment_names(table.comment)[:1], table.name))
        rest = _HAN_NAME.sub("", spelled[0])
        of_line = points_up and _LINES_HAN.search(owner)
        return 9 if not rest or (set(rest) & set(owner) and not of_line) else 0 if points_up else 3
    if any(has_han(name) for name in comment_names(column.comment)[:1]):
        return 4 if words and words[-1].endswith(_NAME_END) else 2 if words and words[-1] in _TEXT_KEYS else 0
    if words and words[-1] in _NAME_WORDS:
        rest_words = {stem(word) for word in words[:-1]}
        if not rest_words or rest_words <= own:
            return 10
        return 8 if rest_words <= _WHOLE_NAMES else 6 if rest_words & own else 0 if points_up else 3
    if {stem(word) for word in words} == own:
        return 5
    if words and words[-1].endswith(_NAME_END):
        return 4
    return 2 if words and words[-1] in _TEXT_KEYS else 0


def _dates(table: Table, deleted: str | None) -> tuple[str, ...]:
    """Date columns of the row's event: the one named like the table first, records of creation last but outcomes."""
    own = set(_stems(table.name))

    def rank(item: tuple[int, Column]) -> tuple[int, int]:
        index, column = item
        words = set(english_words(column.name))
        if column.name == meant:
            return (-1, index)
        if _CREATED.match(column.name):
            return (3, index)
        if is_outcome(column):
            return (4, index)
        if {stem(word) for word in words} & own or words <= _PLAIN_DATES:
            return (0, index)
        return (1, index)

    meant = table.meaning.date_column if table.meaning is not None else None
    found = [
        item
        for item in enumerate(table.columns)
        if item[1].name == meant
        or kind_of(item[1]) in ("date", "timestamp")
        and not _HOUSEKEEPING.match(item[1].name)
        and item[1].name != deleted
    ]
    return tuple(column.name for _, column in sorted(found, key=rank))


def _year(table: Table) -> str | None:
    """The one integer column that holds a year."""
    found = [column.name for column in table.columns if is_year(column)]
    return found[0] if len(found) == 1 else None


def is_year(column: Column) -> bool:
    """Whether a number column holds years."""
    if kind_of(column) != "number":
        return False
    return english_words(column.name)[-1:] == _YEAR or any(
        name.endswith(_YEAR_HAN) for name in (column.name, *comment_names(column.comment)[:1])
    )


def _meant(facts: Facts) -> Facts:
    """The facts with what the semantic file adds to them."""
    meaning = facts.table.meaning
    if meaning is None:
        return facts
    said = [
        Edge(facts.table.key, join.columns, join.target, join.target_columns, is_preferred=True)
        for join in meaning.joins
    ]
    ways = {(edge.columns, edge.parent) for edge in said}
    edges = (*said, *(edge for edge in facts.edges if (edge.columns, edge.parent) not in ways))
    filtered = frozenset(meaning.filter_columns)
    return replace(facts, edges=edges, date=meaning.date_column, filter=meaning.default_filter, filtered=filtered)


class Schema:
    """The catalogue with its facts and its reference graph."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        identified = {
            table.primary_key[0].lower(): table
            for table in reversed(catalog.tables)
            if len(table.primary_key) == 1 and table.primary_key[0].lower() != _ID
        }
        self._by_id_name = identified
        self._by_stem = {
            tuple(sorted(set(_stems(table.name)))): table for table in catalog.tables if table.kind == "table"
        }
        firsts = Counter(_stems(table.name)[0] for table in self._by_stem.values() if len(_stems(table.name)) > 1)
        shared = {word for word, count in firsts.items() if count > 1 and (word,) not in self._by_stem}
        self._modules = shared - _ADJECTIVES
        self._within_module: dict[tuple[str, ...], list[Table]] = {}
        for table in self._by_stem.values():
            self._within_module.setdefault(_stems(table.name)[1:], []).append(table)
        self.facts: dict[TableKey, Facts] = {table.key: self._facts_of(table) for table in catalog.tables}
        self._metrics = {(metric.table, metric.name): metric for metric in catalog.metrics}
        self.metrics_of: dict[TableKey, list[Metric]] = {}
        for metric in catalog.metrics:
            self.metrics_of.setdefault(metric.table, []).append(metric)

    @cached_property
    def persons(self) -> tuple[TableKey, ...]:
        """The tables whose rows are people with names."""
        return tuple(key for key, facts in self.facts.items() if facts.is_person and facts.is_entity)

    def table(self, key: TableKey) -> Table:
        """The table of that key."""
        return self.catalog.by_key[key]

    def column(self, key: TableKey, name: str) -> Column:
        """The column of that name, which must exist; a metric of that name, as a column of numbers, where none does."""
        column = self.table(key).column(name)
        if column is None:
            metric = self._metrics[key, name]
            return Column(name, "numeric", meaning=ColumnMeaning(metric.names, metric.description, metric.unit))
        return column

    def metric(self, key: TableKey, name: str | None) -> Metric:
        """The metric of that name, which must exist."""
        return self._metrics[key, str(name)]

    def name_in_module(self, table: Table) -> str | None:
        """`contract` for `crm_contract`, where several tables begin so and none is called `crm`."""
        words = core_words(english_words(table.name))
        return " ".join(words[1:]) if len(words) > 1 and stem(words[0]) in self._modules else None

    def _facts_of(self, table: Table) -> Facts:
        edges = [
            Edge(table.key, fk.columns, fk.target, fk.target_columns)
            for fk in table.foreign_keys
            if fk.target in self.catalog.by_key
        ]
        declared = {name for edge in edges for name in edge.columns}
        edges.extend(self._inferred_edges(table, declared))
        deleted = deletion_column(table)
        return _meant(Facts(table, _display(table, edges), deleted, _dates(table, deleted), tuple(edges), _year(table)))

    def _inferred_edges(self, table: Table, declared: set[str]) -> list[Edge]:
        """References nobody declared: a column called as another table's only key column, or `<table>_id`."""
        edges: list[Edge] = []
        for column in table.columns:
            if column.name in declared or table.primary_key == (column.name,):
                continue
            target = self._by_id_name.get(column.name.lower()) or self._by_suffix(table, column)
            if target is None or target.key == table.key:
                continue
            identity = target.column(target.primary_key[0]) if target.primary_key else None
            if identity is not None and kind_of(identity) == kind_of(column):
                edges.append(Edge(table.key, (column.name,), target.key, target.primary_key, is_declared=False))
        own = self._self_edge(table, declared)
        return [*edges, own] if own is not None else edges

    def _self_edge(self, table: Table, declared: set[str]) -> Edge | None:
        """An undeclared reference to another row of the same table, by the words such columns are called."""
        if len(table.primary_key) != 1:
            return None
        identity = table.column(table.primary_key[0])
        for column in table.columns:
            words = tuple(word for word in english_words(column.name) if word not in _KEYS)
            if (
                column.name not in declared
                and words in _OWN_KIND
                and identity is not None
                and column.name != identity.name
            ) and kind_of(column) == kind_of(identity) == "number":
                return Edge(table.key, (column.name,), table.key, table.primary_key, is_declared=False)
        return None

    def _by_suffix(self, table: Table, column: Column) -> Table | None:
        """The table that `<name>_id` points to: the one of that name, else what else the name may stand for."""
        words = english_words(column.name)
        if len(words) < 2 or words[-1] != _ID:
            return None
        said = tuple(stem(word) for word in words[:-1])
        target = self._called(said) or self._owner_called(said, table) or self._in_role(said)
        return target if target is not None and len(target.primary_key) == 1 else None

    def _called(self, said: tuple[str, ...]) -> Table | None:
        """The table of that name, else the only one that has but the name of its module before it (`crm_customer`)."""
        exact = self._by_stem.get(tuple(sorted(set(said))))
        within = self._within_module.get(said, ())
        return exact or (within[0] if len(within) == 1 else None)

    def _owner_called(self, said: tuple[str, ...], table: Table) -> Table | None:
        """`order_id` of `repair_order_item`: of `repair_order`."""
        own = _stems(table.name)
        for end in range(len(own) - 1, len(said) - 1, -1):
            if own[end - len(said) : end] == said:
                return self._by_stem.get(tuple(sorted(set(own[:end]))))
        return None

    def _in_role(self, said: tuple[str, ...]) -> Table | None:
        """`sign_user_id`: a user, in the role of who signs; who keeps the records is not of interest."""
        if len(said) < 2 or said[0] in _RECORDING:
            return None
        return self._by_id_name.get("_".join((*said[1:], _ID))) or self._called(said[1:])
