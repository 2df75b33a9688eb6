"""The state of understanding one question: what each mark names, and which marks have been used.

Every mark with a meaning has to be used by something. `leftovers` gives those that were not, and the planner then
refuses, because it would answer only a part of the question.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from common.values import Column
from knowledge.atoms import listed
from rules.linking.linking import Linker, Noun
from rules.linking.marks import Mark
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import OPPOSITE, Condition, Operator
from rules.query.refusals import ambiguous_column
from rules.schema.lexicon import Lexicon
from rules.schema.links import Link
from rules.schema.schema import Facts, TableKey, is_year, kind_of

# Words that may stand between two words that belong together.
TIES = ("noise", "of", "unit", "verb")
# Words of these kinds change the answer, so a question in which one is unused is not answered.
_MEANINGFUL = frozenset(
    listed(
        "not null notnull cmp between like named super top rank share avg_per per_entity min max avg sum each "
        "bucket trend or "
        "date_which date_part except_end range compare above_average below_average unsupported deleted count "
        "inclusion"
    )
)


# When neighbours are looked for, used words of these kinds are passed over, and so are used names.
_TAKEN_OUT = (
    "cmp",
    "not",
    "between",
    "null",
    "notnull",
    "like",
    "distinct",
    "share",
    "trend",
    "compare",
    "deleted",
    "named",
)


_NAME_WORDS = frozenset(listed("name names full_name 名称 名字 姓名 名")) | {"full name", "full names"}
_POINTS = re.compile("that|this|[这那]")
_CLEAR = 0.6
_CLEARLY_LESS = 0.2
_MOST_CHOICES = 5  # columns that a question back names at most
_COUNTS_ROWS = re.compile("[条行]|记录")
ColumnIdentity = tuple[TableKey, str | None]


def _without(mark: Mark, avoided: frozenset[ColumnIdentity]) -> Mark:
    """The mark without its links to these columns, unless it links to no other column."""
    links = tuple(link for link in mark.links if link.kind != "column" or (link.table, link.column) not in avoided)
    return replace(mark, links=links) if any(link.kind == "column" for link in links) else mark


class Reading:
    """The mutable state of understanding one question.

    Args:
        hint: the table that the caller says the question is about.
        avoided: columns that no word is taken for, unless it can mean nothing else.
        context: tables that earlier questions were about, with their weight; a table named in this question weighs 1.
        asks_back: whether a word that may mean several columns is refused; else the first of them is taken.
        settled: what the user has said when asked back.

    Attributes:
        used: places of the marks that some part of the structure has used.
        skip_used: whether `beside` passes over used names and conditions.
    """

    def __init__(
        self,
        marks: tuple[Mark, ...],
        lexicon: Lexicon,
        hint: str | None,
        is_chinese: bool,
        avoided: frozenset[ColumnIdentity] = frozenset(),
        context: Mapping[TableKey, float] | None = None,
        *,
        asks_back: bool = True,
        settled: Settled = NOTHING_SETTLED,
    ) -> None:
        marks = tuple(_without(mark, avoided) for mark in marks) if avoided else marks
        self.marks = marks
        self.lexicon, self.schema, self.graph = lexicon, lexicon.schema, lexicon.graph
        self.is_chinese = is_chinese
        self.nouns = Linker(lexicon, lexicon.graph, hint, context).nouns(marks)
        self._asks_back = asks_back
        self.settled = settled
        self.used: set[int] = set()
        self.skip_used = False

    def __len__(self) -> int:
        return len(self.marks)

    def use(self, *indexes: int) -> None:
        """Marks these places as used."""
        self.used.update(indexes)

    def free(self, index: int) -> bool:
        """Whether the mark exists and has not been used."""
        return 0 <= index < len(self.marks) and index not in self.used

    def noun(self, index: int | None) -> Noun | None:
        """What the mark names; None when it is used or names nothing."""
        return self.nouns[index] if index is not None and self.free(index) else None

    def having(self, *kinds: str) -> Iterator[int]:
        """The places of unused marks whose intent is of one of these kinds, without those that are names."""
        return (
            index
            for index, mark in enumerate(self.marks)
            if index not in self.used and mark.means(*kinds) and not self._is_named(index)
        )

    def has(self, *kinds: str) -> bool:
        """Whether any mark, used or not, has such an intent."""
        return any(mark.means(*kinds) for mark in self.marks)

    def _is_named(self, index: int) -> bool:
        return (
            self.nouns[index] is not None and self.marks[index].quality >= 0.7 and not self.marks[index].means("count")
        )

    def beside(self, index: int, step: int, skip: tuple[str, ...] = TIES, *, through_used: bool = True) -> int | None:
        """The nearest place before (-1) or after (+1) that is not passed over; None at the end of the question.

        Words of the kinds `skip` are passed over, because they only connect others. If `skip_used` is set, used names
        and conditions are too, unless `through_used` is false.
        """
        place = index + step
        while 0 <= place < len(self.marks) and self._is_passed(place, skip, through_used):
            place += step
        return place if 0 <= place < len(self.marks) else None

    def _is_passed(self, place: int, skip: tuple[str, ...], through_used: bool) -> bool:
        if self.skip_used and through_used and place in self.used:
            return self.nouns[place] is not None or self.marks[place].means(*_TAKEN_OUT)
        return self.marks[place].means(*skip) and self.nouns[place] is None

    def free_beside(self, index: int, step: int, skip: tuple[str, ...] = TIES) -> int | None:
        """As `beside`; None when that mark is used."""
        place = self.beside(index, step, skip)
        return place if place is not None and self.free(place) else None

    def find(self, start: int, step: int, accept: Callable[[int], bool]) -> int | None:
        """The first place from `start` in a direction whose mark is unused and accepted; None when there is none."""
        place = start
        while 0 <= place < len(self.marks):
            if self.free(place) and accept(place):
                return place
            place += step
        return None

    # ------------------------------------------------------------------------------------------------------- context

    def negated(self, index: int, operator: Operator) -> Operator:
        """The operator, or its opposite when a negation stands right before; uses up the negation."""
        place = self.free_beside(index, -1, ("noise", "cmp", "with"))
        if place is not None and self.marks[place].means("not") and operator in OPPOSITE:
            self.use(place)
            return OPPOSITE[operator]
        return operator

    def is_equality(self, index: int) -> bool:
        """Whether the mark says that something is or is not something."""
        return self.marks[index].means("cmp") and self.marks[index].arg in ("=", "!=")

    def asks_for(self, index: int) -> bool:
        """Whether the mark asks for something; 谁 always does, the "who" of "customers who ordered" does not."""
        mark = self.marks[index]
        if not mark.means("which") or mark.arg == "kind" or (mark.arg == "sort" and index in self.used):
            return False
        before = self.nouns[index - 1] if index else None
        return self.is_chinese or not (self.marks[index].arg == "person" and before is not None and before.is_table)

    def is_number(self, index: int) -> bool:
        """Whether the mark is a number."""
        return self.marks[index].number is not None

    def is_ordinal(self, index: int) -> bool:
        """Whether the number says how many rows are wanted, and is not compared with anything."""
        after = self.beside(index, 1)
        before = self.beside(index, -1)
        neighbours = [self.marks[place] for place in (before, after) if place is not None]
        return any(mark.means("top", "super", "rank") for mark in neighbours)

    def measured_beside(self, index: int, step: int) -> tuple[int, Link] | None:
        """The place and column of the nearest noun, if it is a measure; words that connect or count are passed over."""
        place = self.free_beside(index, step, ("noise", "of", "unit", "distinct", "count"))
        if place is None or self.nouns[place] is None:
            return None
        link = self.measure(place)
        return (place, link) if link is not None else None

    def use_by_before(self, index: int) -> None:
        """Uses up a word for "by" or "each" right before."""
        before = self.free_beside(index, -1)
        if before is not None and self.marks[before].means("by", "each"):
            self.use(before)

    def is_followed_by_figure(self, index: int) -> bool:
        """Whether a count or measure right after the noun belongs to it (`服务区和店铺数量` counts only shops)."""
        after = index + 1
        return self.free(after) and (self.marks[after].means("count") or self.measure(after) is not None)

    def counts_rows(self, index: int) -> bool:
        """Whether the number at this place counts rows of the table after it: `列出10个客户`, "show 10 customers"."""
        after = self.beside(index, 1)
        noun = self.nouns[after] if after is not None else None
        number = self.marks[index].number
        whole = number is not None and number.value == int(number.value) and number.value > 0
        return whole and noun is not None and noun.is_table

    # ------------------------------------------------------------------------------------------------- about columns

    def facts(self, key: TableKey) -> Facts:
        """What a table is for."""
        return self.schema.facts[key]

    def column_of(self, link: Link) -> Column:
        """The column a link means."""
        assert link.column is not None
        return self.schema.column(link.table, link.column)

    def kind(self, link: Link) -> str:
        """The kind of values of the link's column."""
        return "number" if link.derived else kind_of(self.column_of(link))

    def pick(self, index: int, accept: Callable[[Link], bool] | None = None) -> Link | None:
        """The column the mark names, among those accepted.

        Raises:
            Refusal: two columns of different tables are equally likely.
        """
        noun = self.nouns[index]
        if noun is None or not noun.columns:
            return None
        scored = [item for item in noun.columns if accept is None or accept(item[1])]
        if not scored:
            return None
        best_score, best = scored[0]
        rivals = [
            link
            for score, link in scored
            if score >= best_score - 0.015 and link.table != best.table and abs(link.quality - best.quality) <= 0.02
        ]
        rivals = [link for link in rivals if not self._same_key(best, link)]
        if rivals and self._asks_back:
            return self.chosen_of(self.marks[index].text, [best, *rivals][:_MOST_CHOICES])
        return best

    def chosen_of(self, word: str, links: Sequence[Link]) -> Link:
        """The one of several columns that the user has chosen for the word.

        Raises:
            Refusal: the user has not chosen yet; it asks back.
        """
        choices = [(link.table, str(link.column)) for link in links]
        chosen = self.settled.among(choices)
        if chosen is None:
            raise ambiguous_column(word, choices, self.lexicon)
        return next(link for link in links if (link.table, link.column) == chosen)

    def named_thing(self, index: int) -> TableKey | None:
        """The table whose names "name" or 名称 means: the one beside the word, else the only one in the question."""
        if self.marks[index].text.lower() not in _NAME_WORDS:
            return None
        steps = (-1, 1) if self.is_chinese else (1, -1)
        for step in steps:
            place = self.beside(index, step, ("noise", "of", "each", "and"), through_used=False)
            noun = self.nouns[place] if place is not None else None
            if noun is not None and noun.is_table and noun.table is not None and self.facts(noun.table.table).display:
                return noun.table.table
        named = [key for key in set(self.named_tables()) if self.facts(key).display]
        return named[0] if len(named) == 1 else None

    def named_tables(self) -> list[TableKey]:
        """The tables that words of the question name, in order."""
        return [noun.table.table for noun in self.nouns if noun is not None and noun.is_table and noun.table]

    def rows_named(self, index: int) -> TableKey | None:
        """The table whose rows are meant by a word that alone would mean a figure: "revenue records", `营收有几条`."""
        noun = self.nouns[index]
        if noun is None or noun.is_value or not any(self._says_rows(index, step) for step in (1, -1)):
            return None
        if noun.table is not None:
            return noun.table.table
        return noun.column.table if noun.column is not None and not self.is_measure(noun.column) else None

    def counts_conditions(self, condition: Condition) -> bool:
        """Whether a count of nothing but a condition counts rows; in a table of reports only if rows are mentioned."""
        spoken = any(mark.means("noise") and mark.arg == "rows" for mark in self.marks)
        return spoken or condition.operator in ("null", "not null") or not self.facts(condition.column.table).is_report

    def _says_rows(self, index: int, step: int) -> bool:
        place = index + step
        while 0 <= place < len(self.marks) and self.marks[place].means("noise", "of", "count", "with", "unit"):
            mark = self.marks[place]
            if mark.arg == "rows" or (mark.means("count") and _COUNTS_ROWS.search(mark.text)):
                return True
            place += step
        return False

    def column(self, index: int) -> Link | None:
        """The column the mark names. A measure comes before a date whose name only contains the word.

        Raises:
            Refusal: two columns of different tables are equally likely.
        """
        best = self.pick(index)
        if best is not None and self.is_date(best) and best.quality < 0.95:
            measure = self.measure(index)
            return measure if measure is not None and measure.quality >= 0.7 else best
        return best

    def _same_key(self, first: Link, second: Link) -> bool:
        """Whether it doesn't matter which is meant, because one references the other, or both reference the same."""
        for one, other in ((first, second), (second, first)):
            for edge in self.facts(one.table).edges:
                if edge.columns == (one.column,) and edge.parent == other.table:
                    return True
        first_edges = {(edge.columns, edge.parent) for edge in self.facts(first.table).edges}
        second_edges = {(edge.columns, edge.parent) for edge in self.facts(second.table).edges}
        return any(columns == (first.column,) == (second.column,) for columns, _ in first_edges & second_edges)

    def measure(self, index: int) -> Link | None:
        """The measure that the mark names; None when it names none."""
        noun = self.nouns[index]
        if noun is None or noun.is_value:
            return None
        return self.pick(index, self.is_measure)

    def plain_measure(self, index: int) -> Link | None:
        """The measure that the mark names, unless the word more likely means a table or another column."""
        noun, link = self.nouns[index], self.measure(index)
        if noun is None or link is None:
            return link
        if link.quality < max(other.quality for _, other in noun.columns) - _CLEARLY_LESS:
            return None  # `营业` is a part of 营业日期 rather than of 营业收入金额
        if not noun.is_table or noun.table is None:
            return link
        of_another = self.facts(noun.table.table).is_entity and link.table != noun.table.table
        return None if of_another or link.quality < noun.table.quality - 0.08 else link

    def measure_called(self, names: Iterable[str]) -> Link | None:
        """The only measure in the tables that has one of these names; None when there is none, or several are."""
        links = [link for name in names for link in self.lexicon.find(name)]
        found = {
            (link.table, link.column): link
            for link in links
            if link.kind == "column" and link.quality >= _CLEAR and self.schema.table(link.table).kind == "table"
            if self.is_measure(link)
        }
        return next(iter(found.values())) if len(found) == 1 else None

    def is_measure(self, link: Link) -> bool:
        """Whether totals or averages of the link's column mean something."""
        return link.derived is not None or self.facts(link.table).is_measure(self.column_of(link))

    def is_date(self, link: Link) -> bool:
        """Whether the link's column holds dates."""
        return self.kind(link) in ("date", "timestamp")

    def is_year(self, link: Link) -> bool:
        """Whether the link's column holds years as numbers."""
        return is_year(self.column_of(link))

    # ------------------------------------------------------------------------------------------------------ leftovers

    def unknown(self) -> list[Mark]:
        """Unused words that name nothing and may not be passed over."""
        return [
            mark
            for index, mark in enumerate(self.marks)
            if mark.is_unknown and not mark.is_skippable and index not in self.used
        ]

    def widened(self, mark: Mark) -> str:
        """The unknown word with single characters beside it that were taken for words (`星巴` + `克`)."""
        place = self.marks.index(mark)
        text = mark.text
        for step in (-1, 1):
            other = place + step
            while 0 <= other < len(self.marks) and self._is_scrap(other, place):
                text = self.marks[other].text + text if step == -1 else text + self.marks[other].text
                other += step
        return text

    def _is_scrap(self, index: int, unknown: int) -> bool:
        mark = self.marks[index]
        glued = self.marks[max(index, unknown)].glued if abs(index - unknown) == 1 else mark.glued
        return glued and len(mark.text) == 1 and not mark.text.isascii() and mark.means("unit") and not mark.links

    def leftovers(self) -> list[Mark]:
        """The marks with a meaning that nothing has used."""
        return [mark for index, mark in enumerate(self.marks) if index not in self.used and self._matters(index)]

    def stray_groups(self) -> list[Mark]:
        """Unused words for "by" before something that is no group or order; not the "by" of "albums by AC/DC"."""
        found: list[Mark] = []
        for index, mark in enumerate(self.marks):
            after = self.beside(index, 1, ("noise",), through_used=False)
            if mark.means("by") and index not in self.used and after is not None and not self._is_stated(after):
                found.append(mark)
        return found

    def _is_stated(self, index: int) -> bool:
        """Whether the mark is a value that a condition has taken."""
        noun = self.nouns[index]
        said = self.marks[index].literal is not None or (noun is not None and noun.is_value)
        return index in self.used and said

    def _matters(self, index: int) -> bool:
        mark = self.marks[index]
        if mark.is_unknown or mark.literal is not None or mark.date is not None:
            return not mark.is_skippable
        if mark.number is not None:
            return not (mark.text in ("一", "one") or mark.means("noise", "unit"))
        if self.nouns[index] is not None and not mark.means(
            "noise", "list", "which", "count", "of", "unit", "with", "and"
        ):
            return True
        if mark.means("date_part") and index and _POINTS.match(self.marks[index - 1].text.lower()):
            return False  # `那个月`, "that month" points at an earlier answer
        if mark.means("date_part") and self.has("top", "super"):
            return True  # "top 3 days": if the days were ignored, something else would be ranked
        if mark.means("cmp") and mark.arg == "=":
            return False  # 是 and 为 are copulas unless a value follows
        return mark.intent is not None and mark.intent.kind in _MEANINGFUL
