"""The plan of a draft, and what its review says."""

from typing import Literal

from pydantic import Field

from etl.schemas.requirement import Assumption, Layer, Materialization
from etl.schemas.strict import StrictModel

ReviewCode = Literal[
    "cycle",
    "orphan_node",
    "missing_node",
    "unknown_column",
    "type_mismatch",
    "cartesian",
    "fan_out",
    "grain_unstated",
    "sensitive_column",
    "no_partition_filter",
    "not_idempotent",
    "nondeterministic",
    "hard_coded_date",
    "select_star",
    "expensive",
    "sink_refused",
    "target_exists",
]
Severity = Literal["error", "warning"]
PlanVerdict = Literal["pass", "fail"]
ColumnRole = Literal["key", "measure", "attribute", "period", "meta"]
PlanPattern = Literal["simple_etl", "star_schema", "wide_table", "incremental_merge"]


class NodeColumn(StrictModel):
    """An output column; `type` is PostgreSQL's for the node's SQL."""

    name: str
    type: str
    description: str | None = None
    role: ColumnRole = "attribute"


class EtlNode(StrictModel):
    """One model: `inputs` are nodes or `schema.table`; `operations` are the intent's `order`s."""

    name: str
    layer: Layer
    materialization: Materialization
    inputs: list[str]
    operations: list[int]
    grain: list[str]
    columns: list[NodeColumn]


class Risk(StrictModel):
    """Something that may go wrong when the draft is used."""

    code: str
    text: str
    severity: Severity


class ArchitecturePlan(StrictModel):
    """The nodes in topological order; `target` names the last one."""

    pattern: PlanPattern
    nodes: list[EtlNode]
    target: str
    risks: list[Risk] = Field(default_factory=list)
    alternatives: list[str] = Field(default_factory=list)
    assumptions: list[Assumption] = Field(default_factory=list)


class ReviewIssue(StrictModel):
    """A finding of the review at a node; an `error` fails the review."""

    code: ReviewCode
    severity: Severity
    node: str
    message: str
    suggestion: str
    by: Literal["rules", "llm"] = "rules"


class ReviewResult(StrictModel):
    """Whether the plan may be built."""

    verdict: PlanVerdict
    issues: list[ReviewIssue] = Field(default_factory=list)
