"""Values that tell a row from its neighbours: bounds, what lies beside them, and NULL.

For each column of an intent's tables it says which values make a difference to a condition, a
period, a map or a rate, so that rows with them show whether a model is right there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sqlglot import exp

from common.values import Column, PeriodUnit, Table
from etl.meaning.bound import (
    AggregateStep,
    AnyOf,
    BoundColumn,
    BoundCondition,
    BoundIntent,
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
from etl.meaning.value_kinds import DAYS, NUMBERS, ValueKind, kind_of_type

Place = tuple[tuple[str, str], str]
"""A column of a table: the table's schema and name, and the column's name."""

_ANCHOR = date(2024, 1, 1)
CURRENCIES = ("AAA", "BBB")
"""The currencies that rates are known for in made-up rows."""
RATE_DAYS = tuple(_ANCHOR + timedelta(days=days) for days in (0, 2, 5))
"""The days from which they hold."""
_TICK = timedelta(microseconds=1)
_MOST_PERIODS = 14


@dataclass
class TellingColumn:
    """The use of a column.

    Attributes:
        values: that make a difference; those that fulfil the conditions on the column alone come
            first, and there are `plain` of them.
        is_amount: whether its values are added up or compared in size.
        is_divisor: whether 0 makes a difference.
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
        return [value for value in self.values if value is not None]

    def add(self, values: Iterable[Any]) -> None:
        """Add values that its type can hold, each once."""
        for value in values:
            if self._can_hold(value) and value not in self.values:
                self.values.append(value)

    def _can_hold(self, value: Any) -> bool:
        if value is None:
            return self.column.nullable
        if isinstance(value, str):
            most = _length(self.column.type)
            is_allowed = not self.column.allowed or value in self.column.allowed
            return is_allowed and (most is None or len(value) <= most)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return abs(Decimal(value)) <= largest_number(self.column.type)
        return True


