"""Which chart shows a result best, as a small specification that any library can draw; None when a
table is best.

    one figure alone                                  number
    figures over time                                 line; bar for fewer than three points or for a
                                                      ranking; a line per group
    shares of a whole, up to six                      pie
    figures by what they belong to                    bar; coloured by the second grouping
    several figures of one kind and unit              a line or a colour each, beside each other
    numbers of rows by steps of a figure              bar, a histogram; many steps in wider ones
    two figures of many things                        scatter

Rows that are listed, not measured, are no chart, and neither are more bars than can be read.
"""

from collections.abc import Sequence
from decimal import Decimal
from itertools import filterfalse
from math import floor, log10
from typing import Any

from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.result_columns import MOST_READ, ResultColumn

Chart = dict[str, Any]
"""A chart's `type`, `title` and `unit`; the names of its columns `x`, `y` and `series` or None.

Where there are some, `others`: columns of further figures, drawn beside `y`. Where the steps of a
histogram are too many to be read, `step`: figures of `x` that far apart are added up in one bar.
"""

LEAST_POINTS = 3  # of a line
MOST_BARS = 50
MOST_SLICES = 6
MOST_SERIES = 12  # lines or colours
_MOST_BESIDE = 4  # figures that are drawn beside each other
_LEAST_PART = 0.02  # of another figure, below which bars beside it could not be seen
_MOST_STEPS = 30  # of a histogram
_WIDTHS = (1, 2, 5, 10)  # of steps, as people count
_LEAST_DOTS = 12  # of a scatter chart
_MOST_LISTED = 2  # columns of rows that are shown as they are stored, and still make a chart
# The largest figure that is drawn: an axis of larger ones would end beyond the largest number.
_LARGEST = 1e300
_WHOLE = (99.0, 101.0)  # percent, rounding allowed

OVER = Text("{y}（按{x}）", "{y} by {x}")
SPLIT = Text("{y}（按{x}和{series}）", "{y} by {x} and {series}")
_BETWEEN = Text("、", ", ")
AGAINST = Text("{y}与{x}", "{y} against {x}")


def chart_of(columns: Sequence[ResultColumn], result: QueryResult, lang: Lang) -> Chart | None:
    """Return the chart for `result`, whose columns are `columns`; None when a table is better."""
    if len(columns) > MOST_READ:
        return None

    table = Roles(columns, result)
    if not table.measures or not table.has_unique_names:
        return None
    if result.row_count == 1:
        return _number(table) if len(table.measures) == 1 else None
    if table.is_listing or result.is_limited:
        return None

    return _grouped_chart(table, lang)


class Roles:
    """A result by the roles of its first `MOST_READ` columns."""

    def __init__(self, columns: Sequence[ResultColumn], result: QueryResult) -> None:
        self._rows = result.rows
        self._positions = {column.output.name: index for index, column in enumerate(columns)}
        self.has_unique_names = len(self._positions) == len(columns)
        self.columns = columns
        self.times: list[ResultColumn] = []
        self.measures: list[ResultColumn] = []
        categories: list[ResultColumn] = []
        steps = _steps(columns)
        for column in columns[:MOST_READ]:
            if column.role == "time":
                self.times.append(column)
            elif column.role == "category" or column in steps:
                categories.append(column)
            elif column.role == "measure" and self._varies(column):
                self.measures.append(column)

        self.categories = _without_keys(categories)

    @property
    def is_listing(self) -> bool:
        """Tell whether rows are shown as they are stored, several facts of each."""
        if any(measure.output.function or measure.output.is_computed for measure in self.measures):
            return False

        return len(self.columns) > _MOST_LISTED and not self._is_pair_of_figures

    @property
    def _is_pair_of_figures(self) -> bool:
        return len(self.measures) == 2 and len(self.columns) <= 3

    @property
    def count(self) -> int:
        return len(self._rows)

    def values(self, column: ResultColumn) -> list[Any]:
        """Return the column's values, top down."""
        position = self._positions[column.output.name]
        return [row[position] for row in self._rows]

    def distinct(self, *columns: ResultColumn) -> int:
        """Return how many combinations of values the columns have."""
        texts = [map(str, self.values(column)) for column in columns]
        return len(set(zip(*texts, strict=True)))

    def holds_figures(self, column: ResultColumn) -> bool:
        """Tell whether the column has values, all of them figures that can be drawn."""
        figures = [value for value in self.values(column) if value is not None]
        return bool(figures) and all(map(_is_figure, figures))

    def _varies(self, column: ResultColumn) -> bool:
        if not self.holds_figures(column):
            return False

        has_only_zeros = not any(self.values(column))
        return self.count == 1 or not has_only_zeros


