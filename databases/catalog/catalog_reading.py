"""Reads the tables and columns that the connected role may read, with their keys, comments and
allowed values.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from psycopg2 import errors

from common.values import Catalog, Column, ForeignKey, RelationKind, Table
from databases.catalog import catalog_queries as queries
from databases.catalog.loop_yielding import yielding_to_loop
from databases.catalog.source_notes import noted_keys
from databases.catalog.value_lists import value_lists
from postgres.arrays import parse_texts
from postgres.connection import Connection, Row

_log = logging.getLogger(__name__)
_MAX_COMMENT_CHARS = 2_000
_MAX_ALLOWED = 200  # values that an enum or a CHECK lists; longer lists are left out
_KINDS: Mapping[str, RelationKind] = {
    "v": "view",
    "m": "materialized view",
}


@dataclass(frozen=True)
class CatalogRelation:
    """A table or view: a row of `catalog_queries.RELATIONS`. `bytes` is None for what stores
    nothing, such as views.
    """

    oid: str
    schema: str
    name: str
    kind: str
    row_estimate: int
    bytes: int | None
    comment: str | None


@dataclass(frozen=True)
class Attribute:
    """A column, and what the reader needs to know of its type.

    Attributes:
        is_text: whether its values may be sampled.
        is_day: whether it holds dates or time stamps.
        type_oid: the oid of its type.
        enum_oid: the oid of the enum that the type is, or is an array or a domain of; else "0".
    """

    column: Column
    is_text: bool
    is_day: bool
    type_oid: str
    enum_oid: str


async def read_relations(connection: Connection) -> list[CatalogRelation]:
    """Return the tables and views; raises psycopg2's errors."""
    relations: list[CatalogRelation] = []
    for oid, schema, name, kind, estimate, size, comment in await _with_comments(
        connection, queries.RELATIONS
    ):
        stored = None if size is None else int(size)
        relation = CatalogRelation(oid, schema, name, kind, int(estimate), stored, comment)
        relations.append(relation)

    return relations


async def read_columns(connection: Connection) -> Mapping[str, list[Attribute]]:
    """Return the columns by the oid of their table, in order; raises psycopg2's errors."""
    attributes: defaultdict[str, list[Attribute]] = defaultdict(list)
    distinct: dict[Attribute, Attribute] = {}  # thousands of tables have the same ones
    rows = await _with_comments(connection, queries.COLUMNS)
    async for oid, name, kind, nullable, comment, is_text, is_day, *types in yielding_to_loop(rows):
        column = Column(name=name, type=kind, comment=_shortened(comment), nullable=nullable == "t")
        attribute = Attribute(column, is_text == "t", is_day == "t", *types)
        attributes[oid].append(distinct.setdefault(attribute, attribute))

    return attributes


async def read_catalog(
    connection: Connection,
    relations: Iterable[CatalogRelation],
    attributes: Mapping[str, list[Attribute]],
    *,
    is_citus: bool = False,
) -> Catalog:
    """Return the catalogue, still without values that the tables hold; raises psycopg2's errors."""
    relations = list(relations)
    keys = await _read_keys(connection)
    await _add_noted_keys(connection, keys, relations)
    distributed = await _read_distributed(connection, is_citus=is_citus)
    allowed = await _read_allowed(connection, attributes)

    def column_of(relation: CatalogRelation, column: Column) -> Column:
        values = allowed.get((relation.oid, column.name))
        return replace(column, allowed=values) if values else column

    tables = [
        Table(
            schema=relation.schema,
            name=relation.name,
            kind=_KINDS.get(relation.kind, "table"),
            columns=tuple(column_of(relation, each.column) for each in attributes[relation.oid]),
            comment=_shortened(relation.comment),
            primary_key=keys.primary.get(relation.oid, ()),
            foreign_keys=tuple(keys.foreign[relation.oid]),
            unique_keys=tuple(keys.unique[relation.oid]),
            row_estimate=relation.row_estimate,
            distributed_by=distributed.get(relation.oid, ()),
        )
        async for relation in yielding_to_loop(relations)
    ]
    catalog = Catalog(tables=tuple(tables), search_path=connection.search_path)
    return await asyncio.to_thread(catalog.coherent)


