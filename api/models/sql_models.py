"""Verdicts on SQL that a caller gives, and its rows."""

from typing import Literal

from pydantic import Field

from api.models.asking_models import ChartModel, QueryResultModel
from api.models.error_models import PlanModel
from api.models.model_base import ReplyModel, Sometimes, Timestamp


class VerdictModel(ReplyModel):
    ok: bool = Field(description="Whether it may run")
    verdict: Literal["accepted", "refused"]
    error_type: (
        Literal[
            "forbidden_keywords",
            "forbidden_object",
            "syntax_error",
            "validation_exception",
            "cost_exceeded",
        ]
        | None
    )
    error: str | None
    position: int | None = Field(
        description="Where PostgreSQL saw the mistake, in characters", ge=1
    )
    suggestions: list[str] = Field(description="Names that exist and may have been meant")
    tables: list[str]
    columns: list[str]
    functions: list[str]
    plan: PlanModel | None
    warnings: list[str]
    timestamp: Timestamp


class SqlResultModel(ReplyModel):
    sql: str
    query_result: QueryResultModel
    chart: Sometimes[ChartModel] = None
    plan: PlanModel | None
    warnings: list[str]
    run_id: str
    timings_ms: dict[str, float]
    timestamp: Timestamp
