"""A question that was asked back: what it does not say, and what the user has said since."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.meanings import TableKey
from rules.query.query import Figure

Choice = tuple[TableKey, str | None]
"""A table (column None) or a column of which one is meant."""


@dataclass(frozen=True)
class Missing:
    """What a question does not say.

    Attributes:
        kind: by which figure, which of the `choices` is meant, or the year of a month or quarter (`word`).
        choices: of `choice`, what may be meant; of `figure`, the tables whose figures are likely meant.
    """

    kind: Literal["figure", "choice", "year"]
    choices: tuple[Choice, ...] = ()
    word: str = ""


@dataclass(frozen=True)
class Settled:
    """What the user has said when asked back.

    Attributes:
        chosen: what is meant where a word may mean several things.
        year: as it is spelled in the question's language; empty when there is none.
    """

    figure: Figure | None = None
    chosen: tuple[Choice, ...] = ()
    year: str = ""

    def among(self, choices: Iterable[Choice]) -> Choice | None:
        """The one of the choices that was taken."""
        return next((choice for choice in choices if choice in self.chosen), None)


NOTHING_SETTLED = Settled()


@dataclass(frozen=True)
class Pending:
    """A question that waits for what it is missing.

    Attributes:
        settled: what was said to earlier questions back.
        turns: of the conversation that it has taken so far, itself included.
    """

    question: str
    missing: Missing
    settled: Settled = NOTHING_SETTLED
    turns: int = 1
