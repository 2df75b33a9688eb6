"""Puts SQL that a user has changed into a draft, in place of a model's own."""

from collections.abc import Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from common.errors import InvalidSql, ValidationFailed
from etl.planning.draft_model import Draft, DraftModel
from guard import Guard
from sqltree.parsing import parse
from sqltree.writing import text_of

_JINJA = ("{{", "{%", "{#")


def with_user_sql(draft: Draft, changed: Mapping[str, str]) -> Draft:
    """Return the draft with the SELECTs of `changed`, by the names of their models.

    Raises:
        StatementRejected: one is not a single query over the declared inputs of its model.
        KeyError: there is no model of that name.
    """
    names = [model.name for model in draft.models]
    models = list(draft.models)
    for name, sql in changed.items():
        place = names.index(name) if name in names else -1
        if place < 0:
            raise KeyError(name)

        model = models[place]
        models[place] = replace(model, select=_select(sql, model), meaning=None)

    return replace(draft, models=tuple(models))


def _select(sql: str, model: DraftModel) -> exp.Query:
    """Return the tree of a user's SQL, with its tables as models' trees have them."""
    _prove(sql)
    try:
        tree = sqlglot.parse_one(sql, read="postgres")
        written = tree.sql(dialect="postgres", comments=False)
        is_same = _normalized(written) == _normalized(sql)
    except (SqlglotError, InvalidSql, ValidationFailed, RecursionError):
        is_same = False

    if not is_same or not isinstance(tree, exp.Query):
        raise InvalidSql(
            f"{model.name}: this SQL can't be taken over as it is; use plainer constructs",
            detail_zh=f"{model.name}：无法原样采用这段 SQL，请改用更常见的写法",
        )

    queries = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.db or table.name not in queries:
            _resolve(table, model)

    return tree


def _prove(sql: str) -> None:
    """Check that a text is one harmless query: it runs with the rights of scratch's owner."""
    if any(token in sql for token in _JINJA):
        raise InvalidSql("SQL with {{, {% or {#", detail_zh="SQL 中不能有 {{、{% 或 {#")

    Guard().check(sql)


def _normalized(sql: str) -> str:
    """Return PostgreSQL's tree of a query as text, whatever the case that it was written in."""
    return text_of(parse(sql)[0].node).casefold()


def _resolve(table: exp.Table, model: DraftModel) -> None:
    """Give a table the schema that the model's inputs say it has."""
    for name in model.node.inputs:
        schema, _, short = name.rpartition(".")
        if table.name == short and table.db in ("", schema):
            table.set("db", exp.to_identifier(schema) if schema else None)
            return

    named = f"{table.db}.{table.name}" if table.db else table.name
    inputs = ", ".join(model.node.inputs)
    raise InvalidSql(
        f"{model.name} may only read its inputs ({inputs}), not {named}",
        detail_zh=f"{model.name} 只能读取其输入（{inputs}），不能读取 {named}",
    )
