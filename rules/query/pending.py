"""A question for which the user was asked back: what it leaves open, and what the user answered."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.meanings import TableKey
from rules.query.query import Figure

Choice = tuple[TableKey, str | None]
"""A table (column None) or a column of which one is meant."""


@dataclass(frozen=True)
class Missing:
    """The one thing that a question leaves open.

    Attributes:
        kind: `figure`: by which figure things are ranked; `choice`: which of the `choices` is
            meant; `year`: the year of a month or quarter, which is `word`.
        choices: for `choice`, the tables and columns that may be meant; for `figure`, the tables
            whose figures are likely meant.
        figures: for `figure`, the names of those that may be meant, in Chinese and English, where
            it is known which.
    """

    kind: Literal["figure", "choice", "year"]
    choices: tuple[Choice, ...] = ()
    word: str = ""
    figures: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Settled:
    """The user's answers to questions back.

    Attributes:
        figure: by which things are ranked.
        chosen: the tables and columns that are meant where a word may mean several.
        year: as it is spelled in the question's language; empty when there is none.
    """

    figure: Figure | None = None
    chosen: tuple[Choice, ...] = ()
    year: str = ""

    def among(self, choices: Iterable[Choice]) -> Choice | None:
        """Return the first of the choices that the user took; None where the user took none."""
        for choice in choices:
            if choice in self.chosen:
                return choice

        return None


NOTHING_SETTLED = Settled()


@dataclass(frozen=True)
class Pending:
    """A question that waits for the user to say what it leaves open.

    Attributes:
        settled: the answers to earlier questions back.
        turns: the number of turns of the conversation that it has taken, its own included.
    """

    question: str
    missing: Missing
    settled: Settled = NOTHING_SETTLED
    turns: int = 1
