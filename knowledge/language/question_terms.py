"""Make the terms by which tables are found for a question: its words, their roots, other words.

Other words are synonyms and translations, in both languages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from knowledge.language.cutting import has_han
from knowledge.language.inflection import root, stem
from knowledge.language.spoken_names import english_words
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
_SHORT = 2  # letters of words that tell nothing, as in `signed_on`
_LONGEST_PHRASE = 3  # English words
_MOST_PARTS = 3  # words of a Chinese name that are translated one by one
_MOST_TRANSLATIONS = 6  # of such a word
_Said = Mapping[str, tuple[str, ...]]


def _joined(*tables: _Said) -> _Said:
    """Join tables of words: each phrase gets the entries of all of them, in their order."""
    entries: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for phrase, others in table.items():
            entries[phrase] = entries.get(phrase, ()) + others

    return entries


_ENGLISH_SYNONYMS = _joined(EN_TO_EN, EN_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_EN)
_CHINESE_SYNONYMS = _joined(ZH_TO_EN, ZH_TO_ZH, EVENTS_OF_VERBS, TRANSLATED_ZH)
_TRANSLATED = _joined(ZH_TO_EN, TRANSLATED_ZH)
_IN_CHINESE = _joined(EN_TO_ZH, TRANSLATED_EN)
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
    form_of = {word: _form_of_word(word) for word in words}
    for word in words:
        if has_root(word):
            of_root = form_of[word].of_root()
            form_of.setdefault(root(word), of_root)

    phrases = [*_english_phrases(words), *_chinese_phrases(question)]
    for phrase, first_term in phrases:
        for term, form in _other_terms(phrase, first_term):
            form_of.setdefault(term, form)

    return form_of


def is_translated(words: Sequence[str]) -> bool:
    """Tell whether Chinese characters, or English words, are phrases that have translations.

    A single character beside others has too many meanings for its translations to tell anything.
    """
    shortest = 1
    if len(words) > 1 and is_han(words[0]):
        shortest = 2

    reached = {0}
    for start in range(len(words)):
        if start in reached:
            ends = (end for end, _ in _phrases_from(words, start))
            reached.update(end for end in ends if end - start >= shortest)

    return len(words) in reached


def translations_in(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield what stretches of a text are called in the other language, with their start and end.

    A stretch of several words, such as `付款审批`, is translated word by word.

    Args:
        words: English words, or Chinese characters.
    """
    for start in range(len(words)):
        yield from _translations_from(words, start, start, "", _MOST_PARTS)


def _translations_from(
    words: Sequence[str], start: int, at: int, before: str, most: int
) -> Iterator[tuple[int, int, str]]:
    """Yield the phrases of stretches from `start`, of which those up to `at` are translated."""
    for end, phrases in _phrases_from(words, at):
        if before:
            phrases = phrases[:_MOST_TRANSLATIONS]

        for number, phrase in enumerate(phrases):
            translation = f"{before}{phrase}" if is_han(phrase) else f"{before} {phrase}".lstrip()
            yield start, end, translation
            if most > 1 and number < _MOST_TRANSLATIONS:
                yield from _translations_from(words, start, end, translation, most - 1)


def _phrases_from(words: Sequence[str], start: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the end and the translations of each phrase that begins at a place."""
    if start >= len(words):
        return

    if is_han(words[start]):
        translations, longest, between = _TRANSLATED, _LONGEST_SYNONYM, ""
        following = list(words[start : start + longest])
    else:
        translations, longest, between = _IN_CHINESE, _LONGEST_PHRASE, " "
        following = [stem(word.lower()) for word in words[start : start + longest]]

    for count in range(1, len(following) + 1):
        found = translations.get(between.join(following[:count]))
        if found is not None:
            yield start + count, found


@lru_cache(maxsize=20_000)
def has_translation(identifier: str) -> bool:
    """Tell whether a name, as a whole or word by word, has a translation."""
    if has_han(identifier):
        return is_translated("".join(filter(is_han, identifier)))

    words = [word for word in english_words(identifier) if len(word) > _SHORT]
    return is_translated(words)


@lru_cache(maxsize=20_000)
def _other_terms(phrase: str, first_term: str) -> tuple[tuple[str, Form], ...]:
    """Return the terms of synonyms and translations of a phrase of the word lists."""
    synonyms = _ENGLISH_SYNONYMS
    if is_han(phrase):
        synonyms = _CHINESE_SYNONYMS

    form_by_term: dict[str, Form] = {}
    for synonym in synonyms[phrase]:
        for term in terms(synonym):
            form = _form_of_synonym(phrase, first_term, term)
            form_by_term.setdefault(term, form)
            if has_root(term):
                form_by_term.setdefault(root(term), form.of_root())

    return tuple(form_by_term.items())


def _form_of_word(word: str) -> Form:
    is_faint = word in _FAINT
    share = 1.0
    if is_faint:
        share = _FAINT_SHARE

    return Form(word, share, share, is_faint)


def _form_of_synonym(phrase: str, first_term: str, term: str) -> Form:
    """Return what `term`, a synonym or a translation of the question's `phrase`, counts for.

    A translation counts for more where a table has nothing in the question's language.

    Args:
        first_term: of the phrase: its first English word, or its first two Chinese characters.
    """
    is_faint = phrase in _FAINT
    share = _SYNONYM_SHARE
    if is_faint:
        share *= _FAINT_SHARE

    is_translation = is_han(term) != is_han(first_term)
    if not is_translation:
        return Form(first_term, share, share, is_faint)

    further_pairs = 0
    if is_han(first_term):
        further_pairs = max(0, len(phrase) - 2)

    alone = share * _ALONE * (1 + _ALONE_PAIR * further_pairs)
    return Form(first_term, share, alone, is_faint)


def _chinese_phrases(question: str) -> Iterator[tuple[str, str]]:
    """Yield Chinese phrases of the question that the word lists have, with their first terms."""
    text = question.replace(" ", "")
    for start, char in enumerate(text):
        if not is_han(char):
            continue

        last = min(len(text), start + _LONGEST_SYNONYM)
        for end in range(start + 1, last + 1):
            phrase = text[start:end]
            if phrase in _CHINESE_SYNONYMS:
                yield phrase, phrase[:2]


def _english_phrases(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield English phrases of the question that the word lists have, with their first words.

    The longer ones come first.
    """
    latin = list(filter(has_root, words))
    stems = list(map(stem, latin))
    for count in range(_LONGEST_PHRASE, 0, -1):
        for start in range(len(stems) - count + 1):
            phrase = " ".join(stems[start : start + count])
            if phrase in _ENGLISH_SYNONYMS:
                yield phrase, latin[start]
