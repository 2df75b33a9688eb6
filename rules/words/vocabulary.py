"""Words of the two languages that say what to do with the data, as tables: no word here belongs to anybody's domain.

Each key is (kind, argument) of an `Intent`; each text lists phrases separated by `|`. Kinds:

    noise   says nothing that changes the answer      of      ties a noun to the one it belongs to
            (`rows`: except that rows are counted)
    list    wants rows                                 which   wants the things themselves
    count sum avg max min share distinct               aggregates
    each by bucket trend                               groups (`kind`: by what they are; `sort`: that, or each of them)
    super rank top                                     order and limit
    cmp between not null like and or range with        conditions
    unit    measure word after a number                compare  wants two things side by side
    inclusion  groups without rows count as well; elsewhere many of these words mean something else
    why …   what rules can't answer (`unsupported`, the argument names it)
"""

import calendar
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from knowledge.atoms import key_of
from rules.words.chinese_words import CHINESE
from rules.words.english_words import ENGLISH


@dataclass(frozen=True)
class Intent:
    """What a word asks for; see the module's table of kinds."""

    kind: str
    arg: str = ""


# Kinds whose English phrases may have an article before them.
_ARTICLED = ("super", "sum", "avg", "max", "min", "count", "share", "top")


def phrases_of(*tables: Mapping[tuple[str, str], str]) -> dict[str, Intent]:
    """Intent by comparison key (exact form); later tables do not override earlier ones."""
    phrases: dict[str, Intent] = {}
    for table in tables:
        for (kind, arg), text in table.items():
            for phrase in text.split("|"):
                if kind in _ARTICLED and phrase.isascii():
                    phrases.setdefault(f"the {phrase}", Intent(kind, arg))
                phrases.setdefault(key_of(phrase) if phrase.isalnum() or " " in phrase else phrase, Intent(kind, arg))
    return phrases


def _of_kind(kind: str, *tables: Mapping[tuple[str, str], str]) -> Iterator[dict[tuple[str, str], str]]:
    for table in tables:
        yield {key: text for key, text in table.items() if key[0] == kind}


INCLUSIONS = phrases_of(*_of_kind("inclusion", ENGLISH, CHINESE))
"""What words of an inclusion ("including those without orders") do in it, by comparison key."""
INTENTS = phrases_of(ENGLISH, CHINESE)
"""Intent by comparison key (exact form); later tables do not override earlier ones."""


def common_phrases() -> Iterator[str]:
    """Phrases that any question may hold, whatever it is about; verbs are not among them, since they name events."""
    for (kind, _), text in (*ENGLISH.items(), *CHINESE.items()):
        if kind != "verb":
            yield from text.split("|")
    for names in (calendar.month_name, calendar.day_name, calendar.month_abbr, calendar.day_abbr):
        yield from names
