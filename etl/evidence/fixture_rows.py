"""Fills the tables of one made-up world with rows, as the plan of an intent's tables says."""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

from common.values import Table
from etl.evidence.alternative_values import values_of_no_alternative
from etl.evidence.boundary_values import CURRENCIES, RATE_DAYS, Place
from etl.evidence.column_values import (
    as_day,
    is_exact_number,
    largest_number,
    number_in,
    numbered_key,
)
from etl.evidence.computed_bounds import values_at
from etl.evidence.fixture_plan import (
    ColumnRole,
    FixturePlan,
    Reference,
    TableKey,
)
from etl.evidence.fulfilling_values import A_KEY, Values
from etl.meaning.bound import BoundKey, RateStep
from etl.meaning.calendar_periods import shifted
from etl.meaning.value_kinds import NUMBERS

Row = dict[str, Any]

_MOST_ROWS = 70
_MOST_REFERENCES = 160
_POWERS = 30
_MOST_OF_GROUP = 8
_EMPTY_GROUP = 61  # the number of a group that no other rows belong to
_SMALL = 13  # amounts of worlds with small ones are less
_UNKNOWN = 97  # the key that no row has
_NULL_AMOUNTS = 0.15
_ODD_SHARE = 0.2
_AT_BOUND_SHARE = 0.5
_FEW = 3
_BASE_ROWS = (2, 16)
_OTHER_ROWS = (2, 10)
_ODD_AMOUNTS = (Decimal(0), Decimal("-1.25"))
_RATES = (
    (RATE_DAYS[0], Decimal("6.5")),
    (RATE_DAYS[0], Decimal("7.25")),
    (RATE_DAYS[1], Decimal("4.5")),
    (RATE_DAYS[1], Decimal("3.5")),
    (RATE_DAYS[1], None),
    (RATE_DAYS[2], Decimal(2)),
    (RATE_DAYS[2], Decimal("1.5")),
    (RATE_DAYS[2] + timedelta(days=1), None),
)
AMOUNTS = (1, 2, 5, 8, 64, 1000, Decimal("0.5"), *_ODD_AMOUNTS)
"""The amounts that rows may come through conditions with."""
_UNFULFILLED = (0, 0, 0, 1, 1, 2)  # columns of a mixed row that may break conditions
_BESIDE_BOUND = (Decimal(-1), Decimal("-0.01"), Decimal(0), Decimal("0.01"), Decimal(1))


@dataclass(frozen=True)
class FillingStyle:
    """The way in which the rows of a world differ from each other.

    Attributes:
        number: from which all that is left to chance follows.
        is_mixed: whether rows differ in several columns at once.
        is_small: whether amounts are small, and keys of different tables alike.
        size: how many times as many rows a mixed world has.
    """

    number: int = 0
    is_mixed: bool = False
    is_small: bool = False
    size: int = 1


@dataclass(frozen=True)
class KnownValues:
    """The values with which rows pass the conditions of an intent.

    Attributes:
        fulfilling: those of each column, the plain one first.
        choices: values of all columns that come through together.
        nulls: the columns that have no value in any row.
    """

    fulfilling: Mapping[Place, Sequence[Any]]
    choices: Sequence[Values] = ()
    nulls: Collection[Place] = ()


