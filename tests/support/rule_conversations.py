"""Conversations that the rules answer, and the turns that they leave."""

import asyncio
from collections.abc import Iterator
from typing import Any

from common.inquiry import Inquiry
from common.text import Lang, language_of
from common.values import (
    Catalog,
    Classification,
    Draft,
    QuestionType,
    Sql,
    Turn,
)
from rules.skills import OfflineSkills
from tests.support.offline_catalogs import SHOP
from tests.support.offline_questions import FIXTURES, Case, cases_of

SKILLS = OfflineSkills()
LANGUAGES: tuple[Lang, ...] = ("zh", "en")


def turn(
    question: str, sql: str | None = "SELECT 1", kind: QuestionType = "DATABASE", **more: Any
) -> Turn:
    return Turn(
        "run", question, kind, "hybrid", "an answer", "2026-01-01T00:00:00.000Z", sql=sql, **more
    )


def kept(question: str, written: Draft, **more: Any) -> Turn:
    """Return the turn that an answer by rules leaves."""
    return turn(
        question,
        written.text if isinstance(written, Sql) else None,
        understood=written.understood,
        **more,
    )


def draft(question: str, history: tuple[Turn, ...] = (), catalog: Catalog = SHOP) -> Draft:
    return asyncio.run(
        SKILLS.write_sql(Inquiry(question, language_of(question), catalog, history=history))
    ).value


def classified(
    question: str, history: tuple[Turn, ...] = (), catalog: Catalog = SHOP
) -> Classification:
    return asyncio.run(
        SKILLS.classify(Inquiry(question, language_of(question), catalog, history=history))
    ).value


def conversations_of(name: str) -> Iterator[list[Case]]:
    conversation: list[Case] = []
    for case in cases_of(FIXTURES / "offline" / f"{name}.sql"):
        if not case.question.startswith(">") and conversation:
            yield conversation
            conversation = []
        conversation.append(Case(case.question.removeprefix(">").strip(), case.gold))
    yield conversation


CONVERSATIONS = {lang: list(conversations_of(f"follow_ups_{lang}")) for lang in LANGUAGES}
