"""A whole draft as one SELECT over the datasource's tables, as which it is judged and kept."""

from sqlglot import exp

from etl.planning.draft_model import Draft
from etl.rendering.select_rendering import identifier_text, render_with_defaults


def one_query(draft: Draft) -> str:
    """Return the target's rows as one query: each model is a CTE, each variable its default."""
    models = []
    for model in draft.models:
        text = render_with_defaults(model.select, _stored_name)
        models.append(f"{identifier_text(model.name)} AS (\n{text}\n)")

    return f"WITH {', '.join(models)}\nSELECT * FROM {identifier_text(draft.target.name)}"


def _stored_name(table: exp.Table) -> str:
    name = identifier_text(table.name)
    if table.db:
        return f"{identifier_text(table.db)}.{name}"

    return name
