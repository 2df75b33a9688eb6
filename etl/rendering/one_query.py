"""A whole draft as one SELECT over the datasource's tables, as which it is judged and kept."""

from sqlglot import exp

from etl.planning.draft_model import Draft
from etl.planning.sql_trees import VARIABLE, cast
from etl.rendering.select_rendering import identifier_text, render_select


def one_query(draft: Draft) -> str:
    """Return the target's rows as one query: each model is a CTE, each variable its default."""
    models = []
    for model in draft.models:
        text = render_select(_with_defaults(model.select), _stored_name, jinja=False)
        models.append(f"{identifier_text(model.name)} AS (\n{text}\n)")
    return f"WITH {', '.join(models)}\nSELECT * FROM {identifier_text(draft.target.name)}"


def _with_defaults(select: exp.Query) -> exp.Query:
    def default(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name == VARIABLE:
            _, day = node.expressions
            return cast(day.copy(), "date")
        return node

    changed = select.transform(default)
    assert isinstance(changed, exp.Query)
    return changed


def _stored_name(table: exp.Table) -> str:
    name = identifier_text(table.name)
    return f"{identifier_text(table.db)}.{name}" if table.db else name
