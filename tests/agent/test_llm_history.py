"""A model in a conversation that goes on: what it is told of earlier turns, and what its answers
are held against.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.flows.ask.context import AskContext, Behaviour
from agent.flows.ask.question_flow import QuestionFlow
from agent.progress import Write
from agent.question import Question
from agent.runs.events import Event
from agent.runs.runner import Runner
from agent.thinking.fallback import FallbackSkills
from agent.thinking.llm.history_text import MAX_HISTORY_TOKENS, MAX_TURNS, HistoryView, history_text
from agent.thinking.llm.model_skills import LlmSkills
from app_config import Settings
from common.errors import InvalidSql
from common.inquiry import Inquiry
from common.values import Catalog, Turn
from llm import ChatModel
from llm.tokens import estimated_tokens
from rules.skills import OfflineSkills
from tests.support.asking import Asking
from tests.support.catalogs import CATALOG, COMPANY, SERVICE_AREA, wide_catalog
from tests.support.databases import Opener
from tests.support.effort import tries
from tests.support.histories import HISTORY, RANKING, SMALL_TALK, TURNS
from tests.support.model_calls import use
from tests.support.openai_server import OpenAiServer, Reply, Request

T = TypeVar("T")
VIEWS: tuple[HistoryView, ...] = ("classify", "sql", "chat")
SQL_REPLY = Reply("```sql\nSELECT 1\n```")
CHAT_VERDICT = Reply('{"type": "CHAT", "confidence": 0.9, "reason": "about the result"}')


@pytest.fixture(scope="module")
def shared_server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


@pytest.fixture
def server(shared_server: OpenAiServer) -> OpenAiServer:
    shared_server.requests.clear()
    return shared_server


def think(server: OpenAiServer, action: Callable[[LlmSkills], Awaitable[T]]) -> T:
    return use(server.url, lambda model: action(LlmSkills(model)))


def follow_up(question: str, *turns: Turn, **changes: Any) -> Inquiry:
    return replace(Inquiry(question, "zh", CATALOG, history=turns or HISTORY), **changes)


def history_in(request: Request) -> str:
    return request.question.split("<history>\n")[1].split("\n</history>")[0]


# ------------------------------------------------------------------------------------------- what
# the model is told


def test_a_follow_up_is_written_from_the_last_query(server: OpenAiServer) -> None:
    server.replies(SQL_REPLY)
    think(server, lambda skills: skills.write_sql(follow_up("只看浙北的")))
    told_sql = " ".join(history_in(server.requests[0]).split())
    assert RANKING.sql and " ".join(RANKING.sql.split()) in told_sql
    assert RANKING.question in told_sql and "3 rows" in told_sql
    assert "杭州分公司" not in told_sql, "rows are for answers about them only"


def test_a_repair_knows_what_the_question_goes_on_from(server: OpenAiServer) -> None:
    server.replies(SQL_REPLY)
    think(
        server,
        lambda skills: skills.repair_sql(follow_up("只看浙北的"), "SELECT x", InvalidSql("no")),
    )
    assert RANKING.question in history_in(server.requests[0])


def test_a_verdict_is_steered_by_the_questions_before(server: OpenAiServer) -> None:
    server.replies(CHAT_VERDICT)
    outcome = think(
        server, lambda skills: skills.classify(follow_up("为什么第一名这么高", RANKING))
    )
    assert outcome.value.question_type == "CHAT"
    assert f"question (DATABASE): {RANKING.question}" in history_in(server.requests[0])
    assert "Kind of the previous turn: DATABASE" in server.requests[0].question
    assert "SELECT" not in history_in(server.requests[0])


def test_a_chat_about_a_result_sees_its_rows(server: OpenAiServer) -> None:
    server.replies(Reply("数据没有说明原因。"))
    think(server, lambda skills: skills.chat(follow_up("为什么第一名这么高")))
    seen = history_in(server.requests[0])
    for words in ('["公司", "服务区数量"]', '["杭州分公司", 12]', RANKING.answer, RANKING.question):
        assert words in seen


def test_an_answer_that_asked_for_something_is_told_with_its_question(server: OpenAiServer) -> None:
    asked_back = replace(
        SMALL_TALK, question="收入是多少", question_type="DATABASE", answer="请说明年份。"
    )
    server.replies(SQL_REPLY)
    think(server, lambda skills: skills.write_sql(follow_up("2024 年", asked_back)))
    assert "请说明年份。" in history_in(server.requests[0])


def test_the_tables_of_the_last_query_are_described_among_hundreds(server: OpenAiServer) -> None:
    catalog = Catalog((*wide_catalog(400).tables, COMPANY, SERVICE_AREA))
    server.replies(SQL_REPLY, SQL_REPLY)
    think(server, lambda skills: skills.write_sql(follow_up("倒过来排", *HISTORY, catalog=catalog)))
    think(server, lambda skills: skills.write_sql(Inquiry("倒过来排", "zh", catalog)))
    after, alone = (request.question for request in server.requests)
    assert "TABLE service_area" in after and "TABLE company" in after
    assert "TABLE service_area" not in alone, "the question itself names neither"


# ------------------------------------------------------------------------------
# bounds, whatever


@settings(max_examples=tries(18))
@given(st.lists(TURNS, min_size=1, max_size=10), st.sampled_from(VIEWS))
def test_any_history_fits_and_holds_the_latest(turns: list[Turn], view: HistoryView) -> None:
    history = history_text(turns, view)
    history.text.encode()
    assert estimated_tokens(history.text) <= MAX_HISTORY_TOKENS
    assert history.turns[-1] is turns[-1]
    assert len(history.turns) <= MAX_TURNS
    assert history.last_query is next((turn for turn in reversed(turns) if turn.sql), None)


@settings(max_examples=tries(18))
@given(st.lists(TURNS, min_size=1, max_size=10), st.sampled_from(VIEWS))
def test_nothing_in_a_turn_passes_for_another_turn_or_leaves_the_history(
    turns: list[Turn], view: HistoryView
) -> None:
    history = history_text(turns, view)
    lines = history.text.split("\n")
    assert "\n".join(history.text.splitlines()) == history.text
    assert sum(line.startswith("- question (") for line in lines) == len(history.turns)
    assert all(
        line.startswith(("- question (", "  sql: ", "  result: ", "  answer: ", "    "))
        for line in lines
    )
    assert "</history" not in history.text.lower()


@settings(max_examples=tries(18))
@given(st.lists(TURNS, min_size=1, max_size=10), st.sampled_from(VIEWS))
def test_the_oldest_are_dropped_first(turns: list[Turn], view: HistoryView) -> None:
    kept = {id(turn) for turn in history_text(turns, view).turns}
    dropped = [index for index, turn in enumerate(turns) if id(turn) not in kept]
    last_query = max((index for index, turn in enumerate(turns) if turn.sql), default=0)
    assert set(dropped) | {last_query} >= set(range(max(dropped, default=0)))


def test_small_talk_does_not_hide_the_last_query() -> None:
    chatter = [replace(SMALL_TALK, answer="嗯" * 5_000)] * 20
    history = history_text([RANKING, *chatter], "sql")
    assert history.last_query is RANKING
    assert "FROM service_area s" in history.text


def test_a_huge_turn_is_cut_and_says_so() -> None:
    huge = replace(RANKING, question="营" * 9_000, sql="SELECT 1 " * 9_000, answer="x" * 90_000)
    lines = history_text([huge], "chat").text.splitlines()
    assert [line.endswith("…") for line in lines] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
        True,
    ]


def test_tokens_are_estimated_by_script() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "four", "fives", "营业", "营业 ab")] == [
        0,
        1,
        1,
        2,
        2,
        3,
    ]


# ------------------------------------------------------------------------------
# figures of an answer


@pytest.mark.parametrize(
    ("answer", "doubtful"),
    [
        ("杭州分公司有 12 个，第 3 行是空的，数据没有说明原因。", None),
        ("1. 杭州分公司 12 个\n2、第二是 7 个\n4) 其余没有列出", None),
        ("因为它的车流量达到 35,000 辆，占 48%。", "35,000, 48%"),
        ("平均 6.8 个。", "6.8"),
    ],
)
def test_figures_that_no_earlier_result_holds_are_named(
    server: OpenAiServer, answer: str, doubtful: str | None
) -> None:
    server.replies(Reply(answer))
    outcome = think(server, lambda skills: skills.chat(follow_up("为什么第一名这么高")))
    assert outcome.value == answer
    if doubtful is None:
        assert outcome.warnings == ()
    else:
        assert outcome.warnings[0].endswith(doubtful)


def test_figures_of_the_question_are_no_doubt(server: OpenAiServer) -> None:
    server.replies(Reply("没有列出 2019 年的数据。"))
    assert (
        think(server, lambda skills: skills.chat(follow_up("2019 年呢，为什么？"))).warnings == ()
    )


@pytest.mark.parametrize("turns", [(), (SMALL_TALK,)])
def test_chat_without_a_result_is_not_judged(server: OpenAiServer, turns: tuple[Turn, ...]) -> None:
    server.replies(Reply("圆周率约为 3.14159。"))
    inquiry = Inquiry("圆周率是多少", "zh", CATALOG, history=turns)
    assert think(server, lambda skills: skills.chat(inquiry)).warnings == ()


# ------------------------------------------------------------------------------------------ through
# the whole graph


def ask_all(
    server: OpenAiServer,
    opened: Opener,
    demo_url: str,
    recalled: dict[str, tuple[Turn, ...]],
    question: str,
) -> list[dict[str, Any]]:
    """The terminal bodies of `question` asked at once in every conversation of `recalled`."""
    database = opened(demo_url)

    async def action(model: ChatModel) -> list[dict[str, Any]]:
        thinking, rules = LlmSkills(model), OfflineSkills()

        def new_context(asked: Question, _write: Write) -> AskContext:
            async def recall() -> tuple[Turn, ...]:
                return recalled[asked.conversation_id]

            return AskContext(database, FallbackSkills(thinking, rules), rules, Behaviour(), recall)

        runner = Runner(
            {"ask": QuestionFlow(new_context, routing_mode="hybrid", deadline_s=30)}, "ask"
        )

        async def answered(name: str) -> dict[str, Any]:
            events: list[Event] = []
            await runner.answer(Question(question, conversation_id=name, lang="zh"), events.append)
            return events[-1].data

        return await asyncio.gather(*map(answered, recalled))

    return use(server.url, action)


def chatting(request: Request) -> Reply:
    """The model of a test in which everything is chat."""
    is_chat = "You are Citu" in str(request.messages[0]["content"])
    return Reply("列出的数据没有说明原因，有 99 种可能。") if is_chat else CHAT_VERDICT


def test_conversations_do_not_mix(server: OpenAiServer, opened: Opener, demo_url: str) -> None:
    recalled = {
        f"c{number}": (
            replace(RANKING, question=f"mark-{number}-question", sql=f"SELECT 'mark-{number}-sql'"),
        )
        for number in range(4)
    }
    server.default = chatting
    bodies = ask_all(server, opened, demo_url, {**recalled, "new": ()}, "为什么第一名这么高")
    assert {body["response_type"] for body in bodies} == {"CHAT"}
    prompts = [request.question for request in server.requests]
    for number in range(4):
        mine = [prompt for prompt in prompts if f"mark-{number}-" in prompt]
        assert mine
        assert all(prompt.count("mark-") == prompt.count(f"mark-{number}-") for prompt in mine)
    assert [prompt for prompt in prompts if "mark-" not in prompt], (
        "the conversation that begins knows of none"
    )


def test_why_after_a_result_is_chat_about_it_even_when_it_names_stored_things(
    server: OpenAiServer, opened: Opener, demo_url: str
) -> None:
    server.default = chatting
    (body,) = ask_all(server, opened, demo_url, {"c": (RANKING,)}, "为什么服务区的营业收入这么高？")
    assert body["response_type"] == "CHAT"
    assert [warning for warning in body["warnings"] if warning.endswith("：99")]


def test_turns_that_the_store_keeps_reach_the_model_again(
    server: OpenAiServer, demo_url: str
) -> None:
    first = "SELECT company_name FROM company ORDER BY company_id LIMIT 3"
    body = {
        "question": "列出公司",
        "routing_mode": "database_direct",
        "conversation_id": "c-follow-up",
        "user_id": "张三",
    }
    with Asking(Settings(database_url=demo_url, llm_max_retries=0), server) as asking:
        asking.sync(body, Reply(first), Reply("前三家公司。"))
        asking.sync({**body, "user_id": "李四"}, SQL_REPLY)
        status, answer = asking.sync({**body, "question": "只要第一家"}, SQL_REPLY)
        assert (status, answer["data"]["warnings"]) == (200, [])
        asking.sync(
            {**body, "question": "为什么它排第一", "routing_mode": "chat_direct"},
            Reply("数据没有说明原因。"),
        )
    prompts = [request.question for request in server.requests]
    assert [f"sql: {first}" in prompt for prompt in prompts] == [False, False, False, True, True]
    last = history_in(server.requests[-1])
    assert "前三家公司。" in last and '["company_name"]' in last and "只要第一家" in last


@pytest.mark.parametrize(
    ("changes", "is_whole", "has_samples"),
    [
        ({}, True, True),
        ({"schema_tokens": 300}, False, True),
        ({"schema_samples": False}, True, False),
    ],
)
def test_the_settings_say_how_much_of_the_schema_is_sent(
    server: OpenAiServer, demo_url: str, changes: dict[str, Any], is_whole: bool, has_samples: bool
) -> None:
    with Asking(Settings(database_url=demo_url, llm_max_retries=0, **changes), server) as asking:
        question = {"question": "营业收入排行", "routing_mode": "database_direct"}
        asking.sync(question, Reply("NO_SQL: ambiguous_question"))
    schema = server.requests[-1].question.partition("</schema>")[0]
    assert ("not shown" not in schema) == is_whole
    assert ("[values: " in schema or "[from " in schema) == has_samples
    assert changes.get("schema_tokens", 32_000) + 10 >= estimated_tokens(schema)
