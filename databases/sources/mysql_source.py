"""The tables of a MySQL or MariaDB source in a hub, by mysql_fdw.

mysql_fdw has the source compute conditions and expressions, where they mean something else: 7/2 is
3.5, 'TX' equals 'tx', x/0 is NULL. So its foreign tables stand in a schema that only their owner
may read, and views before them let nothing through: PostgreSQL computes all of it, on all rows.

While mysql_fdw waits for the source it hears no cancel, and the source works out all rows of a
statement before it sends the first. So a view reads a large table by ranges of its key, which mean
the same in both: between two of them a cancel is heard, and nothing goes on in the source.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import psycopg2
from psycopg2 import extensions, sql

from common.values import Column, ForeignKey, Table
from databases.catalog.source_notes import NotedKeys, SourceNote
from databases.sources.hub_comments import HubComments
from databases.sources.hub_statements import create_foreign_table, create_server
from databases.sources.source_address import SourceAddress, SourceError

Cursor = extensions.cursor

# What can't be read by ranges, the source ends itself.
_MOST_S = 30
_RANGE_ROWS = 50_000
_MOST_RANGES = 60  # each is planned; a large table has larger ones
_RANGED_TYPES = ("smallint", "integer", "bigint")
# A session begins with one statement: MariaDB reads its first comment, MySQL the second.
_INIT_COMMAND = (
    f"SET /*M! SESSION tx_read_only = 1, SESSION max_statement_time = {_MOST_S} */"
    f" /*!50720 SESSION transaction_read_only = 1, SESSION max_execution_time = {_MOST_S}000 */"
)
_OPTIONS: Mapping[str, str] = {"init_command": _INIT_COMMAND, "fetch_size": "1000"}
_WITHOUT_LIMIT = "SET SESSION TRANSACTION READ ONLY"  # as sources were attached once
_HARMLESS = ("USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES")
_TRANSACTION = ("TX_READ_ONLY", "TRANSACTION_READ_ONLY")
_LOOK = "citu_look"
_READING_USER = """  CREATE USER 'citu_source'@'%' IDENTIFIED BY '…';
  GRANT SELECT ON the_database.* TO 'citu_source'@'%';"""

# Types of MySQL without length, and those of the hub. What is not here is left out.
_TYPES: Mapping[str, str] = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "mediumint": "integer",
    "int": "integer",
    "bigint": "bigint",
    "year": "smallint",
    "float": "real",
    "double": "double precision",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamp",
    "time": "time",
    "char": "text",
    "varchar": "text",
    "tinytext": "text",
    "text": "text",
    "mediumtext": "text",
    "longtext": "text",
    "enum": "text",
    "set": "text",
    "json": "text",
}
# Without a sign they need the next larger one.
_UNSIGNED: Mapping[str, str] = {
    "tinyint": "smallint",
    "smallint": "integer",
    "mediumint": "integer",
    "int": "bigint",
    "bigint": "numeric(20)",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

_COLUMNS = """
SELECT table_name, column_name, column_type, is_nullable = 'YES', nullif(column_comment, '')
FROM {look}.columns WHERE table_schema = {database} ORDER BY table_name, ordinal_position
"""
# What a view has there is no comment
_TABLES = """
SELECT table_name, CASE table_type WHEN 'BASE TABLE' THEN nullif(table_comment, '') END,
    coalesce(table_rows, 0)
