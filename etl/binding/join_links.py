"""The ways in which tables may be joined: declared ones are taken, others are asked for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.meanings import TableKey
from common.values import Catalog, Table
from etl.binding.column_words import may_be_key
from etl.meaning.value_kinds import NUMBERS, kind_of_type
from knowledge.index import IndexPart
from knowledge.tables.implied_references import ImpliedReference, implied_references

MOST_HOPS = 3
_MOST_WAYS = 50
_MOST_EDGE = 2_000
_MOST_LINKS = 200  # of a table that ways lead through: a hub would join everything with everything


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
        key, columns = self.left, self.left_columns
        if not self.is_referencing:
            key, columns = self.right, self.right_columns

        return ", ".join(f"{key[1]}.{column}" for column in columns)


JoinPath = tuple[JoinLink, ...]


def leads_over_parent(way: JoinPath) -> bool:
    """Tell whether a way goes up to a table and down again, which joins all its children."""
    went_up = False
    for link in way:
        if link.is_referencing:
            went_up = True
        elif went_up:
            return True

    return False


class JoinLinks:
    """The declared joins of a catalogue, from both sides."""

    def __init__(self, catalog: Catalog) -> None:
        self._links: dict[TableKey, list[JoinLink]] = defaultdict(list)
        self._between: dict[tuple[TableKey, TableKey], list[JoinLink]] = defaultdict(list)
        for table in catalog.tables:
            for link in _declared(table):
                if link.right in catalog.by_key:
                    self._add(link)
                    self._add(link.reversed)

    def _add(self, link: JoinLink) -> None:
        self._links[link.left].append(link)
        self._between[link.left, link.right].append(link)

    def between(self, left: TableKey, right: TableKey) -> list[JoinLink]:
        """Return the joins from one table to the other; one that is preferred hides the others."""
        links = self._between.get((left, right), [])
        preferred = []
        for link in links:
            if link.is_semantic:
                preferred.append(link)

        return preferred or links

    def ways(self, left: TableKey, right: TableKey) -> list[JoinPath]:
        """Return the shortest ways from one table to the other, of three joins at most."""
        distances = self._distances(right)
        reached = []
        for link in self._onward(left):
            if link.right in distances:
                reached.append(link.right)

        if not reached:
            return []

        joins_behind_first = min(distances[key] for key in reached)
        ways: list[JoinPath] = [()]
        for joins_left in range(joins_behind_first, -1, -1):
            nearer = []
            for way in self._longer(ways, left):
                if distances.get(way[-1].right) == joins_left:
                    nearer.append(way)

            ways = nearer

        return ways[:_MOST_WAYS]

    def all_ways(self, left: TableKey, right: TableKey) -> list[JoinPath]:
        """Return all ways from one table to the other, of three joins at most, shortest first."""
        ways: list[JoinPath] = []
        edge: list[JoinPath] = [()]
        for _ in range(MOST_HOPS):
            leading_on: list[JoinPath] = []
            for way in self._longer(edge, left):
                end = way[-1].right
                if end == right:
                    ways.append(way)
                elif not self._is_hub(end):
                    leading_on.append(way)

            edge = leading_on[:_MOST_EDGE]

        return ways[:_MOST_WAYS]

    def _distances(self, target: TableKey) -> dict[TableKey, int]:
        """Return how many joins lead from tables nearby to one."""
        distances = {target: 0}
        edge = [target]
        for joins in range(1, MOST_HOPS):
            reached: set[TableKey] = set()
            for key in edge:
                if key == target or not self._is_hub(key):
                    reached.update(link.right for link in self._onward(key))

            edge = [key for key in reached if key not in distances]
            distances.update(dict.fromkeys(edge, joins))

        return distances

    def _is_hub(self, key: TableKey) -> bool:
        return len(self._onward(key)) > _MOST_LINKS

    def _onward(self, key: TableKey) -> Sequence[JoinLink]:
        return self._links.get(key, ())

    def _longer(self, ways: Iterable[JoinPath], start: TableKey) -> Iterator[JoinPath]:
        """Yield the ways that are one join longer and pass no table twice."""
        for way in ways:
            passed = [start, *(link.right for link in way)]
            here = passed[-1]
            onward = self._onward(here)
            for link in onward:
                if link.right not in passed:
                    yield (*way, link)


def _declared(table: Table) -> Iterator[JoinLink]:
    """Yield a table's joins: those of the semantic file, then the foreign keys it lacks."""
    declared = set()
    joins = table.meaning.joins if table.meaning else ()
    for join in joins:
        declared.add((join.columns, join.target))
        yield JoinLink(
            table.key, join.columns, join.target, join.target_columns, True, is_semantic=True
        )

    for key in table.foreign_keys:
        if (key.columns, key.target) not in declared:
            yield JoinLink(table.key, key.columns, key.target, key.target_columns, True)


