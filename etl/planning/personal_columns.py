"""Which columns of a target show values of persons, so that a preview hides them."""

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from sqlglot import exp

from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    ExpressionStep,
    MapStep,
    Step,
    WindowStep,
)
from knowledge.values.personal_data import Privacy, privacy_of

_SHOWING = ("min", "max")  # measures whose figure is a stored value
_SHIFTING = ("lag", "lead")


def personal_columns(intent: BoundIntent) -> frozenset[str]:
    """Return the names of the target's columns with values that a model would not be shown."""
    personal: set[BoundColumn] = set()
    for step in intent.steps:
        if _shows_personal(step, intent, personal):
            personal.add(BoundColumn("", step.name))

    named = {column.name for column in personal}
    named.update(_outputs(intent, personal))
    named.update(_personal_outputs_of_groups(intent, personal))
    for window in intent.steps_of(WindowStep):
        if window.function in _SHIFTING and window.column in named:
            named.add(window.name)

    return frozenset(named & set(intent.target.columns))


def _shows_personal(
    step: Step, intent: BoundIntent, personal: Iterable[BoundColumn]
) -> TypeGuard[ExpressionStep | MapStep]:
    """Tell whether the step makes a column out of values of persons."""
    if isinstance(step, ExpressionStep):
        return _holds_personal(step.expression, intent, personal)
    if isinstance(step, MapStep):
        return _is_personal(step.column, intent, personal)

    return False


def _outputs(intent: BoundIntent, personal: set[BoundColumn]) -> Iterator[str]:
    for output in intent.outputs:
        if _is_personal(output.column, intent, personal):
            yield output.name


def _personal_outputs_of_groups(intent: BoundIntent, personal: set[BoundColumn]) -> Iterator[str]:
    for key in intent.keys:
        if _is_personal(key.column, intent, personal):
            yield key.name

    for measure in intent.measures:
        if measure.value is None or measure.function not in _SHOWING:
            continue
        if _holds_personal(measure.value, intent, personal):
            yield measure.name


def _holds_personal(tree: exp.Expr, intent: BoundIntent, personal: Iterable[BoundColumn]) -> bool:
    for column in tree.find_all(exp.Column):
        named = BoundColumn(column.table, column.name)
        if _is_personal(named, intent, personal):
            return True

    return False


def _is_personal(column: BoundColumn, intent: BoundIntent, personal: Iterable[BoundColumn]) -> bool:
    if column in personal:
        return True
    if not column.source:
        return False

    table = intent.source(column.source).table
    stored = table.column(column.name)
    if stored is None:
        return False

    return privacy_of(table, stored) is not Privacy.OPEN
