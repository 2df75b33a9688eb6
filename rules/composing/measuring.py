"""Composes queries whose answer is figures, by group or alone: totals, averages, counts, shares."""

import re
from collections.abc import Iterable
from dataclasses import replace

from common.meanings import TableKey
from knowledge.language.spoken_names import called
from rules.composing.asked import Asked
from rules.linking.moments import Unit
from rules.query.query import (
    ColumnRef,
    Condition,
    Dimension,
    Figure,
    Function,
    Measure,
    Order,
    Query,
)
from rules.query.refusals import missing_measure, not_understood, unused_words
from rules.reading.implied import amount_of, column_dimension, figure_of_rows, income_asked
from rules.reading.parts import NO_TABLE, GroupBy, Named
from rules.schema.links import column_link
from rules.schema.table_facts import is_averaged
from rules.words import WORDS

_HAVE = frozenset((*WORDS.both("questions.have"), *WORDS.chinese.phrases("questions.have_many")))
_REPORTS = frozenset(WORDS.both("questions.reports"))
_MONEY_VERBS = re.compile(
    f"{WORDS.any_of('questions.pays')}|{WORDS.any_of('questions.earns')}", re.IGNORECASE
)
_FLAGS_OF_FIGURES = ("share", "per_entity", "distribution", "how_many", "growth")


def wants_figures(asked: Asked) -> bool:
    """Tell whether the answer is figures, not rows."""
    parts = asked.parts
    if asked.says("how_many") and _compares_counts(asked):
        # `订单数超过15的医院，各有多少`: the compared number is shown anyway
        return False
    if parts.figures or asked.says(*_FLAGS_OF_FIGURES):
        return True
    if not parts.bare:
        return asked.says("money") or _counts_implied(asked)

    is_grouped = bool(parts.groups) or asked.says("trend")
    if is_grouped:
        return not asked.is_attribute_listing()

    asks_for_total = asked.says("how_much", "running")
    return asks_for_total or _is_total(asked)


def _compares_counts(asked: Asked) -> bool:
    if not asked.says("compare"):
        return False

    return any(threshold.table is not None for threshold in asked.parts.thresholds)


def _counts_implied(asked: Asked) -> bool:
    """Tell whether rows by groups without a figure are counted: `orders by status`."""
    if asked.parts.columns:
        return False
    if asked.head is None:
        asks_for_income = asked.says("sum") and income_asked(asked.question) is not None
        return asks_for_income or _is_value_grouped(asked)

    if asked.says("trend"):
        return True
    if asked.says("compare") and _names_several(asked):
        return True

    return _is_grouped_count(asked)


def _names_several(asked: Asked) -> bool:
    """Tell whether the question names several values or periods together."""
    if "joined:and" in asked.parts.flags:
        return True

    return any(len(span.periods) > 1 for span in asked.parts.spans)


def _is_grouped_count(asked: Asked) -> bool:
    """Tell whether groups alone ask for counts: `shops per company`, `orders by status`."""
    groups = asked.parts.groups
    question = asked.question
    says_by = question.says("per") or question.has("by", "bucket")
    if says_by and any(group.dimension.table != asked.head for group in groups):
        return True

    for group in groups:
        is_by_column = group.by and group.dimension.column is not None
        if not is_by_column:
            return False

    has_groups = bool(groups)
    return has_groups and not _lists_rows(asked)


def _lists_rows(asked: Asked) -> bool:
    """Tell whether words such as "list" ask for rows; "report" does not."""
    words = asked.question.texts("list")
    return bool(words) and _REPORTS.isdisjoint(words)


def _is_total(asked: Asked) -> bool:
    """Tell whether plain measures are added up: of events, and metrics, but not of things."""
    question = asked.question
    head = asked.head
    figure = asked.parts.bare[0]
    link = figure.link
    assert link is not None
    says_total = question.words[figure.position].mark.means("sum")
    if says_total and not asked.parts.columns and not question.has("list", "which"):
        # "total invoiced in 2025", where that word is also the column's name
        return True

    facts = question.facts(link.table)
    adds_up = bool(facts.edges) and not facts.is_entity
    if head is None:
        return adds_up or question.schema.is_metric(link)
    if head != link.table:
        return link.table not in question.graph.above(head)

    return adds_up and not question.has("list")


