"""Tells CTEs from tables: within the scope of its WITH, a CTE's name stands for the CTE, elsewhere
for a table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqltree.parsing import Node


@dataclass(frozen=True)
class Scope:
    """Finds the CTEs that are visible at some place of a tree.

    Attributes:
        ctes: those of one WITH by name, each with its place.
        seen: how many of them are visible, from the first on.
        is_recursive: whether each of them sees all.
        outer: the scope around.
    """

    ctes: Mapping[str, tuple[int, Node]] = field(default_factory=dict)
    seen: int = 0
    is_recursive: bool = False
    outer: "Scope | None" = None

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def find(self, name: str) -> "tuple[Node, Scope] | None":
        """Return the CTE of that name and the scope that its query is in, or None when it is not
        a CTE's name here.
        """
        scope: Scope | None = self
        while scope is not None:
            place, cte = scope.ctes.get(name, (scope.seen, {}))
            if place < scope.seen:
                return cte, scope.before(place)

            scope = scope.outer

        return None

    def before(self, place: int) -> "Scope":
        """Return the scope inside the CTE at the place: it sees the ones before it, or all if
        the WITH is RECURSIVE.
        """
        if self.is_recursive:
            return self

        return replace(self, seen=place)

    def entered(self, clause: Node) -> "Scope":
        """Return the scope of the query that follows a WITH, which stands in this scope."""
        ctes: dict[str, tuple[int, Node]] = {}
        for place, cte in enumerate(with_queries(clause)):
            ctes.setdefault(cte["ctename"], (place, cte))

        return Scope(ctes, len(clause["ctes"]), bool(clause.get("recursive")), self)


NOWHERE = Scope()
"""Scope around a statement."""


def with_queries(clause: Node) -> list[Node]:
    """Return the CTEs of a WITH, in order."""
    ctes: list[Node] = []
    for item in clause["ctes"]:
        ctes.append(item["CommonTableExpr"])

    return ctes
