"""The one query that the parts of a reading give, and what was guessed for it."""

from dataclasses import replace

from common.meanings import TableKey
from common.text import Text
from rules.composing.asked import Asked
from rules.composing.changing import changing, compares_periods
from rules.composing.listing import listed_query
from rules.composing.measuring import dated_groups, figures_query, wants_figures
from rules.composing.ranked import ranked_query
from rules.composing.restricting import asks_for_periods, is_aggregate, restricted
from rules.query.pending import NOTHING_SETTLED
from rules.query.query import ColumnRef, Dimension, Measure, Operand, Query, touched
from rules.query.refusals import Refusal, ambiguous_column, missing_year, not_combinable, unknown_words, unused_words
from rules.reading.inclusions import Inclusion
from rules.reading.parts import NO_TABLE, Group, Named, Reading, Span
from rules.schema.links import column_link

_NOWHERE = -9  # before all words
_NEVER_MET = Text(
    "问题中的条件互相矛盾，没有一行数据能同时满足。请检查这些条件。",
    "The conditions of the question contradict each other, so no row can meet them all. Please check them.",
)


def composed(asked: Asked) -> Query:
    """The query of a reading.

    Raises:
        Refusal: something is missing, ambiguous, or has no place in the query.
        AmbiguousPath: two tables are tied in several ways.
    """
    asked = _split_attributes(_with_whole_names(_with_one_span(_without_deeds(_with_both_sides(asked)))))
    refuse_doubts(asked)
    parts = asked.parts
    lost = {
        "each": asked.says("shown_too") and not (parts.rankings or parts.thresholds or parts.groups),
        "or": asked.says("or"),
        "date_part": asked.says("periods") and not (parts.rankings or asks_for_periods(asked)),
        "per_entity": asked.says("per_entity") and parts.rankings,
    }
    if any(lost.values()):
        raise unused_words(asked.question.texts(*(kind for kind, is_lost in lost.items() if is_lost)))
    if parts.rankings:
        found = ranked_query(asked)
        query = figures_query(found) if isinstance(found, Asked) else found
    elif asks_for_periods(asked):
        link = parts.thresholds[0].link
        assert link is not None
        dimension = asked.resolved(parts.groups[0].dimension, link.table)
        query = Query(link.table, dimensions=(dimension,), counts_rows=asked.says("how_many"))
    elif wants_figures(asked):
        query = figures_query(asked)
        if asked.says("growth") or compares_periods(asked):
            query = changing(asked, query)
    else:
        compares = any(is_aggregate(asked, one) for one in parts.thresholds)
        query = listed_query(asked, compares_groups=compares)
    if query.measures:
        query = replace(query, conditions=(*query.conditions, *dated_groups(asked)))
    query = _with_people(asked, restricted(asked, query))
    _refuse_unmet(asked, query)
    _refuse_contradictions(query)
    _refuse_unplaced(asked, query)
    ordered = [one.column for one in query.order if one.column is not None]
    if any(asked.question.schema.table(one.table).column(one.column) is None for one in ordered):
        raise not_combinable()  # it is a metric, of which single rows have none
    return query


def _refuse_contradictions(query: Query) -> None:
    """Refuses if a column would have to hold two values at once, which no row does.

    Raises:
        Refusal: there is such a column.
    """
    held: dict[ColumnRef, tuple[Operand, ...]] = {}
    for condition in query.conditions:
        if condition.operator == "=" and held.setdefault(condition.column, condition.operands) != condition.operands:
            raise unused_words([str(condition.operands[0])])
    empty = {one.column for one in query.conditions if one.operator == "null"}
    if any(one.column in empty and one.operator != "null" for one in query.conditions):
        raise Refusal("ambiguous_question", _NEVER_MET)
    absent = {one.table for one in query.related if one.negated and not one.conditions}
    if any(one.table in absent and not one.negated for one in query.related):
        raise Refusal("ambiguous_question", _NEVER_MET)


