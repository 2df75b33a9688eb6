"""What a question wants: figures, groups, rankings, and the things it names as the answer."""

from dataclasses import dataclass, field

from agent.skills.offline.dates import Unit
from agent.skills.offline.links import Link
from agent.skills.offline.query import Dimension, Function
from agent.skills.offline.reading import Reading
from agent.skills.offline.refusals import unused_words
from agent.skills.offline.schema import TableKey

_AGGREGATES: dict[str, Function] = {"sum": "sum", "avg": "avg", "max": "max", "min": "min"}


@dataclass
class Figure:
    """A figure asked for: a function over a column, or (`link` None) a count of `table`'s rows."""

    function: Function | None
    link: Link | None = None
    table: TableKey | None = None
    position: int = 0
    per: Dimension | None = None
    per_unit: Unit | None = None
    is_share: bool = False


@dataclass
class Ranking:
    """A wish for the most or least of something.

    Attributes:
        figure: by what; None when only an adjective says it (`hint`: the concept, such as `price`).
        limit: how many, None when not said.
        is_value: the extreme figure itself is wanted ("the highest rent"), not the thing that has it.
        is_order: only an order of everything is wanted ("sorted by price").
    """

    descending: bool
    figure: Figure | None = None
    hint: str = ""
    limit: int | None = None
    is_value: bool = False
    is_order: bool = False
    position: int = 0


@dataclass
class Asks:
    """Everything the question wants."""

    figures: list[Figure] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)
    dimensions: list[Dimension] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    qualifiers: list[tuple[int, TableKey]] = field(default_factory=list)
    limit: int | None = None
    distinct: bool = False
    per_entity: int | None = None
    trend: bool = False
    share: bool = False
    compare: bool = False
    which: bool = False
    lists: bool = False


