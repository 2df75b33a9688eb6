"""Made-up rows that somebody else proposes as a test, with the target's rows that they expect.

They are kept only where the interpreter means the same rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import filterfalse
from typing import Any

from common.errors import InvalidRequest
from common.values import Table
from etl.binding.value_binding import bind_value
from etl.evidence.column_values import as_day, is_number
from etl.evidence.fixture_rows import Row
from etl.evidence.fixture_worlds import World
from etl.meaning.bound import BoundIntent, BoundSource
from etl.meaning.evaluation import NotComputable, has_null
from etl.meaning.figures import hashable
from etl.meaning.interpreter import evaluate
from etl.meaning.value_kinds import DAYS, kind_of_type
from etl.planning.draft_model import Draft

_MOST_ROWS = 60  # of one table
_DIGITS = 6  # behind the point, that numbers are compared by


class CaseRefused(ValueError):
    """The rows of a case are no rows of these tables; the message says why, in English."""


class ProposedCases:
    """Reads the cases for one intent.

    Args:
        rules: the rules' draft, which has the types of the target.
    """

    def __init__(self, bound: BoundIntent, rules: Draft, today: date) -> None:
        self._bound = bound
        self._types = rules.target.types
        self._today = today

    def agreed(
        self, name: str, rows_by_table: Mapping[str, Any], expect: Sequence[Mapping[str, Any]]
    ) -> World | None:
        """Return the case's rows as a world; None where other rows of the target are meant.

        Raises:
            CaseRefused: rows are no rows of the sources or of the target.
        """
        world = World(name, self._tables(rows_by_table))
        expected = [self._expected_row(row) for row in expect]
        try:
            meaning = evaluate(self._bound, world.by_source(self._bound))
        except NotComputable as error:
            raise CaseRefused("nothing can be computed of these rows") from error

        computed = [tuple(map(_compared, row)) for row in meaning.rows]
        if Counter(computed) == Counter(expected):
            return world

        return None

    def _tables(self, rows_by_table: Mapping[str, Any]) -> dict[tuple[str, str], list[Row]]:
        keys = [source.table.key for source in self._bound.sources]
        tables: dict[tuple[str, str], list[Row]] = {key: [] for key in keys}
        for name, rows in rows_by_table.items():
            table = self._source(name).table
            tables[table.key] = self._rows(table, rows)

        return tables

    def _source(self, name: str) -> BoundSource:
        for source in self._bound.sources:
            table = source.table
            if name in (source.name, table.name, f"{table.schema}.{table.name}"):
                return source

        names = ", ".join(source.name for source in self._bound.sources)
        raise CaseRefused(f"the sources are {names}")

    def _rows(self, table: Table, rows: Any) -> list[Row]:
        is_few = isinstance(rows, list) and len(rows) <= _MOST_ROWS
        if not is_few or not all(isinstance(row, dict) for row in rows):
            raise CaseRefused(f"{table.name} takes a list of at most {_MOST_ROWS} objects")

        checked_rows = [self._row(table, row) for row in rows]
        for key in table.declared_keys:
            _check_key(table, key, checked_rows)

        return checked_rows

    def _row(self, table: Table, row: Mapping[str, Any]) -> Row:
        types = {column.name: column.type for column in table.columns}
        whole_row: Row = dict.fromkeys(types)
        for name, value in row.items():
            if name not in types:
                raise CaseRefused(f"{table.name} has no column {name}")

            whole_row[name] = self._value(value, types[name])

        return whole_row

    def _expected_row(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        columns = self._bound.target.columns
        if set(row) != set(columns):
            raise CaseRefused(f"the target's columns are {', '.join(columns)}")

        return tuple(_compared(self._value(row[name], self._types[name])) for name in columns)

    def _value(self, value: Any, type_: str) -> Any:
        """Return a value of JSON as the type has it; raise CaseRefused where it is none."""
        if value is None:
            return None

        kind = kind_of_type(type_)
        refusal = CaseRefused(f"{value!r} is no value of the type {type_}")
        if kind in DAYS:
            day = as_day(value, kind, self._bound.time_zone)
            if day is None:
                raise refusal

            return day

        try:
            return bind_value(value, type_, "value", self._today)
        except InvalidRequest as error:
            raise refusal from error


def _check_key(table: Table, key: Sequence[str], rows: Sequence[Row]) -> None:
    """Refuse rows that a key of the table doesn't allow: drafts rely on keys."""
    values = [tuple(row[name] for name in key) for row in rows]
    complete = list(filterfalse(has_null, values))
    is_repeated = len(set(complete)) < len(complete)
    lacks_value = len(complete) < len(values)
    is_broken = lacks_value and key == table.primary_key  # other keys may hold NULL
    if is_repeated or is_broken:
        raise CaseRefused(f"{', '.join(key)} is a key of {table.name}")


def _compared(value: Any) -> Any:
    """Return a value for comparing: numbers rounded, whatever their type."""
    if is_number(value):
        return round(Decimal(str(value)), _DIGITS)

    return hashable(value)
