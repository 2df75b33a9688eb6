"""Conditions: from words such as "above 5000", "为空", "in 2024", "微信和支付宝", "without orders" to structure."""

from dataclasses import dataclass, field, replace
from decimal import Decimal

from agent.skills.offline.dates import Period
from agent.skills.offline.linking import Noun
from agent.skills.offline.links import Link
from agent.skills.offline.query import ColumnRef, Condition, Measure, Operator, Related
from agent.skills.offline.reading import Reading
from agent.skills.offline.refusals import missing_year
from agent.skills.offline.schema import TableKey, kind_of

_OPPOSITE: dict[Operator, Operator] = {
    "=": "!=", "in": "not in", "null": "not null", "not null": "null", "true": "false", "false": "true",
    "contains": "not contains", "during": "not during", ">": "<=", "<": ">=", ">=": "<", "<=": ">",
}  # fmt: skip
_NEGATION_SKIP = ("noise", "of", "unit", "cmp", "list", "with", "from", "verb")


@dataclass
class Threshold:
    """A comparison whose left side may be an aggregate: decided when it is known what is asked.

    Attributes:
        link: the compared column, None when rows of `table` are counted.
        hint: concept of the compared column when only an adjective says it (`price` of "cheaper than").
        function: an aggregate said explicitly ("average rent above 5000").
    """

    operator: Operator
    operands: tuple[Decimal, ...]
    link: Link | None = None
    table: TableKey | None = None
    function: str | None = None
    hint: str = ""
    position: int = 0


@dataclass
class Span:
    """A period and where in the question it stands; `link` once its column is known."""

    periods: list[Period]
    first: int
    last: int
    link: Link | None = None
    negated: bool = False


@dataclass
class Filters:
    """Everything that restricts rows, as far as it is known before the asked table is."""

    conditions: list[Condition] = field(default_factory=list)
    thresholds: list[Threshold] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    related: list[Related] = field(default_factory=list)
    with_deleted: set[TableKey] = field(default_factory=set)
    averages: list[tuple[Link | None, Operator]] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    compared: list[ColumnRef] = field(default_factory=list)
    compares: bool = False


def ref(link: Link) -> ColumnRef:
    """The column a link means."""
    assert link.column is not None
    return ColumnRef(link.table, link.column, is_age=link.derived == "age")


