"""The model adapter with tools, over a real socket: what it sends, tries again, and makes of what
comes back.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from app_config import Settings
from common.errors import LlmMisconfigured, LlmUnavailable
from llm import (
    AnyMessage,
    Completion,
    InvalidArguments,
    OpenAiChat,
    ToolDefinition,
    ToolOffer,
    tool_message,
)
from llm.call_assembly import MAX_CALL_CHARS, MAX_CALLS
from tests.support.model_calls import HELLO, KEY, complete_with, use
from tests.support.openai_replies import deltas_of
from tests.support.openai_server import Called, Gate, OpenAiServer, Reply, Request


def defined(name: str, description: str, argument: str) -> ToolDefinition:
    """A tool that takes one text."""
    properties = {argument: {"type": "string"}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [argument],
        "additionalProperties": False,
    }
    return ToolDefinition(name, description, schema)


COUNT = defined("count_rows", "Counts rows.", "table")
RUN = defined("run_sql", "Runs a query.", "sql")
OFFER = ToolOffer((COUNT, RUN))
CALL = Called("count_rows", {"table": "商店"}, id="call_a")
OTHER = Called("run_sql", {"sql": "SELECT 1\nFROM shop"}, id="call_b")


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def pieces(request: pytest.FixtureRequest) -> list[str] | None:
    """What `ask` takes for a whole reply, and for a streamed one."""
    return [] if request.param else None


def ask(
    server: OpenAiServer,
    offer: ToolOffer | None = OFFER,
    messages: list[AnyMessage] | None = None,
    pieces: list[str] | None = None,
    **options: Any,
) -> Completion:
    """One reply; streamed when there are `pieces` to add its text to."""
    on_token = None if pieces is None else pieces.append
    asked = list(HELLO) if messages is None else messages
    return use(
        server.url, lambda model: model.complete(asked, on_token=on_token, offer=offer), **options
    )


def names_of(completion: Completion) -> list[str]:
    return [call.name for call in completion.tool_calls]


# --- what is sent


def test_tools_are_described_as_the_protocol_does(server: OpenAiServer) -> None:
    server.replies(Reply(calls=[CALL]))
    ask(server)
    sent = server.requests[0].params
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in OFFER.tools
    ]
    assert sent["parallel_tool_calls"] is False
    assert "tool_choice" not in sent
    assert not server.requests[0].is_stream


CHOICES = {
    "auto": None,
    "none": "none",
    "required": "required",
    "run_sql": {"type": "function", "function": {"name": "run_sql"}},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_which_tool_is_to_be_called(server: OpenAiServer, choice: str) -> None:
    server.replies(Reply("text"))
    ask(server, ToolOffer(OFFER.tools, choice, parallel=True))
    assert server.requests[0].params.get("tool_choice") == CHOICES[choice]
    assert "parallel_tool_calls" not in server.requests[0].params


def test_without_tools_nothing_is_sent_of_them(server: OpenAiServer) -> None:
    server.replies(Reply("text"))
    ask(server, None)
    assert set(server.requests[0].params) == {"model", "messages", "temperature", "max_tokens"}


# --- what comes back


def test_calls_without_text_are_no_failure(server: OpenAiServer, pieces: list[str] | None) -> None:
    server.replies(Reply(calls=[CALL, OTHER]))
    completion = ask(server, pieces=pieces)
    assert [(call.id, call.name, call.arguments) for call in completion.tool_calls] == [
        ("call_a", "count_rows", {"table": "商店"}),
        ("call_b", "run_sql", {"sql": "SELECT 1\nFROM shop"}),
    ]
    assert (completion.text, completion.finish_reason, completion.reasoning) == (
        "",
        "tool_calls",
        "",
    )
    assert completion.usage.llm_calls == 1
    assert completion.usage.prompt_tokens > 0
    assert completion.usage.completion_tokens > 0
    assert not pieces


def test_text_and_calls_in_one_reply(server: OpenAiServer, pieces: list[str] | None) -> None:
    server.replies(
        Reply("I count the shops.", calls=[CALL], message={"reasoning_content": "Count first."})
    )
    completion = ask(server, pieces=pieces)
    assert (completion.text, names_of(completion)) == ("I count the shops.", ["count_rows"])
    assert pieces is None or "".join(pieces) == completion.text


def test_text_arrives_while_the_calls_are_written(server: OpenAiServer) -> None:
    """The calls are only sent after the text has been received."""
    gate = Gate()
    server.replies(
        Reply(pieces=["wait", gate, *deltas_of(CALL, 0, [3, 9])], finish_reason="tool_calls")
    )
    completion = use(
        server.url, lambda model: model.complete(HELLO, on_token=lambda _: gate.open(), offer=OFFER)
    )
    assert (completion.text, names_of(completion)) == ("wait", ["count_rows"])


def test_the_answer_after_tools_is_text(server: OpenAiServer) -> None:
    server.replies(Reply("text"))
    completion = ask(server)
    assert (completion.text, completion.tool_calls, completion.finish_reason) == (
        "text",
        (),
        "stop",
    )


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_arguments_cut_off_are_given_as_such(
    server: OpenAiServer, pieces: list[str] | None, finish: str
) -> None:
    server.replies(Reply(calls=[CALL, Called("run_sql", '{"sql": "SELECT')], finish_reason=finish))
    completion = ask(server, pieces=pieces)
    whole, cut = completion.tool_calls
    assert whole.arguments == {"table": "商店"}
    assert isinstance(cut.arguments, InvalidArguments)
    assert cut.arguments.is_cut
    assert (completion.is_cut, completion.is_withheld) == (
        finish == "length",
        finish == "content_filter",
    )


def test_a_withheld_reply_may_be_empty(server: OpenAiServer) -> None:
    server.replies(Reply("", finish_reason="content_filter"))
    assert ask(server).is_withheld


def test_a_reply_of_nothing_is_still_a_failure(
    server: OpenAiServer, pieces: list[str] | None
) -> None:
    server.default = lambda request: Reply("", finish_reason="tool_calls")
    with pytest.raises(LlmUnavailable, match="empty"):
        ask(server, pieces=pieces)


MANY = Reply(calls=[Called("run_sql")] * (MAX_CALLS + 1))
LONG = Reply(calls=[Called("run_sql", {"sql": "x" * MAX_CALL_CHARS})])


@pytest.mark.parametrize("reply", [MANY, LONG], ids=["many", "long"])
def test_too_much_is_a_failure_of_its_own(
    server: OpenAiServer, reply: Reply, pieces: list[str] | None
) -> None:
    server.default = lambda request: reply
    with pytest.raises(LlmUnavailable, match="too many or too long tool calls"):
        ask(server, pieces=pieces)
    assert len(server.requests) == 1


def test_endless_arguments_are_not_collected_for_ever(server: OpenAiServer) -> None:
    endless = [{"tool_calls": [{"index": 0, "function": {"arguments": "x" * 1000}}]}]
    server.default = lambda request: Reply(pieces=endless, repeat=True)
    with pytest.raises(LlmUnavailable, match="too long"):
        ask(server, pieces=[])
    assert server.requests[0].disconnected.wait(60)


# --- a conversation


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_conversation_with_tools_keeps_the_protocol(
    server: OpenAiServer, is_streamed: bool
) -> None:
    """Several calls, invalid arguments, a name that is none, a missing id: the conversation can
    still go on.
    """
    wrong = {"index": 2, "function": {"name": "no.such tool", "arguments": "{oops"}}
    many = [*deltas_of(CALL, 0, [5]), *deltas_of(OTHER, 1), {"tool_calls": [wrong]}]
    server.replies(
        Reply(pieces=["Looking. ", *many], finish_reason="tool_calls")
        if is_streamed
        else Reply("Looking.", calls=[CALL]),
        Reply(calls=[CALL]),  # an id that is known already
        Reply("There are 7 shops."),
    )
    messages: list[AnyMessage] = list(HELLO)

    async def loop(model: OpenAiChat) -> Completion:
        while True:
            on_token = (lambda _: None) if is_streamed else None
            completion = await model.complete(messages, on_token=on_token, offer=OFFER)
            messages.append(completion.message())
            if not completion.tool_calls:
                return completion
            messages.extend(
                tool_message(call, "" if call.name == "run_sql" else "7")
                for call in completion.tool_calls
            )

    assert use(server.url, loop).text == "There are 7 shops."
    last = server.requests[-1].messages
    calls = [call for message in last for call in message.get("tool_calls", ())]
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "call_a"
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == ids
    if is_streamed:
        assert [call["function"]["name"] for call in calls][2] == "no_such_tool"
        assert [call["function"]["arguments"] for call in calls][2] == "{}"
    assert json.loads(calls[0]["function"]["arguments"]) == {"table": "商店"}


# --- what endpoints refuse


def refusing(*words: str) -> Any:
    """A server that refuses parameters by these names."""

    def script(request: Request) -> Reply:
        unknown = next((name for name in words if name in request.params), None)
        return (
            Reply(status=400, body={"error": {"message": f"Unsupported parameter: '{unknown}'"}})
            if unknown
            else Reply("ok")
        )

    return script


@pytest.mark.parametrize(
    "words", [["parallel_tool_calls"], ["tool_choice", "parallel_tool_calls", "temperature"]]
)
def test_refused_parameters_are_left_out_and_remembered(
    server: OpenAiServer, words: list[str]
) -> None:
    server.default = refusing(*words)
    offer = ToolOffer(OFFER.tools, "required")

    async def action(model: OpenAiChat) -> list[int]:
        counts = []
        for _ in range(2):
            await model.complete(HELLO, offer=offer)
            counts.append(len(server.requests))
        return counts

    first, second = use(server.url, action)
    assert (first, second) == (len(words) + 1, len(words) + 2)
    assert "tools" in server.requests[-1].params


def test_a_refused_choice_leaves_the_others(server: OpenAiServer) -> None:
    message = "tool_choice 'required' is not supported"
    server.replies(
        Reply(status=400, body={"error": {"message": message}}), Reply("a"), Reply("b"), Reply("c")
    )

    async def action(model: OpenAiChat) -> None:
        for choice in ("required", "required", "none"):
            await model.complete(HELLO, offer=ToolOffer(OFFER.tools, choice))

    use(server.url, action)
    assert [request.params.get("tool_choice") for request in server.requests] == [
        "required",
        None,
        None,
        "none",
    ]


def test_an_endpoint_that_does_not_stream_calls_still_streams_text(server: OpenAiServer) -> None:
    message = "Streaming with tools is not supported."
    replies = (
        Reply(status=400, body={"error": {"message": message}}),
        Reply("Hm.", calls=[CALL]),
        Reply("a b"),
        Reply("c"),
    )
    server.replies(*replies)
    pieces: list[str] = []

    async def action(model: OpenAiChat) -> None:
        for offer in (OFFER, None, OFFER):
            await model.complete(HELLO, on_token=pieces.append, offer=offer)

    use(server.url, action)
    assert [request.is_stream for request in server.requests] == [True, False, True, False]
    assert pieces == ["Hm.", "a", " b", "c"]


NO_TOOLS = [
    (400, "registry.ollama.ai/library/llama2:latest does not support tools"),
    (400, "'tools' is not supported with this model."),
    (400, "`tool calling` is not supported with this model"),
    (400, "Unsupported parameter: 'tools'"),
    (400, "Unrecognized request argument supplied: tools"),
    (400, "This model doesn't support tool use."),
    (404, "No endpoints found that support tool use."),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
]


@pytest.mark.parametrize(("status", "message"), NO_TOOLS)
def test_a_model_that_knows_no_tools_is_named(
    server: OpenAiServer, status: int, message: str
) -> None:
    server.default = lambda request: Reply(status=status, body={"error": {"message": message}})
    with pytest.raises(LlmMisconfigured, match="can't call tools"):
        ask(server)
    assert len(server.requests) == 1
    with pytest.raises(LlmMisconfigured, match="refused the request|does not know"):
        ask(server, None)


@pytest.mark.parametrize(
    "message",
    [
        (
            "Invalid schema for function 'run_sql': None is not of type 'object'. param: "
            "tools[0].function.parameters"
        ),
        "Unsupported parameter: 'tools[0].function.description'",
    ],
)
def test_a_tool_that_is_refused_is_no_refusal_of_tools(server: OpenAiServer, message: str) -> None:
    server.default = lambda request: Reply(status=400, body={"error": {"message": message}})
    with pytest.raises(LlmMisconfigured, match="refused the request"):
        ask(server)


WITH_CALLS: list[AnyMessage] = [
    *HELLO,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "run_sql", "arguments": "{}"}}
        ],
        "reasoning_content": "Hm.",
    },
    {"role": "tool", "tool_call_id": "a", "content": "1"},
]


def test_reasoning_is_sent_back_until_it_is_refused(server: OpenAiServer) -> None:
    message = "reasoning_content must not be present in messages"
    server.replies(
        Reply("fine"),
        Reply(status=400, body={"error": {"message": message}}),
        Reply("a"),
        Reply("b"),
    )

    async def action(model: OpenAiChat) -> None:
        for _ in range(3):
            await model.complete(WITH_CALLS, offer=OFFER)

    use(server.url, action)
    sent = ["reasoning_content" in request.messages[2] for request in server.requests]
    assert sent == [True, True, False, False]


def test_a_model_without_a_system_role_keeps_the_conversation(server: OpenAiServer) -> None:
    server.replies(
        Reply(status=400, body={"error": {"message": "System role not supported"}}), Reply("fine")
    )
    ask(server, messages=WITH_CALLS)
    first, *rest = server.requests[1].messages
    assert first == {"role": "user", "content": "be brief\n\n你好"}
    assert rest == WITH_CALLS[2:]


# --- further tries, time, cancelling


def test_a_failure_that_may_pass_is_tried_again(
    server: OpenAiServer, pieces: list[str] | None
) -> None:
    server.replies(Reply(status=429), Reply(status=503), Reply(calls=[CALL]))
    assert names_of(ask(server, pieces=pieces)) == ["count_rows"]
    assert len(server.requests) == 3


def test_calls_that_break_off_are_asked_for_again(server: OpenAiServer) -> None:
    """Nothing of them has been given out; what had arrived is forgotten."""
    half = deltas_of(Called("run_sql", {"sql": "SELECT 1"}, id="lost"), 0, [4])[:2]
    server.replies(Reply(pieces=half, ending="disconnect"), Reply(calls=[CALL]))
    completion = ask(server, pieces=[])
    assert [call.id for call in completion.tool_calls] == ["call_a"]
    server.replies(Reply(calls=[OTHER], ending="disconnect"), Reply(calls=[CALL]))
    assert names_of(ask(server)) == ["count_rows"]


def test_calls_that_break_off_after_text_are_not(server: OpenAiServer) -> None:
    server.replies(
        Reply(pieces=["Let me", *deltas_of(CALL, 0)[:1]], ending="disconnect"), Reply(calls=[CALL])
    )
    pieces: list[str] = []
    with pytest.raises(LlmUnavailable, match="broke off"):
        ask(server, pieces=pieces)
    assert pieces == ["Let me"]
    assert len(server.requests) == 1


def test_an_error_between_the_deltas_may_pass(server: OpenAiServer) -> None:
    error = b'data: {"error": {"message": "overloaded"}}\n\n'
    server.replies(Reply(pieces=[*deltas_of(CALL, 0)[:1], error]), Reply(calls=[CALL]))
    assert names_of(ask(server, pieces=[])) == ["count_rows"]


def test_the_time_limit_holds_between_the_deltas(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(pieces=deltas_of(CALL, 0)[:1], ending="silence")
    with pytest.raises(LlmUnavailable, match="in time"):
        ask(server, pieces=[], timeout_s=0.3)
    assert len(server.requests) == 1
    assert server.requests[0].disconnected.wait(60)


def test_cancelling_between_the_deltas_hangs_up(server: OpenAiServer) -> None:
    gate = Gate()
    server.replies(Reply(pieces=[*deltas_of(CALL, 0)[:1], gate]))

    async def action(model: OpenAiChat) -> None:
        call = asyncio.create_task(model.complete(HELLO, on_token=lambda _: None, offer=OFFER))
        await asyncio.to_thread(gate.reached.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(server.requests[0].disconnected.wait, 10)

    use(server.url, action)


# --- Azure


@pytest.mark.parametrize("is_streamed", [False, True])
def test_azure_calls_tools_as_well(server: OpenAiServer, is_streamed: bool) -> None:
    """Azure begins a stream with the verdicts of its filters, and a chunk may have no choice."""
    filters = b'data: {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}\n\n'
    server.replies(
        Reply(
            status=400,
            body={
                "error": {"message": "Unrecognized request argument supplied: parallel_tool_calls"}
            },
        ),
        Reply(pieces=[filters, *deltas_of(CALL, 0, [2, 8])])
        if is_streamed
        else Reply(calls=[CALL]),
    )
    settings = Settings(
        azure_openai_api_key=KEY,
        azure_openai_endpoint=server.root,
        azure_openai_deployment="my-gpt",
        llm_max_retries=0,
    )
    on_token = (lambda _: None) if is_streamed else None
    completion = complete_with(
        settings, offer=ToolOffer(OFFER.tools, "required"), on_token=on_token
    )
    assert names_of(completion) == ["count_rows"]
    assert completion.usage.prompt_tokens > 0
    assert completion.finish_reason == "tool_calls"
    sent = server.requests[-1]
    assert sent.path.startswith("/openai/deployments/my-gpt/chat/completions")
    assert (sent.tool_names, sent.params["tool_choice"]) == (["count_rows", "run_sql"], "required")
