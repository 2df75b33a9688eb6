"""Decide which examples, lessons and documents one actor may be shown.

None that reads, or speaks of, tables and columns that are closed to them.
"""

import re
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

from common.errors import ForbiddenObject, StatementRejected
from common.learning import Document, Example, Lesson
from common.ports import Database
from common.values import Catalog
from knowledge.experience.hidden_rows import HiddenRows
from knowledge.index import IndexPart
from knowledge.values.personal_data import Privacy, privacy_of
from sqltree.references import references

_WORD = re.compile(r"\w+")
_MOST_KEPT = 8  # pairs of catalogues


def _personal_columns(catalog: Catalog) -> frozenset[str]:
    """Return the names of columns with personal data or names of persons, in lower case."""
    names = set()
    for table in catalog.tables:
        for column in table.columns:
            if privacy_of(table, column) is not Privacy.OPEN:
                names.add(column.name.lower())

    return frozenset(names)


_PERSONAL = IndexPart(lambda index: _personal_columns(index.catalog), ignores_row_counts=True)


@dataclass
class ClosedNames:
    """Names of tables and columns that are closed to some actors, kept by their catalogues."""

    _kept: list[tuple[weakref.ref[Catalog], weakref.ref[Catalog], frozenset[str]]] = field(
        default_factory=list
    )

    def names(self, whole: Catalog, seen: Catalog) -> frozenset[str]:
        """Return the names in `whole` that are none in `seen`, in lower case."""
        if whole is seen:
            return frozenset()

        for kept_whole, kept_seen, names in self._kept:
            if kept_whole() is whole and kept_seen() is seen:
                return names

        names = _names(whole) - _names(seen)
        self._kept = [(weakref.ref(whole), weakref.ref(seen), names), *self._kept[: _MOST_KEPT - 1]]
        return names


def _names(catalog: Catalog) -> frozenset[str]:
    names = set()
    for table in catalog.tables:
        names.add(table.name.lower())
        names.update(column.name.lower() for column in table.columns)

    return frozenset(names)


@dataclass(frozen=True)
class ActorAccess:
    """The rights of one actor.

    Attributes:
        database: as the actor may ask it; its guard knows the actor's rights.
        catalog: as the actor sees it.
        whole: the catalogue of everybody.
        closed: names that are closed to the actor.
        hidden: rows that are hidden from the actor.
    """

    database: Database
    catalog: Catalog
    whole: Catalog
    closed: frozenset[str]
    hidden: HiddenRows

    async def may_use(self, example: Example, *, is_own: bool) -> bool:
        """Tell whether the actor may read every table and column that the example reads.

        Unless it is the actor's own, it may not quote rows that are hidden from them either.
        """
        # A partition or a new table is in no catalogue; of those the guard alone judges.
        visible_tables = self.whole.by_key.keys() & set(example.tables)
        if not visible_tables <= self.catalog.by_key.keys():
            return False
        if not is_own and await self.hidden.may_be_in(example):
            return False
        if self._names_closed(example.question):
            return False

        return await self._may_read(example.sql)

    def names_somebody(self, example: Example) -> bool:
        """Tell whether the example holds a value of a column with personal data or names.

        Other people's questions don't send it to a model.
        """
        compared = references(example.sql, self.catalog).comparisons
        return any(privacy_of(one.table, one.column) is not Privacy.OPEN for one in compared)

    async def may_learn(self, lesson: Lesson, *, is_own: bool) -> bool:
        """Tell whether the lesson speaks of nothing that is closed to the actor.

        Unless it is the actor's own, neither of persons, nor of hidden rows. Its SQL was wrong, so
        it may be refused for anything else.
        """
        texts = (lesson.question, lesson.root_cause, lesson.avoidance_hint, lesson.sql or "")
        if any(map(self._names_closed, texts)):
            return False
        if is_own:
            return True
        if await self._tell_of_somebody(texts) or await self._is_closed(lesson.sql):
            return False

        return not await self.hidden.may_be_in(lesson)

    async def _tell_of_somebody(self, texts: Iterable[str]) -> bool:
        """Tell whether a text has both a column with personal data and a text constant.

        Conditions on such a column do.
        """
        with_constants = [text for text in texts if "'" in text]
        if not with_constants:
            return False

        personal = await _PERSONAL.ready(self.catalog)
        words: set[str] = set()
        for text in with_constants:
            words.update(_WORD.findall(text.lower()))

        return not personal.isdisjoint(words)

    async def _is_closed(self, sql: str | None) -> bool:
        if sql is None:
            return False

        try:
            await self.database.inspect(sql)
        except ForbiddenObject:
            return True
        except StatementRejected:
            return False

        return False

    def may_see(self, document: Document) -> bool:
        """Tell whether the document speaks of nothing that is closed to the actor."""
        return not self._names_closed(f"{document.title}\n{document.text}")

    async def _may_read(self, sql: str) -> bool:
        try:
            await self.database.inspect(sql)
        except StatementRejected:
            return False

        return True

    def _names_closed(self, text: str) -> bool:
        if not self.closed:
            return False

        return not self.closed.isdisjoint(_WORD.findall(text.lower()))
