"""When two texts are one spelled differently, so that one may stand for the other without meaning
something else.

`same` is the same text but for how it is written; `units_apart` the same but for a word that only
says what kind of place or company it is; `misspelt` one slip in one long word. Digits never differ.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA, Indel

from common.text import Text
from knowledge.words import SIMPLIFIED, WORDS

PLACES, COMPANIES, KINDS = (
    WORDS.both(f"values.units.{kind}") for kind in ("places", "companies", "kinds")
)

_MEANT_SIGNS = frozenset("#%&*@")  # punctuation to Unicode, but C# is not C
_SHORTEST_MISSPELT = 5  # characters; one letter more or less makes another word of a shorter one
_LONGEST_MISSPELT = 40  # what is longer is a code or a sentence
_LEAST_DIGITS = 9  # of a telephone or card number, which may be written with blanks
_LEAST_NAME = 2  # Han characters that a place's or company's name has without its unit

_LEAST_LIKENESS = 0.6  # of what is offered
_BEGINS, _OTHER_BEGINNING = 0.8, 0.9


def same(one: str, other: str) -> bool:
    """Whether they differ only in case, width, blanks, punctuation, or traditional and simplified
    characters.
    """
    ours = folded(one)
    if not any(map(str.isalnum, ours)):
        return False
    if ours != folded(other):
        return False
    return _same_digits(one, other)


def units_apart(one: str, other: str, units: tuple[str, ...]) -> bool:
    """Whether one is the other with one of `units` at its end: `陕西` and `陕西省`, "Acme" and
    "Acme, Inc.".
    """
    shorter, longer = sorted((_words(one), _words(other)), key=len)
    rest = longer.removeprefix(shorter)
    if not shorter or rest == longer or not _same_digits(one, other):
        return False
    if rest.isascii():
        return rest.startswith(" ") and all(word in units for word in rest.split())
    return rest in units and len(shorter) >= _LEAST_NAME


def accents_apart(one: str, other: str) -> bool:
    """Whether they are the same but for accents of Latin letters, which many keyboards don't have."""
    ours = folded(unaccented(plain(one)))
    if not any(map(str.isalnum, ours)):
        return False
    if ours != folded(unaccented(plain(other))):
        return False
    return _same_digits(one, other)


def unaccented(text: str) -> str:
    """The text with plain letters for accented Latin ones; other scripts stay as they are."""
    if text.isascii():
        return text
    return "".join(map(_unaccented, text))


def _unaccented(char: str) -> str:
    base = unicodedata.normalize("NFD", char)[0]
    if base.isascii():
        return base
    return char


def misspelt(one: str, other: str) -> bool:
    """Whether all words are the same but one long one, which differs in one slip; only in
    alphabets, where a letter does not make another name as a character does in Chinese.
    """
    ours = plain(one).split()
    others = plain(other).split()
    if len(ours) != len(others) or not _same_digits(one, other):
        return False
    different = [(a, b) for a, b in zip(ours, others, strict=True) if a != b]
    return len(different) == 1 and _is_slip(*different[0])


def edits(one: str, other: str, most: int) -> int:
    """Letters added, left out, changed or swapped with their neighbour; counts no further than
    beyond `most`.
    """
    return OSA.distance(one, other, score_cutoff=most)


def alike(text: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return `values` that resemble `text`, the most alike first: to offer, never to use unasked."""
    scored = sorted((-_likeness(plain(text), plain(value)), value) for value in values)
    return tuple(value for score, value in scored if -score >= _LEAST_LIKENESS)


def likeness(one: str, other: str, least: float = 0.0) -> float:
    """The share of letters that both have in the same order, 0 to 1; 0 for less than `least`."""
    return Indel.normalized_similarity(one, other, score_cutoff=least)


def closest(word: str, names: Iterable[str], most: int, least: float) -> list[str]:
    """At most `most` of the names, those most like `word` first, of a `likeness` of at least
    `least`.
    """
    scored = process.extract(
        word, names, scorer=Indel.normalized_similarity, limit=most, score_cutoff=least
    )
    return [name for name, _, _ in scored]


def did_you_mean(said: str, choices: Iterable[str]) -> Text:
    """The sentence that nothing is called `said`, and which of `choices` may have been meant."""
    choices = tuple(choices)
    zh = "、".join(f"“{one}”" for one in choices)
    en = " or ".join(f'"{one}"' for one in choices)
    return Text(f"没有“{said}”；您是不是要找{zh}？", f'There is no "{said}"; did you mean {en}?')


def _likeness(one: str, other: str) -> float:
    """How alike they are, 0 to 1; a common beginning or end counts more than scattered letters."""
    shorter, longer = sorted((one, other), key=len)
    if not shorter:
        return 0.0
    ratio = 1 - edits(one, other, len(longer)) / len(longer)
    if len(shorter) >= _LEAST_NAME and (longer.startswith(shorter) or longer.endswith(shorter)):
        return max(ratio, _BEGINS)
    if one[0] == other[0]:
        return ratio
    return ratio * _OTHER_BEGINNING


def plain(text: str) -> str:
    """The text in lower case, half width and simplified characters, its words one blank apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(SIMPLIFIED).split())


@lru_cache(maxsize=20_000)  # the same stored values are compared with the words of many questions
def folded(text: str) -> str:
    """The letters, digits and signs that say something, all in one writing."""
    text = plain(text)
    last = len(text) - 1
    return "".join(
        char for at, char in enumerate(text) if says(char) or (char == "-" and at in (0, last))
    )


def says(char: str) -> bool:
    """Whether the character makes a difference: a letter, a digit, or one of few signs."""
    return char in _MEANT_SIGNS or unicodedata.category(char)[0] not in "PZC"


def _words(text: str) -> str:
    """Words apart by one blank, without the punctuation around them."""
    return " ".join("".join(char if says(char) else " " for char in plain(text)).split())


def _same_digits(one: str, other: str) -> bool:
    """Whether the numbers in both are the same; a long one may be written in groups."""
    runs = re.findall(r"\d+", plain(one))
    others = re.findall(r"\d+", plain(other))
    if runs == others:
        return True
    digits = "".join(runs)
    if digits != "".join(others):
        return False
    if len(digits) < _LEAST_DIGITS:
        return False
    return 1 in (len(runs), len(others))


def _is_slip(one: str, other: str) -> bool:
    shortest, longest = sorted((len(one), len(other)))
    if shortest < _SHORTEST_MISSPELT or longest > _LONGEST_MISSPELT or one[0] != other[0]:
        return False
    if not _is_alphabetic(one):
        return False
    if not _is_alphabetic(other):
        return False
    return edits(one, other, 1) == 1


def _is_alphabetic(word: str) -> bool:
    return all(unicodedata.category(letter) in ("Ll", "Lm", "Mn") for letter in word)
