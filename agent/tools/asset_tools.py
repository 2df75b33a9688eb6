"""`search_assets`, `kg_join_hints` and `kg_quality_rules`: which tables, figures and drafts there
are, how tables may be joined, and which rules their values keep.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from agent.learnt_drafts import DraftsOf
from agent.question import Question
from agent.tools.entry_lines import entry_lines
from agent.tools.schema_tools import SchemaReader
from agent.tools.tool import EVERYONE, Arguments, Tool, ToolContext, ToolResult
from common.learning import EtlExample, Trust
from common.text import Text
from common.values import Catalog, Table
from databases.catalog.view_sources import ViewSources
from etl.assets.join_hints import join_hints
from etl.assets.quality_rules import quality_rules
from etl.assets.table_layers import layer_of, layer_of_name, short_name
from etl.binding.join_links import JOIN_LINKS
from etl.lineage.view_joins import view_joins
from knowledge.language.terms import terms_with_roots
from knowledge.tables.schema_search import LinkReason, TableMatch, WordReason
from knowledge.tables.schema_service import table_named

ViewsOf = Callable[[Question], Awaitable[Sequence[ViewSources]]]
"""Gives the views of a question's database that its actor may see."""

MOST_ENTRIES = 20
_BY_DEFAULT = 8
_MOST_QUERY = 1_000  # characters
_MOST_REASONS = 5  # of one asset
_MOST_TABLES = 20  # between which joins are looked for
_SHARE_OF_DRAFTS = 4  # one of so many assets may be a draft, so that tables keep their places
CONFIDENCES: Mapping[Trust, float] = {"certified": 0.95, "reviewed": 0.9, "personal": 0.7}
_VIEWS = ("view", "materialized view")


class SearchAssets(Arguments):
    """The arguments of `search_assets`."""

    query: str = Field(
        min_length=1, max_length=_MOST_QUERY, description="What to look for, in plain words."
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ENTRIES,
        description=f"Most assets, 1 to {MOST_ENTRIES}; null: {_BY_DEFAULT}.",
    )


class JoinHints(Arguments):
    """The arguments of `kg_join_hints`."""

    tables: list[str] = Field(
        min_length=1,
        max_length=_MOST_TABLES,
        description=f"Names of at most {_MOST_TABLES} tables.",
    )


class QualityRules(Arguments):
    """The arguments of `kg_quality_rules`."""

    table: str = Field(min_length=1, description="Name of the table.")


