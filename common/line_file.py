"""A file of JSON lines that several processes write, moved out of the way when it is full.

Each line is one `write` to a file opened for appending. The kernel keeps such a write whole, so
writing needs no lock, and a process that hangs blocks no other. Only moving a full file out of the
way takes a lock; a process that doesn't get it goes on writing. Lines that are written to a file
just moved stay in it.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.envelope import to_bytes

_log = logging.getLogger(__name__)


class LineFile:
    """A file that is opened with its first line, for its owner alone.

    Args:
        path: the file; full ones are beside it as `<name>.1`, `<name>.2`, …
        name: what log lines call it.
        loss: what it means if it can't be written.
        max_bytes: size beyond which a file is full.
        kept: number of full files kept.
    """

    def __init__(self, path: Path, name: str, loss: str, *, max_bytes: int, kept: int) -> None:
        self._path = path
        self._name = name
        self._loss = loss
        self._max_bytes = max_bytes
        self._kept = kept
        self._file: int | None = None
        self._lock = threading.Lock()
        self._is_torn = False
        self._is_failing = False

    def write(self, content: Mapping[str, Any]) -> None:
        """Append one line; raise nothing. The first failure is logged."""
        line = to_bytes(content) + b"\n"
        try:
            with self._lock:
                self._append(line)
        except OSError as exc:
            if not self._is_failing:
                _log.critical("%s can't be written, %s: %s", self._name, self._loss, exc.strerror)

            self._is_failing = True
            return

        if self._is_failing:
            _log.warning("%s is written again", self._name)

        self._is_failing = False

    def _append(self, line: bytes) -> None:
        file = self._current()
        if os.fstat(file).st_size + len(line) > self._max_bytes:
            self._rotate()
            file = self._current()

        # A full disk may have cut the line before: end it, so that this line stands alone.
        if self._is_torn:
            line = b"\n" + line

        written = os.write(file, line)
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(0, "only part of a line was written")

    def _current(self) -> int:
        """Return the open file, a new one after another process has moved the previous one."""
        if self._file is not None:
            if _is_same_file(self._file, self._path):
                return self._file

            os.close(self._file)
            self._file = None

        self._path.parent.parent.mkdir(parents=True, exist_ok=True)
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        return self._file

    def _rotate(self) -> None:
        """Move the full file out of the way, unless another process is doing or has done so."""
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._file is not None and _is_same_file(self._file, self._path):
                for number in range(self._kept - 1, 0, -1):
                    _rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")

                _rename(str(self._path), f"{self._path}.1")
        except BlockingIOError:
            return
        finally:
            os.close(lock)


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _rename(source: str, target: str) -> None:
    file = Path(source)
    if file.exists():
        file.replace(target)
