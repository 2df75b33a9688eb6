"""Puts conditions in their place: on rows, on groups, on related rows, on periods."""

from dataclasses import replace
from decimal import Decimal

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.linking.units import in_stored_unit
from rules.query.query import Condition, Dimension, Figure, Having, Operator, Order, Query, Related, ref, touched
from rules.query.refusals import missing_measure, unused_words
from rules.reading.implied import concept_column
from rules.reading.parts import Span, Threshold
from rules.schema.links import METRIC, Link, column_link

_POSITIVE: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not contains": "contains"}


def restricted(asked: Asked, query: Query) -> Query:
    """The query with all conditions but those of which a share is taken.

    Raises:
        Refusal: one of them can't be applied.
    """
    for threshold in asked.parts.thresholds:
        query = _with_threshold(asked, query, threshold)
    query = _with_weekdays(asked, query if query.comparison is not None else _with_spans(asked, query))
    _refuse_averages_of_parts(asked, query)
    parts = asked.parts
    shared = {one for measure in query.measures for one in measure.share_of}
    query = replace(
        query,
        conditions=tuple(dict.fromkeys((*query.conditions, *(one for one in parts.conditions if one not in shared)))),
        with_deleted=frozenset(parts.with_deleted),
        either=parts.either,
        related=(*query.related, *parts.related),
        limit=query.limit if query.limit is not None else next(iter(parts.limits), None),
    )
    return _with_existence(asked, _split_lacking(asked, _with_references(asked, query)))


def _refuse_averages_of_parts(asked: Asked, query: Query) -> None:
    """Refuses a comparison with an average of parts: `收入高于平均的店铺` means totals of shops, not single days.

    Raises:
        Refusal: there is such a comparison.
    """
    above = asked.question.graph.above(query.base)
    for condition in asked.parts.conditions:
        if condition.operator in ("above average", "below average") and condition.column.table not in above:
            raise unused_words(asked.question.texts("above_average", "below_average"))


def _with_references(asked: Asked, query: Query) -> Query:
    """The query in which a related table above is a null test: `orders without an employee`."""
    kept: list[Related] = []
    conditions = list(query.conditions)
    graph = asked.question.graph
    for one in query.related:
        path = graph.up(query.base, one.table) if one.table != query.base else None
        if not path or one.conditions or graph.is_linked_closer(query.base, one.table, path):
            kept.append(one)
        else:
            reference = ref(column_link(path[-1].child, path[-1].columns[0]))
            conditions.append(Condition(reference, "null" if one.negated else "not null"))
    return replace(query, conditions=tuple(conditions), related=tuple(kept))


def _split_lacking(asked: Asked, query: Query) -> Query:
    """The query in which what must not exist stands in place of negated values of other tables.

    `没有加油站的服务区` have no shop of that kind at all; that they have a shop of another kind is not enough.
    """
    above = asked.question.graph.above(query.base)
    summed = any(measure.function in ("sum", "avg") for measure in query.measures)
    kept: list[Condition] = []
    related = list(query.related)
    for condition in query.conditions:
        key, operator = condition.column.table, _POSITIVE.get(condition.operator)
        beside = key not in above and not query.dimensions and not summed
        if operator is not None and beside:
            related.append(Related(key, (replace(condition, operator=operator),), negated=True))
        elif beside and condition.operator == "in" and "joined:and" in asked.parts.flags:
            each = [replace(condition, operator="=", operands=(operand,)) for operand in condition.operands]
            related += [Related(key, (one,)) for one in each]  # those who bought this and that need a row for each
        else:
            kept.append(condition)
    return replace(query, conditions=tuple(kept), related=tuple(related))


def _with_existence(asked: Asked, query: Query) -> Query:
    """The query with the tables that are only mentioned and lie below the listed one: "customers with orders"."""
    graph, related = asked.question.graph, list(query.related)
    absent = {key for one in related if one.negated for key in graph.above(one.table)}
    known = touched(query) | graph.above(query.base).keys() | absent
    for one in asked.tables:
        before = asked.question.nearest(one.at - 1, -1, "noise", "of", "unit")
        tied = before is not None and before.mark.means("with", "and", "verb", "which")
        if one.link.table not in known and tied:
            related.append(Related(one.link.table))
    return replace(query, related=tuple(related))


# --------------------------------------------------------------------------------------------------------- comparisons


def is_aggregate(asked: Asked, threshold: Threshold) -> bool:
    """Whether a comparison is about an aggregated figure, and not about a column of the asked table."""
    link = threshold.link
    is_metric = link is not None and link.derived == METRIC
    if threshold.function is not None or threshold.table is not None or is_metric or asks_for_periods(asked):
        return True
    counted = next((one.table for one in asked.parts.figures if one.link is None), None)
    head = asked.head or next((one.link.table for one in asked.parts.columns), None) or counted
    if link is None or head is None:
        return False
    facts = asked.question.facts(head)
    if asked.head is None and facts.is_report and asked.question.is_measure(link):
        return True  # reports are parts of a day, so the total of a group is compared
    return link.table not in asked.question.graph.above(head)


def asks_for_periods(asked: Asked) -> bool:
    """Whether nothing is asked for but periods whose figure is compared: "days with revenue above 10 million"."""
    parts = asked.parts
    named = asked.tables or parts.columns or parts.bare or parts.figures or parts.rankings
    if named or not (asked.says("periods") or asked.question.has("date_which")):
        return False
    if len(parts.groups) != 1 or len(parts.thresholds) != 1 or parts.groups[0].dimension.bucket is None:
        return False
    link = parts.thresholds[0].link
    return link is not None and not asked.question.facts(link.table).is_entity and asked.question.is_measure(link)


