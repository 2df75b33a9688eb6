"""Asks a day's questions in minutes, and looks whether the service holds more and more meanwhile.

Clients ask at an even rate, at most eight at once, so that a slow machine is not overloaded: whole
answers and streams, of all kinds that `counted_questions` has.
Every tenth leaves its stream after the first event, every fifth reads its conversation again. At
the end SIGTERM comes while they go on asking: no run may stay `running`.
"""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from benchmarks.counted_questions import STREAM, question_of, service_of_kinds
from benchmarks.gunicorn_service import GunicornService, WorkerHoldings

_WORKERS = 2
_SYNC = "/api/v0/ask_agent"
_LOOK_S = 5.0
_END_S = 60.0
_MORE_MB = 1.05  # memory at the end, times that of the middle, is still flat
_MORE = 4  # of the others: what is open at one moment and not at another
_AT_ONCE = 8
_ANSWERS = (b'"completed"', b'"success":true', b'"forbidden_keywords"')
_LEAVES_EACH, _READS_EACH = 10, 5


@dataclass
class LoadResults:
    """What was asked, and what the workers held meanwhile.

    Attributes:
        looks: every few seconds, from the first question on.
        running: runs that were `running` after the service had stopped.
        stop_s: seconds from SIGTERM to the end of the service.
    """

    asked: int = 0
    problems: list[str] = field(default_factory=list)
    minutes: float = 0.0
    looks: list[WorkerHoldings] = field(default_factory=list)
    running: int = 0
    stop_s: float = 0.0

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        return [
            f"{self.asked} questions in {self.minutes:.1f} minutes to {_WORKERS} workers,"
            f" {len(self.problems)} without an answer",
            *self.problems[:5],
            self._line("memory, MB", lambda held: held.memory_mb, lambda mb: mb * _MORE_MB),
            self._line("descriptors", lambda held: held.descriptors, lambda count: count + _MORE),
            self._line("threads", lambda held: held.threads, lambda count: count + _MORE),
            self._line("connections", lambda held: held.connections, lambda count: count + _MORE),
            f"SIGTERM under load: ended after {self.stop_s:.1f} s,"
            f" {self.running} runs left running (bar 0)",
        ]

    def _line(
        self, name: str, of: Callable[[WorkerHoldings], float], most: Callable[[float], float]
    ) -> str:
        """Compare the last third of the time with the second; the first one warms up."""
        values = [of(held) for held in self.looks]
        third = len(values) // 3
        first, middle, last = (
            statistics.median(values[at : at + third]) for at in (0, third, 2 * third)
        )
        is_flat = "flat" if last <= most(middle) else "GROWS"
        return f"{name}: {first:.0f}, {middle:.0f}, {last:.0f} in each third: {is_flat}"


def run(database_url: str, folder: Path, *, minutes: float, rate: float) -> LoadResults:
    """Ask `rate` questions a second for so long, then stop the service."""
    with service_of_kinds(database_url, folder / "load", _WORKERS) as service:
        load = _Load(service, rate)
        asyncio.run(load.run(minutes * 60))
        load.found.running = service.running()

    return load.found


class _Load:
    """Clients of one service."""

    def __init__(self, service: GunicornService, rate: float) -> None:
        self._service = service
        self._root = f"http://127.0.0.1:{service.port}"
        self._pause_s = 1 / rate
        self._is_over = False
        self.found = LoadResults()

    async def run(self, seconds: float) -> None:
        begun = time.monotonic()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            asking = asyncio.create_task(self._ask_on(session))
            while time.monotonic() - begun < seconds:
                await asyncio.sleep(_LOOK_S)
                self.found.looks.append(await asyncio.to_thread(self._service.held))
            self.found.minutes = (time.monotonic() - begun) / 60
            problems = [*self.found.problems]
            await self._stop()
            self._is_over = True
            await asking
            self.found.problems = problems  # what is refused while it stops is none

    async def _stop(self) -> None:
        begun = time.monotonic()
        os.kill(self._service.process.pid, signal.SIGTERM)
        await asyncio.to_thread(self._service.process.wait, _END_S)
        self.found.stop_s = time.monotonic() - begun

    async def _ask_on(self, session: aiohttp.ClientSession) -> None:
        """Begin a question at each beat, unless too many run."""
        asked: set[asyncio.Task[None]] = set()
        while not self._is_over:
            await asyncio.sleep(self._pause_s)
            if len(asked) >= _AT_ONCE:
                continue
            task = asyncio.create_task(self._ask(session, self.found.asked))
            asked.add(task)
            task.add_done_callback(asked.discard)
            self.found.asked += 1
        await asyncio.gather(*asked)

    async def _ask(self, session: aiohttp.ClientSession, number: int) -> None:
        body = question_of(number, number % 50)
        # Of both kinds in turn, each in every kind of question.
        path = STREAM if number // 4 % 2 else _SYNC
        try:
            async with session.post(self._root + path, json=body) as response:
                if path == STREAM and number % _LEAVES_EACH == 0:
                    await response.content.readline()
                    response.close()
                    return
                said = await response.read()
            if number % _READS_EACH == 0:
                await self._read(session, body)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            self.found.problems.append(f"{path}: {problem!r}")
            return
        if not any(word in said for word in _ANSWERS):
            self.found.problems.append(f"{path}: {said[-300:]!r}")

    async def _read(self, session: aiohttp.ClientSession, body: dict[str, str]) -> None:
        path = f"/api/v0/conversations/{body['conversation_id']}?user_id={body['user_id']}"
        async with session.get(self._root + path) as response:
            await response.read()
