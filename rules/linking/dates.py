"""Dates as people write them, absolute or relative to today, as half-open periods of days.

Relative periods stay relative (`Moment.trunc`): the SQL says CURRENT_DATE, so that the server's calendar decides and
the statement can be run again tomorrow.
Weeks begin on Monday, as PostgreSQL's date_trunc has it. "The last 7 days" are the seven
days before today, which is not over yet; "last month" is the calendar month before this one.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from knowledge.atoms import listed
from rules.words.numerals import ENGLISH_NUMBERS, chinese_number

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

    `missing_year` marks a month or day whose year is not said, so that its period can't be known. `unbounded` is what
    it means where nothing bounds it: "two months ago" is a month, "more than two months ago" before a day.
    """

    start: int
    end: int
    period: Period
    is_bare: bool = False
    missing_year: bool = False
    unbounded: Period | None = None


def unit_period(unit: Unit, offset: int = 0, count: int = 1) -> Period:
    """`count` calendar units beginning `offset` units from the current one."""
    start = Moment(trunc=unit).shifted(unit, offset)
    return Period(start, start.shifted(unit, count), unit if count == 1 else None)


def _to_date(unit: Unit) -> Period:
    return Period(Moment(trunc=unit), Moment(days=1))


def rolling(unit: Unit, count: int) -> Period:
    """The last `count` units up to and including yesterday."""
    return Period(Moment().shifted(unit, -count), Moment())


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
_EN_UNITS: dict[str, Unit] = {"day": "day", "week": "week", "month": "month", "quarter": "quarter", "year": "year"}
_EN_UNIT = rf"({'|'.join(_EN_UNITS)})"
_ZH_YEARS = {
    "今年": 0, "本年": 0, "本年度": 0, "去年": -1, "上年": -1, "上一年": -1, "上年度": -1, "上一年度": -1, "前年": -2,
}  # fmt: skip
_ZH_MONTHS = {"本月": 0, "这个月": 0, "当月": 0, "上月": -1, "上个月": -1, "上一个月": -1, "上上个月": -2}
_ZM = rf"({'|'.join(sorted(_ZH_MONTHS, key=len, reverse=True))})"
_ZH_WEEKS = {
    **{f"{which}{unit}": offset for unit in ("周", "星期", "礼拜")
       for which, offset in (("本", 0), ("这", 0), ("这个", 0), ("上", -1), ("上个", -1), ("上一", -1), ("上一个", -1),
                             ("上上", -2), ("上上个", -2))},
}  # fmt: skip
_ZW = rf"({'|'.join(sorted(_ZH_WEEKS, key=len, reverse=True))})"
_ZH_WEEKDAYS = {**{char: place for place, char in enumerate("一二三四五六日")}, "天": 6}
# `本周一共多少`, `上周日均收入`, `本周日报`: there the week is followed by another word.
_ZD = r"(一(?![共起直些个])|[二三四五六]|日(?![均报])|天(?![均数]))"
_EN_WEEKDAYS = {
    **{name: place for place, name in enumerate(listed("monday tuesday wednesday thursday friday saturday sunday"))},
    **{name: place for place, name in enumerate(listed("mon tue wed thu fri sat sun"))},
}  # fmt: skip
_ED = rf"({'|'.join(_EN_WEEKDAYS)})"
_EN_WEEKS = {"this week": 0, "last week": -1, "previous week": -1, "the week before last": -2}
_EW = rf"({'|'.join(_EN_WEEKS)})"
_ZY = rf"({'|'.join(sorted(_ZH_YEARS, key=len, reverse=True))})"
_EN_YEARS = {"this year": 0, "the current year": 0, "last year": -1, "previous year": -1}
_EY = rf"({'|'.join(_EN_YEARS)})"
# After a superlative (`最高的前3天`) it says how many are wanted.
_BEFORE = r"(?<!最[高低多少大小好差])(?<!最[高低多少大小好差]的)前"
_NUMBER_WORDS = {word: value for word, value in ENGLISH_NUMBERS.items() if value}
_N = rf"(\d{{1,4}}|{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})"

