"""Completes months, days and quarters without a year ("and in May?") by the year of an earlier
question.
"""

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
_MONTHS_OF_YEAR = 12
_FIRST_YEAR, _AFTER_LAST_YEAR = 1900, 2100  # a number between them may be a year
_BEFORE_MONTHS = re.compile(rf"^(?:{WORDS.any_of('dates.before_months')}) ")


def year_of(question: str, query: Query) -> str:
    """Return the year that the query's conditions are about, in the question's language.

    Empty when they are about none, or about several.
    """
    is_chinese = language_of(question) == "zh"
    years: set[str] = set()
    for condition in query.conditions:
        if condition.operator in ("during", "="):
            years.update(_year_of_operand(operand, is_chinese) for operand in condition.operands)

    years.discard("")
    return years.pop() if len(years) == 1 else ""


def _year_of_operand(operand: Operand, is_chinese: bool) -> str:
    if isinstance(operand, Period):
        if operand.end is not None:
            return year_of_period(operand, is_chinese)

        return ""

    if not isinstance(operand, Decimal):
        return ""

    is_year = operand == int(operand) and _FIRST_YEAR <= operand < _AFTER_LAST_YEAR
    return _spelled_year(int(operand), is_chinese) if is_year else ""


def year_of_period(period: Period, is_chinese: bool) -> str:
    """Return the year that the period begins in, as the language says it.

    Empty when it has no beginning, or one that lies further back than there are words for.
    """
    start = period.start
    if start is None:
        return ""
    if start.day is not None:
        return _spelled_year(start.day.year, is_chinese)
    if start.trunc != "year":
        return ""

    years_ago = start.months // _MONTHS_OF_YEAR
    return next(iter(_words(is_chinese).get(f"dates.years.{years_ago}")), "")


def with_missing_years(marks: Iterable[Mark], year: str, is_chinese: bool) -> tuple[Mark, ...]:
    """Return the marks; months, days and quarters without their year are those of `year`."""
    if not year:
        return tuple(marks)

    return tuple(_with_year(mark, year, is_chinese) for mark in marks)


def _with_year(mark: Mark, year: str, is_chinese: bool) -> Mark:
    is_month = mark.is_unknown and mark.text.lower() in _MONTHS
    lacks_year = mark.date is not None and mark.date.missing_year
    if not is_month and not lacks_year:
        return mark

    period = in_year(year, mark.text, is_chinese)
    if period is None:
        return mark

    return replace(mark, date=DateSpan(0, len(mark.text), period), is_unknown=False)


def in_year(year: str, phrase: str, is_chinese: bool) -> Period | None:
    """Return the period that a month, day or quarter without a year is in that year."""
    core = _BEFORE_MONTHS.sub("", phrase.lower())
    if is_chinese:
        return whole_period(f"{year}{core}")

    return whole_period(f"{core} of {year}") or whole_period(f"{core} {year}")


def in_year_of(period: Period, phrase: str, is_chinese: bool) -> Period | None:
    """Return the month, day or quarter `phrase` of the year that the period begins in."""
    year = year_of_period(period, is_chinese)
    return in_year(year, phrase, is_chinese) if year else None


def _spelled_year(year: int, is_chinese: bool) -> str:
    return _words(is_chinese).text("dates.spelled_year").format(year)


def this_year(is_chinese: bool) -> str:
    """Return the words for the current year."""
    return _words(is_chinese).phrases("dates.years.0")[0]


def _words(is_chinese: bool) -> Words:
    return WORDS.chinese if is_chinese else WORDS.english
