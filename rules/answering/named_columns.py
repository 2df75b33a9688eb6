"""The labels of a result's columns, and which of them compare what.

By the structure of the question, if it is known; else by the SQL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.language.codes import labels_of
from knowledge.language.inflection import plural
from knowledge.language.spoken_names import spoken_name
from knowledge.results.result_columns import ResultColumn, label_of, result_columns
from knowledge.results.written_values import joined
from rules.answering.answer_period import period_of_conditions
from rules.query.aggregates import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Comparison, Condition, Function, Measure, Query
from rules.schema.table_schema import Schema
from rules.sql.expressions import number
from sqltree.outputs import Aggregate, OutputColumn

_YEARS, _PART = Text("{}至今的年数", "years since {}"), Text("{}（{}）", "{} ({})")
_COUNTED, _PER = Text("{}数量", "number of {}"), Text("每组{}的平均", "average {}")
_PARTIAL = {  # by whether it is running, and a share
    (True, True): Text("{}累计占比", "running share of {}"),
    (True, False): Text("累计{}", "running {}"),
    (False, True): Text("{}占比", "share of {}"),
}
_TOP = Text("前{}名的{}占比", "share of the top {} in {}")
# The functions whose columns are labelled alike for SQL that somebody else has written.
_COMMON: dict[Function, Aggregate] = {
    "count": "count",
    "count_distinct": "count",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
}
_COLUMNS_OF_CHANGE = 4  # of each figure: before, after, difference, percent
_ALL = Text("全部", "all")
_ORDINALS = (Text("前者", "first"), Text("后者", "second"))
_NOT = Text("非{}", "not {}")
_EARLIER = {
    "bucket": Text("{}（上期）", "{} (period before)"),
    "year": Text("{}（去年同期）", "{} (year before)"),
}
_DIFFERENCES = {
    None: Text("{}增减", "change of {}"),
    "bucket": Text("{}环比增减", "change of {} on the period before"),
    "year": Text("{}同比增减", "change of {} on the year before"),
}
_PERCENTS = {
    None: Text("{}增幅", "growth of {}"),
    "bucket": Text("{}环比", "growth of {} on the period before"),
    "year": Text("{}同比", "growth of {} on the year before"),
}
_BETWEEN = Text("，", ", ")


# ------------------------------------------------------------------------------
# all columns


def columns_of(
    query: Query | None,
    sql: str,
    result: QueryResult,
    schema: Schema,
    lang: Lang,
    today: date | None = None,
) -> tuple[ResultColumn, ...]:
    """Describe the columns of a result, the computed ones by the structure that they come from."""
    columns = result_columns(sql, result, schema.catalog, lang)
    if query is None or query.counts_rows:
        return columns
    if query.share_of_top is not None and len(columns) == 1:
        name = _TOP.to(lang).format(query.share_of_top, _of(query.measures[0], schema, lang))
        return (replace(columns[0], label=name),)

    changes = changes_of(query, len(columns), schema, lang, today or date.today())
    per_measure = 1 if changes is None else _COLUMNS_OF_CHANGE
    first_figure = len(columns) - per_measure * len(query.measures)
    first_listed = first_figure - len(query.columns)
    if first_listed < 0:
        return columns

    columns = _with_labels_of_parts(columns, query, first_listed, lang)
    names = [_listed_name(column, schema, lang) for column in query.columns]
    columns = _with_labels(columns, dict(enumerate(names, first_listed)))
    if changes is not None:
        columns = _with_units_of_changes(columns, changes)
        return _with_labels(columns, changes.labels(lang))

    names = [_computed_name(measure, schema, lang) for measure in query.measures]
    return _with_labels(columns, dict(enumerate(names, first_figure)))


def _with_labels(
    columns: tuple[ResultColumn, ...], labels: Mapping[int, str | None]
) -> tuple[ResultColumn, ...]:
    """Return the columns with these labels, by place; those without keep their own."""
    labelled = []
    for place, column in enumerate(columns):
        label = labels.get(place)
        labelled.append(replace(column, label=label) if label else column)

    return tuple(labelled)


def _with_labels_of_parts(
    columns: tuple[ResultColumn, ...], query: Query, count: int, lang: Lang
) -> tuple[ResultColumn, ...]:
    """Return the columns, of which the first `count` are labelled where they are parts of dates."""
    labels: dict[str | None, str] = {}
    for dimension in query.dimensions:
        if dimension.part is not None:
            part = PARTS[dimension.part]
            labels[part.name] = part.label.to(lang)

    labelled = [
        replace(column, label=labels.get(column.output.name) or column.label)
        for column in columns[:count]
    ]
    return (*labelled, *columns[count:])


def _with_units_of_changes(
    columns: tuple[ResultColumn, ...], changes: "Changes"
) -> tuple[ResultColumn, ...]:
    """Return the columns, of which the differences have the unit of the figure, and the others
    percent.
    """
    units = {place: column.unit for place, column in enumerate(columns)}
    for figure in changes.figures:
        units[figure.difference] = columns[figure.after].unit
        units[figure.percent] = "%"

    return tuple(replace(column, unit=units[place]) for place, column in enumerate(columns))


# ------------------------------------------------------------------------------
# figures


def _listed_name(asked: ColumnRef, schema: Schema, lang: Lang) -> str | None:
    """Return the name of a listed column; None for what is stored."""
    name = spoken_name(schema.column(asked.table, asked.column), lang)
    if asked.part is not None:
        return _PART.to(lang).format(name, PARTS[asked.part].label.to(lang))

    return _YEARS.to(lang).format(name) if asked.is_age else None


def _computed_name(measure: Measure, schema: Schema, lang: Lang) -> str | None:
    """Return the name of a figure that the SQL alone does not tell; None for the others."""
    if measure.function == "metric":
        return spoken_name(schema.column(measure.table, str(measure.column)), lang)

    name = _of(measure, schema, lang)
    partial = _PARTIAL.get((measure.is_running, measure.is_share))
    if partial is not None:
        return partial.to(lang).format(name)
    if measure.per is not None:
        return _PER.to(lang).format(name)

    is_of_column = not measure.times and not measure.is_age
    if is_of_column and measure.function in _COMMON:
        return None
    if measure.function.startswith("count"):
        return name

    label = FUNCTIONS[measure.function].label.to(lang)
    percent = number(measure.percent) if measure.percent is not None else ""
    return label.replace("{percent}", percent).replace("{}", name)


def _figure_name(measure: Measure, schema: Schema, lang: Lang) -> str:
    name = _computed_name(measure, schema, lang)
    if name is not None:
        return name

    table = schema.table(measure.table)
    column = schema.column(measure.table, measure.column) if measure.column is not None else None
    function = _COMMON[measure.function]
    figure = OutputColumn("", table=table, column=column, function=function, counted=(table,))
    return label_of(figure, None, schema.catalog, lang)


def _of(measure: Measure, schema: Schema, lang: Lang) -> str:
    """Return the name of what the function is applied to; of a count, of what is counted."""
    if measure.function in ("count", "count_distinct"):
        return _COUNTED.to(lang).format(_counted_name(measure, schema, lang))

    factors = [measure.column, measure.times]
    columns = [schema.column(measure.table, factor) for factor in factors if factor is not None]
    name = " × ".join(spoken_name(column, lang) for column in columns)
    if measure.less is not None:
        discount = schema.column(measure.table, measure.less)
        name = f"{name} × (1 − {spoken_name(discount, lang)})"

    return _YEARS.to(lang).format(name) if measure.is_age else name


def _counted_name(measure: Measure, schema: Schema, lang: Lang) -> str:
    if measure.column is None:
        name = spoken_name(schema.table(measure.table), lang)
    else:
        name = spoken_name(schema.column(measure.table, measure.column), lang)

    return plural(name) if lang == "en" else name


# ------------------------------------------------------------------------------
# compared


@dataclass(frozen=True)
class ComparedColumns:
    """The columns of one figure by their places.

    They hold the figure that it is compared with, the figure, the difference, and that in percent.
    """

    name: str
    before: int
    after: int
    difference: int
    percent: int


@dataclass(frozen=True)
class Changes:
    """The columns of a result that compare figures.

    Attributes:
        growth: whether each bucket is compared with the one before or that of a year before, see
            `Query.growth`.
        sides: otherwise the two sets of rows, by their names.
        unfinished: those of the sides that are periods which are not over.
        is_alone: whether one row holds all, without groups.
    """

    figures: tuple[ComparedColumns, ...]
    growth: str | None = None
    sides: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_alone: bool = False

    def labels(self, lang: Lang) -> dict[int, str]:
        """Return the labels of the columns by their places."""
        labels: dict[int, str] = {}
        for figure in self.figures:
            labels[figure.before], labels[figure.after] = self._labels_of_sides(figure.name, lang)
            labels[figure.difference] = _DIFFERENCES[self.growth].to(lang).format(figure.name)
            labels[figure.percent] = _PERCENTS[self.growth].to(lang).format(figure.name)

        return labels

    def _labels_of_sides(self, name: str, lang: Lang) -> tuple[str, str]:
        if self.growth is not None:
            return _EARLIER[self.growth].to(lang).format(name), name

        first, second = self.sides
        part = _PART.to(lang)
        return part.format(name, first), part.format(name, second)


def changes_of(
    query: Query | None, width: int, schema: Schema, lang: Lang, today: date
) -> Changes | None:
    """Return which columns of the query's result compare figures; None if none does.

    Args:
        width: number of the result's columns.
    """
    if query is None or query.counts_rows:
        return None
    if query.comparison is None and query.growth is None:
        return None

    first = width - _COLUMNS_OF_CHANGE * len(query.measures)
    if first < 0:
        return None

    figures = []
    for index, measure in enumerate(query.measures):
        place = first + index * _COLUMNS_OF_CHANGE
        name = _figure_name(measure, schema, lang)
        # a series begins with the figure itself
        before, after = (place + 1, place) if query.growth is not None else (place, place + 1)
        figures.append(ComparedColumns(name, before, after, place + 2, place + 3))

    if query.comparison is None:
        return Changes(tuple(figures), query.growth)

    return Changes(
        tuple(figures),
        sides=_names_of_sides(query.comparison, schema, lang, today),
        unfinished=_unfinished_sides(query.comparison, schema, lang, today),
        is_alone=not query.dimensions,
    )


def _names_of_sides(
    comparison: Comparison, schema: Schema, lang: Lang, today: date
) -> tuple[str, str]:
    first = _name_of_rows(comparison.first, schema, lang, today)
    second = _name_of_rows(comparison.second, schema, lang, today)
    if first is None or second is None or first == second:
        return _ORDINALS[0].to(lang), _ORDINALS[1].to(lang)

    return first, second


def _unfinished_sides(
    comparison: Comparison, schema: Schema, lang: Lang, today: date
) -> tuple[str, ...]:
    unfinished = []
    for side in (comparison.first, comparison.second):
        dated = period_of_conditions(side, schema, today)
        if dated is not None and dated.is_unfinished:
            unfinished.append(dated.written_period(lang))

    return tuple(unfinished)


def _name_of_rows(
    conditions: Sequence[Condition], schema: Schema, lang: Lang, today: date
) -> str | None:
    """Return the name of a set of rows by its conditions; None if one of them has no short name."""
    names = []
    for condition in conditions:
        name = _name_of_condition(condition, schema, lang, today)
        if name is None:
            return None

        names.append(name)

    return _BETWEEN.to(lang).join(names) or _ALL.to(lang)


def _name_of_condition(condition: Condition, schema: Schema, lang: Lang, today: date) -> str | None:
    if condition.operator == "during":
        dated = period_of_conditions([condition], schema, today)
        if dated is not None:
            return dated.written_period(lang)

        return None

    if condition.operator in ("true", "false"):
        name = _name_of_flag(condition.column, schema, lang)
        if condition.operator == "true":
            return name

        return _NOT.to(lang).format(name)

    if condition.operator not in ("=", "in"):
        return None

    return _name_of_values(condition, schema, lang)


def _name_of_flag(asked: ColumnRef, schema: Schema, lang: Lang) -> str:
    if asked.part is not None:
        return PARTS[asked.part].label.to(lang)

    return spoken_name(schema.column(asked.table, asked.column), lang)


def _name_of_values(condition: Condition, schema: Schema, lang: Lang) -> str | None:
    """Return the values that a column is to have; None if it is compared with another column."""
    asked = condition.column
    if asked.part is not None or condition.columns != (asked,):
        return None

    labels = dict(labels_of(schema.column(asked.table, asked.column).comment))
    values = []
    for operand in condition.operands:
        value = number(operand) if isinstance(operand, Decimal) else str(operand)
        values.append(labels.get(value, value))

    return joined(values, lang)
