"""Puts together what a draft came to, and analyses by rules why it was wrong."""

import asyncio
import re
from collections.abc import Sequence
from typing import cast

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_learning import FinishedDraft
from agent.flows.etl.draft_making import answers_of, code_of, draft_of
from agent.flows.etl.state import EtlState, Json
from common.errors import CituError, InvalidSql, QueryTimeout
from common.text import Text
from etl.rendering.one_query import one_query
from etl.schemas.rating import DraftFeedback
from etl.schemas.requirement import UserIntent
from knowledge.learning.draft_failures import (
    FailedTest,
    FoundIssue,
    failed_tests,
    reviewed_issue,
)
from knowledge.learning.failure_analysis import Case, FailureAnalysis, FailureFinding, analysed

# Classes of SQLSTATEs about values, which PostgreSQL's messages quote.
_ABOUT_VALUES = ("22", "23")
_QUOTED = re.compile('"[^"]*"')


async def finished_draft(state: EtlState, context: EtlContext) -> FinishedDraft:
    """Return the draft as it is now, with what was said of it.

    Raises:
        Conflict: the catalogue is another one now, and the request does not fit it any more.
    """
    draft = await draft_of(state, context)
    sql = await asyncio.to_thread(one_query, draft)
    sql_before = sql
    is_corrected = any(code["method"] == "user" for code in state.get("code", []))
    if is_corrected:
        written = cast(EtlState, {**state, "code": state["code_written"]})
        sql_before = await asyncio.to_thread(one_query, await draft_of(written, context))

    # As rendered: what users write in comments is not kept.
    code = [(one["node"], one["sql"]) for one in await asyncio.to_thread(code_of, draft)]
    stored = state.get("feedback")
    feedback = DraftFeedback.model_validate(stored) if stored is not None else None
    return FinishedDraft(
        question=context.question,
        meaning=state["meaning"],
        intent=_kept_intent(state, context),
        sql=sql,
        code=tuple(code),
        target=draft.target.relation,
        answers=answers_of(state),
        is_proven=state["status"] == "proven",
        is_corrected=is_corrected,
        feedback=feedback,
        failure=_failure(state, sql, sql_before, feedback),
    )


def _kept_intent(state: EtlState, context: EtlContext) -> Json:
    """Return the intent without words but those of the request, which alone are judged with it."""
    intent = UserIntent.model_validate(state["analysis"]["intent"])
    words: Json = {
        "business_goal": True,
        "constraints": True,
        "data_target": {"description"},
        "operations": {"__all__": {"description"}},
    }
    without_words: Json = intent.model_dump(mode="json", exclude=words)
    return {**without_words, "summary": context.question.question}


def _failure(
    state: EtlState, sql: str, sql_before: str, feedback: DraftFeedback | None
) -> FailureAnalysis | None:
    """Return why the draft, or what was there before its user corrected it, was wrong."""
    has_failed = state["status"] == "failed"
    is_blamed = feedback is not None and feedback.rating in ("unsatisfied", "need_modification")
    if has_failed or is_blamed:
        comment = feedback.comment if feedback is not None else None
        case = Case(
            lang=state["lang"],
            sql=sql,
            comment=comment,
            refusal=_refusal(state.get("failure")),
            found=_found(state, is_explained=comment is not None),
        )
        return analysed(case)

    if sql != sql_before:
        return analysed(Case(lang=state["lang"], sql=sql_before, corrected=sql))

    return None


def _refusal(failure: Json | None) -> CituError | None:
    """Return the error that ended the build."""
    if failure is None:
        return None

    message = failure["message"]
    if failure["error_type"] == QueryTimeout.error_type:
        return QueryTimeout(Text(message, message))

    sqlstate = failure["sqlstate"]
    if sqlstate is not None and sqlstate.startswith(_ABOUT_VALUES):
        message = _QUOTED.sub('"…"', message)

    return InvalidSql(message, sqlstate=sqlstate)


def _found(state: EtlState, *, is_explained: bool) -> FailureFinding | None:
    """Return what the checks say; what they only warn of counts where nobody explains more."""
    failing = [
        FailedTest(test["id"], test["kind"])
        for test in state.get("tests", {}).get("tests", [])
        if test["status"] == "fail" and not test["is_warning"]
    ]
    issues: list[Json] = state.get("review", {}).get("issues", [])
    errors = [issue for issue in issues if issue["severity"] == "error"]
    finding = failed_tests(failing) or reviewed_issue(_issues(errors))
    if finding is None and not is_explained:
        finding = reviewed_issue(_issues(issues))

    return finding


def _issues(issues: Sequence[Json]) -> list[FoundIssue]:
    return [FoundIssue(issue["code"], issue["message"], issue["suggestion"]) for issue in issues]
