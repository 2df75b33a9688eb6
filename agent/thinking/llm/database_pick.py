"""Lets a model say which of a few databases a question is about."""

import json
from collections.abc import Sequence

from agent.thinking import DatabaseOption
from agent.thinking.llm.prompt_files import prompt
from agent.thinking.llm.question_parts import QuestionParts, prompt_question
from agent.thinking.llm.reasoning import without_reasoning
from common.text import Lang
from common.values import SkillResult
from knowledge.language.safe_text import one_line
from llm import ChatModel
from llm.loose_fields import object_in

_OVERVIEW_TOKENS = 800  # of one database
_MOST_ABOUT = 300  # characters of what an operator says of a database


class DatabasePick:
    """Asks the model once, with the tables of each database that is near.

    Args:
        parts: describe the catalogues.
    """

    def __init__(self, model: ChatModel, parts: QuestionParts) -> None:
        self._model = model
        self._parts = parts

    async def pick(self, options: Sequence[DatabaseOption], lang: Lang) -> SkillResult[str | None]:
        """Return the name of the one database that is meant; None where the model doesn't say.

        Raises:
            LlmUnavailable: the model gave no reply.
        """
        described = [await self._option_text(option) for option in options]
        messages = prompt(
            "pick_database",
            lang,
            databases="\n\n".join(described),
            question=prompt_question(options[0].inquiry),
        )
        completion = await self._model.complete(messages)
        reply = without_reasoning(completion.text or completion.reasoning)
        named = object_in(reply).get("database")
        names = [option.name for option in options]
        return SkillResult(named if named in names else None, completion.usage)

    async def _option_text(self, option: DatabaseOption) -> str:
        schema = await self._parts.schema(option.inquiry)
        about = one_line(option.about, _MOST_ABOUT)
        tables = schema.overview(option.inquiry.question, _OVERVIEW_TOKENS)
        return f"Database {json.dumps(option.name)}: {about}\n{tables}"
