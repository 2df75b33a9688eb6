"""A stretch of a question, everything it may mean, and what it names."""

from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.language.atoms import atoms_of
from rules.linking.dates import DateSpan
from rules.schema.links import Link
from rules.words import WORDS
from rules.words.numerals import Numeral
from rules.words.speech import Speech
from rules.words.vocabulary import Intent

_BEFORE_YEARS = frozenset(WORDS.english.phrases("dates.before_years"))
_BETWEEN_ENDS = WORDS.english.text("dates.between_ends")
_TABLE_FIRST = 0.1  # by which a table's name may be worse than the column's


@dataclass(frozen=True)
class Mark:
    """A stretch of the question and everything it may mean; the planner chooses.

    Attributes:
        start, end: positions in the sequence of atoms.
        text: as written.
        literal: the inside of a quotation.
        is_unknown: whether nothing of the database and no intent explains it.
        speech: the part of speech of an unknown word, where it stands.
        is_skippable: whether an unknown word may be passed over; see `rules.linking.skipping`.
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
        """Tell whether its intent is of one of these kinds."""
        if self.intent is None:
            return False

        return self.intent.kind in kinds

    @property
    def words(self) -> list[str]:
        """Return its English words and Chinese characters, as they are compared."""
        return [atom.key for atom in atoms_of(self.text)]

    @property
    def arg(self) -> str:
        """Return the argument of its intent, empty when there is none."""
        if self.intent is None:
            return ""

        return self.intent.arg

    @property
    def quality(self) -> float:
        """Return the quality of its best link, 0 without one."""
        return self.links[0].quality if self.links else 0.0


@dataclass(frozen=True)
class Noun:
    """The senses in which one mark names something; each may be missing.

    Attributes:
        columns: candidates with their scores, best first.
        values: stored values it may be, with their scores, best first.
    """

    table: Link | None = None
    columns: tuple[tuple[float, Link], ...] = ()
    values: tuple[tuple[float, Link], ...] = ()

    @property
    def column(self) -> Link | None:
        """Return the best of its columns."""
        return _best(self.columns)

    @property
    def value(self) -> Link | None:
        """Return the best of its values."""
        return _best(self.values)

    @property
    def is_value(self) -> bool:
        """Tell whether it is a stored value rather than a table or column."""
        value = self.value
        if value is None:
            return False

        of_table = _quality_of(self.table)
        of_column = _quality_of(self.column)
        return value.quality > max(of_table, of_column)

    @property
    def is_table(self) -> bool:
        """Tell whether it is a table rather than a column or value."""
        if self.table is None or self.is_value:
            return False

        return self.table.quality >= _quality_of(self.column) - _TABLE_FIRST


def _best(candidates: tuple[tuple[float, Link], ...]) -> Link | None:
    if not candidates:
        return None

    _score, link = candidates[0]
    return link


def _quality_of(link: Link | None) -> float:
    if link is None:
        return 0.0

    return link.quality


def joins_ends(mark: Mark) -> bool:
    """Tell whether the word stands between the two ends of a range."""
    return mark.means("to") or mark.text.lower() == _BETWEEN_ENDS


def is_said_as_year(marks: Sequence[Mark], at: int) -> bool:
    """Tell whether a number is a year, by a preposition or as an end of a span of years."""
    if not _may_be_year(marks[at]):
        return False
    if at > 0 and marks[at - 1].text.lower() in _BEFORE_YEARS:
        return True

    begins_span = _is_span(marks, at)
    ends_span = _is_span(marks, at - 2)
    return begins_span or ends_span


def _is_span(marks: Sequence[Mark], first: int) -> bool:
    """Tell whether two years with a word between them begin here, not counted in a unit."""
    if first < 0 or first + 2 >= len(marks):
        return False

    begin, joint, end = marks[first : first + 3]
    after = marks[first + 3 : first + 4]
    if after and after[0].means("unit"):
        return False
    if not joins_ends(joint):
        return False

    return _may_be_year(begin) and _may_be_year(end)


def _may_be_year(mark: Mark) -> bool:
    if mark.date is None:
        return False

    return mark.date.is_bare
