"""Where tables come from, and what depends on them."""

from pydantic import Field

from api.models.model_base import ReplyModel
from etl.lineage.impact import DependentKind
from etl.schemas.knowledge_context import LineageKind, LineageOrigin


class LineageEdgeModel(ReplyModel):
    """`target` is made of `source`"""

    source: str = Field(description="schema.table")
    target: str = Field(description="schema.table")
    source_columns: list[str] = Field(description="Those that take part")
    target_columns: list[str] = Field(
        description="What each of source_columns becomes; empty where that is not known"
    )
    kind: LineageKind
    origin: LineageOrigin
    confidence: float


class LineageModel(ReplyModel):
    nodes: list[str] = Field(description="schema.table, the one that was asked about first")
    edges: list[LineageEdgeModel]
    truncated: bool = Field(description="Whether there were more edges")


class DependentModel(ReplyModel):
    kind: DependentKind
    name: str
    why: str
    confidence: float = Field(description="1 where the server says so")


class ImpactModel(ReplyModel):
    table: str = Field(description="schema.table")
    column: str | None
    dependents: list[DependentModel]
