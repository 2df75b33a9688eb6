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
    """A use of the table or column.

    Attributes:
        confidence: 1 where the server itself notes it.
        report: the report of that kind.
    """

    kind: DependentKind
    name: str
    why: Text
    confidence: float
    report: Report | None = None


def impact_of(
    table: Table,
    column: str | None,
    catalog: Catalog,
    edges: Sequence[TableLineage],
    reports: Sequence[Report] = (),
) -> list[Dependent]:
    """Return what breaks without the table, or without this column of it."""
    dependents = [*_views(table, column, edges), *_foreign_keys(table, column, catalog)]
    dependents += _metrics(table, column, catalog)
    dependents += _reports(table, column, catalog, reports)
    return dependents


def _views(table: Table, column: str | None, edges: Sequence[TableLineage]) -> Iterator[Dependent]:
    name = qualified(table)
    what = name if column is None else f"{name}.{column}"
    direct = {edge.target for edge in edges if edge.source == name}
    part = part_of(edges, name, column=column, direction="downstream", depth=_ALL_VIEWS)
    first_edges: dict[str, TableLineage] = {}
    for edge in part.edges:
        first_edges.setdefault(edge.target, edge)

    for view, edge in first_edges.items():
        why = Text(f"直接读取 {what}", f"reads {what}")
        if view not in direct:
            why = Text(f"通过 {edge.source} 间接读取", f"reads it by way of {edge.source}")

        confidence = _CERTAIN if column is None else edge.confidence
        yield Dependent(edge.kind, view, why, confidence)


def _foreign_keys(table: Table, column: str | None, catalog: Catalog) -> Iterator[Dependent]:
    for other in catalog.tables:
        for key in other.foreign_keys:
            is_referred_to = key.target == table.key and column in (None, *key.target_columns)
            refers_by_it = other.key == table.key and column in key.columns
            if not is_referred_to and not refers_by_it:
                continue

            name = f"{qualified(other)} ({', '.join(key.columns)})"
            target = ".".join(key.target)
            why = Text(f"{name} 引用 {target}", f"{name} refers to {target}")
            yield Dependent("foreign_key", name, why, _CERTAIN)


def _metrics(table: Table, column: str | None, catalog: Catalog) -> Iterator[Dependent]:
    for metric in catalog.metrics:
        is_used = column in (None, *metric.columns)
        if is_used and metric.table == table.key:
            why = Text(f"计算公式：{metric.expression}", f"is computed as {metric.expression}")
            yield Dependent("metric", metric.name, why, _CERTAIN)


def _reports(
    table: Table, column: str | None, catalog: Catalog, reports: Sequence[Report]
) -> Iterator[Dependent]:
    what = table.name if column is None else f"{table.name}.{column}"
    why = Text(f"其 SQL 用到 {what}", f"its SQL uses {what}")
    for report in reports:
        confidence = _use(report.sql, table, column, catalog)
        if confidence is not None:
            yield Dependent("report", report.name, why, confidence, report)


def _use(sql: str, table: Table, column: str | None, catalog: Catalog) -> float | None:
    """Return how sure it is that the query uses the table or column; None where it does not."""
    try:
        tree = parse_one(sql, dialect="postgres")
    except (SqlglotError, RecursionError):
        return None

    if not _names_table(tree, table, catalog):
        return None

    columns = {named.name for named in tree.find_all(exp.Column)}
    if column is None or column in columns:
        return _LIKELY

    has_star = tree.find(exp.Star) is not None
    return _POSSIBLE if has_star else None


def _names_table(query: exp.Expr, table: Table, catalog: Catalog) -> bool:
    """Tell whether a query names the table, with its schema or found by the search path."""
    schemas = {table.schema}
    if table.schema in catalog.search_path:
        schemas.add("")

    for named in query.find_all(exp.Table):
        if named.name == table.name and named.db in schemas:
            return True

    return False
