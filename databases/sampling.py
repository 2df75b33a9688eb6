"""Finds values and periods that columns hold: from the planner's statistics, and from small tables exactly.

Statistics take two queries for all tables, but may be out of date; exact values take a query for each table. It stops
when its time, or its room for values, is used up; what was found until then stays. Tables without statistics are read
first. Columns that the semantic file calls sensitive are left out.
"""

import asyncio
import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import psycopg2
from psycopg2 import errors

from common.postgres.arrays import parse_array
from common.postgres.connection import Connection
from common.postgres.identifiers import quoted
from common.values import Catalog, Column, Table
from databases import catalog_queries as queries
from databases.catalog_reading import Attribute, Relation
from databases.row_context import BEGIN
from databases.turns import in_turns
from databases.unasked import UnaskedReading

_log = logging.getLogger(__name__)
_SAMPLING_S = 3.0  # for reading tables, all together
_SAMPLING_STATEMENT_MS = 500
_SAMPLING_TABLE_BYTES = 16 * 1024 * 1024  # larger tables are not read; their statistics are
_MAX_VALUES = 500  # distinct values of one column; more are not "few"
_MAX_VALUE_CHARS = 100
_MAX_COLUMN_CHARS = 20_000
_MAX_TOTAL_CHARS = 2_000_000
_SAMPLED_VIEW_ROWS = 5_000
_IS_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?!.*BC)").match


@dataclass(frozen=True)
class Sample:
    """A relation with the names of its columns that hold text, and of those that hold days, as far as they are shown
    and not sensitive."""

    relation: Relation
    columns: Sequence[str]
    days: Sequence[str]


async def samples_of(
    catalog: Catalog, relations: Iterable[Relation], attributes: Mapping[str, list[Attribute]]
) -> Sequence[Sample]:
    """What may be sampled of the columns that `catalog` shows."""
    samples = []
    async for relation in in_turns(relations):
        table = catalog.by_key.get((relation.schema, relation.name))
        names = {column.name for column in table.columns if not _is_sensitive(column)} if table else set()
        shown = [each for each in attributes[relation.oid] if each.column.name in names]
        texts = [each.column.name for each in shown if each.is_text]
        samples.append(Sample(relation, texts, [each.column.name for each in shown if each.is_day]))
    return samples


def _is_sensitive(column: Column) -> bool:
    return column.meaning is not None and column.meaning.is_sensitive is True


_Place = tuple[str, str, str]  # schema, table, column


@dataclass(frozen=True)
class _Statistics:
    """What the planner knows: values and whether they are all, and moments among which are the first and the last."""

    values: dict[_Place, tuple[list[str], bool]] = field(default_factory=dict)
    moments: dict[_Place, list[str | None]] = field(default_factory=dict)

    def tables(self) -> frozenset[tuple[str, str]]:
        """The tables of which it knows something."""
        return frozenset(place[:2] for known in (self.values, self.moments) for place in known)


