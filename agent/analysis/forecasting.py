"""Forecasts of regular series by exponential smoothing, each with the error that it made on the
series' own past.

statsmodels is optional (`requirements-analysis.txt`) and is imported at the first forecast.
Everything here blocks, and is called in a thread.
"""

import importlib.util
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.analysis.analysis_limits import MOST_FITTED
from common.text import Text

LEAST_PERIODS = 8
_SEASONS = 2  # complete ones that a seasonal model needs
_MOST_SEASON = 24  # periods; a longer season has too many parameters to estimate
_ORIGINS = 8  # of the back-test
_LEAST_TRAINING = 5
_LEAST_ORIGINS = 3
# From so many figures on, the initial level, trend and season come from a heuristic, not the fit.
_LEAST_HEURISTIC = 10
_MOST_ITERATIONS = 100  # of one fit
_NOISE = 1e-9  # of the greatest figure; smaller values are rounding errors, and count as 0
# Of the range of figures. Fits bound the weight of the last figure at 0.9999, so that at a step a
# model errs by as much more than the naive forecast, without being a worse model.
_TOLERANCE = 1e-4
LEVELS = (80, 95)
"""Percent of the prediction intervals."""

_ABSENT = Text(
    "没有安装预测所需的可选组件：pip install -r requirements-analysis.txt。",
    "Forecasts need an optional part that is not installed: pip install -r "
    "requirements-analysis.txt.",
)
_SHORT = Text(
    "只有 {n} 个完整周期，至少需要 {least} 个才能预测。",
    "Complete periods: {n}; a forecast takes at least {least}.",
)
_CONSTANT = Text(
    "各周期的数值完全相同，没有可以预测的变化。",
    "All periods have the same figure: there is nothing to forecast.",
)
_WORSE = Text(
    "不给出预测：回测 {tests} 次，模型的平均绝对误差（{mae:.4g}）"
    "大于“{naive}”的简单预测（{naive_mae:.4g}）。",
    "No forecast is given: back-tested {tests} times, the model's mean absolute error "
    "({mae:.4g}) is greater "
    "than that of the naive forecast “{naive}” ({naive_mae:.4g}).",
)
_TOO_LONG = Text("预测超过时限，已停止。", "The forecast took longer than allowed and was stopped.")
_UNFIT = Text("没有模型能拟合这个序列。", "No model fits this series.")
_LAST, _SEASON_AGO = (
    Text("与上一周期相同", "as the period before"),
    Text("与上一季节同期相同", "as a season before"),
)

_TRENDS = {"straight": Text("趋势", "trend"), "damped": Text("阻尼趋势", "damped trend")}


