"""Ways from table to table along references, always knowing whether a step can multiply rows.

Going *up* (child to parent) keeps one row per child. Two tables that are not above one another meet in a third that is
below both, an order line between orders and products; whoever aggregates over such a meeting must not count twice.
"""

from collections import deque
from dataclasses import dataclass

from agent.skills.offline.schema import Edge, Schema, TableKey

Path = tuple[Edge, ...]
_MAX_STEPS = 5


class AmbiguousPath(Exception):
    """Several equally good ways lead to a table; `choices` are the referencing columns to choose from."""

    def __init__(self, target: TableKey, choices: tuple[tuple[TableKey, str], ...]) -> None:
        super().__init__(f"several ways to {target}: {choices}")
        self.target = target
        self.choices = choices


@dataclass(frozen=True)
class Meeting:
    """The table `at` is below both others: paths up from it to each (empty when it is that table itself)."""

    at: TableKey
    to_first: Path
    to_second: Path


class Graph:
    """The references of one catalogue."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._children: dict[TableKey, list[Edge]] = {}
        self._reached: dict[tuple[str, TableKey], dict[TableKey, int]] = {}
        self._distances: dict[tuple[TableKey, TableKey], int | None] = {}
        for facts in schema.facts.values():
            for edge in facts.edges:
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
            for edge in self._schema.facts[here].edges:
                if any(edge.parent == step.child for step in path) or len(path) >= _MAX_STEPS:
                    continue
                longer = (*path, edge)
                if edge.parent == target and (via is None or via in edge.columns):
                    found.append(longer)
                elif edge.parent != start:
                    queue.append(longer)
        shortest = [path for path in found if len(path) == len(found[0])]
        return self._obvious(shortest, target) if shortest else None

    def above(self, start: TableKey) -> dict[TableKey, int]:
        """Every table that can be reached going up, with its distance; `start` itself at 0."""
        return self._reach("above", start)

    def below(self, start: TableKey) -> dict[TableKey, int]:
        """Every table from which `start` can be reached going up, with its distance; `start` itself at 0."""
        return self._reach("below", start)

    def _reach(self, direction: str, start: TableKey) -> dict[TableKey, int]:
        known = self._reached.get((direction, start))
        if known is not None:
            return known
        distances = {start: 0}
        queue = deque([start])
        while queue:
            key = queue.popleft()
            if distances[key] >= _MAX_STEPS:
                continue
            for other in self._neighbours(direction, key):
                if other not in distances:
                    distances[other] = distances[key] + 1
                    queue.append(other)
        self._reached[direction, start] = distances
        return distances

    def _neighbours(self, direction: str, key: TableKey) -> list[TableKey]:
        if direction == "above":
            return [edge.parent for edge in self._schema.facts[key].edges]
        return [edge.child for edge in self._children.get(key, ())]

    def meeting(
        self, first: TableKey, second: TableKey, preferred: frozenset[TableKey] = frozenset()
    ) -> Meeting | None:
        """Where two tables meet, by the fewest steps; tables in `preferred` (named in the question) win.

        Raises:
            AmbiguousPath: two tables are equally near to both.
        """
        below_first, below_second = self.below(first), self.below(second)
        common = [
            (key not in preferred and key not in (first, second), below_first[key] + below_second[key], key)
            for key in below_first
            if key in below_second and self._schema.table(key).kind == "table"
        ]
        if not common:
            return None
        common.sort()
        best = common[0]
        if len(common) > 1 and common[1][:2] == best[:2] and best[2] not in (first, second):
            raise AmbiguousPath(second, tuple((item[2], "") for item in common if item[:2] == best[:2]))
        to_first, to_second = self.up(best[2], first), self.up(best[2], second)
        return None if to_first is None or to_second is None else Meeting(best[2], to_first, to_second)

    def distance(self, first: TableKey, second: TableKey) -> int | None:
        """Steps between two tables through their nearest meeting; None when nothing connects them."""
        if (first, second) not in self._distances:
            below_first, below_second = self.below(first), self.below(second)
            sums = [steps + below_second[key] for key, steps in below_first.items() if key in below_second]
            above_first, above_second = self.above(first), self.above(second)
            sums += [steps + above_second[key] + 3 for key, steps in above_first.items() if key in above_second]
            self._distances[first, second] = min(sums, default=None)
        return self._distances[first, second]

    def _obvious(self, paths: list[Path], target: TableKey) -> Path:
        if len(paths) == 1:
            return paths[0]
        scores = sorted(((self._default_score(path, target), -index) for index, path in enumerate(paths)), reverse=True)
        if scores[0][0] == scores[1][0]:
            raise AmbiguousPath(target, tuple((path[0].child, path[0].columns[0]) for path in paths))
        return paths[-scores[0][1]]

    def _default_score(self, path: Path, target: TableKey) -> tuple[bool, int, bool]:
        """How much a path looks like *the* reference: declared, called as the target's key, not nullable."""
        last = path[-1]
        named = last.columns == last.parent_columns or any(
            column.lower() in _default_names(target[1]) for column in last.columns
        )
        first = self._schema.column(path[0].child, path[0].columns[0])
        return (all(edge.is_declared for edge in path), 1 if named else 0, not first.nullable)


def _default_names(table: str) -> set[str]:
    name = table.lower()
    singular = name[:-3] + "y" if name.endswith("ies") else name[:-1] if name.endswith("s") else name
    return {f"{base}{tail}" for base in (name, singular) for tail in ("_id", "id", "_no", "_code")}
