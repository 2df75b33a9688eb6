"""Bounds what is read of one reply, whatever an endpoint sends."""

from dataclasses import dataclass

from llm.tokens import PER_TOKEN, fitting

MAX_REPLY_CHARS = 100_000
"""Longest text, or reasoning, of one reply; more is cut off as at the token limit."""
MAX_BODY_BYTES = 8_000_000
"""Most bytes read for one reply, framing and reasoning included."""
# Tokens are estimated: of a reply that keeps to its limit, no estimate is this many times as large.
_ERROR = 2
_BYTES_PER_QUARTER = 6  # an ASCII character in JSON, written as an escape
_BESIDE_TEXT_BYTES = 1_000_000  # reasoning, log probabilities, whatever gateways add


@dataclass(frozen=True)
class ReplyLimit:
    """The most of one reply.

    Attributes:
        quarters: how long its text or its tool calls are, in quarters of a token.
        body_bytes: how long a reply is that arrives as one body.
    """

    quarters: int
    body_bytes: int

    @classmethod
    def of_tokens(cls, tokens: int) -> "ReplyLimit":
        """Return the limit of a reply that may have so many tokens."""
        quarters = tokens * PER_TOKEN * _ERROR
        size = _BESIDE_TEXT_BYTES + quarters * _BYTES_PER_QUARTER
        return cls(quarters, min(size, MAX_BODY_BYTES))

    def cut(self, text: str) -> str:
        """Return the beginning of a text that the limit allows."""
        return fitting(text[:MAX_REPLY_CHARS], self.quarters)


UNLIMITED = ReplyLimit(MAX_REPLY_CHARS * PER_TOKEN, MAX_BODY_BYTES)
"""For replies whose tokens nobody has limited."""
