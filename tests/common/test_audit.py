"""The audit log: its line for each statement, and that its lines stay whole with many writers and
failures.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app_config import Settings
from common.actor import Actor
from common.audit import AuditLog, Occasion, StatementOutcome
from tests.support.asking import Asking
from tests.support.live import ROOT
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

OCCASION = Occasion("ask", "run_1", Actor("张三"), "c-1", "有多少家店铺")
EXECUTED = StatementOutcome("executed", 1.5, rows=3, is_limited=False)
ASKED = {
    "question": "店铺有多少家",
    "routing_mode": "database_direct",
    "user_id": "张三",
    "conversation_id": "c-9",
}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _all_lines(path: Path) -> list[dict[str, Any]]:
    return [
        line
        for file in path.parent.glob("audit.jsonl*")
        if file.suffix != ".lock"
        for line in _lines(file)
    ]


# ------------------------------------------------------------------------------
# what it says


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "audit.jsonl"


def _audited(
    demo_url: str, path: Path, model: OpenAiServer, *replies: Reply, **changes: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    settings = Settings(database_url=demo_url, audit_log=str(path), llm_max_retries=0)
    with Asking(settings, model, **changes) as asking:
        _, answer = asking.sync(ASKED, *replies)
    return answer["data"], _lines(path) if path.exists() else []


def test_an_executed_statement(demo_url: str, path: Path, model: OpenAiServer) -> None:
    sql = "SELECT shop_id FROM shop ORDER BY shop_id LIMIT 7"
    data, (line,) = _audited(demo_url, path, model, Reply(sql), Reply("x"), max_rows=5)
    assert line.pop("ms") > 0
    assert line.pop("time").endswith("+00:00")
    assert line.pop("request_id").startswith("req_")
    assert line == {
        "source": "ask",
        "user_id": "张三",
        "groups": [],
        "conversation_id": "c-9",
        "run_id": data["run_id"],
        "question": "店铺有多少家",
        "database": "default",
        "sql": sql,
        "verdict": "executed",
        "error_type": None,
        "rows": 5,
        "is_limited": True,
    }


@pytest.mark.parametrize(
    ("replies", "settings", "verdicts"),
    [
        (["DELETE FROM shop"], {}, ["refused forbidden_keywords"]),
        (["SELECT pg_read_file('x')"], {}, ["refused forbidden_object"]),
        (["SELECT nope FROM shop"], {"enable_auto_repair": False}, ["refused syntax_error"]),
        (["SELECT nope FROM shop", "SELECT 1 AS n"], {}, ["refused syntax_error", "executed None"]),
        (["SELECT 1 / (count(*) - count(*)) FROM shop"], {}, ["failed syntax_error"]),
        (
            ["SELECT count(*) FROM generate_series(1, 1e10)"],
            {"statement_timeout_s": 0.2},
            ["failed query_timeout"],
        ),
        (["SELECT shop_id FROM shop"], {"max_plan_rows": 1}, ["refused cost_exceeded"]),
        (["DELETE FROM shop"], {"enable_syntax_validation": False}, ["refused forbidden_keywords"]),
        (
            ["DELETE FROM shop"],
            {"enable_syntax_validation": False, "enable_forbidden_check": False},
            ["refused forbidden_keywords"],
        ),
        (
            ["SELECT count(*) FROM shop WHERE category = '餐饮业'"],
            {},
            ["executed None", "executed None"],
        ),
    ],
)
def test_verdicts(
    demo_url: str,
    path: Path,
    model: OpenAiServer,
    replies: list[str],
    settings: dict[str, Any],
    verdicts: list[str],
) -> None:
    _, lines = _audited(demo_url, path, model, *map(Reply, replies), **settings)
    assert [f"{line['verdict']} {line['error_type']}" for line in lines] == verdicts


def test_conversation_leaves_no_line(demo_url: str, path: Path, model: OpenAiServer) -> None:
    with Asking(Settings(database_url=demo_url, audit_log=str(path))) as asking:
        asking.sync({"question": "你好"})
    assert not path.exists()


def test_it_can_be_switched_off(demo_url: str, tmp_path: Path) -> None:
    with Asking(Settings(database_url=demo_url, audit_log="OFF", data_dir=str(tmp_path))) as asking:
        asking.sync({"question": "店铺有多少家"})
    assert list(tmp_path.iterdir()) == []


def test_it_lies_in_the_data_folder_for_its_owner_alone(demo_url: str, tmp_path: Path) -> None:
    with Asking(Settings(database_url=demo_url, data_dir=str(tmp_path)), audit_log="") as asking:
        asking.sync({"question": "店铺有多少家"})
    path = tmp_path / "logs" / "audit.jsonl"
    assert len(_lines(path)) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


# ------------------------------------------------------------------------------
# that it stays whole


@given(
    st.text(st.characters(codec=None), max_size=50), st.text(st.characters(codec=None), max_size=50)
)
def test_any_text_is_one_line(
    tmp_path_factory: pytest.TempPathFactory, sql: str, question: str
) -> None:
    path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    AuditLog(path).record(Occasion("ask", "r", question=question), sql, EXECUTED)
    data = path.read_bytes()
    assert data.count(b"\n") == 1
    assert json.loads(data)["sql"] == sql.encode("utf-8", "replace").decode()


def test_full_files_are_moved_and_the_oldest_dropped(path: Path) -> None:
    audit = AuditLog(path, max_bytes=2_000, kept=2)
    for number in range(40):
        audit.record(OCCASION, f"SELECT {number}", EXECUTED)
    files = sorted(file.name for file in path.parent.iterdir())
    assert files == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.lock"]
    kept = [line["sql"] for name in reversed(files[:3]) for line in _lines(path.parent / name)]
    assert kept == [f"SELECT {number}" for number in range(40 - len(kept), 40)]
    assert all(file.stat().st_size <= 2_000 for file in path.parent.iterdir())


def test_a_file_moved_by_somebody_else_is_left_behind(path: Path) -> None:
    audit = AuditLog(path)
    audit.record(OCCASION, "SELECT 1", EXECUTED)
    path.rename(path.with_name("audit-monday.jsonl"))
    audit.record(OCCASION, "SELECT 2", EXECUTED)
    assert [line["sql"] for line in _lines(path)] == ["SELECT 2"]


# Each of its arguments but the first, the log's path, is the name of a thread that writes.
WRITER = """
import sys
import threading
from pathlib import Path

