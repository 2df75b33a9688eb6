"""The parts that tables and columns play in an intent, as far as made-up rows depend on them.

A column is a key, refers to other rows, or holds values that decide something. What is known of it
is worked out once, as each row of each world asks for it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.values import Column, Table
from etl.evidence.boundary_values import BoundaryColumn, BoundaryValues, Place
from etl.evidence.computed_bounds import ComputedBound, computed_bounds
from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    BoundKey,
    DedupStep,
    JoinSourceStep,
    RateStep,
)

TableKey = tuple[str, str]

_APART = 20  # between keys of different tables, so that none is taken for another


@dataclass(frozen=True)
class ColumnRole:
    """How made-up rows fill a column.

    Attributes:
        domain: number of the set of keys that it shares with the columns that joins compare it
            with; None where no join does.
        key_offset: is added to the numbers of its keys, so that those of tables differ.
        is_key: whether its values are numbered keys.
        is_unique: whether no two rows may have the same value.
        is_dedup_key: whether rows of the same value are versions of each other.
        is_nullable: whether rows may have NULL there.
        is_divided_by: whether an expression divides by its keys.
        meets_nothing: whether rows stay only when an anti join finds nothing of this value.
    """

    column: Column
    place: Place
    boundary: BoundaryColumn
    domain: int | None
    key_offset: int
    is_key: bool
    is_unique: bool
    is_dedup_key: bool
    is_nullable: bool
    is_divided_by: bool
    meets_nothing: bool

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_joined(self) -> bool:
        return self.domain is not None

    @property
    def is_reference(self) -> bool:
        """Tell whether several rows may refer to the same other row."""
        return self.is_joined and not self.is_unique


@dataclass(frozen=True)
class Reference:
    """A join of rows of `table` with those of `other` that they refer to."""

    table: Table
    column: str
    other: Table
    other_column: str


class FixturePlan:
    """The tables behind an intent, their columns' roles, and the joins between their rows.

    Attributes:
        tables: each once, those before others that the others refer to.
        references: joins from a column of a table to a unique column of another, by the table.
        children: joins by which several rows belong to one.
        having: bounds of conditions on figures.
        rates: the step whose rates a table holds.
        dedup_keys: the keys by which a table's rows are versions of each other.
        equal_columns: pairs of columns that have to be equal; the second one is no key.
        computed_bounds: bounds of conditions on what is computed from a table's columns.
        group_keys: the keys of groups that are columns of a table.

    Args:
        columns: the columns of each table that the draft reads; others are left out.
    """

    def __init__(self, intent: BoundIntent, columns: Mapping[TableKey, Sequence[str]]) -> None:
        self.intent = intent
        self.tables = list({source.table.key: source.table for source in intent.sources}.values())
        self._joins = intent.steps_of(JoinSourceStep)
        self._boundaries = BoundaryValues(intent)
        self.having = [value for values in self._boundaries.having.values() for value in values]
        self._domains = self._shared_domains()
        self.rates = self._rates()
        self.dedup_keys = self._dedup_keys()
        self.references = self._references()
        self.children = list(self._child_references())
        self.equal_columns = self._equal_columns()
        self.computed_bounds = self._computed_bounds()
        self.group_keys = self._group_keys()
        self._roles = self._all_roles()
        self._used = {table.key: self._used_columns(table, columns) for table in self.tables}

    def columns(self, table: Table) -> list[ColumnRole]:
        """Return the columns of a table that rows have values for."""
        return self._used[table.key]

    def role(self, table: Table, column: str) -> ColumnRole:
        """Return the role of a column, also of one that rows have no value for."""
        return self._roles[table.key, column]

    def _used_columns(
        self, table: Table, columns: Mapping[TableKey, Sequence[str]]
    ) -> list[ColumnRole]:
        used = {*columns.get(table.key, ()), *table.primary_key}
        names = []
        for column in table.columns:
            if column.name in used:
                names.append(column.name)

        return [self.role(table, name) for name in names]

    # roles of columns

    def _all_roles(self) -> dict[Place, ColumnRole]:
        unmatched = self._unmatched()
        divided_by = self._domains_divided_by()
        roles = {}
        for number, table in enumerate(self.tables):
            unique = unique_columns(table)
            dedup_keys = self.dedup_keys.get(table.key, ())
            own_keys = {*table.primary_key, *unique, *dedup_keys}
            for column in table.columns:
                place = (table.key, column.name)
                domain = self._domains.get(place)
                key_set = len(self._domains) + number if domain is None else domain
                roles[place] = ColumnRole(
                    column=column,
                    place=place,
                    boundary=self._boundaries.columns[place],
                    domain=domain,
                    key_offset=_APART * key_set,
                    is_key=column.name in own_keys or domain is not None,
                    is_unique=column.name in unique,
                    is_dedup_key=column.name in dedup_keys,
                    is_nullable=column.nullable and column.name not in table.primary_key,
                    is_divided_by=domain in divided_by,
                    meets_nothing=place in unmatched,
                )

        return roles

    def _shared_domains(self) -> dict[Place, int]:
        """Number the columns that joins compare; columns that are compared share their number."""
        numbers: dict[Place, int] = {}
        for step in self._joins:
            for pair in step.on:
                columns = [column for column in pair if column.source]
                places = [self._place(column) for column in columns]
                _number_alike(numbers, places)

        return numbers

    def _domains_divided_by(self) -> set[int]:
        divided_by = set()
        for place, domain in self._domains.items():
            if self._boundaries.columns[place].is_divisor:
                divided_by.add(domain)

        return divided_by

    def _unmatched(self) -> set[Place]:
        """Return the columns whose values have no match in the rows that an anti join keeps."""
        unmatched = set()
        for left, right in self._pairs(is_anti=True):
            if left.source:
                is_fixed = left.name in unique_columns(self._table(left.source))
                varied = right if is_fixed else left
                unmatched.add(self._place(varied))

        return unmatched

    def _pairs(self, *, is_anti: bool) -> Iterator[tuple[BoundColumn, BoundColumn]]:
        """Yield the columns that anti joins compare, or those that other joins do."""
        for step in self._joins:
            if (step.how == "anti") == is_anti:
                yield from step.on

    # joins of rows

    def _references(self) -> dict[TableKey, list[Reference]]:
        references = defaultdict(list)
        for step in self._joins:
            pairs = () if step.is_multiple else step.on
            for left, right in pairs:
                if not left.source:
                    continue

                reference = self._reference(left, right)
                if reference.table.key != reference.other.key:
                    references[reference.table.key].append(reference)

        return references

    def _child_references(self) -> Iterator[Reference]:
        left_out = {self._place(right) for _, right in self._pairs(is_anti=True)}
        for step in self._joins:
            has_children = step.how != "anti" and step.is_multiple
            if not has_children or len(step.on) != 1:
                continue

            ((parent, child),) = step.on
            is_left_out = self._place(child) in left_out
            if parent.source and not is_left_out:
                yield self._reference(child, parent)

    def _reference(self, column: BoundColumn, other: BoundColumn) -> Reference:
        table, other_table = self._table(column.source), self._table(other.source)
        return Reference(table, column.name, other_table, other.name)

    # what steps ask of a table's rows

    def _rates(self) -> dict[TableKey, RateStep]:
        rate_steps: dict[TableKey, RateStep] = {}
        for step in self.intent.steps_of(RateStep):
            rate_steps.setdefault(self._table(step.rates).key, step)

        return rate_steps

    def _dedup_keys(self) -> dict[TableKey, tuple[str, ...]]:
        keys_by_table: dict[TableKey, tuple[str, ...]] = {}
        for step in self.intent.steps_of(DedupStep):
            keys_by_table.setdefault(self._table(step.source).key, step.keys)

        return keys_by_table

    def _equal_columns(self) -> dict[TableKey, list[tuple[str, str]]]:
        pairs_by_table = defaultdict(list)
        for one, other in self._boundaries.equal:
            table = self._table(one.source)
            if self._table(other.source).key != table.key:
                continue

            unique = unique_columns(table)
            # The one that is set to the other's value must not be unique.
            if other.name not in unique:
                pairs_by_table[table.key].append((one.name, other.name))
            elif one.name not in unique:
                pairs_by_table[table.key].append((other.name, one.name))

        return pairs_by_table

    def _computed_bounds(self) -> dict[TableKey, list[ComputedBound]]:
        bounds_by_table = defaultdict(list)
        for bound in computed_bounds(self.intent):
            bounds_by_table[self._table(bound.source).key].append(bound)

        return bounds_by_table

    def _group_keys(self) -> dict[TableKey, list[BoundKey]]:
        keys_by_table = defaultdict(list)
        for key in self.intent.keys:
            if key.column.source:
                keys_by_table[self._table(key.column.source).key].append(key)

        return keys_by_table

    def _table(self, source: str) -> Table:
        return self.intent.source(source).table

    def _place(self, column: BoundColumn) -> Place:
        return self._table(column.source).key, column.name


def _number_alike(numbers: dict[Place, int], places: Sequence[Place]) -> None:
    """Give the columns one number, and with them all that share a number with one of them."""
    earlier = {numbers[place] for place in places if place in numbers}
    number = min(earlier, default=len(numbers))
    sharing = []
    for place, known in numbers.items():
        if known in earlier:
            sharing.append(place)

    numbers.update(dict.fromkeys([*sharing, *places], number))


def unique_columns(table: Table) -> set[str]:
    """Return the columns that are keys by themselves."""
    return {key[0] for key in table.declared_keys if len(key) == 1}
