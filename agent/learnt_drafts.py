"""Drafts of transformations that were kept, and what went wrong with others, for one caller."""

from collections.abc import Callable, Iterable

from common.actor import Actor
from common.inquiry import Inquiry
from common.learning import NO_EXPERIENCE, EtlExample, Example, Experience
from common.text import language_of
from common.values import Catalog
from knowledge.experience.experience_service import ExperienceService, ExperienceView


class LearntDrafts:
    """Looks up what was learnt of drafts, for one request; never raises."""

    def __init__(self, service: ExperienceService, actor: Actor) -> None:
        self._service = service
        self._actor = actor
        self._has_looked = False
        self._view: ExperienceView | None = None

    async def recalled(self, request: str, catalog: Catalog) -> Experience:
        """Return drafts and failures of similar requests."""
        view = await self._view_once()
        if view is None:
            return NO_EXPERIENCE

        inquiry = Inquiry(request, language_of(request), catalog)
        return await self._service.safely(view.recalled(inquiry), NO_EXPERIENCE)

    async def decisive(self, meaning: str) -> tuple[EtlExample, ...]:
        """Return drafts of the same request that may decide what it leaves open, best first."""
        view = await self._view_once()
        if view is None:
            return ()

        return _drafts(await self._service.safely(view.asked_the_same(meaning), ()))

    async def trusted(self) -> tuple[EtlExample, ...]:
        """Return the drafts that somebody stands for, the most trusted first."""
        view = await self._view_once()
        if view is None:
            return ()

        return _drafts(await self._service.safely(view.trusted(), ()))

    def used(self, examples: Iterable[Example]) -> None:
        """Count a draft that each of the examples has helped with."""
        self._service.used(examples)

    async def _view_once(self) -> ExperienceView | None:
        if not self._has_looked:
            self._view = await self._service.view(self._actor)
            self._has_looked = True

        return self._view


DraftsOf = Callable[[Actor, str | None], LearntDrafts]
"""Gives the drafts over a database, named or the default one, as an actor may see them."""


def _drafts(examples: Iterable[Example]) -> tuple[EtlExample, ...]:
    return tuple(example for example in examples if isinstance(example, EtlExample))
