"""Tables by words that are none of their names: the verbs of their events, and single Chinese
characters.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from common.meanings import TableKey
from common.values import Table
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import comment_names, core_words, english_words, table_names
from rules.schema.links import Link
from rules.schema.table_facts import Facts
from rules.words.speech import verbs_of

_WHOLE = 0.9  # the quality of a name by which the table itself is called
_LONGEST = 4  # of a longer name the first or last character says little
_VERB, _VERB_CHARACTER, _SHORT_NAME = 0.7, 0.62, 0.7  # qualities


@dataclass(frozen=True)
class SpokenTables:
    """Links to tables.

    Attributes:
        verbs: the one table of events that each English verb, by its lemma, leads to: `reserve` to
            reservations.
        verb_characters: the one whose name holds each character, by which Chinese verbs lead to it:
            `演` to 演出场次.
        short_names: the one thing whose name begins or ends with each character: 车 of 教练车.
    """

    verbs: Mapping[str, Link]
    verb_characters: Mapping[str, Link]
    short_names: Mapping[str, Link]


def spoken_tables(tables: Mapping[TableKey, Facts]) -> SpokenTables:
    """Return the tables by such words; a word that leads to several tables leads to none."""
    events: list[Table] = []
    things: list[Table] = []
    for facts in tables.values():
        if facts.table.kind != "table":
            continue
        if facts.is_entity:
            things.append(facts.table)
        else:
            events.append(facts.table)

    return SpokenTables(
        verbs=_leading_to(events, _verbs, _VERB),
        verb_characters=_leading_to(events, _verb_characters, _VERB_CHARACTER),
        short_names=_short_links(things, events),
    )


def _short_links(things: list[Table], events: list[Table]) -> dict[str, Link]:
    """Return a link for each character by which one thing alone is called, and no event.

    Where there are 车辆 as well, 车 are no 车主.
    """
    links = _leading_to([*things, *events], _short_names, _SHORT_NAME)
    keys = {table.key for table in things}
    return {name: link for name, link in links.items() if link.table in keys}


def _leading_to(
    tables: Iterable[Table], words_of: Callable[[Table], Iterable[str]], quality: float
) -> dict[str, Link]:
    """Return a link for each word that leads to one table alone."""
    tables_by_word = defaultdict[str, set[TableKey]](set)
    for table in tables:
        for word in words_of(table):
            tables_by_word[word].add(table.key)

    links: dict[str, Link] = {}
    for word, keys in tables_by_word.items():
        if len(keys) == 1:
            (key,) = keys
            links[word] = Link("table", key, None, None, quality, word)

    return links


def _verbs(table: Table) -> Iterator[str]:
    """Yield the verbs of the last words of its English names.

    Lines (`order_items`) are no events of their own, so they have none.
    """
    for name in (table.name, *comment_names(table.comment)):
        if has_han(name):
            continue

        nouns = core_words(english_words(name))
        if nouns:
            yield from verbs_of(nouns[-1])


def _verb_characters(table: Table) -> Iterator[str]:
    """Yield the characters of its shortest name, which lacks what only says that it is a table."""
    shortest = min(_han_names(table), key=len, default="")
    for char in shortest:
        if has_han(char):
            yield char


def _short_names(table: Table) -> Iterator[str]:
    for name in _han_names(table):
        if 1 < len(name) <= _LONGEST:
            yield name[0]
            yield name[-1]


def _han_names(table: Table) -> list[str]:
    names: list[str] = []
    for name, quality in table_names(table).items():
        if quality >= _WHOLE and has_han(name):
            names.append(name)

    return names
