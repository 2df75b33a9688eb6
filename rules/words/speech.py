"""Parts of speech and lemmas of words that nothing of the database explains, by kept dictionaries
of both languages.

Chinese is cut and tagged by jieba's dictionary, which comes with the package `rjieba`. English
words are tagged by Brill's lexicon (the likeliest Penn tag of 94,000 forms), which comes with
`textblob` and is read as the file it is, and led back to lemmas by `simplemma`. Each is read once
per process, by the first that asks: together half a second and 70 MB. `prepare` reads them where
nobody waits.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Literal

from common.text import Lang
from common.word_files import Words
from knowledge.language.inflection import lemma
from rules.words import WORDS

Speech = Literal[
    "noun", "proper noun", "verb", "adjective", "adverb", "pronoun", "preposition", "number",
    "measure", "particle", "courtesy", "decisive", "unknown",
]  # fmt: skip
"""A part of speech.

particle    a function word: conjunctions, auxiliaries, articles, interjections
preposition one that may say something: "outside Berlin" is not in Berlin
courtesy    said out of politeness ("kindly", 劳烦)
decisive    a function word that changes what is asked: negations, degrees, restrictions ("hardly",
            仅)
measure     counts things (a Chinese measure word)
unknown     in no dictionary
"""


def _by_tag(tags: Mapping[Speech, str]) -> Mapping[str, Speech]:
    return {tag: kind for kind, listed in tags.items() for tag in listed.split()}


# jieba's tags by their beginnings, and Penn tags; the longest beginning counts.
_CHINESE_TAGS = _by_tag({
    "noun": "n vn j s t f an", "proper noun": "nr ns nt nz", "verb": "v", "adjective": "a b z",
    "adverb": "d", "pronoun": "r", "number": "m", "measure": "q", "preposition": "p",
    "particle": "c u y e o k",
})  # fmt: skip
_PENN_TAGS = _by_tag({
    "noun": "NN", "proper noun": "NNP", "verb": "VB", "adjective": "JJ", "adverb": "RB",
    "pronoun": "PRP WP", "number": "CD", "preposition": "IN",
    "particle": "DT CC TO MD PDT RP EX WDT WRB UH POS",
})  # fmt: skip
_LONGEST_NAME = 3  # characters of most Chinese names
_IN_GIVEN_NAMES: tuple[Speech, ...] = (
    "noun",
    "proper noun",
    "adjective",
    "adverb",
    "number",
    "unknown",
)
_PAST = WORDS.english.text("speech.past")
_CLOSED_KINDS: tuple[Speech, ...] = ("courtesy", "decisive", "particle")


def _closed_classes(words: Words) -> Mapping[str, Speech]:
    return {word: kind for kind in _CLOSED_KINDS for word in words.get(f"speech.{kind}")}


_CLOSED: Mapping[Lang, Mapping[str, Speech]] = {
    "en": _closed_classes(WORDS.english),
    "zh": _closed_classes(WORDS.chinese),
}
# Endings of nouns that are derived from verbs, each with what verbs have instead: `reservation`,
# `delivery`.
_ENDINGS, _NOTHING = WORDS.english.under("derivation.endings"), "-"
_IRREGULAR = WORDS.english.under("derivation.irregular")
_TURN = threading.Lock()  # what is read once is read by the first that needs it, while others wait
_LEAST_LEFT = 3  # letters of a noun without its ending


@dataclass(frozen=True)
class TaggedWord:
    """A Chinese word as the dictionary cuts it."""

    text: str
    speech: Speech


def part_of_speech(word: str, language: Lang) -> Speech:
    """Return the most frequent part of speech of a word, in any case and inflection.

    A Chinese text of several words is of the kind of the last one that is no particle, which
    carries the meaning.
    """
    if language == "en":
        return _english(word.lower())

    parts_of_speech = [part.speech for part in segmented(word)]
    for speech in reversed(parts_of_speech):
        if speech != "particle":
            return speech

    return "particle" if parts_of_speech else "unknown"


@lru_cache(maxsize=4096)
def segmented(text: str) -> tuple[TaggedWord, ...]:
    """Return the words of a Chinese text without blanks, in order; together they are the text."""
    words: list[TaggedWord] = []
    for word, tag in _tagged(text):
        speech = _CLOSED["zh"].get(word) or _kind(tag, _CHINESE_TAGS)
        words.append(TaggedWord(word, speech))

    return tuple(_named(_doubled(words)))


def _doubled(words: Iterable[TaggedWord]) -> list[TaggedWord]:
    """Join a verb that is said twice into one: 瞅瞅."""
    joined: list[TaggedWord] = []
    for word in words:
        is_again = joined[-1:] == [word]
        if is_again and word.speech == "verb":
            joined[-1] = TaggedWord(word.text * 2, "verb")
        else:
            joined.append(word)

    return joined


def _named(words: Sequence[TaggedWord]) -> Iterator[TaggedWord]:
    """Join a family name and the one or two characters after it into somebody's name: 冯晨明."""
    start = 0
    while start < len(words):
        end = _end_of_name(words, start)
        if end == start + 1:
            yield words[start]
        else:
            name = "".join(word.text for word in words[start:end])
            yield TaggedWord(name, "proper noun")

        start = end


