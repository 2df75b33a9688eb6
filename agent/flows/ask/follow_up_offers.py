"""Questions that the user may ask next, each tried before it is offered.

An offer in place of a refused question is run for one row, and dropped when it finds nothing. An
offer after an answer mostly finds rows because of how it is made, so it is only planned: the answer
hardly waits for it. One about other rows, such as those of the day before, is run, and one by
groups that some of the answer's rows don't belong to is left out.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from types import TracebackType

from agent.flows.ask.context import AskContext
from common.errors import CituError
from common.inquiry import Inquiry
from common.ports import Database
from common.text import Lang, Text
from common.values import NoSql, Offer, QueryResult
from knowledge.values.filter_correction import looks_empty
from rules.answering.about_results import is_about_last
from rules.answering.next_questions import (
    MOST_FOLLOW_UPS,
    NextQuestion,
    next_questions,
    splits_of_last,
)
from rules.schema.lexicon import LEXICON
from rules.steps import is_quick

_log = logging.getLogger(__name__)

_MOST_REWRITES = 2
_MOST_EXAMPLES = 3
_MOST_SPLITS = 3
# Of the planner's cost units, the most that trying an offer may cost: mostly tens of milliseconds
_QUICK = 20_000.0
# The same for all offers of a refusal together. Not time decides which are tried, so that the same
# question is offered the same whatever else the machine does.
_MOST_COST = 3 * _QUICK
_PATIENCE_S = 10.0  # for a database that stands still
_SAID = Text("可以这样问：{}。", " You could ask {}.")
_SAID_EXAMPLES = Text("可以问的有，例如：{}。", " What can be asked is, for example, {}.")
_QUOTED, _OR = Text("“{}”", '"{}"'), Text("、", " or ")


@dataclass(frozen=True)
class Offers:
    """The questions that are offered with a refusal; `examples` where there are no rewrites."""

    choices: tuple[str, ...] = ()
    rewrites: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass
class _Trials:
    """Tries offers, as long as all statements together are quick by the planner's estimates.

    Attributes:
        left: what statements may still cost, in the planner's units.
    """

    database: Database
    left: float = _MOST_COST

    async def find_working(self, offers: Sequence[Offer], working: list[str], most: int) -> None:
        """Append the offers that find rows to `working`, until there are `most`."""
        for offer in offers:
            if len(working) >= most:
                return
            if offer.sql is None or await self.finds_rows(offer.sql):
                working.append(offer.question)

    async def finds_rows(self, sql: str) -> bool:
        """Tell whether the statement gives rows; false when that can't be told quickly."""
        try:
            plan = await self.database.explain(sql)
            if plan.total_cost > min(self.left, _QUICK):
                return False

            self.left -= plan.total_cost
            first_row = await self.database.run(_first_row_of(sql))
        except CituError as error:
            _log.info("an offer could not be tried: %s", error.error_type)
            return False

        return not looks_empty(first_row)


async def offers_with_rows(draft: NoSql, database: Database) -> Offers:
    """Return the offers that are found to give rows, of those that are tried quickly."""
    choices: list[str] = []
    rewrites: list[str] = []
    examples: list[str] = []
    trials = _Trials(database)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await trials.find_working(draft.choices, choices, len(draft.choices))
            await trials.find_working(draft.rewrites, rewrites, _MOST_REWRITES)
            if not rewrites:
                await trials.find_working(draft.examples, examples, _MOST_EXAMPLES)
    except TimeoutError:
        _log.info("some offers were not tried in time")

    return Offers(tuple(choices), tuple(rewrites), tuple(examples))


def _first_row_of(sql: str) -> str:
    return f"SELECT * FROM (\n{sql}\n) AS tried LIMIT 1"


def offer_sentence(offers: Offers, lang: Lang) -> str:
    """Return a sentence that offers the rewrites, or else the examples; empty without any."""
    pattern = _SAID if offers.rewrites else _SAID_EXAMPLES
    quoted = [_QUOTED.to(lang).format(rewrite) for rewrite in offers.rewrites or offers.examples]
    if quoted:
        return pattern.to(lang).format(_OR.to(lang).join(quoted))

    return ""


async def splits(inquiry: Inquiry, database: Database) -> tuple[str, ...]:
    """Return questions that split the last result's figure, as far as they quickly find rows.

    Empty unless the question is about the last result.
    """
    if not is_about_last(inquiry):
        return ()

    await LEXICON.ready(inquiry.catalog)
    columns: list[str] = []
    try:
        async with asyncio.timeout(_PATIENCE_S):
            offers = await asyncio.to_thread(_first_splits, inquiry)
            await _Trials(database).find_working(offers, columns, _MOST_SPLITS)
    except TimeoutError:
        _log.info("some offers were not tried in time")

    return tuple(columns)


