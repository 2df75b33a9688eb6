"""Estimates the tokens of a text, and how many tokens a description of the database may take.

It is an estimate because models cut text differently, and their tokenizers are not at hand.
"""

PER_TOKEN = 4  # ASCII characters of one token; any other character counts as a token of its own

_UNKNOWN_CONTEXT = 32_000  # tokens assumed for a model whose name is unknown
_BESIDE_SCHEMA = 9_000  # tokens for instructions, history, question, values and the error of the estimate
_LEAST_SCHEMA, _MOST_SCHEMA = 1_000, 32_000  # tokens; more would cost more than it helps


def schema_budget(context: int | None, reply_tokens: int) -> int:
    """Tokens for the description of the database, given a model with `context` tokens (None: unknown) that may reply
    with `reply_tokens`."""
    room = (context or _UNKNOWN_CONTEXT) - reply_tokens - _BESIDE_SCHEMA
    return max(_LEAST_SCHEMA, min(room, _MOST_SCHEMA))


def estimated_tokens(text: str) -> int:
    """Counts four ASCII characters or one other character as a token: close enough for English, SQL and Chinese."""
    return -(-weight(text) // PER_TOKEN)


def weight(text: str) -> int:
    """Weight in quarters of a token; unlike tokens, weights of joined texts add up exactly."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return ascii_count + (len(text) - ascii_count) * PER_TOKEN
