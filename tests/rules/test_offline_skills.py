"""The offline skills through their public surface: classifying, refusing, repairing, summarising,
chatting.
"""

import asyncio
import gc
import re
import weakref
from dataclasses import replace
from decimal import Decimal

import pytest

from agent.flows.ask.routing import SURE
from common.errors import ForbiddenStatement, InvalidSql
from common.inquiry import Inquiry
from common.text import Lang, language_of
from common.values import Catalog, Column, Draft, ForeignKey, NoSql, QueryResult, Sql, Table
from rules.answering.offers import example_questions
from rules.composing.understanding import Understanding, understand
from rules.query.pending import Settled
from rules.skills import OfflineSkills
from tests.support.effort import slow_beyond
from tests.support.offline_catalogs import AIR, CHINESE, ITEMS, SHOP, STORES

SKILLS = OfflineSkills()


def inquiry(
    question: str,
    catalog: Catalog = SHOP,
    *,
    lang: Lang | None = None,
    table: str | None = None,
    context_type: str | None = None,
) -> Inquiry:
    return Inquiry(question, lang or language_of(question), catalog, table, context_type)


def draft(question: str, catalog: Catalog = SHOP, *, table: str | None = None) -> Draft:
    return asyncio.run(SKILLS.write_sql(inquiry(question, catalog, table=table))).value


def sql(question: str, catalog: Catalog = SHOP) -> str:
    written = draft(question, catalog)
    assert isinstance(written, Sql), written
    return written.text


def refusal(question: str, catalog: Catalog = SHOP) -> NoSql:
    written = draft(question, catalog)
    assert isinstance(written, NoSql), written
    return written


# ------------------------------------------------------------------------------
# classify


@pytest.mark.parametrize(
    "question",
    [
        "How many customers are there?",
        "orders in 2024",
        "top 5 customers by total amount",
        "有多少客户",
        "Berlin customers",
        "SELECT * FROM orders",
        "delete all orders",
        "average order amount per city",
    ],
)
def test_data_questions_are_recognised(question: str) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry(question))).value
    assert verdict.question_type == "DATABASE"
    assert verdict.confidence >= 0.6


@pytest.mark.parametrize(
    ("question", "catalog"),
    [
        ("Which customers are blacklisted?", SHOP),
        ("被拉黑的门店有哪些", CHINESE),
        ("快关闭的门店", CHINESE),
        ("各门店的满意度", CHINESE),
        ("员工满意度", CHINESE),  # no word of the database
        ("护士一共有多少人？", CHINESE),
        ("客户留存率", SHOP),
        ("customers with a personal offer", SHOP),
    ],
)
def test_who_asks_for_rows_is_not_talked_to(question: str, catalog: Catalog) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry(question, catalog))).value
    assert verdict.question_type == "DATABASE"


@pytest.mark.parametrize(
    "question",
    [
        "hello",
        "Hi there!",
        "thank you",
        "who are you?",
        "what can you do?",
        "你好",
        "谢谢",
        "你是谁",
        "你能做什么？",
    ],
)
def test_small_talk_is_recognised(question: str) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry(question))).value
    assert verdict.question_type == "CHAT"
    assert verdict.confidence >= 0.6
    assert verdict.method == "rule_based_chat"


@pytest.mark.parametrize(
    "question",
    [
        "tell me a joke",
        "what's the weather like today",
        "What is the capital of France?",
        "今天天气怎么样",
        "讲个笑话",
        "写一首诗",
        "I met our customers in Berlin yesterday",
        "How do I get more orders?",
        "客户生气了怎么办",
        "客户有什么用",
        "客户和订单有什么不同",
    ],
)
def test_talk_is_chat_but_a_model_may_know_better(question: str) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry(question))).value
    assert (verdict.question_type, verdict.method) == ("CHAT", "rule_based_chat")
    assert verdict.confidence < SURE


@pytest.mark.parametrize(
    "question",
    [
        "number of custmers",
        "top 5 customers",
        "orders in March",
        "quartile of order amount",
        "add some salt",
    ],
)
def test_a_question_without_a_query_is_for_the_model_and_by_rules_a_data_question(
    question: str,
) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry(question))).value
    assert verdict.question_type == "DATABASE"
    assert verdict.confidence < SURE


def test_a_question_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(one: Inquiry, settled: Settled) -> Understanding:
        asked.append(one.question)
        return understand(one, settled)

    monkeypatch.setattr("rules.conversation.prior_turns.understand", counted)
    one = inquiry("How many customers live in Berlin?")

    async def think() -> None:
        await SKILLS.classify(one)
        written = (await SKILLS.write_sql(one)).value
        assert isinstance(written, Sql)
        await SKILLS.summarize(one, written.text, QueryResult(("n",), ("bigint",), ([3],)))

    asyncio.run(think())
    assert asked == [one.question]


