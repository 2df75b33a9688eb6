"""Values of a result as people write them: money with two decimals, digits in groups, units, months
as such.

The figure of a sentence never has digits that the value has not, except the noughts of money.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from common.text import Lang, Text
from knowledge.language.cutting import has_han
from knowledge.results.result_columns import NUMBERS, ResultColumn, as_period
from knowledge.results.value_labels import value_labels
from knowledge.words import WORDS

_MAX_DECIMALS = 4
_MAX_DIGITS = 18  # beyond, figures stay in scientific notation
_MOST_SPOKEN = 500  # characters; a longer text is read in the table
_ABOUT = Text("约 {}", "about {}")
_CENTS = ",2)"  # how the types of columns with two decimals end
CURRENCIES = frozenset(
    (*WORDS.english.phrases("results.currencies"), *WORDS.chinese.phrases("results.currencies"))
)
_SIGNS = frozenset(WORDS.english.phrases("results.currency_signs"))
_NONE = Text("空", "none")
_YES, _NO = Text("是", "yes"), Text("否", "no")
_PARTS = {
    "quarter": Text("第{}季度", "Q{}"),
    "month": Text("{}月", "month {}"),
    "hour": Text("{}时", "{}:00"),
}
_AND = Text("、", " and ")
_COMMA = Text("、", ", ")


def value_text(value: Any, column: ResultColumn, lang: Lang) -> str:
    """Write a value of the column for a sentence: by its label, or with its unit."""
    label = value_labels(column.output, lang).get(str(value))
    if label is not None:
        return label
    if not is_number(value):
        return _plain(as_period(value, column.period), lang, is_time=column.role == "time")
    if column.role not in ("measure", "other"):  # years, places, keys
        return _part(value, column.output.part, lang)
    if column.output.is_percent and _is_short(value):
        value = round(Decimal(str(value)), 2)

    text = _figure(value, lang)
    if is_money(column) and _is_short(value):
        amount = round(Decimal(str(value)), 2)
        text = f"{amount:,f}"

    return _with_unit(text, column.unit)


NumberFormat = Literal["money", "number", "percent", "plain"]
"""The format of numbers.

`money`: in groups, with two decimals; `number`: in groups; `percent`: in groups, with two decimals
at most; `plain`: as they are, because they are years, keys and other names of things.
"""


def format_of(column: ResultColumn, column_type: str) -> NumberFormat | None:
    """Return how the column's numbers are written; None for a column of other values."""
    if column_type not in NUMBERS:
        return None
    if column.role != "measure":
        return "plain"
    if column.output.is_percent:
        return "percent"
    if is_money(column):
        return "money"

    return "number"


def is_money(column: ResultColumn) -> bool:
    """Tell whether its figures are amounts of a currency, or kept with two decimals."""
    output = column.output
    if output.is_share or output.function in ("count", "stddev"):
        return False
    if column.unit is not None:
        is_currency = column.unit.lower() in CURRENCIES
        return is_currency or column.unit in _SIGNS

    if output.column is None or output.is_computed:
        return False

    return output.column.type.endswith(_CENTS)


def joined(names: Sequence[str], lang: Lang) -> str:
    """Write several names in one sentence: `A, B and C`."""
    if len(names) < 2:
        return "".join(names)

    return _COMMA.to(lang).join(names[:-1]) + _AND.to(lang) + names[-1]


def is_number(value: Any) -> bool:
    """Tell whether it is a number that can be compared."""
    if isinstance(value, bool):
        return False
    if not isinstance(value, int | float | Decimal):
        return False
    if isinstance(value, Decimal):
        return not value.is_nan()

    return value == value


def _part(value: float | Decimal, part: str | None, lang: Lang) -> str:
    """Write a part of a date by its name; other numbers stay as they are."""
    if part in _PARTS:
        return _PARTS[part].to(lang).format(value)

    return str(value)


def _with_unit(text: str, unit: str | None) -> str:
    if unit is None:
        return text
    if unit in _SIGNS:
        if text.startswith("-"):
            return f"-{unit}{text[1:]}"

        return f"{unit}{text}"

    is_latin = unit[0].isalnum() and not has_han(unit)
    if is_latin:
        return f"{text} {unit}"

    return f"{text}{unit}"


def _clock(text: str) -> str:
    """Write a date and time as it is read; midnight is only the date."""
    return text.replace("T", " ", 1).removesuffix(" 00:00:00")


def _plain(value: Any, lang: Lang, *, is_time: bool) -> str:
    if value is None:
        return _NONE.to(lang)
    if value is True:
        return _YES.to(lang)
    if value is False:
        return _NO.to(lang)

    text = str(value)
    if is_time:
        text = _clock(text)
    if len(text) <= _MOST_SPOKEN:
        return text

    return f"{text[:_MOST_SPOKEN]}…"


def _is_short(value: float | Decimal) -> bool:
    number = Decimal(str(value))
    return number.is_finite() and abs(number.adjusted()) <= _MAX_DIGITS


def _figure(value: float | Decimal, lang: Lang) -> str:
    """Write digits in groups; a long fraction is shortened, and marked as such."""
    if isinstance(value, int):
        return f"{value:,}"
    if not _is_short(value):
        return str(value)

    number = Decimal(str(value))
    shortened = round(number, _MAX_DECIMALS)
    text = f"{shortened:,f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if shortened != number:
        return _ABOUT.to(lang).format(text)

    return text


def about_apart(text: str, lang: Lang) -> tuple[str, bool]:
    """Take the word that says that it is shortened off a figure; tell whether it had one."""
    about = _ABOUT.to(lang).format("")
    return text.removeprefix(about), text.startswith(about)
