"""An aggregate of an intent, bound: its grain, its measures, and what may be counted twice."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from common.text import Text
from common.values import PeriodUnit
from etl.binding.binding_state import BindingState
from etl.binding.currency_binding import CONVERT, GROUP, Conversion, CurrencyQuestions
from etl.binding.intent_checks import CheckedOperation, fitting_name, require
from etl.binding.measure_binding import MeasureBinding, TypedMeasure
from etl.binding.request_findings import NotBound
from etl.binding.result_names import name_with_table
from etl.binding.scope import ResultName, column_label, tree_column
from etl.binding.transform_binding import TransformBinding
from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundCondition,
    BoundKey,
    FilterStep,
    RateStep,
    RowTest,
)
from etl.meaning.decisions import JoinedRows
from etl.meaning.value_kinds import DAYS, bare_type, kind_of_type
from etl.schemas.parameters import AggregateParameters, GroupingItem

_NEVER_EQUAL = ("json", "xml", "point")  # types that have no equality
_ADDING = ("sum", "avg", "median")


class AggregateBinding:
    """Binds the aggregate; what it gives is added to the state."""

    def __init__(
        self, state: BindingState, parameters: AggregateParameters, operation: CheckedOperation
    ) -> None:
        self._state = state
        self._scope = state.scope
        self._findings = state.findings
        self._parameters = parameters
        self._operation = operation
        self._order = operation.order
        self._names: set[str] = set()
        self._currencies = CurrencyQuestions(
            state.scope, state.findings, state.catalog, state.fixed
        )

    def bind(self) -> None:
        """Add the step, and the names of the result.

        Raises:
            NotBound
            InvalidRequest: a function or a unit does not fit a column's type.
        """
        measures = self._measures()
        keys = self._keys(measures)
        is_whole = len(measures) == len(self._parameters.measures)
        is_whole = is_whole and len(keys) == len(self._parameters.group_by)
        # The others are gone through as well: all questions are asked in one round
        try:
            measures = self._counted_once(measures, keys)
        except NotBound:
            is_whole = False

        if not self._state.tree.is_open:
            keys, measures = self._in_one_currency(keys, measures)
        if not is_whole:
            raise NotBound

        bound = tuple(measure.measure for measure in measures)
        has_spine = self._parameters.spine
        self._state.steps.append(AggregateStep(self._order, tuple(keys), bound, has_spine))
        self._scope.result = self._result(keys, measures)

    def _result(
        self, keys: Sequence[BoundKey], measures: Sequence[TypedMeasure]
    ) -> dict[str, ResultName]:
        result = {}
        for key in keys:
            is_stored = key.unit is None
            column = key.column if is_stored else None
            result[key.name] = ResultName(self._key_type(key), column)

        for measure in measures:
            result[measure.measure.name] = ResultName(measure.type, money=self._money_of(measure))

        return result

    def _money_of(self, typed: TypedMeasure) -> frozenset[BoundColumn]:
        """Return the stored amounts that a figure is made of, unless all are in one currency."""
        if typed.measure.function not in _ADDING:
            return frozenset()

        tested_columns = set(_held_columns(typed.measure.tests))
        currencies = (self._currencies.currency_of(one, self._state.tree) for one in typed.money)
        return frozenset() if tested_columns.intersection(currencies) else typed.money

    def _key_type(self, key: BoundKey) -> str:
        if key.unit is None:
            return bare_type(self._scope.type_of(key.column))
        if key.unit == "hour":
            return "timestamp without time zone"

        return "date"

    # keys

    def _keys(self, measures: Sequence[TypedMeasure]) -> list[BoundKey]:
        keys = []
        for place, grouping in enumerate(self._parameters.group_by):
            field = f"{self._operation.field}.group_by[{place}]"
            try:
                keys.append(self._key(grouping, measures, field))
            except NotBound:
                continue

        return keys

    def _key(
        self, grouping: GroupingItem, measures: Sequence[TypedMeasure], field: str
    ) -> BoundKey:
        if grouping.column is None:
            column = self._asked_date(measures)
        else:
            column = self._scope.column(grouping.column, self._order)

        self._state.stage_of([column], self._order)
        type_ = self._scope.type_of(column)
        kind = kind_of_type(type_)
        is_comparable = bare_type(type_) not in _NEVER_EQUAL
        require(
            is_comparable,
            f"{field}.column",
            f"类型 {type_} 的列不能用于分组。",
            f"values of the type {type_} can't be grouped by.",
        )
        if grouping.unit is not None:
            zh = f"unit 只用于日期与时间列，而不是 {type_}。"
            en = f"it is for dates and times, not for {type_}."
            require(kind in DAYS, f"{field}.unit", zh, en)

        if grouping.unit is not None and kind == "timestamptz":
            self._assume_zone(column)

        self._assume_null_group(column)
        name = grouping.as_ or self._key_name(column, grouping.unit)
        self._names.add(name)
        return BoundKey(name, column, grouping.unit)

    def _key_name(self, column: BoundColumn, unit: PeriodUnit | None) -> str:
        """Return what a key without a name of its own is called."""
        plain = unit or column.name
        if plain not in self._names:
            return plain
        if unit is not None:
            return self._free(f"{column.name}_{unit}")
        if column.source:
            return self._free(name_with_table(column.source, column.name))

        return self._free(column.name)

    def _free(self, name: str) -> str:
        number, free = 2, fitting_name(name)
        while free in self._names:
            mark = f"_{number}"
            free = fitting_name(name)[: -len(mark)] + mark
            number += 1

        return free

    def _asked_date(self, measures: Sequence[TypedMeasure]) -> BoundColumn:
        """Return the date that is cut: the semantic file's, the only one, or the chosen."""
        sources = [measure.measure.source for measure in measures]
        owners = list(dict.fromkeys((*sources, self._state.tree.base)))
        of_metrics = []
        for measure in measures:
            if measure.date is not None:
                of_metrics.append(measure.date)

        declared = self._said_date(of_metrics, owners)
        if declared is not None:
            return declared

        by_value = {column_label(column): column for column in self._possible_dates(owners)}
        if not by_value:
            raise self._findings.refuse(
                "unknown_name",
                Text("没有可按时间分组的日期列。", "There is no date to group by."),
            )
        if len(by_value) == 1:
            value, column = next(iter(by_value.items()))
            text = Text(f"时间取 {value}。", f"Periods are those of {value}.")
            self._findings.assume("date_column", text, self._order, decides=JoinedRows())
            return column

        prompt = Text("按哪个日期统计？", "By which date?")
        choices = self._scope.choices_of(by_value.values())
        chosen = self._findings.choose("date_column", "date", prompt, choices, self._order)
        return by_value[chosen]

    def _possible_dates(self, owners: Sequence[str]) -> list[BoundColumn]:
        """Return the dates of these sources, else of all that are joined."""
        dates = self._dates(owners)
        if dates:
            return dates

        joined = []
        for name in self._scope.visible:
            if name not in self._state.tree.looked_up:
                joined.append(name)

        return self._dates(joined)

    def _said_date(
        self, of_metrics: Sequence[BoundColumn], owners: Sequence[str]
    ) -> BoundColumn | None:
        """Return the date that the semantic file gives a metric, else a table of the measures."""
        dates = list(of_metrics)
        for owner in owners:
            meaning = self._scope.sources[owner].table.meaning
            if meaning is not None and meaning.date_column is not None:
                dates.append(BoundColumn(owner, meaning.date_column))

        if not dates:
            return None

        value = column_label(dates[0])
        text = Text(
            f"时间按语义文件取 {value}。",
            f"Periods are those of {value}, says the semantic file.",
        )
        self._findings.assume(
            "date_column", text, self._order, decides=JoinedRows(), is_semantic=True
        )
        return dates[0]

    def _dates(self, owners: Sequence[str]) -> list[BoundColumn]:
        dates: list[BoundColumn] = []
        for owner in owners:
            for column in self._scope.sources[owner].table.columns:
                if kind_of_type(column.type) in DAYS:
                    dates.append(BoundColumn(owner, column.name))

        return dates

    def _assume_zone(self, column: BoundColumn) -> None:
        zone, name = self._state.time_zone, column_label(column)
        text = Text(f"{name} 按时区 {zone} 划分时间段。", f"Periods of {name} are those of {zone}.")
        not_null = BoundCondition(column, "not_null")
        self._findings.assume(
            "time_zone", text, self._order, decides=JoinedRows(ways=((not_null,),))
        )

    def _assume_null_group(self, column: BoundColumn) -> None:
        if column.source and self._scope.stored(column).nullable:
            name = column_label(column)
            text = Text(
                f"{name} 为空的行归为一组。", f"Rows without a value in {name} are one group."
            )
            unknown = BoundCondition(column, "is_null")
            decides = JoinedRows(ways=((unknown,),))
            self._findings.assume("null_group", text, self._order, decides=decides)

    # measures

    def _measures(self) -> list[TypedMeasure]:
        state = self._state
        conditions = state.conditions(self._order)
        binding = MeasureBinding(self._scope, self._findings, state.catalog, state.tree, conditions)
        self._names.update(one.as_ for one in self._parameters.group_by if one.as_ is not None)
        self._names.update(
            measure.as_ for measure in self._parameters.measures if measure.as_ is not None
        )
        measures = []
        for place, item in enumerate(self._parameters.measures):
            field = f"{self._operation.field}.measures[{place}]"
            try:
                typed = binding.bind(item, field)
            except NotBound:
                continue

            if item.as_ is None:
                name = self._free(typed.measure.name)
                self._names.add(name)
                typed = replace(typed, measure=replace(typed.measure, name=name))

            measures.append(typed)

        self._binding = binding
        return measures

    def _counted_once(
        self, measures: Sequence[TypedMeasure], keys: Sequence[BoundKey]
    ) -> list[TypedMeasure]:
        """Return the measures as they count rows that belong to several groups."""
        key_sources = frozenset(one for key in keys for one in self._scope.sources_of(key.column))
        counted = []
        for place, typed in enumerate(measures):
            field = f"{self._operation.field}.measures[{place}]"
            try:
                counted.append(self._binding.with_fan_out(typed, key_sources, field))
            except NotBound:
                continue

        if len(counted) < len(measures):
            raise NotBound

        return counted

    # currencies

    def _in_one_currency(
        self, keys: Sequence[BoundKey], measures: Sequence[TypedMeasure]
    ) -> tuple[list[BoundKey], list[TypedMeasure]]:
        """Return keys and measures so that amounts of several currencies are not added up."""
        grouped = list(keys)
        changed = []
        for typed in measures:
            currency = self._mixed_currency(typed, grouped)
            if currency is not None:
                typed = self._resolved(typed, currency, grouped)

            changed.append(typed)

        return grouped, changed

    def _mixed_currency(self, typed: TypedMeasure, keys: Sequence[BoundKey]) -> BoundColumn | None:
        """Return the column of currencies that a measure would add up."""
        if typed.measure.function not in _ADDING:
            return None

        parted = {key.column for key in keys}
        parted.update(_held_columns(typed.measure.tests))
        for money in sorted(typed.money, key=column_label):
            currency = self._currencies.currency_of(money, self._state.tree)
            if currency is None or currency in parted:
                continue
            if self._currencies.is_mixed(currency):
                return currency

        return None

    def _resolved(
        self, typed: TypedMeasure, currency: BoundColumn, keys: list[BoundKey]
    ) -> TypedMeasure:
        """Do what was chosen about a column of currencies; return the measure."""
        conversion = self._conversion(typed, currency)
        chosen = self._currencies.chosen(currency, conversion, self._order)
        if chosen == GROUP:
            name = self._free(currency.name)
            self._names.add(name)
            keys.append(BoundKey(name, currency))
            self._state.apart.append(name)
            return typed

        if chosen == CONVERT and conversion is not None:
            return self._converted_measure(typed, currency, conversion)

        condition = BoundCondition(currency, "=", chosen)
        self._state.note_conditions([condition])
        self._state.steps.append(FilterStep(self._order, "rows", (condition,)))
        return typed

    def _conversion(self, typed: TypedMeasure, currency: BoundColumn) -> Conversion | None:
        """Return how a measure can be converted; only a plain amount can."""
        value = typed.measure.value
        is_plain = len(typed.money) == 1 and value == tree_column(next(iter(typed.money)))
        if is_plain:
            return self._currencies.conversion(currency)

        return None

    def _converted_measure(
        self, typed: TypedMeasure, currency: BoundColumn, conversion: Conversion
    ) -> TypedMeasure:
        (amount,) = typed.money
        transforms = TransformBinding(self._state)
        rates = conversion.rates
        source = transforms.rate_source(rates.name, self._order, rates.schema)
        name = f"{amount.name}_{conversion.to}".lower()
        if name not in self._scope.made:
            step = RateStep(
                self._order,
                name,
                amount,
                currency,
                transforms.day_of(amount.source, self._order),
                conversion.to,
                source.name,
                rates.currency,
                rates.day,
                rates.rate,
            )
            transforms.add_conversion(self._order, step)

        value = tree_column(BoundColumn("", name))
        measure = replace(typed.measure, value=value)
        return TypedMeasure(measure, typed.type, frozenset())


def _held_columns(tests: Iterable[RowTest]) -> Iterator[BoundColumn]:
    """Yield the columns that conditions hold to one value."""
    for test in tests:
        if isinstance(test, BoundCondition) and test.operator == "=":
            yield test.column
