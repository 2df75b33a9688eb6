"""Example questions: a fixed list for the demo database; for any other, questions that the rules can answer."""

import asyncio
from collections.abc import Awaitable, Callable

from common.actor import Actor
from common.ports import Database
from common.text import Lang, Text
from rules.answering.offers import example_questions

Examples = Callable[[Lang, Actor], Awaitable[tuple[str, ...]]]
"""Gives an actor example questions in a language; raises `DatabaseUnavailable` and `QueryTimeout`."""

DEMO_QUESTIONS = (
    Text("查询各服务区的营业收入排行", "Revenue ranking by service area"),
    Text("最近7天车流量最大的5个服务区", "Top 5 service areas by traffic in the last 7 days"),
    Text("上个月各类别店铺的营业收入", "Revenue by shop category last month"),
    Text("每个公司有多少个服务区？", "How many service areas does each company have?"),
)


async def demo_examples(lang: Lang, _actor: Actor) -> tuple[str, ...]:
    """The examples for the embedded demo database."""
    return tuple(question.to(lang) for question in DEMO_QUESTIONS)


def examples_of(database_of: Callable[[Actor], Database]) -> Examples:
    """Up to three examples for the database that `database_of` gives; none when the rules find nothing to ask."""

    async def examples(lang: Lang, actor: Actor) -> tuple[str, ...]:
        catalog = await database_of(actor).catalog()
        # In a thread, because a large catalogue takes a while; the examples are kept with the catalogue.
        return await asyncio.to_thread(example_questions, catalog, lang)

    return examples
