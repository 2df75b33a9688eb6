"""How texts are cut into what tables are found by.

Chinese is cut into pairs of characters, Latin at case, digits and underscores into words without
their plural endings. Words of one family (`enrolled`, `enrollment`) also share a root.
"""

import re
from collections.abc import Iterator

from knowledge.language.cutting import pieces
from knowledge.language.inflection import root, singular
from knowledge.language.thesaurus import ABBREVIATIONS

_NAME_END = re.compile(r"[,，:：;；.。(（\[【\n]")
_LAST_LATIN = "\u303f"  # characters of the scripts that write no blanks are behind it


def terms(text: str) -> Iterator[str]:
    """The words of `text` that can be compared: singular Latin words, numbers, pairs of Han
    characters.
    """
    for word in pieces(text):
        if is_han(word):
            yield from (word[start : start + 2] for start in range(max(1, len(word) - 1)))
        else:
            yield singular(word.lower())


def is_han(term: str) -> bool:
    """Tell whether a term is of a script without blanks, mostly of Han characters."""
    return term[:1] > _LAST_LATIN


def called(comment: str | None) -> str:
    """Return a comment's name for the thing: its words before punctuation, at most 60 characters."""
    if comment:
        return _NAME_END.split((comment or "")[:60].strip(), maxsplit=1)[0]
    return ""


def has_root(term: str) -> bool:
    return term.isascii() and term.isalpha()


def spelled_out(text: str) -> Iterator[str]:
    """The terms of `text` with the usual abbreviations written in full."""
    for term in terms(text):
        yield from terms(ABBREVIATIONS.get(term, term))


def terms_with_roots(text: str) -> frozenset[str]:
    """The terms by which `text` is found."""
    return frozenset(roots_of(text))


def roots_of(text: str) -> Iterator[str]:
    """The terms of `text`, the words that its abbreviations stand for, and all their roots."""
    for term in terms(text):
        spelled = [term, *terms(ABBREVIATIONS[term])] if term in ABBREVIATIONS else [term]
        yield from spelled
        yield from (root(word) for word in spelled if has_root(word))
