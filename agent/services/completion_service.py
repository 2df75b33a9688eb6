"""Completes what somebody types: names, values, and questions that were asked before."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from common.actor import Actor
from common.errors import CituError
from common.ports import Database
from knowledge.experience.experience_service import ExperienceService
from knowledge.tables.phrase_index import PHRASES, PhraseMatch
from store import Conversations

_PATIENCE_S = 0.03  # that completions wait for the store; without it, names and values are given
_MOST_CONVERSATIONS = 50  # the latest, whose first questions are offered
_LEAST_CHARS = 2  # of a question that is looked for among earlier ones
_MOST_QUESTIONS = 3


class CompletionService:
    """Completes questions about one database, by what the caller may read there.

    Args:
        samples: whether stored values may be shown.
    """

    def __init__(
        self,
        database_of: Callable[[Actor], Database],
        conversations: Conversations,
        experience: ExperienceService,
        *,
        samples: bool,
    ) -> None:
        self._database_of = database_of
        self._conversations = conversations
        self._experience = experience
        self._samples = samples

    async def completions(self, text: str, limit: int, actor: Actor) -> list[dict[str, Any]]:
        """Return at most `limit` completions of `text`, earlier questions behind names and values.

        Raises:
            DatabaseUnavailable, QueryTimeout: the catalogue can't be read.
        """
        catalog = await self._database_of(actor).catalog()
        phrases = await PHRASES.ready(catalog)
        asked = await self._asked(text, actor)
        room = max(1, limit - len(asked))
        matches = phrases.completions(text, room, with_values=self._samples)
        return [
            *(_completion(text, one) for one in matches),
            *({"kind": "question", "text": one, "about": None, "completed": one} for one in asked),
        ][:limit]

    async def _asked(self, text: str, actor: Actor) -> list[str]:
        """Return the caller's own and shared questions that hold these words, each once."""
        words = text.strip().casefold()
        if len(words) < _LEAST_CHARS:
            return []

        own, shared = await asyncio.gather(
            _in_time(self._own_titles(actor)), _in_time(self._shared_questions(words, actor))
        )
        questions = dict.fromkeys((*own, *shared))
        fitting = [one for one in questions if words in one.casefold() and one.casefold() != words]
        fitting.sort(key=lambda one: not one.casefold().startswith(words))
        return fitting[:_MOST_QUESTIONS]

    async def _own_titles(self, actor: Actor) -> list[str]:
        page = await self._conversations.page(actor.owner, _MOST_CONVERSATIONS)
        return [conversation.title for conversation in page.conversations]

    async def _shared_questions(self, words: str, actor: Actor) -> Iterable[str]:
        view = await self._experience.view(actor)
        if view is not None:
            return await view.questions_with(words)

        return ()


async def _in_time(questions: Awaitable[Iterable[str]]) -> Iterable[str]:
    """Return the questions; none when the store is slow or away."""
    with suppress(TimeoutError, CituError):
        async with asyncio.timeout(_PATIENCE_S):
            return await questions

    return ()


def _completion(text: str, match: PhraseMatch) -> dict[str, Any]:
    phrase = match.phrase
    beginning = text[: len(text) - match.replaced]
    return {
        "kind": phrase.kind,
        "text": phrase.text,
        "about": phrase.about or None,
        "completed": beginning + phrase.text,
    }
