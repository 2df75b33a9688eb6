"""Computes what a question about the last result asks for."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from agent.analysis.analysing import Analyst, Wish
from common.errors import CituError
from common.inquiry import Inquiry
from common.ports import Database
from common.text import Lang, Text
from common.values import AnalysisKind

_log = logging.getLogger(__name__)
_METHOD = Text("方法：{}。", " Method: {}.")
_MOST = 8  # findings, of which the most telling of each kind come first
_MOST_OF_KIND = 2


@dataclass(frozen=True)
class Analysis:
    """What was computed of a result.

    Attributes:
        findings: as `POST /api/v0/runs/{run_id}/analyze` gives them.
        warnings: why something that was wanted could not be computed.
    """

    findings: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    def sentences(self, lang: Lang) -> tuple[str, ...]:
        """The findings in words; the method of those that stand together is said once, after the last of them."""
        told = []
        for finding, following in zip_longest(self.findings, self.findings[1:]):
            is_last = following is None or following["method"] != finding["method"]
            told.append(finding["text"] + (_METHOD.to(lang).format(finding["method"]) if is_last else ""))
        return tuple(told)


Analyse = Callable[[str, tuple[AnalysisKind, ...], Lang], Awaitable[Analysis]]
"""Computes figures of the rows of a statement: the statement, what to compute, the language. Never raises."""


async def nothing_computed(_sql: str, _what: tuple[AnalysisKind, ...], _lang: Lang) -> Analysis:
    """The `Analyse` of whoever computes nothing."""
    return Analysis()


def analysing(analyst: Analyst, database: Database) -> Analyse:
    """The `Analyse` over the guarded and audited database of one question."""

    async def analyse(sql: str, what: tuple[AnalysisKind, ...], lang: Lang) -> Analysis:
        try:
            body = await analyst.analyse(sql, Wish(lang, what), database)
        except CituError as error:  # the question is answered without it
            _log.info("the last result was not analysed: %s", error.error_type)
            return Analysis()
        return Analysis(_telling(body["findings"]), tuple(body["warnings"]))

    return analyse


def _telling(findings: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The first few of each kind."""
    counted: dict[str, int] = {}
    kept = []
    for finding in findings:
        counted[finding["kind"]] = counted.get(finding["kind"], 0) + 1
        if counted[finding["kind"]] <= _MOST_OF_KIND:
            kept.append(finding)
    return tuple(kept[:_MOST])


def last_sql(inquiry: Inquiry) -> str | None:
    """The statement of the last result of the conversation."""
    return next((turn.sql for turn in reversed(inquiry.history) if turn.sql is not None), None)
