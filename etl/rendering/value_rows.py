"""Rows of Python values as SQL.

Fixtures have thousands of values, so they are written as text at once, without a tree.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from etl.planning.draft_test import TypedRows
from etl.planning.sql_trees import null_of
from etl.rendering.select_rendering import identifier_text, string_text


def values_query(rows: TypedRows) -> str:
    """Return a SELECT that gives the rows with their types; of no rows too."""
    return together(row_selects(rows))


def together(selects: Sequence[str], indent: str = "") -> str:
    """Return the rows of `row_selects` as one query, all lines but the first indented."""
    return f"\n{indent}UNION ALL ".join(selects)


def row_selects(rows: TypedRows) -> list[str]:
    """Return a SELECT for each row; of no rows, one that gives none."""
    cells = [_cell_pattern(name, type_) for name, type_ in rows.columns]
    pattern = f"SELECT {', '.join(cells)}"
    if not rows.rows:
        nothing_there = ("NULL",) * len(cells)
        return [f"{pattern % nothing_there} WHERE FALSE"]

    selects = []
    for row in rows.rows:
        texts = [_WRITERS.get(type(value), _of_other)(value) for value in row]
        selects.append(pattern % tuple(texts))

    return selects


def _cell_pattern(name: str, type_: str) -> str:
    end = f" AS {_type_text(type_)}) AS {_name_text(name)}"
    return "CAST(%s" + end.replace("%", "%%")


def _of_other(value: Any) -> str:
    return string_text(str(value))


def _of_decimal(value: Decimal) -> str:
    if value.is_finite():
        return format(value, "f")

    return _of_other(value)


def _of_moment(value: datetime) -> str:
    return string_text(value.isoformat(sep=" "))


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: string_text,
    type(None): lambda _: "NULL",
    bool: lambda value: str(value).upper(),
    int: str,
    Decimal: _of_decimal,
    datetime: _of_moment,
    date: lambda value: string_text(value.isoformat()),
}


@lru_cache(maxsize=256)
def _type_text(type_: str) -> str:
    kind = null_of(type_).args["to"]
    return str(kind.sql("postgres"))


@lru_cache(maxsize=4096)
def _name_text(name: str) -> str:
    return identifier_text(name)