def _with_threshold(asked: Asked, query: Query, threshold: Threshold) -> Query:
    question = asked.question
    if threshold.hint:
        said = question.settled.figure
        link = said.link if said is not None else concept_column(question, query.base, threshold.hint)
        if link is None:
            raise missing_measure(called(question.schema.table(query.base)))
        is_age = threshold.hint == "age" and question.is_date(link)
        threshold = replace(threshold, link=replace(link, derived="age") if is_age else link)
    if threshold.link is None and threshold.table is None:
        threshold = replace(threshold, link=_implied(asked, query))
    link = threshold.link
    if link is not None and link.derived is None:
        marks = [word.mark for word in question.words]
        threshold = replace(threshold, operands=in_stored_unit(threshold.operands, question.column_of(link), marks))
    grouped = bool(query.measures and query.dimensions)
    same = link is not None and any((one.table, one.column) == (link.table, link.column) for one in query.measures)
    if link is not None and not is_aggregate(asked, threshold) and not (grouped and same):
        condition = Condition(ref(link), threshold.operator, threshold.operands)
        return replace(query, conditions=(*query.conditions, condition))
    figure = Figure(threshold.function, link, threshold.table, threshold.at)  # type: ignore[arg-type]
    return _with_having(asked, query, Having(asked.measure(figure), threshold.operator, threshold.operands))


def _implied(asked: Asked, query: Query) -> Link | None:
    """The column of a comparison that names none: that of the figure asked for, else the table's only measure.

    Raises:
        Refusal: there is no such column.
    """
    measure = next(iter(query.measures), None)
    own = asked.question.facts(query.base).measures
    if measure is None and len(own) == 1:
        return column_link(query.base, own[0].name)  # "invoices over 15"
    link = column_link(measure.table, str(measure.column)) if measure is not None and measure.column else None
    if link is None or asked.question.kind(link) in ("date", "timestamp"):
        raise unused_words(asked.question.texts("cmp", "between") or ["?"])
    return link


def _with_having(asked: Asked, query: Query, having: Having) -> Query:
    counted = query.measures[0].table if query.measures and query.measures[0].column is None else None
    if not query.dimensions and counted is not None:
        query = replace(query, measures=(having.measure,), dimensions=(Dimension(counted),), counts_rows=True)
    measures = query.measures or (having.measure,)
    if not query.dimensions or having.measure.table not in {measure.table for measure in measures}:
        raise unused_words(asked.question.texts("cmp", "between"))
    order = () if query.counts_rows else query.order or (Order(measure=measures[0]), Order(descending=False))
    return replace(query, base=measures[0].table, measures=measures, having=(*query.having, having), order=order)


# ------------------------------------------------------------------------------------------------------------- periods


def _with_spans(asked: Asked, query: Query) -> Query:
    plain = [span for span in asked.parts.spans if span.link is None]
    if len(plain) > 1 and not _are_bounds(plain):
        raise unused_words([word.mark.text for word in asked.question.words if word.mark.date is not None])
    bases = dict.fromkeys(measure.table for measure in query.measures) or [query.base]
    for span in asked.parts.spans:
        for base in bases if span.link is None else [query.base]:
            date = ref(span.link) if span.link else asked.span_date(base)
            if _is_of_another(asked, date.table, base):
                raise asked.no_date_of(base)
            query = replace(query, conditions=(*query.conditions, *asked.during(date, span)))
    return query


def _with_weekdays(asked: Asked, query: Query) -> Query:
    """The query on a weekday or at weekends; by weekday, or at weekends and not, where several are named.

    Raises:
        Refusal: it is not known which weekdays are meant, or the rows carry no date.
    """
    days = asked.parts.weekdays
    if not days:
        return query
    first, several = days[0], len(days) > 1
    if several and (not query.measures or any(one.part != first.part or one.negated or one.link for one in days)):
        raise unused_words(asked.question.texts("calendar"))
    column = replace(ref(first.link) if first.link else asked.span_date(query.base), part=first.part)
    if several:  # `周末和工作日的车流量`
        dimensions = (*query.dimensions, Dimension(column.table, column.column, part=first.part))
        query = replace(query, dimensions=dimensions, order=query.order or (Order(descending=False),))
    if first.part == "weekend":
        found = [] if several else [Condition(column, "true" if bool(first.value) != first.negated else "false")]
    else:
        operator: Operator = "in" if several else "!=" if first.negated else "="
        found = [Condition(column, operator, tuple(Decimal(one.value) for one in days))]
    return replace(query, conditions=(*query.conditions, *found))


def _is_of_another(asked: Asked, dated: TableKey, base: TableKey) -> bool:
    """Whether the date belongs to a table above that the question doesn't name: `去年开业的店铺`."""
    question = asked.question
    both = question.facts(dated).is_entity and question.facts(base).is_entity
    above = dated != base and dated in question.graph.above(base)
    return both and above and dated not in question.named_tables()


def _are_bounds(spans: list[Span]) -> bool:
    """Whether two periods are a beginning and an end: "since 2022 … until 2024"."""
    starts = [span for span in spans if span.periods[0].start is None]
    ends = [span for span in spans if span.periods[0].end is None]
    return len(spans) == 2 and len(starts) == len(ends) == 1