async def _read_distributed(
    connection: Connection, *, is_citus: bool
) -> Mapping[str, tuple[str, ...]]:
    """Return the columns by which tables are spread over servers, by the table's oid."""
    rows = (await connection.query(queries.SPREAD_BY_PARTITIONS)).rows
    if is_citus:
        rows += (await connection.query(queries.SPREAD_BY_CITUS)).rows

    return {oid: parse_texts(columns) for oid, columns in rows}


async def _with_comments(connection: Connection, query: str) -> list[Row]:
    """Return the query's rows; without any comments when one of them is not UTF-8.

    A database with the encoding SQL_ASCII may hold such comments, and the server then refuses the
    whole result.
    """
    try:
        return (await connection.query(query)).rows
    except errors.CharacterNotInRepertoire:
        _log.warning("a comment is not UTF-8; tables and columns are read without their comments")
        return (await connection.query(query.replace("d.description", "NULL"))).rows


async def _rows_if_text(connection: Connection, query: str) -> list[Row]:
    """Return the query's rows; none when a text in them is not UTF-8 (see `_with_comments`)."""
    try:
        return (await connection.query(query)).rows
    except errors.CharacterNotInRepertoire:
        _log.warning(
            "a value in a type or constraint is not UTF-8; columns are read without their allowed"
            " values"
        )
        return []


@dataclass(frozen=True)
class _Keys:
    """Primary, unique and foreign keys by the oid of their table."""

    primary: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unique: defaultdict[str, list[tuple[str, ...]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    foreign: defaultdict[str, list[ForeignKey]] = field(default_factory=lambda: defaultdict(list))


async def _read_keys(connection: Connection) -> _Keys:
    keys = _Keys()
    rows = (await connection.query(queries.KEYS)).rows
    async for oid, kind, columns, schema, name, targets in yielding_to_loop(rows):
        own = parse_texts(columns)
        if kind == "p":
            keys.primary[oid] = own
        elif kind == "u":
            keys.unique[oid].append(own)
        else:
            key = ForeignKey(own, (schema, name), parse_texts(targets))
            keys.foreign[oid].append(key)

    return keys


async def _add_noted_keys(
    connection: Connection, keys: _Keys, relations: Iterable[CatalogRelation]
) -> None:
    """Add the keys of attached sources' tables, which the server itself can't hold."""
    rows = await _rows_if_text(connection, queries.SOURCE_NOTES)
    if not rows:
        return

    noted = noted_keys(comment for (comment,) in rows)
    for relation in relations:
        own = noted.get((relation.schema, relation.name))
        if own is not None:
            keys.primary[relation.oid] = own.primary
            keys.unique[relation.oid] += own.unique
            keys.foreign[relation.oid] += own.foreign


# (table's oid, column) → the only values it can have
_Allowed = Mapping[tuple[str, str], tuple[str, ...]]


async def _read_allowed(
    connection: Connection, attributes: Mapping[str, list[Attribute]]
) -> _Allowed:
    """Return what enums and CHECKs let columns have; a table's CHECK counts before its type's."""
    labels = await _rows_if_text(connection, queries.LABELS)
    checks = await _rows_if_text(connection, queries.CHECKS)
    # Parsing thousands of constraints takes a second, so it is done in a thread.
    of_tables, of_domains = await asyncio.to_thread(_listed_values, checks)
    of_types = {oid: parse_texts(text) for oid, text in labels} | of_domains
    allowed: dict[tuple[str, str], tuple[str, ...]] = {}
    async for table, columns in yielding_to_loop(attributes.items()):
        for each in columns:
            of_type = of_types.get(each.type_oid, ())
            allowed[table, each.column.name] = of_type or of_types.get(each.enum_oid, ())

    allowed |= of_tables
    return {key: values for key, values in allowed.items() if 0 < len(values) <= _MAX_ALLOWED}


def _listed_values(
    checks: Iterable[Row],
) -> tuple[dict[tuple[str, str], tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the values that CHECKs list: by (table's oid, column), and by the oid of a domain."""
    of_tables: dict[tuple[str, str], tuple[str, ...]] = {}
    of_domains: dict[str, tuple[str, ...]] = {}
    for table, domain, expression in checks:
        lists = value_lists(expression)
        if domain != "0" and "value" in lists:
            of_domains[domain] = lists["value"]
        if table != "0":
            of_tables |= {(table, column): values for column, values in lists.items()}

    return of_tables, of_domains


def _shortened(comment: str | None) -> str | None:
    return comment[:_MAX_COMMENT_CHARS] if comment else None
