"""Which period an answer is about, by which date, and whether it is over; and until when there are data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from common.text import Lang, Text
from common.values import Catalog, Column
from databases.date_bounds import days_of
from knowledge.naming import spoken_name
from knowledge.result_columns import as_period
from rules.linking.moments import Moment, Period, Unit
from rules.query.query import Condition
from rules.schema.schema import Schema

_UNITS: tuple[Unit, ...] = ("year", "quarter", "month", "day")
_CLAUSE = Text("（按{}，{}）", " (by {}, {})")
_OPEN = Text("{}，尚未结束", "{}, not over yet")
_FROM_TO = Text("{}至{}", "{} to {}")
_SINCE, _BEFORE = Text("自{}起", "since {}"), Text("早于{}", "before {}")
_ENDS = Text("按{}，数据截至 {}。", "Data by {} end on {}.")
_BEGINS = Text("按{}，数据自 {} 开始。", "Data by {} begin on {}.")


@dataclass(frozen=True)
class Dated:
    """The one period that rows are restricted to, and the column that it is about."""

    column: Column
    start: date | None
    end: date | None
    grain: str | None
    today: date

    @property
    def is_unfinished(self) -> bool:
        """Whether it is the current day, week, month, quarter or year."""
        if self.grain is None or self.start is None or self.end is None:
            return False
        return self.start <= self.today < self.end

    def clause(self, lang: Lang) -> str:
        """In brackets: by which date, and which period."""
        said = _OPEN.to(lang).format(self.said(lang)) if self.is_unfinished else self.said(lang)
        return _CLAUSE.to(lang).format(spoken_name(self.column, lang), said)

    def limits(self, lang: Lang) -> str | None:
        """Until or from when there are data, where the period lies outside of them."""
        if self.column.period is None:
            return None
        first, last = self.column.period
        if self.start is not None and self.start.isoformat() > last:
            return _ENDS.to(lang).format(spoken_name(self.column, lang), last)
        if self.end is not None and self.end.isoformat() <= first:
            return _BEGINS.to(lang).format(spoken_name(self.column, lang), first)
        return None

    def said(self, lang: Lang) -> str:
        """The period in words."""
        if self.start is None or self.end is None:
            form, day = (_SINCE, self.start) if self.start is not None else (_BEFORE, self.end)
            return form.to(lang).format(day)
        last = self.end - timedelta(days=1)
        if self.grain in ("year", "quarter"):
            return str(as_period(self.start.isoformat(), self.grain))
        if self.grain == "month":
            return Text(f"{self.start:%Y-%m}", f"{self.start:%B %Y}").to(lang)
        return f"{self.start}" if last == self.start else _FROM_TO.to(lang).format(self.start, last)


def dated_by(conditions: Sequence[Condition], schema: Schema, today: date) -> Dated | None:
    """The period of the conditions; None without one, and with several."""
    found = [one for one in conditions if one.operator == "during"]
    period = found[0].operands[0] if len(found) == 1 and len(found[0].operands) == 1 else None
    if not isinstance(period, Period) or (period.start is None and period.end is None):
        return None
    try:
        start, end = (one.on(today) if one is not None else None for one in (period.start, period.end))
    except (ValueError, OverflowError):  # beyond the calendar
        return None
    return Dated(schema.column(found[0].column.table, found[0].column.column), start, end, period.grain, today)


def dated_in(sql: str, catalog: Catalog, today: date) -> Dated | None:
    """The period of SQL that somebody else wrote, where its WHERE says it of one date column."""
    days = days_of(sql, catalog, today)
    if days is None:
        return None
    try:
        return Dated(days.column, days.start, days.end, _grain(days.start, days.end), today)
    except (ValueError, OverflowError):  # beyond the calendar
        return None


def _grain(start: date | None, end: date | None) -> Unit | None:
    """The unit of which the days are exactly one; None when they are another span."""
    if start is None or end is None:
        return None
    begun = (unit for unit in _UNITS if Moment(trunc=unit).on(start) == start)
    return next((unit for unit in begun if Moment(start).shifted(unit, 1).day == end), None)