def _end_of_name(words: Sequence[TaggedWord], start: int) -> int:
    """Return where somebody's name that begins at `start` ends; the next word where none does."""
    end = start + 1
    first = words[start]
    if first.speech != "proper noun" or len(first.text) > 1:
        return end

    limit = min(start + _LONGEST_NAME, len(words))
    while end < limit and _may_be_given(words[end]):
        end += 1

    return end


def _may_be_given(word: TaggedWord) -> bool:
    return len(word.text) == 1 and word.speech in _IN_GIVEN_NAMES


def is_participle(word: str) -> bool:
    """Tell whether an English word is a past form, as in "cancelled orders"."""
    return _tag(word.lower()) in ("VBD", "VBN")


def is_gerund(word: str) -> bool:
    """Tell whether an English word is a verb's form in -ing."""
    return _tag(word.lower()) == "VBG"


def is_verb(word: str) -> bool:
    """Tell whether an English word, in lower case, is the lemma of a verb.

    It is one most often, or is known and has forms of verbs.
    """
    if _tag(word) in ("VB", "VBP"):
        return True

    return word in _tags() and may_be_verb(word)


@lru_cache(maxsize=4096)
def may_be_verb(word: str) -> bool:
    """Tell whether an English word has forms that only verbs have: `rack`, `racked`."""
    base = lemma(word)
    forms = (word.lower(), base, *_forms(base))
    return any(_tag(form).startswith("VB") for form in forms)


@lru_cache(maxsize=4096)
def verbs_of(noun: str) -> frozenset[str]:
    """Return the lemmas of the verbs from which a noun in lower case is derived.

    A noun that is a verb too counts itself. What is left of a noun without its ending counts only
    if the lexicon knows it as a verb.
    """
    forms = {noun, lemma(noun)}
    return frozenset(verb for form in forms for verb in _verbs(form))


def _verbs(noun: str) -> Iterator[str]:
    yield from _IRREGULAR.get(noun, ())
    if is_verb(noun):
        yield noun

    for ending, verb_endings in _ENDINGS.items():
        left = noun.removesuffix(ending)
        if left == noun or len(left) < _LEAST_LEFT:
            continue

        for verb_ending in verb_endings:
            verb = left + verb_ending.removeprefix(_NOTHING)
            if is_verb(verb):
                yield verb


def prepare() -> None:
    """Read the dictionaries, so that the first question need not wait; any thread may call it."""
    _tagged("")
    lemma(next(iter(_tags())))


@lru_cache(maxsize=4096)
def _english(word: str) -> Speech:
    closed = _CLOSED["en"].get(word)
    if closed is not None:
        return closed

    return _kind(_tag(word), _PENN_TAGS)


def _kind(tag: str, kinds: Mapping[str, Speech]) -> Speech:
    """Return the kind of word of the longest listed beginning of the tag."""
    for size in range(len(tag), 0, -1):
        beginning = tag[:size]
        if beginning in kinds:
            return kinds[beginning]

    return "unknown"


def _tag(word: str) -> str:
    """Return the Penn tag of a lower-case form, else that of its lemma; empty without either."""
    tags = _tags()
    if word in tags:
        return tags[word]

    base = lemma(word)
    tag = tags.get(base, "")
    if tag == "VB" and word.endswith(_PAST):
        return "VBN"

    return tag


def _forms(base: str) -> Iterator[str]:
    """Yield the regular past forms and participles of a verb."""
    stems = [base]
    if base:
        stems = [base.removesuffix("e"), base + base[-1], base]

    for stem in stems:
        yield stem + _PAST
        yield stem + "ing"


def _tagged(text: str) -> list[tuple[str, str]]:
    """Return the words of a Chinese text with their tags."""
    with _TURN:  # importing reads the dictionary
        import rjieba

    return rjieba.tag(text, False)


def _tags() -> dict[str, str]:
    """Return the most frequent Penn tag of each English form in lower case."""
    with _TURN:
        return _read_tags()


@lru_cache(maxsize=1)
def _read_tags() -> dict[str, str]:
    # The package itself is not imported: it would bring far more than its lexicon.
    path = Path(str(distribution("textblob").locate_file("textblob/en/en-lexicon.txt")))
    tags: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        form, _, tag = line.strip().partition(" ")
        lowered = form.lower()
        # A form in lower case counts before one that is only capitalised.
        if form.islower() or (form.istitle() and lowered not in tags):
            tags[lowered] = tag

    return tags
