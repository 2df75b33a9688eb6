"""Ways from table to table along references, always knowing whether a step can multiply rows.

Going *up* (child to parent) keeps one row per child. Two tables that are not above one another meet in a third that is
below both, an order line between orders and products; whoever aggregates over such a meeting must not count twice.
"""

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from common.meanings import TableKey
from knowledge.naming import core_words, english_words
from rules.schema.facts import Edge, Facts
from rules.words import WORDS

Path = tuple[Edge, ...]
_MAX_STEPS = 5
_ID_ENDS = WORDS.english.phrases("columns.id_ends")


class AmbiguousPath(Exception):
    """Several equally good ways lead to a table; `choices` are the referencing columns to choose from."""

    def __init__(self, target: TableKey, choices: tuple[tuple[TableKey, str], ...]) -> None:
        super().__init__(f"several ways to {target}: {choices}")
        self.target = target
        self.choices = choices


@dataclass(frozen=True)
class Meeting:
    """The table `at` is below both others, with the path up from it to the first (empty when it is the first)."""

    at: TableKey
    to_first: Path


class Graph:
    """The references of one catalogue, as the facts of its tables have them."""

    def __init__(self, facts: Mapping[TableKey, Facts]) -> None:
        self._facts = facts
        self._children: dict[TableKey, list[Edge]] = {}
        self._reached: dict[tuple[str, TableKey], dict[TableKey, float]] = {}
        self._distances: dict[tuple[TableKey, TableKey], float | None] = {}
        for table in facts.values():
            for edge in table.edges:
                self._children.setdefault(edge.parent, []).append(edge)

    def up(self, start: TableKey, target: TableKey, via: str | None = None) -> Path | None:
        """The shortest way up, through the referencing column `via` when given; None when there is none.

        Raises:
            AmbiguousPath: several shortest ways, none of them the obvious one.
        """
        if start == target and via is None:
            return ()
        found: list[Path] = []
        queue: deque[Path] = deque([()])
        while queue:
            path = queue.popleft()
            if found and len(path) >= len(found[0]):
                break
            here = path[-1].parent if path else start
            for edge in self._facts[here].edges:
                if any(edge.parent == step.child for step in path) or len(path) >= _MAX_STEPS:
                    continue
                longer = (*path, edge)
                if edge.parent == target and (via is None or via in edge.columns):
                    found.append(longer)
                elif edge.parent != start:
                    queue.append(longer)
        shortest = [path for path in found if len(path) == len(found[0])]
        return self._obvious(shortest, target) if shortest else None

    def above(self, start: TableKey) -> dict[TableKey, float]:
        """Every table that can be reached going up, with its distance; `start` itself at 0."""
        return self._reach("above", start)

    def below(self, start: TableKey) -> dict[TableKey, float]:
        """Every table from which `start` can be reached going up, with its distance; `start` itself at 0."""
        return self._reach("below", start)

    def _reach(self, direction: str, start: TableKey) -> dict[TableKey, float]:
        known = self._reached.get((direction, start))
        if known is not None:
            return known
        distances: dict[TableKey, float] = {}
        heap: list[tuple[float, TableKey]] = [(0.0, start)]
        while heap:
            distance, key = heapq.heappop(heap)
            if key in distances or distance > _MAX_STEPS:
                continue
            distances[key] = distance
            for edge in self._facts[key].edges if direction == "above" else self._children.get(key, ()):
                other = edge.parent if direction == "above" else edge.child
                heapq.heappush(heap, (distance + _cost(edge), other))
        self._reached[direction, start] = distances
        return distances

    def _through_below(self, first: TableKey, second: TableKey) -> dict[TableKey, float]:
        """Every table below both, with the steps from one to the other through it."""
        below_second = self.below(second)
        return {key: steps + below_second[key] for key, steps in self.below(first).items() if key in below_second}

    def meeting(
        self, first: TableKey, second: TableKey, preferred: frozenset[TableKey] = frozenset(), *, below: bool = False
    ) -> Meeting | None:
        """Where two tables meet, by the fewest steps; tables in `preferred` (named in the question) win.

        With `below`, only tables strictly below the first.

        Raises:
            AmbiguousPath: two tables are equally near to both.
        """
        said = preferred - {first, second}
        common = [
            (bool(said) and not said & self.above(key).keys(), steps, key not in (first, second), key)
            for key, steps in self._through_below(first, second).items()
            if self._facts[key].table.kind == "table" and not (below and key == first)
        ]
        if not common:
            return None
        common.sort()
        best = common[0]
        rivals = [item[3] for item in common[1:] if self._rivals(best, item, {first, second})]
        if rivals:
            raise AmbiguousPath(second, tuple((key, "") for key in (best[3], *rivals)))
        to_first = self.up(best[3], first)
        return None if to_first is None or self.up(best[3], second) is None else Meeting(best[3], to_first)

    def _rivals(
        self, best: tuple[bool, float, bool, TableKey], other: tuple[bool, float, bool, TableKey], ends: set[TableKey]
    ) -> bool:
        """Whether another table ties the two about as closely: customers both order and review products."""
        near = other[0] == best[0] and other[1] <= best[1] + 1 and best[3] not in ends and other[3] not in ends
        return near and other[3] not in self.below(best[3]) and best[3] not in self.below(other[3])

    def is_linked_closer(self, first: TableKey, second: TableKey, path: Path) -> bool:
        """Whether a table below both ties them by fewer steps than the path from one up to the other."""
        steps = [count for key, count in self._through_below(first, second).items() if key != first]
        return min(steps, default=float("inf")) < sum(_cost(edge) for edge in path)

    def distance(self, first: TableKey, second: TableKey) -> float | None:
        """Steps between two tables through their nearest meeting; None when nothing connects them."""
        if (first, second) not in self._distances:
            sums = [*self._through_below(first, second).values()]
            above_first, above_second = self.above(first), self.above(second)
            sums += [steps + above_second[key] + 3 for key, steps in above_first.items() if key in above_second]
            self._distances[first, second] = min(sums, default=None)
        return self._distances[first, second]

    def _obvious(self, paths: list[Path], target: TableKey) -> Path:
        scores = [self._default_score(path) for path in paths]
        best = max(scores)
        if scores.count(best) > 1:
            raise AmbiguousPath(target, tuple((path[0].child, path[0].columns[0]) for path in paths))
        return paths[scores.index(best)]

    def _default_score(self, path: Path) -> tuple[int, bool, int, bool]:
        """How much a path looks like *the* reference: preferred, declared, called as the target's key, not nullable."""
        named = is_default(path[-1])
        first = self._facts[path[0].child].table.column(path[0].columns[0])
        preferred = sum(edge.is_preferred for edge in path)
        return (preferred, all(edge.is_declared for edge in path), int(named), first is not None and not first.nullable)


def is_default(edge: Edge) -> bool:
    """Whether a reference is *the* reference to its parent, rather than one in a role (a department's manager)."""
    return (
        edge.is_preferred
        or edge.columns == edge.parent_columns
        or any(column.lower() in _default_names(edge.parent[1]) for column in edge.columns)
    )


def _cost(edge: Edge) -> float:
    return 1.0 if is_default(edge) else 1.5


def _default_names(table: str) -> set[str]:
    words = core_words(english_words(table))
    names = (table.lower(), *("_".join(words[start:]) for start in range(len(words))))
    bases = {base for name in names for base in (name, _singular(name))}
    return {f"{base}{tail}" for base in bases for tail in _ID_ENDS}


def _singular(name: str) -> str:
    return name[:-3] + "y" if name.endswith("ies") else name.removesuffix("s")
