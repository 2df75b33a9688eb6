"""The ways in which files write numbers, dates and truth values, and what SQL gets of each.

A form says by a regular expression which texts it reads; whole batches are tried at once, because a
call of Python per cell would take minutes for a million rows.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

ColumnType = Literal[
    "boolean", "integer", "numeric", "percentage", "date", "timestamp", "timestamptz", "text"
]
SQL_TYPES: dict[ColumnType, str] = {
    "boolean": "boolean",
    "integer": "bigint",
    "numeric": "numeric",
    "percentage": "numeric",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "text": "text",
}
SEPARATOR = "\x00"
"""Between values that are tried at once; files' values have none."""

_TRUE = frozenset(("true", "t", "yes", "y", "是", "真", "对", "√", "✓"))
_FALSE = frozenset(("false", "f", "no", "n", "否", "假", "错", "×", "✗"))
NULLS = frozenset(
    ("", "null", "none", "nil", "n/a", "na", "#n/a", "nan", "-", "--", "—", "——", "无", "空", "\\n")
)
"""Texts that stand for no value where the column is no text, in lower case."""
SHEET_ERRORS = frozenset(
    ("#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!", "#getting_data", "#spill!")
)
"""What spreadsheets show where a formula failed."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_MONTH_NAMES = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR, _MONTH, _DAY = r"(?:1[5-9]|2[0-2])\d\d", r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
_ZONE = r"\s?(?:Z|UTC|[+-](?:0\d|1[0-4]):?[0-5]\d)"
_SIGN, _MONEY = r"[+\-−]?", r"[¥￥$€£]?\s?"
_LONG = r"(?:0|[1-9]\d{0,17})"  # what fits eight bytes
_DIGITS, _FRACTION = r"(?:0|[1-9]\d*+)", r"(?:\.\d*+)?"
_GROUPS = r"(?:[1-9]\d{0,2}(?:[,，]\d{3})++|0|[1-9]\d*+)"
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_HOUR = re.compile(r"(?<=[T\s])\d{1,2}:")

Convert = Callable[[str], str | None]


@dataclass(frozen=True)
class ValueForm:
    """One way of writing values of a type.

    Attributes:
        pattern: the pattern of one value, without spaces around it.
        convert: gives the value as PostgreSQL reads it; None: it is none after all (30 February).
        plain: the pattern of values that PostgreSQL reads as they are; None: there are none.
    """

    name: str
    type: ColumnType
    pattern: str
    convert: Convert
    plain: str | None = None
    one: re.Pattern[str] = field(init=False, repr=False, compare=False)
    many: re.Pattern[str] = field(init=False, repr=False, compare=False)
    many_plain: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; patterns are compiled once, also for values that are joined.
        plain = None
        if self.plain is not None:
            plain = re.compile(rf"(?:(?>{self.plain})?+{SEPARATOR})*+")

        set_ = object.__setattr__
        set_(self, "one", re.compile(self.pattern, re.IGNORECASE))
        set_(self, "many", re.compile(rf"(?:(?:{self.pattern})?{SEPARATOR})*", re.IGNORECASE))
        set_(self, "many_plain", plain)

    def read(self, value: str) -> str | None:
        """Return one value as PostgreSQL reads it; None: it is not written this way."""
        if self.one.fullmatch(value) is None:
            return None

        return self.convert(value)

    def reads_all(self, joined: str) -> bool:
        """Tell whether all values, each ended by a separator, may be written this way."""
        return self.are_plain(joined) or self.many.fullmatch(joined) is not None

    def are_plain(self, joined: str) -> bool:
        """Tell whether PostgreSQL reads all values, each ended by a separator, as they are."""
        return self.many_plain is not None and self.many_plain.fullmatch(joined) is not None


def _same(value: str) -> str:
    return value


def _integer(value: str) -> str:
    return value.replace("−", "-")


def _number(value: str) -> str:
    negative = any(sign in value for sign in "(-−")
    digits = re.sub(r"[^0-9.]", "", value)
    return f"-{digits}" if negative else digits


def _percentage(value: str) -> str:
    number = _number(value.rstrip("%％ "))
    return f"{number}e-2"


def _boolean(value: str) -> str | None:
    lowered = value.lower()
    if lowered in _TRUE:
        return "t"

    return "f" if lowered in _FALSE else None


def _iso_date(year: str, month: str, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _parts(order: str) -> Convert:
    """Return a conversion of dates whose numbers stand in an order such as `ymd`."""
    places = [order.index(part) for part in "ymd"]

    def convert(value: str) -> str | None:
        numbers = re.findall(r"\d+", value)
        year, month, day = (numbers[place] for place in places)
        return _iso_date(year, month, day)

    return convert


def _year_first(value: str) -> str | None:
    if _ISO.fullmatch(value) and int(value[8:]) <= 28:
        return value

    year, month, day = re.findall(r"\d+", value)
    return _iso_date(year, month, day)


def _month_only(value: str) -> str | None:
    year, month = re.findall(r"\d+", value)
    return _iso_date(year, month, "1")


def _compact(value: str) -> str | None:
    return _iso_date(value[:4], value[4:6], value[6:])


def _date_with_month_name(value: str) -> str | None:
    month = _MONTHS[re.findall(r"[a-z]+", value.lower())[0][:3]]
    numbers = re.findall(r"\d+", value)
    year, day = sorted(numbers, key=len, reverse=True)
    return _iso_date(year, str(month), day)


def _timed(read_date: Convert) -> Convert:
    """Return a conversion of dates with a time after them."""

    def convert(value: str) -> str | None:
        hour = _HOUR.search(value)
        if hour is None:
            return None

        day = read_date(value[: hour.start()].rstrip().removesuffix("T").strip())
        if day is None:
            return None

        time = value[hour.start() :].replace(",", ".")
        return f"{day} {time}"

    return convert


# A group of its own can't be repeated, so the writings are listed.
_YMD = (
    "(?:"
    + "|".join(
        (
            rf"{_YEAR}-{_MONTH}-{_DAY}",
            rf"{_YEAR}/{_MONTH}/{_DAY}",
            rf"{_YEAR}\.{_MONTH}\.{_DAY}",
            rf"{_YEAR}\s?年\s?{_MONTH}\s?月\s?{_DAY}\s?[日号]?",
        )
    )
    + ")"
)
_DMY = "(?:" + "|".join(rf"{_DAY}{sign}{_MONTH}{sign}{_YEAR}" for sign in ("-", "/", r"\.")) + ")"
_MDY = "(?:" + "|".join(rf"{_MONTH}{sign}{_DAY}{sign}{_YEAR}" for sign in ("-", "/", r"\.")) + ")"
_WORDED = rf"(?:{_DAY}[\s-]{_MONTH_NAMES}\.?[\s,-]\s?{_YEAR}|{_MONTH_NAMES}\.?\s{_DAY},?\s{_YEAR})"
# PostgreSQL reads these days as they are; others are looked at one by one.
_PLAIN_DATE = (
    r"(?:1[5-9]|2[0-2])\d\d-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_PLAIN_TIME = r"[ T](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"


def _with_time(name: str, dates: str, convert: Convert, plain: str | None) -> list[ValueForm]:
    """Return the forms of timestamps that begin with dates of a form, without and with a zone."""
    timed = _timed(convert)
    return [
        ValueForm(name, "timestamp", rf"{dates}(?:T|\s{{1,2}}){_TIME}", timed, plain),
        ValueForm(f"{name}_zone", "timestamptz", rf"{dates}(?:T|\s){_TIME}{_ZONE}", timed),
    ]


FORMS: tuple[ValueForm, ...] = (
    ValueForm(
        "boolean",
        "boolean",
        "(?:" + "|".join(sorted(_TRUE | _FALSE, key=len, reverse=True)) + ")",
        _boolean,
        plain="(?i:true|false|t|f|yes|no)",
    ),
    ValueForm(
        "integer",
        "integer",
        rf"{_SIGN}{_LONG}",
        _integer,
        rf"[+-]?{_LONG}",
    ),
    ValueForm(
        "grouped_integer",
        "integer",
        rf"{_SIGN}(?:[1-9]\d{{0,2}}(?:[,，]\d{{3}}){{1,5}}|0"
        r"|[1-9]\d{0,17})",
        _number,
    ),
    ValueForm(
        "numeric",
        "numeric",
        rf"{_SIGN}(?:{_DIGITS}{_FRACTION}|\.\d+)(?:e[+-]?\d{{1,2}})?",
        _integer,
        r"[+-]?(?:0|[1-9]\d*+)(?:\.\d*+)?",
    ),
    ValueForm(
        "money",
        "numeric",
        rf"(?:{_SIGN}{_MONEY}{_SIGN}{_GROUPS}{_FRACTION}|\({_MONEY}{_GROUPS}{_FRACTION}\))"
        r"\s?元?",
        _number,
    ),
    ValueForm("percentage", "percentage", rf"{_SIGN}{_GROUPS}{_FRACTION}\s?[%％]", _percentage),
    ValueForm("year_month_day", "date", _YMD, _year_first, _PLAIN_DATE),
    ValueForm("day_month_year", "date", _DMY, _parts("dmy")),
    ValueForm("month_day_year", "date", _MDY, _parts("mdy")),
    ValueForm("named_month", "date", _WORDED, _date_with_month_name),
    ValueForm("year_month", "date", rf"{_YEAR}\s?年\s?{_MONTH}\s?月", _month_only),
    ValueForm(
        "compact_date", "date", rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", _compact
    ),
    *_with_time("year_month_day_time", _YMD, _year_first, rf"{_PLAIN_DATE}{_PLAIN_TIME}"),
    *_with_time("day_month_year_time", _DMY, _parts("dmy"), None),
    *_with_time("month_day_year_time", _MDY, _parts("mdy"), None),
)
"""All forms; where several read a column, the first one is taken."""

BY_NAME = {form.name: form for form in FORMS}
WIDER: dict[ColumnType, tuple[ColumnType, ...]] = {
    "integer": ("numeric", "text"),
    "numeric": ("text",),
    "percentage": ("numeric", "text"),
    "boolean": ("text",),
    "date": ("timestamp", "text"),
    "timestamp": ("text",),
    "timestamptz": ("text",),
    "text": (),
}
"""The types that hold all values of a type, the nearest first."""
_ALSO_READ: dict[ColumnType, tuple[str, ...]] = {
    "numeric": ("grouped_integer", "percentage"),
    "timestamp": tuple(form.name for form in FORMS if form.type == "date"),
}
"""The forms of other types whose values are values of a type, too."""


def is_null(value: str) -> bool:
    """Tell whether a text stands for no value, where the column is no text."""
    lowered = value.lower()
    return lowered in NULLS or lowered in SHEET_ERRORS


def readers(wanted: ColumnType, forms_read: Sequence[str]) -> list[ValueForm]:
    """Return the forms by which values of a column become a type, those found in it first."""
    ranks = {name: rank for rank, name in enumerate(forms_read)}
    of_type = sorted(forms_of(wanted), key=lambda form: ranks.get(form.name, len(ranks)))
    others = _ALSO_READ.get(wanted, ())
    return [*of_type, *(BY_NAME[name] for name in others)]


def forms_of(wanted: ColumnType) -> list[ValueForm]:
    """Return the forms of a type, the first to be taken first."""
    return [form for form in FORMS if form.type == wanted]
