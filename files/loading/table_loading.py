"""Carries out a plan in one transaction: readers see the tables as they were, or as they will be.

A table that takes the place of another is built beside it, and renamed when it is complete; only
the renaming keeps readers waiting.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql

from common.text import Text
from files.loading.file_records import Connection, save_record
from files.loading.load_plan import LoadedTable, LoadPlan, PlannedColumn, PlannedTable
from files.reading.copying import confirmed_column, copied
from files.reading.sheet_drafts import DataRows
from files.reading.sheets import Sheet
from files.reading.unreadable import UnreadableFile, refusal
from files.reading.value_forms import SQL_TYPES, ColumnType

_BUILDING = "citu_new_table_{}"
_SWAP_S = 30  # that a swap waits for statements that read the table
_TELL_ROWS = 50_000  # between two reports of progress
_MEGABYTE = 1024 * 1024

OnRows = Callable[[int], None]
"""Is told how many rows were loaded."""


def load(plan: LoadPlan, sheets: Mapping[str, Sheet], on_rows: OnRows) -> list[LoadedTable]:
    """Carry out the plan.

    Args:
        sheets: the sheets of the upload, by their keys.

    Raises:
        UnreadableFile: rows can't be read, or the tables would be larger than they may be.
        psycopg.Error: the server refuses, or went away.
    """
    with psycopg.connect(plan.url, application_name="citu files") as connection:
        return _Loading(connection, plan, on_rows).run(sheets)


@dataclass(frozen=True)
class _Reference:
    """A column of a table whose values are keys of another one."""

    table: str
    column: str
    other: str
    key: str


class _Loading:
    def __init__(self, connection: Connection, plan: LoadPlan, on_rows: OnRows) -> None:
        self._connection = connection
        self._plan = plan
        self._told = on_rows
        self._rows = 0
        self._bytes = 0

    def run(self, sheets: Mapping[str, Sheet]) -> list[LoadedTable]:
        with self._connection.transaction():
            self._begin()
            loaded = []
            built = []
            for number, table in enumerate(self._plan.tables):
                target = table.name
                if table.way != "append" or table.changes_columns:
                    target = _BUILDING.format(number)
                    built.append((target, table.name))

                loaded.append(self._load(table, sheets[table.sheet], target))

            self._check_quota({*self._plan.dropped, *(name for _, name in built)})
            self._swap(built, loaded)
            self._keep_record(loaded)

        return loaded

    def _swap(self, built: list[tuple[str, str]], loaded: list[LoadedTable]) -> None:
        """Let the tables that were built take their places; from here on readers wait."""
        references = []
        for name in self._plan.dropped:
            self._drop(name)

        for target, name in built:
            references += self._references_to(name)
            self._let_read(target, self._readers_of(name))
            self._drop(name)
            self._execute("ALTER TABLE {schema}.{new} RENAME TO {table}", new=target, table=name)

        for table, result in zip(self._plan.tables, loaded, strict=True):
            for one in table.references:
                self._refer(_Reference(table.name, one.column, one.table, one.key), result)

        results = {result.name: result for result in loaded}
        for reference in references:
            if reference.table not in results:
                self._refer(reference, results[reference.other])

    def _begin(self) -> None:
        plan = self._plan
        self._execute(f"SET LOCAL statement_timeout = {int(plan.timeout_s * 1000)}")
        self._execute(f"SET LOCAL lock_timeout = {_SWAP_S * 1000}")
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [plan.schema]
        )
        self._execute("CREATE SCHEMA IF NOT EXISTS {schema}")
        if plan.reader is not None:
            self._execute("GRANT USAGE ON SCHEMA {schema} TO {reader}")

    def _execute(self, statement: str, **names: str) -> Any:
        plan = self._plan
        identifiers = {name: sql.Identifier(value) for name, value in names.items()}
        identifiers["schema"] = sql.Identifier(plan.schema)
        identifiers["reader"] = sql.Identifier(plan.reader or "")
        return self._connection.execute(sql.SQL(statement).format(**identifiers))

    def _load(self, table: PlannedTable, sheet: Sheet, target: str) -> LoadedTable:
        is_built = target != table.name
        if is_built:
            self._create(table, target)
        if is_built and table.way == "append":
            self._take_over(table, target)

        result = self._copy(table, sheet, target)
        if is_built:
            self._comment(table, target)
            if self._plan.reader is not None:
                self._execute("GRANT SELECT ON {schema}.{table} TO {reader}", table=target)

            self._set_key(table, target, result)
        else:
            result.key = table.key  # the table has it already

        self._execute("ANALYZE {schema}.{table}", table=target)
        (result.rows,) = self._execute(
            "SELECT count(*) FROM {schema}.{table}", table=target
        ).fetchone()
        return result

    def _create(self, table: PlannedTable, target: str) -> None:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(SQL_TYPES[column.type]))
            for column in table.columns
        ]
        statement = sql.SQL("CREATE TABLE {}.{} ({})").format(
            sql.Identifier(self._plan.schema), sql.Identifier(target), sql.SQL(", ").join(columns)
        )
        self._connection.execute(statement)

    def _take_over(self, table: PlannedTable, target: str) -> None:
        """Copy the rows that the table has, with their columns' new types."""
        kept = [column for column in table.columns if column.is_kept]
        names = sql.SQL(", ").join(sql.Identifier(column.name) for column in kept)
        values = sql.SQL(", ").join(
            sql.SQL("{}::{}").format(sql.Identifier(one.name), sql.SQL(SQL_TYPES[one.type]))
            for one in kept
        )
        schema = sql.Identifier(self._plan.schema)
        statement = sql.SQL("INSERT INTO {}.{} ({}) SELECT {} FROM {}.{}").format(
            schema, sql.Identifier(target), names, values, schema, sql.Identifier(table.name)
        )
        self._connection.execute(statement)

    def _copy(self, table: PlannedTable, sheet: Sheet, target: str) -> LoadedTable:
        columns = [column for column in table.columns if column.place is not None]
        confirmed = [confirmed_column(_place_of(one), one.forms) for one in columns]
        data = DataRows(sheet, table.first_row, keeps_totals=table.keeps_totals)
        added = 0
        statement = sql.SQL("COPY {}.{} ({}) FROM STDIN").format(
            sql.Identifier(self._plan.schema),
            sql.Identifier(target),
            sql.SQL(", ").join(sql.Identifier(column.name) for column in columns),
        )
        with self._connection.cursor() as cursor, _told_of_values(), cursor.copy(statement) as copy:
            for count, lines in copied(data, confirmed):
                copy.write(lines)
                added += count
                self._progress(count, len(lines))

        result = LoadedTable(table.name, added, added)
        for column, one in zip(columns, confirmed, strict=True):
            if one.left_out.count:
                result.left_out[column.name] = [one.left_out.count, *one.left_out.rows]

        return result

    def _progress(self, rows: int, size: int) -> None:
        before = self._rows // _TELL_ROWS
        self._rows += rows
        self._bytes += size
        if self._bytes > 2 * self._plan.max_bytes:
            raise _too_much(self._plan.max_bytes)
        if self._rows // _TELL_ROWS != before:
            self._told(self._rows)

    def _comment(self, table: PlannedTable, target: str) -> None:
        place = sql.SQL(".").join(map(sql.Identifier, (self._plan.schema, target)))
        self._connection.execute(
            sql.SQL("COMMENT ON TABLE {} IS {}").format(place, sql.Literal(table.comment))
        )
        for column in table.columns:
            statement = sql.SQL("COMMENT ON COLUMN {}.{} IS {}")
            named = sql.Identifier(column.name)
            self._connection.execute(statement.format(place, named, sql.Literal(column.comment)))

    def _drop(self, name: str) -> None:
        self._execute("DROP TABLE IF EXISTS {schema}.{table} CASCADE", table=name)

    def _readers_of(self, name: str) -> list[str | None]:
        """Return the roles that may read a table, as a hub's; None for everybody."""
        rows = self._connection.execute(
            "SELECT r.rolname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " CROSS JOIN aclexplode(c.relacl) AS a LEFT JOIN pg_roles AS r ON r.oid = a.grantee"
            " WHERE n.nspname = %s AND c.relname = %s AND a.privilege_type = 'SELECT'"
            " AND a.grantee <> c.relowner",
            [self._plan.schema, name],
        )
        return [role for (role,) in rows]

    def _let_read(self, name: str, roles: Collection[str | None]) -> None:
        place = sql.Identifier(self._plan.schema, name)
        for role in roles:
            reader = sql.SQL("PUBLIC") if role is None else sql.Identifier(role)
            self._connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(place, reader))

    def _set_key(self, table: PlannedTable, target: str, result: LoadedTable) -> None:
        if table.key is None:
            return

        with self._attempt(result, _not_a_key(table.key)):
            self._execute(
                "ALTER TABLE {schema}.{table} ADD PRIMARY KEY ({key})",
                table=target,
                key=table.key,
            )
            result.key = table.key

    def _refer(self, reference: "_Reference", result: LoadedTable) -> None:
        with self._attempt(result, _no_reference(reference)):
            self._execute(
                "ALTER TABLE {schema}.{table} ADD FOREIGN KEY ({column})"
                " REFERENCES {schema}.{other} ({key})",
                table=reference.table,
                column=reference.column,
                other=reference.other,
                key=reference.key,
            )
            if reference.table == result.name:
                result.references.append(
                    {"column": reference.column, "table": reference.other, "key": reference.key}
                )

    def _references_to(self, name: str) -> "list[_Reference]":
        """Return the references to a table from others."""
        rows = self._connection.execute(
            "SELECT c.relname, a.attname, k.attname FROM pg_constraint AS f"
            " JOIN pg_class AS c ON c.oid = f.conrelid"
            " JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]"
            " JOIN pg_attribute AS k ON k.attrelid = f.confrelid AND k.attnum = f.confkey[1]"
            " WHERE f.contype = 'f' AND f.conrelid <> f.confrelid AND f.confrelid = "
            "(SELECT t.oid FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace"
            " WHERE n.nspname = %s AND t.relname = %s)",
            [self._plan.schema, name],
        )
        return [_Reference(table, column, name, key) for table, column, key in rows]

    @contextmanager
    def _attempt(self, result: LoadedTable, note: Text) -> Iterator[None]:
        """Note what PostgreSQL refuses because of the rows, and go on without."""
        with suppress(errors.IntegrityError, errors.ProgrammingError, errors.ProgramLimitExceeded):
            with self._connection.transaction():
                yield

            return

        result.notes.append((note.zh, note.en))

    def _check_quota(self, leaving: Collection[str]) -> None:
        """Refuse what would be too much once the tables `leaving` are gone."""
        sizes = {name: size for name, size in self._table_sizes().items() if name not in leaving}
        tables = len(sizes)
        if tables > self._plan.max_tables:
            raise refusal(
                f"您的表会有 {tables} 张，最多 {self._plan.max_tables} 张：请先删除一些文件。",
                f"You would have {tables} tables; at most {self._plan.max_tables} are kept: delete "
                "some files first.",
            )
        if sum(sizes.values()) > self._plan.max_bytes:
            raise _too_much(self._plan.max_bytes)

    def _table_sizes(self) -> dict[str, int]:
        """Return the bytes of each of the owner's tables, by name."""
        rows = self._connection.execute(
            "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind = 'r'",
            [self._plan.schema],
        )
        return dict(rows.fetchall())

    def _keep_record(self, loaded: list[LoadedTable]) -> None:
        record = dict(self._plan.record)
        kept = {table["name"]: table for table in record["tables"]}
        for name in self._plan.dropped:
            kept.pop(name, None)

        for planned, result in zip(self._plan.tables, loaded, strict=True):
            before = kept.get(planned.name, {})
            kept[planned.name] = _record_of_table(planned, result, before)

        sizes = self._table_sizes()
        for name, table in kept.items():
            table["bytes"] = sizes.get(name, 0)

        save_record(self._connection, record, list(kept.values()))


