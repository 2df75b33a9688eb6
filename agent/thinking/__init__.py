"""The thinking that flows need, as one Protocol with two implementations: a model (`llm`) and rules
(`rules.skills`).

Nodes call only these five methods, so that an answer takes the same path with a model and with
rules.
"""

from typing import Protocol

from common.errors import InvalidSql
from common.inquiry import Emit, Inquiry
from common.values import Classification, Draft, QueryResult, SkillResult


class Skills(Protocol):
    """One way of thinking. Any method may raise `LlmUnavailable` (models) and be cancelled."""

    name: str
    """Who answers: `offline`, or the model's name."""

    async def classify(self, inquiry: Inquiry) -> SkillResult[Classification]:
        """Tell whether the question is about the connected database."""

    async def write_sql(self, inquiry: Inquiry) -> SkillResult[Draft]:
        """Return a statement that answers the question, or the reason there is none.

        Raises:
            ForbiddenStatement: the question asks for a write.
        """

    async def repair_sql(self, inquiry: Inquiry, sql: str, error: InvalidSql) -> SkillResult[Draft]:
        """Try once to mend `sql` after PostgreSQL refused it with `error`."""

    async def summarize(
        self, inquiry: Inquiry, sql: str, result: QueryResult, emit: Emit | None = None
    ) -> SkillResult[str]:
        """Put `result` into words, from nothing else. It states no number except those of the rows
        and their count.
        """

    async def chat(self, inquiry: Inquiry, emit: Emit | None = None) -> SkillResult[str]:
        """Return an answer to a question that is not about the data."""
