"""Tables by words that are none of their names: the verbs of their events, and single Chinese characters."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from common.meanings import TableKey
from common.values import Table
from knowledge.naming import comment_names, core_words, english_words, has_han, table_names
from rules.schema.facts import Facts
from rules.schema.links import Link
from rules.words.speech import verbs_of

_WHOLE = 0.9  # the quality of a name by which the table itself is called
_LONGEST = 4  # of a longer name the first or last character says little
_VERB, _VERB_CHARACTER, _SHORT_NAME = 0.7, 0.62, 0.7  # qualities


@dataclass(frozen=True)
class SpokenTables:
    """Links to tables.

    Attributes:
        verbs: the one table of events that each English verb, by its lemma, leads to: `reserve` to reservations.
        verb_characters: the one whose name holds each character, by which Chinese verbs lead to it: `演` to 演出场次.
        short_names: the one thing whose name begins or ends with each character: 车 of 教练车.
    """

    verbs: Mapping[str, Link]
    verb_characters: Mapping[str, Link]
    short_names: Mapping[str, Link]


def spoken_tables(tables: Mapping[TableKey, Facts]) -> SpokenTables:
    """The tables by such words; one that leads to several tables leads to none."""
    found = [facts for facts in tables.values() if facts.table.kind == "table"]
    events = [facts.table for facts in found if not facts.is_entity]
    things = [facts.table for facts in found if facts.is_entity]
    return SpokenTables(
        _leading_to(events, _verbs, _VERB),
        _leading_to(events, _verb_characters, _VERB_CHARACTER),
        _leading_to(things, _short_names, _SHORT_NAME),
    )


def _leading_to(tables: Iterable[Table], words_of: Callable[[Table], Iterable[str]], quality: float) -> dict[str, Link]:
    """A link for each word that leads to one table alone."""
    found = defaultdict[str, set[TableKey]](set)
    for table in tables:
        for word in words_of(table):
            found[word].add(table.key)
    return {word: Link("table", key, None, None, quality, word) for word, (key, *others) in found.items() if not others}


def _verbs(table: Table) -> Iterator[str]:
    """Those of the last words of its English names: those of lines (`order_items`) are no events of their own."""
    for name in (table.name, *comment_names(table.comment)):
        for noun in core_words(english_words(name))[-1:] if not has_han(name) else ():
            yield from verbs_of(noun)


def _verb_characters(table: Table) -> Iterator[str]:
    """Those of its shortest name, which is without what only says that it is a table."""
    return (char for char in min(_han_names(table), key=len, default="") if has_han(char))


def _short_names(table: Table) -> Iterator[str]:
    for name in _han_names(table):
        if 1 < len(name) <= _LONGEST:
            yield from (name[0], name[-1])


def _han_names(table: Table) -> list[str]:
    return [name for name, quality in table_names(table).items() if quality >= _WHOLE and has_han(name)]
