"""A question as a structure: what is measured or listed, by which groups, under which conditions,
in which order.

The structure refers to tables and columns of the catalogue and holds no SQL, so that it can be
inspected, compared, and combined with a follow-up question before a statement is written of it. It
names no joins: these follow from the tables that take part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Literal

from common.meanings import TableKey
from rules.linking.moments import Period, Unit
from rules.query.aggregates import FUNCTIONS
from rules.query.aggregates import Function as Function
from rules.query.aggregates import Part as Part
from rules.schema.links import Link

Operator = Literal[
    "=", "!=", ">", ">=", "<", "<=", "between", "in", "not in",
    "null", "not null", "true", "false",
    "contains", "not contains", "prefix", "suffix",
    "during", "not during", "above average", "below average",
]  # fmt: skip
# The operator that a negation gives.
OPPOSITE: dict[Operator, Operator] = {
    "=": "!=", ">": "<=", "<": ">=", ">=": "<", "<=": ">",
    "in": "not in", "contains": "not contains", "during": "not during",
    "null": "not null", "not null": "null", "true": "false", "false": "true",
}  # fmt: skip

AGGREGATES: dict[str, Function] = {
    name: name for name in FUNCTIONS if name not in ("count", "count_distinct")
}
"""The functions over a column, by the intent of the words that ask for them."""


@dataclass(frozen=True)
class ColumnRef:
    """A column of a table that takes part in the query.

    Attributes:
        via: the referencing column, where the table is reached in a role (the *seller* of a
            contract).
        is_age: the years since the column's date are meant.
        part: this part of the column's date is meant: a weekday from 1 (Monday) to 7, an hour,
            whether it is a weekend.
    """

    table: TableKey
    column: str
    via: str | None = None
    is_age: bool = False
    part: Part | None = None


def ref(link: Link) -> ColumnRef:
    """Return the column that a link names."""
    return ColumnRef(link.table, str(link.column), is_age=link.derived == "age")


Operand = str | Decimal | Period | ColumnRef
"""A value with which a column is compared. Another column belongs to the same row, or to a row that
it refers to.
"""


@dataclass(frozen=True)
class Dimension:
    """One thing by which rows are grouped.

    That is a column, a date column cut to a `bucket` or a `part`, or (`column` None) the rows of a
    table. Those are grouped by their key and shown by their display columns, so that two rows with
    the same name stay apart.
    """

    table: TableKey
    column: str | None = None
    bucket: Unit | None = None
    via: str | None = None
    part: Part | None = None

    @property
    def is_of_time(self) -> bool:
        """Tell whether rows are grouped by units or parts of a date."""
        return self.bucket is not None or self.part is not None


@dataclass(frozen=True)
class Condition:
    """A condition on single rows: `column operator operands`."""

    column: ColumnRef
    operator: Operator
    operands: tuple[Operand, ...] = ()

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """Return the columns that are compared."""
        others = tuple(operand for operand in self.operands if isinstance(operand, ColumnRef))
        return (self.column, *others)


@dataclass(frozen=True)
class Measure:
    """A figure over the rows of `table`.

    Attributes:
        column: None counts rows; the name of a metric where the function is `metric`.
        times: a column of the same row by which it is multiplied before it is aggregated (price by
            quantity).
        less: a column of the same row with the share by which that product is reduced.
        per: the figure is the average of the figures per this dimension ("daily average").
        is_share: the figure is a percentage of the figure over all groups; where `share_of` holds
            conditions, the percentage that the rows that meet them have of all rows.
        is_running: the figure is cumulative: over the buckets of the one dated dimension in their
            order, for each of the other groups; without a dated dimension from the greatest group
            on. With `is_share` it is in percent of all.
        is_age: the figure is over the years since the column's date.
        percent: which percentile, above 0 and below 100.
    """

    function: Function
    table: TableKey
    column: str | None = None
    times: str | None = None
    less: str | None = None
    per: Dimension | None = None
    is_share: bool = False
    share_of: tuple[Condition, ...] = ()
    is_age: bool = False
    percent: Decimal | None = None
    is_running: bool = False


@dataclass(frozen=True)
class Related:
    """A test that related rows exist: rows of `table` that belong to the row and meet `conditions`.

    `negated`: no such rows exist.
    """

    table: TableKey
    conditions: tuple[Condition, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Either:
    """An alternative: at least one of the conditions, or of the `related` tests, holds.

    Each condition stands alone: two of one related table may hold for two different rows of it.
    """

    conditions: tuple[Condition, ...]
    related: tuple[Related, ...] = ()


Change = Literal["difference", "percent"]


@dataclass(frozen=True)
class Comparison:
    """Each figure for two sets of rows side by side, with its change from the first to the second.

    A row may be in both sets.
    """

    first: tuple[Condition, ...]
    second: tuple[Condition, ...]


@dataclass(frozen=True)
class Having:
    """A condition on the figure of a group, or on its `change`.

    Without a `change`, the figure of two that are compared is the second.
    """

    measure: Measure
    operator: Operator
    operands: tuple[Operand, ...]
    change: Change | None = None


@dataclass(frozen=True)
class Order:
    """One sort key: a measure or its `change`, a column, or (both None) the first dimension."""

    measure: Measure | None = None
    column: ColumnRef | None = None
    descending: bool = True
    change: Change | None = None


@dataclass(frozen=True)
class Query:
    """One question.

    Attributes:
        base: the table whose rows are listed, or measured by the first measure.
        columns: the columns that a listing shows; empty with measures.
        either: each of these holds, as well as all `conditions`.
        distinct: each combination of values is listed once.
        top_per: the limit holds within each of these groups.
        with_deleted: tables of which all rows take part, also rows that are left out by default,
            because they are deleted or because the semantic file says so.
        through: tables that the question names, or the user has chosen; joins prefer them.
        counts_rows: the answer is the number of rows that the rest of the query gives.
        all_of: every row of this table is a group, also one to which no measured row belongs: its
            counts and sums are 0, its other figures are missing.
        comparison: the figures of these two sets of rows are compared, over all or by groups.
        growth: the figures of each `bucket` of the one dated dimension are compared with those of
            the bucket before, or of the same bucket a year before; the change is missing where that
            bucket has no rows.
        share_of_top: the answer is the share, in percent of all, that so many groups with the
            greatest figures have together.
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
    """Return the table whose rows are measured or listed."""
    return query.measures[0].table if query.measures else query.base


