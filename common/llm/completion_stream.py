"""Reads chat completions off the wire: JSON bodies and event streams, bounded in size, from any endpoint that claims to
be OpenAI-compatible.

Parsing by hand instead of by the openai package's models has three reasons: the size of a reply can be bounded while it
is read, garbage gets one verdict instead of half a dozen exceptions, and it takes a tenth of the time.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from common.llm.call_failures import CallFailed, kind_of
from common.llm.chat_model import Completion, OnToken
from common.values import Usage

MAX_REPLY_CHARS = 100_000  # longest text of one reply; more is cut off as if the token limit had been reached
MAX_BODY_BYTES = 8_000_000  # most bytes read for one reply, framing and reasoning included
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can spell them, nothing after us can encode them
_DRAIN_S = 0.1  # how long to wait after `[DONE]` for the end of the body, so that the connection can be used again


async def read_completion(
    chunks: AsyncGenerator[bytes, None], content_type: str, on_token: OnToken | None
) -> Completion:
    """The reply carried by a response with status 200, whichever of the two forms it has.

    Raises:
        CallFailed: it is not a completion, it is empty, or it breaks off.
    """
    async with aclosing(chunks):
        if "event-stream" in content_type:
            return await _read_events(chunks, on_token)
        return _parse_body(await _read_all(chunks), on_token)


async def _read_all(chunks: AsyncGenerator[bytes, None]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise CallFailed("unusable")
    return bytes(body)


async def _read_events(chunks: AsyncGenerator[bytes, None], on_token: OnToken | None) -> Completion:
    reply, pending, size = _StreamedReply(on_token), b"", 0
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
    except TimeoutError:  # the response is closed instead, which costs the connection and nothing else
        return


def _parse_body(body: bytes, on_token: OnToken | None) -> Completion:
    if body.lstrip().startswith(b"data:"):  # an event stream under another content type
        reply = _StreamedReply(on_token)
        for line in body.split(b"\n"):
            reply.take(line)
        return reply.completion()
    value = _json(body)
    choice = _first_choice(value)
    if choice is None:
        raise CallFailed("unusable")
    message = _dict(choice.get("message"))
    text, refusal = _text(message.get("content")), _text(message.get("refusal"))
    completion = _completion(text, _reasoning(message), refusal, choice.get("finish_reason"), value.get("usage"))
    if on_token and completion.text:
        on_token(completion.text)
    return completion


class _StreamedReply:
    """What the events of one stream add up to."""

    def __init__(self, on_token: OnToken | None) -> None:
        self._on_token = on_token
        self._parts: list[str] = []
        self._size = 0
        self._refusal = ""
        self._thoughts: list[str] = []  # reasoning, as long as there is nothing else
        self._finish_reason: Any = None
        self._usage: Any = None
        self._events = 0
        self.is_done = False

    @property
    def is_cut(self) -> bool:
        """Whether the text has reached its bound."""
        return self._size >= MAX_REPLY_CHARS

    def take(self, line: bytes) -> None:
        """One line of the stream; comments, other fields and whatever follows `[DONE]` mean nothing."""
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
        delta = _dict(choice.get("delta"))
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._refusal += _text(delta.get("refusal"))
        if not self._size:
            self._thoughts.append(_reasoning(delta))
        self._add(_text(delta.get("content")))

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
        return _completion("".join(self._parts), reasoning, self._refusal, finish_reason, self._usage)


def _completion(text: str, reasoning: str, refusal: str, finish_reason: Any, usage: Any) -> Completion:
    finish = finish_reason if isinstance(finish_reason, str) else "stop"
    if refusal and not text.strip():
        return Completion(refusal, _usage(usage), "refusal")
    if len(text) > MAX_REPLY_CHARS:
        text, finish = text[:MAX_REPLY_CHARS], "length"
    if not text.strip() and reasoning.strip() and finish not in ("content_filter", "length"):
        return Completion("", _usage(usage), finish, reasoning[:MAX_REPLY_CHARS])
    if not text.strip() and finish != "content_filter":
        raise CallFailed("exhausted" if finish == "length" else "empty")
    return Completion(text, _usage(usage), finish)


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


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(content: Any) -> str:
    """The text of a `content`: a string, or a list of parts as some endpoints send it."""
    if isinstance(content, str):
        return _LONE_SURROGATE.sub("\ufffd", content)
    if isinstance(content, list):
        return "".join(_text(_dict(part).get("text")) for part in content)
    return ""


def _reasoning(message: dict[str, Any]) -> str:
    """What endpoints send beside the text, under either of its names."""
    return _text(message.get("reasoning_content")) or _text(message.get("reasoning"))


def _usage(value: Any) -> Usage:
    counts = _dict(value)
    return Usage(1, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
