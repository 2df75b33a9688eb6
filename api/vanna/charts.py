"""A chart of the HTTP contract (`type`, `x`, `y`, `series`, `title`, `unit`) as Plotly's traces and layout."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from api.vanna.components import Part, harmless
from api.vanna.tables import titles_of
from common.text import Lang

_DAY = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_NOTHING = "–"  # in the place of a missing name
_Trace = dict[str, Any]


def chart(name: str, spec: Mapping[str, Any], result: Mapping[str, Any], lang: Lang) -> Part | None:
    """The chart; None without rows, when it names columns that they do not have, or is of a kind unknown here.

    Plotly reads texts as HTML of its own, with links, so all texts are `harmless`.
    """
    drawn, rows = _DRAWN.get(str(spec.get("type"))), _Rows(result, spec, lang)
    needed = {"y", *(axis for axis in ("x", "series") if spec.get(axis)), *(["x"] if rows.kind == "scatter" else [])}
    if drawn is None or not result.get("rows") or not all(rows.has(axis) for axis in needed):
        return None
    title = harmless(str(spec.get("title") or ""))
    data = {
        "chart_type": "plotly",
        "data": drawn(rows),
        "layout": {"title": {"text": title}, **_layout(rows)},
        "config": {"displaylogo": False},
    }
    return Part("chart", name, data, plain=title)


class _Rows:
    """The rows by the axes of the chart."""

    def __init__(self, result: Mapping[str, Any], spec: Mapping[str, Any], lang: Lang) -> None:
        self._rows: Sequence[Sequence[Any]] = result.get("rows") or []
        columns = [str(column) for column in result.get("columns") or []]
        self._places = {
            axis: columns.index(str(spec[axis])) for axis in ("x", "y", "series") if spec.get(axis) in columns
        }
        self._titles = titles_of(result, lang)
        self.kind = spec.get("type")

    def has(self, axis: str) -> bool:
        return axis in self._places

    def title(self, axis: str) -> str:
        return self._titles[self._places[axis]] if self.has(axis) else ""

    def values(self, axis: str) -> list[Any]:
        return [row[self._places[axis]] for row in self._rows]

    def names(self, axis: str) -> list[str]:
        return [_NOTHING if value is None else harmless(str(value)) for value in self.values(axis)]

    def numbers(self, axis: str) -> list[float | None]:
        return [_number(value) for value in self.values(axis)]

    @property
    def is_over_time(self) -> bool:
        return self.has("x") and all(isinstance(one, str) and _DAY.fullmatch(one) for one in self.values("x"))

    def traces(self, look: Mapping[str, Any], x: Sequence[Any]) -> list[_Trace]:
        """A trace, or one for each value of `series`."""
        points = list(zip(x, self.numbers("y"), strict=True))
        if not self.has("series"):
            return [{**look, "name": self.title("y"), **_along(points)}]
        groups: dict[str, list[tuple[Any, float | None]]] = {}
        for name, point in zip(self.names("series"), points, strict=True):
            groups.setdefault(name, []).append(point)
        return [{**look, "name": name, **_along(group)} for name, group in groups.items()]


def _along(points: Sequence[tuple[Any, float | None]]) -> _Trace:
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


def _numeral(rows: _Rows) -> list[_Trace]:
    value = next(iter(rows.numbers("y")), None)
    return [{"type": "indicator", "mode": "number", "value": value, "title": {"text": rows.title("y")}}]


def _time(point: tuple[Any, Any]) -> str:
    return str(point[0])  # NULL comes among the others


def _line(rows: _Rows) -> list[_Trace]:
    """Lines whose points are in the order of time: Plotly joins them as they come."""
    traces = rows.traces({"type": "scatter", "mode": "lines+markers"}, _named(rows))
    return [{**one, **_along(sorted(zip(one["x"], one["y"], strict=True), key=_time))} for one in traces]


def _bars(rows: _Rows) -> list[_Trace]:
    return rows.traces({"type": "bar"}, _named(rows))


def _pie(rows: _Rows) -> list[_Trace]:
    return [{"type": "pie", "labels": _named(rows), "values": rows.numbers("y"), "sort": False}]


def _dots(rows: _Rows) -> list[_Trace]:
    return rows.traces({"type": "scatter", "mode": "markers"}, rows.numbers("x"))


def _named(rows: _Rows) -> list[str]:
    return rows.names("x") if rows.has("x") else [rows.title("y")] * len(rows.values("y"))


_DRAWN: Mapping[str, Callable[[_Rows], list[_Trace]]] = {
    "number": _numeral,
    "line": _line,
    "bar": _bars,
    "pie": _pie,
    "scatter": _dots,
}


def _layout(rows: _Rows) -> dict[str, Any]:
    if rows.kind in ("number", "pie"):
        return {"showlegend": rows.kind == "pie"}
    # Without a type, Plotly would take names such as "2024" or "1e5" for numbers.
    scale = "linear" if rows.kind == "scatter" else "date" if rows.is_over_time else "category"
    # A line may lack what another has, so the order of their points is not yet that of the axis.
    order = {"categoryorder": "category ascending"} if rows.kind == "line" else {}
    return {
        "showlegend": rows.has("series"),
        "xaxis": {"title": {"text": rows.title("x")}, "type": scale, "automargin": True, **order},
        "yaxis": {"title": {"text": rows.title("y")}, "type": "linear", "automargin": True},
    }


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
