"""Questions that the connected database can really answer: to begin with, and about what a sentence mentions.

Each is built from what it is to ask, put into words, and read again by the rules; it is offered only when they read
just that out of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from common.inquiry import Inquiry
from common.text import Lang, Text
from common.values import Catalog, Table
from knowledge.index import CatalogIndex, Part
from knowledge.naming import plural, spoken_name
from rules.composing.understanding import understand
from rules.linking.marks import marks_of
from rules.query.query import ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.query.refusals import Refusal
from rules.schema.facts import Facts, is_averaged, kind_of
from rules.schema.lexicon import LEXICON, Lexicon, lexicon_for, lexicon_of
from rules.schema.links import Link

_EXAMPLES = 3
_MAX_TRIED = 40  # tables
_OFFERS = 2
_CLEAR_QUALITY = 0.6


def main_tables(catalog: Catalog) -> tuple[Table, ...]:
    """Base tables, those that many others refer to first."""
    return _MAIN_TABLES.of(catalog)


def _main_tables(index: CatalogIndex) -> tuple[Table, ...]:
    graph, all_tables = index.part(LEXICON).graph, index.catalog.tables
    tables = [table for table in all_tables if table.kind == "table"] or all_tables
    weight = {table.key: len(graph.below(table.key)) + len(graph.above(table.key)) for table in tables}
    return tuple(sorted(tables, key=lambda table: (-weight[table.key], table.name)))


_MAIN_TABLES = Part(_main_tables, ignores_row_counts=True)


@dataclass(frozen=True)
class _Example:
    """A question, and what it is meant to ask: offered only when the rules read just that out of it."""

    kind: str
    question: Text
    intended: Query


def example_questions(catalog: Catalog, lang: Lang) -> tuple[str, ...]:
    """Up to three questions in `lang` that the rules answer over this catalogue."""
    return _ANSWERABLE.of(catalog)(lang)


def _answerable(catalog: Catalog, lang: Lang) -> tuple[str, ...]:
    lexicon = lexicon_of(catalog)
    found: dict[str, str] = {}  # by kind
    for table in main_tables(catalog)[:_MAX_TRIED]:
        for example in _candidates(lexicon.schema.facts[table.key], lexicon, lang):
            if len(found) < _EXAMPLES and example.kind not in found and _is_read_as_meant(example, catalog, lang):
                found[example.kind] = example.question.to(lang)
    return tuple(found.values())


_ANSWERABLE = Part(lambda index: cache(partial(_answerable, index.catalog)), ignores_row_counts=True)


def _is_read_as_meant(example: _Example, catalog: Catalog, lang: Lang) -> bool:
    try:
        read = understand(Inquiry(example.question.to(lang), lang, catalog)).query
    except Refusal:
        return False
    return _essence(read) == _essence(example.intended)


def _essence(query: Query) -> object:
    """What a query asks, without what only arranges the answer."""
    ranked_by = query.order[:1] if query.limit is not None else ()
    asked = (query.base, query.dimensions, query.measures, query.conditions, query.related, query.having)
    return (*asked, query.limit, ranked_by)


def _candidates(facts: Facts, lexicon: Lexicon, lang: Lang) -> Iterator[_Example]:
    table, key = facts.table, facts.table.key
    name = spoken_name(table, lang)
    measures = facts.measures
    parents = [lexicon.schema.table(edge.parent) for edge in facts.edges if lexicon.schema.facts[edge.parent].is_entity]
    count = Measure("count", key)
    if measures and parents and not facts.is_entity:
        measure, parent = spoken_name(measures[0], lang), spoken_name(parents[0], lang)
        figure = Measure("sum", key, measures[0].name)
        asked = Text(f"各{parent}的{measure}排行", f"total {measure} by {parent}")
        if is_averaged(measures[0]):
            figure = Measure("avg", key, measures[0].name)
            asked = Text(f"各{parent}的平均{measure}", f"average {measure} by {parent}")
        yield _Example("rank", asked, Query(key, dimensions=(Dimension(parents[0].key),), measures=(figure,)))
    if facts.is_entity:
        asked = Text(f"一共有多少个{name}？", f"How many {plural(name)} are there?")
        yield _Example("count", asked, Query(key, measures=(count,)))
    if facts.is_entity and measures:
        measure = spoken_name(measures[0], lang)
        order = Order(column=ColumnRef(key, measures[0].name))
        asked = Text(f"{measure}最高的5个{name}", f"top 5 {plural(name)} by {measure}")
        yield _Example("top", asked, Query(key, order=(order,), limit=5))
    for column in table.columns:
        says_who = column.name in facts.display or facts.is_identifier(column)
        if kind_of(column) == "text" and 2 <= len(column.values) <= 12 and not says_who:
            group = spoken_name(column, lang)
            asked = Text(f"各{group}的{name}数量", f"number of {plural(name)} by {group}")
            yield _Example("group", asked, Query(key, dimensions=(Dimension(key, column.name),), measures=(count,)))
            break


def about_mentioned(inquiry: Inquiry) -> list[str]:
    """Questions that the rules answer, about things of the database that the question mentions."""
    lexicon, lang = lexicon_for(inquiry), inquiry.lang
    marks = [mark for mark in marks_of(inquiry.question, lexicon) if not mark.means("noise", "verb", "super", "count")]
    links = [mark.links[0] for mark in marks if mark.quality >= _CLEAR_QUALITY]
    found: dict[str, None] = {}
    for link in sorted(links, key=lambda link: link.kind != "value"):
        facts = lexicon.schema.facts[link.table]
        examples = [_valued(link, lexicon, lang)] if link.kind == "value" else []
        for example in (*examples, *_candidates(facts, lexicon, lang)):
            if len(found) < _OFFERS and _is_read_as_meant(example, inquiry.catalog, lang):
                found[example.question.to(lang)] = None
    return list(found)


def _valued(link: Link, lexicon: Lexicon, lang: Lang) -> _Example:
    """The question how many rows have the value that the link means."""
    assert link.column is not None and link.value is not None
    name = spoken_name(lexicon.schema.table(link.table), lang)
    column = spoken_name(lexicon.schema.column(link.table, link.column), lang)
    asked = Text(
        f"{column}为“{link.value}”的{name}有多少？", f'How many {plural(name)} have the {column} "{link.value}"?'
    )
    condition = Condition(ColumnRef(link.table, link.column), "=", (link.value,))
    count = Measure("count", link.table)
    return _Example("value", asked, Query(link.table, measures=(count,), conditions=(condition,)))
