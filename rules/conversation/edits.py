"""Puts a follow-up into the query before it: first what is wanted, then groups, conditions, order and limit.

What the follow-up says replaces what the query has about the same thing; everything else stays.
"""

from collections.abc import Iterable
from dataclasses import replace

from common.text import Text
from rules.composing.asked import Asked
from rules.composing.carrying import spoken
from rules.composing.compose import grouped_table, refuse_doubts, with_all_groups
from rules.composing.measuring import group_order
from rules.conversation.change import Change
from rules.conversation.edited_conditions import with_growth, with_restrictions
from rules.conversation.edited_figures import counting, counting_groups, with_figures
from rules.conversation.edited_orders import renumbered, with_order
from rules.conversation.shown_rows import refuse_rows_in_part
from rules.query.query import ColumnRef, Dimension, Query
from rules.query.refusals import enumerated, nothing_to_change, unused_words
from rules.reading.implied import column_dimension
from rules.schema.links import column_link


def edited(query: Query, change: Change) -> Query:
    """The earlier query as the follow-up wants it; `change.notes` get what the answer says of it.

    Raises:
        Refusal: the query can't be changed like this.
    """
    counts = bool(query.measures) and all(one.column is None for one in query.measures)
    grouped = next((one.table for one in query.dimensions if one.column is None), query.base)
    head = query.base if counts else grouped  # what is compared: the counted rows, else totals of the groups
    change.asked = replace(change.asked, about=head)
    refuse_doubts(change.asked)
    _refuse_unheard(change)
    if change.counts_periods:
        return _counting_periods(query, change)
    more = bool(change.figures) and (query.limit is not None or bool(query.having)) or bool(change.parts.columns)
    if "these" in change.cues and query.measures and query.dimensions and more:
        change.cues |= {"add"}  # `它们的面积` is not about those of the largest area
    had_own_order = query.order != group_order(query)
    query, groups = with_figures(query, change)
    query, regrouped = _with_groups(query, change, groups)
    if query.growth is not None and not any(one.bucket for one in query.dimensions):
        query = replace(query, growth=None)
    if query.comparison is not None and (change.parts.spans or change.shift):
        query = replace(query, comparison=None)  # another period instead of the two that were compared
    if query.measures and query.dimensions and (regrouped or not had_own_order):
        query = _in_order(query, keeps=had_own_order)
    if query.measures and query.dimensions and not query.order and not query.counts_rows:
        query = replace(query, order=group_order(query))
    query = with_order(renumbered(with_restrictions(query, change), change), change)
    if change.asked.says("share"):
        query = _with_shares(query)
    if change.asked.says("growth"):
        query = with_growth(query, change.asked)
    if change.inclusion is not None:
        return with_all_groups(change.asked, query, change.inclusion)
    if query.all_of is not None and query.all_of != grouped_table(query):
        return replace(query, all_of=None)  # these groups are others
    return query


def _counting_periods(query: Query, change: Change) -> Query:
    """The query for the number of months, or other units, that the earlier result is grouped by."""
    wanted = [one.dimension.bucket for one in change.parts.groups]
    if not query.measures or [one.bucket for one in query.dimensions] != wanted or change.cues & {"only", "add"}:
        raise nothing_to_change(Text("可以计数的这种时间分组", "groups by such periods to count"))
    return counting_groups(query)


# -------------------------------------------------------------------------------------------------------------- groups


_UNHEARD = ("running", "distinct", "shown_too", "when")


def _refuse_unheard(change: Change) -> None:
    """Refuses wishes that no edit grants.

    Raises:
        Refusal: there is one.
    """
    question = change.asked.question
    if change.asked.says("or") and not question.words[0].mark.means("or"):
        raise unused_words(question.texts("or"))
    taken = {place for one in change.reading.fragments for place in range(one.start, one.end)}
    numbers = [one.mark for one in question.words if one.mark.number is not None and one.at not in taken]
    unheard = [one for one in _UNHEARD if change.asked.says(one)]
    lost = [
        *question.texts(*unheard),
        *(one.text for one in numbers if one.number is not None and one.number.value > 1),
    ]
    if unheard or lost:
        raise unused_words(lost)


