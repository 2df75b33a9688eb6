"""The forecast of a series as an answer has it: periods, figures, intervals, and how wrong it was
on the past.
"""

from collections.abc import Sequence
from typing import Any

from agent.analysis.analysis_limits import FORECAST_S, MOST_FITTED, MOST_HORIZON
from agent.analysis.findings import Finding, figure, filled
from agent.analysis.forecasting import LEVELS, CannotForecast, Forecast, forecast
from agent.analysis.series_periods import SEASONS, UNIT_NAMES, Series, later, period_name
from agent.analysis.subject import SubjectColumn
from common.text import Lang, Text
from common.values import PeriodUnit

_HORIZONS: dict[PeriodUnit, int] = {
    "hour": 24,
    "day": 7,
    "week": 4,
    "month": 3,
    "quarter": 2,
    "year": 2,
}
_GAPS = Text(
    "有 {gaps:,} 个周期没有数据，序列不连续，不能预测。",
    "Periods without a figure: {gaps:,}. A series with gaps is not forecast.",
)
_SHORTENED = Text(
    "horizon 已减为 {horizon}：最多预测已有周期数的一半。",
    "horizon was cut to {horizon}: at most half as many periods as there are.",
)
_LATE = Text(
    "预测会超出可表示的日期。", "The forecast would go beyond the dates that can be written."
)
_CLIPPED = Text(
    "历史数值从未低于零，所以预测值和区间中低于零的数值已改为零。",
    " Figures below zero were cut to zero, in the forecast and its interval: there was none "
    "before.",
)
_METHOD = Text(
    "{model}；模型按 AICc 选择，参数由 statsmodels 的最大似然估计得到（最近 {fitted:,} "
    "个完整周期）；"
    "回测为滚动起点，每个起点只用此前的数据重新估计",
    "{model}; chosen by AICc, fitted by maximum likelihood with statsmodels to the last "
    "{fitted:,} complete periods; "
    "back-tested from rolling origins, fitted anew at each to what came before",
)


def horizon_of(series: Series, wanted: int | None) -> tuple[int, list[Text]]:
    """Return how many periods are forecast, and a notice where that is fewer than wanted."""
    most = max(1, min(MOST_HORIZON, len(series.points) // 2))
    horizon = min(wanted or _HORIZONS[series.unit], most)
    notices = [] if wanted is None or wanted == horizon else [filled(_SHORTENED, horizon=horizon)]
    return horizon, notices


def forecast_finding(
    measure: SubjectColumn, series: Series, horizon: int, lang: Lang
) -> tuple[dict[str, Any], Finding]:
    """Return the forecast and the sentence about it. Blocks for seconds.

    Raises:
        CannotForecast: there is none worth giving.
    """
    if series.gaps:
        raise CannotForecast(filled(_GAPS, gaps=series.gaps))

    values = [float(point.value) for point in series.points]
    result = forecast(values, SEASONS[series.unit], horizon, limit_s=FORECAST_S)
    try:
        starts = [
            later(series.points[-1].start, series.unit, step) for step in range(1, horizon + 1)
        ]
    except OverflowError as exc:
        raise CannotForecast(_LATE) from exc

    body = _body(
        measure, series, result, [period_name(start, series.unit) for start in starts], lang
    )
    text = _forecast_text(measure, series, result, body["points"], lang)
    figures = {
        "measure": measure.name,
        "unit": series.unit,
        "next": body["points"][0],
        "backtest": body["backtest"],
    }
    return body, Finding("forecast", text, body["method"], figures)


def _body(
    measure: SubjectColumn, series: Series, result: Forecast, periods: Sequence[str], lang: Lang
) -> dict[str, Any]:
    test = result.backtest
    points = [
        {"period": period, "value": step.mean}
        | {
            f"{end}_{level}": value
            for level, interval in zip(LEVELS, step.intervals, strict=True)
            for end, value in zip(("low", "high"), interval, strict=True)
        }
        for period, step in zip(periods, result.steps, strict=True)
    ]
    fitted = min(len(series.points), MOST_FITTED)
    return {
        "measure": measure.name,
        "unit": series.unit,
        "points": points,
        "model": result.model.name.to(lang),
        "method": _METHOD.to(lang).format(model=result.model.name.to(lang), fitted=fitted),
        "is_clipped_at_zero": result.is_clipped,
        "backtest": {
            "origins": test.origins,
            "forecasts": test.tests,
            "mae": test.mae,
            "mape": test.mape,
            "naive": test.naive.to(lang),
            "naive_mae": test.naive_mae,
            "naive_mape": test.naive_mape,
        },
    }


def _forecast_text(
    measure: SubjectColumn,
    series: Series,
    result: Forecast,
    points: Sequence[dict[str, Any]],
    lang: Lang,
) -> str:
    unit, test, first = measure.column.unit, result.backtest, points[0]

    def said(value: float) -> str:
        return figure(value, unit, lang)

    error, naive = said(test.mae), said(test.naive_mae)
    mape = f"（{test.mape:.1f}%）" if test.mape is not None else ""
    in_percent = f" ({test.mape:.1f}%)" if test.mape is not None else ""
    pending = series.unfinished[0].start if series.unfinished else None
    note = Text("", "")
    if pending is not None and period_name(pending, series.unit) == first["period"]:
        note = Text("（该周期尚未结束，按整个周期预测）", " (not over yet; forecast as a whole)")

    clipped = _CLIPPED if result.is_clipped else Text("", "")
    return Text(
        f"预测 {first['period']}{note.zh} 的“{measure.label}”约为 {said(first['value'])}，"
        f"95% 预测区间 {said(first['low_95'])} 到 {said(first['high_95'])}，"
        f"共预测 {len(points)} 个周期（按{UNIT_NAMES[series.unit].zh}）。{clipped.zh}"
        f"回测 {test.tests} 次的平均绝对误差为 {error}{mape}，“{test.naive.zh}”的简单预测为 "
        f"{naive}。",
        f"{measure.label} in {first['period']}{note.en} is forecast at {said(first['value'])}, "
        f"with a 95% prediction "
        f"interval from {said(first['low_95'])} to {said(first['high_95'])}; periods forecast: "
        f"{len(points)}."
        f"{clipped.en} Back-tested {test.tests} times, the mean absolute error was "
        f"{error}{in_percent}; that of the "
        f"naive forecast “{test.naive.en}” was {naive}.",
    ).to(lang)
