"""Tell whether a result has amounts of several currencies, which have neither a sum nor an axis."""

from collections.abc import Sequence

from common.values import QueryResult
from knowledge.results.result_columns import ResultColumn, names_currencies
from knowledge.results.written_values import CURRENCIES, is_money


def has_several_currencies(columns: Sequence[ResultColumn], result: QueryResult) -> bool:
    """Tell whether a column says that the rows are of different currencies."""
    for place, column in enumerate(columns):
        if column.role != "category":
            continue

        values = {str(row[place]).strip().lower() for row in result.rows if row[place] is not None}
        is_of_currencies = names_currencies(column) or CURRENCIES.issuperset(values)
        if is_of_currencies and len(values) > 1:
            return True

    return False


def is_amount(column: ResultColumn) -> bool:
    """Tell whether the figures are amounts of money, or may be, as nothing is known of them."""
    output = column.output
    if is_money(column):
        return True

    is_unknown = output.is_computed and not output.is_share and not output.is_percent
    return is_unknown and column.unit is None and output.function != "count"
