"""A result as the HTTP contract has it: rows, what their columns are called and measured in, and a
chart.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

from agent.answers.chart import chart_of
from agent.answers.condition_texts import condition_texts
from agent.answers.reference_rows import NamesByColumn, column_labels
from common.text import Lang
from common.values import Catalog, QueryResult
from knowledge.results.currencies import has_several_currencies, is_amount
from knowledge.results.result_columns import ResultColumn, result_columns
from knowledge.results.value_labels import value_labels
from knowledge.results.written_values import format_of
from rules.schema.table_facts import is_averaged, is_level

_BOOLEANS = frozenset(("True", "False", "None"))
_LEAST_ROWS = 2  # of which a total says more than they do


def shown_result(
    sql: str,
    result: QueryResult,
    catalog: Catalog,
    lang: Lang,
    names: NamesByColumn | None = None,
) -> dict[str, Any]:
    """Return `query_result`, and `chart` when one shows it better than a table.

    Args:
        names: what the rows are called to which columns of keys refer.
    """
    columns = result_columns(sql, result, catalog, lang)
    referred = names or {}
    body = {
        "columns": list(result.columns),
        "column_types": list(result.column_types),
        "labels": column_labels(columns, referred),
        "units": [column.unit for column in columns],
        "periods": [column.period for column in columns],
        "formats": [
            format_of(*column) for column in zip(columns, result.column_types, strict=True)
        ],
        "rows": list(result.rows),
        "row_count": result.row_count,
        "is_limited": result.is_limited,
    }
    labels: list[Mapping[str, str] | None] = [
        referred[place].names if place in referred else _labels_shown(column, place, result, lang)
        for place, column in enumerate(columns)
    ]
    if any(labels):
        body["value_labels"] = labels

    totals = _totals(columns, result)
    if any(total is not None for total in totals):
        body["totals"] = totals

    chart = chart_of(columns, result, lang)
    if chart is not None:
        body["conditions"] = condition_texts(sql, catalog, lang, date.today())
    if result.cut_columns:
        body["cut_columns"] = list(result.cut_columns)

    return {"query_result": body} | ({"chart": chart} if chart else {})


def _labels_shown(
    column: ResultColumn, place: int, result: QueryResult, lang: Lang
) -> dict[str, str] | None:
    """Return the labels of those values of a column that are in the rows; None: they have none."""
    labels = value_labels(column.output, lang)
    if not labels:
        return None

    seen = {str(row[place]) for row in result.rows}
    if seen <= _BOOLEANS:
        seen |= {text.lower() for text in seen}  # as clients read them from JSON
    return {value: label for value, label in labels.items() if value in seen} or None


def _totals(columns: Sequence[ResultColumn], result: QueryResult) -> list[Any]:
    """Return what each column adds up to: a number for what may be added, None for all others.

    Of rows that were cut there are no totals: they would be those of some rows only.
    """
    if result.is_limited or result.row_count < _LEAST_ROWS:
        return []

    has_times = any(column.role == "time" for column in columns)
    is_mixed = has_several_currencies(columns, result)
    totals = []
    for place, column in enumerate(columns):
        is_of_one_kind = not (is_mixed and is_amount(column))
        is_added = is_of_one_kind and _is_added(column, has_times=has_times)
        totals.append(_sum([row[place] for row in result.rows]) if is_added else None)

    return totals


def _is_added(column: ResultColumn, *, has_times: bool) -> bool:
    """Tell whether the column's figures have a sum over the rows.

    Sums of prices and rates mean nothing, and stock of several days is counted once for each day.
    """
    output = column.output
    if column.role != "measure" or not output.is_total:
        return False
    if output.function != "sum" or output.table is None or output.column is None:
        return True
    if column.unit == "%" or is_averaged(output.column):
        return False

    return not (has_times and is_level(output.table, output.column))


def _sum(values: Sequence[Any]) -> Any:
    """Return the exact sum of the figures, NULLs left out; None where one is no plain number."""
    numbers = [value for value in values if value is not None]
    if not numbers or not all(map(_is_number, numbers)):
        return None
    if any(isinstance(value, float) for value in numbers):
        return float(sum(Decimal(repr(float(value))) for value in numbers))

    return sum(numbers)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return is_number and isfinite(value)
