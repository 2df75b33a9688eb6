"""Which column says how old the rows of a source are."""

from common.values import Column, Table
from etl.meaning.value_kinds import MOMENTS, kind_of_type
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


def _candidates(table: Table) -> list[Column]:
    meant = table.meaning.date_column if table.meaning is not None else None
    stated = [one for one in table.columns if one.name == meant]
    moments = [one for one in table.columns if kind_of_type(one.type) in MOMENTS]
    named = [one for one in moments if _says_updated(one.name) and not one.nullable]
    return [*(one for one in stated if one in moments or one.type == "date"), *named]


def _says_updated(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _UPDATED)
