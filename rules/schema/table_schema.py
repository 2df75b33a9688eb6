"""The tables of a catalogue with what each is for, and the references between them, declared or
guessed from names.
"""

import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import cached_property

from common.meanings import ColumnMeaning, Metric, TableKey
from common.values import Catalog, Column, Table
from knowledge.language.atoms import key_of
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import comment_names, core_words, english_words
from knowledge.tables.implied_references import implied_references
from rules.schema.links import METRIC, Link
from rules.schema.table_facts import (
    Edge,
    Facts,
    is_birth_date,
    is_housekeeping,
    is_outcome,
    is_year,
    kind_of,
    stems,
)
from rules.words import WORDS

_EN, _ZH = WORDS.english, WORDS.chinese
_CREATED = _EN.pattern("columns.created", "^", "$", re.IGNORECASE)
_DELETED = _EN.pattern("columns.deleted", "^", "$", re.IGNORECASE)
_DELETED_HAN = _ZH.pattern("columns.deleted")
_RECORDING = frozenset(map(stem, _EN.phrases("columns.recording")))
_PLAIN_DATES = _EN.one_of("columns.plain_dates")
_NAME_WORDS, _NAME_END = _EN.one_of("columns.names"), _EN.text("columns.name_end")
_HAN_NAME = _ZH.pattern("columns.names", end="$")
_GIVEN = [tuple(name.split(" ")) for name in _EN.phrases("columns.given_names")]
_FAMILY = [tuple(name.split(" ")) for name in _EN.phrases("columns.family_names")]
_WHOLE_NAMES = frozenset(map(stem, _EN.phrases("columns.whole_names")))
_LEAST_OF_PART = 3  # columns of one part of a row
_TEXT_KEYS, _KEYS = _EN.one_of("columns.text_keys"), _EN.one_of("columns.keys")
_OWN_KIND = {tuple(name.split(" ")) for name in _EN.phrases("columns.own_kind")}
_LINES_HAN = _ZH.pattern("tables.lines")
_ADJECTIVES = frozenset(map(stem, _EN.phrases("tables.adjectives")))


def _deletion_column(table: Table) -> str | None:
    """Return the column that marks soft-deleted rows, by its name or comment."""
    kinds = ("boolean", "number", "date", "timestamp", "text")
    for column in table.columns:
        by_comment = any(map(_DELETED_HAN.search, (column.comment or "", column.name)))
        if (_DELETED.match(column.name) or by_comment) and kind_of(column) in kinds:
            return column.name

    return None


def _display(table: Table, edges: list[Edge]) -> tuple[str, ...]:
    """Return the columns that name a row to people; none where nothing does."""
    references = {name for edge in edges for name in edge.columns}
    grouped = _columns_of_parts(table)
    texts = [
        column
        for column in table.columns
        if kind_of(column) == "text" and column.name not in references | grouped
    ]
    parts = _name_parts(texts)
    if parts:
        return parts

    points_up = any(edge.parent != edge.child for edge in edges)
    own = set(stems(table.name))
    best: Column | None = None
    best_score = 0
    for column in texts:
        score = _display_score(column, table, own, points_up=points_up)
        if score > best_score:
            best, best_score = column, score

    return (best.name,) if best is not None else ()


def _columns_of_parts(table: Table) -> set[str]:
    """Return the columns whose names begin like those of several others.

    Together they describe one part of the row, such as the address in `billing_city`,
    `billing_state` and so on: none of them names the row.
    """
    by_first: dict[str, list[str]] = {}
    for column in table.columns:
        words = english_words(column.name)
        if len(words) > 1 and kind_of(column) == "text":
            by_first.setdefault(words[0], []).append(column.name)

    own = set(english_words(table.name))
    columns: set[str] = set()
    for first, names in by_first.items():
        if len(names) >= _LEAST_OF_PART and not {first, stem(first)} & (own | set(map(stem, own))):
            columns.update(names)

    return columns


def _name_parts(texts: list[Column]) -> tuple[str, ...]:
    """Return the columns of a given and a family name."""
    by_words = {english_words(column.name): column.name for column in texts}
    for first, last in itertools.product(_GIVEN, _FAMILY):
        if first in by_words and last in by_words:
            return (by_words[first], by_words[last])

    return ()


