"""How much of a question the rules read, and how long they may think about it."""

from dataclasses import replace

from common.inquiry import Inquiry

MOST_CHARS = 1_000
"""Characters of a question. Longer ones are cut to judge their kind, and never answered."""
MOST_ATOMS = 240
"""Words, characters and signs of a question that are covered with marks."""
MOST_MARKS = 64
"""Marks of a question that are linked and read; a question of more is refused."""
STEP_S = 0.05
"""Processor time of one step over a question: judging its kind, writing its SQL, …"""
OFFERS_S = 0.3
"""The same for all questions together that are tried to be offered in place of a refused one."""


def with_bounded_questions(inquiry: Inquiry) -> Inquiry:
    """Return the inquiry with questions of bounded length; one that was too long still is."""
    question = inquiry.question[: MOST_CHARS + 1]
    history = inquiry.history
    if any(len(turn.question) > MOST_CHARS for turn in history):
        history = tuple(replace(turn, question=turn.question[: MOST_CHARS + 1]) for turn in history)
    if question == inquiry.question and history is inquiry.history:
        return inquiry

    return replace(inquiry, question=question, history=history)


def is_too_long(question: str) -> bool:
    """Tell whether a question has more characters than the rules read."""
    return len(question) > MOST_CHARS
