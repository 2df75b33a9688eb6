"""Finds the tables that the connected role may not read, and the statements that open them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from psycopg2 import extensions

from common.text import Text

_QUERY = """
SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.quote_ident(c.relname),
    pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
    pg_catalog.has_table_privilege(c.oid, 'SELECT')
        OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY 1, 2
"""
_ROLE = "SELECT pg_catalog.quote_ident(current_user), pg_catalog.quote_ident(current_database())"
_SINGLE_TABLES = 5  # that are named; of more in one schema all are


@dataclass(frozen=True)
class ReadableTables:
    """The rights of a role in its database.

    Attributes:
        readable, closed: numbers of tables and views.
        statements: the GRANTs that open the closed ones, for the owner to run.
    """

    role: str
    database: str
    readable: int
    closed: int
    statements: tuple[str, ...]

    @property
    def is_useless(self) -> bool:
        """Tell whether there are tables, and none can be read."""
        return self.closed > 0 and self.readable == 0

    def said(self) -> Text:
        return Text(
            f"账号 {self.role} 能读取数据库 {self.database} 的 {self.readable} 张表和视图，"
            f"另有 {self.closed} 张不能。",
            f"The role {self.role} can read {self.readable} tables and views of {self.database}, "
            f"and {self.closed} others not.",
        )

    def advice(self) -> Text:
        listed = " ".join(self.statements)
        return Text(
            f"如果应当能读，请以所有者执行：{listed}", f"If it should, run as the owner: {listed}"
        )


@dataclass
class _Schema:
    is_usable: bool
    closed: list[str]
    readable: int = 0


def read_readable_tables(connection: extensions.connection) -> ReadableTables:
    """Return what the role may read; raises psycopg2's errors."""
    with connection.cursor() as cursor:
        cursor.execute(_ROLE)
        role, database = cursor.fetchone() or ("", "")
        cursor.execute(_QUERY)
        schemas = _by_schema(cursor.fetchall())

    statements: list[str] = []
    for name, schema in schemas.items():
        statements.extend(_grants(name, schema, role))

    readable = sum(schema.readable for schema in schemas.values())
    closed = sum(len(schema.closed) for schema in schemas.values())
    return ReadableTables(role, database, readable, closed, tuple(statements))


def connect_grant(database: str, role: str) -> str:
    """Return the statement that lets a role connect to a database."""
    return f'GRANT CONNECT ON DATABASE "{database}" TO "{role}";'


def _by_schema(rows: Iterable[tuple[str, str, bool, bool]]) -> dict[str, _Schema]:
    schemas: defaultdict[str, _Schema] = defaultdict(lambda: _Schema(True, []))
    for schema_name, table, is_usable, is_granted in rows:
        schema = schemas[schema_name]
        schema.is_usable = is_usable
        if is_usable and is_granted:
            schema.readable += 1
        else:
            schema.closed.append(table)

    return schemas


def _grants(name: str, schema: _Schema, role: str) -> list[str]:
    if not schema.closed:
        return []

    statements = []
    if not schema.is_usable:
        statements.append(f"GRANT USAGE ON SCHEMA {name} TO {role};")
    if schema.readable == 0 or len(schema.closed) > _SINGLE_TABLES:
        statements.append(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role};")
        return statements

    tables = ", ".join(f"{name}.{table}" for table in schema.closed)
    statements.append(f"GRANT SELECT ON {tables} TO {role};")
    return statements
