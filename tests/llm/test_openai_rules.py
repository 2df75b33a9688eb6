"""The tests' model server refuses what providers refuse, and a test in which it did fails."""

import os
from pathlib import Path
from typing import Any

import pytest

from common.errors import LlmMisconfigured
from tests.support.forking import run_forked
from tests.support.live import ROOT
from tests.support.model_calls import complete, use
from tests.support.openai_rules import violation
from tests.support.openai_server import OpenAiServer, Reply, take_violations

USER = {"role": "user", "content": "hello"}
CALL = {"id": "a", "type": "function", "function": {"name": "run_sql", "arguments": "{}"}}
ANSWER = {"role": "tool", "tool_call_id": "a", "content": "1"}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "run_sql", "parameters": NOTHING}}


def taking(schema: Any, **more: Any) -> dict[str, Any]:
    """Tools, one of which takes an argument of this schema."""
    parameters = {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
        "additionalProperties": False,
    }
    return {
        "tools": [
            {"type": "function", "function": {"name": "run", "parameters": {**parameters, **more}}}
        ]
    }


def calling(*calls: Any, **changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **changes}


def call(**changes: Any) -> dict[str, Any]:
    function = {**CALL["function"], **changes}  # type: ignore[dict-item]
    return {**CALL, "function": function}


ALLOWED: dict[str, list[dict[str, Any]]] = {
    "a question": [USER],
    "a question in parts": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    "a conversation": [
        {"role": "system", "content": "be brief"},
        USER,
        {"role": "assistant", "content": "hi"},
        USER,
    ],
    "a call": [USER, calling(CALL), ANSWER],
    "a call with text": [USER, calling(CALL, content="I look.", reasoning_content="Hm."), ANSWER],
    "an empty text beside a call": [USER, calling(CALL, content=""), ANSWER],
    "a call without content": [USER, {"role": "assistant", "tool_calls": [CALL]}, ANSWER],
    "answers in another order": [
        USER,
        calling(CALL, {**CALL, "id": "b"}),
        {**ANSWER, "tool_call_id": "b"},
        ANSWER,
        USER,
    ],
    "an id of an earlier call": [USER, calling(CALL), ANSWER, calling(CALL), ANSWER],
}
REFUSED: dict[str, Any] = {
    "no messages": [],
    "no list": "hello",
    "no object": ["hello"],
    "an unknown role": [{"role": "robot", "content": "hello"}],
    "no role": [{"content": "hello"}],
    "an unknown key": [{**USER, "tool": "x"}],
    "an empty question": [{"role": "user", "content": " \n"}],
    "an empty part": [{"role": "user", "content": [{"type": "text", "text": ""}]}],
    "no content": [{"role": "user"}],
    "an answer without text and calls": [USER, {"role": "assistant", "content": ""}],
    "an answer of null": [USER, {"role": "assistant", "content": None}],
    "an empty list of calls": [USER, calling(content="text")],
    "null for calls": [USER, {"role": "assistant", "content": "x", "tool_calls": None}],
    "a call that is never answered": [USER, calling(CALL)],
    "a call followed by the user": [USER, calling(CALL), USER, ANSWER],
    "a call followed by the model": [USER, calling(CALL), {"role": "assistant", "content": "x"}],
    "a call followed by the system": [
        USER,
        calling(CALL),
        {"role": "system", "content": "x"},
        ANSWER,
    ],
    "one of two calls answered": [USER, calling(CALL, {**CALL, "id": "b"}), ANSWER, USER],
    "a call answered twice": [USER, calling(CALL), ANSWER, ANSWER],
    "an answer to no call": [USER, ANSWER],
    "an answer to an unknown call": [USER, calling(CALL), {**ANSWER, "tool_call_id": "b"}],
    "an answer to a call long closed": [USER, calling(CALL), ANSWER, USER, ANSWER],
    "an answer without an id": [USER, calling(CALL), {"role": "tool", "content": "1"}],
    "an empty answer": [USER, calling(CALL), {**ANSWER, "content": ""}],
    "an answer in parts": [
        USER,
        calling(CALL),
        {**ANSWER, "content": [{"type": "text", "text": "1"}]},
    ],
    "one id twice": [USER, calling(CALL, CALL), ANSWER, ANSWER],
    "an empty id": [USER, calling({**CALL, "id": ""}), {**ANSWER, "tool_call_id": ""}],
    "a call of another type": [USER, calling({**CALL, "type": "custom"}), ANSWER],
    "a call with an index": [USER, calling({**CALL, "index": 0}), ANSWER],
    "arguments that are no JSON": [USER, calling(call(arguments="{oops")), ANSWER],
    "arguments that are empty": [USER, calling(call(arguments="")), ANSWER],
    "arguments that are not a number": [USER, calling(call(arguments='{"a": NaN}')), ANSWER],
    "arguments that are a list": [USER, calling(call(arguments="[]")), ANSWER],
    "arguments that are no text": [USER, calling(call(arguments={})), ANSWER],
    "a name with a dot": [USER, calling(call(name="run.sql")), ANSWER],
    "a long name": [USER, calling(call(name="x" * 65)), ANSWER],
    "no name": [USER, calling(call(name=None)), ANSWER],
}
REFUSED_TOOLS: dict[str, dict[str, Any]] = {
    "an empty list": {"tools": []},
    "no list": {"tools": TOOL},
    "no function": {"tools": [{"type": "retrieval"}]},
    "a name with a blank": {
        "tools": [
            {"type": "function", "function": {**TOOL["function"], "name": "run sql"}}  # type: ignore[dict-item]
        ]
    },
    "no schema": {"tools": [{"type": "function", "function": {"name": "run"}}]},
    "a schema of a list": {
        "tools": [
            {"type": "function", "function": {"name": "run", "parameters": {"type": "array"}}}
        ]
    },
    "one name twice": {"tools": [TOOL, TOOL]},
    "too many": {
        "tools": [
            {"type": "function", "function": {"name": f"run_{n}", "parameters": NOTHING}}
            for n in range(129)
        ]
    },
    "an argument that may be left out": taking({"type": "string"}, required=[]),
    "arguments of any name": taking({"type": "string"}, additionalProperties=True),
    "nothing said of other arguments": taking(NOTHING | {"additionalProperties": None}),
    "a default": taking({"type": "string", "default": ""}),
    "a title": taking({"type": "string"}, title="Run"),
    "a bound within a list": taking({"type": "array", "items": {"type": "integer", "minimum": 1}}),
    "a pattern in an alternative": taking(
        {"anyOf": [{"type": "null"}, {"type": "string", "pattern": "a"}]}
    ),
    "a choice without tools": {"tool_choice": "none"},
    "parallel without tools": {"parallel_tool_calls": False},
    "a choice of nothing": {
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "walk"}},
    },
    "a choice that is none": {"tools": [TOOL], "tool_choice": "any"},
}


