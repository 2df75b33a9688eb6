"""Reads comparisons with numbers and averages, and finds what is compared."""

from decimal import Decimal

from knowledge.atoms import listed
from rules.linking.dates import Moment, Period, Unit
from rules.query.conditions import Filters, Threshold, ref
from rules.query.query import Condition, Operator
from rules.readers.figures import income
from rules.readers.reading import Reading
from rules.schema.links import Link


class ThresholdReader:
    """Turns comparisons into thresholds and conditions, and uses up their marks."""

    def __init__(self, reading: Reading, found: Filters) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads every comparison."""
        for index in list(self._reading.having("between", "between_end")):
            self._between(index)
        for index in list(self._reading.having("cmp")):
            self._threshold(index)
        self._implicit_ranges()
        self._plain_equalities()
        self._averages()

    def _between(self, index: int) -> None:
        reading = self._reading
        forward = reading.marks[index].means("between")
        first = reading.find(index, 1 if forward else -1, self._reading.is_number)
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
        """The places of two numbers with 到 or "and" between them, in their order; None twice without both."""
        reading = self._reading
        joint = reading.beside(first, step)
        other = reading.free_beside(joint, step) if joint is not None else None
        if joint is None or other is None or not self._reading.is_number(other) or not self._joins_range(joint):
            return None, None
        reading.use(joint)
        return (first, other) if step == 1 else (other, first)

    def _joins_range(self, index: int) -> bool:
        mark = self._reading.marks[index]
        return mark.means("to", "and") or mark.text == "to"

    def _implicit_ranges(self) -> None:
        """Reads ranges without a word for "between": `1万到3万`, `10-20`."""
        reading = self._reading
        for index in range(len(reading)):
            if reading.free(index) and self._reading.is_number(index):
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
        # In `1到2万` and "between 1 and 2 million" the scale belongs to both numbers.
        start = first.value * second.scale if first.scale == 1 and first.value < second.unscaled else first.value
        threshold = Threshold("between", (start, second.value), position=low)
        reading.use(low, high)
        self._attach(threshold, opening, closing)

    def _threshold(self, index: int) -> None:
        reading = self._reading
        mark = reading.marks[index]
        operator, hint = (mark.arg[:1], mark.arg[1:]) if mark.arg[1:].isalpha() else (mark.arg, "")
        after = reading.free_beside(index, 1)
        before = reading.free_beside(index, -1)
        leading = after is not None and self._reading.is_number(after)
        place = after if leading else before if before is not None and self._reading.is_number(before) else None
        if place is None or (not leading and mark.text not in _TRAILING) or (leading and mark.text.startswith("or ")):
            return
        number = reading.marks[place].number
        assert number is not None
        if place + 1 < len(reading) and reading.marks[place + 1].means("date_part"):
            self._duration(index, place, operator, number.value)
            return
        negated = self._reading.negated(min(index, place), operator)  # type: ignore[arg-type]
        threshold = Threshold(negated, (number.value,), hint=hint, position=place)
        reading.use(index, place)
        self._attach(threshold, min(index, place), max(index, place))

    def _duration(self, index: int, place: int, operator: str, count: Decimal) -> None:
        """Reads a comparison of how long ago the date before was: `开业超过10年`, "open for more than 10 years"."""
        reading = self._reading
        target = reading.free_beside(min(index, place), -1, ("noise", "of", "with"))
        link = (
            reading.pick(target, reading.is_date) if target is not None and reading.noun(target) is not None else None
        )
        if link is None or target is None or count != int(count):
            return
        unit: Unit = reading.marks[place + 1].arg  # type: ignore[assignment]
        then = Moment().shifted(unit, -int(count))
        period = Period(None, then) if operator.startswith(">") else Period(then, None)
        reading.use(index, place, place + 1, target)
        self.found.conditions.append(Condition(ref(link), "during", (period,)))

    def _attach(self, threshold: Threshold, first: int, last: int) -> None:
        """Finds what is compared: the noun before, else the noun right after (`超过5个订单`, "more than 5 orders")."""
        reading = self._reading
        self.found.thresholds.append(threshold)
        if threshold.hint:
            return
        if self._continues(threshold, first):
            return
        said = reading.free_beside(first, -1, ("noise",))
        if said is not None and reading.marks[said].means("sum") and reading.noun(said) is None:
            reading.use(said)  # "with total over 1000": the planner takes the only measure
            return
        before = reading.free_beside(first, -1, ("noise", "of", "with", "count", "by", "unit"))
        measured = not reading.is_chinese and last + 1 < len(reading) and reading.marks[last + 1].means("unit")
        after = self._past_kind(
            reading.free_beside(last, 1, ("noise", "unit", "of") if measured else ("noise", "unit"))
        )
        if after is not None and self._has(before, first) and self._compares(after, threshold, is_before=False):
            return  # "number of companies with more than 20 shops": the shops are compared
        if before is not None and self._compares(before, threshold, is_before=True):
            self._take_count_words(before, first)
            self._take_unit(after, threshold)
            return
        if after is not None and self._compares(after, threshold, is_before=False):
            return
        counts = before is not None and (reading.is_chinese or self._is_counted(before))
        if counts and before is not None and self._take_table(before, threshold):
            self._take_count_words(before, first)
        elif first:
            threshold.link = income(reading, (first - 1,))  # "shops that made more than 1 million"

    def _past_kind(self, index: int | None) -> int | None:
        """The thing after a value that says of which kind it is: of "more than 2 restaurants", shops are counted."""
        noun = self._reading.noun(index)
        meaning = self._reading.column_of(noun.value).meaning if noun is not None and noun.value is not None else None
        is_kind = noun is not None and noun.is_value and meaning is not None and meaning.is_kind
        return index + 1 if index is not None and is_kind and self._reading.noun(index + 1) is not None else index

    def _has(self, before: int | None, first: int) -> bool:
        """Whether a word for "with" follows the noun before, so that it only owns what is compared."""
        between = range(before + 1, first) if before is not None else ()
        return not self._reading.is_chinese and any(self._reading.marks[place].means("with") for place in between)

    def _continues(self, threshold: Threshold, first: int) -> bool:
        """Lets a second comparison after "and" be about the same as the first: `at least 5000 but less than 7000`."""
        reading = self._reading
        joint = first - 1
        if len(self.found.thresholds) < 2 or not reading.free(joint) or not reading.marks[joint].means("and"):
            return False
        before = self.found.thresholds[-2]
        if not 0 < joint - before.position <= 2 or reading.noun(joint - 1) is not None:
            return False
        threshold.link, threshold.table, threshold.function = before.link, before.table, before.function
        reading.use(joint)
        return True

    def _compares(self, index: int, threshold: Threshold, *, is_before: bool) -> bool:
        """Compares the noun, if it is a column of numbers or a table that is counted; returns whether it did."""
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

    def _take_unit(self, index: int | None, threshold: Threshold) -> None:
        """Uses up a unit that is a part of the column's name: `downtime over 400 minutes`, of downtime_minutes."""
        noun = self._reading.noun(index)
        if index is not None and noun is not None and not noun.is_table and threshold.link is not None:
            compared = (threshold.link.table, threshold.link.column)
            if any((link.table, link.column) == compared for _, link in noun.columns):
                self._reading.use(index)

    def _is_key(self, link: Link) -> bool:
        facts = self._reading.facts(link.table)
        return link.column in facts.reference_columns or link.column in facts.key

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
        """Reads a column right before a number as equal to it: `rating 5`, `年龄30`."""
        reading = self._reading
        for index in range(len(reading)):
            if not reading.free(index) or not self._reading.is_number(index):
                continue
            if self._counted_equality(index):
                continue
            before = reading.free_beside(index, -1, ("noise",))
            noun = reading.noun(before)
            if before is None or noun is None or noun.is_value or noun.is_table:
                continue
            link = reading.pick(before, lambda link: reading.kind(link) in ("number", "text"))
            number = reading.marks[index].number
            if link is not None and number is not None and not self._reading.is_ordinal(index):
                reading.use(index, before)
                self.found.conditions.append(Condition(ref(link), "=", (number.value,)))

    def _counted_equality(self, index: int) -> bool:
        """Reads a number before the column it is a value of: `courses with 4 credits`; returns whether it did."""
        reading = self._reading
        after = reading.free_beside(index, 1, ("unit",))
        before = reading.beside(index, -1, ("noise", "with", "verb"))
        noun, owner = reading.noun(after), reading.nouns[before] if before is not None else None
        number = reading.marks[index].number
        if after is None or noun is None or noun.is_value or noun.is_table or owner is None or number is None:
            return False
        link = reading.measure(after)
        if link is None or self._reading.is_ordinal(index) or not owner.is_table:
            return False
        reading.use(index, after)
        self.found.conditions.append(Condition(ref(link), "=", (number.value,)))
        return True

    def _averages(self) -> None:
        """Reads `above average`: the column is compared with its own average."""
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
        """Uses up the column where it is named again: `rent above the average rent`."""
        after = self._reading.free_beside(index, 1)
        if after is not None and self._reading.noun(after) is not None and self._reading.measure(after) == link:
            self._reading.use(after)


_TRAILING = frozenset(
    listed(
        "以上|及以上|以上的|或以上|起|以下|及以下|以内|以下的|或以下|或更多|or more|or above|or higher|and "
        "above|and up|or greater|"
        "or over|or less|or fewer|or below|or lower|or under|and below",
        "|",
    )
)
