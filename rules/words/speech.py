"""Parts of speech and lemmas of words that nothing of the database explains, by kept dictionaries of both languages.

Chinese is cut and tagged by jieba's dictionary, which comes with the package `rjieba`. English words are tagged by
Brill's lexicon (the likeliest Penn tag of 94,000 forms), which comes with `textblob` and is read as the file it is, and
led back to lemmas by `simplemma`. Each is read once per process, by the first that asks: together half a second and
70 MB. `prepare` reads them where nobody waits.
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
from rules.words import WORDS

Speech = Literal[
    "noun", "proper noun", "verb", "adjective", "adverb", "pronoun", "preposition", "number", "measure", "particle",
    "courtesy", "decisive", "unknown",
]  # fmt: skip
"""What kind of word something is.

particle    a function word: conjunctions, auxiliaries, articles, interjections
preposition one that may say something: "outside Berlin" is not in Berlin
courtesy    said out of politeness ("kindly", 劳烦)
decisive    a function word that changes what is asked: negations, degrees, restrictions ("hardly", 仅)
measure     counts things (a Chinese measure word)
unknown     in no dictionary
"""


def _by_tag(tags: Mapping[Speech, str]) -> Mapping[str, Speech]:
    return {tag: kind for kind, listed in tags.items() for tag in listed.split()}


# jieba's tags by their beginnings, and Penn tags; the longest beginning counts.
_CHINESE_TAGS = _by_tag({
    "noun": "n vn j s t f an", "proper noun": "nr ns nt nz", "verb": "v", "adjective": "a b z", "adverb": "d",
    "pronoun": "r", "number": "m", "measure": "q", "preposition": "p", "particle": "c u y e o k",
})  # fmt: skip
_PENN_TAGS = _by_tag({
    "noun": "NN", "proper noun": "NNP", "verb": "VB", "adjective": "JJ", "adverb": "RB", "pronoun": "PRP WP",
    "number": "CD", "preposition": "IN", "particle": "DT CC TO MD PDT RP EX WDT WRB UH POS",
})  # fmt: skip
_LONGEST_NAME = 3  # characters of most Chinese names
_IN_GIVEN_NAMES: tuple[Speech, ...] = ("noun", "proper noun", "adjective", "adverb", "number", "unknown")
_PAST = WORDS.english.text("speech.past")
_CLOSED_KINDS: tuple[Speech, ...] = ("courtesy", "decisive", "particle")


def _closed(words: Words) -> Mapping[str, Speech]:
    return {word: kind for kind in _CLOSED_KINDS for word in words.get(f"speech.{kind}")}


_CLOSED: Mapping[Lang, Mapping[str, Speech]] = {"en": _closed(WORDS.english), "zh": _closed(WORDS.chinese)}
# Endings of nouns that are derived from verbs, each with what verbs have instead: `reservation`, `delivery`.
_ENDINGS, _NOTHING = WORDS.english.under("derivation.endings"), "-"
_IRREGULAR = WORDS.english.under("derivation.irregular")
_TURN = threading.Lock()  # what is read once is read by the first that needs it, while others wait
_LEAST_LEFT = 3  # letters of a noun without its ending


@dataclass(frozen=True)
class Word:
    """A Chinese word as the dictionary cuts it."""

    text: str
    speech: Speech


def part_of_speech(word: str, language: Lang) -> Speech:
    """What kind of word `word` is most often; an English word in any case and inflection.

    A Chinese text of several words is of the kind of the last one that is no particle, which carries the meaning.
    """
    if language == "en":
        return _english(word.lower())
    said = [part.speech for part in segmented(word)]
    return next((speech for speech in reversed(said) if speech != "particle"), said[-1] if said else "unknown")


@lru_cache(maxsize=4096)
def segmented(text: str) -> tuple[Word, ...]:
    """The words of a Chinese text without blanks, in order; together they are the text."""
    words = [Word(said, _CLOSED["zh"].get(said) or _kind(tag, _CHINESE_TAGS)) for said, tag in _tagged(text)]
    return tuple(_named(_doubled(words)))


def _doubled(words: Iterable[Word]) -> list[Word]:
    """The words; a verb that is said twice is one: 瞅瞅."""
    joined: list[Word] = []
    for word in words:
        if word.speech == "verb" and joined[-1:] == [word]:
            joined[-1] = Word(word.text * 2, "verb")
        else:
            joined.append(word)
    return joined


def _named(words: Sequence[Word]) -> Iterator[Word]:
    """The words; a name of one character and the one or two that follow it alone are somebody's name: 冯晨明."""
    place = 0
    while place < len(words):
        end = place + 1
        if words[place].speech == "proper noun" and len(words[place].text) == 1:
            while end < min(place + _LONGEST_NAME, len(words)) and _may_be_given(words[end]):
                end += 1
        yield words[place] if end == place + 1 else Word("".join(word.text for word in words[place:end]), "proper noun")
        place = end


