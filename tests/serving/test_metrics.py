"""Metrics of a service of two workers: they are what was asked, whoever answered it and whoever
was killed; and nothing in them comes from callers.
"""

import http.client
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.access.key_file import KeyFile
from common.metric_table import METRICS
from tests.support.http_stream import Stream, post_json
from tests.support.live import (
    GAUGES,
    ROOT,
    Citu,
    children,
    eventually,
    free_port,
    serving_by_gunicorn,
)
from tests.support.openai_replies import Gate, Reply
from tests.support.openai_server import OpenAiServer
from tests.support.questions import STREAM, SYNC, scripted
from tests.support.trace_collector import CollectedSpan, TraceCollector

CHAT = {"question": "hello canary_question", "routing_mode": "chat_direct"}
SQL = "/api/v0/sql/run"


@dataclass(frozen=True)
class Measured:
    """A service that measures, and the port of its metrics."""

    citu: Citu
    port: int
    data: Path

    def text(self) -> str:
        status, text = _get(self.port, "/metrics")
        assert status == 200
        return text

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name with these labels."""
        found = 0.0
        for family in text_string_to_metric_families(self.text()):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    found += sample.value
        return found


def _get(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with OpenAiServer(lambda request: Reply("hello")) as server:
        yield server


@pytest.fixture(scope="module")
def collector() -> Iterator[TraceCollector]:
    with TraceCollector() as collector:
        yield collector


@pytest.fixture(scope="module")
def measured(
    model: OpenAiServer,
    collector: TraceCollector,
    make_database: Callable[[str], str],
    make_app_database: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Measured]:
    folder = tmp_path_factory.mktemp("measured")
    port = free_port()
    settings = {
        "DATABASE_URL": make_database(GAUGES + "CREATE TABLE canary_table (n integer);"),
        # Of its own: runs that other tests left behind in a shared one would be counted here.
        "APP_DATABASE_URL": make_app_database(),
        "DATA_DIR": str(folder),
        "METRICS": "true",
        "METRICS_PORT": str(port),
        "OPERATOR_GROUPS": "operators",
        "RUN_LEASE_S": "3",
        "TRACES": "true",
        "TRACE_STATEMENTS": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with serving_by_gunicorn(
        ROOT / "gunicorn.conf.py", folder / "log", model=model, workers="2", **settings
    ) as citu:
        yield Measured(citu, port, folder)


def _ended(measured: Measured) -> dict[tuple[str, str], float]:
    """The questions that ended, by outcome and type of error."""
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(measured.text()):
        for sample in family.samples:
            if sample.name == "citu_questions_total":
                key = sample.labels["outcome"], sample.labels["error_type"]
                found[key] = found.get(key, 0) + sample.value
    return found


def _asked_whole(port: int, path: str, body: Mapping[str, Any]) -> str:
    """The stream's last block."""
    last = ""
    with Stream(port, path, body) as stream:
        while block := stream.next_block():
            last = block
    return last


