"""Checks the machine: the version of Python, the ports, and what has to be reached."""

import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from common.check_report import CheckResult, failed, passed, warned
from common.text import Text
from serving.listen_address import PortUnavailable, listen

_TRIED_PYTHON = ((3, 11), (3, 13))
_ANSWER_S = 2.0
_CONNECT_S = 5.0
_MOST_READ = 1_000_000  # bytes of an answer
_PORTS = {"https": 443}  # others: 80


def python_version(version: tuple[int, int] = sys.version_info[:2]) -> CheckResult:
    """Say whether Citu was tried with this version of Python."""
    name = f"{version[0]}.{version[1]}"
    first, last = _TRIED_PYTHON
    oldest, newest = (".".join(map(str, version)) for version in _TRIED_PYTHON)
    if first <= version <= last:
        return passed("versions.python", Text(f"Python {name}。", f"Python {name}."))

    return warned(
        "versions.python",
        Text(f"没有在 Python {name} 上试过。", f"Python {name} was not tried."),
        Text(f"使用 {oldest} 到 {newest}。", f"Use {oldest} to {newest}."),
    )


def port_state(host: str, port: int) -> CheckResult:
    """Say whether PORT is free, or Citu answers there already."""
    return _port("machine.port", host, port, ("HOST", "PORT"), "/health", b'"alive"')


def metrics_port_state(host: str, port: int) -> CheckResult:
    """Say the same of METRICS_PORT."""
    names = ("METRICS_HOST", "METRICS_PORT")
    return _port("machine.metrics_port", host, port, names, "/metrics", b"citu_")


def _port(
    check: str, host: str, port: int, names: tuple[str, str], path: str, sign: bytes
) -> CheckResult:
    try:
        with closing(listen(host, port, names)):
            return passed(check, Text(f"端口 {port} 空闲。", f"Port {port} is free."))
    except PortUnavailable as error:
        with closing(HTTPConnection(host, port, timeout=_ANSWER_S)) as connection:
            if _answers(connection, path, sign):
                message = Text(
                    f"Citu 已在端口 {port} 上回答。", f"Citu answers on port {port} already."
                )
                return passed(check, message)

        message = Text(f"不能在 {host}:{port} 监听。", f"{host}:{port} can't be listened on.")
        advice = Text(f"{error}（{names[1]}、{names[0]}）", str(error))
        return failed(check, message, advice)


def address_state(check: str, setting: str, url: str) -> Iterator[CheckResult]:
    """Find that nothing takes connections at the address that a setting names; empty: none does."""
    parts = urlsplit(url)
    if not parts.hostname:
        return

    port = parts.port or _PORTS.get(parts.scheme, 80)
    try:
        socket.create_connection((parts.hostname, port), _CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = Text(
            f"{setting} 无法连接（{parts.hostname}:{port}）：{reason}。",
            f"{setting} can't be reached at {parts.hostname}:{port}: {reason}.",
        )
        advice = Text(
            f"检查 {setting}、防火墙和对方的服务。",
            f"Check {setting}, firewalls between, and the service there.",
        )
        yield warned(check, message, advice)


def citu_answers(connection: HTTPConnection, path: str = "") -> bool:
    """Tell whether Citu answers over a connection, below a path."""
    return _answers(connection, f"{path}/health", b'"alive"')


def _answers(connection: HTTPConnection, path: str, sign: bytes) -> bool:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status == 200 and sign in answer.read(_MOST_READ)
    except (OSError, HTTPException):
        return False
