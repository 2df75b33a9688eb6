"""Mending a statement that names a table or column that does not exist, when one real name is clearly meant."""

import re

from common.errors import InvalidSql
from common.postgres.identifiers import quoted
from common.values import Catalog
from databases.references import references
from knowledge.near_names import UNKNOWN_COLUMN, UNKNOWN_TABLE
from knowledge.spelling import likeness
from rules.sql.joined_tables import table_name
from rules.words import WORDS

_QUOTED = re.compile(r'"([^"]+)"')
_QUALIFIED = re.compile("|".join(WORDS.both("server.unknown_columns")))  # in the languages that servers speak
_LEAST_RATIO = 0.7
_LEAST_LEAD = 0.08


def repaired(sql: str, error: InvalidSql, catalog: Catalog) -> str | None:
    """`sql` with the unknown name replaced; None if it is another kind of error, or no name is clearly meant."""
    name = _unknown_name(error)
    if name is None or error.sqlstate not in (UNKNOWN_TABLE, UNKNOWN_COLUMN):
        return None
    choices = {table.name: table_name(catalog, table.key) for table in catalog.tables}
    if error.sqlstate == UNKNOWN_COLUMN:
        read = [table for table in references(sql, catalog).sources.values() if table is not None]
        choices = {column.name: quoted(column.name) for table in read or catalog.tables for column in table.columns}
    alike = {one: likeness(name.lower(), one.lower(), _LEAST_RATIO) for one in choices if one != name}
    (best, meant), *others = sorted(((score, one) for one, score in alike.items()), reverse=True) or [(0.0, "")]
    is_clear = best > 0 and all(best - score >= _LEAST_LEAD for score, _ in others[:1])
    return _replaced(sql, name, choices[meant], error.position) if is_clear else None


def _unknown_name(error: InvalidSql) -> str | None:
    qualified = _QUALIFIED.search(error.detail)
    if qualified:
        return (qualified.group(2) or qualified.group(4)).strip('"')
    found = _QUOTED.search(error.detail)
    return found.group(1).split(".")[-1] if found else None


def _replaced(sql: str, name: str, replacement: str, position: int | None) -> str:
    pattern = re.compile(rf'"{re.escape(name)}"|(?<![\w"]){re.escape(name)}(?![\w"])', re.IGNORECASE)
    if position is None:
        return pattern.sub(lambda _: replacement, sql)
    head, tail = sql[: position - 1], sql[position - 1 :]
    alias = re.match(r'(?:"[^"]+"|\w+)\.(?=["\w])', tail)
    if alias and not pattern.match(tail):
        head, tail = head + alias.group(), tail[alias.end() :]
    return head + pattern.sub(lambda _: replacement, tail, count=1)
