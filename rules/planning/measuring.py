"""Plans queries whose answer is figures: totals, averages, counts and shares, by group or alone."""

import itertools
from dataclasses import replace
from decimal import Decimal

from databases.expressions import expression
from knowledge.naming import called
from rules.planning.event_dates import date_column, event_date, resolved, trend_dimension
from rules.planning.plan import Plan, is_asked, leads
from rules.query.query import ColumnRef, Condition, Dimension, Function, Having, Measure, Order, Query
from rules.query.refusals import missing_measure, not_combinable, not_understood, unused_words
from rules.query.wishes import Figure
from rules.readers.groups import column_dimension
from rules.reading.inclusions import Inclusion
from rules.schema.links import METRIC, Link, column_link
from rules.schema.schema import TableKey


def measure_of(plan: Plan, figure: Figure, default: Function | None = None) -> Measure:
    """The measure that a figure asks for. Without a function, columns are added up, rates and prices averaged."""
    if figure.link is None:
        assert figure.table is not None
        return Measure("count", figure.table)
    column = plan.reading.column_of(figure.link)
    if figure.link.derived == METRIC:
        return _metric_measure(plan, figure)
    is_age = figure.link.derived == "age"
    averaged = is_age or (figure.link.factor is None and plan.reading.facts(figure.link.table).is_averaged(column))
    function = figure.function or default or ("avg" if averaged else "sum")
    if figure.per_unit is not None:
        per = Dimension(figure.link.table, date_column(plan, figure.link.table, figure.per_unit), figure.per_unit)
        return Measure("sum", figure.link.table, figure.link.column, per=per)
    if plan.reading.is_date(figure.link) and function in ("sum", "avg"):
        raise unused_words([column.name])
    return Measure(function, figure.link.table, figure.link.column, figure.link.factor, is_age=is_age)


def _metric_measure(plan: Plan, figure: Figure) -> Measure:
    """A metric as it is defined: what adds up has a total, and what is a ratio is an average already."""
    assert figure.link is not None
    metric = plan.reading.schema.metric(figure.link.table, figure.link.column)
    plan.metrics.append(metric)
    adds_up = expression(metric.expression).call in ("sum", "count")
    if figure.function not in (None, "sum" if adds_up else "avg"):
        raise unused_words([plan.reading.marks[figure.position].text])
    per = None
    if figure.per_unit is not None:
        per = Dimension(metric.table, date_column(plan, metric.table, figure.per_unit), figure.per_unit)
    return Measure("metric", metric.table, metric.name, per=per)


def refuse_foreign_grain(plan: Plan, query: Query) -> None:
    """Refuses a metric by something that it means nothing by.

    Raises:
        Refusal: a group of the query is none of the metric's grain.
    """
    for metric in filter(lambda one: one.grain, plan.metrics):
        ways = [plan.reading.graph.up(metric.table, one.table, one.via) or () for one in query.dimensions]
        columns = [way[0].columns if way else (one.column,) for way, one in zip(ways, query.dimensions, strict=True)]
        known = {*metric.grain, getattr(event_date(plan, metric.table), "column", None)}
        if not all(known.issuperset(names) for names in columns):
            raise not_combinable()


def figures_query(plan: Plan) -> Query:
    """The query for figures, by group where there are groups."""
    figures = sorted([*plan.asks.figures, *plan.bare], key=lambda figure: figure.position) or _shared_figure(plan)
    _refuse_compounds(plan, figures)
    measures = list(dict.fromkeys(measure_of(plan, figure) for figure in figures))
    base = measures[0].table
    dimensions = [dim for dim in _dimensions_of(plan, base, measures) if not _is_each_row(plan, dim, measures)]
    _refuse_foreign_averages(plan, figures, dimensions)
    if plan.asks.per_entity is not None:
        return _average_per_entity(plan, measures, dimensions)
    if plan.asks.share:
        return _share_query(plan, base, measures, dimensions)
    if len(measures) == 1 and (per := _averaged_over(plan, measures[0], dimensions)) is not None:
        return _grouped(
            base, [one for one in dimensions if one != per], [replace(measures[0], function="sum", per=per)]
        )
    if len(measures) == 1 and len(dimensions) == 1 and (averages := _on_average(plan, measures[0], dimensions[0])):
        plan.reading.use(*averages)
        return Query(base, measures=(replace(measures[0], per=dimensions[0]),))
    if any(_is_of_parts(plan, measure) for measure in measures):
        raise unused_words([mark.text for mark in plan.reading.marks if mark.means("super", "max", "min")])
    return _grouped(base, dimensions, measures)


