"""The tables of a catalogue with what each is for, and the references between them, declared or guessed from names."""

import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import cached_property

from common.meanings import ColumnMeaning, Metric, TableKey
from common.values import Catalog, Column, Table
from knowledge.atoms import key_of, stem
from knowledge.implied_references import implied_references
from knowledge.naming import comment_names, core_words, english_words, has_han
from rules.schema.facts import Edge, Facts, is_birth_date, is_housekeeping, is_outcome, is_year, kind_of, stems
from rules.schema.links import METRIC, Link
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
_TEXT_KEYS, _KEYS = _EN.one_of("columns.text_keys"), _EN.one_of("columns.keys")
_OWN_KIND = {tuple(name.split(" ")) for name in _EN.phrases("columns.own_kind")}
_LINES_HAN = _ZH.pattern("tables.lines")
_ADJECTIVES = frozenset(map(stem, _EN.phrases("tables.adjectives")))


def _deletion_column(table: Table) -> str | None:
    """The column that marks soft-deleted rows, by its name or comment."""
    kinds = ("boolean", "number", "date", "timestamp", "text")
    for column in table.columns:
        by_comment = any(map(_DELETED_HAN.search, (column.comment or "", column.name)))
        if (_DELETED.match(column.name) or by_comment) and kind_of(column) in kinds:
            return column.name
    return None


def _display(table: Table, edges: list[Edge]) -> tuple[str, ...]:
    references = {name for edge in edges for name in edge.columns}
    points_up = any(edge.parent != edge.child for edge in edges)
    texts = [column for column in table.columns if kind_of(column) == "text" and column.name not in references]
    by_words = {english_words(column.name): column.name for column in texts}
    for first, last in itertools.product(_GIVEN, _FAMILY):
        if first in by_words and last in by_words:
            return (by_words[first], by_words[last])
    own = set(stems(table.name))
    scores = {column.name: _display_score(column, table, own, points_up=points_up) for column in texts}
    best = max(scores, key=scores.__getitem__, default="")
    return (best,) if scores.get(best) else ()


def _display_score(column: Column, table: Table, own: set[str], *, points_up: bool) -> int:
    """How well the column names the rows; 0 not at all. Names of other things serve where nothing points up."""
    words = english_words(column.name)
    spelled = [name for name in (*comment_names(column.comment)[:1], column.name) if _HAN_NAME.search(name)]
    if spelled:
        owner = "".join(name for name in (*comment_names(table.comment)[:1], table.name))
        rest = _HAN_NAME.sub("", spelled[0])
        of_line = points_up and _LINES_HAN.search(owner)
        return 9 if not rest or (set(rest) & set(owner) and not of_line) else 0 if points_up else 3
    last = words[-1] if words else ""
    by_end = 4 if last.endswith(_NAME_END) else 2 if last in _TEXT_KEYS else 0
    if any(has_han(name) for name in comment_names(column.comment)[:1]):
        return by_end
    if last in _NAME_WORDS:
        rest_words = {stem(word) for word in words[:-1]}
        if not rest_words or rest_words <= own:
            return 10
        return 8 if rest_words <= _WHOLE_NAMES else 6 if rest_words & own else 0 if points_up else 3
    return 5 if {stem(word) for word in words} == own else by_end


def _dates(table: Table, deleted: str | None) -> tuple[str, ...]:
    """Date columns of the row's event: the one named like the table first; creation, outcomes and births last."""
    own = set(stems(table.name))
    meant = table.meaning.date_column if table.meaning is not None else None

    def rank(column: Column) -> int:
        words = set(english_words(column.name))
        if column.name == meant:
            return 0
        if _CREATED.match(column.name):
            return 3
        if is_outcome(column) or is_birth_date(column):
            return 4
        return 1 if {stem(word) for word in words} & own or words <= _PLAIN_DATES else 2

    def is_date(column: Column) -> bool:
        return kind_of(column) in ("date", "timestamp") and not is_housekeeping(column) and column.name != deleted

    found = (column for column in table.columns if column.name == meant or is_date(column))
    return tuple(column.name for column in sorted(found, key=rank))


def _year(table: Table) -> str | None:
    """The one integer column that holds a year."""
    found = [column.name for column in table.columns if is_year(column)]
    return found[0] if len(found) == 1 else None


def _meant(facts: Facts) -> Facts:
    """The facts with what the semantic file adds to them."""
    meaning = facts.table.meaning
    if meaning is None:
        return facts
    if meaning.label_columns:
        facts = replace(facts, display=meaning.label_columns, has_names=facts.is_entity)
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
        names = {stems(table.name) for table in catalog.tables if table.kind == "table"}
        firsts = Counter(words[0] for words in names if len(words) > 1)
        self._modules = {word for word, count in firsts.items() if count > 1 and (word,) not in names} - _ADJECTIVES
        implied = zip(catalog.tables, implied_references(catalog.tables), strict=True)
        self._implied = {table.key: found for table, found in implied}
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

    def is_metric(self, link: Link) -> bool:
        """Whether the link's phrase is the name of a metric, also of one that is no more than its column's sum."""
        metrics = self.metrics_of.get(link.table, ())
        return link.derived == METRIC or any(link.spelling == key_of(name) for one in metrics for name in one.names.all)

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
        deleted = _deletion_column(table)
        return _meant(Facts(table, _display(table, edges), deleted, _dates(table, deleted), tuple(edges), _year(table)))

    def _inferred_edges(self, table: Table, declared: set[str]) -> list[Edge]:
        """References nobody declared, by the columns' names; who keeps the records (`create_user_id`) is not one."""
        edges: list[Edge] = []
        for found in self._implied[table.key]:
            target, column = self.catalog.tables[found.target], table.column(found.column)
            if found.candidates > 1 or column is None or len(target.primary_key) != 1:
                continue
            identity = target.column(target.primary_key[0])
            is_record = found.is_role and _RECORDING & set(map(stem, english_words(column.name)[:1]))
            if identity is not None and kind_of(identity) == kind_of(column) and not is_record:
                edges.append(Edge(table.key, (column.name,), target.key, target.primary_key, is_declared=False))
        own = self._self_edge(table, declared)
        return [*edges, own] if own is not None else edges

    def _self_edge(self, table: Table, declared: set[str]) -> Edge | None:
        """An undeclared reference to another row of the same table, by the words such columns are called."""
        identity = table.column(table.primary_key[0]) if len(table.primary_key) == 1 else None
        if identity is None or kind_of(identity) != "number":
            return None
        for column in table.columns:
            words = tuple(word for word in english_words(column.name) if word not in _KEYS)
            is_free = column.name not in declared and column.name != identity.name
            if is_free and words in _OWN_KIND and kind_of(column) == "number":
                return Edge(table.key, (column.name,), table.key, table.primary_key, is_declared=False)
        return None
