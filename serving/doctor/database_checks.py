"""Checks a database that is asked: its server, its role, what it may read, its clock."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - a class of theirs

from common.check_report import CheckResult, failed, passed, warned
from common.text import Text
from databases.catalog.missing_grants import read_readable_tables
from databases.catalog.privileges import dangers_of
from databases.engines.capabilities import Capabilities, Engine, Lack
from databases.options import DatabaseOptions
from databases.source import Unreachable, probe

_OLDEST = 15  # of the versions of PostgreSQL that were tried
_CONNECT_S = 10
_TOO_FAR_S = 5.0  # between the clocks
_ROLE_ADVICE = Text(
    "使用只有 SELECT 权限的账号：语句见 docs/security.md 的 The role 一节。",
    "Use a role that can only SELECT: docs/security.md has the statements (The role).",
)
_UNLIMITED = -1
_CONNECTION_LIMIT = "SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = current_user"
_BYPASSES = """
SELECT bool_or(rolsuper OR rolbypassrls) FROM pg_catalog.pg_roles
WHERE pg_catalog.pg_has_role(oid, 'MEMBER')
"""


def examine_database(name: str, url: str, options: DatabaseOptions) -> list[CheckResult]:
    """Check a database; of one that can't be used, return only the failure that says so."""
    check = f"database.{name}"
    try:
        required = options.require_read_only_role
        capabilities = probe(url, name, require_read_only_role=required)
        results = [_engine(f"{check}.version", capabilities.engine)]
        results += _abilities(check, capabilities)
        with closing(psycopg2.connect(url, connect_timeout=_CONNECT_S)) as connection:
            connection.autocommit = True
            results += _database_findings(check, connection, options)
            return results
    except Unreachable as error:
        advice = Text(
            "照这句话处理；主机、端口、账号和密码都在 DATABASE_URL 中。",
            "Do what it says; host, port, role and password are those of DATABASE_URL.",
        )
        message = Text(f"不能使用：{error.text.zh}", error.text.en)
        return [failed(f"{check}.reachable", message, advice)]
    except psycopg2.Error as error:
        line = str(error).strip().partition("\n")[0]
        advice = Text("查看数据库服务器的日志。", "Look into the server's log.")
        return [failed(f"{check}.statements", Text(line, line), advice)]


def _database_findings(
    check: str, connection: Connection, options: DatabaseOptions
) -> Iterator[CheckResult]:
    yield from _role(f"{check}.role", connection)
    if options.row_context:
        yield _row_security(f"{check}.row_security", connection)

    yield from _connections(f"{check}.connections", connection, options.pool_size)
    yield _grants(f"{check}.grants", connection)
    yield clock_state(f"{check}.clock", _clock_ahead_s(connection))


def _engine(check: str, engine: Engine) -> CheckResult:
    version = engine.version or ""
    message = Text(f"{engine.name} {version}。", f"{engine.name} {version}.")
    major = version.partition(".")[0]
    is_old = engine.name == "PostgreSQL" and major.isdigit() and int(major) < _OLDEST
    if not is_old:
        return passed(check, message)

    advice = Text(
        f"没有在 {_OLDEST} 之前的版本上试过，请升级。",
        f"Versions before {_OLDEST} were not tried: upgrade the server.",
    )
    return warned(check, message, advice)


def _abilities(check: str, capabilities: Capabilities) -> Iterator[CheckResult]:
    """Say what the probe found; a server without what must hold never gets here."""
    for notice in capabilities.notices:
        advice = Text(
            "无需处理；各引擎的差别见 docs/databases.md。",
            "Nothing needs to be done; docs/databases.md says how engines differ.",
        )
        yield warned(f"{check}.engine", notice, advice)

    if Lack.PLAN_FORMAT not in capabilities.lacks:
        yield passed(f"{check}.plan", Text("EXPLAIN 可用。", "EXPLAIN works."))

    yield passed(
        f"{check}.stopping",
        Text(
            "超时和取消能结束语句，只读事务拒绝写入。",
            "A time limit and a cancel end a statement, and READ ONLY refuses writes.",
        ),
    )


def _role(check: str, connection: Connection) -> Iterator[CheckResult]:
    dangers = dangers_of(connection)
    for danger in dangers:
        message = Text(f"{danger.zh}。", f"{danger.en[0].upper()}{danger.en[1:]}.")
        yield warned(check, message, _ROLE_ADVICE)

    if not dangers:
        yield passed(check, Text("账号只能读取。", "The role can only read."))


def _connections(check: str, connection: Connection, pool_size: int) -> Iterator[CheckResult]:
    """Find that the role may have fewer connections than one worker opens."""
    with connection.cursor() as cursor:
        cursor.execute(_CONNECTION_LIMIT)
        row = cursor.fetchone()

    most = row[0] if row else _UNLIMITED
    if most == _UNLIMITED or most >= pool_size:
        return

    message = Text(
        f"账号最多 {most} 个连接，少于每个工作进程的 DATABASE_POOL_SIZE（{pool_size}）。",
        f"The role may have {most} connections, and a worker opens up to {pool_size} "
        "(DATABASE_POOL_SIZE).",
    )
    advice = Text(
        "提高账号的 CONNECTION LIMIT（至少为工作进程数 × DATABASE_POOL_SIZE），或调小后者。",
        "Raise the role's CONNECTION LIMIT to workers × DATABASE_POOL_SIZE at least, or lower "
        "the latter.",
    )
    yield warned(check, message, advice)


def _row_security(check: str, connection: Connection) -> CheckResult:
    with connection.cursor() as cursor:
        cursor.execute(_BYPASSES)
        row = cursor.fetchone()

    if row and row[0]:
        message = Text(
            "已设 ROW_CONTEXT，但账号绕过行级安全策略：每个人都看到所有行。",
            "ROW_CONTEXT is set, but the role bypasses row-level security: everybody sees all "
            "rows.",
        )
        return failed(check, message, _ROLE_ADVICE)

    message = Text("账号受行级安全策略约束。", "The role is subject to row-level security.")
    return passed(check, message)


def _grants(check: str, connection: Connection) -> CheckResult:
    reading = read_readable_tables(connection)
    if reading.is_useless:
        return failed(check, reading.said(), reading.advice())
    if reading.closed:
        return warned(check, reading.said(), reading.advice())

    return passed(check, reading.said())


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


def clock_state(check: str, ahead_s: float) -> CheckResult:
    """Judge by how many seconds the database's clock is ahead."""
    if abs(ahead_s) <= _TOO_FAR_S:
        return passed(check, Text("与本机时钟一致。", "Its clock agrees with this machine's."))

    message = Text(
        f"数据库的时钟与本机相差 {ahead_s:.0f} 秒。",
        f"The database's clock is {ahead_s:.0f} s ahead of this machine's.",
    )
    advice = Text(
        "在两台机器上启用 NTP；“今天”和密钥的期限都按时钟计算。",
        "Run NTP on both: 'today' and the ends of keys go by the clock.",
    )
    return warned(check, message, advice)
