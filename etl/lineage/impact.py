"""What breaks when a table or column is dropped, renamed or retyped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from common.meanings import Report
from common.text import Text
from common.values import Catalog, Table
from etl.lineage.lineage_graph import part_of
from etl.lineage.view_lineage import qualified
from etl.schemas.knowledge_context import TableLineage

DependentKind = Literal["view", "matview", "foreign_key", "metric", "report", "artefact"]
_ALL_VIEWS = 50  # edges from the table; views over views over views end somewhere
_CERTAIN, _LIKELY, _POSSIBLE = 1.0, 0.9, 0.6


@dataclass(frozen=True)
class Dependent:
    """Something that uses the table or column; `confidence` is 1 where the server says so."""

    kind: DependentKind
    name: str
    why: Text
    confidence: float


def impact_of(
    table: Table,
    column: str | None,
    catalog: Catalog,
    edges: Sequence[TableLineage],
    reports: Sequence[Report] = (),
) -> list[Dependent]:
    """Return what breaks without the table, or without this column of it."""
    found = [*_views(table, column, edges), *_foreign_keys(table, column, catalog)]
    found += _metrics(table, column, catalog)
    found += _reports(table, column, catalog, reports)
    return found


def _views(table: Table, column: str | None, edges: Sequence[TableLineage]) -> Iterator[Dependent]:
    name = qualified(table)
    direct = {edge.target for edge in edges if edge.source == name}
    part = part_of(edges, name, column=column, direction="downstream", depth=_ALL_VIEWS)
    seen = set()
    for edge in part.edges:
        if edge.target in seen:
            continue
        seen.add(edge.target)
        kind: DependentKind = edge.kind
        what = name if column is None else f"{name}.{column}"
        why = Text(f"直接读取 {what}", f"reads {what}")
        if edge.target not in direct:
            why = Text(f"通过 {edge.source} 间接读取", f"reads it by way of {edge.source}")
        is_certain = column is None or edge.confidence == _CERTAIN
        yield Dependent(kind, edge.target, why, _CERTAIN if is_certain else edge.confidence)


def _foreign_keys(table: Table, column: str | None, catalog: Catalog) -> Iterator[Dependent]:
    for other in catalog.tables:
        for key in other.foreign_keys:
            is_target = key.target == table.key and column in (None, *key.target_columns)
            is_own = other.key == table.key and column in key.columns
            if not is_target and not is_own:
                continue
            columns = ", ".join(key.columns)
            why = Text(
                f"{qualified(other)} ({columns}) 引用 {'.'.join(key.target)}",
                f"{qualified(other)} ({columns}) refers to {'.'.join(key.target)}",
            )
            yield Dependent("foreign_key", f"{qualified(other)} ({columns})", why, _CERTAIN)


def _metrics(table: Table, column: str | None, catalog: Catalog) -> Iterator[Dependent]:
    for metric in catalog.metrics:
        if metric.table != table.key or column not in (None, *metric.columns):
            continue
        why = Text(f"计算公式：{metric.expression}", f"is computed as {metric.expression}")
        yield Dependent("metric", metric.name, why, _CERTAIN)


def _reports(
    table: Table, column: str | None, catalog: Catalog, reports: Sequence[Report]
) -> Iterator[Dependent]:
    for report in reports:
        confidence = _use(report.sql, table, column, catalog)
        if confidence is None:
            continue
        what = table.name if column is None else f"{table.name}.{column}"
        why = Text(f"其 SQL 用到 {what}", f"its SQL uses {what}")
        yield Dependent("report", report.name, why, confidence)


def _use(sql: str, table: Table, column: str | None, catalog: Catalog) -> float | None:
    """Return how sure it is that the query uses the table or column; None: it does not."""
    try:
        tree = parse_one(sql, dialect="postgres")
    except (SqlglotError, RecursionError):
        return None
    if not any(_is_of(one, table, catalog) for one in tree.find_all(exp.Table)):
        return None
    if column is None:
        return _LIKELY
    if any(one.name == column for one in tree.find_all(exp.Column)):
        return _LIKELY
    has_star = any(True for _ in tree.find_all(exp.Star))
    return _POSSIBLE if has_star else None


def _is_of(named: exp.Table, table: Table, catalog: Catalog) -> bool:
    if named.name != table.name:
        return False
    if named.db:
        return bool(named.db == table.schema)
    return table.schema in catalog.search_path
