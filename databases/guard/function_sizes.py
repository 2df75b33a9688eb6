"""The bound of what a built-in function gives, from the bounds of its arguments, and the steps it takes to compute."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from databases.guard.facts import words
from databases.guard.operator_sizes import ARITHMETIC
from databases.guard.row_sizes import AGGREGATES, Place
from databases.guard.sizes import (
    TEXT_OF_NUMBER,
    Size,
    constant_text,
    escaped,
    inexact,
    largest_number,
    of_number,
    one_of,
    product,
    together,
)

# Functions that compare every character of the first argument with those of others: steps a pair.
_SEARCHES = {
    **dict.fromkeys(words("strpos position replace split_part string_to_array string_to_table starts_with"), 1),
    **dict.fromkeys(words("like notlike textlike textnlike texticlike bpcharlike bpchariclike bytealike"), 1),
    **dict.fromkeys(words("translate btrim ltrim rtrim"), 4),
}
_SQUARES = {"normalize": 4, "is_normalized": 4}
_OTHERS = 5  # whatever else has two long arguments: polygons, paths, arrays, JSON
_CONCATENATIONS = words(
    "concat concat_ws coalesce greatest least format json_build_array json_build_object jsonb_build_array "
    "jsonb_build_object array_cat array_append array_prepend textcat overlay row_to_json to_json to_jsonb"
)
_ESCAPES = words(
    "encode quote_literal quote_nullable quote_ident to_json to_jsonb row_to_json json_build_array json_build_object "
    "jsonb_build_array jsonb_build_object array_to_json xmlforest text varchar convert_to decode upper"
)
_KEEP_NUMBERS = words(
    "abs ceil ceiling floor round trunc max min avg int2 int4 int8 float4 float8 numeric sign mod div first_value "
    "last_value lag lead nth_value percentile_cont percentile_disc any_value unnest nullif coalesce sqrt cbrt ln log "
    "log10 left right substr substring btrim ltrim rtrim trim upper lower mode"
)
_LENGTHS = words(
    "length char_length character_length octet_length bit_length array_length cardinality json_array_length "
    "jsonb_array_length strpos position array_position array_upper"
)
_COUNTS = words("count row_number rank dense_rank ntile regr_count")
_SMALL = words("random width_bucket cume_dist percent_rank sin cos tan degrees radians pi ascii isfinite")
_UNBOUNDED_FIELDS = frozenset(("epoch", "julian", "microseconds", "milliseconds"))
_WIDTH = re.compile(r"%(?:\d+\$)?-?(?:(\d+)|(\*))?(?:\d+\$)?[sIL]?")
_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})")
_STEP = re.compile(r"\s*[-+]?(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours", "hr", "hrs"), 3600.0),
}
_DAY_S = 86_400.0
_UNKNOWN_SPAN_DAYS = 366


def steps_of(name: str, sizes: Sequence[Size]) -> float:
    """How many steps the function takes that nothing interrupts."""
    if name in _SEARCHES and sizes:
        longest = max((size.length for size in sizes[1:]), default=1)
        return _SEARCHES[name] * product(sizes[0].length, longest)
    if name in _SQUARES:
        return _SQUARES[name] * product(sizes[0].length, sizes[0].length) if sizes else 0
    if name in _CONCATENATIONS or len(sizes) < 2 or AGGREGATES.fullmatch(name):
        return 0
    first, second = sorted((size.length for size in sizes), reverse=True)[:2]
    return _OTHERS * product(first, second) if second > TEXT_OF_NUMBER else 0


def result_of(name: str, sizes: list[Size], place: Place) -> Size:
    """The bound of what the function gives."""
    builder = _BUILDERS.get(name)
    if builder is not None and sizes:
        return builder(sizes)
    joined = escaped(sizes) if name in _ESCAPES else together(sizes)
    joined = replace(joined, length=max(joined.length, TEXT_OF_NUMBER))
    if name in _COUNTS:
        return Size(place.rows, TEXT_OF_NUMBER, joined.is_stored or place.reads_tables, is_natural=True)
    if AGGREGATES.fullmatch(name):
        return replace(joined, length=product(joined.length, place.rows), number=joined.number)
    is_natural = name in _LENGTHS or name == "abs" or (name in _KEEP_NUMBERS and all(size.is_natural for size in sizes))
    return Size(_number_of(name, sizes, place), joined.length, joined.is_stored, is_natural)


def _number_of(name: str, sizes: Sequence[Size], place: Place) -> float:
    """How large the number may be that the function gives."""
    largest = max((size.number for size in sizes), default=0)
    if name in _LENGTHS:
        return max((size.length for size in sizes), default=0)
    if name == "sum":
        return product(largest, place.rows)
    if name in _SMALL:
        return 1000
    if name in ("extract", "date_part"):
        part = sizes[0].text if sizes else None
        is_bounded = part is not None and part not in _UNBOUNDED_FIELDS
        return 10_000 if is_bounded else math.inf if not any(size.is_stored for size in sizes) else 1
    if name in _KEEP_NUMBERS or any(size.is_stored for size in sizes):
        return largest
    return math.inf


def _repeated(sizes: list[Size]) -> Size:
    times = sizes[1].number if len(sizes) > 1 else 1
    length = product(sizes[0].length, times)
    return Size(
        largest_number(length) if not any(size.is_stored for size in sizes) else sizes[0].number,
        length,
        any(size.is_stored for size in sizes),
    )


def _padded(sizes: list[Size]) -> Size:
    width = sizes[1] if len(sizes) > 1 else sizes[0]
    length = width.number if width.constant is not None else max(width.number, sizes[0].length)
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else largest_number(length), length, is_stored)


def _replaced(sizes: list[Size]) -> Size:
    """At worst every character, or every occurrence of a known text, becomes the new text."""
    if len(sizes) < 3:
        return sizes[0]
    old = max(1.0, sizes[1].length) if sizes[1].text is not None else 1.0
    length = product(sizes[0].length, max(1.0, sizes[2].length / old))
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else largest_number(length), length, is_stored)


def _replaced_by_pattern(sizes: list[Size]) -> Size:
    """The same, but the new text may hold the found one (`\\&`)."""
    if len(sizes) < 3:
        return sizes[0]
    new = sizes[2].text or ""
    groups = new.count("\\") or (sizes[2].text is None and not sizes[2].is_stored and sizes[2].length)
    length = product(sizes[0].length, max(1.0, sizes[2].length, groups or 0))
    is_stored = any(size.is_stored for size in sizes)
    return Size(sizes[0].number if is_stored else largest_number(length), length, is_stored)


def _formatted(sizes: list[Size]) -> Size:
    """`format`: the widths it asks for, and its arguments as often as it shows them."""
    longest = max((size.length for size in sizes[1:]), default=0)
    pattern = constant_text(sizes[0])
    is_stored = any(size.is_stored for size in sizes)
    if pattern is None:
        length = together(sizes).length if sizes[0].is_stored else math.inf
        return Size(together(sizes).number, length, is_stored)
    length = sizes[0].length
    for match in _WIDTH.finditer(pattern):
        width = float(match[1]) if match[1] else max((s.number for s in sizes[1:]), default=0) if match[2] else 0
        length += max(width, 2 * longest)
    return Size(max((size.number for size in sizes), default=0), length, is_stored)


def _joined_by(sizes: list[Size]) -> Size:
    """Array elements with a text between them: between any two characters of the array's, at worst."""
    joined = together(sizes)
    between = sizes[1].length if len(sizes) > 1 else 1
    return replace(joined, length=sizes[0].length + product(sizes[0].length, between), constant=None, text=None)


