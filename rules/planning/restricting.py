"""Puts conditions in their place: on rows, on groups, on related rows, on periods."""

from dataclasses import replace
from decimal import Decimal

from knowledge.naming import called
from rules.linking.dates import Moment, Period
from rules.linking.units import in_stored_unit
from rules.planning.event_dates import no_date_of, span_date
from rules.planning.measuring import measure_of
from rules.planning.periods import compares_periods
from rules.planning.plan import Plan
from rules.planning.ranked import concept_column
from rules.query.conditions import Span, Threshold, ref
from rules.query.query import ColumnRef, Condition, Dimension, Having, Operator, Order, Query, Related
from rules.query.refusals import missing_measure, no_date_column, unused_words
from rules.query.wishes import Figure
from rules.schema.links import METRIC, Link, column_link
from rules.schema.schema import TableKey, is_year, tells_days


def with_conditions(plan: Plan, query: Query) -> Query:
    """The query with all conditions.

    Raises:
        Refusal: one of them can't be applied.
    """
    filters = plan.filters
    for threshold in filters.thresholds:
        query = _with_threshold(plan, query, threshold)
    query = _with_spans(plan, query)
    conditions = (*query.conditions, *filters.conditions)
    _refuse_averages_of_parts(plan, query)
    query = replace(query, conditions=tuple(dict.fromkeys(conditions)), with_deleted=frozenset(filters.with_deleted))
    query, related = _with_references(plan, query, [*query.related, *filters.related])
    query, lacking = _split_lacking(plan, query)
    related = _with_existence(plan, query, [*related, *lacking])
    limit = query.limit if query.limit is not None else plan.asks.limit or None
    return replace(query, related=tuple(related), limit=limit)


def _refuse_averages_of_parts(plan: Plan, query: Query) -> None:
    """Refuses a comparison with an average of parts: `收入高于平均的店铺` means totals of shops, not single days.

    Raises:
        Refusal: there is such a comparison.
    """
    above = plan.reading.graph.above(query.base)
    for condition in plan.filters.conditions:
        averages = condition.operator in ("above average", "below average")
        if averages and condition.column.table not in above:
            words = [mark.text for mark in plan.reading.marks if mark.means("above_average", "below_average")]
            raise unused_words(words)


def _with_references(plan: Plan, query: Query, related: list[Related]) -> tuple[Query, list[Related]]:
    """The query and the related tables, where a table above becomes a null test: `orders without an employee`.

    A row refers to one row above at most, so its reference is empty or not.
    """
    kept: list[Related] = []
    conditions = list(query.conditions)
    graph = plan.reading.graph
    for one in related:
        path = graph.up(query.base, one.table) if one.table != query.base else None
        if not path or one.conditions or graph.is_linked_closer(query.base, one.table, path):
            kept.append(one)
        else:
            reference = ColumnRef(path[-1].child, path[-1].columns[0])
            conditions.append(Condition(reference, "null" if one.negated else "not null"))
    return replace(query, conditions=tuple(conditions)), kept


def _split_lacking(plan: Plan, query: Query) -> tuple[Query, list[Related]]:
    """The query without negated values of other tables, and what must not exist instead.

    `没有加油站的服务区` have no shop of that kind at all; that they have a shop of another kind is not enough.
    """
    above = plan.reading.graph.above(query.base)
    summed = any(measure.function in ("sum", "avg") for measure in query.measures)
    kept: list[Condition] = []
    lacking: list[Related] = []
    for condition in query.conditions:
        key, operator = condition.column.table, _POSITIVE.get(condition.operator)
        beside = key not in above and not query.dimensions and not summed
        if operator is not None and beside:
            positive = replace(condition, operator=operator)
            lacking.append(Related(key, (positive,), negated=True))
        elif beside and condition.operator == "in" and condition.column in plan.filters.conjoined:
            each = [replace(condition, operator="=", operands=(operand,)) for operand in condition.operands]
            lacking += [Related(key, (one,)) for one in each]  # those who bought this and that need a row for each
        else:
            kept.append(condition)
    return replace(query, conditions=tuple(kept)), lacking


