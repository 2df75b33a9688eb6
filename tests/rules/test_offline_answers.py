"""What an answer by rules says of itself: what was assumed, what a part can't show, what to ask
instead.
"""

import asyncio
import re
from dataclasses import replace
from decimal import Decimal

import pytest

from common.inquiry import Inquiry
from common.text import language_of
from common.values import Catalog, Column, Draft, ForeignKey, NoSql, QueryResult, Sql, Table, Turn
from rules.skills import OfflineSkills
from tests.support.offline_catalogs import CUSTOMERS, ITEMS, SALES_BY_TWO, SHOP

SKILLS = OfflineSkills()
ORDERS = Table(
    "public",
    "orders",
    "table",
    (
        Column("order_id", "integer", nullable=False),
        Column("customer_id", "integer", nullable=False),
        Column("order_time", "timestamp without time zone", "下单时间"),
        Column("pay_time", "timestamp without time zone", "支付时间"),
        Column("pay_amount", "numeric", "实付金额"),
        Column("discount_amount", "numeric", "优惠金额"),
        Column("status", "text", values=("open", "closed"), is_complete=True),
    ),
    "订单",
    primary_key=("order_id",),
    foreign_keys=(ForeignKey(("customer_id",), ("public", "customers"), ("customer_id",)),),
)
PRODUCTS = Table(
    "public",
    "products",
    "table",
    (
        Column("product_id", "integer", nullable=False),
        Column("product_name", "text"),
        Column("unit_price", "numeric"),
        Column("stock_quantity", "integer"),
    ),
    primary_key=("product_id",),
)
CATALOG = Catalog((CUSTOMERS, ORDERS, PRODUCTS))


def asked(question: str, catalog: Catalog = CATALOG, history: tuple[Turn, ...] = ()) -> Inquiry:
    return Inquiry(question, language_of(question), catalog, history=history)


def draft(question: str, catalog: Catalog = CATALOG, history: tuple[Turn, ...] = ()) -> Draft:
    return asyncio.run(SKILLS.write_sql(asked(question, catalog, history))).value


def sql(question: str, catalog: Catalog = CATALOG, history: tuple[Turn, ...] = ()) -> str:
    written = draft(question, catalog, history)
    assert isinstance(written, Sql), written
    return written.text


def summary(question: str, rows: tuple[list[object], ...], catalog: Catalog = CATALOG) -> str:
    columns = tuple(f"c{index}" for index in range(len(rows[0])))
    types = tuple("text" if isinstance(value, str) else "numeric" for value in rows[0])
    result = QueryResult(columns, types, rows)
    return asyncio.run(
        SKILLS.summarize(asked(question, catalog), sql(question, catalog), result)
    ).value


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("订单总金额", "这里按“实付金额”统计，另有：优惠金额。"),
        ("2024年的订单数", "时间按“下单时间”计，另有：支付时间。"),
        ("number of orders in 2024", 'Dated by "order time"; there is also: pay time.'),
    ],
)
def test_a_choice_that_the_question_left_is_said_with_what_else_there_is(
    question: str, says: str
) -> None:
    assert says in summary(question, ([Decimal(5)],))


def test_a_value_taken_by_a_part_of_it_is_said_in_the_answer() -> None:
    assert "“乌龙”按“乌龙茶”查询。" in summary("乌龙的单价", ([Decimal(5)],), ITEMS)


@pytest.mark.parametrize(
    "question", ["订单实付金额合计", "支付时间在2024年的订单数", "total pay amount"]
)
def test_what_the_question_names_is_not_repeated(question: str) -> None:
    said = summary(question, ([Decimal(5)],))
    assert not {"另有", "there is also"} & {
        word for word in ("另有", "there is also") if word in said
    }


def test_an_average_over_groups_says_which_groups() -> None:
    said = summary("average number of orders per customer", ([Decimal(6)],), SHOP)
    assert 'Only those of "customers" that have "orders" are counted; to count all, add' in said


TOP: tuple[list[object], ...] = (["Ann", Decimal(9)], ["Bob", Decimal(5)], ["Cid", Decimal(4)])


def test_the_end_of_a_top_three_is_not_called_the_lowest() -> None:
    for question in ("top 3 customers by pay amount", "实付金额最高的3个customers"):
        said = summary(question, TOP)
        assert all(name in said for name in ("Ann", "Bob", "Cid")), said
        assert not {"lowest", "最低"} & {word for word in ("lowest", "最低") if word in said}
    lowest = summary("bottom 3 customers by pay amount", TOP[::-1])
    assert "lowest for Cid" in lowest
    assert "highest" not in lowest
    assert "lowest for Cid" in summary("pay amount per customer", TOP)


def test_rows_cut_off_at_the_limit_have_no_lowest() -> None:
    result = replace(QueryResult(("name", "n"), ("text", "int4"), TOP), is_limited=True)
    said = asyncio.run(SKILLS.summarize(asked("q"), "SELECT name, n FROM t", result)).value
    assert "Ann" in said
    assert "lowest" not in said
    shuffled = replace(result, rows=(TOP[1], TOP[0], TOP[2]))
    assert (
        "highest"
        not in asyncio.run(SKILLS.summarize(asked("q"), "SELECT name, n FROM t", shuffled)).value
    )


