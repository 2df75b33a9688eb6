"""Analyses answers: their SQL is run again as whoever asks."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.analysis.analysing import AnalysisRequest, Analyst
from agent.runs.past_answers import PastAnswers
from common.actor import Actor
from common.audit import Occasion
from common.errors import InvalidSql, NotFound, QueryTimeout
from common.ports import Database
from common.text import Text
from knowledge.tables.name_suggestions import with_suggestions

_NO_ROWS = Text("这个回答没有查询结果，无法分析。", "This answer has no rows to analyse.")
_TOO_LONG = Text(
    "分析时间超过上限，请缩小范围后重试。",
    "The analysis took longer than allowed; ask for less of it.",
)


@dataclass(frozen=True)
class WantedAnalysis:
    """A request to analyse an answer.

    Attributes:
        conversation_id: the id of the run's conversation; see `Answers.find`.
    """

    run_id: str
    actor: Actor
    request: AnalysisRequest
    conversation_id: str | None = None


class AnalysisService:
    """Analyses answers of one datasource.

    Args:
        open_database: gives the datasource for an occasion; its statements are audited.
        request_timeout_s: seconds for one analysis.
    """

    def __init__(
        self,
        answers: PastAnswers,
        open_database: Callable[[Occasion], Database],
        analyst: Analyst,
        *,
        request_timeout_s: float,
    ) -> None:
        self._answers = answers
        self._open_database = open_database
        self._analyst = analyst
        self._request_timeout_s = request_timeout_s

    async def analyze(self, wanted_analysis: WantedAnalysis) -> dict[str, Any]:
        """Return the body of the answer: columns, findings, a forecast where one was wanted and can
        be given, warnings.

        Raises:
            InvalidRequest: the result has no such measure or group.
            NotFound: the user has no such answer, it is no longer kept, or it has no SQL.
            Conflict: the question is still being answered.
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for a question's own SQL.
            StoreUnavailable: the answer can't be read.
        """
        try:
            async with asyncio.timeout(self._request_timeout_s):
                return await self._analyze(wanted_analysis)
        except TimeoutError as exc:
            raise QueryTimeout(_TOO_LONG) from exc

    async def _analyze(self, wanted_analysis: WantedAnalysis) -> dict[str, Any]:
        answered = await self._answers.find(
            wanted_analysis.actor.owner, wanted_analysis.run_id, wanted_analysis.conversation_id
        )
        if answered.sql is None:
            raise NotFound(_NO_ROWS)

        occasion = Occasion(
            "analyze",
            wanted_analysis.run_id,
            wanted_analysis.actor,
            wanted_analysis.conversation_id,
            database=answered.database,
        )
        database = self._open_database(occasion)
        try:
            return {
                "run_id": wanted_analysis.run_id,
                **await self._analyst.analyse(answered.sql, wanted_analysis.request, database),
            }
        except InvalidSql as error:
            raise with_suggestions(error, answered.sql, await database.catalog()) from error
