"""The ways in which tables may be joined: declared ones are taken, others are asked for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.meanings import TableKey
from common.values import Catalog, Table
from etl.binding.column_words import may_be_key
from etl.meaning.value_kinds import NUMBERS, kind_of_type
from knowledge.index import IndexPart
from knowledge.tables.implied_references import Implied, implied_references

MOST_HOPS = 3
_MOST_WAYS = 50
_MOST_EDGE = 2_000
_MOST_LINKS = 200  # of one table that ways lead through; a hub says nothing


@dataclass(frozen=True)
class JoinLink:
    """A join from one table to another; the columns stand in pairs.

    Attributes:
        is_referencing: whether `left` is the side whose columns refer.
        is_semantic: whether the semantic file names it.
    """

    left: TableKey
    left_columns: tuple[str, ...]
    right: TableKey
    right_columns: tuple[str, ...]
    is_referencing: bool
    is_semantic: bool = False

    @property
    def reversed(self) -> "JoinLink":
        """Return the same join from the other side."""
        return JoinLink(
            self.right,
            self.right_columns,
            self.left,
            self.left_columns,
            not self.is_referencing,
            self.is_semantic,
        )

    @property
    def reference(self) -> str:
        """Return the referencing columns as choices name them."""
        key, columns = (self.left, self.left_columns)
        if not self.is_referencing:
            key, columns = (self.right, self.right_columns)
        return ", ".join(f"{key[1]}.{column}" for column in columns)


Way = tuple[JoinLink, ...]


def leads_over_parent(way: Way) -> bool:
    """Tell whether a way goes up to a table and down again, which joins all its children."""
    went_up = False
    for link in way:
        if went_up and not link.is_referencing:
            return True
        went_up = went_up or link.is_referencing
    return False


class JoinLinks:
    """The declared joins of a catalogue, from both sides."""

    def __init__(self, catalog: Catalog) -> None:
        self._links: dict[TableKey, list[JoinLink]] = defaultdict(list)
        for table in catalog.tables:
            for link in _declared(table):
                if link.right in catalog.by_key:
                    self._links[link.left].append(link)
                    self._links[link.right].append(link.reversed)

    def between(self, left: TableKey, right: TableKey) -> list[JoinLink]:
        """Return the joins from one table to the other; one that is preferred hides the others."""
        found = []
        for link in self._links.get(left, ()):
            if link.right == right:
                found.append(link)
        preferred = []
        for link in found:
            if link.is_semantic:
                preferred.append(link)
        return preferred or found

    def ways(self, left: TableKey, right: TableKey) -> list[Way]:
        """Return the shortest ways from one table to the other, of three joins at most."""
        distances = self._distances(right)
        length = min(
            (distances[link.right] + 1 for link in self._onward(left) if link.right in distances),
            default=MOST_HOPS + 1,
        )
        if length > MOST_HOPS:
            return []
        ways: list[Way] = [()]
        for left_over in reversed(range(length)):
            longer = []
            for way in ways:
                for one in self._longer(way, left):
                    longer.append(one)
            ways = []
            for way in longer:
                if distances.get(way[-1].right) == left_over:
                    ways.append(way)
        return ways[:_MOST_WAYS]

    def all_ways(self, left: TableKey, right: TableKey) -> list[Way]:
        """Return all ways from one table to the other, of three joins at most, shortest first."""
        ways: list[Way] = []
        edge: list[Way] = [()]
        for _ in range(MOST_HOPS):
            longer = []
            for way in edge:
                for one in self._longer(way, left):
                    longer.append(one)
            ways += [way for way in longer if way[-1].right == right]
            edge = [way for way in longer if self._leads_on(way, right)][:_MOST_EDGE]
        return ways[:_MOST_WAYS]

    def _leads_on(self, way: Way, target: TableKey) -> bool:
        end = way[-1].right
        return end != target and len(self._onward(end)) <= _MOST_LINKS

    def _distances(self, target: TableKey) -> dict[TableKey, int]:
        """Return how many joins lead from tables nearby to one."""
        distances = {target: 0}
        edge = [target]
        for joins in range(1, MOST_HOPS):
            reached: dict[TableKey, int] = {}
            for key in edge:
                is_hub = key != target and len(self._onward(key)) > _MOST_LINKS
                for link in () if is_hub else self._onward(key):
                    if link.right not in distances:
                        reached[link.right] = joins
            distances.update(reached)
            edge = list(reached)
        return distances

    def _onward(self, key: TableKey) -> Sequence[JoinLink]:
        return self._links.get(key, ())

    def _longer(self, way: Way, start: TableKey) -> Iterator[Way]:
        here = way[-1].right if way else start
        passed = {start, *(link.right for link in way)}
        for link in self._onward(here):
            if link.right not in passed:
                yield (*way, link)


def _declared(table: Table) -> Iterator[JoinLink]:
    said = set()
    for join in table.meaning.joins if table.meaning else ():
        said.add((join.columns, join.target))
        yield JoinLink(
            table.key, join.columns, join.target, join.target_columns, True, is_semantic=True
        )
    for key in table.foreign_keys:
        if (key.columns, key.target) not in said:
            yield JoinLink(table.key, key.columns, key.target, key.target_columns, True)


JOIN_LINKS = IndexPart(lambda index: JoinLinks(index.catalog), ignores_row_counts=True)


def _implied_by_key(tables: Sequence[Table]) -> Mapping[TableKey, tuple[Implied, ...]]:
    implied = implied_references(tables)
    found = {}
    for table, one in zip(tables, implied, strict=True):
        if one:
            found[table.key] = tuple(one)
    return found


_IMPLIED = IndexPart(lambda index: _implied_by_key(index.catalog.tables), ignores_row_counts=True)


def likely_links(left: Table, right: Table, catalog: Catalog) -> list[JoinLink]:
    """Return joins that names suggest and nobody declared, the likeliest first."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], JoinLink] = {}
    suggested = (
        *_implied(left, right, catalog),
        *(link.reversed for link in _implied(right, left, catalog)),
        *_of_one_name(left, right),
    )
    for link in suggested:
        found.setdefault((link.left_columns, link.right_columns), link)
    return list(found.values())


