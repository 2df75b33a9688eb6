"""The model adapter over a real socket: what it sends, and the dialects of the protocol it
understands.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app_config import Settings
from common.errors import LlmMisconfigured, LlmUnavailable
from llm import ChatModel, Completion, Endpoint, InvalidEndpoint, OpenAiChat, open_model
from tests.support.model_calls import HELLO, KEY, complete, complete_with, stream, use
from tests.support.openai_server import Gate, OpenAiServer, Reply, Request


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


def test_a_plain_call_sends_messages_and_bounds(server: OpenAiServer) -> None:
    server.replies(Reply("SELECT 1"))
    completion = complete(server)
    sent = server.requests[0]
    assert completion.text == "SELECT 1"
    assert completion.finish_reason == "stop"
    assert sent.messages == HELLO
    assert sent.params["model"] == "test-model"
    assert sent.params["max_tokens"] == 77
    assert sent.params["temperature"] == 0
    assert not sent.is_stream
    assert sent.headers["authorization"] == f"Bearer {KEY}"


def test_usage_is_what_the_endpoint_counts(server: OpenAiServer) -> None:
    server.replies(Reply("one two three"), Reply("one two three"))
    plain, (streamed, _) = complete(server), stream(server)
    assert plain.usage.llm_calls == streamed.usage.llm_calls == 1
    assert plain.usage.prompt_tokens == streamed.usage.prompt_tokens > 0
    assert plain.usage.completion_tokens == streamed.usage.completion_tokens > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_an_endpoint_that_counts_nothing_still_counts_as_a_call(
    server: OpenAiServer, streamed: bool
) -> None:
    server.replies(Reply("text", usage=False))
    completion = stream(server)[0] if streamed else complete(server)
    assert (completion.usage.llm_calls, completion.usage.prompt_tokens) == (1, 0)


def test_tokens_arrive_while_the_reply_is_written(server: OpenAiServer) -> None:
    """The second piece is only sent after the first has been received."""
    gate = Gate()
    server.replies(Reply(pieces=["营业", gate, "收入"]))
    pieces: list[str] = []

    def take(piece: str) -> None:
        pieces.append(piece)
        gate.open()

    completion = use(server.url, lambda model: model.complete(HELLO, on_token=take))
    assert pieces == ["营业", "收入"]
    assert completion.text == "营业收入"


def test_azure_is_addressed_by_deployment(server: OpenAiServer) -> None:
    server.replies(Reply("from azure"))
    settings = Settings(
        azure_openai_api_key=KEY,
        azure_openai_endpoint=f"{server.root}/",
        azure_openai_deployment="my-gpt",
    )
    assert complete_with(settings).text == "from azure"
    sent = server.requests[0]
    assert sent.path == "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert sent.headers["api-key"] == KEY


def test_a_base_url_may_name_the_whole_endpoint(server: OpenAiServer) -> None:
    server.replies(Reply("found"))
    settings = Settings(openai_api_key=KEY, openai_base_url=f"{server.url}/chat/completions")
    assert complete_with(settings).text == "found"


def test_without_a_key_there_is_no_model() -> None:
    assert open_model(Settings()) is None


def test_openai_is_preferred_to_azure() -> None:
    model = open_model(Settings(openai_api_key="a", azure_openai_api_key="b", openai_model="first"))
    assert model is not None
    assert model.name == "first"


@pytest.mark.parametrize("missing", ["azure_openai_endpoint", "azure_openai_deployment"])
def test_half_an_azure_configuration_names_what_is_missing(missing: str) -> None:
    whole = {
        "azure_openai_api_key": "k",
        "azure_openai_endpoint": "https://x",
        "azure_openai_deployment": "d",
    }
    with pytest.raises(InvalidEndpoint, match=missing.upper()):
        open_model(Settings(**{**whole, missing: ""}))  # type: ignore[arg-type]


def test_the_key_is_not_part_of_any_representation() -> None:
    endpoint = Endpoint("openai", "m", "http://h", KEY)
    assert KEY not in repr(endpoint) + str(endpoint)


# --- dialects


def strict(**accepted: type) -> Callable[[Any], Reply]:
    """A server that refuses every parameter beyond these by name."""

    def script(request: Any) -> Reply:
        unknown = next(
            (name for name in request.params if name not in {"model", "messages", *accepted}), None
        )
        if unknown is None:
            return Reply("accepted")
        return Reply(
            status=400,
            body={"error": {"message": f"Unsupported parameter: '{unknown}'", "code": None}},
        )

    return script


@pytest.mark.parametrize(
    "accepted", [{"max_completion_tokens"}, {"stream", "max_tokens"}, {"temperature"}, set()]
)
def test_refused_parameters_are_left_out_and_remembered(
    server: OpenAiServer, accepted: set[str]
) -> None:
    server.default = strict(**dict.fromkeys(accepted, object))
    pieces: list[str] = []

    async def action(model: OpenAiChat) -> int:
        await model.complete(HELLO, on_token=pieces.append)
        asked = len(server.requests)
        await model.complete(HELLO, on_token=pieces.append)
        return len(server.requests) - asked

    assert use(server.url, action) == 1
    assert "".join(pieces) == "acceptedaccepted"
    assert set(server.requests[-1].params) <= {"model", "messages", *accepted}


def test_newer_models_get_the_newer_token_limit(server: OpenAiServer) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    )
    server.replies(Reply(status=400, body={"error": {"message": message}}), Reply("fine"))
    assert complete(server).text == "fine"
    assert server.requests[1].params["max_completion_tokens"] == 77
    assert "max_tokens" not in server.requests[1].params


def test_a_refusal_that_names_nothing_we_sent_is_final(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(
        status=400, body={"error": {"message": "'logprobs' is not supported"}}
    )
    with pytest.raises(LlmMisconfigured):
        complete(server)
    assert len(server.requests) == 1


def test_an_endpoint_that_only_streams_is_streamed_from(server: OpenAiServer) -> None:
    message = "This model only support stream mode, please enable the stream parameter."
    server.replies(
        Reply(status=400, body={"error": {"message": message}}), Reply("streamed"), Reply("again")
    )

    async def action(model: OpenAiChat) -> list[str]:
        return [(await model.complete(HELLO)).text, (await model.complete(HELLO)).text]

    assert use(server.url, action) == ["streamed", "again"]
    assert [request.is_stream for request in server.requests] == [False, True, True]


def test_a_model_without_a_system_role_gets_one_message(server: OpenAiServer) -> None:
    server.replies(
        Reply(status=400, body={"error": {"message": "System role not supported"}}), Reply("fine")
    )
    assert complete(server).text == "fine"
    assert server.requests[1].messages == [{"role": "user", "content": "be brief\n\n你好"}]


def test_a_stream_request_answered_with_a_whole_body(server: OpenAiServer) -> None:
    body = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]}
    server.replies(Reply(body=body))
    completion, pieces = stream(server)
    assert pieces == ["all at once"]
    assert completion.text == "all at once"


def test_a_stream_without_a_finish_reason(server: OpenAiServer) -> None:
    server.replies(Reply("still fine", finish_reason=None))
    assert stream(server)[0].finish_reason == "stop"


def test_a_stream_under_another_content_type(server: OpenAiServer) -> None:
    events = [{"choices": [{"delta": {"content": word}}]} for word in ("one ", "two")]
    body = (
        "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events) + "data: [DONE]\r\n\r\n"
    )
    server.replies(Reply(body=body))
    assert stream(server)[0].text == "one two"


def test_half_a_character_is_replaced(server: OpenAiServer) -> None:
    server.replies(Reply(body=r'{"choices": [{"message": {"content": "a \ud83d b"}}]}'))
    assert complete(server).text == "a \ufffd b"


def test_content_in_parts(server: OpenAiServer) -> None:
    parts = [{"type": "text", "text": "SELECT"}, {"type": "text", "text": " 1"}]
    server.replies(Reply(body={"choices": [{"message": {"content": parts}}]}))
    assert complete(server).text == "SELECT 1"


def test_reasoning_beside_the_content_is_not_content(server: OpenAiServer) -> None:
    server.replies(Reply("answer", message={"reasoning_content": "long thoughts"}))
    assert complete(server).text == "answer"


def test_a_refusal(server: OpenAiServer) -> None:
    server.replies(Reply(text=None, message={"refusal": "I will not."}))
    completion = complete(server)
    assert (completion.text, completion.finish_reason) == ("I will not.", "refusal")
    assert completion.is_withheld


@pytest.mark.parametrize("streamed", [False, True])
def test_a_filtered_reply(server: OpenAiServer, streamed: bool) -> None:
    server.replies(Reply("", finish_reason="content_filter"))
    completion = stream(server)[0] if streamed else complete(server)
    assert completion.text == ""
    assert completion.is_withheld


# --- connections


def test_connections_are_used_again(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("hello again")

    async def action(model: OpenAiChat) -> None:
        for _ in range(3):
            await model.complete(HELLO)
            await model.complete(HELLO, on_token=lambda piece: None)

    use(server.url, action)
    assert server.connection_count == 1


def test_many_calls_at_once(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(f"echo {request.question}")

    async def action(model: OpenAiChat) -> list[Completion]:
        calls = [
            model.complete([{"role": "user", "content": str(number)}]) for number in range(150)
        ]
        return await asyncio.gather(*calls)

    assert [completion.text for completion in use(server.url, action)] == [
        f"echo {n}" for n in range(150)
    ]


def test_one_model_serves_several_event_loops(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("fine")
    model = OpenAiChat(
        Endpoint("openai", "m", server.url, KEY), timeout_s=9, max_retries=0, max_tokens=9
    )

    async def main() -> str:
        try:
            return (await model.complete(HELLO)).text
        finally:
            await model.aclose()

    assert [asyncio.run(main()), asyncio.run(main())] == ["fine", "fine"]


def test_warming_sends_nothing(server: OpenAiServer) -> None:
    async def action(model: ChatModel) -> None:
        await model.warm()

    use(server.url, action)
    assert server.requests == []


@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_every_request_is_written_like_the_first(server: OpenAiServer, provider: str) -> None:
    server.default = lambda request: Reply("fine")
    settings = {
        "openai": Settings(openai_api_key=KEY, openai_base_url=server.url),
        "azure": Settings(
            azure_openai_api_key=KEY, azure_openai_endpoint=server.root, azure_openai_deployment="d"
        ),
    }[provider]

    async def main() -> None:
        model = open_model(settings)
        assert model is not None
        await model.complete(HELLO)
        await model.complete([{"role": "user", "content": "再见, and something longer"}])
        await model.aclose()

    asyncio.run(main())
    first, second = server.requests
    assert second.path == first.path
    assert {**second.headers, "content-length": ""} == {**first.headers, "content-length": ""}
    assert second.question == "再见, and something longer"


@pytest.mark.parametrize(
    "failing",
    [
        Reply(status=400, body={"error": {"message": "'logprobs' is not supported"}}),
        Reply(status=400, body={"error": {"message": "no", "code": "content_filter"}}),
        Reply(status=401, body="not JSON"),
        Reply(status=404, body=[1]),
        Reply(status=429, body={"error": {"code": "insufficient_quota"}}),
        Reply(status=429, headers={"Retry-After": "7"}),
        Reply(status=503),
        Reply("half a", ending="disconnect"),
        Reply(body="garbage"),
    ],
    ids=[
        "parameter",
        "filter",
        "key",
        "model",
        "quota",
        "rate",
        "server",
        "broken off",
        "unusable",
    ],
)
def test_a_failure_is_judged_the_same_whenever_it_comes(
    server: OpenAiServer, failing: Reply
) -> None:
    server.replies(failing, Reply("fine"), failing)

    async def action(model: OpenAiChat) -> None:
        with pytest.raises(LlmUnavailable) as at_first:
            await model.complete(HELLO)
        await model.complete(HELLO)
        with pytest.raises(LlmUnavailable) as later:
            await model.complete(HELLO)
        for attribute in ("text", "retry_after_s", "__class__"):
            assert getattr(later.value, attribute) == getattr(at_first.value, attribute)

    use(server.url, action, max_retries=0)


def test_an_endpoint_that_goes_away_is_missed(server: OpenAiServer) -> None:
    server.replies(Reply("fine"))

    async def action(model: OpenAiChat) -> None:
        await model.complete(HELLO)
        await asyncio.to_thread(server.close)
        with pytest.raises(LlmUnavailable, match="can't be reached"):
            await model.complete(HELLO)

    use(server.url, action, max_retries=0)


# --- turns


def test_no_more_requests_are_in_flight_than_allowed(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("fine", delay_s=0.002)

    async def action(model: OpenAiChat) -> None:
        await asyncio.gather(*(model.complete(HELLO) for _ in range(20)))

    use(server.url, action, max_in_flight=3)
    assert len(server.requests) == 20
    assert server.most_in_flight == 3


def test_all_that_may_be_in_flight_are_in_flight_together(server: OpenAiServer) -> None:
    gate = Gate()

    def together(request: Request) -> Reply:
        if len(server.requests) == 200:
            gate.open()
        return Reply("fine", gate=gate)

    server.default = together

    async def action(model: OpenAiChat) -> None:
        await asyncio.gather(*(model.complete(HELLO) for _ in range(200)))

    use(server.url, action, max_in_flight=200)
    assert server.most_in_flight == 200


def test_calls_take_turns_in_the_order_they_came(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("fine", delay_s=0.001)

    async def action(model: OpenAiChat) -> None:
        await (
            model.warm()
        )  # the first calls would be put in order by whichever thread has loaded the client first
        await asyncio.gather(
            *(model.complete([{"role": "user", "content": str(n)}]) for n in range(10))
        )

    use(server.url, action, max_in_flight=1)
    assert [request.question for request in server.requests] == [str(n) for n in range(10)]


def test_a_call_cancelled_while_it_waits_takes_no_turn(server: OpenAiServer) -> None:
    gate = Gate()
    server.replies(Reply("first", gate=gate), Reply("third"))

    async def action(model: OpenAiChat) -> list[str]:
        first, second, third = (asyncio.create_task(model.complete(HELLO)) for _ in range(3))
        await asyncio.to_thread(gate.reached.wait, 10)
        second.cancel()
        await asyncio.wait([second])
        gate.open()
        assert second.cancelled()
        return [(await first).text, (await third).text]

    assert use(server.url, action, max_in_flight=1) == ["first", "third"]
    assert len(server.requests) == 2


def test_a_call_cancelled_in_flight_gives_its_turn_back(server: OpenAiServer) -> None:
    gate = Gate()
    server.replies(Reply(gate=gate), Reply("second"))

    async def action(model: OpenAiChat) -> str:
        first, second = (asyncio.create_task(model.complete(HELLO)) for _ in range(2))
        await asyncio.to_thread(gate.reached.wait, 10)
        first.cancel()
        return (await second).text

    assert use(server.url, action, max_in_flight=1) == "second"


def test_the_wait_for_a_turn_is_part_of_the_call(server: OpenAiServer) -> None:
    server.replies(Reply(gate=Gate()), Reply("later"))

    async def action(model: OpenAiChat) -> str:
        await model.warm()
        loop = asyncio.get_running_loop()
        now = loop.time()
        with (
            pytest.MonkeyPatch.context() as stopped
        ):  # so that all end at one time: none gets another's turn
            stopped.setattr(loop, "time", lambda: now)
            calls = [asyncio.create_task(model.complete(HELLO)) for _ in range(3)]
            await asyncio.sleep(0)
        await asyncio.wait(calls)
        assert [type(call.exception()) for call in calls] == [LlmUnavailable] * 3
        return (await model.complete(HELLO)).text

    assert use(server.url, action, max_in_flight=1, timeout_s=2.0) == "later"
    assert len(server.requests) == 2, "whoever did not get a turn in time has sent nothing"


@pytest.mark.parametrize(
    "failing",
    [
        Reply(status=500),
        Reply(status=401),
        Reply("half a", ending="disconnect"),
        Reply(body="garbage"),
    ],
    ids=["server error", "refused", "broken off", "unusable"],
)
def test_a_call_that_fails_gives_its_turn_back(server: OpenAiServer, failing: Reply) -> None:
    server.replies(failing, Reply("fine"))

    async def action(model: OpenAiChat) -> str:
        with pytest.raises(LlmUnavailable):
            await model.complete(HELLO)
        return (await model.complete(HELLO)).text

    assert use(server.url, action, max_in_flight=1, max_retries=0) == "fine"


# --- reachability


@pytest.mark.parametrize("reply", [Reply(body={"data": []}), Reply(status=404), Reply(status=405)])
def test_an_endpoint_that_answers_is_reachable(server: OpenAiServer, reply: Reply) -> None:
    server.models = reply
    use(server.url, lambda model: model.ping())


@pytest.mark.parametrize("reply", [Reply(status=401), Reply(status=503), Reply(gate=Gate())])
def test_an_endpoint_that_refuses_or_hangs_is_not(server: OpenAiServer, reply: Reply) -> None:
    server.models = reply
    with pytest.raises(LlmUnavailable):
        use(server.url, lambda model: model.ping(), timeout_s=0.5)


def test_azure_is_reachable_as_well(server: OpenAiServer) -> None:
    async def action() -> None:
        model = open_model(
            Settings(
                azure_openai_api_key=KEY,
                azure_openai_endpoint=server.root,
                azure_openai_deployment="d",
            )
        )
        assert model is not None
        await model.ping()
        await model.aclose()

    asyncio.run(action())
    assert server.requests[0].path.startswith("/openai/models?api-version=")
