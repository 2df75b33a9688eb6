"""How near tables are to those that the words of a question are about.

Both classes look at each table once, however many words there are, so that a question of many words
takes time in proportion to them.
"""

from collections.abc import Mapping, Sequence
from heapq import nsmallest

from common.cpu_clock import check
from common.meanings import TableKey
from rules.linking.mark import Noun
from rules.schema.links import Link
from rules.schema.reference_graph import Graph

NEAR = 0.12
"""What a table gains that is mentioned itself, or owns what another word names."""
_UNCONNECTED = -0.1  # where nothing connects it with those that are mentioned
_CLOSE = 0.1  # scores that differ by less are equally good
_MOST_OWNERS = 2  # tables with equally good columns, of which still none is in doubt
_MOST_LEFT_OUT = 2 * _MOST_OWNERS  # tables that one word leans to: owners of columns and of values


class Proximity:
    """Scores tables by the fewest steps to any of some others.

    Args:
        weights: the others, with their weights.
    """

    def __init__(self, graph: Graph, weights: Mapping[TableKey, float]) -> None:
        self._graph = graph
        self._weights = weights
        self._nearest: dict[TableKey, list[tuple[float, TableKey]]] = {}

    def of(self, table: TableKey, weights: Mapping[TableKey, float]) -> float:
        """Score a table by `weights`: all that were given, or all but those one word leans to."""
        if not weights:
            return 0.0
        if table in weights:
            return NEAR * weights[table]

        for steps, other in self._nearest_to(table):
            if other in weights:
                return NEAR / (1 + steps)

        return _UNCONNECTED

    def _nearest_to(self, table: TableKey) -> list[tuple[float, TableKey]]:
        """Give the nearest of the others, one more than may be left out."""
        nearest = self._nearest.get(table)
        if nearest is None:
            check()
            nearest = nsmallest(_MOST_LEFT_OUT + 1, self._distances(table))
            self._nearest[table] = nearest

        return nearest

    def _distances(self, table: TableKey) -> list[tuple[float, TableKey]]:
        distances = []
        for other in self._weights:
            steps = self._graph.distance(table, other)
            if steps is not None:
                distances.append((steps, other))

        return distances


class MentionedOwners:
    """Tables that own the columns and values which words surely name, with their weights.

    Of two words that lean to one table, the later one says its weight.
    """

    def __init__(self, nouns: Sequence[Noun | None]) -> None:
        self.weights: dict[TableKey, float] = {}
        self._latest: dict[TableKey, int] = {}  # the word that says a table's weight
        self._before: list[dict[TableKey, float | None]] = []  # of each word: weights before it
        for index, noun in enumerate(nouns):
            owners = _owners(noun)
            self._before.append({table: self.weights.get(table) for table in owners})
            self.weights.update(owners)
            self._latest.update(dict.fromkeys(owners, index))

    def without(self, index: int) -> dict[TableKey, float]:
        """Give the tables, with their weights, that the other words lean to."""
        weights = dict(self.weights)
        for table, weight in self._before[index].items():
            if self._latest[table] != index:
                continue
            if weight is None:
                del weights[table]
            else:
                weights[table] = weight

        return weights


def _owners(noun: Noun | None) -> dict[TableKey, float]:
    """Give the tables, with their weights, that own what a word names without doubt."""
    if noun is None:
        return {}

    return _owners_among(noun.columns) | _owners_among(noun.values)


def _owners_among(scored: Sequence[tuple[float, Link]]) -> dict[TableKey, float]:
    if not scored:
        return {}

    least = scored[0][0] - _CLOSE
    tables = [link.table for score, link in scored if score >= least]
    if len(tables) > _MOST_OWNERS:
        return {}

    return dict.fromkeys(tables, NEAR / len(tables))
