"""Match dates of a query with the periods that a question names.

2024 stands for '2024-01-01' and, as its end, '2025-01-01'.

A date in a query that no period of the question explains was worked out from the day it was asked
on. Such a query is not the same question's answer tomorrow.
"""

import re
from calendar import month_abbr, month_name, monthrange
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from knowledge.experience.phrasing import Piece

_DATE = re.compile(
    r"(?P<date>\d{4}(?:-\d{2}){0,2})(?P<rest>%|(?:(?<=-\d\d-\d\d)[ T].*)?)", re.DOTALL
)
_LIKE_A_DATE = re.compile(r"(?:19|20)\d\d(?:$|%|[-/.\u5e74]\d|\d\d(?:\d\d)?$)")
_YEAR_WITHIN = re.compile(r"(?<![\w.-])(?:19|20)\d\d(?!\w)", re.ASCII)
_LAST_MONTH = 12
_YEARS = range(1900, 2100)


def expressions(piece: Piece) -> Mapping[str, str]:
    """Return how queries may write a year, month or day, by the kind of expression.

    `itself`, its `first` and its `last` day, and the day `after` it.
    """
    year, *rest = map(int, piece.text.split("-"))
    if len(rest) == 2:
        day = date(year, *rest)
        return {"itself": piece.text, "after": (day + timedelta(days=1)).isoformat()}

    first_month, last_month = 1, _LAST_MONTH
    if rest:
        first_month = last_month = rest[0]

    last = date(year, last_month, monthrange(year, last_month)[1])
    return {
        "itself": piece.text,
        "first": date(year, first_month, 1).isoformat(),
        "last": last.isoformat(),
        "after": (last + timedelta(days=1)).isoformat(),
    }


def split(text: str) -> tuple[str, str]:
    """Split a text into a date and the rest: a time of day, or the sign that anything may follow.

    A text that is no date is all in the first part.
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return text, ""

    return match["date"], match["rest"]


def is_like_a_date(text: str) -> bool:
    """Tell whether a text constant may be a date or a part of one, or its pattern."""
    return _LIKE_A_DATE.match(text) is not None


def years_within(text: str) -> frozenset[int]:
    """Return the years that a text names, as 'Nov 1, 2026' and '11/1/2026' do."""
    return frozenset(map(int, _YEAR_WITHIN.findall(text)))


def is_like_a_year(number: str) -> bool:
    """Tell whether a number may be a year, 202403 or 20240309."""
    if len(number) not in (len("2024"), len("202403"), len("20240309")):
        return False
    if int(number[:4]) not in _YEARS:
        return False
    if len(number) == len("2024"):
        return True

    return 1 <= int(number[4:6]) <= _LAST_MONTH


def is_explained(
    text: str, years: Collection[int], question_words: Collection[str], *, is_relative: bool
) -> bool:
    """Tell whether a question explains a date.

    It does if the date is a bound of a month in one of the years, or if its day is said.

    So "March 2024" and "Q1 2024" explain '2024-04-01', whatever words name the month. A relative
    question ("this month of 2024") explains only bounds of its years, and dates whose month it says
    by number or name.

    Args:
        question_words: the question's words and numbers.
        is_relative: whether it speaks of a time relative to the day it is asked on.
    """
    try:
        at = date.fromisoformat(split(text)[0])
    except ValueError:
        return False

    before = at - timedelta(days=1)
    if _is_bound_of_year(at, years) or _is_bound_of_year(before, years):
        return True
    if not _is_day_said(at, question_words):
        return False

    # the first of a month is also the end of the month before
    days = [at]
    if at.day == 1:
        days.append(before)

    months = [day.month for day in days if day.year in years]
    if is_relative:
        return any(not _names(month).isdisjoint(question_words) for month in months)

    return bool(months)


def _is_day_said(day: date, question_words: Collection[str]) -> bool:
    """Tell whether a question says the day, or the day bounds a month and needs not be said."""
    last_of_month = monthrange(day.year, day.month)[1]
    if day.day in (1, last_of_month):
        return True

    return str(day.day) in question_words


def _names(month: int) -> set[str]:
    return {str(month), month_name[month].lower(), month_abbr[month].lower()}


def _is_bound_of_year(day: date, years: Collection[int]) -> bool:
    is_first_or_last = (day.month, day.day) in ((1, 1), (_LAST_MONTH, 31))
    return is_first_or_last and day.year in years
