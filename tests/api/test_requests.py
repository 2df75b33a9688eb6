"""What the ask endpoints accept, and their errors for everything else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.requests import language_of_body, parse_ask, parse_sql
from common.errors import InvalidRequest

MAX = 100


def test_a_bare_question_gets_defaults() -> None:
    asked = parse_ask({"question": "  各服务区的营业收入排行 "}, MAX, ["ask"])
    assert asked.question.question == "各服务区的营业收入排行"
    assert asked.question.conversation_id.startswith("citu_")
    assert asked.question.lang is None
    assert asked.question.stream_tokens
    assert asked.on_disconnect is None


def test_every_field_is_taken() -> None:
    body = {
        "question": "q",
        "user_id": "张三",
        "conversation_id": "c-1",
        "routing_mode": "database_direct",
        "context_type": "CHAT",
        "table": "public.shop",
        "lang": "en",
        "stream_tokens": False,
        "on_disconnect": "continue",
    }
    asked = parse_ask(body, MAX, ["ask"])
    question = asked.question
    assert (asked.user_id, question.conversation_id, question.routing_mode) == (
        "张三",
        "c-1",
        "database_direct",
    )
    assert (question.context_type, question.table, question.lang) == ("CHAT", "public.shop", "en")
    assert not question.stream_tokens
    assert asked.on_disconnect == "continue"


def test_fields_that_nobody_reads_are_named_with_what_they_may_have_been_meant_for() -> None:
    body = {
        "question": "q",
        "conversationId": "c",
        "x\x1b\u202ey": 1,
        **{f"n{i}": i for i in range(500)},
    }
    (notice,) = parse_ask(body, MAX, ["ask"]).question.notices
    assert notice.en.startswith(
        "Unknown fields of the request were ignored: conversationId (did you mean conversation_id?)"
    )
    assert "x\ufffd\ufffdy" in notice.en
    assert len(notice.en) < 500
    assert "conversationId（是否指 conversation_id？）" in notice.zh
    assert parse_sql({"sql": "SELECT 1", "params": []}, None).warnings
    assert parse_sql({"sql": "SELECT 1", "lang": "en", "user_id": "u"}, None).warnings == []


def test_null_means_absent() -> None:
    asked = parse_ask({"question": "q", "routing_mode": None, "stream_tokens": None}, MAX, ["ask"])
    assert asked.question.routing_mode is None
    assert asked.question.stream_tokens


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("question", None, "missing"),
        ("question", " \n\t　", "blank"),
        ("question", 7, "a string"),
        ("question", "x" * (MAX + 1), f"at most {MAX}"),
        ("question", "a\0b", "NUL"),
        ("question", "a\ud800b", "broken"),
        ("routing_mode", "fast", "hybrid, llm_only, database_direct, chat_direct"),
        ("routing_mode", ["hybrid"], "hybrid"),
        ("conversation_id", "a b", "128 letters"),
        ("conversation_id", "", "128 letters"),
        ("user_id", 5, "a string"),
        ("table", "", "a string"),
        ("context_type", "chat", "DATABASE, CHAT"),
        ("lang", "fr", "zh, en"),
        ("stream_tokens", "yes", "true or false"),
        ("stream_tokens", 1, "true or false"),
        ("on_disconnect", "stop", "cancel, continue"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(field: str, value: object, says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_ask({"question": "q", field: value}, MAX, ["ask"])
    assert caught.value.details() == {"field": field}
    assert field in caught.value.message("zh")
    assert says in caught.value.message("en")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
_FIELDS = [
    "question",
    "user_id",
    "conversation_id",
    "routing_mode",
    "context_type",
    "table",
    "lang",
    "stream_tokens",
]


@given(
    st.dictionaries(st.sampled_from([*_FIELDS, "on_disconnect", "other"]), _json),
    st.none() | st.text(),
)
def test_any_body_is_parsed_or_refused_with_its_field(
    body: dict[str, Any], accept_language: str | None
) -> None:
    assert language_of_body(body, accept_language) in ("zh", "en")
    try:
        asked = parse_ask(body, MAX, ["ask"])
    except InvalidRequest as error:
        assert error.field in body or error.field == "question"
        return
    assert 0 < len(asked.question.question) <= MAX
    asked.question.question.encode()
