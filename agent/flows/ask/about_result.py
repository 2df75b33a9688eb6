"""Computes what a question about the last result asks for."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.analysis.analysing import AnalysisRequest, Analyst
from common.errors import CituError
from common.inquiry import Inquiry
from common.ports import Database
from common.text import Lang, Text
from common.values import AnalysisKind

_log = logging.getLogger(__name__)
_METHOD = Text("方法：{}。", " Method: {}.")
_MOST_FINDINGS = 8  # findings, of which the most telling of each kind come first
_MOST_OF_KIND = 2


@dataclass(frozen=True)
class ResultAnalysis:
    """Figures that were computed of a result.

    Attributes:
        findings: as `POST /api/v0/runs/{run_id}/analyze` gives them.
        warnings: why something that was wanted could not be computed.
    """

    findings: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    def sentences(self, lang: Lang) -> tuple[str, ...]:
        """Return the findings in words.

        The method of neighbouring findings is said once, after the last of them.
        """
        sentences = []
        for finding, following in zip_longest(self.findings, self.findings[1:]):
            is_last = following is None or following["method"] != finding["method"]
            sentence = finding["text"]
            if is_last:
                sentence += _METHOD.to(lang).format(finding["method"])

            sentences.append(sentence)

        return tuple(sentences)


Analyse = Callable[[str, tuple[AnalysisKind, ...], Lang], Awaitable[ResultAnalysis]]
"""Computes figures of a statement's rows from the statement, the kinds and the language.

Never raises.
"""


async def nothing_computed(
    _sql: str, _what: tuple[AnalysisKind, ...], _lang: Lang
) -> ResultAnalysis:
    """Return no findings: the `Analyse` of whoever computes nothing."""
    return ResultAnalysis()


def analysing(analyst: Analyst, database: Database) -> Analyse:
    """Return the `Analyse` over the guarded and audited database of one question."""

    async def analyse(sql: str, what: tuple[AnalysisKind, ...], lang: Lang) -> ResultAnalysis:
        try:
            body = await analyst.analyse(sql, AnalysisRequest(lang, what), database)
        except CituError as error:  # the question is answered without it
            _log.info("the last result was not analysed: %s", error.error_type)
            return ResultAnalysis()

        return ResultAnalysis(_telling(body["findings"]), tuple(body["warnings"]))

    return analyse


def _telling(findings: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the first few findings of each kind."""
    counted: dict[str, int] = {}
    telling = []
    for finding in findings:
        counted[finding["kind"]] = counted.get(finding["kind"], 0) + 1
        if counted[finding["kind"]] <= _MOST_OF_KIND:
            telling.append(finding)

    return tuple(telling[:_MOST_FINDINGS])


def last_sql(inquiry: Inquiry) -> str | None:
    """Return the statement of the last result of the conversation, if there is one."""
    for turn in reversed(inquiry.history):
        if turn.sql is not None:
            return turn.sql

    return None
