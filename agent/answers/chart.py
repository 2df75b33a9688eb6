"""Which chart shows a result best, as a small specification that any library can draw; None when a
table is best.

    one figure alone                                  number
    figures over time                                 line; bar for fewer than three points or for a
                                                      ranking; a line per group, or per year of
                                                      the months of several
    shares of a whole, up to six                      pie
    figures by what they belong to                    bar; coloured by the second grouping
    figures by parts of times and by groups           a line per group, where bars would be too many
    several figures of one kind and unit              a line or a colour each, beside each other
    numbers of rows by steps of a figure              bar, a histogram; many steps in wider ones
    two figures of many things                        scatter

Rows that are listed, not measured, are no chart, nor are those that only their keys name unless
they are ranked; and neither are more bars than can be read, amounts of several currencies, and rows
among which some are the totals of others.
"""

from collections.abc import Sequence
from decimal import Decimal
from itertools import filterfalse
from math import floor, fsum, isclose, log10
from typing import Any

from agent.answers.chart_order import axis_order
from common.text import Lang, Text
from common.values import QueryResult
from knowledge.results.currencies import has_several_currencies, is_amount
from knowledge.results.result_columns import MOST_READ, ResultColumn

Chart = dict[str, Any]
"""A chart's `type`, `title` and `unit`; the names of its columns `x`, `y` and `series` or None.

Where there are some, `others`: columns of further figures, drawn beside `y`. Where the steps of a
histogram are too many to be read, `step`: figures of `x` that far apart are added up in one bar.
`order` and `series_order`: the values of `x` and of `series` as they are shown, where this is not
the order in which the rows have them.
"""

LEAST_POINTS = 3  # of a line
MOST_BARS = 50
MOST_SLICES = 6
MOST_SERIES = 12  # lines or colours
_MOST_BARS_OF_SERIES = 120  # in all, of several colours
_LEAST_PANEL = 0.8  # of all pairs of a time and a group, from which listed figures are a course
_LEAST_SORTED = 4  # figures whose order is no chance
_MOST_BESIDE = 4  # figures that are drawn beside each other
_LEAST_PART = 0.02  # of another figure, below which bars beside it could not be seen
_MOST_STEPS = 30  # of a histogram
_WIDTHS = (1, 2, 5, 10)  # of steps, as people count
_LEAST_DOTS = 12  # of a scatter chart
_MOST_DESCRIBED = 3  # columns of one row that is shown for its figure
_MOST_LISTED = 2  # columns of rows that are shown as they are stored, and still make a chart
# The largest figure that is drawn: an axis of larger ones would end beyond the largest number.
_LARGEST = 1e300
# Figures that lie between those that they are made of: of one column, they share an axis.
_LEVELS = frozenset(("avg", "min", "max", "median", "percentile_cont"))
_PARTS_OF_YEARS = frozenset(("quarter", "month", "week", "day"))
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
        return _number(table) if table.has_one_figure else None
    if table.is_listing or result.is_limited:
        return None

    chart = _grouped_chart(table, lang)
    if chart is None or table.has_subtotals(chart["y"]):
        return None

    return chart | table.orders(chart)


