"""How many tokens a text costs a model, estimated, and how many a description of the database may cost.

Models cut text differently, and none of them is asked beforehand.
"""

PER_TOKEN = 4  # ASCII characters of one token; any other character counts as a token of its own

_UNKNOWN_CONTEXT = 32_000  # tokens that a model is taken to have whose name says nothing
_BESIDE_SCHEMA = 9_000  # tokens for instructions, history, question, values and what the estimate is wrong by
_LEAST_SCHEMA, _MOST_SCHEMA = 1_000, 32_000  # tokens; more would cost more than it helps


def schema_budget(context: int | None, reply_tokens: int) -> int:
    """Tokens for the description of the database, for a model with `context` tokens (None: unknown) that may reply
    with `reply_tokens`."""
    room = (context or _UNKNOWN_CONTEXT) - reply_tokens - _BESIDE_SCHEMA
    return max(_LEAST_SCHEMA, min(room, _MOST_SCHEMA))


def estimated_tokens(text: str) -> int:
    """Four ASCII characters to a token, one of any other kind: near enough for English, SQL and Chinese alike."""
    return -(-weight(text) // PER_TOKEN)


def weight(text: str) -> int:
    """Quarters of a token: exact under concatenation, as tokens are not."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return ascii_count + (len(text) - ascii_count) * PER_TOKEN