def _grouped(base: TableKey, dimensions: list[Dimension], measures: list[Measure]) -> Query:
    query = Query(base, dimensions=tuple(dimensions), measures=tuple(measures))
    return replace(query, order=group_order(query))


def _on_average(plan: Plan, measure: Measure, dimension: Dimension) -> list[int]:
    """The places of words that ask for the average of totals over periods: "orders per day on average"."""
    if measure.function not in ("sum", "count") or dimension.bucket is None:
        return []
    return [index for index in plan.reading.having("avg") if plan.reading.marks[index].text.lower() == "on average"]


def _is_of_parts(plan: Plan, measure: Measure) -> bool:
    """Whether an extreme would be one of single reports, parts of a day, and the question doesn't ask for these."""
    facts = plan.reading.facts(measure.table)
    if measure.function not in ("max", "min") or measure.column is None or not facts.is_report:
        return False
    column = plan.reading.schema.column(measure.table, measure.column)
    records = any(mark.means("noise") and mark.arg == "rows" for mark in plan.reading.marks)
    return facts.is_measure(column) and not facts.is_averaged(column) and not records


def _refuse_compounds(plan: Plan, figures: list[Figure]) -> None:
    """Refuses two measures right after each other, because together they name a third: `订单金额`, "order value"."""
    said = {figure.position: (figure.link.table, figure.link.column) for figure in figures if figure.link is not None}
    for first, second in itertools.pairwise(sorted(said)):
        named = plan.reading.nouns[first] is not None and plan.reading.nouns[second] is not None
        if second == first + 1 and named and said[first] != said[second]:
            raise unused_words([plan.reading.marks[first].text, plan.reading.marks[second].text])


def _refuse_foreign_averages(plan: Plan, figures: list[Figure], dimensions: list[Dimension]) -> None:
    """Refuses a rate or price by something that its rows don't belong to.

    `cost of parts per ticket` is a total, not the average of the unit costs of a ticket's parts.

    Raises:
        Refusal: there is such a figure.
    """
    for figure in figures:
        if figure.function is None and figure.link is not None and figure.link.factor is None:
            above = plan.reading.graph.above(figure.link.table)
            averaged = plan.reading.facts(figure.link.table).is_averaged(plan.reading.column_of(figure.link))
            if averaged and any(dimension.table not in above for dimension in dimensions):
                raise unused_words([plan.reading.marks[figure.position].text])


def _share_query(plan: Plan, base: TableKey, measures: list[Measure], dimensions: list[Dimension]) -> Query:
    """The query for shares: of each group in the total; without groups, of what meets the conditions in everything."""
    if any(measure.function == "metric" for measure in measures):
        raise unused_words([mark.text for mark in plan.reading.marks if mark.means("share")])
    if dimensions:
        above = {key for one in dimensions for key in plan.reading.graph.above(one.table)}
        if any(condition.column.table not in above for condition in plan.filters.conditions):
            # `各服务区新能源车占比` may mean shares of each area's traffic, or of the traffic of all areas
            raise unused_words([mark.text for mark in plan.reading.marks if mark.means("share")])
        measures += [replace(measure, is_share=True) for measure in measures]
        return _grouped(base, dimensions, measures)
    part = tuple(plan.filters.conditions)
    reachable = all(one.column.table in plan.reading.graph.above(base) for one in part)
    if not part or not reachable or plan.filters.thresholds or len(measures) != 1:
        raise unused_words([mark.text for mark in plan.reading.marks if mark.means("share")])
    plan.filters.conditions.clear()
    return Query(base, measures=(replace(measures[0], is_share=True, share_of=part),))


