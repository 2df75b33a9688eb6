"""How well the names and values of a catalogue explain a question, to compare catalogues by."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from common.cpu_clock import within
from common.inquiry import Inquiry
from common.meanings import TableKey
from common.values import Table
from knowledge.language.cutting import has_han
from knowledge.language.inflection import singular, stem
from knowledge.language.question_terms import is_translated
from knowledge.tables.question_coverage import telling_words
from rules.linking.foreign_names import (
    hidden_kinds,
    is_foreign,
    names_by_translation,
    untranslated,
)
from rules.linking.link_strength import NameKind, link_strength, name_kind
from rules.linking.mark import Mark
from rules.linking.marks import marks_of
from rules.schema.lexicon import lexicon_for
from rules.schema.links import Link
from rules.words.limits import STEP_S, with_bounded_questions

_THINGS: frozenset[NameKind] = frozenset({"table", "value"})
_ALSO_ASKS = 0.8  # what a name counts that is a word of questions as well: "total", "most"
_WHOLE = 0.95  # least quality of such a name: the "list" of a wish list only asks
_OTHER_FORM = 0.85  # what a name counts that is another word of the same stem
_HAN = 0.5  # a character, beside a word of another language
_NEAR = 0.1  # by which a name may fit a word less well than the best one
_KNOWN = 0.5  # how well a word must be explained for it to tell less of the other catalogues


@dataclass(frozen=True)
class ExplainedWords:
    """The words of a question that name something in a catalogue.

    Attributes:
        how_well: how well each is explained, from 0 to 1, by its place in the question.
        sizes: what each place of the question counts.
        words: the word or Chinese character at each place.
        kinds: what each place names, if something.
        unknown: the places of words that say what is asked for, and that nothing explains.
        translated: of a catalogue without names in the question's language, the places of words
            that name something by what the dictionary translates them to, and not otherwise.
        untranslated: of the unknown, the places of words that a catalogue without names in the
            question's language may know nevertheless, as no translation of them is known.
        hidden_kinds: of such a catalogue, what names that nothing translates are given to, near
            what the question names.
        is_foreign: whether the catalogue has no names in the question's language.
    """

    how_well: Mapping[int, float] = field(default_factory=dict)
    sizes: Mapping[int, float] = field(default_factory=dict)
    words: Mapping[int, str] = field(default_factory=dict)
    kinds: Mapping[int, Collection[NameKind]] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    translated: frozenset[int] = frozenset()
    untranslated: frozenset[int] = frozenset()
    hidden_kinds: frozenset[NameKind] = frozenset()
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

    def is_anchored(self, least: float) -> bool:
        """Tell whether any word is explained by `least`."""
        return any(how_well >= least for how_well in self.how_well.values())

    def named_tables(self, least: float) -> frozenset[str]:
        """Return the words that name tables by `least`, whichever tables these are."""
        places = [
            place
            for place, kinds in self.kinds.items()
            if "table" in kinds and self.how_well.get(place, 0.0) >= least
        ]
        words = (map(self.words.__getitem__, one) for one in _stretches(places))
        return frozenset("".join(one) for one in words)

    def is_translated_wholly(self, least: float) -> bool:
        """Tell whether each word names something, by `least`, some as the dictionary says."""
        if not self.translated or self.unknown:
            return False

        return all(how_well >= least for how_well in self.how_well.values())

    def may_hide(self, other: "ExplainedWords", least: float, part: float) -> bool:
        """Tell whether it may know, by names that nothing translates, what `other` has more of.

        Args:
            least, part: as for `is_as_much`.
        """
        lacking = [
            place
            for place, how_well in other.how_well.items()
            if how_well >= least and self.how_well.get(place, 0.0) < part * how_well
        ]
        is_hidden = False
        for stretch in _stretches(lacking):
            if self._may_hide(stretch, other):
                is_hidden = True
            elif not all(map(self._only_asks, stretch)):  # a part of a name may be a word that asks
                return False

        return is_hidden

    def _may_hide(self, stretch: Sequence[int], other: "ExplainedWords") -> bool:
        """Tell whether it may know by another name what `other` knows at these places."""
        kinds = {kind for place in stretch for kind in other.kinds[place]}
        if kinds.isdisjoint(_THINGS) and self._shares_value(other):
            return True
        if self.hidden_kinds.isdisjoint(kinds):
            return False

        return not is_translated([self.words.get(place, "") for place in stretch])

    def _shares_value(self, other: "ExplainedWords") -> bool:
        """Tell whether both know a value of the question: then a column need not be named."""
        return any(
            "value" in kinds and "value" in other.kinds[place]
            for place, kinds in self.kinds.items()
        )

    def _only_asks(self, place: int) -> bool:
        return place in self.sizes and place not in self.how_well and place not in self.unknown


def _stretches(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield places that stand one after the other."""
    for _, group in itertools.groupby(enumerate(sorted(places)), lambda one: one[1] - one[0]):
        yield [place for _, place in group]


