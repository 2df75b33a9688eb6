"""Describes the tables that a request is about, from the catalogue that the caller sees."""

from collections.abc import Sequence

from common.values import Catalog, Column, Table
from etl.assets.join_hints import join_hints
from etl.assets.quality_rules import quality_rules
from etl.assets.table_layers import layer_of, short_name
from etl.schemas.knowledge_context import (
    BusinessContext,
    ColumnInfo,
    JoinHint,
    KnowledgeContext,
    QualityRule,
    TableSchema,
)
from knowledge.values.personal_data import Privacy, privacy_of

_KEY_COLUMNS = 10
_DATES = ("date", "timestamp")


def known_tables(
    catalog: Catalog, tables: Sequence[Table], gaps: Sequence[str]
) -> KnowledgeContext:
    """Return the tables with their columns, their joins, and the metrics over them.

    Args:
        gaps: what was looked for and not found.
    """
    hints: list[JoinHint] = [hint for hint in join_hints(tables, catalog) if hint.accepted]
    rules: list[QualityRule] = []
    schemas: dict[str, TableSchema] = {}
    for table in tables:
        name = short_name(table, catalog)
        schemas[name] = _schema_of(table, name)
        rules += quality_rules(table, catalog, samples=False)

    keys = {table.key for table in tables}
    metrics = []
    for metric in catalog.metrics:
        if metric.table in keys:
            metrics.append(metric.name)

    return KnowledgeContext(
        tables=schemas,
        join_hints=hints,
        business_context=BusinessContext(metrics=metrics),
        quality_rules=rules,
        gaps=list(gaps),
    )


def _schema_of(table: Table, name: str) -> TableSchema:
    keys: list[Column] = []
    others: list[Column] = []
    for column in table.columns:
        part = keys if column.name in table.primary_key else others
        part.append(column)

    return TableSchema(
        name=name,
        description=table.comment,
        key_columns=[_column(table, column) for column in (*keys, *others[:_KEY_COLUMNS])],
        column_count=len(table.columns),
        layer=layer_of(table),
        schema_name=table.schema,
        row_estimate=table.row_estimate if table.row_estimate >= 0 else None,
        primary_key=list(table.primary_key),
        date_columns=[one.name for one in table.columns if one.type.startswith(_DATES)],
    )


def _column(table: Table, column: Column) -> ColumnInfo:
    return ColumnInfo(
        name=column.name,
        type=column.type,
        nullable=column.nullable,
        description=column.comment,
        is_key=column.name in table.primary_key,
        is_personal=privacy_of(table, column) is not Privacy.OPEN,
    )
