"""Looks up the stored values that a question names, in columns of too many values to be known.

Nothing is looked up where all words of a question are explained. What is looked up is bounded: few
columns, cheap plans only, few rows, and a time after which the question goes on without. A
statement compares a column with a pattern where reading the whole column is cheap, else with the
likeliest writings, for which an index serves.

What comes back is compared again by the rules that hold for every stored value
(`knowledge.values.identity.allowed`): one person or code never stands for another. Values of
personal columns are dropped here, before anybody sees them.
"""

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from common.errors import CituError, CostExceeded, QueryTimeout, StatementRejected
from common.inquiry import StoredValue
from common.ports import Database
from common.values import Catalog
from knowledge.index import IndexPart
from knowledge.values.personal_data import Privacy, privacy_of
from knowledge.values.value_matching import Hit, Place, SearchedColumn, hits_in, joined, longest
from knowledge.values.value_patterns import (
    Stretch,
    ValuePattern,
    exact_pattern,
    misspelt_pattern,
    writings,
)
from postgres.identifiers import quoted

_log = logging.getLogger(__name__)

MOST_COLUMNS = 12
"""Columns searched for one question."""
_AT_ONCE = 4  # columns of one statement
_MOST_ROWS = 20  # of one column
_MOST_WRITINGS = 60  # compared with a column that is too large for a pattern
_MOST_RANGES = 12  # the same, of parts of an index
_MOST_FOUND = 12
_LONGEST = 200  # characters of a value that a question may name
_MOST_BYTES = 4 * _LONGEST
_SURELY_SMALL = 100_000  # rows; a pattern is tried on so many without asking the planner
# Of a plan, in the planner's units: to read about 200,000 short rows, or to use an index
_CHEAP = 8_000.0
_SAMPLE_ROWS = 40  # rows that tell whether a column is personal
_KEPT_S = 60.0  # how long results are used again
_LEFT_ALONE_S = 10.0  # a table that took too long
_MOST_KEPT = 500  # answers for callers who see the same rows
_MOST_VIEWERS = 50  # kinds of such callers, of one catalogue
_IS_TEXT = re.compile(
    r"\A(text|character|varchar|char|citext|name|bpchar)\b(?!.*\[\])", re.IGNORECASE
)


@dataclass(frozen=True)
class ValueRequest:
    """Parts of a question to be looked up, and where.

    Attributes:
        stretches: parts of the question that nothing known explains.
        places: the columns that may hold it, the likeliest first.
    """

    stretches: tuple[Stretch, ...] = ()
    places: Callable[[], Iterable[Place]] = tuple


class FoundValues(NamedTuple):
    """Stored values that a question names.

    Attributes:
        is_complete: all columns that may hold some were searched.
    """

    values: tuple[StoredValue, ...] = ()
    is_complete: bool = True


_Rows = tuple[tuple[int, str], ...]
"""Found values, each with the number of its column."""


class _KeptRows(NamedTuple):
    rows: _Rows
    expires_at: float


@dataclass
class _Known:
    """Facts about one catalogue's columns, and values found in them.

    Attributes:
        results: the results of statements, by their SQL.
        ways: whether a way of comparing a column is cheap.
        slow: for tables that took too long, until when they are left alone.
    """

    results: OrderedDict[str, _KeptRows] = field(default_factory=OrderedDict)
    ways: dict[tuple[Place, str], bool] = field(default_factory=dict)
    samples: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    slow: dict[tuple[str, str], float] = field(default_factory=dict)

    def found(self, sql: str) -> _Rows | None:
        entry = self.results.get(sql)
        if entry is not None and entry.expires_at > time.monotonic():
            return entry.rows

        return None

    def keep(self, sql: str, rows: _Rows) -> None:
        self.results[sql] = _KeptRows(rows, time.monotonic() + _KEPT_S)
        while len(self.results) > _MOST_KEPT:
            self.results.popitem(last=False)

    def is_slow(self, target: SearchedColumn) -> bool:
        return self.slow.get(target.table.key, 0.0) > time.monotonic()


