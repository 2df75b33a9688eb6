"""Apply a follow-up to the query before it: first figures, then groups, conditions, order, limit.

What the follow-up says replaces what the query has about the same thing; everything else stays. The
edited query gets its statement, and the notes that the answer adds about the change.
"""

from collections.abc import Iterable
from dataclasses import replace

from common.meanings import TableKey
from common.text import Lang, Text
from rules.composing.asked import Asked
from rules.composing.assumptions import assumptions, notes_on_values
from rules.composing.compose import grouped_table, refuse_doubts, refuse_lost, with_all_groups
from rules.composing.measuring import group_order
from rules.composing.retargeting import group_name, name_of, retargeted_conditions
from rules.composing.understanding import Understanding, rendered, with_role
from rules.conversation.change import Change, Earlier, ShownInPart, must_have, refuse_rows_in_part
from rules.conversation.edited_conditions import with_growth, with_restrictions
from rules.conversation.edited_figures import counting, counting_groups, with_figures
from rules.conversation.edited_orders import renumbered, with_order
from rules.query.query import ColumnRef, Dimension, Query, references
from rules.query.refusals import (
    Refusal,
    ambiguous_way,
    enumerated,
    not_combinable,
    unused_words,
    which_one,
)
from rules.reading.implied import column_dimension
from rules.reading.words import Word
from rules.schema.links import column_link
from rules.schema.reference_graph import AmbiguousPath
from rules.sql.statement import Unrenderable


