"""Cuts texts into terms, by which tables are found.

Chinese is cut into pairs of characters, Latin at case, digits and underscores into words without
their plural endings. Words of one family (`enrolled`, `enrollment`) also share a root.
"""

import re
from collections.abc import Iterator

from knowledge.language.cutting import pieces
from knowledge.language.inflection import root, singular
from knowledge.language.thesaurus import ABBREVIATIONS

_MOST_NAME_CHARS = 60
_NAME_END = re.compile(r"[,，:：;；.。(（\[【\n]")
_LAST_LATIN = "\u303f"  # kana, Han and Hangul characters have greater code points


def terms(text: str) -> Iterator[str]:
    """Yield the terms to compare: singular Latin words, numbers, pairs of Han characters."""
    for word in pieces(text):
        if not is_han(word):
            yield singular(word.lower())
            continue

        pairs = max(1, len(word) - 1)
        for start in range(pairs):
            yield word[start : start + 2]


def is_han(term: str) -> bool:
    """Tell whether a term is of a script without blanks, mostly of Han characters."""
    return term[:1] > _LAST_LATIN


def name_in_comment(comment: str | None) -> str:
    """Return the name that a comment begins with: all before the first punctuation mark."""
    if not comment:
        return ""

    beginning = comment[:_MOST_NAME_CHARS].strip()
    return _NAME_END.split(beginning, maxsplit=1)[0]


def has_root(term: str) -> bool:
    return term.isascii() and term.isalpha()


def spelled_out(text: str) -> Iterator[str]:
    """Yield the terms of `text` with the usual abbreviations written in full."""
    for term in terms(text):
        yield from terms(ABBREVIATIONS.get(term, term))


def terms_with_roots(text: str) -> frozenset[str]:
    """Return the terms by which `text` is found."""
    return frozenset(roots_of(text))


def roots_of(text: str) -> Iterator[str]:
    """Yield the terms of `text`, with the words for its abbreviations, and all their roots."""
    for term in terms(text):
        words = [term]
        if term in ABBREVIATIONS:
            words.extend(terms(ABBREVIATIONS[term]))

        yield from words
        for word in words:
            if has_root(word):
                yield root(word)
