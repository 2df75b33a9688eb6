"""An intent whose names are bound to a catalogue; what all later stages read.

The meaning, in one paragraph. Each source has rows. Table steps (filters, dedups and semi joins of
one source that come before its join) narrow the rows of that source. The joins then make
*combinations*: a combination holds at most one row of each source, the base's always. A left join
extends each combination by each matching row of its right source, or by none when nothing matches;
an inner join drops combinations without a match; semi and anti joins keep or drop combinations and
add nothing. NULL keys match nothing. Row filters drop combinations, row transforms compute a value
for each. An aggregate groups the combinations by its keys; within a group each measure counts *each
row of its own source once*, however many combinations hold it, and `count` without a column counts
base rows. Without keys there is one group, also of nothing. Without an aggregate, each combination
is a row of the result, with the columns of `outputs`. Group steps (filters, transforms, windows
after the aggregate, or over combinations without one) work on the result.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar, Literal, TypeVar

from sqlglot import exp

from common.values import PeriodUnit, Table
from etl.meaning.value_kinds import kind_of_type
from etl.schemas.parameters import (
    ConditionOperator,
    JoinHow,
    MeasureFunction,
    SinkMode,
    SortOrder,
    WindowFunction,
)
from etl.schemas.requirement import Layer, Materialization

Scalar = str | int | Decimal | bool | date | datetime
Stage = Literal["table", "rows", "result"]
"""Where a step works: on one source, on combinations of joined rows, on the result's rows.

