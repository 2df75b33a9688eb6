"""Checks a database that is asked: its role, and that plans, time limits and cancelling work."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - a class of theirs

from common.findings import Finding, failed, passed, warned
from common.text import Text
from databases.catalog.missing_grants import read_reading
from databases.catalog.privileges import dangers_of
from databases.options import DatabaseOptions
from databases.source import Unreachable, probe

_OLDEST = 15  # of the versions of PostgreSQL that were tried
_CONNECT_S = 10
_TOO_FAR_S = 5.0  # between the clocks
_BUSY = "SELECT pg_sleep(5)"
_LIMIT_MS = 100
_STOPS_IN_S = 3.0
_ROLE_ADVICE = Text(
    "使用只有 SELECT 权限的账号：语句见 docs/security.md 的 The role 一节。",
    "Use a role that can only SELECT: docs/security.md has the statements (The role).",
)
_BYPASSES = """
SELECT bool_or(rolsuper OR rolbypassrls) FROM pg_catalog.pg_roles
WHERE pg_catalog.pg_has_role(oid, 'MEMBER')
"""


def examine_database(name: str, url: str, options: DatabaseOptions) -> list[Finding]:
    """Return what there is to say of a database; where it can't be used, only that."""
    check = f"database.{name}"
    try:
        probe(url, name, require_read_only_role=options.require_read_only_role)
        with closing(psycopg2.connect(url, connect_timeout=_CONNECT_S)) as connection:
            connection.autocommit = True
            return list(_looked_over(check, connection, options))
    except Unreachable as error:
        advice = Text(
            "检查 DATABASE_URL 的主机、端口、账号和密码。",
            "Check host, port, role and password of DATABASE_URL.",
        )
        return [failed(f"{check}.reachable", Text(f"不能使用：{error}", str(error)), advice)]
    except psycopg2.Error as error:
        said = str(error).strip().partition("\n")[0]
        advice = Text("查看数据库服务器的日志。", "Look into the server's log.")
        return [failed(f"{check}.statements", Text(said, said), advice)]


def _looked_over(check: str, connection: Connection, options: DatabaseOptions) -> Iterator[Finding]:
    yield _version(f"{check}.version", connection)
    yield from _role(f"{check}.role", connection)
    if options.row_context:
        yield _row_security(f"{check}.row_security", connection)
    yield _grants(f"{check}.grants", connection)
    yield _plan(f"{check}.plan", connection)
    yield _timeout(f"{check}.timeout", connection)
    yield _cancel(f"{check}.cancel", connection)
    yield clock_state(f"{check}.clock", _clock_ahead_s(connection))


def _version(check: str, connection: Connection) -> Finding:
    version = connection.info.server_version // 10_000
    said = Text(f"PostgreSQL {version}。", f"PostgreSQL {version}.")
    if version >= _OLDEST:
        return passed(check, said)
    advice = Text(
        f"没有在 {_OLDEST} 之前的版本上试过。", f"Versions before {_OLDEST} were not tried."
    )
    return warned(check, said, advice)


def _role(check: str, connection: Connection) -> Iterator[Finding]:
    dangers = dangers_of(connection)
    for danger in dangers:
        said = Text(f"{danger.zh}。", f"{danger.en[0].upper()}{danger.en[1:]}.")
        yield warned(check, said, _ROLE_ADVICE)
    if not dangers:
        yield passed(check, Text("账号只能读取。", "The role can only read."))


def _row_security(check: str, connection: Connection) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(_BYPASSES)
        row = cursor.fetchone()
    if row and row[0]:
        said = Text(
            "已设 ROW_CONTEXT，但账号绕过行级安全策略：每个人都看到所有行。",
            "ROW_CONTEXT is set, but the role bypasses row-level security: everybody sees all "
            "rows.",
        )
        return failed(check, said, _ROLE_ADVICE)
    said = Text("账号受行级安全策略约束。", "The role is subject to row-level security.")
    return passed(check, said)


def _grants(check: str, connection: Connection) -> Finding:
    reading = read_reading(connection)
    if reading.is_useless:
        return failed(check, reading.said(), reading.advice())
    if reading.closed:
        return warned(check, reading.said(), reading.advice())
    return passed(check, reading.said())


def _plan(check: str, connection: Connection) -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (FORMAT JSON) SELECT 1")
    except psycopg2.Error:
        said = Text("EXPLAIN 不可用。", "EXPLAIN does not work.")
        advice = Text(
            "设 ENABLE_SYNTAX_VALIDATION=false，并去掉 MAX_PLAN_COST。",
            "Set ENABLE_SYNTAX_VALIDATION=false and no MAX_PLAN_COST.",
        )
        return failed(check, said, advice)
    return passed(check, Text("EXPLAIN 可用。", "EXPLAIN works."))


def _timeout(check: str, connection: Connection) -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {_LIMIT_MS}")
        stops = _is_stopped(cursor)
        cursor.execute("RESET statement_timeout")
    return _stopping(check, stops, Text("语句超时", "A statement's time limit"))


def _cancel(check: str, connection: Connection) -> Finding:
    timer = threading.Timer(_LIMIT_MS / 1000, connection.cancel)
    timer.start()
    try:
        with connection.cursor() as cursor:
            stops = _is_stopped(cursor)
    finally:
        timer.join()
    return _stopping(check, stops, Text("取消", "Cancelling"))


def _is_stopped(cursor: psycopg2.extensions.cursor) -> bool:
    started = time.monotonic()
    try:
        cursor.execute(_BUSY)
    except psycopg2.errors.QueryCanceled:
        return time.monotonic() - started < _STOPS_IN_S
    return False


def _stopping(check: str, stops: bool, means: Text) -> Finding:
    if stops:
        said = Text(f"{means.zh}能结束语句。", f"{means.en} ends a statement.")
        return passed(check, said)
    said = Text(f"{means.zh}不能结束语句。", f"{means.en} does not end a statement.")
    advice = Text(
        "绕过连接池或代理（如 PgBouncer）直接连接 PostgreSQL。",
        "Connect to PostgreSQL itself, past poolers and proxies such as PgBouncer.",
    )
    return failed(check, said, advice)


def _clock_ahead_s(connection: Connection) -> float:
    """Return by how many seconds the server's clock is ahead of this machine's."""
    with connection.cursor() as cursor:
        before = datetime.now(UTC)
        cursor.execute("SELECT pg_catalog.clock_timestamp()")
        row = cursor.fetchone()
        after = datetime.now(UTC)
    if row is None:
        return 0.0
    middle = before + (after - before) / 2
    return float((row[0] - middle).total_seconds())


def clock_state(check: str, ahead_s: float) -> Finding:
    """Judge by how many seconds the database's clock is ahead."""
    if abs(ahead_s) <= _TOO_FAR_S:
        return passed(check, Text("与本机时钟一致。", "Its clock agrees with this machine's."))
    said = Text(
        f"数据库的时钟与本机相差 {ahead_s:.0f} 秒。",
        f"The database's clock is {ahead_s:.0f} s ahead of this machine's.",
    )
    advice = Text(
        "在两台机器上启用 NTP；“今天”和密钥的期限都按时钟计算。",
        "Run NTP on both: 'today' and the ends of keys go by the clock.",
    )
    return warned(check, said, advice)
