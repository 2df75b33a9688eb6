"""Measures of an intent, bound: whose rows they count, and of which type they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from common.errors import InvalidRequest
from common.meanings import Metric
from common.text import Text
from common.values import Catalog, Table
from etl.binding.condition_binding import ConditionBinding
from etl.binding.intent_checks import fitting_name, require
from etl.binding.join_binding import JoinTree
from etl.binding.request_findings import RequestFindings, choice
from etl.binding.scope import IntentScope, bound_columns, column_label, tree_column
from etl.meaning.bound import BoundColumn, BoundMeasure, ExpressionTest, RowTest
from etl.meaning.decisions import JoinedRows
from etl.meaning.row_expressions import (
    DIALECT,
    ExpressionRefused,
    check_expression,
    parse_expression,
    type_of,
    with_time_zone,
)
from etl.meaning.value_kinds import NUMBERS, bare_type, kind_of_type
from etl.schemas.parameters import MeasureFunction, MeasureItem

_NUMERIC_FUNCTIONS = ("sum", "avg", "median")
_COUNTS = ("count", "count_distinct")
_ALL_ROWS = "*"
_SUM_TYPES = {
    "smallint": "bigint",
    "integer": "bigint",
    "real": "real",
    "double precision": "double precision",
}
"""Types of sums that are not numeric."""
REPEAT = "repeat"
# What a metric of the semantic file may be: one of these over an expression
_METRIC_FUNCTIONS: Mapping[type[exp.Expr], MeasureFunction] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
}


def measure_type(function: MeasureFunction, type_: str) -> str:
    """Return the type of what a function gives for values of a type."""
    type_ = bare_type(type_)
    if function in _COUNTS:
        return "bigint"
    if function in ("min", "max"):
        return type_
    if function == "sum":
        return _SUM_TYPES.get(type_, "numeric")

    is_float = kind_of_type(type_) == "float"
    if is_float:
        return "double precision"

    return "numeric"


@dataclass(frozen=True)
class TypedMeasure:
    """A bound measure.

    Attributes:
        type: the type of its values.
        money: the stored amounts in it.
        date: the one that its periods are about, if it is a metric that says so.
    """

    measure: BoundMeasure
    type: str
    money: frozenset[BoundColumn]
    date: BoundColumn | None = None


class MeasureBinding:
    """Binds the measures of an aggregate."""

    def __init__(
        self,
        scope: IntentScope,
        findings: RequestFindings,
        catalog: Catalog,
        tree: JoinTree,
        conditions: ConditionBinding,
    ) -> None:
        self._scope = scope
        self._findings = findings
        self._catalog = catalog
        self._tree = tree
        self._conditions = conditions
        self._operation = conditions.operation

    def bind(self, item: MeasureItem, field: str) -> TypedMeasure:
        """Return the measure that an item means.

        Raises:
            NotBound
            InvalidRequest: a function does not fit the column's type.
        """
        tests = self._conditions.tests(item.filter or (), f"{field}.filter")
        metric = self._metric(item)
        if metric is not None:
            return self._of_metric(metric, item, tests)

        counted = self._counted_rows(item)
        if counted is not None:
            measure = self._measure(item.as_ or "count", item, "count", counted, None, tests)
            return TypedMeasure(measure, "bigint", frozenset())

        value, name = self._value(item, field)
        return self._typed_measure(item, item.function, value, item.as_ or name, tests, field)

    def _measure(
        self,
        name: str,
        item: MeasureItem,
        function: MeasureFunction,
        source: str,
        value: exp.Expression | None,
        tests: Sequence[RowTest],
    ) -> BoundMeasure:
        return BoundMeasure(name, function, source, value, tuple(tests), item.empty == "zero")

    def _counted_rows(self, item: MeasureItem) -> str | None:
        """Return the source whose rows are counted, where it is rows that are."""
        if item.function != "count" or item.expression is not None:
            return None

        counted = _ALL_ROWS if item.column is None else item.column
        if counted == _ALL_ROWS:
            return self._tree.base

        owner, dot, name = counted.rpartition(".")
        if not dot or name != _ALL_ROWS:
            return None

        return self._scope.source_named(owner, self._operation).name

    def _typed_measure(
        self,
        item: MeasureItem,
        function: MeasureFunction,
        value: exp.Expression,
        name: str,
        tests: Sequence[RowTest],
        field: str,
    ) -> TypedMeasure:
        type_ = self._type_of(value, field)
        self._check_type(function, type_, field)
        source = self.source_of(value)
        measure = self._measure(name, item, function, source, value, tests)
        return TypedMeasure(measure, measure_type(function, type_), self._scope.money_in(value))

    def _type_of(self, value: exp.Expression, field: str) -> str:
        try:
            return type_of(value, self._scope.type_in_tree)
        except ExpressionRefused as error:
            raise InvalidRequest(error.text, field=f"{field}.expression") from error

    def _check_type(self, function: MeasureFunction, type_: str, field: str) -> None:
        kind, here = kind_of_type(type_), f"{field}.column"
        if function in _NUMERIC_FUNCTIONS:
            zh = f"{function} 需要数值，而不是 {type_}。"
            require(kind in NUMBERS, here, zh, f"{function} needs numbers, not {type_}.")
        elif function in ("min", "max"):
            zh = f"{function} 不能用于类型 {type_}。"
            has_order = kind not in ("boolean", "other")
            require(has_order, here, zh, f"{function} does not fit the type {type_}.")

    # what is measured

    def _value(self, item: MeasureItem, field: str) -> tuple[exp.Expression, str]:
        """Return what is aggregated, and what the measure is called without a name of its own."""
        if item.expression is not None:
            parsed = parse_expression(item.expression)
            bound = self._scope.bind_expression(parsed, self._operation)
            self._type_of(bound, field)
            zoned = with_time_zone(bound, self._scope.type_in_tree, self._conditions.time_zone)
            return zoned, item.function

        if item.column is None:
            column = self._asked_measure(item.function)
        else:
            column = self._scope.column(item.column, self._operation, kind="measure")

        name = f"{item.function}_{column.name}"
        return tree_column(column), fitting_name(name)

    def _asked_measure(self, function: str) -> BoundColumn:
        """Return the only column that can be meant, or the one that was chosen."""
        by_value = {}
        for column in self._numeric_columns():
            by_value[column_label(column)] = column

        if not by_value:
            raise self._findings.refuse(
                "unknown_name",
                Text(f"没有可用于 {function} 的数值列。", f"There is no number for {function}."),
            )
        if len(by_value) == 1:
            value, column = next(iter(by_value.items()))
            text = Text(f"{function} 取 {value}。", f"{function} is that of {value}.")
            decides = JoinedRows(column.source, amount=tree_column(column))
            self._findings.assume("measure", text, self._operation, decides=decides)
            return column

        prompt = Text(f"{function} 计算哪一列？", f"Of which column is the {function}?")
        choices = self._scope.choices_of(by_value.values())
        topic = f"{function}?"
        return by_value[self._findings.choose("measure", topic, prompt, choices, self._operation)]

    def _numeric_columns(self) -> list[BoundColumn]:
        """Return the columns of numbers, without those of tables that are only looked up."""
        columns: list[BoundColumn] = []
        for name in self._scope.visible:
            if name not in self._tree.looked_up:
                table = self._scope.sources[name].table
                columns.extend(BoundColumn(name, column) for column in _number_names(table))

        return columns

    # whose rows

    def source_of(self, value: exp.Expression) -> str:
        """Return the source of whose rows each has one value of an expression.

        Raises:
            NotBound: rows of its sources repeat each other.
        """
        involved: set[str] = set()
        for column in bound_columns(value):
            involved.update(self._scope.sources_of(column))

        if not involved:
            return self._tree.base

        self.check_visible(involved)
        order = list(self._scope.sources)
        if self._tree.is_open:
            return min(involved, key=order.index)

        for name in sorted(involved, key=order.index):
            if involved <= self._tree.single(name):
                return name

        listed = ", ".join(sorted(involved))
        raise self._findings.refuse(
            "unsupported",
            Text(
                f"操作 {self._operation} 的表达式使用 {listed} 的列，而它们的行互相重复。",
                f"Operation {self._operation} computes with columns of {listed}, whose rows "
                f"repeat each other.",
            ),
        )

    def check_visible(self, sources: set[str]) -> None:
        """Refuse columns of tables that were only looked up."""
        for name in sources & self._tree.looked_up:
            raise self._findings.refuse(
                "unsupported",
                Text(
                    f"{name} 只用于 semi 或 anti 连接，其列不能使用。",
                    f"{name} is only looked up (semi, anti), so its columns can't be used.",
                ),
            )

    # repeated rows

    def with_fan_out(
        self, typed: TypedMeasure, key_sources: frozenset[str], field: str
    ) -> TypedMeasure:
        """Return the measure as it is to be counted where a row belongs to several groups.

        Raises:
            NotBound: it was not chosen yet.
        """
        measure = typed.measure
        if self._tree.is_open or measure.function in ("min", "max", "count_distinct"):
            return typed
        if key_sources <= self._tree.single(measure.source):
            return typed

        finer = self._finer(measure, key_sources)
        prompt = Text(
            f"“{measure.name}”：{measure.source} 的一行属于多个分组，怎样计算？",
            f"“{measure.name}”: a row of {measure.source} belongs to several groups. "
            f"How does it count?",
        )
        repeat = Text("在每个分组中都计入", "in each of its groups")
        choices = [choice(REPEAT, self._findings.shown(repeat))]
        choices.extend(self._scope.choices_of(finer))
        topic = measure.name
        chosen = self._findings.choose("fan_out", topic, prompt, choices, self._operation)
        for column in finer:
            if column_label(column) == chosen:
                return self._of_finer(typed, column, field)

        return typed

    def _finer(self, measure: BoundMeasure, key_sources: frozenset[str]) -> list[BoundColumn]:
        """Return columns that could be counted in the measure's place, of sources with finer rows.

        Each of their rows has one row of the measure's source, and is in one group.
        """
        needed = key_sources | {measure.source}
        finer_keys: list[BoundColumn] = []
        for name, source in self._scope.sources.items():
            if name == measure.source or name in self._tree.looked_up:
                continue
            if needed <= self._tree.single(name):
                for column in _countable(source.table, measure):
                    finer_keys.append(BoundColumn(name, column))

        return finer_keys

    def _of_finer(self, typed: TypedMeasure, column: BoundColumn, field: str) -> TypedMeasure:
        """Return a measure over a column of finer rows in place of its own."""
        measure = typed.measure
        value = None if measure.function == "count" else tree_column(column)
        finer = BoundMeasure(
            measure.name,
            measure.function,
            column.source,
            value,
            measure.tests,
            measure.is_zero_when_empty,
        )
        if value is None:
            return TypedMeasure(finer, "bigint", frozenset())

        type_ = measure_type(measure.function, self._type_of(value, field))
        return TypedMeasure(finer, type_, self._scope.money_in(value))

    # metrics of the semantic file

    def _metric(self, item: MeasureItem) -> Metric | None:
        """Return the metric of the semantic file that a measure's column names."""
        name = item.column
        if name is None:
            return None

        tables = set()
        for source in self._scope.visible:
            table = self._scope.sources[source].table
            if table.column(name) is not None:
                return None

            tables.add(table.key)

        metrics = []
        for metric in self._catalog.metrics:
            if metric.table in tables and name in (metric.name, *metric.names.all):
                metrics.append(metric)

        if len(metrics) != 1:
            return None

        return metrics[0]

    def _of_metric(
        self, metric: Metric, item: MeasureItem, tests: Sequence[RowTest]
    ) -> TypedMeasure:
        function, value = self._metric_figure(metric)
        name = item.as_ or metric.name
        source = self._source_of_table(metric.table)
        all_tests = list(tests)
        if metric.filter is not None:
            all_tests.append(ExpressionTest(self._own_expression(metric.filter, source)))

        text = Text(
            f"“{name}”按语义文件中的指标 {metric.name} 计算。",
            f"“{name}” is the metric {metric.name} of the semantic file.",
        )
        if value is None:
            self._assume_metric(text, JoinedRows(source, (tuple(all_tests),)))
            measure = self._measure(name, item, "count", source, None, all_tests)
            return TypedMeasure(measure, "bigint", frozenset(), _date_of(metric, source))

        bound = self._scope.bind_expression(value, self._operation, source)
        bound = with_time_zone(bound, self._scope.type_in_tree, self._conditions.time_zone)
        amount = bound if function in _NUMERIC_FUNCTIONS else None
        self._assume_metric(text, JoinedRows(source, (tuple(all_tests),), amount=amount))
        measure = self._measure(name, item, function, source, bound, all_tests)
        type_ = measure_type(function, type_of(bound, self._scope.type_in_tree))
        money = self._scope.money_in(bound)
        return TypedMeasure(measure, type_, money, _date_of(metric, source))

    def _assume_metric(self, text: Text, decides: JoinedRows) -> None:
        self._findings.assume("metric", text, self._operation, decides=decides, is_semantic=True)

    def _own_expression(self, text: str, source: str) -> exp.Expression:
        bound = self._scope.bind_expression(parse_expression(text), self._operation, source)
        return with_time_zone(bound, self._scope.type_in_tree, self._conditions.time_zone)

    def _source_of_table(self, key: tuple[str, str]) -> str:
        names = []
        for name in self._scope.visible:
            if self._scope.sources[name].table.key == key:
                names.append(name)

        return names[0]

    def _metric_figure(self, metric: Metric) -> tuple[MeasureFunction, exp.Expression | None]:
        """Return the function and the expression of a metric; no expression for count(*).

        Raises:
            NotBound: it is more than one function over an expression.
        """
        refusal = Text(
            f"指标 {metric.name} 的表达式不是单个聚合函数，请用 function 与 expression 写出。",
            f"The metric {metric.name} is more than one aggregate; write it with function and "
            f"expression.",
        )
        try:
            figure = read_aggregate(metric.expression)
        except ExpressionRefused as error:
            raise self._findings.refuse("unsupported", refusal) from error

        if figure is None:
            raise self._findings.refuse("unsupported", refusal)

        return figure


