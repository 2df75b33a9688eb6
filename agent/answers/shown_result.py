"""A result as the HTTP contract has it: rows, what their columns are called and measured in, and a
chart.
"""

from typing import Any

from agent.answers.chart import chart_of
from common.text import Lang
from common.values import Catalog, QueryResult
from knowledge.results.result_columns import result_columns
from knowledge.results.written_values import format_of


def shown_result(sql: str, result: QueryResult, catalog: Catalog, lang: Lang) -> dict[str, Any]:
    """Return `query_result`, and `chart` when one shows it better than a table."""
    columns = result_columns(sql, result, catalog, lang)
    body = {
        "columns": list(result.columns),
        "column_types": list(result.column_types),
        "labels": [column.label for column in columns],
        "units": [column.unit for column in columns],
        "periods": [column.period for column in columns],
        "formats": [
            format_of(*column) for column in zip(columns, result.column_types, strict=True)
        ],
        "rows": list(result.rows),
        "row_count": result.row_count,
        "is_limited": result.is_limited,
    }
    if result.cut_columns:
        body["cut_columns"] = list(result.cut_columns)
    chart = chart_of(columns, result, lang)
    return {"query_result": body} | ({"chart": chart} if chart else {})
