"""Thinking by a language model: prompts from files, replies that are checked, one call per method.

A prompt that is too long for the model is sent a second time, shortened.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from agent.answers.figures_check import (
    doubtful_figures,
    doubtful_figures_about,
    earlier_figures_warning,
    figures_warning,
)
from agent.thinking.llm.classification_reply import classification_of
from agent.thinking.llm.history_text import history_text
from agent.thinking.llm.prompt_files import prompt
from agent.thinking.llm.question_parts import QuestionParts, prompt_question, shorter, table_hint
from agent.thinking.llm.reasoning import VisibleText, answer_in, without_reasoning
from agent.thinking.llm.repair_hints import error_text
from agent.thinking.llm.replies import WITHHELD, refusal_outcome, sql_from_reply
from agent.thinking.llm.rows_text import row_count_phrases, rows_text
from agent.thinking.llm.schema_text import OVERVIEW_BUDGET, SchemaText
from common.errors import ForbiddenStatement, InvalidSql, PromptTooLong
from common.inquiry import Emit, Inquiry
from common.text import Lang
from common.values import Catalog, Classification, Draft, NoSql, QueryResult, SkillResult, Usage
from knowledge.language.safe_text import block, one_line
from knowledge.tables.table_vectors import Nearest
from llm import ChatModel, Completion, Message
from llm.call_failures import CallFailed, unavailable
from llm.tokens import PER_TOKEN, PromptBudget, estimated_tokens, weight

_MAX_SQL = 8_000
_MAX_FINDING = 1_000
_QUICKLY_READ = 4_000  # characters of a reply; longer ones are read in a thread


@dataclass(frozen=True)
class _Prompt:
    """Messages, and what they are made of.

    Attributes:
        parts: their texts by name; what else the messages hold are the instructions.
    """

    messages: list[Message]
    parts: Mapping[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """Return estimated tokens of each part that is there, and of all of it, in the order of the
        prompt.
        """
        total = sum(weight(message["content"]) for message in self.messages)
        sizes = {name: estimated_tokens(text) for name, text in self.parts.items() if text}
        rest = total - sum(map(weight, self.parts.values()))
        return {"instructions": -(-rest // PER_TOKEN), **sizes, "total": -(-total // PER_TOKEN)}


class LlmSkills:
    """`Skills` by a model. Every method raises `LlmUnavailable` when the model has no usable reply.

    Args:
        budget: the most tokens of each part of a prompt.
        samples: whether stored values may be in it.
        today: gives the day that prompts call today.
        nearest: the tables that mean what a question means, as far as that is known; None: words
            alone rank tables.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        budget: PromptBudget = PromptBudget(),  # noqa: B008 - it can't change
        samples: bool = True,
        today: Callable[[], date] = date.today,
        nearest: Nearest | None = None,
    ) -> None:
        self.name = model.name
        self.parts = QuestionParts(budget, samples=samples, nearest=nearest)
        self._model = model
        self._today = today

    async def prepare(self, catalog: Catalog) -> None:
        """Describe the catalogue before questions come, because that takes seconds when it is
        large.
        """
        await self.parts.prepare(catalog)

    async def classify(self, inquiry: Inquiry) -> SkillResult[Classification]:
        """Classify as `Skills.classify` says. A verdict that can't be read counts as DATABASE, with
        a warning.
        """
        completion = await self._model.complete(
            prompt(
                "classify",
                inquiry.lang,
                tables=self._overview(await self._schema(inquiry), inquiry),
                previous=one_line(inquiry.previous_type or "none", 20),
                history=history_text(inquiry.history, "classify").text,
                question=prompt_question(inquiry),
            )
        )
        value, warnings = classification_of(completion.text or completion.reasoning, inquiry.lang)
        return SkillResult(value, completion.usage, warnings)

    async def write_sql(self, inquiry: Inquiry) -> SkillResult[Draft]:
        parts_within = await self.parts.within(inquiry)

        def made(budget: PromptBudget) -> _Prompt:
            parts = parts_within(budget)
            placeholders = {
                "table_hint": table_hint(inquiry.table),
                "today": self._today().isoformat(),
            }
            return _Prompt(prompt("write_sql", inquiry.lang, **parts, **placeholders), parts)

        completion, sizes = await self._complete(made)
        return await self._draft(completion, inquiry.lang, await self._schema(inquiry), sizes)

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> SkillResult[Draft]:
        schema = await self._schema(inquiry)
        parts_within = await self.parts.within_for_sql(inquiry, sql)
        broken_parts = {
            "sql": block(sql, _MAX_SQL),
            "error": error_text(error, sql, schema.catalog),
        }

        def made(budget: PromptBudget) -> _Prompt:
            parts = parts_within(budget) | broken_parts
            return _Prompt(
                prompt("repair_sql", inquiry.lang, **parts, today=self._today().isoformat()), parts
            )

        completion, sizes = await self._complete(made)
        try:
            return await self._draft(completion, inquiry.lang, schema, sizes)
        except (
            ForbiddenStatement
        ) as refusal:  # the question asked for no write, so this reply mends nothing
            draft = NoSql("llm_explanation", refusal.message(inquiry.lang))
            return SkillResult(draft, refusal.usage, prompt_parts=sizes)

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> SkillResult[str]:
        """See `Skills.summarize`. The model sees only the first rows; its figures are checked
        against all rows.
        """
        rows, shown = rows_text(result)
        row_count, what_is_shown = row_count_phrases(result, shown)
        messages = prompt(
            "summarize",
            inquiry.lang,
            question=prompt_question(inquiry),
            sql=block(sql, _MAX_SQL),
            rows=rows,
            row_count=row_count,
            shown=what_is_shown,
        )
        text, completion = await self._speak(messages, emit)
        if completion.is_withheld:
            raise unavailable(CallFailed("filtered"))

        # In a thread, because there may be very many cells.
        doubtful = await asyncio.to_thread(doubtful_figures, text, result, inquiry.question, sql)
        return SkillResult(
            text, completion.usage, (figures_warning(doubtful, inquiry.lang),) if doubtful else ()
        )

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> SkillResult[str]:
        """See `Skills.chat`. Its figures are checked against the earlier results that the model
        sees.
        """
        history, computed = history_text(inquiry.history, "chat"), _computed(inquiry)
        messages = prompt(
            "chat",
            inquiry.lang,
            tables=self._overview(await self._schema(inquiry), inquiry),
            history="\n\n".join(filter(None, (history.text, computed))),
            question=prompt_question(inquiry),
        )
        text, completion = await self._speak(messages, emit)
        if not text:  # the model refused without a text; `_speak` raises on any other empty reply
            text = WITHHELD.to(inquiry.lang)
            _say(text, emit)

        doubtful = doubtful_figures_about(history.turns, text, inquiry.question, computed)
        return SkillResult(
            text,
            completion.usage,
            (earlier_figures_warning(doubtful, inquiry.lang),) if doubtful else (),
        )

    async def _draft(
        self, completion: Completion, lang: Lang, schema: SchemaText, sizes: Mapping[str, int]
    ) -> SkillResult[Draft]:
        if completion.is_withheld:
            return SkillResult(
                refusal_outcome(completion.text, lang), completion.usage, prompt_parts=sizes
            )

        reply = completion.text or completion.reasoning
        try:
            read = partial(
                sql_from_reply,
                reply,
                lang,
                known_tables=schema.table_names,
                is_cut=completion.is_cut,
            )
            is_short = len(reply) <= _QUICKLY_READ
            draft = read() if is_short else await asyncio.to_thread(read)
        except ForbiddenStatement as refusal:
            refusal.usage = completion.usage
            raise

        if not completion.text and isinstance(draft, NoSql) and draft.reason == "llm_explanation":
            raise unavailable(
                CallFailed("empty")
            )  # don't show the user reasoning as an explanation

        return SkillResult(draft, completion.usage, prompt_parts=sizes)

    async def _complete(
        self, make_prompt: Callable[[PromptBudget], _Prompt]
    ) -> tuple[Completion, Mapping[str, int]]:
        """Return the reply to the prompt within the budget, and the sizes of its parts. A prompt
        that the model finds too long is sent once more with half of the tokens that the schema
        took, and half of the other parts' budgets.
        """
        sent = make_prompt(self.parts.budget)
        try:
            return await self._model.complete(sent.messages), sent.sizes
        except PromptTooLong:
            sent = make_prompt(shorter(self.parts.budget, sent.parts))
            completion = await self._model.complete(sent.messages)

        return replace(completion, usage=completion.usage + Usage(1)), sent.sizes

    async def _speak(self, messages: list[Message], emit: Emit | None) -> tuple[str, Completion]:
        """Return the visible text of a reply, and the reply.

        The emitted pieces concatenate to the text, unless the reply closes a block of reasoning
        that it never opened: then the reasoning was emitted before it could be recognized, and the
        text leaves it out.
        """
        if emit is None:
            completion = await self._model.complete(messages)
        else:
            visible = VisibleText()
            completion = await self._model.complete(
                messages, on_token=lambda piece: _say(visible.feed(piece), emit)
            )
            _say(visible.finish(), emit)

        text = without_reasoning(completion.text)
        if not text and completion.reasoning:
            text = answer_in(completion.reasoning)
            _say(text, emit)

        if not text and not completion.is_withheld:
            raise unavailable(CallFailed("empty"))
        if completion.is_cut:
            text += "…"
            _say("…", emit)

        return text, completion

    async def _schema(self, inquiry: Inquiry) -> SchemaText:
        return await self.parts.schema(inquiry)

    def _overview(self, schema: SchemaText, inquiry: Inquiry) -> str:
        return schema.overview(inquiry.question, min(OVERVIEW_BUDGET, self.parts.budget.schema))


def _say(text: str, emit: Emit | None) -> None:
    if text and emit:
        emit(text)


def _computed(inquiry: Inquiry) -> str:
    """Return what was computed of the last result, as the history has it; else an empty text."""
    lines = "\n".join(f"- {block(finding, _MAX_FINDING)}" for finding in inquiry.findings)
    if lines:
        return f"Computed from all rows of the last result:\n{lines}"

    return ""
