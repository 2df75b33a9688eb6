"""What may be asked next: every choice, rewrite, follow-up and example that is offered is
understood, keeps what was asked and finds rows.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

from agent.flows.ask.follow_up_offers import offer_sentence, offers_with_rows
from app_config import Settings
from common.errors import ForbiddenStatement
from common.inquiry import Inquiry
from common.text import language_of
from common.values import NoSql, Offer, Sql, Turn
from knowledge.values.filter_correction import looks_empty
from rules.answering.next_questions import next_questions
from rules.answering.offers import example_questions
from rules.skills import OfflineSkills
from tests.support.asking import Asking
from tests.support.databases import demo_meant
from tests.support.effort import slow_beyond
from tests.support.offline_questions import FIXTURES, cases_of
from tests.support.question_databases import QuestionDatabase, foreign_databases

SCHEMAS = ("store", "music", "hr", "clinic", "univ", "lib", "mall", "crm")
# What a follow-up of each kind may change of a query; all other parts stay.
CHANGED = (
    (("split", "拆分"), {"dimensions", "order"}),
    (("top", "前"), {"limit"}),
    (("percentage", "占"), {"measures"}),
    (("before", "前一", "上一"), {"conditions"}),
    (("how many", "有多少"), {"measures", "columns", "order"}),
)
_EACH = 4  # every fourth question, because each of its offers is run
# Questions that lack something in most databases: figures, years, names.
VAGUE = (
    "the best ones",
    "3月的数量",
    "how many in March",
    "按状态的排行",
    "top 3 by amuont",
    "orders by zzyzx",
    "最好的是哪个",
)


@pytest.fixture(scope="module")
def demo(demo_url: str) -> Iterator[QuestionDatabase]:
    with closing(QuestionDatabase(demo_url, demo_meant)) as database:
        yield database


@pytest.fixture(scope="module")
def foreign(offline_database: Callable[[str], str]) -> Iterator[Callable[[str], QuestionDatabase]]:
    with foreign_databases(offline_database) as databases:
        yield databases


def _drafted(asked: QuestionDatabase, question: str, history: tuple[Turn, ...] = ()) -> Sql | NoSql:
    inquiry = Inquiry(question, language_of(question), asked.catalog, history=history)
    return asyncio.run(OfflineSkills().write_sql(inquiry)).value


def _finds_rows(asked: QuestionDatabase, sql: str) -> bool:
    return not looks_empty(asyncio.run(asked.database.run(sql)))


def _after(question: str, draft: Sql | NoSql) -> tuple[Turn, ...]:
    sql = draft.text if isinstance(draft, Sql) else None
    return (
        Turn("r", question, "DATABASE", "hybrid", "", "", sql=sql, understood=draft.understood),
    )


def _check_answered(asked: QuestionDatabase, question: str, draft: Sql) -> int:
    """Asks each follow-up in its conversation; how many there were."""
    result = asyncio.run(asked.database.run(draft.text))
    if looks_empty(result):
        return 0
    inquiry = Inquiry(question, language_of(question), asked.catalog)
    found = [
        next_question
        for next_question in next_questions(inquiry, draft.text)
        if next_question and result.row_count >= next_question.least_rows
    ]
    for one in found:
        written = _drafted(asked, one.offer.question, _after(question, draft))
        assert isinstance(written, Sql) and written.text == one.offer.sql, (question, one)
        assert _finds_rows(asked, written.text), (question, one)
        assert written.text != draft.text, (question, one)
        _check_kept(one.offer.question, draft, written)
    return len(found)


def _check_kept(said: str, before: Sql, after: Sql) -> None:
    """Fail if a follow-up loses a condition, a group or anything else that it doesn't speak of."""
    assert before.understood is not None and after.understood is not None
    earlier, later = before.understood["query"], after.understood["query"]
    parts = {*earlier, *later}
    different = {part for part in parts if earlier.get(part) != later.get(part)}
    may_change = next(
        changed for words, changed in reversed(CHANGED) if any(word in said for word in words)
    )
    assert different <= may_change, (said, before.text, after.text)
    groups = earlier.get("dimensions", [])
    assert all(group in later.get("dimensions", []) for group in groups), said
    assert len(earlier.get("conditions", [])) == len(later.get("conditions", [])), said


def _check_refused(asked: QuestionDatabase, question: str, draft: NoSql) -> int:
    """Asks what is offered in place of the question; how much that was."""
    offers = asyncio.run(offers_with_rows(draft, asked.database))
    assert not (offers.rewrites and offers.examples)
    for rewrite in (*offers.rewrites, *offers.examples):
        assert rewrite in offer_sentence(offers, "en")
        alone, written = _drafted(asked, rewrite), _drafted(asked, rewrite, _after(question, draft))
        assert isinstance(written, Sql) and alone == written, (question, rewrite)
        assert _finds_rows(asked, written.text), (question, rewrite)
    assert not any(_is_mere_count(asked, example) for example in offers.examples), offers
    for choice in offers.choices:
        resumed = _drafted(asked, choice, _after(question, draft))
        if isinstance(resumed, Sql):
            assert _finds_rows(asked, resumed.text), (question, choice)
        else:  # something else is asked back, about the same question
            assert resumed.understood is not None and resumed.understood != draft.understood, (
                question,
                choice,
            )
    return len(offers.rewrites) + len(offers.choices) + len(offers.examples)


