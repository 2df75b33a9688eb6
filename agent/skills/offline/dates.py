"""Dates as people write them, absolute or relative to today, as half-open periods of days.

Relative periods stay relative (`Moment.trunc`): the SQL says CURRENT_DATE, so that the server's calendar decides and
the statement can be run again tomorrow.
Weeks begin on Monday, as PostgreSQL's date_trunc has it. "The last 7 days" begin 7
days ago and include today; "last month" is the calendar month before this one.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agent.skills.offline.atoms import listed
from agent.skills.offline.numerals import chinese_number

Unit = Literal["day", "week", "month", "quarter", "year"]

_MONTHS = {"day": 0, "week": 0, "month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7, "month": 0, "quarter": 0, "year": 0}


@dataclass(frozen=True)
class Moment:
    """The beginning of a day: `day`, or the beginning of the current `trunc` shifted by whole months and days."""

    day: datetime.date | None = None
    trunc: Unit = "day"
    months: int = 0
    days: int = 0

    @property
    def begins_month(self) -> bool:
        """Whether it is the first of a month."""
        return self.day.day == 1 if self.day is not None else self.days == 0 and self.trunc not in ("day", "week")

    def shifted(self, unit: Unit, count: int) -> "Moment":
        """This moment moved by `count` units.

        Raises:
            OverflowError, ValueError: beyond the calendar.
        """
        months, days = _MONTHS[unit] * count, _DAYS[unit] * count
        if self.day is None:
            return replace(self, months=self.months + months, days=self.days + days)
        total = self.day.year * 12 + self.day.month - 1 + months
        moved = self.day.replace(year=total // 12, month=total % 12 + 1)
        return replace(self, day=moved + datetime.timedelta(days=days))


@dataclass(frozen=True)
class Period:
    """From `start` (inclusive) to `end` (exclusive); None is open. `grain` is its unit when it is exactly one."""

    start: Moment | None
    end: Moment | None
    grain: Unit | None = None

    @property
    def is_relative(self) -> bool:
        """Whether it moves with today's date."""
        return any(moment is not None and moment.day is None for moment in (self.start, self.end))


@dataclass(frozen=True)
class DateSpan:
    """A period written from character `start` to `end`; `is_bare` for a lone four-digit number that may be a year.

    `missing_year` marks a month or day whose year is not said, so that its period can't be known.
    """

    start: int
    end: int
    period: Period
    is_bare: bool = False
    missing_year: bool = False


def unit_period(unit: Unit, offset: int = 0, count: int = 1) -> Period:
    """`count` calendar units beginning `offset` units from the current one."""
    start = Moment(trunc=unit).shifted(unit, offset)
    return Period(start, start.shifted(unit, count), unit if count == 1 else None)


def rolling(unit: Unit, count: int) -> Period:
    """The last `count` units up to and including today."""
    return Period(Moment().shifted(unit, -count), Moment().shifted("day", 1))


def _from(day: datetime.date, unit: Unit, count: int = 1) -> Period:
    start = Moment(day)
    return Period(start, start.shifted(unit, count), unit if count == 1 else None)


def _within_year(offset: int, month: int, months: int, grain: Unit | None) -> Period:
    start = Moment(trunc="year", months=12 * offset + month - 1)
    return Period(start, start.shifted("month", months), grain)