def test_what_was_worked_out_does_not_keep_its_catalogue() -> None:
    catalog = replace(SHOP, tables=SHOP.tables[:1])
    asyncio.run(SKILLS.classify(inquiry("How many customers are there?", catalog)))
    asyncio.run(SKILLS.classify(inquiry("How many unicorn customers are there?", catalog)))
    alive = weakref.ref(catalog)
    del catalog
    gc.collect()
    assert alive() is None


def test_talk_that_mentions_the_data_is_offered_questions_that_can_be_answered() -> None:
    for question in (
        "The customer is always right",
        "I met our customers in Berlin yesterday",
        "客户总是对的吗",
    ):
        text = asyncio.run(SKILLS.chat(inquiry(question))).value
        assert "conversation" in text or "聊天" in text
        offers = [line.removeprefix("- ") for line in text.splitlines() if line.startswith("- ")]
        assert 1 <= len(offers) <= 2
        for offer in offers:
            assert asyncio.run(SKILLS.classify(inquiry(offer))).value.question_type == "DATABASE"
            assert isinstance(draft(offer), Sql), offer


def test_unsure_questions_are_left_to_the_model() -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry("what about the other ones"))).value
    assert verdict.confidence < 0.6
    assert verdict.method == "rule_based_default"


def test_the_previous_turn_nudges_unsure_questions() -> None:
    plain = asyncio.run(SKILLS.classify(inquiry("and the open ones in 2024"))).value
    verdict = asyncio.run(
        SKILLS.classify(inquiry("and last month?", context_type="DATABASE"))
    ).value
    assert verdict.question_type == "DATABASE"
    assert plain.question_type == "DATABASE"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_reasons_are_in_the_language_of_the_answer(lang: Lang) -> None:
    verdict = asyncio.run(SKILLS.classify(inquiry("How many customers", lang=lang))).value
    assert bool(re.search("[\u4e00-\u9fff]", verdict.reason)) == (lang == "zh")


# ------------------------------------------------------------------------------
# writes and pasted SQL


@pytest.mark.parametrize(
    ("question", "operation"),
    [
        ("delete all orders", "DELETE"),
        ("Please remove the customer Ann Lee", "DELETE"),
        ("drop the orders table", "DROP"),
        ("update the status of order 5 to shipped", "UPDATE"),
        ("can you change the city of Bob Ray to Rome", "UPDATE"),
        ("insert a new customer named Joe", "INSERT"),
        ("add a customer called Joe", "INSERT"),
        ("create a table for refunds", "CREATE"),
        ("truncate orders table", "TRUNCATE"),
        ("show all orders and then delete them", "DELETE"),
        ("删除所有已关闭的订单", "DELETE"),
        ("帮我把订单5删除", "DELETE"),
        ("请将订单5的状态改为已发货", "UPDATE"),
        ("清空订单表", "TRUNCATE"),
        ("新增一个客户", "INSERT"),
        ("查询所有订单然后删除它们", "DELETE"),
        ("把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表", "INSERT"),
        ("JOIN 订单 和 会员 写入 dw_order", "INSERT"),
        ("orders: total amount by month, into a monthly_sales table", "INSERT"),
        ("把订单和用户做成一张宽表", "CREATE"),
    ],
)
def test_requests_to_change_data_are_forbidden(question: str, operation: str) -> None:
    with pytest.raises(ForbiddenStatement) as caught:
        draft(question)
    assert caught.value.operation == operation


@pytest.mark.parametrize(
    "question",
    [
        "已删除的客户有多少",
        "deleted customers",
        "How many customers were created last month?",
        "orders updated yesterday",
        "新增客户数量",
        "更新时间最晚的订单",
        "drop in sales",
        "added customers per month",
        "show all orders as a table",
        "what was written into the orders table?",
        "订单表里有多少行",
    ],
)
def test_words_about_data_are_not_orders_to_change_it(question: str) -> None:
    draft(question)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM orders",
        "select name from customers where city = 'Paris'",
        "DELETE FROM orders",
        "SELECT 1; DROP TABLE orders",
        "DROP TABLE orders",
        "UPDATE orders SET status = 'x' WHERE order_id = 1",
        "WITH t AS (SELECT 1) SELECT * FROM t",
        "INSERT INTO orders VALUES (1)",
        "select count(*) from orders",
    ],
)
def test_pasted_sql_is_the_draft_verbatim(statement: str) -> None:
    assert sql(statement) == statement


