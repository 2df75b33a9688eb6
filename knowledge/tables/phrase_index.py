"""Finds what the words under the cursor may become: names of tables and columns, stored values."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from common.values import Catalog, Column, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import meant_names, spoken_name
from knowledge.values.personal_data import open_values

PhraseKind = Literal["table", "column", "value"]
_ORDER: tuple[PhraseKind, ...] = ("table", "column", "value")
_MOST_PHRASES = 50_000  # of one catalogue
_MOST_VALUES = 50  # of one column
_LONGEST = 60  # characters of a phrase
_MOST_BACK = 24  # characters before the cursor that may be the beginning of a phrase
_LEAST_LETTERS = 2  # of a word in letters, of which one says too little
_MOST_LOOKED_AT = 200  # phrases with one beginning
_LAST = "\U0010ffff"


@dataclass(frozen=True)
class Phrase:
    """Words that mean something here.

    Attributes:
        thing: what is called so; of several names of one thing, one is offered.
        about: the table of a column, the column of a value; empty for a table.
    """

    kind: PhraseKind
    text: str
    thing: tuple[str, ...]
    about: str = ""


@dataclass(frozen=True)
class PhraseMatch:
    """A phrase, and how many characters before the cursor it takes the place of."""

    phrase: Phrase
    replaced: int


class PhraseIndex:
    """All phrases of a catalogue by their beginnings and those of their words."""

    def __init__(self, catalog: Catalog) -> None:
        phrase_by_key: dict[str, Phrase] = {}
        for phrase in islice(_phrases(catalog), _MOST_PHRASES):
            folded = phrase.text.casefold()
            if folded and len(folded) <= _LONGEST:
                phrase_by_key.setdefault(folded, phrase)

        entries = [
            (key, phrase) for text, phrase in phrase_by_key.items() for key in _beginnings(text)
        ]
        entries.sort(key=lambda entry: entry[0])
        self._keys = [key for key, _ in entries]
        self._phrases = [phrase for _, phrase in entries]

    def completions(self, text: str, limit: int, *, with_values: bool) -> list[PhraseMatch]:
        """Return what the longest end of `text` that begins a phrase may become, at most `limit`.

        Args:
            with_values: whether stored values may be shown.
        """
        match_by_phrase: dict[tuple[str, ...], PhraseMatch] = {}
        for beginning in _open_beginnings(text):
            matches = [
                phrase
                for phrase in self._starting(beginning.casefold())
                if with_values or phrase.kind != "value"
            ]
            matches.sort(key=lambda phrase: (_ORDER.index(phrase.kind), len(phrase.text)))
            for phrase in matches:
                match_by_phrase.setdefault(phrase.thing, PhraseMatch(phrase, len(beginning)))

            if match_by_phrase:
                break

        return list(match_by_phrase.values())[:limit]

    def _starting(self, beginning: str) -> Iterator[Phrase]:
        start = bisect_left(self._keys, beginning)
        end = bisect_left(self._keys, beginning + _LAST, start)
        for phrase in self._phrases[start : min(end, start + _MOST_LOOKED_AT)]:
            if phrase.text.casefold() != beginning:
                yield phrase


PHRASES = IndexPart(lambda index: _index(index), ignores_row_counts=True)


def _index(index: CatalogIndex) -> PhraseIndex:
    return PhraseIndex(index.catalog)


def _beginnings(folded: str) -> Iterator[str]:
    """Yield the phrase, and what is left of it from each further word."""
    yield folded
    for place, letter in enumerate(folded):
        if letter == " ":
            yield folded[place + 1 :]


def _open_beginnings(text: str) -> Iterator[str]:
    """Yield the ends of a text in which a phrase may have begun, the longest first."""
    for start in range(max(0, len(text) - _MOST_BACK), len(text)):
        end = text[start:]
        if end[0].isspace():
            continue

        before = text[start - 1 : start]
        is_word_start = not before.isalnum() or has_han(before)
        is_long_word = is_word_start and len(end) >= _LEAST_LETTERS
        if has_han(end[0]) or is_long_word:
            yield end


def _phrases(catalog: Catalog) -> Iterator[Phrase]:
    """Yield tables first, then columns, then values, so that a long catalogue loses values."""
    for table in catalog.tables:
        for name in _names(table):
            yield Phrase("table", name, table.key)

    for table in catalog.tables:
        for column in table.columns:
            for name in _names(column):
                yield Phrase("column", name, (*table.key, column.name), _name(table, name))

    for table in catalog.tables:
        for column in table.columns:
            for value in _values(table, column):
                place = (*table.key, column.name, value)
                yield Phrase("value", value, place, _name(column, value))


def _names(thing: Table | Column) -> tuple[str, ...]:
    """Return what people call it in both languages, each name once."""
    spoken = (spoken_name(thing, "zh"), spoken_name(thing, "en"))
    return tuple(dict.fromkeys((*spoken, *meant_names(thing))))


def _name(thing: Table | Column, beside: str) -> str:
    """Return what it is called in the language of the words beside it."""
    return spoken_name(thing, "zh" if has_han(beside) else "en")


def _values(table: Table, column: Column) -> Iterator[str]:
    stored = open_values(table, column)
    yield from stored[:_MOST_VALUES]
    if column.meaning is None or column.meaning.is_sensitive:
        return

    for value in column.meaning.values[:_MOST_VALUES]:
        yield from (*value.names.zh, *value.names.en)