def shown_tables(query: Query) -> list[TableKey]:
    """Return the tables whose rows the result shows: those it lists, or those it groups by."""
    if not query.measures:
        return [query.base]

    return [dimension.table for dimension in query.dimensions if dimension.column is None]


def touched(query: Query) -> set[TableKey]:
    """Return the tables that the query names."""
    tables = {query.base}
    tables |= {column.table for column in query.columns}
    tables |= {condition.column.table for condition in query.conditions}
    tables |= {dimension.table for dimension in (*query.dimensions, *query.top_per)}
    tables |= {measure.table for measure in query.measures}
    tables |= {having.measure.table for having in query.having}
    tables |= {related.table for related in query.related}
    return tables


def references(value: object) -> Iterator[ColumnRef | Dimension]:
    """Yield every column and dimension in a query or in a part of one."""
    if isinstance(value, ColumnRef | Dimension):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from references(element)
    elif is_dataclass(value):
        for field in fields(value):
            yield from references(getattr(value, field.name))


@dataclass
class Figure:
    """A figure that is asked for, before it is known which table answers.

    Attributes:
        function: None where the question names only the column.
        link: the column; None counts rows of `table`.
        position: the position of the word that names it.
        per, per_unit: the figure is an average over these groups, or over these units of time.
        percent: which percentile.
    """

    function: Function | None
    link: Link | None = None
    table: TableKey | None = None
    position: int = 0
    per: Dimension | None = None
    per_unit: Unit | None = None
    is_share: bool = False
    percent: Decimal | None = None
