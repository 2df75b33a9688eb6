"""Small talk by rules, and examples of questions that the connected database can really answer."""

import re
import weakref
from collections.abc import Iterator

from agent.skills import Inquiry
from agent.skills.offline.about_results import last_result, result_pieces
from agent.skills.offline.classify import ABOUT_CITU, SMALL_TALK
from agent.skills.offline.follow_ups import goes_on
from agent.skills.offline.lexicon import Lexicon, lexicon_of
from agent.skills.offline.naming import has_han, spoken_name
from agent.skills.offline.planner import understand
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


def _answerable(catalog: Catalog, lang: Lang) -> Iterator[str]:
    lexicon = lexicon_of(catalog)
    found = 0
    kinds: set[str] = set()
    for table in _main_tables(lexicon)[:40]:
        for kind, question in _candidates(lexicon.schema.facts[table.key], lexicon, lang):
            if found == _EXAMPLES or kind in kinds:
                continue
            try:
                understand(Inquiry(question, lang, catalog))
            except Refusal:
                continue
            kinds.add(kind)
            found += 1
            yield question


def _candidates(facts: Facts, lexicon: Lexicon, lang: Lang) -> Iterator[tuple[str, str]]:
    table = facts.table
    name = spoken_name(table, lang)
    measures = [column for column in table.columns if facts.is_measure(column)]
    parents = [lexicon.schema.table(edge.parent) for edge in facts.edges if lexicon.schema.facts[edge.parent].is_entity]
    if measures and parents and not facts.is_entity:
        measure, parent = spoken_name(measures[0], lang), spoken_name(parents[0], lang)
        yield "rank", Text(f"各{parent}的{measure}排行", f"total {measure} by {parent}").to(lang)
    if facts.is_entity:
        yield "count", Text(f"一共有多少个{name}？", f"How many {_plural(name)} are there?").to(lang)
    if facts.is_entity and measures:
        measure = spoken_name(measures[0], lang)
        yield "top", Text(f"{measure}最高的5个{name}", f"top 5 {_plural(name)} by {measure}").to(lang)
    for column in table.columns:
        if kind_of(column) == "text" and 2 <= len(column.values) <= 12 and column.name not in facts.display:
            group = spoken_name(column, lang)
            yield "group", Text(f"各{group}的{name}数量", f"number of {_plural(name)} by {group}").to(lang)
            break


def _plural(name: str) -> str:
    if name.endswith("s") or has_han(name):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else f"{name}s"
