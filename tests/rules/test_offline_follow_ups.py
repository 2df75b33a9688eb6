"""Follow-ups by rules: conversations held against hand-written SQL, and what no history may ever
change.

In a fixture, a question after `>` is asked in the conversation that the last question without it
began. Rows are compared as they are in the other fixtures; where the SQL begins with `in order`,
their order counts too.
"""

import asyncio
import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import ForbiddenStatement
from common.inquiry import Inquiry
from common.text import Lang, language_of
from common.values import (
    Catalog,
    Classification,
    Column,
    Draft,
    NoSql,
    QueryResult,
    Sql,
    Table,
    Turn,
)
from rules.answering.next_questions import splits_of_last
from tests.support.cases import all_cases
from tests.support.catalogs import CATALOG
from tests.support.effort import tries
from tests.support.offline_catalogs import AIR, CHINESE, SHOP
from tests.support.offline_questions import FIXTURES, REFUSE, Case, cases_of, same_rows
from tests.support.question_databases import QuestionDatabase
from tests.support.rule_conversations import (
    CONVERSATIONS,
    LANGUAGES,
    SKILLS,
    classified,
    conversations_of,
    draft,
    kept,
    turn,
)

IN_ORDER = "/* in order */"
DATABASES = ("store", "hr", "music", "mall", "lib", "clinic")
RELAXED = settings(deadline=None, max_examples=tries(18), suppress_health_check=list(HealthCheck))
DATABASE_METHODS = {
    "rule_based_strong_business",
    "rule_based_medium_business",
    "rule_based_follow_up",
}


def warnings(question: str, history: tuple[Turn, ...], catalog: Catalog = SHOP) -> tuple[str, ...]:
    inquiry = Inquiry(question, language_of(question), catalog, history=history)
    return asyncio.run(SKILLS.write_sql(inquiry)).warnings


def last_sql(*questions: str, catalog: Catalog = SHOP) -> str:
    """The statement of the last question of a conversation, each question asked after the ones
    before.
    """
    history: tuple[Turn, ...] = ()
    written: Draft | None = None
    for question in questions:
        written = draft(question, history, catalog)
        history = (*history, kept(question, written))
    assert isinstance(written, Sql), written
    return written.text


def chat(question: str, history: tuple[Turn, ...], catalog: Catalog = SHOP) -> str:
    return asyncio.run(
        SKILLS.chat(Inquiry(question, language_of(question), catalog, history=history))
    ).value


# ------------------------------------------------------------------------------
# conversations on the demo


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Iterator[QuestionDatabase]:
    with closing(QuestionDatabase(demo_url)) as asked:
        yield asked


ELSEWHERE = {name: list(conversations_of(f"{name}_follow_ups")) for name in DATABASES}


def _lost() -> dict[str, str]:
    """Why a question of a conversation is not answered as it should be, by its database and the
    questions up to it.
    """
    lines = (FIXTURES / "offline" / "follow_ups_lost.txt").read_text("utf-8").splitlines()
    return dict(line.split(" # ", 1) for line in lines if line and not line.startswith("#"))


LOST = _lost()


def _check(
    asked: QuestionDatabase, case: Case, written: Draft, kind: Classification, least: float = 0.6
) -> None:
    if case.gold == REFUSE:
        assert isinstance(written, NoSql), (
            f"{case.question}: should have been refused, but became:\n{written.text}"
        )
        return
    assert isinstance(written, Sql), f"{case.question}: refused: {written}"
    assert kind.question_type == "DATABASE" and kind.method in DATABASE_METHODS, case.question
    assert kind.confidence >= least, case.question
    asked.database.check(written.text)
    gold, answer = asked.rows(case.gold), asked.rows(written.text)
    begins_today = (
        datetime.date.today().day == 1
    )  # a month or year in which nothing has happened yet
    assert gold or begins_today, f"{case.question}: the hand-written SQL finds nothing to compare"
    same = same_rows(gold, answer, in_order=case.gold.startswith(IN_ORDER))
    assert same, (
        f"{case.question}:\n{written.text}\nwanted {len(gold)}: {gold[:5]}\ngot {len(answer)}: "
        f"{answer[:5]}"
    )


