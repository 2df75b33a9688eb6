"""Which columns a bound step reads."""

from collections.abc import Iterable, Iterator

from etl.binding.scope import bound_columns
from etl.meaning.bound import (
    AnyOf,
    BoundColumn,
    BoundCondition,
    ExpressionStep,
    ExpressionTest,
    FilterStep,
    MapStep,
    RateStep,
    RowTest,
    Step,
)


def columns_of_tests(tests: Iterable[RowTest]) -> Iterator[BoundColumn]:
    """Yield the columns that conditions read."""
    for test in tests:
        if isinstance(test, AnyOf):
            yield from columns_of_tests(test.conditions)
        elif isinstance(test, ExpressionTest):
            yield from bound_columns(test.expression)
        else:
            yield from _columns_of_condition(test)


def _columns_of_condition(condition: BoundCondition) -> Iterator[BoundColumn]:
    yield condition.column
    if isinstance(condition.value, BoundColumn):
        yield condition.value


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
