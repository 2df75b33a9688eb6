"""A part of the lineage: what is upstream or downstream of a table, as JSON, Mermaid or Cypher."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from etl.schemas.knowledge_context import TableLineage

Direction = Literal["upstream", "downstream", "both"]
MOST_EDGES = 2_000


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
    found: dict[int, TableLineage] = {}
    for way in ("upstream", "downstream"):
        if direction in (way, "both"):
            found |= _reached(edges, table, column, way, depth)
    kept = list(found.values())[:MOST_EDGES]
    nodes = {table: None}
    for edge in kept:
        nodes |= {edge.source: None, edge.target: None}
    return LineagePart(tuple(nodes), tuple(kept), len(found) > MOST_EDGES)


def _reached(
    edges: Sequence[TableLineage], table: str, column: str | None, way: str, depth: int
) -> dict[int, TableLineage]:
    beside: defaultdict[str, list[TableLineage]] = defaultdict(list)
    for edge in edges:
        beside[edge.target if way == "upstream" else edge.source].append(edge)
    found: dict[int, TableLineage] = {}
    first: tuple[str, str | None] = (table, column)
    seen = {first}
    pending = deque([(first, 0)])
    while pending:
        (name, of_column), far = pending.popleft()
        if far == depth:
            continue
        for edge in beside[name]:
            nexts = list(_next(edge, of_column, way))
            if not nexts:
                continue
            found[id(edge)] = edge
            for place in nexts:
                if place not in seen:
                    seen.add(place)
                    pending.append((place, far + 1))
    return found


def _next(edge: TableLineage, column: str | None, way: str) -> Iterable[tuple[str, str | None]]:
    """Yield where the edge leads; nothing when the column does not go on by it."""
    other = edge.source if way == "upstream" else edge.target
    if column is None:
        yield (other, None)
        return
    if not edge.target_columns:  # columns are not known: any may go on
        if way == "upstream" or column in edge.source_columns or not edge.source_columns:
            yield (other, None)
        return
    for source, target in zip(edge.source_columns, edge.target_columns, strict=True):
        here, there = (target, source) if way == "upstream" else (source, target)
        if here == column:
            yield (other, there)


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
    """Return the text as Mermaid shows it, whatever signs it holds."""
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
