"""Bounds for values: between which numbers one lies, how long its text is, and where it comes from.

A number is *small* where the statement's text proves it: what is stored in tables may be any. The
length of a stored text counts as 1, so a bound says by how much the statement itself multiplies
it. What is *gathered* from many rows is as long as `guard.collecting_aggregates` has PostgreSQL
allow, and counts as `GATHERED_CHARS`. Anything else is unbounded.
Moments are numbers, too: days since 2000.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation

TEXT_OF_NUMBER = 32
QUOTES = 8  # characters around a value in JSON, XML or an array
LONG_CHARS = 1_000
"""Characters or elements up to which a value is short: whatever a built-in does, it ends soon."""
GATHERED_CHARS = 10_000_000
"""Length that a value counts which is gathered from rows of tables."""
MOST_AMOUNT = 2**15 - 1
"""Largest amount that PostgreSQL lets pass where it is told to read one as a smallint."""
_INTEGER_CHARS = 20
MOST_DIGITS = 150_000  # of a numeric
_MOST_TEXT = (
    2_000  # characters of which the numbers in a text are known, or what it is put together of
)
_ROUNDS = 20_000  # of a recursive query, for what grows by the same amount in each
_LARGEST_FLOAT = 1e300
_EXACT_FLOATS = 1e15  # below this, a float holds a whole number exactly
_EPOCH = date(2000, 1, 1).toordinal()
_NUMBER = re.compile(r"[-+]?(\d++(?:\.\d*+)?|\.\d++)(?:e([-+]?\d++))?", re.IGNORECASE)
_NUMBERS = re.compile(
    r"0x[0-9a-f]++|0o[0-7]++|0b[01]++|(?:\d++(?:\.\d++)?|\.\d++)(?:e\+?\d++)?", re.IGNORECASE
)
_SPELLS_OTHERS = re.compile(r"[\\&]")  # a text that may be read as another
_DATE = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})(?:[ T]\d{2}(?::?\d{2}){0,2}(?:\.\d+)?)?(?:[-+]\d+|Z)?"
)
_CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
_SPAN = re.compile(r"(?<![\d.])([-+]?\d++(?:\.\d++)?)\s*+([a-z]++)", re.IGNORECASE)
_NAMED_DAYS = frozenset(("now", "today", "tomorrow", "yesterday"))
_HOUR = 1 / 24
_UNIT_DAYS = {
    "us": _HOUR / 3.6e9,
    "microsecond": _HOUR / 3.6e9,
    "ms": _HOUR / 3.6e6,
    "millisecond": _HOUR / 3.6e6,
    "s": _HOUR / 3600,
    "sec": _HOUR / 3600,
    "second": _HOUR / 3600,
    "m": _HOUR / 60,
    "min": _HOUR / 60,
    "minute": _HOUR / 60,
    "h": _HOUR,
    "hr": _HOUR,
    "hour": _HOUR,
    "d": 1.0,
    "day": 1.0,
    "w": 7.0,
    "week": 7.0,
    "mon": 31.0,
    "month": 31.0,
    "y": 366.0,
    "year": 366.0,
}


class TooLong(Exception):
    """A value gets too long, or takes too long to compute; the message is the name of the function
    or operator.
    """


@dataclass(frozen=True, slots=True)
class Size:
    """A bound for one value.

    Attributes:
        low, high: between which it lies, if it is a number or is read as one; of an array, between
            which its elements lie.
        length: characters of its text, or elements.
        is_stored: whether something stored in a table is in it.
        is_gathered: whether it grows with the number of rows of tables.
        is_number: whether it surely is a number, which has a bounded number of digits.
        is_float: whether it is a number of a floating type, of which the text is short.
        text: the text itself, where it is known.
        item: characters of one element of an array; None where that is not known.
    """

    low: float = -math.inf
    high: float = math.inf
    length: float = TEXT_OF_NUMBER
    is_stored: bool = False
    is_gathered: bool = False
    is_number: bool = False
    is_float: bool = False
    text: str | None = None
    item: float | None = None

    @property
    def magnitude(self) -> float:
        """Return the largest absolute value of the number."""
        return max(abs(self.low), abs(self.high))

    @property
    def constant(self) -> float | None:
        """Return the number itself, where it is known."""
        if self.low == self.high:
            return self.low

        return None

    @property
    def is_long(self) -> bool:
        """Tell whether it is not proven to be short."""
        return self.length > LONG_CHARS

    @property
    def is_unknown(self) -> bool:
        """Tell whether the statement computes it, so that its text is not known."""
        if self.text is not None:
            return False

        return not self.is_stored


STORED = Size(length=1, is_stored=True)
TRUTH = Size(0, 1, 5)
EMPTY = Size(0, 0, 0)
TODAY = Size(10_000, 10_001)


def one_of(sizes: Iterable[Size]) -> Size:
    """Return the bound of a value that is one of several."""
    all_sizes = list(sizes)
    if len(all_sizes) == 1:
        return all_sizes[0]
    if not all_sizes:
        return EMPTY

    lows = [size.low for size in all_sizes]
    highs = [size.high for size in all_sizes]
    lengths = [size.length for size in all_sizes]
    return Size(
        min(lows),
        max(highs),
        max(lengths),
        is_stored=any(size.is_stored for size in all_sizes),
        is_gathered=any(size.is_gathered for size in all_sizes),
        is_number=all(size.is_number for size in all_sizes),
        is_float=all(size.is_float for size in all_sizes),
        item=_longest_item(all_sizes),
    )


def _longest_item(sizes: list[Size]) -> float | None:
    """Return how long an element of any of the arrays is at most; None where one is not known."""
    longest = 0.0
    for size in sizes:
        if size.item is None:
            return None

        longest = max(longest, size.item)

    return longest


def element_of(size: Size) -> Size:
    """Return the bound of an array's element or a row's field: no larger than all of it."""
    if size.item is None:
        return inexact(size)

    is_gathered = size.item >= GATHERED_CHARS
    return replace(size, length=size.item, is_gathered=is_gathered, text=None, item=None)


def together(sizes: Iterable[Size]) -> Size:
    """Return the bound of several values put together into one, of which no number is known."""
    all_sizes = list(sizes)
    if len(all_sizes) == 1:
        return all_sizes[0]

    return Size(
        length=sum(size.length for size in all_sizes),
        is_stored=any(size.is_stored for size in all_sizes),
        is_gathered=any(size.is_gathered for size in all_sizes),
    )


def inexact(size: Size) -> Size:
    """Return the bound without the known text."""
    if size.text is None:
        return size

    return replace(size, text=None)


def unnumbered(size: Size) -> Size:
    """Return the bound of something that is no number, or whose number is not known."""
    return replace(size, low=-math.inf, high=math.inf, is_number=False, is_float=False, text=None)


def between(low: float, high: float, like: Size, *, length: float | None = None) -> Size:
    """Return the bound of a number from `low` to `high` that comes from where `like` does."""
    is_known = low < math.inf and high > -math.inf  # what is no number compares as neither
    if not is_known:
        low, high = -math.inf, math.inf

    chars = like.length
    if length is not None:
        chars = length
    if like.is_float:
        chars = min(chars, TEXT_OF_NUMBER)

    return replace(like, low=low, high=high, length=chars)


def of_number(value: float) -> Size:
    """Return the bound of a known number."""
    return Size(value, value, len(f"{value:.17g}"), is_number=True)


def of_text(value: str) -> Size:
    """Return the bound of a known text.

    As a number it counts as the one it spells, or as the largest one in it.
    """
    plain = value.strip().replace("_", "")
    is_short = len(plain) < LONG_CHARS
    if is_short and _NUMBER.fullmatch(plain):
        return _of_spelled_number(value, plain)

    length = len(value)
    spells_others = _SPELLS_OTHERS.search(value) is not None
    if spells_others or length > _MOST_TEXT:
        return Size(length=length, text=value)

    written = _NUMBERS.findall(value)
    numbers = sorted([1.0, *map(_float, written)])
    most = numbers[-1]
    huge = len(numbers) - bisect_right(numbers, _LARGEST_FLOAT)
    longest = length + MOST_DIGITS * huge
    return Size(-most, most, longest, text=value)


def _of_spelled_number(value: str, plain: str) -> Size:
    number = _float(plain)
    length = len(value)
    if abs(number) >= _LARGEST_FLOAT:
        length = _digits_spelled(plain)

    spelled = Size(length=length, text=value)
    return between(number, number, spelled)


def of_digits(value: str) -> Size:
    """Return the bound of a number that is written with a point or an exponent."""
    size = of_text(value)
    digits = _digits(size.magnitude)
    length = max(size.length, digits)
    return replace(size, length=length, text=None, is_number=True)


def days_of(size: Size) -> Size:
    """Return the bound of a text that is read as a moment or a span of time; others are what
    they are.
    """
    if size.text is None:
        return size

    text = size.text.strip()
    is_number = _NUMBER.fullmatch(text) is not None
    if is_number:
        return size

    days = _days(text)
    if days is None:
        return unnumbered(size)

    return replace(size, low=days, high=days, text=None)


def _days(text: str) -> float | None:
    match = _DATE.fullmatch(text)
    if match is not None:
        year, month, day = map(int, match.groups())
        return _days_of_date(year, month, day)

    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        hours, minutes, seconds = map(float, clock.groups(default="0"))
        return hours * _HOUR + minutes * _HOUR / 60 + seconds / 86_400

    if text.lower() in _NAMED_DAYS:
        return TODAY.high

    return _days_of_span(text)


def _days_of_date(year: int, month: int, day: int) -> float | None:
    try:
        return float(date(year, month, day).toordinal() - _EPOCH)
    except ValueError:
        return None


def _days_of_span(text: str) -> float | None:
    """Return the length of `3 days 2 hours` in days; None if it is no span."""
    spans = _SPAN.findall(text)
    if not spans:
        return None
    if _SPAN.sub("", text).strip():
        return None

    days = 0.0
    for amount, unit in spans:
        name = unit.lower()
        unit_days = _UNIT_DAYS.get(name) or _UNIT_DAYS.get(name[:-1])
        if unit_days is None:
            return None

        days += float(amount) * unit_days

    return days


def _float(text: str) -> float:
    if text[:2].lower() in ("0x", "0o", "0b"):
        return float(int(text, 0))

    try:
        return float(text)
    except ValueError:
        return math.inf


def _digits_spelled(plain: str) -> int:
    """Return how many digits a number has that is beyond floats, such as 1e310."""
    try:
        exponent = Decimal(plain).adjusted()
    except InvalidOperation:  # hexadecimal, or an exponent without end
        return MOST_DIGITS

    digits = abs(exponent) + 1
    return min(max(len(plain), digits), MOST_DIGITS)


def outgrown(history: list[Size]) -> Size:
    """Return the bound of a column of a recursive query, from what its rounds gave.

    What grows by the same amount in each round grows on for `_ROUNDS` more; what grows faster has
    no bound: only numbers may.
    """
    last = history[-1]
    depths = [-size.low for size in history]
    highs = [size.high for size in history]
    lengths = [size.length for size in history]
    low = -_grown(depths)
    high = _grown(highs)
    length = _outgrown_length(last, low, high, _grown(lengths))
    if length == math.inf:
        raise TooLong("||")

    return inexact(between(low, high, last, length=length))


def _outgrown_length(last: Size, low: float, high: float, grown: float) -> float:
    """Return how long a column of a recursive query may get: a number no longer than its digits.

    Args:
        last: what the last round gave.
        low, high: between which the column's numbers lie in the end.
        grown: how long its text would get if it were no number.
    """
    if last.is_float:
        return last.length
    if not last.is_number:
        return grown

    digits = _digits(max(-low, high))
    is_bounded = math.isfinite(high - low)
    if is_bounded:
        return last.length + digits

    return min(grown, digits)


def _grown(values: list[float]) -> float:
    """Return what the last of the values grows to; infinity where it grows faster and faster."""
    earlier, previous, last = values[-3:]
    before, after = previous - earlier, last - previous
    is_faster = not math.isfinite(last) or after > before * 1.01 + 1e-09
    if is_faster:
        return math.inf

    growth = max(after, 0)
    return last + growth * _ROUNDS


# ------------------------------------------------------------------------------
# operators


def product(left: float, right: float) -> float:
    """Return `left * right`, where nothing times infinity is nothing."""
    has_nothing = 0 in (left, right)
    if has_nothing:
        return 0.0

    return left * right


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(max(base, 1.0), exponent)
    except OverflowError:
        return math.inf


def _digits(number: float) -> float:
    """Return how many characters a number up to `number` may be written with, without a long
    fraction.
    """
    if number == math.inf:
        return MOST_DIGITS

    digits = math.log10(max(number, 1))
    with_sign = 2 + digits
    return max(_INTEGER_CHARS, with_sign)


def _sum(left: Size, right: Size) -> Size:
    low = left.low + right.low
    high = left.high + right.high
    return between(low, high, _added(left, right))


def _difference(left: Size, right: Size) -> Size:
    low = left.low - right.high
    high = left.high - right.low
    return between(low, high, _added(left, right))


def _added(left: Size, right: Size) -> Size:
    """Return where a sum comes from; one of numbers has about as many digits as the longer one."""
    both = _numeric(left, right)
    most = left.magnitude + right.magnitude
    if not math.isfinite(most):
        return both

    length = max(left.length, right.length, _digits(most))
    return replace(both, length=length)


def _numeric(left: Size, right: Size) -> Size:
    """Return what an operation of two numbers comes from. A float makes the result one."""
    both = together((left, right))
    is_number = left.is_number or right.is_number
    is_float = left.is_float or right.is_float
    return replace(both, is_number=is_number, is_float=is_float)


def _times(left: Size, right: Size) -> Size:
    whole = _numeric(left, right)
    ends = [
        product(left.low, right.low),
        product(left.low, right.high),
        product(left.high, right.low),
        product(left.high, right.high),
    ]
    return between(min(ends), max(ends), whole)


def _size_of_quotient(left: Size, right: Size) -> Size:
    whole = _numeric(left, right)
    length = whole.length + TEXT_OF_NUMBER
    smallest = _smallest(right)
    if smallest == 0:
        return between(-math.inf, math.inf, whole, length=length)

    most = left.magnitude / smallest
    low = -most
    is_positive = left.low >= 0 and right.low > 0
    if is_positive:
        low = 0.0

    return between(low, most, whole, length=length)


def _smallest(size: Size) -> float:
    """Return the smallest absolute value of the number."""
    has_zero = size.low <= 0 <= size.high
    if has_zero:
        return 0.0

    return min(abs(size.low), abs(size.high))


def _remainder(left: Size, right: Size) -> Size:
    most = min(left.magnitude, right.magnitude)
    low = 0.0
    if left.low < 0:
        low = -most

    return between(low, most, _numeric(left, right))


def _size_of_power(left: Size, right: Size) -> Size:
    whole = _numeric(left, right)
    if whole.is_stored:  # digits of what is stored are few
        return between(-math.inf, math.inf, whole)

    base = left.magnitude
    if right.low < 0:
        base = max(base, _reciprocal(left))

    most = _power(base, right.magnitude)
    length = max(whole.length, _digits(most))
    return between(-most, most, whole, length=length)


def _reciprocal(size: Size) -> float:
    """Return the largest value of 1 divided by the number."""
    smallest = _smallest(size)
    if smallest == 0:
        return math.inf

    return 1 / smallest


def _size_of_shift(left: Size, right: Size) -> Size:
    both = together((left, right))
    times = _power(2, right.magnitude)
    most = product(left.magnitude, times)
    return between(-most, most, both)


def _no_larger(left: Size, right: Size) -> Size:
    both = together((left, right))
    most = max(left.magnitude, right.magnitude)
    return between(-most, most, both)


def _size_of_sum(left: Size, right: Size) -> Size:
    both = together((left, right))
    most = left.magnitude + right.magnitude
    return between(-most, most, both)


def concatenated(left: Size, right: Size) -> Size:
    """Return the bound of `left || right`."""
    both = together((left, right))
    texts = [constant_text(left), constant_text(right)]
    known_texts = [text for text in texts if text is not None]
    is_short = left.length + right.length <= _MOST_TEXT
    is_known = is_short and known_texts == texts
    if is_known:
        return of_text("".join(known_texts))

    return unnumbered(both)


def constant_text(size: Size) -> str | None:
    """Return the text of a known text or whole number; None where it is not known."""
    if size.text is not None:
        return size.text

    number = size.constant
    if number is None:
        return None

    is_exact = abs(number) < _EXACT_FLOATS and number.is_integer()
    if is_exact:
        return f"{number:.0f}"

    return None


OPERATORS: dict[str, Callable[[Size, Size], Size]] = {
    "+": _sum,
    "-": _difference,
    "*": _times,
    "/": _size_of_quotient,
    "%": _remainder,
    "^": _size_of_power,
    "<<": _size_of_shift,
    ">>": _no_larger,
    "&": _no_larger,
    "|": _size_of_sum,
    "||": concatenated,
}
"""Bounds of operators whose result may be a number or longer than both sides."""
