"""The service as a process: what it says at its start, or why it can't, and what it leaves."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg2.extensions import parse_dsn

from tests.support.forking import run_forked
from tests.support.http_stream import Stream, get_json, post_json
from tests.support.live import (
    ROOT,
    Citu,
    clean_environment,
    eventually,
    free_port,
    is_alive,
    serving,
    serving_afresh,
)

SHOPS = {"question": "店铺有多少家"}
# Seconds for a program to start and end, which on a busy machine may take a minute.
PATIENT_S = 240


@pytest.fixture(scope="module")
def citu_without_model(demo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Citu]:
    with serving(tmp_path_factory.mktemp("plain") / "log", DATABASE_URL=demo_url) as citu:
        yield citu


def test_importing_starts_nothing() -> None:
    script = (
        "import socket, subprocess, sys, threading\n"
        "def refuse(*args, **kwargs): raise SystemExit('something was started')\n"
        "socket.socket.connect = subprocess.Popen.__init__ = threading.Thread.start = refuse\n"
        "import psycopg2\n"
        "psycopg2.connect = refuse\n"
        "import unified_api\n"
        "print(threading.active_count(), 'prometheus_client' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENT_S
    )
    assert (done.returncode, done.stdout.strip()) == (0, "1 False"), done.stderr


def test_the_banner_says_where_and_on_what(demo_url: str, tmp_path: Path) -> None:
    with _few_descriptors(), serving_afresh(tmp_path / "log", DATABASE_URL=demo_url) as citu:
        address, runs_on, try_it = citu.banner
        assert f"http://127.0.0.1:{citu.port}" in address
        assert "offline rules" in runs_on
        assert f"asks {parse_dsn(demo_url)['dbname']} at {parse_dsn(demo_url)['host']};" in runs_on
        assert "curl" in try_it
        status, health = get_json(citu.port, "/health")
        assert (status, health["data"]["status"]) == (200, "ok")
        status, _ = get_json(citu.port, "/metrics")
        assert status == 404
        status, ready = get_json(citu.port, "/ready")
        store = {"status": "ok", "name": "postgresql"}
        absent = {"status": "not_configured"}
        checks = {
            "database": {"status": "ok", "engine": ready["data"]["database"]["engine"]},
            "store": store,
            "model": absent,
            "semantic_file": absent,
        }
        checks |= {"row_context": absent, "row_rules": absent}
        assert (status, ready["data"]) == (200, checks)
        limits = (
            Path(f"/proc/{citu.worker()}/limits").read_text().partition("Max open files")[2].split()
        )
        assert limits[0] == limits[1], "the worker may open what the system lets it"


@pytest.mark.parametrize(("characters", "code"), [(2000, 200), (9000, 414)])
def test_a_long_address_is_read_or_refused_like_anything_else(
    citu_without_model: Citu, characters: int, code: int
) -> None:
    """2,000 characters are 6,000 bytes where they are Chinese."""
    text = "q=" + "a" * 50 + "%E5%BA%97" * (characters // 3)
    status, envelope = get_json(citu_without_model.port, f"/api/v0/schema/search?{text}")
    assert (status, envelope["code"], envelope["success"]) == (code, code, code == 200)
    if code == 414:
        assert envelope["data"]["error_type"] == "uri_too_long"
        assert get_json(citu_without_model.port, "/health")[0] == 200


@contextmanager
def _few_descriptors() -> Iterator[None]:
    """Programs started inside begin with the limit most systems give."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_frames_arrive_one_by_one_and_the_end_equals_the_sync_answer(
    citu_without_model: Citu,
) -> None:
    port = citu_without_model.port
    question = {"question": "查询各服务区的营业收入排行"}
    with Stream(port, "/api/v0/ask_agent_stream", question) as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-cache, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.next_block() == "retry: 3000"
        events = list(stream.events())
    status, answer = post_json(port, "/api/v0/ask_agent", question)
    assert status == 200
    assert events[-1]["data"]["query_result"] == answer["data"]["query_result"]
    assert answer["data"]["query_result"]["row_count"] > 10


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"PORT": "no"}, "PORT='no' is not valid: give a port between 1 and 65535."),
        ({"HOST": "203.0.113.7"}, "HOST=203.0.113.7 is not an address of this machine"),
        (
            {"DATABASE_URL": "postgresql://nobody:secret@127.0.0.1:1/none"},
            "DATABASE_URL does not lead to a database",
        ),
        ({"DATABASE_URL": "nonsense"}, "DATABASE_URL is not a URL such as"),
        ({"DATABASE_URL": "mysql://a:secret@localhost/b"}, "Citu asks PostgreSQL only"),
        (
            {"DATABASE_URL": "postgresql://a:%zzsecret@localhost/b"},
            "DATABASE_URL is not a URL such as",
        ),
        ({"DATABASE_URL": "postgresql://a:half@secret@localhost/b"}, "an @ as %40"),
        ({"APP_DATABASE_URL": "secret"}, "APP_DATABASE_URL is not a URL such as"),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "localhost:1/v1"},
            "OPENAI_BASE_URL is not a URL such as",
        ),
        ({"REDIS_URL": "localhost"}, "REDIS_URL is not a URL such as"),
        ({"DATA_DIR": "/proc/citu"}, "/proc/citu"),
        (
            {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_DEPLOYMENT": "d"},
            "AZURE_OPENAI_ENDPOINT is missing",
        ),
    ],
)
def test_what_keeps_it_from_starting_is_one_sentence(
    environment: dict[str, str], says: str
) -> None:
    done = run_forked(["unified_api.py"], ROOT, clean_environment(environment), PATIENT_S)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""


