"""Tells a model why PostgreSQL refused its SQL, and which names exist."""

import re
from collections.abc import Iterator

from agent.thinking.llm.schema_text import SchemaText
from common.errors import InvalidSql
from common.values import Catalog, Table
from knowledge.language.safe_text import one_line
from knowledge.tables.name_suggestions import suggested_names


def error_text(error: InvalidSql, sql: str, catalog: Catalog) -> str:
    """Return the lines that tell a model what is wrong with `sql`.

    The database has removed hidden names from `error`.
    """
    lines = [one_line(error.detail, 500)]
    if error.sqlstate:
        lines.append(f"SQLSTATE: {error.sqlstate}")
    if error.position and 0 < error.position <= len(sql):
        rest = sql[error.position - 1 :]
        lines.append(f"At: {one_line(rest, 60)}")

    if error.hint:
        lines.append(f"Hint: {one_line(error.hint, 300)}")

    near = [one_line(name, 128) for name in suggested_names(error, sql, catalog)]
    if near:
        lines.append(f"Names that exist and look similar: {', '.join(near)}")

    return "\n".join(lines)


def mentioned_tables(sql: str, schema: SchemaText) -> Iterator[Table]:
    """Yield the tables that occur in `sql` by name."""
    words = set(re.findall(r"\w+", sql.lower()))
    for table in schema.catalog.tables:
        if table.name.lower() in words:
            yield table
