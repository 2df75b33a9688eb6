"""Rows in which what a step computes lies at the bound of a condition, and beside it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from etl.evidence.column_values import is_exact_number
from etl.meaning.bound import BoundCondition, BoundIntent, ExpressionStep, FilterStep
from etl.meaning.evaluation import NotComputable, evaluate_expression
from etl.meaning.row_expressions import columns_of

Row = Mapping[str, Any]

_BESIDE = (Decimal(-1), Decimal(0), Decimal(1))


@dataclass(frozen=True)
class ComputedBound:
    """A number that a condition compares an expression over one source's columns with."""

    source: str
    expression: exp.Expression
    columns: tuple[str, ...]
    number: Decimal


def computed_bounds(intent: BoundIntent) -> Iterator[ComputedBound]:
    """Yield the bounds of conditions on what steps compute from the columns of one source."""
    computed = {step.name: step for step in intent.steps_of(ExpressionStep)}
    for test in _conditions(intent):
        step = computed.get(test.column.name)
        is_stored = bool(test.column.source)
        if step is not None and not is_stored:
            compared = test.value if isinstance(test.value, tuple) else (test.value,)
            yield from _bounds(step.expression, compared)


def _bounds(expression: exp.Expression, compared: Iterable[Any]) -> Iterator[ComputedBound]:
    nodes = list(columns_of(expression))
    names = tuple(dict.fromkeys(node.name for node in nodes))
    sources = list({node.table for node in nodes})
    if len(sources) == 1 and sources[0]:
        for number in filter(is_exact_number, compared):
            yield ComputedBound(sources[0], expression, names, Decimal(number))


def _conditions(intent: BoundIntent) -> Iterator[BoundCondition]:
    for step in intent.steps_of(FilterStep):
        for test in step.tests:
            if isinstance(test, BoundCondition):
                yield test


def values_at(bound: ComputedBound, row: Row, column: str, zone: str) -> Iterator[Decimal]:
    """Yield the values of a column with which the row lies at the bound, below and above.

    There are none where the expression is no straight line in that column.
    """

    def computed(value: Decimal) -> Decimal | None:
        changed = {**row, column: value}
        try:
            result = evaluate_expression(
                bound.expression, lambda node: changed.get(node.name), zone
            )
        except NotComputable:
            return None

        if isinstance(result, int | Decimal):
            return Decimal(result)

        return None

    at_zero = computed(Decimal(0))
    at_one = computed(Decimal(1))
    if at_zero is None or at_one is None or at_zero == at_one:
        return

    slope = at_one - at_zero
    for beside in _BESIDE:
        target = bound.number + beside
        value = (target - at_zero) / slope
        if computed(value) == target:
            yield value
