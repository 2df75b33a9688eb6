"""Makes the turn that a run adds to its conversation, of an answer or a failure."""

from collections.abc import Mapping
from typing import Any

from agent.question import Question
from common.envelope import to_bytes
from common.values import Turn

_PREVIEW_ROWS, _PREVIEW_COLUMNS = 5, 30
_PREVIEW_CHARS = 200  # of one value
_ANSWER_CHARS = 16_000
_MOST_KEPT_ROWS = 60  # of a result that is kept whole
_MOST_KEPT_CHARS = 8_000
_DESCRIBED = (
    *("column_types", "labels", "units", "periods", "formats", "value_labels"),
    *("totals", "conditions"),
)
_OFFERS = ("choices", "rewrites", "follow_ups")
_FAILURE = ("error_type", "error", "retryable", "hint")


def turn_of(
    question: Question, data: Mapping[str, Any], understood: Mapping[str, Any] | None
) -> Turn:
    """Return the turn for the answer `data`, with rows and long texts shortened.

    No endpoint shows `understood`.
    """
    result = data.get("query_result")
    return Turn(
        run_id=question.run_id,
        question=question.question,
        question_type=data["response_type"],
        routing_mode=data["routing_mode_used"],
        answer=data["response"][:_ANSWER_CHARS],
        asked_at=question.asked_at,
        sql=data.get("sql"),
        row_count=result["row_count"] if result else None,
        columns=tuple(result["columns"][:_PREVIEW_COLUMNS]) if result else (),
        rows=_preview(result["rows"]) if result else (),
        described=_column_descriptions(result) if result else {},
        all_rows=_small(result) if result else (),
        chart=data.get("chart"),
        understood=understood,
        offers={key: list(data[key]) for key in _OFFERS if data.get(key)},
    )


def failed_turn(
    run_id: str, question: str, asked_at: str, message: str, data: Mapping[str, Any]
) -> Turn:
    """Return the turn of a question that ended in an error.

    Args:
        message: the error in a few words, as in the envelope.
        data: that of the terminal event; see `common.envelope.error_data`.
    """
    failure = {"message": message, **{key: data[key] for key in _FAILURE if key in data}}
    return Turn(
        run_id=run_id,
        question=question,
        question_type=None,
        routing_mode=None,
        answer=data["error"][:_ANSWER_CHARS],
        asked_at=asked_at,
        sql=data.get("state_summary", {}).get("sql"),
        failure=failure,
    )


def _column_descriptions(result: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {key: list(result[key][:_PREVIEW_COLUMNS]) for key in _DESCRIBED if key in result}


def _small(result: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """Return all rows of a result that is complete and small; else none."""
    rows = result["rows"]
    is_narrow = len(result["columns"]) <= _PREVIEW_COLUMNS
    if result["is_limited"] or len(rows) > _MOST_KEPT_ROWS or not is_narrow:
        return ()
    if len(to_bytes(rows)) > _MOST_KEPT_CHARS:
        return ()

    return tuple(tuple(map(_shortened, row)) for row in rows)


def _preview(rows: list[list[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(map(_shortened, row[:_PREVIEW_COLUMNS])) for row in rows[:_PREVIEW_ROWS])


def _shortened(value: Any) -> Any:
    """Return a row's value as a turn keeps it: long ones are cut and end in `…`."""
    if isinstance(value, list | dict):
        value = to_bytes(value).decode()
    if isinstance(value, str) and len(value) > _PREVIEW_CHARS:
        return value[:_PREVIEW_CHARS] + "…"

    return value