@pytest.mark.parametrize(
    "conversation",
    [one for lang in LANGUAGES for one in CONVERSATIONS[lang]],
    ids=lambda one: one[0].question,
)
def test_conversations(demo: QuestionDatabase, conversation: list[Case]) -> None:
    history: tuple[Turn, ...] = ()
    for case in conversation:
        written = draft(case.question, history, demo.catalog)
        _check(demo, case, written, classified(case.question, history, demo.catalog))
        history = (*history, kept(case.question, written))


@pytest.fixture(scope="module")
def elsewhere(offline_database: Callable[[str], str]) -> Iterator[dict[str, QuestionDatabase]]:
    with ExitStack() as opened:
        urls = {one: offline_database(one) for one in ELSEWHERE}
        yield {
            name: opened.enter_context(closing(QuestionDatabase(url))) for name, url in urls.items()
        }


@pytest.mark.parametrize("name", ELSEWHERE)
def test_conversations_on_other_databases(
    elsewhere: dict[str, QuestionDatabase], name: str
) -> None:
    asked = elsewhere[name]
    with all_cases() as cases:
        for conversation in ELSEWHERE[name]:
            history: tuple[Turn, ...] = ()
            for step, case in enumerate(conversation):
                path = " / ".join((name, *(one.question for one in conversation[: step + 1])))
                written = draft(case.question, history, asked.catalog)
                with (
                    cases.case(path),
                    pytest.raises(AssertionError) if path in LOST else nullcontext(),
                ):
                    _check(
                        asked,
                        case,
                        written,
                        classified(case.question, history, asked.catalog),
                        least=0.5,
                    )
                rows = asked.rows(written.text) if isinstance(written, Sql) else []
                seen = {"row_count": len(rows), "rows": tuple(map(tuple, rows[:5]))} if rows else {}
                history = (*history, kept(case.question, written, **seen))


def test_few_follow_ups_are_lost() -> None:
    paths = {
        " / ".join((name, *(one.question for one in conversation[: step + 1])))
        for name, conversations in ELSEWHERE.items()
        for conversation in conversations
        for step in range(len(conversation))
    }
    assert LOST.keys() <= paths
    assert len(LOST) <= 0.07 * len(paths)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_there_are_enough_follow_ups(lang: Lang) -> None:
    conversations = CONVERSATIONS[lang]
    assert sum(len(conversation) - 1 for conversation in conversations) >= 40
    assert sum(len(conversation) > 3 for conversation in conversations) >= 5


# --------------------------------------------------------------------------------------------- what
# stands on its own


NAME_NO_FIGURE = (
    "top 3 days",
)  # refused alone, and answered where a question before it has a figure


@pytest.mark.parametrize("lang", LANGUAGES)
def test_complete_questions_mean_the_same_in_any_conversation(
    demo: QuestionDatabase, lang: Lang
) -> None:
    before = turn("上个月各公司的营业收入" if lang == "zh" else "revenue by company last month")
    for case in cases_of(FIXTURES / f"questions_{lang}.sql"):
        if case.question in NAME_NO_FIGURE:
            continue
        alone = draft(case.question, (), demo.catalog)
        after = draft(case.question, (before,), demo.catalog)
        assert _without_examples(after) == _without_examples(alone), case.question


def _without_examples(made: Draft) -> Draft:
    """How many examples a refusal has depends on how far the rules come in their time."""
    return replace(made, examples=()) if isinstance(made, NoSql) else made


STANDING = (
    "有多少家门店？",
    "列出所有门店",
    "租金最高的门店",
    "各门店的租金",
    "How many stores are there?",
    "平均租金是多少",
)
CHANGES = (
    "那南京路店呢",
    "只看营业的",
    "前3家",
    "按租金排序",
    "倒过来",
    "换成平均值",
    "租金超过1万的",
    "不限",
    "去年同期呢",
    "按月拆分",
    "它们的租金",
    "再加上停业的",
)


