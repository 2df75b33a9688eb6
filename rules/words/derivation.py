"""Verbs from which English nouns are derived: `reserve` of `reservation`, `deliver` of `delivery`.

The endings stand in `english.toml`; what is left of a noun counts only if the lexicon knows it as a verb.
"""

from collections.abc import Iterator
from functools import lru_cache

from rules.words import WORDS
from rules.words.speech import is_verb, lemma

_NOTHING = "-"
_ENDINGS = tuple(
    (ending, tuple("" if verb == _NOTHING else verb for verb in verbs))
    for ending, verbs in WORDS.english.under("derivation.endings").items()
)
_IRREGULAR = WORDS.english.under("derivation.irregular")
_LEAST_LEFT = 3  # letters


@lru_cache(maxsize=4096)
def verbs_of(noun: str) -> frozenset[str]:
    """The lemmas of the verbs from which `noun`, in lower case and any number, is derived, itself if it is one."""
    base = lemma(noun)
    return frozenset(verb for form in {noun, base} for verb in _verbs(form))


def _verbs(noun: str) -> Iterator[str]:
    yield from _IRREGULAR.get(noun, ())
    if is_verb(noun):
        yield noun
    for ending, verb_endings in _ENDINGS:
        left = noun.removesuffix(ending)
        if left != noun and len(left) >= _LEAST_LEFT:
            yield from (left + verb for verb in verb_endings if is_verb(left + verb))
