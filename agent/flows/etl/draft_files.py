"""Writes a draft down as files, and keeps them for the user."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from agent.answers.shown_result import shown_result
from agent.flows.etl.context import EtlContext
from agent.flows.etl.state import EtlState, Json
from agent.progress import StepResult
from common.envelope import to_bytes
from common.errors import StateTooLarge
from common.values import QueryResult
from etl.archive import Archive, ArchivedFile
from etl.evidence.proof import DraftProof
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.personal_columns import personal_columns
from etl.rendering.artefact import make_artefact, zip_bytes
from etl.schemas.requirement import AnalysisResult
from postgres.identifiers import quoted
from store import KeptArtefact

_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 400
_PREVIEW_ID = "preview"  # in place of a call's, in the event that shows it
_HIDDEN = "•••"
# What results call the types that a catalogue spells out.
_SHORT_TYPES = {
    "bigint": "int8",
    "integer": "int4",
    "smallint": "int2",
    "double precision": "float8",
    "real": "float4",
    "boolean": "bool",
    "character varying": "varchar",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
}


async def keep_files(
    draft: Draft,
    bound: BoundIntent,
    proof: DraftProof,
    analysis: AnalysisResult,
    state: EtlState,
    context: EtlContext,
) -> Json:
    """Return what answers say of the files.

    Raises:
        StatementRejected: a model's SQL is longer than can be proven.
        StateTooLarge: they are more than is kept.
        StoreUnavailable: they can't be kept.
    """
    archive, files = await asyncio.to_thread(_written, draft, bound, proof, analysis, state)
    if len(archive.data) > _MOST_BYTES or len(files) > _MOST_FILES:
        raise StateTooLarge(_MOST_BYTES)

    question = context.question
    preview = await _preview(draft, bound, proof, state, context)
    if preview is not None:
        sql = f"SELECT * FROM {quoted(draft.target.relation)}"
        context.write(StepResult(_PREVIEW_ID, sql, {"query_result": preview}))

    kept = KeptArtefact(archive.data, to_bytes(preview) if preview is not None else b"")
    await context.artefacts.keep(question.owner, question.conversation_id, question.run_id, kept)
    address = f"/api/v0/runs/{question.run_id}/artefact"
    attempt = state.get("attempts", {}).get("modified", 0)
    target = draft.target
    return {
        "artefact_id": f"{question.run_id}-{attempt + 1}",
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


async def _preview(
    draft: Draft, bound: BoundIntent, proof: DraftProof, state: EtlState, context: EtlContext
) -> dict[str, Any] | None:
    """Return the target's first rows, with values of persons hidden."""
    if proof.preview is None:
        return None

    catalog = await context.database.catalog()
    personal = personal_columns(bound)
    if draft.target.is_further and personal:
        personal = frozenset(proof.preview.columns)  # any of them may hold what is personal

    found = _without_persons(proof.preview, personal)
    found = replace(found, column_types=tuple(map(_short, found.column_types)))
    sql = f"SELECT * FROM {quoted(draft.target.relation)}"
    shown: dict[str, Any] = shown_result(sql, found, catalog, state["lang"])
    result: dict[str, Any] = shown["query_result"]
    return result


def _without_persons(result: QueryResult, personal: Collection[str]) -> QueryResult:
    places = [place for place, name in enumerate(result.columns) if name in personal]
    if not places:
        return result

    rows = [list(row) for row in result.rows]
    for row in rows:
        for place in places:
            if row[place] is not None:
                row[place] = _HIDDEN

    return replace(result, rows=tuple(rows))


def _short(spelled: str) -> str:
    """Return a type's name as results have it, without its length."""
    name = spelled.partition("(")[0].strip()
    return _SHORT_TYPES.get(name, name)
