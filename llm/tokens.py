"""Estimates the tokens of a text, and how many tokens each part of a prompt may take.

It is an estimate because models cut text differently, and their tokenizers are not at hand.
"""

from dataclasses import dataclass, fields

PER_TOKEN = 4  # ASCII characters of one token; any other character counts as a token of its own

_UNKNOWN_CONTEXT = 32_000  # tokens assumed for a model whose name is unknown
# Tokens for instructions, history, question, values and the error of the estimate.
_BESIDE_SCHEMA = 9_000
_LEAST_SCHEMA, _MOST_SCHEMA = 1_000, 32_000  # tokens; more would cost more than it helps
# The most percent of what question and answer leave of the context; in models of 32,000 tokens and
# more, the most tokens decide, which stand in `PromptBudget`.
_PERCENT = {"history": 25, "examples": 8, "lessons": 3, "notes": 6, "values": 4}


@dataclass(frozen=True)
class PromptBudget:
    """The most tokens of each part of one prompt that is not always there, estimated.

    Attributes:
        schema: the description of the database.
        history: earlier turns of the conversation.
        examples, lessons, notes: what has been learnt: proven queries, mistakes, documentation.
        values: stored values that the question names.
    """

    schema: int = 24_000
    history: int = 3_000
    examples: int = 1_500
    lessons: int = 400
    notes: int = 1_000
    values: int = 600

    def halved(self, schema: int) -> "PromptBudget":
        """Return half of every part, for a schema that took this many tokens."""
        halves = {}
        for part in fields(self):
            halves[part.name] = getattr(self, part.name) // 2

        halves["schema"] = schema // 2
        return PromptBudget(**halves)


def prompt_budget(context: int | None, reply_tokens: int, schema: int = 0) -> PromptBudget:
    """Return the budget of a model's prompts.

    Args:
        context: the model's context, in tokens; None: unknown.
        reply_tokens: the longest reply, in tokens.
        schema: tokens for the description of the database; 0: as many as fit.
    """
    size = context or _UNKNOWN_CONTEXT
    room = max(0, size - reply_tokens)
    most = PromptBudget()
    shares = {}
    for part, percent in _PERCENT.items():
        share = room * percent // 100
        shares[part] = min(getattr(most, part), share)

    if not schema:
        schema = schema_budget(context, reply_tokens)

    return PromptBudget(schema, **shares)


def schema_budget(context: int | None, reply_tokens: int) -> int:
    """Return the tokens for the description of the database; arguments as of `prompt_budget`."""
    size = context or _UNKNOWN_CONTEXT
    room = size - reply_tokens - _BESIDE_SCHEMA
    return max(_LEAST_SCHEMA, min(room, _MOST_SCHEMA))


def estimated_tokens(text: str) -> int:
    """Count four ASCII characters or one other character as a token.

    That is close enough for English, SQL and Chinese.
    """
    return -(-weight(text) // PER_TOKEN)


def weight(text: str) -> int:
    """Return the weight in quarters of a token; weights of joined texts add up exactly."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return ascii_count + (len(text) - ascii_count) * PER_TOKEN


def fitting(text: str, quarters: int) -> str:
    """Return the longest beginning of a text that weighs at most so many quarters of a token."""
    most = len(text) * PER_TOKEN
    if most <= quarters:
        return text
    if weight(text) <= quarters:
        return text

    left = quarters
    for index, char in enumerate(text):
        left -= weight(char)
        if left < 0:
            return text[:index]

    return text
