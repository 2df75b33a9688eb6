"""The ports that nodes use; adapters implement them."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from common.values import Catalog, PlanEstimate, QueryResult

UrlSource = Callable[[], str]
"""Gives the URL of a database that accepts connections now; called for every new connection, from any thread.

It may start the database first. Raises `DatabaseUnavailable` when it can't.
"""


class Inspected(Protocol):
    """What a proven query uses, as written, each once, in alphabetical order."""

    @property
    def statement(self) -> str:
        """The text to run, without the semicolon at its end and what follows."""

    @property
    def tables(self) -> tuple[str, ...]:
        """`name` or `schema.name`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """References as written: `name`, `t.name`, `t.*`, `*`."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Names as called."""


class RowStream(Protocol):
    """The rows of one running query, page by page; the query waits while nobody takes the next page."""

    @property
    def columns(self) -> tuple[str, ...]:
        """As in `QueryResult`."""

    @property
    def column_types(self) -> tuple[str, ...]:
        """As in `QueryResult`."""

    @property
    def is_limited(self) -> bool:
        """After the last page, whether there were more rows than asked for."""

    async def page(self) -> list[list[Any]]:
        """The next rows, as in `QueryResult`; empty after the last.

        Raises what `Database.run` raises; afterwards only `aclose` may be called.
        """

    async def aclose(self) -> None:
        """Ends the query and gives its connection back; calling it again has no effect."""


class Definitions(Protocol):
    """What is known of the asked database without reading any row. Its methods are those of `Database`."""

    async def catalog(self) -> Catalog:
        """The tables and columns that may be read."""

    async def inspect(self, sql: str) -> Inspected:
        """What `sql` uses."""

    async def explain(self, sql: str) -> PlanEstimate:
        """The plan of `sql`, which is not run."""


class Database(Protocol):
    """The asked database. Read-only; every method may be cancelled, which also stops the statement in the server.

    All raise `DatabaseUnavailable` when the server can't be reached or no connection is free in time.
    """

    @property
    def rows_seen(self) -> Hashable | None:
        """Which rows statements see; None: nothing limits them. Callers for whom this is equal see the same rows."""

    async def ping(self) -> None:
        """Returns when the database answers."""

    async def catalog(self) -> Catalog:
        """The tables and columns the role may read (cached for a while)."""

    async def inspect(self, sql: str) -> Inspected:
        """Proves from the text alone that `sql` is one read-only query, and says what it uses.

        Raises:
            ForbiddenStatement, ForbiddenObject: it must not run.
            InvalidSql: it does not parse.
            ValidationFailed: it is too long or nested too deeply to be judged.
        """

    async def explain(self, sql: str) -> PlanEstimate:
        """Plans `sql` without running it.

        Raises:
            CostExceeded: the plan is estimated to be more expensive than the operator allows.
            InvalidSql: PostgreSQL can't plan it (unknown names, wrong types, …).
            QueryTimeout: planning took longer than the statement timeout.
            …and whatever `inspect` raises.
        """

    async def run(self, sql: str) -> QueryResult:
        """Runs `sql` in a READ ONLY transaction that is always rolled back, up to the row and byte caps.

        Raises:
            QueryTimeout: it took longer than the statement timeout.
            InvalidSql: it failed while running (division by zero, a cast that does not fit, …).
            …and whatever `inspect` raises.
        """

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """Begins `sql` in a READ ONLY transaction; its rows are taken page by page, `most_rows` at most.

        The caller must call `aclose` on the stream. Raises what `run` raises, as soon as the first rows show it.
        """
