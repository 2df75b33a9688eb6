"""Draws a chart of the HTTP contract (`type`, `x`, `y` …) as Plotly's traces and layout."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.answers.chart_figures import in_order, steps, told_apart
from api.vanna.components import ChatPart, harmless
from api.vanna.tables import titles_of
from common.text import Lang

_DAY = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_NOTHING = "–"  # in the place of a missing name
_Trace = dict[str, Any]


def chart(
    name: str, spec: Mapping[str, Any], result: Mapping[str, Any], lang: Lang
) -> ChatPart | None:
    """Return the chart; None without rows, without its columns, or for an unknown kind.

    Plotly reads texts as HTML of its own, with links, so all texts are `harmless`.
    """
    draw = _TRACES.get(str(spec.get("type")))
    rows = _ChartRows(result, spec, lang)
    if draw is None or not result.get("rows"):
        return None
    if not all(rows.has(axis) for axis in _needed_axes(spec)):
        return None

    title = harmless(str(spec.get("title") or ""))
    data = {
        "chart_type": "plotly",
        "data": draw(rows),
        "layout": {"title": {"text": title}, **_layout(rows)},
        "config": {"displaylogo": False},
    }
    return ChatPart("chart", name, data, plain=title)


def _needed_axes(spec: Mapping[str, Any]) -> set[str]:
    needed = {"y"}
    if spec.get("x") or spec.get("type") == "scatter":
        needed.add("x")
    if spec.get("series"):
        needed.add("series")

    return needed


class _ChartRows:
    """The rows by the axes of the chart."""

    def __init__(self, result: Mapping[str, Any], spec: Mapping[str, Any], lang: Lang) -> None:
        columns = [str(column) for column in result.get("columns") or []]
        self._rows = in_order(spec, columns, result.get("rows") or [])
        self._column_numbers: dict[str, int] = {}
        for axis in ("x", "y", "series"):
            if spec.get(axis) in columns:
                self._column_numbers[axis] = columns.index(str(spec[axis]))

        self.step = float(spec.get("step") or 0)
        self._series_order = spec.get("series_order") or []
        self._labels = result.get("value_labels") or [None] * len(columns)
        self._others = [other for other in spec.get("others") or [] if other in columns]
        self._column_numbers |= {other: columns.index(other) for other in self._others}
        self._titles = titles_of(result, lang)
        self.kind = spec.get("type")

    def has(self, axis: str) -> bool:
        return axis in self._column_numbers

    @property
    def has_several_sets(self) -> bool:
        return self.has("series") or bool(self._others)

    def title(self, axis: str) -> str:
        if self.has(axis):
            return self._titles[self._column_numbers[axis]]

        return ""

    def values(self, axis: str) -> list[Any]:
        number = self._column_numbers[axis]
        return [row[number] for row in self._rows]

    def names(self, axis: str) -> list[str]:
        return self._named(axis, self.values(axis))

    def _named(self, axis: str, values: Sequence[Any]) -> list[str]:
        """Return what readers call values of the axis."""
        labels = self._labels[self._column_numbers[axis]] or {}
        return [
            _NOTHING if value is None else harmless(str(labels.get(str(value), value)))
            for value in values
        ]

    def histogram(self) -> tuple[list[str], list[float]]:
        """Return the steps of a histogram, and what falls into each."""
        xs, ys = (
            [math.nan if figure is None else figure for figure in self.numbers(axis)]
            for axis in ("x", "y")
        )
        names, sets = steps(xs, ys, self.step)
        return names, next(iter(sets.values()))

    def numbers(self, axis: str) -> list[float | None]:
        return [_number(value) for value in self.values(axis)]

    @property
    def is_over_time(self) -> bool:
        return self.has("x") and all(map(_is_day, self.values("x")))

    def traces(self, look: Mapping[str, Any], x: Sequence[Any]) -> list[_Trace]:
        """Return a trace, or one for each value of `series` or each of several figures."""
        points = list(zip(x, self.numbers("y"), strict=True))
        if not self.has("series"):
            others = [
                (other, list(zip(x, self.numbers(other), strict=True))) for other in self._others
            ]
            figures = [("y", points), *others]
            return [{**look, "name": self.title(one), **_along(own)} for one, own in figures]

        groups: dict[str, list[tuple[Any, float | None]]] = {}
        groups |= {name: [] for name in self._named("series", self._series_order)}
        for name, point in zip(self.names("series"), points, strict=True):
            groups.setdefault(name, []).append(point)

        return [{**look, "name": name, **_along(group)} for name, group in groups.items()]


def _is_day(value: Any) -> bool:
    return isinstance(value, str) and _DAY.fullmatch(value) is not None


def _along(points: Sequence[tuple[Any, float | None]]) -> _Trace:
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


def _numeral(rows: _ChartRows) -> list[_Trace]:
    value = rows.numbers("y")[0]
    title = {"text": rows.title("y")}
    return [{"type": "indicator", "mode": "number", "value": value, "title": title}]


def _line(rows: _ChartRows) -> list[_Trace]:
    return rows.traces({"type": "scatter", "mode": "lines+markers"}, _named(rows))


def _bars(rows: _ChartRows) -> list[_Trace]:
    if rows.step:
        names, figures = rows.histogram()
        return [{"type": "bar", "name": rows.title("y"), "x": names, "y": figures}]

    names = _named(rows)
    if not rows.has("series"):
        names = told_apart(names)

    return rows.traces({"type": "bar"}, names)


def _pie(rows: _ChartRows) -> list[_Trace]:
    return [{"type": "pie", "labels": _named(rows), "values": rows.numbers("y"), "sort": False}]


def _dots(rows: _ChartRows) -> list[_Trace]:
    return rows.traces({"type": "scatter", "mode": "markers"}, rows.numbers("x"))


def _named(rows: _ChartRows) -> list[str]:
    if rows.has("x"):
        return rows.names("x")

    return [rows.title("y")] * len(rows.values("y"))


_TRACES: Mapping[str, Callable[[_ChartRows], list[_Trace]]] = {
    "number": _numeral,
    "line": _line,
    "bar": _bars,
    "pie": _pie,
    "scatter": _dots,
}


def _layout(rows: _ChartRows) -> dict[str, Any]:
    if rows.kind in ("number", "pie"):
        return {"showlegend": rows.kind == "pie"}

    x_axis = {"title": {"text": rows.title("x")}, "type": _scale(rows), "automargin": True}
    if x_axis["type"] == "category" and not rows.step:
        # Each line may lack what another has, so the order of their points is not that of the axis.
        x_axis |= {"categoryorder": "array", "categoryarray": list(dict.fromkeys(_named(rows)))}

    y_axis = {"title": {"text": rows.title("y")}, "type": "linear", "automargin": True}
    return {"showlegend": rows.has_several_sets, "xaxis": x_axis, "yaxis": y_axis}


def _scale(rows: _ChartRows) -> str:
    # Without a type, Plotly would take names such as "2024" or "1e5" for numbers.
    if rows.kind == "scatter":
        return "linear"

    return "date" if rows.is_over_time else "category"


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None

    return number if math.isfinite(number) else None
