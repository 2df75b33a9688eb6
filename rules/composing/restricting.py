"""Puts conditions in their place: on rows, on groups, on related rows, on periods."""

from dataclasses import replace
from decimal import Decimal

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.linking.units import in_stored_unit
from rules.query.query import ColumnRef, Condition, Dimension, Figure, Having, Operator, Order, Query, Related, ref
from rules.query.refusals import missing_measure, unused_words
from rules.reading.implied import concept_column
from rules.reading.parts import Span, Threshold
from rules.schema.links import METRIC, Link, column_link

_POSITIVE: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not contains": "contains"}


def restricted(asked: Asked, query: Query, skipped: tuple[Condition, ...] = ()) -> Query:
    """The query with all conditions but those `skipped`.

    Raises:
        Refusal: one of them can't be applied.
    """
    for threshold in asked.parts.thresholds:
        query = _with_threshold(asked, query, threshold)
    query = _with_weekdays(asked, query if query.comparison is not None else _with_spans(asked, query))
    _refuse_averages_of_parts(asked, query)
    own = tuple(one for one in asked.parts.conditions if one not in skipped)
    conditions = tuple(dict.fromkeys((*query.conditions, *own)))
    query = replace(
        query, conditions=conditions, with_deleted=frozenset(asked.parts.with_deleted), either=asked.parts.either
    )
    query, related = _with_references(asked, query, [*query.related, *asked.parts.related])
    query, lacking = _split_lacking(asked, query)
    related = _with_existence(asked, query, [*related, *lacking])
    limit = query.limit if query.limit is not None else next(iter(asked.parts.limits), None)
    return replace(query, related=tuple(related), limit=limit)


def _refuse_averages_of_parts(asked: Asked, query: Query) -> None:
    """Refuses a comparison with an average of parts: `收入高于平均的店铺` means totals of shops, not single days.

    Raises:
        Refusal: there is such a comparison.
    """
    above = asked.question.graph.above(query.base)
    for condition in asked.parts.conditions:
        if condition.operator in ("above average", "below average") and condition.column.table not in above:
            raise unused_words(asked.question.texts("above_average", "below_average"))


def _with_references(asked: Asked, query: Query, related: list[Related]) -> tuple[Query, list[Related]]:
    """The query and the related tables, where a table above becomes a null test: `orders without an employee`."""
    kept: list[Related] = []
    conditions = list(query.conditions)
    graph = asked.question.graph
    for one in related:
        path = graph.up(query.base, one.table) if one.table != query.base else None
        if not path or one.conditions or graph.is_linked_closer(query.base, one.table, path):
            kept.append(one)
        else:
            reference = ColumnRef(path[-1].child, path[-1].columns[0])
            conditions.append(Condition(reference, "null" if one.negated else "not null"))
    return replace(query, conditions=tuple(conditions)), kept


def _split_lacking(asked: Asked, query: Query) -> tuple[Query, list[Related]]:
    """The query without negated values of other tables, and what must not exist instead.

    `没有加油站的服务区` have no shop of that kind at all; that they have a shop of another kind is not enough.
    """
    above = asked.question.graph.above(query.base)
    summed = any(measure.function in ("sum", "avg") for measure in query.measures)
    kept: list[Condition] = []
    lacking: list[Related] = []
    for condition in query.conditions:
        key, operator = condition.column.table, _POSITIVE.get(condition.operator)
        beside = key not in above and not query.dimensions and not summed
        if operator is not None and beside:
            lacking.append(Related(key, (replace(condition, operator=operator),), negated=True))
        elif beside and condition.operator == "in" and "joined:and" in asked.parts.flags:
            each = [replace(condition, operator="=", operands=(operand,)) for operand in condition.operands]
            lacking += [Related(key, (one,)) for one in each]  # those who bought this and that need a row for each
        else:
            kept.append(condition)
    return replace(query, conditions=tuple(kept)), lacking


def _with_existence(asked: Asked, query: Query, related: list[Related]) -> list[Related]:
    """The related tables, with those that are only mentioned and lie below the listed one: "customers with orders"."""
    used = {query.base, *(column.table for column in query.columns), *(dim.table for dim in query.dimensions)}
    used |= {measure.table for measure in query.measures} | {one.table for one in related}
    used |= {condition.column.table for condition in query.conditions}
    above = asked.question.graph.above(query.base)
    for one in asked.tables:
        key, before = one.link.table, asked.question.nearest(one.at - 1, -1, "noise", "of", "unit")
        tied = before is not None and before.mark.means("with", "and", "verb", "which")
        if key not in used and key not in above and tied:
            related.append(Related(key))
    return related


# --------------------------------------------------------------------------------------------------------- comparisons


