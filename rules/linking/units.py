"""Amounts said in one unit, compared with columns that store another: 30万 and 万元, "5 minutes" and milliseconds."""

import re
from collections.abc import Iterable
from decimal import Decimal

from common.values import Column
from knowledge.atoms import normalise, stem
from knowledge.naming import english_words
from rules.linking.mark import Mark
from rules.words import WORDS

_SCALES = {word: Decimal(size) for word, size in WORDS.named("units.money").items()}
_CURRENCY = WORDS.chinese.text("units.currency")
_MONEY = re.compile(rf"[(:,]\s*({'|'.join(_SCALES)}){_CURRENCY}")
_AMOUNT_ENDS = {*"".join(_SCALES), _CURRENCY}
_BRACKETED = re.compile(rf"\((?:{WORDS.any_of('units.unit')})?([^()]+)\)")
_UNITS = {
    form: (kind, Decimal(size))
    for kind in ("time", "weight", "length")
    for word, size in WORDS.named(f"units.{kind}").items()
    for form in (word, stem(word), stem(f"{word}s"))
}


def in_stored_unit(operands: tuple[Decimal, ...], column: Column, marks: Iterable[Mark]) -> tuple[Decimal, ...]:
    """The numbers said, in the unit that the column stores, where both are known."""
    marks = tuple(marks)
    numbers = [index for index, mark in enumerate(marks) if mark.number and mark.number.value in operands]
    money = _MONEY.search(normalise(column.comment or ""))
    if money is not None and any(marks[index].text[-1] in _AMOUNT_ENDS for index in numbers):
        return tuple(operand / _SCALES[money[1]] for operand in operands)
    said = [_unit(marks[index + 1].text) for index in numbers if index + 1 < len(marks)]
    known = [unit for unit in said if unit is not None]
    stored = _stored(column)
    if not known or stored is None or known[-1][0] != stored[0]:
        return operands
    return tuple(operand * known[-1][1] / stored[1] for operand in operands)


def _unit(word: str) -> tuple[str, Decimal] | None:
    lowered = word.lower()
    return _UNITS.get(lowered) or _UNITS.get(stem(lowered))


def _stored(column: Column) -> tuple[str, Decimal] | None:
    """The unit a column's name ends in, or its comment puts in brackets."""
    bracketed = _BRACKETED.findall(normalise(column.comment or ""))
    names = [*bracketed, *english_words(column.name)[-1:]]
    return next((unit for name in names if (unit := _unit(name.strip())) is not None), None)
