"""The chart that somebody wishes for, if the rows can be shown so; else what can be shown instead."""

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
from knowledge.result_columns import ResultColumn
from knowledge.safe_text import one_line

ChartType = Literal["bar", "line", "pie", "scatter", "number"]
CHART_TYPES: tuple[ChartType, ...] = get_args(ChartType)

_MOST_NAMED = 20  # columns
_MOST_NAME_CHARS = 80
_TABLE = Text("这些行用表格展示最清楚。", "A table shows these rows best.")
_LIMITED = Text(
    "结果被截断，不能画图：请先汇总，或减少行数。",
    "The rows were cut, so a chart would show only some of them: aggregate, or ask for fewer rows.",
)
_SAME_NAMES = Text("结果中有同名的列：请用 AS 改名。", "Two columns have the same name: rename one with AS.")
_NO_COLUMN = Text("结果中没有列“{}”；有：{}。", 'The rows have no column "{}"; they have: {}.')
_NO_FIGURES = Text("列“{}”不是数值；数值列：{}。", 'The column "{}" holds no figures; those that do: {}.')
_NONE = Text("无", "none")
_FITS = Text("{problem}可用的图表：{fits}。", "{problem} What fits: {fits}.")
_WHY: dict[ChartType, Text] = {
    "number": Text("number 只适合一行结果。", "number is for one row."),
    "line": Text(
        "line 需要时间作横轴，每个时间（和分组）只有一行。", "line needs time as x, with one row per time (and group)."
    ),
    "bar": Text(
        f"bar 需要一个分组作横轴，最多 {MOST_BARS} 个，每组只有一行。",
        f"bar needs groups as x, at most {MOST_BARS}, with one row per group (and series).",
    ),
    "pie": Text(
        f"pie 需要最多 {MOST_SLICES} 组，每组一行，且没有负数。",
        f"pie needs at most {MOST_SLICES} groups with one row each and no negative figures.",
    ),
    "scatter": Text("scatter 需要两个数值列和至少两行。", "scatter needs two columns of figures and two rows."),
}


@dataclass(frozen=True)
class ChartWish:
    """What somebody wants; None leaves it to the rows.

    Attributes:
        x, y: name or label of a column.
    """

    type: ChartType | None = None
    x: str | None = None
    y: str | None = None


@dataclass(frozen=True)
class _Drawn:
    """The columns of a chart."""

    x: ResultColumn | None
    y: ResultColumn
    series: ResultColumn | None = None


def wished_chart(columns: Sequence[ResultColumn], result: QueryResult, lang: Lang, wish: ChartWish) -> Chart:
    """The chart for `result`, whose columns are `columns`, as wished.

    Raises:
        InvalidRequest: the rows have no such column, or can't be shown so; says what fits.
    """
    if result.is_limited:
        raise InvalidRequest(_LIMITED)
    table = Roles(columns, result)
    if not table.has_unique_names:
        raise InvalidRequest(_SAME_NAMES)
    if wish == ChartWish():
        chart = chart_of(columns, result, lang)
        if chart is None:
            raise InvalidRequest(_with_fits(_TABLE, _fitting(table)))
        return chart
    x = _named(wish.x, table) if wish.x is not None else None
    y = _figures(wish.y, table) if wish.y is not None else None
    kinds = [wish.type] if wish.type is not None else list(_likely(table))
    for kind in kinds:
        drawn = _CHECKS[kind](table, x, y)
        if drawn is not None:
            return spec(kind, drawn.x, drawn.y, drawn.series, _title(drawn, lang, kind))
    why = _WHY[wish.type] if wish.type is not None else _TABLE
    raise InvalidRequest(_with_fits(why, _fitting(table)), field="type")


def _likely(table: Roles) -> tuple[ChartType, ...]:
    """The kinds of charts to try, the likeliest first."""
    return ("number", "line", "bar", "scatter") if table.count == 1 else ("line", "bar", "scatter", "number")


def _fitting(table: Roles) -> list[str]:
    """The kinds of charts that the rows can be shown as, each with its columns."""
    fits = []
    for kind in CHART_TYPES:
        drawn = _CHECKS[kind](table, None, None)
        if drawn is not None:
            x = f"x={drawn.x.output.name}, " if drawn.x else ""
            fits.append(f"{kind} ({x}y={drawn.y.output.name})")
    return fits


