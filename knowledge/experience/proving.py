"""Prove examples again whose tables have changed.

In the background, a few per minute, each once per change.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from common.errors import CituError, CostExceeded, StatementRejected, StoreUnavailable
from common.learning import MAX_SENTENCE_CHARS, EtlExample, Example
from common.ports import Definitions
from common.tasks import is_running_here
from common.text import Text
from knowledge.tables.tables_read import tables_hash
from store.learned import Learned

_log = logging.getLogger(__name__)
PER_MINUTE = 30
_MOST_WAITING = 1_000
_MOST_FAILED = 5_000
_CHANGED = Text("它读取的表已改变。", "A table that it reads has changed.")


async def planned_example(database: Definitions, example: Example) -> None:
    """Plan an example's SQL; that of a draft may cost what it will, because nobody runs it.

    Raises:
        StatementRejected: guard or EXPLAIN refuse it.
    """
    try:
        await database.explain(example.sql)
    except CostExceeded:
        if not isinstance(example, EtlExample):
            raise


class Prover:
    """Proves examples by guard and EXPLAIN, by what the operator opens to anybody.

    Several workers may find the same example; whoever comes second sees that it is proven, and
    leaves it.

    Args:
        definitions: gives what is known of the datasource whoever asks.
        per_minute: at most so many are proven by this worker.
    """

    def __init__(
        self,
        learned: Learned,
        datasource: str,
        definitions: Callable[[], Definitions],
        *,
        per_minute: float = PER_MINUTE,
    ) -> None:
        self._learned = learned
        self._datasource = datasource
        self._definitions = definitions
        self._pause_s = 60 / per_minute
        self._waiting: OrderedDict[str, Example] = OrderedDict()
        # by example, the hash of the tables that it failed with
        self._failed: OrderedDict[str, str] = OrderedDict()
        self._working: asyncio.Task[None] | None = None

    def ask(self, example: Example, now: str) -> None:
        """Have the example proven in the background, unless it failed with these tables before.

        Args:
            now: the hash of its tables as they are now.
        """
        if self._failed.get(example.example_id) == now:
            return
        if len(self._waiting) >= _MOST_WAITING:
            return

        self._waiting.setdefault(example.example_id, example)
        if self._working is None or not is_running_here(self._working):
            self._working = asyncio.create_task(self._work())

    async def aclose(self) -> None:
        """Stop the work in the background."""
        if self._working is not None:
            self._working.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._working})

    async def _work(self) -> None:
        while self._waiting:
            key, example = self._waiting.popitem(last=False)
            try:
                await self._prove(example)
            except StoreUnavailable:
                self._waiting.clear()  # they are found again by the next question
            except CituError as error:
                _log.info("an example could not be proven again now: %s", error.error_type)
            except Exception:  # noqa: BLE001 - the others still have to be proven
                _log.exception("proving the example %s failed", key)

            await asyncio.sleep(self._pause_s)

    async def _prove(self, example: Example) -> None:
        database = self._definitions()
        now = tables_hash(example.tables, await database.catalog())
        current = await self._learned.find(self._datasource, example.example_id)
        if not isinstance(current, Example) or current.is_rejected:
            return
        if not current.is_stale:
            if current.tables_hash == now:
                return

            await self._mark_stale(current, _CHANGED)

        try:
            await planned_example(database, current)
        except StatementRejected as error:
            _log.info("the example %s stays stale: %s", current.example_id, error.error_type)
            await self._mark_stale(current, error.text)
            self._remember_failure(current, now)
            return

        proven_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        await self._learned.mark_proven(self._datasource, {current.example_id: now}, proven_at)

    async def _mark_stale(self, example: Example, reason: Text) -> None:
        sentence = reason.to(example.lang)[:MAX_SENTENCE_CHARS]
        await self._learned.mark_stale(self._datasource, {example.example_id: sentence})

    def _remember_failure(self, example: Example, now: str) -> None:
        self._failed[example.example_id] = now
        while len(self._failed) > _MOST_FAILED:
            self._failed.popitem(last=False)
