"""The ports that nodes use; adapters implement them."""

from collections.abc import Callable
from typing import Protocol

from common.values import Catalog, PlanEstimate, QueryResult

UrlSource = Callable[[], str]
"""Gives the URL of a database that accepts connections now; called for every new connection, from any thread.

It may start the database first. Raises `DatabaseUnavailable` when it can't.
"""


class Inspected(Protocol):
    """What a proven query uses, as written, each once, in alphabetical order."""

    @property
    def tables(self) -> tuple[str, ...]:
        """`name` or `schema.name`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """References as written: `name`, `t.name`, `t.*`, `*`."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Names as called."""


class Database(Protocol):
    """The asked database. Read-only; every method may be cancelled, which also stops the statement in the server.

    All raise `DatabaseUnavailable` when the server can't be reached or no connection is free in time.
    """

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