@pytest.mark.parametrize("kind", ALLOWED)
def test_what_providers_take(kind: str) -> None:
    choice = {"type": "function", "function": {"name": "run_sql"}}
    assert violation({"messages": ALLOWED[kind]}) is None
    assert violation({"messages": ALLOWED[kind], "tools": [TOOL], "tool_choice": choice}) is None


@pytest.mark.parametrize("kind", REFUSED)
def test_what_providers_refuse(kind: str) -> None:
    assert violation({"messages": REFUSED[kind]})


@pytest.mark.parametrize("kind", REFUSED_TOOLS)
def test_tools_that_providers_refuse(kind: str) -> None:
    assert violation({"messages": [USER], **REFUSED_TOOLS[kind]})


def test_a_refusal_is_a_400_and_leaves_the_queue_as_it_is() -> None:
    with OpenAiServer() as server:
        server.replies(Reply("fine"))
        with pytest.raises(LlmMisconfigured, match="refused the request"):
            use(server.url, lambda model: model.complete([{"role": "user", "content": ""}]))
        (problem,) = take_violations()
        assert "messages[0] is empty" in problem
        assert complete(server).text == "fine"
    assert take_violations() == []


_SWALLOWING = """
from contextlib import suppress

from tests.conftest import protocol_is_kept
from tests.support.model_calls import use
from tests.support.openai_server import openai_server


def test_that_lives_with_a_refusal(openai_server):
    messages = [{"role": "tool", "tool_call_id": "a", "content": "1"}]
    with suppress(Exception):
        use(openai_server.url, lambda model: model.complete(messages))
"""


@pytest.mark.slow
def test_a_refusal_fails_the_test_that_swallowed_it(tmp_path: Path) -> None:
    path = tmp_path / "test_swallowing.py"
    path.write_text(_SWALLOWING)
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path)]
    run = run_forked(words, ROOT, dict(os.environ), 100)
    assert "Requests that providers refuse: messages[0]: messages with role 'tool'" in run.stdout, (
        run.stdout
    )
    assert "1 passed" in run.stdout and "1 error" in run.stdout, run.stdout
