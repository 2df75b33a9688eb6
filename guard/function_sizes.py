"""Bound what a built-in function gives, by the bounds of its arguments."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from guard.builtin_costs import EXPANSION, FIELDS, NUMBERS, NUMBERS_OF, SPLITTING
from guard.row_sizes import Place, is_gathering
from guard.sizes import (
    GATHERED_CHARS,
    LONG_CHARS,
    MOST_DIGITS,
    OPERATORS,
    QUOTES,
    TEXT_OF_NUMBER,
    TODAY,
    Size,
    between,
    constant_text,
    days_of,
    element_of,
    inexact,
    of_number,
    one_of,
    product,
    together,
    unnumbered,
)

_WIDTH = re.compile(r"%(?:\d++\$)?-?(?:(\d++)|(\*))?(?:\d++\$)?[sIL]?")
_DIGIT = re.compile(r"\d")
_MOST_SCALE = 16_383  # digits after the point
_FACTORIAL_DIGITS = 6  # for each number that is multiplied
_MONTHS_DAYS = 366
_POINT_CHARS = 32.0
_ELEMENT_BYTES = 16.0  # that an element of an array takes at least
_RANGE_BYTES = 32  # that a character of a range costs
_CHARS_OF_ELEMENT = 2  # at least, of an array that is gathered from rows
_CLOCKS = frozenset(
    ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "current_date")
)


def result_of(name: str, sizes: list[Size], place: Place) -> Size:
    """Return the bound of what the function gives."""
    if is_gathering(name):
        return _gathered(name, sizes, place)
    if name in _CLOCKS:
        return TODAY
    if name == "random":
        return one_of([Size(0, 1), *sizes])
    if not sizes:
        return _numbered(name, sizes, place, Size())
    if name in _BUILDERS:
        return _BUILDERS[name](sizes)
    if name == "sum":
        return _summed(sizes[0], place)

    return _numbered(name, sizes, place, _made_of(name, sizes))


def _made_of(name: str, sizes: list[Size]) -> Size:
    """Return the bound of a value that is about as long as the arguments together."""
    joined = together(sizes)
    length = joined.length
    may_quote = name in EXPANSION and not joined.is_gathered  # what is stored has few quotes
    if may_quote:
        quotes = QUOTES * len(sizes)
        length = EXPANSION[name] * length + quotes

    length *= SPLITTING.get(name, 1.0)
    return replace(
        joined,
        length=max(length, TEXT_OF_NUMBER),
        text=None,
        is_number=False,
        is_float=False,
        item=None,
    )


def _gathered(name: str, sizes: Sequence[Size], place: Place) -> Size:
    """Bound what an aggregate gathers: as much as PostgreSQL is told to allow, or as a series has
    rows.
    """
    each = together(sizes)
    least = _ELEMENT_BYTES
    if name == "string_agg":
        least = 1.0

    of_row = max(each.length, least)
    length = product(of_row, place.rows)
    if name.startswith("range"):
        length *= _RANGE_BYTES

    is_gathered = each.is_gathered or place.reads_tables
    if is_gathered:
        length = GATHERED_CHARS

    like = Size(length=length, is_stored=each.is_stored, is_gathered=is_gathered)
    holds_arguments = name in NUMBERS_OF["all"] and sizes
    if not holds_arguments:
        return like

    first = sizes[0]
    elements = between(first.low, first.high, like)
    return replace(elements, item=first.length)


def _numbered(name: str, sizes: Sequence[Size], place: Place, like: Size) -> Size:
    """Return `like` with the bound of the number that the function gives."""
    if name in NUMBERS:
        most = NUMBERS[name]
        return between(-most, most, like, length=TEXT_OF_NUMBER)

    if name in NUMBERS_OF["rows"]:
        is_stored = like.is_stored or place.reads_tables
        whole = replace(like, is_stored=is_stored, is_gathered=False)
        return between(0, place.most_rows, whole, length=TEXT_OF_NUMBER)

    if name in NUMBERS_OF["length"]:
        return _length(sizes, like)
    if name in NUMBERS_OF["all"]:
        number = one_of(sizes)
        return between(number.low, number.high, like)

    is_like_first = name in NUMBERS_OF["first"]
    if sizes and is_like_first:
        return _bound_of_first(sizes[0], like, is_positive=name == "abs")

    return unnumbered(like)


def _bound_of_first(first: Size, like: Size, *, is_positive: bool) -> Size:
    """Return the bound of a number that differs from the first argument by at most one.

    Args:
        like: what is known of the result beside its number.
    """
    most = first.magnitude + 1
    low = -most
    if is_positive or first.low >= 0:
        low = 0.0

    return between(low, most, like)


def _length(sizes: Sequence[Size], like: Size) -> Size:
    """Return how long something is."""
    if not sizes:
        return like

    is_of_tables = like.is_stored or like.is_gathered
    lengths = [1.0, *(size.length for size in sizes)]
    most = max(lengths)
    if is_of_tables:
        most = math.inf

    number = replace(like, is_stored=is_of_tables, is_gathered=False)
    return between(0, most, number, length=TEXT_OF_NUMBER)


def _size_of_repeat(sizes: list[Size]) -> Size:
    text = sizes[0]
    times = 1.0
    if len(sizes) > 1:
        times = max(sizes[1].high, 0.0)

    length = product(text.length, times)
    return _text_of(sizes, length)


def _size_of_padding(sizes: list[Size]) -> Size:
    text = sizes[0]
    if len(sizes) == 1:
        return _text_of(sizes, text.length)

    width = sizes[1]
    length = max(width.high, 0.0)
    is_known = width.constant is not None
    if not is_known:
        length = max(length, text.length)

    return _text_of(sizes, length)


def _text_of(sizes: list[Size], length: float) -> Size:
    """Return a text that is made of the arguments."""
    whole = unnumbered(together(sizes))
    return replace(whole, length=length)


def _inserted_chars(inserted: Size, into: Size) -> float:
    """Return how long a text counts that is put into another many times.

    What is stored counts as 1, but may be of any length.
    """
    is_of_any_length = inserted.is_stored and into.is_gathered
    if is_of_any_length:
        return max(inserted.length, LONG_CHARS)

    return inserted.length


def _replaced(sizes: list[Size]) -> Size:
    """Bound a replacement: at worst every known or single character becomes the new text."""
    if len(sizes) < 3:  # noqa: PLR2004 - the text, the old and the new
        return sizes[0]

    text, old, new = sizes[:3]
    replaced = 1.0
    if old.text is not None:
        replaced = max(1.0, old.length)

    growth = _inserted_chars(new, text) / replaced
    times = max(1.0, growth)
    length = product(text.length, times)
    return _text_of(sizes, length)


def _replaced_by_pattern(sizes: list[Size]) -> Size:
    """Bound a replacement by a pattern: the new text may hold the found one (`\\&`)."""
    if len(sizes) < 3:  # noqa: PLR2004 - the text, the pattern and the new
        return sizes[0]

    text, _, new = sizes[:3]
    inserted = _inserted_chars(new, text)
    groups = 0.0
    if new.text is not None:
        groups = new.text.count("\\")
    elif not new.is_stored:
        groups = new.length

    times = max(1.0, inserted, groups)
    length = product(text.length, times)
    return _text_of(sizes, length)


def _formatted(sizes: list[Size]) -> Size:
    """Bound `format`: the widths it asks for, and its arguments as often as it shows them."""
    shape, *arguments = sizes
    pattern = constant_text(shape)
    if pattern is None:
        return _formatted_by_unknown(sizes)

    lengths = [size.length for size in arguments]
    longest = max(lengths, default=0.0)
    widest = _widest(pattern, arguments)
    length = shape.length
    for match in _WIDTH.finditer(pattern):
        length += _shown_length(match, longest, widest)

    return _text_of(sizes, length)


def _formatted_by_unknown(sizes: list[Size]) -> Size:
    """Bound a `format` of a pattern that is stored, which counts as short, or computed."""
    whole = unnumbered(together(sizes))
    pattern = sizes[0]
    if pattern.is_stored:
        return whole

    return replace(whole, length=math.inf)


def _shown_length(match: re.Match[str], longest: float, widest: float) -> float:
    """Return how long what stands for one place of a pattern may get."""
    width = 0.0
    if match[1]:
        width = float(match[1])
    elif match[2]:
        width = widest

    shown = longest
    is_quoted = match[0][-1] in "IL"
    if is_quoted:
        shown = 2 * longest

    return max(width, shown)


def _widest(pattern: str, arguments: Sequence[Size]) -> float:
    """Return the largest width that a pattern takes from its arguments, by a `*`."""
    highs = [argument.high for argument in arguments]
    if "$" in pattern:
        return max(highs, default=0.0)

    widths = [0.0]
    place = 0
    for match in _WIDTH.finditer(pattern.replace("%%", "")):
        if match[2]:
            widths += highs[place : place + 1]
            place += 1

        place += 1

    return max(widths)


def _joined_by(sizes: list[Size]) -> Size:
    """Bound array elements with a text between them: between any two characters of the array's, at
    worst.

    What is gathered has some characters a row.
    """
    array, *others = sizes
    inserted = [_inserted_chars(size, array) for size in others]
    between_them = max(inserted, default=1.0)
    if array.is_gathered:
        between_them = between_them / _CHARS_OF_ELEMENT - 1

    added = product(array.length, max(between_them, 0.0))
    length = array.length + added
    return _text_of(sizes, length)


def _separated(sizes: list[Size]) -> Size:
    """Bound `concat_ws`, whose values may be the elements of one array (VARIADIC)."""
    separator, *values = sizes
    is_gathered = any(size.is_gathered for size in values)
    if is_gathered:
        array = together(values)
        return _joined_by([array, separator])

    joined = together(sizes)
    separators = product(separator.length, len(sizes))
    length = joined.length + separators
    return _text_of(sizes, length)


def _size_of_cut(sizes: list[Size]) -> Size:
    whole = sizes[0].length
    amount = None
    if len(sizes) > 1:
        amount = sizes[-1].constant

    is_known = amount is not None and amount >= 0
    if not is_known:
        return _text_of(sizes, whole)

    length = min(whole, amount or 0.0)
    text = _text_of(sizes, length)
    if length < GATHERED_CHARS:
        return replace(text, is_gathered=False)

    return text


def _substring(sizes: list[Size]) -> Size:
    """Bound a part of a text: from where and how long, or by a pattern and its escape."""
    has_three = len(sizes) > 2  # noqa: PLR2004
    is_by_place = has_three and sizes[2].text is None
    if is_by_place:
        return _size_of_cut(sizes)

    whole = sizes[0].length
    return _text_of(sizes, whole)


def _polygon(sizes: list[Size]) -> Size:
    """Return the size of `polygon(points, circle)`, or of one that is made of another shape."""
    points = 0.0
    if len(sizes) > 1:
        points = max(sizes[0].high, 0.0)

    drawn = _POINT_CHARS * points
    length = max(sizes[0].length, drawn)
    return _text_of(sizes, length)


def _size_of_power(sizes: list[Size]) -> Size:
    if len(sizes) > 1:
        return OPERATORS["^"](sizes[0], sizes[1])

    return unnumbered(sizes[0])


def _exponential(sizes: list[Size]) -> Size:
    return OPERATORS["^"](of_number(math.e), sizes[0])


def _factorial(sizes: list[Size]) -> Size:
    factor = sizes[0]
    digits = _FACTORIAL_DIGITS * max(factor.high, 1.0)
    length = min(digits, MOST_DIGITS)
    return replace(unnumbered(factor), length=length)


def _rounded(sizes: list[Size]) -> Size:
    """Bound a number with as many digits after its point as it is told to have."""
    like = inexact(together(sizes))
    bound = _bound_of_first(sizes[0], like, is_positive=False)
    places = 0.0
    has_places = len(sizes) > 1 and not sizes[1].is_stored
    if has_places:
        places = max(sizes[1].high, 0.0)

    length = bound.length + min(places, _MOST_SCALE)
    return replace(bound, length=length)


def _series(sizes: list[Size]) -> Size:
    moments = map(days_of, sizes[:2])
    limits = one_of(moments)
    like = inexact(together(sizes))
    whole = between(limits.low, limits.high, like)
    is_of_numbers = all(size.text is None for size in sizes)
    is_bounded = is_of_numbers and not math.isinf(limits.magnitude)
    if not is_bounded:
        return replace(whole, length=TEXT_OF_NUMBER)

    ends = (f"{limits.low:.0f}", f"{limits.high:.0f}")
    digits = max(map(len, ends))
    return replace(whole, length=digits)


def _spelled(sizes: list[Size]) -> Size:
    """Bound `to_number`: its digits, whatever stands between them."""
    spelled = sizes[0]
    if spelled.text is None:
        return _text_of(sizes, spelled.length)

    digits = _DIGIT.findall(spelled.text)
    number = "".join(digits) or "0"
    most = float(number)
    return between(-most, most, inexact(spelled))


def _field_of(sizes: list[Size]) -> Size:
    """Bound `extract`: a field of a moment, or of a span of so many days."""
    moment = sizes[-1]
    like = replace(inexact(moment), length=TEXT_OF_NUMBER)
    name = (sizes[0].text or "").lower()
    if name not in FIELDS:
        return unnumbered(like)

    largest, in_a_day = FIELDS[name]
    days = days_of(moment).magnitude
    of_span = product(days, in_a_day)
    most = max(float(largest), of_span)
    return between(-most, most, like)


def _truncated(sizes: list[Size]) -> Size:
    """Bound `date_trunc`: a moment of the same year."""
    moment = sizes[0]
    if len(sizes) > 1:
        moment = days_of(sizes[1])

    low = moment.low - _MONTHS_DAYS
    return between(low, moment.high, inexact(moment))


def _bucket(sizes: list[Size]) -> Size:
    """Bound `width_bucket`: at most one more than there are buckets."""
    like = replace(together(sizes), is_gathered=False, length=10)
    last = sizes[-1]
    count = last.high
    is_of_bounds = len(sizes) == 2  # noqa: PLR2004 - the number and an array of bounds
    if is_of_bounds:
        count = last.length
    if is_of_bounds and last.is_stored:
        count = math.inf

    most = max(count, 0.0) + 1
    return between(0, most, like)


def _elements(sizes: list[Size]) -> Size:
    """Bound `unnest`: an element of any of the arrays."""
    elements = map(element_of, sizes)
    return one_of(elements)


def _quotient(sizes: list[Size]) -> Size:
    """Bound `div`, which divides as `/` does."""
    if len(sizes) > 1:
        divided = OPERATORS["/"]
        return divided(sizes[0], sizes[1])

    return unnumbered(sizes[0])


def _summed(size: Size, place: Place) -> Size:
    """Bound a sum over the rows, of which there may be one."""
    low = product(size.low, place.most_rows)
    high = product(size.high, place.most_rows)
    is_stored = size.is_stored or place.reads_tables
    like = replace(inexact(size), is_stored=is_stored)
    return between(min(low, size.low), max(high, size.high), like)


_BUILDERS: dict[str, Callable[[list[Size]], Size]] = {
    "repeat": _size_of_repeat,
    "lpad": _size_of_padding,
    "rpad": _size_of_padding,
    "bit": _size_of_padding,
    "bpchar": _size_of_padding,
    "replace": _replaced,
    "array_replace": _replaced,
    "regexp_replace": _replaced_by_pattern,
    "format": _formatted,
    "array_to_string": _joined_by,
    "concat_ws": _separated,
    "polygon": _polygon,
    "power": _size_of_power,
    "pow": _size_of_power,
    "dpow": _size_of_power,
    "numeric_power": _size_of_power,
    "exp": _exponential,
    "dexp": _exponential,
    "numeric_exp": _exponential,
    "factorial": _factorial,
    "round": _rounded,
    "trunc": _rounded,
    "generate_series": _series,
    "to_number": _spelled,
    "left": _size_of_cut,
    "right": _size_of_cut,
    "substr": _substring,
    "substring": _substring,
    "extract": _field_of,
    "date_part": _field_of,
    "date_trunc": _truncated,
    "width_bucket": _bucket,
    "div": _quotient,
    "unnest": _elements,
}


def series_rows(sizes: Sequence[Size]) -> float:
    """Return how many rows `generate_series` gives."""
    if len(sizes) < 2:  # noqa: PLR2004 - from and to
        return 1

    first, last = map(days_of, sizes[:2])
    step = of_number(1)
    if len(sizes) > 2:  # noqa: PLR2004 - and a step
        step = days_of(sizes[2])

    distance = max(last.high - first.low, first.high - last.low)
    has_zero = step.low <= 0 <= step.high
    is_endless = has_zero or not math.isfinite(distance)
    if is_endless:
        return math.inf

    by = min(abs(step.low), abs(step.high))
    return max(distance, 0.0) / by + 1
