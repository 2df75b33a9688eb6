"""What a pattern gives: parts of a question, in the terms of `rules.query`, before it is known which table answers."""

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Literal

from common.meanings import TableKey
from common.text import Text
from rules.linking.moments import Period
from rules.query.query import Condition, Dimension, Either, Figure, Operator, Part, Related
from rules.schema.links import Link

Flag = Literal[
    "compare", "trend", "how_many", "how_much", "money", "avg", "sum", "person", "share", "per_entity", "periods",
    "lifts", "growth", "or", "distribution", "shown_too", "running", "distinct", "when", "above_average",
]  # fmt: skip
"""Wishes without anything else; `joined:` and `growth:` say more of one."""

NO_TABLE: TableKey = ("", "")
"""The table of a group by a unit of time whose date column is not known yet."""


@dataclass(frozen=True)
class Threshold:
    """A comparison whose left side may be an aggregate: decided when it is known what is asked.

    Attributes:
        link: the compared column, None when rows of `table` are counted.
        hint: concept of the compared column when only an adjective says it (`price` of "cheaper than").
        function: an aggregate said explicitly ("average rent above 5000").
    """

    operator: Operator
    operands: tuple[Decimal, ...]
    at: int
    link: Link | None = None
    table: TableKey | None = None
    function: str | None = None
    hint: str = ""


@dataclass(frozen=True)
class Span:
    """Periods of which one is meant; `link` is their column if it is said."""

    periods: tuple[Period, ...]
    at: int
    link: Link | None = None
    negated: bool = False
    compares: bool = False


@dataclass(frozen=True)
class Weekday:
    """A condition on a part of the date that is meant: on Mondays, at weekends; `link` is its column if it is said."""

    part: Part
    value: int
    at: int
    negated: bool = False
    link: Link | None = None


@dataclass(frozen=True)
class Group:
    """What is grouped by; `is_ranked` if single ones of these dates are ranked, `is_kind` if kinds are asked for."""

    dimension: Dimension
    at: int
    is_kind: bool = False
    is_ranked: bool = False
    by: bool = False


Concept = Literal["recent", "date", "age"]
"""Concepts of adjectives that rank by a date; the others are names of columns in the files of words."""


@dataclass(frozen=True)
class Ranking:
    """A wish for the most or least of something.

    Attributes:
        figure: by what; None when only an adjective says it (`hint`: the concept, such as `price`), or nothing does.
        limit: how many, None when not said.
        is_order: only an order of everything is wanted ("sorted by price").
        counts: whether the word ranks by a number of things ("most").
        few: how many are shown if none is said.
        is_open: whether it doesn't say which end of the order is wanted.
    """

    descending: bool
    at: int
    figure: Figure | None = None
    hint: str = ""
    limit: int | None = None
    is_order: bool = False
    counts: bool = False
    is_open: bool = False
    few: int = 1


@dataclass(frozen=True)
class Named:
    """A table or column that is named; `role` says how: "" alone, `asked` after "which", `owner` of what follows."""

    at: int
    link: Link
    role: str = ""


@dataclass(frozen=True)
class Parts:
    """Parts of a question; `bare` are measures named without a function, `columns` other columns."""

    conditions: tuple[Condition, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    spans: tuple[Span, ...] = ()
    weekdays: tuple[Weekday, ...] = ()
    either: tuple[Either, ...] = ()
    related: tuple[Related, ...] = ()
    groups: tuple[Group, ...] = ()
    figures: tuple[Figure, ...] = ()
    rankings: tuple[Ranking, ...] = ()
    tables: tuple[Named, ...] = ()
    columns: tuple[Named, ...] = ()
    bare: tuple[Figure, ...] = ()
    limits: tuple[int, ...] = ()
    flags: tuple[str, ...] = ()
    notes: tuple[Text, ...] = ()
    with_deleted: tuple[TableKey, ...] = ()
    doubts: tuple[tuple[str, tuple[Link, ...]], ...] = ()
    said: tuple[tuple[int, Link], ...] = ()
    labels: tuple[TableKey, ...] = ()

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))