class TellingValues:
    """The telling columns of an intent."""

    def __init__(self, intent: BoundIntent) -> None:
        self._intent = intent
        self._zone = intent.time_zone
        self.columns: dict[Place, TellingColumn] = {}
        self.having: dict[str, list[Any]] = defaultdict(list)
        self.equal: list[tuple[BoundColumn, BoundColumn]] = []
        self._anchors = 0
        self._sorts = _sorts(intent)
        for source in intent.sources:
            self._enter(source.table)
        for step in intent.steps:
            self._read_step(step)
        for column in self.columns.values():
            self._complete(column)

    def of(self, column: BoundColumn) -> TellingColumn | None:
        """Return what is known of a source's column; None for one that a step makes."""
        if not column.source:
            return None
        return self.columns.get((self._intent.source(column.source).table.key, column.name))

    def _enter(self, table: Table) -> None:
        for column in table.columns:
            self.columns.setdefault(
                (table.key, column.name), TellingColumn(column, kind_of_type(column.type))
            )

    # what steps say

    def _read_step(self, step: Any) -> None:
        if isinstance(step, FilterStep):
            self._read_tests(step.tests)
        elif isinstance(step, ExpressionStep):
            self._read_expression(step.expression)
        elif isinstance(step, MapStep):
            self._add(step.column, [stored for stored, _ in step.mapping])
        elif isinstance(step, RateStep):
            self._read_rate(step)
        elif isinstance(step, DedupStep):
            for name, _ in step.sorting:
                self._add(BoundColumn(step.source, name), [])
        elif isinstance(step, AggregateStep):
            self._read_aggregate(step)

    def _read_tests(self, tests: Sequence[RowTest], *, must_hold: bool = True) -> None:
        for test in tests:
            if isinstance(test, AnyOf):
                self._read_tests(test.conditions, must_hold=False)
            elif isinstance(test, ExpressionTest):
                self._read_expression(test.expression)
            else:
                self._read_condition(test, must_hold=must_hold)

    def _read_condition(self, test: BoundCondition, *, must_hold: bool) -> None:
        column = self.of(test.column)
        if column is None:
            self.having[test.column.name] += _listed(test)
            return
        if must_hold:
            column.tests.append(test)
        for value in _listed(test):
            if isinstance(value, BoundColumn):
                self._pair(column, value)
                if must_hold and value.source:
                    self.equal.append((test.column, value))
            else:
                self._bound(column, value, test.operator)

    def _pair(self, column: TellingColumn, other: BoundColumn) -> None:
        partner = self.of(other)
        if partner is not None:
            common = self._usual(column)
            column.add(common)
            partner.add(common)

    def _bound(self, column: TellingColumn, value: Any, operator: str) -> None:
        held = _as_kind(value, column.kind, self._zone)
        if held is None:
            return
        if isinstance(held, str):
            column.add(_texts(held, operator))
            if not self._sorts:  # servers sort letters of another case differently
                column.add([held.swapcase()])
            return
        column.add([held])
        column.add(_beside(held, column.column.type))

    def _read_expression(self, expression: exp.Expression) -> None:
        for node in expression.find_all(exp.Column):
            self._add(BoundColumn(node.table, node.name), [])
        for division in expression.find_all(exp.Div, exp.Mod):
            for node in division.expression.find_all(exp.Column):
                column = self.of(BoundColumn(node.table, node.name))
                if column is not None:
                    column.is_divisor = True
        for compared, value in _compared(expression):
            telling = self.of(BoundColumn(compared.table, compared.name))
            if telling is not None:
                self._bound(telling, value, "=")

    def _read_rate(self, step: RateStep) -> None:
        self._add(step.currency, [*CURRENCIES, step.to, "ZZZ"])
        self._add(BoundColumn(step.rates, step.rate_currency), [*CURRENCIES, step.to])
        day = self.of(step.day)
        rate_day = self.of(BoundColumn(step.rates, step.rate_day))
        if rate_day is not None:
            rate_day.add(_as_kind(one, rate_day.kind, self._zone) for one in RATE_DAYS)
        if day is not None:
            for one in (*RATE_DAYS, RATE_DAYS[-1] + timedelta(days=40)):
                day.add(self._around(one, day.kind))
        for amount in (step.amount, BoundColumn(step.rates, step.rate)):
            self._mark_amount(amount)

    def _read_aggregate(self, step: AggregateStep) -> None:
        for key in step.keys:
            column = self.of(key.column)
            if column is not None and key.unit:
                column.units.add(key.unit)
        for measure in step.measures:
            self._read_tests(measure.tests)
            if measure.value is None:
                continue
            self._read_expression(measure.value)
            names = list(measure.value.find_all(exp.Column))
            if measure.function not in ("count", "count_distinct"):
                for node in names[:1]:
                    self._mark_amount(BoundColumn(node.table, node.name))

    def _mark_amount(self, place: BoundColumn) -> None:
        column = self.of(place)
        if column is not None and column.kind in NUMBERS:
            column.is_amount = True

    def _add(self, place: BoundColumn, values: Iterable[Any]) -> None:
        column = self.of(place)
        if column is not None:
            column.add(_as_kind(value, column.kind, self._zone) for value in values)

    # what every column has

    def _complete(self, column: TellingColumn) -> None:
        if column.units:
            column.add(self._moments(column))
        if column.is_divisor:
            column.add([_as_kind(0, column.kind, self._zone)])
        column.add(_texts_of_all(column.tests))
        column.add(column.column.allowed)
        if len(column.values) < 3 and not column.is_amount:
            column.add(self._usual(column))
        column.values.sort(key=lambda value: not self._is_plain(column, value))
        column.plain = sum(self._is_plain(column, value) for value in column.values)
        column.add([None])

    def _is_plain(self, column: TellingColumn, value: Any) -> bool:
        try:
            return holds_all(column.tests, lambda _: value, self._zone)
        except (NotComputable, TypeError):
            return False

    def _moments(self, column: TellingColumn) -> Iterator[Any]:
        """Yield the first moment of periods that follow each other, and the last before it."""
        days = [_day(value) for value in column.values if isinstance(value, date)]
        self._anchors += 1
        anchor = days[0] if days else shifted(_ANCHOR, "month", self._anchors)
        for unit in sorted(column.units):
            first = period_of(anchor, unit, self._zone)
            for count in range(self._periods()):
                start = shifted(first, unit, count)
                yield from self._around(start, column.kind)

    def _periods(self) -> int:
        """Return how many periods windows need to show their offsets and frames."""
        needed = 3
        for step in self._intent.steps:
            if isinstance(step, WindowStep):
                needed = max(needed, (step.rows or 0) + 2, step.offset + 2)
        return min(needed, _MOST_PERIODS)

    def _around(self, start: date, kind: ValueKind) -> Iterator[Any]:
        moment = _as_kind(start, kind, self._zone)
        if moment is None:
            return
        yield moment
        if isinstance(moment, datetime):
            yield moment - _TICK
            if moment.tzinfo is not None:  # where the zone's day is another than UTC's
                yield datetime(start.year, start.month, start.day, tzinfo=UTC)
        else:
            yield moment - timedelta(days=1)

    def _usual(self, column: TellingColumn) -> list[Any]:
        """Return usual values; texts in the case of those that are there already.

        Servers sort letters of different case differently.
        """
        usual = usual_values(column.kind, self._zone)
        has_small_letters = any(str(one)[:1].islower() for one in column.values)
        if column.kind == "text" and has_small_letters:
            return [text.lower() for text in usual]
        return usual


