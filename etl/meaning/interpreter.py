"""Which rows an intent means: the oracle that built models are compared with.

It follows `etl.meaning.bound` sentence by sentence and is slow on purpose: nothing in it is shared
with the SQL that is drafted.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from etl.meaning.bound import (
    AggregateStep,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    Step,
    WindowStep,
)
from etl.meaning.calendar_periods import period_of, periods_between
from etl.meaning.combinations import (
    Combination,
    SourceRow,
    combinations_of,
    measured_value,
    values_of,
    values_of_result,
)
from etl.meaning.conditions import Values, expression_lookup, holds_all
from etl.meaning.decision_counts import DecisionCounts
from etl.meaning.decisions import DecidedFigures, Decision
from etl.meaning.evaluation import NotComputable, evaluate_expression, multiply, same_value
from etl.meaning.figures import figure, hashable
from etl.meaning.windows import Direction, Row, add_window, sorted_rows
from etl.schemas.evidence import LedgerEntry

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
# Values of which equal ones have equal hashes, whatever their columns' types are.
_SIMPLE = (int, Decimal, str, type(None))


@dataclass(frozen=True)
class Meaning:
    """What an intent means for given rows.

    Attributes:
        rows: of the target, in no particular order.
        ledger: what each operation did to the rows.
        decided: what each decision is about.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    ledger: tuple[LedgerEntry, ...]
    decided: Mapping[str, DecidedFigures]


