"""What patterns of dates give: periods with their bounds and their column, weekdays."""

from dataclasses import replace

from rules.linking.moments import Moment, Period
from rules.reading.parts import Named, Parts, Span, Weekday
from rules.reading.words import Item, Match
from rules.schema.links import Link
from rules.words import WORDS

_AGO = WORDS.both("questions.ago")
_MEASURED = 0.75
_BOUNDS = {
    "now": lambda period: Period(period.start, Moment(days=1)),
    "since": lambda period: Period(period.start, None),
    "after": lambda period: Period(period.end, None),
    "before": lambda period: Period(None, period.start),
    "until": lambda period: Period(None, period.end),
}
_BOUND_WORDS = WORDS.named("questions.bounds")
_OPERATORS = {">": "after", ">=": "since", "<": "before", "<=": "until", "=": ""}
_LONGER_AGO = {"after": "before", "since": "until", "before": "after", "until": "since"}


def weekday(match: Match) -> Parts:
    """Mondays, weekends."""
    item, column = match["calendar"], match.get("dcol")
    part, value = item.arg.split(":")
    link = column.link if column is not None else None
    return Parts(weekdays=(Weekday(part, int(value), item.first, match.is_negated, link),))  # type: ignore[arg-type]


def workdays(match: Match) -> Parts:
    """Mondays to Fridays, said of a figure: weekday revenue."""
    return Parts(weekdays=(Weekday("weekend", 0, match.start),))


def span(match: Match) -> Parts | None:
    """Periods with their bounds, and the date column beside them."""
    item, column = match["dates"], match.get("dcol")
    if column is not None and not _dates_it(match, column):
        return None
    periods = item.periods
    bound = _bound(match, item)
    date = item.word.mark.date
    if bound is None and date is not None and date.unbounded is not None and len(periods) == 1:
        periods = (date.unbounded,)
    elif bound:
        periods = (_BOUNDS[bound](periods[0]),)
    link = column.link if column is not None else None
    compares = item.joint == "compare"
    found = Span(periods, item.first, link, negated=match.is_negated, compares=compares)
    others = tuple(replace(found, link=one.link) for one in match.all("dcol")[1:])
    return Parts(spans=(found, *others), flags=("compare",) if compares else ())


def week_of(match: Match) -> Parts | None:
    """The whole week of a day: "the week of 2026-10-05"."""
    item = match["dates"]
    start = item.periods[0].start
    if len(item.periods) != 1 or item.periods[0].grain != "day" or start is None or start.day is None:
        return None
    monday = start.shifted("day", -start.day.weekday())
    return Parts(spans=(Span((Period(monday, monday.shifted("week", 1), "week"),), item.first),))


def _dates_it(match: Match, column: Item) -> bool:
    """Whether a word beside a period is its date column, and not what is measured in the period."""
    noun, question = column.word.noun, match.question
    if noun is None or noun.is_table:
        return False  # "orders from last year"
    named = ((score, link) for score, link in noun.columns if link.quality >= _MEASURED)
    measures = [score for score, link in named if question.is_measure(link)]
    dates = [score for score, link in noun.columns if question.is_date(link)]
    return not measures or dates[0] >= measures[0] + 0.25


def _bound(match: Match, item: Item) -> str | None:
    """The bound that words beside the period say; None without one."""
    period = item.periods[0]
    for word in sorted(match.items, key=lambda one: one.symbol == "from"):  # "from 2024 until now"
        if word.symbol == "range":
            return word.arg
        if word.symbol.startswith("'"):
            return _BOUND_WORDS[word.word.text]
        if word.symbol == "cmp":
            bound = _OPERATORS.get(word.arg, "")
            if item.word.text.endswith(_AGO):
                return _LONGER_AGO.get(bound, "")
            return None if word.word.text == "over" and period.is_relative else bound
        if word.symbol == "from" and item.first == item.last:
            open_ended = period.grain is not None and (match.question.is_chinese or period.grain == "day")
            return "since" if open_ended else None
    return None


def asked_span(match: Match) -> Parts | None:
    """`哪些公司成立于2010年以后`, where one word names the table and its date: the table is asked for."""
    column = match["dcol"]
    parts = span(match)
    owned = parts is not None and column.link.spelling not in (column.link.column or "")
    if parts is None or not owned or not match.question.facts(column.link.table).is_entity:
        return None
    table = Link("table", column.link.table, None, None, 1.0, "")
    return parts + Parts(tables=(Named(column.first, table, "asked"),))
