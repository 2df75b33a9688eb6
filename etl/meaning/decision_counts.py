"""Counts the rows that assumptions decide about, and what they amount to."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from sqlglot import exp

from etl.meaning.bound import (
    BoundIntent,
    BoundMeasure,
    DedupStep,
    FilterStep,
    RowTest,
    WindowStep,
)
from etl.meaning.combinations import (
    Combination,
    first_of_each_row,
    measured_value,
    values_of_result,
)
from etl.meaning.conditions import Values, holds_all
from etl.meaning.decisions import (
    DecidedFigures,
    Decision,
    DroppedRows,
    FilteredRows,
    JoinedRows,
    NoRows,
    TargetRows,
    Ways,
)
from etl.meaning.evaluation import NotComputable
from etl.meaning.figures import figure, row_identity
from etl.meaning.read_columns import columns_of_expression, columns_of_tests
from etl.meaning.windows import Row
from etl.schemas.parameters import MeasureFunction

# Measures whose values add up to an amount, those first that are asked for as a sum.
_ADDING: Sequence[MeasureFunction] = ("sum", "avg", "median")


@dataclass(frozen=True)
class _Addend:
    """The value that is added up: of each row of a source that fulfils the tests, once."""

    source: str
    value: exp.Expression
    tests: tuple[RowTest, ...] = ()

    def sources(self) -> set[str]:
        """Return the sources whose columns are read; "" stands for columns that steps make."""
        columns = columns_of_expression(self.value) + columns_of_tests(self.tests)
        return {column.source for column in columns}


class DecisionCounts:
    """Counts while an interpreter goes through the steps of an intent.

    Args:
        decisions: by the ids of their assumptions.
    """

    def __init__(self, intent: BoundIntent, decisions: Mapping[str, Decision]) -> None:
        self._intent = intent
        self._zone = intent.time_zone
        self._decisions = decisions
        self._measure = _adding_measure(intent)
        self._addend: _Addend | None = None
        if self._measure is not None:
            self._addend = _addend_of(self._measure)

        self.figures: dict[str, DecidedFigures] = {}

    # --------------------------------------------------------------------------
    # called by the interpreter

    def narrowed(
        self,
        step: FilterStep | DedupStep,
        source: str,
        before: Sequence[Combination],
        after: Sequence[Combination],
        held: Collection[str],
    ) -> None:
        """Count at a step that leaves rows out.

        Args:
            source: whose rows it leaves out.
            held: the sources that are joined by then.
        """
        addend = self._addend_of_joined(held)
        for id_, decision in self._decisions.items():
            if _is_of_condition(decision, step):
                found = self._fitting(decision.ways, before)
            elif decision == DroppedRows(step.order, source):
                found = _dropped(source, before, after)
            else:
                continue

            self._enter(id_, found, source, addend)

    def joined(self, combinations: Sequence[Combination]) -> None:
        """Count among the combinations that the target is made of."""
        for id_, decision in self._decisions.items():
            if isinstance(decision, JoinedRows):
                self._count_joined(id_, decision, combinations)
            elif isinstance(decision, FilteredRows):
                self._count_measured(id_, decision, combinations)

    def narrowed_result(self, step: FilterStep, rows: Sequence[Row]) -> None:
        """Count the rows that come to a filter of the result."""
        for id_, decision in self._decisions.items():
            if _is_of_condition(decision, step):
                fitting = self._fitting_rows(decision.ways, rows)
                self._enter_result(id_, fitting)

    def finished(self, rows: Sequence[Row]) -> None:
        """Count the rows of the target."""
        for id_, decision in self._decisions.items():
            if isinstance(decision, NoRows):
                self.figures[id_] = DecidedFigures(0)
            elif isinstance(decision, TargetRows):
                counted = self._tied(rows) if decision.ties else rows
                self._enter_result(id_, counted)

    # --------------------------------------------------------------------------
    # which rows

    def _count_joined(
        self, id_: str, decision: JoinedRows, combinations: Sequence[Combination]
    ) -> None:
        source = self._counted_source(decision, combinations)
        if source is None:
            self.figures[id_] = DecidedFigures(0)
            return

        if decision.without is not None:
            combinations = _without(decision.without, combinations)

        fitting = self._fitting(decision.ways, combinations)
        addend = self._addend
        if decision.amount is not None:
            addend = _Addend(source, decision.amount)

        self._enter(id_, fitting, source, addend)

    def _counted_source(
        self, decision: JoinedRows, combinations: Sequence[Combination]
    ) -> str | None:
        """Return the source whose rows count; None where it is not among the intent's."""
        for combination in combinations:
            if decision.source in combination.rows:
                return decision.source

        names = ["", *(source.name for source in self._intent.sources)]
        if decision.source not in names:
            return None

        return self._intent.base.name

    def _count_measured(
        self, id_: str, decision: FilteredRows, combinations: Sequence[Combination]
    ) -> None:
        """Count the rows that come to the condition of a measure, where it is one."""
        measure = self._measure_with(decision)
        if measure is None:
            return

        fitting = self._fitting(decision.ways, combinations)
        unconditional = replace(measure, tests=())
        self._enter(id_, fitting, measure.source, _addend_of(unconditional))

    def _measure_with(self, decision: FilteredRows) -> BoundMeasure | None:
        """Return the measure with the condition."""
        aggregate = self._intent.aggregate
        if aggregate is None or aggregate.order != decision.operation:
            return None

        for measure in aggregate.measures:
            if decision.column in columns_of_tests(measure.tests):
                return measure

        return None

    def _fitting(self, ways: Ways, combinations: Sequence[Combination]) -> list[Combination]:
        fitting = []
        for combination in combinations:
            if self._fits(ways, combination.value):
                fitting.append(combination)

        return fitting

    def _fitting_rows(self, ways: Ways, rows: Sequence[Row]) -> list[Row]:
        fitting = []
        for row in rows:
            if self._fits(ways, values_of_result(row)):
                fitting.append(row)

        return fitting

    def _fits(self, ways: Ways, values: Values) -> bool:
        try:
            return any(holds_all(tests, values, self._zone) for tests in ways)
        except (NotComputable, ArithmeticError, ValueError):
            return False  # no value that the condition could hold for

    def _tied(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that share their rank with another one."""
        rank = self._last_rank()
        if rank is None:
            return []

        names = (*rank.partition, rank.name)
        places = [row_identity(row, names) for row in rows]
        counts = Counter(places)
        tied = []
        for row, place in zip(rows, places, strict=True):
            if counts[place] > 1:
                tied.append(row)

        return tied

    def _last_rank(self) -> WindowStep | None:
        for step in reversed(self._intent.steps):
            if isinstance(step, WindowStep) and step.function == "rank":
                return step

        return None

    # --------------------------------------------------------------------------
    # what they amount to

    def _enter(
        self, id_: str, counted_rows: Sequence[Combination], source: str, addend: _Addend | None
    ) -> None:
        rows = first_of_each_row(source, (), counted_rows, self._zone)
        amount = None
        if addend is not None:
            amount = self._amount(counted_rows, addend)

        self.figures[id_] = DecidedFigures(len(rows), amount)

    def _addend_of_joined(self, held: Collection[str]) -> _Addend | None:
        """Return what is added up; None while it reads a source that is not joined yet."""
        addend = self._addend
        if addend is None or not addend.sources().issubset(held):
            return None

        return addend

    def _amount(self, counted_rows: Sequence[Combination], addend: _Addend) -> int | float | None:
        """Add up what the rows of the addend's source have, each row once."""
        try:
            counted = first_of_each_row(addend.source, addend.tests, counted_rows, self._zone)
            values = [measured_value(addend.value, one, self._zone) for one in counted]
            return figure("sum", values) or 0
        except (NotComputable, ArithmeticError, ValueError):
            return None

    def _enter_result(self, id_: str, rows: Sequence[Row]) -> None:
        amount = None
        measure = self._measure
        if measure is not None and measure.function == "sum":
            values = [row[measure.name] for row in rows]
            amount = figure("sum", values) or 0

        self.figures[id_] = DecidedFigures(len(rows), amount)


def _adding_measure(intent: BoundIntent) -> BoundMeasure | None:
    """Return the measure whose values are added up for rows."""
    for function in _ADDING:
        for measure in intent.measures:
            if measure.function == function:
                return measure

    return None


def _dropped(
    source: str, before: Sequence[Combination], after: Sequence[Combination]
) -> list[Combination]:
    """Return the combinations whose row of a source none of those left has."""
    kept = {combination.rows[source] for combination in after}
    dropped = []
    for combination in before:
        if combination.rows[source] not in kept:
            dropped.append(combination)

    return dropped


def _without(source: str, combinations: Sequence[Combination]) -> list[Combination]:
    """Return the combinations that hold no row of a source."""
    kept = []
    for combination in combinations:
        if source not in combination.rows:
            kept.append(combination)

    return kept


def _addend_of(measure: BoundMeasure) -> _Addend | None:
    if measure.value is None or measure.function not in _ADDING:
        return None

    return _Addend(measure.source, measure.value, measure.tests)


def _is_of_condition(decision: Decision, step: FilterStep | DedupStep) -> TypeGuard[FilteredRows]:
    """Tell whether a decision is about a condition of the step."""
    if not isinstance(step, FilterStep) or not isinstance(decision, FilteredRows):
        return False
    if step.order != decision.operation:
        return False

    return decision.column in columns_of_tests(step.tests)
