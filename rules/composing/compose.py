"""The one query that the parts of a reading give, and what was guessed for it."""

from collections.abc import Callable
from dataclasses import replace

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.composing.changing import changing, compares_periods
from rules.composing.listing import listed_query
from rules.composing.measuring import dated_groups, figures_query, wants_figures
from rules.composing.names import notes_on_values
from rules.composing.ranked import Extremes, ranked_query
from rules.composing.restricting import asks_for_periods, is_aggregate, restricted
from rules.query.pending import NOTHING_SETTLED
from rules.query.query import ColumnRef, Condition, Dimension, Operand, Query, touched
from rules.query.refusals import ambiguous_column, beyond_grain, not_combinable, unused_words
from rules.reading.parts import NO_TABLE, Named, Span
from rules.reading.words import Question
from rules.schema.links import column_link


def composed(asked: Asked) -> Query:
    """The query of a reading.

    Raises:
        Refusal: something is missing, ambiguous, or has no place in the query.
        AmbiguousPath: two tables are tied in several ways.
    """
    asked = _split_attributes(_with_whole_names(_with_one_span(_without_deeds(asked))))
    refuse_doubts(asked)
    notes_on_values(asked)
    skipped: tuple[Condition, ...] = ()
    if asked.says("shown_too") and not (asked.parts.rankings or asked.parts.thresholds or asked.parts.groups):
        raise unused_words(asked.question.texts("each"))
    if asked.says("or"):
        raise unused_words(asked.question.texts("or"))
    if asked.says("periods") and not (asked.parts.rankings or asks_for_periods(asked)):
        raise unused_words(asked.question.texts("date_part"))
    if asked.parts.rankings:
        if asked.says("per_entity"):
            raise unused_words(asked.question.texts("per_entity"))
        found = ranked_query(asked)
        query = figures_query(found.asked, found.figures) if isinstance(found, Extremes) else found
    elif asks_for_periods(asked):
        (threshold,) = asked.parts.thresholds
        assert threshold.link is not None
        table = threshold.link.table
        dimension = asked.resolved(asked.parts.groups[0].dimension, table)
        query = Query(table, dimensions=(dimension,), counts_rows=asked.says("how_many"))
    elif wants_figures(asked):
        query = figures_query(asked)
        if asked.says("growth") or compares_periods(asked, query):
            query = changing(asked, query)
        skipped = tuple(one for measure in query.measures for one in measure.share_of)
    else:
        compares = any(is_aggregate(asked, one) for one in asked.parts.thresholds)
        query = listed_query(asked, compares_groups=compares)
    if query.measures:
        query = replace(query, conditions=(*query.conditions, *dated_groups(asked)))
    query = _with_people(asked, restricted(asked, query, skipped))
    _refuse_unmet(asked, query)
    _refuse_contradictions(query)
    refuse_unplaced(asked, query)
    refuse_foreign_grain(asked, query)
    return query


def _counts_itself(query: Query) -> bool:
    """Whether rows are counted by themselves, which gives 1 for each."""
    own = Dimension(query.base)
    counted = [one for one in query.measures if one.function == "count" and one.column is None and one.per is None]
    return own in query.dimensions and any(one.table == query.base for one in counted)


def _refuse_contradictions(query: Query) -> None:
    """Refuses if a column would have to hold two values at once, which no row does.

    Raises:
        Refusal: there is such a column.
    """
    held: dict[ColumnRef, tuple[Operand, ...]] = {}
    for condition in query.conditions:
        if condition.operator == "=" and held.setdefault(condition.column, condition.operands) != condition.operands:
            raise unused_words([str(condition.operands[0])])