class _Viewers:
    """Facts about one catalogue's columns, by the callers who see the same rows."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable | None, _Known] = OrderedDict()

    def who_see(self, rows: Hashable | None) -> _Known:
        """Return what is known to callers who see these rows, and to nobody else."""
        seen = self._known.setdefault(rows, _Known())
        self._known.move_to_end(rows)
        while len(self._known) > _MOST_VIEWERS:
            self._known.popitem(last=False)

        return seen


_VIEWERS = IndexPart(lambda _: _Viewers())
"""Kept with the catalogue object, which callers with other rights don't share."""


class ValueSearch:
    """Looks values up in the datasource.

    What is found is kept for a minute.

    Args:
        timeout_s: seconds for all lookups of one question together; 0 switches lookups off.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    @property
    def is_on(self) -> bool:
        """Tell whether anything is looked up at all."""
        return self._timeout_s > 0

    async def find(
        self, request: ValueRequest, catalog: Catalog, database: Database
    ) -> FoundValues:
        """Return the stored values that are named.

        When the time is over or the database fails, these are what was found till then. Cancelling
        it stops the statement in the server.
        """
        if not request.stretches or not self.is_on:
            return FoundValues()

        seen_before = _VIEWERS.of(catalog).who_see(database.rows_seen)
        lookup = _Lookup(request, catalog, database, seen_before)
        is_complete = lookup.has_all_columns
        try:
            async with asyncio.timeout(self._timeout_s):
                await lookup.run()
        except TimeoutError:
            is_complete = False
            lookup.give_up()
            _log.info("looking up stored values took too long; the question goes on without")
        except CituError as error:
            is_complete = False
            if isinstance(error, QueryTimeout):
                lookup.give_up()

            _log.info("stored values could not be looked up: %s", error.error_type)

        return FoundValues(lookup.found(), is_complete)


class _Lookup:
    """The lookups of one question."""

    def __init__(
        self, request: ValueRequest, catalog: Catalog, database: Database, known: _Known
    ) -> None:
        self._request = request
        self._database = database
        self._known = known
        self.has_all_columns = True
        self._columns = list(islice(self._likely_columns(catalog), MOST_COLUMNS))
        self._asked: Sequence[SearchedColumn] = ()
        self._hits: list[Hit] = []

    def _likely_columns(self, catalog: Catalog) -> Iterator[SearchedColumn]:
        """Yield the columns to search but those of tables that are left alone."""
        for target in searched_columns(self._request.places(), catalog):
            if self._known.is_slow(target):
                self.has_all_columns = False
            else:
                yield target

    async def run(self) -> None:
        """Look for values as they are said, then for misspelt ones where nothing was found."""
        stretches = self._request.stretches
        await self._search(exact_pattern(stretches), stretches)
        rest = []
        for stretch in stretches:
            is_settled = stretch.is_quoted or self._explains(stretch)
            if not is_settled:
                rest.append(stretch)

        pattern = misspelt_pattern(rest)
        if pattern is not None:
            await self._search(pattern, rest)

    def found(self) -> tuple[StoredValue, ...]:
        """Return the values found so far."""
        hits = [hit for hit in self._hits if hit.part_of is None]
        hits += joined(self._hits)
        chosen: dict[StoredValue, None] = {}
        for stretch in self._request.stretches:
            for hit in longest(hits, stretch):
                chosen[hit.value] = None

        return tuple(chosen)[:_MOST_FOUND]

    def give_up(self) -> None:
        """Leave the tables alone for a while that took too long."""
        until = time.monotonic() + _LEFT_ALONE_S
        self._known.slow |= {target.table.key: until for target in self._asked}

    def _explains(self, stretch: Stretch) -> bool:
        """Tell whether all that nothing explained names values that were found."""
        explained: set[int] = set()
        for hit in self._hits:
            if hit.stretch is stretch and hit.is_meant:
                explained.update(range(*hit.span))

        for at, is_unexplained in enumerate(stretch.unexplained):
            was_found = at in explained
            if is_unexplained and not was_found:
                return False

        return True

    async def _search(self, pattern: ValuePattern | None, stretches: Sequence[Stretch]) -> None:
        if pattern is None:
            return

        for first in range(0, len(self._columns), _AT_ONCE):
            if all(map(self._explains, stretches)):
                break

            self._asked = self._columns[first : first + _AT_ONCE]
            rows = await self._matching(pattern, stretches)
            for number, target in enumerate(self._asked):
                values = _values_at(number, rows)
                if values:
                    judged = await self._judged(target)
                    self._hits += hits_in(judged, values, stretches)

        self._asked = ()

    async def _matching(
        self, pattern: ValuePattern, stretches: Sequence[Stretch]
    ) -> Sequence[tuple[int, str]]:
        """Return the values that match in the columns asked, each with its column's number."""
        branches = []
        for number, target in enumerate(self._asked):
            branch = await self._branch(number, target, pattern, stretches)
            if branch is not None:
                branches.append(branch)

        if not branches:
            return ()

        return await self._rows(_search_statement(branches, pattern))

    async def _branch(
        self,
        number: int,
        target: SearchedColumn,
        pattern: ValuePattern,
        stretches: Sequence[Stretch],
    ) -> str | None:
        """Return SQL that searches the column in the first way that is cheap; None without one."""
        is_small = 0 < target.table.row_estimate <= _SURELY_SMALL and target.table.kind == "table"
        for way, condition in (
            ("pattern", _matches(target, pattern)),
            ("folded", _equals_folded(target, stretches)),
            ("ordered", _equals_ordered(target, stretches)),
            ("written", _equals_written(target, stretches)),
        ):
            if is_small or await self._is_cheap(target, condition, way):
                return _branch(number, target, condition, f"LIMIT {_MOST_ROWS}")

        return None

    async def _is_cheap(self, target: SearchedColumn, condition: str, way: str) -> bool:
        """Tell whether the planner finds this way of comparing cheap.

        It does when the table is small, or an index serves.
        """
        kind = (target.place, way)
        if kind not in self._known.ways:
            # Without a limit: the planner may hope to find that many soon.
            sql = _search_statement([_branch(0, target, condition)], ValuePattern((), ""))
            try:
                plan = await self._database.explain(sql)
                self._known.ways[kind] = plan.total_cost <= _CHEAP
            except (CostExceeded, StatementRejected):
                self._known.ways[kind] = False

        return self._known.ways[kind]

    async def _judged(self, target: SearchedColumn) -> SearchedColumn:
        """Return the column with some of its values, which tell whether it is personal."""
        if target.place not in self._known.samples:
            rows = await self._rows(
                f"SELECT 0 AS place, {_column_as_text(target)} AS value FROM {_source(target)}"
                f" WHERE {_is_there(target)} LIMIT {_SAMPLE_ROWS}"
            )
            values = {value for _, value in rows if len(value) <= _LONGEST}
            self._known.samples[target.place] = tuple(sorted(values))

        sample = (*self._known.samples[target.place], *target.column.values)
        column = replace(target.column, values=tuple(dict.fromkeys(sample)))
        return SearchedColumn(target.table, column)

    async def _rows(self, sql: str) -> _Rows:
        rows = self._known.found(sql)
        if rows is None:
            result = await self._database.run(sql)
            present = [row for row in result.rows if row[1] is not None]
            rows = tuple((int(row[0]), str(row[1])) for row in present)
            self._known.keep(sql, rows)

        return rows


