"""Made-up rows for all tables behind an intent, each world of them with a purpose.

In the world of variants each row differs from a plain one in a single column, so that every
construct decides about a row that nothing else decides about. In mixed worlds several things differ
at once: groups of several rows, ties, repeated values, rows that joins repeat. The same intent
gives the same worlds.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

from common.values import Column, Table
from etl.evidence.computed_bounds import ComputedBound, computed_bounds, values_at
from etl.evidence.fulfilling_values import A_KEY, FulfillingValues, Values
from etl.evidence.telling_values import (
    CURRENCIES,
    RATE_DAYS,
    Place,
    TellingColumn,
    TellingValues,
    as_day,
    largest_number,
    usual_values,
)
from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    BoundKey,
    DedupStep,
    JoinSourceStep,
    RateStep,
)
from etl.meaning.calendar_periods import shifted
from etl.meaning.value_kinds import DAYS, NUMBERS, kind_of_type

TableKey = tuple[str, str]
Row = dict[str, Any]

_MOST_ROWS = 70
_MOST_REFERENCES = 160
_POWERS = 30
_MOST_OF_GROUP = 8
_SMALL = 13  # amounts of worlds with small ones are less
_UNKNOWN = 97  # the key that no row has
_NULL_AMOUNTS = 0.15
_ODD_SHARE = 0.2
_APART = 20  # between keys of different tables, so that none is taken for another
_FEW = 3
_BASE_ROWS = (2, 16)
_OTHER_ROWS = (2, 10)
_TIMES_MORE = 2  # rows of worlds that are made when others have not told all
_FIRST_LARGE = 5
_ODD_AMOUNTS = (Decimal(0), Decimal("-1.25"))
_RATES = (
    (RATE_DAYS[0], Decimal("6.5")),
    (RATE_DAYS[0], Decimal("7.25")),
    (RATE_DAYS[1], Decimal("4.5")),
    (RATE_DAYS[1], Decimal("3.5")),
    (RATE_DAYS[2], Decimal(2)),
    (RATE_DAYS[2], Decimal("1.5")),
    (RATE_DAYS[2] + timedelta(days=1), None),
)
_AMOUNTS = (1, 2, 5, 8, 64, 1000, Decimal("0.5"), *_ODD_AMOUNTS)
_UNFULFILLED = (0, 0, 0, 1, 1, 2)  # columns of a mixed row that may break conditions


@dataclass(frozen=True)
class World:
    """Rows of every table, by schema and name."""

    name: str
    tables: Mapping[TableKey, list[Row]]

    def by_source(self, intent: BoundIntent) -> dict[str, list[Row]]:
        """Return the rows as the interpreter takes them."""
        return {source.name: self.tables[source.table.key] for source in intent.sources}


class WorldMaker:
    """Makes worlds for an intent.

    Args:
        columns: the columns of each table that the draft reads; others are left out.
    """

    def __init__(self, intent: BoundIntent, columns: Mapping[TableKey, Sequence[str]]) -> None:
        self._intent = intent
        self._columns = columns
        self._telling = TellingValues(intent)
        self._joins = [step for step in intent.steps if isinstance(step, JoinSourceStep)]
        self._domains = _domains(intent, self._joins)

    def variants(self) -> Iterator[World]:
        """Yield worlds in which each row differs from a plain one in one column.

        In one amounts are powers of two, in the other small, as conditions on them may want it.
        """
        for is_small in (False, True):
            filling = _Filling(self, _chance(0), is_mixed=False, is_small=is_small)
            yield World("small_variants" if is_small else "variants", filling.tables())

    def bounds(self) -> Iterator[World]:
        """Yield the world whose groups lie at the bounds of conditions on figures, if any."""
        if self.having():
            filling = _BoundsFilling(self, _chance(0), is_mixed=False, is_small=True)
            yield World("bounds", filling.tables())

    def group_keys(self, table: Table) -> Iterator[BoundKey]:
        """Yield the keys of the groups that are columns of the table."""
        step = self._intent.aggregate
        for key in step.keys if step else ():
            if key.column.source and self._key_of(key.column.source) == table.key:
                yield key

    def mixed(self, number: int) -> World:
        """Return a world in which several things differ at once; another one for each number."""
        is_small = number % 2 == 1
        size = _TIMES_MORE if number >= _FIRST_LARGE else 1
        filling = _Filling(self, _chance(number), is_mixed=True, is_small=is_small, size=size)
        return World(f"mixed_{number}", filling.tables())

    # what worlds are made of

    @cached_property
    def _fulfilling(self) -> FulfillingValues:
        candidates: dict[Place, list[Any]] = {}
        for table in self.order:
            for column in self.columns(table):
                candidates[table.key, column.name] = self._candidates(table, column)
        return FulfillingValues(self._intent, candidates, self._few_rows)

    def _few_rows(self, values: Values) -> dict[str, list[Row]]:
        filling = _Filling(self, _chance(0), is_mixed=False, is_small=True, given=values)
        return World("few", filling.few()).by_source(self._intent)

    def _candidates(self, table: Table, column: Column) -> list[Any]:
        if self.is_key(table, column.name):
            is_reference = column.name not in self.single_keys(table)
            is_nullable = is_reference and _may_be_null(table, column)
            return [A_KEY, None] if is_nullable else []
        telling = self.telling(table, column)
        values = list(telling.values)
        if telling.is_amount or telling.kind in NUMBERS:
            amounts = [_as_number(one, column) for one in _AMOUNTS]
            values += [one for one in amounts if abs(one) <= largest_number(column.type)]
        return sorted(dict.fromkeys(values), key=lambda value: value is None)

    def fulfilling(self, table: Table, column: str) -> list[Any]:
        """Return values with which rows come through all conditions, the plain one first."""
        return self._fulfilling.values.get((table.key, column), [])

    @property
    def choices(self) -> list[Values]:
        """Return values of all columns with which rows come through all conditions."""
        return self._fulfilling.choices

    @property
    def time_zone(self) -> str:
        """Return the zone in which periods are cut."""
        return self._intent.time_zone

    def computed_bounds(self, table: Table) -> Iterator[ComputedBound]:
        """Yield the bounds of conditions on what is computed from rows of the table."""
        for bound in computed_bounds(self._intent):
            if self._key_of(bound.source) == table.key:
                yield bound

    def is_key(self, table: Table, column: str) -> bool:
        """Tell whether the column's values are numbers of rows."""
        own_keys = {*table.primary_key, *self.single_keys(table), *self.dedup_keys(table)}
        return column in own_keys or self.domain(table, column) is not None

    @cached_property
    def order(self) -> list[Table]:
        """Return the tables, each once: those that others refer to before these."""
        tables = {source.table.key: source.table for source in self._intent.sources}
        return list(tables.values())

    def columns(self, table: Table) -> list[Column]:
        """Return the columns of a table that rows have values for."""
        wanted = {*self._columns.get(table.key, ()), *table.primary_key}
        return [column for column in table.columns if column.name in wanted]

    def telling(self, table: Table, column: Column) -> TellingColumn:
        """Return what is known of a column's use."""
        return self._telling.columns[table.key, column.name]

    def having(self) -> list[Any]:
        """Return the bounds of conditions on figures."""
        return [value for values in self._telling.having.values() for value in values]

    def rates(self, table: Table) -> RateStep | None:
        """Return the step whose rates the table holds, if there is one."""
        for step in self._intent.steps:
            if isinstance(step, RateStep) and self._key_of(step.rates) == table.key:
                return step
        return None

    def held(self, table: Table, column: str, day: date) -> Any:
        """Return a day as the column holds it."""
        kind = self._telling.columns[table.key, column].kind
        return as_day(day, kind, self._intent.time_zone)

    def apart(self, table: Table, column: str) -> int:
        """Return a number by which keys differ from those of other tables."""
        domain = self.domain(table, column)
        if domain is not None:
            return _APART * domain
        return _APART * (len(self._domains) + self.order.index(table))

    def divides(self, table: Table, column: str) -> bool:
        """Tell whether the column, or one that it is compared with, is divided by."""
        domain = self.domain(table, column)
        if domain is None:
            return False
        places = [place for place, number in self._domains.items() if number == domain]
        return any(self._telling.columns[place].is_divisor for place in places)

    def domain(self, table: Table, column: str) -> int | None:
        """Return the number of the keys that the column shares with others, if it joins."""
        return self._domains.get((table.key, column))

    def single_keys(self, table: Table) -> set[str]:
        """Return columns that are unique by themselves."""
        return {key[0] for key in self.declared_keys(table) if len(key) == 1}

    def children(self) -> Iterator[tuple[tuple[Table, str], tuple[Table, str]]]:
        """Yield the joins of rows with those that refer to them."""
        for step in self._joins:
            has_children = step.how != "anti" and step.is_multiple
            if not has_children or len(step.on) != 1:
                continue
            ((left, right),) = step.on
            child = self._intent.source(right.source).table
            if left.source and (child.key, right.name) not in self._excluded:
                parent = self._intent.source(left.source).table
                yield (parent, left.name), (child, right.name)

    @cached_property
    def _excluded(self) -> set[Place]:
        """Return the columns by which anti joins leave rows out."""
        places = set()
        for step in self._joins:
            if step.how == "anti":
                places |= {(self._key_of(right.source), right.name) for _, right in step.on}
        return places

    def equal_columns(self, table: Table) -> Iterator[tuple[str, str]]:
        """Yield pairs of the table's columns that have to be equal; the second one is no key."""
        keys = self.single_keys(table)
        for one, other in self._telling.equal:
            if {self._key_of(one.source), self._key_of(other.source)} != {table.key}:
                continue
            fixed, free = one.name, other.name
            if free in keys:
                fixed, free = free, fixed
            if free not in keys:
                yield fixed, free

    def meets_nothing(self, table: Table, column: str) -> bool:
        """Tell whether rows stay only when nothing has the column's value: an anti join's."""
        for step in self._joins:
            if step.how != "anti":
                continue
            for left, right in step.on:
                if not left.source:
                    continue
                left_table = self._intent.source(left.source).table
                is_key = left.name in self.single_keys(left_table)
                varied = right if is_key else left
                if (self._key_of(varied.source), varied.name) == (table.key, column):
                    return True
        return False

    def declared_keys(self, table: Table) -> list[tuple[str, ...]]:
        """Return the table's keys, of which no two rows have the same values."""
        return [key for key in (table.primary_key, *table.unique_keys) if key]

    def dedup_keys(self, table: Table) -> tuple[str, ...]:
        """Return the key of a dedup of the table; empty without one."""
        for step in self._intent.steps:
            if isinstance(step, DedupStep) and self._key_of(step.source) == table.key:
                return step.keys
        return ()

    def _key_of(self, source: str) -> TableKey:
        return self._intent.source(source).table.key

    def referring(self, table: Table) -> Iterator[tuple[Place, Place]]:
        """Yield the joins from a column of the table to a unique column of another."""
        for step in self._joins:
            for left, right in step.on:
                if not left.source or step.is_multiple:
                    continue
                left_table = self._intent.source(left.source).table
                right_table = self._intent.source(right.source).table
                if left_table.key == table.key and right_table.key != table.key:
                    yield (table.key, left.name), (right_table.key, right.name)