def _display_score(column: Column, table: Table, own: set[str], *, points_up: bool) -> int:
    """Return how well the column names the rows; 0 not at all.

    Names of other things serve where nothing points up.
    """
    called = comment_names(column.comment)[:1]
    of_other = 0 if points_up else 3
    for name in (*called, column.name):
        if _HAN_NAME.search(name):
            is_own = _names_own_rows(name, table, points_up=points_up)
            return 9 if is_own else of_other

    words = english_words(column.name)
    last = words[-1] if words else ""
    is_called_in_han = any(map(has_han, called))
    if not is_called_in_han and last in _NAME_WORDS:
        rest = set(map(stem, words[:-1]))
        return _score_of_rest(rest, own) or of_other

    if not is_called_in_han and set(map(stem, words)) == own:
        return 5
    if last.endswith(_NAME_END):
        return 4
    if last in _TEXT_KEYS:
        # a code that rows may lack, as the coupon_code of an order, is that of something else
        is_own = set(map(stem, words[:-1])) <= own
        return 2 if is_own or not column.nullable else 0

    return 0


def _names_own_rows(name: str, table: Table, *, points_up: bool) -> bool:
    """Tell whether a Chinese name of a column, as 公司名称, is that of the table's own rows."""
    rest = _HAN_NAME.sub("", name)
    if not rest:
        return True

    owner = "".join((*comment_names(table.comment)[:1], table.name))
    of_line = points_up and _LINES_HAN.search(owner)
    return not of_line and not set(rest).isdisjoint(owner)


def _score_of_rest(words: set[str], own: set[str]) -> int:
    """Score a column called name by the words before that; 0 for words of another thing."""
    if words <= own:
        return 10
    if words <= _WHOLE_NAMES:
        return 8

    return 6 if words & own else 0


def _dates(table: Table, deleted: str | None) -> tuple[str, ...]:
    """Return the date columns of the row's event, the one named like the table first.

    Creation, outcomes and births come last.
    """
    own = set(stems(table.name))
    meant = table.meaning.date_column if table.meaning is not None else None
    ranked: list[tuple[int, str]] = []
    for column in table.columns:
        if column.name == meant:
            ranked.append((0, column.name))
        elif column.name != deleted and _is_date(column):
            ranked.append((_rank_of_date(column, own), column.name))

    ranked.sort(key=lambda item: item[0])
    return tuple(name for _rank, name in ranked)


def _is_date(column: Column) -> bool:
    if kind_of(column) not in ("date", "timestamp"):
        return False

    return not is_housekeeping(column)


def _rank_of_date(column: Column, own: set[str]) -> int:
    """Return how soon a date is meant where none is named: 1 is soonest."""
    if _CREATED.match(column.name):
        return 3
    if is_outcome(column) or is_birth_date(column):
        return 4

    words = set(english_words(column.name))
    if words <= _PLAIN_DATES or not own.isdisjoint(map(stem, words)):
        return 1

    return 2


def _year(table: Table) -> str | None:
    """Return the one integer column that holds a year."""
    years = [column.name for column in table.columns if is_year(column)]
    return years[0] if len(years) == 1 else None


def _with_declared_meaning(facts: Facts) -> Facts:
    """Return the facts with what the semantic file adds to them."""
    meaning = facts.table.meaning
    if meaning is None:
        return facts
    if meaning.label_columns:
        facts = replace(facts, display=meaning.label_columns, has_names=facts.is_entity)

    declared = [
        Edge(facts.table.key, join.columns, join.target, join.target_columns, is_preferred=True)
        for join in meaning.joins
    ]
    ways = {(edge.columns, edge.parent) for edge in declared}
    edges = (*declared, *(edge for edge in facts.edges if (edge.columns, edge.parent) not in ways))
    filtered = frozenset(meaning.filter_columns)
    return replace(
        facts,
        edges=edges,
        date=meaning.date_column,
        filter=meaning.default_filter,
        filtered=filtered,
    )


def _modules_of(catalog: Catalog) -> set[str]:
    """Return the words that several tables' names begin with, as `crm` in `crm_contract`.

    The `reading` of `reading_room` and `reading_room_chair` is none: rooms are all that it has.
    """
    names = {stems(table.name) for table in catalog.tables if table.kind == "table"}
    beginnings = {words[:2] for words in names if len(words) > 1}
    firsts = Counter(first for first, _ in beginnings)
    modules = set()
    for word, count in firsts.items():
        is_table = (word,) in names
        if count > 1 and not is_table:
            modules.add(word)

    return modules - _ADJECTIVES