def _sorts(intent: BoundIntent) -> bool:
    """Tell whether the order of values decides about anything."""
    for step in intent.steps:
        if isinstance(step, DedupStep | WindowStep) and step.sorting:
            return True
    measures = intent.aggregate.measures if intent.aggregate else ()
    return any(measure.function in ("min", "max") for measure in measures)


def usual_values(kind: ValueKind, zone: str) -> list[Any]:
    """Return a few values of a kind; none of kinds that are only handed on."""
    if kind in DAYS:
        return [_as_kind(_ANCHOR + timedelta(days=day), kind, zone) for day in (0, 1, 40)]
    usual: dict[ValueKind, list[Any]] = {
        "integer": [1, 2, -3, 0],
        "numeric": [Decimal(1), Decimal(2), Decimal("-2.5"), Decimal(0)],
        "float": [1.0, 2.0, -2.5, 0.0],
        "text": ["A", "B", "C"],
        "boolean": [True, False],
    }
    return usual.get(kind, [])


def largest_number(type_: str) -> Decimal:
    """Return the largest amount that rows of a fixture put into a column of the type."""
    if type_ == "smallint":
        return Decimal(32767)
    if type_.startswith("numeric("):
        digits, _, scale = type_.removeprefix("numeric(").rstrip(")").partition(",")
        whole = int(digits) - int(scale or 0)
        return Decimal(10) ** whole - 1 if whole > 0 else Decimal(0)
    return Decimal(2_000_000_000)


def _length(type_: str) -> int | None:
    for prefix in ("character varying(", "character("):
        if type_.startswith(prefix):
            return int(type_.removeprefix(prefix).rstrip(")"))
    return 1 if type_ == "character" else None


def _listed(test: BoundCondition) -> list[Any]:
    value = test.value
    given = value if isinstance(value, tuple) else (value,)
    return [one.value if isinstance(one, RelativeDay) else one for one in given if one is not None]


def _as_kind(value: Any, kind: ValueKind, zone: str) -> Any:
    """Return the value as a column of that kind holds it; None where it can't."""
    if kind in DAYS:
        return as_day(value, kind, zone)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "text":
        return value if isinstance(value, str) else None
    return _as_number(value, kind)


def _as_number(value: Any, kind: ValueKind) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if kind == "numeric":
        return Decimal(str(value))
    if kind == "float":
        return float(value)
    return int(value) if kind == "integer" else None


def as_day(value: Any, kind: ValueKind, zone: str) -> date | None:
    """Return a day or moment as columns of that kind hold it; None for what is none."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, date):
        return None
    if kind == "date":
        return _day(value)
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if kind == "timestamp":
        return moment.replace(tzinfo=None)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(zone))


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _beside(value: Any, type_: str) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, datetime):
        return _days_beside(value, _TICK)
    if isinstance(value, date):
        return _days_beside(value, timedelta(days=1))
    step = _smallest_step(value, type_)
    return [value - step, value + step]


def _days_beside(day: date, step: timedelta) -> list[date]:
    """Return the day or moment before and after, without what lies beyond the calendar."""
    beside = []
    for move in (-step, step):
        with suppress(OverflowError):
            beside.append(day + move)
    return beside


def _smallest_step(value: Any, type_: str) -> Any:
    if isinstance(value, int):
        return 1
    if isinstance(value, float):
        return 0.5
    has_scale = type_.startswith("numeric(") and "," in type_
    scale = int(type_.partition(",")[2].rstrip(")")) if has_scale else 2
    is_whole = type_.startswith("numeric(") and not has_scale
    return Decimal(1) if is_whole else Decimal(1).scaleb(-scale)


def _texts(text: str, operator: str) -> list[str]:
    if operator in ("contains", "prefix", "suffix"):
        return [text, f"x{text}x", f"{text}x", f"x{text}", text[:-1], "a"]
    return [text, f"{text}x", "a"]


def _texts_of_all(tests: Iterable[BoundCondition]) -> list[str]:
    """Return the text that begins, goes on and ends as several conditions want it."""
    parts = {
        operator: [str(test.value) for test in tests if test.operator == operator]
        for operator in ("prefix", "contains", "suffix")
    }
    if sum(map(bool, parts.values())) < 2:
        return []
    return ["".join(text for texts in parts.values() for text in texts)]


def _compared(expression: exp.Expression) -> Iterator[tuple[exp.Column, Any]]:
    """Yield the columns that an expression compares with literals, with these."""
    for node in expression.find_all(exp.Binary, exp.In, exp.Between):
        columns = list(node.this.find_all(exp.Column)) if node.this else []
        others = [part for part in node.iter_expressions() if part is not node.this]
        for column in columns[:1]:
            for other in others:
                for literal in other.find_all(exp.Literal):
                    yield column, literal_value(literal)
