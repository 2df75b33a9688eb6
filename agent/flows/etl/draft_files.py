"""Writes a draft down as files, and keeps them for the user."""

import asyncio

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_preview import preview_of
from agent.flows.etl.state import EtlState, Json
from common.envelope import to_bytes
from common.errors import StateTooLarge
from etl.archive import Archive, ArchivedFile
from etl.evidence.proof import DraftProof
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.rendering.artefact import make_artefact, zip_bytes
from etl.schemas.requirement import AnalysisResult
from store import StoredArtefact

_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 400


async def keep_files(
    draft: Draft,
    bound: BoundIntent,
    proof: DraftProof,
    analysis: AnalysisResult,
    state: EtlState,
    context: EtlContext,
) -> Json:
    """Keep the files and the target's first rows; return what answers say of the files.

    Raises:
        StatementRejected: a model's SQL is longer than can be proven.
        StateTooLarge: they are more than is kept.
        StoreUnavailable: they can't be kept.
    """
    archive, files = await asyncio.to_thread(_written, draft, bound, proof, analysis, state)
    if len(archive.data) > _MOST_BYTES or len(files) > _MOST_FILES:
        raise StateTooLarge(_MOST_BYTES)

    rows = b""
    preview = await preview_of(draft, bound, proof, state, context)
    if preview is not None:
        context.write(preview)
        rows = to_bytes(preview.shown["query_result"])

    question = context.question
    artefact = StoredArtefact(archive.data, rows)
    await context.artefacts.keep(
        question.owner, question.conversation_id, question.run_id, artefact
    )
    changes = state.get("attempts", {}).get("modified", 0)
    return _described(archive, files, draft, question.run_id, changes)


def _described(
    archive: Archive, files: list[Json], draft: Draft, run_id: str, changes: int
) -> Json:
    """Return `artefact` of the answer; each change that the user asks for makes another one."""
    target = draft.target
    address = f"/api/v0/runs/{run_id}/artefact"
    return {
        "artefact_id": f"{run_id}-{changes + 1}",
        "url": address,
        "files_url": f"{address}/files",
        "bytes": len(archive.data),
        "sha256": archive.sha256,
        "files": files,
        "target": {
            "node": target.name,
            "relation": target.relation,
            "columns": [column.name for column in target.node.columns],
        },
    }


def _written(
    draft: Draft,
    bound: BoundIntent,
    proof: DraftProof,
    analysis: AnalysisResult,
    state: EtlState,
) -> tuple[Archive, list[Json]]:
    """Return the archive, and its files as answers list them.

    The list is made of what was written: reading hundreds of files out of the archive again takes
    longer than making it.
    """
    asked = state.get("clarifications", [])
    artefact = make_artefact(
        draft, bound, analysis, proof.tests, proof.report, state["lang"], asked
    )
    files = [ArchivedFile(file.path, file.data).listed() for file in artefact.files]
    return Archive(zip_bytes(artefact)), files
