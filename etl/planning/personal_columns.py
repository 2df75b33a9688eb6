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
    named = set(_outputs(intent, made)) | set(_grouped(intent, made))
    named |= {column.name for column in made}
    for step in intent.steps:
        if isinstance(step, WindowStep) and step.function in _SHIFTING and step.column in named:
            named.add(step.name)
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


def _grouped(intent: BoundIntent, made: set[BoundColumn]) -> Iterator[str]:
    aggregate = intent.aggregate
    if aggregate is None:
        return
    for key in aggregate.keys:
        if _is_personal(key.column, intent, made):
            yield key.name
    for measure in aggregate.measures:
        shows = measure.function in _SHOWING and measure.value is not None
        if shows and _holds_personal(measure.value, intent, made):
            yield measure.name


def _holds_personal(
    tree: exp.Expr | None, intent: BoundIntent, made: Iterable[BoundColumn]
) -> bool:
    if tree is None:
        return False
    named = [BoundColumn(column.table, column.name) for column in tree.find_all(exp.Column)]
    return any(_is_personal(column, intent, made) for column in named)


def _is_personal(column: BoundColumn, intent: BoundIntent, made: Iterable[BoundColumn]) -> bool:
    if column in made:
        return True
    if not column.source:
        return False
    table = intent.source(column.source).table
    found = table.column(column.name)
    return found is not None and privacy_of(table, found) is not Privacy.OPEN
