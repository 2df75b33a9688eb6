"""Tell when two texts are one spelled differently, so that one may stand for the other.

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
_ALPHABETIC = frozenset(("Ll", "Lm", "Mn"))  # Unicode's categories of lower-case letters
_SHORTEST_MISSPELT = 5  # characters; one letter more or less makes another word of a shorter one
_LONGEST_MISSPELT = 40  # what is longer is a code or a sentence
_LEAST_DIGITS = 9  # of a telephone or card number, which may be written with blanks
_LEAST_NAME = 2  # Han characters that a place's or company's name has without its unit

_LEAST_LIKENESS = 0.6  # of what is offered
_BEGINS, _OTHER_BEGINNING = 0.8, 0.9


def same(one: str, other: str) -> bool:
    """Tell whether they are one text written differently.

    They differ at most in case, width, blanks, punctuation, or traditional and simplified
    characters.
    """
    ours = folded(one)
    if not any(map(str.isalnum, ours)):
        return False
    if ours != folded(other):
        return False

    return _same_digits(one, other)


def units_apart(one: str, other: str, units: tuple[str, ...]) -> bool:
    """Tell whether one is the other with one of `units` at its end.

    Such as `陕西` and `陕西省`, "Acme" and "Acme, Inc.".
    """
    shorter, longer = sorted((_words(one), _words(other)), key=len)
    if not shorter or not longer.startswith(shorter):
        return False
    if not _same_digits(one, other):
        return False

    rest = longer.removeprefix(shorter)
    if rest.isascii():
        are_units = all(word in units for word in rest.split())
        return are_units and rest.startswith(" ")

    return rest in units and len(shorter) >= _LEAST_NAME


def accents_apart(one: str, other: str) -> bool:
    """Tell whether only accents of Latin letters differ, which many keyboards don't have."""
    ours = folded(unaccented(plain(one)))
    if not any(map(str.isalnum, ours)):
        return False
    if ours != folded(unaccented(plain(other))):
        return False

    return _same_digits(one, other)


def unaccented(text: str) -> str:
    """Write plain letters for accented Latin ones; other scripts stay as they are."""
    if text.isascii():
        return text

    return "".join(map(_unaccented, text))


def _unaccented(char: str) -> str:
    base = unicodedata.normalize("NFD", char)[0]
    if base.isascii():
        return base

    return char


def misspelt(one: str, other: str) -> bool:
    """Tell whether all words are the same but one long one, which differs in one slip.

    Only in alphabets, where a letter does not make another name as a character does in Chinese.
    """
    ours = plain(one).split()
    others = plain(other).split()
    if len(ours) != len(others):
        return False
    if not _same_digits(one, other):
        return False

    different = []
    for word, counterpart in zip(ours, others, strict=True):
        if word != counterpart:
            different.append((word, counterpart))

    if len(different) != 1:
        return False

    return _is_slip(*different[0])


def edits(one: str, other: str, most: int) -> int:
    """Count letters added, left out, changed or swapped with their neighbour.

    Counts no further than beyond `most`.
    """
    return OSA.distance(one, other, score_cutoff=most)


def alike(text: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return `values` that resemble `text`, the most alike first.

    They may be offered, and never be used unasked.
    """
    plain_text = plain(text)
    scored = []
    for value in values:
        score = _likeness(plain_text, plain(value))
        if score >= _LEAST_LIKENESS:
            scored.append((-score, value))

    return tuple(value for _, value in sorted(scored))


def likeness(one: str, other: str, least: float = 0.0) -> float:
    """Return the share of letters that both have in the same order, 0 to 1.

    It is 0 for less than `least`.
    """
    return Indel.normalized_similarity(one, other, score_cutoff=least)


def closest(word: str, names: Iterable[str], most: int, least: float) -> list[str]:
    """Return names with a `likeness` of at least `least`, those most like `word` first.

    Args:
        most: so many names at most.
    """
    scored = process.extract(
        word, names, scorer=Indel.normalized_similarity, limit=most, score_cutoff=least
    )
    return [name for name, _, _ in scored]


def did_you_mean(name: str, choices: Iterable[str]) -> Text:
    """Say that nothing is called `name`, and which of `choices` may have been meant."""
    choices = tuple(choices)
    zh = "、".join(f"“{choice}”" for choice in choices)
    en = " or ".join(f'"{choice}"' for choice in choices)
    return Text(f"没有“{name}”；您是不是要找{zh}？", f'There is no "{name}"; did you mean {en}?')


def _likeness(one: str, other: str) -> float:
    """Rate how alike they are, 0 to 1.

    A common beginning or end counts more than scattered letters.
    """
    shorter, longer = sorted((one, other), key=len)
    if not shorter:
        return 0.0

    ratio = 1 - edits(one, other, len(longer)) / len(longer)
    is_end = longer.startswith(shorter) or longer.endswith(shorter)
    if is_end and len(shorter) >= _LEAST_NAME:
        return max(ratio, _BEGINS)
    if one[0] == other[0]:
        return ratio

    return ratio * _OTHER_BEGINNING


def plain(text: str) -> str:
    """Write the text in lower case, half width and simplified, its words one blank apart."""
    half_width = unicodedata.normalize("NFKC", text)
    simplified = half_width.casefold().translate(SIMPLIFIED)
    return " ".join(simplified.split())


@lru_cache(maxsize=20_000)  # the same stored values are compared with the words of many questions
def folded(text: str) -> str:
    """Return the letters, digits and signs that say something, all in one writing."""
    text = plain(text)
    last = len(text) - 1
    chars = []
    for at, char in enumerate(text):
        is_sign = char == "-" and at in (0, last)
        if is_sign or says(char):
            chars.append(char)

    return "".join(chars)


def says(char: str) -> bool:
    """Tell whether the character makes a difference: a letter, a digit, or one of few signs."""
    if char in _MEANT_SIGNS:
        return True

    return unicodedata.category(char)[0] not in "PZC"


def _words(text: str) -> str:
    """Return the words one blank apart, without the punctuation around them."""
    letters = [char if says(char) else " " for char in plain(text)]
    return " ".join("".join(letters).split())


def _same_digits(one: str, other: str) -> bool:
    """Tell whether the numbers in both are the same; a long one may be written in groups."""
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
    if shortest < _SHORTEST_MISSPELT or longest > _LONGEST_MISSPELT:
        return False
    if one[0] != other[0]:
        return False
    if not _is_alphabetic(one):
        return False
    if not _is_alphabetic(other):
        return False

    return edits(one, other, 1) == 1


def _is_alphabetic(word: str) -> bool:
    categories = set(map(unicodedata.category, word))
    return categories <= _ALPHABETIC