def evaluate(
    intent: BoundIntent, tables: Tables, decisions: Mapping[str, Decision] | None = None
) -> Meaning:
    """Return what the intent means for these rows.

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


_Index = dict[tuple[Any, ...], list[SourceRow]]


class _Interpreter:
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
        steps = self._intent.steps
        for step in steps:
            if _stage(step) == "table":
                self._work_on_table(step)
        combinations = self._first_combinations()
        for step in steps:
            if _stage(step) == "rows":
                combinations = self._work_on_rows(step, combinations)
        self._counts.joined(combinations)
        result = self._result(combinations)
        for step in steps:
            if _stage(step) == "result":
                result = self._work_on_result(step, result)
        self._counts.finished(result)
        columns = self._intent.target.columns
        rows = [tuple(row[column] for column in columns) for row in result]
        return Meaning(columns, rows, tuple(self._ledger), self._counts.figures)

    def _enter(self, step: Step, table: str, rows_in: int, rows_out: int, **counts: int) -> None:
        entry = LedgerEntry(
            operation=step.order, table=table, rows_in=rows_in, rows_out=rows_out, **counts
        )
        self._ledger.append(entry)

    # one source

    def _work_on_table(self, step: Step) -> None:
        if isinstance(step, DedupStep):
            self._dedup_table(step)
        elif isinstance(step, FilterStep):
            self._filter_table(step)
        elif isinstance(step, JoinSourceStep):
            self._look_up_table(step)
        elif isinstance(step, ExpressionStep | MapStep):
            source = _known(step.source)
            for row in self._rows[source]:
                row.made[step.name] = self._computed(step, values_of(source, row))

    def _filter_table(self, step: FilterStep) -> None:
        source = _known(step.source)
        rows = self._rows[source]
        kept = [row for row in rows if holds_all(step.tests, values_of(source, row), self._zone)]
        self._rows[source] = kept
        self._enter(step, source, len(rows), len(kept), filtered=len(rows) - len(kept))
        self._count_narrowed(step, source, rows, kept)

    def _look_up_table(self, step: JoinSourceStep) -> None:
        """Keep the rows of a source by whether the right source has rows for them."""
        source = _known(step.source)
        rows = [Combination({source: row}) for row in self._rows[source]]
        self._rows[source] = [one.rows[source] for one in self._joined(step, rows)]

    def _dedup_table(self, step: DedupStep) -> None:
        rows = self._rows[step.source]
        kept = self._deduped(step, rows)
        self._rows[step.source] = kept
        self._enter_dedup(step, rows, kept)
        self._count_narrowed(step, step.source, rows, kept)

    def _count_narrowed(
        self,
        step: FilterStep | DedupStep,
        source: str,
        rows: Sequence[SourceRow],
        kept: Sequence[SourceRow],
    ) -> None:
        before, after = combinations_of(source, rows), combinations_of(source, kept)
        self._counts.narrowed(step, source, before, after, [source])

    def _enter_dedup(
        self, step: DedupStep, rows: Sequence[SourceRow], kept: Sequence[SourceRow]
    ) -> None:
        null_keys = [row for row in rows if _has_null(row.stored[key] for key in step.keys)]
        self._enter(
            step,
            step.source,
            len(rows),
            len(kept),
            filtered=len(rows) - len(kept),
            null_keys=len(null_keys),
        )

    def _deduped(self, step: DedupStep, rows: Sequence[SourceRow]) -> list[SourceRow]:
        """Return the first row of each key, and all rows with a NULL in the key."""
        primary_key = self._intent.source(step.source).table.primary_key
        by_key: list[tuple[str, Direction]] = [(column, "desc") for column in primary_key]
        ordered = sorted_rows([{**row.stored, "": row} for row in rows], (*step.sorting, *by_key))
        seen: set[Hashable] = set()
        kept = []
        for row in ordered:
            values = [row[key] for key in step.keys]
            key = tuple(hashable(value) for value in values)
            if _has_null(values) or key not in seen:
                kept.append(row[""])
            seen.add(key)
        return kept

    def _computed(self, step: ExpressionStep | MapStep, values: Values) -> Any:
        if isinstance(step, ExpressionStep):
            return evaluate_expression(step.expression, expression_lookup(values), self._zone)
        return self._mapped(step, values(step.column))

    def _mapped(self, step: MapStep, value: Any) -> Any:
        for stored, new in step.mapping:
            if value is not None and same_value(value, stored, self._zone):
                return new
        return step.default

    # combinations of joined rows

    def _first_combinations(self) -> list[Combination]:
        base = self._intent.base.name
        return [Combination({base: row}) for row in self._rows[base]]

    def _work_on_rows(self, step: Step, combinations: list[Combination]) -> list[Combination]:
        if isinstance(step, JoinSourceStep):
            return self._joined(step, combinations)
        if isinstance(step, FilterStep):
            return self._filtered(step, combinations)
        if isinstance(step, DedupStep):
            return self._deduped_combinations(step, combinations)
        if isinstance(step, RateStep):
            self._convert(step, combinations)
        elif isinstance(step, ExpressionStep | MapStep):
            for combination in combinations:
                combination.made[step.name] = self._computed(step, combination.value)
        return combinations

    def _filtered(self, step: FilterStep, before: list[Combination]) -> list[Combination]:
        after = [one for one in before if holds_all(step.tests, one.value, self._zone)]
        name = self._intent.base.name
        self._enter(step, name, len(before), len(after), filtered=len(before) - len(after))
        self._counts.narrowed(step, name, before, after, self._held)
        return after

    def _deduped_combinations(
        self, step: DedupStep, before: list[Combination]
    ) -> list[Combination]:
        rows = [one.rows[step.source] for one in before]
        kept = self._deduped(step, rows)
        self._enter_dedup(step, rows, kept)
        identities = {id(row) for row in kept}
        after = [one for one in before if id(one.rows[step.source]) in identities]
        self._counts.narrowed(step, step.source, before, after, self._held)
        return after

    def _joined(self, step: JoinSourceStep, before: list[Combination]) -> list[Combination]:
        after: list[Combination] = []
        self._held.append(step.right)
        unmatched = null_keys = repeated = filtered = 0
        index = self._index(step)
        for combination in before:
            matches = self._matches(step, combination, index)
            if _has_null(combination.value(left) for left, _ in step.on):
                null_keys += 1
            elif not matches:
                unmatched += 1
            extended = _extended(step, combination, matches)
            repeated += max(0, len(extended) - 1)
            filtered += int(not extended)
            after.extend(extended)
        self._enter(
            step,
            step.right,
            len(before),
            len(after),
            filtered=filtered,
            unmatched=unmatched,
            repeated=repeated,
            null_keys=null_keys,
        )
        return after

    def _index(self, step: JoinSourceStep) -> _Index | None:
        """Return the right rows by their keys; None where equal keys may differ in Python."""
        index: _Index = defaultdict(list)
        for row in self._rows[step.right]:
            values = values_of(step.right, row)
            key = tuple(values(right) for _, right in step.on)
            if any(not isinstance(one, _SIMPLE) for one in key):
                return None
            index[key].append(row)
        return index

    def _matches(
        self, step: JoinSourceStep, combination: Combination, index: _Index | None
    ) -> list[SourceRow]:
        candidates: Sequence[SourceRow] = self._rows[step.right]
        key = tuple(combination.value(left) for left, _ in step.on)
        if index is not None and all(isinstance(one, _SIMPLE) for one in key):
            candidates = index.get(key, ())
        return [row for row in candidates if self._meets(step, combination, row)]

    def _meets(self, step: JoinSourceStep, combination: Combination, row: SourceRow) -> bool:
        values = values_of(step.right, row)
        for left_column, right_column in step.on:
            left, right = combination.value(left_column), values(right_column)
            if left is None or right is None:
                return False
            if not same_value(left, right, self._zone):
                return False
        return True

    def _convert(self, step: RateStep, combinations: list[Combination]) -> None:
        unmatched = 0
        for combination in combinations:
            amount = combination.value(step.amount)
            converted = self._converted(step, combination, amount)
            combination.made[step.name] = converted
            if amount is not None and converted is None:
                unmatched += 1
        count = len(combinations)
        self._enter(step, step.rates, count, count, unmatched=unmatched)

    def _converted(self, step: RateStep, combination: Combination, amount: Any) -> Any:
        currency, day = combination.value(step.currency), combination.value(step.day)
        if amount is None or currency is None:
            return None
        if currency == step.to:
            return amount
        rate = None if day is None else self._rate(step, currency, self._day(day))
        return None if rate is None else multiply(amount, rate)

    def _day(self, moment: date) -> date:
        return period_of(moment, "day", self._zone)

    def _rate(self, step: RateStep, currency: str, day: date) -> Decimal | None:
        """Return the rate of the latest day that is not after `day`; the highest of that day."""
        known: list[tuple[date, Decimal]] = []
        for row in self._rows[step.rates]:
            rate, from_day = row.stored[step.rate], row.stored[step.rate_day]
            is_known = rate is not None and from_day is not None
            if is_known and row.stored[step.rate_currency] == currency:
                known.append((self._day(from_day), rate))
        past = [(from_day, rate) for from_day, rate in known if from_day <= day]
        return max(past)[1] if past else None

    # the result

    def _result(self, combinations: list[Combination]) -> list[Row]:
        aggregate = self._intent.aggregate
        if aggregate is None:
            return [self._output(one) for one in combinations]
        groups = self._groups(aggregate, combinations)
        result = [self._aggregated(aggregate, key, group) for key, group in groups]
        if aggregate.has_spine:
            result.extend(_missing_periods(aggregate, result))
        null_keys = [row for row in result if _has_null(row[key.name] for key in aggregate.keys)]
        name = self._intent.base.name
        self._enter(aggregate, name, len(combinations), len(result), null_keys=len(null_keys))
        return result

    def _output(self, combination: Combination) -> Row:
        return {output.name: combination.value(output.column) for output in self._intent.outputs}

    def _groups(
        self, step: AggregateStep, combinations: Iterable[Combination]
    ) -> list[tuple[tuple[Any, ...], list[Combination]]]:
        """Return the groups, each with the values of its key."""
        keys: dict[Hashable, tuple[Any, ...]] = {}
        groups: dict[Hashable, list[Combination]] = defaultdict(list)
        for combination in combinations:
            values = tuple(self._key_value(key, combination) for key in step.keys)
            identity = tuple(hashable(value) for value in values)
            keys.setdefault(identity, values)
            groups[identity].append(combination)
        if not step.keys and not groups:
            return [((), [])]
        return [(keys[identity], group) for identity, group in groups.items()]

    def _key_value(self, key: BoundKey, combination: Combination) -> Any:
        value = combination.value(key.column)
        if key.unit is None or value is None:
            return value
        return period_of(value, key.unit, self._zone)

    def _aggregated(
        self, step: AggregateStep, key: Sequence[Any], group: Sequence[Combination]
    ) -> Row:
        row: Row = {}
        for bound_key, value in zip(step.keys, key, strict=True):
            row[bound_key.name] = value
        for measure in step.measures:
            row[measure.name] = self._measured(measure, group)
        return row

    def _measured(self, measure: BoundMeasure, group: Sequence[Combination]) -> Any:
        """Aggregate over the rows of the measure's source, each once."""
        counted: set[int] = set()
        values: list[Any] = []
        for combination in group:
            row = combination.rows.get(measure.source)
            if row is None or id(row) in counted:
                continue
            if holds_all(measure.tests, combination.value, self._zone):
                counted.add(id(row))
                values.append(self._measured_value(measure, combination))
        value = figure(measure.function, values)
        return 0 if value is None and measure.is_zero_when_empty else value

    def _measured_value(self, measure: BoundMeasure, combination: Combination) -> Any:
        if measure.value is None:
            return True
        return measured_value(measure.value, combination, self._zone)

    def _work_on_result(self, step: Step, result: list[Row]) -> list[Row]:
        if isinstance(step, WindowStep):
            add_window(step, result)
        elif isinstance(step, FilterStep):
            kept = [
                row for row in result if holds_all(step.tests, values_of_result(row), self._zone)
            ]
            filtered = len(result) - len(kept)
            name = self._intent.target.model
            self._counts.narrowed_result(step, result)
            self._enter(step, name, len(result), len(kept), filtered=filtered)
            return kept
        elif isinstance(step, ExpressionStep | MapStep):
            for row in result:
                row[step.name] = self._computed(step, values_of_result(row))
        return result


