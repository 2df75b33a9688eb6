"""What a model is told about SQL that PostgreSQL refused: the message, the place, and the names that do exist."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from agent.skills.prompt_data import one_line
from agent.skills.schema_text import SchemaText, quoted
from common.errors import InvalidSql
from common.values import Table

_QUOTED = re.compile(r'"([^"]+)"|\b(\w+\.\w+)\b')


def error_text(error: InvalidSql, sql: str, schema: SchemaText) -> str:
    """The lines between the prompt's <error> tags."""
    lines = [one_line(error.detail, 500)]
    if error.sqlstate:
        lines.append(f"SQLSTATE: {error.sqlstate}")
    if error.position and 0 < error.position <= len(sql):
        lines.append(f"At: {one_line(sql[error.position - 1 :], 60)}")
    if error.hint:
        lines.append(f"Hint: {one_line(error.hint, 300)}")
    similar = similar_names(error.detail, schema)
    if similar:
        lines.append(f"Names that exist and look similar: {', '.join(similar)}")
    return "\n".join(lines)


def similar_names(detail: str, schema: SchemaText) -> list[str]:
    """Up to six tables and columns whose names resemble those in PostgreSQL's message."""
    owners: dict[str, list[str]] = {}
    for table in schema.catalog.tables:
        owners.setdefault(table.name.lower(), []).append(quoted(table.name))
        for column in table.columns:
            owners.setdefault(column.name.lower(), []).append(f"{quoted(table.name)}.{quoted(column.name)}")
    missing = [(a or b).rpartition(".")[2].lower() for a, b in _QUOTED.findall(detail)]
    close = [name for word in missing for name in get_close_matches(word, owners, n=3, cutoff=0.5)]
    return [owner for name in dict.fromkeys(close) for owner in owners[name]][:6]


def mentioned_tables(sql: str, schema: SchemaText) -> Iterator[Table]:
    """The tables that occur in `sql` by name."""
    words = set(re.findall(r"\w+", sql.lower()))
    return (table for table in schema.catalog.tables if table.name.lower() in words)