_FIXED: dict[str, Period] = {
    "今天": unit_period("day"), "今日": unit_period("day"), "当天": unit_period("day"), "昨天": unit_period("day", -1),
    "昨日": unit_period("day", -1), "前天": unit_period("day", -2),
    "大前天": unit_period("day", -3), "本季度": unit_period("quarter"), "这个季度": unit_period("quarter"),
    "上季度": unit_period("quarter", -1), "上个季度": unit_period("quarter", -1),
    "上一季度": unit_period("quarter", -1), "今年以来": _to_date("year"),
    "年初至今": _to_date("year"), "年初以来": _to_date("year"), "月初至今": _to_date("month"),
    "本月以来": _to_date("month"), "最近半年": rolling("month", 6),
    "近半年": rolling("month", 6), "过去半年": rolling("month", 6), "上半年": _within_year(0, 1, 6, None),
    "下半年": _within_year(0, 7, 6, None), "明天": unit_period("day", 1), "下周": unit_period("week", 1),
    "下个月": unit_period("month", 1), "明年": unit_period("year", 1),
    "today": unit_period("day"), "yesterday": unit_period("day", -1), "tomorrow": unit_period("day", 1),
    "day before yesterday": unit_period("day", -2), "week before last": unit_period("week", -2),
    "month before last": unit_period("month", -2), "quarter before last": unit_period("quarter", -2),
    "year before last": unit_period("year", -2), "past fortnight": rolling("week", 2),
    "last fortnight": rolling("week", 2),
    "ytd": _to_date("year"), "qtd": _to_date("quarter"), "mtd": _to_date("month"), "wtd": _to_date("week"),
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


def _day_of_month(month: str, day: str) -> Period:
    return _days_of_month(_ZH_MONTHS[month], _number(day), _number(day))


def _days_of_month(months: int, first: int, last: int) -> Period:
    if not 1 <= first <= last <= 31:
        raise ValueError("no such days")
    start = Moment(trunc="month", months=months, days=first - 1)
    return Period(start, start.shifted("day", last - first + 1), "day" if first == last else None)


def _day_of_year(years: int, month: str, day: str) -> Period:
    start = _relative_month(years, month).start
    if start is None or not 1 <= _number(day) <= 31:
        raise ValueError("no such day")
    start = start.shifted("day", _number(day) - 1)
    return Period(start, start.shifted("day", 1), "day")


def _days(first: Period, last: Period) -> Period:
    """From the first day of one period to the last of another.

    Raises:
        ValueError: it ends before it begins.
    """
    if first.start and first.start.day and last.end and last.end.day and last.end.day <= first.start.day:
        raise ValueError("a period that ends before it begins")
    return Period(first.start, last.end)


def _relative_months(years: int, first: str, last: str) -> Period:
    if _month(last) < _month(first):
        raise ValueError("a period that ends before it begins")
    return _days(_relative_month(years, first), _relative_month(years, last))


def _weekdays(week: int, first: int, last: int) -> Period:
    if last < first:
        raise ValueError("a period that ends before it begins")
    start = Moment(trunc="week", days=7 * week + first)
    return Period(start, start.shifted("day", last - first + 1), "day" if first == last else None)


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
    (
        rf"{_Y}年{_D}月{_D}[日号]?[到至~-]{_D}[日号]",
        lambda year, month, first, last: _days(_day(year, month, first), _day(year, month, last)),
    ),
    (rf"{_ZY}的?{_D}月{_D}[日号]", lambda year, month, day: _day_of_year(_ZH_YEARS[year], month, day)),
    (
        rf"{_ZY}的?{_D}月份?[到至~-]{_D}月份?",
        lambda year, first, last: _relative_months(_ZH_YEARS[year], first, last),
    ),
    (_ZM, lambda month: unit_period("month", _ZH_MONTHS[month])),
    (rf"{_ZM}的?{_D}[日号](?!均)", _day_of_month),
    (
        rf"{_ZM}的?{_D}[日号]?[到至~-]{_D}[日号]",
        lambda month, first, last: _days_of_month(_ZH_MONTHS[month], _number(first), _number(last)),
    ),
    (_ZW, lambda week: unit_period("week", _ZH_WEEKS[week])),
    (rf"{_ZW}{_ZD}", lambda week, day: _weekdays(_ZH_WEEKS[week], _ZH_WEEKDAYS[day], _ZH_WEEKDAYS[day])),
    (rf"{_ZW}末", lambda week: _weekdays(_ZH_WEEKS[week], 5, 6)),
    (
        rf"{_ZW}{_ZD}[到至~-](?:\1|周|星期|礼拜)?{_ZD}",
        lambda week, first, last: _weekdays(_ZH_WEEKS[week], _ZH_WEEKDAYS[first], _ZH_WEEKDAYS[last]),
    ),
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
    (
        rf"{_M} (\d{{1,2}})(?:st|nd|rd|th)?(?: to | through | until | and | ?- ?)(?:{_M} )?(\d{{1,2}})(?:st|nd|rd|th)?"
        rf",? ?{_Y}\b",
        lambda month, first, other, last, year: _days(_day(year, month, first), _day(year, other or month, last)),
    ),
    (
        rf"{_M} (?:to|through|until|and|-) {_M} (?:of )?{_EY}\b",
        lambda first, last, year: _relative_months(_EN_YEARS[year], first, last),
    ),
    (
        rf"(first|second) half of {_EY}\b",
        lambda half, year: _within_year(_EN_YEARS[year], 1 if half == "first" else 7, 6, None),
    ),
    (rf"{_ED} (?:of |in )?{_EW}\b", lambda day, week: _weekdays(_EN_WEEKS[week], _EN_WEEKDAYS[day], _EN_WEEKDAYS[day])),
    (rf"{_EW}(?:'s)? {_ED}\b", lambda week, day: _weekdays(_EN_WEEKS[week], _EN_WEEKDAYS[day], _EN_WEEKDAYS[day])),
    (
        rf"{_ED}(?: to | through | until | and | ?- ?){_ED} (?:of |in )?{_EW}\b",
        lambda first, last, week: _weekdays(_EN_WEEKS[week], _EN_WEEKDAYS[first], _EN_WEEKDAYS[last]),
    ),
    (r"last weekend\b", lambda: _weekdays(-1, 5, 6)),
    (rf"{_EN_UNIT} to date\b", _to_date),
    (rf"(?:since |from )?the (?:start|beginning) of (?:the|this) {_EN_UNIT}\b", _to_date),
    (rf"this {_EN_UNIT}\b", lambda unit: unit_period(unit)),
    (rf"current {_EN_UNIT}\b", lambda unit: unit_period(unit)),
    (rf"(?:last|previous|prior) {_EN_UNIT}\b", lambda unit: unit_period(unit, -1)),
    (rf"next {_EN_UNIT}\b", lambda unit: unit_period(unit, 1)),
    (rf"past {_EN_UNIT}\b", lambda unit: rolling(unit, 1)),
    (
        rf"(?:last|past|previous|prior|recent|most recent) {_N} {_EN_UNIT}s?\b",
        lambda n, unit: rolling(unit, _number(n)),
    ),
)
_AGO = (
    (re.compile(rf"{_D}{_ZH_UNIT}(以前|之前|前)"), _ZH_UNITS),
    (re.compile(rf"(?<![a-z0-9]){_N} {_EN_UNIT}s? (ago)\b"), _EN_UNITS),
)
_COMPILED = tuple((re.compile(rf"(?<![a-z0-9]){pattern}"), build) for pattern, build in _PATTERNS)
_FIXED_PATTERN = re.compile(
    "|".join(
        rf"(?<![a-z]){re.escape(phrase)}(?![a-z])" if phrase.isascii() else re.escape(phrase)
        for phrase in sorted(_FIXED, key=len, reverse=True)
    )
)
_BARE_YEAR = re.compile(r"(?<![\d.,a-z-])((?:19|20)\d\d)(?!\d|[.,-]\d)")
_YEARLESS = re.compile(
    rf"(?<![\d年]){_D}月(?:{_D}[日号]|份)?(?!租)|(?<![a-z0-9])(?:in|of|for|during|since) {_M}(?![a-z])"
    rf"|第?{_D}季度|(?<![a-z0-9]){_O} quarter\b|(?<![a-z0-9])q[1-4](?![a-z0-9])"
)


