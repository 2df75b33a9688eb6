"""Builds the draft from samples, tests it, and keeps what was made as files."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.draft_files import keep_files
from agent.flows.etl.draft_making import (
    binding_of,
    bound_intent,
    draft_of,
    further_step,
    rules_draft,
)
from agent.flows.etl.etl_texts import (
    FURTHER_MISSING,
    FURTHER_UNCOMPARED,
    NOT_COMPARABLE,
    REFUSED,
    SQL_NOT_TAKEN,
    UNPROVEN,
    WAITING,
    with_value,
)
from agent.flows.etl.roles.tester_role import cases_of
from agent.flows.etl.routing import after_tests, has_model_work, has_user_work
from agent.flows.etl.rules_fallback import rules_fallback
from agent.flows.etl.state import EtlState, EtlUpdate, Json
from common.errors import (
    CituError,
    DatabaseUnavailable,
    InvalidSql,
    QueryTimeout,
    StatementRejected,
    StateTooLarge,
)
from common.meanings import TableKey
from common.text import Text
from common.values import Table
from etl.evidence.assumed_figures import columns_counted, with_figures
from etl.evidence.proof import DraftProof, ProofOptions, make_tests, prove
from etl.evidence.unit_proof import columns_read
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.rendering.one_query import one_query
from etl.schemas.evidence import TestReport
from etl.schemas.requirement import AnalysisResult
from etl.scratch.source_sampling import Samples, sample

_STATUS = {"passed": "proven", "failed": "failed", "not_run": "unproven"}


async def tester_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the evidence, the files, and what the draft is worth.

    What a model has made and failed its tests goes back to the developer, without files.
    """
    context = runtime.context
    bound = await bound_intent(state, context)
    try:
        draft = await draft_of(state, context)
        await _judge_changes(draft, state, context)
    except StatementRejected as exc:
        if not has_user_work(state):
            raise

        return _refused(exc, state)

    proof = await _proof(draft, bound, state, context)
    instead: EtlUpdate = {"execution_path": []}
    if proof.report.status == "not_run" and has_model_work(state):
        instead = await rules_fallback(state, context)
        draft = await rules_draft(state, context)
        proof = replace(proof, tests=make_tests(draft, bound))
        _warn_of_missing_comparison(context)

    analysis = with_figures(AnalysisResult.model_validate(state["analysis"]), proof)
    report: EtlUpdate = {
        **instead,
        "analysis": analysis.model_dump(mode="json"),
        "tests": proof.report.model_dump(mode="json", by_alias=True),
        "status": _status(draft, proof, state),
        "failure": _told(proof.failure),
        "refusal": None,
        "execution_path": ["tester_agent"],
    }
    if after_tests(cast(EtlState, {**state, **report})) == "repair":
        return context.with_model_usage(report, state)

    warnings = [*_warnings(proof, state), *_of_further_step(draft, state)]
    try:
        report["artefact"] = await keep_files(draft, bound, proof, analysis, state, context)
    except (StatementRejected, StateTooLarge) as exc:  # more than can be written down
        report["status"] = "failed"
        warnings.append(exc.text.to(state["lang"]))

    report["warnings"] = warnings
    return context.with_model_usage(report, state)


def _warnings(proof: DraftProof, state: EtlState) -> list[str]:
    warnings = [warning.to(state["lang"]) for warning in proof.warnings]
    if proof.failure is not None:
        warnings.append(proof.failure.message(state["lang"]))

    return warnings


def _status(draft: Draft, proof: DraftProof, state: EtlState) -> str:
    """Return what the draft is worth.

    A further step that nobody has written is a failure; one that a model has written is compared
    with nothing.
    """
    is_further = draft.target.is_further
    if further_step(state) is not None and not is_further:
        return "failed"

    if is_further and proof.report.status == "passed":
        return "unproven"

    return _STATUS[proof.report.status]


def _of_further_step(draft: Draft, state: EtlState) -> list[str]:
    """Return what is to be said of the step that only a model can write."""
    step = further_step(state)
    if step is None:
        return []
    if draft.target.is_further:
        named = Text(draft.target.relation, draft.target.relation)
        return [with_value(FURTHER_UNCOMPARED, named).to(state["lang"])]

    return [with_value(FURTHER_MISSING, Text(step.description, step.description)).to(state["lang"])]