def test_metrics_are_what_was_asked(measured: Measured, model: OpenAiServer) -> None:
    port = measured.citu.port
    for _ in range(6):
        assert post_json(port, SYNC, {**CHAT, "user_id": "canary_user"})[0] == 200
        assert "completed" in _asked_whole(port, STREAM, CHAT)
    with scripted(model, Reply("```sql\nDELETE FROM canary_table\n```")):
        body = {"question": "canary_question", "routing_mode": "database_direct"}
        assert post_json(port, SYNC, body)[1]["data"]["error_type"] == "forbidden_keywords"
    for _ in range(3):
        assert post_json(port, SQL, {"sql": "SELECT n FROM gauge"})[0] == 200
    assert post_json(port, SQL, {"sql": "DELETE FROM canary_table"})[0] != 200
    assert _get(port, "/canary_path")[0] == 404

    assert _ended(measured) == {("completed", "none"): 12, ("error", "forbidden_keywords"): 1}
    assert measured.value("citu_questions_total", agent="ask") == 13
    assert measured.value("citu_node_duration_seconds_count", node="agent_chat") == 12
    assert measured.value("citu_stream_duration_seconds_count") == 6
    assert measured.value("citu_streams_open") == 0
    lines = _audit_lines(measured.data)
    executed = [line for line in lines if line["verdict"] == "executed"]
    refused = [line for line in lines if line["verdict"] == "refused"]
    assert measured.value("citu_sql_rows_count") == len(executed) == 3
    assert measured.value("citu_sql_rows_sum") == 9
    assert measured.value("citu_guard_refusals_total") == len(refused) > 0
    calls = measured.value(
        "gen_ai_client_operation_duration_seconds_count",
        operation="chat",
        provider="openai",
        model="scripted",
    )
    assert calls == len(model.requests)
    assert measured.value("citu_model_tokens_total", direction="output") > 0
    answered = {"route": SYNC, "method": "POST", "status": "200"}
    assert measured.value("http_server_request_duration_seconds_count", **answered) == 6
    unknown = {"route": "none", "method": "GET", "status": "404"}
    assert measured.value("http_server_request_duration_seconds_count", **unknown) == 1
    assert measured.value("db_client_operation_duration_seconds_count", operation="run") >= 3
    assert measured.value("citu_catalog_read_duration_seconds_count", outcome="done") >= 1
    assert measured.value("citu_store_write_duration_seconds_count", outcome="done") >= 1
    eventually(lambda: measured.value("citu_event_loop_lag_seconds_count") > 0)
    eventually(lambda: measured.value("db_client_connection_count", state="idle") > 0)


def test_a_trace_is_taken_from_the_caller_and_handed_on_to_the_model(
    measured: Measured, model: OpenAiServer, collector: TraceCollector
) -> None:
    trace_id, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    question = {"question": "which gauges? canary_question", "routing_mode": "database_direct"}
    sql = "SELECT n FROM gauge WHERE name = 'gauge 2' OR name = 'canary_literal'"
    unkept_id = "0af7651916cd43dd8448eb211c80319c"
    unkept = {"traceparent": f"00-{unkept_id}-{caller}-00"}
    assert post_json(measured.citu.port, SYNC, CHAT, **unkept)[0] == 200
    with scripted(model, *map(Reply, ("SELECT nowhere FROM gauge", sql, "Two."))):
        headers = {"traceparent": f"00-{trace_id}-{caller}-01"}
        with Stream(measured.citu.port, STREAM, question, **headers) as stream:
            assert list(stream.events())[-1]["data"]["type"] == "completed"

    def told() -> dict[str, CollectedSpan]:
        spans = collector.of_trace(trace_id)
        return spans if f"POST {STREAM}" in spans and "run ask" in spans else {}

    spans = eventually(told)
    assert spans[f"POST {STREAM}"].parent_id == caller
    assert spans["run ask"].parent_id == spans[f"POST {STREAM}"].span_id
    steps = {name: spans[name] for name in ("agent_sql_generation", "agent_sql_execution")}
    assert {step.parent_id for step in steps.values()} == {spans["run ask"].span_id}
    assert spans["explain"].parent_id == steps["agent_sql_generation"].span_id
    failed = [span for span in collector.spans if span.failed and span.trace_id == trace_id]
    assert {span.name: span.attributes["error.type"] for span in failed} == {
        "explain": "syntax_error"
    }
    assert spans["run"].parent_id == steps["agent_sql_execution"].span_id
    assert spans["run"].attributes["db.system.name"] == "postgresql"
    assert spans["run"].attributes["db.response.returned_rows"] == 1
    assert "name = $1 OR name = $2" in spans["run"].attributes["db.query.text"]
    assert spans["chat scripted"].attributes["gen_ai.request.model"] == "scripted"
    assert spans["chat scripted"].attributes["gen_ai.usage.output_tokens"] > 0
    sent = model.requests[-1].headers["traceparent"]
    assert sent.startswith(f"00-{trace_id}-")
    assert "canary" not in str(list(spans.values()))
    assert collector.of_trace(unkept_id) == {}


