"""The first rows of a draft's target, as answers show them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from agent.answers.shown_result import shown_result
from agent.flows.etl.context import EtlContext
from agent.flows.etl.state import EtlState
from agent.progress import StepResult
from common.values import QueryResult
from etl.evidence.proof import DraftProof
from etl.meaning.bound import BoundIntent
from etl.planning.draft_model import Draft
from etl.planning.personal_columns import personal_columns
from postgres.identifiers import quoted

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


async def preview_of(
    draft: Draft, bound: BoundIntent, proof: DraftProof, state: EtlState, context: EtlContext
) -> StepResult | None:
    """Return the rows with values of persons hidden; None: nothing was built."""
    if proof.preview is None:
        return None

    hidden = _columns_hidden(draft, bound, proof.preview)
    rows = _without_values(proof.preview, hidden)
    rows = replace(rows, column_types=tuple(map(_short, rows.column_types)))
    sql = f"SELECT * FROM {quoted(draft.target.relation)}"
    catalog = await context.database.catalog()
    shown = shown_result(sql, rows, catalog, state["lang"])
    return StepResult(_PREVIEW_ID, sql, {"query_result": shown["query_result"]})


def _columns_hidden(draft: Draft, bound: BoundIntent, rows: QueryResult) -> Collection[str]:
    """Return the columns with values of persons; a model's further step may put them anywhere."""
    personal = personal_columns(bound)
    if personal and draft.target.is_further:
        return rows.columns

    return personal


def _without_values(result: QueryResult, hidden: Collection[str]) -> QueryResult:
    is_hidden = [name in hidden for name in result.columns]
    if not any(is_hidden):
        return result

    def shown(row: Sequence[Any]) -> list[Any]:
        return [
            _HIDDEN if hides and value is not None else value
            for value, hides in zip(row, is_hidden, strict=True)
        ]

    return replace(result, rows=tuple(map(shown, result.rows)))


def _short(spelled: str) -> str:
    """Return a type's name as results have it, without its length."""
    name = spelled.partition("(")[0].strip()
    return _SHORT_TYPES.get(name, name)
