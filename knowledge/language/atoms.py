"""Cuts a question into the smallest pieces: words, Han characters, numbers, quotations.

Names and stored values of the catalogue are cut by the same rules, so that both sides of every
comparison agree about case, plurals, separators and full-width characters.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from knowledge.language.cutting import ALONE, pieces
from knowledge.language.inflection import stem
from knowledge.words import SIMPLIFIED

AtomKind = Literal["word", "han", "number", "quote", "mark"]

_QUOTES = {'"': '"', "“": "”", "「": "」", "『": "』", "‘": "’", "《": "》", "`": "`"}
_PIECES = re.compile(
    r"(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"|(?P<word>[^\W\d_{ALONE}]+(?:'[a-z]{{1,2}}(?![a-z]))?)"
    rf"|(?P<han>[{ALONE}])"
    r"|(?P<space>[\s_]+)"
    r"|(?P<mark>.)",
    re.IGNORECASE | re.DOTALL,
)
_LETTERS_AND_DIGITS = frozenset(("word", "number"))
_PLAIN_HAN = re.compile(r"[\u4e00-\u9fff]+")
_PLAIN_WORDS = re.compile(r"(?:[a-z]+|[0-9]+)(?: (?:[a-z]+|[0-9]+))*")


def split_list(text: str, separator: str | None = None) -> tuple[str, ...]:
    """Split a list that is written as one string, because it is easier to read."""
    return tuple(text.split(separator))


@dataclass(frozen=True)
class Atom:
    """One piece of text.

    Attributes:
        text: as written (after full-width folding); the inside of a quotation.
        key: what is compared exactly: lower case, simplified characters.
        stem: what is compared loosely: lower case, without inflection.
        start, end: character offsets into the normalised text.
        glued: whether nothing separates it from the atom before.
    """

    kind: AtomKind
    text: str
    key: str
    stem: str
    start: int
    end: int
    glued: bool


def normalise(text: str) -> str:
    """Write full-width characters half-width and apostrophes alike, without control characters."""
    is_plain_ascii = text.isascii() and text.isalnum()
    if is_plain_ascii or _PLAIN_HAN.fullmatch(text):
        return text

    text = unicodedata.normalize("NFKC", text)
    text = text.replace("\u2019", "'").replace("\u02bc", "'")
    text = re.sub(r"(?<=\d)'s\b", "", text)
    chars = [" " if unicodedata.category(char)[0] in "CZ" else char for char in text]
    return "".join(chars).strip()


# A question is cut for its marks, its values and its likeness to earlier ones.
@lru_cache(maxsize=256)
def atoms_of(text: str) -> tuple[Atom, ...]:
    """Cut a normalised text into atoms, in order, without the separators between them."""
    atoms: list[Atom] = []
    position = 0
    separated = True
    while position < len(text):
        quoted = _quotation(text, position)
        if quoted is not None:
            atoms.append(quoted)
            position = quoted.end
            separated = True
            continue

        match = _PIECES.match(text, position)
        assert match is not None
        kind = match.lastgroup
        position = match.end()
        if kind == "space":
            separated = True
            continue

        atoms.extend(_atoms_of_piece(str(kind), match.group(), match.start(), glued=not separated))
        separated = False

    return tuple(atoms)


def _quotation(text: str, position: int) -> Atom | None:
    opening = text[position]
    closing = _QUOTES.get(opening)
    is_in_word = position > 0 and text[position - 1].isalnum()
    if opening == "'" and not is_in_word:
        closing = "'"
    if closing is None:
        return None

    end = text.find(closing, position + 1)
    inside = text[position + 1 : end].strip()
    if end < 0 or not inside:
        return None

    return Atom("quote", inside, inside.lower(), inside.lower(), position, end + 1, glued=False)


def _atoms_of_piece(kind: str, text: str, start: int, *, glued: bool) -> list[Atom]:
    end = start + len(text)
    if kind == "number":
        plain = text.replace(",", "")
        return [Atom("number", plain, plain, plain, start, end, glued)]

    if kind == "word":
        base = re.sub("'s$", "", text, flags=re.IGNORECASE)
        key = base.lower()
        return [Atom("word", base, key, stem(key), start, end, glued)]

    if kind == "han":
        key = SIMPLIFIED.get(ord(text), text)
        return [Atom("han", text, key, key, start, end, glued)]

    return [Atom("mark", text, text, text, start, end, glued)]


def is_one_word(before: Atom, after: Atom) -> bool:
    """Tell whether letters or digits follow others without a space: PX100A is three atoms."""
    if not after.glued:
        return False

    return {before.kind, after.kind} <= _LETTERS_AND_DIGITS


def join(atoms: tuple[Atom, ...] | list[Atom], *, stems: bool = False) -> str:
    """Make the comparison key of a run of atoms.

    Latin words and numbers stand one blank apart, Han characters together.

    Glue between letters and digits is ignored (`G15`, `g 15` and `G-15` are one key), punctuation
    vanishes.
    """
    parts: list[str] = []
    previous = "han"
    for atom in atoms:
        if atom.kind == "mark":
            continue

        is_beside_han = "han" in (previous, atom.kind)
        if parts and not is_beside_han:
            parts.append(" ")

        parts.append(atom.stem if stems else atom.key)
        previous = atom.kind

    return "".join(parts)


@lru_cache(maxsize=16384)
def key_of(text: str, *, stems: bool = False) -> str:
    """Make the comparison key of a whole phrase."""
    # Most names of a catalogue are cut like this; the long way finds the same.
    if not text.isascii():
        if _PLAIN_HAN.fullmatch(text):
            return text.translate(SIMPLIFIED)
    elif _PLAIN_WORDS.fullmatch(text):
        if stems:
            return " ".join(map(stem, text.split(" ")))

        return text

    atoms = [atom for atom in atoms_of(normalise(text)) if atom.kind != "quote"]
    if not atoms:
        atoms = _as_quote(text)

    return join(atoms, stems=stems)


def _as_quote(text: str) -> list[Atom]:
    folded = normalise(text).lower()
    return [Atom("quote", folded, folded, folded, 0, len(folded), glued=False)]


@lru_cache(maxsize=16384)
def words_of(identifier: str) -> tuple[str, ...]:
    """Return an identifier's words as `pieces` cuts them, in lower case and simplified."""
    words = pieces(normalise(identifier))
    return tuple(word.lower().translate(SIMPLIFIED) for word in words)
