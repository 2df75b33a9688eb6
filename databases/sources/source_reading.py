"""Reads what a PostgreSQL source has, as the role that the hub reads it by."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

import psycopg2

from common.errors import DatabaseUnavailable
from common.values import Catalog
from databases.catalog.catalog_queries import IS_USER_SCHEMA
from databases.catalog.catalog_reading import read_catalog, read_columns, read_relations
from databases.sources.source_address import SourceAddress, SourceError
from postgres.arrays import parse_texts
from postgres.connecting import PostgresLimits, connect
from postgres.connection import Connection

_CONNECT_S = 5.0
_READ_S = 60.0

# schema, table, column, the type without domains, whether PostgreSQL itself brings it, and of an
# enum (or an array of one) its schema, name and labels
_TYPES = f"""
WITH RECURSIVE base (oid, type, typmod) AS (
    SELECT oid, oid, -1 FROM pg_catalog.pg_type WHERE typtype <> 'd'
    UNION ALL
    SELECT t.oid, base.type,
           CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE base.typmod END
    FROM base JOIN pg_catalog.pg_type t ON t.typbasetype = base.oid AND t.typtype = 'd')
SELECT n.nspname, c.relname, a.attname,
       pg_catalog.format_type(
           base.type, CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE base.typmod END),
       base.type < 16384,
       en.nspname, e.typname,
       (SELECT pg_catalog.array_agg(l.enumlabel ORDER BY l.enumsortorder)
        FROM pg_catalog.pg_enum l WHERE l.enumtypid = e.oid),
       e.oid <> base.type
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN base ON base.oid = a.atttypid
JOIN pg_catalog.pg_type t ON t.oid = base.type
LEFT JOIN pg_catalog.pg_type e ON e.typtype = 'e'
    AND e.oid IN (t.oid, CASE WHEN t.typcategory = 'A' THEN t.typelem END)
LEFT JOIN pg_catalog.pg_namespace en ON en.oid = e.typnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {IS_USER_SCHEMA}
"""
COLLATION = """
SELECT pg_catalog.current_setting('server_encoding') || ' ' || datcollate
FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
"""

_HEIRS = "SELECT inhrelid FROM pg_catalog.pg_inherits"
_VIEW_KINDS = ("v", "m")

Place = tuple[str, str, str]  # schema, table, column


@dataclass(frozen=True, order=True)
class EnumType:
    """An enum of the source."""

    schema: str
    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class SourceType:
    """The type of a column, without domains.

    Attributes:
        name: as PostgreSQL writes it.
        is_builtin: whether every PostgreSQL has it.
        enum: the enum that it is, or is an array of.
    """

    name: str
    is_builtin: bool
    enum: EnumType | None = None
    is_array: bool = False


@dataclass(frozen=True)
class SourceTables:
    """The tables of a source.

    Attributes:
        catalog: tables, views, comments, keys and allowed values.
        types: the types of the columns.
        collation: the encoding, and how text is sorted.
    """

    catalog: Catalog
    types: Mapping[Place, SourceType]
    collation: str


def read_source(
    name: str, address: SourceAddress, schemas: Collection[str], *, with_views: bool
) -> SourceTables:
    """Read the tables of a PostgreSQL source.

    Tables that inherit from others are left out: their rows are among those of these, and a rule
    for the one would not reach the other.

    Args:
        schemas: those that are read; empty: all.
        with_views: whether views are read as well.

    Raises:
        SourceError: it does not answer within a minute.
    """
    try:
        return asyncio.run(_read_tables(address, schemas, with_views=with_views))
    except (DatabaseUnavailable, TimeoutError, psycopg2.Error) as error:
        raise SourceError(
            f"现在无法读取 {name} 的表：它在运行吗？",
            f"The tables of {name} can't be read now: is it up?",
        ) from error


async def _read_tables(
    address: SourceAddress, schemas: Collection[str], *, with_views: bool
) -> SourceTables:
    opening = partial(connect, lambda: address.dsn, PostgresLimits(), timeout_s=_CONNECT_S)
    connection = await opening()
    try:
        async with asyncio.timeout(_READ_S):
            return await _read_all(connection, schemas, with_views=with_views)
    finally:
        connection.close()


async def _read_all(
    connection: Connection, schemas: Collection[str], *, with_views: bool
) -> SourceTables:
    heirs = {oid for (oid,) in (await connection.query(_HEIRS)).rows}
    chosen = []
    for relation in await read_relations(connection):
        is_wanted = with_views or relation.kind not in _VIEW_KINDS
        is_inside = not schemas or relation.schema in schemas
        if is_wanted and is_inside and relation.oid not in heirs:
            chosen.append(relation)

    catalog = await read_catalog(connection, chosen, await read_columns(connection))
    types: dict[Place, SourceType] = {}
    for *place, name, builtin, enum_schema, enum, labels, is_array in (
        await connection.query(_TYPES)
    ).rows:
        enum_type = EnumType(enum_schema, enum, parse_texts(labels)) if enum else None
        schema, table, column = place
        types[schema, table, column] = SourceType(name, builtin == "t", enum_type, is_array == "t")

    ((collation,),) = (await connection.query(COLLATION)).rows
    return SourceTables(catalog, types, str(collation))
