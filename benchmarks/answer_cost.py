"""Measures what one answer costs beside the model: Citu and the bare stack in turn, as whole
answers and streams.

The model is the tests' scripted server, which answers at once, in its own process. Both
applications run under the same gunicorn options with one worker against the same database. Latency
is the client's median; CPU is the worker's user and system time per answer. A stream's time is that
until its last byte.
"""

import http.client
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app_config import Settings
from benchmarks.bare_stack import bare_app
from benchmarks.worker_process import cpu_ms
from serving.listen_address import listen
from serving.worker import GunicornServer, gunicorn_options
from tests.support.openai_server import OpenAiServer, Reply, Request, Script
from unified_api import create_app

QUESTION = "查询各服务区的营业收入排行"
SQL = (
    "SELECT a.service_area_name, sum(r.amount) AS revenue FROM daily_revenue r"
    " JOIN shop s ON s.shop_id = r.shop_id JOIN service_area a ON a.service_area_id ="
    " s.service_area_id"
    " WHERE r.revenue_date = CURRENT_DATE - 1 GROUP BY a.service_area_id, a.service_area_name"
    " ORDER BY revenue DESC LIMIT 20"
)
_MODEL = "scripted"


def _script(request: Request) -> Reply:
    prompt = "\n".join(str(message["content"]) for message in request.messages)
    return Reply(SQL) if "NO_SQL:" in prompt else Reply("营业收入最高的服务区见下表。")


def serve_model(url: Any, script: Script) -> None:
    """Run a scripted model: put its URL into the queue, and end when something is put back."""
    with OpenAiServer(script) as server:
        url.put(server.url)
        url.get()


def serve(make_app: Callable[[], Any], listening: Any, pid: Any, *, is_citu: bool = True) -> None:
    """Serve an application; put its worker's process id into the queue."""

    def app() -> Any:
        pid.put(os.getpid())
        return make_app()

    options = gunicorn_options(max_streams=16)
    if not is_citu:
        options.pop("post_worker_init")  # belongs to Citu
    GunicornServer(app, listening, options, lambda: None).run()


ENDPOINTS = {"answer": "/api/v0/ask_agent", "stream": "/api/v0/ask_agent_stream"}


@dataclass
class MeasuredEndpoint:
    """One endpoint of a running application, with its measurements."""

    name: str
    endpoint: str
    port: int
    worker_pid: int
    milliseconds: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def measure(self, answers: int) -> None:
        """Ask `answers` questions one after another over one connection."""
        path = ENDPOINTS[self.endpoint]
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        body = json.dumps({"question": QUESTION}).encode()
        before = cpu_ms(self.worker_pid)
        for _ in range(answers):
            start = time.perf_counter()
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            self.milliseconds.append((time.perf_counter() - start) * 1000)
            assert response.status == 200 and b'"rows"' in answer, answer
        self.cpu_ms.append((cpu_ms(self.worker_pid) - before) / answers)
        connection.close()


def _measure(subjects: list[MeasuredEndpoint], rounds: int, answers: int) -> None:
    for subject in subjects:
        subject.measure(answers)  # warm-up: imports, connections, catalogue
        subject.milliseconds.clear()
        subject.cpu_ms.clear()
    subjects.sort(
        key=lambda subject: subject.endpoint
    )  # measure the two applications in direct succession
    for _ in range(rounds):
        for subject in subjects:
            subject.measure(answers)


def run(
    database_url: str, data_dir: Path, *, rounds: int = 10, answers: int = 50
) -> dict[tuple[str, str], dict[str, float]]:
    """Return medians per endpoint and application: `ms` of latency and `cpu_ms` per answer."""
    context = multiprocessing.get_context("fork")
    url: Any = context.Queue()
    model = context.Process(target=serve_model, args=(url, _script), daemon=True)
    model.start()
    openai_url = url.get(timeout=30)
    settings = Settings(
        data_dir=str(data_dir),
        database_url=database_url,
        openai_api_key="bench",
        openai_base_url=openai_url,
        openai_model=_MODEL,
    )
    makers: dict[str, Callable[[], Any]] = {
        "bare stack": lambda: bare_app(database_url, openai_url, _MODEL),
        "Citu": lambda: create_app(settings),
    }
    servers, subjects = [], []
    try:
        for name, maker in makers.items():
            listening, pid = listen("127.0.0.1", 0), context.Queue()
            port = listening.getsockname()[1]
            server = context.Process(
                target=serve, args=(maker, listening, pid), kwargs={"is_citu": name == "Citu"}
            )
            server.start()
            servers.append(server)
            worker = pid.get(timeout=60)
            subjects += [MeasuredEndpoint(name, endpoint, port, worker) for endpoint in ENDPOINTS]
        _measure(subjects, rounds, answers)
    finally:
        for server in servers:
            server.terminate()
            server.join(20)
        url.put("stop")
        model.join(20)
    return {
        (subject.endpoint, subject.name): {
            "ms": statistics.median(subject.milliseconds),
            "cpu_ms": statistics.median(subject.cpu_ms),
        }
        for subject in subjects
    }
