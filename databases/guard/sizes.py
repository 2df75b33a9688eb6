"""Bounds for values: how large a number may be, how long its text, and what is known of several values together.

What is stored in tables counts as 1, so a bound says by how much the statement itself multiplies it. What can be
neither computed nor traced to a table has no bound: infinity.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

TEXT_OF_NUMBER = 32
QUOTES = 8  # characters around a value in JSON, XML or an array
_MOST_DIGITS = 150_000  # of a numeric
_NUMBER = re.compile(r"[-+]?(\d+(?:\.\d*)?|\.\d+)(?:e([-+]?\d+))?", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)(?:e\+?\d+)?|0x[0-9a-f]+|0o[0-7]+|0b[01]+", re.IGNORECASE)


class TooLong(Exception):
    """A value gets too long, or takes too long to compute; the message is the name of the function or operator."""


@dataclass(frozen=True, slots=True)
class Size:
    """A bound for one value.

    Attributes:
        number: its absolute value, if it is a number or is read as one; of an array, the largest of its elements'.
        length: characters of its text, or elements.
        is_stored: whether something stored in a table is in it.
        is_natural: whether it is known not to be negative.
        constant: the number itself, where it is known.
        text: the text itself, where it is known.
    """

    number: float = 1
    length: float = 1
    is_stored: bool = False
    is_natural: bool = False
    constant: float | None = None
    text: str | None = None


STORED = Size(is_stored=True, is_natural=True)
TRUTH = Size(1, 5, is_natural=True)
EMPTY = Size(0, 0)


def one_of(sizes: Iterable[Size]) -> Size:
    """The bound of a value that is one of several."""
    found = list(sizes)
    if len(found) == 1:
        return found[0]
    return Size(
        max((size.number for size in found), default=0),
        max((size.length for size in found), default=0),
        any(size.is_stored for size in found),
        all(size.is_natural for size in found),
    )


def escaped(sizes: Sequence[Size]) -> Size:
    """As `together`, where every character may have to be written as two, with quotes around each value."""
    joined = inexact(together(sizes))
    return replace(joined, length=2 * joined.length + QUOTES * len(sizes))


def inexact(size: Size) -> Size:
    """The bound without the known number or text."""
    return replace(size, constant=None, text=None)


def together(sizes: Iterable[Size]) -> Size:
    """The bound of several values put together into one."""
    found = list(sizes)
    if len(found) == 1:
        return found[0]
    length = sum(size.length for size in found)
    is_stored = any(size.is_stored for size in found)
    number = max((size.number for size in found), default=0)
    return Size(number if is_stored else max(number, largest_number(length)), length, is_stored)


def of_number(value: float) -> Size:
    """The bound of a known number."""
    return Size(abs(value), len(f"{value:.17g}"), is_natural=value >= 0, constant=float(value))


def largest_number(length: float) -> float:
    """The largest number that a text of that length can spell."""
    return power(10, length)


def of_text(value: str) -> Size:
    """The bound of a known text. As a number it counts as the one it spells, or as the largest one in it."""
    match = _NUMBER.fullmatch(value.strip().replace("_", ""))
    if match is not None and len(value) < 100:
        return replace(of_number(_float(match[0])), length=len(value), text=value)
    numbers = (_float(number) for number in _NUMBERS.findall(value[:2000]))
    return Size(max(numbers, default=0), len(value), text=value)


def _float(text: str) -> float:
    if text[:2].lower() in ("0x", "0o", "0b"):
        return float(int(text, 0))
    try:
        return float(text)
    except ValueError:
        return math.inf


def constant_text(size: Size) -> str | None:
    """The text of a known text or whole number; None where it is not known."""
    if size.text is None and size.constant is not None and size.constant.is_integer() and abs(size.constant) < 1e18:
        return f"{size.constant:.0f}"
    return size.text


def product(left: float, right: float) -> float:
    """`left * right`, where nothing times infinity is nothing."""
    return 0.0 if left == 0 or right == 0 else left * right


def power(base: float, exponent: float) -> float:
    """`base ** exponent` for a base of at least 1; infinity where that overflows."""
    try:
        return math.pow(max(base, 1.0), exponent)
    except OverflowError:
        return math.inf


def digits(number: float) -> float:
    """How many characters a number up to `number` may be written with."""
    return TEXT_OF_NUMBER + (math.log10(number) if 1 < number < math.inf else 0 if number <= 1 else _MOST_DIGITS)