def figures_query(asked: Asked) -> Query:
    """Return the query for figures, by group where there are groups.

    Raises:
        Refusal: something is missing.
    """
    measures = _measures(asked)
    base = measures[0].table
    dimensions = []
    for dimension in _dimensions(asked, base, measures):
        if not _is_each_row(asked, dimension, measures):
            dimensions.append(dimension)

    if asked.says("per_entity"):
        if len(dimensions) == 1 and _is_asked_by(asked, dimensions[0]):
            return _grouped(base, dimensions, [_averaged_value(asked, measures)])

        return _per_entity(asked, measures, dimensions)
    if _averages_totals(asked, measures, dimensions):
        # "orders per day on average"
        average = replace(measures[0], per=dimensions[0])
        return Query(base, measures=(average,))

    if asked.says("share"):
        return _share(asked, base, measures, dimensions)

    per = _averaged_over(asked, measures, dimensions)
    if per is not None:
        rest = [one for one in dimensions if one != per]
        average = replace(measures[0], function="sum", per=per)
        return _grouped(base, rest, [average])

    if any(_is_of_parts(asked, measure) for measure in measures):
        raise unused_words(asked.question.texts("super", "max", "min"))
    if asked.says("running"):
        measures = _running(asked, base, measures, dimensions)

    return _grouped(base, dimensions, measures)


def _measures(asked: Asked) -> list[Measure]:
    """Return the figures that are named, in their order, else the one that is implied."""
    figures = [*asked.parts.figures, *_functioned(asked)]
    figures.sort(key=lambda one: one.position)
    if not figures:
        figures = _implied(asked)

    measures = [asked.measure(figure) for figure in figures]
    return list(dict.fromkeys(measures))


def _averages_totals(asked: Asked, measures: list[Measure], dimensions: list[Dimension]) -> bool:
    """Tell whether the average of the groups' totals is asked for."""
    if len(measures) != 1 or len(dimensions) != 1:
        return False

    is_total = measures[0].function in ("count", "sum")
    if not is_total or not asked.says("avg"):
        return False

    if _is_asked_by(asked, dimensions[0]):
        return False

    is_by_time = dimensions[0].bucket is not None
    return is_by_time or not asked.parts.bare


def _is_asked_by(asked: Asked, dimension: Dimension) -> bool:
    """Tell whether "by" asks for the group, which is one row each: "average fine by reason"."""
    for group in asked.parts.groups:
        if group.by and group.dimension.column is not None and group.dimension == dimension:
            return True

    return False


def _running(
    asked: Asked, base: TableKey, measures: list[Measure], dimensions: list[Dimension]
) -> list[Measure]:
    """Return the figures with their running totals; by months where the question names no groups.

    Raises:
        Refusal: a figure doesn't add up.
    """
    totals = []
    for measure in measures:
        if measure.function not in ("sum", "count") or measure.per is not None:
            raise unused_words(asked.question.texts("running"))

        totals.append(replace(measure, is_running=True))

    if not dimensions:
        dimensions.append(asked.trend(base))

    return [*measures, *totals]


def _is_of_parts(asked: Asked, measure: Measure) -> bool:
    """Tell whether an extreme would be one of single reports, which are parts of a day.

    It is meant only where the question asks for single reports.
    """
    question = asked.question
    facts = question.facts(measure.table)
    if measure.function not in ("max", "min") or measure.column is None:
        return False
    if not facts.is_report or question.says_records:
        return False

    column = question.schema.column(measure.table, measure.column)
    return facts.is_measure(column) and not is_averaged(column)


def _functioned(asked: Asked) -> tuple[Figure, ...]:
    """Return the figures named without a function; the first gets one from elsewhere (`平均`)."""
    bare = asked.parts.bare
    if not bare or asked.parts.has_buckets:
        return bare

    function: Function
    if asked.says("avg"):
        function = "avg"
    elif asked.says("sum"):
        function = "sum"
    else:
        return bare

    first = replace(bare[0], function=function)
    return (first, *bare[1:])


