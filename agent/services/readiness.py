"""What `/ready` looks at: each part that questions need, and what an operator has set up."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from agent.asked_databases import AskedDatabases
from common.actor import NOBODY
from common.errors import CituError, DatabaseUnavailable
from databases.datasources import RowProblems
from llm import ChatModel
from store import Store

Checks = Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]
_LOOK_S = 4.0  # for one of several databases


def readiness_checks(asked: AskedDatabases, store: Store, model: ChatModel | None) -> Checks:
    """Return the checks by name. One that fails raises the `CituError` that says why."""

    async def databases() -> dict[str, Any]:
        if asked.is_one and len(asked.all()) == 1:
            return await _state_of(asked, asked.default)

        return await _states_of_all(asked)

    async def memory() -> dict[str, Any]:
        await store.ping()
        return {"status": "ok", "name": store.name}

    async def thinking() -> dict[str, Any]:
        if model is None:
            return {"status": "not_configured"}

        await model.ping()
        return {"status": "ok", "name": model.name}

    async def semantics() -> dict[str, Any]:
        files = [database.meanings for database in asked.all() if database.meanings is not None]
        return _problems([file.problems or () for file in files])

    async def policies() -> dict[str, Any]:
        return _problems([problems.context for problems in _row_problems(asked)])

    async def rules() -> dict[str, Any]:
        return _problems([problems.rules for problems in _row_problems(asked)])

    return {
        "database": databases,
        "store": memory,
        "model": thinking,
        "semantic_file": semantics,
        "row_context": policies,
        "row_rules": rules,
    }


async def _state_of(databases: AskedDatabases, name: str) -> dict[str, Any]:
    count = databases.datasources.stuck_connections(name)
    stuck = {"stuck_connections": count} if count else {}
    try:
        await databases.datasources.ping(name)
        capabilities = await databases.datasources.capabilities(name)
    except DatabaseUnavailable:
        if not stuck:
            raise

        return {"status": "unavailable", **stuck}

    engine = capabilities.engine.shown()
    if not capabilities.is_fit:
        reason = capabilities.refusal().en
        return {"status": "unavailable", "engine": engine, "reason": reason, **stuck}

    return {"status": "ok", "engine": engine, **stuck}


async def _states_of_all(databases: AskedDatabases) -> dict[str, Any]:
    """Return the state of each database; together they are `unavailable` only if all are."""

    async def look(name: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await _state_of(databases, name)
        except (CituError, TimeoutError):
            return {"status": "unavailable"}

    names = [database.name for database in databases.all()]
    states = dict(zip(names, await asyncio.gather(*map(look, names)), strict=True))
    return {"status": _status_of_all(states, databases), "databases": states}


def _status_of_all(states: Mapping[str, Mapping[str, Any]], asked: AskedDatabases) -> str:
    statuses = {state["status"] for state in states.values()}
    if len(statuses) > 1:
        return "degraded"

    status: str = statuses.pop()
    if status == "ok" and asked.has_mistakes:
        return "degraded"  # the file of databases has changed and can't be used

    return status


def visible_database_states(
    overall: Mapping[str, Any], databases: AskedDatabases
) -> dict[str, Any]:
    """Return the databases' state, of those alone that every caller may ask."""
    states = overall.get("databases")
    if states is None:
        return dict(overall)

    names = {database.name for database in databases.open_to(NOBODY)}
    visible = {name: state for name, state in states.items() if name in names}
    if not visible:
        return {"status": overall["status"]}
    if databases.is_one and databases.default in visible:
        return dict(visible[databases.default])

    return {"status": _status_of_all(visible, databases), "databases": visible}


def _row_problems(databases: AskedDatabases) -> list[RowProblems]:
    return [databases.datasources.row_problems(database.name) for database in databases.all()]


def _problems(row_problems: Collection[Collection[object] | None]) -> dict[str, Any]:
    """Return `ok` or `degraded` with the number of problems of what the operator set up.

    Args:
        row_problems: the problems of each database; None: nothing is set up there.
    """
    set_up = [problems for problems in row_problems if problems is not None]
    if not set_up:
        return {"status": "not_configured"}

    count = sum(map(len, set_up))
    return {"status": "degraded" if count else "ok", "problems": count}
