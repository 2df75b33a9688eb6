"""Puts a follow-up into the query before it: first what is wanted, then groups, conditions, order and limit.

What the follow-up says replaces what the query has about the same thing; everything else stays. The edited query
gets its statement, and what the answer says of it.
"""

from collections.abc import Iterable
from dataclasses import replace

from common.text import Lang, Text
from rules.composing.asked import Asked
from rules.composing.assumptions import assumptions, notes_on_values
from rules.composing.carrying import conditions_for, named, spoken
from rules.composing.compose import grouped_table, refuse_doubts, refuse_lost, with_all_groups
from rules.composing.measuring import group_order
from rules.composing.understanding import Understanding, rendered, with_role
from rules.conversation.change import Change, Earlier, ShownInPart, must_have, refuse_rows_in_part
from rules.conversation.edited_conditions import with_growth, with_restrictions
from rules.conversation.edited_figures import counting, counting_groups, with_figures
from rules.conversation.edited_orders import renumbered, with_order
from rules.query.query import ColumnRef, Dimension, Query, references
from rules.query.refusals import Refusal, ambiguous_way, enumerated, not_combinable, unused_words, which_one
from rules.reading.implied import column_dimension
from rules.schema.joins import AmbiguousPath
from rules.schema.links import column_link
from rules.sql.statement import Unrenderable


def first_edited(changes: list[Change], earlier: Earlier, lang: Lang) -> Understanding:
    """The earlier query as the first of the changes that it can have wants it.

    Raises:
        Refusal: it can have none; that of the likeliest.
    """
    refusals: list[Refusal] = []
    for change in changes:
        try:
            change.notes += notes_on_values(change.asked)
            refuse_lost(change.asked, change.reading)
            return finished(change, _edited(earlier.query, change), earlier, lang)
        except Refusal as refusal:
            refusals.append(refusal)
            if change.parts.doubts or isinstance(refusal, ShownInPart):
                break
    raise refusals[0]


def asked_under(
    change: Change, earlier: Earlier, alone: Understanding, pronoun: str | None, lang: Lang
) -> Understanding:
    """The question about another table, under the conditions of the earlier one: `那店铺有几家？`.

    Args:
        pronoun: the word by which the question speaks of the earlier one's thing, if it does.

    Raises:
        Refusal: a word points at something that no condition tells.
    """
    query = alone.query
    said = {one.column for one in query.conditions}
    carried = conditions_for(change.asked, earlier.query, query.base, [])
    kept = tuple(one for one in carried if one.column not in said)
    if not kept:
        if pronoun is not None:
            raise which_one(pronoun)
        few = [one.mark.text for one in change.asked.question.words if one.mark.arg in ("these", "their")]
        if few and (earlier.query.limit is not None or earlier.query.having):
            raise unused_words(few)  # no condition tells the three rows that 它们 means after "top 3" from others
        return alone
    names = enumerated(dict.fromkeys(named(change.asked.question, one.column.table, one.column.column) for one in kept))
    in_english = f'Still restricted by "{names.en}", as in the previous question.'
    change.notes = [Text(f"沿用了上一个问题对“{names.zh}”的限定。", in_english)]
    return finished(change, replace(query, conditions=(*query.conditions, *kept)), earlier, lang)


def _edited(query: Query, change: Change) -> Query:
    """The earlier query as the follow-up wants it; `change.notes` get what the answer says of it.

    Raises:
        Refusal: the query can't be changed like this.
    """
    grouped = next((one.table for one in query.dimensions if one.column is None), query.base)
    counts = all(one.column is None for one in query.measures)
    change.asked = replace(change.asked, about=query.base if counts else grouped)  # what is compared: rows, or totals
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
    if not any(one.bucket for one in query.dimensions):
        query = replace(query, growth=None)
    if change.parts.spans or change.shift:
        query = replace(query, comparison=None)  # another period instead of the two that were compared
    has_no_order = not query.order and not query.counts_rows
    if query.measures and query.dimensions and (regrouped or not had_own_order or has_no_order):
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
    is_same = [one.bucket for one in query.dimensions] == wanted and not change.cues & {"only", "add"}
    must_have(is_same, Text("可以计数的这种时间分组", "groups by such periods to count"))
    return counting_groups(query)


# -------------------------------------------------------------------------------------------------------------- groups


_UNHEARD = ("running", "distinct", "shown_too", "when", "or")


