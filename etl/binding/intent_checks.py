"""Checks of an intent that need no catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import InvalidRequest
from common.text import Text, is_whole
from etl.meaning.evaluation import known_values
from etl.meaning.row_expressions import ExpressionRefused, parse_expression
from etl.schemas.parameters import (
    PARAMETERS,
    AggregateParameters,
    ComparisonCondition,
    FilterCondition,
    FilterParameters,
    MeasureItem,
    OperationParameters,
    SinkParameters,
    TransformParameters,
    WindowParameters,
)
from etl.schemas.reading import read_model
from etl.schemas.requirement import IntentSource, UserIntent

MOST_OPERATIONS = 60
MOST_TABLES = 40
MOST_NAME_BYTES = 63
_VALUELESS = ("is_null", "not_null", "is_true", "is_false")
_LISTING = ("in", "not_in", "between")
_MOST_VALUES = 1000
_ORDERED_WINDOWS = ("row_number", "rank", "dense_rank", "lag", "lead")
_RANKING_WINDOWS = ("row_number", "rank", "dense_rank")
_SINGLE: Mapping[type, str] = {AggregateParameters: "aggregate", SinkParameters: "sink"}
_FRAMED_WINDOWS = ("sum", "avg")


@dataclass(frozen=True)
class CheckedOperation:
    """An operation with its parameters as a model; `field` is what the request calls them."""

    order: int
    parameters: OperationParameters
    field: str


def check_intent(intent: UserIntent) -> tuple[CheckedOperation, ...]:
    """Check all of an intent that needs no catalogue; return its operations in their order.

    Raises:
        InvalidRequest: `field` names the part, `intent.operations[2].parameters.on` for example.
    """
    _check_sizes(intent)
    _check_sources(intent.data_sources)
    orders: set[int] = set()
    checked = []
    for place, operation in enumerate(intent.operations):
        field = f"intent.operations[{place}]"
        order = operation.order
        require(
            order not in orders,
            f"{field}.order",
            f"序号 {order} 重复。",
            f"the order {order} stands twice.",
        )
        orders.add(order)
        model = PARAMETERS[operation.action]
        read: OperationParameters = read_model(model, operation.parameters, f"{field}.parameters")
        _check_parameters(read, f"{field}.parameters")
        checked.append(CheckedOperation(operation.order, read, f"{field}.parameters"))

    checked.sort(key=lambda checked_operation: checked_operation.order)
    _check_kinds(checked)
    return tuple(checked)


def invalid(field: str, zh: str, en: str) -> InvalidRequest:
    """Return the error for a part of the request, which `field` names."""
    return InvalidRequest(Text(f"{field} 无效：{zh}", f"{field} is not valid: {en}"), field=field)


def require(holds: bool, field: str, zh: str, en: str) -> None:
    """Check a part of the request, which `field` names; the texts say what is wrong with it.

    Raises:
        InvalidRequest: the condition does not hold.
    """
    if not holds:
        raise invalid(field, zh, en)


def _require_given(value: object, field: str) -> None:
    require(value is not None, field, "缺少这一项。", "it is missing.")


def _check_sizes(intent: UserIntent) -> None:
    require(
        len(intent.operations) <= MOST_OPERATIONS,
        "intent.operations",
        f"最多 {MOST_OPERATIONS} 个操作。",
        f"{MOST_OPERATIONS} are possible at most.",
    )
    require(
        len(intent.data_sources) <= MOST_TABLES,
        "intent.data_sources",
        f"最多 {MOST_TABLES} 张表。",
        f"{MOST_TABLES} are possible at most.",
    )
    require(
        len(intent.data_sources) > 0,
        "intent.data_sources",
        "至少需要一张来源表。",
        "at least one table is needed.",
    )


def _check_sources(sources: Sequence[IntentSource]) -> None:
    seen: set[str] = set()
    for place, source in enumerate(sources):
        part, name = "alias", source.alias
        if not name:
            part, name = "table_name", source.table_name

        field = f"intent.data_sources[{place}].{part}"
        is_name = bool(name) and is_whole(name)
        require(is_name, field, "需要一个表名。", "a name of a table is needed.")
        require(
            name not in seen,
            field,
            f"名称 {name} 重复；请用 alias 区分。",
            f"the name {name} stands twice; tell them apart by `alias`.",
        )
        seen.add(name)

    _check_aliases(sources)


def _check_aliases(sources: Sequence[IntentSource]) -> None:
    """Check that no aliases stand for each other's tables, which nobody could read."""
    tables: dict[str, str] = {}
    for source in sources:
        if source.alias is not None and source.alias != source.table_name:
            tables[source.alias] = source.table_name

    for place, source in enumerate(sources):
        alias = source.alias or ""
        require(
            alias not in _followed(tables, alias),
            f"intent.data_sources[{place}].alias",
            f"别名 {alias} 互相指向对方的表。",
            f"the alias {alias} stands for a table in a cycle.",
        )


