"""Which dates of a query stand for a period that a question names: 2024 for '2024-01-01' and, as its end, '2025-01-01'.

A date in a query that no period of the question explains was worked out from the day it was asked on. Such a query is
not the same question's answer tomorrow.
"""

import re
from calendar import month_abbr, month_name, monthrange
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from knowledge.experience.phrasing import Piece

_DATE = re.compile(r"(?P<date>\d{4}(?:-\d{2}){0,2})(?P<rest>%|(?:(?<=-\d\d-\d\d)[ T].*)?)", re.DOTALL)
_LIKE_A_DATE = re.compile(r"(?:19|20)\d\d(?:$|%|[-/.\u5e74]\d|\d\d(?:\d\d)?$)")
_YEAR_WITHIN = re.compile(r"(?<![\w.-])(?:19|20)\d\d(?!\w)", re.ASCII)
_LAST_MONTH = 12
_YEARS = range(1900, 2100)


def expressions(piece: Piece) -> Mapping[str, str]:
    """How a year, month or day is expressed in queries → what is written there.

    `itself`, its `first` and its `last` day, and the day `after` it.
    """
    year, month, day = (*map(int, piece.text.split("-")), 0, 0)[:3]
    last = date(year, month or _LAST_MONTH, day or monthrange(year, month or _LAST_MONTH)[1])
    after = (last + timedelta(days=1)).isoformat()
    if day:
        return {"itself": piece.text, "after": after}
    return {"itself": piece.text, "first": date(year, month or 1, 1).isoformat(), "last": last.isoformat()} | {
        "after": after
    }


def split(text: str) -> tuple[str, str]:
    """A date and what is written after it: a time of day, or the sign that anything may follow; else the whole text."""
    match = _DATE.fullmatch(text)
    return (match["date"], match["rest"]) if match else (text, "")


def is_like_a_date(text: str) -> bool:
    """Whether a text constant may be a date or a part of one, or its pattern."""
    return _LIKE_A_DATE.match(text) is not None


def years_within(text: str) -> frozenset[int]:
    """The years that a text names, as 'Nov 1, 2026' and '11/1/2026' do."""
    return frozenset(map(int, _YEAR_WITHIN.findall(text)))


def is_like_a_year(number: str) -> bool:
    """Whether a number may be a year, 202403 or 20240309."""
    if len(number) == len("2024"):
        return int(number) in _YEARS
    if len(number) not in (len("202403"), len("20240309")) or int(number[:4]) not in _YEARS:
        return False
    return 1 <= int(number[4:6]) <= _LAST_MONTH


def is_explained(text: str, years: Collection[int], said: Collection[str], *, is_relative: bool) -> bool:
    """Whether a question explains a date: it is a bound of a month in one of the years, or its day is said.

    So "March 2024" and "Q1 2024" explain '2024-04-01', whatever words name the month. A relative question ("this month
    of 2024") explains only bounds of its years, and dates whose month it says by number or name.

    Args:
        said: the question's words and numbers.
        is_relative: whether it speaks of a time relative to the day it is asked on.
    """
    try:
        at = date.fromisoformat(split(text)[0])
    except ValueError:
        return False
    before = at - timedelta(days=1)
    if {(at.year, at.month, at.day), (before.year, before.month, before.day)} & _bounds(years):
        return True
    days = [at, before] if at.day == 1 else [at]
    return any(
        day.year in years
        and not (is_relative and _names(day.month).isdisjoint(said))
        and (at.day == 1 or at.day == monthrange(at.year, at.month)[1] or str(at.day) in said)
        for day in days
    )


def _names(month: int) -> set[str]:
    return {str(month), month_name[month].lower(), month_abbr[month].lower()}


def _bounds(years: Collection[int]) -> set[tuple[int, int, int]]:
    return {(year, month, day) for year in years for month, day in ((1, 1), (_LAST_MONTH, 31))}