def _with_existence(plan: Plan, query: Query, related: list[Related]) -> list[Related]:
    """The related tables, with those that are only mentioned and lie below the listed one: "customers with orders"."""
    used = {query.base, *(column.table for column in query.columns), *(dim.table for dim in query.dimensions)}
    used |= {measure.table for measure in query.measures} | {one.table for one in related}
    used |= {condition.column.table for condition in query.conditions}
    above = plan.reading.graph.above(query.base)
    for index, key in plan.tables:
        if key not in used and key not in above:
            before = plan.reading.beside(index, -1, ("noise", "of", "unit"))
            if before is not None and plan.reading.marks[before].means("with", "and", "verb", "which"):
                related.append(Related(key))
    return related


def is_aggregate(plan: Plan, threshold: Threshold) -> bool:
    """Whether a comparison is about an aggregated figure, and not about a column of the asked table."""
    if threshold.function is not None or threshold.table is not None:
        return True
    if threshold.link is not None and threshold.link.derived == METRIC:
        return True
    counted = [figure.table for figure in plan.asks.figures if figure.link is None]
    link, head = threshold.link, plan.head or next((shown.table for shown in plan.named_at.values()), None)
    head = head or next(iter(counted), None)
    if compares_periods(plan):
        return True
    if link is None or head is None:
        return False
    if plan.head is None and plan.reading.facts(head).is_report and plan.reading.is_measure(link):
        return True  # reports are parts of a day, so the total of a group is compared
    return link.table not in plan.reading.graph.above(head)


def _with_threshold(plan: Plan, query: Query, threshold: Threshold) -> Query:
    if threshold.hint:
        said = plan.reading.settled.figure
        link = said.link if said is not None else concept_column(plan.reading, query.base, threshold.hint)
        if link is None:
            raise missing_measure(called(plan.reading.schema.table(query.base)))
        is_age = threshold.hint == "age" and plan.reading.is_date(link)
        threshold.link = replace(link, derived="age") if is_age else link
    if threshold.link is None and threshold.table is None:
        threshold.link = _implied_threshold(plan, query, threshold)
    if threshold.link is not None and threshold.link.derived is None:
        column = plan.reading.column_of(threshold.link)
        threshold.operands = in_stored_unit(threshold.operands, column, plan.reading.marks)
    grouped = bool(query.measures and query.dimensions)
    aggregated = is_aggregate(plan, threshold)
    if threshold.link is not None and not aggregated and not (grouped and _compares_figure(query, threshold.link)):
        condition = Condition(ref(threshold.link), threshold.operator, threshold.operands)
        return replace(query, conditions=(*query.conditions, condition))
    figure = Figure(threshold.function, threshold.link, threshold.table)  # type: ignore[arg-type]
    measure = measure_of(plan, figure)
    having = Having(measure, threshold.operator, threshold.operands)
    return _with_having(plan, query, having)


def _implied_threshold(plan: Plan, query: Query, threshold: Threshold) -> Link | None:
    """The column of a comparison that names none: that of the figure asked for, else the table's only measure.

    Raises:
        Refusal: there is no such column, or another noun may be compared.
    """
    if threshold.operator in ("=", "!="):
        raise unused_words([plan.reading.marks[threshold.position].text])  # `编号为101的` may mean any number
    after = plan.reading.beside(threshold.position, 1, ("noise", "unit"), through_used=False)
    if not plan.reading.is_chinese and after is not None and plan.reading.nouns[after] is not None:
        raise unused_words([plan.reading.marks[threshold.position].text])  # "at least 3 open areas" compares the areas
    measure = next(iter(query.measures), None)
    own = plan.reading.facts(query.base).measures
    if measure is None and len(own) == 1:
        return column_link(query.base, own[0].name)  # "invoices over 15"
    if measure is None or measure.column is None:
        words = [mark.text for mark in plan.reading.marks if mark.means("cmp", "between")]
        raise unused_words(words or ["?"])
    return column_link(measure.table, measure.column)