def _refuse_unmet(asked: Asked, query: Query) -> None:
    """Refuses if a figure is asked for and the query has none, or something is asked of a thing that it only names.

    Raises:
        Refusal: "how much did Ann spend" is not answered by Ann.
    """
    if _counts_itself(query) and not query.counts_rows:
        raise unused_words(asked.question.texts("count", "super", "each", "by") or ["?"])
    functions = {measure.function for measure in query.measures}
    averaged = "avg" in functions or any(one.per for one in query.measures) or "metric" in functions
    if asked.says("avg") and not averaged:
        raise unused_words(asked.question.texts("avg"))
    shown = query.measures or query.counts_rows or asked.parts.rankings or asked.parts.thresholds
    if not shown and (asked.says("sum") or asked.says("how_many")):
        raise unused_words(asked.question.texts("sum", "count"))
    parts, question = asked.parts, asked.question
    named = parts.tables or parts.columns or parts.bare or parts.labels or parts.rankings or parts.groups
    if query.measures or named or parts.thresholds or parts.related:
        return
    names = all(one.column.column in question.facts(one.column.table).display for one in parts.conditions)
    if names and question.has("which", "verb"):
        raise unused_words(question.texts("which", "verb"))


def _without_deeds(asked: Asked) -> Asked:
    """Leaves out a date whose verb only says which events people are ranked by: "who *sold* the most"."""
    words, columns = asked.question.words, asked.parts.columns
    kept = tuple(one for one in columns if not words[one.at].mark.means("verb") or not asked.question.is_date(one.link))
    ranks = asked.says("person") and asked.parts.rankings
    return asked.with_parts(columns=kept) if ranks else asked


def _with_people(asked: Asked, query: Query) -> Query:
    """Shows the people beside the events that the user was asked back about: "who placed the largest order"."""
    question, facts = asked.question, asked.question.facts(query.base)
    if query.measures or facts.is_entity or question.settled == NOTHING_SETTLED:
        return query
    person = asked.person([query.base])
    if person is None:
        return query
    names = (ColumnRef(person, name) for name in question.facts(person).shown)
    return replace(query, columns=tuple(dict.fromkeys((*names, *query.columns))))


def refuse_foreign_grain(asked: Asked, query: Query) -> None:
    """Refuses a metric by something that it means nothing by.

    Raises:
        Refusal: a group of the query is none of the metric's grain, or single rows are ranked by it.
    """
    question = asked.question
    ordered = [one.column for one in query.order if one.column is not None]
    if any(question.schema.table(one.table).column(one.column) is None for one in ordered):
        raise not_combinable()  # rows have no figure of their own
    refuse_beyond_grain(question, query, lambda table: getattr(asked.event_date(table), "column", None))


def refuse_beyond_grain(
    question: Question, query: Query, date_of: Callable[[TableKey], str | None] | None = None
) -> None:
    """Refuses groups that are none of a metric's grain. `date_of` tells the date it may go by; without it, any.

    Raises:
        Refusal: there is such a group.
    """
    for measure in query.measures:
        metric = question.schema.metric(measure.table, measure.column) if measure.function == "metric" else None
        if metric is None or not metric.grain:
            continue
        groups = [one for one in query.dimensions if date_of is not None or one.bucket is None]
        ways = [question.graph.up(metric.table, one.table, one.via) or () for one in groups]
        columns = [way[0].columns if way else (one.column,) for way, one in zip(ways, groups, strict=True)]
        known = {*metric.grain, date_of(metric.table) if date_of is not None else None}
        if not all(known.issuperset(names) for names in columns):
            table = question.schema.table(metric.table)
            grain = [called(column) for column in table.columns if column.name in known]
            raise beyond_grain(called(question.schema.column(metric.table, metric.name)), grain)


def refuse_doubts(asked: Asked) -> None:
    """Refuses a word that may name several columns equally well.

    Raises:
        Refusal: there is one.
    """
    for word, links in asked.parts.doubts:
        choices = [(link.table, str(link.column)) for link in links]
        if asked.question.settled.among(choices) is None:
            raise ambiguous_column(word, choices[:5], asked.question.lexicon)


def _with_one_span(asked: Asked) -> Asked:
    """Periods that are compared are one wish, wherever they stand: `上周车流量和上上周相比`."""
    spans = asked.parts.spans
    plain = len(spans) > 1 and all(one.link is None and not one.negated and one.periods[0].grain for one in spans)
    if not plain or not (asked.says("compare") or asked.says("growth")):
        return asked
    whole = Span(tuple(period for one in spans for period in one.periods), spans[0].at, compares=True)
    return asked.with_parts(spans=(whole,))


