"""Removes what the user may not see from what PostgreSQL says about a statement: names, and values
of hidden rows.

PostgreSQL's messages and hints name columns near a misspelt one, and tables behind a view, whether
or not they may be read. Names that the statement itself or the visible catalogue holds may be
shown; messages with others are not.

Messages about values quote them. Where a statement reads tables that hide rows, a policy or rule
may have met the value in a row that it hides, so only values stay that the statement itself holds.
"""

import re
from collections.abc import Iterator

from common.errors import ForbiddenObject, InvalidSql
from common.text import Text
from common.values import Catalog
from guard import ServerFacts
from sqltree.references import references

_QUOTED = re.compile(r'["“”„«‹「『]([^"“”„«»‹›「」『』]+)["“”»›」』]')
_UNSHOWN = Text(
    "PostgreSQL 的错误信息提到了不可读取的对象，因此不予显示",
    "PostgreSQL's message is not shown: it names what may not be read",
)
_NO_PRIVILEGE = Text(
    "数据库账号没有读取查询所需的某个对象的权限。",
    "The database role may not read something that the query needs.",
)

# Classes of SQLSTATE about what the statement names; others are about values met.
_ABOUT_NAMES = ("0A", "3F", "42")
_OWN_WORDS = ("P0", "38", "39", "2F")  # what functions say, which may be anything
_TO_THE_LAST_QUOTE = re.compile(r"[\"“”„«‹「『].*", re.DOTALL)
_NUMBER = re.compile(r"(?<!\w)(?:0x[0-9a-fA-F]+|[-+]?\d[\d.,:-]*)")
_HIDDEN_VALUE = '"…"'
_OWN_MESSAGE = Text(
    "数据库中的函数报告了错误，其内容不予显示",
    "a function of the database failed; what it says is not shown",
)


def without_values(error: InvalidSql, sql: str) -> InvalidSql:
    """Return `error`, or one in its place that quotes no stored value.

    It is for statements that read tables which hide rows.

    Args:
        sql: the statement as it was given, whose own texts may be quoted.
    """
    state = error.sqlstate or ""
    if error.detail_zh is not None:  # the text is Citu's own
        return error
    # Errors about names have a position unless a function met the name in a row, as pg_has_role and
    # to_tsquery do.
    if state.startswith(_ABOUT_NAMES) and error.position is not None:
        return error
    if state.startswith(_OWN_WORDS):
        detail, detail_zh = _OWN_MESSAGE.en, _OWN_MESSAGE.zh
    else:
        detail, detail_zh = _unquoted(error.detail, sql), None

    return InvalidSql(detail, detail_zh=detail_zh, sqlstate=error.sqlstate, position=error.position)


def _unquoted(detail: str, sql: str) -> str:
    """Return the message without texts and numbers that the statement does not hold."""
    is_of_statement = all(quoted in sql for quoted in _QUOTED.findall(detail))
    if _is_cut(detail) or not is_of_statement:
        detail = _TO_THE_LAST_QUOTE.sub(_HIDDEN_VALUE, detail)

    def shown(number: re.Match[str]) -> str:
        is_given = number[0] in sql
        return number[0] if is_given else "…"

    return _NUMBER.sub(shown, detail)


def _is_cut(detail: str) -> bool:
    """Tell whether the message begins a quotation that it does not end."""
    return detail.endswith("…") or detail.count('"') % 2 == 1


def without_hidden_names(
    error: InvalidSql | ForbiddenObject, sql: str, catalog: Catalog, facts: ServerFacts
) -> InvalidSql | ForbiddenObject:
    """Return `error`, or one in its place without names that may not be seen.

    Args:
        sql: the statement it is about.
        catalog: what the user may see.
    """
    if isinstance(error, ForbiddenObject):
        is_known = _is_said(error.name, sql) or error.name in catalog.by_name
        if is_known:
            return error

        return ForbiddenObject("", _NO_PRIVILEGE)

    hint = error.hint
    if hint is not None and not _is_visible(hint, sql, catalog):
        hint = None

    names_hidden = any(_is_hidden(name, sql, catalog, facts) for name in _names(error.detail))
    if hint == error.hint and not names_hidden:
        return error

    detail, detail_zh = error.detail, error.detail_zh
    if names_hidden:
        detail, detail_zh = _UNSHOWN.en, _UNSHOWN.zh

    return InvalidSql(
        detail, detail_zh=detail_zh, sqlstate=error.sqlstate, position=error.position, hint=hint
    )


def _names(text: str) -> Iterator[str]:
    """Yield the texts in quotes, and the parts of those with dots."""
    for quoted in _QUOTED.findall(text):
        yield quoted
        if "." in quoted:
            yield from quoted.split(".")


def _is_hidden(name: str, sql: str, catalog: Catalog, facts: ServerFacts) -> bool:
    """Tell whether the server has that name, and neither the statement nor the catalogue does."""
    if _is_said(name, sql) or _is_in(name, catalog):
        return False

    relations = {relation for _, relation in facts.relations}
    return name in facts.column_names or name in relations


def _is_said(name: str, sql: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE) is not None


def _is_in(name: str, catalog: Catalog) -> bool:
    if name in catalog.by_name:
        return True

    return any(table.column(name) for table in catalog.tables)


def _is_visible(hint: str, sql: str, catalog: Catalog) -> bool:
    """Tell whether every name in the hint may be seen."""
    sources = references(sql, catalog).sources
    for name in _QUOTED.findall(hint):
        source, _, column = name.rpartition(".")
        table = sources.get(source)
        if table is not None:
            is_visible = table.column(column) is not None
        elif source:
            # The alias of something else than a visible table, a subquery for example: its columns
            # are named in the text.
            is_visible = _is_said(column, sql)
        else:
            is_visible = _is_said(column, sql) or _is_in(column, catalog)

        if not is_visible:
            return False

    return True