def _compares_figure(query: Query, link: Link) -> bool:
    return any(measure.column == link.column and measure.table == link.table for measure in query.measures)


def _with_having(plan: Plan, query: Query, having: Having) -> Query:
    counts = bool(query.measures) and query.measures[0].column is None and query.measures[0].function == "count"
    if not query.dimensions and counts:
        dimensions = (Dimension(query.measures[0].table),)
        query = replace(query, measures=(having.measure,), dimensions=dimensions, counts_rows=True)
    measures = query.measures or (having.measure,)
    if not query.dimensions or having.measure.table not in {measure.table for measure in measures}:
        raise unused_words([mark.text for mark in plan.reading.marks if mark.means("cmp", "between")])
    order = () if query.counts_rows else query.order or (Order(measure=measures[0]), Order(descending=False))
    return replace(query, base=measures[0].table, measures=measures, having=(*query.having, having), order=order)


def _with_spans(plan: Plan, query: Query) -> Query:
    plain = [span for span in plan.filters.spans if span.link is None]
    if len(plain) > 1 and not _are_bounds(plain):
        raise unused_words([mark.text for mark in plan.reading.marks if mark.date is not None])
    bases = list(dict.fromkeys(measure.table for measure in query.measures)) or [query.base]
    for span in plan.filters.spans:
        for base in bases if len(bases) > 1 and span.link is None else [query.base]:
            date = (ref(span.link) if span.link else None) or span_date(plan, base)
            if date is None or _is_of_another(plan, date, base):
                raise no_date_of(plan, base)
            query = replace(query, conditions=(*query.conditions, *_during_conditions(plan, date, span)))
    return query


def _is_of_another(plan: Plan, date: ColumnRef, base: TableKey) -> bool:
    """Whether the date belongs to a table above that the question doesn't name: `去年开业的店铺`."""
    both = plan.reading.facts(date.table).is_entity and plan.reading.facts(base).is_entity
    above = date.table != base and date.table in plan.reading.graph.above(base)
    return both and above and date.table not in plan.reading.named_tables()


def _during_conditions(plan: Plan, date: ColumnRef, span: Span) -> list[Condition]:
    """The period as a condition on a date column, or on a column of years.

    Raises:
        Refusal: the period begins or ends within a month or year, and the column tells nothing finer apart.
    """
    column = plan.reading.schema.column(date.table, date.column)
    if not is_year(column):
        bounds = [moment for period in span.periods for moment in (period.start, period.end) if moment is not None]
        if not tells_days(column) and not all(moment.begins_month for moment in bounds):
            raise no_date_column(called(plan.reading.schema.table(date.table)))
        return [Condition(date, "not during" if span.negated else "during", tuple(span.periods))]
    found = [one for period in span.periods for one in year_conditions(date, period)]
    if not found or (len(span.periods) > 1 and any(condition.operator != "=" for condition in found)):
        raise no_date_column(called(plan.reading.schema.table(date.table)))
    if len(found) > 1 and len(span.periods) > 1:
        return [Condition(date, "in", tuple(condition.operands[0] for condition in found))]
    return found


def _are_bounds(spans: list[Span]) -> bool:
    """Whether two periods are a beginning and an end: "since 2022 … until 2024"."""
    starts = [span for span in spans if span.periods[0].start is None]
    ends = [span for span in spans if span.periods[0].end is None]
    return len(spans) == 2 and len(starts) == len(ends) == 1


def year_conditions(column: ColumnRef, period: Period) -> list[Condition]:
    """A period of whole years as conditions on a column of years; none if its bounds are no whole years."""
    bounds = [moment for moment in (period.start, period.end) if moment is not None]
    if any(moment.day is None or (moment.day.month, moment.day.day) != (1, 1) for moment in bounds):
        return []
    ends: list[tuple[Operator, Moment | None]] = [(">=", period.start), ("<", period.end)]
    if period.grain == "year":
        ends = [("=", period.start)]
    return [
        Condition(column, operator, (Decimal(moment.day.year),))
        for operator, moment in ends
        if moment is not None and moment.day is not None
    ]


_POSITIVE: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not contains": "contains"}
