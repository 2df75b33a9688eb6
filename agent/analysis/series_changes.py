"""Findings about a series: change against the period before and a year before, best and worst, the
longest rise.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from agent.analysis.findings import Finding, figure, percent
from agent.analysis.series_periods import (
    UNIT_NAMES,
    Point,
    Series,
    neighbours,
    period_name,
    year_before,
)
from agent.analysis.subject import SubjectColumn
from common.text import Lang, Text

_TOLD = 3  # groups that the sentence names
_LEAST_RISE = 2  # steps
_METHOD = Text(
    "按{unit}的合计之差（SQL 汇总，未结束的周期不参与）",
    "difference of the figures per {unit} (added up by SQL; unfinished periods are left out)",
)
_GROUPS = Text(
    "各组在两个周期的合计之差（SQL）；说明变化出在哪里，不说明原因",
    "difference of each group's sums in the two periods (SQL); it shows where the change lies, "
    "not its cause",
)
_UNFINISHED = Text("以数据库的当前时间为准", "by the database's clock")
_MORE, _LESS, _SAME = Text("增加", "more"), Text("减少", "less"), Text("持平", "the same")


def changes(measure: SubjectColumn, series: Series, sql: str, lang: Lang) -> list[Finding]:
    """Return the findings of a series by itself."""
    method = _METHOD.to(lang).format(unit=UNIT_NAMES[series.unit].to(lang))
    teller = _SeriesFindings(measure, series, method, sql, lang)
    return [*teller.unfinished(), *teller.latest(), *teller.extremes(), *teller.rise()]


def last_step(series: Series) -> tuple[Point, Point] | None:
    """Return the last period that is over and the one directly before it."""
    steps = neighbours(series.points[-2:], series.unit)
    return steps[0] if steps else None


class _SeriesFindings:
    def __init__(
        self, measure: SubjectColumn, series: Series, method: str, sql: str, lang: Lang
    ) -> None:
        self._measure = measure
        self._series = series
        self._method = method
        self._sql = sql
        self._lang = lang

    def _figure_text(self, value: Decimal) -> str:
        return figure(value, self._measure.column.unit, self._lang)

    def _period_text(self, point: Point) -> str:
        return period_name(point.start, self._series.unit)

    def _finding(
        self, kind: Any, text: Text, figures: dict[str, Any], method: str | None = None
    ) -> Finding:
        of = {"measure": self._measure.name, "unit": self._series.unit}
        return Finding(
            kind, text.to(self._lang), method or self._method, {**of, **figures}, self._sql
        )

    def unfinished(self) -> Iterator[Finding]:
        """Yield the periods that are not over yet."""
        if not self._series.unfinished:
            return

        first = self._series.unfinished[0]
        periods = [
            {"period": self._period_text(point), "value": point.value}
            for point in self._series.unfinished
        ]
        text = Text(
            f"{self._period_text(first)} 还没有结束（目前“{self._measure.label}”为 "
            f"{self._figure_text(first.value)}），不参与比较。",
            f"{self._period_text(first)} is not over yet ({self._measure.label} so far: "
            f"{self._figure_text(first.value)}) and is "
            "compared with nothing.",
        )
        yield self._finding(
            "unfinished", text, {"periods": periods[:_TOLD]}, _UNFINISHED.to(self._lang)
        )

    def latest(self) -> Iterator[Finding]:
        """Yield the last period against the one before it, and against the same one a year
        before.
        """
        step = last_step(self._series)
        if step is not None:
            yield self._comparison("change", step[1], step[0])
        if not self._series.points:
            return

        last = self._series.points[-1]
        then = year_before(last.start, self._series.unit)
        same = next((point for point in self._series.points if point.start == then), None)
        if same is not None:
            yield self._comparison("year_before", last, same)

    def _comparison(self, kind: Any, last: Point, before: Point) -> Finding:
        change, relative = last.value - before.value, change_of(before.value, last.value)
        rate = percent(abs(relative)) if relative is not None and change else ""
        zh, en = self._change_said(change)
        year_zh, year_en = ("去年同期 ", "a year before, ") if kind == "year_before" else (" ", "")
        label, value = self._measure.label, self._figure_text(last.value)
        value_before = self._figure_text(before.value)
        period, period_before = self._period_text(last), self._period_text(before)
        text = Text(
            f"{period} 的“{label}”为 {value}，比{year_zh}{period_before}（{value_before}）{zh}"
            f"{f'（{rate}）' if rate else ''}。",
            f"{label} in {period} was {value}, {en} "
            f"{year_en}in {period_before} ({value_before}{f'; {rate}' if rate else ''}).",
        )
        figures = {
            "period": period,
            "value": last.value,
            "before": period_before,
            "value_before": before.value,
            "change": change,
            "change_percent": relative * 100 if relative is not None else None,
        }
        return self._finding(kind, text, figures)

    def _change_said(self, change: Decimal) -> tuple[str, str]:
        """Return how the value differs, in Chinese and English."""
        if change == 0:
            return _SAME.zh, "the same as"

        amount = self._figure_text(abs(change))
        how = _MORE if change > 0 else _LESS
        return f"{how.zh} {amount}", f"{amount} {how.en} than"

    def extremes(self) -> Iterator[Finding]:
        """Yield the best and the worst period."""
        points = self._series.points
        if len(points) < 2:
            return

        best = max(points, key=lambda point: point.value)
        worst = min(points, key=lambda point: point.value)
        label, count = self._measure.label, f"{len(points):,}"
        best_period, highest = self._period_text(best), self._figure_text(best.value)
        worst_period, lowest = self._period_text(worst), self._figure_text(worst.value)
        figures = {
            "periods": len(points),
            "highest": {"period": best_period, "value": best.value},
            "lowest": {"period": worst_period, "value": worst.value},
        }
        if best.value == worst.value:
            text = Text(
                f"“{label}”在 {count} 个周期中都是 {highest}。",
                f"{label} is {highest} in all {count} periods.",
            )
        else:
            text = Text(
                f"在 {count} 个周期中，“{label}”最高的是 {best_period}（{highest}），最低的是 "
                f"{worst_period}（{lowest}）。",
                f"Of {count} periods {label} was highest in {best_period} ({highest}) and lowest "
                f"in {worst_period} ({lowest}).",
            )

        yield self._finding("extremes", text, figures)

    def rise(self) -> Iterator[Finding]:
        """Yield the longest run of periods that each had more than the one before; the latest of
        equally long ones.
        """
        runs = _rises(self._series)
        if not runs:
            return

        first, last, steps = max(reversed(runs), key=lambda run: run[2])
        if steps < _LEAST_RISE:
            return

        label = self._measure.label
        start_period, start_value = self._period_text(first), self._figure_text(first.value)
        end_period, end_value = self._period_text(last), self._figure_text(last.value)
        figures = {
            "from": {"period": start_period, "value": first.value},
            "to": {"period": end_period, "value": last.value},
            "rises": steps,
        }
        text = Text(
            f"“{label}”最长的连续上升从 {start_period} 到 {end_period}，"
            f"连升 {steps} 次（{start_value} → {end_value}）。",
            f"The longest rise of {label} went from {start_period} to {end_period}: {steps} "
            f"times in a row ({start_value} → {end_value}).",
        )
        yield self._finding("rise", text, figures)


def change_of(before: Decimal, last: Decimal) -> Decimal | None:
    """Return the change as a part of what was before; None where that is not above zero, because
    then it means nothing.
    """
    return (last - before) / before if before > 0 else None


def _rises(series: Series) -> list[tuple[Point, Point, int]]:
    """Return the first and last point of each run of rises, and how many there are in it."""
    steps = neighbours(series.points, series.unit)
    rising: list[tuple[bool, int, tuple[Point, Point]]] = []
    run = 0
    for number, (before, after) in enumerate(steps):
        follows = number > 0 and steps[number - 1][1] is before
        rises = after.value > before.value
        run += not (follows and rising[-1][0] == rises)
        rising.append((rises, run, (before, after)))

    runs = [list(group) for _, group in groupby(rising, key=lambda step: step[1])]
    return [(run[0][2][0], run[-1][2][1], len(run)) for run in runs if run[0][0]]


def contribution_finding(
    measure: SubjectColumn,
    group: SubjectColumn,
    step: tuple[Point, Point],
    series: Series,
    rows: Sequence[Sequence[Any]],
    sql: str,
    lang: Lang,
) -> Finding | None:
    """Return which groups make the last change, from the rows of `statements.contributions`; None
    when nothing changed.
    """
    before, last = step
    change = last.value - before.value
    moved = [
        (name if name is not None else Text("（空）", "(none)").to(lang), now, was)
        for name, now, was in rows
    ]
    moved = [one for one in moved if one[1] != one[2]]
    if not moved:
        return None

    unit = measure.column.unit

    def said(value: Decimal) -> str:
        return f"{'+' if value > 0 else ''}{figure(value, unit, lang)}"

    names = [f"{group.said(name, lang)} {said(now - was)}" for name, now, was in moved[:_TOLD]]
    periods = [period_name(point.start, series.unit) for point in step]
    text = Text(
        f"“{measure.label}”从 {periods[0]} 到 {periods[1]} 变化 {said(change)}，"
        f"按“{group.label}”看变化最大的是"
        f"{'、'.join(names)}。",
        f"{measure.label} changed by {said(change)} from {periods[0]} to {periods[1]}; by "
        f"{group.label} most of "
        f"it lies in {', '.join(names)}.",
    )
    figures = {
        "measure": measure.name,
        "by": group.name,
        "before": periods[0],
        "period": periods[1],
        "change": change,
        "groups": [
            {"name": name, "value": now, "value_before": was, "change": now - was}
            for name, now, was in moved
        ],
    }
    return Finding("contributions", text.to(lang), _GROUPS.to(lang), figures, sql)
