"""Telling questions about an answer ("why is the first one so high?") from questions about the data."""

import re
from typing import Literal, get_args

from rules.words import WORDS

Doubt = Literal["why", "reliability", "meaning"]
"""What a question about an answer asks of it, the plainest first."""

_DOUBTS: tuple[tuple[Doubt, re.Pattern[str]], ...] = tuple(
    (doubt, WORDS.found(f"doubts.{doubt}")) for doubt in get_args(Doubt)
)
_POINTS = WORDS.found("doubts.pointers")


def kind_of_doubt(question: str) -> Doubt | None:
    """What a question about an answer asks of it; None when it asks something else."""
    for doubt, pattern in _DOUBTS:
        match = pattern.search(question)
        if match:
            rest = re.sub(r"[\W_]+", "", question[: match.start()] + question[match.end() :])
            return doubt if _POINTS.search(question) or len(rest) <= 2 else None
    return None