async def _judge_changes(draft: Draft, state: EtlState, context: EtlContext) -> None:
    """Have the guard judge what a user has changed, with the user's own rights.

    Raises:
        StatementRejected: it does what no query may, or reads what the user may not.
    """
    if has_user_work(state):
        sql = await asyncio.to_thread(one_query, draft)
        await context.database.inspect(sql)


def _told(failure: StatementRejected | QueryTimeout | None) -> Json | None:
    """Return the error that ended the build, as the state keeps it."""
    if failure is None:
        return None
    if isinstance(failure, InvalidSql):
        message, sqlstate = failure.detail, failure.sqlstate
    else:
        message, sqlstate = failure.text.en, None

    return {"error_type": failure.error_type, "sqlstate": sqlstate, "message": message}


def _warn_of_missing_comparison(context: EtlContext) -> None:
    """Say why nothing of a model's is taken where nothing can be built."""
    if context.roles is not None:
        context.roles.model.warn(with_value(SQL_NOT_TAKEN, NOT_COMPARABLE))


def _refused(error: StatementRejected, state: EtlState) -> EtlUpdate:
    """Return to the SQL that was there before the user changed it, and to its evidence."""
    refusal = with_value(REFUSED, error.text).to(state["lang"])
    return {
        "code": state["code_before"],
        "tests": state["tests"],
        "refusal": refusal,
        "warnings": [refusal],
        "execution_path": ["tester_agent"],
    }


async def _proof(
    draft: Draft, bound: BoundIntent, state: EtlState, context: EtlContext
) -> DraftProof:
    """Return the evidence; without a database to build in, the tests that would be run."""
    try:
        await context.scratch.ready()
    except DatabaseUnavailable as exc:
        return _not_built(draft, bound, exc)

    given = state["options"]
    decisions = (await binding_of(state, context)).decisions
    attempt = state["execution_path"].count("tester_agent")
    reference = await rules_draft(state, context)
    is_by_model = has_model_work(state) and not has_user_work(state)
    is_compared = is_by_model and not draft.target.is_further  # what it reads is the rules' own
    worlds = await cases_of(state, context)
    options = ProofOptions(
        name=f"{context.question.run_id}/{context.memory.leg}/{attempt}",
        mutants=given.get("mutants", True),
        preview_rows=context.most_rows,
        waits=lambda: context.write(WAITING.to(state["lang"])),
        worlds=worlds,
        reference=reference if is_compared else None,
        decisions=decisions,
    )
    counted = columns_counted(decisions.values(), bound)
    samples = await _samples((draft, reference), bound, counted, given.get("sample_rows"), context)
    try:
        return await prove(draft, bound, context.scratch, samples, options)
    except DatabaseUnavailable as exc:
        return _not_built(draft, bound, exc)
    except QueryTimeout as exc:
        report = TestReport(status="failed")
        return DraftProof(report, make_tests(draft, bound), failure=exc)


async def _samples(
    drafts: Sequence[Draft],
    bound: BoundIntent,
    counted: Mapping[TableKey, Sequence[str]],
    most_rows: int | None,
    context: EtlContext,
) -> Samples:
    """Read the columns that the drafts read, and the counted ones, as the caller may see them."""
    needed: defaultdict[TableKey, dict[str, None]] = defaultdict(dict)
    for draft in drafts:
        for key, names in columns_read(draft, bound).items():
            needed[key].update(dict.fromkeys(names))

    def columns_of(table: Table) -> Sequence[str]:
        read = list(needed[table.key]) or table.primary_key
        return list(dict.fromkeys((*read, *counted.get(table.key, ()))))

    limit = most_rows or context.scratch.options.sample_rows
    return await sample(context.database, bound, limit, columns_of)


def _not_built(draft: Draft, bound: BoundIntent, error: CituError) -> DraftProof:
    reason = with_value(UNPROVEN, error.text)
    return DraftProof(TestReport(status="not_run"), make_tests(draft, bound), warnings=(reason,))