FROM {look}.tables WHERE table_schema = {database} AND table_type IN ('BASE TABLE', {views})
"""
_KEYS = """
SELECT table_name, constraint_name, column_name, referenced_table_name, referenced_column_name
FROM {look}.key_column_usage
WHERE table_schema = {database} AND coalesce(referenced_table_schema, {database}) = {database}
ORDER BY table_name, constraint_name, ordinal_position
"""
# The views of the source that tell of it: name here → columns
_VIEWS: Mapping[str, str] = {
    "columns": "table_schema text, table_name text, column_name text, column_type text,"
    " is_nullable text, column_comment text, ordinal_position integer",
    "tables": "table_schema text, table_name text, table_type text, table_comment text,"
    " table_rows bigint",
    "key_column_usage": "table_schema text, table_name text, constraint_name text,"
    " column_name text, ordinal_position integer, referenced_table_schema text,"
    " referenced_table_name text, referenced_column_name text",
    "user_privileges": "privilege_type text",
    "schema_privileges": "privilege_type text",
    "table_privileges": "privilege_type text",
}
# Where MariaDB and MySQL tell the settings of a session
_VARIABLES = (
    ("information_schema", "SESSION_VARIABLES"),
    ("performance_schema", "session_variables"),
)


def create_mysql_server(cursor: Cursor, name: str, address: SourceAddress, reader: str) -> None:
    """Create the server, with mappings for its owner and for the role that asks.

    mysql_fdw takes the mapping of who asks also where a view's owner reads. That role can neither
    read the foreign tables themselves nor use the server otherwise.
    """
    server = {key: value for key, value in address.server.items() if key != "dbname"}
    create_server(cursor, name, "mysql_fdw", {**server, **_OPTIONS}, reader, address.user)


def limit_sessions(cursor: Cursor, name: str) -> None:
    """Have the source end long statements, unless the operator has said how its sessions begin."""
    cursor.execute(
        "SELECT %s = ANY (srvoptions) FROM pg_catalog.pg_foreign_server WHERE srvname = %s",
        [f"init_command={_WITHOUT_LIMIT}", name],
    )
    if cursor.fetchall() == [(True,)]:
        cursor.execute(
            sql.SQL("ALTER SERVER {} OPTIONS (SET init_command {})").format(
                sql.Identifier(name), sql.Literal(_INIT_COMMAND)
            )
        )


def prove_mysql_read_only(cursor: Cursor, name: str) -> None:
    """Return when the source's user has no right but to read, and its sessions are read-only.

    Leaves nothing behind in the hub.

    Raises:
        SourceError: it may do more, or does not tell.
    """
    with _Look(cursor, name) as look:
        rights: set[str] = set()
        for view in ("user_privileges", "schema_privileges", "table_privileges"):
            cursor.execute(f"SELECT DISTINCT upper(privilege_type) FROM {look.name}.{view}")
            rights.update(right for (right,) in cursor.fetchall())

        is_read_only = look.is_read_only()

    beyond = sorted(rights.difference(_HARMLESS))
    if beyond:
        rights_beyond = ", ".join(beyond)
        raise SourceError(
            f"不能用可以写入的用户读取 {name}：该用户有 {rights_beyond} 权限。\n"
            f"在来源中这样建立只读用户：\n{_READING_USER}",
            f"{name} can't be read by a user that could write: its user may {rights_beyond}.\n"
            f"A user that can only read is made in the source by:\n{_READING_USER}",
        )

    if not is_read_only:
        raise SourceError(
            f"{name}：枢纽在那里的会话不是只读的。",
            f"{name}: the hub's sessions there are not read-only.",
        )


class _Look:
    """Foreign tables over the source's own views, for as long as the context lasts."""

    def __init__(self, cursor: Cursor, server: str) -> None:
        self._cursor = cursor
        self._server = server
        self.name = _LOOK

    def __enter__(self) -> "_Look":
        self._cursor.execute(f"SAVEPOINT {_LOOK}; CREATE SCHEMA {_LOOK}")
        for view, columns in _VIEWS.items():
            self._show(view, columns, ("information_schema", view.upper()))

        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._cursor.execute(f"ROLLBACK TO SAVEPOINT {_LOOK}")

    def _show(self, name: str, columns: str, remote: tuple[str, str]) -> None:
        options = {"dbname": remote[0], "table_name": remote[1]}
        create_foreign_table(self._cursor, self._server, (_LOOK, name), sql.SQL(columns), options)

    def is_read_only(self) -> bool:
        for number, remote in enumerate(_VARIABLES):
            view = f"variables_{number}"
            self._cursor.execute("SAVEPOINT citu_variables")
            try:
                self._show(view, "variable_name text, variable_value text", remote)
                self._cursor.execute(
                    f"SELECT variable_value FROM {_LOOK}.{view}"
                    " WHERE upper(variable_name) = ANY (%s)",
                    [list(_TRANSACTION)],
                )
                rows = self._cursor.fetchall()
            except psycopg2.Error:
                self._cursor.execute("ROLLBACK TO SAVEPOINT citu_variables")
                continue

            if rows:
                return all(value.upper() in ("ON", "1") for (value,) in rows)

        return False

    def rows(self, query: str, **values: str) -> list[tuple[Any, ...]]:
        literals = {name: sql.Literal(value) for name, value in values.items()}
        self._cursor.execute(sql.SQL(query).format(look=sql.Identifier(_LOOK), **literals))
        return self._cursor.fetchall()


def mysql_schemas(name: str, databases: Sequence[str]) -> Mapping[str, str]:
    """Return the hub's schema for each database of a source: the source's name where it is one."""
    if len(databases) == 1:
        return {databases[0]: name}

    return {database: f"{name}_{database}" for database in databases}


def make_mysql_tables(
    cursor: Cursor, name: str, note: SourceNote, comments: HubComments
) -> tuple[SourceNote, Sequence[str]]:
    """Make the foreign tables and the views before them; return what is to be noted of them, and
    the columns that are left out.
    """
    databases = [_read_database(cursor, name, *names, note) for names in note.schemas.items()]
    left_out: list[str] = []
    keys: list[NotedKeys] = []
    digests: dict[tuple[str, str], str] = {}
    for one in databases:
        for each in (raw_schema(one.schema), one.schema):
            cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(each)))

        for table in one.tables:
            _make(cursor, name, one, table)
            comments.copy("VIEW", table)
            digests[table.key] = "view"

        left_out += one.left_out
        keys += one.keys

    return replace(note, keys=keys, digests=digests, comments=comments.copied), left_out


@dataclass(frozen=True)
class _Database:
    """A database of the source, with its tables as the hub has them.

    Attributes:
        rows: about how many each table has.
    """

    database: str
    schema: str
    tables: Sequence[Table]
    rows: Mapping[str, int]
    keys: Sequence[NotedKeys]
    left_out: Sequence[str]


