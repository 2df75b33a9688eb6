"""Which columns of its sources an intent reads."""

from collections.abc import Iterable, Iterator

from common.values import Table
from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    DedupStep,
    FilterStep,
    JoinSourceStep,
    RateStep,
    Step,
    tie_columns,
)
from etl.meaning.read_columns import columns_of_test
from etl.planning.group_query import columns_of_aggregate
from etl.planning.joined_sources import ROW, JoinedSources, declared_identity
from etl.planning.measure_parts import columns_read


def needed_columns(bound: BoundIntent, joined: JoinedSources) -> dict[str, list[str]]:
    """Return for each source that is read the columns that are, in the order of its table.

    Its key is always among them; `etl_row` is where its rows have to be told apart without one.
    """
    columns = [output.column for output in bound.outputs]
    for step in bound.steps:
        columns.extend(_columns_of(step, joined))
        if isinstance(step, DedupStep):
            ties = tie_columns(step, bound.source(step.source).table)
            columns.extend(BoundColumn(step.source, name) for name in ties)

    needed: dict[str, set[str]] = {name: set() for name in _sources_read(bound)}
    for column in columns:
        if column.source:
            needed[column.source].add(column.name)

    ordered = {}
    for name, column_names in needed.items():
        ordered[name] = _ordered(bound.source(name).table, column_names)

    return ordered


def _ordered(table: Table, column_names: set[str]) -> list[str]:
    """Return what is wanted of a table and its key, else its first column."""
    names = {*column_names, *declared_identity(table)}
    stored = [column.name for column in table.columns]
    own = list(filter(names.__contains__, stored))
    if not own:
        own = stored[:1]
    if ROW in column_names:
        own.append(ROW)

    return own


def _sources_read(bound: BoundIntent) -> Iterator[str]:
    yield bound.base.name
    for step in bound.steps:
        if isinstance(step, JoinSourceStep):
            yield step.right
        elif isinstance(step, RateStep):
            yield step.rates


def _columns_of(step: Step, joined: JoinedSources) -> Iterable[BoundColumn]:
    if isinstance(step, AggregateStep):
        return columns_of_aggregate(step, joined)
    if isinstance(step, JoinSourceStep | FilterStep | DedupStep):
        return _columns_compared(step)
    if isinstance(step, RateStep):
        rates = (step.rate, step.rate_currency, step.rate_day, step.target_currency)
        of_rates = [BoundColumn(step.rates, name) for name in rates if name is not None]
        return [*columns_read(step), *of_rates]

    return columns_read(step)


def _columns_compared(step: JoinSourceStep | FilterStep | DedupStep) -> Iterator[BoundColumn]:
    if isinstance(step, JoinSourceStep):
        for pair in step.on:
            yield from pair
    elif isinstance(step, FilterStep):
        for test in step.tests:
            yield from columns_of_test(test)
    else:
        sorting = [name for name, _ in step.sorting]
        for name in (*step.keys, *sorting):
            yield BoundColumn(step.source, name)
