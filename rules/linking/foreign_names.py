"""What a catalogue knows of a question in a language in which it has no names.

A word may be known by its translation. If no translation of it is known, it may be known by a name
that nothing translates either.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from common.meanings import TableKey
from common.values import Catalog, Table
from knowledge.language.cutting import has_han
from knowledge.language.question_terms import has_translation, is_translated, translations_in
from knowledge.language.spoken_names import BORROWED, english_words
from rules.linking.link_strength import NameKind, column_kind, has_name, link_strength
from rules.linking.mark import Mark
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link

_LEAST_NAMED = 0.1  # of the tables, in a language in which the catalogue has names
_TRANSLATED = 0.95  # what a name counts that the dictionary translates
_WHOLE_NAME = 0.97  # least quality of a table's whole name
_PART = 0.8  # what a part of a name counts, such as `goods` of `dangerous_goods`
_MANY = 0.2  # of the tables, if their names begin with the same word that says nothing
_ANCHOR = 0.9 * BORROWED  # least quality of a table's name for its neighbours to be looked at


def is_foreign(catalog: Catalog, *, is_han: bool) -> bool:
    """Tell whether hardly any table has a name in Chinese, or in another language."""
    least = math.ceil(_LEAST_NAMED * len(catalog.tables))
    named = (table for table in catalog.tables if has_name(table, is_han=is_han))
    return len(list(islice(named, least))) < least


def strengths_by_translation(
    marks: Sequence[Mark], lexicon: Lexicon, tables: Mapping[TableKey, Table]
) -> dict[int, float]:
    """Return how well the dictionary's translations of Chinese words name something, by place."""
    found: dict[int, float] = {}
    beginnings = _shared_beginnings(tables.values())
    for run in _runs(filter(_may_be_named, marks)):
        text = "".join(mark.text for mark in run)
        first = run[0].start
        if len(text) != run[-1].end - first:  # not a character for each place
            continue

        for start, end, phrase in translations_in(text):
            links = [link for link in lexicon.find(phrase) if link.kind != "value"]
            strengths = (
                link_strength(link, tables, is_han=False) * _share(link, beginnings)
                for link in links
            )
            strength = max(strengths, default=0.0)
            for place in range(first + start, first + end):
                if strength > found.get(place, 0.0):
                    found[place] = strength

    return found


def _share(link: Link, beginnings: Collection[str]) -> float:
    """Return what a translation counts: less where it is a part of a table's name."""
    if link.kind == "column" or link.quality >= _WHOLE_NAME:
        return _TRANSLATED

    begins_alike = english_words(link.table[1])[0] in beginnings
    return _TRANSLATED if begins_alike else _TRANSLATED * _PART


def _shared_beginnings(tables: Collection[Table]) -> frozenset[str]:
    """Return the words with which the names of many tables begin, such as `erp`."""
    words = (english_words(table.name) for table in tables)
    counts = Counter(named[0] for named in words if len(named) > 1)
    least = max(2, _MANY * len(tables))
    return frozenset(word for word, count in counts.items() if count >= least)


def _may_be_named(mark: Mark) -> bool:
    if mark.number is not None or mark.date is not None or not has_han(mark.text):
        return False

    return mark.intent is None


def _runs(marks: Iterable[Mark]) -> Iterator[list[Mark]]:
    """Yield the marks that stand one right after the other."""
    run: list[Mark] = []
    for mark in marks:
        if run and run[-1].end != mark.start:
            yield run
            run = []

        run.append(mark)

    if run:
        yield run


def untranslated(unknown: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the Chinese words that, with those beside them, are not translated as a whole."""
    for run in _runs(unknown):
        text = "".join(mark.text for mark in run)
        if has_han(text) and not is_translated(text):
            yield from run


def hidden_kinds(marks: Sequence[Mark], lexicon: Lexicon, catalog: Catalog) -> frozenset[NameKind]:
    """Return what has a name that nothing translates, near the tables that the marks name.

    Near a table are its columns, those of the tables that it refers to, directly or not, and the
    tables themselves that can be joined to it.
    """
    named = {
        link.table
        for mark in marks
        for link in mark.links
        if link.kind == "table" and link.quality >= _ANCHOR
    }
    above = {table for key in named for table in lexicon.graph.above(key)}
    below = {table for key in named for table in lexicon.graph.below(key)}
    tables = [table for table in catalog.tables if table.key in above | below]
    kinds: set[NameKind] = set()
    if not all(has_translation(table.name) for table in tables):
        kinds.add("table")

    for table in tables:
        if table.key in above:
            kinds.update(_hidden_columns(table))

    return frozenset(kinds)


def _hidden_columns(table: Table) -> Iterator[NameKind]:
    for column in table.columns:
        if not has_translation(column.name):
            yield column_kind(column)
