"""A follow-up as a change to the question before it, and the refusals of changes that don't fit."""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from common.meanings import TableKey
from common.text import Text
from knowledge.language.spoken_names import called
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
    """A follow-up, read as a change to the question before it.

    Attributes:
        asked: its own parts; `function`, `direction` and figures that only count are taken out of
            them.
        cues: the references to the earlier question that it has anywhere; see
            `rules.words.vocabulary`.
        ties: the cues that its first or last words are.
        function: an aggregate without a column; it applies to the earlier figure.
        direction: an order (`asc`, `desc`) that names no column.
        counts_value: whether rows with a named value are counted ("how many professors").
        inclusion: the words which say that groups without rows count.
        notes: sentences that the answer adds about the change.
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
        """Return the parts that the question itself states."""
        return self.asked.parts

    @property
    def figures(self) -> list[Figure]:
        """Return the figures that it names, in their order."""
        return sorted([*self.parts.figures, *self.parts.bare], key=lambda figure: figure.position)

    @property
    def ranking(self) -> Ranking | None:
        """Return the order or the first few that it asks for, as one ranking."""
        found = self.parts.rankings
        if not found:
            return None

        with_key = [one for one in found if one.figure is not None or one.hint]
        first = next(iter(with_key), found[0])
        directions = [one.descending for one in found if not one.is_open]
        limits = [one.limit for one in found if one.limit is not None]
        return replace(
            first,
            descending=next(iter(directions), first.descending),
            limit=next(iter(limits), None),
            is_order=all(one.is_order for one in found),
        )

    @property
    def _shift_cue(self) -> list[str]:
        """Return the fields of the cue `shift:UNIT:COUNT` or `shift:UNIT:COUNT:last`; none without
        one.
        """
        for cue in self.cues:
            if cue.startswith("shift:"):
                return cue.split(":")

        return []

    @property
    def shift(self) -> tuple[str, int] | None:
        """Return by how much the earlier period moves.

        A unit (or `period`: the earlier period's length) and the number of them.
        """
        cue = self._shift_cue
        if not cue:
            return None

        return cue[1], int(cue[2])

    @property
    def may_be_from_today(self) -> bool:
        """Tell whether the shift counts from today if the earlier question has no period.

        It does in "the previous year".
        """
        return self._shift_cue[-1:] == ["last"]

    @property
    def per_unit(self) -> str:
        """Return the unit of time over which the earlier figure is to be averaged, or ""."""
        for flag in self.parts.flags:
            if flag.startswith("per_unit:"):
                return flag.split(":")[1]

        return ""

    @property
    def has_subject(self) -> bool:
        """Tell whether it names the thing or the figure that it asks for."""
        parts = self.parts
        names_thing = any((parts.tables, parts.columns)) and not self.lifts
        if any((self.figures, self.asked.says("per_entity"), names_thing)):
            return True

        for ranking in parts.rankings:
            is_mere_order = ranking.is_order and not parts.groups
            if ranking.figure is not None and not is_mere_order:
                return True

        return False

    @property
    def restricts(self) -> bool:
        """Tell whether it has any condition."""
        parts = self.parts
        conditions = (
            parts.conditions,
            parts.thresholds,
            parts.either,
            parts.spans,
            parts.weekdays,
            parts.related,
            parts.with_deleted,
        )
        return any(conditions)

    @property
    def lists_rows(self) -> bool:
        """Tell whether it only asks for the rows themselves: "list them", `列出来`."""
        asks_for_rows = False
        for word in self.asked.question.words:
            if word.mark.means("noise", "unit"):
                continue
            if word.noun is not None or not word.mark.means("list", "which"):
                return False

            asks_for_rows = True

        return asks_for_rows

    @property
    def has_slots(self) -> bool:
        """Tell whether it says anything that a change can consist of."""
        parts = self.parts
        changed = (
            self.restricts,
            self.takes_away,
            self.lists_rows,
            self.function,
            self.per_unit,
            self.direction,
            self.shift,
            self.inclusion,
            parts.groups,
            parts.rankings,
            parts.limits,
            self.cues & {"reverse", "all:dates"},
        )
        return any(changed) or any(map(self.asked.says, ("trend", "share", "compare", "growth")))

    @property
    def says_more_than_all(self) -> bool:
        """Tell whether it says more than "all", so that "all" only belongs to the rest."""
        if self.asked.says("lifts"):
            return False

        rest = replace(self, cues=self.cues - {"all", "all:dates"})
        return self.has_subject or rest.has_slots

    @property
    def takes_away(self) -> bool:
        """Tell whether it takes restrictions away."""
        return "all" in self.cues or self.asked.says("lifts")

    @property
    def lifts(self) -> frozenset[tuple[TableKey, str | None]]:
        """Return the columns, or tables (column None), whose conditions it removes: `不限省份`."""
        if not self.takes_away:
            return frozenset()
        if any((self.figures, self.restricts, self.asks)):
            return frozenset()

        named = (*self.asked.tables, *self.parts.columns)
        return frozenset((one.link.table, one.link.column) for one in named)

    @property
    def asks(self) -> bool:
        """Tell whether it asks for rows of a table that it names, or counts them."""
        question = self.asked.question
        counts_rows = any(figure.link is None for figure in self.parts.figures)
        if counts_rows and any(map(_COUNTS.match, question.texts("count"))):
            return True
        if not self.asked.tables or self.figures:
            return False
        if question.has("list"):
            return True

        which = question.texts("which")
        if self.restricts:
            return bool(which)

        return any(_WHICH_ONES in text for text in which)

    @property
    def ranks_within(self) -> bool:
        """Tell whether the limit applies within each group: `每个公司的前三名`."""
        question = self.asked.question
        if question.has("each"):
            return True

        return any(word.text in ("in each", "per") for word in question.words)

    def figures_among(self, columns: Iterable[ColumnRef]) -> list[ColumnRef]:
        """Return the columns whose totals or averages mean something."""
        is_measure = self.asked.question.is_measure
        return [
            column for column in columns if is_measure(column_link(column.table, column.column))
        ]

    def unplaced(self, named: Iterable[Named | Ranking]) -> Refusal:
        """Return the refusal of names that do not fit into the earlier question."""
        return unused_words([self.asked.question.words[one.at].mark.text for one in named])

    def no_measure(self, query: Query) -> Refusal:
        """Return the refusal of a figure that could be any of the table's."""
        facts = self.asked.question.facts(query.base)
        return missing_measure(called(facts.table), facts)

    @property
    def asks_number(self) -> bool:
        """Tell whether it asks for a number in words of totals: `一共多少`."""
        return any(map(_ASKS_NUMBER.match, self.asked.question.texts("sum")))

    @property
    def counts_periods(self) -> bool:
        """Tell whether it only asks how many months, or other units, there are: `一共多少个月`."""
        if not self.asked.says("periods"):
            return False
        if self.has_subject or self.restricts:
            return False

        return self.asked.says("how_many") or self.asks_number

    @property
    def is_figure_alone(self) -> bool:
        """Tell whether it names a figure and nothing else."""
        parts = self.parts
        others = (
            self.asked.tables,
            parts.columns,
            parts.groups,
            parts.rankings,
            self.restricts,
        )
        return bool(self.figures) and not any(others)

    @property
    def is_half_ranked(self) -> bool:
        """Tell whether it ranks things by the figure of the earlier question: `前5个服务区`."""
        if self.figures:
            return False

        names_columns = bool(self.parts.columns) and not self.asked.question.has("which")
        if names_columns:
            return False

        without_key = [ranking for ranking in self.parts.rankings if ranking.figure is None]
        return any(not one.hint for one in without_key)


_ONLY_FIRST = Text(
    "可以汇总的完整结果，只列出了前几条", "complete result to add up, only its first rows"
)
_ONLY_SOME = Text(
    "可以汇总的完整结果，只列出了一部分分组", "complete result to add up, only some of its groups"
)
_NO_TOTALS = Text("可以相加的合计或数量", "totals or counts to add up")
_ASKS_NUMBER = WORDS.chinese.pattern("questions.asks_number", "^", "$")
_COUNTS = re.compile(WORDS.any_of("questions.how_many"), re.IGNORECASE)
_WHICH_ONES = WORDS.chinese.text("questions.which_ones")


# ------------------------------------------------------------------------------
# requirements on the earlier question


def must_have(found: object, what: Text) -> None:
    """Refuse a follow-up that changes something which the earlier question does not have.

    Args:
        found: true if the earlier question has it.
        what: its name for the refusal.
    """
    if not found:
        raise nothing_to_change(what)


class ShownInPart(Refusal):
    """A figure of shown rows that no statement can select again.

    No other reading of the question is tried after it.
    """

    def __init__(self, what: Text) -> None:
        super().__init__("ambiguous_question", nothing_to_change(what).text)


def refuse_rows_in_part(query: Query) -> None:
    """Refuse a figure over listed rows of which only the first were shown.

    Raises:
        Refusal: the statement would take in the others as well.
    """
    if query.limit is not None:
        raise ShownInPart(_ONLY_FIRST)


def refuse_part(query: Query, cues: Set[str], function: Function) -> None:
    """Refuse a function over rows or groups of which only some were shown.

    Also a sum of figures that can't be added up.

    Raises:
        Refusal: a statement without the limit, or without the groups' comparison, would take in the
            others as well.
    """
    means_shown = "these" in cues
    sums_groups = function == "sum" and bool(query.dimensions)
    if any((means_shown, sums_groups, not query.measures)):
        refuse_rows_in_part(query)
    if not sums_groups:
        return
    if query.having:
        raise ShownInPart(_ONLY_SOME)

    functions = {measure.function for measure in query.measures}
    if means_shown and not functions <= {"sum", "count"}:
        raise ShownInPart(_NO_TOTALS)
