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
    made: set[BoundColumn] = set()
    for step in intent.steps:
        if _shows_personal(step, intent, made):
            made.add(BoundColumn("", step.name))

    named = {column.name for column in made}
    named.update(_outputs(intent, made))
    named.update(_personal_outputs_of_groups(intent, made))
    for window in intent.steps_of(WindowStep):
        if window.function in _SHIFTING and window.column in named:
            named.add(window.name)

    return frozenset(named & set(intent.target.columns))


def _shows_personal(
    step: Step, intent: BoundIntent, made: Iterable[BoundColumn]
) -> TypeGuard[ExpressionStep | MapStep]:
    """Tell whether the step makes a column out of values of persons."""
    if isinstance(step, ExpressionStep):
        return _holds_personal(step.expression, intent, made)
    if isinstance(step, MapStep):
        return _is_personal(step.column, intent, made)

    return False


def _outputs(intent: BoundIntent, made: set[BoundColumn]) -> Iterator[str]:
    for output in intent.outputs:
        if _is_personal(output.column, intent, made):
            yield output.name


def _personal_outputs_of_groups(intent: BoundIntent, made: set[BoundColumn]) -> Iterator[str]:
    for key in intent.keys:
        if _is_personal(key.column, intent, made):
            yield key.name

    for measure in intent.measures:
        if measure.value is None or measure.function not in _SHOWING:
            continue
        if _holds_personal(measure.value, intent, made):
            yield measure.name


def _holds_personal(tree: exp.Expr, intent: BoundIntent, made: Iterable[BoundColumn]) -> bool:
    for column in tree.find_all(exp.Column):
        named = BoundColumn(column.table, column.name)
        if _is_personal(named, intent, made):
            return True

    return False


def _is_personal(column: BoundColumn, intent: BoundIntent, made: Iterable[BoundColumn]) -> bool:
    if column in made:
        return True
    if not column.source:
        return False

    table = intent.source(column.source).table
    stored = table.column(column.name)
    if stored is None:
        return False

    return privacy_of(table, stored) is not Privacy.OPEN