def _is_each_row(plan: Plan, dimension: Dimension, measures: list[Measure]) -> bool:
    """Whether the dimension is the measured rows themselves, which are no groups: `average fare per trip`."""
    same = dimension.column is None and dimension.bucket is None and dimension.table == measures[0].table
    per = any(mark.text.lower() == "per" for mark in plan.reading.marks)
    averaged = measures[0].function == "avg" and len(measures) == 1
    return same and averaged and (per or not plan.reading.facts(dimension.table).is_entity)


def _averaged_over(plan: Plan, measure: Measure, dimensions: list[Dimension]) -> Dimension | None:
    """What an average of reports is over: for `average revenue per day`, the totals of days; None for single rows.

    Raises:
        Refusal: the average is asked for by period, and the question doesn't say of what.
    """
    periods = [dimension for dimension in dimensions if dimension.bucket is not None]
    whole = [dimension for dimension in dimensions if dimension.column is None]
    facts = plan.reading.facts(measure.table)
    if measure.function != "avg" or measure.per is not None or not facts.is_report or not (periods or whole):
        return None
    said = [mark.text.lower() for mark in plan.reading.marks if mark.means("each", "bucket")]
    if len(dimensions) in (1, len(said) + 1) and all(text.split(" ")[0] == "per" for text in said):
        return (periods or dimensions)[0]
    if periods:
        raise unused_words([mark.text for mark in plan.reading.marks if mark.means("avg")])
    return None


def _shared_figure(plan: Plan) -> list[Figure]:
    """The figure of a share that names none: a count of things; for events, their only figure."""
    named = [dimension.table for dimension in plan.asks.dimensions if dimension.column is not None]
    named += [condition.column.table for condition in plan.filters.conditions]
    table = plan.head or next(iter(named), None)
    if table is None:
        raise not_understood(plan.reading.lexicon)
    facts = plan.reading.facts(table)
    if plan.head is not None or facts.is_entity:
        return [Figure("count", table=table)]
    if plan.reading.settled.figure is not None:
        return [plan.reading.settled.figure]
    if len(facts.measures) > 1:
        raise missing_measure(called(facts.table), facts)
    return [Figure("sum", column_link(table, one.name)) for one in facts.measures] or [Figure("count", table=table)]


def _average_per_entity(plan: Plan, measures: list[Measure], dimensions: list[Dimension]) -> Query:
    """The query for one figure, the average over things: `平均每个服务区有多少店铺`."""
    named = [column_dimension(plan.reading, link) for link in plan.named_at.values()]
    entity = next(iter([*dimensions, *named]), None) or (Dimension(plan.head) if plan.head else None)
    others = {key for _, key in plan.tables} - {measures[0].table, entity.table if entity else None}
    if entity is None or len(dimensions) + len(named) > 1 or others:
        raise unused_words([plan.reading.marks[plan.asks.per_entity or 0].text])
    return Query(measures[0].table, measures=(replace(measures[0], per=entity),))


def with_all_groups(plan: Plan, query: Query, inclusion: Inclusion) -> Query:
    """The query with groups that have no rows.

    Raises:
        Refusal: the groups are not rows of one table, or the words name other groups.
    """
    table = grouped_table(query)
    above = plan.reading.graph.above(table) if table is not None else {}
    if table is None or any(one.table not in above for one in (*query.dimensions, *query.top_per)):
        raise unused_words([inclusion.text])
    if not all(_speaks_of(plan, links, query.base, table) for links in inclusion.named):
        raise unused_words([inclusion.text])
    return replace(query, all_of=table)


def grouped_table(query: Query) -> TableKey | None:
    """The only table, beside the measured one, whose rows or columns are the groups; None where there is none."""
    grouped = [*query.dimensions, *(measure.per for measure in query.measures if measure.per is not None)]
    tables = {one.table for one in grouped if one.bucket is None} - {query.base}
    return tables.pop() if len(tables) == 1 else None


