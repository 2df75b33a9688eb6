"""What somebody wants built: the intent, and what of it is open, assumed or not possible."""

from typing import Any, Literal

from pydantic import Field

from etl.schemas.further_step import FurtherStep
from etl.schemas.strict import StrictModel

Action = Literal["join", "filter", "transform", "aggregate", "window", "dedup", "sink"]
AmbiguityKind = Literal[
    "table",
    "column",
    "measure",
    "date_column",
    "join_path",
    "join_key",
    "grain",
    "currency",
    "fan_out",
    "filter_value",
    "target",
]
ImpossibleKind = Literal[
    "no_join_path",
    "unknown_name",
    "not_a_transformation",
    "sink_refused",
    "not_allowed",
    "unsupported",
]
DecidedBy = Literal["default", "semantic", "user", "example"]
Layer = Literal["SRC", "ODS", "DWD", "DWS", "ADS"]
Materialization = Literal["view", "table", "incremental"]


class IntentSource(StrictModel):
    """A table of the datasource that the request names; `alias` then stands for it everywhere."""

    table_name: str
    schema_name: str | None = None
    alias: str | None = None


class IntentTarget(StrictModel):
    """The relation that is built."""

    table_name: str | None = None
    layer: Layer | None = None
    materialization: Materialization | None = None
    description: str | None = None


class IntentOperation(StrictModel):
    """One step; what `parameters` holds depends on `action` (`etl.schemas.parameters`)."""

    order: int
    action: Action
    description: str | None = None
    involved_tables: list[str] | None = None
    involved_columns: list[str] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)


class UserIntent(StrictModel):
    """A request as ordered operations over named tables."""

    summary: str
    business_goal: str | None = None
    data_sources: list[IntentSource]
    data_target: IntentTarget = Field(default_factory=IntentTarget)
    operations: list[IntentOperation]
    constraints: list[str] = Field(default_factory=list)


class Choice(StrictModel):
    """A value that answers an ambiguity, and how people read it."""

    value: str
    label: str


class Ambiguity(StrictModel):
    """Two readings that give different tables; `operation` is the `order` of the step."""

    id: str
    kind: AmbiguityKind
    prompt: str
    choices: list[Choice]
    operation: int | None = None


class Assumption(StrictModel):
    """A decision made without asking, with the rows and the amount that it decides about.

    Attributes:
        rows: null where they were not counted.
        amount: what the first measure adds up for these rows, as text.
        of: whether the rows are those of a sample or all.
    """

    id: str
    text: str
    operation: int | None = None
    rows: int | None = None
    amount: str | None = None
    of: Literal["sample", "whole"] | None = None
    decided_by: DecidedBy = "default"


class Impossible(StrictModel):
    """Why a request, or a part of it, can't be built."""

    kind: ImpossibleKind
    text: str
    suggestions: list[str] = Field(default_factory=list)


class AnalysisResult(StrictModel):
    """The request as understood; it can be built when nothing is ambiguous or impossible.

    Attributes:
        further: the step behind the intent that a model has to write.
    """

    intent: UserIntent | None = None
    ambiguities: list[Ambiguity] = Field(default_factory=list)
    assumptions: list[Assumption] = Field(default_factory=list)
    impossible: list[Impossible] = Field(default_factory=list)
    method: Literal["rules", "llm", "given"] = "rules"
    further: FurtherStep | None = None
