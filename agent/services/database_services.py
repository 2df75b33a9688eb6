"""What endpoints offer of each database that may be asked, and the list of these."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.asked_databases import AskedDatabase, AskedDatabases
from agent.services.completion_service import CompletionService
from agent.services.example_questions import Examples
from agent.services.learning.learning_service import LearningService
from agent.services.lineage_service import LineageService
from agent.services.semantic_service import SemanticService
from agent.services.sql_service import SqlService
from common.actor import Actor
from common.errors import CituError, InvalidRequest
from common.text import Lang, Text
from databases.datasources import NO_DATABASE
from databases.engines.capabilities import UNKNOWN_ENGINE
from knowledge.tables.schema_service import SchemaService

_LOOK_S = 5.0  # for one database of the list


@dataclass(frozen=True)
class DatabaseServices:
    """The services of one database.

    Attributes:
        reread: reads the catalogue again.
    """

    sql: SqlService
    schema: SchemaService
    reread: Callable[[], Awaitable[None]]
    learning: LearningService
    lineage: LineageService
    examples: Examples
    completions: CompletionService
    semantic: SemanticService


class ServedDatabases:
    """Gives callers the services of the databases that they may ask.

    Args:
        make: makes the services of a database, by its name; called once for each.
    """

    def __init__(self, asked: AskedDatabases, make: Callable[[str], DatabaseServices]) -> None:
        self._asked = asked
        self._make = make
        self._made: dict[str, DatabaseServices] = {}

    def of(self, name: str | None, actor: Actor) -> DatabaseServices:
        """Return the services of a database.

        Args:
            name: None: the default one, or where the actor may not ask it, the first that it may.

        Raises:
            InvalidRequest: there is no such database for the actor; names those there are.
        """
        name = self.checked(name, actor)
        if name not in self._made:
            self._made[name] = self._make(name)

        return self._made[name]

    def checked(self, name: str | None, actor: Actor) -> str:
        """Return the name of a database that the actor may ask; see `of`."""
        names = [database.name for database in self._asked.open_to(actor)]
        if name is None:
            if not names:
                raise InvalidRequest(NO_DATABASE, field="database")

            default = self._asked.default
            return default if default in names else names[0]

        if name not in names:
            text = self._asked.datasources.no_files(name) or _unknown_database_text(names)
            raise InvalidRequest(text, field="database")

        return name

    async def listed(self, actor: Actor, lang: Lang) -> list[dict[str, Any]]:
        """Return the databases that the actor may ask, with their states as JSON holds them.

        One that does not answer within seconds is `unavailable`; the others are listed all the
        same.
        """
        databases = self._asked.open_to(actor)
        return await asyncio.gather(
            *(self._database_json(database, actor, lang) for database in databases)
        )

    async def _database_json(
        self, database: AskedDatabase, actor: Actor, lang: Lang
    ) -> dict[str, Any]:
        tables: int | None = None
        engine = UNKNOWN_ENGINE
        reason: str | None = None
        try:
            async with asyncio.timeout(_LOOK_S):
                capabilities = await self._asked.datasources.capabilities(database.name)
                engine = capabilities.engine
                catalog = await self._asked.database(database.name, actor).catalog()
                await self._asked.datasources.ping(database.name)

            tables = len(catalog.tables)
            state = "ok"
        except CituError as error:
            state = "unavailable"
            reason = error.message(lang)
        except TimeoutError:
            state = "unavailable"

        return {
            "name": database.name,
            "label": database.label(lang),
            "description": database.description.to(lang)
            if database.description is not None
            else None,
            "is_default": database.name == self._asked.default,
            "state": state,
            "reason": reason,
            "engine": engine.shown(),
            "tables": tables,
        }


def _unknown_database_text(names: list[str]) -> Text:
    if not names:
        return NO_DATABASE

    return Text(
        f"database 无效：可以查询的数据库是 {'、'.join(names)}。",
        f"database is not valid: it must be one of {', '.join(names)}.",
    )