@pytest.mark.parametrize("question", STANDING)
@pytest.mark.parametrize("before", ["停业的门店有多少家", "列出租金超过1万的门店"])
def test_no_earlier_question_colours_a_complete_one(question: str, before: str) -> None:
    assert draft(question, (turn(before),), CHINESE) == draft(question, (), CHINESE)


@pytest.mark.parametrize(
    "question", ["那上个月呢", "按公司拆分", "only the top 3", "and in 2024?", "浙江的呢"]
)
def test_without_an_earlier_question_a_follow_up_is_refused(question: str) -> None:
    assert isinstance(draft(question), NoSql)
    chatted = (turn("hello", None, "CHAT"),)
    assert draft(question, chatted) == draft(question)


@pytest.mark.parametrize(
    ("question", "said"),
    [("那上个月呢", "请把问题说完整"), ("only the top 3", "ask the whole question")],
)
def test_a_follow_up_taken_for_chat_is_told_what_it_lacks(question: str, said: str) -> None:
    assert said in chat(question, ())
    assert said not in chat("你觉得呢" if language_of(question) == "zh" else "what is love", ())


def test_another_conversation_is_never_looked_at() -> None:
    last_sql("orders in 2024", "only the open ones")
    assert isinstance(draft("only the open ones"), Sql | NoSql)
    assert draft("above 500") == draft("above 500", ())


# ------------------------------------------------------------------------------
# about what was shown


SALES = Catalog(
    (
        Table(
            "public",
            "sales",
            "table",
            (
                Column("id", "bigint", nullable=False),
                Column("region", "text", values=("north", "south"), is_complete=True),
                Column("product", "text", values=("apple", "pear"), is_complete=True),
                Column("amount", "numeric(12,2)"),
                Column("sold_at", "timestamp without time zone"),
            ),
            primary_key=("id",),
        ),
    )
)


@pytest.mark.parametrize(
    "conversation",
    [
        ("show the 5 latest sales", "what is their total amount?"),
        ("show the 5 latest sales", "sum of amount of these"),
        ("show the 5 latest sales", "它们的总amount是多少"),
        ("show the 5 latest sales", "how many are these?"),
        ("show the 5 latest sales", "how many of them are in north?"),
        ("show the 5 latest sales", "by region"),
        ("show the 5 latest sales", "sum of these by region"),
        ("top 2 products by amount", "total amount of these by region"),
        ("top 2 products by amount", "sum of these"),
        ("top 2 products by amount", "what is their total amount?"),
        ("top 2 products by amount", "in total"),
        ("top 2 products by amount", "how many of these are in north?"),
        ("products with total amount above 500", "sum of these"),
        ("products with total amount above 500", "what is their total amount?"),
        ("average amount by region", "sum of these"),
        ("total amount by region", "how many are these?", "what is the sum of these?"),
        ("total amount by region", "how many are there?", "and the average?"),
        ("total amount by region", "how many are there?", "which is the highest?"),
        ("total amount by region", "how many are there?", "average per day"),
    ],
    ids=" / ".join,
)
def test_no_figure_of_shown_rows_takes_in_others(conversation: tuple[str, ...]) -> None:
    history: tuple[Turn, ...] = ()
    for question in conversation[:-1]:
        written = draft(question, history, SALES)
        assert isinstance(written, Sql), question
        history = (*history, kept(question, written))
    refused = draft(conversation[-1], history, SALES)
    assert isinstance(refused, NoSql), refused.text
    assert history[-1].question in refused.prompt


def test_the_groups_that_were_shown_are_counted_and_added_up() -> None:
    assert "LIMIT 2" in last_sql("top 2 products by amount", "how many are these?", catalog=SALES)
    assert "LIMIT 2" in last_sql(
        "top 2 products by amount", "how many are these?", "list them", catalog=SALES
    )
    assert last_sql("number of customers by city", "sum of these") == last_sql(
        "number of customers"
    )
    for question in ("what is the sum of these?", "what is their total amount?", "in total"):
        assert last_sql("total amount by region", question, catalog=SALES) == last_sql(
            "total amount", catalog=SALES
        )
    assert "region = 'north'" in last_sql(
        "show sales in north", "what is their total amount?", catalog=SALES
    )


