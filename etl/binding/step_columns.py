"""The columns that bound steps read."""

from collections.abc import Iterator

from etl.binding.scope import bound_columns
from etl.meaning.bound import (
    BoundColumn,
    ExpressionStep,
    FilterStep,
    MapStep,
    RateStep,
    Step,
)
from etl.meaning.read_columns import columns_of_tests


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