from common.audit import AuditLog, Occasion, StatementOutcome

def write(writer):
    audit = AuditLog(Path(sys.argv[1]), max_bytes=20_000, kept=1_000)
    outcome = StatementOutcome("executed", 1.5, rows=3, is_limited=False)
    for number in range(300):
        audit.record(Occasion("ask", f"{writer}-{number}"), "x" * (number * 37 % 900), outcome)

threads = [threading.Thread(target=write, args=[writer]) for writer in sys.argv[2:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_processes_and_threads_share_a_file(path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    processes = [
        subprocess.Popen([*command, *writers], cwd=ROOT)
        for writers in (["0"], ["1", "2"], ["3", "4"])
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    runs = [line["run_id"] for line in _all_lines(path)]
    assert sorted(runs) == sorted(
        f"{writer}-{number}" for writer in range(5) for number in range(300)
    )
    assert len(list(path.parent.iterdir())) > 5, "it was moved many times meanwhile"


# ------------------------------------------------------------------------------
# what may fail


def test_a_log_that_can_not_be_written_is_reported_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.mkdir()
    audit = AuditLog(path)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            audit.record(OCCASION, "SELECT 1", EXECUTED)
        path.rmdir()
        audit.record(OCCASION, "SELECT 2", EXECUTED)
    assert [record.levelname for record in caplog.records] == ["CRITICAL", "WARNING"]
    assert str(path) not in caplog.text
    assert [line["sql"] for line in _lines(path)] == ["SELECT 2"]


def test_questions_are_answered_all_the_same(demo_url: str, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    with Asking(
        Settings(database_url=demo_url, audit_log=str(tmp_path / "logs/audit.jsonl"))
    ) as asking:
        code, answer = asking.sync({"question": "店铺有多少家"})
    assert (code, answer["data"]["query_result"]["row_count"]) == (200, 1)


def test_half_a_line_does_not_spoil_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = AuditLog(path)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))
    audit.record(OCCASION, "SELECT 1", EXECUTED)
    monkeypatch.undo()
    audit.record(OCCASION, "SELECT 2", EXECUTED)
    torn, whole = path.read_text("utf-8").splitlines()
    assert len(torn) == 10
    assert json.loads(whole)["sql"] == "SELECT 2"
