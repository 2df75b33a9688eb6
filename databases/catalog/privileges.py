"""Finds what the connected role may do beyond reading: the guard should not be the only thing that
prevents it.

One query asks for the attributes of the role and of every role that it is a member of, for
predefined roles that reach files, programs and other sessions, and for rights to change or create
anything in this database.
"""

from collections.abc import Iterable

from psycopg2 import extensions

from common.text import Text
from postgres.connection import Connection, Row

# Each row: what the role may do, and on what (or an empty text).
_QUERY = """
WITH me AS (SELECT r.* FROM pg_catalog.pg_roles r WHERE pg_catalog.pg_has_role(r.oid, 'MEMBER')),
relation AS (
    SELECT c.oid, c.relowner,
        pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS name
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
        AND n.nspname !~ '^pg_')
SELECT 'superuser', '' FROM me WHERE rolsuper
UNION ALL SELECT 'create_role', '' FROM me WHERE rolcreaterole
UNION ALL SELECT 'create_database', '' FROM me WHERE rolcreatedb
UNION ALL SELECT 'replication', '' FROM me WHERE rolreplication
UNION ALL SELECT 'bypass_rls', '' FROM me WHERE rolbypassrls
UNION ALL SELECT 'member', rolname FROM me WHERE rolname IN (
    'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
    'pg_write_all_data', 'pg_signal_backend', 'pg_maintain', 'pg_checkpoint',
    'pg_create_subscription', 'pg_use_reserved_connections',
    'pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables', 'pg_monitor')
UNION ALL SELECT 'create_in_database', pg_catalog.current_database()
    WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
UNION ALL SELECT 'create_in_schema', nspname FROM pg_catalog.pg_namespace
    WHERE nspname !~ '^pg_' AND pg_catalog.has_schema_privilege(oid, 'CREATE')
UNION ALL (SELECT 'own', name FROM relation
    WHERE relowner IN (SELECT oid FROM me) ORDER BY name LIMIT 5)
UNION ALL (SELECT 'write', name FROM relation
    WHERE pg_catalog.has_table_privilege(
              oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER, REFERENCES')
       OR pg_catalog.has_any_column_privilege(oid, 'INSERT, UPDATE')
    ORDER BY name LIMIT 5)
"""

_SAYINGS = {
    "superuser": Text("数据库账号是超级用户", "the database role is, or may become, a superuser"),
    "create_role": Text("数据库账号可以创建角色", "the database role may create roles"),
    "create_database": Text("数据库账号可以创建数据库", "the database role may create databases"),
    "replication": Text("数据库账号有复制权限", "the database role may replicate"),
    "bypass_rls": Text(
        "数据库账号绕过行级安全策略", "the database role bypasses row-level security"
    ),
    "member": Text("数据库账号属于 {}", "the database role is a member of {}"),
    "create_in_database": Text(
        "数据库账号可以在数据库 {} 中建模式",
        "the database role may create schemas in the database {}",
    ),
    "create_in_schema": Text(
        "数据库账号可以在模式 {} 中建对象", "the database role may create objects in the schema {}"
    ),
    "own": Text("数据库账号是 {} 的所有者", "the database role owns {}"),
    "write": Text("数据库账号可以修改 {}", "the database role may change {}"),
}


async def read_dangers(connection: Connection) -> tuple[Text, ...]:
    """Return a sentence for each thing that the role may do beyond reading.

    Raises psycopg2's errors.
    """
    rows = (await connection.query(_QUERY)).rows
    return _sentences(rows)


def dangers_of(connection: extensions.connection) -> tuple[Text, ...]:
    """Do as `read_dangers`, for an ordinary connection."""
    with connection.cursor() as cursor:
        cursor.execute(_QUERY)
        return _sentences(cursor.fetchall())


def unfit(dangers: tuple[Text, ...]) -> Text:
    """Return why a role with `dangers` is not used when a read-only one is required."""
    zh = "；".join(danger.zh for danger in dangers)
    en = "; ".join(danger.en for danger in dangers)
    return Text(
        f"已设置 REQUIRE_READ_ONLY_ROLE，但{zh}。请使用只有 SELECT 权限的账号。",
        f"REQUIRE_READ_ONLY_ROLE is set, but {en}. Use a role that can only SELECT.",
    )


def _sentences(rows: Iterable[Row]) -> tuple[Text, ...]:
    distinct_rows = dict.fromkeys(map(tuple, rows))
    if (
        "superuser",
        "",
    ) in distinct_rows:  # a superuser may do everything, so one sentence is enough
        return (_SAYINGS["superuser"],)

    sentences: list[Text] = []
    for kind, name in distinct_rows:
        saying = _SAYINGS[kind]
        sentences.append(Text(saying.zh.format(name), saying.en.format(name)))

    return tuple(sentences)
