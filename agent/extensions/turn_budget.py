"""Bounds how far a question looks back."""

from agent.extensions.points import Provided
from agent.question import Question
from common.values import Turn
from llm.tokens import estimated_tokens


class TurnBudget:
    """`ConversationFilter`: the latest turns, as many as both bounds allow.

    Args:
        turns: most turns.
        tokens: most tokens of their questions, SQL and answers together, estimated; 0: no such
            bound.
    """

    def __init__(self, turns: int, tokens: int) -> None:
        self._turns = turns
        self._tokens = tokens

    def __call__(
        self,
        question: Question,  # noqa: ARG002 - the point's
        turns: tuple[Turn, ...],
    ) -> tuple[Turn, ...]:
        latest = turns[-self._turns :]
        if not self._tokens:
            return latest

        tokens = 0
        for number, turn in enumerate(reversed(latest)):
            tokens += _size(turn)
            if tokens > self._tokens:
                return latest[len(latest) - number :]

        return latest


def _size(turn: Turn) -> int:
    return estimated_tokens("\n".join((turn.question, turn.sql or "", turn.answer)))


def turn_budget(provided: Provided) -> TurnBudget:
    """Return the extension, with the bounds of `HISTORY_TURNS` and `HISTORY_TOKENS`."""
    return TurnBudget(provided.settings.history_turns, provided.settings.history_tokens)
