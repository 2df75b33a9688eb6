"""Transforms of an intent, bound: expressions, maps of values, conversions of amounts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from common.errors import InvalidRequest
from common.text import Text
from common.values import Column, Table
from etl.binding.binding_state import BindingState
from etl.binding.column_words import begins_validity, is_currency
from etl.binding.intent_checks import CheckedOperation, invalid, require
from etl.binding.scope import MadeColumn, ResultName, bound_columns, column_label, tree_column
from etl.binding.source_tables import tables_named
from etl.binding.value_binding import bind_value
from etl.meaning.bound import (
    BoundColumn,
    BoundCondition,
    BoundSource,
    ExpressionStep,
    MapStep,
    RateStep,
    Scalar,
    Stage,
)
from etl.meaning.decisions import JoinedRows
from etl.meaning.row_expressions import ExpressionRefused, parse_expression, type_of, with_time_zone
from etl.meaning.value_kinds import DAYS, NUMBERS, kind_of_type
from etl.schemas.parameters import RateMatch, RateParameters, TransformParameters

_TYPES_OF_VALUES: Mapping[type, str] = {
    bool: "boolean",
    str: "text",
    int: "bigint",
    Decimal: "numeric",
}


class TransformBinding:
    """Binds transforms; what they give is added to the state."""

    def __init__(self, state: BindingState) -> None:
        self._state = state
        self._scope = state.scope
        self._findings = state.findings

    def bind(self, parameters: TransformParameters, operation: CheckedOperation) -> None:
        """Add the step of a transform, and its column.

        Raises:
            NotBound
            InvalidRequest: a type does not fit, or the name is taken.
        """
        self._check_free(parameters.as_, f"{operation.field}.as")
        if parameters.rate is not None:
            self._convert(parameters, parameters.rate, operation)
        elif parameters.map is not None:
            self._map(parameters, operation)
        else:
            self._compute(parameters, operation)

    def _check_free(self, name: str, field: str) -> None:
        used_names = self._scope.made if self._scope.result is None else self._scope.result
        zh, en = f"名称 {name} 已被使用。", f"the name {name} is taken."
        require(name not in used_names, field, zh, en)

    def _source_name(self, parameters: TransformParameters, order: int) -> str | None:
        """Return the name of the source that the step is about.

        None where it names none, and behind an aggregate, whose result has no tables.
        """
        if parameters.table is None or self._scope.result is not None:
            return None

        return self._scope.source_named(parameters.table, order).name

    def _stage(self, columns: Iterable[BoundColumn], order: int) -> tuple[Stage, str | None]:
        if self._scope.result is not None:
            return "result", None

        stage, source = self._state.stage_of(columns, order)
        return stage, source or None

    def _add(self, made_column: MadeColumn) -> None:
        if self._scope.result is not None:
            self._scope.result[made_column.name] = ResultName(
                made_column.type, money=made_column.money
            )
        else:
            self._scope.made[made_column.name] = made_column

    # expressions

    def _compute(self, parameters: TransformParameters, operation: CheckedOperation) -> None:
        order = operation.order
        parsed = parse_expression(parameters.expression or "")
        table = self._source_name(parameters, order)
        bound = self._scope.bind_expression(parsed, order, table)
        try:
            type_ = type_of(bound, self._scope.type_in_tree)
        except ExpressionRefused as error:
            raise InvalidRequest(error.text, field=f"{operation.field}.expression") from error

        zoned = with_time_zone(bound, self._scope.type_in_tree, self._state.time_zone)
        columns = list(bound_columns(bound))
        stage, source = self._stage(columns, order)
        self._state.steps.append(ExpressionStep(order, stage, parameters.as_, zoned, source))
        money = self._scope.money_in(bound)
        sources = frozenset() if stage == "result" else self._sources(columns)
        self._add(MadeColumn(parameters.as_, type_, stage, sources, money, source))

    def _sources(self, columns: Iterable[BoundColumn]) -> frozenset[str]:
        """Return the sources that columns are computed from, for those from none the base."""
        sources: set[str] = set()
        for column in columns:
            sources |= self._scope.sources_of(column)

        return frozenset(sources or {self._state.tree.base})

    # maps

    def _map(self, parameters: TransformParameters, operation: CheckedOperation) -> None:
        """Bind a transform that replaces stored values by new ones: add its step and its column."""
        order = operation.order
        text = parameters.column or ""
        if self._scope.result is not None:
            column = BoundColumn("", self._scope.result_name(text, order))
        else:
            column = self._scope.column(text, order, table=self._source_name(parameters, order))

        stored_type = self._scope.type_of(column)
        mapping = []
        for stored, new in (parameters.map or {}).items():
            here = f"{operation.field}.map"
            value = bind_value(stored, stored_type, here, self._state.today)
            if not isinstance(value, str | int | Decimal):
                zh = f"类型 {stored_type} 的列不能用 map。"
                raise invalid(here, zh, f"a column of the type {stored_type} can't be mapped.")

            mapping.append((value, _new_value(new, here)))

        default = None
        if parameters.default is not None:
            default = _new_value(parameters.default, f"{operation.field}.default")

        news = [new for _, new in mapping] + ([] if default is None else [default])
        type_ = _common_type(news, f"{operation.field}.map")
        stage, source = self._stage([column], order)
        step = MapStep(order, stage, parameters.as_, column, tuple(mapping), default, source)
        self._state.steps.append(step)
        sources = frozenset() if stage == "result" else self._sources([column])
        self._add(MadeColumn(parameters.as_, type_, stage, sources, owner=source))

    # conversions

    def _convert(
        self, parameters: TransformParameters, rate: RateParameters, operation: CheckedOperation
    ) -> None:
        """Bind a transform that converts amounts of several currencies by the rates of a table.

        Raises:
            NotBound: the amounts are aggregated already, or a column of the rates is not found.
        """
        order = operation.order
        if self._scope.result is not None:
            raise self._findings.refuse(
                "unsupported",
                Text(
                    f"操作 {order}：换算须在 aggregate 之前。",
                    f"Operation {order}: amounts are converted before they are aggregated.",
                ),
            )

        rates = self._rates(rate.table, order)
        table = self._source_name(parameters, order)
        amount = self._scope.column(parameters.amount or "", order, table=table)
        self._check_number(amount, f"{operation.field}.amount")
        owner = amount.source or self._state.tree.base
        rate_currency, currency = self._currencies(rate, rates, owner, order)
        rate_day, day = self._days(rate, rates, owner, order)
        rate_column = self._own(rate.rate_column, rates)
        if rate_column is None:
            raise self._unknown_column(rate.rate_column, rates, order)

        step = RateStep(
            order,
            parameters.as_,
            amount,
            currency,
            day,
            rate.to,
            rates.name,
            rate_currency,
            rate_day,
            rate_column.name,
            _target_currency(rates, rate_currency, rate.to),
        )
        self.add_conversion(order, step, rate.match)

    def add_conversion(self, order: int, step: RateStep, match: RateMatch | None = None) -> None:
        """Add a conversion and its column.

        Args:
            match: which rate holds on a day; None: decided by what the day of rates is called.
        """
        step = replace(step, is_latest=self._is_latest(step, match))
        columns = (step.amount, step.currency, step.day)
        self._state.stage_of(columns, order)
        self._state.steps.append(step)
        if step.rates not in self._state.rates:
            self._state.rates.append(step.rates)

        self._add(MadeColumn(step.name, "numeric", "rows", self._sources(columns)))

    def _is_latest(self, step: RateStep, match: RateMatch | None) -> bool:
        """Tell whether a rate holds until the next one, which is assumed where nobody says."""
        if match is not None:
            return match == "latest"

        day = self._table_of(step.rates).column(step.rate_day)
        if day is not None and begins_validity(day):
            text = Text(
                f"{step.name} 按当天或之前最近的汇率换算。",
                f"{step.name} is converted at the rate of the day, or the latest before it.",
            )
            self._findings.assume("latest_rate", text, step.order, decides=JoinedRows())
            return True

        text = Text(
            f"{step.name} 按当天的汇率换算，当天没有汇率的为空。",
            f"{step.name} is converted at the rate of the day; without one it is NULL.",
        )
        unrated = (
            BoundCondition(step.amount, "not_null"),
            BoundCondition(BoundColumn("", step.name), "is_null"),
        )
        decides = JoinedRows(step.amount.source, (unrated,), amount=tree_column(step.amount))
        self._findings.assume("rate_of_day", text, step.order, decides=decides)
        return False

    def _rates(self, text: str, order: int) -> BoundSource:
        """Return the source of rates, which the intent may not have among its sources."""
        name = self._scope.names.get(text)
        if name is None:
            return self.rate_source(text, order)

        self._scope.visible = [one for one in self._scope.visible if one != name]
        return self._scope.sources[name]

    def rate_source(self, text: str, order: int, schema: str | None = None) -> BoundSource:
        """Return a table of rates as a source, which is added."""
        tables = tables_named(text, schema, self._state.catalog)
        if len(tables) != 1:
            raise self._findings.refuse(
                "unknown_name",
                Text(
                    f"操作 {order}：没有表 {text}。",
                    f"Operation {order}: there is no table {text}.",
                ),
            )

        source = BoundSource(tables[0].name, tables[0])
        self._scope.sources.setdefault(source.name, source)
        self._scope.names.setdefault(text, source.name)
        return source

    def _check_number(self, column: BoundColumn, field: str) -> None:
        type_ = self._scope.type_of(column)
        zh, en = f"应为数值列，而不是 {type_}。", f"it must be a number, not {type_}."
        require(kind_of_type(type_) in NUMBERS, field, zh, en)

    def _own(self, text: str, rates: BoundSource) -> Column | None:
        """Return the column of the table of rates that a name means, if it is one of its own."""
        owner, dot, name = text.partition(".")
        if dot and self._scope.names.get(owner) == rates.name:
            return rates.table.column(name)

        return rates.table.column(text)

    def _currencies(
        self, rate: RateParameters, rates: BoundSource, owner: str, order: int
    ) -> tuple[str, BoundColumn]:
        """Return the column of the currency of a rate, and that of the amount."""
        own = self._own(rate.from_column, rates)
        if own is not None:
            wanted = []
            for one in self._table_of(owner).columns:
                if one.name == own.name:
                    wanted.append(one)

            likely = []
            for one in self._table_of(owner).columns:
                if is_currency(one):
                    likely.append(one)

            return own.name, self._one_of(wanted or likely, owner, "column", order)

        column = self._scope.column(rate.from_column, order)
        currencies = []
        for one in rates.table.columns:
            if is_currency(one):
                currencies.append(one)

        return self._one_of(currencies, rates.name, "column", order).name, column

    def _days(
        self, rate: RateParameters, rates: BoundSource, owner: str, order: int
    ) -> tuple[str, BoundColumn]:
        """Return the column of the day of a rate, and that of the amount."""
        own = self._own(rate.date_column, rates)
        if own is not None:
            return own.name, self.day_of(owner, order)

        column = self._scope.column(rate.date_column, order)
        days = []
        for one in rates.table.columns:
            if kind_of_type(one.type) in DAYS:
                days.append(one)

        return self._one_of(days, rates.name, "date_column", order).name, column

    def day_of(self, owner: str, order: int) -> BoundColumn:
        """Return the date that a source's rows are about.

        Raises:
            NotBound: several are possible.
        """
        table = self._table_of(owner)
        if table.meaning is not None and table.meaning.date_column is not None:
            return BoundColumn(owner, table.meaning.date_column)

        days = []
        for column in table.columns:
            if kind_of_type(column.type) in DAYS:
                days.append(column)

        return self._one_of(days, owner, "date_column", order)

    def _table_of(self, source: str) -> Table:
        return self._scope.sources[source].table

    def _one_of(self, columns: list[Column], source: str, kind: Any, order: int) -> BoundColumn:
        candidates = []
        for column in columns:
            candidates.append(BoundColumn(source, column.name))

        if len(candidates) == 1:
            return candidates[0]
        if not candidates:
            raise self._unknown_column("?", self._scope.sources[source], order)

        prompt = Text(
            f"操作 {order} 使用 {source} 的哪一列？",
            f"Which column of {source} does operation {order} use?",
        )
        by_value = {column_label(one): one for one in candidates}
        topic = f"{source} {order}"
        choices = self._scope.choices_of(by_value.values())
        return by_value[self._findings.choose(kind, topic, prompt, choices, order)]

    def _unknown_column(self, text: str, source: BoundSource, order: int) -> Exception:
        return self._findings.refuse(
            "unknown_name",
            Text(
                f"操作 {order}：{source.name} 没有需要的列（{text}）。",
                f"Operation {order}: {source.name} lacks the column that is needed ({text}).",
            ),
            [f"{source.name}.{column.name}" for column in source.table.columns][:5],
        )


def _target_currency(rates: BoundSource, currency: str, to: str) -> str | None:
    """Return the column of the currency that rates lead to, where they have one."""
    currencies = []
    for column in rates.table.columns:
        is_other_text = column.name != currency and kind_of_type(column.type) == "text"
        holds_currencies = is_currency(column) or to in column.values
        if is_other_text and holds_currencies:
            currencies.append(column.name)

    return currencies[0] if len(currencies) == 1 else None


def _new_value(value: Any, field: str) -> Scalar:
    """Return a value that a map gives."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, str | int | Decimal):
        return value

    raise invalid(
        field, "值应为文本、数字或布尔值。", "it must give texts, numbers, true or false."
    )


def _common_type(values: list[Scalar], field: str) -> str:
    """Return the type of what a map gives."""
    types = {_TYPES_OF_VALUES[type(value)] for value in values}
    if len(types) == 1:
        return types.pop()
    if types == {"bigint", "numeric"}:
        return "numeric"

    raise invalid(field, "值的类型应一致。", "its values must have one type.")
