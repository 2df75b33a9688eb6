"""What is known of the tables that a request is about, from the catalogue that the caller sees."""

from collections.abc import Iterable, Sequence

from common.values import Catalog, Column, ForeignKey, Table
from etl.schemas.knowledge_context import (
    BusinessContext,
    ColumnInfo,
    JoinHint,
    KnowledgeContext,
    QualityRule,
    TableSchema,
)
from etl.schemas.requirement import Layer
from knowledge.values.personal_data import Privacy, privacy_of

_KEY_COLUMNS = 10
_LAYERS: tuple[tuple[str, Layer], ...] = (
    ("ods_", "ODS"),
    ("stg_", "ODS"),
    ("dwd_", "DWD"),
    ("dim_", "DWD"),
    ("fct_", "DWD"),
    ("dws_", "DWS"),
    ("ads_", "ADS"),
)
_DATES = ("date", "timestamp")


def known_tables(
    catalog: Catalog, tables: Sequence[Table], gaps: Sequence[str]
) -> KnowledgeContext:
    """Return the tables with their columns, their joins, and the metrics over them.

    Args:
        gaps: what was looked for and not found.
    """
    names = {table.key: _name_of(table, catalog) for table in tables}
    hints: list[JoinHint] = []
    rules: list[QualityRule] = []
    for table in tables:
        hints += [_hint(table, key, names) for key in table.foreign_keys if key.target in names]
        rules += _rules(table, names[table.key])
    metrics = [metric.name for metric in catalog.metrics if metric.table in names]
    return KnowledgeContext(
        tables={names[table.key]: _schema_of(table, names[table.key]) for table in tables},
        join_hints=hints,
        business_context=BusinessContext(metrics=metrics),
        quality_rules=rules,
        gaps=list(gaps),
    )


def _name_of(table: Table, catalog: Catalog) -> str:
    is_alone = len(catalog.by_name[table.name]) == 1
    return table.name if is_alone else f"{table.schema}.{table.name}"


def _schema_of(table: Table, name: str) -> TableSchema:
    keys = [column for column in table.columns if column.name in table.primary_key]
    others = [column for column in table.columns if column.name not in table.primary_key]
    return TableSchema(
        name=name,
        description=table.comment,
        key_columns=[_column(table, column) for column in (*keys, *others[:_KEY_COLUMNS])],
        column_count=len(table.columns),
        layer=_layer_of(table),
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


def _layer_of(table: Table) -> Layer:
    for prefix, layer in _LAYERS:
        if table.name.startswith(prefix) or f"{table.schema}_" == prefix:
            return layer
    return "SRC"


def _hint(table: Table, key: ForeignKey, names: dict[tuple[str, str], str]) -> JoinHint:
    is_unique = set(key.columns) in [set(table.primary_key), *map(set, table.unique_keys)]
    return JoinHint(
        left=names[table.key],
        right=names[key.target],
        left_columns=list(key.columns),
        right_columns=list(key.target_columns),
        cardinality="1:1" if is_unique else "n:1",
        origin="foreign_key",
        confidence=1.0,
        accepted=True,
    )


def _rules(table: Table, name: str) -> Iterable[QualityRule]:
    for column in table.columns:
        if not column.nullable:
            yield QualityRule(
                column=f"{name}.{column.name}", rule="not_null", origin="constraint", enforced=True
            )
        if column.allowed:
            yield QualityRule(
                column=f"{name}.{column.name}",
                rule="accepted_values",
                value=", ".join(column.allowed),
                origin="constraint",
                enforced=True,
            )