def _is_mere_count(asked: QuestionDatabase, question: str) -> bool:
    """Tell whether a question only asks how many rows a table has."""
    draft = _drafted(asked, question)
    assert draft.understood is not None
    query = draft.understood["query"]
    return "dimensions" not in query and "limit" not in query


def _check(asked: QuestionDatabase, questions: Iterable[str]) -> tuple[int, int]:
    follow_ups = others = 0
    for question in questions:
        try:
            draft = _drafted(asked, question)
        except ForbiddenStatement:
            continue
        if isinstance(draft, Sql):
            follow_ups += _check_answered(asked, question, draft)
        else:
            others += _check_refused(asked, question, draft)
    return follow_ups, others


def _check_examples(asked: QuestionDatabase) -> None:
    for lang in ("zh", "en"):
        for example in example_questions(asked.catalog, lang):
            written = _drafted(asked, example)
            assert isinstance(written, Sql) and _finds_rows(asked, written.text), example


@pytest.mark.parametrize("name", slow_beyond(2, SCHEMAS))
def test_whatever_is_offered_over_foreign_databases_gives_rows(
    foreign: Callable[[str], QuestionDatabase], name: str
) -> None:
    asked = foreign(name)
    questions = [case.question for case in cases_of(FIXTURES / "offline" / f"{name}_questions.sql")]
    follow_ups, others = _check(asked, [*questions[::_EACH], *VAGUE])
    assert follow_ups and others
    _check_examples(asked)


def test_whatever_is_offered_over_the_demo_gives_rows(demo: QuestionDatabase) -> None:
    questions = [
        case.question
        for name in ("zh", "en")
        for case in cases_of(FIXTURES / f"questions_{name}.sql")
    ]
    follow_ups, others = _check(demo, [*questions[::_EACH], *VAGUE])
    assert follow_ups and others
    _check_examples(demo)


def test_what_finds_nothing_or_takes_long_to_try_is_not_offered(demo: QuestionDatabase) -> None:
    slow = "SELECT count(*) FROM generate_series(1, 100000000)"
    draft = NoSql(
        "ambiguous_question",
        "?",
        choices=(
            Offer("nothing", "SELECT 1 WHERE false"),
            Offer("something", "SELECT 1"),
            Offer("asks back"),
        ),
        rewrites=(
            Offer("zero", "SELECT 0"),
            Offer("broken", "SELECT no_such"),
            Offer("slow", slow),
            Offer("a", "SELECT 1"),
        ),
        examples=(Offer("no longer needed", "SELECT 1"),),
    )
    offers = asyncio.run(offers_with_rows(draft, demo.database))
    assert offers.choices == ("something", "asks back")
    assert (offers.rewrites, offers.examples) == (("a",), ())
    assert offer_sentence(offers, "zh") == "可以这样问：“a”。"
    # The first row of each is there at once: what counts is the planner's estimate, not time.
    costly = tuple(Offer(name, "SELECT generate_series(1, 3500000)") for name in "abcde")
    offers = asyncio.run(
        offers_with_rows(NoSql("ambiguous_question", "?", choices=costly), demo.database)
    )
    assert offers.choices == ("a", "b", "c"), "more would take long together"


@pytest.fixture(scope="module")
def asking(demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url)) as asking:
        yield asking


def test_a_choice_resumes_the_question_that_asked_back(asking: Asking) -> None:
    conversation = {"conversation_id": "offers-choice"}
    _, asked = asking.sync({"question": "3月的营业收入是多少", **conversation})
    assert asked["data"]["failure_reason"] == "ambiguous_question"
    choices = asked["data"]["choices"]
    _, answered = asking.sync({"question": choices[-1], **conversation})
    assert "amount" in answered["data"]["sql"], choices
    assert all(
        rewrite in asked["data"]["response"] for rewrite in asked["data"].get("rewrites", ())
    )


def test_an_answer_offers_follow_ups_that_go_on_from_it(asking: Asking) -> None:
    first = {"question": "total revenue by service area"}
    offered_first = asking.sync({**first, "conversation_id": "offers-follow-up"})[1]["data"]
    for question in offered_first.get("follow_ups", ()):  # where they were ready in time
        conversation = {"conversation_id": f"offers-follow-up-{secrets.token_hex(4)}"}
        asking.sync({**first, **conversation})
        _, next_one = asking.sync({"question": question, **conversation})
        assert next_one["data"]["query_result"]["rows"], question


