"""The tables of one statement with their aliases, and expressions over their columns.

Tables are joined from one root upward: along references from a table to the table it refers to.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from string import ascii_letters

from common.meanings import TableKey
from common.values import Catalog
from knowledge.language.spoken_names import english_words
from postgres.identifiers import quoted
from rules.query.aggregates import PARTS, CalendarPart
from rules.query.query import ColumnRef, Query
from rules.schema.reference_graph import Graph, Path, is_default
from rules.schema.table_facts import Edge, date_form, kind_of
from rules.schema.table_schema import Schema
from sqltree.operator_expressions import expression

_ROUNDABOUT = 2  # references; a way of so many may be longer than one through a link table


def table_name(catalog: Catalog, key: TableKey) -> str:
    """Return the table's name, with its schema unless the search path leads to this very table."""
    schema, name = key
    schema_in_path = next(
        (one for one in catalog.search_path if (one, name) in catalog.by_key), None
    )
    if schema_in_path == schema:
        return quoted(name)

    return f"{quoted(schema)}.{quoted(name)}"


class JoinedTables:
    """Tables joined from one root upward, for the query or a part of it.

    Args:
        base: the table whose rows are listed, measured or tested.
        taken: aliases that statements around this one use.
    """

    def __init__(
        self, schema: Schema, graph: Graph, query: Query, base: TableKey, taken: Iterable[str] = ()
    ) -> None:
        self._schema, self._graph, self._query, self._base = schema, graph, query, base
        self._root = base
        self._taken = set(taken)
        # the alias of each table, by the way to it from the root
        self._nodes: dict[Path, str] = {}
        self._needed: list[tuple[TableKey, str | None]] = []
        self._must_qualify = bool(taken)
        self._kept: Path = ()

    def keep_all(self, table: TableKey, via: str | None) -> None:
        """Make all rows of an included table appear, also rows that no row of the base belongs to.

        Conditions on that table and on those above it restrict its rows; all others restrict rows
        of the base.

        Raises:
            LookupError: the base belongs to no row of the table.
        """
        path = self._path(table, via)
        if not path:
            raise LookupError(f"{self._base} belongs to no {table}")

        self._kept = path

    @property
    def keeps_all(self) -> bool:
        """Tell whether rows appear to which no row of the base belongs."""
        return bool(self._kept)

    def is_kept(self, table: TableKey, via: str | None) -> bool:
        """Tell whether the table is the one of which every row appears, or lies above it."""
        path = self._path(table, via)
        return path is not None and self._is_above_kept(path)

    def _is_above_kept(self, path: Path) -> bool:
        return path[: len(self._kept)] == self._kept

    def presence(self) -> str:
        """Return a column that is NULL where no row of the base belongs to a row that appears."""
        tie = self._kept[-1]
        return f"{self._nodes[self._kept[:-1]]}.{quoted(tie.columns[0])}"

    @property
    def multiplies(self) -> bool:
        """Tell whether a row of the base may appear more than once."""
        return self._root != self._base

    def include(
        self, needed: Iterable[tuple[TableKey, str | None]], preferred: frozenset[TableKey]
    ) -> bool:
        """Add tables, each with the column that refers to it or None.

        Tables that can't be reached upward from the base make a table below the base the root.

        Args:
            preferred: tables through which the root is to be found where there are several ways.

        Returns:
            Whether everything is connected.
        """
        self._needed = list(dict.fromkeys([(self._base, None), *needed]))
        if not self._lower_root(preferred):
            return False

        self._nodes[()] = self._new_alias(self._root)
        if any(self._path(table, via) is None for table, via in self._needed):
            return False

        for table, via in self._needed:
            self._join(table, via)

        return True

    def _lower_root(self, preferred: frozenset[TableKey]) -> bool:
        for table, via in self._needed:
            if self._path(table, via) is not None:
                continue

            meeting = self._graph.meeting(self._root, table, preferred)
            if meeting is None:
                return False

            self._root = meeting.at

        return True

    def is_keyed_by_meeting(self) -> bool:
        """Tell whether the root is a link table between the base and the other tables.

        Its key consists of its references to both sides, so that it has one row for each pair.
        """
        base, *paths = (self._path(table, via) for table, via in self._needed)
        assert base is not None
        sides = [base]
        for path in paths:
            is_other_side = path is not None and path[: len(base)] != base
            if path and is_other_side:
                sides.append(path)

        columns: set[str] = set()
        for path in sides:
            if len(path) != 1:  # the root itself refers to both sides
                return False

            columns.update(path[0].columns)

        key = self._schema.facts[self._root].key
        return set(key) == columns

    def _path(self, table: TableKey, via: str | None) -> Path | None:
        """Return the way up from the root to a table.

        None when there is none, or when a link table between the two is a shorter way, or is said
        where the way is a reference in a role.
        """
        path = self._graph.up(self._root, table, via)
        if path is None or via is not None:
            return path
        if len(path) == 1 and self._root == self._base and self._is_tied_through(path[0]):
            return None
        if len(path) < _ROUNDABOUT or self._root != self._base:
            return path

        if self._graph.is_linked_closer(self._root, table, path):
            return None

        return path

    def _is_tied_through(self, edge: Edge) -> bool:
        """Tell whether the query takes a link table instead of a reference in a role."""
        if is_default(edge) or not self._query.through:
            return False

        links = self._graph.links_between(edge.child, edge.parent)
        return not self._query.through.isdisjoint(links)

    def _join(self, table: TableKey, via: str | None) -> str:
        """Join the table and those on the way to it, and return its alias."""
        path = self._path(table, via)
        assert path is not None
        for length in range(1, len(path) + 1):
            if path[:length] not in self._nodes:
                self._nodes[path[:length]] = self._new_alias(path[length - 1].parent)

        return self._nodes[path]

    def _new_alias(self, table: TableKey) -> str:
        """Return the initials of the table's name, with a number where they are taken."""
        letters = [word[0] for word in english_words(table[1]) if word[0] in ascii_letters]
        initials = "".join(letters) or "t"
        alias = initials
        count = 1
        while alias in self._taken or quoted(alias) != alias:
            count += 1
            alias = f"{initials}{count}"

        self._taken.add(alias)
        return alias

    def column(self, ref: ColumnRef) -> str:
        """Return the column's expression, qualified when more than one table takes part.

        Raises:
            LookupError: the hour of a date that has no time is meant.
        """
        if ref.part is not None:
            return self._part_of_date(ref, PARTS[ref.part])

        sql = self._column_sql(self._join(ref.table, ref.via), ref.column)
        if ref.is_age:
            return f"date_part('year', age({sql}))"

        return sql

    def _part_of_date(self, ref: ColumnRef, part: CalendarPart) -> str:
        has_time = kind_of(self._schema.column(ref.table, ref.column)) != "date"
        if part.of_clock and not has_time:
            raise LookupError(f"{ref.column} has no {ref.part}")

        return part.sql.format(self.dated(replace(ref, part=None)))

    @property
    def _is_qualified(self) -> bool:
        return len(self._nodes) > 1 or self._must_qualify

    def _column_sql(self, alias: str, column: str) -> str:
        if self._is_qualified:
            return f"{alias}.{quoted(column)}"

        return quoted(column)

    def dated(self, ref: ColumnRef) -> str:
        """Return the column as a date or timestamp that can be cut and compared."""
        sql = self.column(ref)
        form = date_form(self._schema.column(ref.table, ref.column))
        if form is not None:
            return f"to_date({sql}, '{form}')"

        return sql

    def numeric(self, ref: ColumnRef) -> str:
        """Return the column as a number that can be aggregated and compared."""
        sql = self.column(ref)
        is_money = self._schema.column(ref.table, ref.column).type == "money"
        return f"{sql}::numeric" if is_money else sql

    def expression(self, table: TableKey, text: str) -> str:
        """Return an expression of the semantic file over the columns of an included table."""
        return self._expression_sql(text, self._join(table, None))

    def _expression_sql(self, text: str, alias: str) -> str:
        if self._is_qualified:
            return expression(text).of(alias)

        return text

    def _kept_nodes(self) -> dict[Path, str]:
        """Return the tables that are joined first, with their aliases.

        With `keep_all` these are that table and those above it, else all tables.
        """
        return {path: alias for path, alias in self._nodes.items() if self._is_above_kept(path)}

    def _joins(self, nodes: Mapping[Path, str]) -> list[str]:
        """Return the lines that join these tables, without the table after FROM."""
        lines = []
        for path in nodes:
            if path not in ((), self._kept):
                lines.append(f"JOIN {self._table_sql(path)} ON {self._tie(path)}")

        return lines

    def _table_sql(self, path: Path) -> str:
        name = table_name(self._schema.catalog, self._table_at(path))
        if self._is_qualified:
            return f"{name} AS {self._nodes[path]}"

        return name

    def _table_at(self, path: Path) -> TableKey:
        return path[-1].parent if path else self._root

    def _tie(self, path: Path) -> str:
        edge = path[-1]
        return equal(self._nodes[path], edge.parent_columns, self._nodes[path[:-1]], edge.columns)


def equal(alias: str, columns: tuple[str, ...], other: str, others: tuple[str, ...]) -> str:
    """Write that the columns of two tables are equal, pair by pair."""
    pairs = zip(columns, others, strict=True)
    tests = [f"{alias}.{quoted(one)} = {other}.{quoted(another)}" for one, another in pairs]
    return " AND ".join(tests)
