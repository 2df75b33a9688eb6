"""What a catalogue knows of a question in a language in which it has no names.

A word may be known by its translation. If no translation of it is known, it may be known by a name
that nothing translates either.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from common.cpu_clock import check
from common.meanings import TableKey
from common.values import Catalog, Table
from knowledge.language.cutting import has_han
from knowledge.language.question_terms import is_translated, translations_in
from knowledge.language.spoken_names import BORROWED, english_words
from rules.linking.link_strength import NameKind, column_kind, has_name, link_strength
from rules.linking.mark import Mark
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link

_LEAST_NAMED = 0.1  # of the tables, in a language in which the catalogue has names
_TRANSLATED = 0.95  # what a name counts that the dictionary translates
_WHOLE_NAME = 0.97  # least quality of a table's whole name
_LEAST_ASKING = 0.85  # the same of a name with a word that asks
_PART = 0.8  # what a part of a name counts, such as `goods` of `dangerous_goods`
_MANY = 0.2  # of the tables, if their names begin with the same word that says nothing
_ANCHOR = 0.9 * BORROWED  # least quality of a table's name for its neighbours to be looked at


def is_foreign(catalog: Catalog, *, is_han: bool) -> bool:
    """Tell whether hardly any table has a name in the question's language.

    Args:
        is_han: whether that is Chinese.
    """
    least = math.ceil(_LEAST_NAMED * len(catalog.tables))
    named = (table for table in catalog.tables if has_name(table, is_han=is_han))
    return len(list(islice(named, least))) < least


@dataclass(frozen=True)
class TranslatedNames:
    """Names that a question has by the dictionary's translations of its words.

    Attributes:
        how_well: by the places of the words.
        tables: those that are named by their whole names.
    """

    how_well: Mapping[int, float]
    tables: frozenset[TableKey]


def names_by_translation(
    marks: Sequence[Mark], lexicon: Lexicon, tables: Mapping[TableKey, Table], *, is_han: bool
) -> TranslatedNames:
    """Return what a question names by the dictionary's translations of its words.

    Words that ask are only part of whole names, beside others: the units of a `price per unit`.

    Args:
        is_han: whether the question is Chinese.
    """
    how_well: dict[int, float] = {}
    named: set[TableKey] = set()
    beginnings = _shared_beginnings(tables.values())
    for run in _runs(mark for mark in marks if _may_be_named(mark, is_han=is_han)):
        words = _words_by_place(run)
        asking = [mark.intent is not None for mark in run for _ in range(mark.start, mark.end)]
        first = run[0].start
        for start, end, phrase in translations_in(words):
            check()
            if all(asking[start:end]) or _is_piece(run, first + start, first + end):
                continue

            least = _LEAST_ASKING if any(asking[start:end]) else 0.0
            for link in lexicon.find(phrase):
                strength = link_strength(link, tables, is_han=not is_han)
                if link.kind == "value" or link.quality < least:
                    continue
                if link.kind == "table" and link.quality >= _WHOLE_NAME:
                    named.add(link.table)

                strength *= _share(link, beginnings)
                for place in range(first + start, first + end):
                    how_well[place] = max(strength, how_well.get(place, 0.0))

    return TranslatedNames(how_well, frozenset(named))


def _is_piece(run: Sequence[Mark], start: int, end: int) -> bool:
    """Tell whether a stretch is one character of a word, such as the room of a greenhouse."""
    if end - start > 1 or not has_han(run[0].text):
        return False

    return any(mark.start <= start < mark.end and mark.end - mark.start > 1 for mark in run)


def _words_by_place(run: Sequence[Mark]) -> list[str]:
    """Return the characters or words of marks, one for each place; none if that can't be."""
    words: list[str] = []
    for mark in run:
        words += mark.words

    return words if len(words) == run[-1].end - run[0].start else []


def _share(link: Link, beginnings: Collection[str]) -> float:
    """Return what a translation counts: less where it is a part of a table's name."""
    if link.kind == "column" or link.quality >= _WHOLE_NAME:
        return _TRANSLATED

    begins_alike = next(iter(english_words(link.table[1])), "") in beginnings
    return _TRANSLATED if begins_alike else _TRANSLATED * _PART


def _shared_beginnings(tables: Collection[Table]) -> frozenset[str]:
    """Return the words with which the names of many tables begin, such as `erp`."""
    words = (english_words(table.name) for table in tables)
    counts = Counter(named[0] for named in words if len(named) > 1)
    least = max(2, _MANY * len(tables))
    return frozenset(word for word, count in counts.items() if count >= least)


def _may_be_named(mark: Mark, *, is_han: bool) -> bool:
    if mark.number is not None or mark.date is not None or mark.literal is not None:
        return False

    return has_han(mark.text) == is_han


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


def untranslated(unknown: Sequence[Mark], *, is_han: bool) -> Iterator[Mark]:
    """Yield the words that, with those beside them, are not translated as a whole."""
    for run in _runs(mark for mark in unknown if _may_be_named(mark, is_han=is_han)):
        if not is_translated(_words_by_place(run)):
            yield from run


def hidden_kinds(
    marks: Sequence[Mark], by_translation: Collection[TableKey], lexicon: Lexicon, catalog: Catalog
) -> frozenset[NameKind]:
    """Return what has names, which may be other ones than is known, near the tables that are named.

    Near a table are its columns, those of the tables that it refers to, directly or not, and the
    tables themselves that can be joined to it.

    Args:
        by_translation: tables that are named by the dictionary's translations.
    """
    named = {
        link.table
        for mark in marks
        for link in mark.links
        if link.kind == "table" and link.quality >= _ANCHOR
    }
    named.update(by_translation)
    above = {table for key in named for table in lexicon.graph.above(key)}
    below = {table for key in named for table in lexicon.graph.below(key)}
    tables = [table for table in catalog.tables if table.key in above | below]
    kinds: set[NameKind] = {"table"} if len(tables) > len(named) else set()
    for table in tables:
        if table.key in above:
            kinds.update(map(column_kind, table.columns))

    return frozenset(kinds)
