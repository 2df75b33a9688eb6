"""Example questions that the connected database can really answer.

Each is made as a query, put into words, and read again by the rules. It is offered only when they
read just that query out of it.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

from common.cpu_clock import check
from common.inquiry import Inquiry
from common.text import Lang, Text
from common.values import Catalog, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.inflection import plural
from knowledge.language.spoken_names import spoken_name
from rules.composing.understanding import understand
from rules.linking.marks import marks_of
from rules.query.query import ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.query.refusals import Refusal
from rules.schema.lexicon import LEXICON, Lexicon, lexicon_for, lexicon_of
from rules.schema.links import Link
from rules.schema.table_facts import Facts, is_averaged, kind_of

_EXAMPLES = 3
_MAX_TRIED = 40  # tables
_OFFERS = 2
_MOST_GROUPS = 12
_CLEAR_QUALITY = 0.6


def main_tables(catalog: Catalog) -> tuple[Table, ...]:
    """Return the base tables, those first that have the most to do with others."""
    return _MAIN_TABLES.of(catalog)


def _main_tables(index: CatalogIndex) -> tuple[Table, ...]:
    graph, all_tables = index.part(LEXICON).graph, index.catalog.tables
    tables = [table for table in all_tables if table.kind == "table"] or all_tables

    def relations(table: Table) -> int:
        return len(graph.below(table.key)) + len(graph.above(table.key))

    return tuple(sorted(tables, key=lambda table: (-relations(table), table.name)))


_MAIN_TABLES = IndexPart(_main_tables, ignores_row_counts=True)


@dataclass(frozen=True)
class _Example:
    """A question and the query that it is meant to ask for."""

    kind: str
    question: Text
    intended: Query


def example_questions(catalog: Catalog, lang: Lang) -> tuple[str, ...]:
    """Return up to three questions in `lang` that the rules answer over this catalogue."""
    return _ANSWERABLE.of(catalog)(lang)


def _answerable(catalog: Catalog, lang: Lang) -> tuple[str, ...]:
    lexicon = lexicon_of(catalog)
    found: dict[str, str] = {}  # by kind
    for table in main_tables(catalog)[:_MAX_TRIED]:
        for example in _examples(lexicon.schema.facts[table.key], lexicon, lang):
            if example.kind in found:
                continue
            if len(found) == _EXAMPLES:
                break
            if _is_read_as_meant(example, catalog, lang):
                found[example.kind] = example.question.to(lang)
    return tuple(found.values())


_ANSWERABLE = IndexPart(
    lambda index: cache(partial(_answerable, index.catalog)), ignores_row_counts=True
)


def _is_read_as_meant(example: _Example, catalog: Catalog, lang: Lang) -> bool:
    try:
        read = understand(Inquiry(example.question.to(lang), lang, catalog)).query
    except Refusal:
        return False
    return _essence(read) == _essence(example.intended)


def _essence(query: Query) -> object:
    """Return the parts of a query that tell what it asks for, without those that arrange the
    answer.
    """
    ranked_by = query.order[:1] if query.limit is not None else ()
    return (
        query.base,
        query.dimensions,
        query.measures,
        query.conditions,
        query.related,
        query.having,
        query.limit,
        ranked_by,
    )


def _examples(facts: Facts, lexicon: Lexicon, lang: Lang) -> Iterator[_Example]:
    """Yield examples about a table: a figure by groups, a count, a ranking, counts by a column."""
    if facts.is_entity:
        yield _count_of(facts, lang)
        if facts.measures:
            yield _top_by_measure(facts, lang)
    elif facts.measures:
        yield from _measure_by_parent(facts, lexicon, lang)
    yield from _counts_by_column(facts, lang)


def _measure_by_parent(facts: Facts, lexicon: Lexicon, lang: Lang) -> Iterator[_Example]:
    """Yield the table's first figure by the first thing that its rows belong to."""
    key, column = facts.table.key, facts.measures[0]
    for edge in facts.edges:
        if not lexicon.schema.facts[edge.parent].is_entity:
            continue
        parent = lexicon.schema.table(edge.parent)
        group, measure = spoken_name(parent, lang), spoken_name(column, lang)
        if is_averaged(column):
            asked = Text(f"各{group}的平均{measure}", f"average {measure} by {group}")
            figure = Measure("avg", key, column.name)
        else:
            asked = Text(f"各{group}的{measure}排行", f"total {measure} by {group}")
            figure = Measure("sum", key, column.name)
        query = Query(key, dimensions=(Dimension(parent.key),), measures=(figure,))
        yield _Example("rank", asked, query)
        return


