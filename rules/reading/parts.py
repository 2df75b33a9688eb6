"""What a pattern gives: parts of a question, in the terms of `rules.query`, before it is known which table answers.

A reading of the question is made of the parts of its fragments; those on both sides of an "or" become one.
"""

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Literal

from common.meanings import TableKey
from rules.linking.moments import Period
from rules.query.query import Condition, Dimension, Either, Figure, Operator, Part, Related, ref
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
    with_deleted: tuple[TableKey, ...] = ()
    doubts: tuple[tuple[str, tuple[Link, ...]], ...] = ()
    said: tuple[tuple[int, Link], ...] = ()
    labels: tuple[TableKey, ...] = ()

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


_OR = Parts(flags=("or",))


@dataclass(frozen=True)
class Fragment:
    """A part of the question that a pattern gives for the words `start` up to `end`; `pattern` is its text."""

    start: int
    end: int
    cost: float
    parts: Parts
    pattern: str


@dataclass(frozen=True, order=True)
class Reading:
    """A way to understand the question; `lost` are places of words with a meaning that no pattern took."""

    cost: float
    fragments: tuple[Fragment, ...] = field(default=(), compare=False)
    lost: tuple[int, ...] = field(default=(), compare=False)

    @property
    def parts(self) -> Parts:
        """All parts together."""
        return sum(_alternatives(self.fragments), Parts())

    @property
    def taken(self) -> set[int]:
        """The places of the words that patterns took."""
        return {at for one in self.fragments for at in range(one.start, one.end)}


def _alternatives(fragments: tuple[Fragment, ...]) -> list[Parts]:
    """The parts of the fragments; conditions on both sides of an "or" become one that either meets."""
    found: list[Parts] = []
    joined = False
    for one in fragments:
        if one.parts == _OR and found:
            joined = True
            continue
        either = _either(found[-1], one.parts) if joined else None
        if either is not None:
            found[-1] = either
        else:
            found += [_OR, one.parts] if joined else [one.parts]
        joined = False
    return found + [_OR] * joined


def _either(first: Parts, second: Parts) -> Parts | None:
    """Both parts as one condition; None where one of them is more than a condition on rows."""
    sides = [_conditions(first), _conditions(second)]
    if not all(sides):
        return None
    kept = replace(first + second, conditions=(), thresholds=(), either=())
    known = first.either[0].conditions if first.either else ()
    conditions = (*known, *(one for side in sides for one in side if one not in known))
    return replace(kept, either=(Either(conditions),))


def _conditions(parts: Parts) -> tuple[Condition, ...]:
    """The one condition of the parts, or those of which one holds already."""
    if parts.either:
        return parts.either[0].conditions
    if len(parts.conditions) == 1:
        return parts.conditions
    compared = [one for one in parts.thresholds if one.link is not None and one.function is None]
    return tuple(Condition(ref(one.link), one.operator, one.operands) for one in compared if one.link)[:1]
