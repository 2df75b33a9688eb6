"""Which joins the measures of an aggregate need.

Two children of one parent make a combination for each pair of their rows. What only one of them
decides needs no pairs: a left join that a measure does not need changes neither its groups nor the
rows that it counts. So measures are worked out from several models where that spares pairs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    BoundMeasure,
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
from etl.planning.joined_sources import JoinedSources, combining_joins


@dataclass(frozen=True)
class MeasurePart:
    """Measures, and the sources whose rows are combined for them."""

    measures: tuple[BoundMeasure, ...]
    joined: JoinedSources


def measure_parts(bound: BoundIntent, aggregate: AggregateStep) -> list[MeasurePart]:
    """Return the parts that the measures are worked out from; mostly it is one."""
    everything = JoinedSources(bound)
    whole = [MeasurePart(aggregate.measures, everything)]
    sources_of_measures = _wanted_sources(bound, aggregate, everything)
    largest = _largest(sources_of_measures.values())
    if len(largest) < 2:
        return whole

    parts = [JoinedSources(bound, sources) for sources in largest]
    if any(part.most_repeated >= everything.most_repeated for part in parts):
        return whole

    measures_of_parts: list[list[BoundMeasure]] = [[] for _ in parts]
    for measure, sources in sources_of_measures.items():
        places = []
        for place, other in enumerate(largest):
            if sources <= other:
                places.append(place)

        measures_of_parts[places[0]].append(measure)

    pairs = zip(measures_of_parts, parts, strict=True)
    return [MeasurePart(tuple(measures), part) for measures, part in pairs]


def _wanted_sources(
    bound: BoundIntent, aggregate: AggregateStep, everything: JoinedSources
) -> dict[BoundMeasure, set[str]]:
    """Return the sources that each measure needs."""
    needs = _Needs(bound)
    common = needs.sources(_common_columns(bound, aggregate))
    common |= needs.unavoidable(everything)
    sources_of_measures = {}
    for measure in aggregate.measures:
        sources_of_measures[measure] = common | needs.sources(_columns_of_measure(measure))

    return sources_of_measures


def _largest(groups: Iterable[set[str]]) -> list[set[str]]:
    """Return the sets that are within no other one, each once."""
    largest: list[set[str]] = []
    for group in sorted(groups, key=len, reverse=True):
        if not any(group <= other for other in largest):
            largest.append(group)

    return largest


def _common_columns(bound: BoundIntent, aggregate: AggregateStep) -> Iterator[BoundColumn]:
    """Yield what decides about groups and about the rows in them."""
    for key in aggregate.keys:
        yield key.column

    for step in bound.steps:
        if getattr(step, "stage", "") == "rows":
            yield from _deciding_columns(step)


def _deciding_columns(step: Step) -> Iterator[BoundColumn]:
    """Yield the columns by which a step decides which rows there are."""
    if isinstance(step, FilterStep):
        for test in step.tests:
            yield from columns_of_test(test)
    elif isinstance(step, DedupStep):
        yield BoundColumn(step.source, step.keys[0])
    elif isinstance(step, JoinSourceStep) and step.how != "left":
        for left, _ in step.on:
            yield left

        if step.how == "inner":
            yield step.on[0][1]


def _columns_of_measure(measure: BoundMeasure) -> Iterator[BoundColumn]:
    """Yield the columns that a figure needs, and its source, as a column without a name."""
    yield BoundColumn(measure.source, "")
    for test in measure.tests:
        yield from columns_of_test(test)

    if measure.value is not None:
        yield from (bound_column(node) for node in columns_of(measure.value))


def columns_read(step: Step) -> list[BoundColumn]:
    """Return the columns that a step at the stage `rows` computes from."""
    if isinstance(step, ExpressionStep):
        return [bound_column(node) for node in columns_of(step.expression)]
    if isinstance(step, MapStep):
        return [step.column]
    if isinstance(step, RateStep):
        return [step.amount, step.currency, step.day]

    return []


class _Needs:
    """From which sources columns come, and which joins lead there."""

    def __init__(self, bound: BoundIntent) -> None:
        self._base = bound.base.name
        self._joins = {step.right: step for step in combining_joins(bound)}
        self._made: dict[str, list[BoundColumn]] = {}
        for step in bound.steps:
            if isinstance(step, ExpressionStep | MapStep | RateStep):
                self._made[step.name] = columns_read(step)

    def sources(self, columns: Iterable[BoundColumn]) -> set[str]:
        """Return the sources that columns come from, with those on the way from the base."""
        sources = {self._base}
        seen: set[BoundColumn] = set()
        pending = list(columns)
        while pending:
            column = pending.pop()
            if column in seen:
                continue

            seen.add(column)
            if not column.source:
                pending.extend(self._made.get(column.name, ()))
            elif column.source in self._joins:
                sources.add(column.source)
                pending.extend(left for left, _ in self._joins[column.source].on)

        return sources

    def unavoidable(self, joined: JoinedSources) -> set[str]:
        """Return the sources whose joins repeat nothing: leaving them out spares nothing."""
        sources = {self._base}
        for name in self._joins:
            way = self.sources([BoundColumn(name, "")])
            joined_on_way = way - {self._base}
            if not any(joined.is_repeating(one) for one in joined_on_way):
                sources |= way

        return sources