def _read_database(
    cursor: Cursor, name: str, database: str, schema: str, note: SourceNote
) -> _Database:
    views = "VIEW" if note.has_views else "BASE TABLE"
    with _Look(cursor, name) as look:
        columns = look.rows(_COLUMNS, database=database)
        table_rows = look.rows(_TABLES, database=database, views=views)
        keys = look.rows(_KEYS, database=database)

    comments = {table: comment for table, comment, _ in table_rows}
    counts = {table: count for table, _, count in table_rows}
    tables = []
    left_out = []
    for table, rows in groupby(columns, key=itemgetter(0)):
        if table not in comments:
            continue  # a view

        own = []
        for _, column, kind, nullable, comment in rows:
            written = hub_type(kind)
            if written is None:
                left_out.append(f"{table}.{column}")
            else:
                own.append(Column(column, written, comment, nullable=bool(nullable)))

        if own:
            tables.append(Table(schema, table, "view", tuple(own), comments[table]))

    noted = [_keys_of(table, schema, rows) for table, rows in groupby(keys, key=itemgetter(0))]
    return _Database(database, schema, tables, counts, noted, left_out)


def raw_schema(schema: str) -> str:
    """Return the schema of the foreign tables behind the views of `schema`."""
    return f"{schema}_raw"


def hub_type(kind: str) -> str | None:
    """Return the hub's type for one of MySQL, such as `int(10) unsigned`; None: there is none."""
    decimal = _DECIMAL.match(kind)
    if decimal is not None:
        return f"numeric({decimal[1]},{decimal[2]})"

    base = re.split(r"[( ]", kind, maxsplit=1)[0]
    if kind.endswith("unsigned") or "unsigned " in kind:
        return _UNSIGNED.get(base, _TYPES.get(base))

    return _TYPES.get(base)


def _make(cursor: Cursor, server: str, database: _Database, table: Table) -> None:
    """Make a foreign table, and the view before it."""
    raw = sql.Identifier(raw_schema(table.schema), table.name)
    defined = [
        sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.type))
        for column in table.columns
    ]
    options = {"dbname": database.database, "table_name": table.name}
    names = (raw_schema(table.schema), table.name)
    create_foreign_table(cursor, server, names, sql.SQL(", ").join(defined), options)
    reads = [
        sql.SQL("SELECT * FROM {}{}").format(raw, condition)
        for condition in _ranges(cursor, database, table, raw)
    ]
    # OFFSET 0 keeps conditions, sorts and joins of whoever reads the view from the source.
    cursor.execute(
        sql.SQL("CREATE VIEW {} AS {} OFFSET 0").format(
            sql.Identifier(*table.key), sql.SQL(" UNION ALL ").join(reads)
        )
    )


def _ranges(
    cursor: Cursor, database: _Database, table: Table, raw: sql.Identifier
) -> Sequence[sql.Composable]:
    """Return conditions of which each row fulfils one, and about as many each; none: one of all."""
    count = min(-(-database.rows[table.name] // _RANGE_ROWS), _MOST_RANGES)
    key = _ranged_key(database, table)
    if count < 2 or key is None:
        return [sql.SQL("")]

    # A query with a CTE is aggregated by the source, which has both in its index.
    column = sql.Identifier(key)
    cursor.execute(
        sql.SQL("WITH citu AS (SELECT) SELECT min({0}), max({0}) FROM {1}").format(column, raw)
    )
    ((least, most),) = cursor.fetchall()
    if least is None:
        return [sql.SQL("")]

    step = (most - least) // count + 1
    bounds = [sql.Literal(bound) for bound in range(least + step, most + 1, step)]
    conditions = []
    for first, end in pairwise([None, *bounds, None]):
        parts = []
        if first is not None:
            parts.append(sql.SQL("{} >= {}").format(column, first))
        if end is not None:
            parts.append(sql.SQL("{} < {}").format(column, end))

        conditions.append(sql.SQL(" WHERE ") + sql.SQL(" AND ").join(parts))

    return conditions


def _ranged_key(database: _Database, table: Table) -> str | None:
    """Return the first column of the table's primary key, if it holds whole numbers."""
    primary = next((keys.primary for keys in database.keys if keys.table == table.key), ())
    column = table.column(primary[0]) if primary else None
    if column is None or column.type not in _RANGED_TYPES:
        return None

    return column.name


def _keys_of(table: str, schema: str, rows: Iterable[tuple[Any, ...]]) -> NotedKeys:
    keys = NotedKeys((schema, table))
    for constraint, parts in groupby(rows, key=itemgetter(1)):
        listed = list(parts)
        columns = tuple(part[2] for part in listed)
        target = listed[0][3]
        if constraint == "PRIMARY":
            keys = replace(keys, primary=columns)
        elif target is None:
            keys = replace(keys, unique=(*keys.unique, columns))
        else:
            key = ForeignKey(columns, (schema, target), tuple(part[4] for part in listed))
            keys = replace(keys, foreign=(*keys.foreign, key))

    return keys
