"""Reads DDL without running it: the tables and views it makes, alters and comments on."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from postgast import PgQueryError, split

from common.errors import InvalidSql, StatementRejected
from sqltree.parsing import NOT_TEXT, ParsedStatement, parse
from sqltree.references import relation_parts

Node = Mapping[str, Any]
_COMMAND_OF_PSQL = re.compile(r"^\\\S.*$", re.MULTILINE)  # such as \connect, which dumps hold
_MADE_BY = {
    "CreateStmt": "relation",
    "ViewStmt": "view",
    "CreateForeignTableStmt": "base",
    "CreateTableAsStmt": "into",
}
_COMMENTED = {
    "OBJECT_TABLE": 0,
    "OBJECT_VIEW": 0,
    "OBJECT_MATVIEW": 0,
    "OBJECT_FOREIGN_TABLE": 0,
    "OBJECT_COLUMN": 1,
}
"""Kinds of objects whose comments are about a table, and how many names follow the table's."""


@dataclass
class TableText:
    """The statements of DDL about one table or view, as written, its comments included."""

    name: str
    statements: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class UnreadStatement:
    """A statement that is not PostgreSQL's SQL: its line, from 1, and why."""

    line: int
    error: StatementRejected


def read_ddl(sql: str) -> tuple[list[TableText], list[UnreadStatement]]:
    """Return the tables of a text of any length, in their order, and the statements that can't be
    read.

    Statements about other things are left out. What is said of a table that the text doesn't make
    counts as well.
    """
    tables: dict[str, TableText] = {}
    unread = []
    for line, text in _statements(sql):
        try:
            parsed = parse(text)
        except StatementRejected as error:
            unread.append(UnreadStatement(line, error))
            continue

        for statement in parsed:
            name = _table_of(statement)
            if name is not None:
                tables.setdefault(name, TableText(name)).statements.append(text.strip())

    return list(tables.values()), unread


def _statements(sql: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of its first line."""
    if "\0" in sql:
        raise InvalidSql(NOT_TEXT.en, detail_zh=NOT_TEXT.zh)

    sql = _COMMAND_OF_PSQL.sub("", sql)
    try:
        texts = split(sql, method="scanner")
    except (PgQueryError, UnicodeEncodeError) as exc:
        raise InvalidSql(str(exc)) from exc

    at = 0
    for text in texts:
        at = max(sql.find(text, at), at)
        start = at + len(text) - len(text.lstrip())
        yield sql.count("\n", 0, start) + 1, text
        at += len(text)


def _table_of(statement: ParsedStatement) -> str | None:
    """Return the table that a statement makes, alters or comments on."""
    node = statement.node
    if statement.kind == "CommentStmt":
        if node["objtype"] not in _COMMENTED:
            return None

        names = [each["String"]["sval"] for each in node["object"]["List"]["items"]]
        return ".".join(names[: len(names) - _COMMENTED[node["objtype"]]])

    if statement.kind == "AlterTableStmt":
        if node.get("objtype") == "OBJECT_TABLE":
            return _name(node["relation"])

        return None

    if statement.kind not in _MADE_BY:
        return None

    made = node[_MADE_BY[statement.kind]]
    return _name(made.get("relation", made.get("rel", made)))


def _name(relation: Node) -> str:
    return ".".join(relation_parts(relation))
