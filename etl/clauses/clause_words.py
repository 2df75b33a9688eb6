"""The words of clauses, by kind, and what a word of a request means in one.

join left inner matched having    joins tables; `matched` and `having` make a join inner
on                                comes before the columns that a join goes by
keep exclude                      begins conditions
aggregate                         begins figures; those of questions (sum, by, monthly) as well
dedup                             leaves one row for each key
running previous                  computes over the periods of the result
fill empty                        fill what has no data
sink                              comes before the name of what is built
then                              stands between clauses
rows                              counts the rows of the base
each within table skipped         mean nothing by themselves
impossible                        asks for something that is no transformation
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from common.word_files import Languages
from knowledge.language.atoms import key_of
from rules.words.vocabulary import INTENTS, Intent

_WORDS = Languages(Path(__file__).parent)
CLAUSE = "clause:"
"""Kinds of this room's words begin with it; all others are those of questions."""


def _entries() -> Iterator[tuple[str, str]]:
    for words in (_WORDS.english, _WORDS.chinese):
        for kind, phrases in words.under("clauses").items():
            for phrase in phrases:
                yield phrase, kind
        for phrase in words.phrases("impossible.not_a_transformation"):
            yield phrase, "impossible"


@cache
def clause_intents() -> dict[str, Intent]:
    """Return the meaning of words in requests by their comparison key.

    What a clause's word means comes before what it means in a question.
    """
    own: dict[str, Intent] = {}
    for phrase, kind in _entries():
        key = key_of(phrase)
        if kind == "skipped" and key in INTENTS:
            continue  # what is known of it says at least as much
        own.setdefault(key, Intent(CLAUSE + kind))
    return INTENTS | own
