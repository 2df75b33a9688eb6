"""Small talk by rules, and examples of questions that the connected database can really answer."""

import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass

from agent.skills import Inquiry
from agent.skills.offline.about_results import last_result, result_pieces
from agent.skills.offline.classify import ABOUT_CITU, SMALL_TALK
from agent.skills.offline.follow_ups import goes_on
from agent.skills.offline.lexicon import Lexicon, lexicon_of
from agent.skills.offline.naming import has_han, spoken_name
from agent.skills.offline.planner import understand
from agent.skills.offline.query import ColumnRef, Dimension, Function, Measure, Order, Query
from agent.skills.offline.refusals import Refusal
from agent.skills.offline.result_questions import kind_of_doubt
from agent.skills.offline.schema import Facts, kind_of
from common.text import Lang, Text
from common.values import Catalog, Table

_THANKS = re.compile(r"\b(thanks?|thank you|thx)\b|谢|感谢|辛苦", re.IGNORECASE)
_FAREWELL = re.compile(r"\b(bye|goodbye|see you|good night)\b|再见|拜拜|晚安", re.IGNORECASE)
_MAX_TABLES = 6
_ONLY_DATA = Text(
    "现在没有接入大模型，我只能根据数据库中的数据回答问题。",
    "Without a language model I can only answer questions about the data. ",
)
_NOTHING_TO_CONTINUE = Text(
    "这个对话里还没有可以接着追问的数据问题，请把问题说完整。",
    "This conversation has no question about the data to go on from yet: please ask the whole question. ",
)
_EXAMPLES = 3
_MAX_TRIED = 40
"""Tables."""


def chat_pieces(inquiry: Inquiry) -> list[str]:
    """An answer to a question that is not about the data, in pieces that concatenate to it."""
    question = inquiry.question.strip()
    if _THANKS.search(question):
        return [
            Text("不客气！还想查什么数据，直接问我就好。", "You're welcome! Ask me anything else about the data.").to(
                inquiry.lang
            )
        ]
    if _FAREWELL.search(question):
        return [Text("再见！", "Goodbye!").to(inquiry.lang)]
    if SMALL_TALK.match(question):
        return [Text("你好！我是 Citu。", "Hello! I'm Citu. ").to(inquiry.lang), *_offer(inquiry)]
    doubt, result = kind_of_doubt(question), last_result(inquiry)
    if doubt is not None and result is not None:
        return result_pieces(inquiry, result, doubt)
    if ABOUT_CITU.search(question):
        return [
            Text(
                "我是 Citu，用中文或英文回答数据库里的问题。",
                "I'm Citu; I answer questions about a database in plain words. ",
            ).to(inquiry.lang),
            *_offer(inquiry),
        ]
    opening = _NOTHING_TO_CONTINUE if _lacks_beginning(inquiry) else _ONLY_DATA
    return [opening.to(inquiry.lang), *_offer(inquiry)]


def _lacks_beginning(inquiry: Inquiry) -> bool:
    """Whether the question goes on from a question about the data that this conversation does not have."""
    asked = any(turn.question_type == "DATABASE" for turn in inquiry.history)
    return not asked and goes_on(inquiry.question, lexicon_of(inquiry.catalog), inquiry.table, lambda: False)


def _offer(inquiry: Inquiry) -> list[str]:
    lang = inquiry.lang
    tables = _main_tables(lexicon_of(inquiry.catalog))
    if not tables:
        return [Text("当前数据库中没有可以查询的表。", "The connected database has no table I may read.").to(lang)]
    names = [spoken_name(table, lang) for table in tables[:_MAX_TABLES]]
    about = Text(f"可以查询：{'、'.join(names)}。", f"There is data about: {', '.join(names)}. ").to(lang)
    examples = example_questions(inquiry.catalog, lang)
    if not examples:
        return [about]
    lines = "\n".join(f"- {example}" for example in examples)
    return [about, Text("例如：\n", "For example:\n").to(lang), lines]


def _main_tables(lexicon: Lexicon) -> list[Table]:
    """Base tables, those that many others refer to first."""
    schema = lexicon.schema
    tables = [table for table in schema.catalog.tables if table.kind == "table"] or list(schema.catalog.tables)
    weight = {table.key: len(lexicon.graph.below(table.key)) + len(lexicon.graph.above(table.key)) for table in tables}
    return sorted(tables, key=lambda table: (-weight[table.key], table.name))


_KNOWN: "weakref.WeakKeyDictionary[Lexicon, dict[Lang, tuple[str, ...]]]" = weakref.WeakKeyDictionary()


def example_questions(catalog: Catalog, lang: Lang) -> tuple[str, ...]:
    """Up to three questions in `lang` that the rules answer over this catalogue."""
    known = _KNOWN.setdefault(lexicon_of(catalog), {})
    if lang not in known:
        known[lang] = tuple(_answerable(catalog, lang))
    return known[lang]


@dataclass(frozen=True)
class _Example:
    """A question, and what it is meant to ask: offered only when the rules read just that out of it."""

    kind: str
    question: Text
    intended: Query


def _answerable(catalog: Catalog, lang: Lang) -> Iterator[str]:
    lexicon = lexicon_of(catalog)
    kinds: set[str] = set()
    for table in _main_tables(lexicon)[:_MAX_TRIED]:
        for example in _candidates(lexicon.schema.facts[table.key], lexicon, lang):
            if len(kinds) < _EXAMPLES and example.kind not in kinds and _is_read_as_meant(example, catalog, lang):
                kinds.add(example.kind)
                yield example.question.to(lang)


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
    measures = [column for column in table.columns if facts.is_measure(column)]
    parents = [lexicon.schema.table(edge.parent) for edge in facts.edges if lexicon.schema.facts[edge.parent].is_entity]
    count = Measure("count", key)
    if measures and parents and not facts.is_entity:
        measure, parent = spoken_name(measures[0], lang), spoken_name(parents[0], lang)
        function: Function = "avg" if facts.is_averaged(measures[0]) else "sum"
        asked = Text(f"各{parent}的{measure}排行", f"total {measure} by {parent}")
        if function == "avg":
            asked = Text(f"各{parent}的平均{measure}", f"average {measure} by {parent}")
        figure = Measure(function, key, measures[0].name)
        yield _Example("rank", asked, Query(key, dimensions=(Dimension(parents[0].key),), measures=(figure,)))
    if facts.is_entity:
        asked = Text(f"一共有多少个{name}？", f"How many {_plural(name)} are there?")
        yield _Example("count", asked, Query(key, measures=(count,)))
    if facts.is_entity and measures:
        measure = spoken_name(measures[0], lang)
        order = Order(column=ColumnRef(key, measures[0].name))
        asked = Text(f"{measure}最高的5个{name}", f"top 5 {_plural(name)} by {measure}")
        yield _Example("top", asked, Query(key, order=(order,), limit=5))
    for column in table.columns:
        says_who = column.name in facts.display or facts.is_identifier(column)
        if kind_of(column) == "text" and 2 <= len(column.values) <= 12 and not says_who:
            group = spoken_name(column, lang)
            asked = Text(f"各{group}的{name}数量", f"number of {_plural(name)} by {group}")
            yield _Example("group", asked, Query(key, dimensions=(Dimension(key, column.name),), measures=(count,)))
            break


def _plural(name: str) -> str:
    if name.endswith("s") or has_han(name):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"
