"""The lineage of drafts that were kept: what their targets are made of."""

from collections.abc import Iterable, Sequence

from common.learning import EtlExample
from common.values import Catalog
from etl.lineage.view_lineage import column_names, column_pairs, qualified
from etl.schemas.knowledge_context import TableLineage

_SURE = 0.9  # a draft was built once; nobody knows whether its target still is


def draft_lineage(drafts: Iterable[EtlExample], catalog: Catalog) -> list[TableLineage]:
    """Return an edge from each table that a draft reads to its target.

    Args:
        drafts: as the caller may see them, the most trusted first: of several with the same target
            the first counts.
    """
    first: dict[str, EtlExample] = {}
    for draft in drafts:
        first.setdefault(target_of(draft, catalog), draft)

    edges: list[TableLineage] = []
    for target, draft in first.items():
        edges += _edges(target, draft, catalog)

    return edges


def target_of(draft: EtlExample, catalog: Catalog) -> str:
    """Return a draft's target, as the table that the datasource has of that name, if it has one."""
    built = catalog.by_name.get(draft.target, ())
    if len(built) == 1:
        return qualified(built[0])

    return draft.target


def _edges(target: str, draft: EtlExample, catalog: Catalog) -> list[TableLineage]:
    keys = [key for key in draft.tables if key in catalog.by_key]
    columns = tuple((key, column_names(catalog, key)) for key in keys)
    pairs = column_pairs(draft.sql, columns, catalog.search_path)
    edges = []
    for key, names in columns:
        sources: list[str] = []
        targets: list[str] = []
        for name in names:
            for column in pairs.get((key, name), ()):
                sources.append(name)
                targets.append(column)

        edges.append(
            TableLineage(
                source=".".join(key),
                target=target,
                source_columns=sources,
                target_columns=targets,
                kind="artefact",
                origin="artefact",
                confidence=_SURE,
            )
        )

    return edges


def drafted_place(name: str, column: str | None, edges: Sequence[TableLineage]) -> str | None:
    """Return the target of a draft that is called so and has the column, else None."""
    folded_name = name.replace('"', "").casefold()
    for edge in edges:
        is_so_called = edge.kind == "artefact" and edge.target.casefold() == folded_name
        if is_so_called and column in (None, *edge.target_columns):
            return edge.target

    return None
