"""Thinking by a model, end to end over a socket: skills, prompts, client, scripted endpoint."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from agent.thinking.llm.model_skills import LlmSkills
from common.errors import ForbiddenStatement, InvalidSql, LlmUnavailable
from common.inquiry import Inquiry
from common.values import Catalog, NoSql, QueryResult, Sql
from tests.support.catalogs import CATALOG
from tests.support.model_calls import use
from tests.support.openai_replies import event
from tests.support.openai_server import OpenAiServer, Reply

T = TypeVar("T")
RESULT = QueryResult(("n",), ("int8",), ([7],))
BROKEN = InvalidSql('column "x" does not exist', sqlstate="42703")


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


def think(server: OpenAiServer, action: Callable[[LlmSkills], Awaitable[T]], **options: Any) -> T:
    return use(server.url, lambda model: action(LlmSkills(model)), **options)


def inquiry(question: str = "有多少服务区？", lang: Any = "zh") -> Inquiry:
    return Inquiry(question, lang, CATALOG)


# ------------------------------------------------------------------------------
# classify


@pytest.mark.parametrize(
    ("reply", "kind", "confidence"),
    [
        ('{"type": "DATABASE", "confidence": 0.9, "reason": "查数据"}', "DATABASE", 0.9),
        ('```json\n{"type": "chat", "confidence": "80%"}\n```', "CHAT", 0.8),
        ('<think>DATABASE?</think>{"question_type": "CHAT", "confidence": 1}', "CHAT", 1.0),
        ('Sure: {"type": "DATABASE", "confidence": null} ok?', "DATABASE", 0.6),
        ("CHAT", "CHAT", 0.6),
        ("**DATABASE**", "DATABASE", 0.6),
        ('{"type": "CHAT", "confidence": -3}', "CHAT", 0.6),
        ('{"type": "CHAT", "confidence": NaN}', "CHAT", 0.6),
    ],
)
def test_verdicts_are_read_however_they_are_dressed(
    server: OpenAiServer, reply: str, kind: str, confidence: float
) -> None:
    server.replies(Reply(reply))
    outcome = think(server, lambda skills: skills.classify(inquiry()))
    assert (outcome.value.question_type, outcome.value.confidence) == (kind, confidence)
    assert outcome.value.method == "llm"
    assert outcome.value.reason
    assert outcome.warnings == ()
    assert outcome.usage.llm_calls == 1


@pytest.mark.parametrize(
    "reply",
    ["maybe", "DATABASE or CHAT", "{", '{"type": "SQL"}', "[]", '{"type": ["CHAT", "DATABASE"]}'],
)
def test_an_unreadable_verdict_is_unsure_and_says_so(server: OpenAiServer, reply: str) -> None:
    server.replies(Reply(reply))
    outcome = think(server, lambda skills: skills.classify(inquiry()))
    assert outcome.value.question_type == "DATABASE"
    assert outcome.value.confidence < 0.5
    assert len(outcome.warnings) == 1


# ------------------------------------------------------------------------------
# SQL


def test_sql_is_written_in_one_call(server: OpenAiServer) -> None:
    server.replies(Reply("```sql\nSELECT count(*) FROM service_area;\n```"))
    outcome = think(server, lambda skills: skills.write_sql(inquiry()))
    assert outcome.value == Sql("SELECT count(*) FROM service_area")
    assert outcome.usage.llm_calls == len(server.requests) == 1
    assert outcome.usage.prompt_tokens > 0
    assert not server.requests[0].is_stream


def test_known_tables_tell_unfenced_sql_from_prose(server: OpenAiServer) -> None:
    server.replies(Reply("select count(*) from service_area"), Reply("Select the table first"))
    assert isinstance(think(server, lambda skills: skills.write_sql(inquiry())).value, Sql)
    assert isinstance(think(server, lambda skills: skills.write_sql(inquiry())).value, NoSql)


def test_sql_cut_at_the_token_limit_is_not_used(server: OpenAiServer) -> None:
    server.replies(Reply("```sql\nSELECT count(*) FROM service_area", finish_reason="length"))
    draft = think(server, lambda skills: skills.write_sql(inquiry())).value
    assert isinstance(draft, NoSql)
    assert draft.reason == "unknown_generation_failure"


@pytest.mark.parametrize(
    "reply",
    [
        Reply("", finish_reason="content_filter"),
        Reply(text=None, message={"refusal": "I will not"}),
    ],
)
def test_a_refusal_is_an_explanation(server: OpenAiServer, reply: Reply) -> None:
    server.replies(reply)
    draft = think(server, lambda skills: skills.write_sql(inquiry())).value
    assert isinstance(draft, NoSql)
    assert draft.reason == "llm_explanation"
    assert draft.prompt


def test_a_write_is_refused_as_forbidden(server: OpenAiServer) -> None:
    server.replies(Reply("NO_SQL: write_requested: DELETE"))
    with pytest.raises(ForbiddenStatement) as caught:
        think(server, lambda skills: skills.write_sql(inquiry("删除所有服务区")))
    assert caught.value.usage.llm_calls == 1


def test_a_repair_is_one_call_and_no_more(server: OpenAiServer) -> None:
    server.replies(Reply("```sql\nSELECT company_id FROM service_area\n```"))
    outcome = think(
        server, lambda skills: skills.repair_sql(inquiry(), "SELECT x FROM service_area", BROKEN)
    )
    assert outcome.value == Sql("SELECT company_id FROM service_area")
    assert len(server.requests) == 1
    assert 'column "x" does not exist' in server.requests[0].question


@pytest.mark.parametrize(
    "reply", ["NO_SQL: missing_database_info: x", "NO_SQL: write_requested: DROP", "Sorry."]
)
def test_a_repair_may_fail_but_never_raises_a_refusal(server: OpenAiServer, reply: str) -> None:
    server.replies(Reply(reply))
    outcome = think(
        server, lambda skills: skills.repair_sql(inquiry(), "SELECT x FROM service_area", BROKEN)
    )
    assert isinstance(outcome.value, NoSql)


TOO_LONG = Reply(status=400, body={"error": {"message": "no", "code": "context_length_exceeded"}})


@pytest.mark.parametrize("method", ["write", "repair"])
def test_a_prompt_that_is_too_long_is_sent_once_more_with_half_the_schema(
    server: OpenAiServer, method: str
) -> None:
    async def action(skills: LlmSkills) -> Any:
        if method == "write":
            return await skills.write_sql(inquiry())
        return await skills.repair_sql(inquiry(), "SELECT x FROM service_area", BROKEN)

    server.replies(TOO_LONG, Reply("SELECT count(*) FROM service_area"))
    outcome = think(server, action)
    assert outcome.value == Sql("SELECT count(*) FROM service_area")
    assert outcome.usage.llm_calls == len(server.requests) == 2
    long, short = (request.question.partition("</schema>")[0] for request in server.requests)
    assert len(short) < 0.6 * len(long)
    assert "TABLE service_area" in short

    server.replies(TOO_LONG, TOO_LONG, Reply("SELECT 1"))
    with pytest.raises(LlmUnavailable, match="longer than the model's context"):
        think(server, action)
    assert len(server.requests) == 4


REASONED = "The tables fit.\n```sql\nSELECT count(*) FROM service_area\n```"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_among_reasoning_is_one(server: OpenAiServer, field: str) -> None:
    server.replies(Reply("", message={field: REASONED}))
    outcome = think(server, lambda skills: skills.write_sql(inquiry()))
    assert outcome.value == Sql("SELECT count(*) FROM service_area")
    server.replies(Reply(None, message={field: 'Data, so {"type": "DATABASE", "confidence": 0.9}'}))
    assert think(server, lambda skills: skills.classify(inquiry())).value.confidence == 0.9
    server.replies(
        Reply(None, message={field: "Let me see. NO_SQL: ambiguous_question: which year?"})
    )
    draft = think(server, lambda skills: skills.write_sql(inquiry())).value
    assert isinstance(draft, NoSql)
    assert draft.reason == "ambiguous_question"


def test_reasoning_without_an_answer_is_no_explanation(server: OpenAiServer) -> None:
    server.replies(Reply("", message={"reasoning": "I wonder what they want."}))
    with pytest.raises(LlmUnavailable, match="empty"):
        think(server, lambda skills: skills.write_sql(inquiry()))


# ------------------------------------------------------------------------------
# text


def speak(server: OpenAiServer, method: str, watched: bool) -> tuple[str, list[str]]:
    pieces: list[str] = []
    emit = pieces.append if watched else None

    async def action(skills: LlmSkills) -> str:
        if method == "chat":
            return (await skills.chat(inquiry("你好"), emit)).value
        return (await skills.summarize(inquiry(), "SELECT 7 AS n", RESULT, emit)).value

    return think(server, action), pieces


@pytest.mark.parametrize("method", ["chat", "summarize"])
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["共有", " 7 ", "个。"], "共有 7 个。"),
        (["<th", "ink>secret", "</thi", "nk>\n\n共有", " 7 个。\n"], "共有 7 个。"),
        (["5 <", " 7"], "5 < 7"),
    ],
)
def test_text_is_the_same_watched_or_not_and_hides_reasoning(
    server: OpenAiServer, method: str, pieces: list[str], text: str
) -> None:
    server.default = lambda request: Reply(pieces=pieces)
    unwatched, nothing = speak(server, method, watched=False)
    watched, given_out = speak(server, method, watched=True)
    assert unwatched == watched == "".join(given_out) == text
    assert nothing == []
    assert [request.is_stream for request in server.requests] == [False, True]
    assert not any("secret" in piece or "think" in piece for piece in given_out)


@pytest.mark.parametrize("method", ["chat", "summarize"])
@pytest.mark.parametrize("watched", [False, True])
def test_text_that_was_cut_says_so(server: OpenAiServer, method: str, watched: bool) -> None:
    server.replies(Reply("and then", finish_reason="length"))
    text, pieces = speak(server, method, watched)
    assert text == "and then…"
    assert not watched or "".join(pieces) == text


@pytest.mark.parametrize("method", ["chat", "summarize"])
@pytest.mark.parametrize("watched", [False, True])
def test_nothing_but_reasoning_is_no_answer(
    server: OpenAiServer, method: str, watched: bool
) -> None:
    server.replies(Reply("<think>hm</think>"))
    with pytest.raises(LlmUnavailable):
        speak(server, method, watched)


@pytest.mark.parametrize("watched", [False, True])
def test_text_at_the_end_of_reasoning_is_the_answer(server: OpenAiServer, watched: bool) -> None:
    outcomes = ("They greet me.", "</think>你好！")
    deltas = [
        event({"choices": [{"delta": {"reasoning_content": outcome}}]}) for outcome in outcomes
    ]
    server.default = lambda request: Reply(
        pieces=deltas, message={"reasoning_content": "".join(outcomes)}
    )
    text, pieces = speak(server, "chat", watched)
    assert text == "你好！"
    assert not watched or "".join(pieces) == text


@pytest.mark.parametrize("watched", [False, True])
def test_a_filtered_chat_says_so_and_a_filtered_summary_is_none(
    server: OpenAiServer, watched: bool
) -> None:
    server.default = lambda request: Reply("", finish_reason="content_filter")
    text, pieces = speak(server, "chat", watched)
    assert "拒绝" in text
    assert not watched or "".join(pieces) == text
    with pytest.raises(LlmUnavailable):
        speak(server, "summarize", watched)


def test_failures_of_the_endpoint_are_passed_on(server: OpenAiServer) -> None:
    for action in (
        lambda skills: skills.classify(inquiry()),
        lambda skills: skills.write_sql(inquiry()),
        lambda skills: skills.chat(inquiry()),
    ):
        with pytest.raises(LlmUnavailable):
            think(server, action, max_retries=0)


def test_a_new_catalogue_is_noticed(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("NO_SQL: ambiguous_question")

    async def action(skills: LlmSkills) -> None:
        await skills.write_sql(inquiry())
        await skills.write_sql(Inquiry("x", "zh", Catalog(CATALOG.tables[:1])))

    think(server, action)
    assert "TABLE service_area" in server.requests[0].question
    assert "TABLE service_area" not in server.requests[1].question


def test_cancelling_a_skill_hangs_up(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(pieces=["tick ", 0.01], repeat=True)

    async def action(skills: LlmSkills) -> None:
        heard = asyncio.Event()
        call = asyncio.create_task(skills.chat(inquiry(), lambda piece: heard.set()))
        await heard.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(server.requests[0].disconnected.wait, 10)

    think(server, action)
