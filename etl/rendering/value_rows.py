"""Rows of Python values as SQL.

Fixtures have thousands of values, so they are written as text at once, without a tree.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from etl.planning.draft_test import TypedRows
from etl.planning.sql_trees import nothing
from etl.rendering.select_rendering import identifier_text, string_text


def values_query(rows: TypedRows) -> str:
    """Return a SELECT that gives the rows with their types; of no rows too."""
    if not rows.rows:
        nothing_there = [None] * len(rows.columns)
        return f"SELECT {_cells(rows, nothing_there)} WHERE FALSE"
    return "\nUNION ALL ".join(f"SELECT {_cells(rows, row)}" for row in rows.rows)


def _cells(rows: TypedRows, row: Sequence[Any]) -> str:
    cells = []
    for (name, type_), value in zip(rows.columns, row, strict=True):
        cells.append(f"CAST({_value_text(value)} AS {_type_text(type_)}) AS {_name_text(name)}")
    return ", ".join(cells)


def _value_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, datetime):
        return string_text(value.isoformat(sep=" "))
    if isinstance(value, date):
        return string_text(value.isoformat())
    return string_text(str(value))


@lru_cache(maxsize=256)
def _type_text(type_: str) -> str:
    kind = nothing(type_).args["to"]
    return str(kind.sql("postgres"))


@lru_cache(maxsize=4096)
def _name_text(name: str) -> str:
    return identifier_text(name)
