"""Draws an answer's chart as a PNG file, by matplotlib where it is installed
(requirements-charts.txt).
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from math import fsum, isnan
from typing import Any

from agent.answers.chart_figures import in_order, steps, told_apart
from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn, as_period
from knowledge.results.value_labels import value_labels
from knowledge.results.written_values import value_text

_MODULES = ("matplotlib", "matplotlib.backends.backend_agg", "matplotlib.font_manager")
_INCHES, _DOTS = (9.0, 5.0), 120  # of the picture, and its dots per inch
_MOST_LABELS = 30  # along an axis; of more, some are left out
_MOST_LEVEL = 6  # of more labels, all are slanted
_LONGEST_LABEL = 20  # characters that are drawn
_LARGEST_TEXT = 48  # points: the size of one figure alone
_WIDEST_TEXT = (
    600  # points: characters times their size that fit side by side, though all are as wide as high
)
_MOST_UPRIGHT = 14  # names below bars; more of them, or long ones, stand beside bars that lie
_SHORT_NAME = 5  # characters, of which any number can be left out: `12月`, `Q3`
_BAR_INCHES = 0.24  # of the picture's height, for each bar that lies
_COLOURS = (  # those of the page, then paler ones
    *("#0f6b62", "#c4621a", "#3c6fb4", "#a8437d", "#7a7f1f", "#6b5ba6"),
    *("#87b5b0", "#e1b08c", "#9db7d9", "#d3a1be", "#bcbf8f", "#b5add2"),
)
_YES, _NO = Text("是", "yes"), Text("否", "no")
# For each character the first that has it.
_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Microsoft YaHei",
    "PingFang SC",
    "WenQuanYi Micro Hei",
    "DejaVu Sans",
)


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def chart_png(
    chart: Mapping[str, Any], columns: Iterable[ResultColumn], result: QueryResult, lang: Lang
) -> bytes:
    """Return the chart `{type, x, y, series, title, unit}` as a PNG file. Blocks for as long as
    drawing takes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    matplotlib, agg, fonts = map(
        import_module, _MODULES
    )  # at the first picture: they take a second
    # Text of the database may hold `$`, which matplotlib would take for a formula.
    installed = {
        font.name for font in fonts.fontManager.ttflist
    }  # it warns of every other, for every text
    settings = {
        "font.family": [name for name in _FONTS if name in installed],
        "axes.unicode_minus": False,
        "text.parse_math": False,
    }
    with matplotlib.rc_context(settings):
        file = io.BytesIO()
        agg.FigureCanvasAgg(figure_of(chart, columns, result, lang)).print_png(file)

    return file.getvalue()


def figure_of(
    chart: Mapping[str, Any], columns: Iterable[ResultColumn], result: QueryResult, lang: Lang
) -> Any:
    """Return the chart as a figure of matplotlib.

    Raises:
        ImportError: matplotlib is not installed.
    """
    columns = list(columns)
    result = replace(result, rows=tuple(in_order(chart, result.columns, result.rows)))
    figure = import_module("matplotlib.figure").Figure(
        figsize=_INCHES, dpi=_DOTS, layout="constrained"
    )
    axes = figure.add_subplot()
    axes.set_prop_cycle(color=_COLOURS)
    if chart["type"] == "number":
        _write(axes, _one_figure(chart, columns, result, lang))
    else:
        _DRAWINGS[chart["type"]](
            axes, _with_texts(chart, columns, lang), _values(chart, columns, result, lang)
        )

    # One figure alone has its unit beside it.
    unit = f" ({chart['unit']})" if chart["unit"] and chart["type"] != "number" else ""
    axes.set_title(f"{chart['title']}{unit}")
    return figure


def _one_figure(
    chart: Mapping[str, Any], columns: Iterable[ResultColumn], result: QueryResult, lang: Lang
) -> str:
    """Return the figure as sentences have it; as a floating-point number it could lose digits."""
    return next(
        value_text(value, column, lang)
        for column, value in zip(columns, result.rows[0], strict=True)
        if column.output.name == chart["y"]
    )


def _write(axes: Any, text: str) -> None:
    axes.axis("off")
    axes.text(
        0.5,
        0.5,
        text,
        ha="center",
        va="center",
        fontsize=min(_LARGEST_TEXT, _WIDEST_TEXT / len(text)),
    )


_Values = Mapping[str, list[Any]]


def _values(
    chart: Mapping[str, Any], columns: Iterable[ResultColumn], result: QueryResult, lang: Lang
) -> _Values:
    """Return the values of the charted columns by their names; figures as numbers, everything else
    as text.

    The text is whole, because values are told apart by it.
    """
    is_by_figure = chart["type"] == "scatter" or "step" in chart
    figures = (chart["y"], *chart.get("others", ()), chart["x"] if is_by_figure else None)
    charted = (*figures, chart["x"], chart["series"])
    values_by_series: dict[str, list[Any]] = {}
    for place, column in enumerate(columns):
        name = column.output.name
        if name not in charted:
            continue

        values = [row[place] for row in result.rows]
        if name in figures:
            values_by_series[name] = [_figure(value) for value in values]
        else:
            values_by_series[name] = _texts(column, values, lang)

    return values_by_series


def _with_texts(
    chart: Mapping[str, Any], columns: Iterable[ResultColumn], lang: Lang
) -> Mapping[str, Any]:
    """Return the chart with the `labels` of columns, and the order of its series as texts."""
    columns = list(columns)
    labels = {column.output.name: column.label for column in columns}
    chart = {**chart, "labels": labels}
    if "series_order" not in chart:
        return chart

    series = next(column for column in columns if column.output.name == chart["series"])
    return {**chart, "series_order": _texts(series, chart["series_order"], lang)}


