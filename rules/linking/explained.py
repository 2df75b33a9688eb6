"""How well the names and values of a catalogue explain a question, to compare catalogues by."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.values import Catalog, Column, Table
from knowledge.language.cutting import has_han
from knowledge.language.question_terms import is_translated
from knowledge.language.spoken_names import BORROWED, comment_names, meant_names
from knowledge.tables.question_coverage import telling_words
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.lexicon import lexicon_for
from rules.schema.links import Link
from rules.words.limits import STEP_S, shortened

_OF_COLUMN = 0.9  # of a table or a value, which tell more of what a question is about
_ALSO_ASKS = 0.8  # what a name counts that is a word of questions as well: "total", "most"
_WHOLE = 0.95  # least quality of such a name: the "list" of a wish list only asks
_HAN = 0.5  # a character, beside a word of another language
_LEAST_NAMED = 0.1  # of the tables, in a language in which the catalogue has names
_KNOWN = 0.5  # how well a word must be explained for it to tell less of the other catalogues


@dataclass(frozen=True)
class ExplainedWords:
    """The words of a question that name something in a catalogue.

    Attributes:
        how_well: how well each is explained, from 0 to 1, by its place in the question.
        sizes: what each place of the question counts.
        unknown: the places of words that say what is asked for, and that nothing explains.
        untranslated: of these, the places of words that a catalogue without names in the question's
            language may know nevertheless, as no translation of them is known.
        is_foreign: whether the catalogue has no names in the question's language.
    """

    how_well: Mapping[int, float] = field(default_factory=dict)
    sizes: Mapping[int, float] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    untranslated: frozenset[int] = frozenset()
    is_foreign: bool = False

    def is_as_much(
        self, other: "ExplainedWords", least: float, part: float, *, unless_understood: float = 0.0
    ) -> bool:
        """Tell whether it has a part, at least, of whatever `other` explains by `least`.

        Args:
            unless_understood: a word that `other` explains less well than this need only be
                understood here, if only as a word of questions.
        """
        for place, how_well in other.how_well.items():
            if how_well < unless_understood and self._only_asks(place):
                continue
            if how_well >= least and self.how_well.get(place, 0.0) < part * how_well:
                return False

        return True

    def _only_asks(self, place: int) -> bool:
        return place in self.sizes and place not in self.how_well and place not in self.unknown


def explained_words(inquiry: Inquiry) -> ExplainedWords:
    """Return the words of the question that its catalogue explains."""
    inquiry = shortened(inquiry)
    return within(STEP_S, lambda: _explained_words(inquiry), ExplainedWords())


def _explained_words(inquiry: Inquiry) -> ExplainedWords:
    how_well: dict[int, float] = {}
    sizes: dict[int, float] = {}
    unknown: list[Mark] = []
    tables = inquiry.catalog.by_key
    for mark in marks_of(inquiry.question, lexicon_for(inquiry)):
        size = 1.0 if mark.text.isascii() else _HAN
        strength = _strength(mark, tables)
        for place in range(mark.start, mark.end):
            sizes[place] = size
            if strength > 0:
                how_well[place] = strength
        if mark.is_unknown and not mark.is_skippable and telling_words(mark.text):
            unknown.append(mark)

    is_foreign = _is_foreign(inquiry.catalog, is_han=has_han(inquiry.question))
    untranslated = _places(_untranslated(unknown))
    return ExplainedWords(how_well, sizes, _places(unknown), untranslated, is_foreign)


def _places(marks: Iterable[Mark]) -> frozenset[int]:
    return frozenset(place for mark in marks for place in range(mark.start, mark.end))


def _untranslated(unknown: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the Chinese words that, with those beside them, are not translated as a whole."""
    runs: list[list[Mark]] = []
    for mark in unknown:
        if runs and runs[-1][-1].end == mark.start:
            runs[-1].append(mark)
        else:
            runs.append([mark])

    for run in runs:
        text = "".join(mark.text for mark in run)
        if has_han(text) and not is_translated(text):
            yield from run


def _is_foreign(catalog: Catalog, *, is_han: bool) -> bool:
    least = math.ceil(_LEAST_NAMED * len(catalog.tables))
    named = (table for table in catalog.tables if _has_name(table, is_han=is_han))
    return len(list(islice(named, least))) < least


def _strength(mark: Mark, tables: Mapping[TableKey, Table]) -> float:
    is_han = has_han(mark.text)
    links: Sequence[Link] = mark.links
    if mark.intent is not None or not telling_words(mark.text):
        links = [link for link in links if link.quality >= _WHOLE]

    strength = max((_strength_of(link, tables, is_han=is_han) for link in links), default=0.0)
    return strength * _ALSO_ASKS if mark.intent is not None else strength


def _strength_of(link: Link, tables: Mapping[TableKey, Table], *, is_han: bool) -> float:
    quality = link.quality
    table = tables[link.table]
    thing: Table | Column = table
    if link.column is not None:
        thing = table.column(link.column) or table

    if link.kind != "value" and not _has_name(thing, is_han=is_han):
        quality = min(1.0, quality / BORROWED)

    return quality * _OF_COLUMN if link.kind == "column" else quality


def _has_name(thing: Table | Column, *, is_han: bool) -> bool:
    """Tell whether it has a name in Chinese, or in another language.

    Where it has none, the translation of its name is as good.
    """
    return any(
        has_han(name) == is_han
        for name in (thing.name, *meant_names(thing), *comment_names(thing.comment))
    )


def explained_scores(explained: Mapping[str, ExplainedWords]) -> dict[str, float]:
    """Return how well each catalogue explains the question; only to be compared with one another.

    A word tells the less, the more of the catalogues explain it.
    """
    scores = dict.fromkeys(explained, 0.0)
    for place in {place for words in explained.values() for place in words.how_well}:
        weight = _weight(place, explained.values())
        for name, words in explained.items():
            scores[name] += weight * words.how_well.get(place, 0.0)

    return scores


def _weight(place: int, explained: Iterable[ExplainedWords]) -> float:
    catalogs = list(explained)
    knowing = sum(catalog.how_well.get(place, 0.0) >= _KNOWN for catalog in catalogs)
    size = max(catalog.sizes.get(place, 0.0) for catalog in catalogs)
    return size * math.log(1 + len(catalogs) / max(1, knowing))
