"""Which columns a bound step reads."""

from collections.abc import Iterable, Iterator

from etl.binding.scope import bound_columns
from etl.meaning.bound import (
    BoundColumn,
    ExpressionStep,
    FilterStep,
    MapStep,
    RateStep,
    RowTest,
    Step,
)
from etl.meaning.read_columns import columns_of_test


def columns_of_tests(tests: Iterable[RowTest]) -> Iterator[BoundColumn]:
    """Yield the columns that conditions read."""
    for test in tests:
        yield from columns_of_test(test)


def columns_of_step(step: Step) -> Iterator[BoundColumn]:
    """Yield the columns that a step over joined rows reads."""
    if isinstance(step, FilterStep):
        yield from columns_of_tests(step.tests)
    elif isinstance(step, ExpressionStep):
        yield from bound_columns(step.expression)
    elif isinstance(step, MapStep):
        yield step.column
    elif isinstance(step, RateStep):
        yield from (step.amount, step.currency, step.day)
