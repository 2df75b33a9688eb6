"""Goes on by rules when the model fails, and warns that it did.

One instance belongs to one question. After the first failure the model is not asked again for that
question, so that nobody waits for a dead endpoint twice. If the rules have no statement either, the
question ends in the model's error: the user can act on "the model is down", while the rules'
message would blame the question.

When the model fails in the middle of a text, pieces of it have been emitted and can't be taken
back. The rules' text is emitted after them as a new paragraph, and only the rules' text is returned
(and so stands in the terminal event). Clients show the terminal event's text in place of the
collected pieces.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from agent.thinking import Skills
from common.errors import InvalidSql, LlmUnavailable
from common.inquiry import Emit, Inquiry
from common.text import Lang, Text
from common.values import Classification, Draft, NoSql, QueryResult, SkillResult, Usage

T = TypeVar("T")
_log = logging.getLogger(__name__)

_FALLEN_BACK = Text(
    "大模型不可用，本回答由离线规则生成。",
    "The language model is unavailable; offline rules produced this answer.",
)


class FallbackSkills:
    """`Skills` of `primary`, and of `backup` after the first `LlmUnavailable`; `name` is that of
    the one in use.
    """

    def __init__(self, primary: Skills, backup: Skills) -> None:
        self.name = primary.name
        self._primary = primary
        self._backup = backup
        self._failure: LlmUnavailable | None = None
        self._has_warned = False

    async def classify(self, inquiry: Inquiry) -> SkillResult[Classification]:
        return await self._with_fallback(lambda skills: skills.classify(inquiry), inquiry.lang)

    async def write_sql(self, inquiry: Inquiry) -> SkillResult[Draft]:
        """See `Skills.write_sql`. Raises the model's error when the backup has no statement."""
        outcome = await self._with_fallback(lambda skills: skills.write_sql(inquiry), inquiry.lang)
        return self._with_sql(outcome)

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> SkillResult[Draft]:
        """See `Skills.repair_sql`. Raises the model's error when the backup has no statement."""
        outcome = await self._with_fallback(
            lambda skills: skills.repair_sql(inquiry, sql, error), inquiry.lang
        )
        return self._with_sql(outcome)

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> SkillResult[str]:
        """Say the result as `Skills.summarize` does.

        When the model fails after pieces were emitted, the backup's follow as a new paragraph.
        """
        pieces = _PieceEmitter(emit)
        return await self._with_fallback(
            lambda skills: skills.summarize(inquiry, sql, result, pieces.emit_for(skills)),
            inquiry.lang,
        )

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> SkillResult[str]:
        """See `Skills.chat`; a model that fails in the middle is treated as in `summarize`."""
        pieces = _PieceEmitter(emit)
        return await self._with_fallback(
            lambda skills: skills.chat(self._told(inquiry), pieces.emit_for(skills)),
            inquiry.lang,
        )

    def _told(self, inquiry: Inquiry) -> Inquiry:
        """Return the inquiry with a note of whether the model has failed."""
        return replace(inquiry, is_model_down=self._failure is not None)

    async def _with_fallback(
        self, think: Callable[[Skills], Awaitable[SkillResult[T]]], lang: Lang
    ) -> SkillResult[T]:
        """Return what the model thinks; what the backup does once the model has failed."""
        failed_calls = 0
        if self._failure is None:
            try:
                return await think(self._primary)
            except LlmUnavailable as failure:
                _log.warning("the model failed, going on by rules: %s", failure.text.en)
                self._failure, self.name, failed_calls = failure, self._backup.name, 1

        try:
            outcome = await think(self._backup)
        except LlmUnavailable:
            raise self._failure from None

        return self._marked(outcome, failed_calls, lang)

    def _marked(self, outcome: SkillResult[T], failed_calls: int, lang: Lang) -> SkillResult[T]:
        """Add the cost of the failed call to `outcome`, and the warning unless it was given
        before.
        """
        warning = () if self._has_warned else (_FALLEN_BACK.to(lang),)
        self._has_warned = True
        return replace(
            outcome,
            usage=outcome.usage + Usage(failed_calls),
            warnings=(*warning, *outcome.warnings),
        )

    def _with_sql(self, outcome: SkillResult[Draft]) -> SkillResult[Draft]:
        """Return the outcome; raise the model's error where the backup has written no SQL."""
        if self._failure is not None and isinstance(outcome.value, NoSql):
            raise self._failure

        return outcome


class _PieceEmitter:
    """Passes pieces on; starts a new paragraph when the backup continues after the primary."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self._speaker: Skills | None = None

    def emit_for(self, speaker: Skills) -> Emit | None:
        """Return the `Emit` for the pieces of `speaker`."""
        if self._emit is None:
            return None

        return lambda piece: self._pass_on(speaker, piece)

    def _pass_on(self, speaker: Skills, piece: str) -> None:
        assert self._emit is not None
        if self._speaker is not None and self._speaker is not speaker:
            self._emit("\n\n")

        self._speaker = speaker
        self._emit(piece)
