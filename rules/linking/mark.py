"""A stretch of a question and everything it may mean."""

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
