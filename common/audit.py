"""The audit log: one JSON line for every statement run or refused, and for every call of a tool.

By it an operator can say who asked what.

Several processes may share one file. Each line is one `write` to a file opened for appending. The
kernel keeps such a write whole, so writing needs no lock, and a process that hangs blocks no other.
Only moving a full file out of the way takes a lock; a process that doesn't get it goes on writing.
Lines that are written to a file just moved stay in it.
"""

import fcntl
import logging
import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from common import timestamps
from common.actor import NOBODY, Actor
from common.envelope import to_bytes
from common.logs import request_id

_log = logging.getLogger(__name__)

MAX_BYTES = 10 * 1024 * 1024
KEPT = 9  # full files beside the current one, the oldest with the highest number

Source = Literal[
    "ask", "value_lookup", "sql_run", "export", "analyze", "feedback", "import", "tool", "etl"
]
Verdict = Literal["executed", "refused", "failed", "cancelled"]


@dataclass(frozen=True)
class Occasion:
    """Why a statement was run or refused, and for whom.

    Attributes:
        source: `ask` for a question, `value_lookup` for looking up what it names, `sql_run` for SQL
            that the caller gave, `export` for an answer's rows as a file, `analyze` for figures
            about them, `feedback` for SQL that a user corrects or confirms, `import` for examples
            that somebody brings, `tool` for a tool's call, `etl` for samples of a draft's sources.
        actor: who asks.
        question: None when SQL was given.
        tool, call_id: of the tool's call that the statement belongs to, if it belongs to one.
        metadata: what else is to be noted with it, for example a trace id.
        database: the name of the database that is asked; None: the default one.
    """

    source: Source
    run_id: str
    actor: Actor = NOBODY
    conversation_id: str | None = None
    question: str | None = None
    tool: str | None = None
    call_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    database: str | None = None


@dataclass(frozen=True)
class StatementOutcome:
    """The outcome of a statement.

    Attributes:
        verdict: `refused` never ran; `failed` broke off with an error, `cancelled` because the
            caller left.
        milliseconds: spent on it.
        error_type: of what was refused or failed.
        rows: of what was executed.
        is_limited: whether there were more.
        sql_as_run: what PostgreSQL was given, where row rules made another statement of it.
    """

    verdict: Verdict
    milliseconds: float
    error_type: str | None = None
    rows: int | None = None
    is_limited: bool | None = None
    sql_as_run: str | None = None


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of a tool's call; fields as in `StatementOutcome`."""

    verdict: Verdict
    milliseconds: float
    error_type: str | None = None

    @classmethod
    def of(
        cls, error_type: str | None, milliseconds: float, refusals: Collection[str]
    ) -> "CallOutcome":
        """Return the outcome of a call that ended with the error, or without one.

        Args:
            refusals: error types of calls whose tool never ran.
        """
        verdict: Verdict = "failed"
        if error_type is None:
            verdict = "executed"
        elif error_type == "cancelled":
            verdict = "cancelled"
        elif error_type in refusals:
            verdict = "refused"
        return cls(verdict, milliseconds, error_type)


class Audit(Protocol):
    """Records statements and calls of tools."""

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        """Record one statement; never raise."""

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        """Record one call of the occasion's tool, its arguments as given; never raise."""


class NoAudit:
    """`Audit` that records nothing (`AUDIT_LOG=off`)."""

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        pass

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        pass


class AuditLog:
    """`Audit` in a file of JSON lines, which is opened with the first line.

    Args:
        path: the file; full ones are beside it as `<name>.1`, `<name>.2`, …
        max_bytes: size beyond which a file is full.
        kept: number of full files kept.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._file: int | None = None
        self._lock = threading.Lock()
        self._is_torn = False
        self._is_failing = False

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        """Append one line. The statement runs even if that fails; the first failure is logged."""
        self._write(_line(occasion, sql, outcome))

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        """Append one line, as `record` does."""
        self._write(_call_line(occasion, arguments, outcome))

    def _write(self, content: Mapping[str, Any]) -> None:
        line = to_bytes(content) + b"\n"
        try:
            with self._lock:
                self._append(line)
        except OSError as exc:
            if not self._is_failing:
                _log.critical(
                    "the audit log can't be written, statements run unrecorded: %s", exc.strerror
                )
            self._is_failing = True
            return
        if self._is_failing:
            _log.warning("the audit log is written again")
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


def _line(occasion: Occasion, sql: str, outcome: StatementOutcome) -> Mapping[str, Any]:
    written = {"sql": sql}
    if outcome.sql_as_run is not None:
        written["sql_as_run"] = outcome.sql_as_run
    return {
        **_fields_of(occasion),
        **written,
        "verdict": outcome.verdict,
        "error_type": outcome.error_type,
        "rows": outcome.rows,
        "is_limited": outcome.is_limited,
        "ms": outcome.milliseconds,
    }


def _call_line(occasion: Occasion, arguments: Any, outcome: CallOutcome) -> Mapping[str, Any]:
    return {
        **_fields_of(replace(occasion, source="tool")),
        "arguments": arguments,
        "verdict": outcome.verdict,
        "error_type": outcome.error_type,
        "ms": outcome.milliseconds,
    }


def _fields_of(occasion: Occasion) -> Mapping[str, Any]:
    called = {}
    if occasion.tool is not None:
        called = {"tool": occasion.tool, "call_id": occasion.call_id}
    noted = {}
    if occasion.metadata:
        noted = {"metadata": dict(occasion.metadata)}
    return {
        "time": timestamps.now(),
        "source": occasion.source,
        "user_id": occasion.actor.owner,
        "groups": list(occasion.actor.groups),
        "conversation_id": occasion.conversation_id,
        "run_id": occasion.run_id,
        **called,
        "database": occasion.database,
        "request_id": request_id.get(),
        "question": occasion.question,
        **noted,
    }
