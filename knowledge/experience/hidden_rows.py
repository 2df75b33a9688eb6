"""What was learnt from others may quote rows that are hidden from who asks: a name in a condition, a number, a day.

Where a table hides rows or values from somebody, what others brought about it is kept from them unless its SQL holds no
value that a row could have, in labels and comments either, and its words quote nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from common.errors import StatementRejected
from common.learning import Example, Lesson
from common.ports import Database
from common.values import Catalog, Table
from databases.value_constants import holds_values
from knowledge.tables_read import tables_read

_QUOTES = re.compile("[\"'`“”‘’„«»「」『』《》]")


@dataclass(frozen=True)
class HiddenRows:
    """What may not be told to one actor.

    Attributes:
        database: as the actor may ask it.
        tables: (schema, table) of the tables that hide something from the actor.
        catalog: as the actor sees it.
    """

    database: Database
    catalog: Catalog
    tables: frozenset[tuple[str, str]]

    @classmethod
    async def of(cls, database: Database) -> "HiddenRows":
        """What is hidden from those who ask this database; raises `DatabaseUnavailable` where that can't be known."""
        if database.rows_seen is None:
            return cls(database, Catalog(()), frozenset())
        catalog = await database.catalog()
        return cls(database, catalog, frozenset(table.key for table in catalog.tables if table.has_hidden_rows))

    async def may_be_in(self, item: Example | Lesson) -> bool:
        """Whether the example or lesson, which somebody else brought, may quote them."""
        if not self.tables or not await self._are_read_by(item):
            return False
        said = (item.question,) if isinstance(item, Example) else (item.question, item.root_cause, item.avoidance_hint)
        return any(map(_QUOTES.search, said)) or (item.sql is not None and holds_values(item.sql, self._said))

    @cached_property
    def _said(self) -> str:
        """What the catalogue says, one name or comment a line."""
        said = (text for table in self.catalog.tables for text in _texts(table))
        return "\n".join(filter(None, said)).lower()

    async def _are_read_by(self, item: Example | Lesson) -> bool:
        if isinstance(item, Example):
            return not self.tables.isdisjoint(item.tables) or not all(key in self.catalog.by_key for key in item.tables)
        if item.sql is None:
            return True
        try:
            read = tables_read(await self.database.inspect(item.sql), self.catalog)
        except StatementRejected:  # it was wrong already; nobody knows what it means
            return True
        return not self.tables.isdisjoint(read)


def _texts(table: Table) -> Iterator[str | None]:
    yield from (table.schema, table.name, table.comment)
    for column in table.columns:
        yield from (column.name, column.comment)
    for meaning in (table.meaning, *(column.meaning for column in table.columns)):
        if meaning is not None:
            yield from (*meaning.names.zh, *meaning.names.en)