def _implied(asked: Asked) -> list[Figure]:
    """Return the figure of a question that names none: a count of things, or the figures of events.

    Raises:
        Refusal: the question names nothing to be counted, or it is not known which figure is meant.
    """
    settled = asked.question.settled.figure
    if settled is not None:
        return [settled]

    table = _implied_table(asked)
    facts = asked.question.facts(table)
    income = income_asked(asked.question)
    if income is not None:
        return [income]
    if asked.says("money"):
        return [_implied_amount(asked)]
    if _is_value_grouped(asked):
        return _count_of_conditions(asked, asked.parts.conditions[0].column.table)
    if asked.says("how_many") and asked.head is None:
        return _count_of_conditions(asked, table)
    counts_rows = asked.says("distribution") or (asked.says("share") and not facts.is_report)
    if asked.head is not None or facts.is_entity or counts_rows:
        return [Figure("count", table=table)]
    if len(facts.measures) > 1:
        raise missing_measure(called(facts.table), facts)
    if not facts.measures:
        return [Figure("count", table=table)]

    return [Figure("sum", column_link(table, facts.measures[0].name))]


def _implied_table(asked: Asked) -> TableKey:
    """Return the table whose rows are measured where no figure is named."""
    found = [asked.head] if asked.head is not None else _named_tables(asked)
    if not found or found[0] == NO_TABLE:
        raise not_understood(asked.question.lexicon)

    return found[0]


def _named_tables(asked: Asked) -> list[TableKey]:
    """Return the tables of groups, conditions and events."""
    parts = asked.parts
    found = [group.dimension.table for group in parts.groups if group.dimension.column is not None]
    found += parts.condition_tables
    found += parts.threshold_tables
    if len(asked.events) == 1:
        found += asked.events

    return found


def _implied_amount(asked: Asked) -> Figure:
    """Return the amount of money of the first named table that has one."""
    heads = [asked.head] if asked.head is not None else []
    for table in (*asked.events, *heads, *_named_tables(asked)):
        link = amount_of(asked.question, table) if table != NO_TABLE else None
        if link is not None:
            return Figure("sum", link)

    raise unused_words(asked.question.texts("count", "sum"))


def _is_value_grouped(asked: Asked) -> bool:
    """Tell whether a value's count in reports is asked for by groups: `trucks by month`.

    The groups are units of time, or the values that are compared ("trucks compared with cars").
    """
    if asked.head is not None:
        return False

    is_grouped = asked.parts.has_buckets or asked.says("trend", "compare")
    if not is_grouped:
        return False

    tables = set(asked.parts.condition_tables)
    return len(tables) == 1 and asked.question.facts(tables.pop()).is_report


def _count_of_conditions(asked: Asked, table: TableKey) -> list[Figure]:
    """Return the count of rows of which only conditions speak: "how many are overdue".

    Raises:
        Refusal: a condition names one thing, which there is no use in counting, or the rows count
            several things.
    """
    question = asked.question
    if any(_MONEY_VERBS.fullmatch(text) for text in question.texts("verb")):
        raise unused_words(question.texts("count"))

    conditions = asked.parts.conditions
    operators = {condition.operator for condition in conditions}
    if question.says_records or not operators.isdisjoint(("null", "not null")):
        return [Figure("count", table=table)]

    names = question.facts(table).display
    named = [condition for condition in conditions if condition.column.column in names]
    is_of_one = any(one.operator == "=" for one in named)
    figure = figure_of_rows(question, table, 0)
    if figure is None or is_of_one:
        raise unused_words(question.texts("count"))

    return [figure]


def _grouped(base: TableKey, dimensions: list[Dimension], measures: list[Measure]) -> Query:
    query = Query(base, dimensions=tuple(dimensions), measures=tuple(measures))
    return replace(query, order=group_order(query))


def group_order(query: Query) -> tuple[Order, ...]:
    """Return the order of groups if none is asked for: by time, else the greatest figure first."""
    if not query.dimensions:
        return ()

    by_first_group = Order(descending=False)
    if any(dimension.is_of_time for dimension in query.dimensions):
        return (by_first_group,)

    return (Order(measure=query.measures[0]), by_first_group)


def _has_buckets(dimensions: Iterable[Dimension]) -> bool:
    return any(dimension.bucket for dimension in dimensions)


def _dimensions(asked: Asked, base: TableKey, measures: list[Measure]) -> list[Dimension]:
    """Return the groups: those asked for, else things that are named beside a figure."""
    found = [asked.resolved(group.dimension, base) for group in asked.parts.groups]
    if asked.says("trend") and not _has_buckets(found):
        found.insert(0, asked.trend(base))
    if asked.says("compare"):
        found += _compared(asked, base, found)
    if not found:
        found = _implied_dimensions(asked, measures)

    return list(dict.fromkeys(found))