def test_their_figures_stand_beside_those_of_the_first_few() -> None:
    for question in ("what is their average total amount?", "and their average total amount"):
        written = last_sql("top 2 cities by total amount", question)
        assert (
            "avg(" in written and "ORDER BY total_total_amount" in written and "LIMIT 2" in written
        )


def test_their_after_a_name_points_back_at_nothing() -> None:
    history = (turn("top 2 cities by total amount"),)
    for question in ("customers and their cities", "list customers with their cities"):
        assert draft(question, history) == draft(question)


def test_a_period_alone_after_a_series_is_asked_of_the_data() -> None:
    shown = {
        "row_count": 13,
        "described": {"column_types": ["date", "numeric"], "periods": ["month", None]},
    }
    for before, question in (
        ("total amount by month", "and last year?"),
        ("total amount by month", "and last month?"),
        ("按月统计amount", "去年呢"),
        ("按月统计amount", "上个月呢"),
    ):
        history = (kept(before, draft(before, (), SALES), **shown),)
        written, kind = draft(question, history, SALES), classified(question, history, SALES)
        assert (
            isinstance(written, Sql)
            and "CURRENT_DATE" in written.text
            and "GROUP BY" in written.text
        )
        assert kind.question_type == "DATABASE" and kind.method == "rule_based_follow_up"
    compared = classified("compared with last month?", history, SALES)
    assert (compared.question_type, compared.analysis) == ("CHAT", ("change",))


UNREADABLE = (
    turn(
        "SELECT id, amount FROM sales WHERE region = 'north'",
        "SELECT id, amount FROM sales WHERE region = 'north'",
    ),
    turn("monthly board report", "SELECT id, amount FROM sales WHERE region = 'north'"),
    turn(
        "sales by product",
        "SELECT product, sum(amount) FROM sales WHERE region = 'north'",
        understood={},
    ),
)


@pytest.mark.parametrize("before", UNREADABLE, ids=lambda before: before.question)
@pytest.mark.parametrize(
    "question",
    [
        "and the total amount?", "only apple", "apple", "also the total amount",
        "what about apple?", "by product", "what is their total amount?", "how many are these?",
        "那总amount呢", "只看apple", "再按product分",
    ],
)  # fmt: skip
def test_a_follow_up_to_what_rules_cannot_read_never_loses_its_conditions(
    before: Turn, question: str
) -> None:
    refused = draft(question, (before,), SALES)
    assert isinstance(refused, NoSql), refused.text
    assert before.question in refused.prompt


@pytest.mark.parametrize("before", UNREADABLE, ids=lambda before: before.question)
@pytest.mark.parametrize(
    "question", ["total amount by region", "sales of apple", "按region统计总amount"]
)
def test_a_complete_question_after_what_rules_cannot_read_is_answered(
    before: Turn, question: str
) -> None:
    alone = draft(question, (), SALES)
    assert isinstance(alone, Sql) and draft(question, (before,), SALES) == alone


@pytest.mark.parametrize(
    "question",
    ["compared with south?", "versus south?", "compare with south", "和south相比呢", "与south比较"],
)
def test_a_value_is_compared_with_the_one_before(question: str) -> None:
    both = last_sql("compare total amount of north and south", catalog=SALES)
    assert last_sql("total amount for north", question, catalog=SALES) == both
    by_product = last_sql("total amount by product for north", question, catalog=SALES)
    assert "GROUP BY product, region" in by_product and "region IN ('north', 'south')" in by_product


@pytest.mark.parametrize(
    ("before", "question"),
    [
        ("total amount", "compared with south?"),
        ("total amount for north", "compared with apple?"),
        ("show sales in north", "compared with south?"),
        ("top 2 products by amount for north", "compared with south?"),
        ("total amount for north in 2025", "compared with south in 2026?"),
    ],
)
def test_what_has_nothing_to_be_compared_with_is_refused(before: str, question: str) -> None:
    written = draft(before, (), SALES)
    assert isinstance(written, Sql)
    assert isinstance(draft(question, (kept(before, written),), SALES), NoSql)


