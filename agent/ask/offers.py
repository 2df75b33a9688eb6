"""Questions that the user may ask next, each tried before it is offered: in place of a refused one, or after an answer.

What the rules offer in place of a refused question is run for one row, and not offered when it finds nothing. What they
offer after an answer finds rows because of how it is made; it is planned, and an answer hardly waits for it.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType

from agent.ask.context import Context
from common.errors import CituError
from common.inquiry import Inquiry
from common.ports import Database
from common.text import Lang, Text
from common.values import NoSql, Offer, QueryResult
from knowledge.second_look import looks_empty
from rules.answering.about_results import is_about_last
from rules.answering.next_questions import NextQuestion, next_questions, splits_of_last
from rules.schema.lexicon import LEXICON

_log = logging.getLogger(__name__)

_MOST_REWRITES = 2
_MOST_SPLITS = 3
_PATIENCE_S = 1.0  # for all offers of a refusal together
_QUICK = 20_000.0  # of the planner's cost units, the most that trying an offer may cost: tens of milliseconds
_SAID = Text("可以这样问：{}。", " You could ask {}.")
_QUOTED, _OR = Text("“{}”", '"{}"'), Text("、", " or ")


@dataclass(frozen=True)
class Offers:
    """What is offered with a refusal."""

    choices: tuple[str, ...] = ()
    rewrites: tuple[str, ...] = ()


async def offered(draft: NoSql, database: Database) -> Offers:
    """What of the offers finds rows, as far as it can be told in a second; the text of others is not shown."""
    choices: list[str] = []
    rewrites: list[str] = []
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await _try(draft.choices, database, choices, len(draft.choices))
            await _try(draft.rewrites, database, rewrites, _MOST_REWRITES)
    except TimeoutError:
        _log.info("some offers were not tried in time")
    return Offers(tuple(choices), tuple(rewrites))


async def _try(offers: Sequence[Offer], database: Database, working: list[str], most: int) -> None:
    """Puts those that find rows into `working`, until there are enough."""
    for offer in offers:
        if len(working) >= most:
            return
        if offer.sql is None or await finds_rows(offer.sql, database):
            working.append(offer.question)


async def finds_rows(sql: str, database: Database) -> bool:
    """Whether the statement gives anything; no when that can't be told quickly."""
    try:
        plan = await database.explain(sql)
        return plan.total_cost <= _QUICK and not looks_empty(await database.run(_first_row_of(sql)))
    except CituError as error:
        _log.info("an offer could not be tried: %s", error.error_type)
        return False


def _first_row_of(sql: str) -> str:
    return f"SELECT * FROM (\n{sql}\n) AS tried LIMIT 1"


def said(rewrites: Sequence[str], lang: Lang) -> str:
    """A sentence that offers the rewrites; empty without any."""
    if not rewrites:
        return ""
    return _SAID.to(lang).format(_OR.to(lang).join(map(_QUOTED.to(lang).format, rewrites)))


async def splits(inquiry: Inquiry, database: Database) -> tuple[str, ...]:
    """After a question about the last result, those that split its figure, as far as they find rows and in a second."""
    if not is_about_last(inquiry):
        return ()
    await LEXICON.ready(inquiry.catalog)
    found: list[str] = []
    try:
        async with asyncio.timeout(_PATIENCE_S):
            for offer in await asyncio.to_thread(lambda: list(islice(splits_of_last(inquiry), _MOST_SPLITS))):
                await _try([offer], database, found, _MOST_SPLITS)
    except TimeoutError:
        _log.info("some offers were not tried in time")
    return tuple(found)


class FollowUps:
    """Questions that may be asked after an answer: thought of while its SQL runs, planned while it is put into words.

    To be entered; when it is left, what is not done yet is cancelled.
    """

    def __init__(self, inquiry: Inquiry, sql: str, context: Context) -> None:
        self._inquiry, self._sql, self._context = inquiry, sql, context
        self._planned: list[str] = []
        self._thought: asyncio.Task[tuple[NextQuestion, ...]] | None = None
        self._tried: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "FollowUps":
        self._thought = asyncio.create_task(_thought_of(self._inquiry, self._sql))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (self._thought, self._tried):
            if task is not None:
                task.cancel()

    def try_for(self, sql: str, result: QueryResult) -> None:
        """Begins to try them, if `result` has rows and is that of the SQL that they were thought of for."""
        if sql == self._sql and not looks_empty(result) and self._thought is not None:
            self._tried = asyncio.create_task(self._try(self._thought, result.row_count))

    async def within(self, seconds: float) -> tuple[str, ...]:
        """Those that were found to work by then."""
        if self._tried is not None:
            await asyncio.wait({self._tried}, timeout=seconds)
        return tuple(self._planned)

    async def _try(self, thought: asyncio.Task[tuple[NextQuestion, ...]], row_count: int) -> None:
        offers = [one.offer for one in await thought if row_count >= one.least_rows and one.offer.sql is not None]
        if offers and not await self._are_planned(offers) and len(offers) > 1:
            for offer in offers:
                if not await self._are_planned([offer]):
                    return

    async def _are_planned(self, offers: Sequence[Offer]) -> bool:
        """Whether the offers could be planned, all of them at once."""
        try:
            await self._context.database.explain(_together([str(offer.sql) for offer in offers]))
        except CituError as error:
            _log.info("follow-ups could not be planned: %s", error.error_type)
            return False
        self._planned += [offer.question for offer in offers]
        return True


def _together(statements: Sequence[str]) -> str:
    """A statement that costs as much and has as many rows as all of them."""
    if len(statements) == 1:
        return statements[0]
    return "\nUNION ALL\n".join(
        f"SELECT 1 FROM (\n{sql}\n) AS tried_{number}" for number, sql in enumerate(statements, 1)
    )


async def _thought_of(inquiry: Inquiry, sql: str) -> tuple[NextQuestion, ...]:
    await LEXICON.ready(inquiry.catalog)
    found = []
    for question in next_questions(inquiry, sql):
        if question is not None:
            found.append(question)
        await asyncio.sleep(0)  # what else goes on has its turn between two readings
    return tuple(found)