def _grouped_chart(table: Roles, lang: Lang) -> Chart | None:
    groups = [*table.times, *table.categories]
    y = main_measure(table)
    if len(groups) == 0:
        if len(table.measures) == 2:
            return _scatter(table, lang)

        return None

    if len(groups) > 2:
        return None

    x, *rest = groups
    if not rest:
        return _by_one(table, x, y, lang)

    return _by_two(table, x, rest[0], y, lang)


def _by_one(table: Roles, x: ResultColumn, y: ResultColumn, lang: Lang) -> Chart | None:
    if table.distinct(x) < table.count and not _has_namesakes(table, x, y):
        return None

    others = _beside(table, y)
    named = _BETWEEN.to(lang).join(one.label for one in (y, *others))
    title = OVER.to(lang).format(y=named, x=x.label)
    if x.role == "time":
        is_course = table.count >= LEAST_POINTS and _is_sorted(table.values(x))
        return _with_others(spec("line" if is_course else "bar", x, y, None, title), others)

    if table.count <= MOST_SLICES and _is_whole(table, y):
        return spec("pie", x, y, None, title)
    if table.count >= _LEAST_DOTS and _has_two_units(table):
        return _scatter(table, lang)
    if table.count > MOST_BARS:
        return _histogram(table, x, y, title)

    return _with_others(spec("bar", x, y, None, title), others)


def _has_namesakes(table: Roles, x: ResultColumn, y: ResultColumn) -> bool:
    """Tell whether some things of the same name have a figure each; else which is whose?

    Groups that are grouped by a key may share a name, single rows of one name are parts of it.
    """
    if x.role == "time" or x.output.function or not y.output.function or y.output.is_share:
        return False

    return table.count <= MOST_BARS and 2 * table.distinct(x) > table.count


def _beside(table: Roles, y: ResultColumn) -> list[ResultColumn]:
    """Return the figures that belong on one axis with y: of its kind, unit and size."""
    further = []
    for measure in table.measures:
        is_alike = measure is not y and _is_same_kind(measure, y) and not measure.output.is_computed
        if is_alike and _is_of_size(table, measure, y):
            further.append(measure)

    return further if len(further) < _MOST_BESIDE else []


def _is_same_kind(one: ResultColumn, other: ResultColumn) -> bool:
    first, second = one.output, other.output
    if not first.function or first.function != second.function or one.unit != other.unit:
        return False
    if first.is_share or second.is_share or second.is_computed:
        return False

    is_same_column = first.column is not None and first.column == second.column
    return one.unit is not None or first.function == "count" or is_same_column


def _is_of_size(table: Roles, one: ResultColumn, other: ResultColumn) -> bool:
    sizes = sorted(max(map(_size, table.values(column))) for column in (one, other))
    return sizes[0] >= _LEAST_PART * sizes[1]


def _size(value: Any) -> float:
    return 0.0 if value is None else abs(float(value))


def _with_others(chart: Chart, others: Sequence[ResultColumn]) -> Chart:
    return {**chart, "others": [other.output.name for other in others]} if others else chart


def _histogram(table: Roles, x: ResultColumn, y: ResultColumn, title: str) -> Chart | None:
    """Return a chart of wider steps, if x is a figure by whose steps rows are counted."""
    if y.output.function != "count" or not table.holds_figures(x):
        return None

    numbers = [float(value) for value in table.values(x) if value is not None]
    reach = max(numbers) - min(numbers)
    return {**spec("bar", x, y, None, title), "step": _step_of(reach)}


