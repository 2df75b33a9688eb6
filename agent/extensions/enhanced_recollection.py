"""What has been learnt, with what enhancers add."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.experience import Recollection
from agent.extensions.points import LlmContextEnhancer
from common.actor import Actor
from common.inquiry import Inquiry
from common.learning import Document, Example, Experience
from knowledge.experience.desk import Reusable


class EnhancedRecollection:
    """Implements `Recollection` around `inner`, for one actor."""

    def __init__(self, inner: Recollection, enhancers: Sequence[LlmContextEnhancer], actor: Actor) -> None:
        self._inner = inner
        self._enhancers = tuple(enhancers)
        self._actor = actor

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """See `Recollection.recalled`; what enhancers give comes before other documents."""
        added: list[Document] = []
        for enhancer in self._enhancers:
            added += await enhancer(inquiry.question, self._actor)
        found = await self._inner.recalled(inquiry)
        return replace(found, documents=(*added, *found.documents))

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """See `Recollection.reusable`."""
        return await self._inner.reusable(inquiry)

    def used(self, examples: Iterable[Example]) -> None:
        """See `Recollection.used`."""
        self._inner.used(examples)
