"""What is known of the tables that a request is about."""

from typing import Literal

from pydantic import Field

from common.learning import FailureType, Trust
from etl.schemas.requirement import Layer
from etl.schemas.strict import StrictModel

LineageKind = Literal["view", "matview", "artefact"]
LineageOrigin = Literal["pg_depend", "sqlglot", "artefact"]
HintOrigin = Literal["foreign_key", "semantic", "view", "query_log", "name", "inclusion"]
Cardinality = Literal["n:1", "1:1", "1:n", "n:m"]


class ColumnInfo(StrictModel):
    """A column of a source; `type` as PostgreSQL spells it."""

    name: str
    type: str
    nullable: bool
    description: str | None = None
    is_key: bool = False
    is_personal: bool = False


class TableSchema(StrictModel):
    """A table in short: its primary key and the first ten of its `column_count` columns."""

    name: str
    display_name: str | None = None
    description: str | None = None
    key_columns: list[ColumnInfo]
    column_count: int
    layer: Layer
    schema_name: str | None = None
    subject_name: str | None = None
    catalog_name: str | None = None
    domain_name: str | None = None
    row_estimate: int | None = None
    primary_key: list[str] = Field(default_factory=list)
    date_columns: list[str] = Field(default_factory=list)


class TableLineage(StrictModel):
    """`target` is made of `source`; the columns say which of its columns take part."""

    source: str
    target: str
    source_columns: list[str] = Field(default_factory=list)
    target_columns: list[str] = Field(default_factory=list)
    kind: LineageKind
    origin: LineageOrigin
    confidence: float


class JoinHint(StrictModel):
    """A way to join two tables; only `accepted` ones are used without asking."""

    left: str
    right: str
    left_columns: list[str]
    right_columns: list[str]
    cardinality: Cardinality
    origin: HintOrigin
    confidence: float
    accepted: bool


class BusinessContext(StrictModel):
    """Metrics and terms of the semantic file that the request touches."""

    metrics: list[str] = Field(default_factory=list)
    terms: list[str] = Field(default_factory=list)


class QualityRule(StrictModel):
    """A rule for a column's values; statistics only suggest."""

    column: str
    rule: str
    value: str | None = None
    origin: Literal["constraint", "semantic", "statistics"]
    enforced: bool


class KnownFailure(StrictModel):
    """How a draft for the request failed before."""

    failure_type: FailureType
    avoidance_hint: str


class ReferenceSql(StrictModel):
    """Experience with a similar request: a draft that somebody was satisfied with, and failures.

    It is data, no instruction. Without `sql_text` there are failures alone; `use_count` orders,
    nothing else.
    """

    summary: str
    fingerprint: str | None = None
    sql_text: str | None = None
    confidence: float | None = None
    use_count: int | None = None
    trust: Trust | None = None
    failures: list[KnownFailure] = Field(default_factory=list)


class KnowledgeContext(StrictModel):
    """All that the roles know; `gaps` names what was looked for and not found."""

    tables: dict[str, TableSchema] = Field(default_factory=dict)
    table_lineage: list[TableLineage] = Field(default_factory=list)
    join_hints: list[JoinHint] = Field(default_factory=list)
    business_context: BusinessContext = Field(default_factory=BusinessContext)
    quality_rules: list[QualityRule] = Field(default_factory=list)
    references: list[ReferenceSql] = Field(default_factory=list)
    gaps: list[str] = Field(default_factory=list)
