"""Asks the same question by every protocol that Citu speaks, and reads what each says of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from werkzeug.test import Client, TestResponse

from agent.question import new_conversation_id
from api.answer_markdown import answer_text
from common.text import language_of
from tests.support.asking import STREAM

_VERSION = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"


@dataclass(frozen=True)
class Told:
    """What a client learns by one protocol.

    Attributes:
        error: the type of an error; empty: there is an answer.
        text: the text of the answer.
        fields: SQL, rows and warnings; None: the protocol has no place for them but the text.
        raw: all that was sent.
    """

    error: str
    text: str
    fields: Mapping[str, Any] | None
    raw: bytes


@dataclass(frozen=True)
class Asked:
    """A question, and who asks it of which application."""

    client: Client
    question: str
    headers: Mapping[str, str]

    def post(self, path: str, body: Mapping[str, Any], **headers: str) -> TestResponse:
        sent = {**self.headers, **{name.replace("_", "-"): headers[name] for name in headers}}
        return self.client.post(path, json=dict(body), headers=sent, buffered=True)


def _read(text: str | bytes) -> Any:
    """Return JSON with the digits that its numbers were sent with."""
    return json.loads(text, parse_float=Decimal)


def fields_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all protocols have to say alike."""
    result = data.get("query_result") or {}
    return {
        "sql": data.get("sql"),
        "rows": result.get("rows"),
        "columns": result.get("columns"),
        "warnings": data.get("warnings") or [],
    }


def _sse(asked: Asked) -> Told:
    response = asked.post(STREAM, {"question": asked.question})
    raw = response.get_data()
    if response.status_code != 200:
        return Told(_read(raw)["data"]["error_type"], "", None, raw)

    lines = [line for line in raw.decode().splitlines() if line.startswith("data: ")]
    data = _read(lines[-1].removeprefix("data: "))["data"]
    if data["type"] == "error":
        return Told(data["error_type"], "", None, raw)
    return Told("", data["response"], data, raw)


def _mcp(asked: Asked) -> Told:
    meta = {f"{_PREFIX}protocolVersion": _VERSION, f"{_PREFIX}clientCapabilities": {}}
    named = {"MCP_Protocol_Version": _VERSION, "Mcp_Method": "tools/call", "Mcp_Name": "ask"}
    return _called(asked, "ask", {"question": asked.question}, {"_meta": meta}, named)


def _older_mcp(asked: Asked) -> Told:
    named = {"MCP_Protocol_Version": "2025-11-25"}
    return _called(asked, "ask", {"question": asked.question}, {}, named)


def called(asked: Asked, name: str, **arguments: Any) -> Told:
    """Return what a tool of MCP gives."""
    return _called(asked, name, arguments, {}, {"MCP_Protocol_Version": "2025-11-25"})


def _called(
    asked: Asked,
    name: str,
    arguments: Mapping[str, Any],
    more: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Told:
    params = {"name": name, "arguments": arguments, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"Accept": "application/json, text/event-stream"}
    raw = asked.post("/mcp", body, **accept, **headers).get_data()
    result = _read(raw)["result"]
    if result.get("isError"):
        return Told(result["_meta"]["citu/error"]["error_type"], "", None, raw)

    structured = result["structuredContent"]
    return Told("", structured.get("response", ""), structured, raw)


def _agui(asked: Asked) -> Told:
    messages = [{"id": "1", "role": "user", "content": asked.question}]
    body = {"threadId": new_conversation_id(), "runId": "r", "messages": messages}
    response = asked.post("/api/agui", body)
    raw = response.get_data()
    if response.status_code != 200:
        return Told(_read(raw)["data"]["error_type"], "", None, raw)

    lines = [line for line in raw.decode().splitlines() if line.startswith("data: ")]
    events = [_read(line.removeprefix("data: ")) for line in lines]
    last = events[-1]
    if last["type"] == "RUN_ERROR":
        return Told(last["code"], "", None, raw)

    said = [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    [state] = [event["snapshot"] for event in events if event["type"] == "STATE_SNAPSHOT"]
    return Told("", "".join(said), state, raw)


def _completion(asked: Asked, *, streams: bool) -> Told:
    messages = [{"role": "user", "content": asked.question}]
    body = {"model": "citu", "messages": messages, "stream": streams}
    raw = asked.post("/v1/chat/completions", body).get_data()
    if not streams:
        whole = _read(raw)
        error = whole.get("error")
        said = [] if error else [whole["choices"][0]["message"]["content"]]
    else:
        lines = raw.decode().splitlines()
        pieces = [_read(line[6:]) for line in lines if line.startswith("data: {")]
        if raw.startswith(b"{"):
            pieces = [_read(raw)]
        error = pieces[-1].get("error")
        deltas = [piece["choices"][0]["delta"] for piece in pieces if piece.get("choices")]
        said = [delta.get("content") or "" for delta in deltas]
    if error:
        return Told(error["code"], "", None, raw)

    text, _, _ = "".join(said).rpartition("\n\n[")
    return Told("", text or "".join(said), None, raw)


WAYS: Mapping[str, Callable[[Asked], Told]] = {
    "ask_agent_stream": _sse,
    "/mcp": _mcp,
    "/mcp, 2025-11-25": _older_mcp,
    "/api/agui": _agui,
    "/v1/chat/completions": lambda asked: _completion(asked, streams=False),
    "/v1/chat/completions, stream": lambda asked: _completion(asked, streams=True),
}
"""Each protocol by what it is called; the first is the one that the others are compared with."""


def differences(asked: Asked, *, is_repeatable: bool = True) -> list[str]:
    """Return the protocols that say something else than Citu's own stream, each with what.

    Args:
        is_repeatable: whether the answer is the same each time; else only its errors are compared.
    """
    own = WAYS["ask_agent_stream"](asked)
    found = []
    for name, ask in WAYS.items():
        told = own if name == "ask_agent_stream" else ask(asked)
        if told.error != own.error:
            found.append(f"{name}: {told.error or 'answered'} instead of {own.error or 'answered'}")
        elif is_repeatable and not told.error:
            found += [f"{name}: {what}" for what in _differing(told, own, asked.question)]

    return found


def _differing(told: Told, own: Told, question: str) -> list[str]:
    assert own.fields is not None
    if told.fields is None:
        wanted = answer_text(own.fields, language_of(question))
        return [] if told.text.strip() == wanted.strip() else [f"text {told.text!r:.200}"]

    wanted_fields = fields_of(own.fields)
    found = [name for name, value in fields_of(told.fields).items() if value != wanted_fields[name]]
    return found if told.text == own.text else [*found, "text"]
