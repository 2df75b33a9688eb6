"""Which chart shows a result best, as a small specification that any library can draw; None when a table is best.

    one figure alone                                  number
    figures over time                                 line; bar for fewer than three points; a line per group
    shares of a whole, up to six                      pie
    figures by what they belong to                    bar; coloured by the second grouping
    two figures of many things                        scatter

Rows that are listed, not measured, are no chart, and neither are more bars than can be read.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.result_columns import ResultColumn

Chart = dict[str, Any]
"""`type` (number, line, bar, pie, scatter), `x`, `y`, `series` (names of columns or None), `title`, `unit`."""

LEAST_POINTS = 3  # of a line
MOST_BARS = 50
MOST_SLICES = 6
MOST_SERIES = 12  # lines or colours
_LEAST_DOTS = 12  # of a scatter chart
_MOST_LISTED = 2  # columns of rows that are shown as they are stored, and still make a chart
_LARGEST = 1e300  # of a figure that an axis can show: close to the largest number, its ends are no numbers
_WHOLE = (99.0, 101.0)  # percent, rounding allowed

OVER = Text("{y}（按{x}）", "{y} by {x}")
SPLIT = Text("{y}（按{x}和{series}）", "{y} by {x} and {series}")
AGAINST = Text("{y}与{x}", "{y} against {x}")


def chart_of(columns: Sequence[ResultColumn], result: QueryResult, lang: Lang) -> Chart | None:
    """The chart for `result`, whose columns are `columns`."""
    table = Roles(columns, result)
    if not table.measures or not table.has_unique_names:
        return None
    if result.row_count == 1:
        return _number(table) if len(table.measures) == 1 else None
    if table.is_listing or result.is_limited:
        return None
    return _compared(table, lang)


class Roles:
    """A result by the roles of its columns."""

    def __init__(self, columns: Sequence[ResultColumn], result: QueryResult) -> None:
        self._rows = result.rows
        self._places = {column.output.name: place for place, column in enumerate(columns)}
        self.has_unique_names = len(self._places) == len(columns)
        self.columns = columns
        self.times = [column for column in columns if column.role == "time"]
        self.categories = _without_keys([column for column in columns if column.role == "category"])
        self.measures = [column for column in columns if column.role == "measure" and self._varies(column)]

    @property
    def is_listing(self) -> bool:
        """Whether rows are shown as they are stored: several facts of each, none of them worked out."""
        is_raw = all(not one.output.function and not one.output.is_computed for one in self.measures)
        return is_raw and len(self.columns) > _MOST_LISTED and not self._is_pair_of_figures

    @property
    def _is_pair_of_figures(self) -> bool:
        return len(self.measures) == 2 and len(self.columns) <= 3

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def values(self, column: ResultColumn) -> list[Any]:
        """The column's values, top down."""
        place = self._places[column.output.name]
        return [row[place] for row in self._rows]

    def distinct(self, *columns: ResultColumn) -> int:
        """How many combinations of values the columns have."""
        return len(set(zip(*(map(str, self.values(column)) for column in columns), strict=True)))

    def holds_figures(self, column: ResultColumn) -> bool:
        """Whether all values are figures that can be drawn, and there are some."""
        figures = [value for value in self.values(column) if value is not None]
        return bool(figures) and all(map(_is_figure, figures))

    def _varies(self, column: ResultColumn) -> bool:
        """Whether there is something to see: a figure, and not only zeros."""
        return self.holds_figures(column) and (any(self.values(column)) or self.count == 1)


def _compared(table: Roles, lang: Lang) -> Chart | None:
    groups = [*table.times, *table.categories]
    y = main_measure(table)
    if len(groups) == 0:
        return _scatter(table, lang) if len(table.measures) == 2 else None
    if len(groups) > 2:
        return None
    x, *rest = groups
    if not rest:
        return _by_one(table, x, y, lang)
    return _by_two(table, x, rest[0], y, lang)


def _by_one(table: Roles, x: ResultColumn, y: ResultColumn, lang: Lang) -> Chart | None:
    if table.distinct(x) < table.count:  # several figures at one place, and nothing says which is which
        return None
    title = OVER.to(lang).format(y=y.label, x=x.label)
    if x.role == "time":
        return spec("line" if table.count >= LEAST_POINTS else "bar", x, y, None, title)
    if _is_whole(table, y) and table.count <= MOST_SLICES:
        return spec("pie", x, y, None, title)
    if len(table.measures) == 2 and table.count >= _LEAST_DOTS and table.measures[0].unit != table.measures[1].unit:
        return _scatter(table, lang)
    return spec("bar", x, y, None, title) if table.count <= MOST_BARS else None


def _by_two(table: Roles, x: ResultColumn, series: ResultColumn, y: ResultColumn, lang: Lang) -> Chart | None:
    if table.distinct(x, series) < table.count:
        return None
    if x.role != "time" and table.distinct(series) > table.distinct(x):
        x, series = series, x
    if table.distinct(x) == table.count:  # the second only says more of the first
        return _by_one(table, x, y, lang)
    if table.distinct(series) > MOST_SERIES or table.distinct(x) > 4 * MOST_BARS:
        return None
    title = SPLIT.to(lang).format(y=y.label, x=x.label, series=series.label)
    if x.role == "time":
        return spec("line" if table.distinct(x) >= LEAST_POINTS else "bar", x, y, series, title)
    return spec("bar", x, y, series, title) if table.distinct(x) <= MOST_BARS else None


def _scatter(table: Roles, lang: Lang) -> Chart | None:
    x, y = table.measures
    if table.count < _LEAST_DOTS:
        return None
    return spec("scatter", x, y, None, AGAINST.to(lang).format(y=y.label, x=x.label))


def _number(table: Roles) -> Chart:
    return spec("number", None, table.measures[0], None, table.measures[0].label)


def main_measure(table: Roles) -> ResultColumn:
    """The share where there is one, because a count beside it only explains it; else the figure that was sorted by."""
    shares = [one for one in table.measures if one.output.is_share]
    if shares:
        return shares[0]
    ordered = [one for one in table.measures if _is_sorted(table.values(one))]
    return ordered[0] if ordered else table.measures[0]


def _is_sorted(values: Sequence[Any]) -> bool:
    figures = [value for value in values if value is not None]
    return figures in (sorted(figures), sorted(figures, reverse=True))


def _is_whole(table: Roles, y: ResultColumn) -> bool:
    """Whether the figures are all the shares of one whole."""
    if not y.output.is_share:
        return False
    figures = [float(value or 0) for value in table.values(y)]
    least, most = _WHOLE
    total = sum(figures) * (1 if y.output.is_percent else 100)
    return min(figures) >= 0 and least <= total <= most


def _without_keys(categories: list[ResultColumn]) -> list[ResultColumn]:
    """Without numbers that identify rows which a name beside them identifies as well."""
    named = [one for one in categories if not _is_key(one)]
    return named or categories


def _is_key(column: ResultColumn) -> bool:
    table, stored = column.output.table, column.output.column
    if table is None or stored is None or column.output.function:
        return False
    return stored.name in table.primary_key or any(stored.name in key.columns for key in table.foreign_keys)


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def spec(kind: str, x: ResultColumn | None, y: ResultColumn, series: ResultColumn | None, title: str) -> Chart:
    """The specification of a chart of these columns."""
    names: Mapping[str, str | None] = {
        "x": x.output.name if x else None,
        "y": y.output.name,
        "series": series.output.name if series else None,
    }
    return {"type": kind, **names, "title": title, "unit": y.unit}
