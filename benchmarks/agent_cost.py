"""Measures what a tool agent adds to each call of the model, with the tool's call that follows it.

The model is the tests' scripted server, which answers at once, in its own process. It has each
question answered in few steps, and in many; the difference, divided by the calls between, is what
one call costs. From that are taken the same exchange with the model by a plain HTTP client, which
sends what Citu has sent, and the same statement by a plain cursor.
"""

import http.client
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2

from app_config import Settings
from benchmarks.answer_cost import serve, serve_model
from benchmarks.worker_process import cpu_ms
from serving.listen_address import listen
from tests.support.openai_server import Called, Reply, Request
from unified_api import create_app

BUDGET_MS = 4.0  # of Citu's own, for one call of the model
AGENTS = ("tool_loop", "tool_graph")
_FEW, _MANY = (
    6,
    14,
)  # calls of tools in one question; in both, three statements are kept to learn from, the most
_PATH = "/api/v0/ask_agent"


@dataclass
class AgentCost:
    """Milliseconds of one call of the model and of the tool's call that follows it: `own` is
    without `bare`.

    Attributes:
        cpu: the worker's processor time.
        bare: the same exchange and statement without Citu.
    """

    total: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    bare: dict[str, float] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the findings, a line for each agent."""
        return [
            f"{agent}, ms per model call: {total:.2f}, bare {bare:.2f}, own {total - bare:.2f}"
            f" (budget {BUDGET_MS:g}), CPU {self.cpu[agent]:.2f}"
            for (agent, total), bare in zip(self.total.items(), self.bare.values(), strict=True)
        ]


class _Model:
    """Calls tools as often as the question asks for, then answers; puts a request of each agent
    into `sent`, once.
    """

    def __init__(self, sent: Any) -> None:
        self._sent = sent
        self._known: set[str] = set()

    def __call__(self, request: Request) -> Reply:
        messages = request.messages
        done = sum(message["role"] == "assistant" for message in messages)
        is_long = f"step {_MANY}" in str(messages[1]["content"])
        agent = "tool_loop" if "run_sql" in request.tool_names else "tool_graph"
        if is_long and done == _MANY // 2 and agent not in self._known:
            self._known.add(agent)
            self._sent.put((agent, request.params))
        return _reply(done, _MANY if is_long else _FEW, request.tool_names)


def _reply(done: int, wanted: int, tools: list[str]) -> Reply:
    if done >= wanted:
        return Reply("Done.")
    if "run_sql" in tools:
        return Reply(calls=[Called("run_sql", {"sql": _statement(done)}, f"call_{done}")])
    if "execute_current_sql" in tools:
        return Reply(calls=[Called("execute_current_sql", {}, f"call_{done}")])
    written = {"instruction": f"step {done}", "sql": _statement(done)}
    return Reply(calls=[Called("generate_sql", written, f"call_{done}")])


def _statement(number: int) -> str:
    return f"SELECT {number} AS n"


def run(database_url: str, data_dir: Path, *, questions: int = 30) -> AgentCost:
    """Return medians over that many questions of each kind; an agent that does not call the model
    so often is left out.
    """
    context = multiprocessing.get_context("fork")
    url: Any = context.Queue()
    sent: Any = context.Queue()
    model = context.Process(target=serve_model, args=(url, _Model(sent)), daemon=True)
    model.start()
    openai_url = url.get(timeout=30)
    settings = Settings(
        data_dir=str(data_dir),
        database_url=database_url,
        openai_api_key="bench",
        openai_base_url=openai_url,
        openai_model="scripted",
        agent_model_calls=_MANY + 2,
        agent_tool_calls=_MANY + 2,
    )
    listening, pid = listen("127.0.0.1", 0), context.Queue()
    server = context.Process(target=serve, args=(lambda: create_app(settings), listening, pid))
    server.start()
    try:
        worker = pid.get(timeout=60)
        found = AgentCost()
        for agent in AGENTS:
            _measure(agent, listening.getsockname()[1], worker, questions, found)
            if agent in found.total:
                agent, request = sent.get(timeout=10)
                found.bare[agent] = _bare(request, openai_url, database_url, questions)
        return found
    finally:
        server.terminate()
        server.join(20)
        url.put("stop")
        model.join(20)


def _measure(agent: str, port: int, worker: int, questions: int, found: AgentCost) -> None:
    """Add the agent's figures to `found`; asks for few and for many steps in turn, since hosts are
    busy at times.
    """
    taken: dict[int, list[float]] = {_FEW: [], _MANY: []}
    cpu = dict.fromkeys(taken, 0.0)
    for steps in taken:
        if (
            _answered(agent, steps, port) != steps + 1
        ):  # also warms up: imports, connections, catalogue
            return
    for _ in range(questions):
        for steps, milliseconds in taken.items():
            before, start = cpu_ms(worker), time.perf_counter()
            _answered(agent, steps, port)
            milliseconds.append((time.perf_counter() - start) * 1000)
            cpu[steps] += cpu_ms(worker) - before
    found.total[agent] = (statistics.median(taken[_MANY]) - statistics.median(taken[_FEW])) / (
        _MANY - _FEW
    )
    found.cpu[agent] = (cpu[_MANY] - cpu[_FEW]) / questions / (_MANY - _FEW)


def _answered(agent: str, steps: int, port: int) -> int:
    """Return how often the model was called for one question."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"question": f"step {steps}", "agent": agent, "lang": "en"}).encode()
    connection.request("POST", _PATH, body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["success"], answer
    return int(answer["data"]["usage"]["llm_calls"])


def _bare(request: Any, openai_url: str, database_url: str, questions: int) -> float:
    """Return milliseconds of one exchange with the model, the middle one of a long question, and
    one statement.
    """
    address = urlsplit(openai_url)
    client = http.client.HTTPConnection(address.netloc)
    body = json.dumps(request).encode()

    def exchange() -> None:
        client.request(
            "POST", f"{address.path}/chat/completions", body, {"Content-Type": "application/json"}
        )
        response = client.getresponse()
        assert "choices" in json.loads(response.read()), response.status

    with psycopg2.connect(database_url) as connection, connection.cursor() as cursor:

        def statement() -> None:
            cursor.execute(_statement(1))
            cursor.fetchall()

        found = _median(exchange, questions * 10) + _median(statement, questions * 10)
    connection.close()
    client.close()
    return found


def _median(action: Callable[[], object], times: int) -> float:
    measured = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        measured.append((time.perf_counter() - start) * 1000)
    return statistics.median(measured)
