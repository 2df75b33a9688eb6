"""The interpreter of bound intents: the rows that it gives are what built models must give.

It follows `etl.meaning.bound` sentence by sentence and is slow on purpose: nothing in it is shared
with the SQL that is drafted.
"""

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from etl.meaning.bound import (
    AggregateStep,
    BoundIntent,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    Stage,
    Step,
    WindowStep,
    tie_columns,
)
from etl.meaning.combinations import (
    Combination,
    SourceRow,
    combinations_of,
    values_of,
    values_of_result,
)
from etl.meaning.conditions import Values, expression_lookup, holds_all
from etl.meaning.decision_counts import DecisionCounts
from etl.meaning.decisions import DecidedFigures, Decision
from etl.meaning.evaluation import NotComputable, evaluate_expression, has_null, same_value
from etl.meaning.figures import row_identity
from etl.meaning.grouped_rows import grouped_rows
from etl.meaning.rate_conversion import RateConversion
from etl.meaning.source_joins import join_source
from etl.meaning.windows import Row, add_window, sort_key
from etl.schemas.evidence import LedgerEntry
from etl.schemas.parameters import SortOrder

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Meaning:
    """The meaning of an intent for given rows.

    Attributes:
        columns: the columns of the target, in its order.
        rows: the rows of the target, with the values of `columns`, in no particular order.
        ledger: what each operation did to the rows.
        decided: the figures of each decision, by the id of its assumption.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    ledger: tuple[LedgerEntry, ...]
    decided: Mapping[str, DecidedFigures]


def evaluate(
    intent: BoundIntent, tables: Tables, decisions: Mapping[str, Decision] | None = None
) -> Meaning:
    """Return the meaning of an intent for the rows of its sources.

    Args:
        intent: bound.
        tables: the rows of each source, by its name, as dicts of Python values.
        decisions: whose rows are counted, by the ids of their assumptions.

    Raises:
        NotComputable: PostgreSQL would end the query with an error, or a value is beyond Python's
            numbers and calendar.
    """
    try:
        return _Interpreter(intent, tables, decisions or {}).meaning()
    except (ArithmeticError, ValueError) as error:
        raise NotComputable(str(error)) from error


class _Interpreter:
    """Works through the steps of an intent: on sources, on combinations, on the result.

    The stages come one after the other; the steps of each keep their order.
    """

    def __init__(
        self, intent: BoundIntent, tables: Tables, decisions: Mapping[str, Decision]
    ) -> None:
        self._intent = intent
        self._zone = intent.time_zone
        self._rows: dict[str, list[SourceRow]] = {}
        for source in intent.sources:
            self._rows[source.name] = [SourceRow(row) for row in tables[source.name]]

        self._ledger: list[LedgerEntry] = []
        self._counts = DecisionCounts(intent, decisions)
        self._held = [intent.base.name]

    def meaning(self) -> Meaning:
        for step in self._steps_at("table"):
            self._work_on_table(step)

        base = self._intent.base.name
        combinations = combinations_of(base, self._rows[base])
        for step in self._steps_at("rows"):
            combinations = self._work_on_rows(step, combinations)

        self._counts.joined(combinations)
        result = self._result(combinations)
        for step in self._steps_at("result"):
            result = self._work_on_result(step, result)

        self._counts.finished(result)
        columns = self._intent.target.columns
        rows = [tuple(row[column] for column in columns) for row in result]
        return Meaning(columns, rows, tuple(self._ledger), self._counts.figures)

    def _steps_at(self, stage: Stage) -> list[Step]:
        """Return the steps of a stage; the aggregate, which makes the result, has none."""
        steps: list[Step] = []
        for step in self._intent.steps:
            if not isinstance(step, AggregateStep) and step.stage == stage:
                steps.append(step)

        return steps

    def _enter(self, step: Step, table: str, before: Sized, after: Sized, **counts: int) -> None:
        entry = LedgerEntry(
            operation=step.order,
            table=table,
            rows_in=len(before),
            rows_out=len(after),
            **counts,
        )
        self._ledger.append(entry)

    def _enter_filter(self, step: FilterStep, table: str, before: Sized, after: Sized) -> None:
        self._enter(step, table, before, after, filtered=len(before) - len(after))

    def _holds(self, step: FilterStep, values: Values) -> bool:
        return holds_all(step.tests, values, self._zone)

    # transforms, at each stage

    def _computed_value(self, step: ExpressionStep | MapStep, values: Values) -> Any:
        if isinstance(step, ExpressionStep):
            return evaluate_expression(step.expression, expression_lookup(values), self._zone)

        return self._mapped(step, values(step.column))

    def _mapped(self, step: MapStep, value: Any) -> Any:
        """Return the new value of a stored one; the default is for all others and for NULL."""
        if value is None:
            return step.default

        for stored, new in step.mapping:
            if same_value(value, stored, self._zone):
                return new

        return step.default

    # dedups, of a source and of combinations

    def _deduped(self, step: DedupStep, rows: Sequence[SourceRow]) -> list[SourceRow]:
        """Return the first row of each key, and all rows with a NULL in the key."""
        seen: set[Hashable] = set()
        kept = []
        for row in self._in_order_of_dedup(step, rows):
            key = row_identity(row.stored, step.keys)
            if _has_null_key(step, row) or key not in seen:
                kept.append(row)

            seen.add(key)

        return kept

    def _in_order_of_dedup(self, step: DedupStep, rows: Sequence[SourceRow]) -> list[SourceRow]:
        """Sort rows as a dedup says; ties go by `tie_columns`, descending."""
        names = tie_columns(step, self._intent.source(step.source).table)
        ties: list[tuple[str, SortOrder]] = [(name, "desc") for name in names]
        key = sort_key((*step.sorting, *ties))
        return sorted(rows, key=lambda row: key(row.stored))

    def _enter_dedup(
        self, step: DedupStep, rows: Sequence[SourceRow], kept: Sequence[SourceRow]
    ) -> None:
        filtered = len(rows) - len(kept)
        null_keys = sum(_has_null_key(step, row) for row in rows)
        self._enter(step, step.source, rows, kept, filtered=filtered, null_keys=null_keys)

    # one source

    def _work_on_table(self, step: Step) -> None:
        if isinstance(step, DedupStep):
            self._dedup_table(step)
        elif isinstance(step, FilterStep):
            self._filter_table(step)
        elif isinstance(step, JoinSourceStep):
            self._look_up_table(step)
        elif isinstance(step, ExpressionStep | MapStep):
            source = _named_source(step.source)
            for row in self._rows[source]:
                row.made[step.name] = self._computed_value(step, values_of(source, row))

    def _dedup_table(self, step: DedupStep) -> None:
        rows = self._rows[step.source]
        kept = self._deduped(step, rows)
        self._enter_dedup(step, rows, kept)
        self._narrow_table(step, step.source, kept)

    def _filter_table(self, step: FilterStep) -> None:
        source = _named_source(step.source)
        rows = self._rows[source]
        kept = []
        for row in rows:
            if self._holds(step, values_of(source, row)):
                kept.append(row)

        self._enter_filter(step, source, rows, kept)
        self._narrow_table(step, source, kept)

    def _narrow_table(
        self, step: FilterStep | DedupStep, source: str, kept: list[SourceRow]
    ) -> None:
        before, after = combinations_of(source, self._rows[source]), combinations_of(source, kept)
        self._counts.narrowed(step, source, before, after, [source])
        self._rows[source] = kept

    def _look_up_table(self, step: JoinSourceStep) -> None:
        """Keep the rows of a source by whether the right source has rows for them."""
        source = _named_source(step.source)
        joined = self._join(step, combinations_of(source, self._rows[source]))
        self._rows[source] = [one.rows[source] for one in joined]

    # combinations of joined rows

    def _work_on_rows(self, step: Step, combinations: list[Combination]) -> list[Combination]:
        if isinstance(step, JoinSourceStep):
            return self._join(step, combinations)
        if isinstance(step, FilterStep):
            return self._filter(step, combinations)
        if isinstance(step, DedupStep):
            return self._deduped_combinations(step, combinations)
        if isinstance(step, RateStep):
            conversion = RateConversion(step, self._rows[step.rates], self._zone)
            unmatched = conversion.convert(combinations)
            self._enter(step, step.rates, combinations, combinations, unmatched=unmatched)
        elif isinstance(step, ExpressionStep | MapStep):
            for combination in combinations:
                combination.made[step.name] = self._computed_value(step, combination.value)

        return combinations

    def _join(self, step: JoinSourceStep, before: list[Combination]) -> list[Combination]:
        self._held.append(step.right)
        outcome = join_source(step, before, self._rows[step.right], self._zone)
        after = outcome.combinations
        self._enter(step, step.right, before, after, **outcome.figures())
        return after

    def _filter(self, step: FilterStep, before: list[Combination]) -> list[Combination]:
        after = []
        for one in before:
            if self._holds(step, one.value):
                after.append(one)

        base = self._intent.base.name
        self._enter_filter(step, base, before, after)
        self._counts.narrowed(step, base, before, after, self._held)
        return after

    def _deduped_combinations(
        self, step: DedupStep, before: list[Combination]
    ) -> list[Combination]:
        rows = [one.rows[step.source] for one in before]
        kept = self._deduped(step, rows)
        self._enter_dedup(step, rows, kept)
        kept_rows = set(kept)
        after = []
        for one in before:
            if one.rows[step.source] in kept_rows:
                after.append(one)

        self._counts.narrowed(step, step.source, before, after, self._held)
        return after

    # the result

    def _result(self, combinations: list[Combination]) -> list[Row]:
        aggregate = self._intent.aggregate
        if aggregate is None:
            return [self._output_row(combination) for combination in combinations]

        return self._group(aggregate, combinations)

    def _output_row(self, combination: Combination) -> Row:
        row: Row = {}
        for output in self._intent.outputs:
            row[output.name] = combination.value(output.column)

        return row

    def _group(self, step: AggregateStep, combinations: list[Combination]) -> list[Row]:
        result = grouped_rows(step, combinations, self._zone)
        names = [key.name for key in step.keys]
        null_keys = 0
        for row in result:
            if has_null(row[name] for name in names):
                null_keys += 1

        base = self._intent.base.name
        self._enter(step, base, combinations, result, null_keys=null_keys)
        return result

    def _work_on_result(self, step: Step, result: list[Row]) -> list[Row]:
        if isinstance(step, FilterStep):
            return self._filtered_result(step, result)
        if isinstance(step, WindowStep):
            add_window(step, result)
        elif isinstance(step, ExpressionStep | MapStep):
            for row in result:
                row[step.name] = self._computed_value(step, values_of_result(row))

        return result

    def _filtered_result(self, step: FilterStep, result: list[Row]) -> list[Row]:
        kept = []
        for row in result:
            if self._holds(step, values_of_result(row)):
                kept.append(row)

        self._counts.narrowed_result(step, result)
        self._enter_filter(step, self._intent.target.model, result, kept)
        return kept


def _has_null_key(step: DedupStep, row: SourceRow) -> bool:
    return has_null(row.stored[key] for key in step.keys)


def _named_source(source: str | None) -> str:
    if source is None:
        raise TypeError("a step at the stage `table` names its source")

    return source