def _first_splits(inquiry: Inquiry) -> list[Offer]:
    return list(islice(splits_of_last(inquiry), _MOST_SPLITS))


class FollowUps:
    """Questions to ask after an answer: composed while its SQL runs, planned during its summary.

    A context manager; when it is left, what is not done yet is cancelled.
    """

    def __init__(self, inquiry: Inquiry, sql: str, context: AskContext) -> None:
        self._inquiry = inquiry
        self._sql = sql
        self._context = context
        self._planned: list[str] = []
        self._composed: asyncio.Task[tuple[NextQuestion, ...]] | None = None
        self._tried: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "FollowUps":
        self._composed = asyncio.create_task(_composed_for(self._inquiry, self._sql))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in (self._composed, self._tried):
            if task is not None:
                task.cancel()

    def try_for(self, sql: str, result: QueryResult) -> None:
        """Begin to try them, if `result` has rows and comes from the SQL they were composed for."""
        if self._composed is None or sql != self._sql or looks_empty(result):
            return

        self._tried = asyncio.create_task(self._try(self._composed, result.row_count))

    async def within(self, seconds: float) -> tuple[str, ...]:
        """Wait at most `seconds` and return the questions that were found to work."""
        if self._tried is not None:
            await asyncio.wait({self._tried}, timeout=seconds)

        return tuple(self._planned)

    async def _try(self, composed: asyncio.Task[tuple[NextQuestion, ...]], row_count: int) -> None:
        """Try the next questions: stop at the first offer that can't be planned.

        What can be planned is noted in `_planned`.
        """
        offer_by_kind: dict[str, Offer] = {}
        for question in await composed:
            is_new = row_count >= question.least_rows and question.kind not in offer_by_kind
            if is_new and await _holds(question, self._context.database):
                offer_by_kind[question.kind] = question.offer

        offers = list(offer_by_kind.values())[:MOST_FOLLOW_UPS]
        if not offers or await self._are_planned(offers) or len(offers) == 1:
            return

        for offer in offers:
            if not await self._are_planned([offer]):
                return

    async def _are_planned(self, offers: Sequence[Offer]) -> bool:
        """Plan all the offers at once; false when that fails."""
        try:
            await self._context.database.explain(_together([str(offer.sql) for offer in offers]))
        except CituError as error:
            _log.info("follow-ups could not be planned: %s", error.error_type)
            return False

        self._planned += [offer.question for offer in offers]
        return True


async def _holds(question: NextQuestion, database: Database) -> bool:
    """Tell whether it finds rows, and leaves none of the answer's out; false if that takes long."""
    if question.may_find_nothing:
        finds_rows = await _Trials(database).finds_rows(str(question.offer.sql))
        if not finds_rows:
            return False
    if question.left_out is None:
        return True

    return await _finds_none(question.left_out, database)


async def _finds_none(counting: str, database: Database) -> bool:
    """Tell whether a statement that counts rows finds none; false when that can't be told
    quickly.
    """
    try:
        plan = await database.explain(counting)
        return plan.total_cost <= _QUICK and looks_empty(await database.run(counting))
    except CituError as error:
        _log.info("an offer could not be tried: %s", error.error_type)
        return False


def _together(statements: Sequence[str]) -> str:
    """Return a statement that costs as much and has as many rows as all of them."""
    if len(statements) == 1:
        return statements[0]

    return "\nUNION ALL\n".join(
        f"SELECT 1 FROM (\n{sql}\n) AS tried_{number}" for number, sql in enumerate(statements, 1)
    )


def _all_composed(inquiry: Inquiry, sql: str) -> tuple[NextQuestion, ...]:
    return tuple(filter(None, next_questions(inquiry, sql)))


async def _composed_for(inquiry: Inquiry, sql: str) -> tuple[NextQuestion, ...]:
    await LEXICON.ready(inquiry.catalog)
    if not is_quick(inquiry):
        return await asyncio.to_thread(_all_composed, inquiry, sql)

    composed_questions = []
    for question in next_questions(inquiry, sql):
        if question is not None:
            composed_questions.append(question)

        await asyncio.sleep(0)  # let other tasks run between two questions

    return tuple(composed_questions)