def _stage(step: Step) -> str:
    """Return where a step works; an aggregate makes the result and has no stage."""
    if isinstance(step, FilterStep | ExpressionStep | MapStep | DedupStep | JoinSourceStep):
        return step.stage
    if isinstance(step, RateStep):
        return "rows"
    return "result" if isinstance(step, WindowStep) else ""


def _extended(
    step: JoinSourceStep, combination: Combination, matches: Sequence[SourceRow]
) -> list[Combination]:
    """Return what a join makes of a combination."""
    if step.how == "semi":
        return [combination] if matches else []
    if step.how == "anti":
        return [] if matches else [combination]
    if step.how == "left" and not matches:
        return [combination]
    return [combination.with_row(step.right, row) for row in matches]


def _missing_periods(step: AggregateStep, result: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each period without one, for each combination of the other keys."""
    period_key = next(key for key in step.keys if key.unit)
    others = [key.name for key in step.keys if key is not period_key]
    found = [row[period_key.name] for row in result if row[period_key.name] is not None]
    if not found or period_key.unit is None:
        return
    there: dict[Hashable, Row] = {}
    for row in result:
        there.setdefault(tuple(hashable(row[name]) for name in others), row)
    taken = {_identity(row, (*others, period_key.name)) for row in result}
    for period in periods_between(min(found), max(found), period_key.unit):
        for row in there.values():
            filled = {name: row[name] for name in others} | {period_key.name: period}
            if _identity(filled, (*others, period_key.name)) not in taken:
                yield filled | {one.name: _nothing(one) for one in step.measures}


def _identity(row: Row, names: Iterable[str]) -> Hashable:
    return tuple(hashable(row[name]) for name in names)


def _nothing(measure: BoundMeasure) -> Any:
    """Return what a measure gives for no rows."""
    value = figure(measure.function, ())
    return 0 if value is None and measure.is_zero_when_empty else value


def _has_null(values: Iterable[Any]) -> bool:
    return any(value is None for value in values)


def _known(source: str | None) -> str:
    if source is None:
        raise TypeError("a step at the stage `table` names its source")
    return source