def _texts(column: ResultColumn, values: Iterable[Any], lang: Lang) -> list[str]:
    labels = value_labels(column.output, lang)
    return [
        _cell_text(labels.get(str(value), as_period(value, column.period)), lang)
        for value in values
    ]


def _figure(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _cell_text(value: Any, lang: Lang) -> str:
    if isinstance(value, bool):
        return (_YES if value else _NO).to(lang)
    if isinstance(value, float):
        return f"{value:.15g}"

    return "—" if value is None else str(value)


def _label(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Return the text as it is drawn: the beginning of a long one, so that others have room."""
    if len(text) <= longest:
        return text

    return f"{text[:longest]}…"


def _pie(axes: Any, chart: Mapping[str, Any], values: _Values) -> None:
    """Draw slices for the figures that there are, as shares: matplotlib's own numbers of slices end
    at 3e38.
    """
    drawable = [
        (_label(x), y)
        for x, y in zip(values[chart["x"]], values[chart["y"]], strict=True)
        if not isnan(y)
    ]
    whole = fsum(y for _, y in drawable)
    labels, shares = [x for x, _ in drawable], [y / whole for _, y in drawable]
    axes.pie(shares, labels=labels, autopct="%.1f%%", startangle=90, counterclock=False)


def _scatter(axes: Any, chart: Mapping[str, Any], values: _Values) -> None:
    axes.scatter(values[chart["x"]], values[chart["y"]])
    _dress(axes)
    axes.set_xlabel(chart["labels"][chart["x"]])
    axes.set_ylabel(chart["labels"][chart["y"]])


def _bars(axes: Any, chart: Mapping[str, Any], values: _Values) -> None:
    places, sets = _sets(chart, values)
    if len(sets) == 1 and "step" not in chart and _stand_beside_bars(places):
        _lying_bars(axes, places, next(iter(sets.values())))
        return

    width = 0.8 / len(sets)
    drawings = []
    for number, figures in enumerate(sets.values()):
        shift = (number - (len(sets) - 1) / 2) * width
        drawings.append(axes.bar([place + shift for place in range(len(places))], figures, width))

    _dress(axes, places)
    _name(axes, drawings, sets)


def _stand_beside_bars(names: list[str]) -> bool:
    """Tell whether names are too many, or too long, to stand below bars."""
    long = [name for name in names if len(name) > _LONGEST_LABEL]
    are_many = len(names) > _MOST_UPRIGHT and max(map(len, names)) > _SHORT_NAME
    return are_many or 3 * len(long) > len(names)


def _lying_bars(axes: Any, names: list[str], figures: list[float]) -> None:
    width, height = _INCHES
    axes.figure.set_size_inches(width, max(height, 1 + _BAR_INCHES * len(names)))
    axes.barh(range(len(names)), figures)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter("{x:,.15g}")
    axes.set_yticks(range(len(names)), [_label(name, 2 * _LONGEST_LABEL) for name in names])


def _lines(axes: Any, chart: Mapping[str, Any], values: _Values) -> None:
    places, sets = _sets(chart, values)
    drawings = [
        axes.plot(range(len(places)), figures, marker="o", markersize=3)[0]
        for figures in sets.values()
    ]
    _dress(axes, places)
    if axes.get_ylim()[0] > 0:
        axes.set_ylim(bottom=0)

    _name(axes, drawings, sets)


_DRAWINGS = {"pie": _pie, "scatter": _scatter, "bar": _bars, "line": _lines}


def _sets(chart: Mapping[str, Any], values: _Values) -> tuple[list[str], dict[str, list[float]]]:
    """Return the places along the axis, and for each value of `series`, or each of several
    figures, a figure for each of them.
    """
    if "step" in chart:
        return steps(values[chart["x"]], values[chart["y"]], chart["step"])

    xs = values[chart["x"]]
    if chart["series"] is None and chart["type"] == "bar":
        xs = told_apart(xs)
    if "others" in chart:
        beside = (chart["y"], *chart["others"])
        return xs, {chart["labels"][name]: values[name] for name in beside}

    names = values.get(chart["series"] or "") or [""] * len(xs)
    places = list(dict.fromkeys(xs))
    at = {place: number for number, place in enumerate(places)}
    ordered = dict.fromkeys((*chart.get("series_order", ()), *names))
    sets = {name: [float("nan")] * len(places) for name in ordered}
    for x, name, figure in zip(xs, names, values[chart["y"]], strict=True):
        sets[name][at[x]] = figure

    return places, sets


def _dress(axes: Any, places: list[str] | None = None) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter("{x:,.15g}")
    if places is not None:
        step = -(-len(places) // _MOST_LABELS)
        is_crowded = len(places) > _MOST_LEVEL
        turned = {"rotation": 45, "ha": "right"} if is_crowded else {}
        axes.set_xticks(range(0, len(places), step), list(map(_label, places[::step])), **turned)


def _name(axes: Any, drawings: list[Any], names: Iterable[str]) -> None:
    """Draw the legend of several series; their names are given to it, because of drawings it leaves
    out names like `_a`.
    """
    if len(drawings) > 1:
        # Beside the drawing, where it covers nothing.
        axes.legend(drawings, list(map(_label, names)), loc="upper left", bbox_to_anchor=(1, 1))