def _separated(sizes: list[Size]) -> Size:
    joined = together(sizes)
    return replace(joined, length=joined.length + product(sizes[0].length, len(sizes)), constant=None, text=None)


def _cut(sizes: list[Size]) -> Size:
    wanted = sizes[-1]
    if len(sizes) < 2 or wanted.constant is None:
        return inexact(sizes[0])
    is_stored = any(size.is_stored for size in sizes)
    length = min(sizes[0].length, wanted.number) if wanted.constant >= 0 else sizes[0].length
    return Size(sizes[0].number if is_stored else largest_number(length), length, is_stored)


def _substring(sizes: list[Size]) -> Size:
    return _cut(sizes) if len(sizes) > 2 else inexact(sizes[0])


def _polygon(sizes: list[Size]) -> Size:
    return Size(0, max(sizes[0].length, sizes[0].number if len(sizes) > 1 else 0), sizes[0].is_stored)


def _raised(sizes: list[Size]) -> Size:
    return ARITHMETIC["^"](sizes[0], sizes[1]) if len(sizes) > 1 else replace(sizes[0], number=math.inf)


def _exponential(sizes: list[Size]) -> Size:
    return ARITHMETIC["^"](of_number(math.e), sizes[0])


def _series(sizes: list[Size]) -> Size:
    limits = one_of(sizes[:2])
    return replace(inexact(limits), length=TEXT_OF_NUMBER, is_stored=any(size.is_stored for size in sizes))


_BUILDERS: dict[str, Callable[[list[Size]], Size]] = {
    "repeat": _repeated,
    "lpad": _padded,
    "rpad": _padded,
    "replace": _replaced,
    "array_replace": _replaced,
    "regexp_replace": _replaced_by_pattern,
    "format": _formatted,
    "array_to_string": _joined_by,
    "concat_ws": _separated,
    "polygon": _polygon,
    "power": _raised,
    "pow": _raised,
    "dpow": _raised,
    "exp": _exponential,
    "generate_series": _series,
    "to_number": lambda sizes: sizes[0],
    "left": _cut,
    "right": _cut,
    "substr": _substring,
    "substring": _substring,
}


def series_rows(sizes: Sequence[Size]) -> float:
    """How many rows `generate_series` gives."""
    if len(sizes) < 2:
        return 1
    step = sizes[2] if len(sizes) > 2 else of_number(1)
    is_of_dates = len(sizes) > 2 and (step.constant is None or sizes[0].text is not None)
    if is_of_dates:
        return _days(sizes[0], sizes[1]) * _DAY_S / _seconds(step)
    first, last = sizes[0].constant, sizes[1].constant
    is_known = first is not None and last is not None
    distance = abs((last or 0) - (first or 0)) if is_known else sizes[0].number + sizes[1].number
    by = abs(step.constant) if step.constant is not None and step.constant else 1.0 if step.is_stored else 1e-9
    return distance / by + 1


def _days(first: Size, last: Size) -> float:
    dates = [_DATE.match(size.text) for size in (first, last) if size.text is not None]
    known = [int(date[1]) * 366 + int(date[2]) * 31 + int(date[3]) for date in dates if date]
    return abs(known[1] - known[0]) + 1 if len(known) == 2 else _UNKNOWN_SPAN_DAYS


def _seconds(step: Size) -> float:
    match = _STEP.match(step.text or "")
    if match is None:
        return _DAY_S
    return max(1e-6, float(match[1]) * _SECONDS.get(match[2].lower(), _DAY_S))
