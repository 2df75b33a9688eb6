"""Checks what the service writes: its folder, its logs, room on their disks; and who may read its
secrets.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from api.access.key_file import KeyFile, KeysUnreadable
from common.check_report import CheckResult, failed, passed, warned
from common.text import Text

_LITTLE_BYTES = 1_000_000_000
_TOO_LITTLE_BYTES = 100_000_000
_FEWEST_FILES = 100
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def folder_state(folder: Path) -> Iterator[CheckResult]:
    """Say whether this user can write to DATA_DIR, which need not exist, and whether its disk has
    room.
    """
    obstacle = _obstacle(folder)
    if obstacle is not None:
        message = Text(
            f"不能写入 DATA_DIR：{obstacle.zh}", f"DATA_DIR can't be used: {obstacle.en}"
        )
        advice = Text(
            f"以服务的用户运行；把 {folder} 交给它（chown），或用 DATA_DIR 换一个目录。",
            f"Run as the service's user, give it {folder} (chown), or name another folder in "
            "DATA_DIR.",
        )
        yield failed("machine.folder", message, advice)
        return

    existing = _nearest(folder)
    yield passed("machine.folder", Text(f"可以写入 {folder}。", f"{folder} can be written to."))
    yield room_of(folder, shutil.disk_usage(existing).free)
    statistics = os.statvfs(existing)
    if statistics.f_files and statistics.f_favail < _FEWEST_FILES:
        message = Text(
            f"{folder} 所在磁盘不能再建文件（没有 inode）。",
            f"The disk of {folder} takes no more files: it has no inodes left.",
        )
        advice = Text(
            "删去小文件，或用 DATA_DIR 换一个磁盘。",
            "Remove small files, or move DATA_DIR to another disk.",
        )
        yield failed("machine.disk", message, advice)


def log_state(setting: str, path: Path) -> Iterator[CheckResult]:
    """Find what keeps a log from being written to the file that the setting names."""
    obstacle = _obstacle(path.parent)
    if obstacle is None and path.is_dir():
        obstacle = Text(f"{path} 是目录。", f"{path} is a folder.")
    if obstacle is None and path.exists() and not os.access(path, os.W_OK):
        obstacle = _not_writable(path)
    if obstacle is None:
        return

    message = Text(
        f"{setting} 不会写入：{obstacle.zh}", f"{setting} won't be written: {obstacle.en}"
    )
    advice = Text(
        f"把 {setting} 设为服务的用户能写的文件。",
        f"Let {setting} name a file that the service's user can write.",
    )
    yield failed("files.logs", message, advice)


def room_of(folder: Path, free: int) -> CheckResult:
    """Judge the free bytes of the disk of `folder`."""
    megabytes = free // 1_000_000
    message = Text(
        f"{folder} 所在磁盘剩余 {megabytes} MB。", f"The disk of {folder} has {megabytes} MB left."
    )
    advice = Text(
        "腾出空间，或用 DATA_DIR 换一个磁盘。", "Make room, or move DATA_DIR to another disk."
    )
    if free < _TOO_LITTLE_BYTES:
        return failed("machine.disk", message, advice)
    if free < _LITTLE_BYTES:
        return warned("machine.disk", message, advice)

    return passed("machine.disk", message)


def file_rights(paths: Iterable[Path]) -> Iterator[CheckResult]:
    """Find files with secrets that others than their owner may read or write, or that this user may
    not read.
    """
    for path in paths:
        if _is_closed(path):
            yield failed(
                "files.rights",
                Text(f"本用户不能读取 {path}。", f"This user can't read {path}."),
                Text(
                    "以服务的用户运行，或把文件交给它（chown）。",
                    "Run as the service's user, or give it the file (chown).",
                ),
            )
        elif path.is_file() and path.stat().st_mode & _OTHERS:
            yield warned(
                "files.rights",
                Text(
                    f"{path} 可被其他用户访问。", f"{path} is open to other users of this machine."
                ),
                Text(f"执行 chmod 600 {path}", f"Run chmod 600 {path}"),
            )


def keys_state(path: Path) -> Iterator[CheckResult]:
    """Find that a file of API keys which can be read, or is gone, admits nobody."""
    is_told_elsewhere = _obstacle(path.parent) or _is_closed(path)
    if is_told_elsewhere:
        return

    try:
        KeyFile(path).all()
    except KeysUnreadable as error:
        yield failed(
            "files.keys",
            Text(f"没有人能通过验证：{error}", f"Nobody is admitted. {error}"),
            Text(
                "恢复备份，或删去该文件后重新创建密钥：.venv/bin/python -m api.keys create。",
                "Get the file back from a backup, or remove it and make new keys: "
                ".venv/bin/python -m api.keys create.",
            ),
        )


def _is_closed(path: Path) -> bool:
    """Tell whether there is a file that this user can't read, or a folder that hides it."""
    try:
        return path.is_file() and not os.access(path, os.R_OK)
    except PermissionError:
        return True


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest above it that exists."""
    existing = folder
    while not existing.exists():
        existing = existing.parent

    return existing


def _obstacle(folder: Path) -> Text | None:
    """Return what keeps this user from writing into a folder, made where it is missing."""
    try:
        existing = _nearest(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Text(f"{folder}：{reason}。", f"{folder}: {reason}.")

    if not existing.is_dir():
        return Text(f"{existing} 不是目录。", f"{existing} is no folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        return _not_writable(existing)

    return None


def _not_writable(path: Path) -> Text:
    return Text(f"本用户不能写入 {path}。", f"this user can't write to {path}.")