class Sampler:
    """Collects values and periods over one connection.

    Args:
        unasked: tells which relations may be read without a question.
        begin: begins a transaction.
    """

    def __init__(self, connection: Connection, unasked: UnaskedReading, begin: str = BEGIN) -> None:
        self._connection = connection
        self._begin = begin
        self._unasked = unasked
        self._values: dict[_Place, tuple[tuple[str, ...], bool]] = {}  # values, and whether they are all
        self._periods: dict[_Place, tuple[str, str]] = {}
        self._chars_left = _MAX_TOTAL_CHARS

    async def sample(self, samples: Sequence[Sample]) -> None:
        """Reads the values; raises psycopg2's errors when the connection is lost."""
        statistics = await self._statistics(samples)
        known, until = statistics.tables(), time.monotonic() + _SAMPLING_S
        for each in sorted(samples, key=lambda each: _sampling_order(each.relation, known)):
            relation, columns = each.relation, each.columns
            if self._chars_left <= 0 or time.monotonic() > until:
                break
            days = each.days if relation.bytes is not None else ()  # a view would have to be read whole
            if (columns or days) and _is_worth_reading(relation) and await self._may_read(relation):
                await self._sample_table(relation, columns, days)
        await self._connection.query("ROLLBACK")
        async for place, (values, is_complete) in in_turns(statistics.values.items()):
            if place not in self._values:
                self._keep(place, values, is_complete=is_complete)
        async for place, moments in in_turns(statistics.moments.items()):
            if place not in self._periods:
                self._keep_period(place, moments)

    async def known(self, catalog: Catalog) -> Catalog:
        """The catalogue with the values and periods that were found."""
        found = {place[:2] for place in (*self._values, *self._periods)}
        alike: dict[Column, Column] = {}  # thousands of tables have the same ones
        tables = [
            replace(
                table,
                columns=tuple(
                    alike.setdefault(column, column)
                    for column in (self._known(table, column) for column in table.columns)
                ),
            )
            if table.key in found
            else table
            async for table in in_turns(catalog.tables)
        ]
        return replace(catalog, tables=tuple(tables))

    def _known(self, table: Table, column: Column) -> Column:
        place = (*table.key, column.name)
        values, period = self._values.get(place), self._periods.get(place)
        if values is None and period is None:
            return column
        return replace(
            column, values=values[0] if values else (), is_complete=bool(values and values[1]), period=period
        )

    async def _may_read(self, relation: Relation) -> bool:
        """Whether reading it runs only what a question may run."""
        key = (relation.schema, relation.name)
        if relation.kind == "v":  # judging a long definition takes a while, in which no table should stay locked
            await self._connection.query("ROLLBACK")
            return await asyncio.to_thread(self._unasked.is_harmless, key)
        return relation.kind == "m" or self._unasked.is_harmless(key)

    async def _sample_table(self, relation: Relation, columns: Sequence[str], days: Sequence[str]) -> None:
        # The one before is left in the same message: a thousand tables wait for the server a thousand times less.
        statement = "ROLLBACK; " + self._begin + _sampling_statement(relation, columns, days)
        try:
            rows = (await self._connection.query(statement)).rows
        except psycopg2.OperationalError as exc:
            if exc.pgcode is None:  # the connection is gone
                raise
            rows = []
        except psycopg2.Error:  # a view that fails, a table locked or dropped meanwhile
            rows = []
        for name, text in zip(columns, rows[0] if rows else (), strict=False):
            values = parse_array(text, str) if text else []
            if len(values) <= _MAX_VALUES:
                self._keep((relation.schema, relation.name, name), values, is_complete=relation.bytes is not None)
        for name, period in zip(days, rows[0][len(columns) :] if rows else (), strict=False):
            self._keep_period((relation.schema, relation.name, name), parse_array(period or "{}", str))

    async def _statistics(self, samples: Iterable[Sample]) -> _Statistics:
        shown = {
            (each.relation.schema, each.relation.name, name)
            async for each in in_turns(samples)
            for name in (*each.columns, *each.days)
        }
        found = _Statistics()
        try:
            rows = (await self._connection.query(queries.STATISTICS)).rows
        except errors.CharacterNotInRepertoire:  # a database with the encoding SQL_ASCII
            _log.warning("a stored value is not UTF-8; the statistics' values are not used")
            return found
        async for schema, table, column, text, is_complete in in_turns(rows):
            place = (str(schema), str(table), str(column))
            if place in shown and text:
                found.values[place] = (parse_array(text, str)[:_MAX_VALUES], is_complete == "t")
        rows = (await self._connection.query(queries.PERIODS)).rows
        async for schema, table, column, first, last, common in in_turns(rows):
            place = (str(schema), str(table), str(column))
            if place in shown:
                found.moments[place] = [first, last, *parse_array(common or "{}", str)]
        return found

    def _keep_period(self, key: _Place, moments: Iterable[str | None]) -> None:
        """Keeps the first and last of `moments`, ISO texts; without years BC and infinity, which misorder as text."""
        days = sorted(moment[:10] for moment in moments if moment and _IS_MOMENT(moment))
        if days:
            self._periods[key] = (days[0], days[-1])

    def _keep(self, key: tuple[str, str, str], values: Iterable[str], *, is_complete: bool) -> None:
        values = [value for value in values if value]
        kept = sorted(value for value in values if len(value) <= _MAX_VALUE_CHARS)
        size = sum(map(len, kept))
        if kept and size <= min(_MAX_COLUMN_CHARS, self._chars_left):
            self._chars_left -= size
            self._values[key] = (tuple(kept), is_complete and len(kept) == len(values))


def _is_worth_reading(relation: Relation) -> bool:
    """Whether it may be read for its values: neither empty nor large, and not stored elsewhere, where the load would
    fall on another server."""
    return relation.kind != "f" and (relation.bytes is None or 0 < relation.bytes <= _SAMPLING_TABLE_BYTES)


def _sampling_order(relation: Relation, known: Collection[tuple[str, str]]) -> tuple[bool, bool, int]:
    """Tables without statistics first, then small ones; views last: they may be slow, and mostly show values that
    tables hold."""
    return (relation.bytes is None, (relation.schema, relation.name) in known, relation.bytes or 0)


def _sampling_statement(relation: Relation, columns: Sequence[str], days: Sequence[str]) -> str:
    """What gives one row of arrays: the distinct values of each of `columns`, then the first and last of `days`.

    Of a column it reads one value more than `_MAX_VALUES`, so that the reader sees that there are too many.
    """
    names = ", ".join(map(quoted, [*columns, *days]))
    source = f"SELECT {names} FROM {quoted(relation.schema)}.{quoted(relation.name)}"
    if relation.bytes is None:
        source += f" LIMIT {_SAMPLED_VIEW_ROWS}"
    arrays = [
        f"(SELECT pg_catalog.array_agg(v) FROM (SELECT DISTINCT pg_catalog.left({quoted(name)}::text,"
        f" {_MAX_VALUE_CHARS + 1}) AS v FROM s WHERE {quoted(name)} IS NOT NULL LIMIT {_MAX_VALUES + 1}) d)"
        for name in columns
    ]
    arrays += [
        f"(SELECT ARRAY[pg_catalog.min({quoted(name)})::text, pg_catalog.max({quoted(name)})::text] FROM s"
        f" WHERE pg_catalog.isfinite({quoted(name)}))"
        for name in days
    ]
    return (
        f"SET LOCAL statement_timeout = {_SAMPLING_STATEMENT_MS}; "
        f"WITH s AS MATERIALIZED ({source}) SELECT {', '.join(arrays)}"
    )
