"""The asked database: guard, connection, catalogue, and the embedded server with its demo data.

`open_database` is the only way to get one, and what it returns runs nothing that the guard has not proven.
"""

from collections.abc import Collection

from common.database.guard import Guard
from common.database.guarded import GuardedDatabase
from common.database.postgres import Caps, PostgresDatabase
from common.ports import UrlSource

__all__ = ["GuardedDatabase", "open_database"]


def open_database(
    source: str | UrlSource,
    *,
    pool_size: int,
    pool_wait_s: float,
    statement_timeout_s: float,
    max_rows: int,
    max_result_bytes: int,
    catalog_ttl_s: float,
    forbidden_check: bool = True,
    allowed_functions: Collection[str] = (),
) -> GuardedDatabase:
    """The database at `source` behind the guard. Opens no connection and starts no thread until it is first used.

    Args:
        source: libpq connection string or URI, or what gives it; then called, in a thread, for every new connection.
        pool_size: most connections.
        pool_wait_s: seconds to wait for a free one.
        statement_timeout_s: seconds one statement may run.
        max_rows: most rows of one result.
        max_result_bytes: most bytes of one result's values, as text.
        catalog_ttl_s: seconds the table descriptions are kept.
        forbidden_check: when false, the guard judges only structure: one statement, and nothing but a query.
        allowed_functions: user-defined and extension functions that may be called (`schema.name`, `schema.*`, `name`).
    """
    inner = PostgresDatabase(
        source if callable(source) else lambda: source,
        pool_size=pool_size,
        pool_wait_s=pool_wait_s,
        statement_timeout_s=statement_timeout_s,
        caps=Caps(rows=max_rows, bytes=max_result_bytes),
        catalog_ttl_s=catalog_ttl_s,
    )
    guard = Guard(allowed_functions=allowed_functions, forbidden_check=forbidden_check)
    return GuardedDatabase(inner, guard)