def _step_of(reach: float) -> float:
    """Return the least width, of 1, 2 or 5 times a power of ten, with few enough steps."""
    power = 10.0 ** floor(log10(reach / _MOST_STEPS))
    return next(power * width for width in _WIDTHS if reach / (power * width) <= _MOST_STEPS)


def _has_two_units(table: Roles) -> bool:
    if len(table.measures) != 2:
        return False

    first, second = table.measures
    return first.unit != second.unit


def _by_two(
    table: Roles, x: ResultColumn, series: ResultColumn, y: ResultColumn, lang: Lang
) -> Chart | None:
    if table.distinct(x, series) < table.count:
        return None
    if x.role != "time" and table.distinct(series) > table.distinct(x):
        x, series = series, x

    x_count = table.distinct(x)
    if x_count == table.count:  # the second only says more of the first
        return _by_one(table, x, y, lang)
    if table.distinct(series) > MOST_SERIES or x_count > 4 * MOST_BARS:
        return None

    title = SPLIT.to(lang).format(y=y.label, x=x.label, series=series.label)
    if x.role == "time":
        kind = "line" if x_count >= LEAST_POINTS else "bar"
        return spec(kind, x, y, series, title)

    if x_count > MOST_BARS:
        return None

    return spec("bar", x, y, series, title)


def _scatter(table: Roles, lang: Lang) -> Chart | None:
    x, y = table.measures
    if table.count < _LEAST_DOTS:
        return None

    title = AGAINST.to(lang).format(y=y.label, x=x.label)
    return spec("scatter", x, y, None, title)


def _number(table: Roles) -> Chart:
    measure = table.measures[0]
    return spec("number", None, measure, None, measure.label)


def main_measure(table: Roles) -> ResultColumn:
    """Return the share if there is one, else the figure that was sorted by, else the first.

    A count beside a share only explains it.
    """
    for measure in table.measures:
        if measure.output.is_share:
            return measure

    for measure in table.measures:
        if _is_sorted(table.values(measure)):
            return measure

    return table.measures[0]


def _steps(columns: Sequence[ResultColumn]) -> list[ResultColumn]:
    """Return the numbers by which rows are counted or added up: floors, prices by tens."""
    measures = [column for column in columns if column.role == "measure"]
    aggregates = list(filter(_is_aggregate, measures))
    others = list(filterfalse(_is_aggregate, measures))
    stored = [other for other in others if other.output.column is not None]
    if aggregates and stored:
        return stored
    if len(others) != 1 or len(measures) < len(columns):
        return []

    is_histogram = any(aggregate.output.function == "count" for aggregate in aggregates)
    return others if is_histogram else []


def _is_aggregate(column: ResultColumn) -> bool:
    return bool(column.output.function) or column.output.is_share


def _is_sorted(values: Sequence[Any]) -> bool:
    figures = [value for value in values if value is not None]
    ascending = sorted(figures)
    return figures in (ascending, ascending[::-1])


def _is_whole(table: Roles, y: ResultColumn) -> bool:
    """Tell whether the figures are all the shares of one whole."""
    if not y.output.is_share:
        return False

    figures = [float(value or 0) for value in table.values(y)]
    if min(figures) < 0:
        return False

    total = sum(figures)
    percent = total if y.output.is_percent else total * 100
    least, most = _WHOLE
    return least <= percent <= most


def _without_keys(categories: list[ResultColumn]) -> list[ResultColumn]:
    """Leave keys out, unless there is nothing else that names the rows."""
    named = [category for category in categories if not _is_key(category)]
    return named or categories


def _is_key(column: ResultColumn) -> bool:
    table, stored = column.output.table, column.output.column
    if table is None or stored is None or column.output.function:
        return False
    if stored.name in table.primary_key:
        return True

    return any(stored.name in key.columns for key in table.foreign_keys)


def _is_figure(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False

    return -_LARGEST <= value <= _LARGEST


def spec(
    kind: str, x: ResultColumn | None, y: ResultColumn, series: ResultColumn | None, title: str
) -> Chart:
    """Return the specification of a chart of these columns."""
    return {
        "type": kind,
        "x": x.output.name if x else None,
        "y": y.output.name,
        "series": series.output.name if series else None,
        "title": title,
        "unit": y.unit,
    }
