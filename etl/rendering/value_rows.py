"""Rows of Python values as SQL."""

from typing import Any

from sqlglot import exp

from etl.planning.draft_test import TypedRows
from etl.planning.sql_trees import cast, identifier, literal, nothing
from etl.rendering.select_rendering import render_select


def values_query(rows: TypedRows) -> str:
    """Return a SELECT that gives the rows with their types; of no rows too."""
    return render_select(values_select(rows), lambda table: table.name, jinja=False)


def values_select(rows: TypedRows) -> exp.Query:
    """Return the same as a tree."""
    if not rows.rows:
        outputs = [(name, nothing(type_)) for name, type_ in rows.columns]
        empty = exp.Select().select(*[_named(value, name) for name, value in outputs])
        return empty.where(exp.false())
    first, *rest = [_row(rows, row) for row in rows.rows]
    query: exp.Query = first
    for one in rest:
        query = exp.union(query, one, distinct=False, copy=False)
    return query


def _row(rows: TypedRows, row: tuple[Any, ...]) -> exp.Select:
    values = []
    for (name, type_), value in zip(rows.columns, row, strict=True):
        values.append(_named(typed_literal(value, type_), name))
    return exp.Select().select(*values, copy=False)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=identifier(name))


def typed_literal(value: Any, type_: str) -> exp.Expr:
    """Return a value as a literal of PostgreSQL's type."""
    if value is None:
        return nothing(type_)
    if isinstance(value, float):
        return cast(exp.Literal.string(repr(value)), type_)
    return cast(literal(value), type_)