@pytest.mark.parametrize(
    ("first", "about"),
    [
        ("revenue per month in 2026", "what is the trend?"),
        ("total revenue by service area", "why is the first one so high?"),
        ("2026年每月营业收入", "趋势怎么样"),
    ],
)
def test_an_answer_about_a_result_offers_splits_of_its_figure(
    asking: Asking, first: str, about: str
) -> None:
    conversation = {"conversation_id": f"offers-about-{secrets.token_hex(4)}"}
    asking.sync({"question": first, **conversation})
    _, told = asking.sync({"question": about, **conversation})
    assert told["data"]["response_type"] == "CHAT"
    assert 0 < len(told["data"]["follow_ups"]) <= 3
    for question in told["data"]["follow_ups"]:
        assert question not in told["data"]["response"]
        _, split = asking.sync({"question": question, **conversation})
        assert split["data"]["query_result"]["rows"], question


def test_examples_that_talk_names_are_offered(asking: Asking) -> None:
    for question in ("hello", "why is the sky blue?"):
        told = asking.sync({"question": question, "conversation_id": "offers-talk"})[1]["data"]
        assert told["follow_ups"]
        assert all(f"- {one}" in told["response"] for one in told["follow_ups"]), told


# Some orders and visits have no coupon; each product has a description of its own.
MARKET = """
CREATE TABLE coupons (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, description text NOT NULL,
                       content text NOT NULL, colour text NOT NULL, price numeric(8,2) NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, coupon_id int REFERENCES coupons,
                     product_id int NOT NULL REFERENCES products, channel text NOT NULL,
                     ordered_on date NOT NULL, amount numeric(8,2) NOT NULL);
CREATE TABLE visits (id int PRIMARY KEY, coupon_id int REFERENCES coupons,
                     product_id int REFERENCES products, minutes int NOT NULL);
INSERT INTO coupons VALUES (1, 'welcome'), (2, 'birthday');
INSERT INTO products SELECT i, 'product ' || i, 'as number ' || i, 'wool' || i % 2,
                            CASE WHEN i < 4 THEN 'red' ELSE 'blue' END, i
FROM generate_series(1, 8) i;
INSERT INTO orders SELECT i, CASE WHEN i % 3 = 0 THEN 1 + i % 2 END, 1 + i % 8,
                          CASE WHEN i % 2 = 0 THEN 'app' ELSE 'shop' END,
                          date '2021-03-01' + i, i FROM generate_series(1, 120) i;
INSERT INTO visits SELECT i, CASE WHEN i % 3 = 0 THEN 1 + i % 2 END, 1 + i % 8, i
FROM generate_series(1, 60) i;
"""


@pytest.fixture(scope="module")
def market(make_database: Callable[[str], str]) -> Iterator[Asking]:
    settings = Settings(database_url=make_database(MARKET), follow_up_wait_s=5.0)
    with Asking(settings) as asking:
        yield asking


def _told(asking: Asking, question: str) -> dict[str, Any]:
    conversation = f"offers-market-{secrets.token_hex(4)}"
    data: dict[str, Any] = asking.sync({"question": question, "conversation_id": conversation})[1][
        "data"
    ]
    return data


def test_a_split_leaves_out_no_row_of_the_answer(market: Asking) -> None:
    for question in ("total minutes of visits", "number of visits without coupon"):
        offered_next = _told(market, question)["follow_ups"]
        assert "split by coupon" not in offered_next, question
        assert "split by colour" in offered_next, "every visit is of a product"


def test_the_period_before_is_offered_where_it_has_rows(market: Asking) -> None:
    before = "the day before"
    assert before in _told(market, "total amount of orders on 2021-03-05")["follow_ups"]
    of_app = _told(market, "total amount of app orders on 2021-03-05")
    assert of_app["query_result"]["rows"] and before not in of_app.get("follow_ups", ())


def test_examples_are_of_groups_of_several_rows_and_of_no_prose(market: Asking) -> None:
    told = _told(market, "products by unicorn")
    assert any("number of products by colour" in one for one in told["follow_ups"]), told
    assert not any("description" in one or "content" in one for one in told["follow_ups"])
    assert "total amount by coupon" in told["follow_ups"], "one of them, not `coupons`"
    of_orders = _told(market, "orders by unicorn")["follow_ups"]
    assert "total amount by channel" in of_orders, "what they are worth, not how many there are"


def test_a_ranking_by_what_is_not_stored_is_not_offered_by_something_else(market: Asking) -> None:
    by_any = _told(market, "top coupons")
    assert not by_any.get("rewrites"), by_any
    assert _told(market, "top products")["rewrites"] == ["top products by price"]
    best_rated = _told(market, "best rated products")
    assert not {"choices", "rewrites"} & set(best_rated), best_rated


def test_a_year_is_offered_of_which_there_are_rows(market: Asking) -> None:
    told = _told(market, "amount in April")
    assert told["choices"] == ["in April 2021"], told
