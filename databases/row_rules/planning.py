"""Lets PostgreSQL plan what each grant shows: it alone knows whether types fit and functions exist."""

from collections.abc import Awaitable, Callable, Mapping

from databases.guard.facts import Key
from databases.guard.parsing import Node
from databases.row_rules.binding import BoundTable, Refusals
from databases.row_rules.comparing import text_of
from databases.row_rules.subqueries import ActorValues, subquery

Plan = Callable[[str], Awaitable[str | None]]
"""Says why PostgreSQL can't plan a statement; None: it can, or can't tell now."""


async def refused_grants(tables: Mapping[Key, BoundTable], plan: Plan) -> Refusals:
    """The grants that PostgreSQL can't plan for an actor without values, and why."""
    refusals: dict[tuple[Key, int], str] = {}
    for key, table in tables.items():
        for place, grant in enumerate(table.grants):
            if grant.problem is None and table.columns:
                refusal = await plan(_statement(table, place))
                if refusal is not None:
                    refusals[key, place] = refusal
    return refusals


def _statement(table: BoundTable, place: int) -> str:
    columns = [column for column in table.columns if column in table.readable]
    return text_of(subquery(table, [place], ActorValues(), source_of(table), columns))


def source_of(table: BoundTable) -> Node:
    """The table itself, under the name that its predicates call it by."""
    schema, name = table.key
    named = {
        "schemaname": schema,
        "relname": name,
        "inh": True,
        "relpersistence": "p",
        "alias": {"aliasname": table.row},
    }
    return {"RangeVar": named}
