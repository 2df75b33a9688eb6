"""Holds hundreds of slow connections open on one worker, without a key, while somebody with a key
asks for `SELECT 1`.

A quarter of the clients drip a head, a quarter a body of 60,000 bytes; a quarter say nothing after
their head, and a quarter take a long answer byte by byte. Whoever is closed connects again after
as long as a byte takes. They run in a process of their own, on cores shared with the service and
PostgreSQL.
"""

import asyncio
import http.client
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.access.key_file import KeyFile
from benchmarks.worker_process import most_memory_mb
from tests.support.live import Citu, descriptor_count, eventually, serving_afresh, thread_count

DRIP_S = 3.0  # seconds between two bytes of a slow client
_PAUSE_S = 0.1  # seconds between two statements
_BEFORE = 50  # statements without slow clients, to compare with
_PATH = "/api/v0/sql/run"
_BODY = json.dumps({"sql": "SELECT 1"}).encode()
_HEAD = f"POST {_PATH} HTTP/1.1\r\nHost: citu\r\nContent-Length: 60000\r\n\r\n".encode()
_LONG_ANSWER = b"GET /openapi.json HTTP/1.1\r\nHost: citu\r\n\r\n"
_PIPELINED = 20  # requests for it: the kernel would take a single answer


@dataclass(frozen=True)
class SlowRequestResults:
    """Measurements with and without slow clients.

    Attributes:
        before_s: how long each statement took without slow clients.
        waits_s: how long each took while they were connected.
        statuses: the statuses of all answers.
        descriptors: how many descriptors the worker had before, at most, and after the clients have
            gone.
        threads: how many threads the worker had at most.
    """

    clients: int
    seconds: float
    before_s: list[float]
    waits_s: list[float]
    statuses: frozenset[int]
    descriptors: tuple[int, int, int]
    threads: int
    memory_mb: tuple[float, float]

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        before, most, after = self.descriptors
        return [
            f"{self.clients} slow connections without a key for {self.seconds:.0f} s",
            f"SELECT 1 before: median {_ms(statistics.median(self.before_s))},"
            f" longest {_ms(max(self.before_s))}",
            f"SELECT 1 meanwhile, {len(self.waits_s)} times: median"
            f" {_ms(statistics.median(self.waits_s))}, longest {_ms(max(self.waits_s))}"
            f" (bar 250 ms); answered with {sorted(self.statuses)}",
            f"threads {self.threads}; descriptors {before} before, {most} at most, {after} after;"
            f" memory {self.memory_mb[0]:.0f} MB before, {self.memory_mb[1]:.0f} MB at most",
        ]


def run(
    database_url: str, data_dir: Path, *, clients: int = 300, seconds: float = 60.0
) -> SlowRequestResults:
    """Measure with `clients` slow clients for `seconds`."""
    folder = data_dir / "slow_requests"
    folder.mkdir()
    key, _ = KeyFile(folder / "api_keys.json").create("bench")
    with serving_afresh(
        folder / "log",
        DATABASE_URL=database_url,
        DATA_DIR=str(data_dir),
        API_KEYS_FILE=str(folder / "api_keys.json"),
    ) as citu:
        return _measured(citu, key, clients, seconds)


def _measured(citu: Citu, key: str, clients: int, seconds: float) -> SlowRequestResults:
    worker = citu.worker()
    _asked(citu.port, key)  # warm-up
    before_s = [_asked(citu.port, key)[1] for _ in range(_BEFORE)]
    before, before_mb = descriptor_count(worker), most_memory_mb(worker)
    answers, most, threads = [], 0, 0
    with _slow_clients(citu.port, clients):
        eventually(lambda: descriptor_count(worker) >= before + clients // 2, 30)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answers.append(_asked(citu.port, key))
            most, threads = max(most, descriptor_count(worker)), max(threads, thread_count(worker))
            time.sleep(_PAUSE_S)
    with suppress(AssertionError):  # what is left over is reported
        eventually(lambda: descriptor_count(worker) <= before, 20)
    return SlowRequestResults(
        clients,
        seconds,
        before_s,
        [wait_s for _, wait_s in answers],
        frozenset(status for status, _ in answers),
        (before, most, descriptor_count(worker)),
        threads,
        (before_mb, most_memory_mb(worker)),
    )


def _asked(port: int, key: str) -> tuple[int, float]:
    """Return status and seconds of one statement, over a connection of its own."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", _PATH, _BODY, {"X-API-Key": key})
        response = connection.getresponse()
        response.read()
        return response.status, time.perf_counter() - began
    finally:
        connection.close()


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


# ------------------------------------------------------------------------------
# the slow clients


@contextmanager
def _slow_clients(port: int, count: int) -> Iterator[None]:
    process = multiprocessing.get_context("fork").Process(
        target=_be_slow, args=(port, count), daemon=True
    )
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join(20)


def _be_slow(port: int, count: int) -> None:
    asyncio.run(_all_slow(port, count))


async def _all_slow(port: int, count: int) -> None:
    kinds = (_drips_a_head, _drips_a_body, _says_nothing, _takes_little)
    await asyncio.gather(*(_again(port, kinds[number % len(kinds)]) for number in range(count)))


async def _again(port: int, be_slow: Callable[[Any, Any], Any]) -> None:
    """Is slow over one connection after the other, until the process is ended."""
    while True:
        with suppress(OSError):
            # A small buffer, so that what is not read stays with the service.
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            try:
                await be_slow(reader, writer)
            finally:
                writer.transport.abort()
        await asyncio.sleep(DRIP_S)


async def _drips_a_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _drip(reader, writer, b"GET /health HTTP/1.1\r\nX-Slow: ")


async def _drips_a_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _drip(reader, writer, _HEAD)


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes) -> None:
    writer.write(begun)
    while not reader.at_eof():
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1024), DRIP_S)
        writer.write(b"x")


async def _says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_HEAD)
    while await reader.read(1024):
        pass


async def _takes_little(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_LONG_ANSWER * _PIPELINED)
    while not reader.at_eof():
        await reader.read(1)
        await asyncio.sleep(DRIP_S)