def _refuse_unmet(asked: Asked, query: Query) -> None:
    """Refuses if a figure is asked for and the query has none, or something is asked of a thing that it only names.

    Raises:
        Refusal: "how much did Ann spend" is not answered by Ann.
    """
    parts, question = asked.parts, asked.question
    counts_each_row = Dimension(query.base) in query.dimensions and Measure("count", query.base) in query.measures
    if counts_each_row and not query.counts_rows:  # which gives 1 for each
        raise unused_words(question.texts("count", "super", "each", "by") or ["?"])
    if asked.says("avg") and not any(one.per or one.function in ("avg", "metric") for one in query.measures):
        raise unused_words(question.texts("avg"))
    if asked.says("running") and not any(one.is_running for one in query.measures):
        raise unused_words(question.texts("running"))
    shown = query.measures or query.counts_rows or parts.rankings or parts.thresholds
    if not shown and (asked.says("sum") or asked.says("how_many")):
        raise unused_words(question.texts("sum", "count"))
    named = parts.tables or parts.columns or parts.bare or parts.labels or parts.groups or parts.related
    names = all(one.column.column in question.facts(one.column.table).display for one in parts.conditions)
    if not (shown or named) and names and question.has("which", "verb"):
        raise unused_words(question.texts("which", "verb"))


def _without_deeds(asked: Asked) -> Asked:
    """Leaves out a date whose verb only says which events people are ranked by: "who *sold* the most"."""
    words, columns = asked.question.words, asked.parts.columns
    kept = tuple(one for one in columns if not words[one.at].mark.means("verb") or not asked.question.is_date(one.link))
    ranks = asked.says("person") and asked.parts.rankings
    return asked.with_parts(columns=kept) if ranks else asked


def _with_people(asked: Asked, query: Query) -> Query:
    """Shows the people beside the events that the user was asked back about: "who placed the largest order"."""
    question = asked.question
    is_of_events = not query.measures and not question.facts(query.base).is_entity
    person = asked.person([query.base]) if is_of_events and question.settled != NOTHING_SETTLED else None
    if person is None:
        return query
    names = (ColumnRef(person, name) for name in question.facts(person).shown)
    return replace(query, columns=tuple(dict.fromkeys((*names, *query.columns))))


def refuse_lost(asked: Asked, reading: Reading) -> None:
    """Refuses a reading in which words with a meaning found no place.

    Raises:
        Refusal: there are such words.
    """
    question = asked.question
    if reading.lost:
        lost = [question.words[at].mark for at in reading.lost]
        yearless = [mark for mark in lost if mark.date is not None and mark.date.missing_year]
        if yearless:
            raise missing_year(yearless[0].text)
        unknown = [mark.text for mark in lost if mark.is_unknown]
        raise unknown_words(unknown, question.lexicon) if unknown else unused_words([mark.text for mark in lost])


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


def _with_both_sides(asked: Asked) -> Asked:
    """Yes and no of one column side by side are groups, since no row is both: "paid vs unpaid sales"."""
    said, groups = asked.parts.conditions, asked.parts.groups
    both = [one.column for one in said if one.operator == "true" and replace(one, operator="false") in said]
    sides = (Group(Dimension(one.table, one.column, via=one.via), 0) for one in dict.fromkeys(both))
    kept = tuple(one for one in said if one.column not in both)
    return asked.with_parts(conditions=kept, groups=(*groups, *sides))


def _with_whole_names(asked: Asked) -> Asked:
    """First and last name side by side name one person, in one role: "whose manager is Nancy Fuller"."""
    said, conditions = asked.parts.said, asked.parts.conditions
    places: dict[tuple[object, ...], int] = {
        (link.table, link.column, link.value): at for at, link in said if asked.question.display(link)
    }
    placed = [(places.get((one.column.table, one.column.column, *one.operands), _NOWHERE), one) for one in conditions]
    roles = {(at, one.column.table): one.column.via for at, one in placed if at != _NOWHERE and one.column.via}
    found = []
    for at, one in placed:
        table = one.column.table
        via = one.column.via or roles.get((at - 1, table)) or roles.get((at + 1, table))
        found.append(replace(one, column=replace(one.column, via=via)))
    return asked.with_parts(conditions=tuple(found))


