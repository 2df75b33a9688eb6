"""A draft as one query over the datasource, for its planner to say what it would cost there."""

from datetime import date

from sqlglot import exp

from etl.planning.draft_model import Draft
from etl.planning.sql_trees import VARIABLE, cast, identifier, literal, table


def whole_query(draft: Draft) -> exp.Select:
    """Return the target's rows as a query that builds nothing.

    Each model is planned by itself, as when it is built; variables have their defaults.
    """
    ctes = []
    for model in draft.models:
        alias = exp.TableAlias(this=identifier(model.name))
        ctes.append(exp.CTE(this=_with_defaults(model.select), alias=alias, materialized=True))
    query = exp.Select().select(exp.Star()).from_(table(draft.target.name))
    query.set("with_", exp.With(expressions=ctes))
    return query


def _with_defaults(select: exp.Query) -> exp.Query:
    root = exp.Subquery(this=select.copy())
    for call in list(root.find_all(exp.Anonymous)):
        if call.name == VARIABLE:
            default = date.fromisoformat(call.expressions[1].name)
            call.replace(cast(literal(default), "date"))
    query: exp.Query = root.this
    return query
