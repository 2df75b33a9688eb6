"""Opens hundreds of WebSockets on one worker, asks over each of them, and stops the service.

What an open socket costs in threads, descriptors and memory, how soon the first frame of an answer
comes, and whether each client hears of the end. Questions are answered by rules, so the time is the
service's own.
"""

import asyncio
import json
import signal
import statistics
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from benchmarks.worker_process import most_memory_mb
from serving.worker import gunicorn_options
from tests.support.live import Citu, descriptor_count, serving_afresh, thread_count

_PATH = "/api/vanna/v2/chat_websocket"
_QUESTION = json.dumps({"message": "店铺有多少家"})
_PLACES = 32  # questions at once; more would measure how long they wait for each other


@dataclass(frozen=True)
class SocketResults:
    """Measurements of the sockets.

    Attributes:
        open_s: seconds until all sockets were open; all clients connect at once.
        threads: how many threads the worker had before, with all sockets open, and after the
            questions.
        first_frames_s: when the first frame of each question came, over all sockets.
        codes: what sockets were closed with, and how many.
        end_s: seconds from SIGTERM to the end of the last socket.
    """

    sockets: int
    pool: int
    open_s: float
    threads: tuple[int, int, int]
    descriptors: int
    memory_mb: float
    first_frames_s: list[float]
    codes: Counter[int | None]
    end_s: float

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        before, opened, after = self.threads
        twentieths = statistics.quantiles(self.first_frames_s, n=20)
        return [
            f"{self.sockets} WebSockets open after {self.open_s:.2f} s",
            (
                f"threads: {before} before, {opened} with all open, "
                f"{after} after a question over each; pool {self.pool}"
            ),
            "first frame of an answer: "
            f"median {statistics.median(self.first_frames_s) * 1000:.0f} ms,"
            f" 95% within {twentieths[-1] * 1000:.0f} ms; {self.descriptors} descriptors,"
            f" {self.memory_mb:.0f} MB",
            f"SIGTERM: closed with {dict(self.codes)} within {self.end_s:.2f} s",
        ]


def run(database_url: str, data_dir: Path, *, sockets: int = 400) -> SocketResults:
    """Measure `sockets` open sockets."""
    log = data_dir / "many_sockets.log"
    with serving_afresh(
        log,
        DATABASE_URL=database_url,
        DATA_DIR=str(data_dir),
        MAX_STREAMS=str(_PLACES),
        CALLER_SHARE="1",
    ) as citu:
        return asyncio.run(_measured(citu, sockets))


async def _measured(citu: Citu, sockets: int) -> SocketResults:
    worker = citu.worker()
    async with AsyncExitStack() as stack:
        await _asked(await stack.enter_async_context(_connected(citu.port)))  # warm-up
        before, began = thread_count(worker), time.perf_counter()
        opening = [stack.enter_async_context(_connected(citu.port)) for _ in range(sockets)]
        clients = await asyncio.gather(*opening)
        open_s, opened = time.perf_counter() - began, thread_count(worker)
        first_frames_s = await _all_asked(clients)
        threads = (before, opened, thread_count(worker))
        held = descriptor_count(worker), most_memory_mb(worker)
        codes, end_s = await _ended(citu, clients)
    pool = int(gunicorn_options(_PLACES)["threads"])
    return SocketResults(sockets, pool, open_s, threads, *held, first_frames_s, codes, end_s)


def _connected(port: int) -> connect:
    return connect(f"ws://127.0.0.1:{port}{_PATH}", compression=None, open_timeout=60)


async def _all_asked(clients: list[ClientConnection]) -> list[float]:
    places = asyncio.Semaphore(_PLACES // 2)

    async def asked(client: ClientConnection) -> float:
        async with places:
            return await _asked(client)

    return await asyncio.gather(*map(asked, clients))


async def _asked(client: ClientConnection) -> float:
    """Return seconds to the first frame; reads the whole answer."""
    began, first_s = time.perf_counter(), 0.0
    await client.send(_QUESTION)
    while True:
        frame = json.loads(await client.recv())
        first_s = first_s or time.perf_counter() - began
        if frame.get("type") == "completion":
            return first_s
        if "error" in frame:
            raise RuntimeError(frame["error"])


async def _ended(citu: Citu, clients: list[ClientConnection]) -> tuple[Counter[int | None], float]:
    began = time.perf_counter()
    citu.signal(signal.SIGTERM)
    codes = await asyncio.gather(*map(_code_of, clients))
    return Counter(codes), time.perf_counter() - began


async def _code_of(client: ClientConnection) -> int | None:
    with suppress(ConnectionClosed):
        await client.recv()
    return client.close_code
