"""Sentences of both languages, read clause by clause as intents."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.values import Catalog, Column, ForeignKey, Table
from etl.binding.request_findings import RequestFindings
from etl.clauses.sentence_reading import read_sentence
from etl.schemas.requirement import Ambiguity, AnalysisResult, UserIntent
from rules.schema.lexicon import lexicon_of
from tests.support.sales_catalog import ORDERS, SALES


def _read(question: str, **answers: str) -> AnalysisResult:
    return _read_in(SALES, question, **answers)


def _read_in(catalog: Catalog, question: str, **answers: str) -> AnalysisResult:
    findings = RequestFindings(answers, "en")
    intent = read_sentence(question, catalog, lexicon_of(catalog), findings)
    return findings.analysis(intent, "rules")


def _condition(condition: dict[str, Any]) -> str:
    if "any" in condition:
        return " or ".join(map(_condition, condition["any"]))
    parts = [condition["column"], condition["operator"], condition.get("value", "")]
    return " ".join(map(str, parts)).strip()


def _filter(it: dict[str, Any]) -> str:
    of_table = f" in {it['table']}" if "table" in it else ""
    return " and ".join(map(_condition, it["conditions"])) + of_table


def _join(it: dict[str, Any]) -> str:
    pairs = "".join(f" on {left}={right}" for left, right in it.get("on", ()))
    return f"{it['how']} {it['left']} {it['right']}{pairs}"


def _measure(it: dict[str, Any]) -> str:
    empty = "?0" if it.get("empty") == "zero" else ""
    return f"{it['function']}({it.get('column', '*')}){empty}"


def _key(it: dict[str, Any]) -> str:
    return f"{it['unit']}({it.get('column', '?')})" if "unit" in it else str(it["column"])


def _aggregate(it: dict[str, Any]) -> str:
    spine = " spine" if it.get("spine") else ""
    keys = ", ".join(map(_key, it["group_by"]))
    return f"{keys} | {', '.join(map(_measure, it['measures']))}{spine}"


def _sorted(it: dict[str, Any]) -> str:
    sorting = []
    for one in it["order_by"]:
        last = " NULL last" if one.get("nulls") == "last" else ""
        sorting.append(f"{one['column']} {one['direction']}{last}")

    return ", ".join(sorting)


def _window(it: dict[str, Any]) -> str:
    return f"{it['function']}({it.get('column', '')}) per {it['partition_by']} by {_sorted(it)}"


def _dedup(it: dict[str, Any]) -> str:
    return f"{it['table']} by {it['keys']} keep {_sorted(it)}"


_SHORT = {
    "join": _join,
    "filter": _filter,
    "aggregate": _aggregate,
    "window": _window,
    "dedup": _dedup,
}


def _said(reading: AnalysisResult) -> list[str]:
    """The operations in short, then the target."""
    assert reading.intent is not None, (reading.ambiguities, reading.impossible)
    steps = [
        f"{operation.action} {_SHORT[operation.action](operation.parameters)}"
        for operation in reading.intent.operations
    ]
    return [*steps, f"into {reading.intent.data_target.table_name}"]


_REGISTERED = "users.registered_on >= 2024-01-01 and users.registered_on < 2025-01-01"
_SENTENCES: list[tuple[str, list[str]]] = [
    (
        "把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表",
        ["join left orders users", "aggregate month(?) | sum(orders.amount)", "into 销售汇总表"],
    ),
    (
        "把订单表和用户表按用户ID关联,只保留状态为paid的订单,按用户等级和创建时间每月统计订单金额合计和订单数,"
        "没有数据的月份补0,写入 dws_sales_monthly",
        [
            "join left orders users on orders.user_id=users.id",
            "filter orders.status = paid",
            "aggregate users.level, month(orders.created_at)"
            " | sum(orders.amount)?0, count(*)?0 spine",
            "into dws_sales_monthly",
        ],
    ),
    (
        'join public.orders and "public"."users", sum of orders.amount by public.users.level'
        " and month of paid_at in orders, save as by_level",
        [
            "join left orders users",
            "aggregate users.level, month(orders.paid_at) | sum(orders.amount)",
            "into by_level",
        ],
    ),
    (
        "按用户的用户等级和支付时间每月统计订单金额合计，写入等级表",
        [
            "join left orders users",
            "aggregate users.level, month(orders.paid_at) | sum(orders.amount)",
            "into 等级表",
        ],
    ),
    (
        "从订单表统计每个用户的订单金额中位数",
        [
            "join left orders users",
            "aggregate users.id, users.name | median(orders.amount)",
            "into None",
        ],
    ),
    (
        "订单表按用户ID去重，保留创建时间最新的一条，写入最新订单",
        ["dedup orders by ['user_id'] keep orders.created_at desc NULL last", "into 最新订单"],
    ),
    (
        "将订单明细与订单、商品关联，去掉单价低于5的，按品类汇总数量和单价，写入品类表",
        [
            "join left order_items orders",
            "join left order_items products",
            "filter order_items.unit_price >= 5 or order_items.unit_price is_null",
            "aggregate products.category | sum(order_items.quantity), sum(order_items.unit_price)",
            "into 品类表",
        ],
    ),
    (
        "从订单表，统计各城市的平均订单金额和去重用户数",
        [
            "aggregate orders.city | avg(orders.amount), count_distinct(orders.user_id)",
            "into None",
        ],
    ),
    (
        "从订单里按创建时间每周统计订单金额的环比",
        [
            "aggregate week(orders.created_at) | sum(orders.amount)",
            "window lag(amount_sum) per [] by week asc",
            "into None",
        ],
    ),
    (
        "每个城市中订单金额前3的订单",
        [
            "filter orders.amount not_null",
            "window rank() per ['orders.city'] by orders.amount desc",
            "filter rank <= 3",
            "into None",
        ],
    ),
    (
        "从订单表取数，按城市统计金额合计、订单数，只保留金额合计大于1000并且订单数不少于5的，写入大城市",
        [
            "aggregate orders.city | sum(orders.amount), count(*)",
            "filter amount_sum > 1000 and orders_count >= 5",
            "into 大城市",
        ],
    ),
    (
        "把订单和用户关联，只要有匹配的，按用户等级求最大订单金额",
        [
            "join inner orders users",
            "aggregate users.level | max(orders.amount)",
            "into None",
        ],
    ),
    (
        "join orders and users, keep only paid orders, monthly sum of amount by level,"
        " save as monthly_sales",
        [
            "join left orders users",
            "filter orders.status = paid",
            "aggregate users.level, month(?) | sum(orders.amount)",
            "into monthly_sales",
        ],
    ),
    (
        "orders left join users on user_id,"
        " exclude orders with amount less than 10 or status pending,"
        " average amount per level, save to level_avg",
        [
            "join left orders users on orders.user_id=users.id",
            "filter orders.amount >= 10 or orders.amount is_null and orders.status != pending",
            "aggregate users.level | avg(orders.amount)",
            "into level_avg",
        ],
    ),
    (
        "orders: only those in 2024 by paid_at, sum of amount and number of orders by city"
        " and month of created_at, fill missing months with 0, save as city_sales",
        [
            "filter orders.paid_at >= 2024-01-01 and orders.paid_at < 2025-01-01",
            "aggregate orders.city, month(orders.created_at)"
            " | sum(orders.amount)?0, count(*)?0 spine",
            "into city_sales",
        ],
    ),
    (
        "从订单表，支付时间从2024-01-01到2024-02-15，排除状态为空的，按支付时间每月统计订单金额和笔数，"
        "按月累计订单金额，写入 x",
        [
            "filter orders.paid_at >= 2024-01-01 and orders.paid_at < 2024-02-16",
            "filter orders.status not_null",
            "aggregate month(orders.paid_at) | sum(orders.amount), count(*)",
            "window sum(amount_sum) per [] by month asc",
            "into x",
        ],
    ),
    (
        "from orders, where paid_at between 2024-01-01 and 2024-01-31, minimum, maximum and median"
        " amount per city, into x",
        [
            "filter orders.paid_at >= 2024-01-01 and orders.paid_at < 2024-02-01",
            "aggregate orders.city | min(orders.amount), max(orders.amount), median(orders.amount)",
            "into x",
        ],
    ),
    (
        "from orders where status is paid and city is 北京, hourly number of orders by created_at"
        ' and status, write to "Paid Hours"',
        [
            "filter orders.status = paid and orders.city = 北京",
            "aggregate hour(orders.created_at), orders.status | count(*)",
            "into paid_hours",
        ],
    ),
    (
        "从订单表，只要用户ID为1或2的，按支付时间每月和城市统计订单金额，写入 x",
        [
            "filter orders.user_id in [1, 2]",
            "aggregate month(orders.paid_at), orders.city | sum(orders.amount)",
            "into x",
        ],
    ),
    (
        "每个城市中订单金额最高的2个订单，写入 x",
        [
            "filter orders.amount not_null",
            "window rank() per ['orders.city'] by orders.amount desc",
            "filter rank <= 2",
            "into x",
        ],
    ),
    ("有订单的用户，写入 x", ["join semi users orders", "into x"]),
    (
        "users that have orders, number of users and total amount by level, into x",
        [
            "join semi users orders_2",
            "aggregate users.level | count(*), sum(orders.amount)",
            "into x",
        ],
    ),
    (
        "从订单表，按支付时间每天统计订单金额的最大值和最小值，没有数据的日期补0，写入 x",
        [
            "aggregate day(orders.paid_at) | max(orders.amount)?0, min(orders.amount)?0 spine",
            "into x",
        ],
    ),
    ("for each city, number of orders, into x", ["aggregate orders.city | count(*)", "into x"]),
    ("从订单表统计去重用户ID数", ["aggregate  | count_distinct(orders.user_id)", "into None"]),
    ("从订单表统计记录数，写入 n", ["aggregate  | count(*)", "into n"]),
    (
        "orders: number of rows by city into n",
        ["aggregate orders.city | count(*)", "into n"],
    ),
    (
        "deduplicate orders by user_id keeping the latest by created_at,"
        " then save as latest_orders",
        ["dedup orders by ['user_id'] keep orders.created_at desc NULL last", "into latest_orders"],
    ),
    (
        "top 2 status per city by amount into x",
        [
            "aggregate orders.city, orders.status | sum(orders.amount)",
            "filter amount_sum not_null",
            "window rank() per ['city'] by amount_sum desc",
            "filter rank <= 2",
            "into x",
        ],
    ),
    (
        "按等级统计订单数，写入 x",
        ["join left orders users", "aggregate users.level | count(*)", "into x"],
    ),
    (
        "users: count orders and users by level into x",
        [
            "join left users orders",
            "aggregate users.level | count(orders.id), count(*)",
            "into x",
        ],
    ),
    (
        "top 3 products per category by quantity into top_products",
        [
            "join left products order_items",
            "aggregate products.category, products.id, products.name | sum(order_items.quantity)",
            "filter quantity_sum not_null",
            "window rank() per ['category'] by quantity_sum desc",
            "filter rank <= 3",
            "into top_products",
        ],
    ),
    (
        "没买过商品钢笔的用户，按用户等级统计用户数，写入 a",
        [
            "filter products.name = 钢笔 in products",
            "join anti users products",
            "aggregate users.level | count(*)",
            "into a",
        ],
    ),
    (
        "exclude users who bought product 'red pen', count users by level, into a",
        [
            "filter products.name = red pen in products",
            "join anti users products",
            "aggregate users.level | count(*)",
            "into a",
        ],
    ),
    (
        "number of users who bought product pen by level, into a",
        [
            "filter products.name = pen in products",
            "join semi users products",
            "aggregate users.level | count(*)",
            "into a",
        ],
    ),
    ("没有订单的用户，写入闲置用户", ["join anti users orders", "into 闲置用户"]),
    ("users without orders, into idle", ["join anti users orders", "into idle"]),
    (
        "注册日期在2024年的没有订单的用户，写入 idle",
        [f"filter {_REGISTERED}", "join anti users orders", "into idle"],
    ),
    (
        "没有订单的且注册日期在2024年的用户，写入 idle",
        [f"filter {_REGISTERED} in users", "join anti users orders", "into idle"],
    ),
    (
        "users registered in 2024 who never ordered, into idle",
        [f"filter {_REGISTERED}", "join anti users orders", "into idle"],
    ),
    (
        "maximum and minimum amount per level from orders joined with users, for paid only, into x",
        [
            "join left orders users",
            "filter orders.status = paid",
            "aggregate users.level | max(orders.amount), min(orders.amount)",
            "into x",
        ],
    ),
    (
        "订单表按用户去重，保留支付时间最新的一条，写入 x",
        ["dedup orders by ['user_id'] keep orders.paid_at desc NULL last", "into x"],
    ),
    (
        "订单表，只保留金额在10到20之间的，按状态统计去重用户数，只看创建时间在2024年的，写入 x",
        [
            "filter orders.amount between [10, 20]",
            "filter orders.created_at >= 2024-01-01 and orders.created_at < 2025-01-01",
            "aggregate orders.status | count_distinct(orders.user_id)",
            "into x",
        ],
    ),
    (
        "exclude orders where status is cancelled, running total of amount by month,"
        " write to running",
        [
            "filter orders.status != cancelled",
            "aggregate month(?) | sum(orders.amount)",
            "window sum(amount_sum) per [] by month asc",
            "into running",
        ],
    ),
]


@pytest.mark.parametrize(
    ("question", "expected"), _SENTENCES, ids=[one[:24] for one, _ in _SENTENCES]
)
def test_a_sentence_says_what_is_built(question: str, expected: list[str]) -> None:
    assert _said(_read(question)) == expected


_YEAR = "orders.paid_at < 2024-01-01 or orders.paid_at >= 2025-01-01"


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("keep only orders where status is not paid", "orders.status != paid"),
        ("keep only orders with amount not over 100", "orders.amount <= 100"),
        ("only those where paid_at is not in 2024", _YEAR),
        ("exclude those where paid_at is in 2024", f"{_YEAR} or orders.paid_at is_null"),
        (
            "exclude orders with amount between 10 and 20",
            "orders.amount < 10 or orders.amount > 20 or orders.amount is_null",
        ),
        ("keep only orders with amount dearer than 100", None),
        ("only amount more expensive than 100", "orders.amount > 100"),
        ("只保留状态包含 pa 的", "orders.status contains pa"),
        ("排除状态包含 pa 的", None),  # no operator says it
        ("排除已支付订单里状态为 paid 且金额小于10的", None),  # any of them, or all?
        (
            "排除状态为 paid 或金额小于10的",
            "orders.status != paid and orders.amount >= 10 or orders.amount is_null",
        ),
    ],
)
def test_conditions_are_turned_round_or_named(clause: str, expected: str | None) -> None:
    reading = _read(f"orders, {clause}, sum of amount by city, into x")
    if expected is None:
        assert reading.intent is None
        assert reading.impossible
    else:
        assert _said(reading)[0] == f"filter {expected}"


@pytest.mark.parametrize(
    "question",
    [
        "exclude users registered in 2024 who never ordered, into x",  # both, or either?
        "orders of users who never ordered, into x",
    ],
)
def test_no_condition_beside_a_lookup_is_dropped(question: str) -> None:
    reading = _read(question)
    assert reading.intent is None
    assert reading.impossible


def test_stored_names_and_values_come_before_what_words_mean() -> None:
    fees = Table(
        "public",
        "fees",
        "table",
        (Column("paid", "numeric(12,2)"), Column("state", "text", values=("done", "Done", "open"))),
    )
    reading = _read_in(Catalog((fees,)), "fees, keep only state done, sum of paid by state, into x")
    assert _said(reading) == [
        "filter fees.state = done",
        "aggregate fees.state | sum(fees.paid)",
        "into x",
    ]


_TAGS = Table(
    "public",
    "tags",
    "table",
    (Column("id", "bigint", nullable=False), Column("label", "text", values=("cold", "fragile"))),
    primary_key=("id",),
)
_ORDER_TAGS = Table(
    "public",
    "order_tag",
    "table",
    (Column("order_id", "bigint", nullable=False), Column("tag_id", "bigint", nullable=False)),
    primary_key=("order_id", "tag_id"),
    foreign_keys=(
        ForeignKey(("order_id",), ("public", "orders"), ("id",)),
        ForeignKey(("tag_id",), ("public", "tags"), ("id",)),
    ),
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "orders tagged cold, into x",
            ["filter tags.label = cold in tags", "join semi orders tags"],
        ),
        ("cold orders, into x", ["filter tags.label = cold in tags", "join semi orders tags"]),
        (
            "orders tagged cold and fragile, into x",
            [
                "filter tags.label = cold in tags",
                "join semi orders tags",
                "filter tags_2.label = fragile in tags_2",
                "join semi orders tags_2",
            ],
        ),
        (
            "users: exclude orders.amount > 100, into x",
            ["filter orders_2.amount > 100 in orders_2", "join anti users orders_2"],
        ),
        (
            "join users and orders, exclude orders.amount > 100, number of users by level, into x",
            [
                "join left users orders",
                "filter orders_2.amount > 100 in orders_2",
                "join anti users orders_2",
                "aggregate users.level | count(*)",
            ],
        ),
        (
            "join users and orders, exclude orders.amount > 100, sum of orders.amount by"
            " users.level, into x",
            [
                "join left users orders",
                "filter orders.amount <= 100 or orders.amount is_null",
                "aggregate users.level | sum(orders.amount)",
            ],
        ),
        (
            "exclude orders.amount > 100, number of users by level, into x",
            [
                "filter orders_2.amount > 100 in orders_2",
                "join anti users orders_2",
                "aggregate users.level | count(*)",
            ],
        ),
        (
            "number of users with orders by level, into x",
            ["join semi users orders", "aggregate users.level | count(*)"],
        ),
        (
            "join users with orders, number of users by level, into x",
            ["join left users orders", "aggregate users.level | count(*)"],
        ),
        (
            "orders tagged cold or fragile, into x",
            ["filter tags.label in ['cold', 'fragile'] in tags", "join semi orders tags"],
        ),
        (
            "number of orders tagged cold per city, into x",
            [
                "join left orders tags",
                "filter tags.label = cold",
                "aggregate orders.city | count(*)",
            ],
        ),
        (
            "users whose paid_at is in 2024, into x",
            [
                "filter orders.paid_at >= 2024-01-01 and orders.paid_at < 2025-01-01 in orders",
                "join semi users orders",
            ],
        ),
    ],
)
def test_rows_are_selected_by_values_of_others_that_each_may_have_several_of(
    question: str, expected: list[str]
) -> None:
    catalog = Catalog((*SALES.tables, _TAGS, _ORDER_TAGS))
    assert _said(_read_in(catalog, question))[:-1] == expected


def test_rows_that_each_need_several_of_another_table_are_not_counted_as_if_one_did() -> None:
    catalog = Catalog((*SALES.tables, _TAGS, _ORDER_TAGS))
    reading = _read_in(catalog, "number of orders tagged cold and fragile per city, into x")
    assert reading.intent is None
    assert "No row has two values" in reading.impossible[0].text


def test_a_name_of_two_tables_is_that_of_the_request_or_asked() -> None:
    archived = replace(ORDERS, schema="archive", comment=None)
    catalog = Catalog((*SALES.tables, archived))
    reading = _read_in(catalog, "archive.orders: number of orders by city, into x")
    assert _said(reading) == ["aggregate archive_orders.city | count(*)", "into x"]
    asked = _read_in(catalog, "users without orders, into x").ambiguities[0]
    assert [choice.value for choice in asked.choices] == ["public.orders", "archive.orders"]


@pytest.mark.parametrize(
    ("question", "kind", "choices"),
    [
        (
            "从订单中筛选最近30天的订单，按天统计订单数",
            "date_column",
            ["orders.created_at", "orders.paid_at"],
        ),
        ("从订单表里排除已取消的，按城市汇总订单金额", "column", ["orders.status", "orders.city"]),
        (
            "2024年5月没有订单的用户，写入 x",
            "date_column",
            ["orders.created_at", "orders.paid_at", "users.registered_on"],
        ),
        ("从订单表按城市统计订单数，写入甲，存入乙", "target", ["甲", "乙"]),
        ("orders: number of orders by city, into 用户表", "target", ["用户表", "users"]),
        (
            "每个城市前3的订单，写入 x",
            "measure",
            ["orders.amount", "order_items.quantity", "order_items.unit_price"],
        ),
        ("按等级统计订单数和用户数，写入 x", "table", ["orders", "users"]),
        ("count users and orders by level into x", "table", ["users", "orders"]),
        (
            "join order_items and orders, by city",
            "measure",
            ["order_items.quantity", "order_items.unit_price", "orders.amount"],
        ),
    ],
)
def test_two_readings_are_asked_and_each_choice_is_taken(
    question: str, kind: str, choices: list[str]
) -> None:
    reading = _read(question)
    assert reading.intent is None
    assert [ambiguity.kind for ambiguity in reading.ambiguities] == [kind]
    assert [choice.value for choice in reading.ambiguities[0].choices] == choices
    taken = set()
    for choice in choices:
        answered = _read(question, **{reading.ambiguities[0].id: choice})
        assert reading.ambiguities[0] not in answered.ambiguities
        shown = (
            _said(answered)
            if answered.intent
            else [ambiguity.prompt for ambiguity in answered.ambiguities]
        )
        taken.add(str(shown))
    assert len(taken) == len(choices)


def test_a_value_that_is_not_stored_is_asked_among_those_that_are() -> None:
    reading = _read("从订单表里排除已取消的，按城市汇总订单金额", column="orders.status")
    (asked,) = reading.ambiguities
    assert asked.kind == "filter_value"
    answers = {"column": "orders.status", "filter_value": "cancelled"}
    done = _read("从订单表里排除已取消的，按城市汇总订单金额", **answers)
    assert _said(done)[0] == "filter orders.status != cancelled"


@pytest.mark.parametrize(
    ("question", "kind", "word"),
    [
        ("删除订单表", "not_a_transformation", "删除"),
        ("send the orders to bob by email", "not_a_transformation", "email"),
        ("predict the amount of orders by month", "not_a_transformation", "predict"),
        ("把订单表和用户表关联，用彩虹汇总金额", "unknown_name", "彩虹"),
        ("join orders and users, sum of amount by planet", "unknown_name", "planet"),
        ("join orders and warehouses, sum of amount by city", "unknown_name", "warehouses"),
        ("订单表，按城市汇总订单金额，再按城市拆开", "unknown_name", "拆开"),
        ("make monthly amount from orders joined with users", "unknown_name", "monthly"),
        ("统计工资表的记录数", "unknown_name", "工资表"),
        ("从订单表按城市统计订单数和平均", "unknown_name", "平均"),
        ("from orders, sum of amount 7 by city", "unknown_name", "7"),
        ("from orders, average number of orders by city", "unknown_name", "average"),
        ("top 3 blorbs per city by amount into x", "unknown_name", "blorbs"),
        ("from secret_salary: number of rows by city", "unknown_name", "secret_salary"),
    ],
)
def test_what_is_not_covered_is_named(question: str, kind: str, word: str) -> None:
    reading = _read(question)
    assert reading.intent is None
    refusals = [one for one in reading.impossible if one.kind == kind]
    assert any(word in refusal.text for refusal in refusals), reading


@pytest.mark.parametrize(
    ("question", "suggestion"),
    [
        ("keep the 3 users with the highest amount, into x", "top 3 users per … by amount"),
        ("只保留金额最高的3个用户，写入 x", "每个…中金额前3的用户"),
    ],
)
def test_a_refusal_points_to_the_form_that_works(question: str, suggestion: str) -> None:
    (refusal,) = _read(question).impossible
    assert refusal.suggestions == [suggestion]


# As a program may have sent it: an alias, names that are left out.
_EARLIER = UserIntent.model_validate(
    {
        "summary": "sales",
        "data_sources": [{"table_name": "orders", "alias": "o"}, {"table_name": "users"}],
        "data_target": {"table_name": "sales"},
        "operations": [
            {"order": 1, "action": "join", "parameters": {"left": "o", "right": "users"}},
            {
                "order": 2,
                "action": "aggregate",
                "parameters": {
                    "group_by": [{"column": "created_at", "unit": "month"}, {"column": "level"}],
                    "measures": [{"function": "sum", "column": "amount"}],
                },
            },
            {"order": 3, "action": "sink", "parameters": {"columns": ["month", "sum_amount"]}},
        ],
    }
)
_JOIN = "join left o users"


@pytest.mark.parametrize(
    ("follow_up", "expected"),
    [
        ("drop level", [_JOIN, "aggregate month(o.created_at) | sum(o.amount)"]),
        (
            "再按城市拆分，改成按周",
            [_JOIN, "aggregate week(o.created_at), users.level, o.city | sum(o.amount)"],
        ),
        (
            "replace level with city, average instead of sum",
            [_JOIN, "aggregate month(o.created_at), o.city | avg(o.amount)"],
        ),
        (
            "use paid_at instead, only 2024",
            [
                _JOIN,
                "filter o.paid_at >= 2024-01-01 and o.paid_at < 2025-01-01",
                "aggregate month(o.paid_at), users.level | sum(o.amount)",
            ],
        ),
        (
            "排除买过商品钢笔的用户，再算累计",
            [
                _JOIN,
                "filter products.name = 钢笔 in products",
                "join anti users products",
                "aggregate month(o.created_at), users.level | sum(o.amount)",
                "window sum(sum_amount) per ['level'] by month asc",
            ],
        ),
        ("by city", ["grain: add, replace"]),
        ("hello there", ["not_a_transformation"]),
        ("再按彩虹拆分", ["unknown_name"]),
    ],
)
def test_a_follow_up_changes_any_request(follow_up: str, expected: list[str]) -> None:
    findings = RequestFindings({}, "en")
    intent = read_sentence(follow_up, SALES, lexicon_of(SALES), findings, _EARLIER)
    if intent is None:
        asked = [_asked(ambiguity) for ambiguity in findings.ambiguities]
        assert asked + [one.kind for one in findings.impossible] == expected
        return
    operations = [operation for operation in intent.operations if operation.action != "sink"]
    said = _said(AnalysisResult(intent=intent.model_copy(update={"operations": operations})))
    assert said == [*expected, "into sales"]


def _asked(question: Ambiguity) -> str:
    return f"{question.kind}: {', '.join(choice.value for choice in question.choices)}"


_WORDS = """
订单表 用户表 关联 按 月 汇总 金额 写入 只保留 排除 去重 前 3 的 和 ， 累计 补 0 没有数据
状态 paid join orders by month sum of amount top per where into and then exclude 彩虹 2024
最新 城市 每个 环比 not or > 'x
"""


@given(st.lists(st.sampled_from(_WORDS.split()), max_size=14), st.sampled_from(["", " "]))
def test_any_words_end_in_an_intent_a_question_or_a_refusal(words: list[str], blank: str) -> None:
    reading = _read(blank.join(words))
    is_open = bool(reading.ambiguities or reading.impossible)
    assert (reading.intent is None) == is_open
