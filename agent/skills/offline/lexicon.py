"""The words of one catalogue: every name of every table, column and stored value, and what each may refer to."""

import weakref
from collections.abc import Iterator
from dataclasses import replace

from agent.skills.offline.atoms import key_of
from agent.skills.offline.joins import Graph
from agent.skills.offline.links import Link, TableKey
from agent.skills.offline.phrases import borrowed_phrases, own_phrases
from agent.skills.offline.schema import Schema
from common.values import Catalog

MAX_PHRASE_ATOMS = 16
"""Longest phrase looked up, in atoms."""
_CLEAR = 0.6
_INFLECTION, _OTHER_WORD = 0.03, 0.25
_BORROWED_BESIDE_OWN = 0.25

_Identity = tuple[str, TableKey, str | None, str | None, str | None]


class Lexicon:
    """Phrases of one catalogue. Build it through `lexicon_of`, which keeps it as long as its catalogue lives."""

    def __init__(self, catalog: Catalog) -> None:
        self.schema = Schema(catalog)
        self.graph = Graph(self.schema)
        self._links: dict[str, dict[_Identity, Link]] = {}
        for table in catalog.tables:
            for phrase, link in own_phrases(self.schema, table):
                self._add(phrase, link)
        own = {
            key: {identity for identity, link in place.items() if link.quality >= _CLEAR}
            for key, place in self._links.items()
        }
        for table in catalog.tables:
            for phrase, link in borrowed_phrases(self.schema, table):
                rival = _has_rival(link, own.get(key_of(phrase, stems=True), set()))
                self._add(phrase, replace(link, quality=link.quality - _BORROWED_BESIDE_OWN) if rival else link)
        self.names: tuple[str, ...] = tuple(self._spoken_names())

    def links(self, key: str, stem_key: str) -> tuple[Link, ...]:
        """What a phrase may refer to, best first; `key` is its exact form, `stem_key` the form without inflection."""
        found = self._links.get(stem_key)
        if not found:
            return ()
        inflected = [
            link if link.spelling == key else replace(link, quality=link.quality - _inflection(link, key))
            for link in found.values()
            if link.spelling == key or not link.is_exact  # "Ann Lees" is not Ann Lee
        ]
        return tuple(sorted(inflected, key=lambda link: -link.quality))

    def find(self, phrase: str) -> tuple[Link, ...]:
        """What a whole phrase may refer to, best first."""
        return self.links(key_of(phrase), key_of(phrase, stems=True))

    def _add(self, phrase: str, link: Link) -> None:
        place = self._links.setdefault(key_of(phrase, stems=True), {})
        known = place.get(link.identity)
        if known is None or known.quality < link.quality:
            place[link.identity] = link

    def _spoken_names(self) -> Iterator[str]:
        """Names to suggest when a word is unknown."""
        for places in self._links.values():
            for link in places.values():
                if link.quality >= 0.8 and link.kind != "value":
                    yield link.spelling
                    break


def _has_rival(borrowed: Link, own: set[_Identity]) -> bool:
    """Whether something of the same kind goes by that name itself; of columns, another one."""
    same_kind = {identity for identity in own if identity[0] == borrowed.kind}
    return bool(same_kind - {borrowed.identity} if borrowed.kind == "column" else same_kind)


def _inflection(link: Link, key: str) -> float:
    """How much less another form of a word is: `scans` are things, scanned_at only says when one was made."""
    is_event = link.kind == "column" and link.spelling.endswith("ed") and " " not in link.spelling
    return _OTHER_WORD if is_event and not key.endswith("ed") else _INFLECTION


_LEXICONS: dict[int, tuple["weakref.ref[Catalog]", Lexicon]] = {}


def is_indexed(catalog: Catalog) -> bool:
    """Whether the lexicon of this very catalogue object is there already."""
    known = _LEXICONS.get(id(catalog))
    return known is not None and known[0]() is catalog


def lexicon_of(catalog: Catalog) -> Lexicon:
    """The lexicon of this very catalogue object, built on first use and dropped with it."""
    known = _LEXICONS.get(id(catalog))
    if known is not None and known[0]() is catalog:
        return known[1]
    lexicon = Lexicon(Catalog(catalog.tables, catalog.search_path))
    identity = id(catalog)
    _LEXICONS[identity] = (weakref.ref(catalog, lambda _: _LEXICONS.pop(identity, None)), lexicon)
    return lexicon
