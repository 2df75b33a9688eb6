"""What a question says itself, seen as a change to the one before it, and what that one must have for it."""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from common.meanings import TableKey
from common.text import Text
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Figure, Function, Query
from rules.query.refusals import Refusal, missing_measure, nothing_to_change, unused_words
from rules.reading.inclusions import Inclusion
from rules.reading.parts import Named, Parts, Ranking, Reading
from rules.schema.links import column_link
from rules.words import WORDS


@dataclass(frozen=True)
class Earlier:
    """The question that a follow-up goes on from.

    Attributes:
        is_latest: whether no other question about the data came after it, answered or not.
    """

    question: str
    query: Query
    is_latest: bool


@dataclass
class Change:
    """What a question changes about the one before it.

    Attributes:
        asked: its own parts; `function`, `direction` and figures that only count are taken out of them.
        cues: what it says about the earlier question, anywhere; see `rules.words.vocabulary`.
        ties: the cues that its first or last words are.
        function: an aggregate without a column; it applies to the earlier figure.
        direction: an order (`asc`, `desc`) that names no column.
        counts_value: whether rows with a named value are counted ("how many professors").
        inclusion: the words which say that groups without rows count.
        notes: what the answer says of the change.
    """

    asked: Asked
    reading: Reading
    cues: set[str] = field(default_factory=set)
    ties: frozenset[str] = frozenset()
    function: Function | None = None
    direction: str = ""
    counts_value: bool = False
    inclusion: Inclusion | None = None
    notes: list[Text] = field(default_factory=list)

    @property
    def parts(self) -> Parts:
        """What the question says itself."""
        return self.asked.parts

    @property
    def figures(self) -> list[Figure]:
        """The figures that it names, in their order."""
        return sorted([*self.parts.figures, *self.parts.bare], key=lambda figure: figure.position)

    @property
    def ranking(self) -> Ranking | None:
        """The order or the first few that it asks for."""
        found = self.parts.rankings
        if not found:
            return None
        first = next((one for one in found if one.figure is not None or one.hint), found[0])
        descending = next((one.descending for one in found if not one.is_open), first.descending)
        limit = next((one.limit for one in found if one.limit is not None), None)
        return replace(first, descending=descending, limit=limit, is_order=all(one.is_order for one in found))

    @property
    def shift(self) -> tuple[str, int] | None:
        """Unit (or `period`: the earlier period's length) and count by which the earlier period moves."""
        found = next((one.split(":") for one in self.cues if one.startswith("shift:")), None)
        return (found[1], int(found[2])) if found else None

    @property
    def may_be_from_today(self) -> bool:
        """Whether the shift is one from today where the earlier question has no period: "the previous year"."""
        return any(one.startswith("shift:") and one.endswith(":last") for one in self.cues)

    @property
    def per_unit(self) -> str:
        """A unit of time over which the earlier figure is to be averaged."""
        return next((one.split(":")[1] for one in self.parts.flags if one.startswith("per_unit:")), "")

    @property
    def has_subject(self) -> bool:
        """Whether it names what it wants."""
        parts = self.parts
        ranked = any(one.figure is not None and (parts.groups or not one.is_order) for one in parts.rankings)
        named = (parts.tables or parts.columns) and not self.lifts
        return bool(named or self.figures or ranked or self.asked.says("per_entity"))

    @property
    def restricts(self) -> bool:
        """Whether it has any condition."""
        parts = self.parts
        conditions = parts.conditions or parts.thresholds or parts.spans or parts.weekdays or parts.either
        return bool(conditions or parts.related or parts.with_deleted)

    @property
    def lists_rows(self) -> bool:
        """Whether it only asks for the rows themselves: "list them", `列出来`."""
        words = [word for word in self.asked.question.words if not word.mark.means("noise", "unit")]
        return bool(words) and all(word.mark.means("list", "which") and word.noun is None for word in words)

    @property
    def has_slots(self) -> bool:
        """Whether it says anything that a change can consist of."""
        parts = self.parts
        wishes = any(self.asked.says(one) for one in ("trend", "share", "compare", "growth"))
        shapes = parts.groups or parts.rankings or parts.limits or wishes or self.inclusion
        turns = self.direction or self.shift or self.takes_away or self.cues & {"reverse", "all:dates"}
        figures = self.function or self.per_unit
        return bool(self.restricts or shapes or turns or figures or self.lists_rows)

    @property
    def says_more_than_all(self) -> bool:
        """Whether it says more than "all", so that "all" only belongs to the rest."""
        rest = replace(self, cues=self.cues - {"all", "all:dates"})
        return not self.asked.says("lifts") and (self.has_subject or rest.has_slots)

    @property
    def takes_away(self) -> bool:
        """Whether it takes restrictions away."""
        return "all" in self.cues or self.asked.says("lifts")

    @property
    def lifts(self) -> frozenset[tuple[TableKey, str | None]]:
        """Columns, or tables (column None), whose conditions it removes (`不限省份`)."""
        if not self.takes_away or self.figures or self.restricts or self.asks:
            return frozenset()
        return frozenset((one.link.table, one.link.column) for one in (*self.asked.tables, *self.parts.columns))

    @property
    def asks(self) -> bool:
        """Whether it asks for rows of a table that it names, or counts them."""
        question = self.asked.question
        counted = any(figure.link is None for figure in self.parts.figures)
        if counted and any(_COUNTS.match(text) for text in question.texts("count")):
            return True
        which = [text for text in question.texts("which") if self.restricts or _WHICH_ONES in text]
        return bool(self.asked.tables and (which or question.has("list")) and not self.figures)

    @property
    def ranks_within(self) -> bool:
        """Whether the limit applies within each group: `每个公司的前三名`."""
        return any(one.mark.means("each") or one.text in ("in each", "per") for one in self.asked.question.words)

    def figures_among(self, columns: Iterable[ColumnRef]) -> list[ColumnRef]:
        """Those of the columns whose totals or averages mean something."""
        return [one for one in columns if self.asked.question.is_measure(column_link(one.table, one.column))]

    def unplaced(self, named: Iterable[Named | Ranking]) -> Refusal:
        """The refusal of what it names and the earlier question has no place for."""
        return unused_words([self.asked.question.words[one.at].mark.text for one in named])

    def no_measure(self, query: Query) -> Refusal:
        """The refusal of a figure that could be any of the table's."""
        facts = self.asked.question.facts(query.base)
        return missing_measure(called(facts.table), facts)

    @property
    def asks_number(self) -> bool:
        """Whether it asks for a number in words of totals: `一共多少`."""
        return any(_ASKS_NUMBER.match(text) for text in self.asked.question.texts("sum"))

    @property
    def counts_periods(self) -> bool:
        """Whether all it asks is how many months, or other units, there are: `一共多少个月`."""
        is_number = self.asked.says("how_many") or self.asks_number
        return is_number and self.asked.says("periods") and not (self.has_subject or self.restricts)

    @property
    def is_figure_alone(self) -> bool:
        """Whether it names a figure and nothing else."""
        parts = self.parts
        others = self.asked.tables or parts.columns or parts.groups or parts.rankings or self.restricts
        return bool(self.figures) and not others

    @property
    def is_half_ranked(self) -> bool:
        """Whether it ranks things by the figure of the earlier question: `前5个服务区`."""
        half = [one for one in self.parts.rankings if one.figure is None and not one.hint]
        others = self.parts.columns and not self.asked.question.has("which")
        return bool(half and not self.figures and not others)


