"""The period that an answer is about: its date column, whether it is over, and where data end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from common.text import Lang, Text
from common.values import Catalog, Column
from knowledge.language.spoken_names import spoken_name
from knowledge.results.result_columns import as_period
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import Condition
from rules.schema.table_schema import Schema
from sqltree.date_bounds import days_of

_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "day")
_CLAUSE = Text("（按{}，{}）", " (by {}, {})")
_OPEN = Text("{}，尚未结束", "{}, not over yet")
_FROM_TO = Text("{}至{}", "{} to {}")
_SINCE, _BEFORE = Text("自{}起", "since {}"), Text("早于{}", "before {}")
_ENDS = Text("按{}，数据截至 {}。", "Data by {} end on {}.")
_BEGINS = Text("按{}，数据自 {} 开始。", "Data by {} begin on {}.")


@dataclass(frozen=True)
class AnswerPeriod:
    """The one period that rows are restricted to, and the column that it is about."""

    column: Column
    start: date | None
    end: date | None
    grain: str | None
    today: date

    @property
    def is_unfinished(self) -> bool:
        """Tell whether it is the current day, week, month, quarter or year."""
        if self.grain is None:
            return False
        if self.start is None or self.end is None:
            return False

        return self.start <= self.today < self.end

    def clause(self, lang: Lang) -> str:
        """Return the date column and the period, in brackets."""
        period = self.written_period(lang)
        if self.is_unfinished:
            period = _OPEN.to(lang).format(period)

        return _CLAUSE.to(lang).format(spoken_name(self.column, lang), period)

    def limits(self, lang: Lang) -> str | None:
        """Return a sentence on where data begin or end, if the period lies outside of them."""
        if self.column.period is None:
            return None

        first, last = self.column.period
        name = spoken_name(self.column, lang)
        if self.start is not None and self.start.isoformat() > last:
            return _ENDS.to(lang).format(name, last)
        if self.end is not None and self.end.isoformat() <= first:
            return _BEGINS.to(lang).format(name, first)

        return None

    def written_period(self, lang: Lang) -> str:
        """Return the period in words."""
        if self.start is None:
            return _BEFORE.to(lang).format(self.end)
        if self.end is None:
            return _SINCE.to(lang).format(self.start)
        if self.grain in ("year", "quarter"):
            return str(as_period(self.start.isoformat(), self.grain))
        if self.grain == "month":
            return Text(f"{self.start:%Y-%m}", f"{self.start:%B %Y}").to(lang)

        last = self.end - timedelta(days=1)
        if last == self.start:
            return f"{self.start}"

        return _FROM_TO.to(lang).format(self.start, last)


def period_of_conditions(
    conditions: Sequence[Condition], schema: Schema, today: date
) -> AnswerPeriod | None:
    """Return the period of the conditions; None without one, and with several."""
    on_periods = [condition for condition in conditions if condition.operator == "during"]
    if len(on_periods) != 1 or len(on_periods[0].operands) != 1:
        return None

    column, period = on_periods[0].column, on_periods[0].operands[0]
    if not isinstance(period, Period):
        return None
    if period.start is None and period.end is None:
        return None

    try:
        start = period.start.on(today) if period.start is not None else None
        end = period.end.on(today) if period.end is not None else None
    except (ValueError, OverflowError):  # beyond the calendar
        return None

    return AnswerPeriod(schema.column(column.table, column.column), start, end, period.grain, today)


def period_of_sql(sql: str, catalog: Catalog, today: date) -> AnswerPeriod | None:
    """Return the period of SQL that somebody else wrote: of its WHERE, if that has just one."""
    days = days_of(sql, catalog, today)
    if days is None:
        return None

    try:
        grain = _grain(days.start, days.end)
    except (ValueError, OverflowError):  # beyond the calendar
        return None

    return AnswerPeriod(days.column, days.start, days.end, grain, today)


def _grain(start: date | None, end: date | None) -> Unit | None:
    """Return the unit of which the days are exactly one; None when they are another span."""
    if start is None or end is None:
        return None

    for unit in _UNITS:
        is_begin = Moment(trunc=unit).on(start) == start
        if is_begin and Moment(start).shifted(unit, 1).day == end:
            return unit

    return None
