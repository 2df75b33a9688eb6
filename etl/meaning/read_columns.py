"""Which columns conditions and expressions of an intent read."""

from sqlglot import exp

from etl.meaning.bound import AnyOf, BoundColumn, ExpressionTest, RowTest
from etl.meaning.row_expressions import columns_of


def bound_column(node: exp.Column) -> BoundColumn:
    """Return the column of the intent that an expression names."""
    return BoundColumn(node.table, node.name)


def columns_of_test(test: RowTest) -> list[BoundColumn]:
    """Return the columns that a condition reads."""
    if isinstance(test, ExpressionTest):
        return [bound_column(node) for node in columns_of(test.expression)]
    if isinstance(test, AnyOf):
        return [column for part in test.conditions for column in columns_of_test(part)]
    if isinstance(test.value, BoundColumn):
        return [test.column, test.value]
    return [test.column]
