"""How texts are cut into what tables are found by.

Chinese is cut into pairs of characters, Latin at case, digits and underscores into words without their plural endings.
Words of one family (`enrolled`, `enrollment`) also share a root.
"""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache

import snowballstemmer

from knowledge.cutting import pieces
from knowledge.thesaurus import ABBREVIATIONS

_NAME_END = re.compile(r"[,，:：;；.。(（\[【\n]")
_PLURALS = (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("ss", "ss"), ("us", "us"))
_LAST_LATIN = "\u303f"  # characters of the scripts that write no blanks are behind it


def terms(text: str) -> Iterator[str]:
    """The words of `text` that can be compared: singular Latin words, numbers, pairs of Han characters."""
    for word in pieces(text):
        if is_han(word):
            yield from (word[start : start + 2] for start in range(max(1, len(word) - 1)))
        else:
            yield singular(word.lower())


def is_han(term: str) -> bool:
    """Whether a term is of a script without blanks: of Han characters, mostly."""
    return term[:1] > _LAST_LATIN


def singular(word: str) -> str:
    """A lower-case English word without its plural ending."""
    if not word.endswith("s"):
        return word
    for ending, replacement in _PLURALS:
        if word.endswith(ending):
            return word[: -len(ending)] + replacement
    return word[:-1] if len(word) > 3 else word


def called(comment: str | None) -> str:
    """What a comment calls the thing: its words before any punctuation, at most 60 characters."""
    return _NAME_END.split((comment or "")[:60].strip(), maxsplit=1)[0] if comment else ""


_STEMMERS = threading.local()  # one keeps the word it works on, so that two threads can't share it


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """What the words of one family share, by Snowball's English stemmer. Never a word itself: `~enrol`."""
    stemmer = getattr(_STEMMERS, "english", None)
    if stemmer is None:
        stemmer = _STEMMERS.english = snowballstemmer.stemmer("english")
    return f"~{stemmer.stemWord(word)}"


def has_root(term: str) -> bool:
    """Whether the term is an English word."""
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
