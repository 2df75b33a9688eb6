"""Boundary values for test rows: bounds, what lies beside them, and NULL.

For each column of an intent's tables it says which values make a difference to a condition, a
period, a map or a rate, so that rows with them show whether a model is right there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlglot import exp

from common.values import Column, PeriodUnit
from etl.evidence.column_values import (
    ANCHOR,
    TICK,
    as_kind,
    is_exact_number,
    largest_number,
    longest_text,
    neighbours_of,
    plain_day,
    usual_values,
)
from etl.meaning.bound import (
    AggregateStep,
    AnyOf,
    BoundColumn,
    BoundCondition,
    BoundIntent,
    BoundMeasure,
    DedupStep,
    ExpressionStep,
    ExpressionTest,
    FilterStep,
    MapStep,
    RateStep,
    RelativeDay,
    RowTest,
    WindowStep,
)
from etl.meaning.calendar_periods import period_of, shifted
from etl.meaning.conditions import holds_all
from etl.meaning.evaluation import NotComputable, literal_value
from etl.meaning.read_columns import bound_column
from etl.meaning.value_kinds import NUMBERS, ValueKind, kind_of_type

Place = tuple[tuple[str, str], str]
"""A column of a table: the table's schema and name, and the column's name."""

CURRENCIES = ("AAA", "BBB")
"""The currencies that rates are known for in made-up rows."""
_UNKNOWN_CURRENCY = "ZZZ"
RATE_DAYS = tuple(ANCHOR + timedelta(days=days) for days in (0, 2, 5))
"""The days from which they hold."""
_LONG_AFTER_RATES = RATE_DAYS[-1] + timedelta(days=40)
_FEWEST_VALUES = 3  # of a column; usual ones are added to fewer
_FEWEST_PERIODS = 3
_MOST_PERIODS = 14
_GAP = 2  # periods: the one without rows, and that of the last moment before what follows
_COUNTS = ("count", "count_distinct")
_SIZED = ("min", "max")
_PARTS_OF_TEXTS = ("prefix", "contains", "suffix")


@dataclass
class BoundaryColumn:
    """The values of a column that decide something, and how steps use it.

    Attributes:
        values: that make a difference; those that fulfil the conditions on the column alone come
            first, and there are `plain` of them.
        is_amount: whether its values are added up or compared in size.
        is_divisor: whether 0 makes a difference.
        units: the units of the periods that its moments are put into.
        tests: conditions that all rows have to fulfil.
    """

    column: Column
    kind: ValueKind
    values: list[Any] = field(default_factory=list)
    plain: int = 0
    is_amount: bool = False
    is_divisor: bool = False
    units: set[PeriodUnit] = field(default_factory=set)
    tests: list[BoundCondition] = field(default_factory=list)

    def known(self) -> list[Any]:
        """Return the values but for NULL."""
        values = []
        for value in self.values:
            if value is not None:
                values.append(value)

        return values

    def add(self, values: Iterable[Any]) -> None:
        """Add values that its type can hold, each once."""
        for value in values:
            if self._can_hold(value) and value not in self.values:
                self.values.append(value)

    def _can_hold(self, value: Any) -> bool:
        if value is None:
            return self.column.nullable
        if isinstance(value, str):
            return self._can_hold_text(value)
        if is_exact_number(value):
            return bool(abs(value) <= largest_number(self.column.type))

        return True

    def _can_hold_text(self, text: str) -> bool:
        allowed = self.column.allowed
        if allowed and text not in allowed:
            return False

        longest = longest_text(self.column.type)
        return longest is None or len(text) <= longest


class BoundaryValues:
    """The values that decide something, of all columns of an intent's tables.

    Attributes:
        columns: those of all tables.
        having: what conditions compare figures with, by the figures' names.
        equal: pairs of columns that all rows must have the same value in.
    """

    def __init__(self, intent: BoundIntent) -> None:
        self._intent = intent
        self._zone = intent.time_zone
        self.columns: dict[Place, BoundaryColumn] = {}
        self.having: dict[str, list[Any]] = defaultdict(list)
        self.equal: list[tuple[BoundColumn, BoundColumn]] = []
        self._anchors = 0
        self._periods = _periods_needed(intent)
        self._is_sorted = _is_sorted(intent)
        for source in intent.sources:
            key = source.table.key
            for column in source.table.columns:
                boundary = BoundaryColumn(column, kind_of_type(column.type))
                self.columns.setdefault((key, column.name), boundary)

        for step in intent.steps:
            read = _READERS.get(type(step))
            if read is not None:
                read(self, step)

        for boundary in self.columns.values():
            self._complete(boundary)

    def of(self, column: BoundColumn) -> BoundaryColumn | None:
        """Return the boundary values of a source's column; None for a column that a step makes."""
        if not column.source:
            return None

        table = self._intent.source(column.source).table
        return self.columns.get((table.key, column.name))

    # what steps say

    def _read_filter(self, step: FilterStep) -> None:
        self._read_tests(step.tests)

    def _read_computed(self, step: ExpressionStep) -> None:
        self._read_expression(step.expression)

    def _read_map(self, step: MapStep) -> None:
        self._add(step.column, [stored for stored, _ in step.mapping])

    def _read_rate(self, step: RateStep) -> None:
        currencies = (*CURRENCIES, step.to)
        self._add(step.currency, [*currencies, _UNKNOWN_CURRENCY])
        self._add(BoundColumn(step.rates, step.rate_currency), currencies)
        self._add(BoundColumn(step.rates, step.rate_day), RATE_DAYS)
        if step.target_currency is not None:
            targets = [step.to, _UNKNOWN_CURRENCY]
            self._add(BoundColumn(step.rates, step.target_currency), targets)

        day = self.of(step.day)
        if day is not None:
            for rate_day in (*RATE_DAYS, _LONG_AFTER_RATES):
                day.add(self._around(rate_day, day.kind))

        self._mark_amount(step.amount)
        self._mark_amount(BoundColumn(step.rates, step.rate))

    def _read_dedup(self, step: DedupStep) -> None:
        for name, _ in step.sorting:
            self._add(BoundColumn(step.source, name), [])

    def _read_aggregate(self, step: AggregateStep) -> None:
        for key in step.keys:
            column = self.of(key.column)
            if column is not None and key.unit:
                column.units.add(key.unit)

        for measure in step.measures:
            self._read_tests(measure.tests)
            self._read_measured(measure)

    def _read_measured(self, measure: BoundMeasure) -> None:
        if measure.value is None:
            return

        self._read_expression(measure.value)
        first = measure.value.find(exp.Column)
        if first is not None and measure.function not in _COUNTS:
            self._mark_amount(bound_column(first))

    # what conditions and expressions say

    def _read_tests(self, tests: Sequence[RowTest], *, must_hold: bool = True) -> None:
        for test in tests:
            if isinstance(test, AnyOf):
                self._read_tests(test.conditions, must_hold=False)
            elif isinstance(test, ExpressionTest):
                self._read_expression(test.expression)
            else:
                self._read_condition(test, must_hold=must_hold)

    def _read_condition(self, test: BoundCondition, *, must_hold: bool) -> None:
        compared = _compared_with(test)
        column = self.of(test.column)
        if column is None:
            self.having[test.column.name] += compared
            return

        if must_hold:
            column.tests.append(test)

        for value in compared:
            if not isinstance(value, BoundColumn):
                self._bound(column, value, test.operator)
                continue

            self._pair(column, value)
            if must_hold and value.source:
                self.equal.append((test.column, value))

    def _pair(self, column: BoundaryColumn, other: BoundColumn) -> None:
        """Give both columns the same usual values."""
        partner = self.of(other)
        if partner is not None:
            common = self._usual(column)
            column.add(common)
            partner.add(common)

    def _bound(self, column: BoundaryColumn, value: Any, operator: str) -> None:
        """Add a value that the column is compared with, and those beside it."""
        converted = as_kind(value, column.kind, self._zone)
        if isinstance(converted, str):
            column.add(_texts(converted, operator))
            if not self._is_sorted:  # servers sort letters of another case differently
                column.add([converted.swapcase()])
        elif converted is not None:
            column.add([converted])
            column.add(neighbours_of(converted, column.column.type))

    def _read_expression(self, expression: exp.Expression) -> None:
        for node in expression.find_all(exp.Column):
            self._add(bound_column(node), [])

        for division in expression.find_all(exp.Div, exp.Mod):
            self._mark_divisors(division.expression)

        for compared, value in _comparisons(expression):
            boundary = self.of(bound_column(compared))
            if boundary is not None:
                self._bound(boundary, value, "=")

    def _mark_divisors(self, divisor: exp.Expr) -> None:
        for node in divisor.find_all(exp.Column):
            column = self.of(bound_column(node))
            if column is not None:
                column.is_divisor = True

    def _mark_amount(self, place: BoundColumn) -> None:
        column = self.of(place)
        if column is not None and column.kind in NUMBERS:
            column.is_amount = True

    def _add(self, place: BoundColumn, values: Iterable[Any]) -> None:
        column = self.of(place)
        if column is not None:
            column.add(as_kind(value, column.kind, self._zone) for value in values)

    # what every column has

    def _complete(self, column: BoundaryColumn) -> None:
        """Add the values that every column has, and put the plain ones first."""
        if column.units:
            column.add(self._moments(column))
        if column.is_divisor:
            column.add([as_kind(0, column.kind, self._zone)])

        column.add(_texts_of_all(column.tests))
        column.add(column.column.allowed)
        if len(column.values) < _FEWEST_VALUES and not column.is_amount:
            column.add(self._usual(column))

        plain = []
        for value in column.values:
            if self._is_plain(column, value):
                plain.append(value)

        others = []
        for value in column.values:
            if value not in plain:
                others.append(value)

        column.values = plain + others
        column.plain = len(plain)
        column.add([None])

    def _is_plain(self, column: BoundaryColumn, value: Any) -> bool:
        try:
            return holds_all(column.tests, lambda _: value, self._zone)
        except (NotComputable, TypeError):
            return False

    def _moments(self, column: BoundaryColumn) -> Iterator[Any]:
        """Yield the first moment of periods that follow each other, and the last before it."""
        self._anchors += 1
        days = []
        for value in column.values:
            if isinstance(value, date):
                days.append(value)

        anchor = plain_day(days[0]) if days else shifted(ANCHOR, "month", self._anchors)
        for unit in sorted(column.units):
            first = period_of(anchor, unit, self._zone)
            for count in range(self._periods):
                start = shifted(first, unit, count)
                yield from self._around(start, column.kind)

            # A period without rows, which a spine fills, lies before these.
            behind_gap = shifted(first, unit, self._periods + _GAP)
            yield from self._around(behind_gap, column.kind)

    def _around(self, start: date, kind: ValueKind) -> Iterator[Any]:
        """Yield the beginning of a day, the last moment or day before it, and that of UTC's day."""
        moment = as_kind(start, kind, self._zone)
        if moment is None:
            return

        yield moment
        if not isinstance(moment, datetime):
            yield moment - timedelta(days=1)
            return

        yield moment - TICK
        if moment.tzinfo is not None:
            yield datetime(start.year, start.month, start.day, tzinfo=UTC)

    def _usual(self, column: BoundaryColumn) -> list[Any]:
        """Return usual values; texts in the case of those that are there already.

        Servers sort letters of different case differently.
        """
        usual = usual_values(column.kind, self._zone)
        has_small_letters = any(str(value)[:1].islower() for value in column.values)
        if column.kind == "text" and has_small_letters:
            return [text.lower() for text in usual]

        return usual