_ONLY_FIRST = Text("可以汇总的完整结果，只列出了前几条", "complete result to add up, only its first rows")
_ONLY_SOME = Text("可以汇总的完整结果，只列出了一部分分组", "complete result to add up, only some of its groups")
_NO_TOTALS = Text("可以相加的合计或数量", "totals or counts to add up")
_ASKS_NUMBER = WORDS.chinese.pattern("questions.asks_number", "^", "$")
_COUNTS = re.compile(WORDS.any_of("questions.how_many"), re.IGNORECASE)
_WHICH_ONES = WORDS.chinese.text("questions.which_ones")


# ------------------------------------------------------------------------------------------- what the earlier must have


def must_have(found: object, what: Text) -> None:
    """Refuses a follow-up that changes `what` the earlier question has not."""
    if not found:
        raise nothing_to_change(what)


class ShownInPart(Refusal):
    """A figure of what was shown, of which no statement tells. No other reading of the question is tried."""

    def __init__(self, what: Text) -> None:
        super().__init__("ambiguous_question", nothing_to_change(what).text)


def refuse_rows_in_part(query: Query) -> None:
    """Refuses a figure over listed rows of which only the first were shown.

    Raises:
        Refusal: the statement would take in the others as well.
    """
    if query.limit is not None:
        raise ShownInPart(_ONLY_FIRST)


def refuse_part(query: Query, cues: Set[str], function: Function) -> None:
    """Refuses a function over rows or groups of which only some were shown, or of figures that it can't add up.

    Raises:
        Refusal: a statement without the limit, or without the groups' comparison, would take in the others as well.
    """
    adds_up = function == "sum" and bool(query.dimensions)
    if "these" in cues or adds_up or not query.measures:
        refuse_rows_in_part(query)
    if adds_up and query.having:
        raise ShownInPart(_ONLY_SOME)
    if "these" in cues and adds_up and any(one.function not in ("sum", "count") for one in query.measures):
        raise ShownInPart(_NO_TOTALS)
