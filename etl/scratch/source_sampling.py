"""Reads samples of the sources, as the caller may see them, by guarded queries alone.

A table that fits is read whole. Of a larger base, rows are picked by a hash of their key, so that
they lie evenly over the table and all its dates; of other tables, the rows that those refer to. All
values are read as PostgreSQL's text, so that they arrive as they are.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse

from sqlglot import exp

from common.errors import InvalidSql
from common.ports import Database
from common.values import Table
from etl.meaning.bound import BoundColumn, BoundIntent, JoinSourceStep
from etl.meaning.evaluation import has_null
from etl.schemas.evidence import SampledTable
from postgres.identifiers import quoted, quoted_list

TableKey = tuple[str, str]
TextRow = tuple[str | None, ...]

# Values of one query, which has to stay short enough to be judged.
_KEYS_AT_ONCE = 400
_KEY_CHARS_AT_ONCE = 40_000
_HASHES = 16**8
# The type through which values become text where a direct cast depends on the server's settings.
_READ_THROUGH = {"money": "numeric"}


@dataclass(frozen=True)
class TableSample:
    """The rows that were read of a table.

    Attributes:
        columns: those that were read.
        rows: values as PostgreSQL's text.
        of: how many rows the table has, as far as is known.
    """

    table: Table
    columns: tuple[str, ...]
    rows: list[TextRow]
    of: int | None
    is_whole: bool

    @property
    def summary(self) -> SampledTable:
        return SampledTable(rows=len(self.rows), of=self.of, is_whole=self.is_whole)

    def distinct_values(self, names: Sequence[str]) -> list[TextRow]:
        """Return the combinations of values in these columns, without those that hold NULL."""
        places = map(self.columns.index, names)
        columns = [[row[place] for row in self.rows] for place in places]
        values = set(zip(*columns, strict=True))
        complete = filterfalse(has_null, values)
        return sorted(complete)


@dataclass(frozen=True)
class Samples:
    """A sample of each table behind an intent, by schema and name; `ms` says how long it took."""

    tables: Mapping[TableKey, TableSample]
    ms: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing was left out."""
        return all(sample.is_whole for sample in self.tables.values())


ColumnsOf = Callable[[Table], Sequence[str]]


def all_columns(table: Table) -> Sequence[str]:
    """Return the names of the table's columns."""
    return [column.name for column in table.columns]


async def sample(
    database: Database, bound: BoundIntent, most_rows: int, columns_of: ColumnsOf = all_columns
) -> Samples:
    """Read a sample of each table of the intent.

    Args:
        columns_of: the columns that are needed of a table, keys among them.

    Raises:
        CituError: what `Database.stream` raises.
    """
    started = time.perf_counter()
    sampler = _Sampler(database, most_rows, columns_of)
    await sampler.read(bound.base.table)
    joins = bound.steps_of(JoinSourceStep)
    joining = [step for step in joins if step.stage == "rows"]
    # What a source is narrowed by is read behind it, for the rows that it refers to
    narrowing = [step for step in joins if step.stage == "table"]
    for step in [*joining, *reversed(narrowing)]:
        await sampler.read_referred(bound, step)

    for source in bound.sources:
        await sampler.read(source.table)

    return Samples(sampler.samples, (time.perf_counter() - started) * 1000)


