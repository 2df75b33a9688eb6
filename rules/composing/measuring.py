"""Composes queries whose answer is figures: totals, averages, counts and shares, by group or alone."""

from dataclasses import replace

from common.meanings import TableKey
from knowledge.naming import called
from rules.composing.asked import Asked
from rules.query.query import ColumnRef, Condition, Dimension, Figure, Function, Measure, Order, Query
from rules.query.refusals import missing_measure, not_understood, unused_words
from rules.reading.implied import amount_of, column_dimension, figure_of_rows, income_asked
from rules.reading.parts import NO_TABLE
from rules.schema.facts import is_averaged
from rules.schema.links import column_link
from rules.words import WORDS

_REPORTS = frozenset(WORDS.both("questions.reports"))


def wants_figures(asked: Asked) -> bool:
    """Whether the answer is figures and not rows."""
    parts = asked.parts
    if asked.says("how_many") and asked.says("compare") and any(one.table for one in parts.thresholds):
        return False  # `订单数超过15的医院，各有多少`: the compared number is shown anyway
    if asked.says("money") and not parts.bare:
        return True
    if parts.figures or any(asked.says(one) for one in ("share", "per_entity", "distribution", "how_many", "growth")):
        return True
    if _counts_implied(asked):
        return True
    if parts.bare and (parts.groups or asked.says("trend")):
        return not asked.is_attribute_listing()
    return bool(parts.bare) and (asked.says("how_much") or asked.says("running") or _is_total(asked))


def _counts_implied(asked: Asked) -> bool:
    """Whether rows by groups without a figure are counted: `orders by status`, `shops per company`."""
    parts, question = asked.parts, asked.question
    if parts.bare or parts.columns:
        return False
    if asked.head is None:
        return _is_value_grouped(asked) or (asked.says("sum") and income_asked(asked.question) is not None)
    several = any(len(span.periods) > 1 for span in parts.spans) or "joined:and" in parts.flags
    if asked.says("trend") or (asked.says("compare") and several):
        return True
    lists = question.has("list") and not any(text in _REPORTS for text in question.texts("list"))
    grouped = any(one.dimension.table != asked.head for one in parts.groups)
    kinds = bool(parts.groups) and all(one.by and one.dimension.column for one in parts.groups) and not lists
    per = any(word.text == "per" for word in question.words)
    return (grouped and (per or question.has("by", "bucket"))) or kinds


def _is_total(asked: Asked) -> bool:
    """Whether plain measures are added up: those of events are, and metrics; those of things are shown."""
    link, head, question = asked.parts.bare[0].link, asked.head, asked.question
    assert link is not None
    is_said = question.words[asked.parts.bare[0].position].mark.means("sum") and not asked.parts.columns
    if is_said and not question.has("list", "which"):
        return True  # "total invoiced in 2025", where that word is also the column's name
    adds_up = not question.facts(link.table).is_entity and bool(question.facts(link.table).edges)
    if head is None:
        return adds_up or question.schema.is_metric(link)
    if head != link.table:
        return link.table not in question.graph.above(head)
    return adds_up and not question.has("list")


def figures_query(asked: Asked) -> Query:
    """The query for figures, by group where there are groups.

    Raises:
        Refusal: something is missing.
    """
    parts = asked.parts
    figures = sorted([*parts.figures, *_functioned(asked)], key=lambda one: one.position) or _implied(asked)
    measures = list(dict.fromkeys(asked.measure(figure) for figure in figures))
    base = measures[0].table
    dimensions = [one for one in _dimensions(asked, base, measures) if not _is_each_row(asked, one, measures)]
    if asked.says("per_entity"):
        return _per_entity(asked, measures, dimensions)
    totals = len(measures) == len(dimensions) == 1 and measures[0].function in ("count", "sum")
    if totals and asked.says("avg") and (not parts.bare or dimensions[0].bucket):  # "orders per day on average"
        return Query(base, measures=(replace(measures[0], per=dimensions[0]),))
    if asked.says("share"):
        return _share(asked, base, measures, dimensions)
    per = _averaged_over(asked, measures[0], dimensions) if len(measures) == 1 else None
    if per is not None:
        rest = [one for one in dimensions if one != per]
        return _grouped(base, rest, [replace(measures[0], function="sum", per=per)])
    if any(_is_of_parts(asked, measure) for measure in measures):
        raise unused_words(asked.question.texts("super", "max", "min"))
    if asked.says("running"):
        measures = _running(asked, base, measures, dimensions)
    return _grouped(base, dimensions, measures)


def _running(asked: Asked, base: TableKey, measures: list[Measure], dimensions: list[Dimension]) -> list[Measure]:
    """The figures with what they add up to; by months where the question names no groups.

    Raises:
        Refusal: what is asked for doesn't add up.
    """
    if any(one.function not in ("sum", "count") or one.per is not None for one in measures):
        raise unused_words(asked.question.texts("running"))
    if not dimensions:
        dimensions.append(asked.trend(base))
    return [*measures, *(replace(one, is_running=True) for one in measures)]


