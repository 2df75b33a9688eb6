"""What thinking the graph needs, as one Protocol with two implementations: a model (`llm`) and rules (`rules.skills`).

Nodes call these five methods and nothing else, so that an answer takes the same path whoever thinks.
"""

from typing import Protocol

from common.errors import InvalidSql
from common.inquiry import Emit, Inquiry
from common.values import Classification, Draft, QueryResult, Thought


class Skills(Protocol):
    """One way of thinking. Any method may raise `LlmUnavailable` (models) and be cancelled."""

    name: str
    """What answers are credited to: `offline`, or the model's name."""

    async def classify(self, inquiry: Inquiry) -> Thought[Classification]:
        """Whether the question is about the connected database."""

    async def write_sql(self, inquiry: Inquiry) -> Thought[Draft]:
        """A statement that answers the question, or the reason there is none.

        Raises:
            ForbiddenStatement: the question asks for a write.
        """

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> Thought[Draft]:
        """One attempt at mending `sql` after PostgreSQL said `error`."""

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> Thought[str]:
        """The answer in words, from nothing but `result`. Every number it states is one of the rows' or their count."""

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> Thought[str]:
        """An answer to a question that is not about the data."""