def search_assets_tool(reader: SchemaReader, drafts_of: DraftsOf) -> Tool[SearchAssets]:
    """Return the tool that finds tables, views, metrics and kept drafts."""

    async def run(context: ToolContext, arguments: SearchAssets) -> ToolResult:
        catalog = await context.database.catalog()
        most = arguments.limit or _BY_DEFAULT
        matches = await reader.matches(arguments.query, most, catalog, context.question)
        metrics = list(_metrics(arguments.query, catalog))
        drafts = await _artefacts(arguments.query, drafts_of, context)
        few = drafts[: max(1, most // _SHARE_OF_DRAFTS)]
        tables = [_asset(match, catalog) for match in matches[: most - len(few)]]
        entries = [*metrics, *few, *tables][:most]
        text = entry_lines(entries, "Nothing has to do with these words.")
        count = len(entries)
        return ToolResult(text, Text(f"找到 {count} 项", f"{count} assets found"))

    return Tool(
        "search_assets",
        Text("查找数据资产", "Search assets"),
        "Finds tables, views, metrics and drafts of transformations by what a request is about, "
        "with layer, score and why each was found.",
        SearchAssets,
        run,
        frozenset({EVERYONE}),
    )


def join_hints_tool(views_of: ViewsOf) -> Tool[JoinHints]:
    """Return the tool that tells how tables may be joined."""

    async def run(context: ToolContext, arguments: JoinHints) -> ToolResult:
        catalog = await context.database.catalog()
        tables = tables_of(arguments.tables, catalog)
        await JOIN_LINKS.ready(catalog)
        views = await views_of(context.question)
        joins = await asyncio.to_thread(view_joins, views, catalog)
        hints = await asyncio.to_thread(join_hints, tables, catalog, joins)
        entries = [hint.model_dump(mode="json") for hint in hints]
        text = entry_lines(entries, "Nothing is known of joins between these tables.")
        count = len(hints)
        return ToolResult(text, Text(f"{count} 种关联方式", f"{count} ways to join"))

    return Tool(
        "kg_join_hints",
        Text("查询关联方式", "Join hints"),
        "Gives the joins between tables: columns, cardinality, origin. Only accepted ones may be "
        "used without asking the user.",
        JoinHints,
        run,
        frozenset({EVERYONE}),
    )


def quality_rules_tool(*, samples: bool) -> Tool[QualityRules]:
    """Return the tool that tells which rules a table's values keep.

    Args:
        samples: whether a model may be told stored values.
    """

    async def run(context: ToolContext, arguments: QualityRules) -> ToolResult:
        catalog = await context.database.catalog()
        table = table_named(arguments.table, catalog)
        rules = quality_rules(table, catalog, samples=samples)
        entries = [rule.model_dump(mode="json") for rule in rules]
        text = entry_lines(entries, "No rule of this table is known.")
        count = len(rules)
        return ToolResult(text, Text(f"{count} 条规则", f"{count} rules"))

    return Tool(
        "kg_quality_rules",
        Text("查询质量规则", "Quality rules"),
        "Gives the rules of one table's columns and where each is from; statistics only suggest.",
        QualityRules,
        run,
        frozenset({EVERYONE}),
    )


def _asset(match: TableMatch, catalog: Catalog) -> dict[str, Any]:
    table = match.table
    return {
        "name": short_name(table, catalog),
        "kind": "view" if table.kind in _VIEWS else "table",
        "layer": layer_of(table),
        "description": table.comment,
        "score": round(match.score, 4),
        "reasons": list(_reasons(match, catalog))[:_MOST_REASONS],
    }


def _reasons(match: TableMatch, catalog: Catalog) -> Iterator[str]:
    yield from map(_word_reason_text, match.words)
    for example in match.examples:
        yield f"example: {example.question}"

    if match.is_near:
        yield "similar meaning"

    for link in match.links:
        yield _link_reason_text(link, catalog)


def _word_reason_text(reason: WordReason) -> str:
    return f"{reason.kind}: {reason.text}"


def _link_reason_text(link: LinkReason, catalog: Catalog) -> str:
    other_table = short_name(catalog.by_key[link.table.key], catalog)
    if link.points_to_it:
        return f"refers to {other_table}"

    return f"referred to by {other_table}"


async def _artefacts(query: str, drafts_of: DraftsOf, context: ToolContext) -> list[dict[str, Any]]:
    """Return the drafts of similar requests, and before them those whose target the query names."""
    question = context.question
    drafts = drafts_of(question.actor, question.database)
    words = terms_with_roots(query)
    named = [trusted for trusted in await drafts.trusted() if _is_said(trusted.target, words)]
    alike = await drafts.recalled(query, await context.database.catalog())
    similar = [example for example in alike.examples if isinstance(example, EtlExample)]
    artefacts: dict[str, dict[str, Any]] = {}
    for draft in (*named, *similar):
        if draft.trust in CONFIDENCES and draft.target not in artefacts:
            reason = f"name: {draft.target}" if draft in named else "similar request"
            artefacts[draft.target] = _artefact(draft, reason)

    return list(artefacts.values())


def _artefact(draft: EtlExample, reason: str) -> dict[str, Any]:
    node, _ = draft.code[-1]
    return {
        "name": draft.target,
        "kind": "artefact",
        "layer": layer_of_name(node),
        "description": draft.question,
        "score": CONFIDENCES[draft.trust],
        "reasons": [reason],
    }


def _metrics(query: str, catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yield the metrics of which the query says a name, those with the longest names first."""
    words = terms_with_roots(query)
    metrics: list[tuple[int, dict[str, Any]]] = []
    for metric in catalog.metrics:
        names = [name for name in (metric.name, *metric.names.all) if _is_said(name, words)]
        if not names:
            continue

        table = catalog.by_key[metric.table]
        entry = {
            "name": metric.name,
            "kind": "metric",
            "layer": layer_of(table),
            "description": _expression_text(metric.expression, table, catalog),
            "score": 1.0,
            "reasons": [f"name: {name}" for name in names][:_MOST_REASONS],
        }
        metrics.append((max(map(len, names)), entry))

    metrics.sort(key=lambda one: -one[0])
    yield from (entry for _, entry in metrics)


def _is_said(name: str, words: frozenset[str]) -> bool:
    own = terms_with_roots(name)
    return bool(own) and own <= words


def _expression_text(expression: str, table: Table, catalog: Catalog) -> str:
    return f"{expression} over {short_name(table, catalog)}"


def tables_of(names: Sequence[str], catalog: Catalog) -> list[Table]:
    """Return the tables of these names, each once.

    Raises:
        NotFound: there is none of a name for the caller.
        InvalidRequest: several are called so.
    """
    named = [table_named(name, catalog) for name in names]
    return list({table.key: table for table in named}.values())