def filled_groups(asked: Asked) -> tuple[Condition, ...]:
    """Return the conditions that leave out rows without the date of a group, or without the group.

    `各月完成的工单数` counts only completed ones, and "how many patients does each insurer have"
    none without an insurer.
    """
    schema = asked.question.schema
    found = []
    for group in asked.parts.groups:
        table = group.dimension.table
        name = group.dimension.column
        if name is None or (group.dimension.bucket is None and not _has_rows(asked, group)):
            continue
        if table == NO_TABLE:
            continue
        if schema.column(table, name).nullable:
            found.append(Condition(ColumnRef(table, name), "not null"))

    return tuple(found)


def _has_rows(asked: Asked, group: GroupBy) -> bool:
    """Tell whether rows are said to be had by each of the groups, which nothing is not."""
    question = asked.question
    after = question.nearest(group.at + 1, 1, "noise")
    is_each = question.means(group.at - 1, "each") or question.means(group.at, "each")
    return is_each and after is not None and after.text in _HAVE


def _compared(asked: Asked, base: TableKey, others: list[Dimension]) -> list[Dimension]:
    """Return the groups of a comparison: the columns of its values, and the unit of its periods."""
    found = []
    for column in asked.compared_columns:
        link = column_link(column.table, column.column)
        found.append(column_dimension(asked.question, link))

    grains: set[Unit | None] = set()
    for span in asked.parts.spans:
        if len(span.periods) > 1:
            grains.update(period.grain for period in span.periods)

    grain = grains.pop() if len(grains) == 1 else None
    if grain is not None and not _has_buckets(others):
        by_unit = Dimension(NO_TABLE, None, grain)
        found.append(asked.resolved(by_unit, base))

    return found


def _implied_dimensions(asked: Asked, measures: list[Measure]) -> list[Dimension]:
    """Return the groups that named things imply: "customers and their number of orders"."""
    question = asked.question
    measured = {measure.table for measure in measures}
    found = []
    for one in asked.tables:
        table = one.link.table
        if table in measured or one.role == "shared":
            continue
        if question.facts(table).is_entity and _implies_groups(asked, one):
            found.append(_group_of_thing(asked, table))

    if found:
        return found

    shows_all = question.has("list")
    for column in asked.parts.columns:
        if shows_all or column.role == "asked":
            found.append(column_dimension(question, column.link))

    return found


def _implies_groups(asked: Asked, thing: Named) -> bool:
    """Tell whether a thing that is named beside a figure means a figure for each."""
    if thing.role == "asked":
        return True
    if _has_figure_behind(asked, thing.at):
        return True
    if _is_had(asked, thing):
        return False

    parts = asked.parts
    is_restricted = bool(parts.conditions or parts.related)
    if is_restricted or not asked.question.is_chinese:
        return False

    functions = {figure.function for figure in parts.figures}
    return functions.isdisjoint(("sum", "avg", "max", "min"))


def _is_had(asked: Asked, thing: Named) -> bool:
    """Tell whether rows have the thing: `有会员的订单有多少` are those that have one."""
    return asked.question.means(thing.at - 1, "with")


def _group_of_thing(asked: Asked, table: TableKey) -> Dimension:
    """Return the group by the column of the thing whose values are compared, else by the thing."""
    for column in asked.compared_columns:
        if column.table == table:
            return column_dimension(asked.question, column_link(table, column.column))

    return Dimension(table)


def _has_figure_behind(asked: Asked, at: int) -> bool:
    """Tell whether "and" or "with" and a figure follow a noun: "customers and their orders"."""
    after = asked.question.nearest(at + 1, 1, "noise")
    if after is None or not after.mark.means("and", "with"):
        return False

    figures = (*asked.parts.figures, *asked.parts.bare)
    return not figures or any(figure.position > after.at for figure in figures)


def _is_each_row(asked: Asked, dimension: Dimension, measures: list[Measure]) -> bool:
    """Tell whether a dimension is the measured rows themselves: `average fare per trip`.

    They are no groups then.
    """
    measure, *others = measures
    if others or measure.function != "avg":
        return False

    is_of_rows = dimension.column is None and dimension.bucket is None
    if not is_of_rows or dimension.table != measure.table:
        return False
    if asked.says("avg") or asked.question.says("per"):
        return True

    return not asked.question.facts(measure.table).is_entity