@pytest.mark.parametrize(
    "question",
    [
        "and together with south?",
        "together with south",
        "and as well as south",
        "加上south呢",
        "与south一起呢",
    ],
)
def test_a_value_that_is_added_joins_the_one_before(question: str) -> None:
    both = last_sql("total amount for north and south", catalog=SALES)
    assert last_sql("total amount for north", question, catalog=SALES) == both


@pytest.mark.parametrize(
    "question", ["一共多少个月", "有多少个月", "一共几个月", "how many months are there?"]
)
def test_the_periods_that_were_shown_are_counted(question: str) -> None:
    written = last_sql("2025年各月平均amount", question, catalog=SALES)
    assert (
        "count(*)" in written
        and "GROUP BY date_trunc('month'" in written
        and "2025-01-01" in written
    )
    assert "LIMIT 3" in last_sql("top 3 months by amount", question, catalog=SALES)
    for before in (
        "total amount by day",
        "total amount by region",
        "show the 5 latest sales",
        "总amount",
    ):
        refused = draft(question, (kept(before, draft(before, (), SALES)),), SALES)
        assert isinstance(refused, NoSql), before


# ------------------------------------------------------------------------------
# how it goes together


def test_a_date_replaces_the_date_and_a_value_the_value() -> None:
    written = last_sql("open orders in 2024", "and in 2023?", "shipped ones")
    assert "2023-01-01" in written and "2025-01-01" not in written
    assert "status = 'shipped'" in written and "open" not in written


def test_another_column_adds() -> None:
    written = last_sql("How many orders are there?", "only open", "in 2024", "from Berlin")
    assert "status = 'open'" in written and "2024-01-01" in written and "city = 'Berlin'" in written


def test_groups_are_replaced_or_joined_as_the_words_say() -> None:
    assert "GROUP BY status" in last_sql("number of orders", "by status")
    replaced = last_sql("number of orders by status", "by month instead")
    assert "month" in replaced and "status" not in replaced
    joined = last_sql("number of orders by status", "also by month")
    assert "status" in joined and "month" in joined


def test_a_group_that_is_named_twice_is_one() -> None:
    assert last_sql("total amount by customer", "by city, top 3 per city").startswith(
        "SELECT city, name,"
    )


def test_a_group_replaced_without_saying_so_is_told() -> None:
    history = (turn("number of orders by status"),)
    assert any("status" in warning for warning in warnings("by month", history))
    assert warnings("by month instead", history) == ()


def test_other_rows_after_a_list_that_related_rows_restrict_are_a_question_of_its_own() -> None:
    history = (kept("customers without orders", draft("customers without orders")),)
    assert "NOT EXISTS" not in last_sql("customers without orders", "how about orders")
    assert any(
        "question of its own" in warning for warning in warnings("how about orders", history)
    )


def test_what_does_not_apply_to_a_new_figure_is_left_out_and_told() -> None:
    history = (turn("total amount of open orders by customer city"),)
    question = "what about the number of customers?"
    written = draft(question, history)
    assert isinstance(written, Sql)
    assert "city" in written.text and "status" not in written.text
    assert any("status" in warning for warning in warnings(question, history))


def test_a_reference_once_chosen_stays_chosen() -> None:
    written = last_sql("number of flights by origin airport", "only from Orly", catalog=AIR)
    assert "destination" not in written and "'Orly'" in written


def test_a_limit_does_not_outlive_all() -> None:
    assert "LIMIT" not in last_sql("top 5 customers by total amount", "all of them")


def test_failed_and_chatted_turns_are_passed_over_and_told() -> None:
    history = (
        turn("number of orders by status"),
        turn("and the profit?", None),
        turn("thanks", None, "CHAT"),
    )
    written = draft("only in 2024", history)
    assert isinstance(written, Sql)
    assert "GROUP BY status" in written.text
    assert any(
        "number of orders by status" in warning for warning in warnings("only in 2024", history)
    )


@pytest.mark.parametrize(
    "question", ["SELECT 1", "Wie viele Kunden wohnen dort?", "quartile of order amount"]
)
def test_what_rules_did_not_understand_they_do_not_continue(question: str) -> None:
    refused = draft("and in 2024?", (turn("number of orders"), turn(question, "SELECT 1 AS one")))
    assert isinstance(refused, NoSql)
    assert refused.reason == "ambiguous_question"
    assert question in refused.prompt