def _date_of(metric: Metric, source: str) -> BoundColumn | None:
    if metric.date_column is None:
        return None

    return BoundColumn(source, metric.date_column)


def read_aggregate(text: str) -> tuple[MeasureFunction, exp.Expression | None] | None:
    """Return the function and the expression of one aggregate; None for anything else.

    Raises:
        ExpressionRefused: the expression within it is not allowed.
    """
    parsed: exp.Expression = exp.maybe_parse(f"SELECT {text}", dialect=DIALECT)
    if len(parsed.expressions) != 1:
        return None

    (figure,) = parsed.expressions
    function = _METRIC_FUNCTIONS.get(type(figure))
    if function is None:
        return None

    value = figure.this
    if isinstance(value, exp.Star):
        return function, None
    if isinstance(value, exp.Distinct):
        is_one_counted = function == "count" and len(value.expressions) == 1
        if not is_one_counted:
            return None

        function, value = "count_distinct", value.expressions[0]

    check_expression(value)
    return function, value


def _countable(table: Table, measure: BoundMeasure) -> list[str]:
    """Return columns by which a finer measure can be taken: numbers, or for counts the key."""
    if measure.function == "count":
        return list(table.primary_key[:1])

    return _number_names(table)


def _number_names(table: Table) -> list[str]:
    """Return the names of the columns of numbers that are no keys."""
    keys = set(table.primary_key)
    for key in table.foreign_keys:
        keys.update(key.columns)

    names: list[str] = []
    for column in table.columns:
        is_number = kind_of_type(column.type) in NUMBERS
        if is_number and column.name not in keys:
            names.append(column.name)

    return names
