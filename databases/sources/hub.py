"""Attaches sources to a hub, refreshes, checks and detaches them.

Each command is one transaction of the hub: a source is attached whole, or not at all. The planner's
statistics are read afterwards, table by table.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import psycopg2
from psycopg2 import extensions, sql

from common.text import Text
from databases.catalog.source_notes import NotedReference, SourceNote, note_in
from databases.sources.cross_references import cross_references
from databases.sources.hub_comments import HubComments
from databases.sources.hub_statements import create_server
from databases.sources.hub_tables import (
    HubTable,
    HubTables,
    create_enum,
    create_table,
    hub_schemas,
    hub_tables,
)
from databases.sources.mysql_source import (
    create_mysql_server,
    limit_sessions,
    make_mysql_tables,
    mysql_schemas,
    prove_mysql_read_only,
    raw_schema,
)
from databases.sources.source_address import (
    READ_ONLY,
    SERVER_PARTS,
    USER_PARTS,
    SourceAddress,
    SourceError,
)
from databases.sources.source_reading import COLLATION, EnumType, SourceTables, read_source
from databases.sources.source_role import prove_read_only, prove_through_hub
from postgres.connection_errors import first_line

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_RESERVED = ("public", "information_schema")
# What the hub tells every PostgreSQL source. A source that is away is given up after seconds.
_POSTGRES_OPTIONS: Mapping[str, str] = {
    "options": READ_ONLY,
    "use_remote_estimate": "true",
    "updatable": "false",
    "truncatable": "false",
    "fetch_size": "1000",
    "connect_timeout": "5",
    "tcp_user_timeout": "10000",
    "keepalives_idle": "30",
    "application_name": "citu hub",
}
_WITHOUT_PASSWORD = {"password_required": "false"}
_LOCK_MS = 5000
_ANALYZE_MS = 60_000
_SAMPLES = 160_000  # the version from which on ANALYZE has the source sample a foreign table
_MOST_ROWS_READ = 1_000_000  # of a table that an older hub reads whole for its statistics

Say = Callable[[Text], None]


@dataclass(frozen=True)
class AttachedSource:
    """A source as a hub knows it."""

    name: str
    note: SourceNote


@dataclass(frozen=True)
class _SourceKind:
    """The four actions of a hub on sources of one engine."""

    attach: Callable[["Hub", str, SourceAddress, SourceNote, Collection[str]], None]
    refresh: Callable[["Hub", AttachedSource], None]
    check: Callable[["Hub", AttachedSource], None]
    drop: Callable[["Hub", extensions.cursor, SourceNote], None]


class Hub:
    """A hub, by a role that may create extensions, servers and schemas in it.

    Args:
        url: the URL of the hub.
        say: is told what happens, one line each.

    Raises:
        SourceError: it can't be reached.
    """

    def __init__(self, url: str, say: Say) -> None:
        self._say = say
        try:
            self._connection: extensions.connection = psycopg2.connect(url, connect_timeout=10)
        except psycopg2.Error as error:
            message = first_line(error, "no answer")
            raise SourceError(
                f"无法连接枢纽：{message}", f"The hub can't be reached: {message}"
            ) from error

    def close(self) -> None:
        self._connection.close()

    def attach(
        self,
        name: str,
        address: SourceAddress,
        reader: str,
        schemas: Collection[str] = (),
        *,
        with_views: bool = False,
        with_references: bool = True,
    ) -> None:
        """Attach a source for the hub's role `reader`.

        Args:
            name: the name of the source, its server and its schema in the hub.
            schemas: the source's; empty: all that its role may read.
            with_views: whether its views are attached, too. Row rules for a table don't reach them.
            with_references: whether its columns may refer to tables of other sources, and theirs to
                its own.

        Raises:
            SourceError: it can't be attached; the hub is as before.
        """
        if not _NAME.fullmatch(name) or name in _RESERVED or name.startswith("pg_"):
            raise SourceError(
                f"{name!r} 不能作为来源的名称：应如 crm，由 a-z、0-9、_ 组成",
                f"{name!r} is no name of a source: it is such as crm, of a-z, 0-9, _",
            )

        note = SourceNote(
            address.kind, {}, reader, has_views=with_views, has_references=with_references
        )
        self._KINDS[address.kind].attach(self, name, address, note, schemas)
        self._relate()

    def _attach_postgres(
        self, name: str, address: SourceAddress, note: SourceNote, schemas: Collection[str]
    ) -> None:
        prove_read_only(name, address)
        source_tables = read_source(name, address, schemas, with_views=note.has_views)
        if not source_tables.catalog.tables:
            raise SourceError(
                f"角色 {address.role} 不能读取 {name} 的任何表。",
                f"The role {address.role} may read no table of {name}.",
            )

        with self._transaction() as cursor:
            self._create_server(cursor, name, address, note.reader)
            new_tables = hub_tables(cursor, source_tables, hub_schemas(name, source_tables))
            self._make(cursor, name, new_tables, note)
            schema = next(iter(new_tables.schemas.values()))
            prove_through_hub(self._connection, name, schema, note.reader)

        self._warn_of_collation(name, source_tables)
        self._analyze(new_tables.tables)
        self._say_attached(name, len(new_tables.tables))

    def refresh(self, name: str) -> None:
        """Follow the changes of a source's tables; those that stay the same are not touched, nor
        are comments that somebody has changed in the hub.

        Raises:
            SourceError: it can't be done now; the hub is as before.
        """
        source = self.source(name)
        self._KINDS[source.note.kind].refresh(self, source)
        self._relate()

    def _relate(self) -> None:
        """Note which columns of sources refer to tables of others."""
        notes = dict(self._notes())
        with self._transaction() as cursor:
            references_found = cross_references(cursor, notes)
            for name, note in notes.items():
                references = references_found.get(name, ())
                if list(references) == list(note.references):
                    continue

                self._note(cursor, name, replace(note, references=references))
                for reference in references:
                    if reference not in note.references:
                        self._say_related(reference)

    def _say_related(self, reference: NotedReference) -> None:
        column = ".".join((*reference.table, reference.column))
        target = ".".join((*reference.target, reference.target_column))
        self._say_text(
            f"{column} 引用 {target}：名称和值都相符",
            f"{column} refers to {target}: its name and its values say so",
        )

    def _refresh_postgres(self, source: AttachedSource) -> None:
        name = source.name
        address = self._address(source)
        prove_read_only(name, address)
        source_tables = self._source_tables(source, address)
        with self._transaction() as cursor:
            new_tables = hub_tables(cursor, source_tables, source.note.schemas)
            changed = self._make(cursor, name, new_tables, source.note)

        self._analyze(
            [hub_table for hub_table in new_tables.tables if hub_table.table.key in changed]
        )
        self._say_refreshed(name, len(new_tables.tables), len(changed))

    def check(self, name: str) -> None:
        """Prove once more that a source can only be read, and tell what has changed there.

        Raises:
            SourceError: it could be written to, or can't be read now.
        """
        source = self.source(name)
        self._KINDS[source.note.kind].check(self, source)

    def _check_postgres(self, source: AttachedSource) -> None:
        name = source.name
        address = self._address(source)
        prove_read_only(name, address)
        schema = next(iter(source.note.schemas.values()))
        with self._transaction():
            prove_through_hub(self._connection, name, schema, source.note.reader)

        source_tables = self._source_tables(source, address)
        with self._transaction() as cursor:
            new_tables = hub_tables(cursor, source_tables, source.note.schemas)

        changed = _changed(source.note, new_tables)
        for key in sorted(changed):
            table = ".".join(key)
            self._say_text(
                f"{name}：{table} 在来源中已改变：请刷新",
                f"{name}: {table} has changed in the source: refresh it",
            )

        self._say_checked(name, len(new_tables.tables))

    def _source_tables(self, source: AttachedSource, address: SourceAddress) -> SourceTables:
        note = source.note
        return read_source(source.name, address, note.schemas, with_views=note.has_views)

    def detach(self, name: str) -> None:
        """Remove a source from the hub.

        Raises:
            SourceError: something else in the hub depends on its tables.
        """
        source = self.source(name)
        with self._transaction() as cursor:
            self._KINDS[source.note.kind].drop(self, cursor, source.note)
            cursor.execute(sql.SQL("DROP SERVER {} CASCADE").format(sql.Identifier(name)))

        self._say_text(f"{name} 已移除", f"{name} is detached")

    def _drop_postgres(self, cursor: extensions.cursor, note: SourceNote) -> None:
        self._drop(cursor, HubTables((), note.schemas), note, set(note.digests))
        self._drop_schemas(cursor, note.schemas.values())

    def _attach_mysql(
        self, name: str, address: SourceAddress, note: SourceNote, schemas: Collection[str]
    ) -> None:
        named = mysql_schemas(name, [*schemas] or [address.server["dbname"]])
        with self._transaction() as cursor:
            create_mysql_server(cursor, name, address, note.reader)
            prove_mysql_read_only(cursor, name)
            new_note = self._make_mysql(cursor, name, replace(note, schemas=named))
            if not new_note.digests:
                raise SourceError(
                    f"用户 {address.role} 不能读取 {name} 的任何表。",
                    f"The user {address.role} may read no table of {name}.",
                )

        self._say_attached(name, len(new_note.digests))

    def _refresh_mysql(self, source: AttachedSource) -> None:
        with self._transaction() as cursor:
            limit_sessions(cursor, source.name)
            prove_mysql_read_only(cursor, source.name)
            new_note = self._make_mysql(cursor, source.name, source.note)

        self._say_refreshed(source.name, len(new_note.digests), len(new_note.digests))

    def _check_mysql(self, source: AttachedSource) -> None:
        with self._transaction() as cursor:
            prove_mysql_read_only(cursor, source.name)

        self._say_checked(source.name, len(source.note.digests))

    def _make_mysql(self, cursor: extensions.cursor, name: str, note: SourceNote) -> SourceNote:
        comments = HubComments(cursor, note.schemas.values(), note.comments)
        if note.digests:
            self._drop_mysql(cursor, note)

        new_note, left_out = make_mysql_tables(cursor, name, note, comments)
        for column in left_out:
            self._say_left_out(name, column)

        self._grant(cursor, new_note.reader, new_note.schemas)
        self._note(cursor, name, new_note)
        return new_note

    def _drop_mysql(self, cursor: extensions.cursor, note: SourceNote) -> None:
        for schema, table in note.digests:
            view = sql.Identifier(schema, table)
            raw = sql.Identifier(raw_schema(schema), table)
            cursor.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(view))
            cursor.execute(sql.SQL("DROP FOREIGN TABLE IF EXISTS {}").format(raw))

        for schema in note.schemas.values():
            self._drop_schemas(cursor, (schema, raw_schema(schema)))

    def _drop_schemas(self, cursor: extensions.cursor, schemas: Iterable[str]) -> None:
        for schema in schemas:
            cursor.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(schema)))

    def names(self) -> Sequence[str]:
        """Return the names of the attached sources."""
        return [name for name, _ in self._notes()]

    def source(self, name: str) -> AttachedSource:
        """Return an attached source.

        Raises:
            SourceError: there is none of that name.
        """
        note = dict(self._notes()).get(name)
        if note is None:
            names = ", ".join(self.names()) or "none"
            raise SourceError(
                f"枢纽没有来源 {name}；已有：{names}。",
                f"The hub has no source {name}; it has: {names}.",
            )

        return AttachedSource(name, note)

    def _address(self, source: AttachedSource) -> SourceAddress:
        """Return where a source is, as the hub was told."""
        name, note = source.name, source.note
        with self._transaction() as cursor:
            cursor.execute(_MAPPING, [name, note.reader])
            row = cursor.fetchone()

        if row is None:
            raise SourceError(
                f"{name} 没有 {note.reader} 的用户映射：请重新接入。",
                f"{name} has no user mapping for {note.reader}: attach it again.",
            )

        server = {key: value for key, value in _options(row[0]).items() if key in SERVER_PARTS}
        user = {key: value for key, value in _options(row[1]).items() if key in USER_PARTS}
        return SourceAddress(note.kind, server, user)

    def _notes(self) -> Iterator[tuple[str, SourceNote]]:
        with self._transaction() as cursor:
            cursor.execute(_SERVERS)
            rows = cursor.fetchall()

        for name, comment in rows:
            note = note_in(comment)
            if note is not None:
                yield name, note

    def _create_server(
        self, cursor: extensions.cursor, name: str, address: SourceAddress, reader: str
    ) -> None:
        user = dict(address.user)
        if "password" not in user:
            user |= _WITHOUT_PASSWORD

        options = {**address.server, **_POSTGRES_OPTIONS}
        create_server(cursor, name, "postgres_fdw", options, reader, user)

    def _make(
        self,
        cursor: extensions.cursor,
        name: str,
        new_tables: HubTables,
        note_before: SourceNote,
    ) -> Collection[tuple[str, str]]:
        """Make the tables of a source that are not there as they should be; return their keys."""
        changed = _changed(note_before, new_tables)
        comments = HubComments(cursor, new_tables.schemas.values(), note_before.comments)
        self._drop(cursor, new_tables, note_before, changed)
        for schema in new_tables.schemas.values():
            cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))

        for enum in sorted(new_tables.enums - self._enums(cursor, new_tables.schemas)):
            create_enum(cursor, enum)

        for hub_table in new_tables.tables:
            if hub_table.table.key in changed:
                create_table(cursor, name, hub_table)

            comments.copy("FOREIGN TABLE", hub_table.table)
            for column in hub_table.left_out:
                self._say_left_out(name, ".".join((*hub_table.table.key, column)))

        self._grant(cursor, note_before.reader, new_tables.schemas)
        digests = {hub_table.table.key: hub_table.digest for hub_table in new_tables.tables}
        note = replace(
            note_before,
            schemas=new_tables.schemas,
            keys=list(new_tables.keys()),
            digests=digests,
            comments=comments.copied,
        )
        self._note(cursor, name, note)
        return changed

    def _note(self, cursor: extensions.cursor, name: str, note: SourceNote) -> None:
        cursor.execute(
            sql.SQL("COMMENT ON SERVER {} IS {}").format(
                sql.Identifier(name), sql.Literal(note.text())
            )
        )

    def _drop(
        self,
        cursor: extensions.cursor,
        new_tables: HubTables,
        note_before: SourceNote,
        changed: Collection[tuple[str, str]],
    ) -> None:
        """Drop tables that have changed or are gone, and enums that no table needs any more."""
        unchanged = {hub_table.table.key for hub_table in new_tables.tables} - set(changed)
        for key in sorted(set(note_before.digests) - unchanged):
            cursor.execute(sql.SQL("DROP FOREIGN TABLE IF EXISTS {}").format(sql.Identifier(*key)))

        for enum in sorted(self._enums(cursor, new_tables.schemas) - new_tables.enums):
            place = sql.Identifier(enum.schema, enum.name)
            cursor.execute(sql.SQL("DROP TYPE {}").format(place))

    def _enums(self, cursor: extensions.cursor, schemas: Mapping[str, str]) -> frozenset[EnumType]:
        """Return the enums in the hub's schemas of a source."""
        cursor.execute(_ENUMS, [list(schemas.values())])
        return frozenset(
            EnumType(schema, name, tuple(labels)) for schema, name, labels in cursor.fetchall()
        )

    def _say_text(self, zh: str, en: str) -> None:
        self._say(Text(zh, en))

    def _say_attached(self, name: str, tables: int) -> None:
        self._say_text(f"{name}：已接入 {tables} 张表", f"{name}: {tables} tables are attached")

    def _say_refreshed(self, name: str, tables: int, anew: int) -> None:
        self._say_text(
            f"{name}：{tables} 张表，其中 {anew} 张重新建立",
            f"{name}: {tables} tables, {anew} of them made anew",
        )

    def _say_checked(self, name: str, tables: int) -> None:
        self._say_text(
            f"{name}：只能读取；{tables} 张表", f"{name}: can only be read; {tables} tables"
        )

    def _say_left_out(self, name: str, column: str) -> None:
        self._say_text(
            f"{name}：{column} 因类型而省略", f"{name}: {column} is left out for its type"
        )

    def _grant(self, cursor: extensions.cursor, reader: str, schemas: Mapping[str, str]) -> None:
        for schema in schemas.values():
            for statement in (
                "GRANT USAGE ON SCHEMA {} TO {}",
                "GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}",
            ):
                cursor.execute(
                    sql.SQL(statement).format(sql.Identifier(schema), sql.Identifier(reader))
                )

    def _analyze(self, tables: Sequence[HubTable]) -> None:
        """Read the planner's statistics of the tables; what takes too long goes without."""
        samples = self._connection.server_version >= _SAMPLES
        for hub_table in tables:
            name = ".".join(hub_table.table.key)
            if not samples and hub_table.table.row_estimate > _MOST_ROWS_READ:
                self._say_text(
                    f"{name}：没有统计信息，因为这个枢纽会读取所有行",
                    f"{name}: no statistics, because this hub would read all its rows",
                )
                continue

            try:
                with self._transaction() as cursor:
                    cursor.execute(f"SET LOCAL statement_timeout = {_ANALYZE_MS}")
                    cursor.execute(
                        sql.SQL("ANALYZE {}").format(sql.Identifier(*hub_table.table.key))
                    )
            except SourceError as error:
                self._say_text(
                    f"{name}：没有统计信息。{error.text.zh}", f"{name}: no statistics. {error}"
                )

    def _warn_of_collation(self, name: str, source_tables: SourceTables) -> None:
        with self._transaction() as cursor:
            cursor.execute(COLLATION)
            (own,) = cursor.fetchall()[0]

        collation = source_tables.collation
        if own != collation:
            self._say_text(
                f"{name}：它按 {collation} 排序文本，枢纽按 {own}：请用相同的规则建立枢纽，"
                "否则文本的连接和排序可能出错",
                f"{name}: it sorts text by {collation}, the hub by {own}: make the hub with"
                " the same, or joins and sorts by text can be wrong",
            )

    @contextmanager
    def _transaction(self) -> Iterator[extensions.cursor]:
        """Commit what is done inside.

        Raises:
            SourceError: PostgreSQL refused something; then nothing was done.
        """
        try:
            with self._connection, self._connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
                yield cursor
        except psycopg2.Error as error:
            reason = first_line(error, type(error).__name__)
            raise SourceError(f"枢纽拒绝了：{reason}", f"The hub refused: {reason}") from error

    _KINDS: ClassVar[Mapping[str, _SourceKind]] = {
        "postgresql": _SourceKind(
            _attach_postgres, _refresh_postgres, _check_postgres, _drop_postgres
        ),
        "mysql": _SourceKind(_attach_mysql, _refresh_mysql, _check_mysql, _drop_mysql),
    }


