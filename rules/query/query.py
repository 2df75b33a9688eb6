"""The question as structure: what is measured or listed, grouped by what, under which conditions, in which order.

It holds references into the catalogue and no SQL, so that it can be looked at, compared, and combined with a follow-up
question before it is rendered. Joins are not part of it: they follow from the tables that take part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Literal

from common.meanings import TableKey
from rules.linking.moments import Period, Unit
from rules.query.functions import FUNCTIONS
from rules.query.functions import Function as Function
from rules.query.functions import Part as Part
from rules.schema.links import Link

Operator = Literal[
    "=", "!=", ">", ">=", "<", "<=", "between", "in", "not in", "null", "not null", "true", "false", "contains",
    "not contains", "prefix", "suffix", "during", "not during", "above average", "below average",
]  # fmt: skip
# What a negation makes of an operator.
OPPOSITE: dict[Operator, Operator] = {
    "=": "!=", "in": "not in", "null": "not null", "not null": "null", "true": "false", "false": "true",
    "contains": "not contains", "during": "not during", ">": "<=", "<": ">=", ">=": "<", "<=": ">",
}  # fmt: skip

AGGREGATES: dict[str, Function] = {name: name for name in FUNCTIONS if name not in ("count", "count_distinct")}
"""Functions over a column by the intent that asks for them, which is called so."""


@dataclass(frozen=True)
class ColumnRef:
    """A column.

    Attributes:
        via: the referencing column when its table is reached in a role (the *seller* of a contract).
        is_age: the years since the column's date are meant.
        part: this part of the column's date is meant: a weekday from 1 (Monday) to 7, an hour, whether it is a weekend.
    """

    table: TableKey
    column: str
    via: str | None = None
    is_age: bool = False
    part: Part | None = None


def ref(link: Link) -> ColumnRef:
    """The column a link means."""
    return ColumnRef(link.table, str(link.column), is_age=link.derived == "age")


Operand = str | Decimal | Period | ColumnRef
"""What a column is compared with; another column is that of the same row, or of one that this row refers to."""


@dataclass(frozen=True)
class Dimension:
    """What rows are grouped by: one column, a date column cut to a `bucket` or a `part`, or (`column` None) an entity.

    An entity is grouped by its key and shown by its display columns, so that two of the same name stay apart.
    """

    table: TableKey
    column: str | None = None
    bucket: Unit | None = None
    via: str | None = None
    part: Part | None = None

    @property
    def is_of_time(self) -> bool:
        """Whether it cuts dates."""
        return self.bucket is not None or self.part is not None


@dataclass(frozen=True)
class Condition:
    """`column operator operands`, on single rows."""

    column: ColumnRef
    operator: Operator
    operands: tuple[Operand, ...] = ()

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """The columns that it compares."""
        return (self.column, *(one for one in self.operands if isinstance(one, ColumnRef)))


@dataclass(frozen=True)
class Measure:
    """A figure over the rows of `table`.

    Attributes:
        column: None counts rows; the name of a metric where the function is `metric`.
        times: multiply by this column of the same row before aggregating (price by quantity).
        per: first aggregate per this dimension, then average those figures ("daily average").
        is_share: as a percentage of the figure over all groups, or of the rows that don't meet `share_of` too.
        is_running: added up over the groups: over the buckets of the one dated dimension as they come, for each of the
            other groups; without one from the greatest group on. With `is_share` in percent of all.
        is_age: over the years since the column's date.
        percent: which percentile, above 0 and below 100.
    """

    function: Function
    table: TableKey
    column: str | None = None
    times: str | None = None
    per: Dimension | None = None
    is_share: bool = False
    share_of: tuple[Condition, ...] = ()
    is_age: bool = False
    percent: Decimal | None = None
    is_running: bool = False


@dataclass(frozen=True)
class Related:
    """Rows of `table` that belong to the row exist (or, `negated`, don't), under `conditions` on them."""

    table: TableKey
    conditions: tuple[Condition, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Either:
    """At least one of the conditions holds, or one of the related rows exists (or doesn't, where `negated`).

    Each condition stands alone: two of one related table may hold for two different rows of it.
    """

    conditions: tuple[Condition, ...]
    related: tuple[Related, ...] = ()


Change = Literal["difference", "percent"]


@dataclass(frozen=True)
class Comparison:
    """Each figure for two sets of rows side by side, the second less the first, and that in percent of the first.

    A row may be in both sets.
    """

    first: tuple[Condition, ...]
    second: tuple[Condition, ...]


@dataclass(frozen=True)
class Having:
    """A condition on a group's figure, or on the `change` of it (of two that are compared: on the second)."""

    measure: Measure
    operator: Operator
    operands: tuple[Operand, ...]
    change: Change | None = None


@dataclass(frozen=True)
class Order:
    """One sort key: a measure or the `change` of it, a column, or (both None) the first dimension."""

    measure: Measure | None = None
    column: ColumnRef | None = None
    descending: bool = True
    change: Change | None = None


@dataclass(frozen=True)
class Query:
    """One question.

    Attributes:
        base: the table whose rows are listed, or measured by the first measure.
        columns: what a listing shows; empty with measures.
        either: each of these holds as well as all `conditions`.
        distinct: list each combination of values once.
        top_per: the limit holds within each of these groups.
        with_deleted: tables whose rows take part that are left out by default, because they are deleted or the semantic
            file says so.
        through: events that a verb of the question speaks of, through which tables are to be tied.
        counts_rows: the answer is how many rows the rest of the query gives.
        all_of: every row of this table counts for the groups, also one to which nothing measured belongs: its counts
            and sums are 0, its other figures are missing.
        comparison: the figures of two sets of rows are asked for, of all or by groups.
        growth: of the figures of each `bucket` of the one dated dimension, the change from the bucket before, or from
            the same one a year before; missing where that one has no rows.
        share_of_top: the answer is how much, in percent of all, the so many groups with the greatest figure have.
    """

    base: TableKey
    columns: tuple[ColumnRef, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    measures: tuple[Measure, ...] = ()
    conditions: tuple[Condition, ...] = ()
    related: tuple[Related, ...] = ()
    either: tuple[Either, ...] = ()
    having: tuple[Having, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    distinct: bool = False
    top_per: tuple[Dimension, ...] = ()
    with_deleted: frozenset[TableKey] = frozenset()
    through: frozenset[TableKey] = frozenset()
    counts_rows: bool = False
    all_of: TableKey | None = None
    comparison: Comparison | None = None
    growth: Literal["bucket", "year"] | None = None
    share_of_top: int | None = None


def measured_table(query: Query) -> TableKey:
    """The table whose rows are measured or listed."""
    return query.measures[0].table if query.measures else query.base


def shown_things(query: Query) -> list[TableKey]:
    """The tables whose rows are the groups of figures, or listed."""
    return [one.table for one in query.dimensions if one.column is None] if query.measures else [query.base]


def touched(query: Query) -> set[TableKey]:
    """The tables that the query names."""
    columns = {one.table for one in (*query.columns, *(one.column for one in query.conditions))}
    groups = {one.table for one in (*query.dimensions, *query.top_per)}
    measures = {one.table for one in (*query.measures, *(one.measure for one in query.having))}
    return {query.base, *(one.table for one in query.related)} | columns | groups | measures


def references(value: object) -> Iterator[ColumnRef | Dimension]:
    """Every column and dimension in a query or a part of one."""
    if isinstance(value, ColumnRef | Dimension):
        yield value
    elif isinstance(value, tuple):
        yield from (found for one in value for found in references(one))
    elif is_dataclass(value):
        yield from (found for field in fields(value) for found in references(getattr(value, field.name)))


@dataclass
class Figure:
    """A figure that is asked for, before it is known which table answers; without a `link`, a count of rows."""

    function: Function | None
    link: Link | None = None
    table: TableKey | None = None
    position: int = 0
    per: Dimension | None = None
    per_unit: Unit | None = None
    is_share: bool = False
    percent: Decimal | None = None