_D = r"(\d{1,3}|[一二两三四五六七八九十]{1,3})"
_Y = r"((?:19|20)\d\d|[一二][零〇一二三四五六七八九]{3})"
_MONTH_NAMES = {
    name: number
    for number, names in enumerate(
        listed(
            "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|"
            "october oct"
            "|november nov|december dec",
            "|",
        ),
        start=1,
    )
    for name in names.split()
}
_M = rf"({'|'.join(sorted(_MONTH_NAMES, key=len, reverse=True))})\.?"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_O = rf"({'|'.join(_ORDINALS)})"
_ZH_UNITS: dict[str, Unit] = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "个星期": "week", "礼拜": "week", "个礼拜": "week",
    "个月": "month", "月": "month", "季度": "quarter", "个季度": "quarter", "年": "year",
}  # fmt: skip
_ZH_UNIT = rf"({'|'.join(sorted(_ZH_UNITS, key=len, reverse=True))})"
_EN_UNIT = r"(day|week|month|quarter|year)"
_ZH_YEARS = {"今年": 0, "本年": 0, "本年度": 0, "去年": -1, "上年": -1, "上一年": -1, "前年": -2}
_ZY = rf"({'|'.join(sorted(_ZH_YEARS, key=len, reverse=True))})"
_EN_YEARS = {"this year": 0, "last year": -1, "previous year": -1}
_EY = rf"({'|'.join(_EN_YEARS)})"
# After a superlative (`最高的前3天`) it says how many are wanted.
_BEFORE = r"(?<!最[高低多少大小好差])(?<!最[高低多少大小好差]的)前"
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(listed("one two three four five six seven eight nine ten eleven twelve"), start=1)
}
_N = rf"(\d{{1,4}}|{'|'.join(_NUMBER_WORDS)})"

_FIXED: dict[str, Period] = {
    "今天": unit_period("day"), "今日": unit_period("day"), "当天": unit_period("day"), "昨天": unit_period("day", -1),
    "昨日": unit_period("day", -1), "前天": unit_period("day", -2), "本周": unit_period("week"),
    "这周": unit_period("week"), "这个星期": unit_period("week"), "上周": unit_period("week", -1),
    "上个星期": unit_period("week", -1), "上一周": unit_period("week", -1), "上上周": unit_period("week", -2),
    "本月": unit_period("month"), "这个月": unit_period("month"), "当月": unit_period("month"),
    "上个月": unit_period("month", -1), "上月": unit_period("month", -1), "上一个月": unit_period("month", -1),
    "上上个月": unit_period("month", -2), "本季度": unit_period("quarter"), "这个季度": unit_period("quarter"),
    "上季度": unit_period("quarter", -1), "上个季度": unit_period("quarter", -1),
    "上一季度": unit_period("quarter", -1), "今年以来": Period(Moment(trunc="year"), Moment(days=1)),
    "年初至今": Period(Moment(trunc="year"), Moment(days=1)), "月初至今": Period(Moment(trunc="month"), Moment(days=1)),
    "本月以来": Period(Moment(trunc="month"), Moment(days=1)), "最近半年": rolling("month", 6),
    "近半年": rolling("month", 6), "过去半年": rolling("month", 6), "上半年": _within_year(0, 1, 6, None),
    "下半年": _within_year(0, 7, 6, None), "明天": unit_period("day", 1), "下周": unit_period("week", 1),
    "下个月": unit_period("month", 1), "明年": unit_period("year", 1),
    "today": unit_period("day"), "yesterday": unit_period("day", -1), "tomorrow": unit_period("day", 1),
    "day before yesterday": unit_period("day", -2), "year to date": Period(Moment(trunc="year"), Moment(days=1)),
    "ytd": Period(Moment(trunc="year"), Moment(days=1)), "month to date": Period(Moment(trunc="month"), Moment(days=1)),
    "so far this year": Period(Moment(trunc="year"), Moment(days=1)),
    "so far this month": Period(Moment(trunc="month"), Moment(days=1)),
}  # fmt: skip


def _number(text: str) -> int:
    if text in _NUMBER_WORDS:
        return _NUMBER_WORDS[text]
    return int(text) if text.isdigit() else chinese_number(text) or 0


def _day(year: str, month: str, day: str) -> Period:
    return _from(datetime.date(_number(year), _month(month), _number(day)), "day")


def _month(text: str) -> int:
    return _MONTH_NAMES.get(text, 0) or _number(text)


