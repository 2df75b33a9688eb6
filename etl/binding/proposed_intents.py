"""Intents that somebody proposes who may not decide: what of them needs the rules' word."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from common.values import Catalog, Table
from etl.binding.join_links import JOIN_LINKS, JoinLink
from etl.binding.source_tables import tables_named
from etl.meaning.bound import AggregateStep, BoundIntent, Step
from etl.schemas.requirement import Ambiguity, IntentOperation, UserIntent

_LEAST_CHOICES, _MOST_CHOICES = 2, 12


def with_declared_joins(intent: UserIntent, catalog: Catalog) -> UserIntent:
    """Return the intent without the columns of joins that nobody declared.

    By which columns these tables are joined is for the rules to find out, or to ask.
    """
    operations = [_declared(operation, intent, catalog) for operation in intent.operations]
    return intent.model_copy(update={"operations": operations})


def _declared(operation: IntentOperation, intent: UserIntent, catalog: Catalog) -> IntentOperation:
    given = operation.parameters
    if operation.action != "join" or not given.get("on"):
        return operation
    left = _meant(given.get("left"), intent, catalog)
    right = _meant(given.get("right"), intent, catalog)
    if _is_declared(given["on"], left, right, catalog):
        return operation
    kept = {name: value for name, value in given.items() if name != "on"}
    return operation.model_copy(update={"parameters": kept})


def _meant(name: Any, intent: UserIntent, catalog: Catalog) -> Sequence[Table]:
    """Return the tables that a join's name may mean."""
    for source in intent.data_sources:
        if name in (source.alias, source.table_name):
            return tables_named(source.table_name, source.schema_name, catalog)
    return tables_named(name, None, catalog) if isinstance(name, str) else ()


def _is_declared(
    pairs: Any, lefts: Sequence[Table], rights: Sequence[Table], catalog: Catalog
) -> bool:
    for left in lefts:
        for right in rights:
            links = JOIN_LINKS.of(catalog).between(left.key, right.key)
            if any(_is_by(link, pairs) for link in links):
                return True
    return False


def _is_by(link: JoinLink, pairs: Any) -> bool:
    """Tell whether a declared join is one by these pairs of columns."""
    declared = set(zip(link.left_columns, link.right_columns, strict=True))
    said = set()
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, list) or len(pair) != len(("left", "right")):
            return False
        said.add(tuple(str(name).rpartition(".")[2] for name in pair))
    return said == declared


def is_decidable(ambiguity: Ambiguity, intent: UserIntent) -> bool:
    """Tell whether an answer to the ambiguity changes the intent: one of its values stands in it.

    What is asked without consequence is not asked.
    """
    values = [choice.value for choice in ambiguity.choices]
    is_choice = _LEAST_CHOICES <= len(set(values)) <= _MOST_CHOICES
    if not is_choice or len(set(values)) != len(values):
        return False
    return any(_holds(_place(ambiguity, intent), value) for value in values)


def with_choice(intent: UserIntent, ambiguity: Ambiguity, answer: str) -> UserIntent:
    """Return the intent with the chosen value in place of the other ones of the ambiguity."""
    others = {choice.value for choice in ambiguity.choices} - {answer}
    changed = []
    for operation in intent.operations:
        is_meant = ambiguity.operation in (None, operation.order)
        parameters = operation.parameters
        if is_meant:
            parameters = _replaced(parameters, others, answer)
        changed.append(operation.model_copy(update={"parameters": parameters}))
    return intent.model_copy(update={"operations": changed})


def _place(ambiguity: Ambiguity, intent: UserIntent) -> list[Any]:
    """Return the parameters that the ambiguity is about."""
    return [
        operation.parameters
        for operation in intent.operations
        if ambiguity.operation in (None, operation.order)
    ]


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, dict):
        return any(_holds(one, text) for one in value.values())
    if isinstance(value, list):
        return any(_holds(one, text) for one in value)
    return bool(value == text)


def _replaced(value: Any, others: set[str], answer: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, others, answer) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, others, answer) for one in value]
    return answer if isinstance(value, str) and value in others else value


def means_the_same(one: BoundIntent, other: BoundIntent) -> bool:
    """Tell whether two intents mean the same rows, whatever their columns and steps are called."""
    return _meaning(one) == _meaning(other)


def _meaning(intent: BoundIntent) -> list[str]:
    tables = sorted(f"{source.table.schema}.{source.table.name}" for source in intent.sources)
    steps = sorted(repr(_nameless(step)) for step in intent.steps)
    return [*tables, *steps, intent.time_zone, intent.target.mode]


def _nameless(step: Step) -> Step:
    """Return the step without what only names it; expressions are compared as SQL."""
    plain: Any = replace(step, order=0)
    if isinstance(step, AggregateStep):
        keys = tuple(replace(key, name="") for key in step.keys)
        measures = tuple(replace(measure, name="") for measure in step.measures)
        return replace(step, order=0, keys=keys, measures=measures)
    if hasattr(plain, "name"):
        plain = replace(plain, name="")
    named: Step = plain
    return named