def _values_at(number: int, rows: Iterable[tuple[int, str]]) -> list[str]:
    """Return the values of the column of that number; long ones are none that a question names."""
    values = []
    for at, value in rows:
        if at == number and 0 < len(value) <= _LONGEST:
            values.append(value)

    return values


def searched_columns(places: Iterable[Place], catalog: Catalog) -> Iterator[SearchedColumn]:
    """Yield the columns of text that have more values than are known, and none that look personal.

    A search looks into the first `MOST_COLUMNS` of them.
    """
    seen: set[Place] = set()
    for key, name in places:
        table = catalog.by_key.get(key)
        column = None
        if table is not None:
            column = table.column(name)
        if table is None or column is None or (key, name) in seen:
            continue

        seen.add((key, name))
        is_known = column.is_complete or bool(column.allowed)
        if is_known or not _IS_TEXT.match(column.type):
            continue
        if privacy_of(table, column) is not Privacy.PRIVATE:
            yield SearchedColumn(table, column)


# ------------------------------------------------------------------------------
# statements


def _search_statement(branches: Sequence[str], pattern: ValuePattern) -> str:
    expression = sql_literal(pattern.expression)
    united = " UNION ALL ".join(branches)
    return f"WITH said(pattern) AS (SELECT {expression}) {united}"


