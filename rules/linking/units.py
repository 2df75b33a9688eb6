"""Amounts said in one unit, compared with columns that store another: 30万 and 万元, "5 minutes"
and milliseconds.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from common.values import Column
from knowledge.language.atoms import normalise
from knowledge.language.cutting import has_han
from knowledge.language.inflection import stem
from knowledge.language.spoken_names import english_words
from rules.linking.mark import Mark
from rules.words import WORDS

_SCALES = {word: Decimal(size) for word, size in WORDS.named("units.money").items()}
_CURRENCY = WORDS.chinese.text("units.currency")
_MONEY = re.compile(rf"[(:,]\s*({'|'.join(_SCALES)}){_CURRENCY}")
_AMOUNT_ENDS = {*"".join(_SCALES), _CURRENCY}
_BRACKETED = re.compile(rf"\((?:{WORDS.any_of('units.unit')})?([^()]+)\)")


_HAN_SIZES = (4, 3, 2)  # characters of a unit at the end of a name: 时长毫秒


class _Unit(NamedTuple):
    """A unit of measurement: its dimension, and how many of the smallest unit it is."""

    kind: str
    size: Decimal


_UNITS = {
    form: _Unit(kind, Decimal(size))
    for kind in ("time", "weight", "length")
    for word, size in WORDS.named(f"units.{kind}").items()
    for form in (word, stem(word), stem(f"{word}s"))
}


def in_stored_unit(
    operands: tuple[Decimal, ...], column: Column, marks: Iterable[Mark]
) -> tuple[Decimal, ...]:
    """Return the numbers said, in the unit that the column stores, where both are known."""
    marks = tuple(marks)
    numbers = _places_of(operands, marks)
    scale = _scale_of_money(column)
    if scale is not None and _are_amounts(numbers, marks):
        return tuple(operand / scale for operand in operands)

    texts = [mark.text for mark in marks]
    following: list[str] = []
    for place in numbers:
        following += texts[place + 1 : place + 2]

    unit = _last_unit(following)
    stored = _stored(column)
    if unit is None or stored is None:
        return operands
    if unit.kind != stored.kind:
        return operands

    return tuple(operand * unit.size / stored.size for operand in operands)


def is_other_unit(word: str, column: Column) -> bool:
    """Tell whether a word is a unit of what the column stores, and not the one that it stores."""
    unit, stored = _unit(word), _stored(column)
    if unit is None or stored is None:
        return False

    return unit.kind == stored.kind and unit.size != stored.size


def _are_amounts(numbers: list[int], marks: tuple[Mark, ...]) -> bool:
    """Tell whether one of the numbers ends in what only amounts of money do."""
    return any(marks[place].text[-1] in _AMOUNT_ENDS for place in numbers)


def _places_of(operands: tuple[Decimal, ...], marks: tuple[Mark, ...]) -> list[int]:
    """Return where the numbers stand in the question."""
    places: list[int] = []
    for place, mark in enumerate(marks):
        if mark.number is not None and mark.number.value in operands:
            places.append(place)

    return places


def _scale_of_money(column: Column) -> Decimal | None:
    """Return how many of the currency the column's unit is, 10,000 of 万元."""
    comment = normalise(column.comment or "")
    money = _MONEY.search(comment)
    if money is None:
        return None

    return _SCALES[money[1]]


def _unit(word: str) -> _Unit | None:
    lowered = word.lower()
    if lowered in _UNITS:
        return _UNITS[lowered]

    return _UNITS.get(stem(lowered))


def _last_unit(words: list[str]) -> _Unit | None:
    """Return the last of the units among the words."""
    for word in reversed(words):
        unit = _unit(word)
        if unit is not None:
            return unit

    return None


def _stored(column: Column) -> _Unit | None:
    """Return the unit that a column's comment or name puts in brackets, or its name ends in."""
    own = normalise(column.name)
    bracketed = _BRACKETED.findall(normalise(column.comment or "")) + _BRACKETED.findall(own)
    last_word = english_words(column.name)[-1:]
    han = [own[-size:] for size in _HAN_SIZES if has_han(own[-size:])]
    for name in (*bracketed, *last_word, *han):
        unit = _unit(name.strip())
        if unit is not None:
            return unit

    return None
