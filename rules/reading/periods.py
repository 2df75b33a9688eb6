"""Makes parts of patterns of dates: periods with their bounds and their date column, weekdays."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rules.linking.moments import Moment, Period
from rules.reading.parts import Named, Parts, Span, Weekday
from rules.reading.words import Match, MatchedItem
from rules.schema.links import Link
from rules.words import WORDS

_AGO = WORDS.both("questions.ago")
_MEASURED = 0.75  # quality of a word that may name a measure instead of a date
_LIKELIER = 0.25  # by which the score of the date has to be higher then
_BOUNDS: Mapping[str, Callable[[Period], Period]] = {
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
    """Restrict the answer to weekdays or weekends."""
    item = match["calendar"]
    column = match.get("dcol")
    part, value = item.arg.split(":")
    link = column.link if column is not None else None
    found = Weekday(
        part,  # type: ignore[arg-type]
        int(value),
        item.first,
        negated=match.is_negated,
        link=link,
    )
    return Parts(weekdays=(found,))


def workdays(match: Match) -> Parts:
    """Restrict a figure to Mondays to Fridays: "weekday revenue"."""
    return Parts(weekdays=(Weekday("weekend", 0, match.start),))


def span(match: Match) -> Parts | None:
    """Restrict the answer to periods, by the date column beside them if there is one."""
    item = match["dates"]
    column = match.get("dcol")
    if column is not None and not _is_date_of_period(match, column):
        return None
    if column is not None and column.first > item.last and _follows_date(match):
        return None

    compares = item.joint == "compare"
    found = Span(
        _bounded_periods(match, item),
        item.first,
        column.link if column is not None else None,
        negated=match.is_negated,
        compares=compares,
    )
    others = [replace(found, link=one.link) for one in match.all("dcol")[1:]]
    return Parts(spans=(found, *others), flags=("compare",) if compares else ())


def _follows_date(match: Match) -> bool:
    """Tell whether the period belongs to the date before it: "born before 1960 were admitted"."""
    before = match.question.word_at(match.start - 1)
    if before is None:
        return False

    names_date = "dcol" in before.senses
    names_table = "tab" in before.senses
    return names_date and not names_table


def _bounded_periods(match: Match, item: MatchedItem) -> tuple[Period, ...]:
    """Return the periods of a match as words such as "since" or "before" bound them."""
    bound = _bound(match, item)
    date = item.word.mark.date
    if bound:
        return (_BOUNDS[bound](item.periods[0]),)

    is_single = len(item.periods) == 1
    if bound is None and is_single and date is not None and date.unbounded is not None:
        return (date.unbounded,)

    return item.periods


def week_of(match: Match) -> Parts | None:
    """Restrict the answer to the whole week of a day: "the week of 2026-10-05"."""
    item = match["dates"]
    period = item.periods[0]
    start = item.periods[0].start
    if len(item.periods) != 1 or period.grain != "day":
        return None
    if start is None or start.day is None:
        return None

    monday = start.shifted("day", -start.day.weekday())
    week = Period(monday, monday.shifted("week", 1), "week")
    return Parts(spans=(Span((week,), item.first),))


def _is_date_of_period(match: Match, column: MatchedItem) -> bool:
    """Tell whether a word beside a period is its date column, not what is measured in it."""
    noun = column.word.noun
    question = match.question
    if noun is None or noun.is_table:
        # "orders from last year"
        return False

    measures, dates = [], []
    for score, link in noun.columns:
        if link.quality >= _MEASURED and question.is_measure(link):
            measures.append(score)
        if question.is_date(link):
            dates.append(score)

    return not measures or dates[0] >= measures[0] + _LIKELIER


def _bound(match: Match, item: MatchedItem) -> str | None:
    """Return the bound that words beside the period say, empty for one without a bound.

    None where no such word stands there.
    """
    # "from 2024 until now"
    words = sorted(match.items, key=lambda one: one.symbol == "from")
    for word in words:
        if word.symbol == "range":
            return word.arg
        if word.symbol.startswith("'"):
            return _BOUND_WORDS[word.word.text]
        if word.symbol == "cmp":
            return _compared_bound(word, item)
        if word.symbol == "from" and item.first == item.last:
            if _is_open_ended(match, item.periods[0]):
                return "since"

            return None

    return None


def _compared_bound(word: MatchedItem, item: MatchedItem) -> str | None:
    bound = _OPERATORS.get(word.arg, "")
    if item.word.text.endswith(_AGO):
        return _LONGER_AGO.get(bound, "")

    is_duration = word.word.text == "over" and item.periods[0].is_relative
    return None if is_duration else bound


def _is_open_ended(match: Match, period: Period) -> bool:
    """Tell whether "from" begins an open period: "from May 1st", but not "orders from May"."""
    if match.question.is_chinese:
        return period.grain is not None

    return period.grain == "day"


def asked_span(match: Match) -> Parts | None:
    """Ask for a table by a word that names it and its date: `哪些公司成立于2010年以后`."""
    link = match["dcol"].link
    parts = span(match)
    is_date_alone = link.spelling in (link.column or "")
    if parts is None or is_date_alone or not match.question.facts(link.table).is_entity:
        return None

    table = Link("table", link.table, None, None, 1.0, "")
    return parts + Parts(tables=(Named(match["dcol"].first, table, "asked"),))
