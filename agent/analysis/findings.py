"""What an analysis found, and how its figures are written in sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from common.text import Lang, Text
from knowledge.language.cutting import has_han

Number = int | float | Decimal
FindingKind = Literal[
    "describe",
    "correlation",
    "shares",
    "pareto",
    "concentration",
    "change",
    "year_before",
    "contributions",
    "extremes",
    "rise",
    "unfinished",
    "outliers",
    "forecast",
]

_NONE = Text("无", "none")
_SMALL_DIGITS = 4  # significant ones, of figures below 1
_DECIMALS = 2
_MOST_DIGITS = 18  # beyond, figures are written with an exponent


@dataclass(frozen=True)
class Finding:
    """One thing that is true of the rows.

    Attributes:
        text: one or a few sentences, in the reader's language.
        method: how it was computed, in the reader's language.
        figures: what the sentences say, unrounded.
        sql: the statement that gave the figures.
    """

    kind: FindingKind
    text: str
    method: str
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sql: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the finding as the HTTP contract has it."""
        text = self.text[:1].upper() + self.text[1:]
        body = {
            "kind": self.kind,
            "text": text,
            "method": self.method,
            "figures": dict(self.figures),
        }
        return body | ({"sql": self.sql} if self.sql else {})


def figure(value: Number | None, unit: str | None, lang: Lang) -> str:
    """Return a figure for a sentence: digits in groups, two decimals, its unit behind it."""
    if value is None:
        return _NONE.to(lang)

    text = _with_digit_groups(Decimal(str(value)))
    if not unit:
        return text

    if unit[0].isalnum() and not has_han(unit):
        return f"{text} {unit}"

    return f"{text}{unit}"


def filled(text: Text, **values: object) -> Text:
    """Return `text` with values in the places of its names, in both languages."""
    return Text(text.zh.format(**values), text.en.format(**values))


def percent(share: Number) -> str:
    """Return a quotient as percent, with one decimal."""
    return f"{Decimal(str(share)) * 100:,.1f}%"


def _with_digit_groups(number: Decimal) -> str:
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return f"{number:.4g}"
    if number == number.to_integral_value():
        return f"{int(number):,}"
    if abs(number) >= 1:
        return f"{number:,.{_DECIMALS}f}"

    places = _SMALL_DIGITS - 1 - number.adjusted()
    return f"{round(number, places).normalize():f}"
