"""The words of one catalogue: every name of every table, column and stored value, and what each may
refer to.

Columns that are equal and stand in tables alike (thousands of tables have an `id` and a `status`)
share their phrases, and names that begin with the table's (`order amount`) are put together when
they are looked up: so ten thousand tables take seconds and little memory.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

from common.inquiry import Inquiry, StoredValue
from common.meanings import TableKey
from common.values import Catalog, Column, Table
from knowledge.index import CatalogIndex, IndexPart
from knowledge.language.atoms import key_of
from knowledge.language.cutting import HAN
from knowledge.language.inflection import lemma, stem
from knowledge.language.likeness import LikeNames
from knowledge.language.spoken_names import called, owner_names, table_names
from knowledge.values.identity import identifies, names_people
from rules.schema import phrases
from rules.schema.bounded_cache import BoundedCache
from rules.schema.links import Link
from rules.schema.reference_graph import Graph
from rules.schema.senses import AFTER_COLUMNS, COLUMN_BITS, Places, Sense, Senses, link_to, sense_of
from rules.schema.spoken_tables import SpokenTables, spoken_tables
from rules.schema.table_schema import Schema

MAX_PHRASE_ATOMS = 16
"""Longest phrase looked up, in atoms."""
# Of one phrase; of thousands of columns with one name, those near other named things are kept
_MOST_LINKS = 200
_MOST_NEAR = 400  # tables that are near what else is named
_MOST_REMEMBERED = 2_000  # phrases whose links are kept as they were found
_MOST_REMEMBERED_QUESTIONS = 512
_MOST_OWNED_NAMES = 3_000  # columns; of more, names that begin with the table's are not suggested
_MOST_NAMED_IN_PART = 30_000  # different columns; of more, parts of their names are not looked up
_CLEAR, _CLEARLY_NAMED = 0.6, 0.8
_INFLECTION, _OTHER_WORD, _OTHER_THING = 0.03, 0.25, 0.4
_BORROWED_BESIDE_OWN = 0.25
_SPELLED_OTHERWISE = 0.85  # quality, beside 1 of a value that is said as it is stored
# Between two words, and on both sides of a Han character
_BOUNDARY = re.compile(rf" |(?<=[{HAN}])(?=.)|(?=[{HAN}])", re.DOTALL)
_MISSPELT = 2  # letters more or fewer than the word that is meant

_Identity = tuple[str, TableKey, str | None, str | None, str | None]


class Lexicon:
    """Phrases of one catalogue. Build it through `lexicon_of`, which keeps it as long as its
    catalogue lives.

    Attributes:
        intents: what the semantic file's words ask for, by comparison key; see
            `phrases.said_words`.
        adjectives: the figures that the semantic file's adjectives are about, by the adjective's
            key.
        said: words of the question at hand that name stored values looked up for it, and the
            values.
        offered: words of it that nothing is called by, each with a stored value that resembles
            them.
        marks_cache: marks of the latest questions; see `rules.linking.marks.marks_of`.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.schema = Schema(catalog)
        self.graph = Graph(self.schema.facts)
        self._tables = catalog.tables
        self._numbers = {table.key: number for number, table in enumerate(catalog.tables)}
        self._places = Places()
        self._own, self._borrowed = Senses(self._places), Senses(self._places)
        self._columns: list[
            tuple[int, ...]
        ] = []  # of each table: the numbers of the places of equal columns
        self._owners: defaultdict[str, list[int]] = defaultdict(
            list
        )  # numbers of tables by the beginnings of names
        self.said: tuple[tuple[str, tuple[Link, ...]], ...] = ()
        self.offered: tuple[tuple[str, str], ...] = ()
        self.marks_cache: BoundedCache[Any, Any] = BoundedCache(_MOST_REMEMBERED_QUESTIONS)
        named = {
            (column.name, column.comment) for table in catalog.tables for column in table.columns
        }
        # The least quality of phrases that are kept: of very many names, parts would take too much
        # memory.
        self._least = _CLEARLY_NAMED if len(named) > _MOST_NAMED_IN_PART else 0.0
        self._known: BoundedCache[tuple[str, tuple[TableKey, ...]], tuple[Link, ...]] = (
            BoundedCache(_MOST_REMEMBERED)
        )
        for number, table in enumerate(catalog.tables):
            self._add_table(number, table)

        equal: dict[object, int] = {}
        for number, table in enumerate(catalog.tables):
            self._add_columns(number, table, equal)

        self.intents, self.adjectives = phrases.said_words(catalog, self._own)
        self._beginnings = frozenset(owner[:1] for owner in self._owners)
        self._longest_owner = max(map(len, self._owners), default=0)
        places = (
            (key, sum(map(len, map(self._places.of, senses)))) for key, senses in self._own.items()
        )
        self._crowded = frozenset(key for key, count in places if count > _MOST_LINKS)

    def _add_table(self, number: int, table: Table) -> None:
        """Add the phrases of the table and its figures; things with the same phrase share a
        sense.
        """
        names, name_in_module = table_names(table), self.schema.name_in_module(table)
        facts, metrics = self.schema.facts[table.key], self.schema.metrics_of.get(table.key, ())
        place, columns = (
            number << COLUMN_BITS,
            {column.name: at for at, column in enumerate(table.columns, 1)},
        )
        for senses, named in (
            (self._own, phrases.table_phrases(facts, names, name_in_module, metrics)),
            (self._borrowed, phrases.borrowed_table_phrases(facts, names)),
        ):
            for key, link in self._best(named):
                # A figure that goes by several names stands where its column does, a product of two
                # after all columns.
                at = AFTER_COLUMNS if link.derived else columns.get(link.column or "", 0)
                senses.add_shared(key, sense_of(link, place + at))

        for owner in {key_of(name, stems=True) for name in owner_names(table)} - {""}:
            self._owners[owner].append(number)

    def _add_columns(self, number: int, table: Table, equal: dict[object, int]) -> None:
        """Add the columns' phrases.

        Args:
            equal: the numbers of the places of columns with the same phrases, those of tables
                before among them.
        """
        column_phrases = []
        for index, (column, traits) in enumerate(
            zip(table.columns, phrases.column_traits(table), strict=True), 1
        ):
            places = equal.get((column, traits))
            if places is None:
                places = equal[column, traits] = self._places.new()
                for key, link in self._best(phrases.column_phrases(table, column)):
                    self._own.add(key, sense_of(link, places))

                for key, link in self._best(phrases.borrowed_column_phrases(table, column)):
                    self._borrowed.add(key, sense_of(link, places))

            self._places.add(places, (number << COLUMN_BITS) + index)
            column_phrases.append(places)

        self._columns.append(tuple(column_phrases))

    def _best(self, named: Iterable[tuple[str, Link]]) -> Iterator[tuple[str, Link]]:
        """Return the best link to each thing by each phrase's key."""
        best: dict[tuple[str, _Identity], Link] = {}
        for phrase, link in named:
            if link.quality < self._least and link.kind == "column":
                continue

            key = key_of(phrase, stems=True)
            sense = (
                link.spelling if link.spelling == key else key,
                link.identity,
            )  # one string, not two
            best_link = best.get(sense)
            if best_link is None or best_link.quality < link.quality:
                best[sense] = link

        return ((key, link) for (key, _), link in best.items())

    # --------------------------------------------------------------------------
    # looking up

    def links(self, key: str, stem_key: str, near: tuple[TableKey, ...] = ()) -> tuple[Link, ...]:
        """Return what a phrase may refer to, best first; `key` is its exact form, `stem_key` the
        form without inflection.

        Of a phrase that very many things go by, those in the tables `near` (see `near`) and the
        best others.
        """
        known_links = self._known.get((stem_key, near))
        if known_links is None:
            known_links = self._links_found(stem_key, near)
        if not known_links:
            return ()

        inflected = [
            link if link.spelling == key else link.rated(link.quality - _inflection(link, key))
            for link in known_links
            if link.spelling == key or not link.is_exact  # "Ann Lees" is not Ann Lee
        ]
        return tuple(sorted(inflected, key=lambda link: -link.quality))

    def find(self, phrase: str) -> tuple[Link, ...]:
        """Return what a whole phrase may refer to, best first."""
        return self.links(key_of(phrase), key_of(phrase, stems=True))

    def near(self, stem_keys: Collection[str]) -> tuple[TableKey, ...]:
        """Return the tables named by the phrases of a question, and what they refer to; none where
        all phrases are rare.
        """
        if self._crowded.isdisjoint(stem_keys):
            return ()

        named: dict[TableKey, None] = {}
        for key in sorted(stem_keys, key=len, reverse=True):  # the longest say the most
            if key not in self._crowded:
                named.update(
                    dict.fromkeys(
                        link.table for link in self._links_found(key, ()) if link.quality >= _CLEAR
                    )
                )

        near = dict.fromkeys(list(named)[: _MOST_NEAR // 2])
        for table in tuple(near):
            near.update(dict.fromkeys((*self.graph.above(table), *self.graph.below(table))))

        return tuple(near)[:_MOST_NEAR]

    def _links_found(self, stem_key: str, near: tuple[TableKey, ...]) -> tuple[Link, ...]:
        """Return the best link for each thing that a word names; borrowed names count for less."""
        own = self._own.of(stem_key)
        owned = self._owned(stem_key, near)
        borrowed = self._borrowed.of(stem_key)
        if not own and not borrowed and not owned:
            return ()

        link_by_identity: dict[_Identity, Link] = {}
        for link in self._placed([*own, *owned], near):
            _keep_better(link_by_identity, link)

        clear = {identity for identity, link in link_by_identity.items() if link.quality >= _CLEAR}
        for link in self._placed(borrowed, near):
            # Whether something of the same kind goes by that name itself; of columns, another one.
            has_rival = any(
                clear_identity[0] == link.kind
                and (clear_identity[0] != "column" or clear_identity != link.identity)
                for clear_identity in clear
            )
            _keep_better(
                link_by_identity,
                link.rated(link.quality - _BORROWED_BESIDE_OWN) if has_rival else link,
            )

        links = tuple(link_by_identity.values())
        self._known.put((stem_key, near), links)
        return links

    def _placed(self, senses: Sequence[Sense], near: Collection[TableKey]) -> list[Link]:
        """Return a link for each place of the senses."""
        numbers = [self._numbers[key] for key in near]
        return [
            self._link_at(place, sense)
            for place, sense in self._places.found(senses, numbers, _MOST_LINKS)
        ]

    def _link_at(self, place: int, sense: Sense) -> Link:
        table, number = self._tables[place >> COLUMN_BITS], place & AFTER_COLUMNS
        is_column = 0 < number < AFTER_COLUMNS
        return link_to(sense, table.key, table.columns[number - 1].name if is_column else None)

    def _owned(self, stem_key: str, near: Collection[TableKey]) -> list[Sense]:
        """Return what the phrase means as the name of a table and one of its columns."""
        if stem_key[:1] not in self._beginnings:
            return []

        owned_senses: list[Sense] = []
        close = {self._numbers[key] for key in near}
        for owner, rest in _cuts(stem_key, self._longest_owner):
            numbers = self._owners.get(owner, ())
            called = (
                {sense[-1] for sense in self._own.of(rest) if sense[0] == "column"}
                if numbers
                else ()
            )
            nearest = sorted(numbers, key=lambda number: number not in close) if called else ()
            for number in nearest[:_MOST_LINKS]:
                for index, places in enumerate(self._columns[number]):
                    if places in called:
                        owned_senses += self._owned_by(number, index, stem_key)

        return owned_senses

    def _owned_by(self, number: int, index: int, stem_key: str) -> Iterator[Sense]:
        table = self._tables[number]
        place = (number << COLUMN_BITS) + index + 1
        for phrase, link in phrases.owned_phrases(table, table.columns[index]):
            if key_of(phrase, stems=True) == stem_key:
                yield sense_of(link, place)

    # --------------------------------------------------------------------------
    # suggesting

    @cached_property
    def suggested(self) -> LikeNames:
        """Return names to suggest for an unknown word that may be spelled like it."""
        spoken: dict[str, str] = {}
        for key, (kind, quality, spelling, *_) in self._names_with_senses():
            if quality >= _CLEARLY_NAMED and kind != "value":
                spoken.setdefault(key, spelling)

        return LikeNames(tuple(spoken.values()))

    def words_like(self, word: str) -> list[str]:
        """Return words of the names of tables and columns that `word` may be a misspelling of,
        sorted.
        """
        return [
            like for like in self._words.names_like(word) if abs(len(like) - len(word)) <= _MISSPELT
        ]

    @cached_property
    def _words(self) -> LikeNames:
        """Return the words of all names; a Chinese name is one word."""
        things: dict[
            tuple[str, str | None], Table | Column
        ] = {}  # thousands of tables have the same columns
        for table in self._tables:
            things[table.name, table.comment] = table
            things |= {(column.name, column.comment): column for column in table.columns}

        names = map(called, things.values())
        return LikeNames(
            sorted({word for name in names for word in (name.zh, *name.en.lower().split())})
        )

    @cached_property
    def people(self) -> tuple[Column, ...]:
        """Return columns whose stored values name people."""
        stored = (
            (table, column) for table in self._tables for column in table.columns if column.values
        )
        return tuple(column for table, column in stored if names_people(table, column))

    @cached_property
    def spoken(self) -> SpokenTables:
        """Return tables by words that are none of their names."""
        return spoken_tables(self.schema.facts)

    @cached_property
    def other_forms(self) -> dict[str, str]:
        """Return words of names by their lemmas, where no ending tells that they belong together:
        `shelves` by `shelf`.
        """
        words = (word for word in self._words.names if word.isascii() and word.isalpha())
        return {base: word for word in words if stem(base := lemma(word)) != stem(word)}

    def _names_with_senses(self) -> Iterator[tuple[str, Sense]]:
        for key, senses in self._own.items():
            for sense in senses:
                yield key, sense

        count = sum(map(len, self._columns))
        if count <= _MOST_OWNED_NAMES:
            yield from self._owned_senses()

        for key, senses in self._borrowed.items():
            clear_kinds = self._clear_kinds(key)
            for sense in senses:
                kind = sense[0]
                if kind not in clear_kinds:
                    yield key, sense

    def _owned_senses(self) -> Iterator[tuple[str, Sense]]:
        """Yield the columns by phrases with their tables' names."""
        for table in self._tables:
            for column in table.columns:
                for phrase, link in phrases.owned_phrases(table, column):
                    key = key_of(phrase, stems=True)
                    yield key, sense_of(link, 0)

    def _clear_kinds(self, key: str) -> set[str]:
        """Return the kinds of things that clearly go by the phrase as their own name."""
        kinds: set[str] = set()
        for kind, quality, *_ in self._own.of(key):
            if quality >= _CLEAR:
                kinds.add(kind)

        return kinds

    def prepare(self) -> None:
        """Build what unknown words are looked up in, so that the first such question need not wait
        for it.
        """
        _ = (
            self.suggested,
            self._words,
            self.people,
            self.spoken,
            self.other_forms,
            self.schema.persons,
        )


def _keep_better(link_by_identity: dict[_Identity, Link], link: Link) -> None:
    best_link = link_by_identity.get(link.identity)
    if best_link is None or best_link.quality < link.quality:
        link_by_identity[link.identity] = link


def _cuts(stem_key: str, longest: int) -> Iterator[tuple[str, str]]:
    """Cut the key in two, at each boundary of words or Han characters.

    Args:
        longest: most characters of the first part.
    """
    for boundary in _BOUNDARY.finditer(stem_key, 1, longest + 2):
        if boundary.start() > longest:
            return

        yield stem_key[: boundary.start()], stem_key[boundary.end() :]


def _inflection(link: Link, key: str) -> float:
    """Return what another form of the word costs: more for `scans` of the column scanned_at, and
    for `opened` of `open`.
    """
    if link.kind == "value" and key.endswith("ed") != link.spelling.endswith("ed"):
        return _OTHER_THING  # `opened` is not open, and "bookings" are not what is booked

    is_event = link.kind == "column" and link.spelling.endswith("ed") and " " not in link.spelling
    if is_event and not key.endswith("ed"):
        return _OTHER_WORD

    return _INFLECTION


def _lexicon(index: CatalogIndex) -> Lexicon:
    lexicon = Lexicon(index.catalog)
    lexicon.prepare()
    return lexicon


LEXICON = IndexPart(_lexicon, ignores_row_counts=True, address="rules.schema.lexicon:LEXICON")


def lexicon_of(catalog: Catalog) -> Lexicon:
    """Return the lexicon of this very catalogue object, built on first use and dropped with it."""
    return LEXICON.of(catalog)


def lexicon_for(inquiry: Inquiry) -> Lexicon:
    """Return the lexicon for the question; the catalogue's own where nothing was looked up."""
    lexicon = lexicon_of(inquiry.catalog)
    if not inquiry.found_values:
        return lexicon

    links_by_words = defaultdict[str, list[Link]](list)
    for stored_value in inquiry.found_values:
        if stored_value.is_meant:
            links_by_words[stored_value.said].append(_looked_up(stored_value, lexicon))

    knowing = copy(lexicon)
    knowing.said = tuple((words, tuple(links)) for words, links in links_by_words.items())
    knowing.offered = tuple(
        (stored_value.said, stored_value.value)
        for stored_value in inquiry.found_values
        if not stored_value.is_meant
    )
    return knowing


def _looked_up(stored_value: StoredValue, lexicon: Lexicon) -> Link:
    table, column = (
        lexicon.schema.table(stored_value.table),
        lexicon.schema.column(stored_value.table, stored_value.column),
    )
    is_others = names_people(table, column) or identifies(table, column)
    quality = 1.0 if stored_value.is_exact else _SPELLED_OTHERWISE
    return Link(
        "value",
        stored_value.table,
        stored_value.column,
        stored_value.value,
        quality,
        key_of(stored_value.said),
        is_exact=is_others,
    )