def _is_of_parts(asked: Asked, measure: Measure) -> bool:
    """Whether an extreme would be one of single reports, parts of a day, and the question doesn't ask for these."""
    question = asked.question
    facts = question.facts(measure.table)
    if measure.function not in ("max", "min") or measure.column is None or not facts.is_report:
        return False
    column = question.schema.column(measure.table, measure.column)
    records = any(word.mark.arg == "rows" for word in question.words)
    return facts.is_measure(column) and not is_averaged(column) and not records


def _functioned(asked: Asked) -> tuple[Figure, ...]:
    """The plain measures; the first has the function that is said elsewhere: `平均`, "on average"."""
    bare = asked.parts.bare
    if any(one.dimension.bucket for one in asked.parts.groups):
        return bare
    function: Function | None = "avg" if asked.says("avg") else "sum" if asked.says("sum") else None
    return (replace(bare[0], function=function), *bare[1:]) if bare and function else bare


def _implied(asked: Asked) -> list[Figure]:
    """The figure of a question that names none: a count of things; for events in a share, their only figure."""
    settled = asked.question.settled.figure
    if settled is not None:
        return [settled]
    named = [one.dimension.table for one in asked.parts.groups if one.dimension.column is not None]
    named += [one.column.table for one in asked.parts.conditions]
    named += [one.link.table for one in asked.parts.thresholds if one.link is not None]
    named += asked.events if len(asked.events) == 1 else ()
    table = asked.head or next(iter(named), NO_TABLE)
    if table == NO_TABLE:
        raise not_understood(asked.question.lexicon)
    facts = asked.question.facts(table)
    if (earned := income_asked(asked.question)) is not None:
        return [earned]
    if asked.says("money"):
        tables = [key for key in (*asked.events, asked.head, *named) if key is not None and key != NO_TABLE]
        amounts = [link for key in tables if (link := amount_of(asked.question, key)) is not None]
        if not amounts:
            raise unused_words(asked.question.texts("count", "sum"))
        return [Figure("sum", amounts[0])]
    if _is_value_grouped(asked):
        return _count_of_conditions(asked, asked.parts.conditions[0].column.table)
    if asked.says("how_many") and asked.head is None:
        return _count_of_conditions(asked, table)
    if asked.head is not None or facts.is_entity or asked.says("distribution"):
        return [Figure("count", table=table)]
    if len(facts.measures) > 1:
        raise missing_measure(called(facts.table), facts)
    return [Figure("sum", column_link(table, one.name)) for one in facts.measures] or [Figure("count", table=table)]


def _is_value_grouped(asked: Asked) -> bool:
    """`trucks by month`, "trucks compared with cars": what a report counts of stored values."""
    tables = {one.column.table for one in asked.parts.conditions}
    grouped = asked.says("trend") or asked.says("compare") or any(one.dimension.bucket for one in asked.parts.groups)
    return asked.head is None and grouped and len(tables) == 1 and asked.question.facts(tables.pop()).is_report


def _count_of_conditions(asked: Asked, table: TableKey) -> list[Figure]:
    """The rows that only conditions speak of: "how many are overdue"; the name of one thing is not counted.

    Raises:
        Refusal: there is no use in counting them, or they count several things.
    """
    question, conditions = asked.question, asked.parts.conditions
    rows = any(word.mark.arg == "rows" for word in question.words)
    if rows or any(one.operator in ("null", "not null") for one in conditions):
        return [Figure("count", table=table)]
    display, figure = question.facts(table).display, figure_of_rows(question, table, 0)
    if figure is None or any(one.operator == "=" and one.column.column in display for one in conditions):
        raise unused_words(question.texts("count"))
    return [figure]


def _grouped(base: TableKey, dimensions: list[Dimension], measures: list[Measure]) -> Query:
    query = Query(base, dimensions=tuple(dimensions), measures=tuple(measures))
    return replace(query, order=group_order(query))


def group_order(query: Query) -> tuple[Order, ...]:
    """The order of groups if none is asked for: by time, else the greatest figure first."""
    if not query.dimensions:
        return ()
    if any(dimension.bucket for dimension in query.dimensions):
        return (Order(descending=False),)
    return (Order(measure=query.measures[0]), Order(descending=False))


def _dimensions(asked: Asked, base: TableKey, measures: list[Measure]) -> list[Dimension]:
    """The groups: those asked for, with their date columns, else things that are named beside a figure."""
    found = [asked.resolved(one.dimension, base) for one in asked.parts.groups]
    if asked.says("trend") and not any(one.bucket for one in found):
        found.insert(0, asked.trend(base))
    if asked.says("compare"):
        found += _compared(asked, base, found)
    return list(dict.fromkeys(found or _implied_dimensions(asked, measures)))


def dated_groups(asked: Asked) -> tuple[Condition, ...]:
    """Rows without a date are in no group of it: `各月完成的工单数` counts only completed ones."""
    grouped = [one.dimension for one in asked.parts.groups if one.dimension.bucket is not None]
    dates = [ColumnRef(one.table, one.column) for one in grouped if one.column is not None]
    schema = asked.question.schema
    return tuple(Condition(one, "not null") for one in dates if schema.column(one.table, one.column).nullable)