def test_what_a_model_understood_in_context_is_not_taken_for_a_whole_question() -> None:
    history = (
        turn("SELECT 1"),
        turn("the ones from Berlin", "SELECT name FROM customers WHERE city = 'Berlin'"),
    )
    assert isinstance(draft("only the top 3", history), NoSql)


def test_a_merge_that_is_impossible_says_what_was_understood() -> None:
    refused = draft("按月拆分", (turn("各门店的租金"),), CHINESE)
    assert isinstance(refused, NoSql)
    assert "各门店的租金" in refused.prompt and "日期" in refused.prompt


@pytest.mark.parametrize(
    "question",
    [
        "改成平均值",
        "change it to the average",
        "换成按月",
        "remove open",
        "add the number of orders",
    ],
)
def test_words_of_change_order_no_write_when_only_the_question_changes(question: str) -> None:
    history = (turn("total amount by status"),)
    assert isinstance(draft(question, history), Sql)
    assert classified(question, history).method == "rule_based_follow_up"


@pytest.mark.parametrize(
    "question",
    [
        "删除这些订单",
        "delete them",
        "把状态改成已发货",
        "change the status to shipped",
        "drop the orders table",
        "delete the open orders",
        "add a customer named Ann",
        "remove all customers from Berlin",
    ],
)
def test_writes_stay_writes_in_a_conversation(question: str) -> None:
    with pytest.raises(ForbiddenStatement):
        draft(question, (turn("orders in 2024"),))


def test_the_summary_knows_the_follow_up() -> None:
    history = (turn("total amount by status"),)
    written = draft("how about the average?", history)
    assert isinstance(written, Sql)
    rows = QueryResult(
        ("status", "average_total_amount"), ("text", "numeric"), (["open", 3], ["shipped", 5])
    )
    inquiry = Inquiry("how about the average?", "en", SHOP, history=history)
    assert "verage total amount" in asyncio.run(SKILLS.summarize(inquiry, written.text, rows)).value


# ------------------------------------------------------------------------------
# pointing


def one_row(question: str, *values: object) -> Turn:
    return turn(question, row_count=1, columns=tuple("abc"[: len(values)]), rows=(values,))


BEST = one_row("the customer with the highest total amount", "Ann Lee", 12)


@pytest.mark.parametrize(
    "question", ["how many orders does this customer have?", "这个客户的订单数量"]
)
def test_the_one_thing_of_a_result_can_be_pointed_at(question: str) -> None:
    written = draft(question, (BEST,))
    assert isinstance(written, Sql)
    assert "c.name = 'Ann Lee'" in written.text
    assert any("Ann Lee" in warning for warning in warnings(question, (BEST,)))


@pytest.mark.parametrize(
    "question",
    ["how many orders does it have?", "what are its orders?", "它的订单有哪些", "它有多少订单"],
)
def test_a_pronoun_means_the_one_thing_of_the_result(question: str) -> None:
    written = draft(question, (BEST,))
    assert isinstance(written, Sql)
    assert "c.name = 'Ann Lee'" in written.text
    assert any("Ann Lee" in warning for warning in warnings(question, (BEST,)))


@pytest.mark.parametrize("question", ["what are its orders?", "它的订单有哪些", "它有多少订单"])
@pytest.mark.parametrize(
    "before",
    [
        turn(
            "the 2 customers with the highest total amount",
            row_count=2,
            rows=(("Ann Lee", 1), ("Bob Ray", 2)),
        ),
        one_row("How many customers are there?", 5),
        turn("total amount by customer"),
        turn("the best customers", sql=None),
    ],
    ids=lambda before: before.question,
)
def test_a_pronoun_that_means_nothing_in_particular_is_asked_back(
    question: str, before: Turn
) -> None:
    refused = draft(question, (before,))
    assert isinstance(refused, NoSql) and refused.reason == "ambiguous_question"


def test_a_pronoun_for_what_the_question_names_itself_points_at_nothing_before() -> None:
    question = "每个客户和它的订单数量"
    assert draft(question, (BEST,)) == draft(question)


