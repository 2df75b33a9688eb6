"""The foreign tables of a hub that stand for a source's tables, and what is copied to them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from psycopg2 import extensions, sql

from common.values import Column, ForeignKey, Table
from databases.catalog.source_notes import NotedKeys
from databases.sources.hub_statements import column_options, create_foreign_table
from databases.sources.source_reading import EnumType, SourceTables, SourceType

Cursor = extensions.cursor


@dataclass(frozen=True)
class HubTable:
    """A table of the source, as it is made in the hub.

    Attributes:
        table: with the hub's schema.
        remote: schema and name in the source.
        types: the types of its columns, as SQL.
        enums: the hub's enums that its columns are of.
        left_out: columns of types that the hub does not have.
    """

    table: Table
    remote: tuple[str, str]
    types: Mapping[str, str]
    enums: frozenset[EnumType] = frozenset()
    left_out: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return a text that changes with what has to be made anew."""
        columns = [
            (column.name, self.types[column.name], column.nullable, column.allowed)
            for column in self.columns
        ]
        enums = sorted((enum.schema, enum.name, enum.labels) for enum in self.enums)
        return hashlib.sha256(repr((self.remote, columns, enums)).encode()).hexdigest()[:16]

    @property
    def columns(self) -> Sequence[Column]:
        """Return the columns that the hub has."""
        return self.table.columns


@dataclass(frozen=True)
class HubTables:
    """All tables of a source, as they are made in the hub."""

    tables: Sequence[HubTable]
    schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def enums(self) -> frozenset[EnumType]:
        """Return the enums that their columns are of."""
        return frozenset().union(*(table.enums for table in self.tables))

    def keys(self) -> Iterator[NotedKeys]:
        """Yield the keys among these tables."""
        for table in self.tables:
            yield NotedKeys.of(table.table)


def hub_schemas(name: str, source_tables: SourceTables) -> Mapping[str, str]:
    """Return the hub's schema for each schema of a source: the source's name alone where it has
    but one.
    """
    schemas = sorted({table.schema for table in source_tables.catalog.tables})
    if len(schemas) == 1:
        return {schemas[0]: name}

    return {schema: f"{name}_{schema}" for schema in schemas}


def hub_tables(
    cursor: Cursor, source_tables: SourceTables, schemas: Mapping[str, str]
) -> HubTables:
    """Return the tables of a source as the hub can have them."""
    types_there: dict[str, bool] = {}
    tables = []
    for table in source_tables.catalog.tables:
        tables.append(_hub_table(cursor, table, source_tables, schemas, types_there))

    return HubTables(_with_keys_among(tables), schemas)


def _hub_table(
    cursor: Cursor,
    table: Table,
    source_tables: SourceTables,
    schemas: Mapping[str, str],
    types_there: dict[str, bool],
) -> HubTable:
    types: dict[str, str] = {}
    enums: set[EnumType] = set()
    copied_columns, left_out = [], []
    for column in table.columns:
        place = (table.schema, table.name, column.name)
        kind = source_tables.types[place]
        written = _written(cursor, kind, schemas, types_there)
        if written is None:
            left_out.append(column.name)
            continue

        copied_columns.append(column)
        types[column.name] = written
        if kind.enum is not None:
            enums.add(_in_hub(kind.enum, schemas))

    schema = schemas[table.schema]
    foreign = []
    for key in table.foreign_keys:
        if key.target[0] in schemas:
            target = (schemas[key.target[0]], key.target[1])
            foreign.append(ForeignKey(key.columns, target, key.target_columns))

    moved = replace(
        table, schema=schema, columns=tuple(copied_columns), foreign_keys=tuple(foreign)
    )
    return HubTable(moved, table.key, types, frozenset(enums), tuple(left_out))


def _with_keys_among(tables: Sequence[HubTable]) -> Sequence[HubTable]:
    """Return the tables without keys on columns that the hub leaves out."""
    left_out = {hub_table.table.key: set(hub_table.left_out) for hub_table in tables}
    with_keys = []
    for hub_table in tables:
        own = left_out[hub_table.table.key]
        foreign = []
        for key in hub_table.table.foreign_keys:
            gone = left_out.get(key.target, set())
            if own.isdisjoint(key.columns) and gone.isdisjoint(key.target_columns):
                foreign.append(key)

        primary = hub_table.table.primary_key
        if not own.isdisjoint(primary):
            primary = ()

        unique = tuple(key for key in hub_table.table.unique_keys if own.isdisjoint(key))
        table = replace(
            hub_table.table, primary_key=primary, unique_keys=unique, foreign_keys=tuple(foreign)
        )
        with_keys.append(replace(hub_table, table=table))

    return with_keys


def _in_hub(enum: EnumType, schemas: Mapping[str, str]) -> EnumType:
    """Return the enum in the hub's schema for its own, or else for the first."""
    schema = schemas.get(enum.schema) or next(iter(schemas.values()))
    return replace(enum, schema=schema)


def _written(
    cursor: Cursor, kind: SourceType, schemas: Mapping[str, str], types_there: dict[str, bool]
) -> str | None:
    """Return how the hub writes the type; None when it has none of that name."""
    if kind.enum is not None:
        enum = _in_hub(kind.enum, schemas)
        name = sql.Identifier(enum.schema, enum.name).as_string(cursor)
        return f"{name}[]" if kind.is_array else name

    if kind.is_builtin:
        return kind.name
    if kind.name not in types_there:
        cursor.execute("SELECT pg_catalog.to_regtype(%s) IS NOT NULL", [kind.name])
        types_there[kind.name] = cursor.fetchall() == [(True,)]

    return kind.name if types_there[kind.name] else None


def create_enum(cursor: Cursor, enum: EnumType) -> None:
    """Create the enum in the hub."""
    labels = sql.SQL(", ").join(map(sql.Literal, enum.labels))
    name = sql.Identifier(enum.schema, enum.name)
    cursor.execute(sql.SQL("CREATE TYPE {} AS ENUM ({})").format(name, labels))


def create_table(cursor: Cursor, server: str, hub_table: HubTable) -> None:
    """Create the foreign table."""
    columns = sql.SQL(", ").join(_definition(hub_table, column) for column in hub_table.columns)
    options = {"schema_name": hub_table.remote[0], "table_name": hub_table.remote[1]}
    create_foreign_table(cursor, server, hub_table.table.key, columns, options)


def _definition(hub_table: HubTable, column: Column) -> sql.Composable:
    name = sql.Identifier(column.name)
    parts: list[sql.Composable] = [
        name,
        sql.SQL(hub_table.types[column.name]),
        column_options({"column_name": column.name}),
    ]
    if not column.nullable:
        parts.append(sql.SQL("NOT NULL"))
    if column.allowed and not any(enum.labels == column.allowed for enum in hub_table.enums):
        values = sql.SQL(", ").join(map(sql.Literal, column.allowed))
        parts.append(sql.SQL("CHECK ({} IN ({}))").format(name, values))

    return sql.SQL(" ").join(parts)
