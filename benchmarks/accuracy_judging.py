"""Asks Citu the questions of a file and compares the results of its SQL with those of the SQL that
a person wrote.

Citu answers as it does for its users: in this process with the settings of the environment, so with
the model that they name or by the rules, or elsewhere, at a URL. An answer is

- right: the result of its SQL is that of the person's SQL, as `result_sets` says;
- wrong: its SQL has another result, or PostgreSQL refuses it;
- refused: there is no SQL, or Citu did not run it: a question back, conversation, a statement that
  the guard refused;
- failed: the model, a database or the service was not available, or took too long, which says
  nothing of the answer.

A question whose own SQL fails is not asked, and is counted apart. All SQL runs in READ ONLY
transactions.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psycopg2
from werkzeug.test import Client

from agent.bootstrap import Services, bootstrap
from app_config import Settings
from benchmarks.accuracy_questions import AccuracyQuestion
from benchmarks.result_sets import same_result
from common import errors, runtime
from sqltree.parsing import parse
from unified_api import create_app

Outcome = Literal["right", "wrong", "refused", "failed", "gold_failed"]

_PATH = "/api/v0/ask_agent"
_MAX_ROWS = 100_000  # of a result that is compared
_SQL_TIMEOUT_MS = 120_000
_CONNECT_TIMEOUT_S = 10
_HTTP_TIMEOUT_S = 900.0
_WARM_TIMEOUT_S, _CLOSE_TIMEOUT_S = 600, 10
_TRIES, _PAUSE_S, _LONGEST_PAUSE_S = (
    6,
    1.0,
    60.0,
)  # while the service has no free slot, or limits the caller's rate
_BUSY = frozenset((errors.TooManyStreams.error_type, errors.RateLimited.error_type))
_REFUSALS = frozenset(kind.error_type for kind in errors.StatementRejected.__subclasses__())
_NOT_LET_IN = frozenset(
    (
        *(errors.Unauthorized.error_type, errors.InsufficientScope.error_type),
        *(errors.KeysUnavailable.error_type, errors.IssuerUnavailable.error_type),
    )
)

Ask = Callable[[str], dict[str, Any]]
"""Asks a question; returns the envelope of the answer."""


class NotLetIn(Exception):
    """The service takes no question from this caller; the message says why."""


@dataclass(frozen=True)
class Judged:
    """The verdict on one question.

    Attributes:
        reason: why the outcome is not `right`.
        sql: the answer's; None when there is none.
        gold_rows: how many rows the question's own SQL has.
        ms: from the request to the whole answer; the pauses before further tries don't count.
    """

    id: str
    question: str
    lang: str
    difficulty: str
    gold: str
    outcome: Outcome
    reason: str = ""
    sql: str | None = None
    gold_rows: int = 0
    ms: float = 0.0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    warnings: tuple[str, ...] = ()


# ------------------------------------------------------------------------------
# asking


@contextmanager
def citu_here(settings: Settings) -> Iterator[tuple[Ask, Services]]:
    """Citu in this process; whatever it has opened is closed in the end."""
    services = bootstrap(settings)
    client = Client(create_app(settings, services), use_cookies=False)

    def ask(question: str) -> dict[str, Any]:
        with client.post(
            _PATH, json={"question": question}
        ) as response:  # closing it frees its place
            envelope: dict[str, Any] = json.loads(response.get_data())
        return envelope

    async def awaited(do: Callable[[], Awaitable[None]]) -> None:
        await do()

    try:
        runtime.run(
            awaited(services.warm), timeout_s=_WARM_TIMEOUT_S
        )  # as a service does before it answers
        yield ask, services
    finally:
        runtime.run(awaited(services.aclose), timeout_s=_CLOSE_TIMEOUT_S)
        services.sources.hold.release()


def citu_at(url: str, api_key: str = "") -> Ask:
    """Return a running Citu."""
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {api_key}"} if api_key else {}
    )

    def ask(question: str) -> dict[str, Any]:
        body = json.dumps({"question": question}).encode()
        request = urllib.request.Request(url.rstrip("/") + _PATH, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=_HTTP_TIMEOUT_S) as reply:
                return _envelope(reply.read())
        except urllib.error.HTTPError as error:
            return _envelope(error.read())
        except OSError as error:
            return _unreachable(str(error))

    return ask


def _envelope(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
        if isinstance(found["data"], dict) and isinstance(found["success"], bool):
            return dict(found)
    except (ValueError, KeyError, TypeError):
        pass
    return _unreachable("what answers is not Citu")


def _unreachable(reason: str) -> dict[str, Any]:
    return {"success": False, "data": {"error_type": "unreachable", "error": reason}}


def measured_settings(
    settings: Settings, folder: Path, *, database_url: str, concurrency: int
) -> Settings:
    """Return `settings` with nothing left of the service they describe but how it answers.

    Conversations and runs go into `folder`, no audit log is written, no API key is asked for, no
    rate is limited.
    """
    return replace(
        settings,
        database_url=database_url or settings.database_url,
        data_dir=str(folder),
        redis_url="",
        app_database_url="",
        api_keys_file="",
        rate_limit=Settings.rate_limit,
        audit_log="off",
        max_streams=max(settings.max_streams, concurrency),
        caller_share=1.0,
    )


# ------------------------------------------------------------------------------
# judging


def measure(
    questions: Sequence[AccuracyQuestion],
    ask: Ask,
    database_url: str,
    *,
    concurrency: int = 1,
    pause_s: float = _PAUSE_S,
) -> Iterator[Judged]:
    """Ask the questions, `concurrency` of them at once; yield what became of each, in their order.

    Args:
        database_url: the database that Citu answers about.
        pause_s: between tries of a question for which the service has no free slot, and names no
            time.

    Raises:
        NotLetIn: the service refuses the caller.
        psycopg2.OperationalError: the database can't be reached.
    """
    psycopg2.connect(database_url, connect_timeout=_CONNECT_TIMEOUT_S).close()
    with ThreadPoolExecutor(concurrency) as pool:
        try:
            yield from pool.map(
                partial(_judged, ask=ask, database_url=database_url, pause_s=pause_s), questions
            )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _judged(asked: AccuracyQuestion, *, ask: Ask, database_url: str, pause_s: float) -> Judged:
    judged = Judged(
        asked.id, asked.question, asked.lang, asked.difficulty, asked.sql, "gold_failed"
    )
    try:
        gold = _rows(database_url, asked.sql, _MAX_ROWS)
    except (psycopg2.Error, errors.StatementRejected, ValueError) as exc:
        return replace(judged, reason=_said(exc))
    if len(gold) > _MAX_ROWS:
        return replace(judged, reason=f"more than {_MAX_ROWS} rows")
    envelope, ms = _answer(asked.question, ask, pause_s)
    data = envelope["data"]
    usage = data.get("usage") or {}
    judged = replace(
        judged,
        sql=data.get("sql"),
        gold_rows=len(gold),
        ms=round(ms, 1),
        warnings=tuple(map(str, data.get("warnings") or ())),
        llm_calls=usage.get("llm_calls", 0),
        prompt_tokens=usage.get("prompt_tokens", 0),
        completion_tokens=usage.get("completion_tokens", 0),
    )
    outcome, reason = _outcome(asked, gold, envelope, database_url)
    return replace(judged, outcome=outcome, reason=reason)


def _answer(question: str, ask: Ask, pause_s: float) -> tuple[dict[str, Any], float]:
    for _ in range(_TRIES):
        started = time.perf_counter()
        envelope = ask(question)
        ms = 1000 * (time.perf_counter() - started)
        data = envelope["data"]
        if envelope["success"] or data.get("error_type") not in _BUSY:
            break
        time.sleep(min(float(data.get("retry_after_s") or pause_s), _LONGEST_PAUSE_S))
    return envelope, ms


def _outcome(
    asked: AccuracyQuestion,
    gold: list[tuple[Any, ...]],
    envelope: dict[str, Any],
    database_url: str,
) -> tuple[Outcome, str]:
    data = envelope["data"]
    if not envelope["success"]:
        return _outcome_of_error(data)
    sql = data.get("sql")
    if sql is None:
        return "refused", str(data.get("response"))
    try:
        rows = _rows(database_url, sql, len(gold))
    except (psycopg2.Error, errors.StatementRejected, ValueError) as exc:
        return "wrong", _said(exc)
    if same_result(gold, rows, in_order=asked.order_matters):
        return "right", ""
    return "wrong", _difference(asked, gold, rows)


def _outcome_of_error(data: dict[str, Any]) -> tuple[Outcome, str]:
    kind = str(data.get("error_type"))
    said = str(data.get("error"))
    if kind in _NOT_LET_IN:
        raise NotLetIn(said)
    outcome: Outcome = "refused" if kind in _REFUSALS else "failed"
    return outcome, f"{kind}: {said}"


def _difference(
    asked: AccuracyQuestion, gold: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]
) -> str:
    """Return in what rows differ from those that are wanted."""
    if len(rows) > len(gold):
        return f"more rows, not {len(gold)}"
    if len(rows) < len(gold):
        return f"{len(rows)} rows, not {len(gold)}"
    if asked.order_matters and same_result(gold, rows):
        return "another order"
    return "other values or columns"


def _rows(url: str, sql: str, most: int) -> list[tuple[Any, ...]]:
    """Return the rows of one statement, at most `most` + 1 of them."""
    if len(parse(sql)) != 1:
        raise ValueError("it is not one statement")
    with closing(psycopg2.connect(url, connect_timeout=_CONNECT_TIMEOUT_S)) as connection:
        connection.set_session(readonly=True)
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {_SQL_TIMEOUT_MS}")
        with connection.cursor(
            "compared"
        ) as cursor:  # a cursor in the server, so that no more rows are sent
            cursor.execute(sql)
            return list(cursor.fetchmany(most + 1))


def _said(failure: Exception) -> str:
    said = failure.diag.message_primary if isinstance(failure, psycopg2.Error) else None
    return said or str(failure)