def test_what_follows_a_pointing_question_stays_with_the_one_thing() -> None:
    pointing = kept("orders of this customer", draft("orders of this customer", (BEST,)))
    written = draft("only open", (BEST, pointing))
    assert isinstance(written, Sql)
    assert "'Ann Lee'" in written.text and "status = 'open'" in written.text


def test_a_period_of_a_result_can_be_pointed_at() -> None:
    month = one_row("in which month was the total amount the highest", "2024-03-01", 99)
    written = draft("number of orders by status in that month", (month,))
    assert isinstance(written, Sql)
    assert "2024-03-01" in written.text and "2024-04-01" in written.text


@pytest.mark.parametrize(
    "before",
    [
        turn(
            "total amount by customer",
            row_count=2,
            columns=("name", "n"),
            rows=(("Ann Lee", 1), ("Bob Ray", 2)),
        ),
        one_row("How many customers are there?", 5),
        turn("the customer with the highest total amount"),
    ],
)
def test_pointing_at_nothing_in_particular_is_asked_back(before: Turn) -> None:
    refused = draft("how many orders does this customer have?", (before,))
    assert isinstance(refused, NoSql)
    assert refused.reason == "ambiguous_question" and "this customer" in refused.prompt


@pytest.mark.parametrize("times", [1, 60])
def test_a_question_of_any_length_goes_on(times: int) -> None:
    question = "just " * times + "the top 3"
    assert classified(question, AFTER).method == "rule_based_follow_up"


def test_more_about_the_first_few_keeps_the_same_few() -> None:
    written = last_sql("top 5 customers by total amount", "their number of orders")
    assert "ORDER BY total_total_amount DESC" in written and "LIMIT 5" in written


# ------------------------------------------------------------------------------
# classification

AFTER = (turn("number of orders by status"),)


@pytest.mark.parametrize(
    "question",
    ["and in 2024?", "only the top 3", "by month instead", "sort ascending", "那上个月呢",
     "倒过来排", "只看前三名",
     "thanks, and last month?", "换成平均值"],
)  # fmt: skip
def test_follow_ups_are_recognised(question: str) -> None:
    verdict = classified(question, AFTER)
    assert (verdict.question_type, verdict.method) == ("DATABASE", "rule_based_follow_up")
    assert verdict.confidence >= 0.85
    after_chat = classified(question, (*AFTER, turn("hello", None, "CHAT")))
    assert (after_chat.question_type, after_chat.method) == ("DATABASE", "rule_based_follow_up")
    assert 0.6 <= after_chat.confidence < verdict.confidence


@pytest.mark.parametrize(
    "question",
    ["谢谢", "thanks", "thank you for today", "see you tomorrow", "明天见", "ok", "what about you?",
     "你今天怎么样",
     "tell me a joke", "今天天气怎么样", "那首都呢", "再来一个", "只是问问", "only kidding",
     "and then?", "how are you", "who are you?", "good night"],
)  # fmt: skip
def test_no_conversation_makes_a_query_of_small_talk(question: str) -> None:
    assert classified(question, AFTER).question_type == "CHAT"


@pytest.mark.parametrize(
    "question",
    ["为什么第一名这么高", "why is the first one so high?", "解释一下这个结果", "这个结果可靠吗",
     "is this correct?",
     "why?", "为什么", "what does that mean?", "这说明了什么"],
)  # fmt: skip
def test_doubts_about_a_result_are_chat(question: str) -> None:
    verdict = classified(question, AFTER)
    assert (verdict.question_type, verdict.method) == ("CHAT", "rule_based_chat")
    assert verdict.confidence >= 0.6


@pytest.mark.parametrize(
    "question", ["How many customers are there?", "客户有多少", "orders in 2024"]
)
def test_a_data_question_after_chat_is_a_data_question(question: str) -> None:
    verdict = classified(question, (*AFTER, turn("why?", None, "CHAT")))
    assert (verdict.question_type, verdict.method) == ("DATABASE", "rule_based_strong_business")


# ------------------------------------------------------------------------------
# chat about a result