class _Sampler:
    def __init__(self, database: Database, most_rows: int, columns_of: ColumnsOf) -> None:
        self._database = database
        self._most_rows = most_rows
        self._columns_of = columns_of
        self.samples: dict[TableKey, TableSample] = {}

    async def read(self, table: Table) -> None:
        """Read the table whole, or rows that lie evenly over it, unless it was read already."""
        if table.key in self.samples:
            return

        columns = tuple(self._columns_of(table))
        estimate = await self._estimate(table)
        may_fit = self._most_rows * 2  # an estimate may be wrong
        if estimate <= may_fit:
            rows, is_cut = await self._rows(_select(table, columns))
            if not is_cut:
                self.samples[table.key] = TableSample(table, columns, rows, len(rows), True)
                return

        picked = _picked(table, self._most_rows / max(estimate, may_fit))
        rows, _ = await self._rows(_select(table, columns, picked))
        if not rows:  # a table whose estimate is far too large
            rows, _ = await self._rows(_select(table, columns))

        self._keep(table, rows, estimate)

    async def read_referred(self, bound: BoundIntent, step: JoinSourceStep) -> None:
        """Read the rows of the join's right table that the sampled rows before it meet."""
        table = bound.source(step.right).table
        if table.key in self.samples:
            return

        keys = self._keys(bound, step.on)
        estimate = await self._estimate(table)
        if keys is None or estimate <= self._most_rows:
            await self.read(table)
            return

        columns = tuple(self._columns_of(table))
        names = [right.name for _, right in step.on]
        try:
            rows = await self._rows_of_keys(table, columns, names, keys)
        except InvalidSql:  # keys of types that don't compare as they are written
            await self.read(table)
            return

        self._keep(table, rows, estimate)

    def _keys(
        self, bound: BoundIntent, on: Sequence[tuple[BoundColumn, BoundColumn]]
    ) -> list[TextRow] | None:
        """Return the values by which sampled rows refer to others; None where all were read."""
        sources = {left.source for left, _ in on}
        if len(sources) != 1:
            return None

        sampled = self.samples.get(bound.source(sources.pop()).table.key)
        if sampled is None or sampled.is_whole:
            return None

        names = [left.name for left, _ in on]
        if not set(sampled.columns).issuperset(names):
            return None

        return sampled.distinct_values(names)

    async def _rows_of_keys(
        self,
        table: Table,
        columns: Sequence[str],
        names: Sequence[str],
        keys: Sequence[TextRow],
    ) -> list[TextRow]:
        rows: list[TextRow] = []
        for chunk in _chunks(keys):
            if len(rows) >= self._most_rows:
                break

            condition = _among(names, chunk)
            text_rows, _ = await self._rows(
                _select(table, columns, condition), self._most_rows - len(rows)
            )
            rows += text_rows

        return rows

    async def _rows(self, query: str, most_rows: int | None = None) -> tuple[list[TextRow], bool]:
        """Return at most so many rows of the query, and whether there were more."""
        stream = await self._database.stream(query, most_rows or self._most_rows)
        rows: list[TextRow] = []
        try:
            while page := await stream.page():
                rows += [tuple(row) for row in page]

            return rows, stream.is_limited
        finally:
            await stream.aclose()

    async def _estimate(self, table: Table) -> int:
        if table.row_estimate >= 0:
            return table.row_estimate

        plan = await self._database.explain(f"SELECT 1 FROM {_relation(table)}")
        return plan.rows

    def _keep(self, table: Table, rows: list[TextRow], estimate: int) -> None:
        """Keep a part of a table, without the table's size where rules hide rows of it."""
        of = None if table.has_hidden_rows else estimate
        columns = tuple(self._columns_of(table))
        self.samples[table.key] = TableSample(table, columns, rows, of, False)


def _chunks(keys: Iterable[TextRow]) -> Iterator[list[TextRow]]:
    """Yield the keys in lists that one query can name; keys that none can are left out."""
    chunk: list[TextRow] = []
    chars = 0
    for key in keys:
        length = sum(map(len, filter(None, key)))
        if length > _KEY_CHARS_AT_ONCE:
            continue

        is_full = len(chunk) == _KEYS_AT_ONCE or chars + length > _KEY_CHARS_AT_ONCE
        if is_full:
            yield chunk
            chunk, chars = [], 0

        chunk.append(key)
        chars += length

    if chunk:
        yield chunk


def _select(table: Table, columns: Sequence[str], condition: str = "") -> str:
    listed = ", ".join(_as_text(table, column) for column in columns)
    where = f" WHERE {condition}" if condition else ""
    return f"SELECT {listed} FROM {_relation(table)}{where}"


def _as_text(table: Table, name: str) -> str:
    column = table.column(name)
    through = _READ_THROUGH.get(column.type) if column else None
    first_cast = f"::{through}" if through else ""
    return f"{quoted(name)}{first_cast}::text"


def _relation(table: Table) -> str:
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def _picked(table: Table, share: float) -> str:
    """Return a condition that about this share of the rows fulfils, the same rows each time."""
    key = table.primary_key or tuple(column.name for column in table.columns[:8])
    parts = ", ".join(f"{quoted(name)}::text" for name in key)
    limit = f"{min(int(share * _HASHES), _HASHES - 1):08x}"
    return f"substr(md5(concat_ws('|', {parts})), 1, 8) < {_literal(limit)}"


def _among(names: Sequence[str], keys: Iterable[TextRow]) -> str:
    """Return the SQL condition that columns have the values of one of the keys."""
    rows = []
    for key in keys:
        values = []
        for value in key:
            if value is not None:
                values.append(_literal(value))

        rows.append(f"({', '.join(values)})")

    return f"({quoted_list(names)}) IN ({', '.join(rows)})"


def _literal(text: str) -> str:
    return exp.Literal.string(text).sql("postgres")
