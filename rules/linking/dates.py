"""Dates as people write them, absolute or relative to today, as half-open periods of days.

"The last 7 days" are the seven days before today, which is not over yet; "last month" is the
calendar month before this one.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import get_args

from common.word_files import Words
from rules.linking.moments import Moment, Period, Unit, unit_period
from rules.words import WORDS
from rules.words.numerals import ENGLISH_NUMBERS, chinese_number


@dataclass(frozen=True)
class DateSpan:
    """A period written from character `start` to `end`; `is_bare` for a lone four-digit number that
    may be a year.

    `missing_year` marks a month or day whose year is not said, so that its period can't be known.
    `unbounded` is what it means where nothing bounds it: "two months ago" is a month, "more than
    two months ago" before a day. `is_impossible` marks what is written like a date and is none,
    such as 2024-02-30: its pieces are no numbers.
    """

    start: int
    end: int
    period: Period
    is_bare: bool = False
    missing_year: bool = False
    unbounded: Period | None = None
    is_impossible: bool = False

    @property
    def is_known(self) -> bool:
        """Tell whether it says which period is meant."""
        return not self.missing_year and not self.is_impossible


def _to_date(unit: Unit) -> Period:
    return Period(Moment(trunc=unit), Moment(days=1))


def rolling(unit: Unit, count: int) -> Period:
    """Return the last `count` units up to and including yesterday."""
    return Period(Moment().shifted(unit, -count), Moment())


def _period_from(day: datetime.date, unit: Unit, count: int = 1) -> Period:
    start = Moment(day)
    return Period(start, start.shifted(unit, count), unit if count == 1 else None)


def _within_year(offset: int, month: int, months: int, grain: Unit | None) -> Period:
    start = Moment(trunc="year", months=12 * offset + month - 1)
    return Period(start, start.shifted("month", months), grain)


_YEARS, _RELATIVE_MONTHS, _WEEKS = (
    WORDS.numbers(f"dates.{one}") for one in ("years", "relative_months", "weeks")
)
_WEEKDAYS, _MONTH_NAMES = WORDS.numbers("dates.weekdays"), WORDS.numbers("dates.months")
_ORDINALS, _HALVES = WORDS.numbers("dates.ordinals"), WORDS.numbers("dates.half_words")
_NUMBER_WORDS = {word: value for word, value in ENGLISH_NUMBERS.items() if value}
_SOME_DAY = datetime.date(2000, 1, 1)
_GRAINS: dict[str, Unit] = {unit: unit for unit in get_args(Unit)}
UNITS = {word: _GRAINS[name] for word, name in WORDS.named("dates.units").items()}


def _counted(words: str) -> tuple[Unit, int]:
    """Return the unit and the number of `week -1`."""
    unit, count = words.split(" ")
    return _GRAINS[unit], int(count)


_FIXED: dict[str, Period] = {
    **{
        phrase: unit_period(*_counted(said))
        for phrase, said in WORDS.named("dates.relative").items()
    },
    **{phrase: _to_date(_GRAINS[said]) for phrase, said in WORDS.named("dates.to_date").items()},
    **{phrase: rolling(*_counted(said)) for phrase, said in WORDS.named("dates.rolling").items()},
    **{
        phrase: _within_year(0, first, 6, None)
        for phrase, first in WORDS.numbers("dates.halves_of_this_year").items()
    },
}


def _number(text: str) -> int:
    if text in _NUMBER_WORDS:
        return _NUMBER_WORDS[text]

    return int(text) if text.isdigit() else chinese_number(text) or 0


def _among(number: int, least: int, most: int) -> int:
    """Return the number; raises ValueError where the calendar has no such part."""
    if not least <= number <= most:
        raise ValueError("no such part of the calendar")

    return number


def _month(text: str) -> int:
    return _among(_MONTH_NAMES.get(text, 0) or _number(text), 1, 12)


def _quarter(text: str) -> int:
    return _among(_ORDINALS.get(text, 0) or _number(text), 1, 4)


def _day(text: str) -> int:
    return _among(_number(text), 1, 31)


def _half(text: str) -> int:
    """Return the first month of the half."""
    return 6 * (_HALVES.get(text, 0) or _number(text)) - 5


def _length(first: int, last: int) -> int:
    if last < first:
        raise ValueError("no such period")

    return last - first + 1


def _date_of(year: str, month: int = 1, day: int = 1) -> datetime.date:
    return datetime.date(_number(year), month, day)


def _months(year: str, month: str, last_month: str | None = None) -> Period:
    return _period_from(
        _date_of(year, _month(month)), "month", _length(_month(month), _month(last_month or month))
    )


def _days(
    year: str, month: str, day: str, last_day: str | None = None, last_month: str | None = None
) -> Period:
    first = _date_of(year, _month(month), _number(day))
    last = _date_of(year, _month(last_month or month), _number(last_day or day))
    return _period_from(first, "day", _length(first.toordinal(), last.toordinal()))


def _relative_months(relative_year: str, month: str, last_month: str | None = None) -> Period:
    first, last = _month(month), _month(last_month or month)
    return _within_year(
        _YEARS[relative_year], first, _length(first, last), "month" if first == last else None
    )


def _relative_quarter(relative_year: str, quarter: str) -> Period:
    return _within_year(_YEARS[relative_year], _quarter(quarter) * 3 - 2, 3, "quarter")


def _days_within(start: Moment, first: int, last: int) -> Period:
    begin = start.shifted("day", first)
    return Period(
        begin, begin.shifted("day", _length(first, last)), "day" if first == last else None
    )


def _day_of_year(relative_year: str, month: str, day: str) -> Period:
    start = Moment(trunc="year", months=12 * _YEARS[relative_year] + _month(month) - 1)
    return _days_within(start, _day(day) - 1, _day(day) - 1)


def _days_of_month(relative_month: str, day: str, last_day: str | None = None) -> Period:
    start = Moment(trunc="month", months=_RELATIVE_MONTHS[relative_month])
    return _days_within(start, _day(day) - 1, _day(last_day or day) - 1)


def _weekdays(week: str, weekday: str, last_weekday: str | None = None) -> Period:
    first, last = _WEEKDAYS[weekday], _WEEKDAYS[last_weekday or weekday]
    return _days_within(Moment(trunc="week", days=7 * _WEEKS[week]), first, last)


def _weekend(week: int = -1) -> Period:
    return _days_within(Moment(trunc="week", days=7 * week), 5, 6)


def _back(unit: str, count: str) -> int:
    """Return how many units; raises ValueError or OverflowError where they lead beyond the
    calendar.
    """
    number = _among(_number(count), 1, datetime.date.max.toordinal())
    Moment().shifted(UNITS[unit], -number).on(_SOME_DAY)
    return number


def _ago(unit: str, count: str) -> Period:
    return _days_within(Moment().shifted(UNITS[unit], -_back(unit, count)), 0, 0)


def _unbounded(name: str, unit: str, count: str) -> Period:
    """Read "ago": `三天前` is a day; "two months ago" is a month, unless it bounds something;
    `两年以前` is any time before.
    """
    if name == "long_ago" and UNITS[unit] != "day":
        return Period(None, _ago(unit, count).start)

    return unit_period(UNITS[unit], -_number(count))


# What each of the `dates.forms` means; the parts of a form are the arguments.
_MEANINGS: dict[str, Callable[..., Period]] = {
    "day": _days,
    "days": _days,
    "month": _months,
    "months": _months,
    "quarter": lambda year, quarter: _period_from(
        _date_of(year, _quarter(quarter) * 3 - 2), "quarter"
    ),
    "half": lambda year, half: _period_from(_date_of(year, _half(half)), "month", 6),
    "year": lambda year: _period_from(_date_of(year), "year"),
    "day_of_relative_year": _day_of_year,
    "month_of_relative_year": _relative_months,
    "months_of_relative_year": _relative_months,
    "quarter_of_relative_year": _relative_quarter,
    "half_of_relative_year": lambda relative_year, half: _within_year(
        _YEARS[relative_year], _half(half), 6, None
    ),
    "relative_year": lambda relative_year: unit_period("year", _YEARS[relative_year]),
    "relative_month": lambda relative_month: unit_period("month", _RELATIVE_MONTHS[relative_month]),
    "day_of_relative_month": _days_of_month,
    "days_of_relative_month": _days_of_month,
    "week": lambda week: unit_period("week", _WEEKS[week]),
    "weekday": _weekdays,
    "weekdays": _weekdays,
    "weekend": lambda week: _weekend(_WEEKS[week]),
    "last_weekend": _weekend,
    "to_date": lambda unit: _to_date(UNITS[unit]),
    "this_unit": lambda unit: unit_period(UNITS[unit]),
    "last_unit": lambda unit: unit_period(UNITS[unit], -1),
    "next_unit": lambda unit: unit_period(UNITS[unit], 1),
    "past_unit": lambda unit: rolling(UNITS[unit], 1),
    "past_units": lambda unit, count: rolling(UNITS[unit], _back(unit, count)),
    "ago": _ago,
    "long_ago": _ago,
}
_BOUNDING = ("ago", "long_ago")  # forms that mean something else where nothing bounds them
_LANGUAGES = (WORDS.chinese, WORDS.english)
_PART = re.compile(r"(?<!\?P)<([a-z_]+)>")


def _pattern_of(part: str, words: Words) -> str:
    """Return the pattern of a part of a form: its own, else any of the words of its table."""
    patterns = words.get(f"dates.parts.{part}") or WORDS.chinese.get(f"dates.parts.{part}")
    if patterns:
        return _filled_form("|".join(patterns), words, "(?:{pattern})")

    pattern_by_part = {
        word for phrases in words.under(f"dates.{part}").values() for word in phrases
    } or _NUMBER_WORDS
    return "|".join(sorted(pattern_by_part, key=len, reverse=True))


def _filled_form(form: str, words: Words, group: str = "(?P<{part}>{pattern})") -> str:
    return _PART.sub(
        lambda match: group.format(part=match[1], pattern=_pattern_of(match[1], words)), form
    )


_FORMS = tuple(
    (re.compile(rf"(?<![a-z0-9]){_filled_form(form, words)}"), name)
    for words in _LANGUAGES
    for name, forms in words.under("dates.forms").items()
    for form in forms
)
_FIXED_PATTERN = re.compile(
    "|".join(
        rf"(?<![a-z]){re.escape(phrase)}(?![a-z])" if phrase.isascii() else re.escape(phrase)
        for phrase in sorted(_FIXED, key=len, reverse=True)
    )
)
_YEAR, _NOT_AFTER = r"(?:19|20)\d\d", r"(?<![\d.,a-z-])"
_BARE_YEAR = re.compile(  # alone, or one of two: "2024-2025"
    rf"(?:{_NOT_AFTER}|(?<={_NOT_AFTER}{_YEAR}-))({_YEAR})(?!\d|[.,]\d|-(?!{_YEAR}(?![\d-]))\d)"
)
# What is only written like a date, or stands where a year does: "30/02/2025", "in 1850".
_ODD = tuple(re.compile(form) for form in WORDS.english.phrases("dates.odd"))
_YEARLESS = re.compile(
    "|".join(
        _filled_form(form, words, "(?:{pattern})")
        for words in _LANGUAGES
        for form in words.phrases("dates.yearless")
    )
)


def spans_of(text: str) -> list[DateSpan]:
    """Return every reading of a stretch of the normalised text as a period; stretches may
    overlap.
    """
    text = text.lower()
    spans = [
        DateSpan(match.start(), match.end(), _FIXED[match.group()])
        for match in _FIXED_PATTERN.finditer(text)
    ]
    spans.extend(_date_spans(text))
    for match in _BARE_YEAR.finditer(text):
        period = _period_from(datetime.date(int(match.group(1)), 1, 1), "year")
        spans.append(DateSpan(match.start(), match.end(), period, is_bare=True))

    spans.extend(_impossible(match, "said") for pattern in _ODD for match in pattern.finditer(text))
    covered = [(span.start, span.end) for span in spans]
    for match in _YEARLESS.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in covered):
            spans.append(
                DateSpan(match.start(), match.end(), Period(None, None), missing_year=True)
            )

    return [
        replace(span, end=span.end + 2) if text[span.end :].startswith("'s") else span
        for span in spans
    ]


def whole_period(text: str) -> Period | None:
    """Return the period that the whole text says."""
    whole = [
        span
        for span in spans_of(text)
        if (span.start, span.end) == (0, len(text)) and span.is_known
    ]
    return whole[0].period if whole else None


def _date_spans(text: str) -> Iterator[DateSpan]:
    for pattern, name in _FORMS:
        for match in pattern.finditer(text):
            try:
                period = _MEANINGS[name](**match.groupdict())
            except (ValueError, OverflowError):  # 2024-02-31 or month 13 only look like dates
                yield _impossible(match)
            else:
                unbounded = _unbounded(name, **match.groupdict()) if name in _BOUNDING else None
                yield DateSpan(match.start(), match.end(), period, unbounded=unbounded)


def _impossible(match: re.Match[str], group: str | int = 0) -> DateSpan:
    return DateSpan(match.start(group), match.end(group), Period(None, None), is_impossible=True)
