"""Tell which tables can be joined: by foreign keys, the semantic file, and columns' names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from common.values import Table
from knowledge.tables.implied_references import ImpliedReference, implied_references

# A table that more tables refer to says nothing about which of them belong together.
_MOST_CHILDREN = 60
_LONGEST_WAY = 3  # joins
_ROLE = 0.7


class JoinStep(NamedTuple):
    """The last step of a way to a table.

    Attributes:
        before: number of the table from which it leads.
        joins: the joins of the whole way.
        sureness: how sure all of them are, from 0 to 1.
    """

    before: int
    joins: int
    sureness: float


class TableGraph:
    """The references between tables, which go by their numbers.

    Attributes:
        above: for each table, those it refers to, and how sure that is: 1 when it is declared, a
            third when names fit three tables.
        below: for each table, those that refer to it, likewise.
        joining: for each table, the columns by which it is joined to others.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        numbers = {table.key: number for number, table in enumerate(tables)}
        implied = implied_references(tables)
        self.above: list[dict[int, float]] = [
            dict(_references(table, implied[number], numbers))
            for number, table in enumerate(tables)
        ]
        self.below: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for number, targets in enumerate(self.above):
            for target, sureness in targets.items():
                self.below[target][number] = sureness

        self.joining: list[set[str]] = [{reference.column for reference in one} for one in implied]
        for number, table in enumerate(tables):
            for key in table.foreign_keys:
                self.joining[number].update(key.columns)
                if key.target in numbers:
                    self.joining[numbers[key.target]].update(key.target_columns)

    def referring(self, number: int) -> Mapping[int, float]:
        """Return the tables that refer to one."""
        return self.below.get(number, {})

    def ways_from(self, start: int) -> dict[int, JoinStep]:
        """Return tables within three joins of `start`, with the last steps of the shortest ways.

        `start` is one of them.
        """
        ways = {start: JoinStep(start, 0, 1.0)}
        edge = [start]
        for joins in range(1, _LONGEST_WAY + 1):
            reached: dict[int, JoinStep] = {}
            for number in edge:
                for other, sureness in self._beside(number):
                    if other in ways:
                        continue

                    sure = ways[number].sureness * sureness
                    if other not in reached or reached[other].sureness < sure:
                        reached[other] = JoinStep(number, joins, sure)

            ways |= reached
            edge = list(reached)

        return ways

    def _beside(self, number: int) -> Iterator[tuple[int, float]]:
        yield from self.above[number].items()
        below = self.referring(number)
        if len(below) <= _MOST_CHILDREN:
            yield from below.items()


def _references(
    table: Table, implied: Iterable[ImpliedReference], numbers: Mapping[tuple[str, str], int]
) -> Iterator[tuple[int, float]]:
    """Yield implied references first, so that those that are declared count."""
    for reference in implied:
        sureness = 1.0
        if reference.is_role:
            sureness = _ROLE

        yield reference.target, sureness / reference.candidates

    targets = [key.target for key in table.foreign_keys]
    if table.meaning:
        targets = [*(join.target for join in table.meaning.joins), *targets]

    for target in targets:
        if target in numbers:
            yield numbers[target], 1.0
