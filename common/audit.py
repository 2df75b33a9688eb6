"""The audit log: one JSON line for every statement run or refused, and for every call of a tool.

By it an operator can say who asked what.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from common import timestamps
from common.actor import NOBODY, Actor
from common.line_file import LineFile
from common.logs import request_id

MAX_BYTES = 10 * 1024 * 1024
KEPT = 9  # full files beside the current one, the oldest with the highest number

AuditSource = Literal[
    "ask", "value_lookup", "sql_run", "export", "analyze", "feedback", "import", "tool", "etl"
]
AuditVerdict = Literal["executed", "refused", "failed", "cancelled"]


@dataclass(frozen=True)
class Occasion:
    """The reason for which a statement was run or refused, and the user.

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

    source: AuditSource
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
        error_type: why the statement was refused or failed.
        rows: how many rows the statement gave.
        is_limited: whether there were more.
        sql_as_run: what PostgreSQL was given, where row rules made another statement of it.
    """

    verdict: AuditVerdict
    milliseconds: float
    error_type: str | None = None
    rows: int | None = None
    is_limited: bool | None = None
    sql_as_run: str | None = None


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of a tool's call; fields as in `StatementOutcome`."""

    verdict: AuditVerdict
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
        verdict: AuditVerdict = "failed"
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


class AuditEntries:
    """`Audit` that makes an entry, a JSON object, of what it is told.

    Args:
        takers: are given each entry; they return soon and raise nothing.
    """

    def __init__(self, *takers: Callable[[Mapping[str, Any]], None]) -> None:
        self._takers = takers

    def record(self, occasion: Occasion, sql: str, outcome: StatementOutcome) -> None:
        self._hand_out(_statement_entry(occasion, sql, outcome))

    def record_call(self, occasion: Occasion, arguments: Any, outcome: CallOutcome) -> None:
        self._hand_out(_call_line(occasion, arguments, outcome))

    def _hand_out(self, entry: Mapping[str, Any]) -> None:
        for take in self._takers:
            take(entry)


class AuditLog(AuditEntries):
    """`Audit` in a file of JSON lines, which is opened with the first line.

    A statement runs even if its line can't be written; the first failure is logged.

    Args:
        path: the file; full ones are beside it as `<name>.1`, `<name>.2`, …
        takers: are given each entry as well, once it is written.
        max_bytes: size beyond which a file is full.
        kept: number of full files kept.
    """

    def __init__(
        self,
        path: Path,
        *takers: Callable[[Mapping[str, Any]], None],
        max_bytes: int = MAX_BYTES,
        kept: int = KEPT,
    ) -> None:
        file = LineFile(
            path,
            "the audit log",
            "statements run unrecorded",
            max_bytes=max_bytes,
            kept=kept,
        )
        super().__init__(file.write, *takers)


def _statement_entry(occasion: Occasion, sql: str, outcome: StatementOutcome) -> Mapping[str, Any]:
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
