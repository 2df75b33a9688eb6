"""Parts of a question, which patterns give: in the terms of `rules.query`, before it is known which
table answers.

A reading of the question consists of fragments, each with its parts; conditions on both sides of an
"or" become one.
"""

from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Literal

from common.meanings import TableKey
from rules.linking.moments import Period
from rules.query.query import Condition, Dimension, Either, Figure, Operator, Part, Related, ref
from rules.schema.links import Link

Flag = Literal[
    "compare", "trend", "how_many", "how_much", "money", "avg", "sum", "person", "share",
    "per_entity", "periods", "lifts", "growth", "or", "distribution", "shown_too", "running",
    "distinct", "when", "above_average",
]  # fmt: skip
"""What a question asks for without naming anything; `joined:` and `growth:` add an argument."""

NO_TABLE: TableKey = ("", "")
"""The table of a group by a unit of time whose date column is not known yet."""


@dataclass(frozen=True)
class Threshold:
    """A comparison with numbers, whose left side may be an aggregate.

    Attributes:
        at: the place of its first word.
        link: the compared column, None when rows of `table` are counted.
        hint: concept of the compared column when only an adjective says it (`price` of "cheaper
            than").
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
    """One of several periods is meant.

    Attributes:
        at: the place of the first word.
        link: the date column, if it is named.
        compares: the periods are compared with each other.
    """

    periods: tuple[Period, ...]
    at: int
    link: Link | None = None
    negated: bool = False
    compares: bool = False


@dataclass(frozen=True)
class Weekday:
    """A condition on a part of the date that is meant: on Mondays, at weekends.

    Attributes:
        at: the place of the word.
        link: the date column, if it is named.
    """

    part: Part
    value: int
    at: int
    negated: bool = False
    link: Link | None = None


@dataclass(frozen=True)
class GroupBy:
    """A column or a unit of time by which the answer is grouped.

    Attributes:
        at: the place of the first word.
        is_kind: kinds are asked for.
        is_ranked: single ones of these dates are ranked.
        by: a word such as "by" asks for the group.
    """

    dimension: Dimension
    at: int
    is_kind: bool = False
    is_ranked: bool = False
    by: bool = False


Concept = Literal["recent", "date", "age"]
"""Concepts of adjectives that rank by a date; the others are names of columns in the files of
words.
"""


@dataclass(frozen=True)
class Ranking:
    """The most or the least of something is asked for.

    Attributes:
        at: the place of the word that ranks.
        figure: by which is ranked; None when only an adjective says it (`hint`: the concept, such
            as `price`), or nothing does.
        limit: how many, None when not said.
        is_order: everything is wanted in this order ("sorted by price").
        counts: the word ranks by a number of things ("most").
        is_open: the word doesn't say which end of the order is wanted.
        few: how many are shown if none is said.
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
    """A table or column that is named, at the place `at`.

    `role` says how: "" alone, `asked` after "which", `owner` of the column or kind beside it,
    `shared` of a share.
    """

    at: int
    link: Link
    role: str = ""


@dataclass(frozen=True)
class Parts:
    """Parts of a question.

    Attributes:
        rankings: superlatives and orders.
        columns, bare: columns that are named without a function, measures among them in `bare`.
        limits: numbers of rows.
        with_deleted: tables whose deleted rows take part.
        doubts: words that name several columns equally well, with these columns.
        said: stored values with the places of their words.
        labels: tables that only label a value: "customer Bob Jones".
    """

    conditions: tuple[Condition, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    spans: tuple[Span, ...] = ()
    weekdays: tuple[Weekday, ...] = ()
    either: tuple[Either, ...] = ()
    related: tuple[Related, ...] = ()
    groups: tuple[GroupBy, ...] = ()
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
        return Parts(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(self))
        )

    @property
    def has_buckets(self) -> bool:
        """Tell whether the answer is grouped by units of time."""
        return any(group.dimension.bucket for group in self.groups)

    @property
    def column_tables(self) -> list[TableKey]:
        """Return the tables of `columns`."""
        return [column.link.table for column in self.columns]

    @property
    def bare_tables(self) -> list[TableKey]:
        """Return the tables of `bare`."""
        return [figure.link.table for figure in self.bare if figure.link is not None]

    @property
    def condition_tables(self) -> list[TableKey]:
        """Return the tables of `conditions`."""
        return [condition.column.table for condition in self.conditions]

    @property
    def threshold_tables(self) -> list[TableKey]:
        """Return the tables of the columns that `thresholds` name."""
        return [threshold.link.table for threshold in self.thresholds if threshold.link is not None]


_OR = Parts(flags=("or",))


@dataclass(frozen=True)
class Fragment:
    """The parts that a pattern gives for the words `start` up to `end`; `pattern` is its text."""

    start: int
    end: int
    cost: float
    parts: Parts
    pattern: str


@dataclass(frozen=True, order=True)
class Reading:
    """A way to understand the question.

    Attributes:
        lost: places of words with a meaning that no pattern took.
    """

    cost: float
    fragments: tuple[Fragment, ...] = field(default=(), compare=False)
    lost: tuple[int, ...] = field(default=(), compare=False)

    @property
    def parts(self) -> Parts:
        """Return the parts of all fragments together."""
        return sum(_alternatives(self.fragments), Parts())

    @property
    def taken(self) -> set[int]:
        """Return the places of the words that patterns took."""
        places: set[int] = set()
        for fragment in self.fragments:
            places.update(range(fragment.start, fragment.end))

        return places


def _alternatives(fragments: tuple[Fragment, ...]) -> list[Parts]:
    """Return the parts of the fragments, with conditions on both sides of an "or" made one.

    An "or" between parts that are no such conditions stays.
    """
    alternatives: list[Parts] = []
    is_after_or = False
    for fragment in fragments:
        if fragment.parts == _OR and alternatives:
            is_after_or = True
            continue

        if is_after_or:
            either = _either(alternatives[-1], fragment.parts)
            if either is not None:
                alternatives[-1] = either
            else:
                alternatives += [_OR, fragment.parts]
        else:
            alternatives.append(fragment.parts)

        is_after_or = False

    if is_after_or:
        alternatives.append(_OR)

    return alternatives


def _either(first: Parts, second: Parts) -> Parts | None:
    """Join both parts to one condition; None where one of them is more than a condition on rows."""
    of_first = _conditions(first)
    of_second = _conditions(second)
    if not of_first or not of_second:
        return None

    conditions = list(first.either[0].conditions) if first.either else []
    of_either = tuple(conditions)
    conditions += [condition for condition in (*of_first, *of_second) if condition not in of_either]
    both = replace(first + second, conditions=(), thresholds=(), either=())
    return replace(both, either=(Either(tuple(conditions)),))


def _conditions(parts: Parts) -> tuple[Condition, ...]:
    """Return the one condition of the parts, or those that an "or" has joined already."""
    if parts.either:
        return parts.either[0].conditions
    if len(parts.conditions) == 1:
        return parts.conditions

    for threshold in parts.thresholds:
        if threshold.link is not None and threshold.function is None:
            return (Condition(ref(threshold.link), threshold.operator, threshold.operands),)

    return ()
