"""Charts as a request asks for them; an error names those that fit the rows instead."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agent.answers.chart import (
    AGAINST,
    LEAST_POINTS,
    MOST_BARS,
    MOST_SERIES,
    MOST_SLICES,
    OVER,
    SPLIT,
    Chart,
    Roles,
    chart_of,
    main_measure,
    spec,
)
from common.errors import InvalidRequest
from common.text import Lang, Text
from common.values import QueryResult
from knowledge.language.safe_text import one_line
from knowledge.results.result_columns import ResultColumn

ChartType = Literal["bar", "line", "pie", "scatter", "number"]
CHART_TYPES: tuple[ChartType, ...] = get_args(ChartType)

# The kinds to try when the request names none, the likeliest first.
_KINDS_OF_ROWS: tuple[ChartType, ...] = ("line", "bar", "scatter", "number")
_KINDS_OF_ONE_ROW: tuple[ChartType, ...] = ("number", "line", "bar", "scatter")
_MOST_NAMED = 20  # columns
_MOST_NAME_CHARS = 80
_TABLE = Text("这些行用表格展示最清楚。", "A table shows these rows best.")
_LIMITED = Text(
    "结果被截断，不能画图：请先汇总，或减少行数。",
    "The rows were cut, so a chart would show only some of them: aggregate, or ask for fewer rows.",
)
_SAME_NAMES = Text(
    "结果中有同名的列：请用 AS 改名。", "Two columns have the same name: rename one with AS."
)
_NO_COLUMN = Text("结果中没有列“{}”；有：{}。", 'The rows have no column "{}"; they have: {}.')
_NO_FIGURES = Text(
    "列“{}”不是数值；数值列：{}。", 'The column "{}" holds no figures; those that do: {}.'
)
_NONE = Text("无", "none")
_FITS = Text("{problem}可用的图表：{fits}。", "{problem} What fits: {fits}.")
_WHY: dict[ChartType, Text] = {
    "number": Text("number 只适合一行结果。", "number is for one row."),
    "line": Text(
        "line 需要时间作横轴，每个时间（和分组）只有一行。",
        "line needs time as x, with one row per time (and group).",
    ),
    "bar": Text(
        f"bar 需要一个分组作横轴，最多 {MOST_BARS} 个，每组只有一行。",
        f"bar needs groups as x, at most {MOST_BARS}, with one row per group (and series).",
    ),
    "pie": Text(
        f"pie 需要最多 {MOST_SLICES} 组，每组一行，且没有负数。",
        f"pie needs at most {MOST_SLICES} groups with one row each and no negative figures.",
    ),
    "scatter": Text(
        "scatter 需要两个数值列和至少两行。", "scatter needs two columns of figures and two rows."
    ),
}


@dataclass(frozen=True)
class ChartRequest:
    """A request for a chart; a field that is None is chosen from the rows.

    Attributes:
        x, y: name or label of a column.
    """

    type: ChartType | None = None
    x: str | None = None
    y: str | None = None


@dataclass(frozen=True)
class _ChartColumns:
    """The columns of a chart."""

    x: ResultColumn | None
    y: ResultColumn
    series: ResultColumn | None = None


def requested_chart_of(
    columns: Sequence[ResultColumn], result: QueryResult, lang: Lang, request: ChartRequest
) -> Chart:
    """Return the requested chart for `result`, whose columns are `columns`.

    Raises:
        InvalidRequest: the rows have no such column, or can't be shown so; says what fits.
    """
    if result.is_limited:
        raise InvalidRequest(_LIMITED)

    table = Roles(columns, result)
    if not table.has_unique_names:
        raise InvalidRequest(_SAME_NAMES)
    if request == ChartRequest():
        chart = chart_of(columns, result, lang)
        if chart is None:
            raise InvalidRequest(_with_fits(_TABLE, table))

        return chart

    x = _column_named(request.x, table) if request.x is not None else None
    y = _numeric_column(request.y, table) if request.y is not None else None
    for kind in _kinds_to_try(request.type, table):
        chosen = _CHECKS[kind](table, x, y)
        if chosen is not None:
            title = _title(chosen, lang, kind)
            chart = spec(kind, chosen.x, chosen.y, chosen.series, title)
            return chart | table.orders(chart)

    problem = _TABLE if request.type is None else _WHY[request.type]
    raise InvalidRequest(_with_fits(problem, table), field="type")


def _fitting_kinds(table: Roles) -> list[str]:
    """Return the kinds of charts that the rows can be shown as, each with its columns."""
    fits = []
    for kind in CHART_TYPES:
        chosen = _CHECKS[kind](table, None, None)
        if chosen is not None:
            x = f"x={chosen.x.output.name}, " if chosen.x else ""
            fits.append(f"{kind} ({x}y={chosen.y.output.name})")

    return fits


def _with_fits(problem: Text, table: Roles) -> Text:
    fits = ", ".join(_fitting_kinds(table))
    return Text(
        _FITS.zh.format(problem=problem.zh, fits=fits or _NONE.zh),
        _FITS.en.format(problem=problem.en, fits=fits or _NONE.en),
    )


def _column_named(name: str, table: Roles) -> ResultColumn:
    for spell in (str, str.casefold):
        for column in table.columns:
            if spell(name) in (spell(column.output.name), spell(column.label)):
                return column

    raise InvalidRequest(_refusal_text(_NO_COLUMN, name, table.columns))


def _kinds_to_try(asked: ChartType | None, table: Roles) -> tuple[ChartType, ...]:
    if asked is not None:
        return (asked,)

    return _KINDS_OF_ONE_ROW if table.count == 1 else _KINDS_OF_ROWS


def _numeric_column(name: str, table: Roles) -> ResultColumn:
    column = _column_named(name, table)
    if column in table.measures or table.holds_figures(column):
        return column

    with_figures = [one for one in table.columns if table.holds_figures(one)]
    raise InvalidRequest(_refusal_text(_NO_FIGURES, name, with_figures))


def _refusal_text(text: Text, name: str, columns: Sequence[ResultColumn]) -> Text:
    """Fill a text with the name that was asked for, and the columns that could be named instead."""
    choices = ", ".join(column.output.name for column in columns[:_MOST_NAMED])
    if len(columns) > _MOST_NAMED:
        choices += " …"

    asked = one_line(name, _MOST_NAME_CHARS)
    chinese = text.zh.format(asked, choices or _NONE.zh)
    return Text(chinese, text.en.format(asked, choices or _NONE.en))


# ------------------------------------------------------------------------------
# kinds of charts

_Check = Callable[[Roles, ResultColumn | None, ResultColumn | None], _ChartColumns | None]
"""Takes the requested x and y; gives the columns of the chart, or None when it does not fit."""


def _number(table: Roles, _x: ResultColumn | None, y: ResultColumn | None) -> _ChartColumns | None:
    y = y or _measure(table)
    if y is None or table.count != 1:
        return None

    return _ChartColumns(None, y)


def _line(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _ChartColumns | None:
    x = x or next(iter(table.times), None)
    if x is None or x.role != "time" or table.distinct(x) < LEAST_POINTS:
        return None

    return _grouped(table, x, y)


def _bar(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _ChartColumns | None:
    x = x or _group(table)
    if x is None or table.distinct(x) > MOST_BARS:
        return None

    return _grouped(table, x, y)


def _pie(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _ChartColumns | None:
    chosen = _pair(x or _group(table), y or _measure(table))
    if chosen is None or not _has_slices(table, x=chosen[0], y=chosen[1]):
        return None

    return _ChartColumns(*chosen)


def _pair(
    x: ResultColumn | None, y: ResultColumn | None
) -> tuple[ResultColumn, ResultColumn] | None:
    """Return both columns; None when one is missing or they are the same."""
    if x is None or y is None or x is y:
        return None

    return x, y


def _has_slices(table: Roles, x: ResultColumn, y: ResultColumn) -> bool:
    """Tell whether each x has one share of a whole."""
    if table.count > MOST_SLICES or table.distinct(x) != table.count:
        return False

    figures = [value for value in table.values(y) if value is not None]
    if len(figures) < 2 or min(figures) < 0:
        return False

    return any(figures)


def _group(table: Roles) -> ResultColumn | None:
    """Return the first column that groups the rows, a category before a time."""
    return next(iter((*table.categories, *table.times)), None)


def _scatter(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _ChartColumns | None:
    unused = iter([measure for measure in table.measures if measure is not x and measure is not y])
    axes = _pair(x or next(unused, None), y or next(unused, None))
    if axes is None or table.count <= 1:
        return None
    if not table.holds_figures(axes[0]):
        return None

    return _ChartColumns(*axes)


_CHECKS: dict[ChartType, _Check] = {
    "bar": _bar,
    "line": _line,
    "pie": _pie,
    "scatter": _scatter,
    "number": _number,
}


def _grouped(table: Roles, x: ResultColumn, y: ResultColumn | None) -> _ChartColumns | None:
    """Return the columns with one row for each x, or one for each x and series."""
    y = y or _measure(table, besides=x)
    if y is None or x is y:
        return None
    if table.distinct(x) == table.count:
        return _ChartColumns(x, y)

    for series in (*table.categories, *table.times):
        if series is x or series is y or table.distinct(series) > MOST_SERIES:
            continue
        if table.distinct(x, series) == table.count:
            return _ChartColumns(x, y, series)

    return None


def _measure(table: Roles, besides: ResultColumn | None = None) -> ResultColumn | None:
    """Return the figure to show when the request names none."""
    measures = [measure for measure in table.measures if measure is not besides]
    if not measures:
        return None

    main = main_measure(table)
    return main if main in measures else measures[0]


def _title(chosen: _ChartColumns, lang: Lang, kind: ChartType) -> str:
    x, y, series = chosen.x, chosen.y, chosen.series
    if x is None:
        return y.label
    if series is not None:
        return SPLIT.to(lang).format(y=y.label, x=x.label, series=series.label)

    pattern = AGAINST if kind == "scatter" else OVER
    return pattern.to(lang).format(y=y.label, x=x.label)
