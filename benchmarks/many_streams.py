"""Asks one worker a thousand questions at once: is each stream complete, and how soon does the
first event come?

The model is the tests' scripted server, which thinks for 0.3 s before each of a question's two
replies. Citu runs as `python unified_api.py` with as many places as there are questions. All
clients connect at the same moment, so the times include connecting, reading the request, and the
work of all other questions, on cores shared with the model, PostgreSQL and the clients themselves.

It is compared with queueing: if a server answered one question after another, the median client
would wait for half of the others' model calls before its first event.
"""

import asyncio
import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.answer_cost import QUESTION, SQL
from benchmarks.model_process import model_process
from benchmarks.worker_process import cpu_ms, most_memory_mb
from tests.support.live import serving_afresh
from tests.support.openai_server import Reply, Request

MODEL_DELAY_S = 0.3
_CALLS_PER_QUESTION = 2
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Stream:
    """The events of one client, in seconds from the start of all clients; `problem` is empty if
    nothing went wrong.
    """

    first_event_s: float
    end_s: float
    problem: str


@dataclass(frozen=True)
class StreamResults:
    """The measurements of all clients, and of the worker.

    Attributes:
        queueing_s: how long the median client would wait for its first event if questions were
            answered one by one.
        memory_mb: the most memory that the worker held.
    """

    streams: list[Stream]
    queueing_s: float
    cpu_ms_per_answer: float
    memory_mb: float

    @property
    def problems(self) -> list[str]:
        """Return the problems of the streams that had one."""
        return [stream.problem for stream in self.streams if stream.problem]

    @property
    def first_event_s(self) -> float:
        """Return median time to the first event."""
        return statistics.median(stream.first_event_s for stream in self.streams)

    @property
    def answers_per_s(self) -> float:
        """Return answers per second from the first request to the last answer."""
        return len(self.streams) / max(stream.end_s for stream in self.streams)

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        last, end = (
            max(times)
            for times in zip(*((s.first_event_s, s.end_s) for s in self.streams), strict=True)
        )
        return [
            f"{len(self.streams)} streams at once, {len(self.problems)} of them broken or failed",
            f"first event: median {self.first_event_s:.2f} s, last {last:.2f} s;"
            f" queueing {self.queueing_s:.0f} s,"
            f" ratio {self.first_event_s / self.queueing_s:.4f} (bar 0.1)",
            f"all answered after {end:.1f} s: {self.answers_per_s:.0f} answers/s,"
            f" {self.cpu_ms_per_answer:.1f} ms CPU per answer,"
            f" worker's memory {self.memory_mb:.0f} MB",
        ]


def run(database_url: str, data_dir: Path, *, streams: int = 1000) -> StreamResults:
    """Ask `streams` questions at once."""
    with (
        model_process(_script) as model_url,
        serving_afresh(
            data_dir / "many_streams.log",
            DATABASE_URL=database_url,
            DATA_DIR=str(data_dir),
            MAX_STREAMS=str(streams),
            CALLER_SHARE="1",
            DATABASE_POOL_WAIT_S="60",  # all questions share few connections
            OPENAI_API_KEY="bench",
            OPENAI_BASE_URL=model_url,
        ) as citu,
    ):
        worker = citu.worker()
        asyncio.run(_ask_all(citu.port, 3))  # warm-up: imports, connections, catalogue
        before = cpu_ms(worker)
        seen = asyncio.run(_ask_all(citu.port, streams))
        used, memory = cpu_ms(worker) - before, most_memory_mb(worker)
    queueing_s = (streams - 1) / 2 * _CALLS_PER_QUESTION * MODEL_DELAY_S
    return StreamResults(seen, queueing_s, used / streams, memory)


async def _ask_all(port: int, count: int) -> list[Stream]:
    started = time.perf_counter()
    return await asyncio.gather(*(_ask(port, started) for _ in range(count)))


async def _ask(port: int, started: float) -> Stream:
    """Ask one question over its own connection."""
    body = json.dumps({"question": QUESTION}).encode()
    head = (
        f"POST /api/v0/ask_agent_stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: "
        "application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    answer, first_event_s = bytearray(), 0.0
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode() + body)
            while chunk := await reader.read(65536):
                answer += chunk
                if not first_event_s and b"\ndata: " in answer:
                    first_event_s = time.perf_counter() - started
            writer.close()
    except OSError as error:  # a TimeoutError is one
        return Stream(
            first_event_s, time.perf_counter() - started, f"{type(error).__name__} {error}"
        )
    return Stream(first_event_s, time.perf_counter() - started, _problem(bytes(answer)))


def _problem(answer: bytes) -> str:
    if not answer.startswith(b"HTTP/1.1 200 "):
        return answer[:300].decode("utf-8", "replace")
    events = [json.loads(line[6:]) for line in answer.split(b"\n") if line.startswith(b"data: ")]
    kinds = [event["data"]["type"] for event in events]
    if kinds[-1:] == ["error"]:
        return f"{events[-1]['data']['error_type']}: {events[-1]['message']}"
    is_ended = answer.endswith(b"\r\n0\r\n\r\n")
    is_completed = kinds[-1:] == ["completed"] and kinds.count("completed") == 1
    if not is_ended or not is_completed:
        return f"the stream is not whole: {kinds}"
    return _problem_of_result(events[-1]["data"])


def _problem_of_result(result: dict[str, Any]) -> str:
    if result["warnings"]:
        return "; ".join(result["warnings"])
    return "" if result["query_result"]["rows"] else "no rows"


def _script(request: Request) -> Reply:
    writes_sql = any("NO_SQL:" in str(message["content"]) for message in request.messages)
    return Reply(SQL if writes_sql else "营业收入最高的服务区见下表。", delay_s=MODEL_DELAY_S)
