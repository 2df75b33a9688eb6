"""The tables whose events English verbs speak of, by words of the tables' names: `reserve` leads to reservations."""

from collections import defaultdict
from collections.abc import Iterator

from common.values import Table
from knowledge.naming import comment_names, core_words, english_words, has_han
from rules.schema.links import Link
from rules.schema.schema import Schema
from rules.words.derivation import verbs_of

_QUALITY = 0.7


def tables_of_verbs(schema: Schema) -> dict[str, Link]:
    """The one table of events that each verb, by its lemma, leads to; verbs of several tables lead to none."""
    found: defaultdict[str, dict[Table, None]] = defaultdict(dict)
    for table in schema.catalog.tables:
        if table.kind == "table" and not schema.facts[table.key].is_entity:
            for noun in _heads(table):
                for verb in verbs_of(noun):
                    found[verb][table] = None
    return {
        verb: Link("table", next(iter(tables)).key, None, None, _QUALITY, verb)
        for verb, tables in found.items()
        if len(tables) == 1
    }


def _heads(table: Table) -> Iterator[str]:
    """The last words of the table's English names: those of lines (`order_items`) are no events of their own."""
    for name in (table.name, *comment_names(table.comment)):
        if not has_han(name):
            yield from core_words(english_words(name))[-1:]
