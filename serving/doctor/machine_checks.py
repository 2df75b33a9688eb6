"""Checks the machine: versions, the port, room on the disk, who may read files with secrets."""

import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from common.check_report import CheckResult, failed, passed, warned
from common.text import Text
from serving.listen_address import PortUnavailable, listen

_TRIED_PYTHON = ((3, 11), (3, 13))
_LITTLE_BYTES = 1_000_000_000
_TOO_LITTLE_BYTES = 100_000_000
_ANSWER_S = 2.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


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
    """Say whether the port is free, or Citu answers there already."""
    try:
        with closing(listen(host, port)):
            said = Text(f"端口 {port} 空闲。", f"Port {port} is free.")
            return passed("machine.port", said)
    except PortUnavailable as error:
        if _answers(host, port):
            said = Text(f"Citu 已在端口 {port} 上回答。", f"Citu answers on port {port} already.")
            return passed("machine.port", said)

        said = Text(f"不能在 {host}:{port} 监听。", f"{host}:{port} can't be listened on.")
        return failed("machine.port", said, Text(f"{error}（PORT、HOST）", str(error)))


def _answers(host: str, port: int) -> bool:
    with closing(HTTPConnection(host, port, timeout=_ANSWER_S)) as connection:
        return citu_answers(connection)


def citu_answers(connection: HTTPConnection, path: str = "") -> bool:
    """Tell whether Citu answers over a connection, below a path."""
    try:
        connection.request("GET", f"{path}/health")
        answer = connection.getresponse()
        return answer.status == 200 and b'"alive"' in answer.read(1000)
    except (OSError, HTTPException):
        return False


def room_for(folder: Path) -> CheckResult:
    """Say whether the disk of a folder, which need not exist, has room."""
    existing = folder
    while not existing.exists():
        existing = existing.parent

    return room_of(folder, shutil.disk_usage(existing).free)


def room_of(folder: Path, free: int) -> CheckResult:
    """Judge the free bytes of the disk of `folder`."""
    megabytes = free // 1_000_000
    said = Text(
        f"{folder} 所在磁盘剩余 {megabytes} MB。", f"The disk of {folder} has {megabytes} MB left."
    )
    advice = Text(
        "腾出空间，或用 DATA_DIR 换一个磁盘。", "Make room, or move DATA_DIR to another disk."
    )
    if free < _TOO_LITTLE_BYTES:
        return failed("machine.disk", said, advice)
    if free < _LITTLE_BYTES:
        return warned("machine.disk", said, advice)

    return passed("machine.disk", said)


def file_rights(paths: Iterable[Path]) -> Iterator[CheckResult]:
    """Find files with secrets that others than their owner may read or write."""
    for path in paths:
        if path.is_file() and path.stat().st_mode & _OTHERS:
            yield warned(
                "files.rights",
                Text(
                    f"{path} 可被其他用户访问。", f"{path} is open to other users of this machine."
                ),
                Text(f"执行 chmod 600 {path}", f"Run chmod 600 {path}"),
            )
