"""What PostgreSQL refuses in scratch, as errors of this service."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from common.errors import CituError, DatabaseUnavailable, InvalidSql, QueryTimeout
from common.text import Text

_TIMEOUT = Text(
    "草稿库中的一条语句运行超时。请减少抽样行数。",
    "A statement took too long in the scratch database. Sample fewer rows.",
)
UNREACHABLE = Text(
    "无法连接草稿库。请检查 SCRATCH_DATABASE_URL，或留空以使用内置数据库。",
    "The scratch database can't be reached. Check SCRATCH_DATABASE_URL, or leave it empty to use "
    "the embedded one.",
)
_FULL = Text(
    "草稿库的连接数已满，请稍后重试。",
    "The scratch database has no connection to spare. Try again in a moment.",
)


_FULL_SENTENCES = ("too many connections", "too many clients", "remaining connection slots")


class ScratchFull(DatabaseUnavailable):
    """The server, or the role, has no connection to spare at the moment."""

    def __init__(self) -> None:
        super().__init__(_FULL, retry_after_s=5)


def unavailable(error: Exception) -> DatabaseUnavailable:
    """Return the error for a lost or refused connection, told apart by libpq's message."""
    if any(sentence in str(error) for sentence in _FULL_SENTENCES):
        return ScratchFull()

    return DatabaseUnavailable(UNREACHABLE)


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of this service in place of psycopg's.

    Raises:
        InvalidSql: PostgreSQL refused the statement, or it failed while running.
        QueryTimeout: it took longer than allowed.
        DatabaseUnavailable: the server is gone, or has no connection to spare.
    """
    try:
        yield
    except psycopg.DatabaseError as exc:
        is_of_server = exc.sqlstate is not None or isinstance(exc, psycopg.OperationalError)
        if not is_of_server:  # a mistake of ours
            raise

        raise _translation(exc) from exc


def _translation(error: psycopg.DatabaseError) -> CituError:
    if isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
        return QueryTimeout(_TIMEOUT)
    if error.sqlstate is None or isinstance(error, psycopg.errors.OperatorIntervention):
        return unavailable(error)

    diagnosed = error.diag
    position = int(diagnosed.statement_position) if diagnosed.statement_position else None
    return InvalidSql(
        diagnosed.message_primary or "no reason given",
        sqlstate=error.sqlstate,
        position=position,
        hint=diagnosed.message_hint,
    )