RESULT = turn(
    "number of orders by status",
    "SELECT …",
    row_count=2,
    columns=("status", "orders_count"),
    rows=(("open", 1234), ("shipped", 7)),
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("why is the first one so high?", "not why"),
        ("为什么第一名这么高", "看不出原因"),
        ("这个结果可靠吗", "无法判断"),
        ("what does that mean?", "not interpret"),
    ],
)
def test_chat_about_a_result_states_it_and_invents_nothing(question: str, said: str) -> None:
    history = (RESULT, turn("thanks", None, "CHAT"))
    text = chat(question, history)
    assert said in text
    assert "1,234" in text and "open" in text
    offers = list(splits_of_last(Inquiry(question, language_of(question), SHOP, history=history)))
    assert offers
    for offer in offers:
        assert isinstance(draft(offer.question, (RESULT,)), Sql), offer


def test_a_result_that_rules_did_not_get_is_still_told() -> None:
    text = chat(
        "why is the first one so high?", (replace(RESULT, question="Wie viele Bestellungen?"),)
    )
    assert "1,234" in text and "not why" in text


def test_without_a_result_doubts_get_the_usual_answer() -> None:
    assert chat("why is the sky so blue?", ()).startswith("Without a language model")


# ------------------------------------------------------------------------------
# properties

CATALOGS: tuple[Catalog, ...] = (SHOP, AIR, CHINESE, CATALOG)
PHRASES = (
    *CHANGES, *STANDING, "and in 2024?", "by city", "top 3", "only Berlin", "the year before",
    "also by month", "why?", "sort descending", "how many are there?", "orders",
    "customers in Paris", "SELECT 1", "drop it", "", "？", "thanks", "as a percentage",
    "compare with 2023", "their names", "total amount by status", "按数量升序", "占比呢",
    "上一期呢",
)  # fmt: skip
turns = st.builds(
    turn,
    st.sampled_from(PHRASES) | st.text(max_size=12),
    st.none() | st.just("SELECT 1"),
    st.sampled_from(["DATABASE", "CHAT"]),
    rows=st.just(()) | st.just(((None, 1.5), ("x",))),
    columns=st.just(()) | st.just(("a", "b")),
)


@RELAXED
@given(
    question=st.sampled_from(PHRASES) | st.text(max_size=12),
    history=st.lists(turns, max_size=4).map(tuple),
    catalog=st.sampled_from(CATALOGS),
)
def test_any_conversation_is_survived(
    question: str, history: tuple[Turn, ...], catalog: Catalog
) -> None:
    inquiry = Inquiry(question, language_of(question), catalog, history=history)
    with suppress(ForbiddenStatement):
        assert isinstance(asyncio.run(SKILLS.write_sql(inquiry)).value, Sql | NoSql)
    assert 0 <= asyncio.run(SKILLS.classify(inquiry)).value.confidence <= 1
    assert asyncio.run(SKILLS.chat(inquiry)).value


ASKED = [
    case.question for lang in LANGUAGES for case in cases_of(FIXTURES / f"questions_{lang}.sql")
]
FOLLOWING = [case.question for lang in LANGUAGES for one in CONVERSATIONS[lang] for case in one[1:]]


def test_every_merged_statement_can_be_planned(demo: QuestionDatabase) -> None:
    @RELAXED
    @given(
        first=st.sampled_from(ASKED),
        then=st.lists(st.sampled_from(FOLLOWING), min_size=1, max_size=3),
    )
    def plan(first: str, then: list[str]) -> None:
        history: tuple[Turn, ...] = ()
        for question in (first, *then):
            written = draft(question, history, demo.catalog)
            if isinstance(written, Sql):
                demo.rows(f"EXPLAIN {written.text}")
            history = (*history, kept(question, written))

    plan()


@RELAXED
@given(
    question=st.sampled_from(
        ["How many customers are there?", "total amount by status", "各城市的客户数量"]
    ),
    history=st.lists(turns, max_size=4).map(tuple),
)
def test_no_history_changes_a_complete_question(question: str, history: tuple[Turn, ...]) -> None:
    assert draft(question, history) == draft(question)