def _implied(left: Table, right: Table, catalog: Catalog) -> Iterator[JoinLink]:
    implied = _IMPLIED.of(catalog).get(left.key, ())
    ranked = sorted(implied, key=lambda one: (one.is_role, one.candidates))
    for one in ranked:
        target = catalog.tables[one.target]
        own_key = _key_for(one.column, target)
        if target.key == right.key and own_key and _compatible(left, one.column, right, own_key):
            yield JoinLink(left.key, (one.column,), right.key, (own_key,), True)


def _key_for(column: str, target: Table) -> str | None:
    """Return the column of `target` that a column of another table refers to by its name."""
    if target.column(column) is not None:
        return column
    if len(target.primary_key) == 1:
        return target.primary_key[0]
    if target.columns:
        return target.columns[0].name
    return None


def _of_one_name(left: Table, right: Table) -> Iterator[JoinLink]:
    # What both declare to refer to another table is a way over that table
    declared = _referring_columns(left) & _referring_columns(right)
    for column in left.columns:
        name = column.name
        if name in declared or right.column(name) is None or not may_be_key(name):
            continue
        if _compatible(left, name, right, name):
            is_referencing = not is_unique(left, (name,))
            yield JoinLink(left.key, (name,), right.key, (name,), is_referencing)


def _referring_columns(table: Table) -> set[str]:
    found: set[str] = set()
    for key in table.foreign_keys:
        for name in key.columns:
            found.add(name)
    return found


def _compatible(left: Table, column: str, right: Table, other: str) -> bool:
    one, two = left.column(column), right.column(other)
    return one is not None and two is not None and are_comparable(one.type, two.type)


def are_comparable(type_: str, other: str) -> bool:
    """Tell whether values of two types can be joined by."""
    one, two = kind_of_type(type_), kind_of_type(other)
    if one == two:
        return one != "other" or type_ == other
    return {one, two} <= NUMBERS


def is_unique(table: Table, columns: Sequence[str]) -> bool:
    """Tell whether a table has at most one row for values of these columns that are not NULL."""
    given = set(columns)
    keys = [table.primary_key, *table.unique_keys]
    return any(key and given.issuperset(key) for key in keys)
