"""The rows of one query, page by page: a cursor in a READ ONLY transaction, whose pages are as
large in memory however many rows there are.
"""

from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

from databases.execution.result_types import ResultTypes
from databases.execution.results import SELECT_ROW, rendered_page, while_narrow
from databases.execution.statement_errors import translated
from postgres.connection import Connection, Row

_DECLARE = f"DECLARE citu NO SCROLL CURSOR FOR {SELECT_ROW}"
_FIRST_ROWS = 20  # of the first page, before anything is known of how long rows are
_MOST_ROWS = 2_000
_MOST_GROWTH = 8  # from one page to the next
_PAGE_CHARS = 256 * 1024  # that a page should have
_MOST_BYTES = 32 * 1024 * 1024  # that a page may have; a longer one ends the stream


class CursorRows:
    """Implements `common.ports.RowStream` on a connection of its own.

    Args:
        give_back: takes the connection when the stream is closed.
        begin: begins the transaction.
        most_row_bytes: a row that is stored in more ends the stream.
        deadline_s: seconds that one page may take.
    """

    def __init__(
        self,
        connection: Connection,
        types: ResultTypes,
        give_back: Callable[[Connection], Awaitable[None]],
        *,
        begin: str,
        sql: str,
        most_rows: int,
        most_row_bytes: int,
        deadline_s: float,
    ) -> None:
        self.columns: tuple[str, ...] = ()
        self.column_types: tuple[str, ...] = ()
        self.is_limited = False
        self._connection: Connection | None = connection
        self._types = types
        self._give_back = give_back
        self._begin = f"{begin}{_DECLARE}"
        self._sql = sql
        self._left = most_rows
        self._most_row_bytes = most_row_bytes
        self._deadline_s = deadline_s
        self._next_rows = _FIRST_ROWS
        self._first: list[list[Any]] | None = None

    async def open(self) -> None:
        """Begin the query and fetch its first page; raises what `Database.run` raises."""
        begin = f"{self._begin}{self._sql}{while_narrow(self._most_row_bytes)}"
        self._first = await self._fetch(f"{begin}; ")

    async def page(self) -> list[list[Any]]:
        if self._first is not None:
            first, self._first = self._first, None
            return first

        return await self._fetch()

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._give_back(connection)

    async def _fetch(self, begin: str = "") -> list[list[Any]]:
        connection = self._connection
        if connection is None or self.is_limited:
            return []

        row_count = min(self._next_rows, self._left + 1)  # one more tells whether there are more
        async with translated(
            self._deadline_s, self._sql, lambda: connection.ahead + len(self._begin)
        ):
            fetched = await connection.query(
                f"{begin}FETCH FORWARD {row_count} FROM citu", most_bytes=_MOST_BYTES
            )
            types = await self._types.of(fetched.columns, connection)

        self.columns = tuple(name for name, _ in fetched.columns)
        self.column_types = tuple(types[oid].name for _, oid in fetched.columns)
        self.is_limited = len(fetched.rows) > self._left
        del fetched.rows[self._left :]
        self._left -= len(fetched.rows)
        self._next_rows = _rows_after(fetched.rows, row_count)
        return await rendered_page(fetched, types)


def _rows_after(rows: list[Row], fetched_count: int) -> int:
    """Return how many rows the page after these should have."""
    chars = sum(map(len, filter(None, chain.from_iterable(rows))))
    fitting = _PAGE_CHARS * len(rows) // max(1, chars)
    return max(1, min(fitting, fetched_count * _MOST_GROWTH, _MOST_ROWS))