def test_what_is_unlike_a_value_may_have_none() -> None:
    assert "status IS DISTINCT FROM 'open'" in sql("number of orders whose status is not open")


@pytest.mark.parametrize("question", ["orders of the last 7 days", "最近7天的订单"])
def test_the_last_seven_days_are_seven(question: str) -> None:
    assert "order_time >= CURRENT_DATE - 7 AND order_time < CURRENT_DATE" in sql(question).replace(
        "CURRENT_DATE + 1", ""
    )


@pytest.mark.parametrize("question", ["recent orders", "最近的订单"])
def test_recent_things_are_several(question: str) -> None:
    assert sql(question).endswith("LIMIT 10")
    assert "ORDER BY order_time DESC" in sql(question)


@pytest.mark.parametrize("question", ["recent sales", "latest 10 sales"])
def test_a_thing_called_like_a_figure_is_listed_by_its_date(question: str) -> None:
    written = sql(question, SALES_BY_TWO)
    assert "ORDER BY sold_on DESC" in written
    assert written.endswith("LIMIT 10")


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("customer with the largest sale by total amount", "sum(s.total_amount)"),
        ("最好的customer，按销售数", "count(*)"),
    ],
)
def test_what_a_ranking_is_by_is_not_dropped(question: str, figure: str) -> None:
    assert figure in sql(question, SALES_BY_TWO)


@pytest.mark.parametrize(
    ("pending", "answer", "name"),
    [
        ("who has the most total amount", "agent", "full_name"),
        ("who has the most total amount", "customers", "name"),
        ("谁的销售金额最大", "员工", "full_name"),
    ],
)
def test_who_asks_back_where_it_may_be_several_kinds_of_people(
    pending: str, answer: str, name: str
) -> None:
    refused = draft(pending, SALES_BY_TWO)
    assert isinstance(refused, NoSql)
    assert refused.reason == "ambiguous_question"
    assert f".{name}" in sql(answer, SALES_BY_TWO, (refused_turn(pending),))


def test_the_thing_with_the_most_is_shown_not_only_its_figure() -> None:
    for word in ("max", "maximum", "highest"):
        written = sql(f"order with the {word} total amount", SHOP)
        assert "order_id" in written
        assert "ORDER BY total_amount DESC" in written


# ------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize(
    ("question", "offers"),
    [
        ("pay amuont by statsu", "pay amount by status"),
        ("3月的订单数", "今年3月的订单数"),
        ("number of orders in March", "number of orders in March this year"),
        ("top product", "top product by unit price"),
    ],
)
def test_a_refusal_offers_questions_that_work(question: str, offers: str) -> None:
    refused = draft(question)
    assert isinstance(refused, NoSql), refused
    assert offers in [rewrite.question for rewrite in refused.rewrites]
    assert sql(offers)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("weather by status", '"weather"'),
        ("How are zorbs priced", '"zorbs"'),
        ("有争议的订单", "“争议"),
        ("没有争议的订单", "“争议"),
    ],
)
def test_a_refusal_leaves_no_word_out_and_shows_what_can_be_asked(
    question: str, names: str
) -> None:
    refused = draft(question)
    assert isinstance(refused, NoSql), refused
    assert names in refused.prompt and '"How"' not in refused.prompt
    assert not refused.rewrites
    assert len({example.sql for example in refused.examples}) == len(refused.examples) >= 2


@pytest.mark.parametrize("question", ["订单复购率", "复购率", "订单的复购情况", "赔率最高的商品"])
def test_no_single_character_is_called_a_name(question: str) -> None:
    refused = draft(question)
    assert isinstance(refused, NoSql), refused
    assert not re.search("“.”", refused.prompt)


def refused_turn(question: str) -> Turn:
    return Turn("r", question, "DATABASE", "hybrid", "?", "2026-01-01T00:00:00.000+00:00")


@pytest.mark.parametrize(
    ("pending", "answer", "means"),
    [
        ("heaviest product", "unit price", "heaviest product by unit price"),
        ("heaviest product", "by the stock quantity", "heaviest product by stock quantity"),
        ("3月的订单数", "2024年", "2024年3月的订单数"),
        ("number of orders in March", "2024", "number of orders in March 2024"),
    ],
)
def test_the_answer_to_a_question_back_resumes_the_pending_one(
    pending: str, answer: str, means: str
) -> None:
    assert isinstance(draft(pending), NoSql)
    assert sql(answer, history=(refused_turn(pending),)) == sql(means)


@pytest.mark.parametrize("question", ["number of orders in 2024", "orders by status"])
def test_a_question_of_its_own_after_a_refusal_stays_one(question: str) -> None:
    assert sql(question, history=(refused_turn("heaviest product"),)) == sql(question)


@pytest.mark.parametrize("question", ["金额最大的订单是谁的", "实付金额最大的订单是哪个customer的"])
def test_who_is_never_answered_without_a_name(question: str) -> None:
    written = draft(question)
    assert isinstance(written, NoSql) or "customers" in written.text
