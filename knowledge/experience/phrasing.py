"""A question as the words that have to be the same in another one, and the literals that may differ.

Case, width, traditional characters, spaces and punctuation make no difference. Everything else does: a negation, a
unit, a direction, a sign before a number. What is glued to letters is no number: Q1, G15, 5k.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from knowledge.atoms import Atom, atoms_of, normalise
from knowledge.words import WORDS

Kind = Literal["word", "integer", "decimal", "year", "month", "day", "quote"]

_PERIODS = tuple(
    re.compile(rf"(?<![\w./-]){form}(?![\d/]|[-.]\d)", re.ASCII)
    for form in (*WORDS.chinese.phrases("phrasing.periods"), *WORDS.english.phrases("phrasing.periods"))
)
_EMPTY = frozenset(",;:?!.\u2026\u3001\u3002\uff0c\uff1b\uff1a\uff1f\uff01")  # punctuation that says nothing
_SENTENCE = frozenset("?!.:")  # says nothing only where a word ends: 3:1, a.b and != mean something
_EARLIEST, _LATEST = 1900, 2099  # numbers between are years
_ACRONYM = 4  # letters; a short word in capitals is not the same word in small letters (US, us)
_MOST_DIGITS = 15


@dataclass(frozen=True)
class Piece:
    """One piece of a question.

    Attributes:
        text: what is compared: of a word, its lower-case form; of a number, its digits; of a period, its ISO form
            (2024, 2024-03, 2024-03-09); of a quotation, what it holds.
        start, end: its place in the normalised question.
    """

    kind: Kind
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
        """What stands from one piece to before another, as it is written; of one quotation, what it holds."""
        pieces = self.pieces[first:last]
        if len(pieces) == 1 and pieces[0].kind == "quote":
            return pieces[0].text
        return self.said[pieces[0].start : pieces[-1].end]


def phrasing_of(question: str) -> Phrasing:
    """The question in pieces, in order."""
    said = normalise(question)
    periods = list(_periods(said))
    pieces: list[Piece] = []
    begin = 0
    for period in periods:
        pieces += _plain(said, begin, period.start)
        pieces.append(period)
        begin = period.end
    pieces += _plain(said, begin, len(said))
    return Phrasing(said, tuple(pieces))


def _periods(said: str) -> Iterator[Piece]:
    """Days and months that are written in digits; they don't overlap."""
    found: list[Piece] = []
    for form in _PERIODS:
        for match in form.finditer(said):
            parts = match.groupdict()
            day = parts.get("day")
            try:
                at = date(int(parts["year"]), int(parts["month"]), int(day or 1))
            except ValueError:
                continue
            is_free = all(match.end() <= one.start or one.end <= match.start() for one in found)
            if is_free and _EARLIEST <= at.year <= _LATEST:
                text = at.isoformat() if day else f"{at:%Y-%m}"
                found.append(Piece("day" if day else "month", text, match.start(), match.end()))
    return iter(sorted(found, key=lambda piece: piece.start))


def _plain(said: str, begin: int, end: int) -> Iterator[Piece]:
    """The pieces of a stretch without periods."""
    stretch = said[begin:end]
    atoms = [atom for atom in atoms_of(stretch) if not _says_nothing(atom, stretch)]
    shouts = stretch.upper() == stretch
    runs: list[list[Atom]] = []
    for atom in atoms:
        if runs and atom.glued and _is_letters(atom) and _is_letters(runs[-1][-1]):
            runs[-1].append(atom)
        else:
            runs.append([atom])
    for run in runs:
        kind, text = _read(run, keeps_case=not shouts)
        yield Piece(kind, text, begin + run[0].start, begin + run[-1].end)


def _is_letters(atom: Atom) -> bool:
    return atom.kind in ("word", "number")


def _says_nothing(atom: Atom, stretch: str) -> bool:
    if atom.kind != "mark" or atom.text not in _EMPTY:
        return False
    after = stretch[atom.end : atom.end + 1]
    return atom.text not in _SENTENCE or not (after.isascii() and after.strip() and after not in "?!.\"')")


def _read(run: list[Atom], *, keeps_case: bool) -> tuple[Kind, str]:
    first = run[0]
    if len(run) > 1:
        return "word", "".join(atom.key for atom in run)
    if first.kind == "quote":
        return "quote", first.text
    if first.kind == "number":
        return _number(first.text)
    is_acronym = keeps_case and first.kind == "word" and 1 < len(first.text) <= _ACRONYM and first.text.isupper()
    return "word", first.text if is_acronym else first.key


def _number(text: str) -> tuple[Kind, str]:
    if "." in text:
        return "decimal", text.rstrip("0").rstrip(".")
    if len(text) > _MOST_DIGITS or (text.startswith("0") and text != "0"):
        return "word", text  # a code
    return ("year" if _EARLIEST <= int(text) <= _LATEST else "integer"), text


def same_words(one: tuple[Piece, ...], other: tuple[Piece, ...]) -> bool:
    """Whether two stretches say the same, piece by piece."""
    return [(piece.kind, piece.text) for piece in one] == [(piece.kind, piece.text) for piece in other]
