"""Merges a follow-up into the query before it: first what is wanted, then groups, conditions, order and limit.

What the follow-up says replaces what the query has about the same thing; everything else stays.
"""

from dataclasses import replace

from common.text import Text
from rules.conversation.follow_ups import Change
from rules.conversation.merged_conditions import with_restrictions
from rules.conversation.merged_figures import counting, ranks_within, with_figures
from rules.conversation.merged_orders import with_order
from rules.planning.carrying import listed, spoken
from rules.planning.event_dates import resolved, trend_dimension
from rules.planning.measuring import group_order, grouped_table, with_all_groups
from rules.planning.plan import Plan
from rules.query.query import Dimension, Query
from rules.query.refusals import nothing_to_change, unused_words
from rules.readers.groups import column_dimension
from rules.schema.links import column_link


def merged(query: Query, change: Change) -> Query:
    """The earlier query as the follow-up wants it.

    Raises:
        Refusal: the query can't be changed like this.
    """
    plan = change.plan
    plan.head = next((one.table for one in query.dimensions if one.column is None), query.base)  # what is compared
    _keep_rows(query, change)
    had_own_order = query.order != group_order(query)
    query = with_figures(query, change)
    query, regrouped = _with_groups(query, change)
    if query.measures and query.dimensions and (regrouped or not had_own_order):
        query = _in_order(query, keeps=had_own_order)
    if query.measures and query.dimensions and not query.order and not query.counts_rows:
        query = replace(query, order=group_order(query))
    query = with_restrictions(query, change)
    query = with_order(query, change)
    query = _with_shares(query, change)
    if change.inclusion is not None:
        query = with_all_groups(plan, query, change.inclusion)
    elif query.all_of is not None and query.all_of != grouped_table(query):
        query = replace(query, all_of=None)  # these groups are others
    if left := plan.reading.leftovers():
        raise unused_words([mark.text for mark in left])
    return query


def _keep_rows(query: Query, change: Change) -> None:
    """Makes more about the same rows an addition: `它们的面积` is not about those of the largest area."""
    picked = query.limit is not None or bool(query.having)
    more = bool(change.figures) and picked or bool(change.plan.projection)
    if "these" in change.cues and query.measures and query.dimensions and more:
        change.cues |= {"add"}


def _with_groups(query: Query, change: Change) -> tuple[Query, bool]:
    """The query with the follow-up's groups, and whether the earlier order still makes sense."""
    plan = change.plan
    wanted = list(plan.asks.dimensions) or _told_apart(query, change)
    if not (wanted or plan.asks.trend):
        return query, False
    if not query.measures:
        query = counting(query)
    if query.counts_rows:
        raise nothing_to_change(Text("可以分组的数据", "figure that can be grouped"))
    base = query.measures[0].table
    dimensions = [resolved(plan, one, base) for one in wanted] or [trend_dimension(plan, base)]
    if plan.asks.rankings and query.dimensions and ranks_within(change):
        return _ranked_within(query, plan, dimensions), False
    if "add" in change.cues or (plan.asks.compare and not plan.asks.dimensions):
        dimensions = [*query.dimensions, *dimensions]
    elif query.dimensions and set(query.dimensions) != set(dimensions):
        _note_replaced(plan, query.dimensions, dimensions, is_said="replace" in change.cues)
    timed = any(dimension.bucket for dimension in dimensions)
    limit = None if timed else query.limit
    query = replace(query, dimensions=tuple(dict.fromkeys(dimensions)), limit=limit, top_per=())
    return query, timed


def _told_apart(query: Query, change: Change) -> list[Dimension]:
    """The groups for `分别呢`: the columns of which the earlier question names several values."""
    plan = change.plan
    if not plan.asks.compare or plan.filters.spans or plan.filters.conditions or change.shift:
        return []
    columns = [one.column for one in query.conditions if one.operator == "in" and len(one.operands) > 1]
    if not columns:
        raise nothing_to_change(Text("可以分别统计的多个取值", "several values to tell apart"))
    return [column_dimension(plan.reading, column_link(column.table, column.column)) for column in columns]


def _ranked_within(query: Query, plan: Plan, dimensions: list[Dimension]) -> Query:
    named = [Dimension(key) for _, key in plan.tables if Dimension(key) not in dimensions]
    inner = named or [one for one in query.dimensions if one not in dimensions]
    if not inner:
        raise unused_words([plan.reading.marks[ranking.position].text for ranking in plan.asks.rankings])
    return replace(query, dimensions=(*dimensions, *inner), top_per=tuple(dimensions))


def _note_replaced(plan: Plan, before: tuple[Dimension, ...], after: list[Dimension], *, is_said: bool) -> None:
    """Warns that groups were replaced, if the follow-up may have meant further ones."""
    if is_said:
        return
    old, new = listed(spoken(plan, one) for one in before), listed(spoken(plan, one) for one in after)
    plan.warnings.append(
        Text(
            f"分组由“{old.zh}”换成了“{new.zh}”；要同时按两者分组，请说“再按{new.zh}”。",
            f'Grouped by "{new.en}" instead of "{old.en}"; say "also by {new.en}" to group by both.',
        )
    )


def _in_order(query: Query, *, keeps: bool) -> Query:
    """The query with an order after a change: the earlier one if it was asked for and still makes sense."""
    timed = any(dimension.bucket for dimension in query.dimensions)
    if keeps and not timed and query.order and query.order[0].measure in query.measures:
        return query
    return replace(query, order=group_order(query))


def _with_shares(query: Query, change: Change) -> Query:
    """The query with every figure also as a share of the total: `占比呢`."""
    if not change.plan.asks.share:
        return query
    measures = [measure for measure in query.measures if not measure.is_share and measure.per is None]
    if not measures or not query.dimensions:
        raise nothing_to_change(Text("可以计算占比的分组", "groups to take shares of"))
    shares = [replace(measure, is_share=True) for measure in measures]
    for index in list(change.plan.reading.having("share")):
        change.plan.reading.use(index)
    return replace(query, measures=tuple(dict.fromkeys((*query.measures, *shares))))