def _followed(tables: Mapping[str, str], alias: str) -> list[str]:
    """Return the names to which an alias leads."""
    followed: list[str] = []
    name = tables.get(alias)
    while name is not None and name not in followed:
        followed.append(name)
        name = tables.get(name)

    return followed


def _check_kinds(operations: Sequence[CheckedOperation]) -> None:
    """Check that no operation stands twice of which one alone is possible."""
    seen: set[type] = set()
    for operation in operations:
        kind = type(operation.parameters)
        if kind not in _SINGLE:
            continue

        name = _SINGLE[kind]
        field = operation.field.removesuffix(".parameters") + ".action"
        require(kind not in seen, field, f"只能有一个 {name}。", f"only one {name} is possible.")
        seen.add(kind)


def _check_parameters(parameters: OperationParameters, field: str) -> None:
    if isinstance(parameters, FilterParameters):
        check_conditions(parameters.conditions, f"{field}.conditions")
    elif isinstance(parameters, TransformParameters):
        _check_transform(parameters, field)
    elif isinstance(parameters, AggregateParameters):
        _check_aggregate(parameters, field)
    elif isinstance(parameters, WindowParameters):
        _check_window(parameters, field)
    elif isinstance(parameters, SinkParameters):
        _check_sink(parameters, field)


def check_conditions(conditions: Sequence[FilterCondition], field: str) -> None:
    """Check that each condition is a comparison or alternatives, with values as they need."""
    for place, condition in enumerate(conditions):
        here = f"{field}[{place}]"
        if condition.any is None:
            _check_comparison(comparison_of(condition, here), here)
            continue

        for number, alternative in enumerate(condition.any):
            _check_comparison(alternative, f"{here}.any[{number}]")

        is_alone = condition.column is None and condition.operator is None
        zh = "any 不能与 column、operator 同时给出。"
        require(is_alone, f"{here}.any", zh, "it can't stand beside column and operator.")


def comparison_of(condition: FilterCondition, field: str) -> ComparisonCondition:
    """Return the comparison that a condition without alternatives is."""
    if condition.column is None or condition.operator is None:
        missing = "column" if condition.column is None else "operator"
        raise invalid(f"{field}.{missing}", "缺少这一项。", "it is missing.")

    return ComparisonCondition(
        column=condition.column, operator=condition.operator, value=condition.value
    )


def _check_comparison(condition: ComparisonCondition, field: str) -> None:
    value, operator = condition.value, condition.operator
    here = f"{field}.value"
    if operator in _VALUELESS:
        zh, en = f"{operator} 不需要值。", f"{operator} takes no value."
        require(value is None, here, zh, en)
    elif operator in _LISTING:
        _check_listed(value, operator, here)
    else:
        _check_single(value, operator, here)


def _check_single(value: object, operator: str, field: str) -> None:
    zh, en = "缺少值；判断空值请用 is_null。", "it is missing; is_null tells what has no value."
    require(value is not None, field, zh, en)
    zh, en = f"{operator} 只需要一个值。", f"{operator} takes one value."
    require(not isinstance(value, list), field, zh, en)
    if operator == "column=":
        zh, en = "应为列名。", "it must be the name of a column."
        require(isinstance(value, str), field, zh, en)


def _check_listed(value: object, operator: str, field: str) -> None:
    listed = value if isinstance(value, list) else []
    require(
        1 <= len(listed) <= _MOST_VALUES,
        field,
        f"{operator} 需要 1 到 {_MOST_VALUES} 个值的列表。",
        f"{operator} takes a list of 1 to {_MOST_VALUES} values.",
    )
    if operator == "between":
        require(len(listed) == 2, field, "between 需要两个值。", "between takes two values.")

    require(
        None not in listed,
        field,
        "列表中不能有空值；判断空值请用 is_null。",
        "it can't hold null; is_null tells what has no value.",
    )


def _check_transform(parameters: TransformParameters, field: str) -> None:
    check_name(parameters.as_, f"{field}.as")
    ways = (parameters.expression, parameters.map, parameters.rate)
    zh, en = "需要 expression、map、rate 之一。", "one of expression, map and rate is needed."
    require(len(known_values(ways)) == 1, field, zh, en)
    if parameters.map is not None:
        _require_given(parameters.column, f"{field}.column")
    if parameters.rate is not None:
        _require_given(parameters.amount, f"{field}.amount")
    if parameters.expression is not None:
        check_expression_text(parameters.expression, f"{field}.expression")


