"""What `/ready` looks at: each part that questions need, and what an operator has set up."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from common.actor import NOBODY
from common.errors import DatabaseUnavailable
from databases.datasources import DEFAULT, Datasources
from knowledge.semantic.layer import SemanticLayer
from llm import ChatModel
from store import Store

Checks = Mapping[str, Callable[[], Awaitable[dict[str, Any]]]]


def readiness_checks(
    datasources: Datasources, store: Store, model: ChatModel | None, meanings: SemanticLayer | None
) -> Checks:
    """The checks by name. One that fails raises the `CituError` that says why."""

    async def asked() -> dict[str, Any]:
        count = datasources.stuck_connections(DEFAULT)
        taken = {"stuck_connections": count} if count else {}
        try:
            await datasources.open(DEFAULT, NOBODY).ping()
        except DatabaseUnavailable:
            if not taken:
                raise
            return {"status": "unavailable", **taken}
        return {"status": "ok", **taken}

    async def memory() -> dict[str, Any]:
        await store.ping()
        return {"status": "ok", "name": store.name}

    async def thinking() -> dict[str, Any]:
        if model is None:
            return {"status": "not_configured"}
        await model.ping()
        return {"status": "ok", "name": model.name}

    async def semantics() -> dict[str, Any]:
        return _problems(None if meanings is None else meanings.problems or ())

    async def policies() -> dict[str, Any]:
        return _problems(datasources.row_problems(DEFAULT).context)

    async def rules() -> dict[str, Any]:
        return _problems(datasources.row_problems(DEFAULT).rules)

    return {
        "database": asked,
        "store": memory,
        "model": thinking,
        "semantic_file": semantics,
        "row_context": policies,
        "row_rules": rules,
    }


def _problems(found: Collection[object] | None) -> dict[str, Any]:
    """The state of what an operator has set up, by what is wrong with it; None: not set up."""
    if found is None:
        return {"status": "not_configured"}
    return {"status": "degraded" if found else "ok", "problems": len(found)}
