"""Measures drafts of transformations over many joined tables: what the roles cost beside the
evidence, how long the tests take, when the first question comes, and 20 requests at once.

Citu runs as `python unified_api.py` without a model, on a database with a star of 20 tables among
others. What the roles take is the time of all nodes without that of `evidence.timings_ms`; what
they cost the processor is measured in this process, one draft after the other, with the evidence
apart. The processor's time of a whole draft is that of the worker, evidence and all.
"""

import http.client
import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app_config import Settings
from benchmarks.node_cost import node_cost, roles_ms
from benchmarks.synthetic_schema import database_of as synthetic_database
from benchmarks.worker_process import cpu_ms
from databases.app_database import ensure_app_database
from databases.embedded.embedded_server import EmbeddedServer
from tests.support.live import serving_afresh

_JOINED = 20
_ROWS = 200
_AT_ONCE = 20
_NAME = "transformations"
_QUESTION = "orders: monthly sum of amount into monthly_amounts"
_DEADLINE_S = 600


@dataclass(frozen=True)
class Drafted:
    """What drafts of one request took.

    Attributes:
        tables: how many tables the database has.
        cold_question_s: until the question that an ambiguous sentence comes back with, while a
            service that has just started still makes the index of the catalogue's words.
        question_s: the same, of each later request.
        roles_ms: how long the roles took for each draft, one after the other.
        crowded_ms: how long each of many drafts took at once.
        tests_s: how long each draft's tests took, unit tests with their worlds among them.
        cpu_ms: the worker's processor time for one draft, its evidence and all.
        cost: the processor's time for one draft, by node, and for its evidence.
        statuses: the statuses of all drafts.
    """

    tables: int
    cold_question_s: float
    question_s: Sequence[float]
    roles_ms: Sequence[float]
    crowded_ms: Sequence[float]
    tests_s: Sequence[float]
    cpu_ms: float
    cost: Mapping[str, float]
    statuses: Sequence[str]

    def lines(self) -> list[str]:
        """The findings as a person reads them."""
        bar = 100 if self.tables <= _JOINED else 250
        alone, crowded = _most(self.roles_ms), _most(self.crowded_ms)
        ended = sum(status == "proven" for status in self.statuses)
        nodes = ", ".join(f"{name} {spent:.1f}" for name, spent in self.cost.items())
        return [
            f"{self.tables} tables: the roles' own processor time {roles_ms(self.cost):.0f} ms (bar"
            f" {bar}): {nodes}",
            f"{self.tables} tables, {_JOINED} of them joined: roles {alone:.0f} ms p95 (bar {bar}),"
            f" median {statistics.median(self.roles_ms):.0f};"
            f" tests {_most(self.tests_s):.2f} s p95 (bar 3);"
            f" the first question {_most(self.question_s):.2f} s p95 (bar 1),"
            f" {self.cold_question_s:.2f} s right after the start;"
            f" {self.cpu_ms:.0f} ms of processor for a whole draft",
            f"{_AT_ONCE} drafts at once: {crowded / alone:.1f} times the p95 of one (bar 10);"
            f" {ended} of {len(self.statuses)} drafts proven",
        ]


def run(data_dir: Path, *, rounds: int = 10, others: Sequence[int] = (0, 980)) -> Iterator[Drafted]:
    """Measure a database of 20 tables, and one with so many others."""
    for number in others:
        with synthetic_database(data_dir, _NAME, number, *_star()) as url:
            yield _measured(data_dir, url, _JOINED + number, rounds)