def _months(year: str, first: str, last: str) -> Period:
    months = _month(last) - _month(first) + 1
    if months < 1:
        raise ValueError("a period that ends before it begins")
    return _from(datetime.date(_number(year), _month(first), 1), "month", months)


def _whole_month(year: str, month: str) -> Period:
    return _from(datetime.date(_number(year), _month(month), 1), "month")


def _quarter(year: str, quarter: str) -> Period:
    number = _ORDINALS.get(quarter, 0) or _number(quarter)
    return _from(datetime.date(_number(year), number * 3 - 2, 1), "quarter")


def _half(year: str, half: str) -> Period:
    first = half in ("上", "1", "first")
    return _from(datetime.date(_number(year), 1 if first else 7, 1), "month", 6)


def _relative_month(years: int, month: str) -> Period:
    number = _month(month)
    if not 1 <= number <= 12:
        raise ValueError("no such month")
    return _within_year(years, number, 1, "month")


def _relative_quarter(years: int, quarter: str) -> Period:
    number = _ORDINALS.get(quarter, 0) or _number(quarter)
    if not 1 <= number <= 4:
        raise ValueError("no such quarter")
    return _within_year(years, number * 3 - 2, 3, "quarter")


def _ago(unit: Unit, count: int) -> Period:
    start = Moment().shifted(unit, -count)
    return Period(start, start.shifted("day", 1), "day")


