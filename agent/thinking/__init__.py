"""The thinking that flows need, as one Protocol with two implementations: a model (`llm`) and rules
(`rules.skills`).

Nodes call only these five methods, so that an answer takes the same path with a model and with
rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from common.errors import InvalidSql
from common.inquiry import Emit, Inquiry
from common.text import Lang
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


@dataclass(frozen=True)
class DatabaseOption:
    """A database that a question may be about.

    Attributes:
        about: what its operator calls it and says of it.
        inquiry: the question over its catalogue.
    """

    name: str
    about: str
    inquiry: Inquiry


class DatabasePicking(Protocol):
    """A way to tell which of several databases is meant, where words don't decide."""

    async def pick(self, options: Sequence[DatabaseOption], lang: Lang) -> SkillResult[str | None]:
        """Return the name of the one that is meant; None where that is in doubt.

        Raises:
            LlmUnavailable: the model gave no reply.
        """
