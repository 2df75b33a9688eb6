"""The asked database: guard, connection, catalogue, and the embedded server with its demo data.

`open_database` is the only way to get one, and what it returns runs nothing that the guard has not proven.
"""

from collections.abc import Collection

from common.ports import UrlSource
from databases.guard import AccessRuleError, AccessRules, Guard, parse_rule
from databases.guarded import GuardedDatabase
from databases.plan_estimate import CostLimits
from databases.postgres import PostgresDatabase
from databases.results import Caps

__all__ = ["AccessRuleError", "GuardedDatabase", "open_database"]


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
    allowed_objects: Collection[str] = (),
    denied_objects: Collection[str] = (),
    require_read_only_role: bool = False,
    max_plan_cost: int = 0,
    max_plan_rows: int = 0,
) -> GuardedDatabase:
    """The database at `source` behind the guard. Opens no connection and starts no thread until it is first used.

    Args:
        source: libpq connection string or URI, or what gives it; then called, in a thread, for every new connection.
        pool_size: most connections.
        pool_wait_s: seconds to wait for a free one.
        statement_timeout_s: seconds one statement may run.
        max_rows, max_result_bytes: most rows of one result, and most bytes of its values, as text.
        catalog_ttl_s: seconds the table descriptions are kept.
        forbidden_check: when false, the guard judges only structure: one statement, and nothing but a query.
        allowed_functions: user-defined and extension functions that may be called (`schema.name`, `schema.*`, `name`).
        allowed_objects: if any, only these may be read: `schema`, `schema.table` or `schema.table.column`, with `*`.
        denied_objects: these may not be read, written the same way.
        require_read_only_role: run nothing (`DatabaseUnavailable`) for a role that may do more than read.
        max_plan_cost, max_plan_rows: most a plan may be estimated to cost, in the planner's units, and rows it may
            be estimated to return; 0: no limit.

    Raises:
        AccessRuleError: one of the objects is not written like that.
    """
    access = AccessRules(allowed=_rules(allowed_objects), denied=_rules(denied_objects))
    guard = Guard(allowed_functions=allowed_functions, access=access, forbidden_check=forbidden_check)
    inner = PostgresDatabase(
        source if callable(source) else lambda: source,
        pool_size=pool_size,
        pool_wait_s=pool_wait_s,
        statement_timeout_s=statement_timeout_s,
        caps=Caps(rows=max_rows, bytes=max_result_bytes),
        catalog_ttl_s=catalog_ttl_s,
        show=guard.visible,
        require_read_only_role=require_read_only_role,
    )
    return GuardedDatabase(inner, guard, CostLimits(cost=max_plan_cost, rows=max_plan_rows))


def _rules(objects: Collection[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(parse_rule, objects))
