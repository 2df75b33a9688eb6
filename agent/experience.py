"""What was learnt, as one question uses it: an example that answers it, or what may help to write its SQL."""

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
from knowledge.experience.desk import ExperienceDesk, Reusable, View

_log = logging.getLogger(__name__)

METHOD: Literal["verified_example"] = "verified_example"
"""Who wrote a statement that is an example's, and how its question was classified."""
_MOST_TRIED = 3


class Recollection(Protocol):
    """What has been learnt, as the one who asks may see it. Nothing of it raises."""

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """What may help with the question."""

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """Examples that answer this very question, the most trusted first; their SQL has yet to be planned."""

    def used(self, examples: Iterable[Example]) -> None:
        """Counts an answer for each of the examples."""


class NothingLearnt:
    """The `Recollection` where nothing is kept."""

    async def recalled(self, inquiry: Inquiry) -> Experience:  # noqa: ARG002 - the port's signature
        """Nothing."""
        return NO_EXPERIENCE

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:  # noqa: ARG002 - the port's signature
        """None."""
        return ()

    def used(self, examples: Iterable[Example]) -> None:
        """Does nothing."""


NOTHING_LEARNT = NothingLearnt()


class OwnRecollection:
    """The `Recollection` of one actor for one question, which looks once.

    Args:
        is_complete: whether a question says by itself what it asks for; others mean something else each time, so that
            no example answers them.
    """

    def __init__(self, desk: ExperienceDesk, actor: Actor, is_complete: Callable[[Inquiry], Awaitable[bool]]) -> None:
        self._desk = desk
        self._actor = actor
        self._is_complete = is_complete
        self._has_looked = False
        self._view: View | None = None

    async def recalled(self, inquiry: Inquiry) -> Experience:
        """See `Recollection.recalled`."""
        view = await self._looked()
        return await self._desk.safely(view.recalled(inquiry), NO_EXPERIENCE) if view else NO_EXPERIENCE

    async def reusable(self, inquiry: Inquiry) -> tuple[Reusable, ...]:
        """See `Recollection.reusable`."""
        view = await self._looked()
        return await self._desk.safely(self._same(view, inquiry), ()) if view else ()

    def used(self, examples: Iterable[Example]) -> None:
        """See `Recollection.used`."""
        self._desk.used(examples)

    async def _same(self, view: View, inquiry: Inquiry) -> tuple[Reusable, ...]:
        found = await view.reusable(inquiry)
        return found if found and await self._is_complete(inquiry) else ()

    async def _looked(self) -> View | None:
        if not self._has_looked:
            self._has_looked, self._view = True, await self._desk.view(self._actor)
        return self._view


@dataclass(frozen=True)
class Reused:
    """An example's SQL with the literals of the question, guarded and planned."""

    example: Example
    sql: str
    plan: PlanEstimate


async def reused(inquiry: Inquiry, recollection: Recollection, database: Database) -> Reused | None:
    """The answer of an example to this very question; None when there is none that can be run."""
    for found in (await recollection.reusable(inquiry))[:_MOST_TRIED]:
        try:
            plan = await database.explain(found.sql)
        except CituError as error:
            _log.info("the example %s was not used: %s", found.example.example_id, error.error_type)
            continue
        recollection.used((found.example,))
        return Reused(found.example, found.sql, plan)
    return None
