"""Prove a statement that is to be kept as an example, by guard and EXPLAIN."""

from collections.abc import Callable
from dataclasses import dataclass

from common.errors import CostExceeded, InvalidSql
from common.ports import Database, Definitions
from common.values import PlanEstimate
from knowledge.tables.name_suggestions import with_suggestions
from knowledge.tables.tables_read import tables_hash, tables_read


@dataclass(frozen=True)
class Proof:
    """The tables and the plan of a statement that guard and EXPLAIN accept.

    Attributes:
        tables: (schema, name) of those it reads.
        tables_hash: the hash of their definitions as everybody sees them.
    """

    tables: tuple[tuple[str, str], ...]
    tables_hash: str
    plan: PlanEstimate | None


async def proven(
    sql: str,
    database: Database,
    definitions: Callable[[], Definitions],
    *,
    at_any_cost: bool = False,
) -> Proof:
    """Guard and plan `sql` with the rights of `database`, without running it.

    Args:
        definitions: gives the same database as everybody sees it: to actors who may read less, a
            table looks different, and nobody else could tell whether it has changed.
        at_any_cost: whether it may be more expensive than questions are, because nobody will run it
            here.

    Raises:
        StatementRejected: it is refused; names that may have been meant are in the error.
        QueryTimeout, DatabaseUnavailable: it could not be judged.
    """
    try:
        plan: PlanEstimate | None = await database.explain(sql)
    except InvalidSql as error:
        raise with_suggestions(error, sql, await database.catalog()) from error
    except CostExceeded as error:
        if not at_any_cost:
            raise

        plan = error.plan

    whole = await definitions().catalog()
    tables = tables_read(await database.inspect(sql), whole)
    return Proof(tables, tables_hash(tables, whole), plan)
