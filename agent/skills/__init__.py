"""What thinking the graph needs, as one Protocol with two implementations: a model (`llm`) and rules (`offline`).

Nodes call these five methods and nothing else, so that an answer takes the same path whoever thinks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from common.errors import InvalidSql
from common.text import Lang
from common.values import Catalog, Classification, Draft, QueryResult, Thought, Turn

Emit = Callable[[str], None]
"""Takes pieces of text as they are written; pieces concatenate to the full text. None: nobody is watching."""


@dataclass(frozen=True)
class Inquiry:
    """One question and what is known about it.

    Attributes:
        lang: language of every sentence the answer will hold.
        table: the table the caller says the question is about.
        context_type: kind of the previous turn (`DATABASE` or `CHAT`), as the caller knows it.
        history: earlier turns of the same conversation, oldest first; only the latest few.
    """

    question: str
    lang: Lang
    catalog: Catalog
    table: str | None = None
    context_type: str | None = None
    history: tuple[Turn, ...] = ()

    @property
    def previous_type(self) -> str | None:
        """Kind of the previous turn: what the caller says, else what the conversation shows."""
        return self.context_type or (self.history[-1].question_type if self.history else None)


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