class AskReader:
    """Finds what is wanted in a reading whose conditions have been taken out."""

    def __init__(self, reading: Reading, restricted: frozenset[TableKey] = frozenset()) -> None:
        self._reading = reading
        self._restricted = restricted
        self.found = Asks()

    def read(self) -> Asks:
        """Everything wanted; what remains unused afterwards are the things named."""
        reading = self._reading
        reading.skip_used = True
        self.found.which = reading.has("which", "date_which")
        self.found.lists = reading.has("list")
        self._flags()
        self._compounds()
        self._averages_per_unit()
        self._groups()
        self._rankings()
        self._counts()
        self._aggregates()
        self._heads()
        return self.found

    def _compounds(self) -> None:
        """`order amount`, `店铺名称`: a table right before one of its columns only says whose column it is."""
        reading = self._reading
        for index in range(len(reading) - 1):
            noun, after = reading.noun(index), reading.noun(index + 1)
            if (
                noun is None
                or after is None
                or noun.table is None
                or not noun.is_table
                or after.is_value
                or after.is_table
            ):
                continue
            before = reading.beside(index, -1)
            leads = before is not None and reading.marks[before].means(
                "each", "by", "which", "count", "top", "super", "rank"
            )
            owned = after.column is not None and after.column.table == noun.table.table
            if (
                owned
                and not (leads and reading.is_chinese)
                and not (leads and reading.marks[before or 0].means("each", "which"))
            ):
                reading.use(index)
                self.found.qualifiers.append((index, noun.table.table))

    def _flags(self) -> None:
        reading = self._reading
        for name in ("distinct", "trend", "share", "compare"):
            for index in list(reading.having(name)):
                reading.use(index)
                setattr(self.found, name, True)
        for index in list(reading.having("per_entity")):
            self.found.per_entity = index
            reading.use(index)
            place = reading.free_beside(index, 1, ("noise", "of", "unit", "distinct"))
            noun = reading.noun(place)
            if (
                place is not None
                and noun is not None
                and noun.is_table
                and noun.table
                and "number" in reading.marks[index].text
            ):
                reading.use(place)
                self.found.figures.append(Figure("count", table=noun.table.table, position=place))

    def _averages_per_unit(self) -> None:
        reading = self._reading
        for index in list(reading.having("avg_per")):
            target = self._measured(index, 1) or self._measured(index, -1)
            if target is None:
                raise unused_words([reading.marks[index].text])
            place, link = target
            reading.use(index, place)
            self.found.figures.append(Figure("avg", link, position=index, per_unit=reading.marks[index].arg))  # type: ignore[arg-type]

    def _measured(self, index: int, step: int) -> tuple[int, Link] | None:
        """The measured column next to a position, over ties, negligible words and count words."""
        reading = self._reading
        place = reading.free_beside(index, step, ("noise", "of", "unit", "distinct", "count"))
        if place is None or reading.nouns[place] is None:
            return None
        link = reading.measure(place)
        return (place, link) if link is not None else None

    # --------------------------------------------------------------------------------------------------------- groups

    def _groups(self) -> None:
        reading = self._reading
        for index in range(len(reading)):
            mark = reading.marks[index]
            if not reading.free(index) or mark.intent is None:
                continue
            if mark.means("bucket", "date_which"):
                self._bucket(index)
            elif mark.means("each", "by") and not (reading.nouns[index] and mark.quality >= 0.7):
                self._grouped_nouns(index)
        for index in list(reading.having("by_end")):
            reading.use(index)

    def _bucket(self, index: int) -> None:
        reading = self._reading
        unit: Unit = reading.marks[index].arg  # type: ignore[assignment]
        average = reading.free_beside(index, -1)
        if average is not None and reading.marks[average].means("avg") and reading.marks[index].means("bucket"):
            target = self._measured(index, 1)
            if target is not None:
                reading.use(index, average, target[0])
                self.found.figures.append(Figure("avg", target[1], position=index, per_unit=unit))
                return
        reading.use(index)
        self._use_by_before(index)
        self.found.dimensions.append(Dimension(("", ""), None, unit))

    def _use_by_before(self, index: int) -> None:
        before = self._reading.free_beside(index, -1)
        if before is not None and self._reading.marks[before].means("by", "each"):
            self._reading.use(before)

    def _grouped_nouns(self, index: int) -> None:
        """Takes `各公司和各省份`, `by region and status`, unless the words order rather than group."""
        reading = self._reading
        place = reading.free_beside(index, 1, ("noise", "of", "unit", "each", "distinct"))
        if place is None:
            return
        if reading.marks[place].means("date_part") and reading.nouns[place] is None:
            reading.use(index, place)
            self.found.dimensions.append(Dimension(("", ""), None, reading.marks[place].arg))  # type: ignore[arg-type]
            return
        dimension = self._dimension(place, is_by=reading.marks[index].means("by"))
        if dimension is None:
            return
        if self._is_agent(index, dimension):
            reading.use(index)
            return
        reading.use(index, place, *self._each_marks(index, place))
        self.found.dimensions.append(dimension)
        self._more_dimensions(place, index)

    def _is_agent(self, index: int, dimension: Dimension) -> bool:
        """`orders placed by customers from Japan`: who did it, not a group."""
        before = index - 1
        verb = (
            before >= 0
            and self._reading.marks[before].means("verb", "noise")
            and self._reading.marks[index].text == "by"
        )
        return verb and dimension.column is None and dimension.table in self._restricted

    def _each_marks(self, first: int, last: int) -> list[int]:
        return [place for place in range(first, last) if self._reading.marks[place].means("each", "unit", "distinct")]

    def _more_dimensions(self, last: int, opener: int) -> None:
        """Further groups after `和` or "and": only where they are of a kind that groups."""
        reading = self._reading
        while True:
            joint = last + 1
            if not reading.free(joint) or not reading.marks[joint].means("and"):
                return
            place = reading.free_beside(joint, 1, ("noise", "each", "of"))
            if place is None:
                return
            after = reading.beside(place, 1)
            if after is not None and reading.marks[after].means("count", "super", "rank"):
                return
            if reading.marks[place].means("bucket"):
                reading.use(joint)
                return
            dimension = self._dimension(place, is_by=True)
            if dimension is None:
                return
            reading.use(joint, place, *self._each_marks(joint, place))
            self.found.dimensions.append(dimension)
            last = place

    def _dimension(self, index: int, *, is_by: bool) -> Dimension | None:
        """The noun as a group; None when it measures (`by revenue` orders) or is a value."""
        reading = self._reading
        noun = reading.noun(index)
        if noun is None or noun.is_value:
            return None
        if noun.is_table and noun.table is not None:
            if is_by and self._orders(index) and reading.measure(index) is not None:
                return None
            return Dimension(noun.table.table)
        link = reading.column(index)
        if link is None or (reading.is_measure(link) and not self._is_grouping_number(link)):
            return None
        return self.column_dimension(link)

    def _is_grouping_number(self, link: Link) -> bool:
        return False

    def _orders(self, index: int) -> bool:
        """Whether the question ranks, so that `by <measure>` names the order."""
        return self._reading.has("rank", "top", "super")

    def column_dimension(self, link: Link) -> Dimension:
        """A column as a group: references and names stand for their entity, dates are cut to days."""
        reading = self._reading
        facts = reading.facts(link.table)
        assert link.column is not None
        for edge in facts.edges:
            if edge.columns == (link.column,):
                return Dimension(edge.parent, via=link.column if edge.child != edge.parent else None)
        if link.column in facts.display and facts.key:
            return Dimension(link.table)
        if reading.kind(link) == "timestamp":
            return Dimension(link.table, link.column, "day")
        return Dimension(link.table, link.column)

    # ------------------------------------------------------------------------------------------------------- rankings

    def _rankings(self) -> None:
        reading = self._reading
        for index in list(reading.having("super")):
            if reading.free(index):
                self._superlative(index)
        for index in list(reading.having("top")):
            if reading.free(index):
                self._top(index)
        for index in list(reading.having("rank")):
            if reading.free(index):
                self._rank(index)
        self._by_measure()

    def _superlative(self, index: int) -> None:
        reading = self._reading
        arg = reading.marks[index].arg
        ranking = Ranking(arg[0] == "+", hint=arg[1:], position=index)
        reading.use(index)
        ranking.limit = self._number_near(index) or self._number_of_things()
        if not ranking.hint:
            ranking.figure = self._ranked_figure(index)
        else:
            self._say_hint(ranking, index)
        self._ranked_dates(ranking, index)
        ranking.is_value = self._wants_value(ranking, index) and not any(dim.bucket for dim in self.found.dimensions)
        self.found.rankings.append(ranking)

    def _say_hint(self, ranking: Ranking, index: int) -> None:
        """Takes the column beside an adjective that implies one (`最早开业`, "latest order date") for its figure."""
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
        """`车流量最大的10天`, "the 3 months with the highest revenue": dates are what is ranked."""
        reading = self._reading
        for place, mark in enumerate(reading.marks):
            if not reading.free(place) or not mark.means("date_part") or reading.nouns[place] is not None:
                continue
            before = place - 1
            number = reading.marks[before].number if reading.free(before) else None
            near = number is not None or abs(place - index) <= 3
            if near and ranking.figure is not None:
                reading.use(place)
                if number is not None and ranking.limit is None:
                    ranking.limit = int(number.value)
                    reading.use(before)
                self.found.dimensions.append(Dimension(("", ""), None, mark.arg))  # type: ignore[arg-type]
                return

    def _is_hinted(self, place: int) -> bool:
        """Whether a noun beside `latest` is itself the date or measure ("latest order date")."""
        noun = self._reading.noun(place)
        return noun is not None and not noun.is_table and not noun.is_value and bool(noun.columns)

    def _number_near(self, index: int) -> int | None:
        """A count of things beside a superlative or `top`: `最高的3个`, "the 3 cheapest", "top 3"."""
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
        """`the 5 shops with the highest rent`: a whole number right before a table."""
        reading = self._reading
        for index, mark in enumerate(reading.marks):
            if not reading.free(index) or mark.number is None or not self._counts_rows(index):
                continue
            reading.use(index)
            return int(mark.number.value)
        return None

    def _ranked_figure(self, index: int) -> Figure | None:
        """What a superlative is about: the noun before it in Chinese, after it in English, else the other one."""
        reading = self._reading
        tied = index > 0 and reading.marks[index - 1].means("of")
        for step in (-1, 1) if reading.is_chinese and not tied else (1, -1):
            figure = self._figure_beside(index, step)
            if figure is not None:
                return figure
        return None

    def _figure_beside(self, index: int, step: int) -> Figure | None:
        reading = self._reading
        skip = ("noise", "of", "unit", "count", "with", "number") if step == -1 else ("noise", "of", "count")
        place = reading.free_beside(index, step, skip)
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_value:
            return None
        function = self._function_beside(place)
        link = reading.measure(place)
        counted = any(reading.marks[at].means("count") for at in range(min(place, index), max(place, index) + 1))
        if link is not None and not (
            noun.is_table and (counted or noun.table is not None and link.quality < noun.table.quality - 0.25)
        ):
            reading.use(place)
            return Figure(function, link, position=place)
        if noun.is_table and noun.table is not None and not self._is_asked(place, step, counted):
            reading.use(place)
            for at in range(min(place, index), max(place, index)):
                if reading.marks[at].means("count"):
                    reading.use(at)
            return Figure("count", table=noun.table.table, position=place)
        return None

    def _is_asked(self, place: int, step: int, counted: bool) -> bool:
        """Whether the table beside a superlative is the thing asked for, not the thing counted."""
        reading = self._reading
        before = reading.beside(place, -1)
        if before is not None and reading.marks[before].means("which"):
            return True
        if reading.is_chinese:
            return step == 1
        if counted:
            return False
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
                return _AGGREGATES[str(reading.marks[at].intent.kind)]  # type: ignore[union-attr]
        return None

    def _wants_value(self, ranking: Ranking, index: int) -> bool:
        """Whether the extreme itself is asked for: "what is the highest rent", `最高的月租金是多少`."""
        reading = self._reading
        figure = ranking.figure
        if figure is None or figure.link is None or ranking.limit is not None:
            return False
        if self._asks_for_thing():
            return False
        if reading.is_chinese:
            after = reading.beside(max(index, figure.position), 1)
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
        """`前三`, "top 5 …": a limit, with the figure where one is named."""
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
            self.found.rankings[-1].limit = self.found.rankings[-1].limit or limit or 1
            self.found.rankings[-1].is_value = False
            return
        figure = self._figure_beside(index, -1) if reading.is_chinese else None
        self.found.rankings.append(Ranking(descending, figure, limit=limit or 1, position=index))

    def _first_by_date(self, index: int) -> bool:
        """`hired first`: the least of the date named before."""
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
        """What an order is by: `按月租金排序`, "ranked by revenue", `营业收入排行`."""
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
            link = link or reading.pick(place)
            if link is not None:
                function = self._function_beside(place)
                reading.use(place, *((by,) if by is not None and reading.marks[by].means("by") else ()))
                return Figure(function, link, position=place)
        return self._counted_order(index)

    def _counted_order(self, index: int) -> Figure | None:
        """`按店铺数量排序`, `店铺数量排行`, "ranked by number of orders"."""
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
        self._use_by_before(noun_place)
        return Figure("count", table=noun.table.table, position=noun_place)

    def _by_measure(self) -> None:
        """`by revenue` that groups nothing: the figure of the ranking, or an order of its own."""
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
            if self.found.rankings and self.found.rankings[-1].figure is None:
                self.found.rankings[-1].figure = figure
            elif not self.found.rankings:
                self.found.rankings.append(Ranking(True, figure, is_order=True, position=index))

    def _leading_function(self, place: int) -> Function | None:
        mark = self._reading.marks[place]
        if not mark.means("avg", "sum", "max", "min", "count") or self._reading.nouns[place] is not None:
            return None
        self._reading.use(place)
        return "count" if mark.means("count") else _AGGREGATES[mark.intent.kind]  # type: ignore[union-attr]

    def _by_figure(self, place: int, function: Function | None) -> Figure | None:
        reading = self._reading
        noun = reading.noun(place)
        if noun is None or noun.is_value:
            return None
        if function == "count" and noun.table is not None:
            reading.use(place)
            return Figure("count", table=noun.table.table, position=place)
        link = reading.measure(place) or reading.pick(place, reading.is_date)
        if link is None:
            return None
        reading.use(place)
        return Figure(function, link, position=place)

    # --------------------------------------------------------------------------------------------- counts, aggregates

    def _counts(self) -> None:
        reading = self._reading
        for index in list(reading.having("count")):
            if reading.free(index):
                self._count(index)

    def _count(self, index: int) -> None:
        """Finds what is counted: the noun after `how many` / `多少个`, else the noun before `数量` / `有多少`."""
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
        if noun.is_table and noun.table is not None:
            reading.use(place)
            self._absorb_sum(index, place)
            self.found.figures.append(Figure("count", table=noun.table.table, position=place))
            return
        link = reading.pick(place)
        if link is None:
            return
        reading.use(place)
        function: Function = "sum" if reading.is_measure(link) and not self.found.distinct else "count_distinct"
        self.found.figures.append(Figure(function, link, position=place))

    def _count_of_value(self, index: int) -> None:
        """`how many professors`: where only a value is named, rows that have it are counted."""
        reading = self._reading
        for place in (index + 1, index + 2, index - 1):
            noun = reading.nouns[place] if 0 <= place < len(reading) and place in reading.used else None
            if noun is not None and noun.is_value and noun.value is not None:
                reading.use(index)
                self.found.figures.append(Figure("count", table=noun.value.table, position=index))
                return

    def _says_value(self, index: int) -> bool:
        """`是多少` asks for the value of what precedes, not for a count."""
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
        """`总` beside a count (`店铺总数量`, "total number") adds nothing."""
        for at in range(min(index, place) - 1, max(index, place) + 2):
            if self._reading.free(at) and self._reading.marks[at].means("sum"):
                self._reading.use(at)

    def _aggregates(self) -> None:
        reading = self._reading
        for index in list(reading.having("sum", "avg", "max", "min")):
            if reading.free(index):
                self._aggregate(index)

    def _aggregate(self, index: int) -> None:
        reading = self._reading
        kind = str(reading.marks[index].intent.kind)  # type: ignore[union-attr]
        target = self._measured(index, 1) or self._measured(index, -1)
        if target is None and (other := self._twin(index)) is not None:
            twin_target = self._measured(other, 1)
            if twin_target is not None:
                reading.use(index)
                self.found.figures.append(Figure(_AGGREGATES[kind], twin_target[1], position=index))
                return
        if target is not None:
            place, link = target
            reading.use(index, place)
            self.found.figures.append(Figure(_AGGREGATES[kind], link, position=place))
            self._more_aggregated(place, kind)
            return
        place_or_none = reading.free_beside(index, 1, ("noise", "of", "unit", "distinct"))
        noun = reading.noun(place_or_none)
        if (
            kind == "sum"
            and noun is not None
            and noun.is_table
            and noun.table is not None
            and place_or_none is not None
        ):
            reading.use(index, place_or_none)
            self.found.figures.append(Figure("count", table=noun.table.table, position=place_or_none))
        elif kind == "sum" and self.found.figures:
            reading.use(index)
        elif kind in ("max", "min"):
            self._extreme_date(index, kind)

    def _twin(self, index: int) -> int | None:
        """The second function of `minimum and maximum price`."""
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
                    self.found.figures.append(Figure(_AGGREGATES[kind], link, position=place))
                    return

    def _more_aggregated(self, place: int, kind: str) -> None:
        """`平均月租金和面积`: the function reaches over an `and`; `max and min price`: several functions."""
        reading = self._reading
        joint = place + 1
        if reading.free(joint) and reading.marks[joint].means("and"):
            other = reading.free_beside(joint, 1)
            if other is not None and reading.noun(other) is not None and reading.measure(other) is not None:
                link = reading.measure(other)
                reading.use(joint, other)
                self.found.figures.append(Figure(_AGGREGATES[kind], link, position=other))

    # ---------------------------------------------------------------------------------------------------------- heads

    def _heads(self) -> None:
        """The nouns left over, in order: what is listed, measured plainly, or merely mentioned."""
        reading = self._reading
        self.found.heads = [
            index
            for index, noun in enumerate(reading.nouns)
            if reading.free(index)
            and noun is not None
            and not noun.is_value
            and not reading.marks[index].means("noise")
        ]
        for index, mark in enumerate(reading.marks):
            if not reading.free(index) or not self.found.lists or self.found.limit is not None:
                continue
            if mark.number is not None and self._counts_rows(index):
                reading.use(index)
                self.found.limit = int(mark.number.value)

    def _counts_rows(self, index: int) -> bool:
        """`列出10个客户`, "show 10 customers"."""
        after = self._reading.beside(index, 1)
        noun = self._reading.nouns[after] if after is not None else None
        number = self._reading.marks[index].number
        whole = number is not None and number.value == int(number.value) and number.value > 0
        return whole and noun is not None and noun.is_table


_FORWARD_COUNTS = frozenset(
    "多少 多少个 多少家 多少条 多少人 多少名 多少位 多少种 多少次 多少笔 多少件 几个 几家 几条 几名 几位 几种 几次 几笔 几人 有多少 有多少个 "
    "有多少家 有几个 有几家 共有多少 一共有多少 总共有多少 共有多少个 一共有多少个 总共有多少个 有多少种 有几种 有多少条 有多少人 有多少名 有多少位 有多少次 "
    "有多少笔".split()
)