def _count_of(facts: Facts, lang: Lang) -> _Example:
    name, key = spoken_name(facts.table, lang), facts.table.key
    asked = Text(f"一共有多少个{name}？", f"How many {plural(name)} are there?")
    return _Example("count", asked, Query(key, measures=(Measure("count", key),)))


def _top_by_measure(facts: Facts, lang: Lang) -> _Example:
    key, column = facts.table.key, facts.measures[0]
    name, measure = spoken_name(facts.table, lang), spoken_name(column, lang)
    asked = Text(f"{measure}最高的5个{name}", f"top 5 {plural(name)} by {measure}")
    order = Order(column=ColumnRef(key, column.name))
    return _Example("top", asked, Query(key, order=(order,), limit=5))


def _counts_by_column(facts: Facts, lang: Lang) -> Iterator[_Example]:
    """Yield the number of rows by the first column of few texts that don't name the rows."""
    table, key = facts.table, facts.table.key
    for column in table.columns:
        is_few = kind_of(column) == "text" and 2 <= len(column.values) <= _MOST_GROUPS
        names_row = column.name in facts.display or facts.is_identifier(column)
        if not is_few or names_row:
            continue
        name, group = spoken_name(table, lang), spoken_name(column, lang)
        asked = Text(f"各{group}的{name}数量", f"number of {plural(name)} by {group}")
        dimension, count = Dimension(key, column.name), Measure("count", key)
        yield _Example("group", asked, Query(key, dimensions=(dimension,), measures=(count,)))
        return


def about_mentioned(inquiry: Inquiry) -> list[str]:
    """Return questions that the rules answer, about names of the database in the question."""
    lexicon, lang = lexicon_for(inquiry), inquiry.lang
    found: dict[str, None] = {}
    links = dict.fromkeys(_mentioned(inquiry.question, lexicon))
    for link in sorted(links, key=lambda link: link.kind != "value"):
        if len(found) == _OFFERS:
            break
        check()
        examples = _examples(lexicon.schema.facts[link.table], lexicon, lang)
        if link.kind == "value":
            examples = itertools.chain([_count_with_value(link, lexicon, lang)], examples)
        for example in examples:
            if len(found) == _OFFERS:
                break
            if _is_read_as_meant(example, inquiry.catalog, lang):
                found[example.question.to(lang)] = None
    return list(found)


def _mentioned(question: str, lexicon: Lexicon) -> list[Link]:
    """Return the best meaning of each name of the database that the question clearly has."""
    links = []
    for mark in marks_of(question, lexicon):
        is_name = not mark.means("noise", "verb", "super", "count")
        if is_name and mark.quality >= _CLEAR_QUALITY:
            links.append(mark.links[0])
    return links


def _count_with_value(link: Link, lexicon: Lexicon, lang: Lang) -> _Example:
    """Return the question how many rows have the value that the link means."""
    assert link.column is not None and link.value is not None
    name = spoken_name(lexicon.schema.table(link.table), lang)
    column = spoken_name(lexicon.schema.column(link.table, link.column), lang)
    asked = Text(
        f"{column}为“{link.value}”的{name}有多少？",
        f'How many {plural(name)} have the {column} "{link.value}"?',
    )
    condition = Condition(ColumnRef(link.table, link.column), "=", (link.value,))
    count = Measure("count", link.table)
    return _Example("value", asked, Query(link.table, measures=(count,), conditions=(condition,)))
