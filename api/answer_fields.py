"""The fields of an answer that clients of other protocols get."""

from collections.abc import Mapping
from typing import Any

# What tells how an answer came about. Everything else is the answer, whichever agent gave it.
_OF_THE_WAY = frozenset(
    {
        "type",
        "agent",
        "classification_info",
        "execution_path",
        "routing_mode_source",
        "routing_mode_used",
        "sql_repair_applied",
        "timestamp",
        "timings_ms",
        "usage",
    }
)


def answer_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer in `data` of the event `completed`, without fields that are null."""
    return {
        name: value for name, value in data.items() if value is not None and name not in _OF_THE_WAY
    }
