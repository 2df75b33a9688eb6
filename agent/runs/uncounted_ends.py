"""Remembers, beside the metrics, which ends of runs are being kept and are not counted yet.

A worker may be killed after the store has a run's end and before the worker has counted it. So it
notes the end before it is written, in a file of its own, and another worker counts later what the
store turns out to have. Files are in one folder, named by the process that has to look after them.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from common.after_fork import restart_after_fork
from store import EventFrame, RunHead

_SUFFIX = ".ends"
_FULL_BYTES = 64 * 1024  # then the file is written anew with what is still open


@dataclass(frozen=True)
class Measurement:
    """One call of an observer's `metric`."""

    name: str
    value: float
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NotedEnd:
    """The end of a run that is being kept, and what to count once it is.

    Attributes:
        seq, digest: number and BLAKE2 digest of its last frame.
    """

    run_id: str
    user_id: str
    seq: int
    digest: str
    counts: Sequence[Measurement]

    @classmethod
    def of(cls, head: RunHead, frame: EventFrame, counts: Sequence[Measurement]) -> "NotedEnd":
        """Return the end of the run by its last frame."""
        return cls(head.run_id, head.user_id, frame.seq, _digest(frame), counts)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "NotedEnd":
        """Return the end that `to_json` made `value` of."""
        counts = [Measurement(*count) for count in value["counts"]]
        return cls(**{**value, "counts": counts})

    def to_json(self) -> Mapping[str, Any]:
        """Return the end as `from_json` takes it."""
        counts = [(count.name, count.value, count.attributes) for count in self.counts]
        return {
            "run_id": self.run_id,
            "user_id": self.user_id,
            "seq": self.seq,
            "digest": self.digest,
            "counts": counts,
        }

    def is_in(self, frames: Sequence[EventFrame]) -> bool:
        """Tell whether its last frame is the first of these."""
        return bool(frames) and frames[0].seq == self.seq and _digest(frames[0]) == self.digest


def _digest(frame: EventFrame) -> str:
    return blake2b(frame.data, digest_size=16).hexdigest()


class UncountedEnds:
    """The ends that this process has noted; and those that dead processes have left.

    Args:
        folder: the folder of the files; it exists as long as the service.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Begin a file of this process's own, which is made with its first note."""
        self._path = self._own_path()
        self._file: int | None = None
        self._size = 0
        self._open: dict[str, NotedEnd] = {}
        self._left: dict[str, Path] = {}

    def _own_path(self) -> Path:
        return self._folder / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"

    def note(self, end: NotedEnd) -> None:
        """Note an end that is about to be written to the store."""
        self._open[end.run_id] = end
        self._append({"noted": end.to_json()})

    def settle(self, run_id: str) -> None:
        """Forget an end that is counted, or that is another worker's to count."""
        if self._open.pop(run_id, None) is None:
            return

        self._append({"settled": run_id})
        if self._size > _FULL_BYTES:
            self._write_anew()

    def _append(self, line: Mapping[str, Any]) -> None:
        # Counting must never stop a question: a folder that can't be written loses its notes only.
        with suppress(OSError):
            if self._file is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)

            self._size += os.write(self._file, json.dumps(line).encode() + b"\n")

    def _write_anew(self) -> None:
        """Leave the file for one that has the open ends only."""
        full, file = self._path, self._file
        self._path, self._file, self._size = self._own_path(), None, 0
        for end in self._open.values():
            self._append({"noted": end.to_json()})

        if file is not None:
            os.close(file)

        full.unlink(missing_ok=True)

    # --------------------------------------------------------------------------
    # what dead processes have left

    def take_left(self) -> Sequence[NotedEnd]:
        """Take over the files of processes that have ended; return the ends that were open."""
        ends: list[NotedEnd] = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if not _is_running(path):
                ends += self._take_over(path)

        return ends

    def _take_over(self, path: Path) -> Iterator[NotedEnd]:
        mine = self._own_path()
        try:
            path.rename(mine)
        except OSError:  # another worker was faster
            return

        ends = _open_ends(mine)
        if not ends:
            mine.unlink(missing_ok=True)

        for end in ends:
            self._left[end.run_id] = mine
            yield end

    def settle_left(self, run_id: str) -> None:
        """Forget an end that another process had left."""
        path = self._left.pop(run_id)
        with suppress(OSError), path.open("a") as file:
            file.write(json.dumps({"settled": run_id}) + "\n")

        if path not in self._left.values():
            path.unlink(missing_ok=True)


def _is_running(path: Path) -> bool:
    try:
        os.kill(int(path.name.partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except (ValueError, PermissionError):
        return True

    return True


def _open_ends(path: Path) -> list[NotedEnd]:
    """Return the ends that the file notes and does not settle; its last line may be cut off."""
    ends: dict[str, NotedEnd] = {}
    for line in path.read_text().splitlines():
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            if "noted" in entry:
                end = NotedEnd.from_json(entry["noted"])
                ends[end.run_id] = end
            else:
                ends.pop(entry["settled"], None)

    return list(ends.values())
