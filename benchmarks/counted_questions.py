"""Asks thousands of questions of four workers, some of which are killed, and compares what the
metrics say at the end with the audit log and with the runs in the store: they must be equal.

Four kinds of questions come in turn: a statement that runs, one that the guard refuses, a chat, and
a statement that has to be repaired. A client whose worker is killed asks the next question.
"""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.gunicorn_service import GunicornService, gunicorn_service
from benchmarks.model_process import model_process
from databases.source import database_sources
from store.postgres_values import unpack
from tests.support.live import eventually
from tests.support.openai_server import Reply, Request

WORKERS = 4
_CLIENTS = 16
_LEASE_S = 3
_SETTLED_S = 90.0
_SAME_S = 5.0  # after which a difference is one
STREAM = "/api/v0/ask_agent_stream"
_STATEMENT = "SELECT shop_name FROM shop ORDER BY shop_id LIMIT {rows}"
KINDS = ("read", "write", "talk", "repair")
_ROWS = 7

Counts = Counter[tuple[str, ...]]


@dataclass(frozen=True)
class CountedResults:
    """What was asked and counted.

    Attributes:
        written: what the audit log and the store have.
        measured: what the metrics have, by the same names.
    """

    asked: int
    kills: int
    broken: int
    seconds: float
    written: Counts
    measured: Counts

    @property
    def differences(self) -> list[str]:
        """Return what the metrics count otherwise."""
        names = sorted(self.written.keys() | self.measured.keys())
        return [
            f"{' '.join(name)}: {self.written[name]} written, {self.measured[name]} measured"
            for name in names
            if self.written[name] != self.measured[name]
        ]

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        counts = ", ".join(f"{count} {' '.join(name)}" for name, count in self.written.items())
        return [
            f"{self.asked} questions of {WORKERS} workers in {self.seconds:.0f} s,"
            f" {self.kills} workers killed, {self.broken} answers broke off",
            f"written: {counts}",
            f"differences: {len(self.differences)}",
            *self.differences,
        ]


def run(database_url: str, folder: Path, *, questions: int, kills: int) -> CountedResults:
    """Ask, kill, and compare."""
    settings = {"RUN_LEASE_S": str(_LEASE_S), "ENABLE_RESULT_SUMMARY": "false"}
    with service_of_kinds(database_url, folder / "counted", WORKERS, settings) as service:
        asking = _Asking(service, questions, kills)
        asyncio.run(asking.run())
        eventually(lambda: service.running() == 0, _SETTLED_S)
        written = _written(service)
        measured = _settled(service, written)

    return CountedResults(
        questions, asking.killed, asking.broken, asking.seconds, written, measured
    )


@contextmanager
def service_of_kinds(
    database_url: str, folder: Path, workers: int, more: Mapping[str, str] | None = None
) -> Iterator[GunicornService]:
    """Yield a service whose model answers by the kinds of `question_of`.

    Args:
        more: further settings.
    """
    sources = database_sources("", "", folder)
    try:
        with model_process(scripted_kinds) as model_url:
            settings = {
                "DATABASE_URL": database_url,
                "APP_DATABASE_URL": sources.app(),
                "OPENAI_API_KEY": "bench",
                "OPENAI_BASE_URL": model_url,
                "OPENAI_MODEL": "scripted",
                "CALLER_SHARE": "1",
                **(more or {}),
            }
            with gunicorn_service(folder, settings, workers=workers) as service:
                yield service
    finally:
        sources.hold.release()


def scripted_kinds(request: Request) -> Reply:
    """Answer a question by its kind, of which its text tells."""
    said = "\n".join(str(message["content"]) for message in request.messages)
    if "kind talk" in said:
        return Reply("Hello.")
    if "kind write" in said:
        return Reply("```sql\nDELETE FROM shop\n```")
    is_broken = "kind repair" in said and "no_such_column" not in said
    statement = _STATEMENT.format(rows=_ROWS)
    return Reply(statement.replace("shop_name", "no_such_column") if is_broken else statement)


