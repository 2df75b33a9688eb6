"""Where the service may listen without keys; and keys and sizes over real sockets, with two
workers.
"""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from common.loopback import is_loopback
from serving.listen_address import OpenToOthers, refuse_strangers
from serving.worker import gunicorn_options
from tests.support.forking import run_forked
from tests.support.http_stream import post_json
from tests.support.live import (
    ROOT,
    children,
    clean_environment,
    eventually,
    serving,
    serving_by_gunicorn,
)
from unified_api import create_app

SENTENCE = "can be reached by others than this machine, and there are no API keys"
VALIDATE = "/api/v0/sql/validate"
GUNICORN = ["-m", "gunicorn", "-c", "gunicorn.conf.py", "unified_api:app"]
# Seconds for a program to start and end, which on a busy machine may take a minute.
PATIENT_S = 240


@contextmanager
def bound(address: str) -> Iterator[socket.socket]:
    """A socket that has the address and that nobody can connect to: it does not listen."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as found:
        found.bind((address, 0))
        yield found


@pytest.mark.parametrize(
    ("address", "is_ours"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_without_keys_only_loopback_is_listened_on(
    tmp_path: Path, address: str, is_ours: bool
) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    with bound("127.0.0.1") as first, bound(address) as second:
        if is_ours:
            refuse_strangers([first, second], keys=keys, is_open=False)
        else:
            with pytest.raises(OpenToOthers, match=SENTENCE):
                refuse_strangers([first, second], keys=keys, is_open=False)
        refuse_strangers([second], keys=keys, is_open=True)
        _text, key = keys.create("alice")
        keys.revoke(key.key_id)
        refuse_strangers([second], keys=keys, is_open=False)


def test_a_unix_socket_is_this_machines(tmp_path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as unix:
        unix.bind(str(tmp_path / "socket"))
        refuse_strangers([unix], keys=KeyFile(tmp_path / "keys.json"), is_open=False)


@pytest.mark.parametrize(
    "address", ["", "localhost", "10.0.0.1", "128.0.0.1", "::2", "::ffff:10.0.0.1", "127.0.0.1.x"]
)
def test_what_is_no_loopback_address(address: str) -> None:
    assert not is_loopback(address)


def test_a_worker_looks_again(tmp_path: Path) -> None:
    """For addresses that a reload brings, and keys that have gone since the master started."""

    class Worker:
        def __init__(self, listening: socket.socket) -> None:
            self.sockets = [listening]
            self.wsgi = create_app(Settings(data_dir=str(tmp_path), audit_log="off"))

    begin: Any = gunicorn_options(1)["post_worker_init"]
    with bound("0.0.0.0") as everywhere, pytest.raises(SystemExit) as ended:
        begin(Worker(everywhere))
    assert ended.value.code == 3  # with 3, gunicorn ends its master too


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        (["unified_api.py"], {"HOST": "0.0.0.0"}),
        (GUNICORN, {"HOST": "0.0.0.0"}),
        ([*GUNICORN, "-b", "0.0.0.0:{port}"], {}),
    ],
    ids=["python", "gunicorn", "gunicorn -b"],
)
def test_the_service_does_not_start_where_anybody_could_ask(
    tmp_path: Path, command: list[str], environment: dict[str, str]
) -> None:
    environment = clean_environment({"DATA_DIR": str(tmp_path), **environment})
    words = [word.format(port=environment["PORT"]) for word in command]
    done = run_forked(words, ROOT, environment, PATIENT_S)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Citu can't start. The address 0.0.0.0 {SENTENCE}")
    assert "python -m api.keys create" in line
    assert "ALLOW_ANONYMOUS=true" in line


def test_gunicorn_too_says_which_setting_is_wrong() -> None:
    environment = clean_environment({"RATE_LIMIT": "often"})
    done = run_forked(GUNICORN, ROOT, environment, PATIENT_S)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Citu can't start. RATE_LIMIT='often' is not valid: give for example 60/minute"
    )
    assert len(done.stderr.splitlines()) == 1


def test_the_banner_says_that_everybody_may_ask(tmp_path: Path, demo_url: str) -> None:
    settings: dict[str, Any] = {
        "DATABASE_URL": demo_url,
        "APP_DATABASE_URL": demo_url,
        "DATA_DIR": str(tmp_path),
    }
    with serving(tmp_path / "log", ALLOW_ANONYMOUS="true", **settings) as citu:
        assert citu.process.stdout is not None
        assert "everybody who can connect may ask" in citu.process.stdout.readline()


def test_two_workers_know_keys_at_once_and_refuse_what_is_too_large(
    tmp_path: Path, demo_url: str
) -> None:
    """The test holds one worker, so that the other one answers."""
    configuration = tmp_path / "two.conf.py"
    configuration.write_text((ROOT / "gunicorn.conf.py").read_text() + "\nworkers = 2\n")
    settings: dict[str, Any] = {
        "DATABASE_URL": demo_url,
        "APP_DATABASE_URL": demo_url,
        "DATA_DIR": str(tmp_path),
    }
    keys = KeyFile(tmp_path / "api_keys.json")
    with serving_by_gunicorn(configuration, tmp_path / "log", **settings) as citu:
        workers = eventually(
            lambda: found if len(found := children(citu.process.pid)) == 2 else None, 60
        )

        def statuses(text: str | None) -> list[int]:
            headers = {"Authorization": f"Bearer {text}"} if text else {}
            found = []
            for held in workers:
                os.kill(held, signal.SIGSTOP)
                try:
                    found.append(post_json(citu.port, VALIDATE, {}, **headers)[0])
                finally:
                    os.kill(held, signal.SIGCONT)
            return found

        assert statuses(None) == [400, 400]
        text, key = keys.create("alice")
        assert statuses(None) == [401, 401]
        assert statuses(text) == [400, 400]
        assert (
            _raw(
                citu.port,
                b"Host: localhost\r\nX-API-Key: " + text.encode() + b"\r\nX: " + b"x" * 100_000,
            )
            == b"431"
        )
        chunked = b"Host: localhost\r\nTransfer-Encoding: chunked\r\nX-API-Key: " + text.encode()
        assert _raw(citu.port, chunked, b"20000\r\n" + b"x" * 0x20000 + b"\r\n0\r\n\r\n") == b"400"
        assert _raw(citu.port, chunked, b"2\r\n{}\r\n0\r\n\r\n") == b"400"
        keys.revoke(key.key_id)
        assert statuses(text) == [401, 401]
    log = (tmp_path / "log").read_text()
    assert '"status":401' in log
    assert text[9:] not in log


def _raw(port: int, headers: bytes, body: bytes = b"") -> bytes:
    """The status of a POST of any framing."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(
            b"POST "
            + VALIDATE.encode()
            + b" HTTP/1.1\r\nConnection: close\r\n"
            + headers
            + b"\r\n\r\n"
            + body
        )
        return client.makefile("rb").readline().split()[1]
