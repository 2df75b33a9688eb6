"""A stretch of a question, everything it may mean, and what it names."""

from dataclasses import dataclass

from rules.linking.dates import DateSpan
from rules.schema.links import Link
from rules.words.numerals import Numeral
from rules.words.speech import Speech
from rules.words.vocabulary import Intent


@dataclass(frozen=True)
class Mark:
    """A stretch of the question and everything it may mean; the planner chooses.

    Attributes:
        start, end: positions in the sequence of atoms.
        text: as written.
        literal: the inside of a quotation.
        is_unknown: whether nothing of the database and no intent explains it.
        speech: of an unknown word, what kind of word it is there.
        is_skippable: of an unknown word, whether it may be passed over; see `rules.linking.skipping`.
        glued: whether no blank stands before it.
    """

    start: int
    end: int
    text: str
    intent: Intent | None = None
    links: tuple[Link, ...] = ()
    number: Numeral | None = None
    date: DateSpan | None = None
    literal: str | None = None
    is_unknown: bool = False
    speech: Speech | None = None
    is_skippable: bool = False
    glued: bool = False

    def means(self, *kinds: str) -> bool:
        """Whether its intent is of one of these kinds."""
        return self.intent is not None and self.intent.kind in kinds

    @property
    def arg(self) -> str:
        """The argument of its intent, empty when there is none."""
        return self.intent.arg if self.intent else ""

    @property
    def quality(self) -> float:
        """Of its best link, 0 without one."""
        return self.links[0].quality if self.links else 0.0


@dataclass(frozen=True)
class Noun:
    """What one mark names; each sense may be missing.

    Attributes:
        columns: candidates with their scores, best first.
        values: stored values it may be, with their scores, best first.
    """

    table: Link | None = None
    columns: tuple[tuple[float, Link], ...] = ()
    values: tuple[tuple[float, Link], ...] = ()

    @property
    def column(self) -> Link | None:
        """The best column."""
        return self.columns[0][1] if self.columns else None

    @property
    def value(self) -> Link | None:
        """The best value."""
        return self.values[0][1] if self.values else None

    @property
    def is_value(self) -> bool:
        """Whether it is a stored value rather than a table or column."""
        named = (one.quality for one in (self.table, self.column) if one is not None)
        return self.value is not None and self.value.quality > max(named, default=0.0)

    @property
    def is_table(self) -> bool:
        """Whether it is a table rather than a column or value."""
        column = self.column.quality if self.column is not None else 0.0
        return self.table is not None and not self.is_value and self.table.quality >= column - 0.1