def _with_whole_names(asked: Asked) -> Asked:
    """First and last name side by side name one person, in one role: "whose manager is Nancy Fuller"."""
    parts, question = asked.parts, asked.question
    places = {(link.table, link.column, link.value): at for at, link in parts.said if question.display(link)}

    def place(one: Condition) -> int | None:
        value = one.operands[0] if one.operands else None
        return places.get((one.column.table, one.column.column, value if isinstance(value, str) else None))

    found = ((place(one), one.column) for one in parts.conditions if one.column.via is not None)
    roles = {at: column for at, column in found if at is not None}
    if not roles:
        return asked

    def in_role(one: Condition) -> Condition:
        at = place(one)
        beside = next((roles[near] for near in (at - 1, at + 1) if near in roles), None) if at is not None else None
        same = beside is not None and beside.table == one.column.table and one.column.via is None
        return replace(one, column=replace(one.column, via=beside.via)) if same and beside is not None else one

    return asked.with_parts(conditions=tuple(map(in_role, parts.conditions)))


def _split_attributes(asked: Asked) -> Asked:
    """Shows columns of the thing that is grouped by, instead of grouping by them too: `各公司名称和成立日期`."""
    groups, parts = asked.parts.groups, asked.parts
    if parts.figures or parts.rankings or len(groups) < 2 or groups[0].dimension.column is not None:
        return asked
    table = groups[0].dimension.table
    own = [
        one for one in groups[1:] if one.dimension.table == table and one.dimension.column and not one.dimension.bucket
    ]
    if table == NO_TABLE or len(own) != len(groups) - 1:
        return asked
    columns = tuple(Named(one.at, column_link(table, str(one.dimension.column))) for one in own)
    return asked.with_parts(groups=groups[:1], columns=(*columns, *parts.columns))


def refuse_unplaced(asked: Asked, query: Query) -> None:
    """Refuses if a named table or column is neither in the query nor above a table that is.

    Raises:
        Refusal: there is such a name.
    """
    question = asked.question
    spoken = touched(query)
    reachable = {key for table in spoken for key in question.graph.above(table)}
    words = question.words
    lost = [words[one.at].mark.text for one in asked.tables if one.link.table not in reachable]
    if any(measure.function == "avg" and measure.per is None for measure in query.measures):
        # "average revenue of shops" may mean an average over shops, and the query has one over rows
        lost += [words[one.at].mark.text for one in asked.tables if one.link.table not in spoken]
    shown = set(query.columns)
    shown |= {
        ColumnRef(dim.table, dim.column or name, dim.via) for dim in query.dimensions for name in asked.shown_names(dim)
    }
    shown |= {ColumnRef(one.per.table, one.per.column) for one in query.measures if one.per and one.per.column}
    shown |= {order.column for order in query.order if order.column is not None}
    for one in asked.parts.columns:
        refs = asked.shown_column(one.link, words[one.at].mark.text)
        dims = {(ref.table, ref.column) for ref in shown}
        grouped = {dim.table for dim in query.dimensions if dim.column is None}
        if not any((ref.table, ref.column) in dims or ref.table in grouped for ref in refs):
            lost.append(words[one.at].mark.text)
    rows = {query.base, *(column.table for column in query.columns)} if not query.measures else set()
    answering = rows | {dim.table for dim in query.dimensions}
    if asked.says("person") and not any(question.facts(key).is_person for key in answering):
        lost += [word.mark.text for word in words if word.mark.arg == "person"]
    for one in asked.tables:
        is_asked = one.role == "asked" and one.at > 0 and words[one.at - 1].mark.means("which")
        if is_asked and one.link.table not in answering and question.facts(one.link.table).display:
            lost.append(words[one.at].mark.text)
    if lost:
        raise unused_words(lost)