_SERVERS = """
SELECT s.srvname, d.description FROM pg_catalog.pg_foreign_server s
JOIN pg_catalog.pg_description d ON d.objoid = s.oid
    AND d.classoid = 'pg_catalog.pg_foreign_server'::pg_catalog.regclass
ORDER BY s.srvname
"""
# Only a superuser sees what another role's mapping says; the owner's own says the same.
_MAPPING = """
SELECT s.srvoptions, m.umoptions FROM pg_catalog.pg_foreign_server s
JOIN pg_catalog.pg_user_mappings m ON m.srvid = s.oid
WHERE s.srvname = %s AND m.usename IN (%s, current_user) AND m.umoptions IS NOT NULL
LIMIT 1
"""
_ENUMS = """
SELECT n.nspname, t.typname, pg_catalog.array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
JOIN pg_catalog.pg_enum e ON e.enumtypid = t.oid
WHERE n.nspname = ANY (%s) GROUP BY n.nspname, t.typname
"""


def _options(pairs: Sequence[str] | None) -> Mapping[str, str]:
    """Return options that PostgreSQL gives as `name=value`."""
    split = (pair.partition("=") for pair in pairs or ())
    return {name: value for name, _, value in split}


def _changed(note_before: SourceNote, new_tables: HubTables) -> set[tuple[str, str]]:
    """Return the keys of tables that are not in the hub as they should be."""
    return {
        hub_table.table.key
        for hub_table in new_tables.tables
        if note_before.digests.get(hub_table.table.key) != hub_table.digest
    }
