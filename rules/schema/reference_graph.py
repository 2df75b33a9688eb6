"""Ways from table to table along references, always knowing whether a step can multiply rows.

Going *up* (child to parent) keeps one row per child. Two tables that are not above one another meet
in a third that is below both, an order line between orders and products; whoever aggregates over
such a meeting must not count twice.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from common.meanings import TableKey
from knowledge.language.inflection import singular
from knowledge.language.spoken_names import core_words, english_words
from rules.schema.bounded_cache import BoundedCache
from rules.schema.table_facts import Edge, Facts
from rules.words import WORDS

Path = tuple[Edge, ...]
_MAX_STEPS = 5
_MEETING_ABOVE = 3  # steps that a meeting above both tables costs beside the way
_MOST_DISTANCES = 50_000  # kept
_ID_ENDS = WORDS.english.phrases("columns.id_ends")


class AmbiguousPath(Exception):
    """Several equally good ways lead to a table.

    Attributes:
        choices: the referencing columns to choose from, or tables with None.
    """

    def __init__(self, target: TableKey, choices: tuple[tuple[TableKey, str | None], ...]) -> None:
        super().__init__(f"several ways to {target}: {choices}")
        self.target = target
        self.choices = choices


@dataclass(frozen=True)
class Meeting:
    """A table below two others, and the path up from it to the first of them.

    The path is empty when it is the first.
    """

    at: TableKey
    to_first: Path


class _Candidate(NamedTuple):
    """A table where two may meet; the least in order is the best.

    Attributes:
        misses_said: whether none of the tables that the question names is above it.
        steps: from one of the two to the other through it.
        is_third: whether it is none of the two.
    """

    misses_said: bool
    steps: float
    is_third: bool
    key: TableKey


class Graph:
    """The references of one catalogue, as the facts of its tables have them."""

    def __init__(self, facts: Mapping[TableKey, Facts]) -> None:
        self._facts = facts
        self._children: dict[TableKey, list[Edge]] = {}
        self._reached: dict[tuple[str, TableKey], dict[TableKey, float]] = {}
        self._distances: BoundedCache[tuple[TableKey, TableKey], float | None] = BoundedCache(
            _MOST_DISTANCES
        )
        for table in facts.values():
            for edge in table.edges:
                self._children.setdefault(edge.parent, []).append(edge)

    def up(self, start: TableKey, target: TableKey, via: str | None = None) -> Path | None:
        """Return the shortest way up, through the referencing column `via` when given.

        None when there is none.

        Raises:
            AmbiguousPath: several shortest ways, none of them the obvious one.
        """
        if start == target and via is None:
            return ()

        shortest = self._shortest_paths(start, target, via)
        if not shortest:
            return None

        return self._obvious(shortest, target)

    def _shortest_paths(self, start: TableKey, target: TableKey, via: str | None) -> list[Path]:
        paths: list[Path] = []
        queue: deque[Path] = deque([()])
        while queue:
            path = queue.popleft()
            if paths and len(path) >= len(paths[0]):
                break  # paths come by their lengths, so all further ones are longer

            for longer in self._longer_paths(path, start):
                last = longer[-1]
                is_through = via is None or via in last.columns
                if last.parent == target and is_through:
                    paths.append(longer)
                elif last.parent != start:
                    queue.append(longer)

        return paths

    def _longer_paths(self, path: Path, start: TableKey) -> Iterator[Path]:
        """Yield the paths with one step more that lead to no table from which they have come."""
        if len(path) >= _MAX_STEPS:
            return

        here = path[-1].parent if path else start
        passed = {step.child for step in path}
        for edge in self._facts[here].edges:
            if edge.parent not in passed:
                yield (*path, edge)

    def above(self, start: TableKey) -> dict[TableKey, float]:
        """Return every table that can be reached going up, with its distance; `start` at 0."""
        return self._reach("above", start)

    def below(self, start: TableKey) -> dict[TableKey, float]:
        """Return every table from which `start` can be reached going up, with its distance."""
        return self._reach("below", start)

    def _reach(self, direction: str, start: TableKey) -> dict[TableKey, float]:
        reached = self._reached.get((direction, start))
        if reached is not None:
            return reached

        distances: dict[TableKey, float] = {}
        heap: list[tuple[float, TableKey]] = [(0.0, start)]
        while heap:
            distance, key = heapq.heappop(heap)
            if key in distances or distance > _MAX_STEPS:
                continue

            distances[key] = distance
            for edge, neighbour in self._neighbours(direction, key):
                heapq.heappush(heap, (distance + _cost(edge), neighbour))

        self._reached[direction, start] = distances
        return distances

    def _neighbours(self, direction: str, key: TableKey) -> Iterator[tuple[Edge, TableKey]]:
        if direction == "above":
            for edge in self._facts[key].edges:
                yield edge, edge.parent
        else:
            for edge in self._children.get(key, ()):
                yield edge, edge.child

    def _through_below(self, first: TableKey, second: TableKey) -> dict[TableKey, float]:
        """Return every table below both, with the steps from one to the other through it."""
        below_second = self.below(second)
        tables: dict[TableKey, float] = {}
        for key, steps in self.below(first).items():
            if key in below_second:
                tables[key] = steps + below_second[key]

        return tables

    def meeting(
        self,
        first: TableKey,
        second: TableKey,
        preferred: frozenset[TableKey] = frozenset(),
        *,
        below: bool = False,
    ) -> Meeting | None:
        """Return where two tables meet, by the fewest steps.

        Args:
            preferred: tables named in the question, which win.
            below: whether only tables strictly below the first count.

        Raises:
            AmbiguousPath: two tables are equally near to both.
        """
        candidates = self._candidates(first, second, preferred - {first, second})
        if below:
            candidates = [candidate for candidate in candidates if candidate.key != first]
        if not candidates:
            return None

        best, *others = sorted(candidates)
        rivals = [other.key for other in others if self._are_rivals(best, other)]
        if rivals:
            raise AmbiguousPath(second, tuple((key, None) for key in (best.key, *rivals)))

        to_first = self.up(best.key, first)
        if to_first is None or self.up(best.key, second) is None:
            return None

        return Meeting(best.key, to_first)

    def _candidates(
        self, first: TableKey, second: TableKey, preferred: frozenset[TableKey]
    ) -> list[_Candidate]:
        candidates: list[_Candidate] = []
        for key, steps in self._through_below(first, second).items():
            if self._facts[key].table.kind != "table":
                continue

            misses_said = bool(preferred) and preferred.isdisjoint(self.above(key))
            is_third = key not in (first, second)
            candidates.append(_Candidate(misses_said, steps, is_third, key))

        return candidates

    def _are_rivals(self, best: _Candidate, other: _Candidate) -> bool:
        """Tell whether both tie the two tables about as closely, neither below the other.

        Customers both order and review products.
        """
        if not best.is_third or not other.is_third:
            return False
        if other.misses_said != best.misses_said or other.steps > best.steps + 1:
            return False
        if other.key in self.below(best.key):
            return False

        return best.key not in self.below(other.key)

    def links_between(self, first: TableKey, second: TableKey) -> list[TableKey]:
        """Return the tables that refer to both, by *the* reference to each."""
        link_tables = []
        for edge in self._children.get(first, ()):
            parents = {
                reference.parent
                for reference in self._facts[edge.child].edges
                if is_default(reference)
            }
            is_third = edge.child not in (first, second) and edge.child not in link_tables
            if is_third and {first, second} <= parents:
                link_tables.append(edge.child)

        return link_tables

    def is_linked_closer(self, first: TableKey, second: TableKey, path: Path) -> bool:
        """Tell whether a table below both ties them by fewer steps than the path up between."""
        steps = [count for key, count in self._through_below(first, second).items() if key != first]
        length = sum(_cost(edge) for edge in path)
        return min(steps, default=float("inf")) < length

    def distance(self, first: TableKey, second: TableKey) -> float | None:
        """Return the steps between two tables through their nearest meeting.

        None when nothing connects them.
        """
        pair = (first, second)
        with suppress(KeyError):  # another thread may forget it meanwhile
            return self._distances[pair]

        sums = list(self._through_below(first, second).values())
        above_second = self.above(second)
        for key, steps in self.above(first).items():
            if key in above_second:
                sums.append(steps + above_second[key] + _MEETING_ABOVE)

        distance = min(sums, default=None)
        self._distances.put(pair, distance)
        return distance

    def _obvious(self, paths: list[Path], target: TableKey) -> Path:
        scores = [self._default_score(path) for path in paths]
        best = max(scores)
        if scores.count(best) > 1:
            raise AmbiguousPath(target, _told_apart(paths))

        return paths[scores.index(best)]

    def _default_score(self, path: Path) -> tuple[int, bool, int, bool]:
        """Return how much a path looks like *the* reference; a greater tuple looks more like it.

        It is preferred, declared, called as the target's key, and not nullable.
        """
        first = self._facts[path[0].child].table.column(path[0].columns[0])
        preferred = sum(edge.is_preferred for edge in path)
        is_declared = all(edge.is_declared for edge in path)
        is_named = is_default(path[-1])
        is_required = first is not None and not first.nullable
        return preferred, is_declared, int(is_named), is_required


def is_default(edge: Edge) -> bool:
    """Tell whether a reference is *the* reference to its parent.

    Others are in a role, as a department's manager.
    """
    if edge.is_preferred or edge.columns == edge.parent_columns:
        return True

    default_names = _default_names(edge.parent[1])
    return any(column.lower() in default_names for column in edge.columns)


def _cost(edge: Edge) -> float:
    return 1.0 if is_default(edge) else 1.5


def _default_names(table: str) -> set[str]:
    words = core_words(english_words(table))
    names = (table.lower(), *("_".join(words[start:]) for start in range(len(words))))
    bases = {base for name in names for base in (name, singular(name))}
    return {f"{base}{tail}" for base in bases for tail in _ID_ENDS}


def _told_apart(paths: list[Path]) -> tuple[tuple[TableKey, str | None], ...]:
    """Return by what the paths differ: the reference that they begin with, else the table before
    the last one.
    """
    first = dict.fromkeys((path[0].child, path[0].columns[0]) for path in paths)
    if len(first) > 1:
        return tuple(first)

    return tuple(dict.fromkeys((path[-1].child, None) for path in paths))
