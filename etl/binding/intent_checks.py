"""What is wrong with an intent whatever the catalogue says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import InvalidRequest
from common.text import Text, is_whole
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
_WAYS_TO_TRANSFORM = ("expression", "map", "rate")


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
        if operation.order in orders:
            zh, en = f"序号 {operation.order} 重复。", f"the order {operation.order} stands twice."
            raise invalid(f"{field}.order", zh, en)
        orders.add(operation.order)
        model = PARAMETERS[operation.action]
        read: OperationParameters = read_model(model, operation.parameters, f"{field}.parameters")
        _check_parameters(read, f"{field}.parameters")
        checked.append(CheckedOperation(operation.order, read, f"{field}.parameters"))
    checked.sort(key=lambda one: one.order)
    _check_kinds(checked)
    return tuple(checked)


def invalid(field: str, zh: str, en: str) -> InvalidRequest:
    """Return the error for a part of the request, which `field` names."""
    return InvalidRequest(Text(f"{field} 无效：{zh}", f"{field} is not valid: {en}"), field=field)


def _check_sizes(intent: UserIntent) -> None:
    if len(intent.operations) > MOST_OPERATIONS:
        most = MOST_OPERATIONS
        raise invalid("intent.operations", f"最多 {most} 个操作。", f"{most} are possible at most.")
    if len(intent.data_sources) > MOST_TABLES:
        most = MOST_TABLES
        raise invalid("intent.data_sources", f"最多 {most} 张表。", f"{most} are possible at most.")
    if not intent.data_sources:
        zh, en = "至少需要一张来源表。", "at least one table is needed."
        raise invalid("intent.data_sources", zh, en)


def _check_sources(sources: Sequence[IntentSource]) -> None:
    seen: set[str] = set()
    for place, source in enumerate(sources):
        name = source.alias or source.table_name
        field = f"intent.data_sources[{place}].{'alias' if source.alias else 'table_name'}"
        if not name or not is_whole(name):
            raise invalid(field, "需要一个表名。", "a name of a table is needed.")
        if name in seen:
            zh = f"名称 {name} 重复；请用 alias 区分。"
            raise invalid(field, zh, f"the name {name} stands twice; tell them apart by `alias`.")
        seen.add(name)
    _check_aliases(sources)


def _check_aliases(sources: Sequence[IntentSource]) -> None:
    """Check that no aliases stand for each other's tables, which nobody could read."""
    tables: dict[str, str] = {}
    for source in sources:
        if source.alias is not None and source.alias != source.table_name:
            tables[source.alias] = source.table_name
    for place, source in enumerate(sources):
        alias = source.alias
        if alias is not None and alias in _followed(tables, alias):
            zh = f"别名 {alias} 互相指向对方的表。"
            field = f"intent.data_sources[{place}].alias"
            raise invalid(field, zh, f"the alias {alias} stands for a table in a cycle.")


def _followed(tables: Mapping[str, str], alias: str) -> list[str]:
    """Return the names to which an alias leads."""
    found: list[str] = []
    name = tables.get(alias)
    while name is not None and name not in found:
        found.append(name)
        name = tables.get(name)
    return found


def _check_kinds(operations: Sequence[CheckedOperation]) -> None:
    for model, zh, en in (
        (AggregateParameters, "只能有一个 aggregate。", "only one aggregate is possible."),
        (SinkParameters, "只能有一个 sink。", "only one sink is possible."),
    ):
        found = []
        for one in operations:
            if isinstance(one.parameters, model):
                found.append(one)
        if len(found) > 1:
            raise invalid(found[1].field.removesuffix(".parameters") + ".action", zh, en)


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
        if condition.any is not None:
            for number, one in enumerate(condition.any):
                _check_comparison(one, f"{here}.any[{number}]")
            if condition.column is not None or condition.operator is not None:
                zh = "any 不能与 column、operator 同时给出。"
                raise invalid(f"{here}.any", zh, "it can't stand beside column and operator.")
        else:
            _check_comparison(comparison_of(condition, here), here)


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
        if value is not None:
            raise invalid(here, f"{operator} 不需要值。", f"{operator} takes no value.")
    elif operator in _LISTING:
        _check_listed(value, operator, here)
    elif value is None:
        zh = "缺少值；判断空值请用 is_null。"
        raise invalid(here, zh, "it is missing; is_null tells what has no value.")
    elif isinstance(value, list):
        raise invalid(here, f"{operator} 只需要一个值。", f"{operator} takes one value.")
    elif operator == "column=" and not isinstance(value, str):
        raise invalid(here, "应为列名。", "it must be the name of a column.")


