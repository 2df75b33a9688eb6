"""What a model is told about SQL that PostgreSQL refused: the message, the place, and the names that do exist."""

import re
from collections.abc import Iterator

from agent.skills.near_names import near_names
from agent.skills.prompt_data import one_line
from agent.skills.schema_text import SchemaText
from common.errors import InvalidSql
from common.values import Table

_QUOTED = re.compile(r'["“«]([^"”»]+)["”»]')


def error_text(error: InvalidSql, sql: str, schema: SchemaText) -> str:
    """The lines between the prompt's <error> tags."""
    lines = [one_line(error.detail, 500)]
    if error.sqlstate:
        lines.append(f"SQLSTATE: {error.sqlstate}")
    if error.position and 0 < error.position <= len(sql):
        lines.append(f"At: {one_line(sql[error.position - 1 :], 60)}")
    if error.hint and _may_be_told(error.hint, sql, schema):
        lines.append(f"Hint: {one_line(error.hint, 300)}")
    near = near_names(error, sql, schema.catalog)
    if near:
        lines.append(f"Names that exist and look similar: {', '.join(one_line(name, 128) for name in near)}")
    return "\n".join(lines)


def _may_be_told(hint: str, sql: str, schema: SchemaText) -> bool:
    """PostgreSQL's hints may name columns that the operator closed; only names that are known anyway are passed on."""
    named = {name.rpartition(".")[2] for name in _QUOTED.findall(hint)}
    tables = schema.catalog.tables
    known = {table.name for table in tables} | {column.name for table in tables for column in table.columns}
    return all(name in known or name in sql for name in named)


def mentioned_tables(sql: str, schema: SchemaText) -> Iterator[Table]:
    """The tables that occur in `sql` by name."""
    words = set(re.findall(r"\w+", sql.lower()))
    return (table for table in schema.catalog.tables if table.name.lower() in words)
