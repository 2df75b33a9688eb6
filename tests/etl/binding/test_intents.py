"""What intents are bound to, what they are refused for, and how their targets are called."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.values import Catalog, Column, ForeignKey, Table
from etl.binding.intent_checks import check_intent
from etl.meaning.bound import (
    AnyOf,
    BoundColumn,
    BoundCondition,
    DedupStep,
    ExpressionTest,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    RelativeDay,
    WindowStep,
)
from etl.meaning.interpreter import evaluate
from etl.schemas.requirement import UserIntent
from tests.support.requested_intents import CATALOG, bind, by, join, keep, request

PAID = BoundColumn("orders", "paid_at")
DAY = date(2024, 5, 15)


def _steps(*operations: Any, sources: Sequence[str] = ("orders",), **answers: str) -> Any:
    result = bind(request(*operations, sources=sources), answers)
    assert result.analysis.ambiguities == []
    assert result.analysis.impossible == []
    assert result.bound is not None
    return result.bound.steps


# conditions


@pytest.mark.parametrize(
    ("column", "operator", "value", "tests"),
    [
        ("ordered_on", "<=", "2024-05-15", [("<=", DAY)]),
        ("paid_at", ">=", "2024-05-15", [(">=", DAY)]),
        ("paid_at", "<=", "2024-05-15", [("<", DAY + timedelta(1))]),
        ("paid_at", ">", "2024-05-15", [(">=", DAY + timedelta(1))]),
        ("paid_at", "=", "2024-05-15", [(">=", DAY), ("<", DAY + timedelta(1))]),
        (
            "paid_at",
            "between",
            ["2024-05-14", "2024-05-15"],
            [(">=", DAY - timedelta(1)), ("<", DAY + timedelta(1))],
        ),
        (
            "paid_at",
            ">=",
            {"unit": "month", "offset": -1},
            [(">=", RelativeDay("month_minus_1", date(2024, 4, 1)))],
        ),
        (
            "paid_at",
            "<=",
            {"unit": "day", "offset": -1},
            [("<", RelativeDay("day_minus_1_next_day", DAY))],
        ),
        ("amount", "in", [1, 2.5, "3.10"], [("in", (1, Decimal("2.5"), Decimal("3.10")))]),
        ("is_gift", "=", "true", [("=", True)]),
        ("status", "contains", "ai", [("contains", "ai")]),
        ("orders.id", "column=", "user_id", [("column=", BoundColumn("orders", "user_id"))]),
        ("status", "is_null", None, [("is_null", None)]),
    ],
)
def test_conditions_have_values_of_their_columns(
    column: str, operator: str, value: Any, tests: list[tuple[Any, Any]]
) -> None:
    (step,) = _steps(keep(column, operator, value))[:1]
    assert isinstance(step, FilterStep)
    assert (step.stage, step.source) == ("table", "orders")
    name = column.removeprefix("orders.")
    assert step.tests == tuple(
        BoundCondition(BoundColumn("orders", name), sign, bound) for sign, bound in tests
    )


def test_days_that_moments_are_not_on_keep_null() -> None:
    (step,) = _steps(keep("paid_at", "not_in", ["2024-05-15"]))[:1]
    (test,) = step.tests
    assert isinstance(test, AnyOf)
    assert BoundCondition(PAID, "is_null") in test.conditions


def test_listed_days_of_moments_are_those_of_the_zone() -> None:
    intent = request(keep("paid_at", "in", ["2024-05-14", "2024-05-15"]))
    bound = bind(intent, time_zone="Asia/Shanghai").bound
    assert bound is not None
    (step,) = bound.steps
    assert isinstance(step, FilterStep)
    (test,) = step.tests
    assert isinstance(test, ExpressionTest)
    assert "Asia/Shanghai" in test.expression.sql("postgres")


# stages


def test_filters_narrow_a_table_before_its_join_and_joined_rows_after_it() -> None:
    steps = _steps(
        keep("orders.amount", ">", 1),
        keep("users.city", "=", "Ulm", table="users"),
        join("orders", "users"),
        keep("orders.status", "=", "paid"),
        keep("users.score", ">", 5),
        by("users.city"),
        keep("m0", ">", 100),
        sources=("orders", "users"),
    )
    found = [
        (step.order, step.stage, step.source) for step in steps if isinstance(step, FilterStep)
    ]
    assert found == [
        (1, "table", "orders"),
        (2, "table", "users"),
        (4, "rows", None),
        (5, "rows", None),
        (7, "result", None),
    ]


def test_a_way_leads_through_tables_that_the_intent_does_not_name() -> None:
    steps = _steps(
        join("orders", "products", how="inner"),
        by("products.kind", sums=["items.price"]),
        sources=("orders", "products", "items"),
    )
    joins = [step for step in steps if isinstance(step, JoinSourceStep)]
    assert [(one.right, one.how, one.is_multiple) for one in joins] == [
        ("items", "inner", True),
        ("products", "inner", False),
    ]


def test_a_joined_table_on_the_way_is_not_joined_again() -> None:
    steps = _steps(
        join("orders", "items"),
        join("orders", "products"),
        by("products.kind", sums=["items.price"]),
        sources=("orders", "items", "products"),
    )
    joins = [step for step in steps if isinstance(step, JoinSourceStep)]
    assert [one.right for one in joins] == ["items", "products"]
    assert joins[1].on[0][0] == BoundColumn("items", "product_id")


def test_a_row_of_the_base_is_selected_by_what_is_not_in_the_result() -> None:
    operations = (join("orders", "items"), keep("items.quantity", ">", 2))
    bound = bind(request(*operations, sources=("orders", "items")), {"grain": "orders"}).bound
    assert bound is not None
    order = dict.fromkeys(column.name for column in bound.base.table.columns)
    item = dict.fromkeys(column.name for column in bound.source("items").table.columns)
    orders = [order | {"id": 1}, order | {"id": 2}]
    items = [item | {"order_id": 1, "quantity": 3}, item | {"order_id": 1, "quantity": 4}]
    rows = evaluate(bound, {"orders": orders, "items": items}).rows
    assert [row[0] for row in rows] == [1]


def test_one_table_twice_by_aliases() -> None:
    intent = request(
        join("orders", "to", on=[["shipping_id", "id"]]),
        join("orders", "from", on=[["billing_id", "id"]]),
        by("to.country", "from.country"),
    )
    aliased = [{"table_name": "addresses", "alias": name} for name in ("to", "from")]
    given = intent.model_dump() | {"data_sources": [{"table_name": "orders"}, *aliased]}
    result = bind(UserIntent.model_validate(given))
    assert result.bound is not None
    assert result.bound.target.columns == ("country", "from_country", "m0")


def test_a_table_is_joined_to_itself() -> None:
    staff = Table(
        "public",
        "staff",
        "table",
        (Column("id", "integer"), Column("boss_id", "integer"), Column("name", "text")),
        primary_key=("id",),
        foreign_keys=(ForeignKey(("boss_id",), ("public", "staff"), ("id",)),),
    )
    given = request(join("one", "boss"), by("boss.name", sums=["one.id"])).model_dump()
    given["data_sources"] = [{"table_name": "staff", "alias": name} for name in ("one", "boss")]
    bound = bind(UserIntent.model_validate(given), catalog=Catalog((staff,))).bound
    assert bound is not None
    (step, _) = bound.steps
    assert isinstance(step, JoinSourceStep)
    assert step.on == ((BoundColumn("one", "boss_id"), BoundColumn("boss", "id")),)


def test_tables_and_columns_are_called_as_their_comments_say() -> None:
    bound = bind(request(by("用户表.city", sums=["销售额"]), sources=("订单表", "用户表"))).bound
    assert bound is not None
    assert [source.name for source in bound.sources] == ["orders", "users"]
    assert bound.target.columns == ("city", "m0")


def test_a_group_keeps_the_key_that_a_join_went_by() -> None:
    operations = [join("orders", "users"), by("users.id", "users.city")]
    bound = bind(request(*operations, sources=("orders", "users"))).bound
    assert bound is not None
    assert bound.target.columns == ("id", "city", "m0")


def test_a_source_that_nothing_uses_is_not_joined() -> None:
    result = bind(request(by("status"), sources=("users", "addresses", "orders")))
    assert result.bound is not None
    assert [source.name for source in result.bound.sources] == ["orders"]
    assert [assumption.id for assumption in result.analysis.assumptions][:2] == [
        "unused_table",
        "unused_table_2",
    ]


def test_a_join_may_name_its_sides_the_other_way_round() -> None:
    steps = _steps(
        join("orders", "items"),
        join("products", "items"),
        by("products.kind", sums=["items.price"]),
        sources=("orders", "items", "products"),
    )
    assert [(step.right, step.how) for step in steps if isinstance(step, JoinSourceStep)] == [
        ("items", "left"),
        ("products", "left"),
    ]


def test_names_that_need_quotes() -> None:
    transform = {"as": "twice", "expression": '"Odd 表"."q""uote" * 2'}
    result = bind(
        request(
            ("transform", transform),
            keep("select", "!=", "x"),
            by("Odd 表.a b", {"column": "Odd 表.x.y", "unit": "month"}, sums=["twice"]),
            sources=("Odd 表",),
        )
    )
    assert result.bound is not None
    assert result.bound.target.columns == ("a b", "month", "m0")


def test_transforms() -> None:
    steps = _steps(
        (
            "transform",
            {"as": "kind", "table": "orders", "map": {"paid": "good"}, "column": "status"},
        ),
        join("orders", "payments", how="inner"),
        (
            "transform",
            {
                "as": "eur",
                "amount": "payments.amount",
                "rate": {
                    "table": "rates",
                    "from_column": "currency",
                    "to": "EUR",
                    "date_column": "day",
                    "rate_column": "rate",
                },
            },
        ),
        by("kind", sums=["eur"]),
        ("transform", {"as": "rounded", "expression": "round(m0, 1)"}),
        sources=("orders", "payments"),
    )
    mapped, _, converted, aggregate, rounded = steps
    assert isinstance(mapped, MapStep)
    assert (mapped.stage, mapped.source) == ("table", "orders")
    assert isinstance(converted, RateStep)
    assert converted.day == BoundColumn("payments", "paid_on")
    assert aggregate.measures[0].source == "payments"
    assert rounded.stage == "result"


def test_windows_that_ties_would_leave_open_go_by_the_grain() -> None:
    ranked = {"partition_by": ["status"], "order_by": [{"column": "m0", "direction": "desc"}]}
    steps = _steps(
        by("status", "user_id"),
        ("window", {"function": "row_number", "as": "n", **ranked}),
        ("window", {"function": "rank", "as": "r", **ranked}),
    )
    first, second = (step for step in steps if isinstance(step, WindowStep))
    assert first.sorting == (("m0", "desc"), ("user_id", "asc"))
    assert second.sorting == (("m0", "desc"),)


def test_a_dedup_after_joins_looks_at_what_they_leave() -> None:
    dedup = ("dedup", {"table": "orders", "keys": ["user_id"]})
    before = _steps(dedup, join("orders", "users"), sources=("orders", "users"))
    after = _steps(join("orders", "users", how="inner"), dedup, sources=("orders", "users"))
    stages = [one.stage for one in (*before, *after) if isinstance(one, DedupStep)]
    assert stages == ["table", "rows"]


# targets


@pytest.mark.parametrize(
    ("given", "relation", "model"),
    [
        ("SalesSummary", "sales_summary", "sales_summary"),
        ("Sales  Summary-2024", "sales_summary_2024", "sales_summary_2024"),
        ("dws_Sales", "dws_sales", "dws_sales"),
        ("销售汇总表", "销售汇总表", None),
        ("HTTPLog", "http_log", "http_log"),
    ],
)
def test_targets_are_called_as_said(given: str, relation: str, model: str | None) -> None:
    bound = bind(request(by("status"), target={"table_name": given})).bound
    assert bound is not None
    assert bound.target.relation == relation
    if model is None:
        assert bound.target.model.isascii()
    else:
        assert bound.target.model == model


@pytest.mark.parametrize(
    "name", ['sales"', "pg_sales", "PG_Sales", "../sales", "public.orders", "."]
)
def test_targets_that_can_not_be_written_are_refused_before_they_are_drafted(name: str) -> None:
    result = bind(request(by("status"), target={"table_name": name}))
    assert result.bound is None
    (refused,) = result.analysis.impossible
    assert refused.kind == "sink_refused"
    assert "" not in refused.suggestions


@given(st.text(min_size=1, max_size=70))
def test_any_name_of_a_target_is_refused_or_can_be_taken(name: str) -> None:
    try:
        result = bind(request(by("status"), target={"table_name": name}))
    except InvalidRequest as error:
        assert error.field == "intent.data_target.table_name"
        return
    if result.bound is None:
        assert [one.kind for one in result.analysis.impossible] == ["sink_refused"]
        return
    target = result.bound.target
    assert 0 < len(target.relation.encode()) <= 63
    assert not set(target.model) - set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert 0 < len(target.model) <= 55


def test_targets_without_a_name_say_what_they_hold() -> None:
    names = [
        bind(request(*operations, sources=sources)).bound
        for operations, sources in (
            ([by({"column": "ordered_on", "unit": "month"}, "status")], ("orders",)),
            ([("dedup", {"table": "orders", "keys": ["user_id"]})], ("orders",)),
            ([by("a b", sums=['q"uote'])], ("Odd 表",)),
        )
    ]
    assert [bound.target.relation for bound in names if bound] == [
        "dws_orders_month_status",
        "dwd_orders",
        "dws_odd_表_a_b",
    ]


@pytest.mark.parametrize(
    "name", ["public.sales", "pg_catalog.x", "/tmp/x", "../x", "s3://x", "a\\b", "~root", "x.sql"]
)
def test_nothing_is_written_elsewhere(name: str) -> None:
    result = bind(request(by("status"), target={"table_name": name}))
    assert result.bound is None
    assert [one.kind for one in result.analysis.impossible] == ["sink_refused"]


@pytest.mark.parametrize(
    ("mode", "given", "asked", "field"),
    [
        ("merge", "view", None, "intent.data_target.materialization"),
        ("merge", None, "table", "options.materialization"),
        ("replace", "incremental", None, "intent.data_target.materialization"),
    ],
)
def test_a_target_is_kept_exactly_where_it_is_added_to(
    mode: str, given: Any, asked: Any, field: str
) -> None:
    target = {"materialization": given}
    intent = request(by("status"), ("sink", {"mode": mode}), target=target)
    with pytest.raises(InvalidRequest) as caught:
        bind(intent, materialization=asked)
    assert caught.value.field == field


def test_a_merge_goes_by_the_grain() -> None:
    sink = {"mode": "merge", "watermark": {"column": "month", "lookback": "2 weeks"}}
    bound = bind(
        request(by({"column": "paid_at", "unit": "month"}, "status"), ("sink", sink))
    ).bound
    assert bound is not None
    assert bound.target.unique_key == ("month", "status")
    assert bound.target.materialization == "incremental"
    assert bound.target.watermark is not None
    assert (bound.target.watermark.column, bound.target.watermark.lookback_days) == (PAID, 14)


# what is not possible, and what is wrong


@pytest.mark.parametrize(
    ("operations", "sources", "kind", "suggestion"),
    [
        ([by("orders.statsu")], ["orders"], "unknown_name", "orders.status"),
        ([by("users.city")], ["orders"], "unknown_name", None),
        ([by()], ["order"], "unknown_name", "orders"),
        ([by()], ["archive.secret"], "unknown_name", None),
        ([join("orders", "notes")], ["orders", "notes"], "no_join_path", None),
        ([by("status"), join("orders", "users")], ["orders", "users"], "unsupported", None),
        (
            [join("orders", "users", how="semi"), by("users.city")],
            ["orders", "users"],
            "unsupported",
            None,
        ),
        (
            [
                join("orders", "items"),
                join("orders", "payments"),
                ("transform", {"as": "x", "expression": "items.price * payments.amount"}),
                by(sums=["x"]),
            ],
            ["orders", "items", "payments"],
            "unsupported",
            None,
        ),
    ],
)
def test_what_is_not_possible_is_said(
    operations: Any, sources: list[str], kind: str, suggestion: str | None
) -> None:
    result = bind(request(*operations, sources=sources))
    assert result.bound is None
    assert result.analysis.impossible[0].kind == kind
    if suggestion is not None:
        assert suggestion in result.analysis.impossible[0].suggestions


AMOUNT = {"function": "sum", "column": "amount"}


@pytest.mark.parametrize(
    ("operations", "field"),
    [
        ([("join", {"left": "orders"})], "[0].parameters.right"),
        ([("join", {"left": "orders", "right": "users", "hwo": "left"})], "[0].parameters.hwo"),
        ([join("orders", "users", how="outer")], "[0].parameters.how"),
        ([join("orders", "users", on=[["id"]])], "[0].parameters.on[0]"),
        ([keep("status", "like", "x")], "[0].parameters.conditions[0].operator"),
        ([keep("status", "in", "x")], "[0].parameters.conditions[0].value"),
        ([keep("status", "=")], "[0].parameters.conditions[0].value"),
        ([keep("status", "between", ["x"])], "[0].parameters.conditions[0].value"),
        ([("transform", {"as": "x"})], "[0].parameters"),
        ([("transform", {"as": "x", "expression": "now()"})], "[0].parameters.expression"),
        ([("transform", {"as": "x" * 64, "expression": "1"})], "[0].parameters.as"),
        (
            [("aggregate", {"group_by": [], "unit": "day", "measures": [AMOUNT]})],
            "[0].parameters.unit",
        ),
        ([by({"column": "ordered_on", "unit": "century"})], "[0].parameters.group_by[0].unit"),
        ([by("status", spine=True)], "[0].parameters.spine"),
        ([by("status"), by("status")], "[1].action"),
        ([("window", {"function": "rank", "as": "r"})], "[0].parameters.order_by"),
        (
            [("sink", {"mode": "merge", "watermark": {"column": "x", "lookback": "soon"}})],
            "[0].parameters.watermark.lookback",
        ),
    ],
)
def test_wrong_intents_name_their_field(operations: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_intent(request(*operations))
    assert caught.value.field == f"intent.operations{field}"


@pytest.mark.parametrize(
    ("operations", "field"),
    [
        ([keep("amount", ">", "much")], "[0].parameters.conditions[0].value"),
        ([keep("ordered_on", ">", "soon")], "[0].parameters.conditions[0].value"),
        ([keep("ordered_on", ">", {"unit": "day"})], "[0].parameters.conditions[0].value.offset"),
        ([keep("amount", "contains", "1")], "[0].parameters.conditions[0].operator"),
        ([by({"column": "status", "unit": "month"})], "[0].parameters.group_by[0].unit"),
        ([by(sums=["status"])], "[0].parameters.measures[0].column"),
        (
            [("transform", {"as": "x", "expression": "amount || is_gift"})],
            "[0].parameters.expression",
        ),
        ([join("orders", "users", on=[["ordered_on", "id"]])], "[0].parameters.on[0]"),
        ([join("users", "orders"), join("orders", "users")], "[1].parameters.right"),
        (
            [by("status"), ("sink", {"mode": "merge", "columns": ["m0"]})],
            "[1].parameters.unique_key",
        ),
    ],
)
def test_what_does_not_fit_the_columns_names_its_field(operations: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        bind(request(*operations, sources=("orders", "users")))
    assert caught.value.field == f"intent.operations{field}"


def test_orders_and_names_stand_once() -> None:
    intent = request(by("status"), by("status")).model_dump()
    intent["operations"][1]["order"] = 1
    with pytest.raises(InvalidRequest) as caught:
        check_intent(UserIntent.model_validate(intent))
    assert caught.value.field == "intent.operations[1].order"
    with pytest.raises(InvalidRequest) as caught:
        check_intent(request(sources=("orders", "orders")))
    assert caught.value.field == "intent.data_sources[1].table_name"
    with pytest.raises(InvalidRequest) as caught:
        bind(request(by("status")), time_zone="Mars/Base")
    assert caught.value.field == "options.time_zone"
    crossed = request(by("status"), sources=("orders", "users")).model_dump()
    crossed["data_sources"][0]["alias"] = "users"
    crossed["data_sources"][1]["alias"] = "orders"
    with pytest.raises(InvalidRequest) as caught:
        check_intent(UserIntent.model_validate(crossed))
    assert caught.value.field == "intent.data_sources[0].alias"


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0."), min_size=1, max_size=12)


@given(st.lists(_NAMES, min_size=3, max_size=3, unique=True))
def test_any_names_can_be_bound(names: list[str]) -> None:
    table, key, amount = names
    columns = (Column(key, "text"), Column(amount, "numeric"))
    catalog = Catalog((Table("public", table, "table", columns),))
    intent = request(
        keep(f"{table}.{key}", "!=", "x"),
        by(f"{table}.{key}", sums=[f"{table}.{amount}"]),
        sources=(table,),
        target={"table_name": "result"},
    )
    bound = bind(intent, catalog=catalog).bound
    assert bound is not None
    rows: list[dict[str, Any]] = [{key: None, amount: Decimal(2)}, {key: "x", amount: Decimal(4)}]
    assert evaluate(bound, {table: rows}).rows == [(None, Decimal(2))]


def test_what_is_not_in_the_catalogue_does_not_exist() -> None:
    """A closed table is said not to exist as one that does not, and nothing leads through it."""
    closed = Catalog(tuple(table for table in CATALOG.tables if table.name != "items"))
    missing = bind(request(by(), sources=("items",)), catalog=closed).analysis.impossible
    unknown = bind(request(by(), sources=("itemz",)), catalog=closed).analysis.impossible
    assert [one.text for one in missing] == [one.text.replace("itemz", "items") for one in unknown]
    intent = request(join("orders", "products"), sources=("orders", "products"))
    (refused,) = bind(intent, catalog=closed).analysis.impossible
    assert refused.kind == "no_join_path"
    assert "items" not in refused.text
