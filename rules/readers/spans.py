"""Reads periods, the words that bound them, and the date column that is named beside them."""

from rules.linking.dates import Moment, Period
from rules.linking.linking import Noun
from rules.query.conditions import Filters, Span
from rules.query.refusals import missing_year
from rules.query.years import in_year_of
from rules.readers.reading import Reading


class SpanReader:
    """Turns dates into periods, and uses up their marks."""

    def __init__(self, reading: Reading, found: Filters) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads every period, with its bounds and its column."""
        reading = self._reading
        index = 0
        while index < len(reading):
            if reading.free(index) and self._is_date(index):
                index = self._span_at(index)
            index += 1
        reading.use(*(place for place in reading.having("range") if reading.marks[place].arg == "now"))

    def _is_date(self, index: int) -> bool:
        mark = self._reading.marks[index]
        if mark.date is None:
            return False
        if not mark.date.is_bare:
            return True
        before = self._reading.beside(index, -1)
        compared = before is not None and self._reading.marks[before].means("cmp", "top")
        after = index + 1
        counted = after < len(self._reading) and self._reading.marks[after].means("unit")
        return not (compared and not self._date_before(before)) and not counted

    def _date_before(self, index: int | None) -> bool:
        """Whether the noun before a comparison is a date, so that a number such as 2020 is a year."""
        noun = self._reading.nouns[index - 1] if index else None
        return noun is not None and noun.column is not None and self._reading.is_date(noun.column)

    def _span_at(self, index: int) -> int:
        """Reads the period at `index` with everything around it; returns its last position."""
        reading = self._reading
        date = reading.marks[index].date
        assert date is not None
        if date.missing_year:
            raise missing_year(reading.marks[index].text)
        reading.use(index)
        span = Span([self._week_around(index) or date.period], index, index)
        self._extend(span)
        if not self._bound(span) and date.unbounded is not None and span.periods == [date.period]:
            span.periods = [date.unbounded]
        self._say_date(span)
        self.found.spans.append(span)
        return span.last

    def _week_around(self, index: int) -> Period | None:
        """The whole week of a day, where the question says so: "the week of 2026-10-05"; None elsewhere."""
        reading = self._reading
        date, before = reading.marks[index].date, reading.free_beside(index, -1, ("noise", "of"))
        if date is None or before is None or reading.marks[before].arg != "week" or index - before < 2:
            return None
        start = date.period.start
        if date.period.grain != "day" or start is None or start.day is None:
            return None
        reading.use(before)
        monday = start.shifted("day", -start.day.weekday())
        return Period(monday, monday.shifted("week", 1), "week")

    def _say_date(self, span: Span) -> None:
        """Finds the date column that is named beside the period: `2020年开业`, "hired in 2019"."""
        reading = self._reading
        for place in (
            reading.free_beside(span.last, 1),
            reading.free_beside(span.first, -1, ("noise", "of", "cmp", "with", "between", "range", "from", "not")),
        ):
            noun = reading.noun(place)
            if place is None or noun is None or noun.is_table or noun.column is None:
                continue
            if self._names_date(noun):
                span.link = reading.pick(place, lambda link: reading.is_date(link) or reading.is_year(link))
                reading.use(place)
                self._say_other_date(span, place)
                return

    def _say_other_date(self, span: Span, place: int) -> None:
        """Adds the period for a second date that is named with "and": `opened and closed in May`."""
        reading = self._reading
        step = 1 if place > span.last else -1
        joint, beyond = place + step, place + 2 * step
        joined = reading.free(joint) and reading.marks[joint].means("and")
        other = reading.noun(beyond) if joined and beyond >= 0 else None
        if other is None or span.link is None or other.is_table or other.is_value or not self._names_date(other):
            return
        table = span.link.table
        link = reading.pick(beyond, lambda link: reading.is_date(link) and link.table == table)
        if link is not None:
            reading.use(joint, beyond)
            self.found.spans.append(Span(list(span.periods), span.first, span.last, link, span.negated))

    def _names_date(self, noun: Noun) -> bool:
        """Whether a noun beside a period is its date column, and not what is measured in the period."""
        reading = self._reading
        dates = [score for score, link in noun.columns if reading.is_date(link) or reading.is_year(link)]
        measures = [score for score, link in noun.columns if reading.is_measure(link) and link.quality >= 0.75]
        if not dates or (measures and dates[0] < measures[0] + 0.25):
            return False
        return dates[0] >= noun.columns[0][0] - 0.1 and (not noun.is_value or noun.columns[0][1].quality >= 0.7)

    def _extend(self, span: Span) -> None:
        """Reads further dates: after 到 or "to" the end of a range, after 和 or "and" another period."""
        reading = self._reading
        while True:
            joint = span.last + 1
            other = reading.beside(joint, 1, ("noise",)) if joint < len(reading) else None
            if other is None or not reading.free(other) or not self._is_date(other):
                return
            date = reading.marks[other].date
            assert date is not None
            joins = reading.marks[joint]
            before = span.first - 1
            between = before >= 0 and reading.marks[before].means("between")
            ranged = joins.means("to", "range") or joins.text == "to" or (between and joins.means("and"))
            period = self._dated(span.periods[-1], other)
            if ranged and len(span.periods) == 1:
                span.periods = [Period(span.periods[0].start, period.end)]
            elif joins.means("and", "or", "compare"):
                span.periods.append(period)
                self.found.compares = self.found.compares or joins.means("compare")
            else:
                return
            reading.use(joint, other, *((before,) if between else ()))
            span.last = other

    def _dated(self, before: Period, index: int) -> Period:
        """The period at `index`; one without a year gets the year of the period before.

        Raises:
            Refusal: the period before has no year either.
        """
        mark = self._reading.marks[index]
        assert mark.date is not None
        if not mark.date.missing_year:
            return mark.date.period
        period = in_year_of(before, mark.text, self._reading.is_chinese)
        if period is None:
            raise missing_year(mark.text)
        return period

    def _bound(self, span: Span) -> bool:
        """Applies words such as "since", "after" and "until", and a negation; returns whether there was a bound.

        English says bounds before the period, Chinese after it.
        """
        reading = self._reading
        period = span.periods[0]
        bounded = False
        for place in (reading.beside(span.first, -1, ("noise",)), span.last + 1):
            if place is None or not reading.free(place):
                continue
            mark = reading.marks[place]
            arg = mark.arg if mark.means("range") else _BOUND_WORDS.get(mark.text, "") if place > span.last else ""
            if mark.means("cmp") and place < span.first:
                arg = _BOUND_OPERATORS.get(mark.arg, "")
                if reading.marks[span.first].text.endswith(("ago", "前")):
                    arg = _LONGER_AGO.get(arg, "")
                elif mark.text.lower() == "over" and period.is_relative:
                    arg = ""
                    reading.use(place)
            if mark.means("from") and place < span.first:
                open_ended = period.grain is not None and (reading.is_chinese or period.grain == "day")
                arg = "since" if open_ended and len(span.periods) == 1 and not self._ranged(span) else ""
                reading.use(place)
            if arg:
                bounded = True
                span.periods = [_BOUNDS[arg](period)]
                reading.use(place)
                span.first, span.last = min(span.first, place), max(span.last, place)
            elif mark.means("between_end"):
                reading.use(place)
        before = reading.beside(span.first, -1)
        negates = before is not None and reading.free(before) and reading.marks[before].means("not")
        if negates and before is not None and self._negates_directly(before, span.first):
            reading.use(before)
            span.negated = True
        return bounded

    def _negates_directly(self, negation: int, first: int) -> bool:
        return first - negation <= 2 and self._reading.marks[negation].text not in ("没有", "没", "未", "no")

    def _ranged(self, span: Span) -> bool:
        return span.last > span.first


_BOUND_WORDS = {"前": "before", "后": "after", "起": "since", "前的": "before", "to now": "since"}
_BOUND_OPERATORS = {">": "after", ">=": "since", "<": "before", "<=": "until", "=": ""}
_LONGER_AGO = {"after": "before", "since": "until", "before": "after", "until": "since"}
_BOUNDS = {
    "now": lambda period: Period(period.start, Moment(days=1)),
    "since": lambda period: Period(period.start, None),
    "after": lambda period: Period(period.end, None),
    "before": lambda period: Period(None, period.start),
    "until": lambda period: Period(None, period.end),
}
