"""Reads chat completions, as JSON bodies or event streams, from any endpoint that claims to be OpenAI-compatible.

They are parsed by hand and not by the openai package's models for three reasons: the size of a reply can be bounded
while it is read, garbage raises one kind of exception instead of half a dozen, and it takes a tenth of the time.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from common.llm.call_assembly import CallAssembly
from common.llm.call_failures import CallFailed, kind_of
from common.llm.chat_model import Completion, OnToken
from common.llm.loose_fields import dict_of, text_of
from common.llm.tool_calls import ToolCall
from common.values import Usage

MAX_REPLY_CHARS = 100_000  # longest text of one reply; more is cut off as if the token limit had been reached
MAX_BODY_BYTES = 8_000_000  # most bytes read for one reply, framing and reasoning included
_UNFINISHED = ("content_filter", "length")  # why a reply may end before the model was finished
_DRAIN_S = 0.1  # how long to wait after `[DONE]` for the end of the body, so that the connection can be used again


async def read_completion(
    chunks: AsyncGenerator[bytes, None],
    content_type: str,
    on_token: OnToken | None,
    calls: CallAssembly | None = None,
) -> Completion:
    """The reply in a response with status 200, whichever of the two forms it has.

    Args:
        calls: collects the tool calls; None: no tools were offered, and calls are not read.

    Raises:
        CallFailed: it is not a completion, it is empty, it breaks off, or its calls are too many or too long.
    """
    async with aclosing(chunks):
        if "event-stream" in content_type:
            return await _read_events(chunks, on_token, calls)
        return _parse_body(await _read_all(chunks), on_token, calls)


async def _read_all(chunks: AsyncGenerator[bytes, None]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise CallFailed("unusable")
    return bytes(body)


async def _read_events(
    chunks: AsyncGenerator[bytes, None], on_token: OnToken | None, calls: CallAssembly | None
) -> Completion:
    reply, pending, size = _StreamedReply(on_token, calls), b"", 0
    async for chunk in chunks:
        size += len(chunk)
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            reply.take(line)
        if reply.is_done:
            await _drain(chunks)
            break
        if reply.is_cut or size > MAX_BODY_BYTES:
            return reply.cut_off()
    else:
        reply.take(pending)
    return reply.completion()


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except TimeoutError:  # the response is closed instead; only the connection is lost
        return


def _parse_body(body: bytes, on_token: OnToken | None, calls: CallAssembly | None) -> Completion:
    if body.lstrip().startswith(b"data:"):  # an event stream under another content type
        reply = _StreamedReply(on_token, calls)
        for line in body.split(b"\n"):
            reply.take(line)
        return reply.completion()
    value = _json(body)
    choice = _first_choice(value)
    if choice is None:
        raise CallFailed("unusable")
    message = dict_of(choice.get("message"))
    if calls:
        calls.take_message(message)
    text, refusal = text_of(message.get("content")), text_of(message.get("refusal"))
    completion = _completion(text, _reasoning(message), refusal, choice.get("finish_reason"), value.get("usage"), calls)
    if on_token and completion.text:
        on_token(completion.text)
    return completion


class _StreamedReply:
    """What the events of one stream add up to."""

    def __init__(self, on_token: OnToken | None, calls: CallAssembly | None) -> None:
        self._on_token = on_token
        self._calls = calls
        self._parts: list[str] = []
        self._size = 0
        self._refusal = ""
        self._thoughts: list[str] = []  # reasoning; without tools only what comes before the text
        self._finish_reason: Any = None
        self._usage: Any = None
        self._events = 0
        self.is_done = False

    @property
    def is_cut(self) -> bool:
        """Whether the text has reached its bound."""
        return self._size >= MAX_REPLY_CHARS

    def take(self, line: bytes) -> None:
        """Reads one line of the stream; comments, other fields and whatever follows `[DONE]` are skipped."""
        if self.is_done or not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self.is_done = True
        elif data:
            self._events += 1
            self._take_event(_json(data))

    def _take_event(self, event: dict[str, Any]) -> None:
        self._usage = event.get("usage") or self._usage
        choice = _first_choice(event) or {}
        delta = dict_of(choice.get("delta"))
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._refusal += text_of(delta.get("refusal"))
        if self._calls or not self._size:
            self._thoughts.append(_reasoning(delta))
        if self._calls:
            self._calls.take_delta(delta)
        self._add(text_of(delta.get("content")))

    def _add(self, text: str) -> None:
        text = text[: MAX_REPLY_CHARS - self._size]
        if not text:
            return
        self._size += len(text)
        self._parts.append(text)
        if self._on_token:
            self._on_token(text)

    def completion(self) -> Completion:
        """The reply of a stream that ended."""
        if not self._events:
            raise CallFailed("unusable")
        if not self.is_done and not self._finish_reason:
            raise CallFailed("broken")
        return self._completion(self._finish_reason)

    def cut_off(self) -> Completion:
        """The reply of a stream that would not end."""
        return self._completion("length")

    def _completion(self, finish_reason: Any) -> Completion:
        reasoning = "".join(self._thoughts)[:MAX_REPLY_CHARS]
        return _completion("".join(self._parts), reasoning, self._refusal, finish_reason, self._usage, self._calls)


def _completion(
    text: str, reasoning: str, refusal: str, finish_reason: Any, usage: Any, assembly: CallAssembly | None
) -> Completion:
    finish = finish_reason if isinstance(finish_reason, str) else "stop"
    calls = assembly.calls(is_cut=finish in _UNFINISHED) if assembly else ()
    if refusal and not text.strip():
        return Completion(refusal, _usage(usage), "refusal")
    if len(text) > MAX_REPLY_CHARS:
        text, finish = text[:MAX_REPLY_CHARS], "length"
    if calls:
        return _calling(text, reasoning, finish, usage, calls)
    if not text.strip() and reasoning.strip() and finish not in _UNFINISHED:
        return Completion("", _usage(usage), finish, reasoning[:MAX_REPLY_CHARS])
    if not text.strip() and finish != "content_filter":
        raise CallFailed("exhausted" if finish == "length" else "empty")
    return Completion(text, _usage(usage), finish)


def _calling(text: str, reasoning: str, finish: str, usage: Any, calls: tuple[ToolCall, ...]) -> Completion:
    """A reply with calls, whose reason to end is theirs whatever the endpoint calls it: some say `stop`."""
    return Completion(
        text if text.strip() else "",
        _usage(usage),
        finish if finish in _UNFINISHED else "tool_calls",
        reasoning[:MAX_REPLY_CHARS],
        calls,
    )


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise CallFailed("unusable") from exc
    if not isinstance(value, dict):
        raise CallFailed("unusable")
    if value.get("error"):  # some gateways report failures with status 200, or in the middle of a stream
        raise CallFailed(kind_of(value["error"], None), detail=str(value["error"])[:2000])
    return value


def _first_choice(value: dict[str, Any]) -> dict[str, Any] | None:
    choices = value.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _reasoning(message: dict[str, Any]) -> str:
    """The reasoning beside the text; endpoints have two names for it."""
    return text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))


def _usage(value: Any) -> Usage:
    counts = dict_of(value)
    return Usage(1, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
