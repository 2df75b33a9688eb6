"""Which column says how old the rows of a source are."""

from collections.abc import Iterator

from common.values import Column, Table
from etl.meaning.value_kinds import DAYS, MOMENTS, kind_of_type
from etl.rendering.jinja_text import has_jinja
from postgres.identifiers import quoted

_UPDATED = (
    "updated",
    "update_time",
    "modified",
    "loaded",
    "synced",
    "ingested",
    "last_change",
    "更新",
    "修改",
    "入库",
    "同步",
)


def loaded_at_field(table: Table) -> str | None:
    """Return SQL for the moment at which a row was loaded or changed; None without such a column.

    It is the date that the semantic file gives the table, else a column without NULL whose name
    says so.
    """
    for column in _candidates(table):
        text = quoted(column.name)
        if has_jinja(text):
            continue
        return f"CAST({text} AS timestamp)" if column.type == "date" else text
    return None


def _candidates(table: Table) -> Iterator[Column]:
    meant = None
    if table.meaning is not None and table.meaning.date_column is not None:
        meant = table.column(table.meaning.date_column)
    if meant is not None and kind_of_type(meant.type) in DAYS:
        yield meant
    for column in table.columns:
        is_moment = kind_of_type(column.type) in MOMENTS
        if is_moment and not column.nullable and _says_updated(column.name):
            yield column


def _says_updated(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _UPDATED)