def test_sql_in_a_fence_or_after_a_colon_is_taken_out() -> None:
    assert sql("```sql\nSELECT 1\n```") == "SELECT 1"
    assert sql("请执行：SELECT * FROM orders") == "SELECT * FROM orders"


def test_a_sentence_that_begins_with_select_is_a_question() -> None:
    assert "WHERE" in sql("Select the customers from Berlin")


# ------------------------------------------------------------------------------
# honesty


def test_unknown_words_are_named_with_near_names() -> None:
    refused = refusal("number of custmers")
    assert refused.reason == "missing_database_info"
    assert "custmers" in refused.prompt
    assert "customers" in refused.prompt


@pytest.mark.parametrize(
    "question",
    [
        "why did sales drop",
        "quartile of order amount",
        "correlation between city and amount",
        "forecast sales for next year",
        "estimate the orders of next month",
        "预测下个月的订单金额",
        "为什么订单减少",
    ],
)
def test_constructs_beyond_rules_are_refused_by_name(question: str) -> None:
    assert refusal(question).reason == "unknown_generation_failure"


def test_a_month_without_its_year_is_asked_for() -> None:
    assert refusal("orders in March").reason == "ambiguous_question"


def test_a_ranking_without_a_figure_is_asked_for() -> None:
    assert refusal("top 5 customers").reason == "ambiguous_question"


def test_two_references_to_one_table_are_asked_about() -> None:
    refused = refusal("number of flights by airport", AIR)
    assert refused.reason == "ambiguous_question"
    assert "origin_airport_id" in refused.prompt


def test_a_word_of_the_question_chooses_between_references() -> None:
    assert "origin_airport_id" in sql("number of flights by origin airport", AIR)


def test_refusals_speak_the_language_of_the_answer() -> None:
    english = asyncio.run(SKILLS.write_sql(inquiry("利润", lang="en"))).value
    assert isinstance(english, NoSql)
    assert english.prompt.startswith("Nothing in the database is called")


def test_a_value_and_a_condition_joined_by_or_are_not_answered_as_and() -> None:
    assert isinstance(draft("orders that are open or above 500"), NoSql)


# ------------------------------------------------------------------------------
# who is meant

PEOPLE = ("冯晨", "李娜", "王建国", "赵明")
ABOUT_PEOPLE = (
    "{}的订单有多少",
    "{}有多少订单",
    "{}在哪个部门",
    "查一下{}的订单",
    "{}2024年的订单",
    "{}下了几个订单",
)


@pytest.mark.parametrize("number", slow_beyond(2, range(len(ABOUT_PEOPLE))))
def test_nobody_is_read_out_of_a_longer_or_shorter_name(number: int) -> None:
    """Each way of asking with other characters behind the name than the others."""
    said = ABOUT_PEOPLE[number]
    added = "明华中里上和同为来进花一三学会"[number :: len(ABOUT_PEOPLE)]
    for name in PEOPLE:
        assert f"= '{name}'" in sql(said.format(name), STORES)
        for other in (
            *(name + one for one in added),
            name[1:] + "华",
            name[:2] + "军",
        ):
            assert name not in getattr(draft(said.format(other), STORES), "text", ""), (said, other)
    assert "是不是要找“王建国”" in refusal(said.format("王建"), STORES).prompt
    assert "没有“冯晨明”；您是不是要找“冯晨”？" in refusal(said.format("冯晨明"), STORES).prompt


@pytest.mark.parametrize("said", ["orders of {}", "number of orders of {}", "Which team is {} in?"])
def test_an_inflected_or_partial_english_name_is_nobodys(said: str) -> None:
    assert "= 'Ann Lee'" in sql(said.format("Ann Lee"), STORES)
    for other in ("Ann", "Ann Lees", "Ann Leeson", "Lee", "Ann Le"):
        assert isinstance(draft(said.format(other), STORES), NoSql), other


@pytest.mark.parametrize(
    ("said", "stored", "others"),
    [
        ("price of {}", "PX100", ("PX100A", "1PX100", "PX1000", "PX100-B")),
        ("{}的单价", "AX-1001", ("AX-1001A", "AX-10010", "XAX-1001")),
        ("price of {}", "Old Mill", ("New Old Mill", "North Mill", "Mill East")),
        ("{}的单价", "乌龙茶", ("乌龙花", "乌龙一", "乌龙茶花")),
    ],
)
def test_nothing_is_read_out_of_a_longer_name(
    said: str, stored: str, others: tuple[str, ...]
) -> None:
    assert f"= '{stored}'" in sql(said.format(stored), ITEMS)
    for other in others:
        assert isinstance(draft(said.format(other), ITEMS), NoSql), other


