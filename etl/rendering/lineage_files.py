"""Which columns a draft's columns are made of, as data and as a picture."""

import re
from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel
from etl.planning.query_scopes import read_places
from etl.schemas.knowledge_context import TableLineage

Origin = tuple[str, str]
"""A model or `schema.table`, and its column."""
Origins = dict[str, list[Origin]]
"""Columns of a query by name, each with what its values are made of."""
_MARKS = re.compile("[^0-9A-Za-z_\u4e00-\u9fff .,-]")


def table_lineage(draft: Draft) -> list[TableLineage]:
    """Return an edge for each model and each of its inputs."""
    edges = []
    for model in draft.models:
        origins = column_origins(model)
        for source in model.node.inputs:
            edges.append(_edge(model, source, origins))

    return edges


def _edge(model: DraftModel, source: str, origins: Mapping[str, Sequence[Origin]]) -> TableLineage:
    targets: dict[str, None] = {}
    columns: dict[str, None] = {}
    for target, source_columns in origins.items():
        for place, column in source_columns:
            if place == source:
                targets[target] = None
                columns[column] = None

    return TableLineage(
        source=source,
        target=model.name,
        source_columns=list(columns),
        target_columns=list(targets),
        kind="artefact",
        origin="artefact",
        confidence=1.0,
    )


def column_origins(model: DraftModel) -> Origins:
    """Return for each column of a model the columns of its inputs that its values are made of."""
    queries: dict[str, Origins] = {}
    for cte in model.select.ctes:
        queries[cte.alias] = _outputs(cte.this, queries)

    return _outputs(model.select, queries)


def _outputs(query: exp.Expr, queries: Mapping[str, Origins]) -> Origins:
    if isinstance(query, exp.Subquery):
        return _outputs(query.this, queries)
    if isinstance(query, exp.SetOperation):
        return _of_both(_outputs(query.left, queries), _outputs(query.right, queries))
    if isinstance(query, exp.Select):
        return _of_select(query, queries)

    return {}  # rows that are written out are made of no column


def _of_both(left: Origins, right: Origins) -> Origins:
    """Return the origins of a UNION, whose columns meet by their places."""
    together = {}
    for (name, columns), further in zip(left.items(), right.values(), strict=False):
        together[name] = _without_repeats([*columns, *further])

    return together


def _of_select(select: exp.Select, queries: Mapping[str, Origins]) -> Origins:
    origins_of_queries = dict(queries)
    places: list[str] = []
    for place in read_places(select):
        if isinstance(place, exp.Subquery):
            origins_of_queries[place.alias] = _outputs(place.this, queries)
            places.append(place.alias)
        elif isinstance(place, exp.Table):
            places.append(f"{place.db}.{place.name}" if place.db else place.name)

    first = places[0] if places else ""
    origins: Origins = {}
    for number, value in enumerate(select.expressions):
        name = value.alias_or_name
        if not name or name in origins:  # only its place matters, as in the second part of a UNION
            name = f"{name}?{number}"

        origins[name] = _origins(value, origins_of_queries, first)

    return origins


def _origins(value: exp.Expr, origins_of: Mapping[str, Origins], first: str) -> list[Origin]:
    """Return what the columns of a value are made of.

    Args:
        first: the place that columns without a table are of.
    """
    origins: list[Origin] = []
    for column in value.find_all(exp.Column):
        table = column.table or first
        if table in origins_of:
            origins.extend(origins_of[table].get(column.name, ()))
        elif table:
            origins.append((table, column.name))

    return _without_repeats(origins)


def _without_repeats(origins: Iterable[Origin]) -> list[Origin]:
    return list(dict.fromkeys(origins))


def mermaid(draft: Draft) -> str:
    """Return the models and their inputs as a flow chart in Mermaid's language."""
    names: dict[str, str] = {}
    boxes = []
    arrows = []
    for model in draft.models:
        for name in (*model.node.inputs, model.name):
            if name not in names:
                names[name] = f"n{len(names)}"
                boxes.append(f'    {names[name]}["{_label(name)}"]')

        for name in model.node.inputs:
            arrows.append(f"    {names[name]} --> {names[model.name]}")

    return "\n".join(["flowchart LR", *boxes, *arrows]) + "\n"


def _label(name: str) -> str:
    """Return a name with everything that Mermaid might read written as a number."""
    return _MARKS.sub(lambda match: f"#{ord(match.group())};", name)
