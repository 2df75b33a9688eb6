"""Tells a model about SQL that PostgreSQL refused: the message, the position, and names that exist."""

import re
from collections.abc import Iterator

from agent.thinking.llm.schema_text import SchemaText
from common.errors import InvalidSql
from common.values import Catalog, Table
from knowledge.near_names import near_names
from knowledge.safe_text import one_line


def error_text(error: InvalidSql, sql: str, catalog: Catalog) -> str:
    """The lines that tell a model what is wrong with `sql`. The database has removed hidden names from `error`."""
    lines = [one_line(error.detail, 500)]
    if error.sqlstate:
        lines.append(f"SQLSTATE: {error.sqlstate}")
    if error.position and 0 < error.position <= len(sql):
        lines.append(f"At: {one_line(sql[error.position - 1 :], 60)}")
    if error.hint:
        lines.append(f"Hint: {one_line(error.hint, 300)}")
    near = near_names(error, sql, catalog)
    if near:
        lines.append(f"Names that exist and look similar: {', '.join(one_line(name, 128) for name in near)}")
    return "\n".join(lines)


def mentioned_tables(sql: str, schema: SchemaText) -> Iterator[Table]:
    """The tables that occur in `sql` by name."""
    words = set(re.findall(r"\w+", sql.lower()))
    return (table for table in schema.catalog.tables if table.name.lower() in words)
