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
        files = [one.meanings for one in asked.all() if one.meanings is not None]
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


async def _state_of(asked: AskedDatabases, name: str) -> dict[str, Any]:
    count = asked.datasources.stuck_connections(name)
    taken = {"stuck_connections": count} if count else {}
    try:
        await asked.datasources.ping(name)
        capabilities = await asked.datasources.capabilities(name)
    except DatabaseUnavailable:
        if not taken:
            raise

        return {"status": "unavailable", **taken}

    engine = capabilities.engine.shown()
    if not capabilities.is_fit:
        reason = capabilities.refusal().en
        return {"status": "unavailable", "engine": engine, "reason": reason, **taken}

    return {"status": "ok", "engine": engine, **taken}


async def _states_of_all(asked: AskedDatabases) -> dict[str, Any]:
    """Return the state of each database; together they are `unavailable` only if all are."""

    async def look(name: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await _state_of(asked, name)
        except (CituError, TimeoutError):
            return {"status": "unavailable"}

    names = [one.name for one in asked.all()]
    states = dict(zip(names, await asyncio.gather(*map(look, names)), strict=True))
    return {"status": _status_of_all(states, asked), "databases": states}


def _status_of_all(states: Mapping[str, Mapping[str, Any]], asked: AskedDatabases) -> str:
    statuses = {state["status"] for state in states.values()}
    if len(statuses) > 1:
        return "degraded"

    status: str = statuses.pop()
    if status == "ok" and asked.has_mistakes:
        return "degraded"  # the file of databases has changed and can't be used

    return status


def told_to_strangers(found: Mapping[str, Any], asked: AskedDatabases) -> dict[str, Any]:
    """Return what was found about the databases, with those alone that every caller may ask."""
    states = found.get("databases")
    if states is None:
        return dict(found)

    names = {one.name for one in asked.open_to(NOBODY)}
    shown = {name: state for name, state in states.items() if name in names}
    if not shown:
        return {"status": found["status"]}
    if asked.is_one and asked.default in shown:
        return dict(shown[asked.default])

    return {"status": _status_of_all(shown, asked), "databases": shown}


def _row_problems(asked: AskedDatabases) -> list[RowProblems]:
    return [asked.datasources.row_problems(one.name) for one in asked.all()]


def _problems(row_problems: Collection[Collection[object] | None]) -> dict[str, Any]:
    """Return `ok` or `degraded` with the number of problems of what the operator set up.

    Args:
        found: the problems of each database; None: nothing is set up there.
    """
    set_up = [problems for problems in row_problems if problems is not None]
    if not set_up:
        return {"status": "not_configured"}

    count = sum(map(len, set_up))
    return {"status": "degraded" if count else "ok", "problems": count}
