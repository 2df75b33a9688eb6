"""Measures what metrics and traces add to an answer: the same question is asked of services with
neither, with metrics, and with traces, in turn.

Each service has one worker, and the same database and model. What is compared is the processor's
time of the worker. Other work on the machine only ever adds to that, so that of many short blocks
the lower quartile is taken, which is next to what a quiet machine would take. `off again` is a
second service with neither: it says how much of a difference is chance.
"""

import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from app_config import Settings
from benchmarks.answer_cost import SQL, MeasuredEndpoint, serve
from benchmarks.model_process import model_process
from benchmarks.worker_process import precise_cpu_ms
from serving.listen_address import listen
from tests.support.openai_server import Reply, Request
from unified_api import create_app

METRICS_BAR_MS = 0.3
TRACES_BAR_MS = 1.0
_START_S, _END_S = 120, 20
_OFF = "off"
_KINDS: Mapping[str, Mapping[str, Any]] = {
    _OFF: {},
    "off again": {},
    "metrics": {"metrics": True},
    "traces": {"traces": True},
}


@dataclass
class ObservingCost:
    """What an answer costs each service, in milliseconds, round by round."""

    cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    latency_ms: dict[str, list[float]] = field(default_factory=dict)

    def added_cpu_ms(self, name: str) -> float:
        """Return how much more processor time an answer takes than with neither."""
        return lower_quartile(self.cpu_ms[name]) - lower_quartile(self.cpu_ms[_OFF])

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        said = []
        for name, cpu_ms in self.cpu_ms.items():
            latency_ms = statistics.median(self.latency_ms[name])
            said.append(
                f"{name:10} CPU {lower_quartile(cpu_ms):6.2f} ms an answer,"
                f" {self.added_cpu_ms(name):+.2f}; latency {latency_ms:6.2f} ms"
            )
        return [*said, f"bars: metrics {METRICS_BAR_MS:g} ms, traces {TRACES_BAR_MS:g} ms"]


def lower_quartile(values: Sequence[float]) -> float:
    """Return the value that a quarter of them are below."""
    return statistics.quantiles(values, n=4)[0]


def run(database_url: str, folder: Path, *, rounds: int, answers: int) -> ObservingCost:
    """Ask all services in turn, so many answers in each round."""
    with ExitStack() as stack:
        collector = stack.enter_context(_collector())
        settings = Settings(
            data_dir=str(folder),
            database_url=database_url,
            openai_api_key="bench",
            openai_base_url=stack.enter_context(model_process(_script)),
            openai_model="scripted",
        )
        subjects = [
            stack.enter_context(_served(name, replace(settings, **more), collector))
            for name, more in _KINDS.items()
        ]
        return _measured(subjects, rounds, answers)


def _script(request: Request) -> Reply:
    prompt = "\n".join(str(message["content"]) for message in request.messages)
    return Reply(SQL) if "NO_SQL:" in prompt else Reply("营业收入最高的服务区见下表。")


def _measured(subjects: list[MeasuredEndpoint], rounds: int, answers: int) -> ObservingCost:
    for subject in subjects:
        subject.measure(answers)  # warm-up: imports, connections, catalogue
        subject.milliseconds.clear()
    cpu_ms: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for number in range(rounds):
        # Each is the first one as often as the others.
        turn = number % len(subjects)
        for subject in [*subjects[turn:], *subjects[:turn]]:
            before = precise_cpu_ms(subject.worker_pid)
            subject.measure(answers)
            spent = precise_cpu_ms(subject.worker_pid) - before
            cpu_ms[subject.name].append(spent / answers)
    return ObservingCost(
        cpu_ms,
        {subject.name: subject.milliseconds for subject in subjects},
    )


@contextmanager
def _served(name: str, settings: Settings, collector: str) -> Iterator[MeasuredEndpoint]:
    context = multiprocessing.get_context("fork")
    listening, pid = listen("127.0.0.1", 0), context.Queue()
    make = partial(_app, settings, collector)
    server = context.Process(target=serve, args=(make, listening, pid))
    server.start()
    try:
        port = listening.getsockname()[1]
        yield MeasuredEndpoint(name, "answer", port, pid.get(timeout=_START_S))
    finally:
        server.terminate()
        server.join(_END_S)


def _app(settings: Settings, collector: str) -> Any:
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector
    # More often than usual, so that spans are sent while they are measured.
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "1000"
    return create_app(settings)


@contextmanager
def _collector() -> Iterator[str]:
    """Take traces in a process of its own; give its URL."""
    context = multiprocessing.get_context("fork")
    mail: Any = context.Queue()
    process = context.Process(target=_collect, args=(mail.put,), daemon=True)
    process.start()
    try:
        yield mail.get(timeout=_START_S)
    finally:
        process.terminate()
        process.join(_END_S)


def _collect(tell: Callable[[str], None]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Taking) as server:
        tell(f"http://127.0.0.1:{server.server_port}")
        server.serve_forever()


class _Taking(BaseHTTPRequestHandler):
    """Takes whatever is posted."""

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep requests out of the benchmark's output."""
