"""A stretch of a question, everything it may mean, and what it names."""

from collections.abc import Sequence
from dataclasses import dataclass

from rules.linking.dates import DateSpan
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.numerals import Numeral
from rules.words.speech import Speech
from rules.words.vocabulary import Intent

_BEFORE_YEARS = frozenset(WORDS.english.phrases("dates.before_years"))
_BETWEEN_ENDS = WORDS.english.text("dates.between_ends")


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


def joins_ends(mark: Mark) -> bool:
    """Whether the word stands between the two ends of a range."""
    return mark.means("to") or mark.text.lower() == _BETWEEN_ENDS


def is_said_as_year(marks: Sequence[Mark], at: int) -> bool:
    """Whether the number is a year by its preposition, or because it and another make a span of years."""
    if not _may_be_year(marks[at]):
        return False
    after_preposition = at > 0 and marks[at - 1].text.lower() in _BEFORE_YEARS
    return after_preposition or _is_span(marks, at) or _is_span(marks, at - 2)


def _is_span(marks: Sequence[Mark], first: int) -> bool:
    """Whether two years and a word between them begin here, and are not counted in a unit."""
    if first < 0 or first + 2 >= len(marks):
        return False
    begin, joint, end = marks[first : first + 3]
    counted = first + 3 < len(marks) and marks[first + 3].means("unit")
    return _may_be_year(begin) and joins_ends(joint) and _may_be_year(end) and not counted


def _may_be_year(mark: Mark) -> bool:
    return mark.date is not None and mark.date.is_bare