def _measured(data_dir: Path, url: str, tables: int, rounds: int) -> Drafted:
    log = data_dir / f"{_NAME}.log"
    with serving_afresh(log, DATABASE_URL=url, DATA_DIR=str(data_dir), MAX_STREAMS="64") as citu:
        _ask(citu.port, _request())  # the catalogue is read, and code is loaded
        cold_question_s = _question_s(citu.port)
        question_s = [_question_s(citu.port) for _ in range(rounds)]
        before = cpu_ms(citu.worker())
        alone = [_ask(citu.port, _request()) for _ in range(rounds)]
        cost = (cpu_ms(citu.worker()) - before) / rounds
        with ThreadPoolExecutor(_AT_ONCE) as clients:
            asked = [clients.submit(_ask, citu.port, _request()) for _ in range(_AT_ONCE)]
            crowd = [one.result() for one in asked]
    return Drafted(
        tables=tables,
        cold_question_s=cold_question_s,
        question_s=question_s,
        roles_ms=[_roles_ms(answer) for answer in alone],
        crowded_ms=[_roles_ms(answer) for answer in crowd],
        tests_s=[_tests_s(answer) for answer in alone],
        cpu_ms=cost,
        cost=_node_cost(data_dir, url, rounds),
        statuses=[answer["status"] for answer in (*alone, *crowd)],
    )


def _node_cost(data_dir: Path, url: str, rounds: int) -> dict[str, float]:
    server = EmbeddedServer.acquire(data_dir)
    try:
        settings = Settings(
            database_url=url,
            data_dir=str(data_dir),
            app_database_url=ensure_app_database(server),
            etl_dbt="none",
        )
        return node_cost(settings, {**_request(), "agent": "etl"}, rounds)
    finally:
        server.release()


def _most(values: Sequence[float]) -> float:
    """Return the 95th percentile of the values."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def _roles_ms(answer: dict[str, Any]) -> float:
    evidence = answer["evidence"]["timings_ms"]
    total: float = answer["timings_ms"]["total"]
    return total - float(sum(evidence.values()))


def _tests_s(answer: dict[str, Any]) -> float:
    evidence = answer["evidence"]["timings_ms"]
    return float(evidence["test"] + evidence["mutate"]) / 1000  # without mutants: unit tests


def _question_s(port: int) -> float:
    started = time.perf_counter()
    answer = _ask(port, {"question": _QUESTION})
    assert answer["type"] == "question", answer
    return time.perf_counter() - started


def _request() -> dict[str, Any]:
    joins = [
        {"action": "join", "parameters": {"left": "orders", "right": f"part_{number}"}}
        for number in range(2, _JOINED + 1)
    ]
    measures = [{"function": "sum", "column": "orders.amount", "as": "amount"}]
    group_by: list[dict[str, Any]] = [{"column": "orders.ordered_on", "unit": "month"}]
    group_by += [{"column": f"part_{number}.kind", "as": f"kind_{number}"} for number in (2, 3)]
    grouping = {
        "action": "aggregate",
        "parameters": {"group_by": group_by, "measures": measures},
    }
    operations = [{"order": order, **one} for order, one in enumerate([*joins, grouping], 1)]
    intent = {
        "summary": "amounts by month and kinds",
        "data_sources": [{"table_name": "orders"}],
        "data_target": {"table_name": "monthly_amounts"},
        "operations": operations,
    }
    return {"intent": intent, "options": {"interactive": False, "mutants": False}}


def _ask(port: int, body: dict[str, Any]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_DEADLINE_S)
    with closing(connection):
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/api/v0/etl/ask", json.dumps(body).encode(), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200, answer
        data: dict[str, Any] = answer["data"]
        return data


def _star() -> Iterator[str]:
    """Yields the statements that make the tables of the request."""
    for number in range(2, _JOINED + 1):
        yield f"CREATE TABLE part_{number} (id integer PRIMARY KEY, kind text, name text)"
        yield (
            f"INSERT INTO part_{number} SELECT n, 'kind ' || n % {number}, 'name ' || n "
            f"FROM generate_series(1, {_ROWS}) AS n"
        )
    references = "".join(
        f", part_{number}_id integer REFERENCES part_{number}" for number in range(2, _JOINED + 1)
    )
    yield (
        "CREATE TABLE orders (id integer PRIMARY KEY, amount numeric(12, 2), ordered_on date, "
        f"paid_on date{references})"
    )
    keys = ", n" * (_JOINED - 1)
    yield (
        f"INSERT INTO orders SELECT n, n, date '2026-01-01' + n, date '2026-01-01' + n{keys} "
        f"FROM generate_series(1, {_ROWS}) AS n"
    )
    yield "ANALYZE"