@pytest.mark.parametrize(
    ("question", "stored", "catalog"),
    [
        ("price of px 100", "PX100", ITEMS),
        ("ＰＸ100的单价", "PX100", ITEMS),
        ("price of old mill", "Old Mill", ITEMS),
        ("烏龍茶的單價", "乌龙茶", ITEMS),
        ("趙明的訂單有多少", "赵明", STORES),
    ],
)
def test_another_spelling_of_the_whole_name_is_it(
    question: str, stored: str, catalog: Catalog
) -> None:
    assert f"= '{stored}'" in sql(question, catalog)


# ------------------------------------------------------------------------------
# names before values


@pytest.mark.parametrize(
    ("question", "written"),
    [
        ("一共有多少个门店？", "SELECT count(*) AS store_count FROM store"),
        ("渠道为门店的订单数", "SELECT count(*) AS sale_count FROM sale WHERE channel = '门店'"),
        ("门店渠道的订单数", "SELECT count(*) AS sale_count FROM sale WHERE channel = '门店'"),
        ("线上订单数", "SELECT count(*) AS sale_count FROM sale WHERE channel = '线上'"),
    ],
)
def test_a_name_comes_before_a_value_of_the_same_text(question: str, written: str) -> None:
    assert " ".join(sql(question, STORES).split()) == written


def test_an_example_that_is_read_as_something_else_is_not_offered() -> None:
    offered = example_questions(STORES, "zh")
    assert "各门店的租金排行" not in offered, "read as the stores' own rent, not the sales'"
    assert "一共有多少个员工？" in offered


# ------------------------------------------------------------------------------
# SQL


def test_soft_deleted_rows_are_left_out_unless_spoken_of() -> None:
    assert "NOT is_deleted" in sql("How many customers are there?")
    assert "WHERE is_deleted" in sql("How many deleted customers are there?")
    assert "is_deleted" not in sql("How many customers are there including deleted ones?")


def test_entities_of_one_name_stay_apart() -> None:
    assert "GROUP BY c.customer_id, c.name" in sql("total amount by customer")


def test_periods_are_half_open() -> None:
    written = sql("orders in 2024")
    assert "order_date >= DATE '2024-01-01' AND order_date < DATE '2025-01-01'" in written


def test_codes_explained_in_a_comment_are_values() -> None:
    assert "state = 1" in sql("营业的门店有多少家", CHINESE)


def test_reserved_names_are_quoted() -> None:
    assert 'max("order")' in sql("最大的顺序是多少", AIR)


def test_a_hinted_table_decides_between_equal_columns() -> None:
    twin = replace(SHOP.tables[1], name="returns", foreign_keys=())
    catalog = Catalog((*SHOP.tables, twin))
    assert isinstance(draft("average total amount", catalog), NoSql)
    hinted = draft("average total amount", catalog, table="returns")
    assert isinstance(hinted, Sql)
    assert "FROM returns" in hinted.text


# ------------------------------------------------------------------------------
# repair


def repaired(statement: str, error: InvalidSql) -> Draft:
    return asyncio.run(SKILLS.repair_sql(inquiry("?", lang="en"), statement, error)).value


def test_a_misspelt_table_is_mended() -> None:
    error = InvalidSql('relation "custmers" does not exist', sqlstate="42P01", position=15)
    assert repaired("SELECT * FROM custmers", error) == Sql("SELECT * FROM customers")


def test_a_misspelt_column_is_mended_where_the_server_points() -> None:
    error = InvalidSql("column o.totl_amount does not exist", sqlstate="42703", position=8)
    statement = "SELECT o.totl_amount FROM orders o"
    assert repaired(statement, error) == Sql("SELECT o.total_amount FROM orders o")


def test_what_is_not_clearly_a_slip_is_not_mended() -> None:
    unknown = repaired(
        "SELECT * FROM zebra",
        InvalidSql('relation "zebra" does not exist', sqlstate="42P01", position=15),
    )
    other = repaired("SELECT FROM", InvalidSql("syntax error at end of input", sqlstate="42601"))
    assert isinstance(unknown, NoSql)
    assert isinstance(other, NoSql)
    assert other.reason == "unknown_generation_failure"


# ------------------------------------------------------------------------------
# summary


