"""A part of the lineage: what is upstream or downstream of a table, as JSON, Mermaid or Cypher."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etl.schemas.knowledge_context import TableLineage

Direction = Literal["upstream", "downstream", "both"]
MOST_EDGES = 2_000
_Place = tuple[str, str | None]
"""A table and a column of it; None: the whole table."""


@dataclass(frozen=True)
class LineagePart:
    """Tables and the edges between them; `is_truncated` when there were more than `MOST_EDGES`."""

    nodes: tuple[str, ...]
    edges: tuple[TableLineage, ...]
    is_truncated: bool = False


def part_of(
    edges: Sequence[TableLineage],
    table: str,
    *,
    column: str | None = None,
    direction: Direction = "both",
    depth: int = 3,
) -> LineagePart:
    """Return what is reached from a table within `depth` edges.

    Args:
        column: only edges by which this column goes on, as far as columns are known.
    """
    edge_by_number: dict[int, TableLineage] = {}
    if direction != "downstream":
        edge_by_number |= _reached([_Arrow(edge, True) for edge in edges], (table, column), depth)
    if direction != "upstream":
        edge_by_number |= _reached([_Arrow(edge, False) for edge in edges], (table, column), depth)

    kept = list(edge_by_number.values())[:MOST_EDGES]
    nodes = {table: None}
    for edge in kept:
        nodes |= {edge.source: None, edge.target: None}

    return LineagePart(tuple(nodes), tuple(kept), len(edge_by_number) > MOST_EDGES)


@dataclass(frozen=True)
class _Arrow:
    """An edge in the direction in which it is followed."""

    edge: TableLineage
    is_upstream: bool

    @property
    def start(self) -> str:
        if self.is_upstream:
            return self.edge.target

        return self.edge.source

    @property
    def end(self) -> str:
        if self.is_upstream:
            return self.edge.source

        return self.edge.target

    def ends_of(self, column: str | None) -> list[_Place]:
        """Return the places that a column of `start` becomes at `end`; none where it ends here."""
        edge = self.edge
        if column is None:
            return [(self.end, None)]
        if not edge.target_columns:  # it is not known which columns become which
            if self._may_read(column):
                return [(self.end, None)]

            return []

        here, there = edge.source_columns, edge.target_columns
        if self.is_upstream:
            here, there = there, here

        pairs = zip(here, there, strict=True)
        return [(self.end, other) for own, other in pairs if own == column]

    def _may_read(self, column: str) -> bool:
        """Tell whether the edge is known to read a column of `start`, or nothing is known of it."""
        if self.is_upstream or not self.edge.source_columns:
            return True

        return column in self.edge.source_columns


def _reached(arrows: Sequence[_Arrow], first: _Place, depth: int) -> dict[int, TableLineage]:
    """Return the edges that are reached from a place, each under its identity."""
    starting: defaultdict[str, list[_Arrow]] = defaultdict(list)
    for arrow in arrows:
        starting[arrow.start].append(arrow)

    edge_by_number: dict[int, TableLineage] = {}
    seen = {first}
    pending = deque([(first, 0)])
    while pending:
        (name, column), distance = pending.popleft()
        following = starting[name] if distance < depth else []
        for arrow in following:
            ends = arrow.ends_of(column)
            if ends:
                edge_by_number[id(arrow.edge)] = arrow.edge

            new = [place for place in ends if place not in seen]
            seen.update(new)
            pending.extend((place, distance + 1) for place in dict.fromkeys(new))

    return edge_by_number


def as_mermaid(part: LineagePart) -> str:
    """Return the part as a Mermaid flowchart."""
    names = {name: f"n{number}" for number, name in enumerate(part.nodes)}
    lines = ["flowchart LR"]
    for name, short in names.items():
        lines.append(f'  {short}["{_escaped(name)}"]')

    for edge in part.edges:
        lines.append(f"  {names[edge.source]} --> {names[edge.target]}")

    return "\n".join(lines) + "\n"


def _escaped(name: str) -> str:
    """Return the text with all but plain signs as Mermaid's character codes."""
    shown = []
    for char in name:
        is_plain = char.isalnum() or char in "._- "
        shown.append(char if is_plain else f"#{ord(char)};")

    return "".join(shown)


def as_cypher(part: LineagePart) -> str:
    """Return the part as statements that create it in a graph database."""
    lines = []
    for name in part.nodes:
        lines.append(f"MERGE (:Table {{name: {_cypher_text(name)}}});")

    for edge in part.edges:
        source, target = _cypher_text(edge.source), _cypher_text(edge.target)
        lines.append(
            f"MATCH (a:Table {{name: {source}}}), (b:Table {{name: {target}}})"
            f" MERGE (a)-[:FEEDS {{kind: {_cypher_text(edge.kind)}}}]->(b);"
        )

    return "\n".join(lines) + "\n"


def _cypher_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