def _check_listed(value: object, operator: str, field: str) -> None:
    if not isinstance(value, list) or not value or len(value) > _MOST_VALUES:
        zh = f"{operator} 需要 1 到 {_MOST_VALUES} 个值的列表。"
        raise invalid(field, zh, f"{operator} takes a list of 1 to {_MOST_VALUES} values.")
    if operator == "between" and len(value) != 2:
        raise invalid(field, "between 需要两个值。", "between takes two values.")
    if None in value:
        zh = "列表中不能有空值；判断空值请用 is_null。"
        raise invalid(field, zh, "it can't hold null; is_null tells what has no value.")


def _check_transform(parameters: TransformParameters, field: str) -> None:
    check_name(parameters.as_, f"{field}.as")
    given = []
    for name in _WAYS_TO_TRANSFORM:
        if getattr(parameters, name) is not None:
            given.append(name)
    if len(given) != 1:
        zh = "需要 expression、map、rate 之一。"
        raise invalid(field, zh, "one of expression, map and rate is needed.")
    if parameters.map is not None and parameters.column is None:
        raise invalid(f"{field}.column", "缺少这一项。", "it is missing.")
    if parameters.rate is not None and parameters.amount is None:
        raise invalid(f"{field}.amount", "缺少这一项。", "it is missing.")
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
        if grouping.column is None and grouping.unit is None:
            raise invalid(f"{here}.column", "缺少这一项。", "it is missing.")
        _check_new_name(grouping.as_, f"{here}.as", names)
    for place, measure in enumerate(parameters.measures):
        here = f"{field}.measures[{place}]"
        _check_measure(measure, here)
        _check_new_name(measure.as_, f"{here}.as", names)
    if not parameters.measures and not parameters.group_by:
        raise invalid(f"{field}.measures", "至少需要一个指标。", "at least one is needed.")
    _check_spine(parameters, field)


def _check_spine(parameters: AggregateParameters, field: str) -> None:
    if not parameters.spine:
        return
    periods = [grouping for grouping in parameters.group_by if grouping.unit is not None]
    if len(periods) != 1:
        zh = "spine 需要恰好一个带 unit 的 group_by。"
        raise invalid(f"{field}.spine", zh, "it needs exactly one group_by with a unit.")


def _check_measure(measure: MeasureItem, field: str) -> None:
    if measure.column is not None and measure.expression is not None:
        zh = "column 与 expression 只能有一个。"
        raise invalid(f"{field}.expression", zh, "it can't stand beside column.")
    is_unsaid = measure.column is None and measure.expression is None
    if measure.function == "count_distinct" and is_unsaid:
        raise invalid(f"{field}.column", "缺少这一项。", "it is missing.")
    if measure.expression is not None:
        check_expression_text(measure.expression, f"{field}.expression")
    check_conditions(measure.filter or (), f"{field}.filter")


def _check_new_name(name: str | None, field: str, names: set[str]) -> None:
    if name is None:
        return
    check_name(name, field)
    if name in names:
        raise invalid(field, f"名称 {name} 重复。", f"the name {name} stands twice.")
    names.add(name)


def check_name(name: str, field: str) -> None:
    """Check that PostgreSQL can take a name."""
    if not is_whole(name) or len(name.encode()) > MOST_NAME_BYTES:
        zh = f"名称最多 {MOST_NAME_BYTES} 字节。"
        raise invalid(field, zh, f"a name has at most {MOST_NAME_BYTES} bytes.")


def fitting_name(name: str) -> str:
    """Return a name that is made from others, cut to what PostgreSQL takes."""
    return name.encode()[:MOST_NAME_BYTES].decode(errors="ignore")


def _check_window(parameters: WindowParameters, field: str) -> None:
    check_name(parameters.as_, f"{field}.as")
    function = parameters.function
    if function in _ORDERED_WINDOWS and not parameters.order_by:
        raise invalid(f"{field}.order_by", f"{function} 需要排序。", f"{function} needs an order.")
    if function not in _RANKING_WINDOWS and parameters.column is None:
        raise invalid(f"{field}.column", f"{function} 需要列。", f"{function} needs a column.")
    if parameters.rows is not None and function not in ("sum", "avg"):
        raise invalid(f"{field}.rows", "只用于 sum 和 avg。", "it is for sum and avg only.")
    if parameters.rows is not None and not parameters.order_by:
        raise invalid(f"{field}.order_by", "rows 需要排序。", "rows needs an order.")


def _check_sink(parameters: SinkParameters, field: str) -> None:
    if parameters.watermark is not None:
        lookback_days(parameters.watermark.lookback, f"{field}.watermark.lookback")
        if parameters.mode == "replace":
            zh = "watermark 只用于 merge 和 append。"
            raise invalid(f"{field}.watermark", zh, "it is for merge and append only.")


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
