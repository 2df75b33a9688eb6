"""Measures what other protocols add to a question: the same one, answered by the rules, is asked by
each in turn, so that all of them meet the same machine.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from werkzeug.test import Client

from agent.bootstrap import bootstrap
from agent.question import new_conversation_id
from app_config import Settings
from common.runtime import run as run_on_loop
from unified_api import create_app

BUDGET_MS = 3.0  # above `ask_agent`
QUESTION = "一共有多少个服务区？"
_VERSION = "2026-07-28"
_PREFIX = "io.modelcontextprotocol/"
_HEADERS = {
    "MCP-Protocol-Version": _VERSION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "ask",
}
_MESSAGES = [{"id": "1", "role": "user", "content": QUESTION}]
_MCP: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "ask",
        "arguments": {"question": QUESTION},
        "_meta": {f"{_PREFIX}protocolVersion": _VERSION, f"{_PREFIX}clientCapabilities": {}},
    },
}

Ask = Callable[[Client], Any]


def _posted(path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Ask:
    def ask(client: Client) -> Any:
        return client.post(path, json=body, headers=headers or {}, buffered=True)

    return ask


def _in_conversation(client: Client) -> Any:
    # What is kept of a conversation that a client names has to be looked up, as of AG-UI's threads.
    body = {"question": QUESTION, "conversation_id": new_conversation_id()}
    return client.post("/api/v0/ask_agent", json=body, buffered=True)


def _agui(client: Client) -> Any:
    # A thread of its own, because one that goes on reads what was asked before.
    body = {"threadId": new_conversation_id(), "runId": "r", "messages": _MESSAGES}
    return client.post("/api/agui", json=body, buffered=True)


WAYS: dict[str, Ask] = {
    "ask_agent": _posted("/api/v0/ask_agent", {"question": QUESTION}),
    "ask_agent, in a thread": _in_conversation,
    "/mcp": _posted("/mcp", _MCP, _HEADERS),
    "/v1/chat/completions": _posted(
        "/v1/chat/completions", {"model": "citu", "messages": _MESSAGES}
    ),
    "ask_agent_stream": _posted("/api/v0/ask_agent_stream", {"question": QUESTION}),
    "/api/agui": _agui,
}


@dataclass(frozen=True)
class ProtocolCost:
    """What an answer takes, in milliseconds at the median.

    Attributes:
        added: above `ask_agent` in the same round.
        cpu: the time of the processor, which other programs disturb less.
    """

    elapsed: float
    added: float
    cpu: float


def run(database_url: str, folder: Path, *, rounds: int) -> dict[str, ProtocolCost]:
    """Return the cost of an answer, by the way in which it was asked for."""
    settings = Settings(database_url=database_url, data_dir=str(folder))
    services = bootstrap(settings)
    client = Client(create_app(settings, services))
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    processor: dict[str, list[float]] = {name: [] for name in WAYS}
    for ask in WAYS.values():
        assert ask(client).status_code == 200
    for _ in range(rounds):
        for name, ask in WAYS.items():
            started, cpu_before = time.perf_counter(), time.process_time()
            assert ask(client).status_code == 200
            times[name].append((time.perf_counter() - started) * 1000)
            processor[name].append((time.process_time() - cpu_before) * 1000)

    async def close() -> None:
        await services.aclose()

    run_on_loop(close(), 30.0)
    services.sources.hold.release()
    return {name: _cost(times[name], times["ask_agent"], processor[name]) for name in WAYS}


def _cost(elapsed: list[float], own: list[float], cpu: list[float]) -> ProtocolCost:
    added = [one - other for one, other in zip(elapsed, own, strict=True)]
    return ProtocolCost(*map(statistics.median, (elapsed, added, cpu)))