def _refuse_unheard(change: Change) -> None:
    """Refuses wishes that no edit grants.

    Raises:
        Refusal: there is one.
    """
    words = change.asked.question.words
    unheard = [one for one in _UNHEARD if change.asked.says(one) and not (one == "or" and words[0].mark.means("or"))]
    lost = change.asked.question.texts(*unheard)
    for one in words:
        if one.at not in change.reading.taken and one.mark.number is not None and one.mark.number.value > 1:
            lost.append(one.mark.text)
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
    must_have(not query.counts_rows, Text("可以分组的数据", "figure that can be grouped"))
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
    if parts.spans:  # one period is not compared with one value of another
        must_have(not parts.conditions or sum(len(one.periods) for one in parts.spans) > 1, _VALUE)
        return []
    columns = [one.column for one in query.conditions if one.operator == "in" and len(one.operands) > 1]
    if parts.conditions:
        columns = _compared(query, change)
    must_have(columns, Text("可以分别统计的多个取值", "several values to tell apart"))
    return [column_dimension(change.asked.question, column_link(one.table, one.column)) for one in columns]


def _compared(query: Query, change: Change) -> list[ColumnRef]:
    """The columns whose values the follow-up compares with each other, or with those before: "compared with Paris?".

    Raises:
        Refusal: there is no value to compare with, or no figure of all rows to compare.
    """
    must_have(query.measures and query.limit is None, Text("可以对比的指标", "figures to compare"))
    values = [one for one in query.conditions if one.operator in _POSITIVE]
    before = {replace(one.column, via=None) for one in values}
    for one in change.parts.conditions:
        is_joined = len(one.operands) > 1 or replace(one.column, via=None) in before
        must_have(is_joined and one.operator in _POSITIVE, _VALUE)
    change.cues |= {"add"}
    return [one.column for one in change.parts.conditions]


_POSITIVE = ("=", "in")
_VALUE = Text("可以与之对比的取值", "value to compare with")


def _ranked_within(query: Query, change: Change, dimensions: list[Dimension]) -> Query:
    inner = [one for one in query.dimensions if one not in dimensions]
    if not inner:
        raise change.unplaced(change.parts.rankings)
    outer = tuple(dict.fromkeys(dimensions))
    return replace(query, dimensions=(*outer, *inner), top_per=outer)


def _replaced(asked: Asked, before: Iterable[Dimension], after: Iterable[Dimension]) -> Text:
    """Says that groups were replaced, as the follow-up may have meant further ones."""
    old, new = (enumerated(dict.fromkeys(spoken(asked.question, one) for one in some)) for some in (before, after))
    return Text(
        f"分组由“{old.zh}”换成了“{new.zh}”；要同时按两者分组，请说“再按{new.zh}”。",
        f'Grouped by "{new.en}" instead of "{old.en}"; say "also by {new.en}" to group by both.',
    )


def _with_shares(query: Query) -> Query:
    """The query with every figure also as a share of the total: `占比呢`."""
    measures = [measure for measure in query.measures if not measure.is_share and measure.per is None]
    must_have(measures and query.dimensions, Text("可以计算占比的分组", "groups to take shares of"))
    shares = [replace(measure, is_share=True) for measure in measures]
    return replace(query, measures=tuple(dict.fromkeys((*query.measures, *shares))))


# ----------------------------------------------------------------------------------------------------------- statement


def finished(change: Change, query: Query, earlier: Earlier | None, lang: Lang) -> Understanding:
    """The merged query with its statement.

    Raises:
        Refusal: no correct statement can be made of it.
    """
    try:
        query, sql = _rendered_as_before(change, query, earlier.query if earlier else query)
    except AmbiguousPath as ambiguity:
        raise ambiguous_way(ambiguity.target, ambiguity.choices, change.asked.question.lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        raise not_combinable() from failure
    notes = list(dict.fromkeys(change.notes))
    if earlier is not None and not earlier.is_latest:
        notes.insert(0, Text(f"接着“{earlier.question}”回答。", f'This goes on from "{earlier.question}".'))
    told = (*notes_on_values(change.asked), *assumptions(change.asked, query))
    return Understanding(query, sql, tuple(one.to(lang) for one in notes), told)


def _rendered_as_before(change: Change, query: Query, earlier: Query) -> tuple[Query, str]:
    """The query and its statement; of several references that may be meant, the one of the earlier query is taken."""
    try:
        return rendered(change.asked, query)
    except AmbiguousPath as ambiguity:
        said = [one for one in references(earlier) if one.table == ambiguity.target]
        roles = {one.via for one in said if one.via is not None}
        if len(roles) != 1:
            raise
        return rendered(change.asked, with_role(query, ambiguity.target, roles.pop()))
