"""Analyses the rows of a statement: it is run again inside statements that add up, order and
compare its rows.

Every statement passes the guard like any other, and is bound by the same limits.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

from agent.analysis import analysis_sql, describing, predicting, series_changes
from agent.analysis.analysis_limits import MOST_NAMED, MOST_PERIODS
from agent.analysis.analysis_sql import AnalysedRows
from agent.analysis.findings import Finding, filled
from agent.analysis.forecasting import CannotForecast
from agent.analysis.series_periods import (
    ALIGNED,
    Point,
    Series,
    fitting_unit,
    period_start,
    series_of,
    written_unit,
)
from agent.analysis.share_findings import share_findings
from agent.analysis.subject import Subject, SubjectColumn, described_columns, subject_of
from common.ports import Database
from common.text import Lang, Text
from common.values import AnalysisKind, PeriodUnit
from knowledge.results.result_columns import result_columns

_OVER_TIME: tuple[AnalysisKind, ...] = ("change", "forecast")
_BY_DEFAULT: tuple[AnalysisKind, ...] = ("describe", "shares", "change", "outliers")

_NO_MEASURE = Text(
    "结果中没有可以分析的数值列。", "The result has no column of figures to analyse."
)
_NO_GROUP = Text(
    "结果中没有可以分组的列，不能算占比。",
    "The result has no column of groups: no shares can be formed.",
)
_NO_TIME = Text(
    "结果中没有时间列，看不出变化。", "The result has no column of time: no change can be seen."
)
_NOT_ADDED = Text(
    "“{name}”是平均值、比率或单价之类，相加没有意义，不能算占比。",
    "{name} is an average, a rate, a price or the like, which can't be added up: no shares of it "
    "are formed.",
)
_NOT_ADDED_OVER_TIME = Text(
    "“{name}”在一个周期中有多行，而且相加没有意义，看不出变化。",
    "{name} has several rows per period and can't be added up: no change can be seen.",
)
_NO_SERIES = Text(
    "“{name}”的值不能按周期排列（或超过 {most:,} 个周期）。",
    "The values of {name} can't be put in order as periods, or are more than {most:,} of them.",
)
_SPARSE = Text(
    "“{name}”的时间太稀疏，大多数周期没有数据，不作为时间序列分析。",
    "The times of {name} are too far apart: most periods between them have no figures, so they "
    "make no series.",
)
_HOLES = Text(
    "从第一个到最后一个周期之间有 {gaps:,} 个周期没有“{name}”的数据；跨越空缺的周期不作比较。",
    "Periods without {name} between the first and the last: {gaps:,}; nothing is compared across "
    "a gap.",
)


@dataclass(frozen=True)
class AnalysisRequest:
    """A request to analyse rows.

    Attributes:
        what: None: everything that costs only SQL and that the rows allow.
        measure, by: name or label of a column; see `subject_of`.
        horizon: periods to forecast; None: a few.
        notices: warnings about the request itself.
    """

    lang: Lang
    what: tuple[AnalysisKind, ...] | None = None
    measure: str | None = None
    by: str | None = None
    horizon: int | None = None
    notices: tuple[Text, ...] = ()


class Analyst:
    """Analyses rows; one for the process."""

    def __init__(self) -> None:
        # One at a time: a forecast keeps a core busy, and a thread can't be stopped from outside.
        self._forecasts = ThreadPoolExecutor(1, thread_name_prefix="forecast")

    async def analyse(
        self, sql: str, request: AnalysisRequest, database: Database
    ) -> dict[str, Any]:
        """Analyse the rows of `sql`: columns, findings, warnings, a forecast if one was asked for.

        Raises:
            InvalidRequest: the rows have no such measure or group.
            StatementRejected, QueryTimeout, DatabaseUnavailable: as for `Database.run`.
        """
        statement = (await database.inspect(sql)).statement
        await database.explain(sql)
        result = await database.run(sql)
        columns = result_columns(sql, result, await database.catalog(), request.lang)
        subject = subject_of(columns, result, request.measure, request.by)
        work = _Work(request, subject, AnalysedRows(statement, len(columns)), database)
        await work.do(self._forecasts)
        notices = dict.fromkeys([*request.notices, *work.notices])
        body: dict[str, Any] = {
            "columns": described_columns(columns, result),
            "findings": [finding.body() for finding in work.findings],
        }
        if work.forecast:
            body["forecast"] = work.forecast

        body["warnings"] = [notice.to(request.lang) for notice in notices]
        return body


@dataclass
class _Work:
    """One analysis; gathers what it finds."""

    request: AnalysisRequest
    subject: Subject
    rows: AnalysedRows
    database: Database
    findings: list[Finding] = field(default_factory=list)
    notices: list[Text] = field(default_factory=list)
    forecast: dict[str, Any] | None = None

    async def do(self, forecasts: ThreadPoolExecutor) -> None:
        """Find what is asked for: descriptions, shares, changes and forecast, outliers."""
        if not self.subject.measures:
            self.notices.append(_NO_MEASURE)
            return

        kinds = self.request.what or _BY_DEFAULT
        if "describe" in kinds:
            await self._describe()
        if "shares" in kinds:
            await self._share()
        if "change" in kinds or "forecast" in kinds:
            await self._follow(forecasts, kinds)
        if "outliers" in kinds:
            await self._find_outliers()

    def _miss(self, kind: AnalysisKind, notice: Text) -> None:
        """Add why a kind can't be told, if the request names that kind."""
        named = self.request.what
        if named is not None and kind in named:
            self.notices.append(notice)

    async def _fetch(self, sql: str, most: int) -> list[list[Any]]:
        await self.database.explain(sql)  # for the limits on plans
        stream = await self.database.stream(sql, most)
        rows: list[list[Any]] = []
        try:
            while page := await stream.page():
                rows += page
        finally:
            await stream.aclose()

        return rows

    async def _describe(self) -> None:
        measures, lang = self.subject.measures, self.request.lang
        pairs = list(combinations(measures, 2))
        sql = analysis_sql.described(self.rows, measures, pairs)
        rows, *cells = (await self._fetch(sql, 1))[0]
        size = len(describing.FACTS)
        for number, measure in enumerate(measures):
            facts = describing.facts_of(cells[number * size : (number + 1) * size])
            self.findings.append(describing.describe(measure, rows, facts, sql, lang))

        pair_cells = cells[len(measures) * size :]
        for (one, other), count, r in zip(pairs, pair_cells[::2], pair_cells[1::2], strict=True):
            finding = describing.correlation(one, other, count, r, sql, lang)
            self.findings += [finding] if finding else []

    async def _share(self) -> None:
        if not self.subject.groups:
            self._miss("shares", _NO_GROUP)
            return

        group = self.subject.groups[0]
        for measure in self.subject.measures:
            if not measure.adds_up:
                self._miss("shares", filled(_NOT_ADDED, name=measure.label))
                continue

            sql = analysis_sql.shares(self.rows, measure, group)
            finding = share_findings(
                measure, group, await self._fetch(sql, MOST_NAMED), sql, self.request.lang
            )
            if isinstance(finding, Text):
                self._miss("shares", finding)
            else:
                self.findings += finding

    async def _find_outliers(self) -> None:
        names = [*self.subject.times[:1], *self.subject.groups[:2]]
        for measure in self.subject.measures:
            sql = analysis_sql.outliers(self.rows, measure, names)
            finding = describing.outlier_finding(
                measure, names, await self._fetch(sql, MOST_NAMED), sql, self.request.lang
            )
            if isinstance(finding, Text):
                self._miss("outliers", finding)
            else:
                self.findings.append(finding)

    # --------------------------------------------------------------------------
    # over time

    async def _follow(self, forecasts: ThreadPoolExecutor, kinds: Sequence[AnalysisKind]) -> None:
        """Follow each measure over time; the first one is forecast."""
        if not self.subject.times:
            self._miss_over_time(_NO_TIME)
            return

        time = self.subject.times[0]
        unit = None
        if time.is_timestamp:
            unit = await self._unit(time)

        for number, measure in enumerate(self.subject.measures):
            sql = analysis_sql.series(self.rows, measure, time, unit)
            series = await self._series(measure, time, unit, sql)
            if isinstance(series, Text):
                self._miss_over_time(series)
                continue

            if series.gaps:
                self.notices.append(filled(_HOLES, gaps=series.gaps, name=measure.label))
            if "change" in kinds:
                self.findings += series_changes.changes(measure, series, sql, self.request.lang)
                await self._contribute(measure, time, unit, series)

            if "forecast" in kinds and number == 0:
                await self._predict(measure, series, forecasts)

    def _miss_over_time(self, notice: Text) -> None:
        for kind in _OVER_TIME:
            self._miss(kind, notice)

    async def _unit(self, time: SubjectColumn) -> PeriodUnit | None:
        """Return the unit to count the times by; None without times or with too many periods."""
        rows = await self._fetch(analysis_sql.grain(self.rows, time), 1)
        count, first, last, *aligned = rows[0]
        if not count:
            return None

        begins, ends = period_start(first, "hour"), period_start(last, "hour")
        if begins is None or ends is None:
            return None

        period = time.column.period
        if period is not None:  # one January alone is no series of years
            aligned = [unit == period for unit in ALIGNED]

        return fitting_unit(begins, ends, aligned, MOST_PERIODS)

    async def _series(
        self, measure: SubjectColumn, time: SubjectColumn, unit: PeriodUnit | None, sql: str
    ) -> Series | Text:
        """Return the measure's figures over time; a notice when they make no series."""
        no_series = filled(_NO_SERIES, name=time.label, most=MOST_PERIODS)
        if time.is_timestamp and unit is None:
            return no_series

        rows = await self._fetch(sql, MOST_PERIODS + 1)
        unit = unit or _written_unit(rows)
        if unit is None or len(rows) > MOST_PERIODS:
            return no_series
        if _has_rows_to_add(rows) and not measure.adds_up:
            return filled(_NOT_ADDED_OVER_TIME, name=measure.label)

        points = _points(rows, unit)
        if not points:
            return no_series

        series = series_of(unit, points, datetime.fromisoformat(rows[0][-1]))
        if _is_sparse(series, time):
            return filled(_SPARSE, name=time.label)

        return series

    async def _contribute(
        self, measure: SubjectColumn, time: SubjectColumn, unit: PeriodUnit | None, series: Series
    ) -> None:
        """Add which groups made the last change, if the result has groups."""
        step = series_changes.last_step(series)
        if step is None or not self.subject.groups or not measure.adds_up:
            return

        group = self.subject.groups[0]
        kind = "timestamp " if time.is_timestamp else ""
        before, last = (f"{kind}'{point.written.replace('T', ' ')}'" for point in step)
        sql = analysis_sql.contributions(
            self.rows,
            measure,
            group,
            period=analysis_sql.period(time, unit),
            last=last,
            before=before,
        )
        rows = await self._fetch(sql, MOST_NAMED)
        finding = series_changes.contribution_finding(
            measure, group, step, series, rows, sql, self.request.lang
        )
        self.findings += [finding] if finding else []

    async def _predict(
        self, measure: SubjectColumn, series: Series, forecasts: ThreadPoolExecutor
    ) -> None:
        horizon, notices = predicting.horizon_of(series, self.request.horizon)
        work = asyncio.get_running_loop().run_in_executor(
            forecasts, predicting.forecast_finding, measure, series, horizon, self.request.lang
        )
        try:
            self.forecast, finding = await work
        except CannotForecast as error:
            self.notices.append(error.text)
            return

        self.notices += notices
        self.findings.append(finding)


def _written_unit(rows: Sequence[Sequence[Any]]) -> PeriodUnit | None:
    times = [row[0] for row in rows]
    return written_unit(times)


def _has_rows_to_add(period_rows: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a period has several rows, whose figures its point would be the sum of."""
    return any(rows > 1 for _, rows, *_ in period_rows)


def _is_sparse(series: Series, time: SubjectColumn) -> bool:
    """Tell whether more periods are missing than there are, though the query cuts none out."""
    is_cut_to_periods = time.column.period is not None
    return not is_cut_to_periods and series.gaps > len(series.points)


def _points(rows: Sequence[Sequence[Any]], unit: PeriodUnit) -> list[Point]:
    """Return a point for each period with figures; none at all if a period can't be read.

    Args:
        rows: of `analysis_sql.series`: period, number of rows, number of figures, their sum, clock.
    """
    points = []
    for written_period, _, figure_count, total, _ in rows:
        start = period_start(written_period, unit)
        if start is None:
            return []
        if figure_count:
            points.append(Point(start, total, written_period))

    return points