def _branch(number: int, target: SearchedColumn, condition: str, limit: str = "") -> str:
    """Select the values of one column that meet the condition, each once."""
    # OFFSET 0 keeps the limit from changing how the rows are found.
    value = _column_as_text(target)
    rows = f"SELECT {value} AS value FROM {_source(target)} WHERE {condition} OFFSET 0"
    columns = f"{number} AS place, found{number}.value"
    return f"(SELECT DISTINCT {columns} FROM ({rows}) AS found{number} {limit})"


def _matches(target: SearchedColumn, pattern: ValuePattern) -> str:
    # With the collation of bytes a pattern needs no locale, and works on columns whose collation
    # allows none. The size is known without reading a long text, which no question names.
    text = _column_as_text(target)
    begins = []
    for size in (1, 2):
        beginnings = [beginning for beginning in pattern.beginnings if len(beginning) == size]
        if beginnings:
            begins.append(f'left({text}, {size}) COLLATE "C" IN {_in_brackets(beginnings)}')

    may_begin = " OR ".join(begins)
    return (
        f"octet_length({text}) <= {_MOST_BYTES} AND CASE WHEN {may_begin}"
        f' THEN {text} COLLATE "C" ~ (SELECT said.pattern FROM said) ELSE false END'
    )


def _equals_folded(target: SearchedColumn, stretches: Sequence[Stretch]) -> str:
    """Compare in such a way that an index on the column in lower case serves."""
    written = writings(stretches, _MOST_WRITINGS)
    lowered = dict.fromkeys(writing.lower() for writing in written)
    return f"lower({quoted(target.column.name)}) IN {_in_brackets(lowered)}"


def _equals_written(target: SearchedColumn, stretches: Sequence[Stretch]) -> str:
    """Compare with the likeliest writings, so that an index on the column itself serves."""
    written = writings(stretches, _MOST_WRITINGS)
    return f"{quoted(target.column.name)} IN {_in_brackets(written)}"


def _equals_ordered(target: SearchedColumn, stretches: Sequence[Stretch]) -> str:
    """Compare as `_equals_written`, and with all between lower case and capitals.

    In the order of a language, only other cases of the same letters stand there; in that of bytes,
    nothing.
    """
    written = writings(stretches, _MOST_WRITINGS)
    ranges = dict.fromkeys((writing.lower(), writing.upper()) for writing in written)
    column = quoted(target.column.name)
    conditions = [_equals_written(target, stretches)]
    for low, high in islice(ranges, _MOST_RANGES):
        conditions.append(f"{column} BETWEEN {sql_literal(low)} AND {sql_literal(high)}")

    return f"({' OR '.join(conditions)})"


def _in_brackets(texts: Iterable[str]) -> str:
    literals = ", ".join(map(sql_literal, texts))
    return f"({literals})"


def _is_there(target: SearchedColumn) -> str:
    column = quoted(target.column.name)
    return f"{column} IS NOT NULL AND octet_length({_column_as_text(target)}) <= {_MOST_BYTES}"


def _column_as_text(target: SearchedColumn) -> str:
    return f"CAST({quoted(target.column.name)} AS text)"


def _source(target: SearchedColumn) -> str:
    return f"{quoted(target.table.schema)}.{quoted(target.table.name)}"


def sql_literal(text: str) -> str:
    """Write the text as a constant of SQL."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
