"""Judges or runs SQL of a caller, under the guard, cost limit and caps of the agent's own SQL."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.answers.reference_rows import reference_names
from agent.answers.shown_result import shown_result
from agent.flows.ask.context import AskContext
from agent.question import new_run_id
from common import timestamps
from common.actor import NOBODY, Actor
from common.audit import Occasion
from common.errors import CostExceeded, InvalidSql, QueryTimeout, StatementRejected
from common.ports import Database, Inspected
from common.text import Lang, Text
from common.values import PlanEstimate
from knowledge.tables.name_suggestions import with_suggestions

_TOO_LONG = Text(
    "处理时间超过上限，请缩小查询范围后重试。",
    "The statement took longer than allowed; narrow it and try again.",
)


@dataclass(frozen=True)
class GivenSql:
    """One statement that a caller gives.

    Attributes:
        lang: language of messages.
        actor: who gives it.
        notices: warnings about the request itself, for the answer.
        database: name of the database that it is for; None: the default one.
    """

    sql: str
    lang: Lang
    actor: Actor = NOBODY
    run_id: str = field(default_factory=new_run_id)
    notices: tuple[Text, ...] = ()
    database: str | None = None

    @property
    def warnings(self) -> list[str]:
        """Return `notices` in the language of messages."""
        return [notice.to(self.lang) for notice in self.notices]


class SqlService:
    """Judges and runs statements.

    Args:
        database_of: gives the datasource as an actor may see it; `validate` uses it, which is
            not audited.
        new_context: gives the services of `run`; its database writes the audit log.
        database: the name of the datasource.
        request_timeout_s: seconds for one statement from request to answer.
    """

    def __init__(
        self,
        database_of: Callable[[Actor], Database],
        new_context: Callable[[Occasion], AskContext],
        *,
        database: str,
        request_timeout_s: float,
    ) -> None:
        self._database_of = database_of
        self._database = database
        self._new_context = new_context
        self._request_timeout_s = request_timeout_s

    async def validate(self, statement: GivenSql) -> dict[str, Any]:
        """Return the verdict on `statement`, also when it is refused; plans the statement and never
        runs it.

        Raises:
            DatabaseUnavailable, QueryTimeout: it could not be judged.
        """
        database = self._database_of(statement.actor)
        plan: PlanEstimate | None = None
        refusal: StatementRejected | None = None
        try:
            plan = await database.explain(statement.sql)
        except StatementRejected as error:
            refusal = await _explained(error, statement.sql, database)

        if isinstance(refusal, CostExceeded):
            plan = refusal.plan

        return _verdict(statement, refusal, plan, await _inspected(statement.sql, database))

    async def run(self, statement: GivenSql) -> dict[str, Any]:
        """Run `statement`, and return the answer's body with its rows.

        Raises:
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for the agent's own SQL.
        """
        occasion = Occasion("sql_run", statement.run_id, statement.actor, database=self._database)
        context = self._new_context(occasion)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._request_timeout_s):
                plan = await context.validate(statement.sql)
                planned = time.perf_counter()
                result = await context.database.run(statement.sql)
        except TimeoutError as exc:
            raise QueryTimeout(_TOO_LONG) from exc
        except InvalidSql as error:
            raise await _explained(error, statement.sql, context.database) from error

        ended = time.perf_counter()
        catalog = await context.database.catalog()
        names = await reference_names(statement.sql, result, context.database, statement.lang)
        return {
            "sql": statement.sql,
            **shown_result(statement.sql, result, catalog, statement.lang, names),
            "plan": plan.shown() if plan else None,
            "warnings": [
                *statement.warnings,
                *(notice.to(statement.lang) for notice in result.notices),
            ],
            "run_id": statement.run_id,
            "timings_ms": {
                "validate": _milliseconds(planned - started),
                "execute": _milliseconds(ended - planned),
                "total": _milliseconds(ended - started),
            },
            "timestamp": timestamps.now(),
        }


async def _explained(error: StatementRejected, sql: str, database: Database) -> StatementRejected:
    """Return the error, with suggested names if PostgreSQL refused the SQL."""
    if isinstance(error, InvalidSql):
        return with_suggestions(error, sql, await database.catalog())

    return error


async def _inspected(sql: str, database: Database) -> Inspected | None:
    try:
        return await database.inspect(sql)
    except StatementRejected:
        return None


def _verdict(
    statement: GivenSql,
    refusal: StatementRejected | None,
    plan: PlanEstimate | None,
    used: Inspected | None,
) -> dict[str, Any]:
    invalid = refusal if isinstance(refusal, InvalidSql) else None
    return {
        "ok": refusal is None,
        "verdict": "refused" if refusal else "accepted",
        "error_type": refusal.error_type if refusal else None,
        "error": refusal.message(statement.lang) if refusal else None,
        "position": invalid.position if invalid else None,
        "suggestions": list(invalid.suggestions) if invalid else [],
        **_used_objects(used),
        "plan": plan.shown() if plan else None,
        "warnings": statement.warnings,
        "timestamp": timestamps.now(),
    }


def _used_objects(used: Inspected | None) -> dict[str, list[Any]]:
    if used is None:
        return {"tables": [], "columns": [], "functions": []}

    return {
        "tables": list(used.tables),
        "columns": list(used.columns),
        "functions": list(used.functions),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