def explained_words(inquiry: Inquiry) -> ExplainedWords:
    """Return the words of the question that its catalogue explains."""
    inquiry = with_bounded_questions(inquiry)
    return within(STEP_S, lambda: _explained_words(inquiry), ExplainedWords())


def _explained_words(inquiry: Inquiry) -> ExplainedWords:
    lexicon = lexicon_for(inquiry)
    marks = marks_of(inquiry.question, lexicon)
    tables = inquiry.catalog.by_key
    how_well: dict[int, float] = {}
    sizes: dict[int, float] = {}
    for mark in marks:
        size = 1.0 if mark.text.isascii() else _HAN
        strength = _strength(mark, tables)
        for place in range(mark.start, mark.end):
            sizes[place] = size
            if strength > 0:
                how_well[place] = strength

    words = {
        place: word
        for mark in marks
        for place, word in zip(range(mark.start, mark.end), mark.words, strict=False)
    }
    unknown = list(filter(_says_what_is_asked, marks))
    is_han = has_han(inquiry.question)
    found = ExplainedWords(how_well, sizes, words, _kinds(marks, tables), _places(unknown))
    if not is_foreign(inquiry.catalog, is_han=is_han):
        return found

    names = names_by_translation(marks, lexicon, tables, is_han=is_han)
    translated = {
        place: strength
        for place, strength in names.how_well.items()
        if strength > how_well.get(place, 0.0)
    }
    unknown = [mark for mark in unknown if translated.keys().isdisjoint(_places([mark]))]
    return replace(
        found,
        how_well=how_well | translated,
        translated=frozenset(translated),
        unknown=_places(unknown),
        untranslated=_places(untranslated(unknown, is_han=is_han)),
        hidden_kinds=hidden_kinds(marks, names.tables, lexicon, inquiry.catalog),
        is_foreign=True,
    )


def _says_what_is_asked(mark: Mark) -> bool:
    """Tell whether it is an unknown word that the question can't do without."""
    return mark.is_unknown and not mark.is_skippable and bool(telling_words(mark.text))


def _places(marks: Iterable[Mark]) -> frozenset[int]:
    return frozenset(place for mark in marks for place in range(mark.start, mark.end))


def _kinds(
    marks: Iterable[Mark], tables: Mapping[TableKey, Table]
) -> Mapping[int, Collection[NameKind]]:
    """Return what the words name best, by place."""
    found = {}
    for mark in marks:
        best = [link for link in mark.links if link.quality >= mark.quality - _NEAR]
        kinds = {name_kind(link, tables) for link in best}
        found.update(dict.fromkeys(range(mark.start, mark.end), kinds))

    return found


def _strength(mark: Mark, tables: Mapping[TableKey, Table]) -> float:
    is_han = has_han(mark.text)
    links: Sequence[Link] = mark.links
    if mark.intent is not None or not telling_words(mark.text):
        # A stored value is no sign where the word asks: monthly fees, and the fees by month.
        links = [link for link in links if link.quality >= _WHOLE and link.kind != "value"]

    strength = max(
        (
            link_strength(link, tables, is_han=is_han) * _as_written(link, mark.text)
            for link in links
        ),
        default=0.0,
    )
    return strength * _ALSO_ASKS if mark.intent is not None else strength


def _as_written(link: Link, text: str) -> float:
    """Return what a name counts that may be another word of the same stem: books and bookings."""
    written = singular(text.split(" ")[-1].lower())
    named = singular(link.spelling.split(" ")[-1].lower())
    is_other_word = written != named and stem(written) == stem(named)
    return _OTHER_FORM if is_other_word else 1.0


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
