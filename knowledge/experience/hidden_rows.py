"""Keep examples and lessons of others back that may quote rows hidden from who asks.

They may quote a name in a condition, a number, a day.

Where a table hides rows or values from somebody, what others brought about it is kept from them
unless its SQL holds no value that a row could have, in labels and comments either, and its words
quote nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from common.errors import StatementRejected
from common.learning import Example, Lesson
from common.ports import Database
from common.values import Catalog, Table
from knowledge.tables.tables_read import tables_read
from sqltree.value_constants import holds_values

_QUOTES = re.compile("[\"'`“”‘’„«»「」『』《》]")


@dataclass(frozen=True)
class HiddenRows:
    """The tables of which rows or values are hidden from one actor.

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
        """Find what is hidden from those who ask this database.

        Raises:
            DatabaseUnavailable: that can't be known now.
        """
        if database.rows_seen is None:
            return cls(database, Catalog(()), frozenset())

        catalog = await database.catalog()
        tables = frozenset(table.key for table in catalog.tables if table.has_hidden_rows)
        return cls(database, catalog, tables)

    async def may_be_in(self, item: Example | Lesson) -> bool:
        """Tell whether an example or lesson that somebody else brought may quote hidden rows."""
        if not self.tables or not await self._are_read_by(item):
            return False

        texts = [item.question]
        if isinstance(item, Lesson):
            texts += [item.root_cause, item.avoidance_hint]
        if any(map(_QUOTES.search, texts)):
            return True

        return item.sql is not None and holds_values(item.sql, self._catalog_text)

    @cached_property
    def _catalog_text(self) -> str:
        """Return the names and comments of the catalogue in lower case, one a line."""
        texts: list[str | None] = []
        for table in self.catalog.tables:
            texts += _texts(table)

        return "\n".join(filter(None, texts)).lower()

    async def _are_read_by(self, item: Example | Lesson) -> bool:
        if isinstance(item, Example):
            tables = self.catalog.by_key
            if any(key not in tables for key in item.tables):
                return True

            return not self.tables.isdisjoint(item.tables)

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