def is_aggregate(asked: Asked, threshold: Threshold) -> bool:
    """Whether a comparison is about an aggregated figure, and not about a column of the asked table."""
    if threshold.function is not None or threshold.table is not None:
        return True
    if threshold.link is not None and threshold.link.derived == METRIC:
        return True
    counted = next((one.table for one in asked.parts.figures if one.link is None), None)
    head = asked.head or next((one.link.table for one in asked.parts.columns), None) or counted
    link = threshold.link
    if asks_for_periods(asked):
        return True
    if link is None or head is None:
        return False
    facts = asked.question.facts(head)
    if asked.head is None and facts.is_report and asked.question.is_measure(link):
        return True  # reports are parts of a day, so the total of a group is compared
    return link.table not in asked.question.graph.above(head)


def asks_for_periods(asked: Asked) -> bool:
    """Whether nothing is asked for but periods whose figure is compared: "days with revenue above 10 million"."""
    parts = asked.parts
    groups = [one.dimension for one in parts.groups]
    links = [one.link for one in parts.thresholds]
    if not asked.says("periods") and not asked.question.has("date_which"):
        return False
    if asked.tables or parts.columns or parts.bare or parts.figures or parts.rankings or len(groups) != 1:
        return False
    link = links[0] if len(links) == 1 else None
    events = link is not None and not asked.question.facts(link.table).is_entity and asked.question.is_measure(link)
    return groups[0].bucket is not None and events


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
    counts = bool(query.measures) and query.measures[0].column is None and query.measures[0].function == "count"
    if not query.dimensions and counts:
        dimensions = (Dimension(query.measures[0].table),)
        query = replace(query, measures=(having.measure,), dimensions=dimensions, counts_rows=True)
    measures = query.measures or (having.measure,)
    if not query.dimensions or having.measure.table not in {measure.table for measure in measures}:
        raise unused_words(asked.question.texts("cmp", "between"))
    order = () if query.counts_rows else query.order or (Order(measure=measures[0]), Order(descending=False))
    return replace(query, base=measures[0].table, measures=measures, having=(*query.having, having), order=order)


# ------------------------------------------------------------------------------------------------------------- periods


def _with_spans(asked: Asked, query: Query) -> Query:
    question = asked.question
    plain = [span for span in asked.parts.spans if span.link is None]
    if len(plain) > 1 and not _are_bounds(plain):
        raise unused_words([word.mark.text for word in question.words if word.mark.date is not None])
    bases = list(dict.fromkeys(measure.table for measure in query.measures)) or [query.base]
    for span in asked.parts.spans:
        for base in bases if len(bases) > 1 and span.link is None else [query.base]:
            date = ref(span.link) if span.link else asked.span_date(base)
            if _is_of_another(asked, date, base):
                raise asked.no_date_of(base)
            query = replace(query, conditions=(*query.conditions, *asked.during(date, span)))
    return query


def _with_weekdays(asked: Asked, query: Query) -> Query:
    if len(asked.parts.weekdays) > 1:
        return _with_several_weekdays(asked, query)
    for one in asked.parts.weekdays:
        date = ref(one.link) if one.link else asked.span_date(query.base)
        column = replace(date, part=one.part)
        if one.part == "weekend":
            condition = Condition(column, "true" if bool(one.value) != one.negated else "false")
        else:
            condition = Condition(column, "!=" if one.negated else "=", (Decimal(one.value),))
        query = replace(query, conditions=(*query.conditions, condition))
    return query


def _with_several_weekdays(asked: Asked, query: Query) -> Query:
    """Figures by weekday, or at weekends and not: `周末和工作日的车流量`.

    Raises:
        Refusal: it is not known which weekdays are meant, or the rows carry no date.
    """
    days = asked.parts.weekdays
    if len({one.part for one in days}) > 1 or any(one.negated or one.link for one in days) or not query.measures:
        raise unused_words(asked.question.texts("calendar"))
    date, part = asked.span_date(query.base), days[0].part
    if part == "weekday":
        values = tuple(Decimal(one.value) for one in days)
        query = replace(query, conditions=(*query.conditions, Condition(replace(date, part=part), "in", values)))
    dimension = Dimension(date.table, date.column, part=part)
    return replace(query, dimensions=(*query.dimensions, dimension), order=query.order or (Order(descending=False),))


def _is_of_another(asked: Asked, date: ColumnRef, base: TableKey) -> bool:
    """Whether the date belongs to a table above that the question doesn't name: `去年开业的店铺`."""
    question = asked.question
    both = question.facts(date.table).is_entity and question.facts(base).is_entity
    above = date.table != base and date.table in question.graph.above(base)
    return both and above and date.table not in question.named_tables()


def _are_bounds(spans: list[Span]) -> bool:
    """Whether two periods are a beginning and an end: "since 2022 … until 2024"."""
    starts = [span for span in spans if span.periods[0].start is None]
    ends = [span for span in spans if span.periods[0].end is None]
    return len(spans) == 2 and len(starts) == len(ends) == 1
