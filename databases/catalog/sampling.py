"""Finds values and periods that columns hold: from the planner's statistics, and from small tables
exactly.

Statistics take two queries for all tables, but may be out of date; exact values take a query for
each table. It stops when its time, or its room for values, is used up; what was found until then
stays. Tables without statistics are read first. Columns that the semantic file calls sensitive are
left out.
"""

import asyncio
import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import psycopg2
from psycopg2 import errors

from common.values import Catalog, Column, Table
from databases.catalog import catalog_queries as queries
from databases.catalog.catalog_reading import Attribute, CatalogRelation
from databases.catalog.loop_yielding import yielding_to_loop
from databases.catalog.sampling_permission import SamplingPermission
from databases.row_context import BEGIN
from postgres.arrays import parse_array, parse_texts
from postgres.connection import Connection
from postgres.identifiers import quoted

_log = logging.getLogger(__name__)
_SAMPLING_S = 3.0  # for reading tables, all together
_SAMPLING_STATEMENT_MS = 500
_SAMPLING_TABLE_BYTES = 16 * 1024 * 1024  # larger tables are not read; their statistics are
_MAX_VALUES = 500  # distinct values of one column; more are not "few"
_MAX_VALUE_CHARS = 100
_MAX_COLUMN_CHARS = 20_000
_MAX_TOTAL_CHARS = 2_000_000
_SAMPLED_VIEW_ROWS = 5_000
_VALUES = (
    f"(SELECT pg_catalog.array_agg(v) FROM (SELECT DISTINCT"
    f" pg_catalog.left({{column}}::text, {_MAX_VALUE_CHARS + 1}) AS v"
    f" FROM s WHERE {{column}} IS NOT NULL LIMIT {_MAX_VALUES + 1}) d)"
)
_BOUNDS = (
    "(SELECT ARRAY[pg_catalog.min({column})::text, pg_catalog.max({column})::text]"
    " FROM s WHERE pg_catalog.isfinite({column}))"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d").match


@dataclass(frozen=True)
class Sample:
    """A relation with the names of its columns that hold text, and of those that hold days, as far
    as they are shown and not sensitive.
    """

    relation: CatalogRelation
    columns: Sequence[str]
    days: Sequence[str]


async def samples_of(
    catalog: Catalog,
    relations: Iterable[CatalogRelation],
    attributes: Mapping[str, list[Attribute]],
) -> Sequence[Sample]:
    """Choose the columns to sample among those that `catalog` shows."""
    samples: list[Sample] = []
    async for relation in yielding_to_loop(relations):
        table = catalog.by_key.get((relation.schema, relation.name))
        shown = _samplable(table) if table else frozenset()
        texts: list[str] = []
        days: list[str] = []
        for attribute in attributes[relation.oid]:
            name = attribute.column.name
            if name not in shown:
                continue
            if attribute.is_text:
                texts.append(name)
            if attribute.is_day:
                days.append(name)

        samples.append(Sample(relation, texts, days))

    return samples


def _samplable(table: Table) -> frozenset[str]:
    """Return the names of the table's columns whose values may be known."""
    return frozenset(column.name for column in table.columns if not _is_sensitive(column))


def _is_sensitive(column: Column) -> bool:
    return column.meaning is not None and column.meaning.is_sensitive is True


_Place = tuple[str, str, str]  # schema, table, column


@dataclass(frozen=True)
class _Statistics:
    """The planner's knowledge of columns.

    Attributes:
        values: values, and whether they are all.
        moments: moments, among which are the first and the last.
    """

    values: dict[_Place, tuple[list[str], bool]] = field(default_factory=dict)
    moments: dict[_Place, list[str | None]] = field(default_factory=dict)

    def tables(self) -> frozenset[tuple[str, str]]:
        """Return the tables of which it knows something."""
        return frozenset(place[:2] for place in (*self.values, *self.moments))


class Sampler:
    """Collects values and periods over one connection.

    Args:
        permission: tells which relations may be read without a question.
        begin: begins a transaction.
    """

    def __init__(
        self, connection: Connection, permission: SamplingPermission, begin: str = BEGIN
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._permission = permission
        # Values, and whether they are all.
        self._values: dict[_Place, tuple[tuple[str, ...], bool]] = {}
        self._periods: dict[_Place, tuple[str, str]] = {}
        self._chars_left = _MAX_TOTAL_CHARS

    async def sample(self, samples: Sequence[Sample]) -> None:
        """Read the values; raises psycopg2's errors when the connection is lost."""
        statistics = await self._statistics(samples)
        await self._sample_tables(samples, statistics.tables())
        async for place, (values, is_complete) in yielding_to_loop(statistics.values.items()):
            if place not in self._values:
                self._keep(place, values, is_complete=is_complete)

        async for place, moments in yielding_to_loop(statistics.moments.items()):
            if place not in self._periods:
                self._keep_period(place, moments)

    async def _sample_tables(
        self, samples: Iterable[Sample], with_statistics: Collection[tuple[str, str]]
    ) -> None:
        """Sample tables until time or room is used up; those `with_statistics` last."""
        until = time.monotonic() + _SAMPLING_S
        for sample in sorted(
            samples, key=lambda each: _sampling_order(each.relation, with_statistics)
        ):
            if self._chars_left <= 0 or time.monotonic() > until:
                break

            relation = sample.relation
            if not _is_worth_reading(relation):
                continue

            is_view = relation.bytes is None
            days = () if is_view else sample.days  # a view would have to be read whole
            has_columns = bool(sample.columns or days)
            if has_columns and await self._may_read(relation):
                await self._sample_table(relation, sample.columns, days)

        await self._connection.query("ROLLBACK")

    async def known(self, catalog: Catalog) -> Catalog:
        """Return the catalogue with the values and periods that were found."""
        sampled_tables = {place[:2] for place in (*self._values, *self._periods)}
        alike: dict[Column, Column] = {}  # thousands of tables have the same ones
        tables: list[Table] = []
        async for table in yielding_to_loop(catalog.tables):
            if table.key not in sampled_tables:
                tables.append(table)
                continue

            columns = [self._with_samples(table, column) for column in table.columns]
            shared = [alike.setdefault(column, column) for column in columns]
            tables.append(replace(table, columns=tuple(shared)))

        return replace(catalog, tables=tuple(tables))

    def _with_samples(self, table: Table, column: Column) -> Column:
        place = (*table.key, column.name)
        period = self._periods.get(place)
        if place in self._values:
            values, is_complete = self._values[place]
            return replace(column, values=values, is_complete=is_complete, period=period)

        if period is not None:
            return replace(column, values=(), is_complete=False, period=period)

        return column

    async def _may_read(self, relation: CatalogRelation) -> bool:
        """Tell whether reading it runs only what a question may run."""
        key = (relation.schema, relation.name)
        if relation.kind == "v":
            # Judging a long definition takes a while, in which no table should stay locked.
            await self._connection.query("ROLLBACK")
            return await asyncio.to_thread(self._permission.is_harmless, key)

        return relation.kind == "m" or self._permission.is_harmless(key)

    async def _sample_table(
        self, relation: CatalogRelation, columns: Sequence[str], days: Sequence[str]
    ) -> None:
        # The one before is left in the same message: a thousand tables wait for the server a
        # thousand times less.
        statement = "ROLLBACK; " + self._begin + _sampling_statement(relation, columns, days)
        try:
            rows = (await self._connection.query(statement)).rows
        except psycopg2.OperationalError as exc:
            if exc.pgcode is None:  # the connection is gone
                raise

            return
        except psycopg2.Error:  # a view that fails, a table locked or dropped meanwhile
            return

        if not rows:
            return

        (arrays,) = rows
        is_whole = relation.bytes is not None
        for name, text in zip(columns, arrays, strict=False):
            values = parse_texts(text)
            if len(values) <= _MAX_VALUES:
                self._keep((relation.schema, relation.name, name), values, is_complete=is_whole)

        for name, text in zip(days, arrays[len(columns) :], strict=False):
            bounds = parse_array(text, str)
            self._keep_period((relation.schema, relation.name, name), bounds)

    async def _statistics(self, samples: Iterable[Sample]) -> _Statistics:
        shown: set[_Place] = set()
        async for sample in yielding_to_loop(samples):
            relation = sample.relation
            for name in (*sample.columns, *sample.days):
                shown.add((relation.schema, relation.name, name))

        statistics = _Statistics()
        try:
            rows = (await self._connection.query(queries.STATISTICS)).rows
        except errors.CharacterNotInRepertoire:  # a database with the encoding SQL_ASCII
            _log.warning("a stored value is not UTF-8; the statistics' values are not used")
            return statistics

        async for schema, table, column, text, is_complete in yielding_to_loop(rows):
            place = (schema, table, column)
            if place in shown:
                statistics.values[place] = (
                    parse_array(text, str)[:_MAX_VALUES],
                    is_complete == "t",
                )

        rows = (await self._connection.query(queries.PERIODS)).rows
        async for schema, table, column, first, last, common in yielding_to_loop(rows):
            place = (schema, table, column)
            if place in shown:
                statistics.moments[place] = [first, last, *parse_texts(common)]

        return statistics

    def _keep_period(self, key: _Place, moments: Iterable[str | None]) -> None:
        """Keep the first and the last day of `moments`, ISO texts.

        Years BC and infinity are left out, because as texts they are not in order.
        """
        days = []
        for moment in filter(None, moments):
            is_day = _DAY(moment) and "BC" not in moment
            if is_day:
                days.append(moment[:10])

        days.sort()
        if days:
            self._periods[key] = (days[0], days[-1])

    def _keep(self, key: _Place, values: Iterable[str], *, is_complete: bool) -> None:
        """Keep the values of a column, unless they would take too much room."""
        filled = list(filter(None, values))
        short_values = sorted(value for value in filled if len(value) <= _MAX_VALUE_CHARS)
        size = sum(map(len, short_values))
        if size > min(_MAX_COLUMN_CHARS, self._chars_left):
            return
        if short_values:
            self._chars_left -= size
            self._values[key] = (
                tuple(short_values),
                is_complete and len(short_values) == len(filled),
            )


def _is_worth_reading(relation: CatalogRelation) -> bool:
    """Tell whether it is neither empty nor large, nor stored on another server."""
    if relation.kind == "f":
        return False
    if relation.bytes is None:
        return True

    return 0 < relation.bytes <= _SAMPLING_TABLE_BYTES


def _sampling_order(
    relation: CatalogRelation, with_statistics: Collection[tuple[str, str]]
) -> tuple[bool, bool, int]:
    """Return the key that sorts tables without statistics first, then small ones; views last.

    Views may be slow, and mostly show values that tables hold.
    """
    is_known = (relation.schema, relation.name) in with_statistics
    if relation.bytes is None:
        return (True, is_known, 0)

    return (False, is_known, relation.bytes)


def _sampling_statement(
    relation: CatalogRelation, columns: Sequence[str], days: Sequence[str]
) -> str:
    """Write a query for one row of arrays: distinct values of `columns`, then bounds of `days`.

    Of a column it reads one value more than `_MAX_VALUES`, so that the reader sees that there are
    too many.
    """
    names = ", ".join(map(quoted, [*columns, *days]))
    source = f"SELECT {names} FROM {quoted(relation.schema)}.{quoted(relation.name)}"
    if relation.bytes is None:
        source += f" LIMIT {_SAMPLED_VIEW_ROWS}"

    arrays = [_VALUES.format(column=quoted(name)) for name in columns]
    arrays += [_BOUNDS.format(column=quoted(name)) for name in days]
    return (
        f"SET LOCAL statement_timeout = {_SAMPLING_STATEMENT_MS}; "
        f"WITH s AS MATERIALIZED ({source}) SELECT {', '.join(arrays)}"
    )
