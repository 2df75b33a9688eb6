"""Values with which rows fulfil none of the alternatives of a condition.

Beside them one value at a time fulfils one alternative alone, so that each of them decides about a
row that no other one decides about.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etl.evidence.boundary_values import Place
from etl.meaning.bound import AnyOf, BoundColumn, BoundCondition, BoundIntent, FilterStep
from etl.meaning.conditions import holds_all

Candidates = Callable[[Place], Sequence[Any]]
"""Gives the values that a column may have."""


def values_of_no_alternative(
    intent: BoundIntent, candidates: Candidates
) -> list[Mapping[Place, Any]]:
    """Return for each condition with alternatives values of its columns that fulfil none of them.

    Columns whose values always fulfil one are left out.
    """
    value_sets = []
    for step in intent.steps_of(FilterStep):
        for test in step.tests:
            if isinstance(test, AnyOf):
                value_sets.append(_values_by_place(test, intent, candidates))

    return [values for values in value_sets if values]


def _values_by_place(
    test: AnyOf, intent: BoundIntent, candidates: Candidates
) -> Mapping[Place, Any]:
    """Return, for each column of the alternatives, a candidate that fulfils none of them."""
    by_column: dict[BoundColumn, list[BoundCondition]] = defaultdict(list)
    for condition in test.conditions:
        by_column[condition.column].append(condition)

    values = {}
    for column, conditions in by_column.items():
        if not column.source or any(condition.operator == "column=" for condition in conditions):
            continue

        place = (intent.source(column.source).table.key, column.name)
        for value in candidates(place):
            if not _holds_any(conditions, value, intent.time_zone):
                values[place] = value
                break

    return values


def _holds_any(conditions: Sequence[BoundCondition], value: Any, time_zone: str) -> bool:
    return any(holds_all([condition], lambda _: value, time_zone) for condition in conditions)
