"""Amounts said in one unit, compared with columns that store another: 30万 and 万元, "5 minutes" and milliseconds."""

import re
from collections.abc import Iterable
from decimal import Decimal

from common.values import Column
from knowledge.atoms import listed, normalise, stem
from knowledge.naming import english_words
from rules.linking.marks import Mark

_MONEY = re.compile(r"[(:,]\s*(千|万|百万|亿)元")
_SCALES = {"千": Decimal(1000), "万": Decimal(10_000), "百万": Decimal(1_000_000), "亿": Decimal(100_000_000)}
# What is measured, and how much one of them is; a line is one kind.
_KINDS = (
    {"ms millisecond 毫秒": "0.001", "s sec second 秒 秒钟": "1", "min minute 分钟": "60", "h hr hour 小时": "3600"},
    {"g gram 克": "0.001", "kg kilogram 千克 公斤": "1", "t ton tonne 吨": "1000"},
    {"cm centimeter 厘米": "0.01", "m meter metre 米": "1", "km kilometer kilometre 公里 千米": "1000"},
)
_UNITS = {
    form: (kind, Decimal(size))
    for kind, sizes in enumerate(_KINDS)
    for words, size in sizes.items()
    for word in listed(words)
    for form in (word, stem(word), stem(f"{word}s"))
}


def in_stored_unit(operands: tuple[Decimal, ...], column: Column, marks: Iterable[Mark]) -> tuple[Decimal, ...]:
    """The numbers said, in the unit that the column stores, where both are known."""
    marks = tuple(marks)
    numbers = [index for index, mark in enumerate(marks) if mark.number and mark.number.value in operands]
    money = _MONEY.search(normalise(column.comment or ""))
    if money is not None and any(marks[index].text[-1] in "万亿千元" for index in numbers):
        return tuple(operand / _SCALES[money[1]] for operand in operands)
    said = [_unit(marks[index + 1].text) for index in numbers if index + 1 < len(marks)]
    known = [unit for unit in said if unit is not None]
    stored = _stored(column)
    if not known or stored is None or known[-1][0] != stored[0]:
        return operands
    return tuple(operand * known[-1][1] / stored[1] for operand in operands)


def _unit(word: str) -> tuple[int, Decimal] | None:
    lowered = word.lower()
    return _UNITS.get(lowered) or _UNITS.get(stem(lowered))


def _stored(column: Column) -> tuple[int, Decimal] | None:
    """The unit a column's name ends in, or its comment puts in brackets."""
    bracketed = re.findall(r"\((?:单位:)?([^()]+)\)", normalise(column.comment or ""))
    names = [*bracketed, *english_words(column.name)[-1:]]
    return next((unit for name in names if (unit := _unit(name.strip())) is not None), None)