_READERS: dict[type, Callable[[BoundaryValues, Any], None]] = {
    FilterStep: BoundaryValues._read_filter,
    ExpressionStep: BoundaryValues._read_computed,
    MapStep: BoundaryValues._read_map,
    RateStep: BoundaryValues._read_rate,
    DedupStep: BoundaryValues._read_dedup,
    AggregateStep: BoundaryValues._read_aggregate,
}


def _is_sorted(intent: BoundIntent) -> bool:
    """Tell whether the order of values decides about anything."""
    sortings = [step.sorting for step in intent.steps_of(DedupStep)]
    sortings += [step.sorting for step in intent.steps_of(WindowStep)]
    if any(sortings):
        return True

    functions = {measure.function for measure in intent.measures}
    return not functions.isdisjoint(_SIZED)


def _periods_needed(intent: BoundIntent) -> int:
    """Return how many periods windows need to show their offsets and frames."""
    needed = _FEWEST_PERIODS
    for step in intent.steps_of(WindowStep):
        reach = max(step.rows or 0, step.offset)
        needed = max(needed, reach + 2)

    return min(needed, _MOST_PERIODS)


def _compared_with(test: BoundCondition) -> list[Any]:
    """Return the values and columns that a condition compares with; NULL is none."""
    values = test.value if isinstance(test.value, tuple) else (test.value,)
    compared = []
    for one in values:
        value = one.value if isinstance(one, RelativeDay) else one
        if one is not None:
            compared.append(value)

    return compared


def _texts(text: str, operator: str) -> list[str]:
    if operator in _PARTS_OF_TEXTS:
        return [text, f"x{text}x", f"{text}x", f"x{text}", text[:-1], "a"]

    return [text, f"{text}x", "a"]


def _texts_of_all(tests: Iterable[BoundCondition]) -> list[str]:
    """Return a text that fulfils conditions on its beginning, middle and end at once."""
    parts: dict[str, str] = dict.fromkeys(_PARTS_OF_TEXTS, "")
    operators = set()
    for test in tests:
        if test.operator in parts:
            operators.add(test.operator)
            parts[test.operator] += str(test.value)

    if len(operators) > 1:
        return ["".join(parts.values())]

    return []


def _comparisons(expression: exp.Expression) -> Iterator[tuple[exp.Column, Any]]:
    """Yield each column that an expression compares with a literal, and the literal's value."""
    for node in expression.find_all(exp.Binary, exp.In, exp.Between):
        tested = node.this
        column = tested.find(exp.Column) if tested else None
        if column is None:
            continue

        for part in node.iter_expressions():
            if part is tested:
                continue

            for literal in part.find_all(exp.Literal):
                yield column, literal_value(literal)
