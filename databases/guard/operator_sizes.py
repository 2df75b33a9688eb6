"""The bound of what an operator gives, from the bounds of its two sides."""

import math
from collections.abc import Callable
from dataclasses import replace

from databases.guard.sizes import (
    TEXT_OF_NUMBER,
    Size,
    constant_text,
    digits,
    of_number,
    of_text,
    power,
    product,
    together,
)

_SHORT_TEXT = 1_000  # characters; up to here a text put together from constants is known, not only its length


def _arithmetic(
    bound: Callable[[float, float], float], exact: Callable[[float, float], float], *, may_negate: bool = False
) -> Callable[[Size, Size], Size]:
    """An operator's result, by `bound` from two bounds, or by `exact` from two known numbers (NaN: not known)."""

    def combine(left: Size, right: Size) -> Size:
        is_stored = left.is_stored or right.is_stored
        if left.constant is not None and right.constant is not None:
            try:
                value = exact(left.constant, right.constant)
            except (ArithmeticError, ValueError):
                value = math.inf
            if isinstance(value, float) and math.isfinite(value):
                return replace(of_number(value), length=digits(abs(value)))
        number = bound(left.number, right.number)
        # What is not a number is as long as both: intervals, arrays, JSON.
        length = max(digits(number), left.length, right.length) if not is_stored else left.length + right.length
        return Size(number, length, is_stored, not may_negate and left.is_natural and right.is_natural)

    return combine


def _divided(left: Size, right: Size) -> Size:
    is_natural = left.is_natural and right.is_natural
    length = left.length + right.length + TEXT_OF_NUMBER
    if right.constant:
        # Whole numbers are divided into whole numbers: what is left over makes the value unknown, but no larger.
        is_exact = left.constant is not None and left.constant % right.constant == 0
        exact = left.constant / right.constant if left.constant is not None and is_exact else None
        return Size(left.number / abs(right.constant), length, left.is_stored, is_natural, exact)
    number = left.number if right.is_stored else math.inf
    return Size(number, length, left.is_stored or right.is_stored, is_natural)


def _concatenated(left: Size, right: Size) -> Size:
    texts = [constant_text(left), constant_text(right)]
    if all(text is not None for text in texts) and left.length + right.length <= _SHORT_TEXT:
        return of_text("".join(text or "" for text in texts))
    return together([left, right])


ARITHMETIC: dict[str, Callable[[Size, Size], Size]] = {
    "+": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a + b, lambda a, b: a - b, may_negate=True),
    "*": _arithmetic(product, lambda a, b: a * b),
    "/": _divided,
    "%": _arithmetic(min, math.fmod),
    "^": _arithmetic(power, lambda a, b: a**b),
    "<<": _arithmetic(lambda a, b: product(a, power(2, b)), lambda a, b: a * 2.0**b),
    ">>": _arithmetic(max, lambda *_: math.nan),
    "&": _arithmetic(min, lambda *_: math.nan),
    "|": _arithmetic(lambda a, b: a + b, lambda *_: math.nan),
    "||": _concatenated,
}