def first_edited(changes: list[Change], earlier: Earlier, lang: Lang) -> Understanding:
    """Apply the first of the changes that the earlier query can have.

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
    """Ask about another table under the conditions of the earlier query: `那店铺有几家？`.

    Args:
        alone: the question by itself.
        pronoun: the word by which the question speaks of the earlier one's thing, if it does.

    Raises:
        Refusal: a word points at rows that no condition selects.
    """
    query, question = alone.query, change.asked.question
    own = {condition.column for condition in query.conditions}
    carried = retargeted_conditions(change.asked, earlier.query, query.base, [])
    kept = tuple(one for one in carried if one.column not in own)
    if not kept:
        if pronoun is not None:
            raise which_one(pronoun)

        _refuse_pointing_at_few(change, earlier.query)
        return alone

    columns = [name_of(question, one.column.table, one.column.column) for one in kept]
    names = enumerated(dict.fromkeys(columns))
    in_english = f'Still restricted by "{names.en}", as in the previous question.'
    change.notes = [Text(f"沿用了上一个问题对“{names.zh}”的限定。", in_english)]
    return finished(change, replace(query, conditions=(*query.conditions, *kept)), earlier, lang)


def _refuse_pointing_at_few(change: Change, earlier: Query) -> None:
    """Refuse 它们 after "top 3", because no condition tells these three rows from others."""
    is_of_few = earlier.limit is not None or bool(earlier.having)
    if not is_of_few:
        return

    words = change.asked.question.words
    pointing = [word.mark.text for word in words if word.mark.arg in ("these", "their")]
    if pointing:
        raise unused_words(pointing)


def _edited(query: Query, change: Change) -> Query:
    """Return the earlier query with the change; `change.notes` get the sentences about it.

    Raises:
        Refusal: the query can't be changed like this.
    """
    change.asked = replace(change.asked, about=_compared_table(query))
    refuse_doubts(change.asked)
    _refuse_unsupported(change)
    if change.counts_periods:
        return _counting_periods(query, change)
    if _adds_to_shown(query, change):
        change.cues |= {"add"}

    had_own_order = query.order != group_order(query)
    query, groups = with_figures(query, change)
    query, regrouped = _with_groups(query, change, groups)
    query = _without_lost_comparisons(query, change)
    if query.measures and query.dimensions:
        has_no_order = not query.order and not query.counts_rows
        if regrouped or not had_own_order or has_no_order:
            query = replace(query, order=group_order(query))

    query = with_restrictions(query, change)
    query = with_order(renumbered(query, change), change)
    if change.asked.says("share"):
        query = _with_shares(query)
    if change.asked.says("growth"):
        query = with_growth(query, change.asked)

    return _with_groups_without_rows(query, change)


def _compared_table(query: Query) -> TableKey:
    """Return the table that a comparison is about: that of rows which are counted, else of the
    groups.
    """
    counts_rows = all(measure.column is None for measure in query.measures)
    if counts_rows:
        return query.base

    things = [dimension.table for dimension in query.dimensions if dimension.column is None]
    return next(iter(things), query.base)


def _adds_to_shown(query: Query, change: Change) -> bool:
    """Tell whether the follow-up adds to the groups that are shown, though it does not say "add".

    `它们的面积` is not about the groups of the largest area.
    """
    if "these" not in change.cues:
        return False
    if not query.measures or not query.dimensions:
        return False
    if change.parts.columns:
        return True

    is_of_few = query.limit is not None or bool(query.having)
    return is_of_few and bool(change.figures)


def _without_lost_comparisons(query: Query, change: Change) -> Query:
    """Return the query without a growth or a comparison for which its groups or periods have
    gone.
    """
    if not any(dimension.bucket for dimension in query.dimensions):
        query = replace(query, growth=None)
    if change.parts.spans or change.shift:
        # another period instead of the two that were compared
        query = replace(query, comparison=None)

    return query


def _with_groups_without_rows(query: Query, change: Change) -> Query:
    """Return the query with the groups that have no rows, if the follow-up asks for them."""
    if change.inclusion is not None:
        return with_all_groups(change.asked, query, change.inclusion)
    if query.all_of is not None and query.all_of != grouped_table(query):
        return replace(query, all_of=None)  # these groups are others

    return query


def _counting_periods(query: Query, change: Change) -> Query:
    """Return the query for the number of months, or other units, that the earlier result is grouped
    by.
    """
    wanted = [group.dimension.bucket for group in change.parts.groups]
    is_same = [dimension.bucket for dimension in query.dimensions] == wanted
    counts_others = change.cues & {"only", "add"}
    must_have(
        is_same and not counts_others,
        Text("可以计数的这种时间分组", "groups by such periods to count"),
    )
    return counting_groups(query)


# ------------------------------------------------------------------------------
# groups


_UNSUPPORTED = ("running", "distinct", "shown_too", "when", "or")


def _refuse_unsupported(change: Change) -> None:
    """Refuse words that no edit applies.

    Raises:
        Refusal: there is one.
    """
    words = change.asked.question.words
    unsupported = list(filter(change.asked.says, _UNSUPPORTED))
    if "or" in unsupported and words[0].mark.means("or"):
        unsupported.remove("or")

    lost = change.asked.question.texts(*unsupported)
    for word in words:
        if _is_lost_number(word, change):
            lost.append(word.mark.text)

    if unsupported or lost:
        raise unused_words(lost)


def _is_lost_number(word: Word, change: Change) -> bool:
    if word.at in change.reading.taken or word.mark.number is None:
        return False

    return word.mark.number.value > 1


def _with_groups(query: Query, change: Change, implied: list[Dimension]) -> tuple[Query, bool]:
    """Return the query with the follow-up's groups, and whether it is now ordered by time
    instead.
    """
    asked, parts = change.asked, change.parts
    named = [group.dimension for group in parts.groups]
    wanted = [*named, *implied] or _told_apart(query, change)
    if not wanted and not asked.says("trend"):
        return query, False

    query = _with_figure_to_group(query)
    base = query.measures[0].table
    dimensions = [asked.resolved(one, base) for one in wanted] or [asked.trend(base)]
    ranks_groups = bool(parts.rankings) and bool(query.dimensions)
    if ranks_groups and change.ranks_within:
        return _ranked_within(query, change, dimensions), False

    dimensions = _beside_earlier(query, change, dimensions)
    is_timed = any(dimension.bucket for dimension in dimensions)
    grouped = replace(
        query,
        dimensions=tuple(dict.fromkeys(dimensions)),
        limit=None if is_timed else query.limit,
        top_per=(),
    )
    return grouped, is_timed


def _with_figure_to_group(query: Query) -> Query:
    """Return the query; that for the number of its rows, if it lists them.

    Raises:
        Refusal: it is a mere number of groups, or only the first rows were shown.
    """
    if not query.measures:
        refuse_rows_in_part(query)
        query = counting(query)

    must_have(not query.counts_rows, Text("可以分组的数据", "figure that can be grouped"))
    return query


def _beside_earlier(query: Query, change: Change, new: list[Dimension]) -> list[Dimension]:
    """Return the earlier groups and the new ones, if they are added; else the new ones, with a
    note.
    """
    groups, old = change.parts.groups, query.dimensions
    compares = change.asked.says("compare") and not groups
    if "add" in change.cues or compares:
        together = [*old, *new]
        splits_shown = bool(old) and set(together) != set(old)
        if groups and splits_shown:
            refuse_rows_in_part(query)

        return together

    are_others = bool(old) and set(new) != set(old)
    if are_others and "replace" not in change.cues:
        change.notes.append(_note_on_replaced(change.asked, old, new))

    return new


def _told_apart(query: Query, change: Change) -> list[Dimension]:
    """Return the groups for `分别呢`: columns of which several values are named, or are
    compared.
    """
    parts = change.parts
    if not change.asked.says("compare") or change.shift:
        return []
    if parts.spans:  # one period is not compared with one value of another
        several_periods = sum(len(span.periods) for span in parts.spans) > 1
        must_have(not parts.conditions or several_periods, _VALUE)
        return []

    columns = _compared(query, change) if parts.conditions else _with_several_values(query)
    must_have(columns, Text("可以分别统计的多个取值", "several values to tell apart"))
    links = [column_link(column.table, column.column) for column in columns]
    return [column_dimension(change.asked.question, link) for link in links]


def _with_several_values(query: Query) -> list[ColumnRef]:
    columns = []
    for condition in query.conditions:
        if condition.operator == "in" and len(condition.operands) > 1:
            columns.append(condition.column)

    return columns


def _compared(query: Query, change: Change) -> list[ColumnRef]:
    """Return the columns whose values the follow-up compares: "compared with Paris?".

    With each other, or with those before.

    Raises:
        Refusal: there is no value to compare with, or no figure of all rows to compare.
    """
    has_figures = query.measures and query.limit is None
    must_have(has_figures, Text("可以对比的指标", "figures to compare"))
    restricted = set()
    for condition in query.conditions:
        if condition.operator in _POSITIVE:
            restricted.add(replace(condition.column, via=None))

    for condition in change.parts.conditions:
        column = replace(condition.column, via=None)
        is_joined = len(condition.operands) > 1 or column in restricted
        must_have(is_joined and condition.operator in _POSITIVE, _VALUE)

    change.cues |= {"add"}
    return [condition.column for condition in change.parts.conditions]


_POSITIVE = ("=", "in")
_VALUE = Text("可以与之对比的取值", "value to compare with")


def _ranked_within(query: Query, change: Change, dimensions: list[Dimension]) -> Query:
    """Return the query with its limit applied within each of the groups `dimensions`."""
    inner = [dimension for dimension in query.dimensions if dimension not in dimensions]
    if not inner:
        raise change.unplaced(change.parts.rankings)

    outer = tuple(dict.fromkeys(dimensions))
    return replace(query, dimensions=(*outer, *inner), top_per=outer)


def _note_on_replaced(
    asked: Asked, before: Iterable[Dimension], after: Iterable[Dimension]
) -> Text:
    """Return a note that groups were replaced, as the follow-up may have meant further ones."""
    old = enumerated(dict.fromkeys(group_name(asked.question, one) for one in before))
    new = enumerated(dict.fromkeys(group_name(asked.question, one) for one in after))
    return Text(
        f"分组由“{old.zh}”换成了“{new.zh}”；要同时按两者分组，请说“再按{new.zh}”。",
        f'Grouped by "{new.en}" instead of "{old.en}"; say "also by {new.en}" to group by both.',
    )


def _with_shares(query: Query) -> Query:
    """Return the query with every figure also as a share of the total: `占比呢`."""
    shares = []
    for measure in query.measures:
        if not measure.is_share and measure.per is None:
            shares.append(replace(measure, is_share=True))

    has_shares = shares and query.dimensions
    must_have(has_shares, Text("可以计算占比的分组", "groups to take shares of"))
    return replace(query, measures=tuple(dict.fromkeys((*query.measures, *shares))))


# ------------------------------------------------------------------------------
# statement


def finished(change: Change, query: Query, earlier: Earlier | None, lang: Lang) -> Understanding:
    """Write the statement of the edited query, with its notes and assumptions.

    Raises:
        Refusal: no correct statement can be made of it.
    """
    try:
        query, sql = _rendered_as_before(change, query, earlier.query if earlier else query)
    except AmbiguousPath as ambiguity:
        lexicon = change.asked.question.lexicon
        raise ambiguous_way(ambiguity.target, ambiguity.choices, lexicon) from ambiguity
    except (Unrenderable, LookupError) as failure:
        raise not_combinable() from failure

    notes = list(dict.fromkeys(change.notes))
    if earlier is not None and not earlier.is_latest:
        before = earlier.question
        notes.insert(0, Text(f"接着“{before}”回答。", f'This goes on from "{before}".'))

    assumed = (*notes_on_values(change.asked), *assumptions(change.asked, query))
    return Understanding(query, sql, tuple(note.to(lang) for note in notes), assumed)


def _rendered_as_before(change: Change, query: Query, earlier: Query) -> tuple[Query, str]:
    """Return the query and its statement.

    Of several foreign keys that may be meant, the one of the earlier query is taken.
    """
    try:
        return rendered(change.asked, query)
    except AmbiguousPath as ambiguity:
        columns = [
            reference for reference in references(earlier) if reference.table == ambiguity.target
        ]
        roles = {column.via for column in columns if column.via is not None}
        if len(roles) != 1:
            raise

        return rendered(change.asked, with_role(query, ambiguity.target, roles.pop()))
