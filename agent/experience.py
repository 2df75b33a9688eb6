"""Learnt examples as one question uses them: to answer it, or to help with writing its SQL."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from common.actor import Actor
from common.errors import CituError
from common.inquiry import Inquiry
from common.learning import NO_EXPERIENCE, Example, Experience
from common.ports import Database
from common.values import PlanEstimate
from knowledge.experience.experience_service import ExperienceService, ExperienceView, Reusable

_log = logging.getLogger(__name__)

METHOD: Literal["verified_example"] = "verified_example"
"""Who wrote a statement that is an example's, and how its question was classified."""
_MOST_TRIED = 3


class Recollection(Protocol):
    """Gives what has been learnt, as far as the user who asks may see it; never raises."""

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """Return the examples, lessons and documents that may help with the question."""

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """Return examples that answer exactly this question, the most trusted first.

        Their SQL has yet to be planned.
        """

    def used(self, examples: Iterable[Example]) -> None:
        """Count an answer for each of the examples."""


class NothingLearnt:
    """The `Recollection` where nothing is kept."""

    async def recalled(self, inquiry: Inquiry) -> Experience:  # noqa: ARG002 - the port's signature
        return NO_EXPERIENCE

    async def reusable(
        self,
        inquiry: Inquiry,  # noqa: ARG002 - the port's signature
    ) -> tuple[Reusable, ...]:
        return ()

    def used(self, examples: Iterable[Example]) -> None:
        """Do nothing with the examples."""


NOTHING_LEARNT = NothingLearnt()


class OwnRecollection:
    """The `Recollection` of one actor for one question; reads the store once.

    Args:
        is_complete: whether a question says by itself what it asks for; others mean something else
            each time, so that no example answers them.
    """

    def __init__(
        self,
        service: ExperienceService,
        actor: Actor,
        is_complete: Callable[[Inquiry], Awaitable[bool]],
    ) -> None:
        self._service = service
        self._actor = actor
        self._is_complete = is_complete
        self._has_looked = False
        self._view: ExperienceView | None = None

    async def recalled(self, inquiry: Inquiry) -> Experience:
        view = await self._view_once()
        if view is None:
            return NO_EXPERIENCE

        return await self._service.safely(view.recalled(inquiry), NO_EXPERIENCE)

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        view = await self._view_once()
        if view is None:
            return ()

        return await self._service.safely(self._same(view, inquiry), ())

    def used(self, examples: Iterable[Example]) -> None:
        self._service.used(examples)

    async def _same(self, view: ExperienceView, inquiry: Inquiry) -> tuple[Reusable, ...]:
        found = await view.reusable(inquiry)
        if found and await self._is_complete(inquiry):
            return found

        return ()

    async def _view_once(self) -> ExperienceView | None:
        if not self._has_looked:
            self._view = await self._service.view(self._actor)
            self._has_looked = True

        return self._view


@dataclass(frozen=True)
class ReusedExample:
    """An example's SQL with the literals of the question, guarded and planned."""

    example: Example
    sql: str
    plan: PlanEstimate


async def reused_sql(
    inquiry: Inquiry, recollection: Recollection, database: Database
) -> ReusedExample | None:
    """Return the SQL of an example that answers exactly this question, if one can run."""
    for reusable in (await recollection.reusable(inquiry))[:_MOST_TRIED]:
        try:
            plan = await database.explain(reusable.sql)
        except CituError as error:
            _log.info(
                "the example %s was not used: %s", reusable.example.example_id, error.error_type
            )
            continue

        recollection.used((reusable.example,))
        return ReusedExample(reusable.example, reusable.sql, plan)

    return None
