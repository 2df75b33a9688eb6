"""Writes the entries of a result for a model: a line of JSON for each, within a budget."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from knowledge.language.safe_text import block
from llm.tokens import estimated_tokens

_BUDGET = 3_900  # tokens of all entries; with what stands around them 4,000
_MOST_CHARS = 8_000  # of one text in an entry


def entry_lines(entries: Iterable[Mapping[str, Any]], nothing: str, *, about: str = "") -> str:
    """Return the entries that fit, the first ones first, and how many are left out.

    Args:
        nothing: is said when there is none.
        about: stands before them.
    """
    lines = [json.dumps(safe_values(entry), ensure_ascii=False) for entry in entries]
    if not lines:
        return nothing

    shown = [about] if about else []
    room = _BUDGET
    for place, line in enumerate(lines):
        room -= estimated_tokens(f"{line}\n")
        if room < 0:
            shown.append(f"({len(lines) - place} more are left out: ask for less at once.)")
            break

        shown.append(line)

    return "\n".join(shown)


def safe_values(value: Any) -> Any:
    """Return JSON whose texts can't pass for anything but data, none of them very long."""
    if isinstance(value, str):
        return block(value, _MOST_CHARS)
    if isinstance(value, Mapping):
        return {safe_values(key): safe_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [safe_values(one) for one in value]

    return value