def _with_fits(problem: Text, fits: Sequence[str]) -> Text:
    zh, en = (", ".join(fits) or _NONE.to(lang) for lang in ("zh", "en"))
    return Text(_FITS.zh.format(problem=problem.zh, fits=zh), _FITS.en.format(problem=problem.en, fits=en))


def _named(name: str, table: Roles) -> ResultColumn:
    for spell in (str, str.casefold):
        for column in table.columns:
            if spell(name) in (spell(column.output.name), spell(column.label)):
                return column
    raise InvalidRequest(_filled(_NO_COLUMN, name, table.columns))


def _figures(name: str, table: Roles) -> ResultColumn:
    column = _named(name, table)
    if column in table.measures or table.holds_figures(column):
        return column
    raise InvalidRequest(_filled(_NO_FIGURES, name, [one for one in table.columns if table.holds_figures(one)]))


def _filled(text: Text, name: str, columns: Sequence[ResultColumn]) -> Text:
    named = ", ".join(column.output.name for column in columns[:_MOST_NAMED]) + (" …" if columns[_MOST_NAMED:] else "")
    said = one_line(name, _MOST_NAME_CHARS)
    return Text(text.zh.format(said, named or _NONE.zh), text.en.format(said, named or _NONE.en))


# ------------------------------------------------------------------------------------------------------ kinds of charts

_Check = Callable[[Roles, ResultColumn | None, ResultColumn | None], _Drawn | None]
"""The columns of such a chart, with the wished ones; None when it does not fit."""


def _number(table: Roles, _x: ResultColumn | None, y: ResultColumn | None) -> _Drawn | None:
    y = y or _measure(table)
    return _Drawn(None, y) if y is not None and table.count == 1 else None


def _line(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _Drawn | None:
    x = x or next(iter(table.times), None)
    if x is None or x.role != "time" or table.distinct(x) < LEAST_POINTS:
        return None
    return _grouped(table, x, y)


def _bar(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _Drawn | None:
    x = x or next(iter((*table.categories, *table.times)), None)
    if x is None or table.distinct(x) > MOST_BARS:
        return None
    return _grouped(table, x, y)


def _pie(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _Drawn | None:
    x, y = x or next(iter((*table.categories, *table.times)), None), y or _measure(table)
    if x is None or y is None or x is y or not table.distinct(x) == table.count <= MOST_SLICES:
        return None
    figures = [value for value in table.values(y) if value is not None]
    return _Drawn(x, y) if len(figures) > 1 and min(figures) >= 0 and any(figures) else None


def _scatter(table: Roles, x: ResultColumn | None, y: ResultColumn | None) -> _Drawn | None:
    others = [one for one in table.measures if one not in (x, y)]
    x = x or next(iter(others), None)
    y = y or next((one for one in others if one is not x), None)
    if x is None or y is None or x is y or not table.holds_figures(x) or table.count <= 1:
        return None
    return _Drawn(x, y)


_CHECKS: dict[ChartType, _Check] = {"bar": _bar, "line": _line, "pie": _pie, "scatter": _scatter, "number": _number}


def _grouped(table: Roles, x: ResultColumn, y: ResultColumn | None) -> _Drawn | None:
    """With one row per place on the x axis, or one per place and group."""
    y = y or _measure(table, besides=x)
    if y is None or x is y:
        return None
    if table.distinct(x) == table.count:
        return _Drawn(x, y)
    for series in (*table.categories, *table.times):
        is_other = series is not x and series is not y
        if is_other and table.distinct(x, series) == table.count and table.distinct(series) <= MOST_SERIES:
            return _Drawn(x, y, series)
    return None


def _measure(table: Roles, besides: ResultColumn | None = None) -> ResultColumn | None:
    """The figure to show when nobody says which."""
    measures = [one for one in table.measures if one is not besides]
    if not measures:
        return None
    main = main_measure(table)
    return main if main in measures else measures[0]


def _title(drawn: _Drawn, lang: Lang, kind: ChartType) -> str:
    if drawn.x is None:
        return drawn.y.label
    if drawn.series is not None:
        return SPLIT.to(lang).format(y=drawn.y.label, x=drawn.x.label, series=drawn.series.label)
    return (AGAINST if kind == "scatter" else OVER).to(lang).format(y=drawn.y.label, x=drawn.x.label)
