"""The year an earlier question spoke of, said so that a month or quarter without its year can be completed by it."""

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from common.text import language_of
from common.word_files import Words
from rules.linking.dates import DateSpan, whole_period
from rules.linking.mark import Mark
from rules.linking.moments import Period
from rules.query.query import Operand, Query
from rules.words import WORDS

_MONTHS = WORDS.numbers("dates.months")
_BEFORE_MONTHS = re.compile(rf"^(?:{WORDS.any_of('dates.before_months')}) ")


def year_of(question: str, query: Query) -> str:
    """The year of the query's one period in the question's language; empty when it has none, or several."""
    is_chinese = language_of(question) == "zh"
    conditions = (one for one in query.conditions if one.operator in ("during", "="))
    years = {_year(operand, is_chinese) for one in conditions for operand in one.operands} - {""}
    return years.pop() if len(years) == 1 else ""


def _year(operand: Operand, is_chinese: bool) -> str:
    if isinstance(operand, Decimal):
        is_whole = operand == int(operand) and 1900 <= operand < 2100
        return _spelled(int(operand), is_chinese) if is_whole else ""
    if not isinstance(operand, Period) or operand.end is None:
        return ""
    return year_of_period(operand, is_chinese)


def year_of_period(period: Period, is_chinese: bool) -> str:
    """The year that the period begins in; empty when it is open, or further back than words reach."""
    start = period.start
    if start is not None and start.day is not None:
        return _spelled(start.day.year, is_chinese)
    if start is None or start.trunc != "year":
        return ""
    return next(iter(_words(is_chinese).get(f"dates.years.{start.months // 12}")), "")


def dated(marks: Iterable[Mark], year: str, is_chinese: bool) -> tuple[Mark, ...]:
    """The marks with months, days and quarters said without their year in that one."""
    return tuple(_dated(mark, year, is_chinese) for mark in marks) if year else tuple(marks)


def _dated(mark: Mark, year: str, is_chinese: bool) -> Mark:
    month = mark.is_unknown and mark.text.lower() in _MONTHS
    if not (month or (mark.date is not None and mark.date.missing_year)):
        return mark
    period = in_year(year, mark.text, is_chinese)
    return replace(mark, date=DateSpan(0, len(mark.text), period), is_unknown=False) if period is not None else mark


def in_year(year: str, said: str, is_chinese: bool) -> Period | None:
    """The period of a month, day or quarter said without its year."""
    core = _BEFORE_MONTHS.sub("", said.lower())
    if is_chinese:
        return whole_period(f"{year}{core}")
    return whole_period(f"{core} of {year}") or whole_period(f"{core} {year}")


def in_year_of(period: Period, said: str, is_chinese: bool) -> Period | None:
    """What is said without its year, in the year that the period begins in."""
    year = year_of_period(period, is_chinese)
    return in_year(year, said, is_chinese) if year else None


def _spelled(year: int, is_chinese: bool) -> str:
    return _words(is_chinese).text("dates.spelled_year").format(year)


def this_year(is_chinese: bool) -> str:
    """How the language says it."""
    return _words(is_chinese).phrases("dates.years.0")[0]


def _words(is_chinese: bool) -> Words:
    return WORDS.chinese if is_chinese else WORDS.english
