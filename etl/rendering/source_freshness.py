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
        if column.type == "date":
            return f"CAST({text} AS timestamp)"

        return text

    return None


def _candidates(table: Table) -> Iterator[Column]:
    declared_date = _meant_date(table)
    if declared_date is not None and kind_of_type(declared_date.type) in DAYS:
        yield declared_date

    for column in table.columns:
        is_moment = kind_of_type(column.type) in MOMENTS
        is_certain = is_moment and not column.nullable
        if is_certain and _says_updated(column.name):
            yield column


def _meant_date(table: Table) -> Column | None:
    """Return the date that the semantic file gives the table."""
    meaning = table.meaning
    if meaning is None or meaning.date_column is None:
        return None

    return table.column(meaning.date_column)


def _says_updated(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _UPDATED)
