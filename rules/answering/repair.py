"""Mending a statement that names a table or column that does not exist, when one real name is clearly meant."""

import re

from common.errors import InvalidSql
from common.postgres.identifiers import quoted
from common.text import Text
from common.values import Catalog
from knowledge.likeness import LikeNames
from knowledge.spelling import likeness
from rules.query.refusals import Refusal
from rules.sql.identifiers import table_name
from rules.words import WORDS

_UNKNOWN_TABLE, _UNKNOWN_COLUMN = "42P01", "42703"
_QUOTED = re.compile(r'"([^"]+)"')
_QUALIFIED = re.compile("|".join(WORDS.both("server.unknown_columns")))  # in the languages that servers speak
_LEAST_RATIO = 0.7
_LEAST_LEAD = 0.08


def repaired(sql: str, error: InvalidSql, catalog: Catalog) -> str:
    """`sql` with the unknown name replaced.

    Raises:
        Refusal: it is another kind of error, or no name is clearly meant.
    """
    name = _unknown_name(error)
    if name is None or error.sqlstate not in (_UNKNOWN_TABLE, _UNKNOWN_COLUMN):
        raise _cannot(error)
    if error.sqlstate == _UNKNOWN_TABLE:
        choices = {table.name: table_name(catalog, table.key) for table in catalog.tables}
    else:
        lowered = sql.lower()  # looking first whether the name is there at all is what makes thousands of tables quick
        mentioned = [
            table
            for table in catalog.tables
            if table.name.lower() in lowered and re.search(rf"\b{re.escape(table.name)}\b", sql, re.IGNORECASE)
        ]
        choices = {
            column.name: quoted(column.name) for table in mentioned or catalog.tables for column in table.columns
        }
    near = _ranked(name, choices)
    if not near or (len(near) > 1 and near[0][0] - near[1][0] < _LEAST_LEAD):
        raise _unknown(name, [choice for _, choice in near[:3]])
    return _replaced(sql, name, choices[near[0][1]], error.position)


def _unknown_name(error: InvalidSql) -> str | None:
    qualified = _QUALIFIED.search(error.detail)
    if qualified:
        return (qualified.group(2) or qualified.group(4)).strip('"')
    found = _QUOTED.search(error.detail)
    return found.group(1).split(".")[-1] if found else None


def _ranked(name: str, choices: dict[str, str]) -> list[tuple[float, str]]:
    likely = LikeNames(list(choices)).names_like(name)
    scored = [(likeness(name.lower(), choice.lower()), choice) for choice in likely]
    return sorted((item for item in scored if item[0] >= _LEAST_RATIO and item[1] != name), reverse=True)


def _replaced(sql: str, name: str, replacement: str, position: int | None) -> str:
    pattern = re.compile(rf'"{re.escape(name)}"|(?<![\w"]){re.escape(name)}(?![\w"])', re.IGNORECASE)
    if position is None:
        return pattern.sub(lambda _: replacement, sql)
    head, tail = sql[: position - 1], sql[position - 1 :]
    alias = re.match(r'(?:"[^"]+"|\w+)\.(?=["\w])', tail)
    if alias and not pattern.match(tail):
        head, tail = head + alias.group(), tail[alias.end() :]
    return head + pattern.sub(lambda _: replacement, tail, count=1)


def _unknown(name: str, near: list[str]) -> Refusal:
    hint = Text("", "")
    if near:
        hint = Text(f"您是不是要找：{'、'.join(near)}？", f" Did you mean: {', '.join(near)}?")
    return Refusal(
        "missing_database_info", Text(f"数据库中没有“{name}”。{hint.zh}", f'The database has no "{name}".{hint.en}')
    )


def _cannot(error: InvalidSql) -> Refusal:
    return Refusal(
        "unknown_generation_failure",
        Text(
            f"SQL无法执行，规则也无法修复：{error.detail_zh or error.detail}",
            f"The SQL can't be run, and the rules can't mend it: {error.detail}",
        ),
    )
