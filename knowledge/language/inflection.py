"""Inflection of English words: the one place, since two sides that are compared must agree.

`stem`, `singular` and `root` make keys to compare by, each coarser or finer on purpose; `plural`
and `lemma` make words that can be shown or looked up in a dictionary.
"""

import re
import threading
from functools import lru_cache

import snowballstemmer

from knowledge.language.cutting import has_han
from knowledge.words import WORDS

_IRREGULAR = {
    form: base for base, forms in WORDS.english.under("irregular").items() for form in forms
}
_SHORT = 3  # letters of a word that is too short to lose an ending
_LONG_PLURAL = re.compile("(sses|shes|ches|xes|zzes)$")
_NO_PLURAL = ("ss", "us", "is")
_VERB_ENDINGS = ("ing", "ed")
_VOWEL = re.compile("[aeiouy]")
_KEPT_DOUBLE = "lsz"  # letters that end words twice: sell, pass
_STEMMERS = threading.local()  # one keeps the word it works on, so that two threads can't share it
_DICTIONARY = threading.Lock()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the key of a lower-case word without inflection: `hire`, `hired` and `hires` share it.

    It is mild, because it tells which column is named: `enrolled` and `enrollment` stay apart.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORT or not word.isascii():
        return word

    base = _without_verb_ending(singular(word))
    if len(base) <= _SHORT:
        return base
    if base.endswith("y"):
        return base[:-1] + "i"

    return base.removesuffix("e")


def _without_verb_ending(word: str) -> str:
    if not word.endswith(_VERB_ENDINGS):
        return word

    ending = next(filter(word.endswith, _VERB_ENDINGS))
    base = word.removesuffix(ending)
    is_word = len(base) >= _SHORT and _VOWEL.search(base)
    if not is_word:
        return word

    last = base[-1]
    is_doubled = last == base[-2] and last not in _KEPT_DOUBLE
    if is_doubled and len(base) > _SHORT:
        return base[:-1]

    return base


def singular(word: str) -> str:
    """Return a lower-case word without its plural ending; verbs keep theirs.

    The result is a word in most cases, so that names of tables and columns may be made of it.
    """
    is_plural = word.endswith("s") and not word.endswith(_NO_PLURAL)
    if len(word) <= _SHORT or not is_plural:
        return word
    if word.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if _LONG_PLURAL.search(word):
        return word[:-2]

    return word[:-1]


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """Return the stem that the words of one family share, by Snowball's English stemmer.

    It is bold (`enrolled` and `enrollment` share it), because it only ranks what is found. It
    begins with `~`, so that it is never taken for a word.
    """
    stemmer = getattr(_STEMMERS, "english", None)
    if stemmer is None:
        stemmer = _STEMMERS.english = snowballstemmer.stemmer("english")

    return f"~{stemmer.stemWord(word)}"


def plural(name: str) -> str:
    """Return an English name in the plural.

    Chinese names and abbreviations without vowels have none.
    """
    last = name.split(" ")[-1].lower()
    if has_han(name) or not _VOWEL.search(last):
        return name

    ends_in_s = re.search("(?<!s)s$", last)
    if ends_in_s and stem(last) != last:
        return name
    if re.search("[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    if re.search("(s|x|z|ch|sh)$", name):
        return f"{name}es"

    return f"{name}s"


@lru_cache(maxsize=4096)
def lemma(word: str) -> str:
    """Return the form under which dictionaries list an English word: `buy` of `bought`."""
    if not word:
        return ""

    with _DICTIONARY:  # the first look-up reads it
        import simplemma

        return simplemma.lemmatize(word.lower(), lang="en")
