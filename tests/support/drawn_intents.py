"""Random bound intents over the shop: joins, filters, computed columns, groups, windows, dedups."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from etl.meaning.bound import (
    AggregateStep,
    AnyOf,
    BoundCondition,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    BoundSource,
    ExpressionTest,
    RelativeDay,
    Step,
)
from etl.meaning.row_expressions import parse_expression
from tests.support.bound_intents import (
    TABLES,
    column,
    compute,
    dedup,
    intent,
    join,
    keep,
    mapped,
    rate,
    window,
)

ZONE = "America/New_York"
_DAY = date(2024, 2, 1)
_TESTS: dict[str, list[Any]] = {
    "orders": [
        BoundCondition(column("orders.status"), "!=", "void"),
        BoundCondition(column("orders.status"), "not_in", ("void", "{{ lost }}")),
        BoundCondition(column("orders.status"), "prefix", "pa"),
        BoundCondition(column("orders.status"), "suffix", "id"),
        BoundCondition(column("orders.currency"), "contains", "U"),
        BoundCondition(column("orders.amount"), "between", (Decimal("-1.5"), 6)),
        BoundCondition(column("orders.ordered_on"), ">=", RelativeDay("first_day", _DAY)),
        BoundCondition(column("orders.paid_at"), "<", date(2024, 3, 1)),
        BoundCondition(column("orders.paid_at"), "not_null"),
        BoundCondition(column("orders.id"), "column=", column("orders.user_id")),
        AnyOf(
            (
                BoundCondition(column("orders.currency"), "=", "EUR"),
                BoundCondition(column("orders.user_id"), "is_null"),
            )
        ),
        ExpressionTest(parse_expression("orders.amount / orders.user_id > 1 OR orders.id < 3")),
    ],
    "items": [
        BoundCondition(column("items.quantity"), ">", 1),
        BoundCondition(column("items.quantity"), "in", (1, 2)),
        BoundCondition(column("items.product"), "!=", "pen"),
    ],
    "parts": [BoundCondition(column("parts.quantity"), "<", 3)],
    "users": [
        BoundCondition(column("users.is_vip"), "is_true"),
        BoundCondition(column("users.city"), "!=", "Ulm"),
    ],
}
_KEYS = {
    "orders": [
        BoundKey("status", column("orders.status")),
        BoundKey("month", column("orders.paid_at"), "month"),
        BoundKey("week", column("orders.ordered_on"), "week"),
        BoundKey("hour", column("orders.paid_at"), "hour"),
        BoundKey("Quarter", column("orders.ordered_on"), "quarter"),
    ],
    "items": [BoundKey("product", column("items.product"))],
    "parts": [],
    "users": [
        BoundKey("city", column("users.city")),
        BoundKey("is_vip", column("users.is_vip")),
    ],
}
_FIGURES: dict[str, list[tuple[Any, str | None]]] = {
    "orders": [
        ("sum", "orders.amount"),
        ("avg", "orders.amount"),
        ("median", "orders.amount"),
        ("min", "orders.paid_at"),
        ("count", None),
        ("count", "orders.status"),
        ("count_distinct", "orders.user_id"),
        ("sum", "COALESCE(orders.amount, 5) / orders.user_id"),
    ],
    "items": [
        ("sum", "items.quantity * items.price"),
        ("sum", "items.quantity / 2"),
        ("median", "items.quantity"),
        ("max", "items.product"),
        ("count", None),
        ("sum", "COALESCE(items.quantity, 7)"),
    ],
    "parts": [("sum", "parts.quantity"), ("count", None), ("count_distinct", "parts.product")],
    "users": [("count", None), ("count_distinct", "users.city"), ("max", "users.city")],
}
_HOWS = st.sampled_from(["left", "left", "inner", "semi", "anti"])


@st.composite
def drawn_intents(draw: st.DrawFn) -> BoundIntent:
    """Return any intent over the shop that the binding could make."""
    steps, sources, joined = _joined(draw)
    if draw(st.booleans()) and "rates" not in sources and "orders" in joined:
        steps.append(rate("EUR"))
        sources.append("rates")
    for source in joined:
        if draw(st.integers(0, 3)) == 0:
            steps.append(keep(*_tests(draw, source)))
    if "orders" in joined and draw(st.booleans()):
        steps.append(compute("net", "orders.amount * 2 - COALESCE(orders.user_id, 1)"))
        steps.append(compute("part", "net / orders.user_id"))
        if draw(st.booleans()):
            steps.append(keep(BoundCondition(column("net"), "<=", 9)))
    if draw(st.booleans()):
        return _grouped(draw, steps, sources, joined)
    return _wide(draw, steps, sources, joined)


def _intent(*steps: Step, sources: list[str], **more: Any) -> BoundIntent:
    """Return an intent in which `parts` is the table of items once more."""
    known = [name for name in sources if name != "parts"]
    bound = intent(*steps, sources=known, time_zone=ZONE, **more)
    if "parts" not in sources:
        return bound
    return replace(bound, sources=(*bound.sources, BoundSource("parts", TABLES["items"])))


def _joined(draw: st.DrawFn) -> tuple[list[Step], list[str], list[str]]:
    """Return steps of sources and joins, all sources, and those that combinations have rows of."""
    base, joins = draw(st.sampled_from(list(_JOINS.items())))
    sources, joined = [base[0]], [base[0]]
    steps: list[Step] = _table_steps(draw, base[0])
    for right, left, on, is_multiple in joins:
        if left not in joined or right in sources or draw(st.integers(0, 3)) == 0:
            continue
        how = draw(_HOWS)
        steps.extend(_table_steps(draw, right))
        steps.append(join(right, on, how, is_multiple=is_multiple))
        sources.append(right)
        if how in ("left", "inner"):
            joined.append(right)
    is_single = not any(step.is_multiple for step in steps if hasattr(step, "is_multiple"))
    if is_single and draw(st.integers(0, 3)) == 0:
        name = base[0]
        steps.append(dedup(name, [_DEDUPS[name]], [("id", "asc")], "rows"))
    return steps, sources, joined


_DEDUPS = {"orders": "user_id", "users": "city", "items": "order_id", "parts": "order_id"}
_BY_USER = ("orders.user_id", "users.id")
_BY_ORDER = ("orders.id", "items.order_id")
_JOINS: dict[tuple[str], list[tuple[str, str, tuple[str, str], bool]]] = {
    ("orders",): [
        ("users", "orders", _BY_USER, False),
        ("items", "orders", _BY_ORDER, True),
        ("parts", "orders", ("orders.id", "parts.order_id"), True),
    ],
    ("users",): [
        ("orders", "users", _BY_USER[::-1], True),
        ("items", "orders", _BY_ORDER, True),
    ],
    ("items",): [
        ("orders", "items", _BY_ORDER[::-1], False),
        ("users", "orders", _BY_USER, False),
    ],
}


def _table_steps(draw: st.DrawFn, source: str) -> list[Step]:
    steps: list[Step] = []
    if draw(st.integers(0, 3)) == 0:
        steps.append(keep(*_tests(draw, source), source=source))
    if draw(st.integers(0, 3)) == 0:
        steps.append(dedup(source, [_DEDUPS[source]], [("id", "desc")]))
    if source == "orders" and draw(st.booleans()):
        mapping = {"paid": "yes {{ x }}", "void": "it's no"}
        more = {"stage": "table", "source": source, "default": draw(st.sampled_from([None, "?"]))}
        steps.append(mapped("shown", "orders.status", mapping, **more))
    return steps


def _tests(draw: st.DrawFn, source: str) -> list[Any]:
    return draw(st.lists(st.sampled_from(_TESTS[source]), min_size=1, max_size=2, unique=True))


def _made(steps: list[Step]) -> list[str]:
    return [step.name for step in steps if hasattr(step, "name")]


def _grouped(
    draw: st.DrawFn, steps: list[Step], sources: list[str], joined: list[str]
) -> BoundIntent:
    keys = [key for source in joined for key in _KEYS[source]]
    if "shown" in _made(steps) and "orders" in joined:
        keys.append(BoundKey("shown", column("shown")))
    chosen = draw(st.lists(st.sampled_from(keys), max_size=3, unique=True))
    periods = [key for key in chosen if key.unit and key.unit != "hour"]
    has_spine = len([key for key in chosen if key.unit]) == len(periods) == 1
    measures = _measures(draw, steps, joined)
    step = AggregateStep(5, tuple(chosen), tuple(measures), has_spine and draw(st.booleans()))
    names = [key.name for key in chosen] + [measure.name for measure in measures]
    steps.append(step)
    steps.extend(_result_steps(draw, chosen, measures))
    names.extend(name for name in _made(steps[steps.index(step) :]) if name not in names)
    return _intent(*steps, sources=sources, columns=names)


def _measures(draw: st.DrawFn, steps: list[Step], joined: list[str]) -> list[BoundMeasure]:
    figures = [(source, *figure) for source in joined for figure in _FIGURES[source]]
    if "orders" in joined:
        made = [name for name in ("part", "converted") if name in _made(steps)]
        figures.extend(("orders", "sum", name) for name in made)
    measures = []
    drawn = draw(st.lists(st.sampled_from(figures), min_size=1, max_size=4, unique=True))
    for number, (source, function, text) in enumerate(drawn, 1):
        tests = tuple(_tests(draw, draw(st.sampled_from(joined))) if draw(st.booleans()) else ())
        value = None if text is None else parse_expression(text)
        is_number = function not in ("min", "max", "count", "count_distinct")
        is_zero = is_number and draw(st.booleans())
        name = f"value {number}"
        measures.append(BoundMeasure(name, function, source, value, tests, is_zero))
    return measures


def _result_steps(
    draw: st.DrawFn, keys: list[BoundKey], measures: list[BoundMeasure]
) -> list[Step]:
    steps: list[Step] = []
    numbers = [measure.name for measure in measures if measure.function not in ("min", "max")]
    if not numbers:
        return steps
    number = draw(st.sampled_from(numbers))
    if draw(st.booleans()):
        steps.append(compute("ratio", f'"{number}" / ("{number}" - 1)', "result"))
    if draw(st.integers(0, 3)) == 0:
        steps.append(keep(BoundCondition(column(number), ">", 0), stage="result"))
    has_window = draw(st.booleans())
    if keys and has_window:
        function = draw(st.sampled_from(["row_number", "rank", "lag", "sum", "avg", "share"]))
        order = [(key.name, draw(st.sampled_from(["asc", "desc"]))) for key in keys]
        partition = [keys[0].name] if len(keys) > 1 and draw(st.booleans()) else []
        is_framed = function in ("sum", "avg") and bool(order) and draw(st.booleans())
        more: dict[str, Any] = {"rows": 2} if is_framed else {}
        on = None if function in ("row_number", "rank") else number
        steps.append(window(function, on, partition=partition, sorting=order, **more))
        if draw(st.booleans()):
            steps.append(keep(BoundCondition(column("window"), "<=", 2), stage="result"))
    return steps


def _wide(draw: st.DrawFn, steps: list[Step], sources: list[str], joined: list[str]) -> BoundIntent:
    outputs = [(f"{source} id", f"{source}.id") for source in joined]
    if "orders" in joined:
        outputs.extend((name, name) for name in _made(steps))
        outputs.append(("Amount", "orders.amount"))
    names = [name for name, _ in outputs]
    if "orders" in joined and draw(st.booleans()):
        order = [("orders id", "desc"), *((f"{source} id", "asc") for source in joined)]
        steps.append(window("lag", "Amount", sorting=order))
        steps.append(compute("change", '"Amount" - window', "result"))
        names.extend(["window", "change"])
    return _intent(*steps, sources=sources, columns=names, outputs=outputs)
