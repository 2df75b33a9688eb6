"""Checks the store beyond whether it answers: may it be written, and does it keep what it takes?"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg2
import redis
from psycopg2.extensions import connection as Connection  # noqa: N812 - a class of theirs

from common.check_report import CheckResult, failed, warned
from common.text import Text
from postgres.connection_errors import first_line
from store.postgres_schema import LATEST

_WRITABLE = "store.writable"
_KEPT = "store.kept"
_CONNECT_S = 10
_PROBE_KEY = "citu:doctor"
_PROBE_MS = 1000
_CLOSED_TABLES = """
SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '')
FROM pg_catalog.pg_class
WHERE relnamespace = 'citu'::regnamespace AND relkind = 'r'
  AND NOT (
    pg_catalog.has_table_privilege(oid, 'SELECT') AND pg_catalog.has_table_privilege(oid, 'INSERT')
    AND pg_catalog.has_table_privilege(oid, 'UPDATE')
    AND pg_catalog.has_table_privilege(oid, 'DELETE')
  )
"""
_READS_ONLY = (
    "SELECT pg_catalog.pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
)
_VERSION = "SELECT max(version) FROM citu.version"


def reason_of(error: BaseException) -> str:
    """Return the first line of what the store's server or the network said at first."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, psycopg2.Error):
        return first_line(error, type(error).__name__)

    return str(error).partition("\n")[0] or type(error).__name__


def postgres_store_state(url: str) -> Iterator[CheckResult]:
    """Find what keeps the role from writing to the store's tables, which exist."""
    with closing(psycopg2.connect(url, connect_timeout=_CONNECT_S)) as connection:
        connection.autocommit = True
        closed = _value(connection, _CLOSED_TABLES)
        if closed:
            yield failed(
                _WRITABLE,
                Text(
                    f"APP_DATABASE_URL 的账号不能写这些表：{closed}。",
                    f"The role of APP_DATABASE_URL can't write these tables: {closed}.",
                ),
                Text(
                    "用拥有模式 citu 的账号，或把表交给它：ALTER TABLE … OWNER TO。",
                    "Use the role that owns the schema citu, or give it the tables: "
                    "ALTER TABLE … OWNER TO.",
                ),
            )
        if _value(connection, _READS_ONLY):
            yield failed(
                _WRITABLE,
                Text(
                    "APP_DATABASE_URL 的服务器或账号是只读的。",
                    "The server or the role of APP_DATABASE_URL is read-only.",
                ),
                Text("指向主服务器，用可写的账号。", "Name the primary, and a role that writes."),
            )
        version = _value(connection, _VERSION)
        if version > LATEST:
            yield warned(
                "store.version",
                Text(
                    f"会话存储来自更新的版本（{version}，本版本到 {LATEST}）。",
                    f"The store is of a newer version ({version}; this one knows {LATEST}).",
                ),
                Text(
                    "回退期间可以这样运行；新版本独有的内容不会显示。",
                    "It works for a rollback; what only the new version writes is not shown.",
                ),
            )


def _value(connection: Connection, sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()

    return row[0] if row else None


def redis_store_state(url: str) -> Iterator[CheckResult]:
    """Find what keeps the Redis from taking writes, or from keeping what it takes."""
    with redis.Redis.from_url(url, socket_timeout=_CONNECT_S) as client:
        try:
            client.set(_PROBE_KEY, "1", px=_PROBE_MS)
        except redis.RedisError as error:
            reason = str(error).rstrip(".")
            yield failed(
                _WRITABLE,
                Text(f"REDIS_URL 拒绝写入：{reason}。", f"REDIS_URL refuses to write: {reason}."),
                Text(
                    "指向主服务器；检查它的内存、磁盘和账号权限。",
                    "Name the primary; look at its memory, its disk and the user's rights.",
                ),
            )
            return

        try:
            yield from _forgetting({**client.info(), **client.config_get("save")})
        except redis.RedisError:  # some services refuse both commands
            return


def _forgetting(settings: Mapping[str, Any]) -> Iterator[CheckResult]:
    if settings.get("maxmemory") and settings.get("maxmemory_policy") != "noeviction":
        policy = settings.get("maxmemory_policy")
        yield warned(
            _KEPT,
            Text(
                f"Redis 内存满时会丢弃对话（maxmemory-policy {policy}）。",
                f"Redis drops conversations when its memory is full (maxmemory-policy {policy}).",
            ),
            Text("设 maxmemory-policy noeviction。", "Set maxmemory-policy noeviction."),
        )
    if not settings.get("aof_enabled") and not settings.get("save"):
        yield warned(
            _KEPT,
            Text(
                "Redis 不写磁盘：重启后对话、额度和密钥都会丢失。",
                "Redis keeps nothing on disk: a restart loses conversations, budgets and keys.",
            ),
            Text("设 appendonly yes。", "Set appendonly yes."),
        )
