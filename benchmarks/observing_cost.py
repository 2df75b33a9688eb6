"""Measures what metrics and traces add to an answer: the same question is asked of services with
neither, with metrics, and with traces, in turn.

Each service has one worker, and the same database and model. What is compared is the processor's
time of the worker. A round is a short block of answers of each service, so that whatever else the
machine does is much the same for all of them: each block is compared with that of the same round
with neither, and the median of these differences is taken. `off again` is a second service with
neither: it says how much of a difference is chance.
"""

import math
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
_SURE_DEVIATIONS = 1.96  # of a normal distribution, for 95%
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

    def added_cpu_ms(self, name: str) -> list[float]:
        """Return how much more processor time an answer took than with neither, for each round."""
        return [
            cpu_ms - off_ms
            for cpu_ms, off_ms in zip(self.cpu_ms[name], self.cpu_ms[_OFF], strict=True)
        ]

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        said = []
        for name, cpu_ms in self.cpu_ms.items():
            added_ms = self.added_cpu_ms(name)
            least, most = sure_range(added_ms)
            said.append(
                f"{name:10} CPU {statistics.median(cpu_ms):6.2f} ms an answer,"
                f" {statistics.median(added_ms):+.2f} (95% sure: {least:+.2f} to {most:+.2f});"
                f" latency {statistics.median(self.latency_ms[name]):6.2f} ms"
            )
        return [*said, f"bars: metrics {METRICS_BAR_MS:g} ms, traces {TRACES_BAR_MS:g} ms"]


def sure_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the bounds that the median lies between with 95% certainty, by the sign test."""
    in_order = sorted(values)
    below = max(0, math.floor(len(values) / 2 - _SURE_DEVIATIONS * math.sqrt(len(values)) / 2))
    return in_order[below], in_order[-1 - below]


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
