"""Example questions that the connected database can really answer.

Each is made as a query, put into words, and read again by the rules. It is offered only when they
read just that query out of it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, partial

from common.cpu_clock import check
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.text import Lang, Text, language_of
from common.values import Catalog, Column, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.inflection import plural
from knowledge.language.spoken_names import spoken_name
from knowledge.values.identity import names_people
from knowledge.words import WORDS
from rules.answering.groupings import is_worth_grouping_by, row_name
from rules.composing.understanding import understand
from rules.linking.marks import marks_of
from rules.query.query import ColumnRef, Condition, Dimension, Measure, Order, Query
from rules.query.refusals import Refusal
from rules.schema.lexicon import LEXICON, Lexicon, lexicon_for, lexicon_of
from rules.schema.links import Link
from rules.schema.table_facts import Facts, is_averaged, is_score

_EXAMPLES = 3
_MAX_TRIED = 40  # tables
_MAIN_TABLES_TRIED = 4  # beside those that a question names
_OFFERS = 2
_CLEAR_QUALITY = 0.6
_TOTAL = "total "
_WITH_FRACTIONS = WORDS.english.phrases("types.measures")


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
    question_by_kind: dict[str, str] = {}  # by kind
    for example in _worth_asking(lexicon_of(catalog), lang):
        if len(question_by_kind) == _EXAMPLES:
            break
        if example.kind not in question_by_kind and _is_read_as_meant(example, catalog, lang):
            question_by_kind[example.kind] = example.question.to(lang)

    return tuple(question_by_kind.values())


def _worth_asking(lexicon: Lexicon, lang: Lang) -> Iterator[_Example]:
    """Yield examples about the main tables that have rows; mere numbers of rows come last."""
    facts_of = lexicon.schema.facts
    tables = [table for table in main_tables(lexicon.schema.catalog) if table.row_estimate != 0]
    tables = tables[:_MAX_TRIED]
    for table in tables:
        facts = facts_of[table.key]
        measures = sorted(facts.measures, key=partial(_rank_of_figure, frozenset(), table.key))
        yield from _askable_of(facts, measures[:1], lexicon, lang)

    for table in tables:
        if facts_of[table.key].is_entity:
            yield _count_of(facts_of[table.key], lang)


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
            yield _top_by_measure(facts, facts.measures[0], lang)
    elif facts.measures:
        yield from _measure_by_parent(facts, facts.measures[0], lexicon, lang)
        yield from _figure_by_column(facts, facts.measures[0], lang)

    if facts.is_entity or not facts.measures:
        yield from _counts_by_column(facts, lang)


def _measure_by_parent(
    facts: Facts, column: Column, lexicon: Lexicon, lang: Lang
) -> Iterator[_Example]:
    """Yield a figure of the table by the first thing that its rows belong to."""
    key = facts.table.key
    for edge in facts.edges:
        if not lexicon.schema.facts[edge.parent].is_entity:
            continue

        parent = lexicon.schema.table(edge.parent)
        group, figure = row_name(parent, lang), _figure_of(column, lang)
        asked = Text(f"各{group}的{figure.zh}", f"{figure.en} by {group}")
        if not _has_no_sum(column):
            asked = Text(f"各{group}的{spoken_name(column, lang)}排行", asked.en)

        measure = _measure_of(key, column)
        query = Query(key, dimensions=(Dimension(parent.key),), measures=(measure,))
        yield _Example("rank", asked, query)
        return


def _figure_of(column: Column, lang: Lang) -> Text:
    """Return what the sum of a column is called; of one that is not added, its average."""
    name = spoken_name(column, lang)
    if _has_no_sum(column):
        return Text(f"平均{name}", f"average {name}")

    return Text(f"{name}合计", _total_of(name))


def _measure_of(key: TableKey, column: Column) -> Measure:
    return Measure("avg" if _has_no_sum(column) else "sum", key, column.name)


def _has_no_sum(column: Column) -> bool:
    return is_averaged(column) or is_score(column)


def _total_of(measure: str) -> str:
    """Return the English words for the sum of a figure, which may be called a total itself."""
    if measure.startswith(_TOTAL.strip()):
        return measure

    return f"{_TOTAL}{measure}"


def _count_of(facts: Facts, lang: Lang) -> _Example:
    name, key = spoken_name(facts.table, lang), facts.table.key
    asked = Text(f"一共有多少个{name}？", f"How many {plural(name)} are there?")
    return _Example("count", asked, Query(key, measures=(Measure("count", key),)))


def _top_by_measure(facts: Facts, column: Column, lang: Lang) -> _Example:
    key = facts.table.key
    name, measure = spoken_name(facts.table, lang), spoken_name(column, lang)
    asked = Text(f"{measure}最高的5个{name}", f"top 5 {plural(name)} by {measure}")
    order = Order(column=ColumnRef(key, column.name))
    return _Example("top", asked, Query(key, order=(order,), limit=5))


def _counts_by_column(facts: Facts, lang: Lang) -> Iterator[_Example]:
    """Yield the number of rows by the first column that tells groups of them."""
    column = _telling_column(facts)
    if column is None:
        return

    key = facts.table.key
    name, group = spoken_name(facts.table, lang), spoken_name(column, lang)
    asked = Text(f"各{group}的{name}数量", f"number of {plural(name)} by {group}")
    dimension, count = Dimension(key, column.name), Measure("count", key)
    yield _Example("group", asked, Query(key, dimensions=(dimension,), measures=(count,)))


def _figure_by_column(facts: Facts, measure: Column, lang: Lang) -> Iterator[_Example]:
    """Yield a figure of the table by the first column that tells groups of its rows."""
    column = _telling_column(facts)
    if column is None:
        return

    key = facts.table.key
    group, figure = spoken_name(column, lang), _figure_of(measure, lang)
    asked = Text(f"各{group}的{figure.zh}", f"{figure.en} by {group}")
    dimension, added = Dimension(key, column.name), _measure_of(key, measure)
    yield _Example("group", asked, Query(key, dimensions=(dimension,), measures=(added,)))


def _telling_column(facts: Facts) -> Column | None:
    """Return the first column that tells groups of rows; those with a value in each row first."""
    table = facts.table
    for column in sorted(table.columns, key=lambda column: column.nullable):
        names_row = column.name in facts.display or facts.is_identifier(column)
        if (
            not names_row
            and is_worth_grouping_by(table, column)
            and not names_people(table, column)
        ):
            return column

    return None


def about_mentioned(inquiry: Inquiry) -> list[str]:
    """Return questions that the rules answer, about names of the database in the question."""
    lexicon, lang = lexicon_for(inquiry), inquiry.lang
    questions: dict[str, None] = {}
    links = dict.fromkeys(_mentioned(inquiry.question, lexicon))
    for link in sorted(links, key=lambda link: link.kind != "value"):
        if len(questions) == _OFFERS:
            break

        check()
        examples = _examples(lexicon.schema.facts[link.table], lexicon, lang)
        if link.kind == "value":
            examples = itertools.chain([_count_with_value(link, lexicon, lang)], examples)

        for example in examples:
            if len(questions) == _OFFERS:
                break
            if _is_read_as_meant(example, inquiry.catalog, lang):
                questions[example.question.to(lang)] = None

    return list(questions)


def askable(question: str, catalog: Catalog) -> Iterator[str]:
    """Yield questions, each of another kind, about the tables that a question names.

    Where it names none, about the tables that have the most to do with others.
    """
    lexicon, lang = lexicon_of(catalog), language_of(question)
    kinds: set[str] = set()
    for example in _about_tables(question, lexicon, lang):
        check()
        if example.kind not in kinds and _is_read_as_meant(example, catalog, lang):
            kinds.add(example.kind)
            yield example.question.to(lang)


def _about_tables(question: str, lexicon: Lexicon, lang: Lang) -> Iterator[_Example]:
    """Yield examples about the tables that the question names, with the figures that it names."""
    links = _mentioned(question, lexicon)
    figures = {(link.table, link.column) for link in links if link.kind == "column"}
    named = dict.fromkeys(link.table for link in links)
    for key in _near(named, lexicon):
        facts = lexicon.schema.facts[key]
        measures = sorted(facts.measures, key=partial(_rank_of_figure, figures, key))
        yield from _askable_of(facts, measures[:1], lexicon, lang)


def _near(named: Iterable[TableKey], lexicon: Lexicon) -> Iterable[TableKey]:
    """Return the tables, then those whose rows belong to theirs, then the main ones."""
    near = dict.fromkeys(named)
    for key in tuple(near):
        below = lexicon.graph.below(key)
        near.update(dict.fromkeys(sorted(below, key=lambda one: (below[one], one))))

    main = main_tables(lexicon.schema.catalog)[:_MAIN_TABLES_TRIED]
    near.update(dict.fromkeys(table.key for table in main))
    return near


def _rank_of_figure(
    figures: Set[tuple[TableKey, str | None]], key: TableKey, column: Column
) -> tuple[bool, bool, bool]:
    """Return how telling a figure is, the best least: named ones, sums, and those with cents."""
    is_whole = not column.type.startswith(_WITH_FRACTIONS)
    return (key, column.name) not in figures, _has_no_sum(column), is_whole


def _askable_of(
    facts: Facts, measures: Sequence[Column], lexicon: Lexicon, lang: Lang
) -> Iterator[_Example]:
    """Yield what a table can be asked, most telling first: never only how many rows it has."""
    for measure in measures:
        if facts.is_entity:
            yield _top_by_measure(facts, measure, lang)
        else:
            yield from _measure_by_parent(facts, measure, lexicon, lang)
            yield from _measure_by_month(facts, measure, lang)
            yield from _figure_by_column(facts, measure, lang)

    # How many reports there are says nothing where each reports a figure.
    if facts.is_entity or not measures:
        yield from _counts_by_column(facts, lang)


def _measure_by_month(facts: Facts, column: Column, lang: Lang) -> Iterator[_Example]:
    """Yield a figure of the table by month."""
    date = facts.date or next(iter(facts.dates), None)
    if date is None:
        return

    key, figure = facts.table.key, _figure_of(column, lang)
    asked = Text(f"每月的{figure.zh}", f"{figure.en} per month")
    months, measure = Dimension(key, date, bucket="month"), _measure_of(key, column)
    yield _Example("time", asked, Query(key, dimensions=(months,), measures=(measure,)))


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