class FilterReader:
    """Finds the conditions in a reading, most specific constructs first."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._roles: dict[int, str] = {}
        self.found = Filters()

    def read(self) -> Filters:
        """Every condition of the question."""
        self._deleted()
        self._spans()
        self._null_tests()
        self._patterns()
        self._thresholds()
        self._averages()
        self._values()
        self._identities()
        self._booleans()
        self._missing()
        self._merge_alternatives()
        return self.found

    # --------------------------------------------------------------------------------------------------------- dates

    def _spans(self) -> None:
        reading = self._reading
        index = 0
        while index < len(reading):
            if reading.free(index) and self._is_date(index):
                index = self._span_at(index)
            index += 1

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
        """Whether the noun before a comparison is a date column, so that 2020 is a year there."""
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
        span = Span([date.period], index, index)
        self._extend(span)
        self._bound(span)
        self._say_date(span)
        self.found.spans.append(span)
        return span.last

    def _say_date(self, span: Span) -> None:
        """Takes in the date column named beside the period (`2020年开业`, "hired in 2019")."""
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
                return

    def _names_date(self, noun: Noun) -> bool:
        """Whether a noun beside a period is its date column rather than what is measured in the period."""
        reading = self._reading
        dates = [score for score, link in noun.columns if reading.is_date(link) or reading.is_year(link)]
        measures = [score for score, link in noun.columns if reading.is_measure(link) and link.quality >= 0.7]
        if not dates or (measures and dates[0] < measures[0] + 0.25):
            return False
        return dates[0] >= noun.columns[0][0] - 0.1 and (not noun.is_value or noun.columns[0][1].quality >= 0.7)

    def _extend(self, span: Span) -> None:
        """Takes in `到 <date>` (a range) and `和 <date>` (further periods)."""
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
            if ranged and len(span.periods) == 1:
                span.periods = [Period(span.periods[0].start, date.period.end)]
            elif joins.means("and", "or", "compare"):
                span.periods.append(date.period)
                self.found.compares = self.found.compares or joins.means("compare")
            else:
                return
            reading.use(joint, other, *((before,) if between else ()))
            span.last = other

    def _bound(self, span: Span) -> None:
        """Applies since / after / before / until, said before (English) or after (Chinese)."""
        reading = self._reading
        period = span.periods[0]
        for place in (reading.beside(span.first, -1, ("noise",)), span.last + 1):
            if place is None or not reading.free(place):
                continue
            mark = reading.marks[place]
            arg = mark.arg if mark.means("range") else _BOUND_WORDS.get(mark.text, "") if place > span.last else ""
            if mark.means("cmp") and place < span.first:
                arg = _BOUND_OPERATORS.get(mark.arg, "")
                if mark.text.lower() == "over" and period.is_relative:
                    arg = ""
                    reading.use(place)
            if mark.means("from") and place < span.first:
                open_ended = reading.is_chinese or period.grain == "day" or period.grain is None
                arg = "since" if open_ended and len(span.periods) == 1 and not self._ranged(span) else ""
                reading.use(place)
            if arg:
                span.periods = [_BOUNDS[arg](period)]
                reading.use(place)
                span.first, span.last = min(span.first, place), max(span.last, place)
            elif mark.means("between_end"):
                reading.use(place)
        before = reading.beside(span.first, -1)
        if before is not None and reading.free(before) and reading.marks[before].means("not"):
            if self._negates_directly(before, span.first):
                reading.use(before)
                span.negated = True

    def _negates_directly(self, negation: int, first: int) -> bool:
        return first - negation <= 2 and self._reading.marks[negation].text not in ("没有", "没", "未", "no")

    def _ranged(self, span: Span) -> bool:
        return span.last > span.first

    # ---------------------------------------------------------------------------------------------------- null tests

    def _null_tests(self) -> None:
        reading = self._reading
        for index in list(reading.having("null", "notnull")):
            operator: Operator = "null" if reading.marks[index].means("null") else "not null"
            target = self._null_target(index)
            if target is None:
                continue
            link = self._plain_column(target)
            if link is None:
                continue
            operator = self._negated(min(target, index), operator)
            reading.use(index, target)
            self.found.conditions.append(Condition(ref(link), operator))

    def _null_target(self, index: int) -> int | None:
        """The column a null test is about: `缺少电话`, "missing phone" before it, `电话为空`, "phone is missing" after it."""
        reading = self._reading
        text = reading.marks[index].text
        trailing = text.endswith(("空", "空的", "空值")) or text.startswith(("is ", "are ", "为", "是", "缺失"))
        for step in (-1,) if trailing else (1, -1):
            place = reading.free_beside(index, step, ("noise", "of", "with", "cmp"))
            if place is not None and self._may_be_null(place):
                return place
        return None

    def _may_be_null(self, place: int) -> bool:
        noun = self._reading.noun(place)
        if noun is None or noun.is_value or not noun.columns:
            return False
        return not noun.is_table or self._plain_column(place) is not None

    def _plain_column(self, place: int) -> Link | None:
        """The column a word means that is neither its table's key nor its name."""
        reading = self._reading

        def is_plain(link: Link) -> bool:
            facts = reading.facts(link.table)
            return link.quality >= 0.8 and link.column not in (*facts.display, *facts.key, *facts.reference_columns)

        noun = reading.nouns[place]
        return reading.pick(place, is_plain) if noun is not None and noun.is_table else reading.pick(place)

    def _negated(self, index: int, operator: Operator) -> Operator:
        """The operator, turned round when a negation stands right before."""
        place = self._reading.free_beside(index, -1, ("noise", "cmp", "with"))
        if place is not None and self._reading.marks[place].means("not") and operator in _OPPOSITE:
            self._reading.use(place)
            return _OPPOSITE[operator]
        return operator

    # ------------------------------------------------------------------------------------------------------ patterns

    def _patterns(self) -> None:
        reading = self._reading
        for index in list(reading.having("like", "named")):
            text = self._pattern_text(index)
            if text is None:
                continue
            target = self._pattern_target(index)
            if target is None:
                continue
            kind = reading.marks[index]
            operator: Operator = "=" if kind.means("named") else kind.arg  # type: ignore[assignment]
            operator = self._negated(index, operator)
            reading.use(index, text)
            mark = reading.marks[text]
            stored = self._stored_text(text, target) if operator == "=" else None
            written = stored or (mark.literal if mark.literal is not None else mark.text)
            self.found.conditions.append(Condition(target, operator, (written,)))

    def _stored_text(self, index: int, target: ColumnRef) -> str | None:
        noun = self._reading.nouns[index]
        for _, link in noun.values if noun else ():
            if (link.table, link.column) == (target.table, target.column):
                return link.value
        return None

    def _pattern_text(self, index: int) -> int | None:
        """The position of the text of a LIKE: a quotation or word after it, or (`以…开头`) before it."""
        reading = self._reading
        steps = (-1,) if reading.is_chinese and reading.marks[index].arg in ("prefix", "suffix") else (1,)
        for step in steps:
            place = reading.free_beside(index, step, ("noise", "of", "cmp", "unit"))
            if place is None:
                continue
            mark, noun = reading.marks[place], reading.nouns[place]
            if (
                mark.literal is not None
                or mark.is_unknown
                or (len(mark.text) == 1 and mark.text.isascii() and mark.text.isalpha())
                or mark.number is not None
                or (noun is not None and noun.is_value)
            ):
                if step == -1 and place > 0 and reading.marks[place - 1].means("by"):
                    reading.use(place - 1)
                return place
        return None

    def _pattern_target(self, index: int) -> ColumnRef | None:
        """The column a LIKE applies to: a text column named before, else the name of the thing named before or after."""
        reading = self._reading
        for step in (-1, 1):
            place = reading.find(index + step, step, lambda at: self._names_text(at))
            noun = reading.noun(place)
            if place is None or noun is None:
                continue
            owner = reading.named_thing(place)
            if owner is not None:
                reading.use(place)
                return ColumnRef(owner, reading.facts(owner).display[0])
            if noun.is_table and noun.table is not None:
                display = reading.facts(noun.table.table).display
                if display:
                    return ColumnRef(noun.table.table, display[-1] if len(display) == 1 else display[0])
                continue
            link = reading.pick(place, lambda link: reading.kind(link) in ("text", "other"))
            if link is not None:
                if step == -1:
                    reading.use(place)
                return ref(link)
        return None

    def _names_text(self, index: int) -> bool:
        noun = self._reading.nouns[index]
        if noun is None or noun.is_value:
            return False
        if noun.is_table:
            return True
        return any(self._reading.kind(link) in ("text", "other") for _, link in noun.columns)

    # ----------------------------------------------------------------------------------------------------- thresholds

    def _thresholds(self) -> None:
        for index in list(self._reading.having("between", "between_end")):
            self._between(index)
        for index in list(self._reading.having("cmp")):
            self._threshold(index)
        self._implicit_ranges()
        self._plain_equalities()

    def _between(self, index: int) -> None:
        reading = self._reading
        forward = reading.marks[index].means("between")
        first = reading.find(index, 1 if forward else -1, self._is_number)
        if first is None:
            return
        low, high = self._pair(first, 1 if forward else -1)
        if low is None or high is None:
            return
        if (
            forward
            and (closing := reading.free_beside(high, 1)) is not None
            and reading.marks[closing].means("between_end")
        ):
            reading.use(closing)
        reading.use(index)
        self._add_range(low, high, min(index, low), max(index, high))

    def _pair(self, first: int, step: int) -> tuple[int | None, int | None]:
        """Two numbers with `到` or `and` between them, in order."""
        reading = self._reading
        joint = reading.beside(first, step)
        other = reading.free_beside(joint, step) if joint is not None else None
        if joint is None or other is None or not self._is_number(other) or not self._joins_range(joint):
            return None, None
        reading.use(joint)
        return (first, other) if step == 1 else (other, first)

    def _joins_range(self, index: int) -> bool:
        mark = self._reading.marks[index]
        return mark.means("to", "and") or mark.text == "to"

    def _implicit_ranges(self) -> None:
        """`1万到3万`, `10-20` without "between"."""
        reading = self._reading
        for index in range(len(reading)):
            if reading.free(index) and self._is_number(index):
                joint = reading.beside(index, 1)
                if joint is None or not (reading.marks[joint].means("to") or reading.marks[joint].text == "to"):
                    continue
                low, high = self._pair(index, 1)
                if low is not None and high is not None:
                    self._add_range(low, high, low, high)

    def _add_range(self, low: int, high: int, opening: int, closing: int) -> None:
        reading = self._reading
        first, second = reading.marks[low].number, reading.marks[high].number
        assert first is not None and second is not None
        scale = second.value / first.value if first.value else Decimal(0)
        start = first.value * 10000 if scale >= 10000 and reading.marks[high].text.endswith("万") else first.value
        threshold = Threshold("between", (start, second.value), position=low)
        reading.use(low, high)
        self._attach(threshold, opening, closing)

    def _is_number(self, index: int) -> bool:
        return self._reading.marks[index].number is not None

    def _threshold(self, index: int) -> None:
        reading = self._reading
        mark = reading.marks[index]
        operator, hint = (mark.arg[:1], mark.arg[1:]) if mark.arg[1:].isalpha() else (mark.arg, "")
        after = reading.free_beside(index, 1)
        before = reading.free_beside(index, -1)
        leading = after is not None and self._is_number(after)
        place = after if leading else before if before is not None and self._is_number(before) else None
        if place is None or (not leading and mark.text not in _TRAILING) or (leading and mark.text.startswith("or ")):
            return
        number = reading.marks[place].number
        assert number is not None
        negated = self._negated(min(index, place), operator)  # type: ignore[arg-type]
        threshold = Threshold(negated, (number.value,), hint=hint, position=place)
        reading.use(index, place)
        self._attach(threshold, min(index, place), max(index, place))

    def _attach(self, threshold: Threshold, first: int, last: int) -> None:
        """Finds what is compared: the noun before, else the noun right after (`超过5个订单`, "more than 5 orders")."""
        reading = self._reading
        self.found.thresholds.append(threshold)
        if threshold.hint:
            return
        before = reading.free_beside(first, -1, ("noise", "of", "with", "count", "by", "unit"))
        after = reading.free_beside(last, 1, ("noise", "unit"))
        if before is not None and self._compares(before, threshold, is_before=True):
            self._take_count_words(before, first)
            return
        if after is not None and self._compares(after, threshold, is_before=False):
            return
        counts = before is not None and (reading.is_chinese or self._is_counted(before))
        if counts and before is not None and self._take_table(before, threshold):
            self._take_count_words(before, first)

    def _compares(self, index: int, threshold: Threshold, *, is_before: bool) -> bool:
        """Takes the noun as the compared thing, when it is a number column, or a counted table after the number."""
        reading = self._reading
        noun = reading.noun(index)
        if noun is None or noun.is_value:
            return False
        link = reading.pick(index, lambda link: reading.kind(link) == "number" and not self._is_key(link))
        counted = is_before and self._is_counted(index)
        if link is not None and not counted and not (noun.is_table and link.quality < 0.75 and not is_before):
            threshold.link = link
            threshold.function = self._function_before(index)
            reading.use(index)
            return True
        return self._take_table(index, threshold) if not is_before or counted else False

    def _is_key(self, link: Link) -> bool:
        facts = self._reading.facts(link.table)
        return link.column in facts.reference_columns or facts.key == (link.column,)

    def _is_counted(self, index: int) -> bool:
        """Whether a count word follows the noun (`店铺数量超过`) or precedes it ("number of orders above")."""
        place = self._reading.beside(index, 1 if self._reading.is_chinese else -1)
        noun = self._reading.nouns[index]
        counted = place is not None and self._reading.marks[place].means("count")
        heads = place is not None and self._reading.marks[place].text.lower().startswith("how")
        return counted and not heads and noun is not None and noun.is_table

    def _take_table(self, index: int, threshold: Threshold) -> bool:
        noun = self._reading.noun(index)
        if noun is None or noun.table is None or not noun.is_table:
            return False
        before = self._reading.beside(index, -1)
        if before is not None and self._reading.marks[before].means("each", "which", "list"):
            return False
        threshold.table = noun.table.table
        self._reading.use(index)
        return True

    def _take_count_words(self, start: int, end: int) -> None:
        for place in range(max(0, start - 1), end):
            mark = self._reading.marks[place]
            if mark.means("count") and self._reading.free(place) and not mark.text.lower().startswith("how"):
                self._reading.use(place)

    def _function_before(self, index: int) -> str | None:
        place = self._reading.free_beside(index, -1)
        if place is not None and self._reading.marks[place].means("avg", "sum", "max", "min"):
            self._reading.use(place)
            return self._reading.marks[place].intent.kind  # type: ignore[union-attr]
        after = self._reading.free_beside(index, 1)
        if (
            after is not None
            and self._reading.marks[after].means("avg", "sum", "max", "min")
            and self._reading.is_chinese
        ):
            self._reading.use(after)
            return self._reading.marks[after].intent.kind  # type: ignore[union-attr]
        return None

    def _plain_equalities(self) -> None:
        """A number column right before a number: `rating 5`, `年龄30`."""
        reading = self._reading
        for index in range(len(reading)):
            if not reading.free(index) or not self._is_number(index):
                continue
            if self._counted_equality(index):
                continue
            before = reading.free_beside(index, -1, ("noise",))
            noun = reading.noun(before)
            if before is None or noun is None or noun.is_value or noun.is_table:
                continue
            link = reading.pick(before, lambda link: reading.kind(link) in ("number", "text"))
            number = reading.marks[index].number
            if link is not None and number is not None and not self._is_ordinal(index):
                reading.use(index, before)
                self.found.conditions.append(Condition(ref(link), "=", (number.value,)))

    def _counted_equality(self, index: int) -> bool:
        """`courses with 4 credits`, `3个车位的…`: a number before the column it is a value of."""
        reading = self._reading
        after = reading.free_beside(index, 1, ("unit",))
        before = reading.beside(index, -1, ("noise", "with", "verb"))
        noun, owner = reading.noun(after), reading.nouns[before] if before is not None else None
        number = reading.marks[index].number
        if after is None or noun is None or noun.is_value or noun.is_table or owner is None or number is None:
            return False
        link = reading.measure(after)
        if link is None or self._is_ordinal(index) or not owner.is_table:
            return False
        reading.use(index, after)
        self.found.conditions.append(Condition(ref(link), "=", (number.value,)))
        return True

    def _is_ordinal(self, index: int) -> bool:
        """Whether the number limits how many rows are wanted rather than being compared."""
        reading = self._reading
        after = reading.beside(index, 1)
        before = reading.beside(index, -1)
        neighbours = [reading.marks[place] for place in (before, after) if place is not None]
        return any(mark.means("top", "super", "rank") for mark in neighbours)

    def _averages(self) -> None:
        """`above average`: compared with the average of the same column."""
        reading = self._reading
        for index in list(reading.having("above_average", "below_average")):
            operator: Operator = "above average" if reading.marks[index].means("above_average") else "below average"
            for place in (reading.free_beside(index, -1, ("noise", "of", "with")), reading.free_beside(index, 1)):
                link = reading.measure(place) if place is not None and reading.free(place) else None
                if link is not None and place is not None:
                    reading.use(index, place)
                    self.found.conditions.append(Condition(ref(link), operator))
                    self._same_noun_again(index, link)
                    break

    def _same_noun_again(self, index: int, link: Link) -> None:
        """`rent above the average rent` says the column twice."""
        after = self._reading.free_beside(index, 1)
        if after is not None and self._reading.noun(after) is not None and self._reading.measure(after) == link:
            self._reading.use(after)

    # --------------------------------------------------------------------------------------------------------- values

    def _values(self) -> None:
        reading = self._reading
        index = 0
        while index < len(reading):
            noun = reading.noun(index)
            if noun is not None and noun.value is not None and (noun.is_value or self._after_column(index)):
                index = index if self._undone(index) else self._value_list(index)
            index += 1

    def _undone(self, index: int) -> bool:
        """`not shipped`: where a date says when it was done, a missing date says it better than another status."""
        reading = self._reading
        noun = reading.nouns[index]
        dates = [link for _, link in noun.columns if reading.is_date(link) and link.quality >= 0.7] if noun else []
        negation = reading.free_beside(index, -1, ("noise", "verb", "with"))
        if not dates or negation is None or not reading.marks[negation].means("not") or self._happens_below(dates[0]):
            return False
        reading.use(index, negation)
        self.found.conditions.append(Condition(ref(dates[0]), "null"))
        return True

    def _after_column(self, index: int) -> bool:
        """Whether a word that is also a name is used as a value: `status is open`, `类别为餐饮`."""
        reading = self._reading
        before = reading.beside(index, -1, ("noise", "cmp"))
        noun, own = (reading.nouns[before] if before is not None else None), reading.nouns[index]
        if noun is None or own is None or own.value is None or before == index - 1 and not reading.is_chinese:
            return False
        pairs = {(link.table, link.column) for _, link in noun.columns}
        return any((link.table, link.column) in pairs for _, link in own.values)

    def _value_list(self, index: int) -> int:
        """Reads values joined by 和 / or / commas as one condition; returns the last position."""
        reading = self._reading
        places = [index]
        joints: list[int] = []
        while True:
            joint = places[-1] + 1
            skipped = reading.beside(places[-1], 1, ("and", "or", "noise", "of"))
            if skipped is None or skipped == joint:
                break
            noun = reading.noun(skipped)
            between = range(joint, skipped)
            if (
                noun is None
                or not noun.is_value
                or not any(reading.marks[place].means("and", "or") for place in between)
            ):
                break
            if not self._common_columns([*places, skipped]):
                break
            places.append(skipped)
            joints += between
        links = self._chosen_values(places)
        reading.use(*places, *joints)
        self._add_values(places, links)
        return places[-1]

    def _common_columns(self, places: list[int]) -> list[tuple[TableKey, str | None]]:
        nouns = [self._reading.nouns[place] for place in places]
        columns = [[(link.table, link.column) for _, link in noun.values] if noun else [] for noun in nouns]
        return [column for column in columns[0] if all(column in others for others in columns[1:])]

    def _chosen_values(self, places: list[int]) -> list[Link]:
        column = self._common_columns(places)[0]
        chosen = []
        for place in places:
            noun = self._reading.nouns[place]
            assert noun is not None
            chosen.append(next(link for _, link in noun.values if (link.table, link.column) == column))
        return chosen

    def _add_values(self, places: list[int], links: list[Link]) -> None:
        reading = self._reading
        operator: Operator = "=" if len(links) == 1 else "in"
        self._absorb_label(places[0], -1, links[0])
        self._absorb_label(places[-1], 1, links[0])
        negation = reading.free_beside(places[0], -1, _NEGATION_SKIP)
        closing = reading.free_beside(places[-1], 1, ("noise",))
        excepted = closing is not None and reading.marks[closing].means("except_end")
        if excepted and closing is not None:
            reading.use(closing)
        if (negation is not None and reading.marks[negation].means("not")) or excepted:
            operator = _OPPOSITE[operator]
            reading.use(*(() if negation is None or not reading.marks[negation].means("not") else (negation,)))
        elif (unequal := reading.free_beside(places[0], -1, ("noise",))) is not None and reading.marks[unequal].means(
            "cmp"
        ):
            operator = _OPPOSITE[operator] if reading.marks[unequal].arg == "!=" else operator
            reading.use(unequal)
        operands = tuple(str(link.value) for link in links)
        if reading.facts(links[0].table).deleted == links[0].column:
            self.found.with_deleted.add(links[0].table)
        if reading.kind(links[0]) == "boolean":
            operator, operands = ("false" if operator == "=" else "true"), ()
        column = replace(ref(links[0]), via=self._role_before(places[0], links[0]))
        if len(links) > 1:
            self.found.compared.append(column)
        self.found.conditions.append(Condition(column, operator, operands))

    def _role_before(self, index: int, link: Link) -> str | None:
        """The referencing column said right before a value of what it points to: "whose manager is Nancy Fuller"."""
        reading = self._reading
        place = reading.beside(index, -1, ("noise", "cmp", "verb", "with", "to"))
        noun = reading.nouns[place] if place is not None else None
        if place is None or noun is None:
            return None
        if noun.is_value:
            return self._roles.get(place) if index - place == 1 else None
        for edge in reading.facts(noun.column.table).edges if noun.column is not None and not noun.is_table else ():
            if edge.columns == (noun.column.column if noun.column else None,) and edge.parent == link.table:
                self._roles[index] = edge.columns[0]
                reading.use(place)
                return edge.columns[0]
        return None

    def _absorb_label(self, index: int, step: int, link: Link) -> None:
        """Uses up the column's own name beside its value (`支付方式为微信`, "category Electronics")."""
        reading = self._reading
        place = reading.free_beside(index, step, ("noise", "cmp", "of", "not", "from") if step == -1 else ("noise",))
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_value:
            return
        before = reading.beside(place, -1)
        if before is not None and reading.marks[before].means("each", "by", "which"):
            return
        same = any((other.table, other.column) == (link.table, link.column) for _, other in noun.columns)
        own_table = noun.table is not None and noun.table.table == link.table and noun.is_table
        shows = link.column in reading.facts(link.table).display
        if same and not noun.is_table:
            reading.use(place)
        elif own_table and shows and not self._is_only_table(place):
            reading.use(place)

    def _is_only_table(self, index: int) -> bool:
        others = [
            place
            for place, noun in enumerate(self._reading.nouns)
            if noun is not None and place != index and not noun.is_value and place not in self._reading.used
        ]
        return not others

    # ------------------------------------------------------------------------------------------------ keys, booleans

    def _identities(self) -> None:
        """`order 1001`, `编号为3的服务区`: a table or key column followed by a number or quotation."""
        reading = self._reading
        for index in range(len(reading)):
            mark = reading.marks[index]
            if not reading.free(index) or (mark.number is None and mark.literal is None) or self._is_ordinal(index):
                continue
            before = reading.free_beside(index, -1, ("noise", "cmp"))
            noun = reading.noun(before)
            if before is None or noun is None or noun.is_value:
                continue
            target = self._identity_column(before, is_text=mark.literal is not None)
            if target is not None:
                operand = mark.literal if mark.literal is not None else mark.number.value  # type: ignore[union-attr]
                reading.use(index, *(() if noun.is_table else (before,)), *self._between_marks(before, index))
                self.found.conditions.append(Condition(target, "=", (operand,)))

    def _between_marks(self, first: int, last: int) -> list[int]:
        return [place for place in range(first + 1, last) if self._reading.marks[place].means("cmp")]

    def _identity_column(self, index: int, *, is_text: bool) -> ColumnRef | None:
        reading = self._reading
        noun = reading.nouns[index]
        if noun is not None and noun.is_table and noun.table is not None:
            facts = reading.facts(noun.table.table)
            if is_text:
                return ColumnRef(noun.table.table, facts.display[0]) if len(facts.display) == 1 else None
            if len(facts.key) != 1 or kind_of(reading.schema.column(noun.table.table, facts.key[0])) != "number":
                return None
            return ColumnRef(noun.table.table, facts.key[0])
        kinds = ("text", "other") if is_text else ("number", "text")
        link = reading.pick(index, lambda link: reading.kind(link) in kinds)
        return ref(link) if link is not None else None

    def _booleans(self) -> None:
        reading = self._reading
        for index in range(len(reading)):
            noun = reading.noun(index)
            if noun is None or noun.is_value or noun.is_table or noun.column is None:
                continue
            link = noun.column
            before = reading.beside(index, -1)
            grouped = before is not None and reading.marks[before].means("each", "by")
            if not grouped and reading.facts(link.table).deleted == link.column and self._deleted_rows(index, link):
                continue
            if reading.kind(link) != "boolean" or grouped:
                continue
            operator = self._negated(index, "true")
            reading.use(index)
            self.found.conditions.append(Condition(ref(link), operator))
            if reading.facts(link.table).deleted == link.column:
                self.found.with_deleted.add(link.table)

    def _deleted_rows(self, index: int, link: Link) -> bool:
        """`deleted employees` where a time or a number marks deletion."""
        kind = self._reading.kind(link)
        if kind not in ("date", "timestamp", "number"):
            return False
        operator = self._negated(index, "not null" if kind != "number" else "!=")
        operands = (Decimal(0),) if kind == "number" else ()
        self._reading.use(index)
        self.found.conditions.append(Condition(ref(link), operator if operator != "in" else "=", operands))
        self.found.with_deleted.add(link.table)
        return True

    def _deleted(self) -> None:
        reading = self._reading
        for index in list(reading.having("deleted")):
            reading.use(index)
            self.found.with_deleted.update(reading.schema.facts)

    def _merge_alternatives(self) -> None:
        """`男读者和女读者`: two values that one row can't have at once are alternatives."""
        merged: dict[tuple[ColumnRef, Operator], Condition] = {}
        for condition in self.found.conditions:
            known = merged.get((condition.column, condition.operator))
            if condition.operator in ("=", "in") and (other := self._same_column(merged, condition.column)) is not None:
                operands = tuple(dict.fromkeys((*merged.pop(other).operands, *condition.operands)))
                merged[condition.column, "in"] = Condition(condition.column, "in", operands)
                self.found.compared.append(condition.column)
            elif known is None:
                merged[condition.column, condition.operator] = condition
            else:
                merged[condition.column, f"{condition.operator}"] = condition
        self.found.conditions = list(merged.values())

    def _same_column(
        self, merged: dict[tuple[ColumnRef, Operator], Condition], column: ColumnRef
    ) -> tuple[ColumnRef, Operator] | None:
        return next((key for key in merged if key[0] == column and key[1] in ("=", "in")), None)

    # ------------------------------------------------------------------------------------------------------- missing

    def _missing(self) -> None:
        """A negation before a noun: a missing value of a column, or no related rows of a table."""
        reading = self._reading
        for index in list(reading.having("not")):
            place = reading.free_beside(index, 1, ("noise", "of", "unit", "with", "verb"))
            noun = reading.noun(place)
            if place is None or noun is None or noun.is_value:
                continue
            if noun.is_table and noun.table is not None:
                reading.use(index, place)
                self.found.related.append(Related(noun.table.table, negated=True))
            elif (link := reading.pick(place)) is not None:
                reading.use(index, place)
                if reading.is_date(link) and self._happens_below(link):
                    self.found.related.append(Related(link.table, negated=True))
                else:
                    self.found.conditions.append(Condition(ref(link), "null"))

    def _happens_below(self, link: Link) -> bool:
        """`从未下单的用户`: the date is of an event of the thing named, so what is missing is the event."""
        reading = self._reading
        tables = [noun.table.table for noun in reading.nouns if noun is not None and noun.is_table and noun.table is not None]
        below = {key for table in tables for key in reading.graph.below(table)}
        return link.table not in tables and link.table in below


_TRAILING = frozenset(
    (
        "以上|及以上|以上的|或以上|起|以下|及以下|以内|以下的|或以下|或更多|or more|or above|or higher|and above|and up|or greater|"
        "or over|or less|or fewer|or below|or lower|or under|and below"
    ).split("|")
)
_BOUND_WORDS = {"前": "before", "后": "after", "起": "since", "前的": "before", "to now": "since"}
_BOUND_OPERATORS = {">": "after", ">=": "since", "<": "before", "<=": "until", "=": ""}
_BOUNDS = {
    "since": lambda period: Period(period.start, None),
    "after": lambda period: Period(period.end, None),
    "before": lambda period: Period(None, period.start),
    "until": lambda period: Period(None, period.end),
}