class CannotForecast(Exception):
    """No forecast is worth giving; `text` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True)
class Model:
    """A way to forecast: exponential smoothing with these parts, all of them additive.

    Attributes:
        season: periods of a season; 0: without.
    """

    trend: Literal["straight", "damped"] | None
    season: int = 0

    @property
    def name(self) -> Text:
        """Return the name that the method has in statistics, and its parts."""
        sign = {"straight": "A", "damped": "Ad", None: "N"}[self.trend]
        form = f"ETS(A,{sign},{'A' if self.season else 'N'})"
        parts = [Text("水平", "level")]
        parts += [_TRENDS[self.trend]] if self.trend else []
        parts += (
            [Text(f"季节（{self.season} 期）", f"season of {self.season}")] if self.season else []
        )
        return Text(
            f"指数平滑 {form}：{'、'.join(part.zh for part in parts)}",
            f"exponential smoothing {form}: {', '.join(part.en for part in parts)}",
        )


@dataclass(frozen=True)
class Backtest:
    """Errors of the way of forecasting on the past, from origins that know only what came
    before.

    Attributes:
        tests: how many forecasts of single periods were compared.
        mape: mean absolute error in percent of the true figure; None where one of these is zero.
        naive: the better one of the naive forecasts, and its errors.
    """

    origins: int
    tests: int
    mae: float
    mape: float | None
    naive: Text
    naive_mae: float
    naive_mape: float | None


@dataclass(frozen=True)
class PeriodLength:
    """One forecast period: the figure, and the interval of each level."""

    mean: float
    intervals: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Forecast:
    """Steps after the last period of a series."""

    model: Model
    steps: tuple[PeriodLength, ...]
    backtest: Backtest
    is_clipped: bool


def is_installed() -> bool:
    """Tell whether the optional packages are installed."""
    return importlib.util.find_spec("statsmodels") is not None


def forecast(values: Sequence[float], season: int, horizon: int, *, limit_s: float) -> Forecast:
    """Return the next `horizon` figures of a series without gaps.

    Args:
        season: periods of a season that the series may have; 1: it has none.
        limit_s: seconds it may take.

    Raises:
        CannotForecast: the optional part is absent, the series is too short or constant, the
            back-test is worse than a naive forecast, or the time is up.
    """
    if not is_installed():
        raise CannotForecast(_ABSENT)
    if len(values) < LEAST_PERIODS:
        raise CannotForecast(
            Text(*(form.format(n=len(values), least=LEAST_PERIODS) for form in _SHORT))
        )

    values = values[-MOST_FITTED:]
    if min(values) == max(values):
        raise CannotForecast(_CONSTANT)

    return _Forecaster(values, season, horizon, time.monotonic() + limit_s).forecast()


class _Forecaster:
    def __init__(self, values: Sequence[float], season: int, horizon: int, until: float) -> None:
        # Fits are of figures around one: the optimizer's steps and limits are absolute.
        self._scale = max(map(abs, values))
        self._values = [value / self._scale for value in values]
        self._season = season if 1 < season <= _MOST_SEASON else 0
        self._horizon = horizon
        self._until = until

    def forecast(self) -> Forecast:
        model = self._chosen()
        backtest = self._backtest(model, self._origins(model))
        if backtest.mae > backtest.naive_mae + _TOLERANCE * self._scale * (
            max(self._values) - min(self._values)
        ):
            test_figures = {
                "tests": backtest.tests,
                "mae": backtest.mae,
                "naive_mae": backtest.naive_mae,
            }
            zh, en = (
                form.format(naive=naive, **test_figures)
                for form, naive in zip(_WORSE, backtest.naive, strict=True)
            )
            raise CannotForecast(Text(zh, en))

        steps = self._predicted(model)
        is_clipped = min(self._values) >= 0 and any(
            low < 0 for step in steps for low, _ in step.intervals
        )
        # Figures that never were negative, such as counts, are not forecast as negative.
        if is_clipped:
            steps = tuple(
                PeriodLength(
                    max(0.0, step.mean),
                    tuple((max(0.0, low), max(0.0, high)) for low, high in step.intervals),
                )
                for step in steps
            )

        return Forecast(model, steps, backtest, is_clipped)

    def _origins(self, model: Model) -> list[int]:
        """Return how many figures are known at each origin of the back-test."""
        count = len(self._values)
        least = max(_LEAST_TRAINING, _SEASONS * model.season)
        return list(range(max(least, count - _ORIGINS), count))

    def _chosen(self) -> Model:
        """Return the model of the least AICc, among those that the back-test can fit."""
        candidates = [Model(None), Model("straight"), Model("damped")]
        if self._season and len(self._values) >= _SEASONS * self._season + _LEAST_ORIGINS:
            candidates += [Model(candidate.trend, self._season) for candidate in candidates]

        fitted = [(self._fit(model, self._values), model) for model in candidates]
        scored = [
            (_aicc(result.llf, model, len(self._values)), model)
            for result, model in fitted
            if result
        ]
        if scored:
            return min(scored, key=lambda one: one[0])[1]

        return candidates[0]

    def _fit(self, model: Model, training: Sequence[float]) -> Any:
        """Return the fitted model; None when there are too few figures for a fit."""
        import numpy as np
        import pandas as pd
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel

        if time.monotonic() > self._until:
            raise CannotForecast(_TOO_LONG)

        options = {"seasonal": "add", "seasonal_periods": model.season} if model.season else {}
        try:
            with np.errstate(all="ignore"):
                model_to_fit = ETSModel(
                    pd.Series(training, dtype=float),
                    error="add",
                    trend="add" if model.trend else None,
                    damped_trend=model.trend == "damped",
                    initialization_method="heuristic"
                    if len(training) >= _LEAST_HEURISTIC
                    else "estimated",
                    **options,
                )
                return model_to_fit.fit(
                    disp=False, maxiter=_MOST_ITERATIONS, warn_convergence=False
                )
        except (ValueError, np.linalg.LinAlgError, ZeroDivisionError):
            return None

    def _backtest(self, model: Model, origins: Sequence[int]) -> Backtest:
        season, errors = model.season or self._season, _Errors()
        naives = [(_LAST, _Errors(), 1)]
        if season and origins[0] >= season:
            naives.append((_SEASON_AGO, _Errors(), season))

        for origin in origins:
            truth = self._values[origin : origin + self._horizon]
            fitted = self._fit(model, self._values[:origin])
            if fitted is None:
                raise CannotForecast(_UNFIT)

            errors.add([float(one) for one in fitted.forecast(len(truth))], truth)
            for _, naive, period in naives:
                naive.add(
                    [self._values[origin - period + step % period] for step in range(len(truth))],
                    truth,
                )

        name, naive, _ = min(naives, key=lambda one: one[1].mae)
        scale = self._scale
        return Backtest(
            len(origins),
            errors.count,
            errors.mae * scale,
            errors.mape,
            name,
            naive.mae * scale,
            naive.mape,
        )

    def _predicted(self, model: Model) -> tuple[PeriodLength, ...]:
        fitted = self._fit(model, self._values)
        if fitted is None:
            raise CannotForecast(_UNFIT)

        first = len(self._values)
        predicted = fitted.get_prediction(start=first, end=first + self._horizon - 1)
        frames = [predicted.summary_frame(alpha=1 - level / 100) * self._scale for level in LEVELS]
        ends = [
            list(zip(frame["pi_lower"].tolist(), frame["pi_upper"].tolist(), strict=True))
            for frame in frames
        ]
        return tuple(
            PeriodLength(
                self._without_noise(mean),
                tuple(
                    (self._without_noise(low), self._without_noise(high)) for low, high in intervals
                ),
            )
            for mean, *intervals in zip(frames[0]["mean"].tolist(), *ends, strict=True)
        )

    def _without_noise(self, value: float) -> float:
        return 0.0 if abs(value) < _NOISE * self._scale else value


def _aicc(likelihood: float, model: Model, count: int) -> float:
    """Return Akaike's criterion for small samples; infinite for a model with too many parameters
    for `count` figures.

    The initial level, trend and season count as parameters also where they are not estimated, so
    that models with more of them have no advantage.
    """
    states = 1 + (model.trend is not None) + max(0, model.season - 1)
    smoothing = 1 + {"straight": 1, "damped": 2, None: 0}[model.trend] + bool(model.season)
    parameters = states + smoothing + 1  # the variance
    if count - parameters - 1 <= 0 or not math.isfinite(likelihood):
        return math.inf

    return (
        2 * parameters
        - 2 * likelihood
        + 2 * parameters * (parameters + 1) / (count - parameters - 1)
    )


class _Errors:
    """Absolute errors of forecasts, and their ratios to the true figures, which are scaled to about
    one.
    """

    def __init__(self) -> None:
        self._errors: list[float] = []
        self._parts: list[float | None] = []

    def add(self, forecasts: Sequence[float], truth: Sequence[float]) -> None:
        """Add forecasts of single periods."""
        for one, true in zip(forecasts, truth, strict=True):
            error = abs(one - true) if abs(one - true) >= _NOISE else 0.0
            self._errors.append(error)
            self._parts.append(error / abs(true) if true else None)

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self._errors)

    @property
    def mae(self) -> float:
        """Return the mean of the absolute errors."""
        return sum(self._errors) / len(self._errors)

    @property
    def mape(self) -> float | None:
        """Return the mean error in percent of the truth; None where one of these is zero."""
        parts = [part for part in self._parts if part is not None]
        if len(parts) == len(self._parts):
            return 100 * sum(parts) / len(parts)

        return None
