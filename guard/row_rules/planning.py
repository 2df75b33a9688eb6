"""Lets PostgreSQL plan each grant: it alone knows whether types fit and functions exist."""

from collections.abc import Awaitable, Callable, Mapping

from guard.facts import Key
from guard.row_rules.predicates import ActorValues
from guard.row_rules.rule_binding import BoundTable, Refusals
from guard.row_rules.subqueries import subquery
from sqltree.parsing import Node
from sqltree.writing import text_of

Plan = Callable[[str], Awaitable[str | None]]
"""Says why PostgreSQL can't plan a statement; None: it can, or can't tell now."""


async def refused_grants(tables: Mapping[Key, BoundTable], plan: Plan) -> Refusals:
    """Return the grants that PostgreSQL can't plan for an actor without values, and why."""
    refusals: dict[tuple[Key, int], str] = {}
    for key, table in tables.items():
        if not table.columns:  # the server has no such table
            continue

        for place, grant in enumerate(table.grants):
            if grant.problem is not None:
                continue

            statement = _statement(table, place)
            refusal = await plan(statement)
            if refusal is not None:
                refusals[key, place] = refusal

    return refusals


def _statement(table: BoundTable, place: int) -> str:
    columns = [column for column in table.columns if column in table.readable]
    source = source_of(table)
    select = subquery(table, [place], ActorValues(), source, columns)
    return text_of(select)


def source_of(table: BoundTable) -> Node:
    """Return the table as an item of FROM, under the name that its predicates call it by."""
    schema, name = table.key
    named = {
        "schemaname": schema,
        "relname": name,
        "inh": True,  # with the tables that inherit from it
        "relpersistence": "p",
        "alias": {"aliasname": table.row},
    }
    return {"RangeVar": named}
