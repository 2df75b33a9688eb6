"""Shows what is learnt to those who may see it, and lets reviewers decide on it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agent.answers.learnt_items import learnt_item_json
from agent.question import new_run_id
from agent.services.learning.learning_source import LearningSource
from common.actor import Actor
from common.audit import Occasion
from common.errors import Conflict, Forbidden, NotFound, QueryTimeout, StatementRejected
from common.learning import SHARED, Example, Lesson, Trust
from common.text import Lang, Text
from knowledge.experience.hidden_rows import HiddenRows
from knowledge.learning.intake import ImportOutcome, Intake, counts
from store import Learned, LearnedFilter, LearntKind, ReviewVerdict
from store.learned_json import state_of, trust_of

_EXPORT_PAGE = 100
_UNKNOWN = Text("没有这个例子或教训。", "There is no such example or lesson.")
_OWN = Text(
    "不能审核自己提供的内容：请由另一个人审核。",
    "You brought this yourself: another person has to decide on it.",
)
_SHARED = Text("已共享的内容只能由审核人删除。", "This is shared: only a reviewer can delete it.")
_FULL = Text(
    "共享的内容已达上限：请先删除不再需要的。",
    "As much is shared as may be: delete what is no longer needed first.",
)
_TOO_LONG = Text(
    "处理时间超过上限，请分成几次导入。",
    "The import took longer than allowed; send fewer lines at a time.",
)


class LearningService:
    """Lists, reviews, imports and exports what is learnt about one datasource.

    Args:
        source: the datasource.
        request_timeout_s: seconds for one import.
    """

    def __init__(
        self,
        learned: Learned,
        source: LearningSource,
        *,
        request_timeout_s: float,
    ) -> None:
        self._learned = learned
        self._source = source
        self._request_timeout_s = request_timeout_s

    async def page(
        self,
        kind: LearntKind,
        learned_filter: LearnedFilter,
        actor: Actor,
        limit: int,
        cursor: str | None,
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return one page of a list, and the cursor of the next one.

        A page may have less than `limit`: what others brought about tables that the actor may not
        read is left out, unless a reviewer looks (`wanted.seen_by` is None). What may quote rows
        that are hidden from the actor is left out for reviewers, too.

        Raises:
            InvalidCursor: no page gave this cursor.
            StoreUnavailable: the list can't be read.
        """
        page = await self._learned.page(self._source.name, kind, learned_filter, limit, cursor)
        hidden = await HiddenRows.of(self._source.database_of(actor))
        items = [
            item
            for item in page.items
            if learned_filter.seen_by is None or await self._may_read(item, actor)
        ]
        items = [
            item for item in items if item.author == actor.owner or not await hidden.may_be_in(item)
        ]
        items = [item for item in items if await self._is_of_part(item, actor)]
        return [learnt_item_json(item) for item in items], page.next_cursor

    async def _may_read(self, item: Example | Lesson, actor: Actor) -> bool:
        if item.author == actor.owner or item.sql is None:
            return True

        try:
            await self._source.database_of(actor).inspect(item.sql)
        except StatementRejected:
            return False

        return True

    async def _is_of_part(self, item: Example | Lesson, actor: Actor) -> bool:
        """Tell whether an item is about the actor's part of the database, where it is divided.

        Names of tables alone don't tell: two parts may have tables of the same name.
        """
        if not self._source.is_divided or item.author == actor.owner:
            return True
        if not isinstance(item, Example):
            return False

        catalog = await self._source.database_of(actor).catalog()
        return bool(item.tables) and set(item.tables) <= catalog.by_key.keys()

    async def export(
        self, learned_filter: LearnedFilter, actor: Actor
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield all that the lists show, examples first; raises what `page` raises."""
        kinds: tuple[LearntKind, ...] = ("example", "lesson")
        for kind in kinds:
            cursor = None
            while True:
                items, cursor = await self.page(kind, learned_filter, actor, _EXPORT_PAGE, cursor)
                for item in items:
                    yield item

                if cursor is None:
                    break

    async def review(
        self,
        kind: LearntKind,
        item_id: str,
        reviewer: Actor,
        verdict: ReviewVerdict,
        seen: Trust | None,
    ) -> dict[str, Any]:
        """Return the item after the verdict; the caller has checked that the actor is a reviewer.

        Raises:
            NotFound: there is no such item, or it may quote rows that are hidden from the reviewer.
            Forbidden: the reviewer brought it.
            Conflict: it is no longer as the reviewer saw it, or as much is shared as may be.
            StoreUnavailable: nothing was decided, or perhaps it was; repeating it is harmless.
        """
        item = await self._item(kind, item_id)
        hidden = await HiddenRows.of(self._source.database_of(reviewer))
        if item.author != reviewer.owner and await hidden.may_be_in(item):
            raise NotFound(_UNKNOWN)
        if not await self._is_of_part(item, reviewer):
            raise NotFound(_UNKNOWN)

        reviewed = await self._learned.review(
            self._source.name, item_id, reviewer.owner, verdict, seen=seen
        )
        if reviewed.item is None or reviewed.outcome == "unknown":
            raise NotFound(_UNKNOWN)
        if reviewed.outcome == "own":
            raise Forbidden(_OWN)
        if reviewed.outcome == "full":
            raise Conflict(_FULL, retryable=False)
        if reviewed.outcome == "changed":
            raise Conflict(_changed_text(reviewed.item), retryable=False)

        return learnt_item_json(reviewed.item)

    async def delete(
        self, kind: LearntKind, item_id: str, actor: Actor, *, is_reviewer: bool
    ) -> None:
        """Delete what was learnt, for everybody who may see it.

        Raises:
            NotFound: there is none that the actor may see.
            Forbidden: it is shared, and the actor is no reviewer.
            StoreUnavailable: it could not be forgotten.
        """
        item = await self._item(kind, item_id)
        if not await self._is_of_part(item, actor):
            raise NotFound(_UNKNOWN)

        is_shared = trust_of(item) in SHARED
        if not is_reviewer and is_shared:
            raise Forbidden(_SHARED)
        if not await self._learned.delete(
            self._source.name, item_id, None if is_reviewer else actor.owner
        ):
            raise NotFound(_UNKNOWN)

    async def _item(self, kind: LearntKind, item_id: str) -> Example | Lesson:
        item = await self._learned.find(self._source.name, item_id)
        if item is None or isinstance(item, Example) != (kind == "example"):
            raise NotFound(_UNKNOWN)

        return item

    async def take(self, lines: str, actor: Actor, lang: Lang) -> dict[str, Any]:
        """Take in the lines of an import as the actor's own, and return what became of each.

        Raises:
            QueryTimeout: it took too long; nothing was added.
            DatabaseUnavailable, StoreUnavailable: it can't be done now.
        """
        database = self._source.open_database(
            Occasion("import", new_run_id(), actor, database=self._source.name)
        )
        intake = Intake(
            self._learned, self._source.name, database, self._source.definitions, author=actor.owner
        )
        try:
            async with asyncio.timeout(self._request_timeout_s):
                outcomes = await intake.take(lines)
        except TimeoutError as exc:
            raise QueryTimeout(_TOO_LONG) from exc

        return {
            "lines": [_outcome_json(outcome, lang) for outcome in outcomes],
            "counts": counts(outcomes),
        }


def _outcome_json(outcome: ImportOutcome, lang: Lang) -> dict[str, Any]:
    error = outcome.error
    return {
        "line": outcome.line,
        "status": outcome.status,
        "id": outcome.item_id,
        "error_type": error.error_type if error else None,
        "error": error.message(lang) if error else None,
    }


def _changed_text(item: Example | Lesson) -> Text:
    trust, state = trust_of(item), state_of(item)
    return Text(
        f"它的状态已改变：现在的可信度是 {trust}，状态是 {state}。",
        f"It has changed since: its trust is {trust} now, its state {state}.",
    )
