"""What of the experience one actor may be shown: nothing that reads, or speaks of, what is closed to them."""

import re
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

from common.errors import ForbiddenObject, StatementRejected
from common.learning import Document, Example, Lesson
from common.ports import Database
from common.values import Catalog
from databases.references import references
from knowledge.experience.hidden_rows import HiddenRows
from knowledge.index import Part
from knowledge.personal_data import Privacy, privacy_of

_WORD = re.compile(r"\w+")
_MOST_KEPT = 8  # pairs of catalogues


def _personal_columns(catalog: Catalog) -> frozenset[str]:
    columns = ((table, column) for table in catalog.tables for column in table.columns)
    return frozenset(column.name.lower() for table, column in columns if privacy_of(table, column) is not Privacy.OPEN)


_PERSONAL = Part(lambda index: _personal_columns(index.catalog), ignores_row_counts=True)


@dataclass
class Closed:
    """Names of tables and columns that everybody may read but some actors may not, by their catalogues."""

    _kept: list[tuple[weakref.ref[Catalog], weakref.ref[Catalog], frozenset[str]]] = field(default_factory=list)

    def names(self, whole: Catalog, seen: Catalog) -> frozenset[str]:
        """The names in `whole` that are none in `seen`, in lower case."""
        if whole is seen:
            return frozenset()
        for kept_whole, kept_seen, names in self._kept:
            if kept_whole() is whole and kept_seen() is seen:
                return names
        names = _names(whole) - _names(seen)
        self._kept = [(weakref.ref(whole), weakref.ref(seen), names), *self._kept[: _MOST_KEPT - 1]]
        return names


def _names(catalog: Catalog) -> frozenset[str]:
    tables = (table.name.lower() for table in catalog.tables)
    return frozenset((*tables, *(column.name.lower() for table in catalog.tables for column in table.columns)))


@dataclass(frozen=True)
class Sight:
    """One actor's view.

    Attributes:
        database: as the actor may ask it; its guard knows the actor's rights.
        catalog: as the actor sees it.
        whole: as it is whoever asks.
        closed: names that are closed to the actor.
        hidden: rows that are hidden from the actor.
    """

    database: Database
    catalog: Catalog
    whole: Catalog
    closed: frozenset[str]
    hidden: HiddenRows

    async def may_use(self, example: Example, *, is_own: bool) -> bool:
        """Whether the actor may read every table and column that the example reads; unless it is the actor's own, it
        may not quote rows that are hidden from them either."""
        # A partition or a new table is in no catalogue; of those the guard alone judges.
        if any(key in self.whole.by_key and key not in self.catalog.by_key for key in example.tables):
            return False
        if not is_own and await self.hidden.may_be_in(example):
            return False
        return not self._tells(example.question) and await self._may_read(example.sql)

    def names_somebody(self, example: Example) -> bool:
        """Whether the example holds a value of a column with personal data or names of persons: other people's
        questions don't send it to a model."""
        compared = references(example.sql, self.catalog).comparisons
        return any(privacy_of(one.table, one.column) is not Privacy.OPEN for one in compared)

    async def may_learn(self, lesson: Lesson, *, is_own: bool) -> bool:
        """Whether the lesson speaks of nothing that is closed to the actor; unless it is the actor's own, neither of
        whom it was about, nor of hidden rows. Its SQL was wrong, so it may be refused for anything else."""
        said = (lesson.question, lesson.root_cause, lesson.avoidance_hint, lesson.sql or "")
        if any(map(self._tells, said)):
            return False
        if is_own:
            return True
        tells = await self._tell_of_somebody(said) or await self._is_closed(lesson.sql)
        return not (tells or await self.hidden.may_be_in(lesson))

    async def _tell_of_somebody(self, said: Iterable[str]) -> bool:
        """Whether a text has both a column with personal data and a text constant, as conditions on it do."""
        with_constants = [text for text in said if "'" in text]
        if not with_constants:
            return False
        personal = await _PERSONAL.ready(self.catalog)
        return any(not personal.isdisjoint(_WORD.findall(text.lower())) for text in with_constants)

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
        """Whether the document speaks of nothing that is closed to the actor."""
        return not (self._tells(document.title) or self._tells(document.text))

    async def _may_read(self, sql: str) -> bool:
        try:
            await self.database.inspect(sql)
        except StatementRejected:
            return False
        return True

    def _tells(self, text: str) -> bool:
        return bool(self.closed) and not self.closed.isdisjoint(_WORD.findall(text.lower()))
