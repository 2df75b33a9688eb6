"""The tables of one statement: joined from one root upward, under their aliases, and columns of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from string import ascii_letters

from common.meanings import TableKey
from common.postgres.identifiers import quoted
from common.values import Catalog
from databases.expressions import expression
from knowledge.naming import english_words
from rules.query.functions import PARTS
from rules.query.query import ColumnRef, Query
from rules.schema.facts import date_form, kind_of
from rules.schema.joins import Graph, Path
from rules.schema.schema import Schema


def table_name(catalog: Catalog, key: TableKey) -> str:
    """The table's name, with its schema unless the search path leads to this very table."""
    schema, name = key
    found = next((one for one in catalog.search_path if (one, name) in catalog.by_key), None)
    return quoted(name) if found == schema else f"{quoted(schema)}.{quoted(name)}"


class JoinedTables:
    """Tables joined from one root upward, for the query or a part of it."""

    def __init__(self, schema: Schema, graph: Graph, query: Query, base: TableKey, taken: Iterable[str] = ()) -> None:
        self._schema, self._graph, self._query, self._base = schema, graph, query, base
        self._root = base
        self._taken = set(taken)
        self._nodes: dict[Path, str] = {}
        self._needed: list[tuple[TableKey, str | None]] = []
        self._must_qualify = bool(taken)
        self._kept: Path = ()

    def keep_all(self, table: TableKey, via: str | None) -> None:
        """Makes every row of an included table appear, also those to which no row of the base belongs.

        Conditions on that table and on those above it restrict its rows; all others restrict rows of the base.

        Raises:
            LookupError: the base belongs to no row of the table.
        """
        path = self._path(table, via)
        if not path:
            raise LookupError(f"{self._base} belongs to no {table}")
        self._kept = path

    @property
    def keeps_all(self) -> bool:
        """Whether rows appear to which no row of the base belongs."""
        return bool(self._kept)

    def is_kept(self, table: TableKey, via: str | None) -> bool:
        """Whether the table is the one of which every row appears, or lies above it."""
        path = self._path(table, via)
        return path is not None and self._is_above_kept(path)

    def _is_above_kept(self, path: Path) -> bool:
        return path[: len(self._kept)] == self._kept

    def presence(self) -> str:
        """A column that is NULL where no row of the base belongs to a row that appears."""
        tie = self._kept[-1]
        return f"{self._nodes[self._kept[:-1]]}.{quoted(tie.columns[0])}"

    @property
    def multiplies(self) -> bool:
        """Whether a row of the base may appear more than once."""
        return self._root != self._base

    def include(self, needed: Iterable[tuple[TableKey, str | None]], preferred: frozenset[TableKey]) -> bool:
        """Adds tables to the frame; moves the root below the base if they can't be reached otherwise.

        Returns whether everything is connected.
        """
        self._needed = list(dict.fromkeys([(self._base, None), *needed]))
        for table, via in self._needed:
            if self._path(table, via) is None:
                meeting = self._graph.meeting(self._root, table, preferred)
                if meeting is None:
                    return False
                self._root = meeting.at
        self._nodes[()] = self._new_alias(self._root)
        if any(self._path(table, via) is None for table, via in self._needed):
            return False
        for table, via in self._needed:
            self._join(table, via)
        return True

    def is_keyed_by_meeting(self) -> bool:
        """Whether the root is a link table: its key consists of its references to the base and to the other side."""
        base, *paths = (self._path(table, via) for table, via in self._needed)
        assert base is not None
        sides = [base, *(path for path in paths if path and path[: len(base)] != base)]
        columns = {column for path in sides if path for column in path[0].columns}
        return all(len(path) == 1 for path in sides) and set(self._schema.facts[self._root].key) == columns

    def _path(self, table: TableKey, via: str | None) -> Path | None:
        """The way up to a table; None when there is none, or when a link table between the two is a shorter way."""
        path = self._graph.up(self._root, table, via)
        if path is None or via is not None or len(path) < 2 or self._root != self._base:
            return path
        return None if self._graph.is_linked_closer(self._root, table, path) else path

    def _join(self, table: TableKey, via: str | None) -> str:
        path = self._path(table, via)
        assert path is not None
        for length in range(1, len(path) + 1):
            if path[:length] not in self._nodes:
                self._nodes[path[:length]] = self._new_alias(path[length - 1].parent)
        return self._nodes[path]

    def _new_alias(self, table: TableKey) -> str:
        initials = "".join(word[0] for word in english_words(table[1]) if word[0] in ascii_letters) or "t"
        alias, count = initials, 1
        while alias in self._taken or quoted(alias) != alias:
            count += 1
            alias = f"{initials}{count}"
        self._taken.add(alias)
        return alias

    def column(self, ref: ColumnRef) -> str:
        """The column's expression, qualified when more than one table takes part.

        Raises:
            LookupError: the hour of a date that has no time is meant.
        """
        if ref.part is None:
            sql = self._qualified(self._join(ref.table, ref.via), ref.column)
            return f"date_part('year', age({sql}))" if ref.is_age else sql
        if PARTS[ref.part].of_clock and kind_of(self._schema.column(ref.table, ref.column)) == "date":
            raise LookupError(f"{ref.column} has no {ref.part}")
        return PARTS[ref.part].sql.format(self.dated(replace(ref, part=None)))

    @property
    def _is_qualified(self) -> bool:
        return len(self._nodes) > 1 or self._must_qualify

    def _qualified(self, alias: str, column: str) -> str:
        return f"{alias}.{quoted(column)}" if self._is_qualified else quoted(column)

    def dated(self, ref: ColumnRef) -> str:
        """The column as a date or timestamp that can be cut and compared."""
        sql, form = self.column(ref), date_form(self._schema.column(ref.table, ref.column))
        return f"to_date({sql}, '{form}')" if form is not None else sql

    def numeric(self, ref: ColumnRef) -> str:
        """The column as a number that can be aggregated and compared."""
        sql = self.column(ref)
        return f"{sql}::numeric" if self._schema.column(ref.table, ref.column).type == "money" else sql

    def expression(self, table: TableKey, text: str) -> str:
        """An expression over the columns of an included table, as the semantic file has it."""
        return self._written(text, self._join(table, None))

    def _written(self, text: str, alias: str) -> str:
        return expression(text).of(alias) if self._is_qualified else text

    def _kept_nodes(self) -> dict[Path, str]:
        """The tables that are joined before those of the base: with `keep_all` that table and those above, else all."""
        return {path: alias for path, alias in self._nodes.items() if self._is_above_kept(path)}

    def _joins(self, nodes: Mapping[Path, str]) -> list[str]:
        """The lines that join these tables, without the lowest one."""
        return [f"JOIN {self._named(path)} ON {self._tie(path)}" for path in nodes if path and path != self._kept]

    def _named(self, path: Path) -> str:
        name = table_name(self._schema.catalog, self._table_at(path))
        return f"{name} AS {self._nodes[path]}" if self._is_qualified else name

    def _table_at(self, path: Path) -> TableKey:
        return path[-1].parent if path else self._root

    def _tie(self, path: Path) -> str:
        edge = path[-1]
        return equal(self._nodes[path], edge.parent_columns, self._nodes[path[:-1]], edge.columns)


def equal(alias: str, columns: tuple[str, ...], other: str, others: tuple[str, ...]) -> str:
    """The columns of two tables are equal, in order."""
    pairs = zip(columns, others, strict=True)
    return " AND ".join(f"{alias}.{quoted(one)} = {other}.{quoted(another)}" for one, another in pairs)
