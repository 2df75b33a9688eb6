"""Which columns of its sources an intent reads."""

from collections.abc import Iterable, Iterator

from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    Step,
)
from etl.meaning.read_columns import bound_column, columns_of_test
from etl.meaning.row_expressions import columns_of
from etl.planning.group_query import columns_of_aggregate
from etl.planning.joined_sources import ROW, JoinedSources, declared_identity


def needed_columns(bound: BoundIntent, joined: JoinedSources) -> dict[str, list[str]]:
    """Return for each source that is read the columns that are, in the order of its table.

    Its key is always among them; `etl_row` is where its rows have to be told apart without one.
    """
    needed: dict[str, set[str]] = {name: set() for name in _sources_read(bound)}
    columns = [output.column for output in bound.outputs]
    for step in bound.steps:
        columns.extend(_columns_of(step, joined))
    for column in columns:
        if column.source:
            needed[column.source].add(column.name)
    ordered = {}
    for name, wanted in needed.items():
        table = bound.source(name).table
        wanted.update(declared_identity(table))
        own = [column.name for column in table.columns if column.name in wanted]
        if not own:
            own = [column.name for column in table.columns[:1]]
        ordered[name] = [*own, ROW] if ROW in wanted else own
    return ordered


def _sources_read(bound: BoundIntent) -> Iterator[str]:
    yield bound.base.name
    for step in bound.steps:
        if isinstance(step, JoinSourceStep):
            yield step.right
        elif isinstance(step, RateStep):
            yield step.rates


def _columns_of(step: Step, joined: JoinedSources) -> Iterable[BoundColumn]:
    if isinstance(step, JoinSourceStep):
        return [column for pair in step.on for column in pair]
    if isinstance(step, FilterStep):
        return [column for test in step.tests for column in columns_of_test(test)]
    if isinstance(step, ExpressionStep):
        return [bound_column(node) for node in columns_of(step.expression)]
    if isinstance(step, MapStep):
        return [step.column]
    if isinstance(step, RateStep):
        rates = (step.rate, step.rate_currency, step.rate_day)
        of_rates = [BoundColumn(step.rates, name) for name in rates]
        return [step.amount, step.currency, step.day, *of_rates]
    if isinstance(step, AggregateStep):
        return columns_of_aggregate(step, joined)
    if isinstance(step, DedupStep):
        names = [*step.keys, *(name for name, _ in step.sorting)]
        return [BoundColumn(step.source, name) for name in names]
    return []