JOIN_LINKS = IndexPart(lambda index: JoinLinks(index.catalog), ignores_row_counts=True)


def _implied_by_key(tables: Sequence[Table]) -> Mapping[TableKey, tuple[ImpliedReference, ...]]:
    implied = implied_references(tables)
    return {table.key: tuple(one) for table, one in zip(tables, implied, strict=True)}


_IMPLIED = IndexPart(lambda index: _implied_by_key(index.catalog.tables), ignores_row_counts=True)


def likely_links(left: Table, right: Table, catalog: Catalog) -> list[JoinLink]:
    """Return joins that names suggest and nobody declared, the likeliest first."""
    link_by_columns: dict[tuple[tuple[str, ...], tuple[str, ...]], JoinLink] = {}
    suggested = (
        *_implied_links(left, right, catalog),
        *(link.reversed for link in _implied_links(right, left, catalog)),
        *_of_one_name(left, right),
    )
    for link in suggested:
        link_by_columns.setdefault((link.left_columns, link.right_columns), link)

    return list(link_by_columns.values())


def _implied_links(left: Table, right: Table, catalog: Catalog) -> Iterator[JoinLink]:
    implied = _IMPLIED.of(catalog).get(left.key, ())
    ranked = sorted(implied, key=lambda one: (one.is_role, one.candidates))
    for one in ranked:
        if catalog.tables[one.target].key != right.key:
            continue

        referred = _key_for(one.column, right)
        if referred is not None and _compatible(left, one.column, right, referred):
            yield JoinLink(left.key, (one.column,), right.key, (referred,), True)


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
    # Columns that both declare as references to a third table join them over that table
    declared = _referring_columns(left) & _referring_columns(right)
    for column in left.columns:
        name = column.name
        if name in declared or not may_be_key(name):
            continue
        if _compatible(left, name, right, name):
            is_referencing = not is_unique(left, (name,))
            yield JoinLink(left.key, (name,), right.key, (name,), is_referencing)


def _referring_columns(table: Table) -> set[str]:
    columns: set[str] = set()
    for key in table.foreign_keys:
        columns.update(key.columns)

    return columns


def _compatible(left: Table, column: str, right: Table, other: str) -> bool:
    """Tell whether both tables have these columns, of types that can be joined by."""
    one, two = left.column(column), right.column(other)
    if one is None or two is None:
        return False

    return are_comparable(one.type, two.type)


def are_comparable(type_: str, other: str) -> bool:
    """Tell whether values of two types can be joined by."""
    one, two = kind_of_type(type_), kind_of_type(other)
    if one == two == "other":
        return type_ == other

    return one == two or {one, two} <= NUMBERS


def is_unique(table: Table, columns: Sequence[str]) -> bool:
    """Tell whether a table has at most one row for values of these columns that are not NULL."""
    names = set(columns)
    keys = [table.primary_key, *table.unique_keys]
    return any(key and names.issuperset(key) for key in keys)
