"""The ports that nodes use; adapters implement them."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from common.values import Catalog, PlanEstimate, QueryResult

UrlSource = Callable[[], str]
"""Gives the URL of a database that accepts connections now; called for every new connection, from
any thread.

It may start the database first. Raises `DatabaseUnavailable` when it can't.
"""


class Inspected(Protocol):
    """The tables, columns and functions of a proven query, each once, in alphabetical order."""

    @property
    def statement(self) -> str:
        """Return the text to run, without the semicolon at its end and what follows."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Return names as written: `name` or `schema.name`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return references as written: `name`, `t.name`, `t.*`, `*`."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names as the query writes them."""


class RowStream(Protocol):
    """The rows of one running query, page by page.

    The query waits while nobody takes the next page. Fields are as in `QueryResult`.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def column_types(self) -> tuple[str, ...]: ...

    @property
    def is_limited(self) -> bool:
        """Tell, after the last page, whether there were more rows than asked for."""

    async def page(self) -> list[list[Any]]:
        """Return the next rows, as in `QueryResult`; empty after the last.

        Raises what `Database.run` raises; afterwards only `aclose` may be called.
        """

    async def aclose(self) -> None:
        """End the query and give its connection back; calling it again has no effect."""


class Definitions(Protocol):
    """The part of `Database` that reads no rows of the datasource."""

    async def catalog(self) -> Catalog: ...

    async def inspect(self, sql: str) -> Inspected: ...

    async def explain(self, sql: str) -> PlanEstimate: ...


class Database(Protocol):
    """The datasource, for reading only.

    Every method may be cancelled, which also stops the statement in the server. All raise
    `DatabaseUnavailable` when the server can't be reached or no connection is free in time.
    """

    @property
    def rows_seen(self) -> Hashable | None:
        """Return a key of the rows that statements see; None: nothing limits them.

        Callers with equal keys see the same rows.
        """

    async def ping(self) -> None:
        """Return when the database answers."""

    async def catalog(self) -> Catalog:
        """Return the tables and columns that the role may read, cached for a while."""

    async def inspect(self, sql: str) -> Inspected:
        """Prove from the text alone that `sql` is one read-only query, and return what it uses.

        Raises:
            ForbiddenStatement, ForbiddenObject: it must not run.
            InvalidSql: it does not parse.
            ValidationFailed: it is too long or nested too deeply to be judged.
        """

    async def explain(self, sql: str) -> PlanEstimate:
        """Plan `sql` without running it.

        Raises:
            CostExceeded: the plan is estimated to be more expensive than the operator allows.
            InvalidSql: PostgreSQL can't plan it (unknown names, wrong types, …).
            QueryTimeout: planning took longer than the statement timeout.
            …and whatever `inspect` raises.
        """

    async def run(self, sql: str) -> QueryResult:
        """Run `sql` up to the row and byte caps, in a READ ONLY transaction that is rolled back.

        Raises:
            QueryTimeout: it took longer than the statement timeout.
            InvalidSql: it failed while running (division by zero, a cast that does not fit, …).
            …and whatever `inspect` raises.
        """

    async def stream(self, sql: str, most_rows: int) -> RowStream:
        """Begin `sql` in a READ ONLY transaction, to take its rows page by page.

        The caller must call `aclose` on the stream. Raises what `run` raises, as soon as the first
        rows show it.

        Args:
            most_rows: the most rows of all pages together.
        """