class Roles:
    """A result by the roles of its first `MOST_READ` columns."""

    def __init__(self, columns: Sequence[ResultColumn], result: QueryResult) -> None:
        self._rows = result.rows
        self._positions = {column.output.name: index for index, column in enumerate(columns)}
        self.has_unique_names = len(self._positions) == len(columns)
        self.columns = columns
        self.times: list[ResultColumn] = []
        categories: list[ResultColumn] = []
        measures: list[ResultColumn] = []
        steps = _steps(columns)
        for column in columns[:MOST_READ]:
            if column.role == "time":
                self.times.append(column)
            elif column.role == "category" or column in steps:
                categories.append(column)
            elif column.role == "measure" and self._varies(column):
                measures.append(column)

        if has_several_currencies(columns, result):
            measures = [measure for measure in measures if not is_amount(measure)]

        self.measures = measures
        self.categories = _without_keys(categories)

    @property
    def is_listing(self) -> bool:
        """Tell whether rows are shown as they are stored, several facts of each."""
        if any(measure.output.function or measure.output.is_computed for measure in self.measures):
            return False

        is_short = len(self.columns) <= _MOST_LISTED and not self._is_list_of_keys
        return not (is_short or self._is_pair_of_figures or self._is_panel)

    @property
    def has_one_figure(self) -> bool:
        """Tell whether a row is about its one figure, and not about the thing that has it."""
        is_description = len(self.columns) > _MOST_DESCRIBED
        return len(self.measures) == 1 and not (
            is_description and self.measures[0].output.is_stored
        )

    @property
    def _is_list_of_keys(self) -> bool:
        """Tell whether the rows are named by nothing but their keys, in no order of a figure."""
        groups = [*self.times, *self.categories]
        return bool(groups) and all(map(_is_key, groups)) and not self.is_ranked

    @property
    def _is_pair_of_figures(self) -> bool:
        return len(self.measures) == 2 and len(self.columns) <= 3

    @property
    def _is_panel(self) -> bool:
        """Tell whether the rows are one figure of each of several things at each time."""
        shape = (len(self.times), len(self.categories), len(self.measures), len(self.columns))
        if shape != (1, 1, 1, 3):
            return False

        times, things = self.distinct(*self.times), self.distinct(*self.categories)
        is_dense = self.count >= _LEAST_PANEL * times * things
        has_one_each = self.distinct(*self.times, *self.categories) == self.count
        return is_dense and has_one_each and times >= LEAST_POINTS and 1 < things <= MOST_SERIES

    @property
    def count(self) -> int:
        return len(self._rows)

    def first_of(self, columns: Sequence[ResultColumn]) -> ResultColumn:
        """Return the one of the columns that stands first in the result."""
        return next(column for column in self.columns if column in columns)

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

    @property
    def is_unordered(self) -> bool:
        """Tell whether the statement leaves the order of its rows open."""
        return any(column.output.is_unordered for column in self.columns)

    @property
    def sort_key(self) -> ResultColumn | None:
        """Return the column by which the statement sorts its rows before anything else."""
        return next((column for column in self.columns if column.output.is_sort_key), None)

    @property
    def is_ranked(self) -> bool:
        """Tell whether the rows are sorted by a figure."""
        key = self.sort_key
        return key is not None and key.role in ("measure", "rank")

    def has_subtotals(self, name: str) -> bool:
        """Tell whether some of the rows are the totals of others."""
        y = self._column(name)
        if y.output.subtotals != "possible":
            return y.output.subtotals == "certain"

        figures = [float(value) for value in self.values(y) if value is not None]
        most = max(figures)
        return len(figures) > LEAST_POINTS and isclose(most, fsum(figures) - most, rel_tol=1e-9)

    def orders(self, chart: Chart) -> Chart:
        """Return `order` and `series_order` of a chart, where it needs them."""
        if chart["type"] in ("number", "scatter") or "step" in chart:
            return {}

        found = {}
        for axis, name in (("x", "order"), ("series", "series_order")):
            order = self._order_of(axis, chart) if chart[axis] is not None else None
            if order is not None:
                found[name] = order

        if chart["series"] is not None and "order" in found and "series_order" not in found:
            series = self._column(chart["series"])
            found["series_order"] = list(dict.fromkeys(self.values(series)))

        return found

    def _order_of(self, axis: str, chart: Chart) -> list[Any] | None:
        """Return the values of an axis in the order to show them; None: as the rows have them."""
        is_line = chart["type"] == "line"
        is_course = axis == "x" and is_line
        if not is_course and not self._is_order_of(axis):
            return None

        column = self._column(chart[axis])
        figures = map(_signed, self.values(self._column(chart["y"])))
        rows = list(zip(self.values(column), figures, strict=True))
        key = None if is_course or self.is_ranked else self.sort_key
        order = axis_order(column, rows, key, by_size=axis == "x" and not is_line)
        if order is None and is_course and column.role != "time":
            return list(dict.fromkeys(self.values(column)))

        return order

    def _column(self, name: str) -> ResultColumn:
        return self.columns[self._positions[name]]

    def _is_order_of(self, axis: str) -> bool:
        """Tell whether an axis may be put in an order that is not that of the rows."""
        if axis == "x" and self.is_ranked:
            return False

        return self.is_unordered or self.sort_key is not None

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
    if all(table.distinct(group) == table.count for group in groups):
        return _by_one(table, table.first_of(groups), y, lang)

    return _by_two(table, x, rest[0], y, lang)


