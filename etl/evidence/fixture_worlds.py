"""Made-up rows for all tables behind an intent, each world of them with a purpose.

In the world of variants each row differs from a plain one in a single column, so that every
construct decides about a row that nothing else decides about. In mixed worlds several things differ
at once: groups of several rows, ties, repeated values, rows that joins repeat. The same intent
gives the same worlds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from common.values import Column, Table
from etl.evidence.boundary_values import Place
from etl.evidence.column_values import largest_number, number_in
from etl.evidence.fixture_plan import ColumnRole, FixturePlan, TableKey
from etl.evidence.fixture_rows import (
    AMOUNTS,
    BoundsFilling,
    FillingStyle,
    KnownValues,
    Row,
    RowFilling,
)
from etl.evidence.fulfilling_values import A_KEY, FulfillingValues, Values
from etl.meaning.bound import BoundIntent
from etl.meaning.value_kinds import NUMBERS

_TIMES_MORE = 2  # rows of worlds that are made when others have not told all
_FIRST_LARGE = 5


@dataclass(frozen=True)
class World:
    """Rows of every table, by schema and name."""

    name: str
    tables: Mapping[TableKey, list[Row]]

    def by_source(self, intent: BoundIntent) -> dict[str, list[Row]]:
        """Return the rows as the interpreter takes them."""
        return {source.name: self.tables[source.table.key] for source in intent.sources}


class WorldMaker:
    """Makes the worlds in which the drafts of one intent are tested.

    Args:
        columns: the columns of each table that the draft reads; others are left out.
    """

    def __init__(self, intent: BoundIntent, columns: Mapping[TableKey, Sequence[str]]) -> None:
        self._intent = intent
        self._plan = FixturePlan(intent, columns)

    @property
    def tables(self) -> list[Table]:
        """Return the tables that worlds have rows of, each once."""
        return self._plan.tables

    def columns(self, table: Table) -> list[Column]:
        """Return the columns of a table that rows have values for."""
        return [role.column for role in self._plan.columns(table)]

    def variants(self) -> Iterator[World]:
        """Yield worlds in which each row differs from a plain one in one column.

        In one amounts are powers of two, in the other small, as conditions on them may want it.
        """
        for name, is_small in (("variants", False), ("small_variants", True)):
            filling = RowFilling(self._plan, self._known, FillingStyle(is_small=is_small))
            yield World(name, filling.tables())

    def bounds(self) -> Iterator[World]:
        """Yield the world whose groups lie at the bounds of conditions on figures, if any."""
        if self._plan.having:
            filling = BoundsFilling(self._plan, self._known, FillingStyle(is_small=True))
            yield World("bounds", filling.tables())

    def mixed(self, number: int) -> World:
        """Return a world in which several things differ at once; another one for each number."""
        style = FillingStyle(
            number=number,
            is_mixed=True,
            is_small=number % 2 == 1,
            size=_TIMES_MORE if number >= _FIRST_LARGE else 1,
        )
        return World(f"mixed_{number}", RowFilling(self._plan, self._known, style).tables())

    @cached_property
    def _known(self) -> KnownValues:
        """Return the values with which rows come through all conditions."""
        candidates: dict[Place, list[Any]] = {}
        for table in self._plan.tables:
            for role in self._plan.columns(table):
                candidates[role.place] = _candidates(role)

        fulfilling = FulfillingValues(self._intent, candidates, self._few_rows)
        return KnownValues(fulfilling.values, fulfilling.choices)

    def _few_rows(self, values: Values) -> dict[str, list[Row]]:
        """Return the rows of a world in which all rows of a table have these values."""
        nulls = {place for place, value in values.items() if value is None}
        known_values = KnownValues({place: [value] for place, value in values.items()}, nulls=nulls)
        filling = RowFilling(self._plan, known_values, FillingStyle(is_small=True))
        return World("few", filling.few()).by_source(self._intent)


def _candidates(role: ColumnRole) -> list[Any]:
    """Return the values that are tried for a column; none where each row needs its own."""
    if role.is_key:
        may_be_missing = role.is_nullable and not role.is_unique
        if may_be_missing:
            return [A_KEY, None]

        return []

    boundary = role.boundary
    values = list(boundary.values)
    if boundary.is_amount or boundary.kind in NUMBERS:
        values += _amounts_in(role.column)

    each_once = dict.fromkeys(values)
    return sorted(each_once, key=lambda value: value is None)


def _amounts_in(column: Column) -> list[Any]:
    """Return the amounts that a column can hold."""
    most = largest_number(column.type)
    amounts = []
    for one in AMOUNTS:
        amount = number_in(column, one)
        if abs(amount) <= most:
            amounts.append(amount)

    return amounts