def spans_of(text: str) -> list[DateSpan]:
    """Every reading of a stretch of the normalised text as a period; stretches may overlap."""
    text = text.lower()
    spans = [DateSpan(match.start(), match.end(), _FIXED[match.group()]) for match in _FIXED_PATTERN.finditer(text)]
    spans.extend(_matched(text))
    spans.extend(_some_time_ago(text))
    for match in _BARE_YEAR.finditer(text):
        period = _from(datetime.date(int(match.group(1)), 1, 1), "year")
        spans.append(DateSpan(match.start(), match.end(), period, is_bare=True))
    covered = [(span.start, span.end) for span in spans]
    for match in _YEARLESS.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in covered):
            spans.append(DateSpan(match.start(), match.end(), Period(None, None), missing_year=True))
    return [replace(span, end=span.end + 2) if text[span.end :].startswith("'s") else span for span in spans]


def whole_period(text: str) -> Period | None:
    """The period that the whole text says."""
    whole = [span for span in spans_of(text) if (span.start, span.end) == (0, len(text)) and not span.missing_year]
    return whole[0].period if whole else None


def _matched(text: str) -> Iterator[DateSpan]:
    for pattern, build in _COMPILED:
        for match in pattern.finditer(text):
            try:
                period = build(*match.groups())
            except (ValueError, OverflowError):  # 2024-02-31, month 13: not a date, whatever it looks like
                continue
            yield DateSpan(match.start(), match.end(), period)


def _some_time_ago(text: str) -> Iterator[DateSpan]:
    """`三天前` is a day; "two months ago" is a month, unless it bounds something; `两年以前` is any time before."""
    for pattern, units in _AGO:
        for match in pattern.finditer(text):
            count, unit = _number(match.group(1)), units[match.group(2)]
            day = _ago(unit, count)
            before = match.group(3) in ("以前", "之前") and unit != "day"
            unbounded = Period(None, day.start) if before else unit_period(unit, -count)
            yield DateSpan(match.start(), match.end(), day, unbounded=unbounded)