def _compared(asked: Asked, base: TableKey, others: list[Dimension]) -> list[Dimension]:
    """The groups of a comparison: the columns of the values, and the unit of the periods, that are compared."""
    found = [column_dimension(asked.question, column_link(one.table, one.column)) for one in asked.compared_columns]
    grains = {period.grain for span in asked.parts.spans if len(span.periods) > 1 for period in span.periods}
    if len(grains) == 1 and (grain := grains.pop()) is not None and not any(one.bucket for one in others):
        found.append(asked.resolved(Dimension(NO_TABLE, None, grain), base))
    return found


def _implied_dimensions(asked: Asked, measures: list[Measure]) -> list[Dimension]:
    """The groups that named things imply beside a figure: "customers and their number of orders"."""
    parts, question = asked.parts, asked.question
    measured = {measure.table for measure in measures}
    explicit_total = any(figure.function in ("sum", "avg", "max", "min") for figure in parts.figures)
    is_restricted = bool(parts.conditions or parts.related)
    found = []
    for one in asked.tables:
        key = one.link.table
        if key in measured or not question.facts(key).is_entity or one.role == "shared":
            continue
        chinese = question.is_chinese and not explicit_total and not is_restricted
        if one.role == "asked" or _leads(asked, one.at) or chinese:
            same = [column_link(key, one.column) for one in asked.compared_columns if one.table == key]
            found.append(column_dimension(question, same[0]) if same else Dimension(key))
    shows = question.has("list")
    named = [one.link for one in parts.columns if one.role == "asked" or shows]
    return found or [column_dimension(question, link) for link in named]


def _leads(asked: Asked, at: int) -> bool:
    """Whether a noun is followed by "and" with a figure of its own: "customers and their number of orders"."""
    after, figures = asked.question.nearest(at + 1, 1, "noise"), (*asked.parts.figures, *asked.parts.bare)
    if after is None or not after.mark.means("and", "with"):
        return False
    return not figures or any(figure.position > after.at for figure in figures)


def _is_each_row(asked: Asked, dimension: Dimension, measures: list[Measure]) -> bool:
    """Whether the dimension is the measured rows themselves, which are no groups: `average fare per trip`."""
    same = dimension.column is None and dimension.bucket is None and dimension.table == measures[0].table
    per = asked.says("avg") or any(word.text == "per" for word in asked.question.words)
    averaged = measures[0].function == "avg" and len(measures) == 1
    return same and averaged and (per or not asked.question.facts(dimension.table).is_entity)


def _averaged_over(asked: Asked, measure: Measure, dimensions: list[Dimension]) -> Dimension | None:
    """What an average of reports is over: for `average revenue per day`, the totals of days; None for single rows.

    Raises:
        Refusal: the average is asked for by period, and the question doesn't say of what.
    """
    periods, question = [one for one in dimensions if one.bucket is not None], asked.question
    if not question.facts(measure.table).is_report or measure.function != "avg" or measure.per is not None:
        return None
    if not periods and all(one.column for one in dimensions):
        return None
    said = [text.lower() for text in question.texts("each", "bucket")]
    by = {asked.resolved(one.dimension, measure.table) for one in asked.parts.groups if one.by}
    over = [one for one in (*periods, *dimensions) if one not in by]
    if over and len(dimensions) in (1, len(said) + 1) and all(text.split(" ")[0] == "per" for text in said):
        return over[0]
    if periods:
        raise unused_words(question.texts("avg"))
    return None


def _share(asked: Asked, base: TableKey, measures: list[Measure], dimensions: list[Dimension]) -> Query:
    """The query for shares: of each group in the total; without groups, of what meets the conditions in everything."""
    lost = unused_words(asked.question.texts("share"))
    graph, conditions = asked.question.graph, asked.parts.conditions
    if any(measure.function == "metric" for measure in measures):
        raise lost
    if dimensions:
        above = {key for one in dimensions for key in graph.above(one.table)}
        if any(condition.column.table not in above for condition in conditions):
            # `各服务区新能源车占比` may mean shares of each area's traffic, or of the traffic of all areas
            raise lost
        return _grouped(base, dimensions, [*measures, *(replace(one, is_share=True) for one in measures)])
    reachable = all(one.column.table in graph.above(base) for one in conditions)
    if not conditions or not reachable or asked.parts.thresholds or len(measures) != 1:
        raise lost
    return Query(base, measures=(replace(measures[0], is_share=True, share_of=conditions),))


def _per_entity(asked: Asked, measures: list[Measure], dimensions: list[Dimension]) -> Query:
    """The query for one figure, the average over things: `平均每个服务区有多少店铺`."""
    named = [column_dimension(asked.question, one.link) for one in asked.parts.columns]
    heads = [Dimension(one.link.table) for one in asked.tables]
    found = list(dict.fromkeys([*dimensions, *named])) or heads
    others = {one.link.table for one in asked.tables} - {measures[0].table, *(one.table for one in found)}
    if len(found) != 1 or others:
        raise unused_words(asked.question.texts("per_entity"))
    return Query(measures[0].table, measures=(replace(measures[0], per=found[0]),))
