"""The answer to what a run has asked, as a client that can only send texts gives it."""

import json
from collections.abc import Mapping
from typing import Any

from common.envelope import to_json


def choice_text(choice: Any) -> str:
    """Return one of the answers that a run has offered, as messages and labels say it."""
    if isinstance(choice, str):
        return choice.strip()

    return to_json(choice)


def answer_in(asked: Mapping[str, Any], text: str) -> Any:
    """Return the answer in a text: a choice, the text itself, or JSON where that was asked for.

    Args:
        asked: `data` of the event `question`.
    """
    choices = asked.get("choices") or ()
    for choice in choices:
        if choice_text(choice) == text.strip():
            return choice

    if choices or not asked.get("schema"):
        return text

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