def _record_of_table(
    planned: PlannedTable, result: LoadedTable, before: Mapping[str, Any]
) -> dict[str, Any]:
    key = result.key
    references = result.references
    if planned.way == "append":
        key = key or before.get("key")
        references = references or before.get("references", [])

    return {
        "name": planned.name,
        "title": planned.comment,
        "sheet": planned.sheet,
        "rows": result.rows,
        "columns": [_recorded_column(column) for column in planned.columns],
        "key": key,
        "references": references,
    }


def _recorded_column(column: PlannedColumn) -> dict[str, str]:
    type_: ColumnType = column.type
    return {"name": column.name, "title": column.comment, "type": type_}


def _place_of(column: PlannedColumn) -> int:
    assert column.place is not None
    return column.place


_REFUSED_ROWS: dict[type[psycopg.Error], Text] = {
    errors.UniqueViolation: Text(
        "新的行有表中已有的键：没有导入任何行。",
        "The new rows have keys that the table has already: none of them was loaded.",
    ),
    errors.ForeignKeyViolation: Text(
        "新的行引用了另一张表中没有的键：没有导入任何行。",
        "The new rows refer to keys that another table does not have: none was loaded.",
    ),
    errors.NotNullViolation: Text(
        "新的行没有键的值：没有导入任何行。",
        "The new rows have no values for the key: none was loaded.",
    ),
}


