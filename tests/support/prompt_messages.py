"""The messages that skills and flows send to a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any, cast

from agent.thinking import DatabaseOption
from agent.thinking.llm.database_pick import DatabasePick
from agent.thinking.llm.model_skills import LlmSkills
from agent.tools.first_prompt import FirstPrompts
from common.inquiry import Inquiry
from llm import AnyMessage, Completion, Message, OnToken, ToolOffer
from tests.support.catalogs import CATALOG

QUESTION = "杭州分公司有多少个营业中的服务区？"


class RecordingModel:
    """A model that keeps what it is asked."""

    name = "recording"

    def __init__(self, reply: str = "NO_SQL: ambiguous_question") -> None:
        self.reply = reply
        self.prompts: list[list[Message]] = []

    async def complete(
        self,
        messages: Sequence[AnyMessage],
        *,
        on_token: OnToken | None = None,
        max_tokens: int | None = None,
        offer: ToolOffer | None = None,
    ) -> Completion:
        self.prompts.append([cast(Message, message) for message in messages])
        return Completion(self.reply)

    async def warm(self) -> None: ...

    async def ping(self) -> None: ...

    async def aclose(self) -> None: ...


def inquiry_with(**changes: Any) -> Inquiry:
    return replace(Inquiry(QUESTION, "zh", CATALOG), **changes)


def messages_of(method: str, *arguments: Any, about: Inquiry | None = None) -> list[Message]:
    """Return the messages that a skill sends, or with which a flow with tools begins."""
    model = RecordingModel()
    skills = LlmSkills(model, today=lambda: date(2025, 3, 9))
    if method == "first_prompt":
        first_prompts = FirstPrompts(skills.parts, today=lambda: date(2025, 3, 9))
        return list(asyncio.run(first_prompts.write(about or inquiry_with(), *arguments)).messages)
    if method == "pick_database":
        options = [DatabaseOption(name, name, about or inquiry_with()) for name in arguments]
        asyncio.run(DatabasePick(model, skills.parts).pick(options, "en"))
        return model.prompts[0]
    asyncio.run(getattr(skills, method)(about or inquiry_with(), *arguments))
    assert len(model.prompts) == 1, "one call per skill"
    return model.prompts[0]