def check_expression_text(text: str, field: str) -> None:
    """Check that an expression is allowed, whatever its columns are."""
    try:
        parse_expression(text)
    except ExpressionRefused as error:
        raise InvalidRequest(error.text, field=field) from error


def _check_aggregate(parameters: AggregateParameters, field: str) -> None:
    names: set[str] = set()
    for place, grouping in enumerate(parameters.group_by):
        here = f"{field}.group_by[{place}]"
        if grouping.unit is None:
            _require_given(grouping.column, f"{here}.column")

        _check_new_name(grouping.as_, f"{here}.as", names)

    for place, measure in enumerate(parameters.measures):
        here = f"{field}.measures[{place}]"
        _check_measure(measure, here)
        _check_new_name(measure.as_, f"{here}.as", names)

    if not parameters.group_by:
        zh, en = "至少需要一个指标。", "at least one is needed."
        require(len(parameters.measures) > 0, f"{field}.measures", zh, en)

    _check_spine(parameters, field)


def _check_spine(parameters: AggregateParameters, field: str) -> None:
    if not parameters.spine:
        return

    units = known_values(grouping.unit for grouping in parameters.group_by)
    require(
        len(units) == 1,
        f"{field}.spine",
        "spine 需要恰好一个带 unit 的 group_by。",
        "it needs exactly one group_by with a unit.",
    )


def _check_measure(measure: MeasureItem, field: str) -> None:
    if measure.expression is None:
        if measure.function == "count_distinct":
            _require_given(measure.column, f"{field}.column")
    else:
        zh, en = "column 与 expression 只能有一个。", "it can't stand beside column."
        require(measure.column is None, f"{field}.expression", zh, en)
        check_expression_text(measure.expression, f"{field}.expression")

    check_conditions(measure.filter or (), f"{field}.filter")


def _check_new_name(name: str | None, field: str, names: set[str]) -> None:
    if name is None:
        return

    check_name(name, field)
    zh, en = f"名称 {name} 重复。", f"the name {name} stands twice."
    require(name not in names, field, zh, en)
    names.add(name)


def check_name(name: str, field: str) -> None:
    """Check that PostgreSQL can take a name."""
    is_possible = is_whole(name) and len(name.encode()) <= MOST_NAME_BYTES
    zh = f"名称最多 {MOST_NAME_BYTES} 字节。"
    require(is_possible, field, zh, f"a name has at most {MOST_NAME_BYTES} bytes.")


def fitting_name(name: str) -> str:
    """Return a name that is made from others, cut to what PostgreSQL takes."""
    return name.encode()[:MOST_NAME_BYTES].decode(errors="ignore")


def _check_window(parameters: WindowParameters, field: str) -> None:
    check_name(parameters.as_, f"{field}.as")
    function = parameters.function
    has_order = bool(parameters.order_by)
    if function in _ORDERED_WINDOWS:
        zh, en = f"{function} 需要排序。", f"{function} needs an order."
        require(has_order, f"{field}.order_by", zh, en)

    if function not in _RANKING_WINDOWS:
        zh, en = f"{function} 需要列。", f"{function} needs a column."
        require(parameters.column is not None, f"{field}.column", zh, en)

    if parameters.rows is not None:
        zh, en = "只用于 sum 和 avg。", "it is for sum and avg only."
        require(function in _FRAMED_WINDOWS, f"{field}.rows", zh, en)
        zh, en = "rows 需要排序。", "rows needs an order."
        require(has_order, f"{field}.order_by", zh, en)


def _check_sink(parameters: SinkParameters, field: str) -> None:
    if parameters.watermark is None:
        return

    lookback_days(parameters.watermark.lookback, f"{field}.watermark.lookback")
    zh, en = "watermark 只用于 merge 和 append。", "it is for merge and append only."
    require(parameters.mode != "replace", f"{field}.watermark", zh, en)


_MOST_DIGITS = 4  # of the number of units of a lookback
_DAYS_OF = {"day": 1, "week": 7, "month": 31, "year": 366}


def lookback_days(text: str, field: str) -> int:
    """Return the days that `3 days` or `1 month` are at most.

    Raises:
        InvalidRequest: it is none of these.
    """
    count, _, unit = text.strip().partition(" ")
    days = _DAYS_OF.get(unit.strip().lower().removesuffix("s"))
    is_count = count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS
    if days is None or not is_count:
        zh = "应为 3 days、2 weeks、1 month 这样的时间。"
        raise invalid(field, zh, "it must be a time such as 3 days, 2 weeks or 1 month.")

    return int(count) * days
