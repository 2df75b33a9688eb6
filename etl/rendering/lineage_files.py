"""Which columns a draft's columns are made of, as data and as a picture."""

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel
from etl.planning.query_scopes import read_places
from etl.schemas.knowledge_context import TableLineage

Origin = tuple[str, str]
"""A model or `schema.table`, and its column."""
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
    targets = [name for name, found in origins.items() if any(one[0] == source for one in found)]
    columns = [one[1] for found in origins.values() for one in found if one[0] == source]
    return TableLineage(
        source=source,
        target=model.name,
        source_columns=list(dict.fromkeys(columns)),
        target_columns=targets,
        kind="artefact",
        origin="artefact",
        confidence=1.0,
    )


def column_origins(model: DraftModel) -> dict[str, list[Origin]]:
    """Return for each column of a model the columns of its inputs that its values are made of."""
    queries: dict[str, dict[str, list[Origin]]] = {}
    for cte in model.select.ctes:
        queries[cte.alias] = _outputs(cte.this, queries)
    return _outputs(model.select, queries)


def _outputs(
    query: exp.Expr, queries: Mapping[str, Mapping[str, list[Origin]]]
) -> dict[str, list[Origin]]:
    if isinstance(query, exp.Subquery):
        return _outputs(query.this, queries)
    if isinstance(query, exp.SetOperation):
        left, right = _outputs(query.left, queries), _outputs(query.right, queries)
        pairs = zip(left.items(), right.values(), strict=False)
        return {name: list(dict.fromkeys([*found, *more])) for (name, found), more in pairs}
    if not isinstance(query, exp.Select):
        return {}  # rows that are written out are made of no column
    known = dict(queries)
    only: list[str] = []
    for place in read_places(query):
        if isinstance(place, exp.Subquery):
            known[place.alias] = _outputs(place.this, queries)
            only.append(place.alias)
        elif isinstance(place, exp.Table):
            only.append(f"{place.db}.{place.name}" if place.db else place.name)
    found: dict[str, list[Origin]] = {}
    for number, value in enumerate(query.expressions):
        name = value.alias_or_name
        if not name or name in found:  # only its place matters, as in the second part of a UNION
            name = f"{name}?{number}"
        found[name] = _origins(value, known, only)
    return found


def _origins(
    value: exp.Expr, known: Mapping[str, Mapping[str, list[Origin]]], only: Sequence[str]
) -> list[Origin]:
    """Return what the columns of a value are made of; `only` are the places that it may name."""
    origins: list[Origin] = []
    for column in value.find_all(exp.Column):
        table = column.table or (only[0] if only else "")
        if table in known:
            origins.extend(known[table].get(column.name, ()))
        elif table:
            origins.append((table, column.name))
    return list(dict.fromkeys(origins))


def mermaid(draft: Draft) -> str:
    """Return the models and their inputs as a flow chart in Mermaid's language."""
    names: dict[str, str] = {}
    lines = ["flowchart LR"]
    for model in draft.models:
        for name in (*model.node.inputs, model.name):
            if name not in names:
                names[name] = f"n{len(names)}"
                lines.append(f'    {names[name]}["{_label(name)}"]')
    for model in draft.models:
        lines.extend(f"    {names[name]} --> {names[model.name]}" for name in model.node.inputs)
    return "\n".join(lines) + "\n"


def _label(name: str) -> str:
    """Return a name with everything that Mermaid might read written as a number."""
    return _MARKS.sub(lambda found: f"#{ord(found.group())};", name)
