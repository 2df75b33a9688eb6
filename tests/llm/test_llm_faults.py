"""Every way an endpoint can fail, over a real socket: what is tried again, what is not, and what
the user is told.
"""

import asyncio
import socket
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from app_config import Settings
from common.errors import LlmMisconfigured, LlmUnavailable
from llm import Completion, OpenAiChat
from llm.call_failures import MEANINGS
from llm.reply_limit import MAX_REPLY_CHARS
from tests.support.model_calls import HELLO, KEY, complete, complete_with, stream, use
from tests.support.openai_server import Gate, OpenAiServer, Reply


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as server:
        yield server


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_that_may_pass_is_tried_again(
    server: OpenAiServer, status: int, streamed: bool
) -> None:
    server.replies(Reply(status=status), Reply(status=status), Reply("at last"))
    completion = stream(server)[0] if streamed else complete(server)
    assert completion.text == "at last"
    assert completion.usage.llm_calls == 1
    assert len(server.requests) == 3


def test_tries_are_bounded(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(status=503)
    with pytest.raises(LlmUnavailable):
        complete(server, max_retries=3)
    assert len(server.requests) == 4


def test_retry_after_is_waited_for(server: OpenAiServer) -> None:
    server.replies(Reply(status=429, headers={"Retry-After": "0.3"}), Reply("later"))
    started = time.monotonic()
    assert complete(server).text == "later"
    assert time.monotonic() - started >= 0.3


def test_a_long_retry_after_is_told_and_not_waited_for(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(status=429, headers={"Retry-After": "90"})
    with pytest.raises(LlmUnavailable) as caught:
        complete(server)
    assert caught.value.retry_after_s == 90
    assert caught.value.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize("value", ["-5", "nan", "inf", "tomorrow"])
def test_a_senseless_retry_after_is_ignored(server: OpenAiServer, value: str) -> None:
    server.replies(Reply(status=429, headers={"Retry-After": value}), Reply("fine"))
    assert complete(server).text == "fine"


def test_a_body_that_breaks_off_is_tried_again(server: OpenAiServer) -> None:
    server.replies(Reply("never seen", ending="disconnect"), Reply("whole"))
    assert complete(server).text == "whole"


def test_a_stream_that_breaks_off_before_its_first_token_is_tried_again(
    server: OpenAiServer,
) -> None:
    server.replies(Reply(pieces=[], ending="disconnect"), Reply("whole"))
    completion, pieces = stream(server)
    assert completion.text == "".join(pieces) == "whole"


def test_a_stream_that_breaks_off_later_fails_without_repeating_tokens(
    server: OpenAiServer,
) -> None:
    server.replies(Reply(pieces=["half "], ending="disconnect"), Reply("whole"))
    pieces: list[str] = []
    with pytest.raises(LlmUnavailable):
        use(server.url, lambda model: model.complete(HELLO, on_token=pieces.append))
    assert pieces == ["half "]
    assert len(server.requests) == 1


def test_the_service_recovers_when_the_endpoint_comes_back(server: OpenAiServer) -> None:
    async def action(model: OpenAiChat) -> Completion:
        server.close()
        with pytest.raises(LlmUnavailable) as caught:
            await model.complete(HELLO)
        assert caught.value.retryable
        with OpenAiServer(lambda request: Reply("back"), server.port):
            return await model.complete(HELLO)

    assert use(server.url, action).text == "back"


# --- what does not pass

LASTING = {
    400: "refused the request",
    401: "refused the key",
    403: "refused the key",
    404: "does not know the configured model",
    422: "refused the request",
}


@pytest.mark.parametrize("status", LASTING)
def test_a_failure_for_good_is_not_tried_again(server: OpenAiServer, status: int) -> None:
    body = {"error": {"message": f"bad key {KEY} at {server.url}", "code": "whatever"}}
    server.default = lambda request: Reply(status=status, body=body)
    with pytest.raises(LlmMisconfigured, match=LASTING[status]) as caught:
        complete(server)
    assert not caught.value.retryable
    assert caught.value.error_type == "llm_unavailable"
    assert len(server.requests) == 1


TOLD = [
    (429, {"code": "insufficient_quota"}, "quota"),
    (402, {"message": "pay"}, "quota"),
    (403, {"code": "insufficient_balance"}, "quota"),
    (400, {"code": "content_filter"}, "content filter"),
    (400, {"code": "context_length_exceeded"}, "context"),
    (400, {"type": "exceed_context_size_error"}, "context"),
    (
        400,
        {"message": "This model's maximum context length is 8192 tokens; use fewer max_tokens"},
        "context",
    ),
    (
        400,
        {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"},
        "context",
    ),
    (422, {"message": "Input is too long for requested model."}, "context"),
    (413, "Request entity too large", "context"),
    (307, "moved", "redirect"),
    # with status 200, as gateways do
    (200, {"code": "insufficient_quota"}, "quota"),
    (200, {"code": 402, "message": "Insufficient credits"}, "quota"),
    (200, {"code": "401"}, "refused the key"),
    (200, {"type": "authentication_error"}, "refused the key"),
    (200, {"code": "model_not_found"}, "does not know the configured model"),
    (200, {"code": "context_length_exceeded"}, "context"),
    (200, {"type": "invalid_request_error", "message": "no"}, "refused the request"),
]


@pytest.mark.parametrize(("status", "error", "words"), TOLD)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_lasts_is_known_by_its_words(
    server: OpenAiServer, status: int, error: Any, words: str, streamed: bool
) -> None:
    server.default = lambda request: Reply(status=status, body={"error": error})
    with pytest.raises(LlmMisconfigured, match=words):
        stream(server) if streamed else complete(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "error", [{"code": 429}, {"code": "rate_limit_exceeded"}, {"code": 502}, "overloaded"]
)
def test_what_may_pass_is_tried_again_also_with_status_200(
    server: OpenAiServer, error: Any
) -> None:
    server.replies(Reply(body={"error": error}), Reply("fine"))
    assert complete(server).text == "fine"


def test_no_redirect_is_followed(server: OpenAiServer) -> None:
    """Neither the first call, which the openai client sends, nor later ones, nor a ping."""
    with OpenAiServer(lambda request: Reply("stolen")) as elsewhere:
        moved = Reply(
            status=307, headers={"Location": f"{elsewhere.url}/chat/completions"}, body={}
        )
        server.replies(moved, Reply("fine"), moved)
        server.models = Reply(status=308, headers={"Location": f"{elsewhere.url}/models"}, body={})

        async def action(model: OpenAiChat) -> None:
            for is_moved in (True, False, True):
                if is_moved:
                    with pytest.raises(LlmMisconfigured, match="redirect"):
                        await model.complete(HELLO)
                else:
                    await model.complete(HELLO)
            with pytest.raises(LlmMisconfigured, match="redirect"):
                await model.ping()

        use(server.url, action)
        assert elsewhere.requests == []


GARBAGE: dict[str, Any] = {
    "html": "<html><body>Bad gateway</body></html>",
    "empty": "",
    "empty object": {},
    "list": [1],
    "null": "null",
    "no choices": {"choices": []},
    "choices of another kind": {"choices": "x"},
    "choice of another kind": {"choices": [7]},
    "no message": {"choices": [{}]},
    "null content": {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    "blank content": {"choices": [{"message": {"content": " \n"}, "finish_reason": "length"}]},
    "tool call": {
        "choices": [
            {"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"}
        ]
    },
    "truncated JSON": '{"choices": [{"message": {"content": "SEL',
    "not UTF-8": b"\xff\xfe\x00",
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("streamed", [False, True])
def test_garbage_is_unavailability(server: OpenAiServer, kind: str, streamed: bool) -> None:
    server.default = lambda request: Reply(body=GARBAGE[kind])
    with pytest.raises(LlmUnavailable) as caught:
        stream(server) if streamed else complete(server)
    assert caught.value.text in {meaning.text for meaning in MEANINGS.values()}


BAD_STREAMS: dict[str, list[str | bytes]] = {
    "no events": [],
    "only comments": [b": keep-alive\n\n"],
    "invalid JSON": [b"data: {oops\n\n"],
    "HTML": [b"<html>\n</html>\n"],
    "an error inside": ["some ", b'data: {"error": {"message": "overloaded"}}\n\n'],
    "no text": [b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'],
}


@pytest.mark.parametrize("kind", BAD_STREAMS)
def test_a_garbled_stream_is_unavailability(server: OpenAiServer, kind: str) -> None:
    server.default = lambda request: Reply(
        pieces=BAD_STREAMS[kind], finish_reason=None, usage=False
    )
    with pytest.raises(LlmUnavailable):
        stream(server)


def test_an_error_with_status_200_may_pass(server: OpenAiServer) -> None:
    server.replies(Reply(body={"error": {"message": "overloaded"}}), Reply("fine"))
    assert complete(server).text == "fine"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "not a url", "http://[::1"])
def test_a_malformed_address_is_a_matter_of_configuration(url: str) -> None:
    with pytest.raises(LlmMisconfigured):
        use(url, lambda model: model.complete(HELLO))


def test_a_key_that_fits_no_header_is_a_matter_of_configuration(server: OpenAiServer) -> None:
    settings = Settings(openai_api_key="密钥", openai_base_url=server.url)
    with pytest.raises(LlmMisconfigured):
        complete_with(settings)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://x"])
def test_an_unusable_proxy_is_a_matter_of_configuration(
    server: OpenAiServer, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(LlmMisconfigured):
        complete(server)


def test_nobody_listening(server: OpenAiServer) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(LlmUnavailable, match="can't be reached"):
            use(url, lambda model: model.complete(HELLO))


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_nothing_the_endpoint_says_reaches_user_or_log(
    server: OpenAiServer, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.default = lambda request: Reply(
        status=status, body={"error": {"message": f"{KEY} is wrong", "code": KEY}}
    )
    with pytest.raises(LlmUnavailable) as caught:
        complete(server, max_retries=0)
    printed = "".join(traceback.format_exception(caught.value))
    said = " ".join([printed, *caught.value.text, caplog.text])
    assert KEY not in said
    assert server.url not in said


# --- time and size

NEVER_ENDING = {
    "silence": Reply(gate=Gate()),
    "silence after the head": Reply(pieces=[], ending="silence"),
    "silence after a token": Reply(pieces=["and "], ending="silence"),
    "a slow drip": Reply(pieces=["and ", 0.05], repeat=True),
    "keep-alive comments": Reply(pieces=[b": ping\n\n", 0.05], repeat=True),
}


def test_the_time_limit_holds_whatever_the_endpoint_does(server: OpenAiServer) -> None:
    """All at once, so that the limit can be long enough for a busy machine to send every request in
    time.
    """
    server.replies(Reply("The first call imports what takes long."))
    complete(server)
    server.default = lambda request: NEVER_ENDING[request.messages[0]["content"]]

    async def action(model: OpenAiChat) -> list[Any]:
        calls = [
            model.complete([{"role": "user", "content": kind}], on_token=on_token)
            for kind in NEVER_ENDING
            for on_token in (None, lambda piece: None)
        ]
        async with asyncio.timeout(30):
            return await asyncio.gather(*calls, return_exceptions=True)

    ends = use(server.url, action, timeout_s=2)
    assert all(isinstance(end, LlmUnavailable) and "in time" in end.text.en for end in ends), ends
    endless = server.requests[1:]
    assert len(endless) == len(ends), "none is tried again"
    assert all(request.disconnected.wait(60) for request in endless)


def test_further_tries_end_at_the_time_limit(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(status=503, delay_s=0.2)
    with pytest.raises(LlmUnavailable):
        complete(server, timeout_s=0.5, max_retries=1000)
    assert len(server.requests) <= 3


@pytest.mark.parametrize(
    ("piece", "tokens", "chars"),
    [
        ("many words " * 100, 77, 616),  # twice the tokens, because they are estimated
        ("很多字" * 100, 77, 154),
        ("7" * 5_000, 1_000, 8_000),
        ("many words " * 1_000, 10**6, MAX_REPLY_CHARS),
    ],
)
def test_an_endless_stream_is_cut_off(
    server: OpenAiServer, piece: str, tokens: int, chars: int
) -> None:
    server.default = lambda request: Reply(pieces=[piece], repeat=True)
    completion, pieces = stream(server, max_tokens=tokens)
    assert completion.text == "".join(pieces)
    assert len(completion.text) == chars
    assert completion.is_cut
    assert server.requests[0].disconnected.wait(60)


@pytest.mark.parametrize("delta", ["reasoning_content", "content"])
def test_a_stream_without_end_of_what_nobody_sees_is_cut_off(
    server: OpenAiServer, delta: str
) -> None:
    server.default = lambda request: Reply(pieces=[{delta: " " * 20_000}], repeat=True)
    with pytest.raises(LlmMisconfigured, match="LLM_MAX_TOKENS"):
        stream(server)
    assert server.requests[0].disconnected.wait(60)


def test_a_whole_reply_is_cut_where_a_stream_would_be(server: OpenAiServer) -> None:
    server.replies(Reply("many words " * 1_000))
    completion = complete(server)
    assert (len(completion.text), completion.is_cut) == (616, True)


def test_an_endless_line_is_not_collected_for_ever(server: OpenAiServer) -> None:
    server.default = lambda request: Reply(pieces=[b"data: " + b"x" * 200_000], repeat=True)
    with pytest.raises(LlmUnavailable):
        stream(server)
    assert server.requests[0].disconnected.wait(60)


def test_a_huge_body_is_not_read_to_its_end(server: OpenAiServer) -> None:
    server.default = lambda request: Reply("x" * 5_000_000)
    with pytest.raises(LlmUnavailable, match="far longer than allowed"):
        complete(server)
    assert len(server.requests) == 1


def test_a_reply_that_was_all_reasoning_names_the_setting(server: OpenAiServer) -> None:
    server.replies(Reply("", finish_reason="length", message={"reasoning_content": "hm, well"}))
    with pytest.raises(LlmMisconfigured, match="LLM_MAX_TOKENS"):
        complete(server)


def test_a_reply_at_its_token_limit_is_marked_as_cut(server: OpenAiServer) -> None:
    server.replies(
        Reply("SELECT a, b", finish_reason="length"), Reply("SELECT a, b", finish_reason="length")
    )
    assert complete(server).is_cut
    assert stream(server)[0].is_cut


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_hangs_up(server: OpenAiServer, streamed: bool) -> None:
    gate = Gate()
    server.replies(Reply(pieces=["a", gate, "b"]) if streamed else Reply("a", gate=gate))

    async def action(model: OpenAiChat) -> None:
        on_token = (lambda piece: None) if streamed else None
        call = asyncio.create_task(model.complete(HELLO, on_token=on_token))
        await asyncio.to_thread(gate.reached.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(server.requests[0].disconnected.wait, 10)

    use(server.url, action)
    assert len(server.requests) == 1


def test_cancelling_while_waiting_for_another_try(server: OpenAiServer) -> None:
    refused = Gate()
    refused.open()
    server.default = lambda request: Reply(status=429, headers={"Retry-After": "9"}, gate=refused)

    async def action(model: OpenAiChat) -> None:
        call = asyncio.create_task(model.complete(HELLO))
        await asyncio.to_thread(refused.reached.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    use(server.url, action)
    assert len(server.requests) == 1
