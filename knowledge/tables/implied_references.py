"""Find references between tables that nobody declared, by their columns' names.

Such as `customer_id` and a table `customer`.

Many warehouses and older databases declare no keys at all. What is found here brings tables and
columns together that are probably joined. The rules join by a name that fits one table alone;
others join nothing because of it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from common.values import Table
from knowledge.language.cutting import HAN
from knowledge.language.terms import is_han, spelled_out
from knowledge.words import WORDS

_MOST_OWNERS = 5  # a key's name that more tables share refers to none of them
_LONGEST_NAME = 60  # characters of a name that are looked at
_NOISE = WORDS.english.one_of("relevance.table_words")
_KEYS = WORDS.english.one_of("relevance.keys")
_BARE_KEYS = _KEYS | WORDS.chinese.one_of("relevance.keys")
_HAN_KEY = re.compile(f"^(.+?)({'|'.join(WORDS.chinese.phrases('relevance.keys'))}|)$")
_HAN_TABLE = re.compile(f"^(.+?)(?:{'|'.join(WORDS.chinese.phrases('names.table_ends'))}|)$")
_RUNS = re.compile(rf"[{HAN}]+|[^{HAN}]+")

_Words = tuple[str, ...]
_Places = defaultdict[tuple[str, _Words], list[int]]
"""Numbers of tables, by their schema and words of a name."""


class ImpliedReference(NamedTuple):
    """A reference by a column's name.

    Attributes:
        column: the column of the table that refers.
        target: number of the table that is referred to.
        candidates: how many tables the name fits, of which this is one.
        is_role: whether the first words of the name were left out (`ship_customer_id`).
    """

    column: str
    target: int
    candidates: int = 1
    is_role: bool = False


def implied_references(tables: Sequence[Table]) -> list[list[ImpliedReference]]:
    """Find for each table what it refers to by its columns' names alone, in the same schema.

    `customer_id`, `customer_key` and 客户编号 refer to a table whose primary key is called so, else
    to one called `customer`, `dim_customer` or 客户表, else to the one whose name ends so, one of
    the same module (`crm_customer` for `crm_visit`) before others, else to one without a declared
    key that begins with such a column. `ship_customer_id` is taken for `customer_id` when nothing
    else is called so. A name that fits more than five tables is left out.
    """
    owners = _Owners(tables)
    return [list(_of_table(number, table, owners)) for number, table in enumerate(tables)]


def _of_table(number: int, table: Table, owners: "_Owners") -> Iterator[ImpliedReference]:
    explained = set(table.referring_columns)
    if len(table.primary_key) == 1:
        explained.update(table.primary_key)

    for column in table.columns:
        if column.name in explained:
            continue

        targets, is_role = owners.of(number, table, column.name)
        for target in targets:
            yield ImpliedReference(column.name, target, len(targets), is_role)


class _Owners:
    """Tells which tables a column's name may refer to."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._keys: _Places = defaultdict(list)  # of the tables' primary keys
        self._names: _Places = defaultdict(list)
        self._ends: _Places = defaultdict(list)
        self._firsts: _Places = defaultdict(list)
        self._cores = [_core(table.name) for table in tables]
        for number, (table, core) in enumerate(zip(tables, self._cores, strict=True)):
            if len(table.primary_key) == 1:
                self._add(self._keys, table, _words(table.primary_key[0]), number)
            elif not table.primary_key and table.columns:
                self._add(self._firsts, table, _words(table.columns[0].name), number)

            self._add(self._names, table, core, number)
            for start in range(1, len(core)):
                self._add(self._ends, table, core[start:], number)

    def _add(self, places: "_Places", table: Table, words: _Words, number: int) -> None:
        if _BARE_KEYS.issuperset(words):
            return

        owners = places[table.schema, words]
        if len(owners) <= _MOST_OWNERS:  # one more than count
            owners.append(number)

    def of(self, number: int, table: Table, column: str) -> tuple[Sequence[int], bool]:
        """Return the numbers of the tables to which `column` of that table probably refers.

        Also tells whether it does by a part of its name.
        """
        words = _words(column)
        thing: _Words = ()
        if words and words[-1] in _BARE_KEYS:
            thing = words[:-1]

        numbers = self._tables_at(self._keys, number, table, words)
        if numbers or not thing:
            return numbers, False

        for start in range(len(thing)):
            numbers = self._tables_named(number, table, thing[start:], words[start:])
            if numbers:
                return numbers, start > 0

        return self._tables_at(self._firsts, number, table, words), False

    def _tables_named(
        self, number: int, table: Table, thing: _Words, words: _Words
    ) -> Sequence[int]:
        return (
            self._tables_at(self._keys, number, table, words)
            or self._tables_at(self._names, number, table, thing)
            or self._tables_nearly_named(number, table, thing)
        )

    def _tables_nearly_named(self, number: int, table: Table, thing: _Words) -> Sequence[int]:
        """Return tables whose names end so, those before others that begin as the table's own."""
        ending = self._ends.get((table.schema, thing), [])
        module = self._cores[number][:1]
        within = []
        for other in ending:
            if other != number and self._cores[other][:1] == module:
                within.append(other)

        return within or self._tables_at(self._ends, number, table, thing)

    def _tables_at(
        self, places: "_Places", number: int, table: Table, words: _Words
    ) -> Sequence[int]:
        numbers = places.get((table.schema, words), ())
        if len(numbers) > _MOST_OWNERS:
            return ()

        return [other for other in numbers if other != number]


@lru_cache(maxsize=65_536)
def _words(name: str) -> _Words:
    """Return the words of a column's name, the one for a key by itself.

    客户编号 is 客户 and 编号.
    """
    return tuple(_cut(name, _HAN_KEY))


def _core(name: str) -> _Words:
    """Return the words of a table's name without those that only say that it is a table."""
    words = _cut(name, _HAN_TABLE)
    informative = [word for word in words if word not in _NOISE]
    return tuple(informative or words)


def _cut(name: str, han: re.Pattern[str]) -> list[str]:
    """Cut a name into words, Chinese ones by the groups of a pattern."""
    words: list[str] = []
    for run in _RUNS.findall(name[:_LONGEST_NAME]):
        match = han.match(run)
        if match is None or not is_han(run):
            words.extend(spelled_out(run))
        else:
            words.extend(filter(None, match.groups()))

    return words
