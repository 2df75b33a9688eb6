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
lacking                           says that there are no rows elsewhere

Words of follow-ups, which change an earlier request:

instead                           comes before what replaces something, or ends the clause
instead_of                        comes before what is replaced
replacing                         comes before what is replaced, and then `with`
also split                        add to what there is
restriction                       names the conditions that there are
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from common.word_files import Languages
from knowledge.language.atoms import key_of
from rules.words.vocabulary import INTENTS, Intent

_WORDS = Languages(Path(__file__).parent)
CLAUSE = "clause:"
"""The kinds of clauses' words begin with it; all others are kinds of questions' words."""


def _entries(table: str) -> Iterator[tuple[str, str]]:
    for words in (_WORDS.english, _WORDS.chinese):
        for kind, phrases in words.under(table).items():
            for phrase in phrases:
                yield phrase, kind


def _impossible_entries() -> Iterator[tuple[str, str]]:
    for words in (_WORDS.english, _WORDS.chinese):
        for phrase in words.phrases("impossible.not_a_transformation"):
            yield phrase, "impossible"


def truth_operator(word: str) -> str | None:
    """Return the operator of a column that is said to be true or false; None for other words."""
    for words in (_WORDS.english, _WORDS.chinese):
        for operator, phrases in words.under("truth").items():
            if word.lower() in phrases:
                return operator

    return None


def means_having(word: str) -> bool:
    """Tell whether the English word before a table says that there are rows of it."""
    return word.lower() in _WORDS.english.phrases("owning.having")


def _period_entries() -> Iterator[tuple[str, str]]:
    for words in (_WORDS.english, _WORDS.chinese):
        for unit, phrases in words.under("periods").items():
            for phrase in phrases:
                yield phrase, unit


@cache
def clause_intents(*, is_follow_up: bool = False) -> dict[str, Intent]:
    """Return the meaning of words in requests by their comparison key.

    What a clause's word means comes before what it means in a question; in a follow-up the words
    that change a request come before both.
    """
    own: dict[str, Intent] = {}
    changing = _entries("edits") if is_follow_up else ()
    for phrase, kind in (*changing, *_entries("clauses"), *_impossible_entries()):
        key = key_of(phrase)
        if kind == "skipped" and key in INTENTS:
            continue  # in questions it has a kind, which says more than that it is skipped

        own.setdefault(key, Intent(CLAUSE + kind))

    for phrase, unit in _period_entries():
        own.setdefault(key_of(phrase), Intent("bucket", unit))

    return INTENTS | own
