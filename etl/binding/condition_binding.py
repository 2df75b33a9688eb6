"""Conditions of an intent, bound: values of the columns' types, days that are whole days."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import product
from typing import Any

from rapidfuzz import fuzz, process
from sqlglot import exp

from common.text import Text
from common.values import Column
from etl.binding.intent_checks import comparison_of, require
from etl.binding.join_links import are_comparable
from etl.binding.request_findings import NotBound, RequestFindings, choice
from etl.binding.scope import IntentScope, column_label, tree_column
from etl.binding.value_binding import bind_value, is_day, next_day
from etl.meaning.bound import (
    AnyOf,
    BoundColumn,
    BoundCondition,
    ExpressionTest,
    RelativeDay,
    RowTest,
    Scalar,
)
from etl.meaning.calendar_periods import local_time
from etl.meaning.decisions import FilteredRows
from etl.meaning.row_expressions import DIALECT, with_time_zone
from etl.meaning.value_kinds import MOMENTS, ValueKind, kind_of_type
from etl.schemas.parameters import ComparisonCondition, FilterCondition

_EQUALITIES = ("=", "!=", "in", "not_in")
_EXCLUSIONS = ("!=", "not_in")
_KIND_NEEDED: Mapping[str, ValueKind] = {
    "contains": "text",
    "prefix": "text",
    "suffix": "text",
    "is_true": "boolean",
    "is_false": "boolean",
}
"""The kind of values that an operator needs; all others take any."""
_MOST_CHOICES = 20
_MOST_COMBINED = 32  # alternatives that one `any` becomes
Value = Scalar | RelativeDay


@dataclass(frozen=True)
class ConditionBinding:
    """Binds the conditions of one operation."""

    scope: IntentScope
    findings: RequestFindings
    today: date
    time_zone: str
    operation: int

    def tests(
        self, conditions: Sequence[FilterCondition], field: str, table: str | None = None
    ) -> tuple[RowTest, ...]:
        """Return the tests that together say what the conditions do.

        Args:
            table: to which unqualified names belong.

        Raises:
            NotBound
            InvalidRequest: an operator or value does not fit the column.
        """
        tests: list[RowTest] = []
        is_whole = True
        for place, condition in enumerate(conditions):
            here = f"{field}[{place}]"
            try:
                tests.extend(self._tests_of_one(condition, here, table))
            except NotBound:
                is_whole = False  # the others go on: all questions are asked in one round

        if not is_whole:
            raise NotBound

        return tuple(tests)

    def _tests_of_one(
        self, condition: FilterCondition, field: str, table: str | None
    ) -> Sequence[RowTest]:
        if condition.any is None:
            return self._tests_of(comparison_of(condition, field), field, table)

        return self._alternatives(condition.any, field, table)

    def _alternatives(
        self, conditions: Sequence[ComparisonCondition], field: str, table: str | None
    ) -> Sequence[AnyOf]:
        """Return alternatives that all hold together where one of these conditions does.

        A whole day of moments is two conditions: each of them is an alternative in its turn.
        """
        ways: list[Sequence[RowTest]] = []
        for place, condition in enumerate(conditions):
            for one in self._one_by_one(condition, table):
                ways.append(self._tests_of(one, f"{field}.any[{place}]", table))

        zh = "any 中与一整天比较的时间列过多；请分成几个操作。"
        en = "too many of its moments are compared with whole days; make several operations of it."
        require(math.prod(map(len, ways)) <= _MOST_COMBINED, f"{field}.any", zh, en)
        return [AnyOf(tuple(_flat(chosen))) for chosen in product(*ways)]

    def _one_by_one(
        self, condition: ComparisonCondition, table: str | None
    ) -> Sequence[ComparisonCondition]:
        """Return a condition for each of the listed values of a moment."""
        if condition.operator != "in" or not isinstance(condition.value, list):
            return [condition]

        column = self._column(condition.column, table)
        if kind_of_type(self.scope.type_of(column)) not in MOMENTS:
            return [condition]

        return [
            condition.model_copy(update={"operator": "=", "value": value})
            for value in condition.value
        ]

    def _tests_of(
        self, condition: ComparisonCondition, field: str, table: str | None
    ) -> Sequence[RowTest]:
        column = self._column(condition.column, table)
        type_ = self.scope.type_of(column)
        self._check_operator(condition, type_, field)
        if condition.operator == "column=":
            return [self._same_column(column, condition, field, table)]
        if condition.operator in _EXCLUSIONS:
            self._assume_null_kept(column)

        values = self._bound_values(column, condition, f"{field}.value")
        if kind_of_type(type_) in MOMENTS and any(is_day(value) for value in values):
            self._assume_zone(column, type_)
            return self._days_of_moments(column, condition, values, field)

        return [BoundCondition(column, condition.operator, _value_of_condition(condition, values))]

    def _column(self, text: str, table: str | None) -> BoundColumn:
        if self.scope.result is not None:
            return BoundColumn("", self.scope.result_name(text, self.operation))

        return self.scope.column(text, self.operation, table=table)

    def _check_operator(self, condition: ComparisonCondition, type_: str, field: str) -> None:
        operator, kind = condition.operator, kind_of_type(type_)
        needed = _KIND_NEEDED.get(operator, kind)
        zh, en = f"{operator} 不能用于类型 {type_}。", f"{operator} does not fit the type {type_}."
        require(kind == needed, f"{field}.operator", zh, en)

    def _same_column(
        self, column: BoundColumn, condition: ComparisonCondition, field: str, table: str | None
    ) -> BoundCondition:
        other = self._column(str(condition.value), table)
        is_possible = are_comparable(self.scope.type_of(column), self.scope.type_of(other))
        zh, en = "两列类型不同，不能比较。", "columns of different types can't be compared."
        require(is_possible, f"{field}.value", zh, en)
        return BoundCondition(column, condition.operator, other)

    def _assume_null_kept(self, column: BoundColumn) -> None:
        is_nullable = not column.source or self.scope.stored(column).nullable
        if is_nullable:
            name = column_label(column)
            text = Text(
                f"排除条件保留 {name} 为空的行。", f"Rows without a value in {name} are kept."
            )
            decides = FilteredRows(self.operation, column, ((BoundCondition(column, "is_null"),),))
            self.findings.assume("null_kept", text, self.operation, decides=decides)

    # values

    def _bound_values(
        self, column: BoundColumn, condition: ComparisonCondition, field: str
    ) -> list[Value]:
        if condition.value is None:
            return []
        if not isinstance(condition.value, list):
            return [self._bound_value(column, condition, condition.value, field)]

        values: list[Value] = []
        for place, value in enumerate(condition.value):
            here = f"{field}[{place}]"
            try:
                values.append(self._bound_value(column, condition, value, here))
            except NotBound:
                continue

        if len(values) < len(condition.value):
            raise NotBound

        return values

    def _bound_value(
        self, column: BoundColumn, condition: ComparisonCondition, value: object, field: str
    ) -> Value:
        type_ = self.scope.type_of(column)
        bound = bind_value(value, type_, field, self.today)
        has_zone = kind_of_type(type_) == "timestamptz"
        if isinstance(bound, datetime) and not has_zone:
            return local_time(bound, self.time_zone)

        is_whole_value = condition.operator in _EQUALITIES
        if isinstance(bound, str) and column.source and is_whole_value:
            return self._stored_value(column, bound)

        return bound

    def _stored_value(self, column: BoundColumn, value: str) -> str:
        """Return how the column stores what is called so; asks where nothing is stored as that."""
        stored = self.scope.stored(column)
        stored_values = stored.allowed or stored.values
        is_whole = bool(stored.allowed) or stored.is_complete
        # What is blank is not among the values that are known
        if not stored_values or value in stored_values or not is_whole or not value.strip():
            return value

        values_of_name = _meant_values(stored, value)
        if len(values_of_name) == 1:
            name = column_label(column)
            text = Text(
                f"{name} 中“{value}”按语义文件取存储值“{values_of_name[0]}”。",
                f"In {name}, “{value}” is stored as “{values_of_name[0]}”, says the semantic file.",
            )
            stored_as = BoundCondition(column, "=", values_of_name[0])
            decides = FilteredRows(self.operation, column, ((stored_as,),))
            self.findings.assume(
                "stored_value", text, self.operation, decides=decides, is_semantic=True
            )
            return values_of_name[0]

        return self._asked_value(column, value, values_of_name or stored_values)

    def _asked_value(self, column: BoundColumn, value: str, stored_values: Sequence[str]) -> str:
        name = column_label(column)
        prompt = Text(
            f"{name} 中没有存储“{value}”，指的是哪个值？",
            f"{name} stores no “{value}”. Which value is meant?",
        )
        ranked = process.extract(
            value,
            list(stored_values),
            scorer=fuzz.WRatio,
            processor=str.casefold,
            limit=_MOST_CHOICES,
        )
        choices = []
        for one, *_ in ranked:
            choices.append(choice(one))

        topic = f"{name}={value}"
        return self.findings.choose("filter_value", topic, prompt, choices, self.operation)

    # days

    def _days_of_moments(
        self,
        column: BoundColumn,
        condition: ComparisonCondition,
        values: Sequence[Any],
        field: str,
    ) -> Sequence[RowTest]:
        """Return tests by which a day that is compared with moments is all of that day."""
        operator = condition.operator
        if operator in (">=", "<"):
            return [BoundCondition(column, operator, values[0])]

        zh, en = "应早于 9999-12-31。", "it must be before 9999-12-31."
        require(date.max not in values, f"{field}.value", zh, en)
        whole = values[1:] if operator == "between" else values
        self._assume_whole_days(column, whole)
        if operator in _EXCLUSIONS:
            return [_outside(column, value) for value in values]

        bounded = _bounded(column, operator, values)
        return bounded or [self._on_days(column, values, field)]

    def _on_days(self, column: BoundColumn, values: Sequence[Any], field: str) -> ExpressionTest:
        zh, en = "in 只能列出固定的日期。", "`in` can list days of the calendar only."
        are_days = all(isinstance(value, date) and is_day(value) for value in values)
        require(are_days, f"{field}.value", zh, en)
        day = exp.cast(tree_column(column), "date", dialect=DIALECT)
        listed = []
        for value in values:
            listed.append(exp.cast(exp.Literal.string(value.isoformat()), "date", dialect=DIALECT))

        test = exp.In(this=day, expressions=listed)
        return ExpressionTest(with_time_zone(test, self.scope.type_in_tree, self.time_zone))

    def _assume_zone(self, column: BoundColumn, type_: str) -> None:
        if kind_of_type(type_) == "timestamptz":
            zone, name = self.time_zone, column_label(column)
            text = Text(
                f"与 {name} 比较的日期按时区 {zone}。", f"Days of {name} are those of {zone}."
            )
            not_null = BoundCondition(column, "not_null")
            decides = FilteredRows(self.operation, column, ((not_null,),))
            self.findings.assume("time_zone", text, self.operation, decides=decides)

    def _assume_whole_days(self, column: BoundColumn, values: Sequence[Any]) -> None:
        name = column_label(column)
        text = Text(
            f"与 {name} 比较的日期表示一整天。",
            f"A day that {name} is compared with means all of that day.",
        )
        days = tuple(_within(column, value) for value in values if is_day(value))
        decides = FilteredRows(self.operation, column, days)
        self.findings.assume("whole_day", text, self.operation, decides=decides)


def _flat(tests: Iterable[RowTest]) -> Iterator[BoundCondition]:
    """Yield the conditions of tests of which one has to hold."""
    for test in tests:
        if isinstance(test, AnyOf):
            yield from test.conditions
        elif isinstance(test, BoundCondition):
            yield test


def _value_of_condition(condition: ComparisonCondition, values: Sequence[Any]) -> Any:
    if isinstance(condition.value, list):
        return tuple(values)
    if values:
        return values[0]

    return None


def _bounded(column: BoundColumn, operator: str, values: Sequence[Any]) -> list[RowTest]:
    """Return tests of whole days by their bounds; empty where several days are listed."""
    first, last = values[0], values[-1]
    if operator == "<=":
        return [BoundCondition(column, "<", next_day(first))]
    if operator == ">":
        return [BoundCondition(column, ">=", next_day(first))]

    is_one_stretch = operator == "between" or len(values) == 1
    if not is_one_stretch:
        return []

    return [BoundCondition(column, ">=", first), _until(column, last)]


def _within(column: BoundColumn, day: Any) -> tuple[RowTest, ...]:
    """Return the tests that a moment is of that day."""
    return (BoundCondition(column, ">=", day), BoundCondition(column, "<", next_day(day)))


def _until(column: BoundColumn, value: Any) -> BoundCondition:
    """Return the condition that a value is at most `value`; a day counts to its end."""
    if is_day(value):
        return BoundCondition(column, "<", next_day(value))

    return BoundCondition(column, "<=", value)


def _outside(column: BoundColumn, value: Any) -> RowTest:
    """Return the test that a moment is not within a day, or not known."""
    if not is_day(value):
        return BoundCondition(column, "!=", value)

    return AnyOf(
        (
            BoundCondition(column, "<", value),
            BoundCondition(column, ">=", next_day(value)),
            BoundCondition(column, "is_null"),
        )
    )


def _meant_values(column: Column, value: str) -> list[str]:
    """Return the stored values that people call so."""
    meanings = column.meaning.values if column.meaning is not None else ()
    values: list[str] = []
    for meaning in meanings:
        if value in meaning.names.all:
            values.append(meaning.value)

    return values
