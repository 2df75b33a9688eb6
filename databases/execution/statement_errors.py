"""Which of our errors a failure of a statement is: one table from SQLSTATE to error.

Users see PostgreSQL's messages about statements, because they say what to correct.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg2

from common.errors import (
    INTERNAL_ERROR_TEXT,
    CituError,
    CostExceeded,
    DatabaseUnavailable,
    ForbiddenObject,
    ForbiddenStatement,
    InternalError,
    InvalidSql,
    QueryTimeout,
    ValidationFailed,
)
from common.text import Text
from databases.engines.shard_refusals import shard_refusal
from postgres.connection_errors import UNREACHABLE, describe
from postgres.socket_proxy import AnswerTooLarge

_log = logging.getLogger(__name__)

_NOT_SUPPORTED = "0A000"
_MOST_CHARS = 1000  # of a message of PostgreSQL's

TIMED_OUT = Text(
    "查询超过时间上限，已停止。请缩小范围（例如时间或地区）后重试。",
    "The query ran longer than allowed and was stopped. Narrow it (a shorter period, fewer groups)"
    " and try again.",
)
_LOCKED = Text(
    "数据正被其他操作锁定，请稍后重试。",
    "The data is locked by another operation. Try again later.",
)
TOO_LARGE = Text(
    "数据库返回的内容超过上限，请少选或截短较大的列。",
    "What the database returns is larger than allowed; select fewer or shorter columns.",
)
_CONFLICT = Text(
    "查询与数据库的复制或并发操作冲突，请重试。",
    "The query conflicted with replication or another transaction. Try again.",
)
_TOO_MUCH_SPACE = Text(
    "查询需要的临时空间超过上限，请缩小范围后重试。",
    "The query needs more temporary space than allowed. Narrow it and try again.",
)
_TOO_MUCH_MEMORY = Text(
    "查询需要的内存超过上限，请缩小范围或减少聚合的内容后重试。",
    "The query needs more memory than allowed. Narrow it, or collect less in one value, and try"
    " again.",
)
NOT_UNICODE = Text(
    "结果中含有不是UTF-8的文本，无法显示。",
    "The result holds text that is not UTF-8 and can't be shown.",
)
NAMES_NOT_UNICODE = Text(
    "数据库的编码是SQL_ASCII，其中有不是UTF-8的名称，无法使用。请把数据库转为UTF-8编码。",
    "The database does not know its encoding (SQL_ASCII) and holds names that are not UTF-8:"
    " convert it to UTF-8.",
)
_TOO_COMPLEX = Text("SQL过于复杂，请简化后重试。", "The SQL is too complex; simplify it.")


@asynccontextmanager
async def translated(deadline_s: float, sql: str, offset: Callable[[], int]) -> AsyncIterator[None]:
    """Raise our errors for those of the work inside, and `QueryTimeout` when it takes longer than
    `deadline_s`.

    Args:
        sql: see `translate`.
        offset: gives the offset for `translate`; called when there is an error.
    """
    try:
        async with asyncio.timeout(deadline_s):
            yield
    except TimeoutError as exc:
        raise QueryTimeout(TIMED_OUT) from exc
    except AnswerTooLarge as exc:
        raise ValidationFailed(TOO_LARGE) from exc
    except UnicodeDecodeError as exc:  # a database that does not know its encoding (SQL_ASCII)
        raise ValidationFailed(NOT_UNICODE) from exc
    except psycopg2.Error as exc:
        raise translate(exc, sql, offset()) from exc


def translate(error: psycopg2.Error, sql: str = "", offset: int = 0) -> CituError:
    """Return the error of ours that stands for `error`.

    Args:
        sql: the user's statement, when it was one.
        offset: characters that were sent before the statement; positions are counted from its
            beginning.
    """
    state = error.pgcode or ""
    for length in (5, 2):
        build = _TABLE.get(state[:length])
        if build is not None:
            return build(error, sql, offset)

    if isinstance(error, (psycopg2.OperationalError, psycopg2.InterfaceError)):
        return DatabaseUnavailable(UNREACHABLE)
    if _OWN_CLASS.match(state):
        return _invalid(error, sql, offset)

    _log.error(
        "unexpected failure of PostgreSQL: SQLSTATE %s, %s", state or "none", type(error).__name__
    )
    return InternalError(INTERNAL_ERROR_TEXT)


def _invalid(error: psycopg2.Error, sql: str, offset: int) -> InvalidSql:
    hint = error.diag.message_hint
    message = _primary(error)
    text = None
    if error.pgcode == _NOT_SUPPORTED:
        text = shard_refusal(message)

    return InvalidSql(
        f"{message}. {text.en}" if text else message,
        detail_zh=f"{message}。{text.zh}" if text else None,
        sqlstate=error.pgcode,
        position=_position(error, sql, offset),
        hint=_cut(hint) if hint else None,
    )


def _not_unicode(error: psycopg2.Error, sql: str, offset: int) -> CituError:
    """Return the error of bytes that are not UTF-8: with a position they are in the statement, else
    in the result (SQL_ASCII).
    """
    if error.diag.statement_position or error.diag.internal_position:
        return _invalid(error, sql, offset)

    return ValidationFailed(NOT_UNICODE)


def _primary(error: psycopg2.Error) -> str:
    lines = _cut(error.diag.message_primary or str(error)).splitlines()
    return lines[0] if lines else type(error).__name__


def _cut(text: str) -> str:
    """Return `text`, shortened: PostgreSQL quotes what it complains about, whatever its length."""
    if len(text) <= _MOST_CHARS:
        return text

    return f"{text[:_MOST_CHARS]}…"


def _position(error: psycopg2.Error, sql: str, offset: int) -> int | None:
    """Return the place in the statement that the error is about, from 1."""
    text = error.diag.statement_position
    inner = error.diag.internal_query or ""
    # The statement was sent as a literal in a block of ours.
    if error.diag.internal_position and sql in inner:
        text, offset = error.diag.internal_position, inner.index(sql)
    if not text:
        return None

    position = int(text) - offset
    return position if 1 <= position <= len(sql) + 1 else None


def _no_permission(error: psycopg2.Error, _: str, __: int) -> ForbiddenObject:
    name = error.diag.table_name or _primary(error).split()[-1]
    zh = f"数据库账号没有读取 {name} 的权限。"
    return ForbiddenObject(name, Text(zh, f"The database role may not read {name}."))


_UPPER = re.compile(r"\b[A-Z]{2,}(?: [A-Z]{2,})*\b")


def _write(error: psycopg2.Error, _: str, __: int) -> ForbiddenStatement:
    match = _UPPER.search(_primary(error))
    return ForbiddenStatement(match.group() if match else "write")


# Of postgres_fdw, about a source of a hub
_SOURCE = re.compile(r"could not connect to server \"(\w+)\"")

_GONE_TABLE = Text(
    "表 {} 在它的数据源中已不存在：它的文件可能已被删除，或者数据源已改变。请重新上传文件，"
    "或由管理员运行 python -m databases.sources refresh。",
    "The table {} is no longer in its source: its file may have been deleted, or the source has "
    "changed. Upload the file again, or have an operator run python -m databases.sources refresh.",
)
_RELATION = re.compile(r'"(?:[^".]*\.)?([^"]+)"')


def _undefined_table(error: psycopg2.Error, sql: str, offset: int) -> CituError:
    """Tell a table that is missing in a source of a hub from one that the statement invents.

    PostgreSQL gives the place in the statement of its own names only.
    """
    is_here = error.diag.statement_position or error.diag.internal_query
    name = _RELATION.search(_primary(error))
    if is_here or name is None:
        return _invalid(error, sql, offset)

    text = Text(_GONE_TABLE.zh.format(name[1]), _GONE_TABLE.en.format(name[1]))
    return ForbiddenObject(name[1], text)


def _unavailable(error: psycopg2.Error, _: str, __: int) -> DatabaseUnavailable:
    source = _SOURCE.match(error.diag.message_primary or "")
    if source is not None:
        zh = f"数据源 {source[1]} 暂时无法连接，请稍后重试；其他数据源不受影响。"
        en = f"The source {source[1]} can't be reached at the moment. Others can be asked."
        return DatabaseUnavailable(Text(zh, en))

    _log.warning("database unavailable: SQLSTATE %s, %s", error.pgcode, describe(error))
    return DatabaseUnavailable(UNREACHABLE)


# Of mysql_fdw, about statements that MariaDB or MySQL ended, and about sources that are away
_ENDED = re.compile(r"max_statement_time|maximum statement execution time", re.IGNORECASE)
_NO_MYSQL = re.compile(r"failed to connect to MySQL", re.IGNORECASE)
_MYSQL_AWAY = Text(
    "一个 MySQL 数据源暂时无法连接，请稍后重试；其他数据源不受影响。",
    "A MySQL source can't be reached at the moment. Others can be asked.",
)


def _of_wrapper(error: psycopg2.Error, sql: str, offset: int) -> CituError:
    message = error.diag.message_primary or ""
    if _ENDED.search(message):
        return QueryTimeout(TIMED_OUT)
    if _NO_MYSQL.search(message):
        return DatabaseUnavailable(_MYSQL_AWAY)

    return _unavailable(error, sql, offset)


def _saying(kind: type[CituError], text: Text) -> Callable[[psycopg2.Error, str, int], CituError]:
    return lambda _, __, ___: kind(text)


# Classes that the standard and PostgreSQL leave to users: `RAISE … USING ERRCODE` in a function
# that a view calls.
_OWN_CLASS = re.compile(r"(?!XX)[5-9I-Z]")

# SQLSTATE, or its class, → error. The longer key wins.
_TABLE: dict[str, Callable[[psycopg2.Error, str, int], CituError]] = {
    "08": _unavailable,  # connection exception
    "0A": _invalid,  # feature not supported
    "0Z": _invalid,  # diagnostics
    "20": _invalid,  # case not found
    "21": _invalid,  # cardinality violation
    "22": _invalid,  # data exception: division by zero, bad casts, …
    "22021": _not_unicode,
    "23": _invalid,  # a domain's constraint
    "25006": _write,  # read only transaction
    "28": _unavailable,  # authorization
    "2B": _invalid,
    "2F": _invalid,  # SQL routine exception, from a view
    "38": _invalid,  # external routine exception, from a view
    "39": _invalid,
    "3D": _unavailable,  # no such database
    "3F": _invalid,  # no such schema
    "40": _saying(
        DatabaseUnavailable, _CONFLICT
    ),  # serialization failure, deadlock, conflict with recovery
    "42": _invalid,  # syntax error or unknown name
    "42501": _no_permission,  # insufficient privilege
    "42P01": _undefined_table,
    "44": _invalid,
    "53": _unavailable,  # out of disk or connections
    "53200": _saying(CostExceeded, _TOO_MUCH_MEMORY),  # a limit on the process, or of the machine
    "53400": _saying(CostExceeded, _TOO_MUCH_SPACE),  # temp_file_limit
    "54": _invalid,  # program limit exceeded
    "54001": _saying(ValidationFailed, _TOO_COMPLEX),  # stack depth
    "55": _invalid,  # object not in prerequisite state: an unpopulated materialized view
    "55P03": _saying(QueryTimeout, _LOCKED),  # lock timeout
    "57": _unavailable,  # operator intervention: shut down, starting up
    "57014": _saying(
        QueryTimeout, TIMED_OUT
    ),  # cancelled: by the statement timeout, since a caller's cancel is not seen here
    "58": _unavailable,  # system error
    "HV": _of_wrapper,  # foreign data wrapper
    "P0": _invalid,  # PL/pgSQL, from a view
    "XX000": _invalid,  # mostly requests for more memory than PostgreSQL can give one value
}