def _by_one(table: Roles, x: ResultColumn, y: ResultColumn, lang: Lang) -> Chart | None:
    if table.distinct(x) < table.count and not _has_namesakes(table, x, y):
        return None

    others = _beside(table, y)
    named = _BETWEEN.to(lang).join(one.label for one in (y, *others))
    title = OVER.to(lang).format(y=named, x=x.label)
    if x.role == "time":
        is_course = table.count >= LEAST_POINTS and _is_in_order_of(table, x)
        return _with_others(spec("line" if is_course else "bar", x, y, None, title), others)

    if table.count <= MOST_SLICES and _is_whole(table, y):
        return spec("pie", x, y, None, title)
    if table.count >= _LEAST_DOTS and _has_two_units(table):
        return _scatter(table, lang)
    if table.count > MOST_BARS:
        return _histogram(table, x, y, title)

    return _with_others(spec("bar", x, y, None, title), others)


def _is_in_order_of(table: Roles, time: ResultColumn) -> bool:
    """Tell whether the rows follow the times, or nothing; a ranking follows its figures."""
    if table.sort_key is not None:
        return not table.is_ranked

    return table.is_unordered or _is_sorted(table.values(time))


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
        if measure is y or measure.output.is_computed:
            continue
        if _is_same_kind(measure, y) and _is_of_size(table, measure, y):
            further.append(measure)

    return further if len(further) < _MOST_BESIDE else []


def _is_same_kind(one: ResultColumn, other: ResultColumn) -> bool:
    """Tell whether one axis suits both figures: the same unit, and the same function or levels of
    one column.
    """
    first, second = one.output, other.output
    if one.unit != other.unit or first.is_percent != second.is_percent:
        return False
    if first.is_share and second.is_share:
        return True
    if first.is_share or second.is_share:
        return False
    if not first.function or second.is_computed:
        return False

    is_same_column = first.column is not None and first.column == second.column
    if is_same_column and _LEVELS.issuperset((first.function, second.function)):
        return True
    if first.function != second.function:
        return False

    return one.unit is not None or first.function == "count" or is_same_column


def _is_of_size(table: Roles, one: ResultColumn, other: ResultColumn) -> bool:
    sizes = sorted(max(map(_size, table.values(column))) for column in (one, other))
    return sizes[0] >= _LEAST_PART * sizes[1]


def _signed(value: Any) -> float:
    return 0.0 if value is None else float(value)


def _size(value: Any) -> float:
    return abs(_signed(value))


def _with_others(chart: Chart, others: Sequence[ResultColumn]) -> Chart:
    return {**chart, "others": [other.output.name for other in others]} if others else chart


def _histogram(table: Roles, x: ResultColumn, y: ResultColumn, title: str) -> Chart | None:
    """Return a chart of wider steps, if x is a figure by whose steps rows are counted."""
    is_by_figure = x.role == "measure" and table.holds_figures(x)
    if y.output.function != "count" or not is_by_figure:
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
    if _goes_along_before(table, series, x):
        x, series = series, x

    x_count = table.distinct(x)
    if x_count == table.count:  # the second only says more of the first
        return _by_one(table, x, y, lang)
    if table.distinct(series) > MOST_SERIES or x_count > 4 * MOST_BARS:
        return None

    title = SPLIT.to(lang).format(y=y.label, x=x.label, series=series.label)
    if x.role == "time" or _is_year(series):
        kind = "line" if x_count >= LEAST_POINTS else "bar"
        return spec(kind, x, y, series, title)

    bars = x_count * table.distinct(series)
    if bars <= MOST_BARS or (x_count <= MOST_BARS and bars <= _MOST_BARS_OF_SERIES):
        kind = "line" if x.output.part and bars > MOST_BARS else "bar"
        return spec(kind, x, y, series, title)

    return spec("line", x, y, series, title) if x.output.part else None


def _goes_along_before(table: Roles, one: ResultColumn, other: ResultColumn) -> bool:
    """Tell whether the axis is for the one rather than for the other.

    A part of years goes along before years, times before all else, parts of times before names,
    and the longer of two alike.
    """
    if _is_year(other) and one.output.part in _PARTS_OF_YEARS:
        return True
    if other.role == "time":
        return False

    is_part, is_other_part = bool(one.output.part), bool(other.output.part)
    if is_part != is_other_part:
        return is_part

    return table.distinct(one) > table.distinct(other)


def _is_year(column: ResultColumn) -> bool:
    return "year" in (column.output.part, column.output.period)


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

    if table.is_ranked and table.sort_key in table.measures:
        return table.sort_key
    if table.sort_key is None and not table.is_unordered and table.count >= _LEAST_SORTED:
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
