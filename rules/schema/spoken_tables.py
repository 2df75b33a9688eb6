"""Tables by words that are none of their names: the verbs of their events, and single Chinese characters."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
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

_Tables = Mapping[TableKey, Facts]
_Found = defaultdict[str, set[TableKey]]


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


def spoken_tables(tables: _Tables) -> SpokenTables:
    """The tables by such words; one that leads to several tables leads to none."""
    return SpokenTables(
        _only(_by_verbs(tables), _VERB),
        _only(_by_verb_characters(tables), _VERB_CHARACTER),
        _only(_by_short_names(tables), _SHORT_NAME),
    )


def _by_verbs(tables: _Tables) -> _Found:
    found: _Found = defaultdict(set)
    for table in _those(tables, are_entities=False):
        for noun in _heads(table):
            for verb in verbs_of(noun):
                found[verb].add(table.key)
    return found


def _by_verb_characters(tables: _Tables) -> _Found:
    found: _Found = defaultdict(set)
    for table in _those(tables, are_entities=False):
        for char in min(_han_names(table), key=len, default=""):  # without what only says that it is a table
            if has_han(char):
                found[char].add(table.key)
    return found


def _by_short_names(tables: _Tables) -> _Found:
    found: _Found = defaultdict(set)
    for table in _those(tables, are_entities=True):
        for name in _han_names(table):
            if 1 < len(name) <= _LONGEST:
                found[name[0]].add(table.key)
                found[name[-1]].add(table.key)
    return found


def _those(tables: _Tables, *, are_entities: bool) -> Iterator[Table]:
    return (one.table for one in tables.values() if one.table.kind == "table" and one.is_entity == are_entities)


def _han_names(table: Table) -> list[str]:
    return [name for name, quality in table_names(table).items() if quality >= _WHOLE and has_han(name)]


def _heads(table: Table) -> Iterator[str]:
    """The last words of the table's English names: those of lines (`order_items`) are no events of their own."""
    for name in (table.name, *comment_names(table.comment)):
        if not has_han(name):
            yield from core_words(english_words(name))[-1:]


def _only(found: _Found, quality: float) -> dict[str, Link]:
    """A link for each word that leads to one table alone."""
    return {
        word: Link("table", next(iter(keys)), None, None, quality, word)
        for word, keys in found.items()
        if len(keys) == 1
    }