def _averaged_over(
    asked: Asked, measures: list[Measure], dimensions: list[Dimension]
) -> Dimension | None:
    """Return the groups whose totals an average of reports is over.

    For `average revenue per day` these are days. None where it is over single rows.

    Raises:
        Refusal: the average is asked for by period, and the question doesn't say of what.
    """
    if len(measures) != 1 or not _is_average_of_reports(asked, measures[0]):
        return None

    periods = []
    things = []
    for dimension in dimensions:
        if dimension.bucket is not None:
            periods.append(dimension)
        if dimension.column is None:
            things.append(dimension)

    if not periods and not things:
        return None

    over = _groups_without_by(asked, measures[0], [*periods, *dimensions])
    if over and _says_only_per(asked, dimensions):
        return over[0]
    if periods:
        raise unused_words(asked.question.texts("avg"))

    return None


def _says_only_per(asked: Asked, dimensions: list[Dimension]) -> bool:
    """Tell whether all units are named by "per", of which there is one less than groups."""
    units = [text.lower().split(" ")[0] for text in asked.question.texts("each", "bucket")]
    return len(dimensions) in (1, len(units) + 1) and set(units) <= {"per"}


def _is_average_of_reports(asked: Asked, measure: Measure) -> bool:
    if measure.function != "avg" or measure.per is not None:
        return False

    return asked.question.facts(measure.table).is_report


def _groups_without_by(
    asked: Asked, measure: Measure, dimensions: list[Dimension]
) -> list[Dimension]:
    """Return the dimensions that no word such as "by" asks for."""
    by = set()
    for group in asked.parts.groups:
        if group.by:
            by.add(asked.resolved(group.dimension, measure.table))

    return [dimension for dimension in dimensions if dimension not in by]


def _share(
    asked: Asked, base: TableKey, measures: list[Measure], dimensions: list[Dimension]
) -> Query:
    """Return the query for shares.

    They are those of each group in the total; without groups, the share of what meets the
    conditions in everything.
    """
    graph = asked.question.graph
    conditions = asked.parts.conditions
    lost = unused_words(asked.question.texts("share"))
    restricted = set(asked.parts.condition_tables)
    if any(measure.function == "metric" for measure in measures):
        raise lost
    if dimensions:
        above: set[TableKey] = set()
        for dimension in dimensions:
            above |= graph.above(dimension.table).keys()

        restricts_rows = any(condition.column.table == base for condition in conditions)
        if restricts_rows or not restricted <= above:
            # "share of women by city": of all women, or of those in each city
            # `各服务区新能源车占比` may mean shares of each area's traffic, or of the traffic of
            # all areas
            raise lost

        shares = [replace(measure, is_share=True) for measure in measures]
        return _grouped(base, dimensions, [*measures, *shares])

    if not conditions or not restricted <= graph.above(base).keys():
        raise lost
    if len(conditions) == 1 and asked.takes_all_values(conditions[0]):
        column = conditions[0].column
        group = column_dimension(asked.question, column_link(column.table, column.column))
        shares = [replace(measure, is_share=True) for measure in measures]
        return _grouped(base, [group], [*measures, *shares])

    if asked.parts.thresholds or len(measures) != 1:
        raise lost

    share = replace(measures[0], is_share=True, share_of=conditions)
    return Query(base, measures=(share,))


def _averaged_value(asked: Asked, measures: list[Measure]) -> Measure:
    """Return the average of a column by groups: "average number of pages by category".

    Raises:
        Refusal: rows are counted, of which "by" names no things to average over.
    """
    (measure, *others) = measures
    if others or measure.column is None or measure.function != "sum":
        raise unused_words(asked.question.texts("per_entity"))

    return replace(measure, function="avg")


def _per_entity(asked: Asked, measures: list[Measure], dimensions: list[Dimension]) -> Query:
    """Return the query for one figure, the average over things: `平均每个服务区有多少店铺`."""
    columns = [column_dimension(asked.question, column.link) for column in asked.parts.columns]
    found = list(dict.fromkeys([*dimensions, *columns]))
    if not found:
        found = [Dimension(table) for table in asked.table_keys]

    placed = {measures[0].table, *(one.table for one in found)}
    if len(found) != 1 or not placed.issuperset(asked.table_keys):
        raise unused_words(asked.question.texts("per_entity"))

    average = replace(measures[0], per=found[0])
    return Query(average.table, measures=(average,))
