"""What to look for when a question is to be matched with tables: its words, their roots, and what
they are called otherwise, in both languages.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from knowledge.language.inflection import root, stem
from knowledge.language.terms import has_root, is_han, terms
from knowledge.language.thesaurus import (
    EN_TO_EN,
    EN_TO_ZH,
    EVENTS_OF_VERBS,
    TRANSLATED_EN,
    TRANSLATED_ZH,
    ZH_TO_EN,
    ZH_TO_ZH,
)
from knowledge.words import WORDS

_ROOT_SHARE, _SYNONYM_SHARE = 0.6, 0.5  # of a word found otherwise than as it is written
_FAINT_SHARE = 0.5  # of a word that stands in questions about anything
# What a translation counts for, as a multiple, in a table that has nothing in the question's
# language; and what each further pair of characters that it translates adds, because they would
# have counted one by one.
_ALONE, _ALONE_PAIR = 1.8, 0.3
_LONGEST_SYNONYM = 6  # characters
_LONGEST_PHRASE = 3  # English words
_Said = Mapping[str, tuple[str, ...]]


def _joined(*tables: _Said) -> _Said:
    """All that the tables have for each phrase, in their order."""
    phrases: set[str] = set()
    for table in tables:
        phrases.update(table)
    return {
        phrase: tuple(other for table in tables for other in table.get(phrase, ()))
        for phrase in phrases
    }


_OF_ENGLISH = _joined(EN_TO_EN, EN_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_EN)
_OF_CHINESE = _joined(ZH_TO_EN, ZH_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_ZH)
_FAINT = frozenset(
    term for phrase in WORDS.both("relevance.faint") for term in (phrase, *terms(phrase))
)


class Form(NamedTuple):
    """How a term stands for a word of the question.

    Attributes:
        word: the word; of its forms in one table only the best counts, so that a word with many
            does not outweigh the others.
        share: how much the form counts, 1 for the word itself.
        alone: how much it counts in a table that has nothing in the word's language, and so can't
            say it otherwise.
        is_faint: whether the word stands in questions about anything.
    """

    word: str
    share: float
    alone: float
    is_faint: bool = False

    def of_root(self) -> "Form":
        """The same for the term's root."""
        return Form(self.word, self.share * _ROOT_SHARE, self.alone * _ROOT_SHARE, self.is_faint)


def forms(question: str) -> dict[str, Form]:
    """The terms to look for → what they stand for."""
    words = list(dict.fromkeys(terms(question)))
    wanted = {word: _itself(word) for word in words}
    for word in words:
        if has_root(word):
            wanted.setdefault(root(word), wanted[word].of_root())
    for phrase, said in (*_english(words), *_chinese(question)):
        for term, form in _otherwise(phrase, said):
            wanted.setdefault(term, form)
    return wanted


@lru_cache(maxsize=20_000)
def _otherwise(phrase: str, said: str) -> tuple[tuple[str, Form], ...]:
    """Yield other terms for a phrase of the word lists; `said` is its first term in the question."""
    found: dict[str, Form] = {}
    for other in (_OF_CHINESE if is_han(phrase) else _OF_ENGLISH)[phrase]:
        for term in terms(other):
            form = _synonym(phrase, said, term)
            found.setdefault(term, form)
            if has_root(term):
                found.setdefault(root(term), form.of_root())
    return tuple(found.items())


def _itself(word: str) -> Form:
    share = 1.0
    if word in _FAINT:
        share = _FAINT_SHARE
    return Form(word, share, share, word in _FAINT)


def _synonym(phrase: str, said: str, term: str) -> Form:
    """The form `term` of the question's `phrase`, whose first term is `said`."""
    share = _SYNONYM_SHARE * (_FAINT_SHARE if phrase in _FAINT else 1.0)
    alone = share
    if is_han(term) != is_han(said):
        pairs = 1
        if is_han(said):
            pairs = len(phrase) - 1
        alone = share * _ALONE * (1 + _ALONE_PAIR * max(0, pairs - 1))
    return Form(said, share, alone, phrase in _FAINT)


def _chinese(question: str) -> Iterator[tuple[str, str]]:
    """Chinese phrases of the question that the word lists have, each with its first term."""
    text = question.replace(" ", "")
    for start, char in enumerate(text):
        if is_han(char):
            for end in range(start + 1, min(len(text), start + _LONGEST_SYNONYM) + 1):
                if (phrase := text[start:end]) in _OF_CHINESE:
                    yield phrase, phrase[:2]


def _english(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """English phrases of the question as the word lists have them, the longer ones first, each with
    its first word.
    """
    latin = [word for word in words if has_root(word)]
    stems = [stem(word) for word in latin]
    for count in range(_LONGEST_PHRASE, 0, -1):
        for start in range(len(stems) - count + 1):
            if (phrase := " ".join(stems[start : start + count])) in _OF_ENGLISH:
                yield phrase, latin[start]