def summary(
    question: str, result: QueryResult, statement: str = "SELECT 1"
) -> tuple[str, list[str]]:
    pieces: list[str] = []
    outcome = asyncio.run(SKILLS.summarize(inquiry(question), statement, result, pieces.append))
    return outcome.value, pieces


def test_a_single_value_is_stated() -> None:
    text, _ = summary("How many customers", QueryResult(("count",), ("int8",), ([1234],)))
    assert "1,234" in text


def test_a_ranking_names_its_ends_and_the_count() -> None:
    rows = (["A", Decimal("30.50")], ["B", Decimal("20")], ["C", Decimal("7")])
    text, pieces = summary("ranking", QueryResult(("name", "total"), ("text", "numeric"), rows))
    assert "3" in text
    assert "A (30.5)" in text
    assert "C (7)" in text
    assert "".join(pieces) == text


def test_a_limited_result_says_so() -> None:
    rows = tuple([index] for index in range(5))
    text, _ = summary("客户", QueryResult(("id",), ("int4",), rows, is_limited=True))
    assert "只返回了前 5 条" in text


def test_what_is_counted_stands_in_the_plural() -> None:
    question = "How many customers are there?"
    text, _ = summary(question, QueryResult(("customers_count",), ("int8",), ([3],)), sql(question))
    assert text == "Number of customers: 3."


def test_english_answers_call_things_by_their_english_names() -> None:
    question = "number of stores by state"
    rows = QueryResult(("state", "t_store_count"), ("int2", "int8"), ([0, 2], [1, 5]))
    statement = asyncio.run(SKILLS.write_sql(inquiry(question, CHINESE))).value
    assert isinstance(statement, Sql)
    text = asyncio.run(SKILLS.summarize(inquiry(question, CHINESE), statement.text, rows)).value
    assert not re.search("[\u4e00-\u9fff]", text)


def test_a_product_is_not_called_by_one_of_its_factors() -> None:
    columns = (
        Column("order_id", "integer"),
        Column("quantity", "integer"),
        Column("unit_price", "numeric(10,2)"),
    )
    to_order = ForeignKey(("order_id",), ("public", "orders"), ("order_id",))
    lines = Catalog(
        (
            Table(
                "public",
                "orders",
                "table",
                (Column("order_id", "integer"),),
                primary_key=("order_id",),
            ),
            Table("public", "order_items", "table", columns, foreign_keys=(to_order,)),
        )
    )
    question = "total revenue"
    written = asyncio.run(SKILLS.write_sql(inquiry(question, lines))).value
    assert isinstance(written, Sql) and "unit_price * quantity" in written.text
    result = QueryResult(("total_unit_price_x_quantity",), ("numeric",), ([Decimal(7068)],))
    assert asyncio.run(SKILLS.summarize(inquiry(question, lines), written.text, result)).value == (
        "Total unit price × quantity: 7,068."
    )


def test_months_are_not_called_by_their_first_day() -> None:
    question = "monthly total amount in 2024"
    rows = (["2024-02-01", Decimal(7)], ["2024-03-01", Decimal(9)])
    result = QueryResult(("month", "total_total_amount"), ("date", "numeric"), rows)
    text, _ = summary(question, result, sql(question))
    assert "2024-03 (9.00)" in text
    assert "-01" not in text


def test_no_rows_are_said_to_be_none() -> None:
    assert summary("x", QueryResult(("a",), ("int4",), ()))[0] == "No rows match."


# ------------------------------------------------------------------------------
# chat


@pytest.mark.parametrize(
    ("question", "lang"), [("what can you do?", "en"), ("你能做什么", "zh"), ("hello", "en")]
)
def test_example_questions_can_really_be_answered(question: str, lang: Lang) -> None:
    pieces: list[str] = []
    text = asyncio.run(SKILLS.chat(inquiry(question, lang=lang), pieces.append)).value
    assert "".join(pieces) == text
    examples = re.findall(r"^- (.+)$", text, flags=re.MULTILINE)
    assert examples
    for example in examples:
        assert isinstance(draft(example), Sql)


def test_chat_without_a_model_says_what_it_cannot() -> None:
    text = asyncio.run(SKILLS.chat(inquiry("write a poem about spring"))).value
    assert text.startswith("Without a language model")


def test_chat_says_that_a_model_is_down_where_one_is_set_up() -> None:
    asked = replace(inquiry("write a poem about spring"), is_model_down=True)
    text = asyncio.run(SKILLS.chat(asked)).value
    assert text.startswith("The language model is down")
    assert "Without a language model" not in text


def test_thanks_are_answered() -> None:
    assert asyncio.run(SKILLS.chat(inquiry("谢谢"))).value.startswith("不客气")