A column made at the stage `table` belongs to its source's row, so that it is NULL where a left join
finds no row.
"""


@dataclass(frozen=True)
class BoundSource:
    """A table under the name that the intent uses for it."""

    name: str
    table: Table


@dataclass(frozen=True)
class BoundColumn:
    """A column of a source; with `source` "", one that a step makes and names."""

    source: str
    name: str


@dataclass(frozen=True)
class RelativeDay:
    """A day relative to the day of the build, kept as a variable of the project.

    Attributes:
        variable: its name, `[a-z_][a-z0-9_]*`.
        value: the day that it stands for today, the variable's default.
    """

    variable: str
    value: date


@dataclass(frozen=True)
class BoundCondition:
    """A comparison. The kind of `value` depends on the operator.

    `in` and `not_in` take a tuple, `between` two values (both ends belong to it), `column=` a
    BoundColumn, `is_…` and `not_null` none, the others one. `!=` and `not_in` keep NULL; all others
    drop it. `contains`, `prefix` and `suffix` are plain text, not patterns. A day or a time without
    a zone is compared with a `timestamptz` column as that column's time in the intent's time zone.
    """

    column: BoundColumn
    operator: ConditionOperator
    value: Scalar | RelativeDay | BoundColumn | tuple[Scalar | RelativeDay, ...] | None = None


@dataclass(frozen=True)
class AnyOf:
    """Holds when one of its conditions does."""

    conditions: tuple[BoundCondition, ...]


@dataclass(frozen=True)
class ExpressionTest:
    """Holds when a boolean expression is true; its columns are as in ExpressionStep.

    It says what the semantic file's conditions say, and comparisons that no operator has.
    """

    expression: exp.Expression


RowTest = BoundCondition | AnyOf | ExpressionTest


@dataclass(frozen=True)
class JoinSourceStep:
    """Adds `right` to the combinations.

    Attributes:
        on: pairs of a column of a source that is already there and one of `right`.
        is_multiple: whether a row may meet several rows of `right`.
        source: whose rows a semi or anti join narrows at the stage `table`; None: combinations.
    """

    order: int
    right: str
    how: JoinHow
    on: tuple[tuple[BoundColumn, BoundColumn], ...]
    is_multiple: bool
    source: str | None = None

    @property
    def stage(self) -> Stage:
        """Return where the join works."""
        if self.source is None:
            return "rows"

        return "table"

    @property
    def left_sources(self) -> set[str]:
        """Return the sources that are joined to; "" stands for columns that steps make."""
        return {left.source for left, _ in self.on}

    @property
    def only_left(self) -> str | None:
        """Return the one source that is joined to; None: there are several, or made columns."""
        sources = self.left_sources
        if len(sources) > 1 or "" in sources:
            return None

        return next(iter(sources), None)


@dataclass(frozen=True)
class FilterStep:
    """Keeps what fulfils all `tests`; `source` is set at the stage `table`."""

    order: int
    stage: Stage
    tests: tuple[RowTest, ...]
    source: str | None = None


@dataclass(frozen=True)
class ExpressionStep:
    """Computes a column. The expression's columns are `exp.Column`s whose table is the source.

    Columns that steps made have no table. Division by zero gives NULL; integers are divided as
    decimals.
    """

    order: int
    stage: Stage
    name: str
    expression: exp.Expression
    source: str | None = None


@dataclass(frozen=True)
class MapStep:
    """Maps stored values to new ones; `default` (or NULL) is for all others and for NULL."""

    order: int
    stage: Stage
    name: str
    column: BoundColumn
    mapping: tuple[tuple[Scalar, Scalar], ...]
    default: Scalar | None = None
    source: str | None = None


@dataclass(frozen=True)
class RateStep:
    """Converts `amount` to the currency `to`; without a rate the result is NULL.

    The rate is the one of the source `rates`, which is never joined, for the currency in `currency`
    and for `day`: of several for that day the highest. Rows without a rate don't count. Amounts
    that are in `to` already stay. It works at the stage `rows`.

    Attributes:
        target_currency: the column of the currency that a rate leads to, where rates have one.
        is_latest: a day without a rate has that of the latest day before it.
    """

    order: int
    name: str
    amount: BoundColumn
    currency: BoundColumn
    day: BoundColumn
    to: str
    rates: str
    rate_currency: str
    rate_day: str
    rate: str
    target_currency: str | None = None
    is_latest: bool = False
    stage: ClassVar[Stage] = "rows"


@dataclass(frozen=True)
class BoundKey:
    """A column of the grain; with `unit`, the first day (for `hour` the hour) of its period."""

    name: str
    column: BoundColumn
    unit: PeriodUnit | None = None


@dataclass(frozen=True)
class BoundMeasure:
    """A figure for each group.

    Attributes:
        source: whose rows it counts, each once in a group.
        value: what is aggregated; None only for `count`, which then counts rows of `source`.
        tests: only rows that fulfil them count.
        is_zero_when_empty: gives 0 instead of NULL where nothing is aggregated.
    """

    name: str
    function: MeasureFunction
    source: str
    value: exp.Expression | None
    tests: tuple[RowTest, ...] = ()
    is_zero_when_empty: bool = False


@dataclass(frozen=True)
class AggregateStep:
    """Groups the combinations of rows, and computes the measures of each group.

    With `has_spine` exactly one key has a unit. Every period between the first and the last of all
    groups is there, for each combination of the other keys that occurs in any group; counts are 0
    there, other measures NULL or 0 as they say. Groups without a period stay as they are.
    """

    order: int
    keys: tuple[BoundKey, ...]
    measures: tuple[BoundMeasure, ...]
    has_spine: bool = False


@dataclass(frozen=True)
class WindowStep:
    """Computes a column over the rows of the result; columns are those of the result.

    Attributes:
        sorting: columns with their order; NULL as PostgreSQL sorts it. Where ties would leave
            the result open, it ends with the columns of the grain.
        offset: how far `lag` and `lead` look, in rows.
        rows: for `sum` and `avg`, how many rows up to the current one; None: from the first one,
            with the peers of the current one.
    """

    order: int
    name: str
    function: WindowFunction
    column: str | None
    partition: tuple[str, ...]
    sorting: tuple[tuple[str, SortOrder], ...]
    offset: int = 1
    rows: int | None = None
    stage: ClassVar[Stage] = "result"


@dataclass(frozen=True)
class DedupStep:
    """Leaves one row of `source` for each key: the first by `sorting`, then by `tie_columns`,
    descending. Rows with NULL in the key all stay.

    At the stage `rows` the source is the base, no join before it is multiple, and only the rows
    that are left at that point are looked at.
    """

    order: int
    source: str
    keys: tuple[str, ...]
    sorting: tuple[tuple[str, SortOrder], ...]
    stage: Stage = "table"


def tie_columns(step: DedupStep, table: Table) -> tuple[str, ...]:
    """Return the columns that order the rows of a key which the sorting of a dedup leaves tied.

    They are the primary key; of a table without one all columns whose values have an order, so
    that rows which are tied even then are equal in them.
    """
    fixed = {*step.keys, *(name for name, _ in step.sorting)}
    if table.primary_key:
        return tuple(name for name in table.primary_key if name not in fixed)

    names = []
    for column in table.columns:
        if column.name not in fixed and kind_of_type(column.type) != "other":
            names.append(column.name)

    return tuple(names)


@dataclass(frozen=True)
class Watermark:
    """The date by which an increment finds late rows.

    Periods from the last one in the target minus `lookback_days` are computed again.
    """

    column: BoundColumn
    lookback_days: int


@dataclass(frozen=True)
class BoundOutput:
    """A column of the result of an intent without an aggregate: its name there, and what it is."""

    name: str
    column: BoundColumn


@dataclass(frozen=True)
class BoundTarget:
    """The relation that is built.

    Attributes:
        relation: its name as the user knows it; `model` is the ASCII name of its node.
        unique_key: columns of the result by which `merge` replaces rows.
        columns: those of the result that are kept, in order; technical ones (a surrogate key,
            `etl_period`) are not among them.
    """

    relation: str
    model: str
    layer: Layer
    materialization: Materialization
    mode: SinkMode
    columns: tuple[str, ...]
    unique_key: tuple[str, ...] = ()
    watermark: Watermark | None = None
    has_surrogate_key: bool = False
    order: int | None = None


Step = (
    JoinSourceStep
    | FilterStep
    | ExpressionStep
    | MapStep
    | RateStep
    | AggregateStep
    | WindowStep
    | DedupStep
)
StepKind = TypeVar("StepKind")


@dataclass(frozen=True)
class BoundIntent:
    """All that decides about the target's rows.

    Attributes:
        sources: by name; the first one is the base.
        steps: in the order in which they work.
        time_zone: in which the periods of `timestamptz` columns are cut.
        outputs: the result's columns before the steps at the stage `result`; empty where an
            aggregate makes them.
    """

    summary: str
    sources: tuple[BoundSource, ...]
    steps: tuple[Step, ...]
    target: BoundTarget
    time_zone: str
    outputs: tuple[BoundOutput, ...] = ()

    @property
    def base(self) -> BoundSource:
        """Return the source whose rows the joins neither lose nor repeat."""
        return self.sources[0]

    def source(self, name: str) -> BoundSource:
        """Return the source of that name.

        Raises:
            KeyError: there is none.
        """
        for source in self.sources:
            if source.name == name:
                return source

        raise KeyError(name)

    def steps_of(self, kind: type[StepKind]) -> list[StepKind]:
        """Return the steps of a kind, in the order in which they work."""
        return steps_among(self.steps, kind)

    @property
    def keys(self) -> tuple[BoundKey, ...]:
        """Return the keys of its groups; none where it does not group."""
        if self.aggregate is None:
            return ()

        return self.aggregate.keys

    @property
    def measures(self) -> tuple[BoundMeasure, ...]:
        """Return the figures of its groups; none where it does not group."""
        if self.aggregate is None:
            return ()

        return self.aggregate.measures

    @property
    def aggregate(self) -> AggregateStep | None:
        """Return the step that groups, if there is one."""
        return aggregate_of(self.steps)


def aggregate_of(steps: Iterable[Step]) -> AggregateStep | None:
    """Return the one of these steps that groups, if there is one."""
    return next(iter(steps_among(steps, AggregateStep)), None)


def steps_among(steps: Iterable[Step], kind: type[StepKind]) -> list[StepKind]:
    """Return the steps of a kind, in their order."""
    return [step for step in steps if isinstance(step, kind)]
