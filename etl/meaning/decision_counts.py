"""Counts the rows that assumptions decide about, and what they amount to."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    BoundMeasure,
    DedupStep,
    FilterStep,
    RowTest,
    WindowStep,
)
from etl.meaning.combinations import Combination, measured_value, values_of_result
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
from etl.meaning.figures import figure, hashable
from etl.meaning.read_columns import bound_column, columns_of_test
from etl.meaning.row_expressions import columns_of
from etl.meaning.windows import Row
from etl.schemas.parameters import MeasureFunction

# Measures whose values add up to an amount, those first that are asked for as a sum.
_ADDING: Sequence[MeasureFunction] = ("sum", "avg", "median")


@dataclass(frozen=True)
class _Addend:
    """What is added up for rows: a value of each row of a source that fulfils the tests."""

    source: str
    value: exp.Expression
    tests: tuple[RowTest, ...] = ()

    def columns(self) -> list[BoundColumn]:
        of_value = [bound_column(node) for node in columns_of(self.value)]
        of_tests = [column for test in self.tests for column in columns_of_test(test)]
        return of_value + of_tests


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
        self._addend = _addend_of(self._measure)
        self.figures: dict[str, DecidedFigures] = {}

    # --------------------------------------------------------------------------
    # what the interpreter tells

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
        addend = self._addend
        if addend is not None and any(one.source not in held for one in addend.columns()):
            addend = None
        for id_, decision in self._decisions.items():
            if isinstance(decision, FilteredRows) and _is_condition_of(step, decision):
                found = self._fitting(decision.ways, before)
                self._enter(id_, found, source, addend)
            elif decision == DroppedRows(step.order, source):
                kept = {id(one.rows[source]) for one in after}
                found = [one for one in before if id(one.rows[source]) not in kept]
                self._enter(id_, found, source, addend)

    def joined(self, combinations: Sequence[Combination]) -> None:
        """Count among the combinations that the target is made of."""
        held = {name for one in combinations for name in one.rows}
        for id_, decision in self._decisions.items():
            if isinstance(decision, JoinedRows):
                self._count_joined(id_, decision, combinations, held)
            elif isinstance(decision, FilteredRows):
                measure = self._measure_with(decision)
                if measure is not None:
                    found = self._fitting(decision.ways, combinations)
                    self._enter(id_, found, measure.source, _untested(_addend_of(measure)))

    def narrowed_result(self, step: FilterStep, rows: Sequence[Row]) -> None:
        """Count the rows that come to a filter of the result."""
        for id_, decision in self._decisions.items():
            if isinstance(decision, FilteredRows) and _is_condition_of(step, decision):
                found = [row for row in rows if self._fits(decision.ways, values_of_result(row))]
                self._enter_result(id_, found)

    def finished(self, rows: Sequence[Row]) -> None:
        """Count the rows of the target."""
        for id_, decision in self._decisions.items():
            if isinstance(decision, NoRows):
                self.figures[id_] = DecidedFigures(0)
            elif isinstance(decision, TargetRows):
                self._enter_result(id_, self._tied(rows) if decision.ties else rows)

    # --------------------------------------------------------------------------
    # which rows

    def _count_joined(
        self,
        id_: str,
        decision: JoinedRows,
        combinations: Sequence[Combination],
        held: Collection[str],
    ) -> None:
        known = {source.name for source in self._intent.sources}
        if decision.source not in ("", *known):  # no operation uses it
            self.figures[id_] = DecidedFigures(0)
            return
        source = decision.source if decision.source in held else self._intent.base.name
        found = self._fitting(decision.ways, combinations)
        if decision.without is not None:
            found = [one for one in found if decision.without not in one.rows]
        addend = self._addend
        if decision.amount is not None:
            addend = _Addend(source, decision.amount)
        self._enter(id_, found, source, addend)

    def _measure_with(self, decision: FilteredRows) -> BoundMeasure | None:
        """Return the measure with the condition."""
        aggregate = self._intent.aggregate
        if aggregate is None or aggregate.order != decision.operation:
            return None
        for measure in aggregate.measures:
            if _reads(measure.tests, decision.column):
                return measure
        return None

    def _fitting(self, ways: Ways, combinations: Sequence[Combination]) -> list[Combination]:
        return [one for one in combinations if self._fits(ways, one.value)]

    def _fits(self, ways: Ways, values: Values) -> bool:
        try:
            return any(holds_all(tests, values, self._zone) for tests in ways)
        except (NotComputable, ArithmeticError, ValueError):
            return False  # no value that the condition could hold for

    def _tied(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that share their rank with another one."""
        ranks = [
            step
            for step in self._intent.steps
            if isinstance(step, WindowStep) and step.function == "rank"
        ]
        if not ranks:
            return []
        names = (*ranks[-1].partition, ranks[-1].name)
        places = [_place(row, names) for row in rows]
        taken = Counter(places)
        return [row for row, place in zip(rows, places, strict=True) if taken[place] > 1]

    # --------------------------------------------------------------------------
    # what they amount to

    def _enter(
        self, id_: str, found: Sequence[Combination], source: str, addend: _Addend | None
    ) -> None:
        rows = {id(one.rows[source]) for one in found if source in one.rows}
        amount = self._amount(found, addend) if addend is not None else None
        self.figures[id_] = DecidedFigures(len(rows), amount)

    def _amount(self, found: Sequence[Combination], addend: _Addend) -> int | float | None:
        """Add up what the rows of the addend's source have, each row once."""
        counted: set[int] = set()
        values = []
        try:
            for one in found:
                row = one.rows.get(addend.source)
                if row is None or id(row) in counted:
                    continue
                if holds_all(addend.tests, one.value, self._zone):
                    counted.add(id(row))
                    values.append(measured_value(addend.value, one, self._zone))
            return figure("sum", values) or 0
        except (NotComputable, ArithmeticError, ValueError):
            return None

    def _enter_result(self, id_: str, rows: Sequence[Row]) -> None:
        amount = None
        if self._measure is not None and self._measure.function == "sum":
            name = self._measure.name
            amount = figure("sum", [row[name] for row in rows]) or 0
        self.figures[id_] = DecidedFigures(len(rows), amount)


def _adding_measure(intent: BoundIntent) -> BoundMeasure | None:
    """Return the measure whose values are added up for rows."""
    measures = intent.aggregate.measures if intent.aggregate is not None else ()
    for function in _ADDING:
        for measure in measures:
            if measure.function == function:
                return measure
    return None


def _addend_of(measure: BoundMeasure | None) -> _Addend | None:
    if measure is None or measure.value is None or measure.function not in _ADDING:
        return None
    return _Addend(measure.source, measure.value, measure.tests)


def _untested(addend: _Addend | None) -> _Addend | None:
    return None if addend is None else _Addend(addend.source, addend.value)


def _is_condition_of(step: FilterStep | DedupStep, decision: FilteredRows) -> bool:
    if not isinstance(step, FilterStep) or step.order != decision.operation:
        return False
    return _reads(step.tests, decision.column)


def _reads(tests: Sequence[RowTest], column: BoundColumn) -> bool:
    return any(column in columns_of_test(test) for test in tests)


def _place(row: Row, names: Sequence[str]) -> Hashable:
    return tuple(hashable(row[name]) for name in names)