def _words_of_reference(column: Column) -> tuple[str, ...]:
    """Return the words of the column's name without those for keys: (`parent`,) for parent_id."""
    words = english_words(column.name)
    return tuple(word for word in words if word not in _KEYS)


class Schema:
    """The catalogue with its facts and its reference graph."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._modules = _modules_of(catalog)
        implied = zip(catalog.tables, implied_references(catalog.tables), strict=True)
        self._implied = {table.key: references for table, references in implied}
        self.facts: dict[TableKey, Facts] = {
            table.key: self._facts_of(table) for table in catalog.tables
        }
        self._metrics = {(metric.table, metric.name): metric for metric in catalog.metrics}
        self.metrics_of: dict[TableKey, list[Metric]] = {}
        for metric in catalog.metrics:
            self.metrics_of.setdefault(metric.table, []).append(metric)

    @cached_property
    def persons(self) -> tuple[TableKey, ...]:
        """Return the tables whose rows are people with names."""
        return tuple(
            key for key, facts in self.facts.items() if facts.is_person and facts.is_entity
        )

    def table(self, key: TableKey) -> Table:
        """Return the table of that key."""
        return self.catalog.by_key[key]

    def column(self, key: TableKey, name: str) -> Column:
        """Return the column of that name, which must exist; a metric of that name, as a column of
        numbers, where none does.
        """
        column = self.table(key).column(name)
        if column is None:
            metric = self._metrics[key, name]
            return Column(
                name,
                "numeric",
                meaning=ColumnMeaning(metric.names, metric.description, metric.unit),
            )

        return column

    def metric(self, key: TableKey, name: str | None) -> Metric:
        """Return the metric of that name, which must exist."""
        return self._metrics[key, str(name)]

    def is_metric(self, link: Link) -> bool:
        """Tell whether the link's phrase is the name of a metric.

        A metric may be no more than its column's sum.
        """
        metrics = self.metrics_of.get(link.table, ())
        return link.derived == METRIC or any(
            link.spelling == key_of(name) for metric in metrics for name in metric.names.all
        )

    def name_in_module(self, table: Table) -> str | None:
        """Return `contract` for `crm_contract`, where several tables begin so and none is called
        `crm`.
        """
        words = core_words(english_words(table.name))
        if len(words) > 1 and stem(words[0]) in self._modules:
            return " ".join(words[1:])

        return None

    def _facts_of(self, table: Table) -> Facts:
        edges = [
            Edge(table.key, fk.columns, fk.target, fk.target_columns)
            for fk in table.foreign_keys
            if fk.target in self.catalog.by_key
        ]
        declared = {name for edge in edges for name in edge.columns}
        edges.extend(self._inferred_edges(table, declared))
        deleted = _deletion_column(table)
        return _with_declared_meaning(
            Facts(
                table,
                _display(table, edges),
                deleted,
                _dates(table, deleted),
                tuple(edges),
                _year(table),
            )
        )

    def _inferred_edges(self, table: Table, declared: set[str]) -> list[Edge]:
        """Return references nobody declared, by the columns' names; who keeps the records
        (`create_user_id`) is not one.
        """
        edges: list[Edge] = []
        for reference in self._implied[table.key]:
            target, column = self.catalog.tables[reference.target], table.column(reference.column)
            if reference.candidates > 1 or column is None or len(target.primary_key) != 1:
                continue

            identity = target.column(target.primary_key[0])
            is_record = reference.is_role and _RECORDING & set(
                map(stem, english_words(column.name)[:1])
            )
            if identity is not None and kind_of(identity) == kind_of(column) and not is_record:
                edges.append(
                    Edge(
                        table.key, (column.name,), target.key, target.primary_key, is_declared=False
                    )
                )

        own = self._self_edge(table, declared)
        return [*edges, own] if own is not None else edges

    def _self_edge(self, table: Table, declared: set[str]) -> Edge | None:
        """Return an undeclared reference to another row of the same table, by the words such
        columns are called.
        """
        if len(table.primary_key) != 1:
            return None

        identity = table.column(table.primary_key[0])
        if identity is None or kind_of(identity) != "number":
            return None

        for column in table.columns:
            if column.name in declared or column.name == identity.name:
                continue
            if kind_of(column) == "number" and _words_of_reference(column) in _OWN_KIND:
                return Edge(
                    table.key, (column.name,), table.key, table.primary_key, is_declared=False
                )

        return None
