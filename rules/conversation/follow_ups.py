"""Reads a question as a change to the one before it, and decides whether it is one.

A question that names what it wants is complete, whatever was said before. One that only has dates, values, groups, a
limit or an order needs the earlier question. Words such as 那, "what about" and "of those" make a complete question
continue the earlier one as well.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from common.text import language_of
from rules.conversation.planner import planned
from rules.linking.marks import Mark, marks_of
from rules.planning.heads import sort_heads, split_attributes
from rules.planning.plan import Plan
from rules.query.pending import NOTHING_SETTLED, Settled
from rules.query.query import Function
from rules.query.refusals import Refusal, unused_words
from rules.query.wishes import AGGREGATES, Figure
from rules.query.years import dated, this_year
from rules.reading.inclusions import Inclusion, without_inclusion
from rules.readers.reading import Reading
from rules.schema.lexicon import Lexicon
from rules.schema.links import column_link
from rules.schema.schema import TableKey
from rules.words import WORDS
from rules.words.talk import THANKS, without_courtesy
from rules.words.vocabulary import FOLLOW_UP_INTENTS


@dataclass
class Change:
    """What a question changes about the one before it.

    Attributes:
        plan: its own conditions, groups, figures, limits and things named.
        cues: what it says about the earlier question, anywhere; see `rules.words.vocabulary`.
        ties: the cues that its first or last words are.
        shift: unit (or `period`: the earlier period's length) and count by which the earlier period moves.
        function: an aggregate without a column; it applies to the earlier figure.
        per_unit: a unit of time over which the earlier figure is to be averaged.
        direction: an order (`asc`, `desc`) that names no column.
        counts_value: whether rows with a named value are counted ("how many professors").
        asks: whether it asks for things it names ("how many shops", "which companies").
        lifts: columns, or tables (column None), whose conditions it removes (`不限省份`).
        inclusion: the words which say that groups without rows count.
    """

    plan: Plan
    cues: frozenset[str] = frozenset()
    ties: frozenset[str] = frozenset()
    shift: tuple[str, int] | None = None
    function: Function | None = None
    per_unit: str = ""
    direction: str = ""
    counts_value: bool = False
    asks: bool = False
    lifts: frozenset[tuple[TableKey, str | None]] = frozenset()
    inclusion: Inclusion | None = None

    @property
    def figures(self) -> list[Figure]:
        """The figures that it names, in their order."""
        return sorted([*self.plan.asks.figures, *self.plan.bare], key=lambda figure: figure.position)

    @property
    def has_subject(self) -> bool:
        """Whether it names what it wants."""
        plan = self.plan
        grouped = bool(plan.asks.dimensions)
        ranked = any(one.figure is not None and (grouped or not one.is_order) for one in plan.asks.rankings)
        named = plan.tables or plan.projection or plan.asks.qualifiers
        return bool(named or self.figures or ranked or plan.asks.per_entity is not None)

    @property
    def restricts(self) -> bool:
        """Whether it has any condition."""
        filters = self.plan.filters
        return bool(
            filters.conditions or filters.thresholds or filters.spans or filters.related or filters.with_deleted
        )

    @property
    def has_slots(self) -> bool:
        """Whether it says anything that a change can consist of."""
        asks = self.plan.asks
        shapes = asks.dimensions or asks.rankings or asks.limit or asks.trend or asks.share or asks.compare
        turns = self.function or self.per_unit or self.direction or self.shift or self.lifts or self.inclusion
        return bool(self.restricts or shapes or turns or self.cues & {"reverse", "all", "all:dates"})

    @property
    def says_more_than_all(self) -> bool:
        """Whether it says more than "all", so that "all" only belongs to the rest."""
        return bool(self.has_subject or replace(self, cues=self.cues - {"all", "all:dates"}).has_slots)

    @property
    def is_half_ranked(self) -> bool:
        """Whether it ranks things by the figure of the earlier question: `前5个服务区`."""
        half = [one for one in self.plan.asks.rankings if one.figure is None and not one.hint]
        return bool(half and not self.figures and not self.plan.projection)

    @property
    def is_date_only(self) -> bool:
        """Whether it says nothing but a period."""
        filters, asks = self.plan.filters, self.plan.asks
        other = filters.conditions or filters.thresholds or filters.related or asks.dimensions or asks.rankings
        return bool(filters.spans) and not (other or self.function or self.direction or asks.limit)


def read_change(
    question: str,
    lexicon: Lexicon,
    *,
    hint: str | None = None,
    context: Mapping[TableKey, float] | None = None,
    year: str = "",
    asks_back: bool = True,
    settled: Settled = NOTHING_SETTLED,
) -> Change:
    """What the question says itself; the rest stays as in the earlier question.

    Args:
        context: the tables of the earlier question, with their weights.
        year: completes months and quarters that are said without a year.
        asks_back: whether a word with several meanings is refused; else the likeliest one is taken.

    Raises:
        Refusal: a word names nothing, or asks for what rules can't do.
    """
    text = THANKS.sub("", question) or question
    is_chinese = language_of(without_courtesy(question)) == "zh"
    marks = dated(marks_of(text, lexicon, FOLLOW_UP_INTENTS), settled.year or year, is_chinese)
    marks, inclusion = without_inclusion(marks)
    reading = Reading(marks, lexicon, hint, is_chinese, context=context, asks_back=asks_back, settled=settled)
    per_unit = _unit_averaged_over(reading)
    change = Change(planned(reading), per_unit=per_unit, inclusion=inclusion)
    sort_heads(change.plan)
    split_attributes(change.plan)
    _say_cues(change)
    _say_function(change)
    _say_limit(change)
    _say_direction(change)
    change.asks = _asks_for_things(change)
    _say_lifted(change)
    _say_settled(change)
    return change


def likely_change(question: str, lexicon: Lexicon, hint: str | None) -> Change | Refusal:
    """The likeliest reading of a question before it is known what it continues; or why there is none."""
    try:
        year = this_year(language_of(question) == "zh")
        return read_change(question, lexicon, hint=hint, year=year, asks_back=False)
    except Refusal as refusal:
        return refusal.copy()


def goes_on(change: Change | Refusal, question: str, stands_alone: Callable[[], bool]) -> bool:
    """Whether a question continues the one before it; `stands_alone` says whether it is complete by itself."""
    if isinstance(change, Refusal):
        return False
    if change.plan.reading.leftovers() or not (change.has_slots or change.has_subject):
        return False
    if change.counts_value:
        return bool(change.cues & _TIES) or not stands_alone()
    if not change.has_subject:
        return change.has_slots and not _is_small_talk(change, question)
    if "these" in change.cues:
        return True
    if change.asks or (change.is_half_ranked and not change.ties):
        return bool(change.ties & {"lead", "end"}) or (change.is_half_ranked and not stands_alone())
    if change.ties == {"only"}:
        return change.restricts or bool(change.plan.projection or change.figures)
    return bool(change.ties)


_TIES = frozenset({"lead", "end", "these", "replace", "add", "only"})
_SECOND_PERSON = WORDS.found("talk.citu.to_anybody")


def _is_small_talk(change: Change, question: str) -> bool:
    """Whether a question with nothing but a date or "all" asks for no data: `See you tomorrow`."""
    vague = change.is_date_only or not (change.restricts or change.plan.asks.rankings or change.plan.asks.dimensions)
    return vague and not change.cues & _TIES and bool(_SECOND_PERSON.search(question))


# --------------------------------------------------------------------------------------------------------------- cues

_ADDING_JOINTS = frozenset(WORDS.both("questions.adding"))
_TRAILING = frozenset({"end", "replace", "add", "these"})


def _say_cues(change: Change) -> None:
    reading = change.plan.reading
    marks = reading.marks
    said = {
        index: mark.arg for index, mark in enumerate(marks) if mark.means("noise") and mark.arg and not mark.is_unknown
    }
    for index, arg in list(said.items()):
        if reading.nouns[index] is not None and index not in reading.used:
            del said[index]
        elif arg.startswith("shift:"):
            _, unit, count = arg.split(":")
            change.shift = (unit, int(count))
    opening = next((index for index, mark in enumerate(marks) if not _opens(mark)), len(marks))
    ties = {arg for index, arg in said.items() if index < opening} | (
        {said[len(marks) - 1]} & _TRAILING if len(marks) - 1 in said else set()
    )
    ties = {"these" if arg == "their" else arg for arg in ties}
    if marks and marks[0].means("and"):
        ties.add("add" if marks[0].text.lower() in _ADDING_JOINTS else "lead")
    cues = set(said.values()) | ties
    misplaced = {"lead", "end", "their"} - ties
    change.cues = frozenset(cues - misplaced)
    change.ties = frozenset(ties & _TIES)


def _opens(mark: Mark) -> bool:
    """Whether a mark may stand before the first word with a meaning."""
    return mark.means("noise", "and", "list") and not mark.links


# -------------------------------------------------------------------------------------------------------------- slots


def _unit_averaged_over(reading: Reading) -> str:
    """The unit of time of an average that names no column: `日均呢`."""
    for index in list(reading.having("avg_per")):
        if reading.measured_beside(index, 1) is None and reading.measured_beside(index, -1) is None:
            reading.use(index)
            return reading.marks[index].arg
    return ""


def _say_function(change: Change) -> None:
    """Reads aggregates and counts that name no column."""
    plan = change.plan
    reading = plan.reading
    for figure in list(plan.asks.figures):
        if figure.link is None and reading.nouns[figure.position] is None:
            plan.asks.figures.remove(figure)
            change.counts_value = _counts_value(reading, figure.position)
            change.function = "count"
    for index in list(reading.having("avg", "sum", "max", "min", "count")):
        kind = str(reading.marks[index].intent.kind)  # type: ignore[union-attr]
        reading.use(index)
        if kind != "count":
            _refuse_verb_nouns(change)
            change.function = AGGREGATES[kind]
        elif reading.marks[index].text.lower() not in _HOW_MUCH and not change.figures:
            change.function = change.function or "count"


def _refuse_verb_nouns(change: Change) -> None:
    """Refuses an aggregate before a word that may be a verb or what is aggregated: `The average rent`.

    Raises:
        Refusal: there is such a word.
    """
    reading = change.plan.reading
    verbs = [mark.text for mark in reading.marks if mark.means("verb")]
    meant = [text for text in verbs if any(link.kind == "column" for link in reading.lexicon.find(text))]
    if meant:
        raise unused_words(meant)


def _counts_value(reading: Reading, index: int) -> bool:
    """Whether a count that names no table counts rows with the value beside it, or just rows."""
    nouns = [reading.nouns[place] for place in (index - 1, index + 1) if 0 <= place < len(reading)]
    return any(noun is not None and noun.is_value for noun in nouns) or any(
        mark.text.lower() in _RECORDS for mark in reading.marks
    )


_RECORDS = frozenset(WORDS.both("questions.rows"))
_HOW_MUCH = frozenset(WORDS.both("questions.how_much"))


def _say_limit(change: Change) -> None:
    """Reads a number that belongs to nothing else as a limit: `只要10个`, "just 5 of them"."""
    reading = change.plan.reading
    numbers = [(at, one.number.value) for at, one in enumerate(reading.marks) if one.number and reading.free(at)]
    if len(numbers) != 1 or change.plan.asks.limit is not None or change.plan.asks.rankings:
        return
    ((index, value),) = numbers
    counted = any(mark.means("unit", "noise") for mark in reading.marks[index + 1 : index + 2])
    counted = counted and value != 1  # "one more" and 再来一个 are no limits
    if (counted or "only" in change.cues) and value == int(value) and 0 < value <= 10_000:
        reading.use(index)
        change.plan.asks.limit = int(value)


def _say_direction(change: Change) -> None:
    """Reads an order that names no column: 升序, "sort ascending"."""
    asks, reading = change.plan.asks, change.plan.reading
    for ranking in list(asks.rankings):
        columns = [one for one in asks.dimensions if one.column is not None]
        if ranking.is_order and ranking.figure is None and len(columns) == len(asks.dimensions) == 1:
            # "by" in "sorted by opening date" is no group
            link = column_link(columns[0].table, str(columns[0].column))
            ranking.figure, asks.dimensions = Figure(None, link, position=ranking.position), []
        if ranking.is_order and ranking.figure is None and not ranking.hint:
            asks.rankings.remove(ranking)
            said = [mark.arg for mark in reading.marks if mark.means("rank") and mark.arg]
            if said or "reverse" not in change.cues:
                change.direction = said[-1] if said else "desc"


def _say_lifted(change: Change) -> None:
    """Reads a column or table whose conditions are to be removed: `不限省份`, "any status"."""
    plan = change.plan
    if "all" not in change.cues or change.figures or change.asks or change.restricts:
        return
    columns = {(link.table, link.column) for link in plan.projection}
    change.lifts = frozenset(columns | {(key, None) for _, key in plan.tables})
    plan.projection, plan.named_at, plan.tables = [], {}, []


def _say_settled(change: Change) -> None:
    """Puts the figure that the user has chosen into the ranking, or among the measures without one."""
    plan, figure = change.plan, change.plan.reading.settled.figure
    if figure is None:
        return
    if plan.asks.rankings:
        ranking = plan.asks.rankings[0]
        ranking.figure = replace(figure, position=ranking.position)
    else:
        plan.bare.append(replace(figure, function=figure.function or change.function))
        change.function = None


def _asks_for_things(change: Change) -> bool:
    """Whether the question asks for rows of a table that it names, or counts them."""
    plan = change.plan
    counted = any(
        figure.link is None and plan.reading.marks[figure.position].links for figure in plan.asks.figures
    ) and any(_COUNTS.match(mark.text) for mark in plan.reading.marks if mark.means("count"))
    which = any(mark.means("which") and (change.restricts or _WHICH_ONES in mark.text) for mark in plan.reading.marks)
    return counted or bool(plan.tables and (which or plan.asks.lists) and not change.figures)


_COUNTS = re.compile(WORDS.any_of("questions.how_many"), re.IGNORECASE)
_WHICH_ONES = WORDS.chinese.text("questions.which_ones")
