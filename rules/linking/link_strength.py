"""How strongly a name tells that a question is about what it names."""

from collections.abc import Mapping
from typing import Literal

from common.meanings import TableKey
from common.values import Column, Table
from knowledge.language.cutting import has_han
from knowledge.language.spoken_names import BORROWED, comment_names, meant_names
from rules.schema.links import Link
from rules.schema.table_facts import kind_of

NameKind = Literal[
    "table", "value", "number", "text", "date", "time", "boolean", "array", "json", "other"
]
_OF_COLUMN = 0.9  # of a table or a value, which tell more of what a question is about


def link_strength(link: Link, tables: Mapping[TableKey, Table], *, is_han: bool) -> float:
    """Return how strongly a word means what it is linked to, 0 to 1.

    Args:
        is_han: whether the word is Chinese; a translation counts in full where the thing has no
            name in the word's own language.
    """
    quality = link.quality
    table = tables[link.table]
    thing: Table | Column = table
    if link.column is not None:
        thing = table.column(link.column) or table

    if link.kind != "value" and not has_name(thing, is_han=is_han):
        quality = min(1.0, quality / BORROWED)

    return quality * _OF_COLUMN if link.kind == "column" else quality


def has_name(thing: Table | Column, *, is_han: bool) -> bool:
    """Tell whether it has a name in Chinese, or in another language.

    Where it has none, the translation of its name is as good.
    """
    return any(
        has_han(name) == is_han
        for name in (thing.name, *meant_names(thing), *comment_names(thing.comment))
    )


def name_kind(link: Link, tables: Mapping[TableKey, Table]) -> NameKind:
    """Return what is named: a table, a value, or a column of which kind."""
    if link.kind != "column":
        return link.kind

    column = tables[link.table].column(link.column or "")
    return column_kind(column) if column is not None else "other"


def column_kind(column: Column) -> NameKind:
    """Return the kind of a column's values; dates and times of a day are one."""
    kind = kind_of(column)
    return "date" if kind == "timestamp" else kind
