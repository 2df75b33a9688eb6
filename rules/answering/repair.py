"""Repair statements with a misspelt table or column, if it is clear which name is meant."""

import re
from collections.abc import Iterable

from common.errors import InvalidSql
from common.values import Catalog
from knowledge.language.spelling import likeness
from knowledge.tables.name_suggestions import UNKNOWN_COLUMN, UNKNOWN_TABLE
from postgres.identifiers import quoted
from rules.sql.joined_tables import table_name
from rules.words import WORDS
from sqltree.references import references

_QUOTED = re.compile(r'"([^"]+)"')
_QUALIFIED = re.compile(
    "|".join(WORDS.both("server.unknown_columns"))
)  # in the languages that servers speak
_LEAST_RATIO = 0.7
_LEAST_LEAD = 0.08


def repaired(sql: str, error: InvalidSql, catalog: Catalog) -> str | None:
    """Return `sql` with the unknown name of `error` replaced.

    None if it is another kind of error, or no name is clearly meant.
    """
    unknown = _unknown_name(error)
    if unknown is None:
        return None
    if error.sqlstate == UNKNOWN_TABLE:
        names = {table.name: table_name(catalog, table.key) for table in catalog.tables}
    elif error.sqlstate == UNKNOWN_COLUMN:
        names = _column_names(sql, catalog)
    else:
        return None

    names.pop(unknown, None)
    meant = _clearly_meant(unknown, names)
    if meant is None:
        return None

    return _replaced(sql, unknown, names[meant], error.position)


def _column_names(sql: str, catalog: Catalog) -> dict[str, str]:
    """Return the columns of the tables that the statement reads, as SQL writes them, by name."""
    read = [table for table in references(sql, catalog).sources.values() if table is not None]
    names = {}
    for table in read or catalog.tables:
        for column in table.columns:
            names[column.name] = quoted(column.name)

    return names


def _clearly_meant(unknown: str, names: Iterable[str]) -> str | None:
    """Return the name that is spelled most like the unknown one, by a distance; None without
    one.
    """
    ranked = []
    for name in names:
        ranked.append((likeness(unknown.lower(), name.lower(), _LEAST_RATIO), name))

    ranked.sort(reverse=True)
    if not ranked:
        return None

    best, meant = ranked[0]
    if best <= 0:
        return None

    for second, _ in ranked[1:2]:
        if best - second < _LEAST_LEAD:
            return None

    return meant


def _unknown_name(error: InvalidSql) -> str | None:
    qualified = _QUALIFIED.search(error.detail)
    if qualified is not None:
        name = qualified.group(2) or qualified.group(4)
        return name.strip('"')

    match = _QUOTED.search(error.detail)
    if match is None:
        return None

    return match.group(1).split(".")[-1]


def _replaced(sql: str, name: str, replacement: str, position: int | None) -> str:
    """Return `sql` with the name replaced at the 1-based position; everywhere, if that is
    unknown.
    """
    pattern = re.compile(
        rf'"{re.escape(name)}"|(?<![\w"]){re.escape(name)}(?![\w"])', re.IGNORECASE
    )
    if position is None:
        return pattern.sub(lambda _: replacement, sql)

    head = sql[: position - 1]
    tail = sql[position - 1 :]
    alias = re.match(r'\A(?:"[^"]++"|\w++)\.(?=["\w])', tail)
    if alias and not pattern.match(tail):
        head += alias.group()
        tail = tail[alias.end() :]

    return head + pattern.sub(lambda _: replacement, tail, count=1)
