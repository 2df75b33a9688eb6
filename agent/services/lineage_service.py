"""Where tables come from and what depends on them, as far as the caller may see it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent.learnt_drafts import LearntDrafts
from common.actor import Actor
from common.errors import NotFound, StatementRejected
from common.meanings import Report
from common.ports import Database
from common.text import Lang, Text
from common.values import Catalog, Table
from databases.catalog.view_sources import ViewSources
from etl.lineage.draft_lineage import draft_lineage, drafted_place
from etl.lineage.impact import Dependent, impact_of
from etl.lineage.lineage_graph import Direction, LineagePart, part_of
from etl.lineage.view_lineage import qualified, view_lineage
from etl.schemas.knowledge_context import TableLineage
from knowledge.tables.schema_service import table_named

ViewsOf = Callable[[Actor], Awaitable[Sequence[ViewSources]]]


class LineageService:
    """Answers questions about lineage and impact.

    Args:
        opened: opens the datasource for an actor.
        views: gives the views that an actor may see.
        reports: gives the reports of the semantic file.
        drafts: gives the drafts of transformations that an actor may see.
    """

    def __init__(
        self,
        opened: Callable[[Actor], Database],
        views: ViewsOf,
        reports: Callable[[], Sequence[Report]],
        drafts: Callable[[Actor], LearntDrafts],
    ) -> None:
        self._opened = opened
        self._views = views
        self._reports = reports
        self._drafts = drafts

    async def lineage(
        self, table: str, column: str | None, direction: Direction, depth: int, actor: Actor
    ) -> LineagePart:
        """Return what is upstream or downstream of a table or column, or of a draft's target.

        Raises:
            NotFound: there is none of that name for the actor.
            InvalidRequest: several tables are called so.
        """
        catalog = await self._opened(actor).catalog()
        edges = await self._edges(catalog, actor)
        place = drafted_place(table, column, edges)
        if place is None:
            place = qualified(_table_with_column(table, column, catalog))

        return part_of(edges, place, column=column, direction=direction, depth=depth)

    async def _edges(self, catalog: Catalog, actor: Actor) -> list[TableLineage]:
        """Return the edges of views and of drafts."""
        views = await self._views(actor)
        drafts = await self._drafts(actor).trusted()
        edges = await asyncio.to_thread(view_lineage, views, catalog)
        return edges + await asyncio.to_thread(draft_lineage, drafts, catalog)

    async def impact(
        self, table: str, column: str | None, actor: Actor, lang: Lang
    ) -> dict[str, Any]:
        """Return what depends on the table or column, and would break without it.

        Raises:
            NotFound, InvalidRequest: as `lineage`.
        """
        database = self._opened(actor)
        catalog = await database.catalog()
        asked_table = _table_with_column(table, column, catalog)
        edges = await self._edges(catalog, actor)
        reports = [report for report in self._reports() if not report.is_broken]
        dependents = await asyncio.to_thread(
            impact_of, asked_table, column, catalog, edges, reports
        )
        readable = await _readable(dependents, database)
        return {
            "table": qualified(asked_table),
            "column": column,
            "dependents": [_dependent_json(dependent, lang) for dependent in readable],
        }


async def _readable(dependents: Sequence[Dependent], database: Database) -> list[Dependent]:
    """Return all but the reports that the actor may not run, which don't exist for them."""
    readable = []
    for dependent in dependents:
        report = dependent.report
        if report is None or await _may_run(report.sql, database):
            readable.append(dependent)

    return readable


async def _may_run(sql: str, database: Database) -> bool:
    try:
        await database.inspect(sql)
    except StatementRejected:
        return False

    return True


def _table_with_column(table: str, column: str | None, catalog: Catalog) -> Table:
    found_table = table_named(table, catalog)
    if column is not None and found_table.column(column) is None:
        text = Text(
            f"{found_table.name} 没有字段 {column}。",
            f"{found_table.name} has no column named {column}.",
        )
        raise NotFound(text)

    return found_table


def _dependent_json(dependent: Dependent, lang: Lang) -> dict[str, Any]:
    return {
        "kind": dependent.kind,
        "name": dependent.name,
        "why": dependent.why.to(lang),
        "confidence": dependent.confidence,
    }
