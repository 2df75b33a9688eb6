"""Adds conditions to a query: on rows, on groups, on related rows, and on periods."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from common.meanings import TableKey
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.units import in_stored_unit
from rules.query.query import (
    ColumnRef,
    Condition,
    Dimension,
    Figure,
    Having,
    Operator,
    Order,
    Query,
    Related,
    ref,
    touched,
)
from rules.query.refusals import missing_measure, unused_words
from rules.reading.implied import concept_column
from rules.reading.parts import Span, Threshold, Weekday
from rules.schema.links import METRIC, Link, column_link
from rules.schema.reference_graph import AmbiguousPath, Path

_POSITIVE: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not contains": "contains"}


def restricted(asked: Asked, query: Query) -> Query:
    """Return the query with all conditions but those of which a share is taken.

    Raises:
        Refusal: one of them can't be applied.
    """
    parts = asked.parts
    for threshold in parts.thresholds:
        query = _with_threshold(asked, query, threshold)

    if query.comparison is None:
        query = _with_spans(asked, query)

    query = _with_weekdays(asked, query)
    _refuse_averages_of_parts(asked, query)
    shared = {one for measure in query.measures for one in measure.share_of}
    conditions = [
        *query.conditions,
        *(condition for condition in parts.conditions if condition not in shared),
    ]
    limit = query.limit
    if limit is None and parts.limits:
        limit = parts.limits[0]

    query = replace(
        query,
        conditions=tuple(dict.fromkeys(conditions)),
        with_deleted=frozenset(parts.with_deleted),
        either=parts.either,
        related=(*query.related, *parts.related),
        limit=limit,
    )
    query = _with_references(asked, query)
    query = _split_lacking(asked, query)
    return _with_existence(asked, query)


def _refuse_averages_of_parts(asked: Asked, query: Query) -> None:
    """Refuse a comparison with an average of rows below those that are listed or measured.

    `收入高于平均的店铺` means totals of shops, not single days.
    """
    above = asked.question.graph.above(query.base)
    for condition in asked.parts.conditions:
        is_average = condition.operator in ("above average", "below average")
        if is_average and condition.column.table not in above:
            raise unused_words(asked.question.texts("above_average", "below_average"))


def _with_references(asked: Asked, query: Query) -> Query:
    """Test the reference for NULL if a related table is above: `orders without an employee`."""
    kept: list[Related] = []
    conditions = list(query.conditions)
    graph = asked.question.graph
    for one in query.related:
        path = graph.up(query.base, one.table) if one.table != query.base else None
        if not path or one.conditions or graph.is_linked_closer(query.base, one.table, path):
            kept.append(one)
            continue

        reference = ref(column_link(path[-1].child, path[-1].columns[0]))
        conditions.append(Condition(reference, "null" if one.negated else "not null"))

    return replace(query, conditions=tuple(conditions), related=tuple(kept))


def _split_lacking(asked: Asked, query: Query) -> Query:
    """Turn conditions on tables that are not above into tests of related rows.

    `没有加油站的服务区` have no shop of that kind at all; that they have a shop of another kind is
    not enough. And who bought this and that needs a row for each.
    """
    above = asked.question.graph.above(query.base)
    adds_up = any(measure.function in ("sum", "avg") for measure in query.measures)
    is_of_groups = bool(query.dimensions) or adds_up
    if is_of_groups and not _measures_only(query, query.base):
        return query

    needs_each = "joined:and" in asked.parts.flags and not is_of_groups
    kept: list[Condition] = []
    related = list(query.related)
    for condition in query.conditions:
        key = condition.column.table
        operator = _POSITIVE.get(condition.operator)
        if key in above:
            kept.append(condition)
        elif operator is not None:
            related.append(Related(key, (replace(condition, operator=operator),), negated=True))
        elif needs_each and condition.operator == "in":
            for operand in condition.operands:
                one = replace(condition, operator="=", operands=(operand,))
                related.append(Related(key, (one,)))
        else:
            kept.append(condition)

    return replace(query, conditions=tuple(kept), related=tuple(related))


def _measures_only(query: Query, table: TableKey) -> bool:
    """Tell whether all figures are of rows of the table."""
    return all(measure.table == table for measure in query.measures)


def _with_existence(asked: Asked, query: Query) -> Query:
    """Add tests for tables that are only mentioned: "customers with orders".

    Of a table above, that is a test of the reference, if it may be empty: "orders with a coupon".
    """
    graph = asked.question.graph
    related = list(query.related)
    conditions = list(query.conditions)
    used = touched(query)
    in_reach = used | graph.above(query.base).keys()
    for one in related:
        if one.negated:
            in_reach |= graph.above(one.table).keys()

    for named in asked.tables:
        table = named.link.table
        if table in in_reach:
            is_passed = table not in used and bool(query.measures)
            conditions += has_reference(asked, query.base, table) if is_passed else []
            continue

        before = asked.question.nearest(named.at - 1, -1, "noise", "of", "unit")
        if before is not None and before.mark.means("with", "and", "verb", "which"):
            related.append(Related(table))

    return replace(query, related=tuple(related), conditions=tuple(conditions))


def has_reference(asked: Asked, base: TableKey, above: TableKey) -> list[Condition]:
    """Return the condition that a row belongs to one of a table above; none where each does."""
    path: Path | None = None
    with suppress(AmbiguousPath):
        path = asked.question.graph.up(base, above)

    for edge in path or ():
        name = edge.columns[0]
        if asked.question.schema.column(edge.child, name).nullable:
            return [Condition(ref(column_link(edge.child, name)), "not null")]

    return []


# ------------------------------------------------------------------------------
# comparisons


def is_aggregate(asked: Asked, threshold: Threshold) -> bool:
    """Tell whether a comparison is about an aggregated figure, not a column of the asked table."""
    link = threshold.link
    if threshold.function is not None or threshold.table is not None:
        return True

    is_metric = link is not None and link.derived == METRIC
    if is_metric or asks_for_periods(asked):
        return True

    head = _compared_table(asked)
    if link is None or head is None:
        return False

    is_of_reports = asked.head is None and asked.question.facts(head).is_report
    if is_of_reports and asked.question.is_measure(link):
        # reports are parts of a day, so the total of a group is compared
        return True

    return link.table not in asked.question.graph.above(head)


def _compared_table(asked: Asked) -> TableKey | None:
    """Return the table whose rows or groups are compared."""
    if asked.head is not None:
        return asked.head
    if asked.parts.columns:
        return asked.parts.columns[0].link.table

    counts = [figure.table for figure in asked.parts.figures if figure.link is None]
    return counts[0] if counts else None


def asks_for_periods(asked: Asked) -> bool:
    """Tell whether only periods are asked for whose figure is compared.

    An example is "days with revenue above 10 million".
    """
    parts = asked.parts
    question = asked.question
    if not asked.says("periods") and not question.has("date_which"):
        return False

    figures = (*parts.bare, *parts.figures, *parts.rankings)
    if asked.tables or parts.columns or figures:
        return False
    if len(parts.groups) != 1 or len(parts.thresholds) != 1:
        return False

    link = parts.thresholds[0].link
    if link is None or not parts.has_buckets:
        return False

    is_event = not question.facts(link.table).is_entity
    return is_event and question.is_measure(link)


def _with_threshold(asked: Asked, query: Query, threshold: Threshold) -> Query:
    """Add a comparison: a condition on rows, or on the figures of groups."""
    if threshold.hint:
        threshold = replace(threshold, link=_hinted(asked, query, threshold.hint))
    if threshold.link is None and threshold.table is None:
        threshold = replace(threshold, link=_implied(asked, query))

    threshold = _in_stored_unit(asked, threshold)
    link = threshold.link
    operator = threshold.operator
    if link is not None and not _compares_groups(asked, query, threshold):
        condition = Condition(ref(link), operator, threshold.operands)
        return replace(query, conditions=(*query.conditions, condition))

    figure = Figure(
        threshold.function,  # type: ignore[arg-type]
        link,
        threshold.table,
        threshold.at,
    )
    having = Having(asked.measure(figure), operator, threshold.operands)
    return _with_having(asked, query, having)


def _hinted(asked: Asked, query: Query, hint: str) -> Link:
    """Return the column that an adjective compares, or the figure that the user has named.

    Raises:
        Refusal: there is neither.
    """
    question = asked.question
    settled_figure = question.settled.figure
    link = (
        settled_figure.link
        if settled_figure is not None
        else concept_column(question, query.base, hint)
    )
    if link is None:
        raise missing_measure(called(question.schema.table(query.base)))

    is_age = hint == "age" and question.is_date(link)
    return replace(link, derived="age") if is_age else link


def _in_stored_unit(asked: Asked, threshold: Threshold) -> Threshold:
    """Return the comparison with its numbers in the unit in which the column is stored."""
    link = threshold.link
    if link is None or link.derived is not None:
        return threshold

    marks = [word.mark for word in asked.question.words]
    column = asked.question.column_of(link)
    return replace(threshold, operands=in_stored_unit(threshold.operands, column, marks))


def _compares_groups(asked: Asked, query: Query, threshold: Threshold) -> bool:
    """Tell whether a comparison with a column is one of aggregated figures."""
    if is_aggregate(asked, threshold):
        return True

    link = threshold.link
    if link is None or not query.dimensions:
        return False

    measured = [(measure.table, measure.column) for measure in query.measures]
    return (link.table, link.column) in measured


def _implied(asked: Asked, query: Query) -> Link | None:
    """Return the column of a comparison that names none.

    It is that of the figure that is asked for, else the table's only measure.

    Raises:
        Refusal: there is no such column.
    """
    own = asked.question.facts(query.base).measures
    if not query.measures and len(own) == 1:
        # "invoices over 15"
        return column_link(query.base, own[0].name)

    link = None
    if query.measures and query.measures[0].column:
        link = column_link(query.measures[0].table, query.measures[0].column)
    if link is None or asked.question.kind(link) in ("date", "timestamp"):
        raise unused_words(asked.question.texts("cmp", "between") or ["?"])

    return link


def _with_having(asked: Asked, query: Query, having: Having) -> Query:
    """Add a condition on the figures of groups.

    A count without groups becomes the number of those that meet the condition.

    Raises:
        Refusal: there are no groups, or the figure is of other rows.
    """
    counts = bool(query.measures) and query.measures[0].column is None
    if counts and not query.dimensions:
        counted = Dimension(query.measures[0].table)
        query = replace(query, measures=(having.measure,), dimensions=(counted,), counts_rows=True)

    measures = query.measures or (having.measure,)
    measured = {measure.table for measure in measures}
    if not query.dimensions or having.measure.table not in measured:
        raise unused_words(asked.question.texts("cmp", "between"))

    order = query.order or (Order(measure=measures[0]), Order(descending=False))
    return replace(
        query,
        base=measures[0].table,
        measures=measures,
        having=(*query.having, having),
        order=() if query.counts_rows else order,
    )


# ------------------------------------------------------------------------------
# periods


def _with_spans(asked: Asked, query: Query) -> Query:
    """Restrict the query to its periods.

    Raises:
        Refusal: it is not known which of several periods or dates is meant.
    """
    spans = asked.parts.spans
    plain = [span for span in spans if span.link is None]
    if len(plain) > 1 and not _are_bounds(plain):
        raise unused_words(_texts_of_dates(asked))

    measured = [measure.table for measure in query.measures]
    bases = dict.fromkeys(measured or [query.base])
    for span in spans:
        if span.link is not None:
            query = _with_span(asked, query, span, ref(span.link), query.base)
            continue

        for base in bases:
            date_column = asked.span_date(base)
            query = _with_span(asked, query, span, date_column, base)

    return query


def _texts_of_dates(asked: Asked) -> list[str]:
    found = []
    for word in asked.question.words:
        if word.mark.date is not None:
            found.append(word.mark.text)

    return found


def _with_span(asked: Asked, query: Query, span: Span, date: ColumnRef, base: TableKey) -> Query:
    if _is_of_another(asked, date.table, base):
        raise asked.no_date_of(base)

    return replace(query, conditions=(*query.conditions, *asked.during(date, span)))


def _with_weekdays(asked: Asked, query: Query) -> Query:
    """Restrict the query to a weekday or to weekends; group by them where several are named.

    Raises:
        Refusal: it is not known which weekdays are meant, or the rows carry no date.
    """
    days = asked.parts.weekdays
    if not days:
        return query

    first = days[0]
    date = ref(first.link) if first.link is not None else None
    if len(days) == 1:
        column = replace(date or asked.span_date(query.base), part=first.part)
        return replace(query, conditions=(*query.conditions, _on_weekday(column, first)))

    is_plain = not any(day.part != first.part or day.negated or day.link for day in days)
    if not is_plain or not query.measures:
        raise unused_words(asked.question.texts("calendar"))

    column = replace(asked.span_date(query.base), part=first.part)
    return _by_weekdays(query, column, days)


def _on_weekday(column: ColumnRef, day: Weekday) -> Condition:
    if day.part != "weekend":
        return Condition(column, "!=" if day.negated else "=", (Decimal(day.value),))

    is_at_weekend = bool(day.value) != day.negated
    return Condition(column, "true" if is_at_weekend else "false")


def _by_weekdays(query: Query, column: ColumnRef, days: tuple[Weekday, ...]) -> Query:
    """Group by weekdays, or by weekends and workdays: `周末和工作日的车流量`."""
    dimension = Dimension(column.table, column.column, part=column.part)
    conditions = query.conditions
    if column.part != "weekend":
        named = tuple(Decimal(day.value) for day in days)
        conditions = (*conditions, Condition(column, "in", named))

    return replace(
        query,
        dimensions=(*query.dimensions, dimension),
        order=query.order or (Order(descending=False),),
        conditions=conditions,
    )


def _is_of_another(asked: Asked, dated: TableKey, base: TableKey) -> bool:
    """Tell whether the date is of a table above that the question doesn't name.

    `去年开业的店铺` asks when the shops were opened, not what they belong to.
    """
    question = asked.question
    if dated == base or dated in question.named_tables():
        return False
    if dated not in question.graph.above(base):
        return False

    return question.facts(dated).is_entity and question.facts(base).is_entity


def _are_bounds(spans: list[Span]) -> bool:
    """Tell whether two periods are a beginning and an end: "since 2022 … until 2024"."""
    if len(spans) != 2:
        return False

    first = spans[0].periods[0]
    second = spans[1].periods[0]
    has_one_start = (first.start is None) != (second.start is None)
    has_one_end = (first.end is None) != (second.end is None)
    return has_one_start and has_one_end