class RowFilling:
    """The rows of one world."""

    def __init__(self, plan: FixturePlan, known: KnownValues, style: FillingStyle) -> None:
        self._plan = plan
        self._known = known
        self._style = style
        # The same worlds each time, nothing secret.
        self._chance = random.Random(style.number)  # noqa: S311
        self._filled: dict[TableKey, list[Row]] = {}
        self._of_empty_groups: list[Row] = []
        self._amounts = 0
        self._rates = 0

    def few(self) -> dict[TableKey, list[Row]]:
        """Return one row of each table, and all rates."""
        rows = {}
        for table in self._plan.tables:
            step = self._plan.rates.get(table.key)
            if step is None:
                rows[table.key] = [self._plain_row(table, 1)]
            else:
                rows[table.key] = list(self._rate_rows(table, step))

        return rows

    def tables(self) -> dict[TableKey, list[Row]]:
        """Return the rows of each table, in any order."""
        referred_first = self._plan.tables[::-1]
        for table in referred_first:
            rows = self._own_rows(table)
            self._filled[table.key] = rows + self._versions(table, rows)

        for table in referred_first:
            self._add_references(table)

        for reference in self._plan.children:
            self._add_children(reference)

        result = {}
        for table in self._plan.tables:
            rows = _without_duplicates(table, self._filled[table.key])
            self._chance.shuffle(rows)
            result[table.key] = rows

        return result

    def _own_rows(self, table: Table) -> list[Row]:
        step = self._plan.rates.get(table.key)
        if step is not None:
            return list(self._rate_rows(table, step))
        if self._style.is_mixed:
            return [self._mixed_row(table, place) for place in range(self._count(table))]

        return self._variant_rows(table)

    def _count(self, table: Table) -> int:
        least, most = _BASE_ROWS if self._is_base(table) else _OTHER_ROWS
        least *= self._style.size
        most *= self._style.size
        at_most = self._chance.randint(most // 2, most)
        return self._chance.randint(least, at_most)

    def _is_base(self, table: Table) -> bool:
        return table.key == self._plan.tables[0].key

    # rates

    def _rate_rows(self, table: Table, step: RateStep) -> Iterator[Row]:
        """Yield rates of each currency, those of later days lower, and rows that are no rates."""
        may_repeat = not table.primary_key
        for place, currency in enumerate(CURRENCIES):
            for day, rate in _RATES:
                value = None if rate is None else rate + place
                yield self._rate_row(table, step, currency, day, value)
                if may_repeat and day == RATE_DAYS[-1]:
                    yield self._rate_row(table, step, currency, day, value)

        if self._plan.role(table, step.rate_currency).is_nullable:
            yield self._rate_row(table, step, None, RATE_DAYS[0], Decimal(1))
        if self._plan.role(table, step.rate_day).is_nullable:
            yield self._rate_row(table, step, CURRENCIES[0], None, Decimal(9))
        if step.target_currency is not None:
            for day in RATE_DAYS:
                other = self._rate_row(table, step, CURRENCIES[0], day, Decimal(9))
                yield other | {step.target_currency: CURRENCIES[1]}

    def _rate_row(
        self, table: Table, step: RateStep, currency: str | None, day: date | None, rate: Any
    ) -> Row:
        self._rates += 1
        row = self._plain_row(table, self._rates)
        row[step.rate_currency] = currency
        if step.target_currency is not None:
            row[step.target_currency] = step.to

        row[step.rate_day] = None
        if day is not None:
            row[step.rate_day] = self._held(self._plan.role(table, step.rate_day), day)

        column = self._plan.role(table, step.rate).column
        if rate is not None:
            row[step.rate] = number_in(column, rate)
        elif column.nullable:
            row[step.rate] = None

        return row

    def _held(self, role: ColumnRole, day: date) -> Any:
        """Return a day as the column holds it."""
        return as_day(day, role.boundary.kind, self._plan.intent.time_zone)

    # rows that differ in one column

    def _variant_rows(self, table: Table) -> list[Row]:
        rows = [self._plain_row(table, place) for place in range(_FEW + 1)]
        rows += self._rows_at_bounds(table, len(rows))
        rows += self._rows_of_alternatives(table, len(rows))
        if self._style.is_small:  # elsewhere no two amounts may add up to a third one
            repeated = dict(rows[1])
            self._give_key(table, repeated, len(rows))
            rows.append(repeated)

        rows += self._rows_of_empty_group(table, len(rows))
        for name, value in self._changes(table):
            if len(rows) >= _MOST_ROWS:
                break

            rows.append(self._plain_row(table, len(rows)) | {name: value})

        return rows

    def _rows_of_empty_group(self, table: Table, place: int) -> list[Row]:
        """Return a row of a group of its own, in which nothing is added up."""
        values: Row = {}
        for key in self._plan.group_keys.get(table.key, ()):
            role = self._plan.role(table, key.column.name)
            if not role.is_unique:
                values[role.name] = self._group_value(role, key, _EMPTY_GROUP)

        if not values:
            return []

        row = self._plain_row(table, place) | values | self._no_amounts(table)
        self._of_empty_groups.append(row)
        return [row]

    def _no_amounts(self, table: Table) -> Row:
        """Return NULL for the amounts of a table's row."""
        amounts: Row = {}
        for role in self._plan.columns(table):
            if role.boundary.is_amount and role.is_nullable:
                amounts[role.name] = None

        return amounts

    def _group_value(self, role: ColumnRole, key: BoundKey, group: int) -> Any:
        if key.unit is None:
            return numbered_key(role.column, group)

        return self._held(role, shifted(RATE_DAYS[0], key.unit, group))

    def _changes(self, table: Table) -> Iterator[tuple[str, Any]]:
        """Yield each column's name with each value by which a row may differ from a plain one."""
        for role in self._plan.columns(table):
            for value in self._variants(role):
                yield role.name, value

    def _rows_at_bounds(self, table: Table, place: int) -> Iterator[Row]:
        """Yield rows in which what steps compute lies at the bounds of conditions."""
        zone = self._plan.intent.time_zone
        for bound in self._plan.computed_bounds.get(table.key, ()):
            for role in self._plan.columns(table):
                if role.is_key or role.name not in bound.columns:
                    continue

                plain = self._plain_row(table, place)
                if role.boundary.kind != "numeric":
                    continue

                for value in values_at(bound, plain, role.name, zone):
                    row = plain | {role.name: value}
                    self._give_key(table, row, place)
                    yield row
                    place += 1

    def _rows_of_alternatives(self, table: Table, place: int) -> Iterator[Row]:
        """Yield rows that fulfil one alternative of a condition at most."""
        for values in values_of_no_alternative(self._plan.intent, self._candidates):
            roles = []
            for role in self._plan.columns(table):
                if role.place in values and not role.is_key:
                    roles.append(role)

            fulfils_none = {role.name: values[role.place] for role in roles}
            for role in roles:
                for value in (fulfils_none[role.name], *self._variants(role)):
                    yield self._plain_row(table, place) | fulfils_none | {role.name: value}
                    place += 1

    def _candidates(self, place: Place) -> Sequence[Any]:
        """Return the values that a column may have, the plain one first."""
        key, name = place
        for table in self._plan.tables:
            if table.key == key:
                role = self._plan.role(table, name)
                return [*self._fulfilling(role), *self._variants(role)]

        return ()

    def _variants(self, role: ColumnRole) -> list[Any]:
        if role.is_unique:
            return []
        if role.is_joined:
            return self._key_variants(role)

        boundary = role.boundary
        values = boundary.known()
        if boundary.kind in NUMBERS:
            values += [number_in(role.column, amount) for amount in _ODD_AMOUNTS]
        if boundary.is_amount:
            values.append(self._plain_amount(role, 0))
        else:
            plain = self._fulfilling(role)[:1]
            values = [value for value in values if value not in plain]

        if role.is_nullable:
            values.append(None)

        return values

    def _fulfilling(self, role: ColumnRole) -> Sequence[Any]:
        if role.is_key:
            return ()

        return self._known.fulfilling.get(role.place, ())

    def _key_variants(self, role: ColumnRole) -> list[Any]:
        """Return a key that no other row has, NULL, and 0 where it divides."""
        other = self._key(role, 0 if role.meets_nothing else _UNKNOWN)
        if other is None:
            return []

        values = [other]
        if role.boundary.is_divisor:
            values.append(numbered_key(role.column, -1))
        if role.is_nullable:
            values.append(None)

        return values

    def _key(self, role: ColumnRole, place: int) -> Any:
        """Return a key; in some worlds those of different tables have no number in common."""
        offset = 0
        if role.is_divided_by:
            offset = -1  # keys begin with 0
        elif not self._style.is_small and role.boundary.kind != "boolean":
            offset = role.key_offset

        return numbered_key(role.column, place + offset)

    def _plain_row(self, table: Table, place: int) -> Row:
        row = {}
        for role in self._plan.columns(table):
            row[role.name] = self._plain_value(role, place)

        for one, other in self._plan.equal_columns.get(table.key, ()):
            row[other] = row[one]

        return row

    def _plain_value(self, role: ColumnRole, place: int) -> Any:
        if role.place in self._known.nulls:
            return None
        if role.is_key:
            return self._plain_key(role, place)
        if role.boundary.is_amount:
            self._amounts += 1
            return self._plain_amount(role, self._amounts)

        fulfilling = self._fulfilling(role)
        if fulfilling:
            return fulfilling[0]

        return self._key(role, 0)

    def _plain_key(self, role: ColumnRole, place: int) -> Any:
        """Return the key of a row, or of one of the first two rows that it may refer to."""
        if role.is_joined and role.meets_nothing:
            return self._key(role, _UNKNOWN)
        if role.is_reference and not role.is_dedup_key:
            return self._key(role, place % 2)

        return self._key(role, place)

    def _plain_amount(self, role: ColumnRole, number: int) -> Any:
        """Return an amount that no others add up to: powers of two as long as they fit.

        Where conditions don't let all amounts through, it is one that they do.
        """
        fulfilling = self._fulfilling(role)
        is_free = len(fulfilling) >= len(AMOUNTS)
        if fulfilling and not is_free:
            return fulfilling[number % len(fulfilling)]

        size = self._amount_size(number)
        most = int(largest_number(role.column.type))
        amount = size if size <= most else 1 + size % max(most, 1)
        return number_in(role.column, amount)

    def _amount_size(self, number: int) -> int:
        if self._style.is_small:
            return number % _SMALL
        if number < _POWERS:
            return 1 << number

        return self._chance.randint(10**6, 10**8)

    # rows that differ in several columns

    def _mixed_row(self, table: Table, place: int) -> Row:
        """Return a row that passes all conditions but for those on a few of its columns."""
        row = self._plain_row(table, place)
        roles = self._plan.columns(table)
        chosen = self._chance.choice(self._known.choices)
        for role in roles:
            self._vary(role, row, chosen)

        differing = self._chance.choice(_UNFULFILLED)
        for role in self._chance.sample(roles, min(differing, len(roles))):
            variants = self._variants(role)
            if variants:
                row[role.name] = self._chance.choice(variants)

        return row

    def _vary(self, role: ColumnRole, row: Row, chosen: Values) -> None:
        """Put another value that passes conditions into the column, or the key of another row."""
        if role.is_unique:
            return
        if role.is_joined:
            is_null = chosen.get(role.place, A_KEY) is None
            row[role.name] = None if is_null else self._any_key(role)
        elif role.is_dedup_key:
            row[role.name] = self._key(role, self._chance.randrange(_FEW + 1))
        elif role.boundary.is_amount:
            row[role.name] = self._mixed_amount(role)
        elif role.place in chosen:
            row[role.name] = chosen[role.place]

    def _any_key(self, role: ColumnRole) -> Any:
        """Return the key of some row of the other table; a made-up one while that has no rows."""
        table_key, name = role.place
        candidates = []
        for reference in self._plan.references.get(table_key, ()):
            if reference.column != name:
                continue

            for row in self._filled.get(reference.other.key, ()):
                value = row[reference.other_column]
                if value is not None:
                    candidates.append(value)

        if candidates:
            return self._chance.choice(candidates)

        return self._key(role, self._chance.randrange(_FEW * 2))

    def _mixed_amount(self, role: ColumnRole) -> Any:
        if role.column.nullable and self._happens(_NULL_AMOUNTS):
            return None
        if self._happens(_ODD_SHARE):
            return number_in(role.column, self._chance.choice(_ODD_AMOUNTS))
        if self._plan.having and self._happens(_AT_BOUND_SHARE):
            near = self._near_bound()
            if near is not None and abs(near) <= largest_number(role.column.type):
                return number_in(role.column, near)

        return self._plain_amount(role, self._chance.randrange(1, 20))

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share

    def _near_bound(self) -> Decimal | None:
        """Return an amount at or beside the bound of a condition; None for a bound of no number."""
        bound = self._chance.choice(self._plan.having)
        if not is_exact_number(bound):
            return None

        return Decimal(bound) + self._chance.choice((-1, 0, 0, 1))

    # versions of the same row

    def _versions(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Return further rows with the keys of a dedup: later, earlier and at the same time."""
        keys = self._plan.dedup_keys.get(table.key, ())
        is_unique = any(set(keys).issuperset(key) for key in table.declared_keys)
        if not keys or is_unique:
            return []

        further: list[Row] = []
        for row in rows[:_FEW]:
            further += self._versions_of(table, row, keys)

        for key in keys:
            if self._plan.role(table, key).is_nullable:
                further += [rows[0] | {key: None}, rows[0] | {key: None}]

        kept = further[-_MOST_ROWS:]
        for place, row in enumerate(kept, len(rows)):
            self._give_key(table, row, place)
            self._give_amounts(table, row)

        if not table.primary_key:
            kept += [dict(row) for row in kept[:1]]  # nothing tells the two apart

        return kept

    def _versions_of(self, table: Table, row: Row, keys: Sequence[str]) -> Iterator[Row]:
        """Yield rows with the same keys as `row`: some that differ in one column each, and a copy.

        The other columns get values that conditions of the intent tell apart.
        """
        fixed = {*keys, *table.primary_key}
        for column in self._plan.columns(table):
            if column.name in fixed:
                continue

            for value in column.boundary.values[:3]:
                yield row | {column.name: value}

        yield dict(row)

    def _give_key(self, table: Table, row: Row, place: int) -> None:
        """Give a further row a primary key of its own."""
        for name in table.primary_key:
            role = self._plan.role(table, name)
            if not role.is_reference:
                row[name] = self._key(role, place)

    def _give_amounts(self, table: Table, row: Row) -> None:
        """Give a further row amounts of its own."""
        for role in self._plan.columns(table):
            if role.boundary.is_amount and row[role.name] is not None:
                self._amounts += 1
                row[role.name] = self._plain_amount(role, self._amounts)

    # rows that refer to rows

    def _add_references(self, table: Table) -> None:
        """Add plain rows that refer to all rows of the other tables; none in mixed worlds."""
        if self._style.is_mixed:
            return

        rows = self._filled[table.key]
        added: list[Row] = []
        for reference in self._plan.references.get(table.key, ()):
            met = {row[reference.column] for row in rows}
            for parent in self._filled[reference.other.key]:
                value = parent[reference.other_column]
                is_met = value is None or value in met
                if is_met or len(added) >= _MOST_REFERENCES:
                    continue

                met.add(value)
                plain = self._plain_row(table, len(rows) + len(added))
                if any(parent is row for row in self._of_empty_groups):
                    plain |= self._no_amounts(table)

                added.append(plain | {reference.column: value})

        rows += added

    def _add_children(self, reference: Reference) -> None:
        """Add rows so that three of four rows of the other table are referred to."""
        rows = self._filled[reference.table.key]
        met = {row[reference.column] for row in rows}
        for place, parent in enumerate(self._filled[reference.other.key]):
            value = parent[reference.other_column]
            is_left_alone = place % 4 == 3
            if is_left_alone or value is None or value in met:
                continue

            plain = self._plain_row(reference.table, len(rows))
            rows.append(plain | {reference.column: value})


class BoundsFilling(RowFilling):
    """Rows of groups whose sums and numbers are at, below and above the bounds of conditions."""

    def _variant_rows(self, table: Table) -> list[Row]:
        rows: list[Row] = []
        for group, amounts in enumerate(self._groups()):
            of_rows = amounts if self._is_base(table) else amounts[:1]
            for amount in of_rows:
                row = self._plain_row(table, len(rows))
                rows.append(row | self._of_group(table, group, amount))

        return rows

    def _groups(self) -> Iterator[list[Decimal]]:
        """Yield the amounts in the rows of each group."""
        bounds = [bound for bound in dict.fromkeys(self._plan.having) if is_exact_number(bound)]
        sizes = [int(bound) for bound in bounds if 0 < bound <= _MOST_OF_GROUP]
        for bound in bounds:
            for step in _BESIDE_BOUND:
                yield [bound + step]

        for size in sizes:
            for difference in (-1, 0, 1):
                yield [Decimal(1)] * (size + difference)

        # At one bound, and beyond another one that the number of rows has to reach
        for bound, size in product(bounds, sizes):
            if bound == size:
                continue

            for step in _BESIDE_BOUND:
                yield [bound + step] + [Decimal(0)] * size
                yield [bound + step] * (size + 1)

    def _of_group(self, table: Table, group: int, amount: Decimal) -> Row:
        """Return the values by which a row belongs to the group and has the amount."""
        values: Row = {}
        for role in self._plan.columns(table):
            if role.boundary.is_amount and abs(amount) <= largest_number(role.column.type):
                values[role.name] = number_in(role.column, amount)
            if role.is_reference:
                values[role.name] = self._key(role, group)

        for key in self._plan.group_keys.get(table.key, ()):
            role = self._plan.role(table, key.column.name)
            if not role.is_unique and role.name not in values:
                values[role.name] = self._group_value(role, key, group)

        return values


def _without_duplicates(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Return the rows without those that the table's keys don't allow."""
    kept = list(rows)
    for key in table.declared_keys:
        seen: set[tuple[Any, ...]] = set()
        allowed = []
        for row in kept:
            values = tuple(row.get(name) for name in key)
            is_open = None in values
            if is_open or values not in seen:
                allowed.append(row)

            seen.add(values)

        kept = allowed

    return kept
