"""One build in the scratch database: its connection, and schemas that it alone uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row
from psycopg.types.multirange import MultirangeInfo
from psycopg.types.range import RangeInfo
from psycopg.types.string import TextLoader

from etl.planning.draft_test import TypedRows
from etl.scratch.scratch_errors import translated
from etl.scratch.scratch_options import ScratchOptions
from etl.scratch.scratch_values import text_or_null

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

_MARK = "made at "
_LEFT_BEHIND = """
SELECT nspname FROM pg_namespace
WHERE nspname ~ '^etl_[0-9a-f]{16}(_src[0-9]*)?$' AND nspowner = current_user::regrole
    AND coalesce(
        substr(obj_description(oid, 'pg_namespace'), length(%(mark)s) + 1)::timestamptz
            < now() - make_interval(secs => %(kept_s)s),
        true)
"""


# Drafts only hand on values of these types, and text is what all of them can be given back as.
_READ_AS_TEXT = ("bytea", "json", "jsonb")


@dataclass(frozen=True)
class ResultRows:
    """Rows of a statement, with Python values as psycopg gives them; arrays and ranges as text."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class ScratchBuild:
    """The connection of a build; `ScratchDatabase.build` opens and ends it.

    Attributes:
        url: the URL of the scratch database, for programs that build by themselves.
        schema: that of the models.
        server_version: as PostgreSQL writes it, `18.1`.
    """

    def __init__(self, connection: Connection, url: str, schema: str) -> None:
        self._connection = connection
        self.url = url
        self.schema = schema
        self.server_version = str(connection.info.parameter_status("server_version"))
        self._source_schemas: dict[str, str] = {}
        self._further = 0

    @property
    def source_schemas(self) -> Mapping[str, str]:
        """Return the schemas that stand for schemas of the datasource, by these."""
        return self._source_schemas

    async def source_schema(self, schema: str) -> str:
        """Return the schema that stands for one of the datasource; it is made when missing."""
        if schema not in self._source_schemas:
            self._source_schemas[schema] = await self.further_schema()

        return self._source_schemas[schema]

    async def further_schema(self) -> str:
        """Make one more schema, which ends with the build; return its name."""
        self._further += 1
        number = str(self._further) if self._further > 1 else ""
        schema = f"{self.schema}_src{number}"
        with translated():
            await create_schemas(self._connection, [schema])

        return schema

    async def execute(self, statement: str) -> int:
        """Run one statement; return how many rows it made, or -1.

        Raises:
            InvalidSql, QueryTimeout, DatabaseUnavailable: it failed.
        """
        with translated():
            cursor = await self._connection.execute(statement.encode(), prepare=False)
            return cursor.rowcount

    async def rows(self, statement: str) -> ResultRows:
        """Return all rows of a query; raises as `execute` does."""
        with translated():
            cursor = await self._connection.execute(statement.encode(), prepare=False)
            columns = tuple(column.name for column in cursor.description or ())
            return ResultRows(columns, await cursor.fetchall())

    async def search(self, schema: str) -> None:
        """Set the search path to one of the build's schemas; raises as `execute` does."""
        await self.execute(f'SET search_path = "{schema}"')

    async def copy_text(
        self, schema: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[str | None]]
    ) -> None:
        """Fill a table with values that are PostgreSQL's text; raises as `execute` does."""
        names = sql.SQL(", ").join(sql.Identifier(column) for column in columns)
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(schema, table), names)
        with translated():
            cursor = self._connection.cursor()
            async with cursor.copy(statement) as copy:
                for row in rows:
                    await copy.write_row(row)

    async def copy_values(self, schema: str, rows: TypedRows) -> None:
        """Fill a table with Python values; raises as `execute` does."""
        columns = [name for name, _ in rows.columns]
        texts = [list(map(text_or_null, row)) for row in rows.rows]
        await self.copy_text(schema, rows.name, columns, texts)

    async def begin(self) -> None:
        """Begin a transaction, which `roll_back` ends."""
        await self.execute("BEGIN")

    async def roll_back(self) -> None:
        """Undo all since `begin`."""
        await self.execute("ROLLBACK")


async def open_build(url: str, schema: str, options: ScratchOptions) -> ScratchBuild:
    """Connect and make the schema, after what an earlier attempt of the same name left is dropped.

    Raises:
        DatabaseUnavailable: the server can't be reached or has no connection to spare.
    """
    with translated():
        connection = await _connect(url, schema, options)
        try:
            await drop_schemas(connection, schema)
            await create_schemas(connection, [schema])
        except BaseException:
            await connection.close()
            raise

    return ScratchBuild(connection, url, schema)


async def end_build(build: ScratchBuild, options: ScratchOptions) -> None:
    """Drop the build's schemas over a new connection, as its own may be broken or busy."""
    with translated():
        await build._connection.close()  # noqa: SLF001 - of this module
        connection = await _connect(build.url, build.schema, options)
        async with connection:
            await drop_schemas(connection, build.schema)


async def sweep(url: str, options: ScratchOptions) -> int:
    """Drop schemas that killed processes have left; return how many there were."""
    with translated():
        connection = await _connect(url, "pg_catalog", options)
        async with connection:
            values = {"mark": _MARK, "kept_s": options.kept_s}
            cursor = await connection.execute(_LEFT_BEHIND, values)
            left = [str(name) for (name,) in await cursor.fetchall()]
            for name in left:
                await connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
                )

    return len(left)


def _read_as_text(connection: Connection) -> None:
    """Read values of types that drafts only hand on as PostgreSQL's text."""
    adapters = connection.adapters
    for type_ in adapters.types:
        is_range = isinstance(type_, RangeInfo | MultirangeInfo)
        if is_range or type_.name in _READ_AS_TEXT:
            adapters.register_loader(type_.oid, TextLoader)
        if type_.array_oid:
            adapters.register_loader(type_.array_oid, TextLoader)


async def _connect(url: str, schema: str, options: ScratchOptions) -> Connection:
    connection = await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=10, application_name="citu", row_factory=tuple_row
    )
    _read_as_text(connection)
    settings = {
        "search_path": f'"{schema}"',
        "statement_timeout": f"{int(options.statement_timeout_s * 1000)}",
        "lock_timeout": f"{int(options.lock_timeout_s * 1000)}",
        "work_mem": options.work_mem,
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "bytea_output": "hex",
        "client_encoding": "UTF8",
        "client_min_messages": "error",
        "default_transaction_read_only": "off",
        "standard_conforming_strings": "on",
    }
    query = sql.SQL(
        "SELECT set_config(name, value, false) "
        "FROM unnest(%s::text[], %s::text[]) AS t (name, value)"
    )
    try:
        await connection.execute(query, [list(settings), list(settings.values())])
    except BaseException:
        await connection.close()
        raise

    return connection


async def create_schemas(connection: Connection, names: Sequence[str]) -> None:
    """Create schemas that say when they were made.

    Nobody sees one that does not say so, because such schemas are swept.
    """
    cursor = await connection.execute("SELECT now()::text")
    ((now,),) = await cursor.fetchall()
    mark = sql.Literal(f"{_MARK}{now}")
    async with connection.transaction():
        for name in names:
            schema = sql.Identifier(name)
            await connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            await connection.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, mark))


async def drop_schemas(connection: Connection, schema: str) -> None:
    """Drop a build's schemas, as far as there are any."""
    cursor = await connection.execute(
        "SELECT nspname FROM pg_namespace WHERE nspname ~ %s", [f"^{schema}(_src[0-9]*)?$"]
    )
    for (name,) in await cursor.fetchall():
        await connection.execute(
            sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(str(name)))
        )
