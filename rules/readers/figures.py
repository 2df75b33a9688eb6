"""Reads figures: counts, totals, averages and extremes."""

import re
from collections.abc import Iterable

from knowledge.atoms import listed
from rules.query.query import Function
from rules.query.wishes import AGGREGATES, Asks, Figure
from rules.readers.reading import Reading
from rules.schema.links import Link, column_link
from rules.schema.schema import TableKey


class FigureReader:
    """Turns words that count or aggregate into figures, and uses up their marks."""

    def __init__(self, reading: Reading, found: Asks) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads every figure."""
        reading = self._reading
        for index in list(reading.having("count")):
            if reading.free(index):
                self._count(index)
        for index in list(reading.having("sum", "avg", "max", "min")):
            if reading.free(index):
                self._aggregate(index)
        self._earned()

    def _earned(self) -> None:
        """Reads a question for money in which only the verb says that income is meant: "how much did it bring in"."""
        reading = self._reading
        asked = [*reading.having("count", "sum")]
        asked = [index for index in asked if reading.marks[index].text.lower() in _HOW_MUCH_MONEY]
        link = income(reading, range(len(reading))) if asked and not self.found.figures else None
        if link is not None:
            reading.use(*asked)
            self.found.figures.append(Figure("sum", link, position=asked[0]))

    def _count(self, index: int) -> None:
        """Reads what is counted: the noun after `how many` or `多少个`, else the one before `数量` or `有多少`."""
        reading = self._reading
        forward = not reading.is_chinese or reading.marks[index].text in _FORWARD_COUNTS
        places = [self._counted_noun(index, 1 if forward else -1), self._counted_noun(index, -1 if forward else 1)]
        place = next((found for found in places if found is not None), None)
        if place is None:
            self._count_of_value(index)
            return
        noun = reading.noun(place)
        assert noun is not None
        reading.use(index)
        if place < index and reading.marks[index].text in ("多少",) and self._says_value(index):
            return
        if (rows_of := reading.rows_named(place)) is not None:
            reading.use(place)
            self.found.figures.append(Figure("count", table=rows_of, position=place))
            return
        if noun.is_table and reading.marks[index].text in _HOW_MUCH and reading.plain_measure(place) is not None:
            return  # `收入多少` asks for the income, although the table of daily incomes has the same name
        if noun.is_table and noun.table is not None:
            reading.use(place)
            self._absorb_sum(index, place)
            self.found.figures.append(Figure("count", table=noun.table.table, position=place))
            self._count_more(place, 1 if place > index else -1)
            return
        link = reading.pick(place)
        if link is None:
            return
        reading.use(place)
        self.found.figures.append(Figure(self._counting(link), link, position=place))

    def _counting(self, link: Link) -> Function:
        """How a column is counted: numbers are added up, dates count as events (`报修次数`), other values once each."""
        if self.found.distinct:
            return "count_distinct"
        return "sum" if self._reading.is_measure(link) else "count" if self._reading.is_date(link) else "count_distinct"

    def _count_more(self, place: int, step: int) -> None:
        """Reads further counted tables after an "and": "number of tracks and albums", `店铺和服务区数量`."""
        reading = self._reading
        joint = reading.free_beside(place, step, ("noise", "of"))
        other = reading.free_beside(joint, step, ("noise", "of")) if joint is not None else None
        noun = reading.noun(other)
        if joint is None or other is None or not reading.marks[joint].means("and") or noun is None:
            return
        if reading.plain_measure(other) is not None:
            return  # `车流量和店铺数量`: the other noun is a figure already, which is not counted
        if noun.is_table and noun.table is not None and not reading.is_followed_by_figure(other):
            reading.use(joint, other)
            self.found.figures.append(Figure("count", table=noun.table.table, position=other))
            self._count_more(other, step)

    def _count_of_value(self, index: int) -> None:
        """Counts the rows with a stored value, where the question names no table: `how many professors`."""
        reading = self._reading
        before = reading.beside(index, -1, ("noise", "verb"), through_used=False)
        for place in (index + 1, index + 2, -1 if before is None else before):
            noun = reading.nouns[place] if 0 <= place < len(reading) and place in reading.used else None
            if noun is not None and noun.is_value and noun.value is not None:
                if noun.value.column in reading.facts(noun.value.table).display:
                    return  # the value is the name of one thing, which there is no use in counting
                figure = self._counted_rows(noun.value.table, index)
                if figure is not None:
                    reading.use(index)
                    self.found.figures.append(figure)
                return

    def _counted_rows(self, table: TableKey, index: int) -> Figure | None:
        """The count for a stored value: of the rows, or the sum of the only quantity they have (`水龙头用了多少个`)."""
        facts = self._reading.facts(table)
        if facts.is_report:
            return figure_of_rows(self._reading, table, index)
        counts = [column for column in facts.measures if facts.is_count(column)]
        if facts.is_entity or not facts.edges or len(counts) != 1:
            return Figure("count", table=table, position=index)
        return Figure("sum", column_link(table, counts[0].name), position=index)

    def _amount_of_value(self, index: int) -> Link | None:
        """The only amount in the table of a stored value right before the word: `物业费总额`."""
        reading = self._reading
        before = reading.nouns[index - 1] if index and index - 1 in reading.used else None
        if (
            before is None
            or before.value is None
            or not before.is_value
            or not reading.marks[index].text.endswith("额")
        ):
            return None
        facts = reading.facts(before.value.table)
        added = [one for one in facts.table.columns if facts.is_measure(one) and not facts.is_averaged(one)]
        return column_link(facts.table.key, added[0].name) if len(added) == 1 else None

    def _says_value(self, index: int) -> bool:
        """Whether 多少 asks for a value instead of a count, as in `是多少`."""
        before = self._reading.marks[index - 1] if index else None
        return before is not None and before.means("cmp", "noise", "of")

    def _counted_noun(self, index: int, step: int) -> int | None:
        reading = self._reading
        skip = ("noise", "of", "unit", "distinct", "with", "sum", "avg")
        place = reading.free_beside(index, step, skip)
        while place is not None and (noun := reading.noun(place)) is not None and noun.is_value and step == 1:
            place = reading.free_beside(place, step, skip)
        noun = reading.noun(place)
        return None if noun is None or noun.is_value else place

    def _absorb_sum(self, index: int, place: int) -> None:
        """Uses up a word for "total" beside a count, which means nothing more (`店铺总数量`, "total number")."""
        for at in range(min(index, place) - 1, max(index, place) + 2):
            if self._reading.free(at) and self._reading.marks[at].means("sum"):
                self._reading.use(at)

    def _aggregate(self, index: int) -> None:
        reading = self._reading
        kind = str(reading.marks[index].intent.kind)  # type: ignore[union-attr]
        target = self._reading.measured_beside(index, 1) or self._reading.measured_beside(index, -1)
        if target is None and (other := self._twin(index)) is not None:
            twin_target = self._reading.measured_beside(other, 1)
            if twin_target is not None:
                reading.use(index)
                self.found.figures.append(Figure(AGGREGATES[kind], twin_target[1], position=index))
                return
        if target is not None:
            place, link = target
            reading.use(index, place)
            self.found.figures.append(Figure(AGGREGATES[kind], link, position=place))
            self._more_aggregated(place, kind)
            return
        step = -1 if "多少" in reading.marks[index].text else 1
        place_or_none = reading.free_beside(index, step, ("noise", "of", "unit", "distinct"))
        noun = reading.noun(place_or_none)
        if (
            kind == "sum"
            and reading.marks[index].text.lower() not in _HOW_MUCH_MONEY
            and noun is not None
            and noun.is_table
            and noun.table is not None
            and place_or_none is not None
        ):
            reading.use(index, place_or_none)
            self.found.figures.append(Figure("count", table=noun.table.table, position=place_or_none))
        elif kind == "sum" and self.found.figures:
            reading.use(index)
        elif kind == "sum" and (amount := self._amount_of_value(index)) is not None:
            reading.use(index)
            self.found.figures.append(Figure("sum", amount, position=index))
        elif kind in ("max", "min"):
            self._extreme_date(index, kind)

    def _twin(self, index: int) -> int | None:
        """Where the last of several functions before one column stands: `minimum and maximum price`."""
        reading = self._reading
        place: int | None = index
        while place is not None and reading.marks[place].means("sum", "avg", "max", "min"):
            last = place
            place = reading.free_beside(place, 1, ("noise", "and"))
        return last if last != index else None

    def _extreme_date(self, index: int, kind: str) -> None:
        reading = self._reading
        for step in (1, -1):
            place = reading.free_beside(index, step)
            if place is not None and reading.noun(place) is not None:
                link = reading.pick(place, reading.is_date)
                if link is not None:
                    reading.use(index, place)
                    self.found.figures.append(Figure(AGGREGATES[kind], link, position=place))
                    return

    def _more_aggregated(self, place: int, kind: str) -> None:
        """Reads a second column after an "and", to which the function applies as well: `平均月租金和面积`."""
        reading = self._reading
        joint = place + 1
        if reading.free(joint) and reading.marks[joint].means("and"):
            other = reading.free_beside(joint, 1)
            if other is not None and reading.noun(other) is not None and reading.measure(other) is not None:
                link = reading.measure(other)
                reading.use(joint, other)
                self.found.figures.append(Figure(AGGREGATES[kind], link, position=other))


_INCOME = ("revenue", "income", "收入")
_HOW_MUCH_MONEY = frozenset(listed("多少|多少钱|how much|how much money", "|"))
_EARNS = re.compile("收|收了|赚了?|挣了?|(earn|make|made|gross|tak|took|bring|brought)[a-z]*( in)?")
# These have no measure word, so they may ask for an amount as well as for a number of things.
_HOW_MUCH = frozenset(listed("多少 有多少 共有多少 一共有多少 总共有多少"))
_FORWARD_COUNTS = frozenset(
    listed(
        "多少行 几行 有多少行 有几行 "
        "多少 多少个 多少家 多少条 多少人 多少名 多少位 多少种 多少次 多少笔 多少件 几个 几家 几条 几名 几位 "
        "几种 几次 几笔 几人 有多少 有多少个 "
        "有多少家 有几个 有几家 共有多少 一共有多少 总共有多少 共有多少个 一共有多少个 总共有多少个 有多少种 "
        "有几种 有多少条 有多少人 有多少名 有多少位 有多少次 "
        "有多少笔"
    )
)


def income(reading: Reading, places: Iterable[int]) -> Link | None:
    """The income, where a mark at one of the places is a verb that speaks of it."""
    earns = any(_EARNS.fullmatch(reading.marks[at].text.lower()) for at in places if reading.marks[at].means("verb"))
    return reading.measure_called(_INCOME) if earns else None


def figure_of_rows(reading: Reading, table: TableKey, index: int) -> Figure | None:
    """A count of rows; for a table of reports, the sum of what its rows count (`多少辆货车`).

    None where the rows of reports count several things.
    """
    facts = reading.facts(table)
    if not facts.is_report:
        return Figure("count", table=table, position=index)
    if len(facts.measures) != 1 or facts.is_averaged(facts.measures[0]):
        return None
    return Figure("sum", column_link(table, facts.measures[0].name), position=index)
