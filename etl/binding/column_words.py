"""Meanings that names of columns and values tell: currencies, money, keys, void rows."""

import re
from functools import cache
from pathlib import Path

from common.values import Column
from common.word_files import Languages
from etl.meaning.value_kinds import NUMBERS, kind_of_type

_WORDS = Languages(Path(__file__).with_name("words"))
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|[^\W_a-zA-Z0-9]+")


def _says(column: Column, place: str) -> bool:
    """Tell whether the column's name or comment says one of the words at `place`."""
    name = column.name
    parts = {name.lower(), *(part.lower() for part in _PARTS.findall(name))}
    if not parts.isdisjoint(_WORDS.english.get(place)):
        return True

    text = f"{name} {column.comment or ''}"
    return any(word in text for word in _WORDS.chinese.get(place))


def is_currency(column: Column) -> bool:
    """Tell whether a column holds the currency of the amounts beside it."""
    # A number may refer to a table of currencies
    if kind_of_type(column.type) not in ("text", "other", "integer"):
        return False

    return _says(column, "columns.currency")


def is_money(column: Column) -> bool:
    """Tell whether a column may hold amounts of money."""
    kind = kind_of_type(column.type)
    if kind not in NUMBERS:
        return False
    if _says(column, "columns.no_money") or is_currency(column):
        return False
    if kind == "integer":
        return _says(column, "columns.money")

    return True


def is_rate(column: Column) -> bool:
    """Tell whether a column holds exchange rates."""
    if kind_of_type(column.type) not in NUMBERS:
        return False

    return _says(column, "columns.rate")


def begins_validity(column: Column) -> bool:
    """Tell whether a column holds the day from which something holds."""
    return _says(column, "columns.validity")


def may_be_key(name: str) -> bool:
    """Tell whether a column's name alone may tell that it refers to something."""
    lowered = name.lower()
    if lowered in _WORDS.both("columns.no_key"):
        return False

    last = lowered.rpartition("_")[2]
    if last in _WORDS.english.phrases("columns.key_ends"):
        return True

    return name.endswith(_WORDS.chinese.phrases("columns.key_ends"))


def is_undone(value: str) -> bool:
    """Tell whether a stored value looks like that of rows that are void."""
    return value.strip().lower() in _undone_values()


@cache
def _undone_values() -> frozenset[str]:
    return frozenset(_WORDS.both("values.undone"))
