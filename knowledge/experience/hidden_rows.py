"""What was learnt from others may quote rows that are hidden from who asks: a name in a condition, a number, a day.

Where a table hides rows or values from somebody, what others brought about it is kept from them unless its SQL holds no
value that a row could have, and its words quote nothing.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from common.errors import StatementRejected
from common.learning import Example, Lesson
from common.ports import Database
from common.values import Catalog
from databases.constants import Constant, constants_of
from knowledge.tables_read import tables_read

_QUOTES = re.compile("[\"'`“”‘’„«»「」『』《》]")
_HARMLESS_ROLES = frozenset(("limit", "offset", "interval", "neutral", "factor"))
_HARMLESS_NUMBERS = (Decimal(0), Decimal(1))
# Arguments of date_trunc, extract and to_char.
_UNITS = re.compile(
    r"(milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|(iso)?(dow|year)|doy|epoch"
    r"|(FM|YYYY|IYYY|YY|MM|Mon|Month|DD|ID|Q|IW|WW|HH24|HH12|HH|MI|SS|[-/:. \"])+",
    re.IGNORECASE,
)


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
        return any(map(_QUOTES.search, said)) or (item.sql is not None and holds_values(item.sql))

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


def holds_values(sql: str) -> bool:
    """Whether a query holds constants that rows may have; a limit, a unit of time or a factor is none."""
    constants = constants_of(sql)
    return constants is None or any(map(_may_be_stored, constants))


def _may_be_stored(constant: Constant) -> bool:
    if constant.role in _HARMLESS_ROLES:
        return False
    if constant.kind == "text":
        return constant.role != "argument" or not _UNITS.fullmatch(constant.value)
    return Decimal(constant.value) not in _HARMLESS_NUMBERS