def question_of(number: int, client: int) -> dict[str, str]:
    """Return the body of a question, of each kind in turn."""
    kind = KINDS[number % len(KINDS)]
    return {
        "question": f"kind {kind}, number {number}",
        "user_id": f"client-{client}",
        "conversation_id": f"{client}-{number}",
        "routing_mode": "chat_direct" if kind == "talk" else "database_direct",
    }


class _Asking:
    """Clients that ask so many questions, while workers are killed evenly among them."""

    def __init__(self, service: GunicornService, questions: int, kills: int) -> None:
        self._url = f"http://127.0.0.1:{service.port}{STREAM}"
        self._service = service
        self._questions = questions
        self._kill_every = questions // (kills + 1)
        self._kills = kills
        self._random = random.Random(31)  # noqa: S311 - chooses workers, keeps no secret
        self._asked = 0
        self.killed = self.broken = 0
        self.seconds = 0.0

    async def run(self) -> None:
        begun = time.monotonic()
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(self._ask_on(session, n) for n in range(_CLIENTS)))
        self.seconds = time.monotonic() - begun

    async def _ask_on(self, session: aiohttp.ClientSession, client: int) -> None:
        while self._asked < self._questions:
            number = self._asked
            self._asked += 1
            if self.killed < self._kills and number >= (self.killed + 1) * self._kill_every:
                self._kill()
            await self._ask(session, client, number)

    def _kill(self) -> None:
        workers = self._service.workers()
        if workers:
            self.killed += 1
            os.kill(self._random.choice(workers), signal.SIGKILL)

    async def _ask(self, session: aiohttp.ClientSession, client: int, number: int) -> None:
        last = b""
        try:
            async with session.post(self._url, json=question_of(number, client)) as response:
                async for line in response.content:
                    last = line if line.startswith(b"data: ") else last
        except (aiohttp.ClientError, OSError):
            self.broken += 1
            return
        self.broken += b'"completed"' not in last and b'"error"' not in last


_ENDS = """
SELECT DISTINCT ON (run.run_key) run.state, page.data FROM citu.run
JOIN citu.page ON page.run_key = run.run_key AND page.last_seq = run.last_seq
ORDER BY run.run_key
"""


def _written(service: GunicornService) -> Counts:
    """Count the ends of runs in the store, and the lines of the audit log."""
    found: Counts = Counter()
    for state, page in service.rows(_ENDS):
        *_, last = unpack(bytes(page))
        data = json.loads(last.data)["data"]
        found["question", state, data.get("error_type", "none")] += 1
        path = data.get("execution_path") or data.get("state_summary", {}).get("execution_path", ())
        for outcome in ("success", "failed"):
            found["repair", outcome] += f"sql_repair_{outcome}" in path
    for file in service.folder.glob("logs/audit.jsonl*"):
        if not file.name.endswith(".lock"):
            for line in file.read_text().splitlines():
                _count_line(found, json.loads(line))
    return +found


def _count_line(found: Counts, line: dict[str, Any]) -> None:
    if line["verdict"] == "refused":
        found["refused", line["error_type"]] += 1
    if line["verdict"] == "executed" and line["rows"] is not None:
        found[("statements",)] += 1
        found[("rows",)] += line["rows"]


def _settled(service: GunicornService, written: Counts) -> Counts:
    """Return what is measured once it is what was written, or some seconds later."""
    deadline = time.monotonic() + _SAME_S + 2 * _LEASE_S
    measured = _measured(service)
    while measured != written and time.monotonic() < deadline:
        time.sleep(1)
        measured = _measured(service)
    return measured


def _measured(service: GunicornService) -> Counts:
    found: Counts = Counter()
    for family in text_string_to_metric_families(service.metrics()):
        for sample in family.samples:
            labels = sample.labels
            name: tuple[str, ...] = ()
            if sample.name == "citu_questions_total":
                name = ("question", labels["outcome"], labels["error_type"])
            elif sample.name == "citu_guard_refusals_total":
                name = ("refused", labels["error_type"])
            elif sample.name == "citu_repairs_total":
                name = ("repair", labels["outcome"])
            elif sample.name == "citu_sql_rows_count":
                name = ("statements",)
            elif sample.name == "citu_sql_rows_sum":
                name = ("rows",)
            if name:
                found[name] += int(sample.value)
    return +found