def test_a_busy_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_forked(["unified_api.py"], ROOT, clean_environment({"PORT": port}), PATIENT_S)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Citu can't start. Port {port} on 127.0.0.1 is in use")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_while_it_loads_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-v", "unified_api.py"],  # -v tells what is being imported
        cwd=ROOT,
        env=clean_environment({"PORT": str(free_port()), "DATA_DIR": str(tmp_path)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("import 'flask"):
                break
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == -signal.SIGINT


def test_a_closed_terminal_ends_it(demo_url: str, tmp_path: Path) -> None:
    with serving(tmp_path / "log", DATABASE_URL=demo_url) as citu:
        worker = citu.worker()
        citu.signal(signal.SIGHUP)
        assert citu.process.wait(60) == 0
        eventually(lambda: not is_alive(worker))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder every account may enter: as root, the embedded server runs as another one, and
    elsewhere if it can't.
    """
    folder = Path(tempfile.mkdtemp(prefix="citu test 数据 "))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_the_embedded_server_is_started_again_and_ctrl_c_leaves_no_process_behind(
    open_folder: Path, tmp_path: Path
) -> None:
    data_dir = open_folder / "data dir"
    with serving(tmp_path / "log", DATA_DIR=str(data_dir)) as citu:
        assert _processes_about(data_dir), "the embedded server runs"
        worker = citu.worker()
        _, before = post_json(citu.port, "/api/v0/ask_agent", SHOPS)
        (pid_file,) = open_folder.rglob("postmaster.pid")
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
        after = _answered(citu.port)
        assert after["data"]["query_result"] == before["data"]["query_result"]
        assert citu.worker() == worker
    assert citu.process.returncode == 0
    assert _processes_about(data_dir) == []


def _answered(port: int) -> dict[str, Any]:
    """The answer, when the server is back: a question that is asked while it dies is refused as
    worth another try.
    """
    for _ in range(20):
        status, answer = post_json(port, "/api/v0/ask_agent", SHOPS)
        if status == 200:
            return answer
        error_type, is_retryable = answer["data"]["error_type"], answer["data"]["retryable"]
        assert (
            error_type in ("database_unavailable", "store_unavailable") and is_retryable
        )  # it keeps the runs, too
    raise AssertionError("the database did not come back")


def _processes_about(folder: Path) -> list[str]:
    """Command lines that name `folder`, of whatever process."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            lines.append(line)
    return lines


def test_errors_are_envelopes_everywhere(citu_without_model: Citu) -> None:
    for path, expected in (("/nowhere", 404), ("/api/v0/ask_agent", 405)):
        status, envelope = get_json(citu_without_model.port, path)
        assert (status, envelope["code"], envelope["success"]) == (expected, expected, False)
        assert envelope["data"]["type"] == "error"
    lines = citu_without_model.log.read_text().splitlines()
    assert [line for line in lines if not line.startswith("{")] == []
    log = [json.loads(line) for line in lines]
    assert {line["path"] for line in log if line["message"] == "request"} >= {
        "/nowhere",
        "/api/v0/ask_agent",
    }


@pytest.mark.parametrize(
    "body", [b"zz\r\n{}\r\n", b"2\r\n{}XX0\r\n\r\n", b'9\r\n{"ques', b""], ids=repr
)
def test_a_body_in_broken_chunks_is_the_clients_mistake(
    body: bytes, citu_without_model: Citu
) -> None:
    """Also where nobody reads it: a refusal looks into the body for its language."""
    for method, path, expected in (
        ("POST", "/api/v0/ask_agent", 400),
        ("POST", "/api/v0/runs/run_1/cancel", 400),
        ("POST", "/nowhere", 404),
        ("PUT", "/api/v0/ask_agent", 405),
    ):
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            "Connection: close\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", citu_without_model.port), 10) as client:
            client.sendall(head.encode() + body)
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n\r\n")[2]
        envelope = json.loads(answer)
        assert (envelope["code"], envelope["data"]["type"]) == (expected, "error")
        assert envelope["data"]["error_type"] == (
            "not_found" if expected == 404 else "invalid_request"
        )
