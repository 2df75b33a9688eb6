"""Builds the draft from samples, tests it, and keeps what was made as files."""

from collections.abc import Mapping, Sequence
from typing import cast

from agent.flows.etl.context import EtlContext, EtlRuntime
from agent.flows.etl.draft_files import keep_files
from agent.flows.etl.draft_making import binding_of, bound_intent, code_of, draft_of
from agent.flows.etl.etl_texts import REFUSED, UNPROVEN, WAITING
from agent.flows.etl.state import EtlState, EtlUpdate
from common.errors import (
    CituError,
    DatabaseUnavailable,
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
from etl.schemas.evidence import TestReport
from etl.schemas.requirement import AnalysisResult
from etl.scratch.source_sampling import Samples, sample

_STATUS = {"passed": "proven", "failed": "failed", "not_run": "unproven"}


async def tester_agent(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
    """Return the evidence, the files, and what the draft is worth."""
    context = runtime.context
    bound = await bound_intent(state, context)
    try:
        draft = await draft_of(state, context)
    except StatementRejected as exc:
        return await _refused(exc, state, context)
    proof = await _proof(draft, bound, state, context)
    analysis = with_figures(AnalysisResult.model_validate(state["analysis"]), proof)
    warnings = [warning.to(state["lang"]) for warning in proof.warnings]
    if proof.failure is not None:
        warnings.append(proof.failure.message(state["lang"]))
    update: EtlUpdate = {
        "analysis": analysis.model_dump(mode="json"),
        "tests": proof.report.model_dump(mode="json", by_alias=True),
        "status": _STATUS[proof.report.status],
        "warnings": warnings,
        "execution_path": ["tester_agent"],
    }
    try:
        update["artefact"] = await keep_files(draft, bound, proof, analysis, state, context)
    except (StatementRejected, StateTooLarge) as exc:  # more than can be written down
        update["status"] = "failed"
        warnings.append(exc.text.to(state["lang"]))
    return update


async def _refused(error: StatementRejected, state: EtlState, context: EtlContext) -> EtlUpdate:
    """Return the state to what was proven before the user changed the SQL."""
    before = await draft_of(cast(EtlState, {**state, "code": []}), context)
    reason = error.text
    refused = Text(REFUSED.zh.format(reason.zh), REFUSED.en.format(reason.en))
    return {
        "code": code_of(before),
        "tests": state["tests"],
        "warnings": [refused.to(state["lang"])],
        "execution_path": ["tester_agent"],
    }


async def _proof(
    draft: Draft, bound: BoundIntent, state: EtlState, context: EtlContext
) -> DraftProof:
    """Return the evidence; without a database to build in, the tests that would be run."""
    given = state["options"]
    decisions = (await binding_of(state, context)).decisions
    attempt = state.get("attempts", {}).get("modified", 0)
    options = ProofOptions(
        name=f"{context.question.run_id}/{context.memory.leg}/{attempt}",
        mutants=given.get("mutants", True),
        preview_rows=context.most_rows,
        waits=lambda: context.write(WAITING.to(state["lang"])),
        decisions=decisions,
    )
    try:
        await context.scratch.ready()
    except DatabaseUnavailable as exc:
        return _not_built(draft, bound, exc)
    counted = columns_counted(decisions.values(), bound)
    samples = await _samples(draft, bound, counted, given.get("sample_rows"), context)
    try:
        return await prove(draft, bound, context.scratch, samples, options)
    except DatabaseUnavailable as exc:
        return _not_built(draft, bound, exc)
    except QueryTimeout as exc:
        report = TestReport(status="failed")
        return DraftProof(report, make_tests(draft, bound), warnings=(exc.text,))


async def _samples(
    draft: Draft,
    bound: BoundIntent,
    counted: Mapping[TableKey, Sequence[str]],
    most_rows: int | None,
    context: EtlContext,
) -> Samples:
    """Read the columns that the draft reads, and the counted ones, as the caller may see them."""
    needed = columns_read(draft, bound)

    def columns_of(table: Table) -> Sequence[str]:
        read = needed.get(table.key, table.primary_key)
        return list(dict.fromkeys((*read, *counted.get(table.key, ()))))

    limit = most_rows or context.scratch.options.sample_rows
    return await sample(context.database, bound, limit, columns_of)


def _not_built(draft: Draft, bound: BoundIntent, error: CituError) -> DraftProof:
    reason = Text(UNPROVEN.zh.format(error.text.zh), UNPROVEN.en.format(error.text.en))
    return DraftProof(TestReport(status="not_run"), make_tests(draft, bound), warnings=(reason,))
