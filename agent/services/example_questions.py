"""Example questions: a fixed list for the demo database; for any other, questions that the rules
can answer.
"""

import asyncio
from collections.abc import Awaitable, Callable

from common.actor import Actor
from common.ports import Database
from common.text import Lang
from databases.demo.questions import DEMO_QUESTIONS
from rules.answering.offers import example_questions

Examples = Callable[[Lang, Actor], Awaitable[tuple[str, ...]]]
"""Gives an actor example questions in a language; raises `DatabaseUnavailable` and `QueryTimeout`.
"""


async def demo_examples(lang: Lang, _actor: Actor) -> tuple[str, ...]:
    """Return the examples for the embedded demo database."""
    return tuple(question.to(lang) for question in DEMO_QUESTIONS)


def examples_of(database_of: Callable[[Actor], Database]) -> Examples:
    """Return up to three examples for the database that `database_of` gives; none when the rules
    find nothing to ask.
    """

    async def examples(lang: Lang, actor: Actor) -> tuple[str, ...]:
        catalog = await database_of(actor).catalog()
        # In a thread, because a large catalogue takes a while; the examples are kept with the
        # catalogue.
        return await asyncio.to_thread(example_questions, catalog, lang)

    return examples
