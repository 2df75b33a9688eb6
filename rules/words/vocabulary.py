"""What words of a question ask for, read from the tables `intents` and `follow_ups` of the
languages.

The tables are divided by the kind of an `Intent` and, where a kind has several senses, by its
argument:

    noise   says nothing that changes the answer      of      ties a noun to the one it belongs to
            (`rows`: except that rows are counted)
    list    wants rows                                 which   wants the things themselves
    count sum avg max min share distinct               aggregates
    each by bucket trend                               groups (`kind`: by what they are; `sort`:
                                                       that, or each of them)
    super rank top                                     order and limit
    cmp between not null like and or range with        conditions
    unit    measure word after a number                compare  wants two things side by side
    inclusion                                          groups without rows count as well; see
                                                       `INCLUSIONS`
    median stddev percentile                           further aggregates
    calendar calendar_part                             weekdays and hours: a condition `part:value`,
                                                       or a group
    growth                                             change from one period to the next (`year`:
                                                       from a year before)
    both                                               all of several values
    running                                            figures added up from one period to the next
    unsupported                                        what rules can't answer; the argument names
                                                       it

In a follow-up, `noise` also has arguments, which say what is asked of the question before:

    lead end      the question goes on from what was said, when it begins or ends with them
    these their   speaks of the earlier question's things; `their` when it begins with them
    replace add   instead of, or beside, what the earlier question had
    only          restricts it further
    all all:dates takes restrictions away, or those of time
    reverse       turns its order round
    shift:…       moves its period by one unit; `last` at its end: else from today, where it has no
                  period
    filter        its conditions, of which something is said
"""

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from common.word_files import Words
from knowledge.language.atoms import key_of
from rules.words import WORDS

WordKind = Literal[
    "noise", "verb", "of", "list", "which", "date_which", "count", "sum", "avg", "avg_per", "max",
    "min", "distinct", "share", "each", "by", "by_end", "bucket", "date_part", "trend", "super",
    "rank", "top", "cmp", "between", "between_end", "not", "except_end", "null", "notnull", "like",
    "named", "and", "or", "with", "from", "to", "range", "compare", "deleted", "unit", "inclusion",
    "per_entity", "unsupported", "above_average", "below_average", "median", "stddev", "percentile",
    "running", "both", "growth", "calendar", "calendar_part",
]  # fmt: skip
_LANGUAGES = (WORDS.english, WORDS.chinese)
# Kinds whose English phrases may have an article before them.
_ARTICLED = ("super", "sum", "avg", "max", "min", "count", "share", "top")
_NO_ARGUMENT = "plain"


@dataclass(frozen=True)
class Intent:
    """The meaning of a word that asks; see the module's table of kinds."""

    kind: str
    arg: str = ""


def _entries(words: Words, table: str) -> Iterator[tuple[Intent, tuple[str, ...]]]:
    """Yield the intents of a table of words with their phrases; a key is `kind.argument`."""
    for place, phrases in words.under(table).items():
        kind, _, arg = place.partition(".")
        if kind not in get_args(WordKind):
            raise words.error(
                f"{table}.{place}", "is of no kind that `rules/words/vocabulary.py` knows"
            )

        yield Intent(kind, "" if arg == _NO_ARGUMENT else arg), phrases


def intents_of(table: str, *files: Words) -> dict[str, Intent]:
    """Return intent by comparison key (exact form).

    Raises:
        WordsError: a kind is unknown, or a phrase has two meanings.
    """
    intents: dict[str, Intent] = {}
    for words in files:
        for intent, phrases in _entries(words, table):
            for phrase in phrases:
                key = key_of(phrase) if phrase.isalnum() or " " in phrase else phrase
                if key in intents:
                    raise words.error(
                        f"{table}.{intent.kind}",
                        f"says {phrase!r}, which {intents[key]} has already",
                    )

                intents[key] = intent

    articled = {
        f"the {key}": intent
        for key, intent in intents.items()
        if intent.kind in _ARTICLED and key.isascii()
    }
    return articled | intents


INCLUSIONS = intents_of("inclusions", *_LANGUAGES)
"""What words of an inclusion ("including those without orders") do in it, by comparison key."""
INTENTS = INCLUSIONS | intents_of("intents", *_LANGUAGES)
"""Intent by comparison key (exact form); a word of an inclusion that also means something else
means that.
"""
FOLLOW_UP_INTENTS = INTENTS | intents_of("follow_ups", *_LANGUAGES)
"""`INTENTS` as a follow-up means them."""


def common_phrases() -> Iterator[str]:
    """Yield phrases that any question may hold, whatever it is about; verbs are not among them,
    since they name events.
    """
    for words in _LANGUAGES:
        for table in ("intents", "inclusions"):
            yield from (
                phrase
                for intent, phrases in _entries(words, table)
                if intent.kind != "verb"
                for phrase in phrases
            )

    for names in (calendar.month_name, calendar.day_name, calendar.month_abbr, calendar.day_abbr):
        yield from names
