"""Adds the documents of enhancers to what has been learnt."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.experience import Recollection
from agent.extensions.points import LlmContextEnhancer
from common.actor import Actor
from common.inquiry import Inquiry
from common.learning import Document, Example, Experience
from knowledge.experience.experience_service import Reusable


class EnhancedRecollection:
    """Implements `Recollection` around `inner`, for one actor."""

    def __init__(
        self, inner: Recollection, enhancers: Sequence[LlmContextEnhancer], actor: Actor
    ) -> None:
        self._inner = inner
        self._enhancers = tuple(enhancers)
        self._actor = actor

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """Return what may help with the question; the documents of enhancers come before others."""
        added: list[Document] = []
        for enhancer in self._enhancers:
            added += await enhancer(inquiry.question, self._actor)

        experience = await self._inner.recalled(inquiry)
        return replace(experience, documents=(*added, *experience.documents))

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        return await self._inner.reusable(inquiry)

    def used(self, examples: Iterable[Example]) -> None:
        self._inner.used(examples)