_Builder = Callable[..., Period]
# Patterns over the normalised, lower-cased text; each group is an argument of the builder.
_PATTERNS: tuple[tuple[str, _Builder], ...] = (
    (rf"{_Y}年{_D}月{_D}[日号]?", _day),
    (r"((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", _day),
    (rf"{_Y}年{_D}月份?[到至~-]{_D}月份?", _months),
    (rf"{_Y}年{_D}月份?", _whole_month),
    (r"((?:19|20)\d\d)[-/](0[1-9]|1[0-2])(?![-/\d])", _whole_month),
    (rf"{_Y}年?的?第?{_D}季度?", _quarter),
    (rf"{_Y}年? ?q([1-4])", _quarter),
    (rf"{_Y}年(上|下)半年", _half),
    (rf"{_Y}年度?", lambda year: _from(datetime.date(_number(year), 1, 1), "year")),
    (rf"{_ZY}的?{_D}月份?", lambda year, month: _relative_month(_ZH_YEARS[year], month)),
    (rf"{_ZY}的?第?{_D}季度", lambda year, quarter: _relative_quarter(_ZH_YEARS[year], quarter)),
    (rf"{_ZY}q([1-4])", lambda year, quarter: _relative_quarter(_ZH_YEARS[year], quarter)),
    (rf"{_ZY}(上|下)半年", lambda year, half: _within_year(_ZH_YEARS[year], 1 if half == "上" else 7, 6, None)),
    (_ZY, lambda year: unit_period("year", _ZH_YEARS[year])),
    (
        rf"(?:最近|近|过去|{_BEFORE}|这|往前)的?{_D}{_ZH_UNIT}(?:内|里|以来)?",
        lambda n, u: rolling(_ZH_UNITS[u], _number(n)),
    ),
    (r"(?:最近|近|过去)(周|月|年)", lambda unit: rolling(_ZH_UNITS[unit], 1)),
    (rf"{_D}(天|个?星期|周|个月|年)(?:以?前|之前)", lambda n, unit: _ago(_ZH_UNITS[unit], _number(n))),
    (rf"{_M} (\d{{1,2}})(?:st|nd|rd|th)?,? ?{_Y}\b", lambda month, day, year: _day(year, month, day)),
    (rf"(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_M},? ?{_Y}\b", lambda day, month, year: _day(year, month, day)),
    (rf"{_M} (?:to|through|until|and|-) {_M},? (?:of )?{_Y}\b", lambda first, last, year: _months(year, first, last)),
    (rf"{_M}-{_M},? {_Y}\b", lambda first, last, year: _months(year, first, last)),
    (rf"{_M},? (?:of )?{_Y}\b", lambda month, year: _whole_month(year, month)),
    (rf"{_Y} {_M}\b", _whole_month),
    (rf"{_M} (?:of )?{_EY}\b", lambda month, year: _relative_month(_EN_YEARS[year], month)),
    (rf"q([1-4])(?: of| in)?,? ?{_Y}\b", lambda quarter, year: _quarter(year, quarter)),
    (rf"{_O} quarter(?: of| in)?,? {_Y}\b", lambda quarter, year: _quarter(year, quarter)),
    (rf"{_O} quarter of {_EY}\b", lambda quarter, year: _relative_quarter(_EN_YEARS[year], quarter)),
    (rf"q([1-4]) (?:of )?{_EY}\b", lambda quarter, year: _relative_quarter(_EN_YEARS[year], quarter)),
    (rf"(first|second) half of {_Y}\b", lambda half, year: _half(year, half)),
    (rf"h([12]) (?:of )?{_Y}\b", lambda half, year: _half(year, half)),
    (rf"(?:the )?year {_Y}\b", lambda year: _from(datetime.date(_number(year), 1, 1), "year")),
    (rf"this {_EN_UNIT}\b", lambda unit: unit_period(unit)),
    (rf"current {_EN_UNIT}\b", lambda unit: unit_period(unit)),
    (rf"(?:last|previous) {_EN_UNIT}\b", lambda unit: unit_period(unit, -1)),
    (rf"next {_EN_UNIT}\b", lambda unit: unit_period(unit, 1)),
    (rf"past {_EN_UNIT}\b", lambda unit: rolling(unit, 1)),
    (rf"(?:last|past|previous|recent|most recent) {_N} {_EN_UNIT}s?\b", lambda n, unit: rolling(unit, _number(n))),
    (rf"{_N} {_EN_UNIT}s? ago\b", lambda n, unit: _ago(unit, _number(n))),
)
_COMPILED = tuple((re.compile(rf"(?<![a-z0-9]){pattern}"), build) for pattern, build in _PATTERNS)
_FIXED_PATTERN = re.compile(
    "|".join(
        rf"(?<![a-z]){re.escape(phrase)}(?![a-z])" if phrase.isascii() else re.escape(phrase)
        for phrase in sorted(_FIXED, key=len, reverse=True)
    )
)
_BARE_YEAR = re.compile(r"(?<![\d.,a-z-])((?:19|20)\d\d)(?![\d,]|\.\d|-\d)")
_YEARLESS = re.compile(
    rf"(?<![\d年]){_D}月(?:{_D}[日号]|份)?(?!租)|(?<![a-z0-9])(?:in|of|for|during|since) {_M}(?![a-z])"
    rf"|第?{_D}季度|(?<![a-z0-9]){_O} quarter\b|(?<![a-z0-9])q[1-4](?![a-z0-9])"
)


def spans_of(text: str) -> list[DateSpan]:
    """Every reading of a stretch of the normalised text as a period; stretches may overlap."""
    text = text.lower()
    spans = [DateSpan(match.start(), match.end(), _FIXED[match.group()]) for match in _FIXED_PATTERN.finditer(text)]
    spans.extend(_matched(text))
    for match in _BARE_YEAR.finditer(text):
        period = _from(datetime.date(int(match.group(1)), 1, 1), "year")
        spans.append(DateSpan(match.start(), match.end(), period, is_bare=True))
    covered = [(span.start, span.end) for span in spans]
    for match in _YEARLESS.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in covered):
            spans.append(DateSpan(match.start(), match.end(), Period(None, None), missing_year=True))
    return spans


def _matched(text: str) -> Iterator[DateSpan]:
    for pattern, build in _COMPILED:
        for match in pattern.finditer(text):
            try:
                period = build(*match.groups())
            except (ValueError, OverflowError):  # 2024-02-31, month 13: not a date, whatever it looks like
                continue
            yield DateSpan(match.start(), match.end(), period)