def _may_be_given(word: Word) -> bool:
    return len(word.text) == 1 and word.speech in _IN_GIVEN_NAMES


@lru_cache(maxsize=4096)
def lemma(word: str) -> str:
    """The form under which dictionaries list an English word, in lower case: `buy` of `bought`, `city` of `cities`."""
    if not word:
        return ""
    with _TURN:  # the first look-up reads the dictionary
        import simplemma

        return simplemma.lemmatize(word.lower(), lang="en")


def is_participle(word: str) -> bool:
    """Whether an English word is a past form, which may say of which kind a thing is: a cancelled order."""
    return _tag(word.lower()) in ("VBD", "VBN")


def is_gerund(word: str) -> bool:
    """Whether an English word is a verb's form in -ing."""
    return _tag(word.lower()) == "VBG"


def is_verb(word: str) -> bool:
    """Whether an English word, in lower case, is the lemma of a verb: it is one most often, or has forms of verbs."""
    return _tag(word) in ("VB", "VBP") or (word in _tags() and may_be_verb(word))


@lru_cache(maxsize=4096)
def may_be_verb(word: str) -> bool:
    """Whether an English word, whatever it is most often, has forms that only verbs have: `rack`, `racked`."""
    base = lemma(word)
    return any(_tag(form).startswith("VB") for form in (word.lower(), base, *_forms(base)))


@lru_cache(maxsize=4096)
def verbs_of(noun: str) -> frozenset[str]:
    """The lemmas of the verbs from which `noun`, in lower case and any number, is derived, itself if it is one.

    What is left of a noun without its ending counts only if the lexicon knows it as a verb.
    """
    base = lemma(noun)
    return frozenset(verb for form in {noun, base} for verb in _verbs(form))


def _verbs(noun: str) -> Iterator[str]:
    yield from _IRREGULAR.get(noun, ())
    if is_verb(noun):
        yield noun
    for ending, verb_endings in _ENDINGS.items():
        left = noun.removesuffix(ending)
        if left != noun and len(left) >= _LEAST_LEFT:
            yield from filter(is_verb, (left + verb.removeprefix(_NOTHING) for verb in verb_endings))


def prepare() -> None:
    """Reads the dictionaries, so that the first question need not wait for them. It may be called by any thread."""
    _tagged("")
    lemma(next(iter(_tags())))


@lru_cache(maxsize=4096)
def _english(word: str) -> Speech:
    return _CLOSED["en"].get(word) or _kind(_tag(word), _PENN_TAGS)


def _kind(tag: str, kinds: Mapping[str, Speech]) -> Speech:
    return next((kinds[tag[:size]] for size in range(len(tag), 0, -1) if tag[:size] in kinds), "unknown")


def _tag(word: str) -> str:
    """The Penn tag of a lower-case form, by its lemma where the lexicon has only that; empty where it has neither."""
    tags = _tags()
    if word in tags or (base := lemma(word)) not in tags or base == word:
        return tags.get(word, "")
    tag = tags[base]
    return "VBN" if tag == "VB" and word.endswith(_PAST) else tag


def _forms(base: str) -> Iterator[str]:
    """The regular past form and participle of a verb."""
    stems = (base.removesuffix("e"), base + base[-1:]) if base else ()
    return (f"{stem}{end}" for stem in (*stems, base) for end in (_PAST, "ing"))


def _tagged(text: str) -> list[tuple[str, str]]:
    """The words of a Chinese text with their tags."""
    with _TURN:  # importing reads the dictionary
        import rjieba

    return rjieba.tag(text, False)


def _tags() -> dict[str, str]:
    """The likeliest Penn tag of each English form in lower case; a lower-case entry counts before a capitalised."""
    with _TURN:
        return _read_tags()


@lru_cache(maxsize=1)
def _read_tags() -> dict[str, str]:
    # The package itself is not imported: it would bring far more than its lexicon.
    path = Path(str(distribution("textblob").locate_file("textblob/en/en-lexicon.txt")))
    tags: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        form, _, tag = line.strip().partition(" ")
        if form.islower() or (form.istitle() and form.lower() not in tags):
            tags[form.lower()] = tag
    return tags
