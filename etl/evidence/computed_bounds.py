"""Rows in which what a step computes lies at the bound of a condition, and beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

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
    made = {step.name: step for step in intent.steps if isinstance(step, ExpressionStep)}
    for test in _tests(intent):
        computed = made.get(test.column.name)
        if computed is None or test.column.source:
            continue
        for number in _numbers(test.value):
            yield from _bound(computed.expression, number)


def _tests(intent: BoundIntent) -> Iterator[BoundCondition]:
    for step in intent.steps:
        if not isinstance(step, FilterStep):
            continue
        for test in step.tests:
            if isinstance(test, BoundCondition):
                yield test


def _bound(expression: exp.Expression, number: Decimal) -> Iterator[ComputedBound]:
    nodes = list(columns_of(expression))
    sources = list({node.table for node in nodes})
    if len(sources) == 1 and sources[0]:
        columns = tuple(dict.fromkeys(node.name for node in nodes))
        yield ComputedBound(sources[0], expression, columns, number)


def _numbers(value: Any) -> list[Decimal]:
    listed = value if isinstance(value, tuple) else (value,)
    numbers = []
    for one in listed:
        if isinstance(one, int | Decimal) and not isinstance(one, bool):
            numbers.append(Decimal(one))
    return numbers


def values_at(bound: ComputedBound, row: Row, column: str, zone: str) -> Iterator[Decimal]:
    """Yield the values of a column with which the row lies at the bound, below and above.

    None where the expression is no straight line in that column.
    """

    def computed(value: Decimal) -> Decimal | None:
        changed = {**row, column: value}
        try:
            found = evaluate_expression(bound.expression, lambda node: changed.get(node.name), zone)
        except NotComputable:
            return None
        return Decimal(found) if isinstance(found, int | Decimal) else None

    at_zero, at_one = computed(Decimal(0)), computed(Decimal(1))
    if at_zero is None or at_one is None or at_zero == at_one:
        return
    for beside in _BESIDE:
        wanted = bound.number + beside
        value = (wanted - at_zero) / (at_one - at_zero)
        if computed(value) == wanted:
            yield value
