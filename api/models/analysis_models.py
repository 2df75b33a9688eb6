"""Figures about an answer's rows."""

from typing import Any

from pydantic import Field

from agent.analysis.findings import FindingKind
from api.models.model_base import ReplyModel, Sometimes
from common.values import PeriodUnit
from knowledge.results.result_columns import ResultRole


class AnalyzedColumnModel(ReplyModel):
    name: str
    type: str
    label: str
    unit: str | None
    role: ResultRole
    period: str | None


class FindingModel(ReplyModel):
    kind: FindingKind
    text: str
    method: str
    figures: dict[str, Any] = Field(description="What the text says, unrounded")
    sql: Sometimes[str] = None


class ForecastPointModel(ReplyModel):
    period: str
    value: float
    low_80: float
    high_80: float
    low_95: float
    high_95: float


class ForecastBacktestModel(ReplyModel):
    origins: int
    forecasts: int
    mae: float
    mape: float | None
    naive: str
    naive_mae: float
    naive_mape: float | None


class ForecastModel(ReplyModel):
    measure: str
    unit: PeriodUnit
    points: list[ForecastPointModel]
    model: str
    method: str
    is_clipped_at_zero: bool
    backtest: ForecastBacktestModel


class AnalysisModel(ReplyModel):
    run_id: str
    columns: list[AnalyzedColumnModel]
    findings: list[FindingModel]
    forecast: Sometimes[ForecastModel] = None
    warnings: list[str]