def holds_for_none(query: Query) -> bool:
    """Whether a comparison of counts also holds for groups without rows, as "fewer than 3 orders" does."""
    counts = [one for one in query.having if one.measure.function == "count" and one.measure.table == query.base]
    return bool(counts) and len(counts) == len(query.having) and all(_holds_for_zero(one) for one in counts)


def _holds_for_zero(having: Having) -> bool:
    operands = [one for one in having.operands if isinstance(one, Decimal)]
    if len(operands) != len(having.operands) or not operands:
        return False
    first = operands[0]
    holds = {"<": first > 0, "<=": first >= 0, "=": first == 0, "between": first <= 0}
    return holds.get(having.operator, False)


def _speaks_of(plan: Plan, links: tuple[Link, ...], base: TableKey, group: TableKey) -> bool:
    """Whether a noun may mean the groups, or what is measured by group."""
    between = plan.reading.graph.below(group).keys() & plan.reading.graph.above(base).keys()
    return any(link.table in between or link.table in (base, group) for link in links)


def group_order(query: Query) -> tuple[Order, ...]:
    """The order of groups if none is asked for: by time, else the greatest figure first."""
    if not query.dimensions:
        return ()
    if any(dimension.bucket for dimension in query.dimensions):
        return (Order(descending=False),)
    return (Order(measure=query.measures[0]), Order(descending=False))


def _dimensions_of(plan: Plan, base: TableKey, measures: list[Measure]) -> list[Dimension]:
    """The groups: those asked for, with their date columns, else things that are named beside a figure."""
    dimensions = [resolved(plan, dimension, base) for dimension in plan.asks.dimensions]
    for said in plan.asks.dimensions:  # `各月完成的工单数` counts only completed ones
        if said.bucket is not None and said.column is not None:
            column = plan.reading.schema.column(said.table, said.column)
            plan.filters.conditions += [Condition(ColumnRef(said.table, said.column), "not null")] * column.nullable
    if plan.asks.trend and not any(dimension.bucket for dimension in dimensions):
        dimensions.insert(0, trend_dimension(plan, base))
    if plan.asks.compare:
        dimensions += _compared_dimensions(plan, base, dimensions)
    if not dimensions:
        dimensions = _implied_dimensions(plan, measures)
    return list(dict.fromkeys(dimensions))


def _compared_dimensions(plan: Plan, base: TableKey, others: list[Dimension]) -> list[Dimension]:
    """The groups of a comparison: the columns of the values, and the unit of the periods, that are compared."""
    links = [column_link(column.table, column.column) for column in plan.filters.compared]
    found = [column_dimension(plan.reading, link) for link in links]
    grains = {period.grain for span in plan.filters.spans if len(span.periods) > 1 for period in span.periods}
    if len(grains) == 1 and (grain := grains.pop()) is not None and not any(one.bucket for one in others):
        found.append(resolved(plan, Dimension(("", ""), None, grain), base))
    return found


def _implied_dimensions(plan: Plan, measures: list[Measure]) -> list[Dimension]:
    """The groups that named things imply beside a figure: "customers and their number of orders"."""
    found: list[Dimension] = []
    measured = {measure.table for measure in measures}
    explicit_total = any(figure.function in ("sum", "avg", "max", "min") for figure in plan.asks.figures)
    is_restricted = bool(plan.filters.conditions or plan.filters.related)
    for index, key in plan.tables:
        if key in measured or not plan.reading.facts(key).is_entity:
            continue
        asked = is_asked(plan, index) or leads(plan.reading, index)
        if asked or (plan.reading.is_chinese and not explicit_total and not is_restricted):
            compared = next((one for one in plan.filters.compared if one.table == key), None)
            own = column_link(key, compared.column) if compared is not None else None
            found.append(column_dimension(plan.reading, own) if own is not None else Dimension(key))
    shows = plan.asks.which or plan.asks.lists
    columns = (link for index, link in plan.named_at.items() if is_asked(plan, index) or shows)
    return found or [column_dimension(plan.reading, link) for link in columns]
