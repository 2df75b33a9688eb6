"""The columns that conditions and expressions of an intent read."""

from collections.abc import Iterable

from sqlglot import exp

from etl.meaning.bound import AnyOf, BoundColumn, ExpressionTest, RowTest
from etl.meaning.row_expressions import columns_of


def bound_column(node: exp.Column) -> BoundColumn:
    """Return the column of the intent that an expression names."""
    return BoundColumn(node.table, node.name)


def columns_of_expression(expression: exp.Expression) -> list[BoundColumn]:
    """Return the columns of the intent that an expression reads, as often as it does."""
    return [bound_column(node) for node in columns_of(expression)]


def columns_of_test(test: RowTest) -> list[BoundColumn]:
    """Return the columns that a condition reads."""
    if isinstance(test, ExpressionTest):
        return columns_of_expression(test.expression)
    if isinstance(test, AnyOf):
        return columns_of_tests(test.conditions)

    columns = [test.column]
    if isinstance(test.value, BoundColumn):
        columns.append(test.value)

    return columns


def columns_of_tests(tests: Iterable[RowTest]) -> list[BoundColumn]:
    """Return the columns that conditions read, one condition after the other."""
    columns: list[BoundColumn] = []
    for test in tests:
        columns.extend(columns_of_test(test))

    return columns
