"""Reads the figures out of a text: digits with their units, numerals in Chinese and English words.

A figure may also be the number of rows, a rank among them, or the number of a list's item; `is_place` and `list_items`
tell these apart, because such figures do not come from the data.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
# The unit follows its number; longer ones come first.
UNITS: dict[str, float] = {
    "千万": 1e7, "百万": 1e6, "万": 1e4, "亿": 1e8, "千": 1e3,
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "k": 1e3, "m": 1e6,
    "%": 0.01, "％": 0.01, "percent": 0.01,
}  # fmt: skip
_FIGURE = re.compile(
    rf"({NUMBER})[ \t]*(千万|百万|万|亿|千|%|％|(?:thousand|million|billion|percent|bn|k|m)\b)?", re.IGNORECASE
)
# An integer that counts the rows, ranks one of them or numbers a list's item does not come from the data. Every other
# integer, however small, must occur in the rows, the question or the SQL.
_MEASURE = "个条家行名位项座种款笔件辆台本人间所类组次部张份批门只棵栋场支队户"
_NO_ROWS = "percent|points?|dollars?|yuan|euros?|days?|weeks?|months?|years?|hours?|minutes?|seconds?|times?"
_COUNTED = re.compile(
    rf"[ \t]*(?:(?!个(?:百分点|月|小时|点))[{_MEASURE}]"
    rf"|(?!(?:{_NO_ROWS})\b)(?:[A-Za-z-]+[ \t]+){{0,2}}?(?:[A-Za-z]+s|people|series|data|in (?:all|total))\b)",
    re.IGNORECASE,
)
_COUNTED_ONE = re.compile(rf"[ \t]*(?!(?:{_NO_ROWS})\b)[A-Za-z]+", re.IGNORECASE)
_BEFORE_COUNT = re.compile(r"(?:共|\bthere (?:are|is|were|was)(?: only)?)[ \t有是计为]{0,4}\Z", re.IGNORECASE)
_NOT_A_COUNT = re.compile(
    r"(?:平均|均值|人均|每|最[高低大小多少长短]|总[额量值]|合计|增长|增加|减少|下降|相差|超过|高出|占|其中"
    r"|\b(?:average|mean|median|per|each|every|sum|total of|by|than|over|under|about|highest|lowest|maximum|minimum"
    r"|max|min|of (?:which|them|these|those)))[^\d。.;；,，]{0,8}\Z",
    re.IGNORECASE,
)
_BEFORE_RANK = re.compile(
    r"(?:第|前|后|排名|位列|\b(?:top|first|last|bottom|number|no\.|rank(?:ed|s|ing)?|#))[ \t]*#?\Z", re.I
)
_AFTER_RANK = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_ITEM = re.compile(r"(?:^|[\s,，;；:：。（(])(\d{1,3})(?:[.)](?=\s)|[、）．])", re.MULTILINE)
_ITEM_LINE = re.compile(r"^[ \t]*(\d{1,2})(?:[.)]\s|[、）])", re.MULTILINE)
_DIGITS = dict(zip("零〇一二两三四五六七八九", (0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_POWERS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_CHINESE = "零〇一二两三四五六七八九十百千万亿"
_CHINESE_FIGURE = re.compile(rf"(?<![第{_CHINESE}\d.])(?!一[{_MEASURE}])[{_CHINESE}]+(?=[{_MEASURE}])")
_CHINESE_WORDS = re.compile(f"(百分之)?([{_CHINESE}]+)")
_ENGLISH_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_ENGLISH = {word: number for number, word in enumerate(_ENGLISH_TO_TWENTY.split())} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
}


class Stated(NamedTuple):
    """A figure of the text: as it is written, its digits and unit, and where it stands."""

    written: str
    digits: str
    unit: str | None
    start: int
    end: int

    @property
    def value(self) -> float:
        """What the digits say; the unit does not count."""
        return float(self.digits.replace(",", ""))


def stated_figures(text: str) -> list[Stated]:
    """The figures that a text states, in its order."""
    found = [Stated(m[0].strip(), m[1], m[2], m.start(1), m.end(1)) for m in _FIGURE.finditer(text)]
    found += [Stated(m[0], str(_chinese(m[0])), None, m.start(), m.end()) for m in _CHINESE_FIGURE.finditer(text)]
    return sorted(found, key=lambda figure: figure.start)


def list_items(text: str, most: int) -> set[int]:
    """Positions of the numbers of a list's items: at the start of lines, or 1, 2, … with a dot or the like."""
    numbers = [(int(match[1]), match.start(1)) for match in _ITEM.finditer(text)]
    run: list[int] = []
    for number, start in numbers:
        if number == len(run) + 1 <= most:
            run.append(start)
    lines = {match.start(1) for match in _ITEM_LINE.finditer(text)}
    return lines | set(run) if len(run) > 1 else lines


def is_place(figure: Stated, text: str, row_counts: Collection[int]) -> bool:
    """Whether the text uses it as the number of rows, or as a rank among them."""
    if figure.unit is not None or not figure.value.is_integer():
        return False
    before, after = text[max(0, figure.start - 24) : figure.start], text[figure.end : figure.end + 40]
    if _BEFORE_RANK.search(before) or _AFTER_RANK.match(after):
        return 1 <= figure.value <= max(row_counts, default=0)
    if figure.value not in row_counts:
        return False
    counted = _COUNTED.match(after) or (figure.value == 1 and _COUNTED_ONE.match(after))
    return bool(_BEFORE_COUNT.search(before) or (counted and not _NOT_A_COUNT.search(before)))


def _chinese(numeral: str) -> int:
    """The value of a numeral in Chinese characters."""
    total = section = digit = 0
    for sign in numeral:
        if sign in _DIGITS:
            digit = digit * 10 + _DIGITS[sign] if digit else _DIGITS[sign]
        elif sign in _POWERS:
            section, digit = section + (digit or 1) * _POWERS[sign], 0
        else:
            total, section, digit = (total + section + digit or 1) * _MYRIADS[sign], 0, 0
    return total + section + digit


def figures_of_text(text: str) -> Iterator[float]:
    """The figures a text names, in digits, with units, and in words."""
    for digits, unit in _FIGURE.findall(text):
        value = float(digits.replace(",", ""))
        yield value
        if unit:
            yield value * UNITS[unit.lower()]
    for percent, numeral in _CHINESE_WORDS.findall(text):
        value = _chinese(numeral)
        yield value / 100 if percent else value
        yield value
    yield from (_ENGLISH[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _ENGLISH)
