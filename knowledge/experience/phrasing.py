"""Split a question into words, which another one has to share, and literals, which may differ.

Case, width, traditional characters, spaces and punctuation make no difference. Everything else
does: a negation, a unit, a direction, a sign before a number. What is glued to letters is no
number: Q1, G15, 5k.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from knowledge.language.atoms import Atom, atoms_of, is_one_word, normalise
from knowledge.words import WORDS

PieceKind = Literal["word", "integer", "decimal", "year", "month", "day", "quote"]

_PERIODS = tuple(
    re.compile(rf"(?<![\w./-]){form}(?![\d/]|[-.]\d)", re.ASCII)
    for form in (
        *WORDS.chinese.phrases("phrasing.periods"),
        *WORDS.english.phrases("phrasing.periods"),
    )
)
# punctuation that says nothing
_EMPTY = frozenset(",;:?!.\u2026\u3001\u3002\uff0c\uff1b\uff1a\uff1f\uff01")
_SENTENCE = frozenset("?!.:")  # says nothing only where a word ends: 3:1, a.b and != mean something
_EARLIEST, _LATEST = 1900, 2099  # numbers between are years
_ACRONYM = 4  # letters; a short word in capitals is not the same word in small letters (US, us)
_MOST_DIGITS = 15


@dataclass(frozen=True)
class Piece:
    """One piece of a question.

    Attributes:
        text: what is compared: of a word, its lower-case form; of a number, its digits; of a
            period, its ISO form (2024, 2024-03, 2024-03-09); of a quotation, what it holds.
        start, end: its place in the normalised question.
    """

    kind: PieceKind
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Phrasing:
    """A question in pieces.

    Attributes:
        said: the normalised question.
    """

    said: str
    pieces: tuple[Piece, ...]

    def between(self, first: int, last: int) -> str:
        """Return the text of some pieces as it is written; of one quotation, its content.

        Args:
            last: the piece after the last one.
        """
        pieces = self.pieces[first:last]
        if len(pieces) == 1 and pieces[0].kind == "quote":
            return pieces[0].text

        return self.said[pieces[0].start : pieces[-1].end]


def phrasing_of(question: str) -> Phrasing:
    """Split a question into its pieces, in order."""
    text = normalise(question)
    pieces: list[Piece] = []
    begin = 0
    for period in _periods(text):
        pieces += _plain(text, begin, period.start)
        pieces.append(period)
        begin = period.end

    pieces += _plain(text, begin, len(text))
    return Phrasing(text, tuple(pieces))


def _periods(text: str) -> list[Piece]:
    """Return days and months that are written in digits; they don't overlap."""
    pieces: list[Piece] = []
    for form in _PERIODS:
        for match in form.finditer(text):
            period = _period(match)
            if period is None:
                continue
            if not any(_overlap(period, one) for one in pieces):
                pieces.append(period)

    return sorted(pieces, key=lambda piece: piece.start)


def _period(match: re.Match[str]) -> Piece | None:
    """Return the month or day that was found; None if the calendar does not have it."""
    parts = match.groupdict()
    day = parts.get("day")
    try:
        at = date(int(parts["year"]), int(parts["month"]), int(day or 1))
    except ValueError:
        return None

    if not _EARLIEST <= at.year <= _LATEST:
        return None
    if day:
        return Piece("day", at.isoformat(), match.start(), match.end())

    return Piece("month", f"{at:%Y-%m}", match.start(), match.end())


def _overlap(one: Piece, other: Piece) -> bool:
    return one.start < other.end and other.start < one.end


def _plain(question: str, begin: int, end: int) -> Iterator[Piece]:
    """Yield the pieces of a stretch without periods."""
    stretch = question[begin:end]
    atoms = [atom for atom in atoms_of(stretch) if not _says_nothing(atom, stretch)]
    is_all_capitals = stretch.upper() == stretch
    runs: list[list[Atom]] = []
    for atom in atoms:
        if runs and is_one_word(runs[-1][-1], atom):
            runs[-1].append(atom)
        else:
            runs.append([atom])

    for run in runs:
        kind, text = _read_run(run, keeps_case=not is_all_capitals)
        yield Piece(kind, text, begin + run[0].start, begin + run[-1].end)


def _says_nothing(atom: Atom, stretch: str) -> bool:
    if atom.kind != "mark" or atom.text not in _EMPTY:
        return False
    if atom.text not in _SENTENCE:
        return True

    after = stretch[atom.end : atom.end + 1]
    if not after.strip() or not after.isascii():
        return True

    return after in "?!.\"')"


def _read_run(run: list[Atom], *, keeps_case: bool) -> tuple[PieceKind, str]:
    first = run[0]
    if len(run) > 1:
        return "word", "".join(atom.key for atom in run)
    if first.kind == "quote":
        return "quote", first.text
    if first.kind == "number":
        return _number(first.text)

    may_be_acronym = keeps_case and first.kind == "word"
    if may_be_acronym and _is_acronym(first.text):
        return "word", first.text

    return "word", first.key


def _is_acronym(text: str) -> bool:
    return 1 < len(text) <= _ACRONYM and text.isupper()


def _number(text: str) -> tuple[PieceKind, str]:
    if "." in text:
        return "decimal", text.rstrip("0").rstrip(".")

    is_code = text.startswith("0") and text != "0"
    if is_code or len(text) > _MOST_DIGITS:
        return "word", text
    if _EARLIEST <= int(text) <= _LATEST:
        return "year", text

    return "integer", text


def same_words(one: tuple[Piece, ...], other: tuple[Piece, ...]) -> bool:
    """Tell whether two stretches say the same, piece by piece."""
    if len(one) != len(other):
        return False

    for piece, counterpart in zip(one, other, strict=True):
        if (piece.kind, piece.text) != (counterpart.kind, counterpart.text):
            return False

    return True
