"""Intents that a model proposes: their joins and questions are checked by the rules."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from common.values import Catalog, Table
from etl.binding.join_links import JOIN_LINKS, JoinLink
from etl.binding.source_tables import tables_named
from etl.meaning.bound import (
    AggregateStep,
    BoundIntent,
    ExpressionStep,
    MapStep,
    RateStep,
    Step,
    WindowStep,
)
from etl.schemas.requirement import Ambiguity, IntentOperation, UserIntent

_LEAST_CHOICES, _MOST_CHOICES = 2, 12


def with_declared_joins(intent: UserIntent, catalog: Catalog) -> UserIntent:
    """Return the intent without the columns of joins that nobody declared.

    By which columns these tables are joined is for the rules to find out, or to ask.
    """
    operations = []
    for operation in intent.operations:
        if operation.action == "join" and not _is_declared(operation, intent, catalog):
            operation = _without_columns(operation)

        operations.append(operation)

    return intent.model_copy(update={"operations": operations})


def _is_declared(join: IntentOperation, intent: UserIntent, catalog: Catalog) -> bool:
    """Tell whether the columns of a join, if it has some, are those of a declared one."""
    parameters = join.parameters
    pairs = parameters.get("on")
    if not pairs:
        return True

    lefts = _meant(parameters.get("left"), intent, catalog)
    rights = _meant(parameters.get("right"), intent, catalog)
    links = JOIN_LINKS.of(catalog)
    for left, right in product(lefts, rights):
        for link in links.between(left.key, right.key):
            if _is_by(link, pairs):
                return True

    return False


def _without_columns(join: IntentOperation) -> IntentOperation:
    parameters = dict(join.parameters)
    parameters.pop("on", None)
    return join.model_copy(update={"parameters": parameters})


def _meant(name: Any, intent: UserIntent, catalog: Catalog) -> Sequence[Table]:
    """Return the tables that a join's name may mean."""
    for source in intent.data_sources:
        if name in (source.alias, source.table_name):
            return tables_named(source.table_name, source.schema_name, catalog)

    if isinstance(name, str):
        return tables_named(name, None, catalog)

    return ()


def _is_by(link: JoinLink, pairs: Any) -> bool:
    """Tell whether a declared join is one by these pairs of columns."""
    if not isinstance(pairs, list):
        return False

    named_pairs = set()
    for pair in pairs:
        if not isinstance(pair, list):
            return False

        named_pairs.add(tuple(str(name).rpartition(".")[2] for name in pair))

    return named_pairs == set(zip(link.left_columns, link.right_columns, strict=True))


def is_decidable(ambiguity: Ambiguity, intent: UserIntent) -> bool:
    """Tell whether an answer to the ambiguity changes the intent: one of its values stands in it.

    What is asked without consequence is not asked.
    """
    values = {choice.value for choice in ambiguity.choices}
    if len(values) < len(ambiguity.choices):
        return False
    if not _LEAST_CHOICES <= len(values) <= _MOST_CHOICES:
        return False

    for operation in intent.operations:
        if _is_about(ambiguity, operation) and _holds_any(operation.parameters, values):
            return True

    return False


def with_choice(intent: UserIntent, ambiguity: Ambiguity, answer: str) -> UserIntent:
    """Return the intent with the chosen value in place of the other ones of the ambiguity."""
    others = {choice.value for choice in ambiguity.choices} - {answer}
    changed = []
    for operation in intent.operations:
        parameters = operation.parameters
        if _is_about(ambiguity, operation):
            parameters = _replaced(parameters, others, answer)

        changed.append(operation.model_copy(update={"parameters": parameters}))

    return intent.model_copy(update={"operations": changed})


def _is_about(ambiguity: Ambiguity, operation: IntentOperation) -> bool:
    return ambiguity.operation in (None, operation.order)


def _holds_any(value: Any, texts: set[str]) -> bool:
    """Tell whether one of the texts stands in a value, or in what it holds."""
    if isinstance(value, dict):
        return _holds_any(list(value.values()), texts)
    if isinstance(value, list):
        return any(_holds_any(one, texts) for one in value)
    if not isinstance(value, str):
        return False

    return value in texts


def _replaced(value: Any, others: set[str], answer: str) -> Any:
    """Return a value with the answer for each of the others that stands in it."""
    match value:
        case dict():
            return {name: _replaced(one, others, answer) for name, one in value.items()}
        case list():
            return [_replaced(one, others, answer) for one in value]
        case str():
            if value in others:
                return answer

            return value

    return value


def means_the_same(one: BoundIntent, other: BoundIntent) -> bool:
    """Tell whether two intents mean the same rows, whatever their columns and steps are called."""
    return _comparable_parts(one) == _comparable_parts(other)


def _comparable_parts(intent: BoundIntent) -> list[str]:
    """Return what intents that mean the same rows have in common, in a fixed order."""
    tables = sorted(f"{source.table.schema}.{source.table.name}" for source in intent.sources)
    steps = sorted(repr(_nameless(step)) for step in intent.steps)
    return [*tables, *steps, intent.time_zone, intent.target.mode]


def _nameless(step: Step) -> Step:
    """Return the step without what only names it; expressions are compared as SQL."""
    if isinstance(step, AggregateStep):
        keys = tuple(replace(key, name="") for key in step.keys)
        measures = tuple(replace(measure, name="") for measure in step.measures)
        return replace(step, order=0, keys=keys, measures=measures)

    if isinstance(step, ExpressionStep | MapStep | RateStep | WindowStep):
        return replace(step, order=0, name="")

    return replace(step, order=0)
