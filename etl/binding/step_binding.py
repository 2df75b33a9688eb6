"""Operations of an intent, one after the other, as steps of the bound intent."""

from collections.abc import Sequence
from dataclasses import replace

from common.text import Text
from etl.binding.aggregate_binding import AggregateBinding
from etl.binding.binding_state import BindingState
from etl.binding.currency_binding import GROUP, CurrencyQuestions
from etl.binding.intent_checks import CheckedOperation, require
from etl.binding.join_binding import PlannedJoin
from etl.binding.measure_binding import measure_type
from etl.binding.result_binding import ResultBinding
from etl.binding.scope import ResultName, column_label
from etl.binding.target_binding import primary_key_names
from etl.binding.transform_binding import TransformBinding
from etl.meaning.bound import (
    BoundColumn,
    BoundCondition,
    DedupStep,
    FilterStep,
    JoinSourceStep,
    RowTest,
    WindowStep,
    aggregate_of,
    steps_among,
    tie_columns,
)
from etl.meaning.decisions import DroppedRows
from etl.meaning.read_columns import columns_of_tests
from etl.meaning.value_kinds import NUMBERS, kind_of_type
from etl.schemas.parameters import (
    AggregateParameters,
    DedupParameters,
    FilterParameters,
    SortingItem,
    SortOrder,
    TransformParameters,
    WindowParameters,
)

# Whose values depend on the order of rows that the sorting leaves tied
_TIED_WINDOWS = ("row_number", "lag", "lead")
_ADDING_WINDOWS = ("sum", "avg", "share")
# Whose values are amounts where those of their column are.
_AMOUNT_WINDOWS = ("sum", "avg", "lag", "lead")
_COUNTING_WINDOWS = ("row_number", "rank", "dense_rank")