def test_a_rating_is_counted(measured: Measured) -> None:
    _, answer = post_json(measured.citu.port, SYNC, CHAT)
    rating = {"run_id": answer["data"]["run_id"], "rating": "satisfied"}
    assert post_json(measured.citu.port, "/api/v0/feedback", rating)[0] == 200
    assert measured.value("citu_feedback_total", verdict="satisfied") == 1


def test_metrics_hold_nothing_of_callers_and_all_of_the_table(measured: Measured) -> None:
    text = measured.text()
    assert "canary" not in text
    known = {spec.name.removesuffix("_total") for spec in METRICS}
    assert {family.name for family in text_string_to_metric_families(text)} <= known


def test_the_line_of_a_stream_says_how_long_it_was_and_how_it_ended(
    measured: Measured, model: OpenAiServer
) -> None:
    gate, port = Gate(), measured.citu.port
    before = sum(_ended(measured).values())
    assert "completed" in _asked_whole(port, STREAM, CHAT)
    # Its client has the last event before it is counted.
    eventually(lambda: sum(_ended(measured).values()) == before + 1)
    with scripted(model, Reply(pieces=["Hel", gate, "lo"])), Stream(port, STREAM, CHAT) as stream:
        assert gate.reached.wait(60)
        assert measured.value("citu_streams_open") == 1
        stream.close()
        # Only then may the model go on: a run that ends at once completes before it is cancelled.
        eventually(lambda: measured.value("citu_streams_open") == 0)
        gate.open()
    eventually(lambda: sum(_ended(measured).values()) == before + 2)

    def ends() -> set[str]:
        """How the streams ended, by the lines that are written by now."""
        return {line["ended"] for line in _access_lines(measured.data) if line["path"] == STREAM}

    eventually(lambda: "completed" in ends())
    eventually(lambda: not ends().isdisjoint(("client_left", "cancelled")))


@pytest.mark.slow
def test_what_a_killed_worker_held_is_gone_and_what_it_counted_stays(
    measured: Measured, model: OpenAiServer
) -> None:
    before = _ended(measured)
    gate, port = Gate(), measured.citu.port
    with scripted(model, *[Reply(pieces=["Hel", gate, "lo"])] * 3):
        streams = [Stream(port, STREAM, CHAT) for _ in range(3)]
        assert measured.value("citu_streams_open") == 3
        for stream in streams:
            while "data:" not in stream.next_block():
                pass  # of a run that is not kept yet, nobody would know
        for worker in children(measured.citu.process.pid):
            os.kill(worker, signal.SIGKILL)
        for stream in streams:
            stream.close()
        gate.open()
        eventually(lambda: _can_connect(measured) and measured.value("citu_streams_open") == 0)
    lost = ("error", "internal_error")  # by whichever worker notices it
    eventually(lambda: _ended(measured).get(lost) == 3)
    assert _ended(measured) == {**before, lost: 3}


def test_the_public_port_shows_metrics_to_operators_only(measured: Measured) -> None:
    port = measured.citu.port
    assert _get(port, "/metrics")[0] == 200  # without keys, who sits at the machine operates it
    keys = KeyFile(measured.data / "api_keys.json")
    operator, _ = keys.create("olga", groups=("operators",))
    other, _ = keys.create("alice", groups=("clerks",))
    assert _get(port, "/metrics")[0] == 401
    assert _get(port, "/metrics", **{"X-API-Key": other})[0] == 403
    status, text = _get(port, "/metrics", **{"X-API-Key": operator})
    assert (status, "http_server_request_duration_seconds" in text) == (200, True)
    assert _get(measured.port, "/api/v0/me")[0] == 404  # nothing else on the port without a key


def _can_connect(measured: Measured) -> bool:
    try:
        return _get(measured.port, "/metrics")[0] == 200
    except OSError:
        return False


def _audit_lines(data: Path) -> list[dict[str, Any]]:
    lines = (data / "logs/audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def _access_lines(data: Path) -> list[dict[str, Any]]:
    found = []
    for line in (data / "log").read_text().splitlines():
        if '"unified_api.access"' in line:
            found.append(json.loads(line))
    return found
