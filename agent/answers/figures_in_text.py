"""Reads the figures out of a text: digits with their units, numerals in Chinese and English words.

A figure may also be the number of rows, a rank among them, or the number of a list's item;
`is_count_or_rank` and `list_item_positions` tell these apart, because they do not come from the
data.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
# The unit follows its number; longer ones come first.
UNITS: dict[str, float] = {
    "万亿": 1e12, "千万": 1e7, "百万": 1e6, "万": 1e4, "亿": 1e8, "千": 1e3,
    "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12,
    "bn": 1e9, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12,
    "%": 0.01, "％": 0.01, "percent": 0.01, "per cent": 0.01,
}  # fmt: skip
_FIGURE = re.compile(
    rf"({NUMBER})[ \t]*"
    r"(万亿|千万|百万|万|亿|千|%|％"
    r"|(?:thousand|million|billion|trillion|per ?cent|bn|[kmbt])\b)?",
    re.IGNORECASE,
)
_IN_NAME = re.compile(r"[A-Za-z]_\Z")  # before the digits of a name such as sales_2017
# An integer that counts the rows, ranks one of them or numbers a list's item does not come from the
# data. Every other integer, however small, must occur in the rows, the question or the SQL.
_MEASURE = "个条家行名位项座种款笔件辆台本人间所类组次部张份批门只棵栋场支队户"
_NO_ROWS = (
    "percent|points?|dollars?|yuan|euros?"
    "|days?|weeks?|months?|years?|hours?|minutes?|seconds?|times?"
)
_COUNTED = re.compile(
    rf"\A[ \t]*(?:(?!个(?:百分点|月|小时|点))[{_MEASURE}]"
    rf"|(?!(?:{_NO_ROWS})\b)(?:[A-Za-z-]+[ \t]+){{0,2}}?"
    r"(?:[A-Za-z]+s|people|series|data|in (?:all|total))\b)",
    re.IGNORECASE,
)
_COUNTED_ONE = re.compile(rf"\A[ \t]*(?!(?:{_NO_ROWS})\b)[A-Za-z]+", re.IGNORECASE)
_BEFORE_COUNT = re.compile(
    r"(?:共|\bthere (?:are|is|were|was)(?: only)?)[ \t有是计为]{0,4}\Z", re.IGNORECASE
)
_NOT_A_COUNT = re.compile(
    r"(?:平均|均值|人均|每|最[高低大小多少长短]|总[额量值]|合计"
    r"|增长|增加|减少|下降|相差|超过|高出|占|其中"
    r"|\b(?:average|mean|median|per|each|every|sum|total of|by|than|over|under|about"
    r"|highest|lowest|maximum|minimum|max|min|of (?:which|them|these|those)))[^\d。.;；,，]{0,8}\Z",
    re.IGNORECASE,
)
_BEFORE_RANK = re.compile(
    r"(?:第|前|后|排名|位列|#|\b(?:top|first|last|bottom|number|no\.|rank(?:ed|s|ing)?))[ \t]*#?\Z",
    re.I,
)
_AFTER_RANK = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_BEFORE_QUARTER = re.compile(r"(?:(?<![a-z])Q|\bquarter)[ \t]*\Z", re.IGNORECASE)
_AFTER_QUARTER = re.compile(r"[ \t]{0,20}季|(?:st|nd|rd|th)[ \t]{1,20}quarter\b", re.IGNORECASE)
_QUARTERS = ("1", "2", "3", "4")
_MONTH_OF_DATE = re.compile(r"\b\d{4}-(0[1-9]|1[0-2])\b")
_ITEM = re.compile(r"(?:^|[\s,，;；:：。（(])(\d{1,3})(?:[.)](?=\s)|[、）．])", re.MULTILINE)
_ITEM_LINE = re.compile(r"^[ \t]*(\d{1,2})(?:[.)]\s|[、）])", re.MULTILINE)
_DIGITS = dict(zip("零〇一二两三四五六七八九", (0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_POWERS = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_CHINESE = "零〇一二两三四五六七八九十百千万亿"
_NONZERO = "一二两三四五六七八九"
# Words are made of these characters, too. A numeral is what counts things, a percentage, or as long
# as no word is: with a digit and a power of ten, and no two digits in a row.
_CHINESE_FIGURE = re.compile(
    rf"百分之(?!百)(?P<percent>[{_CHINESE}]+)(?:点(?P<decimals>[{_CHINESE}]+))?"
    rf"|(?<![第{_CHINESE}\d.])(?:(?!一[{_MEASURE}])[{_CHINESE}]+(?=[{_MEASURE}])"
    rf"|(?=[{_CHINESE}]*[{_NONZERO}])(?=[{_CHINESE}]*[十百千万亿])(?![{_CHINESE}]*[{_NONZERO}]{{2}})"
    rf"[{_CHINESE}]{{3,}}(?![{_CHINESE}]|世纪))"
)
_CHINESE_WORDS = re.compile(f"(百分之)?([{_CHINESE}]+)")
_LONGEST_NUMERAL = 24  # Chinese characters; a longer row of them is no figure
_ENGLISH_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_ENGLISH_POWERS = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
}
_ENGLISH_TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ENGLISH = {
    **{word: number for number, word in enumerate(_ENGLISH_TO_TWENTY.split())},
    **dict(zip(_ENGLISH_TENS, range(30, 100, 10), strict=True)),
    **_ENGLISH_POWERS,
}
_ENGLISH_WORD = "|".join(sorted(_ENGLISH, key=len, reverse=True))
_ENGLISH_FIGURE = re.compile(
    rf"\b(?:{_ENGLISH_WORD})"
    rf"(?:(?:[ -]|(?<=hundred|housand|million|billion) and )(?:{_ENGLISH_WORD}))*\b"
    r"(?:[ \t]+(per ?cent\b))?",
    re.IGNORECASE,
)
_LEAST_ENGLISH = 11  # smaller numbers in words often count what the text itself says: "two reasons"


class StatedFigure(NamedTuple):
    """A figure of a text.

    Attributes:
        digits: may have thousands separators.
        start, end: of the digits in the text.
        is_quarter: whether it is the number of a quarter of a year.
    """

    written: str
    digits: str
    unit: str | None
    start: int
    end: int
    is_quarter: bool = False

    @property
    def value(self) -> float:
        """Return the number that the digits write; the unit does not count."""
        return float(self.digits.replace(",", ""))


def stated_figures(text: str) -> list[StatedFigure]:
    """Return the figures that a text states, in its order."""
    figures: list[StatedFigure] = []
    for match in _FIGURE.finditer(text):
        before = max(0, match.start() - 2)
        if not _IN_NAME.search(text, before, match.start()):
            figures.append(_stated_figure(match))

    for match in _CHINESE_FIGURE.finditer(text):
        if len(match[0]) <= _LONGEST_NUMERAL:
            figures.append(_stated_in_chinese(match))

    for match in _ENGLISH_FIGURE.finditer(text):
        in_words = _stated_in_english(match)
        if in_words is not None:
            figures.append(in_words)

    return sorted(figures, key=lambda figure: figure.start)


def _stated_figure(match: re.Match[str]) -> StatedFigure:
    start, end = match.span(1)
    is_quarter = match[1] in _QUARTERS and _is_beside_quarter(match.string, start, end)
    return StatedFigure(match[0].strip(), match[1], match[2], start, end, is_quarter)


def _is_beside_quarter(text: str, start: int, end: int) -> bool:
    if _BEFORE_QUARTER.search(text, max(0, start - 10), start):
        return True

    return _AFTER_QUARTER.match(text, end) is not None


def _stated_in_chinese(match: re.Match[str]) -> StatedFigure:
    written, start, end = match[0], match.start(), match.end()
    if match["percent"] is not None:
        digits = str(_chinese(match["percent"]))
        if match["decimals"]:
            digits += "." + "".join(str(_chinese(digit)) for digit in match["decimals"])

        return StatedFigure(written, digits, "%", start, end)

    value = _chinese(written)
    for unit in ("万亿", "亿", "万"):
        if written.endswith(unit) and written != unit:
            return StatedFigure(written, str(value // int(UNITS[unit])), unit, start, end)

    return StatedFigure(written, str(value), None, start, end)


def _stated_in_english(match: re.Match[str]) -> StatedFigure | None:
    value = _english(match[0])
    words = re.findall(r"[a-z]+", match[0].lower())
    is_vague = all(word in _ENGLISH_POWERS for word in words)  # "a million"
    if is_vague or value < _LEAST_ENGLISH:
        return None

    return StatedFigure(match[0], str(value), match[1], match.start(), match.end())


def _english(numeral: str) -> int:
    """Return the value of a numeral in English words."""
    total = section = 0
    for word in re.findall(r"[a-z]+", numeral.lower()):
        number = _ENGLISH.get(word, 0)
        if word not in _ENGLISH_POWERS:
            section += number
        elif word == "hundred":
            section = (section or 1) * number
        else:
            total, section = total + (section or 1) * number, 0

    return total + section


def quarters_of_dates(text: str) -> set[int]:
    """Return the quarters in which the dates of a text lie, as PostgreSQL writes them."""
    return {(int(month) + 2) // 3 for month in _MONTH_OF_DATE.findall(text)}


def list_item_positions(text: str, most: int) -> set[int]:
    """Return where the numbers stand that only number the items of a list: "1. … 2. …".

    Args:
        most: how many items a list within a line can have; lists of lines may be longer.
    """
    positions = {match.start(1) for match in _ITEM_LINE.finditer(text)}
    within_lines: list[int] = []  # of 1, 2, 3 …, in this order
    for match in _ITEM.finditer(text):
        expected = len(within_lines) + 1
        if int(match[1]) == expected and expected <= most:
            within_lines.append(match.start(1))

    if len(within_lines) > 1:
        positions.update(within_lines)

    return positions


def is_count_or_rank(figure: StatedFigure, text: str, row_counts: Collection[int]) -> bool:
    """Tell whether the text uses the figure as the number of rows, or as a rank among them."""
    if figure.unit is not None or figure.is_quarter or not figure.value.is_integer():
        return False

    before = text[max(0, figure.start - 24) : figure.start]
    after = text[figure.end : figure.end + 40]
    if _BEFORE_RANK.search(before) or _AFTER_RANK.match(after):
        return 1 <= figure.value <= max(row_counts, default=0)
    if figure.value not in row_counts:
        return False
    if _BEFORE_COUNT.search(before):
        return True

    return _counts_things(figure, after) and not _NOT_A_COUNT.search(before)


def _counts_things(figure: StatedFigure, after: str) -> bool:
    if _COUNTED.match(after):
        return True

    return figure.value == 1 and _COUNTED_ONE.match(after) is not None


def _chinese(numeral: str) -> int:
    """Return the value of a numeral in Chinese characters."""
    total = section = digit = 0
    for sign in numeral:
        if sign in _DIGITS:
            digit = digit * 10 + _DIGITS[sign]
        elif sign in _POWERS:
            section += (digit or 1) * _POWERS[sign]
            digit = 0
        else:
            total = (total + section + digit or 1) * _MYRIADS[sign]
            section = digit = 0

    return total + section + digit


def figures_of_text(text: str) -> Iterator[float]:
    """Yield the figures a text names, in digits, with units, and in words."""
    for digits, unit in _FIGURE.findall(text):
        value = float(digits.replace(",", ""))
        yield value
        if unit:
            yield value * UNITS[unit.lower()]

    for percent, numeral in _CHINESE_WORDS.findall(text):
        if len(numeral) > _LONGEST_NUMERAL:
            continue

        number = _chinese(numeral)
        yield number
        if percent:
            yield number / 100

    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _ENGLISH:
            yield _ENGLISH[word]

    for match in _ENGLISH_FIGURE.finditer(text):
        yield _english(match[0])