def _with_groups(query: Query, change: Change, implied: list[Dimension]) -> tuple[Query, bool]:
    """The query with the follow-up's groups, and whether the earlier order still makes sense."""
    asked, parts = change.asked, change.parts
    wanted = [*(one.dimension for one in parts.groups), *implied] or _told_apart(query, change)
    if not (wanted or asked.says("trend")):
        return query, False
    if not query.measures:
        refuse_rows_in_part(query)
        query = counting(query)
    if query.counts_rows:
        raise nothing_to_change(Text("可以分组的数据", "figure that can be grouped"))
    base = query.measures[0].table
    dimensions = [asked.resolved(one, base) for one in wanted] or [asked.trend(base)]
    if parts.rankings and query.dimensions and change.ranks_within:
        return _ranked_within(query, change, dimensions), False
    if "add" in change.cues or (asked.says("compare") and not parts.groups):
        dimensions = [*query.dimensions, *dimensions]
        if parts.groups and query.dimensions and set(dimensions) != set(query.dimensions):
            refuse_rows_in_part(query)
    elif query.dimensions and set(query.dimensions) != set(dimensions) and "replace" not in change.cues:
        change.notes.append(_replaced(asked, query.dimensions, dimensions))
    timed = any(dimension.bucket for dimension in dimensions)
    limit = None if timed else query.limit
    return replace(query, dimensions=tuple(dict.fromkeys(dimensions)), limit=limit, top_per=()), timed


def _told_apart(query: Query, change: Change) -> list[Dimension]:
    """The groups for `分别呢`: the columns of which several values are named; those that are compared join them."""
    parts = change.parts
    if not change.asked.says("compare") or change.shift:
        return []
    if parts.spans and parts.conditions and sum(len(one.periods) for one in parts.spans) == 1:
        raise nothing_to_change(_VALUE)  # of one period with one value of another
    if parts.spans:
        return []
    columns = [one.column for one in query.conditions if one.operator == "in" and len(one.operands) > 1]
    if parts.conditions:
        columns = _compared(query, change)
    if not columns:
        raise nothing_to_change(Text("可以分别统计的多个取值", "several values to tell apart"))
    return [column_dimension(change.asked.question, column_link(one.table, one.column)) for one in columns]


def _compared(query: Query, change: Change) -> list[ColumnRef]:
    """The columns whose values the follow-up compares with each other, or with those before: "compared with Paris?".

    Raises:
        Refusal: there is no value to compare with, or no figure of all rows to compare.
    """
    if not query.measures or query.limit is not None:
        raise nothing_to_change(Text("可以对比的指标", "figures to compare"))
    values = [one for one in query.conditions if one.operator in _POSITIVE]
    before = {replace(one.column, via=None) for one in values}
    for one in change.parts.conditions:
        alone = len(one.operands) == 1 and replace(one.column, via=None) not in before
        if one.operator not in _POSITIVE or alone:
            raise nothing_to_change(_VALUE)
    change.cues |= {"add"}
    return [one.column for one in change.parts.conditions]


_POSITIVE = ("=", "in")
_VALUE = Text("可以与之对比的取值", "value to compare with")


def _ranked_within(query: Query, change: Change, dimensions: list[Dimension]) -> Query:
    named = [Dimension(one.link.table) for one in change.asked.tables if Dimension(one.link.table) not in dimensions]
    inner = named or [one for one in query.dimensions if one not in dimensions]
    if not inner:
        raise unused_words([change.asked.question.words[one.at].mark.text for one in change.parts.rankings])
    return replace(query, dimensions=(*dimensions, *inner), top_per=tuple(dimensions))


def _replaced(asked: Asked, before: Iterable[Dimension], after: Iterable[Dimension]) -> Text:
    """Says that groups were replaced, as the follow-up may have meant further ones."""
    old, new = (enumerated(dict.fromkeys(spoken(asked.question, one) for one in some)) for some in (before, after))
    return Text(
        f"分组由“{old.zh}”换成了“{new.zh}”；要同时按两者分组，请说“再按{new.zh}”。",
        f'Grouped by "{new.en}" instead of "{old.en}"; say "also by {new.en}" to group by both.',
    )


def _in_order(query: Query, *, keeps: bool) -> Query:
    """The query with an order after a change: the earlier one if it was asked for and still makes sense."""
    timed = any(dimension.bucket for dimension in query.dimensions)
    if keeps and not timed and query.order and query.order[0].measure in query.measures:
        return query
    return replace(query, order=group_order(query))


def _with_shares(query: Query) -> Query:
    """The query with every figure also as a share of the total: `占比呢`."""
    measures = [measure for measure in query.measures if not measure.is_share and measure.per is None]
    if not measures or not query.dimensions:
        raise nothing_to_change(Text("可以计算占比的分组", "groups to take shares of"))
    shares = [replace(measure, is_share=True) for measure in measures]
    return replace(query, measures=tuple(dict.fromkeys((*query.measures, *shares))))
