"""Reads rankings: the most and least of something, the first few, an order."""

import math
import re

from rules.query.query import Dimension, Function
from rules.query.refusals import unused_words
from rules.query.wishes import AGGREGATES, Asks, Figure, Ranking
from rules.readers.figures import figure_of_rows
from rules.readers.reading import TIES, Reading
from rules.schema.schema import TableKey
from rules.words.vocabulary import INTENTS

# Superlatives that rank by a number of things. "Largest" does not: it ranks by a size.
_SAYS_NUMBER = re.compile("most|fewest|least|number|[多少]", re.IGNORECASE)
_RECENT = 10  # rows shown for "recent orders", which names no number
# A word that is a table's name as well means a column only if it fits the column nearly as well as the table.
_LESS = 0.1


class RankingReader:
    """Turns superlatives, limits and orders into rankings, and uses up their marks."""

    def __init__(self, reading: Reading, found: Asks) -> None:
        self._reading = reading
        self.found = found

    def read(self) -> None:
        """Reads every ranking."""
        reading = self._reading
        for index in list(reading.having("super")):
            if reading.free(index):
                self._superlative(index, reading.marks[index].arg)
        for index in list(reading.having("max", "min")):
            if reading.free(index) and self._distinguishes(index):
                self._superlative(index, "+" if reading.marks[index].means("max") else "-")
        self._extremes_of_dates()
        for index in list(reading.having("top")):
            if reading.free(index):
                self._top(index)
        for index in list(reading.having("rank")):
            if reading.free(index):
                self._rank(index)
        self._by_measure()
        self._by_adjectives()
        for ranking in self.found.rankings:
            self._ranked_dates(ranking, ranking.position)  # "top 3 days by revenue": the figure is known only now

    def _distinguishes(self, index: int) -> bool:
        """Whether an extreme says which thing is meant: "the order with the maximum amount"."""
        reading = self._reading
        tie = reading.beside(index, -1, ("noise",))
        if tie is None or not reading.marks[tie].means("with"):
            return False
        owner = reading.beside(tie, -1, ("noise",))
        return owner is not None and reading.free(owner) and self._is_table_noun(owner)

    def _superlative(self, index: int, arg: str) -> None:
        """Reads a ranking by a superlative; `arg` is `+` or `-`, then the concept that an adjective implies, if any."""
        reading = self._reading
        is_list = arg == "+recent"
        ranking = Ranking(arg[0] == "+", hint="date" if is_list else arg[1:], position=index)
        reading.use(index)
        ranking.limit = self._number_near(index) or self._number_of_things() or (_RECENT if is_list else None)
        said = INTENTS.get(ranking.hint)
        if not ranking.hint or (
            said is not None and said.arg in ("+", "-")
        ):  # "largest", that of the semantic file too
            ranking.figure = self._ranked_figure(index)
            ranking.hint = ranking.hint if ranking.figure is None else ""
        else:
            self._say_hint(ranking, index)
        self._ranked_dates(ranking, index)
        ranking.is_value = self._wants_value(ranking, index) and not any(dim.bucket for dim in self.found.dimensions)
        self.found.rankings.append(ranking)

    def _extremes_of_dates(self) -> None:
        """Reads an extreme within a date, "the maximum number of orders in a day", as a ranking of days."""
        reading = self._reading
        dates = [at for at, mark in enumerate(reading.marks) if reading.free(at) and mark.means("date_part")]
        for index in list(reading.having("max", "min")) if len(dates) == 1 and not self.found.rankings else ():
            reading.use(index)
            figure = self._ranked_figure(index)
            if figure is None or figure.link is None:
                reading.used.discard(index)
            else:
                reading.use(dates[0])
                self.found.rankings.append(Ranking(reading.marks[index].means("max"), figure, position=index))
                self._rank_dates(Dimension(("", ""), None, reading.marks[dates[0]].arg), dates[0])  # type: ignore[arg-type]

    def _say_hint(self, ranking: Ranking, index: int) -> None:
        """Ranks by the column beside an adjective that implies one: `最早开业`, "latest order date"."""
        reading = self._reading
        accept = reading.is_date if ranking.hint == "date" else reading.is_measure
        for step in (1, -1):
            place = reading.free_beside(index, step, ("noise", "verb"))
            if place is None or not self._is_hinted(place):
                continue
            noun = reading.nouns[place]
            link = reading.pick(place, accept)
            if link is not None and noun is not None and link.quality >= noun.columns[0][1].quality - 0.15:
                ranking.figure = Figure(None, link, position=place)
                ranking.hint = ""
                reading.use(place)
                return

    def _ranked_dates(self, ranking: Ranking, index: int) -> None:
        """Ranks dates where a unit of time stands near the superlative: `车流量最大的10天`, "the best month"."""
        reading = self._reading
        for place, mark in enumerate(reading.marks):
            if not reading.free(place) or not mark.means("date_part") or reading.nouns[place] is not None:
                continue
            before = place - 1
            number = reading.marks[before].number if reading.free(before) else None
            near = number is not None or self._distance(place, index) <= 3
            if near and ranking.figure is not None:
                reading.use(place)
                if number is not None and ranking.limit is None:
                    ranking.limit = int(number.value)
                    reading.use(before)
                self._rank_dates(Dimension(("", ""), None, mark.arg), place)  # type: ignore[arg-type]
                return

    def _distance(self, first: int, second: int) -> int:
        """How many marks lie from one to the other; words that only connect others don't count."""
        between = range(min(first, second) + 1, max(first, second))
        return 1 + sum(not self._reading.marks[place].means("noise", "of", "unit") for place in between)

    def _rank_dates(self, dates: Dimension, place: int) -> None:
        """Ranks dates; a word that asks for the same date again adds nothing (`最高的一天是哪天`).

        Raises:
            Refusal: another unit is asked for (`最高的一天在哪个月`).
        """
        reading, dimensions = self._reading, self.found.dimensions
        asked = [mark for mark in reading.marks if mark.means("date_which")]
        if others := [mark.text for mark in asked if mark.arg != dates.bucket]:
            raise unused_words([*others, reading.marks[place].text])
        if asked:
            dimensions[:] = [one for one in dimensions if one != dates]
        dimensions.append(dates)
        self.found.ranked_dates.append(dates)

    def _is_hinted(self, place: int) -> bool:
        """Whether the noun may be the column that the adjective implies: "order date" after "latest"."""
        noun = self._reading.noun(place)
        return noun is not None and not noun.is_table and not noun.is_value and bool(noun.columns)

    def _number_near(self, index: int) -> int | None:
        """The number beside a superlative or "top": `最高的3个`, "the 3 cheapest", "top 3"; uses it up."""
        reading = self._reading
        for step in (1, -1):
            place = index + step
            while (
                0 <= place < len(reading)
                and reading.marks[place].means("noise", "of", "top", "which")
                and reading.nouns[place] is None
                and reading.marks[place].number is None
            ):
                place += step
            if not reading.free(place):
                continue
            mark = reading.marks[place]
            if (
                mark.number is not None
                and mark.number.value == int(mark.number.value)
                and 0 < mark.number.value <= 10000
            ):
                reading.use(place)
                for passed in range(min(place, index), max(place, index)):
                    if reading.marks[passed].means("top"):
                        reading.use(passed)
                return int(mark.number.value)
        return None

    def _number_of_things(self) -> int | None:
        """The number right before a table: `the 5 shops with the highest rent`; uses it up."""
        reading = self._reading
        for index, mark in enumerate(reading.marks):
            if not reading.free(index) or mark.number is None or not self._reading.counts_rows(index):
                continue
            reading.use(index)
            return int(mark.number.value)
        return None

    def _ranked_figure(self, index: int) -> Figure | None:
        """What a superlative ranks by: the noun before it in Chinese and after it in English, else the other one."""
        reading = self._reading
        tied = index > 0 and reading.marks[index - 1].means("of")
        for step in (-1, 1) if reading.is_chinese and not tied else (1, -1):
            figure = self._figure_beside(index, step)
            if figure is not None:
                return figure
        return self._most_of_value(index)

    def _most_of_value(self, index: int) -> Figure | None:
        """Ranks by the number of rows with a stored value beside the superlative: `加油站最多的公司`."""
        reading = self._reading
        place = index - 1 if reading.is_chinese else index + 1
        noun = reading.nouns[place] if 0 <= place < len(reading) and place in reading.used else None
        counts = reading.marks[index].means("super") and _SAYS_NUMBER.search(reading.marks[index].text)
        if not counts or noun is None or not noun.is_value or noun.value is None:
            return None
        return figure_of_rows(reading, noun.value.table, index)

    def _figure_beside(self, index: int, step: int) -> Figure | None:
        reading = self._reading
        skip = (
            ("noise", "of", "unit", "count", "with", "number") if step == -1 else ("noise", "of", "count", "date_part")
        )
        place = reading.free_beside(index, step, skip)
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_value:
            return None
        if (rows_of := reading.rows_named(place)) is not None:
            reading.use(place)
            return Figure("count", table=rows_of, position=place)
        function = self._function_beside(place)
        link = reading.measure(place)
        counted = any(reading.marks[at].means("count") for at in range(min(place, index), max(place, index) + 1))
        if link is not None and not (
            noun.is_table and (counted or noun.table is not None and link.quality < noun.table.quality - _LESS)
        ):
            reading.use(place)
            return Figure(function, link, position=place)
        times = counted or reading.marks[index].text.startswith("数")
        if times and not noun.is_table and (event := reading.pick(place, reading.is_date)) is not None:
            reading.use(place)
            return Figure("count", event, position=place)  # `报修次数最多` counts the dates in 报修时间
        counts = counted or _SAYS_NUMBER.search(reading.marks[index].text) or not reading.marks[index].means("super")
        if noun.is_table and noun.table is not None and counts and not self._is_asked(place, step, counted):
            reading.use(place)
            for at in range(min(place, index), max(place, index)):
                if reading.marks[at].means("count"):
                    reading.use(at)
            return Figure("count", table=noun.table.table, position=place)
        return None

    def _is_asked(self, place: int, step: int, counted: bool) -> bool:
        """Whether the table beside a superlative is what the question asks for, and not what is counted."""
        reading = self._reading
        before = reading.beside(place, -1)
        if before is not None and reading.asks_for(before):
            return True
        if reading.is_chinese:
            return step == 1
        after = reading.beside(place, 1)
        if step == 1 and after is not None and reading.marks[after].means("by"):
            return True  # "largest depot by capacity": the figure follows "by"
        if counted or any(mark.arg == "person" for mark in reading.marks):
            return False  # "who placed the most orders": people are asked for
        return step == -1 or not self._other_table(place)

    def _other_table(self, place: int) -> bool:
        reading = self._reading
        return any(
            noun is not None and at != place and reading.free(at) and not noun.is_value
            for at, noun in enumerate(reading.nouns)
        ) or any(dimension.table != ("", "") for dimension in self.found.dimensions)

    def _function_beside(self, place: int) -> Function | None:
        reading = self._reading
        for step in (-1, 1):
            at = reading.free_beside(place, step)
            if at is not None and reading.marks[at].means("avg", "sum", "max", "min") and reading.nouns[at] is None:
                if step == 1 and not reading.is_chinese:
                    continue
                reading.use(at)
                return AGGREGATES[str(reading.marks[at].intent.kind)]  # type: ignore[union-attr]
        return None

    def _wants_value(self, ranking: Ranking, index: int) -> bool:
        """Whether the question asks for the extreme itself: "what is the highest rent", `最高的月租金是多少`."""
        reading = self._reading
        figure = ranking.figure
        if figure is None or figure.link is None or ranking.limit is not None:
            return False
        if self._asks_for_thing():
            return False
        if reading.is_chinese:
            after = reading.beside(max(index, figure.position), 1, (*TIES, "cmp"))
            before_figure = figure.position > index
            if before_figure and after is not None and reading.free(after) and self._is_table_noun(after):
                return False
            ends = after is None or reading.marks[after].means("count", "which", "list", "rank", "and", "by_end")
            return before_figure or ends
        before = reading.find(figure.position, -1, self._is_table_noun)
        after_place = figure.position + 1
        directly = after_place < len(reading) and reading.free(after_place) and self._is_table_noun(after_place)
        return before is None and not directly

    def _asks_for_thing(self) -> bool:
        reading = self._reading
        for index, mark in enumerate(reading.marks):
            if mark.means("which", "date_which") and mark.arg != "when":
                if mark.arg == "person":
                    return True
                place = reading.beside(index, 1, ("noise", "of", "unit", "number"))
                if place is None and reading.is_chinese and not mark.text.startswith("什么"):
                    return True
                noun = reading.nouns[place] if place is not None else None
                if mark.means("date_which") or (
                    noun is not None
                    and reading.free(place or 0)
                    and not mark.text.startswith("what")
                    or self._is_table_noun_at(place)
                ):
                    return True
        return False

    def _is_table_noun_at(self, place: int | None) -> bool:
        return place is not None and self._reading.free(place) and self._is_table_noun(place)

    def _is_table_noun(self, index: int) -> bool:
        noun = self._reading.nouns[index]
        return noun is not None and noun.is_table

    def _top(self, index: int) -> None:
        """Reads `前三`, "top 5 …" as a limit, and the figure where one is named."""
        reading = self._reading
        limit = self._number_near(index)
        mark = reading.marks[index]
        if limit is None and self._first_by_date(index):
            return
        if limit is None and not ("第一" in mark.text or mark.text in ("居首", "top", "the top", "first", "倒数第一")):
            return
        reading.use(index)
        descending = mark.arg != "-"
        if self.found.rankings:
            self._refuse_both_ends(index)
            self.found.rankings[-1].limit = self.found.rankings[-1].limit or limit or 1
            self.found.rankings[-1].is_value = False
            return
        figure = self._figure_beside(index, -1) if reading.is_chinese else None
        self.found.rankings.append(Ranking(descending, figure, limit=limit or 1, position=index))

    def _refuse_both_ends(self, index: int) -> None:
        """Refuses `前3名和后3名`, "top 3 and bottom 3", because one ranking shows only one end.

        Raises:
            Refusal: the other end is asked for as well.
        """
        marks, last = self._reading.marks, self.found.rankings[-1]
        is_other = marks[last.position].means("top") and marks[last.position].arg != marks[index].arg
        if is_other or (last.descending and marks[index].arg == "-"):
            raise unused_words([marks[last.position].text, marks[index].text])

    def _first_by_date(self, index: int) -> bool:
        """Reads `hired first` as the earliest date of the column named before; returns whether it did."""
        reading = self._reading
        place = reading.free_beside(index, -1)
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_table or noun.column is None or not reading.is_date(noun.column):
            return False
        reading.use(index, place)
        self.found.rankings.append(Ranking(False, Figure(None, noun.column, position=place), position=index))
        return True

    def _rank(self, index: int) -> None:
        reading = self._reading
        reading.use(index)
        descending = reading.marks[index].arg != "asc"
        said = bool(reading.marks[index].arg)
        if self.found.rankings:
            ranking = self.found.rankings[-1]
            ranking.descending = descending if said else ranking.descending
            ranking.is_value = False
        else:
            ranking = Ranking(descending, is_order=True, position=index)
            self.found.rankings.append(ranking)
        if ranking.figure is None and not ranking.hint:
            ranking.figure = self._order_figure(index)
            if (
                not said
                and not reading.is_chinese
                and ranking.is_order
                and ranking.figure is not None
                and reading.marks[index].text.startswith(("sort", "order"))
            ):
                ranking.descending = ranking.figure.function is not None
                ranking.hint = ""

    def _order_figure(self, index: int) -> Figure | None:
        """The figure of an order: `按月租金排序`, "ranked by revenue", `营业收入排行`."""
        reading = self._reading
        for step in (-1, 1) if reading.is_chinese else (1, -1):
            place = reading.free_beside(index, step, ("noise", "of", "by", "unit"))
            noun = reading.noun(place)
            if place is None or noun is None or noun.is_value:
                continue
            by = reading.free_beside(place, -1)
            link = reading.measure(place) or reading.pick(place, reading.is_date)
            if noun.is_table and (
                link is None or (noun.table is not None and link.quality < noun.table.quality - 0.25)
            ):
                continue
            link = link or (None if self._is_followed_by_measure(place) else reading.pick(place))
            if link is not None:
                function = self._function_beside(place)
                reading.use(place, *((by,) if by is not None and reading.marks[by].means("by") else ()))
                return Figure(function, link, position=place)
        return self._counted_order(index)

    def _is_followed_by_measure(self, place: int) -> bool:
        """ "rank brands by revenue": the brands are what is ranked."""
        joint = self._reading.free_beside(place, 1, ("noise",))
        return joint is not None and self._reading.marks[joint].means("by")

    def _counted_order(self, index: int) -> Figure | None:
        """The count that is the figure of an order: `按店铺数量排序`, "ranked by number of orders"."""
        reading = self._reading
        step = -1 if reading.is_chinese else 1
        place = reading.find(index, step, lambda at: reading.marks[at].means("count"))
        if place is None:
            return None
        noun_place = reading.free_beside(place, step)
        noun = reading.noun(noun_place)
        if noun is None or noun_place is None or noun.table is None or not noun.is_table:
            return None
        reading.use(place, noun_place)
        self._reading.use_by_before(noun_place)
        return Figure("count", table=noun.table.table, position=noun_place)

    def _by_measure(self) -> None:
        """Reads "by" with a measure, which can't be a group: it is the figure of the ranking, or an order by itself."""
        reading = self._reading
        for index in list(reading.having("by")):
            place = reading.free_beside(index, 1, ("noise", "of", "each"))
            if place is None:
                continue
            function = self._leading_function(place)
            place = reading.free_beside(place, 1) if function else place
            if place is None:
                continue
            figure = self._by_figure(place, function)
            if figure is None:
                continue
            reading.use(index)
            if not self.found.rankings:
                self.found.rankings.append(Ranking(True, figure, is_order=True, position=index))
            elif self._is_figure_open(self.found.rankings[-1]):
                self.found.rankings[-1].figure = figure
            else:
                raise unused_words([reading.marks[at].text for at in (index, place)])

    def _is_figure_open(self, ranking: Ranking) -> bool:
        """Whether "by" may still name the figure: none is known, or a thing's name was taken for it.

        In "the largest sale by total amount", "sale" may name a table as well as an amount.
        """
        figure = ranking.figure
        noun = self._reading.nouns[figure.position] if figure is not None else None
        return figure is None or (noun is not None and noun.table is not None and figure.link is not None)

    def _by_adjectives(self) -> None:
        """`the busiest day`: by the figure that the semantic file gives the adjective, the nearest to what is named."""
        reading = self._reading
        named = [link.table for noun in reading.nouns if noun and (link := noun.table or noun.column or noun.value)]
        for ranking in self.found.rankings:
            links = reading.lexicon.adjectives.get(ranking.hint, ())
            far = {link: sum(self._distance_up(link.table, key) for key in named) for link in links}
            link = min(links, key=far.__getitem__, default=None)
            if link is not None and ranking.figure is None and far[link] < math.inf:
                ranking.figure = Figure(None, link, position=ranking.position)
            ranking.hint = "" if links else ranking.hint

    def _distance_up(self, start: TableKey, target: TableKey) -> float:
        """Steps from a figure's table to another that it may be added up for; what a thing has is its own."""
        is_attribute = self._reading.facts(start).is_entity and start != target
        return math.inf if is_attribute else self._reading.graph.above(start).get(target, math.inf)

    def _leading_function(self, place: int) -> Function | None:
        mark = self._reading.marks[place]
        if not mark.means("avg", "sum", "max", "min", "count") or self._reading.nouns[place] is not None:
            return None
        self._reading.use(place)
        return "count" if mark.means("count") else AGGREGATES[mark.intent.kind]  # type: ignore[union-attr]

    def _by_figure(self, place: int, function: Function | None) -> Figure | None:
        reading = self._reading
        noun = reading.noun(place)
        if noun is None or noun.is_value:
            return None
        behind = reading.free_beside(place, 1)
        if function is None and noun.is_table and behind is not None and reading.marks[behind].means("count"):
            reading.use(behind)
            function = "count"  # `按订单数`: 数 counts the table before it
        if function == "count" and noun.table is not None:
            reading.use(place)
            return Figure("count", table=noun.table.table, position=place)
        link = reading.measure(place) or reading.pick(place, reading.is_date)
        if link is None:
            return None
        reading.use(place)
        if function == "count" and reading.is_measure(link):
            function = "sum"  # "by number of orders", where a column holds that number already
        return Figure(function, link, position=place)
