"""What a chart's specification asks of whoever draws it: rows in its order, namesakes told apart,
the steps of a histogram.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import floor, isnan
from typing import Any, TypeVar

AnyRow = TypeVar("AnyRow", bound=Sequence[Any])


def in_order(
    chart: Mapping[str, Any], columns: Sequence[str], rows: Sequence[AnyRow]
) -> list[AnyRow]:
    """Return the rows of a result in the order of the chart's axis; lines go forward in time.

    Args:
        columns: the names of the result's columns.
    """
    order = chart.get("order")
    if chart.get("x") not in columns or not (order or chart["type"] == "line"):
        return list(rows)

    place = columns.index(str(chart["x"]))
    if not order:
        return sorted(rows, key=lambda row: (row[place] is None, str(row[place])))

    ranks = {str(value): rank for rank, value in enumerate(order)}
    return sorted(rows, key=lambda row: ranks.get(str(row[place]), len(ranks)))


def told_apart(names: Iterable[str]) -> list[str]:
    """Return the names, with a number behind each that has come before."""
    often: Counter[str] = Counter()
    found = []
    for name in names:
        often[name] += 1
        found.append(name if often[name] == 1 else f"{name} ({often[name]})")

    return found


def steps(
    xs: Iterable[float], figures: Iterable[float], width: float
) -> tuple[list[str], dict[str, list[float]]]:
    """Return the steps of a histogram from the first to the last, and what falls into each."""
    sums: dict[int, float] = {}
    for x, figure in zip(xs, figures, strict=True):
        if not isnan(x) and not isnan(figure):
            place = floor(x / width)
            sums[place] = sums.get(place, 0.0) + figure

    places = range(min(sums), max(sums) + 1)
    named = [f"{place * width:.15g}–{(place + 1) * width:.15g}" for place in places]
    return named, {"": [sums.get(place, 0.0) for place in places]}