def _chance(number: int) -> random.Random:
    return random.Random(number)  # noqa: S311 - the same worlds each time, nothing secret


class _Filling:
    """The rows of one world."""

    def __init__(
        self,
        maker: WorldMaker,
        chance: random.Random,
        *,
        is_mixed: bool,
        is_small: bool,
        size: int = 1,
        given: Values | None = None,
    ) -> None:
        self._maker = maker
        self._chance = chance
        self._size = size
        self._given = given
        self._is_mixed = is_mixed
        self._is_small = is_small
        self._filled: dict[TableKey, list[Row]] = {}
        self._amounts = 0
        self._rates = 0

    def few(self) -> dict[TableKey, list[Row]]:
        """Return one row of each table, and all rates."""
        rows = {}
        for table in self._maker.order:
            is_rates = self._maker.rates(table) is not None
            rows[table.key] = (
                list(self._rate_rows(table)) if is_rates else [self._plain_row(table, 1)]
            )
        return rows

    def tables(self) -> dict[TableKey, list[Row]]:
        for table in reversed(self._maker.order):  # so that rows can refer to those of others
            self._fill(table)
        for table in reversed(self._maker.order):
            self._filled[table.key] = self._with_references(table)
        for (parent, key), (child, name) in self._maker.children():
            self._add_children(parent, key, child, name)
        result = {}
        for table in self._maker.order:
            rows = _without_duplicates(table, self._filled[table.key])
            self._chance.shuffle(rows)
            result[table.key] = rows
        return result

    def _fill(self, table: Table) -> None:
        if self._maker.rates(table) is not None:
            rows = list(self._rate_rows(table))
        elif self._is_mixed:
            rows = [self._mixed_row(table, place) for place in range(self._count(table))]
        else:
            rows = self._variant_rows(table)
        self._filled[table.key] = rows + self._repeated(table, rows)

    def _count(self, table: Table) -> int:
        is_base = table.key == self._maker.order[0].key
        least, most = _BASE_ROWS if is_base else _OTHER_ROWS
        most *= self._size
        return self._chance.randint(least * self._size, self._chance.randint(most // 2, most))

    def _rate_rows(self, table: Table) -> Iterator[Row]:
        """Yield rates of each currency, those of later days lower, and rows that are no rates."""
        step = self._maker.rates(table)
        assert step is not None
        for place, currency in enumerate(CURRENCIES):
            for day, rate in _RATES:
                value = None if rate is None else rate + place
                yield self._rate_row(table, step, currency, day, value)
                if day == RATE_DAYS[-1] and not table.primary_key:
                    yield self._rate_row(table, step, currency, day, value)
        if _may_be_null(table, _column(table, step.rate_currency)):
            yield self._rate_row(table, step, None, RATE_DAYS[0], Decimal(1))
        if _may_be_null(table, _column(table, step.rate_day)):
            yield self._rate_row(table, step, CURRENCIES[0], None, Decimal(9))

    def _rate_row(
        self, table: Table, step: RateStep, currency: str | None, day: date | None, rate: Any
    ) -> Row:
        self._rates += 1
        row = self._plain_row(table, self._rates)
        held = None if day is None else self._maker.held(table, step.rate_day, day)
        row |= {step.rate_currency: currency, step.rate_day: held}
        column = _column(table, step.rate)
        if rate is not None:
            row[step.rate] = _as_number(rate, column)
        elif column.nullable:
            row[step.rate] = None
        return row

    # rows that differ in one column

    def _variant_rows(self, table: Table) -> list[Row]:
        rows = [self._plain_row(table, place) for place in range(_FEW + 1)]
        rows += list(self._rows_at_bounds(table, len(rows)))
        for column in self._maker.columns(table):
            for value in self._variants(table, column):
                if len(rows) >= _MOST_ROWS:
                    return rows
                rows.append(self._plain_row(table, len(rows)) | {column.name: value})
        return rows

    def _rows_at_bounds(self, table: Table, place: int) -> Iterator[Row]:
        """Yield rows in which what steps compute lies at the bounds of conditions."""
        for bound in self._maker.computed_bounds(table):
            for column in self._maker.columns(table):
                is_free = not self._maker.is_key(table, column.name)
                if column.name not in bound.columns or not is_free:
                    continue
                plain = self._plain_row(table, place)
                for value in values_at(bound, plain, column.name, self._maker.time_zone):
                    if kind_of_type(column.type) == "numeric":
                        yield self._renumbered_key(table, {**plain, column.name: value}, place)
                        place += 1

    def _variants(self, table: Table, column: Column) -> list[Any]:
        if column.name in self._maker.single_keys(table):
            return []
        telling = self._maker.telling(table, column)
        if self._maker.domain(table, column.name) is not None:
            return self._key_variants(table, column)
        values = telling.known()
        if telling.kind in NUMBERS:
            values += [_as_number(one, column) for one in _ODD_AMOUNTS]
        if telling.is_amount:
            values.append(self._plain_amount(table, column, 0))
        else:
            plain = self._fulfilling(table, column)[:1]
            values = [one for one in values if one not in plain]
        if _may_be_null(table, column):
            values.append(None)
        return values

    def _fulfilling(self, table: Table, column: Column) -> list[Any]:
        if self._maker.is_key(table, column.name):
            return []
        place = (table.key, column.name)
        if self._given is not None:
            return [self._given[place]] if place in self._given else []
        return self._maker.fulfilling(table, column.name)

    def _key_variants(self, table: Table, column: Column) -> list[Any]:
        """Return a key that no other row has, NULL, and 0 where it divides."""
        is_anti = self._maker.meets_nothing(table, column.name)
        values = [self._key(table, column, 0 if is_anti else _UNKNOWN)]
        if self._maker.telling(table, column).is_divisor:
            values.append(_key(column, -1))
        if _may_be_null(table, column):
            values.append(None)
        return values if values[0] is not None else []

    def _key(self, table: Table, column: Column, place: int) -> Any:
        """Return a key; in some worlds those of different tables have no number in common."""
        is_apart = not self._is_small and kind_of_type(column.type) != "boolean"
        apart = self._maker.apart(table, column.name) if is_apart else 0
        if self._maker.divides(table, column.name):
            apart = -1  # keys begin with 0
        return _key(column, place + apart)

    def _plain_row(self, table: Table, place: int) -> Row:
        row = {
            column.name: self._plain_value(table, column, place)
            for column in self._maker.columns(table)
        }
        for one, other in self._maker.equal_columns(table):
            row[other] = row[one]
        return row

    def _plain_value(self, table: Table, column: Column, place: int) -> Any:
        given = self._given or {}
        if given.get((table.key, column.name), A_KEY) is None:
            return None
        if self._maker.is_key(table, column.name):
            return self._plain_key(table, column, place)
        telling = self._maker.telling(table, column)
        if telling.is_amount:
            self._amounts += 1
            return self._plain_amount(table, column, self._amounts)
        fulfilling = self._fulfilling(table, column)
        return fulfilling[0] if fulfilling else self._key(table, column, 0)

    def _plain_key(self, table: Table, column: Column, place: int) -> Any:
        """Return the key of a row, or of one of the first two rows that it may refer to."""
        if self._maker.domain(table, column.name) is None:
            return self._key(table, column, place)
        if self._maker.meets_nothing(table, column.name):
            return self._key(table, column, _UNKNOWN)
        differing = {*self._maker.single_keys(table), *self._maker.dedup_keys(table)}
        is_single = column.name in differing
        return self._key(table, column, place if is_single else place % 2)

    def _plain_amount(self, table: Table, column: Column, number: int) -> Any:
        """Return an amount that no others add up to: powers of two as long as they fit.

        Where conditions don't let all amounts through, it is one that they do.
        """
        fulfilling = self._fulfilling(table, column)
        is_free = len(fulfilling) >= len(_AMOUNTS)
        if fulfilling and not is_free:
            return fulfilling[number % len(fulfilling)]
        if self._is_small:
            size = number % _SMALL
        else:
            size = 2**number if number < _POWERS else self._chance.randint(10**6, 10**8)
        most = int(largest_number(column.type))
        amount = size if size <= most else 1 + size % max(most, 1)
        kind = kind_of_type(column.type)
        if kind == "numeric":
            return Decimal(amount)
        return float(amount) if kind == "float" else amount

    # rows that differ in several columns

    def _mixed_row(self, table: Table, place: int) -> Row:
        """Return a row that comes through, but for a few columns of some rows."""
        row = self._plain_row(table, place)
        columns = self._maker.columns(table)
        chosen = self._chance.choice(self._maker.choices)
        for column in columns:
            self._vary(table, column, row, chosen)
        differing = self._chance.choice(_UNFULFILLED)
        for column in self._chance.sample(columns, min(differing, len(columns))):
            variants = self._variants(table, column)
            if variants:
                row[column.name] = self._chance.choice(variants)
        return row

    def _vary(self, table: Table, column: Column, row: Row, chosen: Values) -> None:
        """Let plain values differ as far as rows come through, and keys refer to any row."""
        if column.name in self._maker.single_keys(table):
            return
        place = (table.key, column.name)
        if self._maker.domain(table, column.name) is not None:
            is_null = chosen.get(place, A_KEY) is None
            row[column.name] = None if is_null else self._any_key(table, column)
        elif column.name in self._maker.dedup_keys(table):
            row[column.name] = self._key(table, column, self._chance.randrange(_FEW + 1))
        elif self._maker.telling(table, column).is_amount:
            row[column.name] = self._mixed_amount(table, column)
        elif place in chosen:
            row[column.name] = chosen[place]

    def _any_key(self, table: Table, column: Column) -> Any:
        """Return the key of a row of another table, as far as it has rows already."""
        known = []
        for (_, name), (other, other_name) in self._maker.referring(table):
            if name == column.name:
                known += [row[other_name] for row in self._filled.get(other, ())]
        known = [value for value in known if value is not None]
        if known:
            return self._chance.choice(known)
        return self._key(table, column, self._chance.randrange(_FEW * 2))

    def _mixed_amount(self, table: Table, column: Column) -> Any:
        if column.nullable and self._chance.random() < _NULL_AMOUNTS:
            return None
        odd = [_as_number(one, column) for one in _ODD_AMOUNTS]
        if self._chance.random() < _ODD_SHARE:
            return self._chance.choice(odd)
        bounds = self._maker.having()
        if bounds and self._chance.random() < 0.5:
            bound = self._chance.choice(bounds)
            if isinstance(bound, int | Decimal) and not isinstance(bound, bool):
                near = Decimal(bound) + self._chance.choice((-1, 0, 0, 1))
                if abs(near) <= largest_number(column.type):
                    return _as_number(near, column)
        return self._plain_amount(table, column, self._chance.randrange(1, 20))

    # duplicates

    def _repeated(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Return further rows of keys that a dedup looks at: later, earlier, at the same time."""
        keys = self._maker.dedup_keys(table)
        is_unique = any(set(keys).issuperset(key) for key in self._maker.declared_keys(table))
        if not keys or is_unique:
            return []
        again = []
        for row in rows[:_FEW]:
            again += list(self._versions(table, row, keys))
        for key in keys:
            if _may_be_null(table, _column(table, key)):
                unknown = dict(rows[0]) | {key: None}
                again += [dict(unknown), dict(unknown)]
        added = again[-_MOST_ROWS:]
        return [self._renumbered(table, row, len(rows) + n) for n, row in enumerate(added)]

    def _versions(self, table: Table, row: Row, keys: Sequence[str]) -> Iterator[Row]:
        """Yield rows of the same key that differ from this one in one column, and its copy."""
        fixed = {*keys, *table.primary_key}
        for column in self._maker.columns(table):
            if column.name in fixed:
                continue
            for value in self._maker.telling(table, column).values[:3]:
                yield dict(row) | {column.name: value}
        yield dict(row)

    def _renumbered_key(self, table: Table, row: Row, place: int) -> Row:
        """Give a further row a primary key of its own."""
        for name in table.primary_key:
            column = _column(table, name)
            if self._maker.domain(table, name) is None or name in self._maker.single_keys(table):
                row[name] = self._key(table, column, place)
        return row

    def _renumbered(self, table: Table, row: Row, place: int) -> Row:
        """Give a further row a primary key, and amounts, of its own."""
        row = self._renumbered_key(table, row, place)
        for column in self._maker.columns(table):
            if self._maker.telling(table, column).is_amount and row[column.name] is not None:
                self._amounts += 1
                row[column.name] = self._plain_amount(table, column, self._amounts)
        return row

    # rows that refer to rows

    def _with_references(self, table: Table) -> list[Row]:
        """Return the rows, with further plain ones so that each row of other tables is met."""
        rows = self._filled[table.key]
        if self._is_mixed:
            return rows
        added: list[Row] = []
        for (_, name), (other, other_name) in self._maker.referring(table):
            met = {row[name] for row in rows if row[name] is not None}
            for parent in self._filled[other]:
                value = parent[other_name]
                if value is None or value in met or len(added) >= _MOST_REFERENCES:
                    continue
                met.add(value)
                place = len(rows) + len(added)
                added.append(self._plain_row(table, place) | {name: value})
        return [*rows, *added]

    def _add_children(self, parent: Table, key: str, child: Table, name: str) -> None:
        """Give most rows a child."""
        rows = self._filled[child.key]
        met = {row[name] for row in rows}
        for place, one in enumerate(self._filled[parent.key]):
            is_left_alone = place % 4 == 3
            if one[key] is None or one[key] in met or is_left_alone:
                continue
            rows.append(self._plain_row(child, len(rows)) | {name: one[key]})


class _BoundsFilling(_Filling):
    """Rows of groups whose sums and numbers are at, below and above the bounds of conditions."""

    def _variant_rows(self, table: Table) -> list[Row]:
        groups = list(self._groups())
        rows: list[Row] = []
        for group, (amount, count) in enumerate(groups):
            for _ in range(count if self._is_base(table) else 1):
                row = self._plain_row(table, len(rows))
                rows.append(row | self._of_group(table, group, amount))
        return rows

    def _is_base(self, table: Table) -> bool:
        return table.key == self._maker.order[0].key

    def _groups(self) -> Iterator[tuple[Any, int]]:
        """Yield an amount and a number of rows for each group."""
        for bound in dict.fromkeys(self._maker.having()):
            if isinstance(bound, bool) or not isinstance(bound, int | Decimal):
                continue
            for step in (Decimal(-1), Decimal("-0.01"), Decimal(0), Decimal("0.01"), Decimal(1)):
                yield bound + step, 1
            if 0 < bound <= _MOST_OF_GROUP:
                for count in (int(bound) - 1, int(bound), int(bound) + 1):
                    yield Decimal(1), count

    def _of_group(self, table: Table, group: int, amount: Any) -> Row:
        row: Row = {}
        singles = self._maker.single_keys(table)
        for column in self._maker.columns(table):
            telling = self._maker.telling(table, column)
            if telling.is_amount and abs(amount) <= largest_number(column.type):
                row[column.name] = _as_number(amount, column)
            is_reference = self._maker.domain(table, column.name) is not None
            if is_reference and column.name not in singles:
                row[column.name] = self._key(table, column, group)
        for key in self._maker.group_keys(table):
            column = _column(table, key.column.name)
            if key.column.name not in row and key.column.name not in singles:
                row[key.column.name] = self._group_value(table, column, key, group)
        return row

    def _group_value(self, table: Table, column: Column, key: BoundKey, group: int) -> Any:
        if key.unit is None:
            return _key(column, group)
        return self._maker.held(table, column.name, shifted(RATE_DAYS[0], key.unit, group))


def _as_number(amount: Any, column: Column) -> Any:
    kind = kind_of_type(column.type)
    if kind == "numeric":
        return Decimal(amount)
    return float(amount) if kind == "float" else int(amount)


def _domains(intent: BoundIntent, joins: Sequence[JoinSourceStep]) -> dict[Place, int]:
    """Number the columns so that those that joins compare have one number."""
    numbers: dict[Place, int] = {}
    for step in joins:
        for left, right in step.on:
            places = [_place(intent, one) for one in (left, right) if one.source]
            known = {numbers[place] for place in places if place in numbers}
            number = min(known, default=len(numbers))
            for place, earlier in list(numbers.items()):
                if earlier in known:
                    numbers[place] = number
            for place in places:
                numbers[place] = number
    return numbers


def _place(intent: BoundIntent, column: BoundColumn) -> Place:
    return intent.source(column.source).table.key, column.name


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise KeyError(name)
    return column


def _may_be_null(table: Table, column: Column) -> bool:
    return column.nullable and column.name not in table.primary_key


def _key(column: Column, place: int) -> Any:
    """Return the key with that number, in the column's type; None of types without keys."""
    kind = kind_of_type(column.type)
    if kind in NUMBERS:
        return Decimal(place + 1) if kind == "numeric" else place + 1
    if kind == "text":
        return column.allowed[place % len(column.allowed)] if column.allowed else f"K{place}"
    if kind == "boolean":
        return place % 2 == 0
    if kind in DAYS:
        return usual_values(kind, "UTC")[0] + timedelta(days=place)
    if column.type == "uuid":
        return UUID(int=place + 1)
    return None


def _without_duplicates(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Return the rows without those that the table's keys don't allow."""
    kept = list(rows)
    for key in (table.primary_key, *table.unique_keys):
        seen: set[tuple[Any, ...]] = set()
        allowed = []
        for row in kept:
            values = tuple(row.get(name) for name in key)
            if key and None not in values and values in seen:
                continue
            seen.add(values)
            allowed.append(row)
        kept = allowed
    return kept
