"""What the columns of a result are called and compare, by the structure of the question where there is one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from common.text import Lang, Text
from common.values import QueryResult
from databases.outputs import Aggregate, Output
from knowledge.codes import labels_of
from knowledge.naming import plural, spoken_name
from knowledge.result_columns import ResultColumn, label_of, result_columns
from knowledge.written_values import joined
from rules.answering.dated import dated_by
from rules.query.functions import FUNCTIONS, PARTS
from rules.query.query import ColumnRef, Condition, Function, Measure, Query
from rules.schema.schema import Schema
from rules.sql.expressions import number

_YEARS, _PART = Text("{}至今的年数", "years since {}"), Text("{}（{}）", "{} ({})")
_COUNTED, _PER = Text("{}数量", "number of {}"), Text("每组{}的平均", "average {}")
_PARTIAL = {  # by whether it is running, and a share
    (True, True): Text("{}累计占比", "running share of {}"),
    (True, False): Text("累计{}", "running {}"),
    (False, True): Text("{}占比", "share of {}"),
}
_TOP = Text("前{}名的{}占比", "share of the top {} in {}")
# Functions by what the columns of a result are said to be, whoever has written the SQL.
_TOLD: dict[Function, Aggregate] = {
    "count": "count", "count_distinct": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max",
}  # fmt: skip
_ALL = Text("全部", "all")
_ORDINALS = (Text("前者", "first"), Text("后者", "second"))
_NOT = Text("非{}", "not {}")
_EARLIER = {"bucket": Text("{}（上期）", "{} (period before)"), "year": Text("{}（去年同期）", "{} (year before)")}
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


# -------------------------------------------------------------------------------------------------------- all columns


def columns_of(
    query: Query | None, sql: str, result: QueryResult, schema: Schema, lang: Lang, today: date | None = None
) -> tuple[ResultColumn, ...]:
    """What the columns are; what is computed is called by the structure that it comes from."""
    columns = result_columns(sql, result, schema.catalog, lang)
    if query is None or query.counts_rows:
        return columns
    if query.share_of_top is not None and len(columns) == 1:
        name = _TOP.to(lang).format(query.share_of_top, _of(query.measures[0], schema, lang))
        return (replace(columns[0], label=name),)
    changes = changes_of(query, len(columns), schema, lang, today or date.today())
    figures = len(columns) - len(query.measures) * (1 if changes is None else 4)  # the place of the first
    first = figures - len(query.columns)
    if first < 0:
        return columns
    parts = {PARTS[one.part].name: PARTS[one.part].label.to(lang) for one in query.dimensions if one.part is not None}
    labels = {place: parts.get(one.output.name) for place, one in enumerate(columns[:first])}
    labels |= {place: _listed_name(one, schema, lang) for place, one in enumerate(query.columns, first)}
    units: dict[int, str | None] = {}
    if changes is not None:
        labels |= changes.labels(lang)
        units |= {one.difference: columns[one.after].unit for one in changes.figures}
        units |= dict.fromkeys((one.percent for one in changes.figures), "%")
    for place, measure in enumerate(query.measures if changes is None else (), figures):
        labels[place] = _computed_name(measure, schema, lang)
    return tuple(
        replace(one, label=labels.get(place) or one.label, unit=units.get(place, one.unit))
        for place, one in enumerate(columns)
    )


# ------------------------------------------------------------------------------------------------------------ figures


def _listed_name(asked: ColumnRef, schema: Schema, lang: Lang) -> str | None:
    """The name of a listed column; None for what is stored."""
    name = spoken_name(schema.column(asked.table, asked.column), lang)
    if asked.part is not None:
        return _PART.to(lang).format(name, PARTS[asked.part].label.to(lang))
    return _YEARS.to(lang).format(name) if asked.is_age else None


def _computed_name(measure: Measure, schema: Schema, lang: Lang) -> str | None:
    """The name of what the SQL alone does not tell; None for the rest."""
    if measure.function == "metric":
        return spoken_name(schema.column(measure.table, str(measure.column)), lang)
    name = _of(measure, schema, lang)
    form = _PARTIAL.get((measure.is_running, measure.is_share)) or (_PER if measure.per is not None else None)
    if form is not None:
        return form.to(lang).format(name)
    if not (measure.times or measure.is_age) and measure.function in _TOLD:
        return None
    label = FUNCTIONS[measure.function].label.to(lang)
    percent = number(measure.percent) if measure.percent is not None else ""
    return name if measure.function.startswith("count") else label.replace("{percent}", percent).replace("{}", name)


def _figure_name(measure: Measure, schema: Schema, lang: Lang) -> str:
    """The name of a figure."""
    name = _computed_name(measure, schema, lang)
    if name is not None:
        return name
    table = schema.table(measure.table)
    column = schema.column(measure.table, measure.column) if measure.column is not None else None
    figure = Output("", table=table, column=column, function=_TOLD[measure.function], counted=(table,))
    return label_of(figure, None, lang)


def _of(measure: Measure, schema: Schema, lang: Lang) -> str:
    """What the function is of; of a count, what is counted."""
    if measure.function in ("count", "count_distinct"):
        thing = schema.table(measure.table) if measure.column is None else schema.column(measure.table, measure.column)
        name = spoken_name(thing, lang)
        return _COUNTED.to(lang).format(plural(name) if lang == "en" else name)
    factors = [one for one in (measure.column, measure.times) if one is not None]
    name = " × ".join(spoken_name(schema.column(measure.table, one), lang) for one in factors)
    return _YEARS.to(lang).format(name) if measure.is_age else name


# ----------------------------------------------------------------------------------------------------------- compared


@dataclass(frozen=True)
class Compared:
    """One figure, and the columns that hold what it is compared with, itself, the difference, and that in percent."""

    name: str
    before: int
    after: int
    difference: int
    percent: int


@dataclass(frozen=True)
class Changes:
    """What the columns of a result compare.

    Attributes:
        growth: whether each bucket is compared with the one before or that of a year before, see `Query.growth`.
        sides: otherwise the two sets of rows, by their names.
        unfinished: those of the sides that are periods which are not over.
        is_alone: whether one row holds all, without groups.
    """

    figures: tuple[Compared, ...]
    growth: str | None = None
    sides: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    is_alone: bool = False

    def labels(self, lang: Lang) -> dict[int, str]:
        """What the columns are called, by their places."""
        found: dict[int, str] = {}
        for one in self.figures:
            before, after = [_PART.to(lang).format(one.name, side) for side in self.sides] or ("", one.name)
            if self.growth is not None:
                before = _EARLIER[self.growth].to(lang).format(one.name)
            difference, percent = (form[self.growth].to(lang).format(one.name) for form in (_DIFFERENCES, _PERCENTS))
            found |= {one.before: before, one.after: after, one.difference: difference, one.percent: percent}
        return found


def changes_of(query: Query | None, width: int, schema: Schema, lang: Lang, today: date) -> Changes | None:
    """What the `width` columns of the query's result compare; None where nothing is compared."""
    if query is None or query.counts_rows or (query.comparison is None and query.growth is None):
        return None
    first = width - 4 * len(query.measures)
    if first < 0:
        return None
    figures = []
    for one, at in zip(query.measures, range(first, width, 4), strict=True):
        before, after = (at, at + 1) if query.growth is None else (at + 1, at)  # a series begins with the figure itself
        figures.append(Compared(_figure_name(one, schema, lang), before, after, at + 2, at + 3))
    if query.comparison is None:
        return Changes(tuple(figures), query.growth)
    both = (query.comparison.first, query.comparison.second)
    names = [_said(side, schema, lang, today) for side in both]
    periods = [dated_by(side, schema, today) for side in both]
    unfinished = tuple(one.said(lang) for one in periods if one is not None and one.is_unfinished)
    if None in names or names[0] == names[1]:
        names = [one.to(lang) for one in _ORDINALS]
    return Changes(tuple(figures), None, tuple(map(str, names)), unfinished, not query.dimensions)


def _said(side: Sequence[Condition], schema: Schema, lang: Lang, today: date) -> str | None:
    """What a set of rows is called by its conditions; None for such as have no short name."""
    names = [_name(one, schema, lang, today) for one in side]
    return _BETWEEN.to(lang).join(map(str, names)) or _ALL.to(lang) if None not in names else None


def _name(condition: Condition, schema: Schema, lang: Lang, today: date) -> str | None:
    if condition.operator == "during":
        dated = dated_by([condition], schema, today)
        return dated.said(lang) if dated is not None else None
    ref, column = condition.column, schema.column(condition.column.table, condition.column.column)
    if condition.operator in ("true", "false"):
        name = PARTS[ref.part].label.to(lang) if ref.part is not None else spoken_name(column, lang)
        return name if condition.operator == "true" else _NOT.to(lang).format(name)
    if condition.operator not in ("=", "in") or ref.part is not None:
        return None
    labels = dict(labels_of(column.comment))
    values = [number(one) if isinstance(one, Decimal) else str(one) for one in condition.operands]
    return joined([labels.get(one, one) for one in values], lang) if condition.columns == (ref,) else None
