"""Reads groups, such as "per month", 各服务区 or "by region and status"."""

from knowledge.atoms import listed
from rules.linking.dates import Unit
from rules.query.query import Dimension
from rules.query.refusals import unused_words
from rules.query.wishes import Asks, Figure
from rules.readers.reading import Reading
from rules.schema.links import Link
from rules.schema.schema import TableKey

# Names of columns that say of which kind a thing is, and the least quality of a link to such a column.
_KINDS = ("类别", "类型", "分类", "category", "type", "kind")
_LEAST_KIND = 0.6
_ADJECTIVES = frozenset(listed("daily weekly monthly quarterly yearly annual"))
# For these things 种 is the measure word, so 每种 means each of them and not each kind.
_SORTS = tuple(
    listed("产品 商品 货品 货物 物品 用品 药品 药物 药 菜品 菜 食品 饮料 材料 原料 物料 零件 配件 疾病 书 图书")
)
_CALLED_SO = 0.7


class GroupReader:
    """Turns words that group into dimensions, and uses up their marks."""

    def __init__(self, reading: Reading, found: Asks, restricted: frozenset[TableKey]) -> None:
        self._reading = reading
        self.found = found
        self._restricted = restricted

    def read(self) -> None:
        """Reads every group, and averages per day or month."""
        self._averages_per_unit()
        reading = self._reading
        for index in range(len(reading)):
            mark = reading.marks[index]
            if not reading.free(index) or mark.intent is None:
                continue
            if mark.means("bucket", "date_which"):
                self._bucket(index)
            elif mark.arg == "kind" or (mark.arg == "sort" and self._speaks_of_kinds(index)):
                self._kinds(index)
            elif mark.means("each", "by") and not (reading.nouns[index] and mark.quality >= 0.7):
                self._grouped_nouns(index)
        for index in list(reading.having("by_end")):
            self._distribution(index)
            reading.use(index)

    def _distribution(self, index: int) -> None:
        """Reads `工单状态分布`: groups by the column before it, and counts rows if no other figure is asked for."""
        reading = self._reading
        place = reading.free_beside(index, -1, ("of",))
        noun = reading.noun(place)
        said = reading.marks[index].text.endswith(("分布", "分布情况"))
        if self.found.dimensions or not said or place is None or noun is None or noun.is_table or noun.is_value:
            return
        link = reading.column(place)
        if link is not None and not reading.is_measure(link) and reading.kind(link) in ("text", "boolean", "number"):
            reading.use(place)
            self.found.dimensions.append(column_dimension(reading, link))
            if not reading.has("count", "sum", "avg", "share"):
                self.found.figures.append(Figure("count", table=link.table, position=index))

    def _averages_per_unit(self) -> None:
        reading = self._reading
        for index in list(reading.having("avg_per")):
            target = self._reading.measured_beside(index, 1) or self._reading.measured_beside(index, -1)
            if target is None:
                raise unused_words([reading.marks[index].text])
            place, link = target
            reading.use(index, place)
            self.found.figures.append(Figure("avg", link, position=index, per_unit=reading.marks[index].arg))  # type: ignore[arg-type]

    def _bucket(self, index: int) -> None:
        reading = self._reading
        mark = reading.marks[index]
        unit: Unit = mark.arg  # type: ignore[assignment]
        if mark.means("date_which") and self._asks_for_date(index):
            reading.use(index)  # `哪年成立` asks for the date itself
            return
        average = reading.free_beside(index, -1)
        if average is not None and reading.marks[average].means("avg") and reading.marks[index].means("bucket"):
            target = self._reading.measured_beside(index, 1)
            if target is not None:
                reading.use(index, average, target[0])
                self.found.figures.append(Figure("avg", target[1], position=index, per_unit=unit))
                return
        reading.use(index)
        self._reading.use_by_before(index)
        dates = self._dated(index, unit) or Dimension(("", ""), None, unit)
        self.found.dimensions.append(dates)
        before = reading.beside(index, -1, ("noise",))
        if mark.text.lower() in _ADJECTIVES and before is not None and reading.marks[before].means("super"):
            self.found.ranked_dates.append(dates)
        self._more_dimensions(index)

    def _asks_for_date(self, index: int) -> bool:
        """Whether `哪年` asks when something happened, and not for the year of a figure."""
        reading = self._reading
        place = reading.free_beside(index, 1)
        noun = reading.noun(place)
        if reading.has("super", "top", "count", "sum", "avg", "max", "min") or noun is None or noun.is_table:
            return False
        return noun.column is not None and reading.is_date(noun.column)

    def _dated(self, index: int, unit: Unit) -> Dimension | None:
        """The group by the date that is named right after: `每年入住的业主数`; None where none is."""
        reading = self._reading
        place = reading.free_beside(index, 1, ("of",)) if reading.is_chinese else None
        noun = reading.noun(place)
        if place is None or noun is None or noun.is_table or noun.is_value or noun.column is None:
            return None
        link, tied = noun.column, place + 1 < len(reading) and reading.marks[place + 1].means("of")
        if not tied or not reading.is_date(link) or link.quality < _CALLED_SO:
            return None
        reading.use(place)
        return Dimension(link.table, link.column, unit)

    def _grouped_nouns(self, index: int) -> None:
        """Reads `各公司和各省份`, `by region and status`, unless the words say an order instead of groups."""
        reading = self._reading
        place = reading.free_beside(index, 1, ("noise", "of", "unit", "each", "distinct"))
        if place is None:
            return
        if reading.marks[place].means("by_end") and reading.marks[place].text.startswith("分类"):
            self._by_category(index, place)
            return
        if reading.marks[index].text == "各" and (
            reading.marks[index + 1].means("count", "with", "verb")
            or (reading.marks[place].means("count") and reading.nouns[place] is None)
        ):
            reading.use(index)  # `微信和现金各收了多少`: 各 means each of the values before it
            self.found.compare = True
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
        self._more_dimensions(place)

    def _by_category(self, index: int, place: int) -> None:
        """Reads `按分类统计图书`, where 分类 may also be a part of the word for statistics."""
        reading = self._reading
        thing = reading.free_beside(place, 1)
        noun = reading.noun(thing)
        if noun is not None and noun.is_table and noun.table is not None:
            reading.use(index, place)
            self.found.dimensions.append(column_dimension(reading, self._kind_column(index, noun.table.table)))

    def _kinds(self, index: int) -> None:
        """Groups by the column that says of which kind a thing is: `每类店铺的收入`, "which kind of shop".

        Raises:
            Refusal: no column says so, or several may.
        """
        reading = self._reading
        place = reading.free_beside(index, 1)
        noun = reading.noun(place)
        if place is None or noun is None or not noun.is_table or noun.table is None:
            if not reading.marks[index].means("which"):
                self._grouped_nouns(index)  # `每类支付方式`: the column is named, so it is the group
            return
        self.found.kind = column_dimension(reading, self._kind_column(index, noun.table.table))
        reading.use(index)
        self.found.dimensions.append(self.found.kind)

    def _speaks_of_kinds(self, index: int) -> bool:
        """Whether `各种` means each kind: `各种店铺` does if shops have kinds; `各种商品` are the goods."""
        reading = self._reading
        place = reading.free_beside(index, 1)
        noun = reading.noun(place)
        if place is None or noun is None or not noun.is_table or noun.table is None:
            return False
        is_sort_itself = reading.marks[place].text.endswith(_SORTS)
        return not is_sort_itself and bool(self._kind_columns(noun.table.table))

    def _kind_column(self, index: int, table: TableKey) -> Link:
        reading = self._reading
        best = self._kind_columns(table)
        if not best:
            raise unused_words([reading.marks[index].text])
        rivals = [link for link in best if link.quality >= best[0].quality - 0.1]
        return reading.chosen_of(reading.marks[index].text, rivals) if len(rivals) > 1 else best[0]

    def _kind_columns(self, table: TableKey) -> list[Link]:
        """The columns that say of which kind a thing is, best first."""
        reading = self._reading
        found: dict[str | None, Link] = {}
        for link in (link for name in _KINDS for link in reading.lexicon.find(name)):
            suits = link.kind == "column" and link.table == table and link.quality >= _LEAST_KIND
            if suits and not reading.is_measure(link) and link.quality > getattr(found.get(link.column), "quality", 0):
                found[link.column] = link
        return sorted(found.values(), key=lambda link: -link.quality)

    def _is_agent(self, index: int, dimension: Dimension) -> bool:
        """Whether "by" names who did something instead of a group: `orders placed by customers from Japan`."""
        before = index - 1
        verb = (
            before >= 0
            and self._reading.marks[before].means("verb", "noise")
            and self._reading.marks[index].text == "by"
        )
        return verb and dimension.column is None and dimension.table in self._restricted

    def _each_marks(self, first: int, last: int) -> list[int]:
        return [place for place in range(first, last) if self._reading.marks[place].means("each", "unit", "distinct")]

    def _more_dimensions(self, last: int) -> None:
        """Reads further groups after 和 or "and", up to the first noun that can't be a group."""
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
        """The noun as a group; None for a value and for a measure, because `by revenue` says an order."""
        reading = self._reading
        noun = reading.noun(index)
        if noun is None or noun.is_value:
            return None
        if noun.is_table and noun.table is not None:
            if is_by and self._orders() and reading.measure(index) is not None:
                return None
            return Dimension(noun.table.table)
        link = reading.column(index)
        if link is None or (reading.is_measure(link)):
            return None
        return self._attribute_in_role(index, link) or column_dimension(reading, link)

    def _attribute_in_role(self, index: int, link: Link) -> Dimension | None:
        """The column of the table that a reference right before it points to: `by destination city`; else None."""
        reading = self._reading
        after = reading.noun(index + 1)
        for edge in reading.facts(link.table).edges if after is not None and not after.is_value else ():
            own = reading.pick(index + 1, lambda other, edge=edge: other.table == edge.parent)  # type: ignore[misc]
            if edge.columns == (link.column,) and own is not None and not reading.is_measure(own):
                reading.use(index + 1)
                return Dimension(own.table, own.column, via=link.column)
        return None

    def _orders(self) -> bool:
        """Whether the question ranks, so that "by" and a measure say the order."""
        return self._reading.has("rank", "top", "super")


def column_dimension(reading: Reading, link: Link) -> Dimension:
    """The group that a column stands for.

    A reference stands for the table it points to, a name for its own table; a time is cut to its day.
    """
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