@contextmanager
def _told_of_values() -> Iterator[None]:
    """Say what PostgreSQL does not take of the rows without quoting its own words alone."""
    try:
        yield
    except tuple(_REFUSED_ROWS) as error:
        raise UnreadableFile(_REFUSED_ROWS[type(error)]) from error
    except errors.ProgramLimitExceeded as error:
        raise refusal(
            "有的行太宽，无法存储：请少选几列。",
            "There are rows too wide to be stored: include fewer columns.",
        ) from error
    except errors.DataError as error:
        message = error.diag.message_primary or ""
        raise refusal(
            f"有的值无法存储：{message}", f"There are values that can't be stored: {message}"
        ) from error


def _too_much(most: int) -> UnreadableFile:
    size = f"{most // _MEGABYTE} MB"
    return refusal(
        f"您的表会超过 {size}：请先删除一些文件，或导入较少的行。",
        f"Your tables would take more than {size}: delete some files first, or load fewer rows.",
    )


def _not_a_key(column: str) -> Text:
    return Text(
        f"{column} 有重复、空值或太长的值，没有设为主键。",
        f"{column} has values that come twice, are too long, or none; it was not made the key.",
    )


def _no_reference(reference: _Reference) -> Text:
    column = f"{reference.table}.{reference.column}"
    key = f"{reference.other}.{reference.key}"
    return Text(
        f"{column} 有 {key} 中没有的值，没有建立引用。",
        f"{column} has values that {key} does not have; the reference was not made.",
    )