def _split_attributes(asked: Asked) -> Asked:
    """Shows columns of the thing that is grouped by, instead of grouping by them too: `各公司名称和成立日期`."""
    groups, parts = asked.parts.groups, asked.parts
    if parts.figures or parts.rankings or len(groups) < 2 or groups[0].dimension.column is not None:
        return asked
    table = groups[0].dimension.table
    others = [one.dimension for one in groups[1:]]
    if table == NO_TABLE or not all(one.table == table and one.column and not one.bucket for one in others):
        return asked
    columns = tuple(Named(one.at, column_link(table, str(one.dimension.column))) for one in groups[1:])
    return asked.with_parts(groups=groups[:1], columns=(*columns, *parts.columns))


def _refuse_unplaced(asked: Asked, query: Query) -> None:
    """Refuses if a named table or column is neither in the query nor above a table that is.

    Raises:
        Refusal: there is such a name.
    """
    question, words = asked.question, asked.question.words
    spoken = touched(query)
    reachable = {key for table in spoken for key in question.graph.above(table)}
    lost = [one.at for one in asked.tables if one.link.table not in reachable]
    if any(measure.function == "avg" and measure.per is None for measure in query.measures):
        # "average revenue of shops" may mean an average over shops, and the query has one over rows
        lost += [one.at for one in asked.tables if one.link.table not in spoken]
    grouped = {dim.table for dim in query.dimensions if dim.column is None}
    columns = [*query.columns, *(order.column for order in query.order if order.column is not None)]
    columns += [column for dim in query.dimensions for column in asked.shown_columns(dim)]
    shown = {(one.table, one.column) for one in columns}
    shown |= {(one.per.table, one.per.column) for one in query.measures if one.per and one.per.column}
    for one in asked.parts.columns:
        refs = asked.shown_column(one.link, words[one.at].mark.text)
        if not any((ref.table, ref.column) in shown or ref.table in grouped for ref in refs):
            lost.append(one.at)
    answering = {dim.table for dim in query.dimensions}
    if not query.measures:
        answering |= {query.base, *(column.table for column in query.columns)}
    if asked.says("person") and not any(question.facts(key).is_person for key in answering):
        lost += [word.at for word in words if word.mark.arg == "person"]
    for one in asked.tables:
        is_asked = one.role == "asked" and one.at > 0 and words[one.at - 1].mark.means("which")
        if is_asked and one.link.table not in answering and question.facts(one.link.table).display:
            lost.append(one.at)
    if lost:
        raise unused_words([words[at].mark.text for at in lost])


def with_all_groups(asked: Asked, query: Query, inclusion: Inclusion) -> Query:
    """The query with groups that have no rows.

    Raises:
        Refusal: the groups are not rows of one table, or the words name other groups.
    """
    table, graph = grouped_table(query), asked.question.graph
    if table is not None:
        meant = {query.base, table, *(graph.below(table).keys() & graph.above(query.base).keys())}
        is_named = all(any(link.table in meant for link in links) for links in inclusion.named)
        if is_named and all(one.table in graph.above(table) for one in (*query.dimensions, *query.top_per)):
            return replace(query, all_of=table)
    raise unused_words([inclusion.text])


def grouped_table(query: Query) -> TableKey | None:
    """The only table, beside the measured one, whose rows or columns are the groups; None where there is none."""
    grouped = [*query.dimensions, *(measure.per for measure in query.measures if measure.per is not None)]
    tables = {one.table for one in grouped if one.bucket is None} - {query.base}
    return tables.pop() if len(tables) == 1 else None
