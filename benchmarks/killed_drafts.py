"""Kills workers with SIGKILL while they draft transformations with a scripted model.

Two services share one store. All requests begin at the first one, whose worker is killed as soon as
a role is asked for the first time, for each role in turn, and once more while the drafts wait for
their users. Each answer is then sent to both services several times at once. Every draft has to
end once, at the node where it was killed no earlier role may be asked again.
"""

import os
import re
import signal
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from benchmarks.synthetic_schema import database_of as synthetic_database
from tests.support.etl_model import by_node, hands_in, submitted
from tests.support.etl_requests import INTENT, SHOP, TESTED
from tests.support.http_stream import get_json, post_json
from tests.support.live import Citu, eventually, serving_afresh
from tests.support.openai_replies import Reply, Request
from tests.support.openai_server import OpenAiServer

# In the order in which a run asks them; test cases are asked for while the draft is tested.
ROLES = ("knowledge", "analysis", "plan", "review", "sql", "test_cases")
ANSWERS = 8
_NAME = "killed_drafts"
_JOINED = "dwd_orders_users"
_MARK = re.compile(r"m(\d+)m")
_PATIENCE_S = 300.0
_PATH = [*TESTED, "feedback_handler", "learning_handler", "finalize"]


@dataclass
class KilledDrafts:
    """The ends of the drafts.

    Attributes:
        kills: how often a worker was killed, by what it did.
        statuses: the statuses of the drafts that ended.
        lost: drafts that did not end, or not as they should.
        again: earlier roles that were asked again, each with its draft.
        accepted: how many of the equal answers were taken, for each draft.
    """

    drafts: int
    kills: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return the findings as a person reads them."""
        proven = self.statuses.count("proven")
        doubled = sum(count != 1 for count in self.accepted)
        return [
            f"{self.drafts} drafts, a worker killed at: {', '.join(self.kills)}",
            f"{proven} proven, {len(self.lost)} lost, {doubled} of {len(self.accepted)} sets of "
            f"{ANSWERS} equal answers not taken exactly once",
            f"earlier roles asked again: {len(self.again)}",
            *self.lost[:5],
            *self.again[:5],
        ]


class _DeadlyModel:
    """The script of the model: at the first request of each role the asking worker dies."""

    def __init__(self) -> None:
        self.asked: dict[int, list[str]] = defaultdict(list)
        self.kills: list[str] = []
        self.victim: Citu | None = None
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        role = next(name for name in ROLES if f"submit_{name}" in request.tool_names)
        text = str(request.messages[1]["content"])
        found = _MARK.search(text)
        assert found is not None, text
        mark = int(found[1])
        with self._lock:
            self.asked[mark].append(role)
            if role not in self.kills:
                self.kill(role)
        return _script(mark)(request)

    def kill(self, why: str) -> None:
        """Kill the worker of the first service."""
        assert self.victim is not None
        self.kills.append(why)
        os.kill(self.victim.worker(), signal.SIGKILL)


def _script(mark: int) -> Callable[[Request], Reply]:
    intent = {**INTENT, "data_target": {"table_name": f"sales_m{mark}m"}}
    target = f"sales_m{mark}m"
    sql = {
        _JOINED: (
            "SELECT o.id AS id, o.ordered_on, o.amount FROM ods_orders AS o "
            "LEFT JOIN ods_users AS u ON u.id = o.user_id"
        ),
        target: (
            "SELECT CAST(date_trunc('month', ordered_on) AS date) AS month, sum(amount) AS sales "
            f"FROM {_JOINED} GROUP BY 1"
        ),
    }
    return hands_in(
        analysis=submitted("analysis", intent=intent, ambiguities=[], assumptions=[]),
        sql=by_node(sql),
        test_cases=submitted("test_cases", cases=[]),
    )


def run(data_dir: Path, *, drafts: int = 20) -> KilledDrafts:
    """Begin so many drafts at once, and kill workers while they are made."""
    with synthetic_database(data_dir, _NAME, 0, SHOP) as shop, OpenAiServer() as model:
        settings = {
            "DATA_DIR": str(data_dir),
            "DATABASE_URL": shop,
            "OPENAI_API_KEY": "test",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_MODEL": "scripted",
            "ETL_DBT": "none",
            "LLM_MAX_RETRIES": "0",
            "MAX_STREAMS": "64",
            "RUN_LEASE_S": "2",
            "AUDIT_LOG": "off",
        }
        deadly = _DeadlyModel()
        model.default = deadly
        first_log, second_log = (data_dir / f"{_NAME}_{number}.log" for number in (1, 2))
        with (
            serving_afresh(first_log, **settings) as first,
            serving_afresh(second_log, **settings) as second,
        ):
            deadly.victim = first
            return _killed(first, second, deadly, drafts)


def _killed(first: Citu, second: Citu, deadly: _DeadlyModel, drafts: int) -> KilledDrafts:
    found = KilledDrafts(drafts)
    with ThreadPoolExecutor(drafts) as clients:
        runs = list(clients.map(lambda mark: _begun(first, mark), range(drafts)))
        waiting = list(clients.map(lambda run_id: _stopped(second, run_id), runs))
    deadly.kill("waiting")
    with ThreadPoolExecutor(ANSWERS) as clients:
        for run_id, view in zip(runs, waiting, strict=True):
            if view.get("waiting_for"):
                taken = _answered(clients, (first, second), run_id, view["waiting_for"])
                found.accepted.append(taken)
    for mark, run_id in enumerate(runs):
        ended = _ended(second, run_id)
        found.statuses.append(str(ended.get("status")))
        path = ended.get("execution_path")
        if path != _PATH or ended.get("status") != "proven":
            found.lost.append(f"{mark}: {ended.get('status')} {path} {ended.get('warnings')}")
        found.again += _asked_again(mark, deadly.asked[mark])
    found.kills = deadly.kills
    return found


def _begun(citu: Citu, mark: int) -> str:
    body = {
        "agent": "etl",
        "lang": "en",
        "question": f"how do we fare m{mark}m month after month with what the clients bring in",
        "options": {"mutants": False},
    }
    key = uuid.uuid4().hex

    def begin() -> str | None:
        try:
            status, envelope = post_json(
                citu.port, "/api/v0/runs", body, **{"Idempotency-Key": key}
            )
        except (OSError, HTTPException):
            return None  # its worker was killed; the same key begins nothing twice
        return str(envelope["data"]["run_id"]) if status in (200, 202) else None

    return eventually(begin, _PATIENCE_S)


def _stopped(citu: Citu, run_id: str) -> Mapping[str, Any]:
    """Return the run once it waits for its user or has ended."""

    def view() -> dict[str, Any] | None:
        _, envelope = get_json(citu.port, f"/api/v0/runs/{run_id}")
        data: dict[str, Any] = envelope["data"]
        return data if data.get("waiting_for") or data.get("result") else None

    return eventually(view, _PATIENCE_S)


def _ended(citu: Citu, run_id: str) -> Mapping[str, Any]:
    def result() -> dict[str, Any] | None:
        _, envelope = get_json(citu.port, f"/api/v0/runs/{run_id}")
        data: dict[str, Any] = envelope["data"]
        result = data.get("result")
        return dict(result["data"]) if result else None

    return eventually(result, _PATIENCE_S)


def _answered(
    clients: ThreadPoolExecutor, services: Sequence[Citu], run_id: str, asked: Mapping[str, Any]
) -> int:
    """Return how many of the equal answers, sent to both services at once, were taken."""
    body = {"interrupt_id": asked["interrupt_id"], "answer": {"rating": "satisfied"}}

    def answer(number: int) -> int:
        citu = services[number % len(services)]
        path = f"/api/v0/runs/{run_id}/resume"

        def sent() -> int | None:
            try:
                return post_json(citu.port, path, body)[0]
            except (OSError, HTTPException):
                return None  # while a killed worker is replaced

        return eventually(sent, _PATIENCE_S)

    return sum(status == 202 for status in clients.map(answer, range(ANSWERS)))


def _asked_again(mark: int, asked: Sequence[str]) -> list[str]:
    """Return the roles that were asked although a later one had been asked before."""
    again = []
    latest = 0
    for role in asked:
        place = ROLES.index(role)
        if place < latest:
            again.append(f"{mark}: {role} after {ROLES[latest]}")
        latest = max(latest, place)
    return again
