"""Make the terms by which tables are found for a question: its words, their roots, other words.

Other words are synonyms and translations, in both languages.
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
    """Join tables of words: each phrase gets the entries of all of them, in their order."""
    found: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for phrase, others in table.items():
            found[phrase] = found.get(phrase, ()) + others

    return found


_OF_ENGLISH = _joined(EN_TO_EN, EN_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_EN)
_OF_CHINESE = _joined(ZH_TO_EN, ZH_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_ZH)
_TRANSLATED = frozenset(ZH_TO_EN) | frozenset(TRANSLATED_ZH)
_FAINT = frozenset(
    term for phrase in WORDS.both("relevance.faint") for term in (phrase, *terms(phrase))
)


class Form(NamedTuple):
    """The way in which a term stands for a word of the question.

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
        """Return the form for the term's root."""
        return Form(self.word, self.share * _ROOT_SHARE, self.alone * _ROOT_SHARE, self.is_faint)


def forms(question: str) -> dict[str, Form]:
    """Return the terms to look for, each with what it stands for."""
    words = list(dict.fromkeys(terms(question)))
    wanted = {word: _itself(word) for word in words}
    for word in words:
        if has_root(word):
            of_root = wanted[word].of_root()
            wanted.setdefault(root(word), of_root)

    phrases = [*_english(words), *_chinese(question)]
    for phrase, said in phrases:
        for term, form in _otherwise(phrase, said):
            wanted.setdefault(term, form)

    return wanted


def is_translated(text: str) -> bool:
    """Tell whether a Chinese text consists of words that have translations."""
    reached = {0}
    for start in range(len(text)):
        if start in reached:
            ends = range(start + 1, min(len(text), start + _LONGEST_SYNONYM) + 1)
            reached.update(end for end in ends if text[start:end] in _TRANSLATED)

    return len(text) in reached


@lru_cache(maxsize=20_000)
def _otherwise(phrase: str, said: str) -> tuple[tuple[str, Form], ...]:
    """Return other terms for a phrase of the word lists, whose first term is `said`."""
    known = _OF_ENGLISH
    if is_han(phrase):
        known = _OF_CHINESE

    found: dict[str, Form] = {}
    for other in known[phrase]:
        for term in terms(other):
            form = _synonym(phrase, said, term)
            found.setdefault(term, form)
            if has_root(term):
                found.setdefault(root(term), form.of_root())

    return tuple(found.items())


def _itself(word: str) -> Form:
    is_faint = word in _FAINT
    share = 1.0
    if is_faint:
        share = _FAINT_SHARE

    return Form(word, share, share, is_faint)


def _synonym(phrase: str, said: str, term: str) -> Form:
    """Return the form `term` of the question's `phrase`, whose first term is `said`."""
    is_faint = phrase in _FAINT
    share = _SYNONYM_SHARE
    if is_faint:
        share *= _FAINT_SHARE
    if is_han(term) == is_han(said):
        return Form(said, share, share, is_faint)

    further_pairs = 0
    if is_han(said):
        further_pairs = max(0, len(phrase) - 2)

    alone = share * _ALONE * (1 + _ALONE_PAIR * further_pairs)
    return Form(said, share, alone, is_faint)


def _chinese(question: str) -> Iterator[tuple[str, str]]:
    """Yield Chinese phrases of the question that the word lists have, with their first terms."""
    text = question.replace(" ", "")
    for start, char in enumerate(text):
        if not is_han(char):
            continue

        last = min(len(text), start + _LONGEST_SYNONYM)
        for end in range(start + 1, last + 1):
            phrase = text[start:end]
            if phrase in _OF_CHINESE:
                yield phrase, phrase[:2]


def _english(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield English phrases of the question that the word lists have, with their first words.

    The longer ones come first.
    """
    latin = list(filter(has_root, words))
    stems = list(map(stem, latin))
    for count in range(_LONGEST_PHRASE, 0, -1):
        for start in range(len(stems) - count + 1):
            phrase = " ".join(stems[start : start + count])
            if phrase in _OF_ENGLISH:
                yield phrase, latin[start]
