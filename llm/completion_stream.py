"""Reads chat completions, as JSON bodies or event streams, from OpenAI-compatible endpoints.

They are parsed by hand and not by the openai package's models for three reasons: the size of a
reply can be bounded while it is read, garbage raises one kind of exception instead of half a dozen,
and it takes a tenth of the time.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from common.values import Usage
from llm.call_assembly import CallAssembly
from llm.call_failures import CallFailed, kind_of
from llm.chat_model import Completion, OnToken
from llm.loose_fields import dict_of, text_of
from llm.reply_limit import MAX_BODY_BYTES, MAX_REPLY_CHARS, UNLIMITED, ReplyLimit
from llm.tokens import fitting, weight
from llm.tool_calls import ToolCall

_MAX_LINE_BYTES = 2_000_000  # of one event of a stream
_DATA = b"data:"  # prefix of the lines that carry an event's data
_UNFINISHED = ("content_filter", "length")  # why a reply may end before the model was finished
# How long to wait after `[DONE]` for the end of the body, so that the connection can be used again
_DRAIN_S = 0.1


async def read_completion(
    chunks: AsyncGenerator[bytes, None],
    content_type: str,
    on_token: OnToken | None,
    calls: CallAssembly | None = None,
    limit: ReplyLimit = UNLIMITED,
) -> Completion:
    """Return the reply in a response with status 200, whichever of the two forms it has.

    A text that is longer than the limit is cut off, and what follows is not read.

    Args:
        calls: collects the tool calls; None: no tools were offered, and calls are not read.

    Raises:
        CallFailed: it is not a completion, it is empty, it breaks off, or it, or its calls, are too
            many or too long.
    """
    async with aclosing(chunks):
        if "event-stream" in content_type:
            return await _read_events(chunks, _StreamedReply(on_token, calls, limit))

        body = await _read_all(chunks, limit.body_bytes)
        is_stream = body.lstrip().startswith(_DATA)  # under another content type
        if is_stream:
            return _parse_events(body, _StreamedReply(on_token, calls, limit))

        return _parse_body(body, on_token, calls, limit)


async def _read_all(chunks: AsyncGenerator[bytes, None], most: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > most:
            raise CallFailed("too long")

    return bytes(body)


async def _read_events(chunks: AsyncGenerator[bytes, None], reply: "_StreamedReply") -> Completion:
    pending = bytearray()
    size = 0  # bytes
    async for chunk in chunks:
        size += len(chunk)
        pending += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(pending).split(b"\n")
            pending = bytearray(rest)
            for line in lines:
                reply.take(line)
        elif len(pending) > _MAX_LINE_BYTES:
            raise CallFailed("unusable")

        if reply.is_done:
            await _drain(chunks)
            break

        if reply.is_cut or size > MAX_BODY_BYTES:
            return reply.cut_off()
    else:
        reply.take(bytes(pending))

    return reply.completion()


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except TimeoutError:  # the response is closed instead; only the connection is lost
        return


def _parse_events(body: bytes, reply: "_StreamedReply") -> Completion:
    for line in body.split(b"\n"):
        reply.take(line)
        if reply.is_cut:
            return reply.cut_off()

    return reply.completion()


def _parse_body(
    body: bytes, on_token: OnToken | None, calls: CallAssembly | None, limit: ReplyLimit
) -> Completion:
    value = _json(body)
    choice = _first_choice(value)
    if choice is None:
        raise CallFailed("unusable")

    message = dict_of(choice.get("message"))
    if calls:
        calls.take_message(message)

    text = text_of(message.get("content"))
    refusal = text_of(message.get("refusal"))
    finish_reason = choice.get("finish_reason")
    shown = limit.cut(text)
    if len(shown) < len(text):
        finish_reason = "length"

    reasoning = _reasoning(message)
    usage = value.get("usage")
    completion = _completion(shown, reasoning, refusal, finish_reason, usage, calls)
    if on_token and completion.text:
        on_token(completion.text)

    return completion


class _StreamedReply:
    """The reply of one stream, as far as its events have arrived."""

    def __init__(
        self, on_token: OnToken | None, calls: CallAssembly | None, limit: ReplyLimit
    ) -> None:
        self._on_token = on_token
        self._quarters = limit.quarters  # quarters of tokens that the text may still have
        self._calls = calls
        self._parts: list[str] = []
        self._size = self._reasoning_size = 0
        self._refusal = ""
        self._reasoning: list[str] = []  # without tools only that which comes before the text
        self._finish_reason: Any = None
        self._usage: Any = None
        self._events = 0
        self.is_done = False
        self.is_cut = False  # the text or the reasoning is longer than its limit

    def take(self, line: bytes) -> None:
        """Read one line; skip comments, other fields and all that follows `[DONE]`."""
        if self.is_done:
            return
        if not line.startswith(_DATA):
            return

        data = line.removeprefix(_DATA).strip()
        if data == b"[DONE]":
            self.is_done = True
            return

        if data:
            self._events += 1
            self._take_event(_json(data))

    def _take_event(self, event: dict[str, Any]) -> None:
        self._usage = event.get("usage") or self._usage
        choice = _first_choice(event) or {}
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        delta = dict_of(choice.get("delta"))
        refusal = self._refusal + text_of(delta.get("refusal"))
        self._refusal = refusal[:MAX_REPLY_CHARS]
        wants_reasoning = self._calls is not None or self._size == 0
        if wants_reasoning:
            self._add_reasoning(_reasoning(delta))
        if self._calls is not None:
            self._calls.take_delta(delta)

        text = text_of(delta.get("content"))
        self._add(text)

    def _add(self, text: str) -> None:
        room = MAX_REPLY_CHARS - self._size
        taken = fitting(text[:room], self._quarters)
        if len(taken) < len(text):
            self.is_cut = True
        if not taken:
            return

        self._quarters -= weight(taken)
        self._size += len(taken)
        self._parts.append(taken)
        if self._on_token:
            self._on_token(taken)

    def _add_reasoning(self, text: str) -> None:
        self._reasoning_size += len(text)
        if self._reasoning_size > MAX_REPLY_CHARS:
            self.is_cut = True
        elif text:
            self._reasoning.append(text)

    def completion(self) -> Completion:
        """Return the reply of a stream that ended."""
        if not self._events:
            raise CallFailed("unusable")

        has_ended = self.is_done or self._finish_reason
        if not has_ended:
            raise CallFailed("broken")

        return self._completion(self._finish_reason)

    def cut_off(self) -> Completion:
        """Return what a stream had said when its limit was reached."""
        return self._completion("length")

    def _completion(self, finish_reason: Any) -> Completion:
        text = "".join(self._parts)
        reasoning = "".join(self._reasoning)[:MAX_REPLY_CHARS]
        return _completion(text, reasoning, self._refusal, finish_reason, self._usage, self._calls)


def _completion(
    text: str,
    reasoning: str,
    refusal: str,
    finish_reason: Any,
    usage: Any,
    assembly: CallAssembly | None,
) -> Completion:
    finish = "stop"
    if isinstance(finish_reason, str):
        finish = finish_reason

    calls: tuple[ToolCall, ...] = ()
    if assembly is not None:
        calls = assembly.calls(is_cut=finish in _UNFINISHED)

    is_blank = not text.strip()
    if refusal and is_blank:
        return Completion(refusal, _usage(usage), "refusal")
    if calls:
        return _calling(text, reasoning, finish, usage, calls)
    if is_blank:
        return _without_text(text, reasoning, finish, usage)

    return Completion(text, _usage(usage), finish)


def _without_text(text: str, reasoning: str, finish: str, usage: Any) -> Completion:
    """Return the reply whose text is blank, if it has reasoning or was withheld."""
    if finish == "content_filter":
        return Completion(text, _usage(usage), finish)
    if finish == "length":
        raise CallFailed("exhausted")
    if not reasoning.strip():
        raise CallFailed("empty")

    return Completion("", _usage(usage), finish, reasoning[:MAX_REPLY_CHARS])


def _calling(
    text: str, reasoning: str, finish: str, usage: Any, calls: tuple[ToolCall, ...]
) -> Completion:
    """Return a reply with calls; it ended with them even where the endpoint says `stop`."""
    if not text.strip():
        text = ""
    if finish not in _UNFINISHED:
        finish = "tool_calls"

    return Completion(text, _usage(usage), finish, reasoning[:MAX_REPLY_CHARS], calls)


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise CallFailed("unusable") from exc

    if not isinstance(value, dict):
        raise CallFailed("unusable")

    error = value.get("error")
    if error:  # some gateways report failures with status 200, or in the middle of a stream
        raise CallFailed(kind_of(error, None), detail=str(error)[:2000])

    return value


def _first_choice(value: dict[str, Any]) -> dict[str, Any] | None:
    choices = value.get("choices")
    if not isinstance(choices, list):
        return None

    first = next(iter(choices), None)
    if isinstance(first, dict):
        return first

    return None


def _reasoning(message: dict[str, Any]) -> str:
    """Return the reasoning beside the text; endpoints have two names for it."""
    reasoning = text_of(message.get("reasoning_content"))
    if reasoning:
        return reasoning

    return text_of(message.get("reasoning"))


def _usage(value: Any) -> Usage:
    counts = dict_of(value)
    prompt_tokens = _count(counts.get("prompt_tokens"))
    completion_tokens = _count(counts.get("completion_tokens"))
    return Usage(1, prompt_tokens, completion_tokens)


def _count(value: Any) -> int:
    is_whole_number = type(value) is int  # true and false are none
    if is_whole_number and value > 0:
        return int(value)

    return 0