class StepBinding:
    """Binds operations; what they give is added to the state."""

    def __init__(self, state: BindingState) -> None:
        self._state = state
        self._scope = state.scope
        self._findings = state.findings

    def bind(self, operation: CheckedOperation) -> None:
        """Add the steps of an operation that is no join and no sink.

        Raises:
            NotBound
            InvalidRequest: it does not fit those before it, or the columns' types.
        """
        parameters = operation.parameters
        if isinstance(parameters, FilterParameters):
            self._filter(parameters, operation)
        elif isinstance(parameters, TransformParameters):
            TransformBinding(self._state).bind(parameters, operation)
        elif isinstance(parameters, AggregateParameters):
            self._check_no_result("aggregate", operation.order)
            AggregateBinding(self._state, parameters, operation).bind()
        elif isinstance(parameters, WindowParameters):
            self._window(parameters, operation)
        elif isinstance(parameters, DedupParameters):
            self._check_no_result("dedup", operation.order)
            self._dedup(parameters, operation)

    def join(self, planned: Sequence[PlannedJoin], operation: int) -> None:
        """Add the steps of a join.

        Raises:
            NotBound: it comes too late.
        """
        self._check_no_result("join", operation)
        self._state.steps.extend(self._state.tree.step(join) for join in planned)

    def _check_no_result(self, action: str, order: int) -> None:
        if self._scope.result is None:
            return

        raise self._findings.refuse(
            "unsupported",
            Text(
                f"操作 {order}：aggregate 或 window 之后不能再 {action}。",
                f"Operation {order}: no {action} is possible after an aggregate or a window.",
            ),
        )

    # filters

    def _filter(self, parameters: FilterParameters, operation: CheckedOperation) -> None:
        order, field = operation.order, f"{operation.field}.conditions"
        state = self._state
        table = None
        if parameters.table is not None and self._scope.result is None:
            table = self._scope.source_named(parameters.table, order).name

        tests = state.conditions(order).tests(parameters.conditions, field, table)
        if self._scope.result is not None:
            state.steps.append(FilterStep(order, "result", tests))
            return

        state.note_conditions(tests)
        for source, part in self._by_source(tests, order).items():
            if source:
                state.steps.append(FilterStep(order, "table", tuple(part), source))
            else:
                state.steps.append(FilterStep(order, "rows", tuple(part)))

    def _by_source(self, tests: Sequence[RowTest], order: int) -> dict[str, list[RowTest]]:
        """Return the tests by the source that they narrow before its join; "" for joined rows."""
        parts: dict[str, list[RowTest]] = {}
        for test in tests:
            stage, source = self._state.stage_of(columns_of_tests([test]), order)
            parts.setdefault(source if stage == "table" else "", []).append(test)

        return parts

    # dedups

    def _dedup(self, parameters: DedupParameters, operation: CheckedOperation) -> None:
        order = operation.order
        source = self._scope.source_named(parameters.table, order).name
        keys = tuple(self._own_column(text, source, order) for text in parameters.keys)
        sorting = tuple(
            (self._own_column(item.column, source, order), item.order)
            for item in parameters.order_by
        )
        step = DedupStep(order, source, keys, sorting)
        self._assume_order(step)
        if self._state.is_before_join(source):
            self._state.tree.keys[source] = keys
            self._state.steps.append(step)
            return

        self._check_base_once(source, order)
        self._state.steps.append(replace(step, stage="rows"))

    def _own_column(self, text: str, source: str, order: int) -> str:
        """Return the name of a stored column of the source itself."""
        column = self._scope.column(text, order, table=source)
        if column.source != source:
            raise self._findings.refuse(
                "unsupported",
                Text(
                    f"操作 {order}：去重只能用表 {source} 自己的列，不能用 {text}。",
                    f"Operation {order}: a dedup goes by columns of {source} itself, not "
                    f"by {text}.",
                ),
            )

        return column.name

    def _assume_order(self, step: DedupStep) -> None:
        ties = tie_columns(step, self._scope.sources[step.source].table)
        if step.sorting or not ties:
            return

        keys, listed = ", ".join(step.keys), ", ".join(ties)
        text = Text(
            f"{step.source} 按 {keys} 去重时保留 {listed} 最大的一行。",
            f"Of rows of {step.source} with one {keys}, that with the greatest {listed} stays.",
        )
        decides = DroppedRows(step.order, step.source)
        self._findings.assume("dedup_order", text, step.order, decides=decides)

    def _check_base_once(self, source: str, order: int) -> None:
        """Refuse a dedup after joins, unless it is of the base and no join repeats its rows."""
        repeats = any(
            isinstance(step, JoinSourceStep) and step.is_multiple for step in self._state.steps
        )
        if source == self._state.tree.base and not repeats:
            return

        raise self._findings.refuse(
            "unsupported",
            Text(
                f"操作 {order}：{source} 的去重须在它的连接之前。",
                f"Operation {order}: the dedup of {source} has to come before its join.",
            ),
        )

    # windows

    def begin_result(self, order: int) -> None:
        """Make the joined rows the result, where no aggregate has made one.

        Raises:
            NotBound: what a row of the result is, was not chosen yet.
        """
        if self._scope.result is not None:
            return

        state = self._state
        binding = ResultBinding(self._scope, self._findings, state.tree)
        state.steps = binding.with_grain(state.steps, order)
        state.outputs = binding.outputs(state.steps)
        self._scope.result = binding.result_names(state.outputs)

    def _window(self, parameters: WindowParameters, operation: CheckedOperation) -> None:
        order = operation.order
        self.begin_result(order)
        result = self._scope.result or {}
        zh, en = f"名称 {parameters.as_} 已被使用。", f"the name {parameters.as_} is taken."
        require(parameters.as_ not in result, f"{operation.field}.as", zh, en)
        column = None
        if parameters.column is not None and parameters.function not in _COUNTING_WINDOWS:
            column = self._scope.result_name(parameters.column, order)

        named = [self._scope.result_name(one, order) for one in parameters.partition_by]
        partition = tuple(dict.fromkeys((*named, *self._state.apart)))
        if column is not None and parameters.function in _ADDING_WINDOWS:
            partition += self._currency_apart(column, partition, order)

        type_ = self._window_type(parameters, column, operation)
        step = WindowStep(
            order,
            parameters.as_,
            parameters.function,
            column,
            partition,
            self._sorting(parameters, partition, order),
            parameters.offset,
            parameters.rows,
        )
        self._state.steps.append(step)
        money: frozenset[BoundColumn] = frozenset()
        if column is not None and parameters.function in _AMOUNT_WINDOWS:
            money = result[column].money

        result[parameters.as_] = ResultName(type_, money=money)

    def _currency_apart(self, column: str, partition: Sequence[str], order: int) -> tuple[str, ...]:
        """Return the column of currencies by which a window has to be cut, if there is one.

        Raises:
            NotBound: what is to be done with several currencies was not chosen yet.
        """
        state = self._state
        result = self._scope.result or {}
        names = {result_name.column: name for name, result_name in result.items()}
        questions = CurrencyQuestions(self._scope, self._findings, state.catalog, state.fixed)
        for money in sorted(result[column].money, key=column_label):
            currency = questions.currency_of(money, state.tree)
            name = names.get(currency)
            if currency is None or name is None or name in partition:
                continue
            if not questions.is_mixed(currency):
                continue

            chosen = questions.chosen(currency, None, order)
            if chosen == GROUP:
                return (name,)

            condition = BoundCondition(BoundColumn("", name), "=", chosen)
            state.steps.append(FilterStep(order, "result", (condition,)))
            state.fixed.add(currency)

        return ()

    def _window_type(
        self, parameters: WindowParameters, column: str | None, operation: CheckedOperation
    ) -> str:
        if column is None:
            return "bigint"

        type_ = (self._scope.result or {})[column].type
        function = parameters.function
        if function in ("lag", "lead"):
            return type_

        require(
            kind_of_type(type_) in NUMBERS,
            f"{operation.field}.column",
            f"{function} 需要数值，而不是 {type_}。",
            f"{function} needs numbers, not {type_}.",
        )
        if function == "share":
            if kind_of_type(type_) == "float":
                return "double precision"

            return "numeric"

        return measure_type("sum" if function == "sum" else "avg", type_)

    def _sorting(
        self, parameters: WindowParameters, partition: Sequence[str], order: int
    ) -> tuple[tuple[str, SortOrder], ...]:
        """Return the sorting; where ties would leave rows open, with the columns of the grain."""
        sorting = []
        for item in parameters.order_by:
            sorting.append(self._sorted_by(item, order))

        is_tied = parameters.function in _TIED_WINDOWS or parameters.rows is not None
        if is_tied:
            sorted_names = {*partition, *(name for name, _ in sorting)}
            ties: list[tuple[str, SortOrder]] = []
            for name in self._grain():
                if name not in sorted_names:
                    ties.append((name, "asc"))

            sorting.extend(ties)

        return tuple(sorting)

    def _sorted_by(self, item: SortingItem, order: int) -> tuple[str, SortOrder]:
        return self._scope.result_name(item.column, order), item.order

    def _grain(self) -> Sequence[str]:
        """Return the columns of the result that tell its rows apart."""
        state = self._state
        aggregate = aggregate_of(state.steps)
        if aggregate is not None:
            return [key.name for key in aggregate.keys]

        repeated = []
        for step in steps_among(state.steps, JoinSourceStep):
            if step.is_multiple:
                repeated.append(step.right)

        names: list[str] = []
        for source in (state.tree.base, *repeated):
            names.extend(primary_key_names(self._scope, source))

        return names


def is_conditioned(state: BindingState, source: str, columns: Sequence[str]) -> bool:
    """Tell whether the intent's own conditions read one of a source's columns."""
    return any(BoundColumn(source, column) in state.conditioned for column in columns)
