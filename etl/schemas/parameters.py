"""What `parameters` of an operation holds, by its action."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from common.values import PeriodUnit
from etl.schemas.requirement import Action
from etl.schemas.strict import StrictModel

Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = list[Name]
JoinHow = Literal["left", "inner", "semi", "anti"]
SinkMode = Literal["replace", "merge", "append"]
RateMatch = Literal["day", "latest"]
SortDirection = Literal["asc", "desc"]
SortOrder = Literal["asc", "desc", "desc_nulls_last"]
MeasureFunction = Literal["sum", "avg", "min", "max", "count", "count_distinct", "median"]
ConditionOperator = Literal[
    "=",
    "!=",
    ">",
    ">=",
    "<",
    "<=",
    "in",
    "not_in",
    "between",
    "is_null",
    "not_null",
    "contains",
    "prefix",
    "suffix",
    "is_true",
    "is_false",
    "column=",
]
WindowFunction = Literal[
    "row_number",
    "rank",
    "dense_rank",
    "lag",
    "lead",
    "sum",
    "avg",
    "share",
]


class RelativeDayValue(StrictModel):
    """The first day of the `unit` that is `offset` units from today's: last month's is -1."""

    unit: Literal["day", "week", "month", "quarter", "year"]
    offset: int = Field(ge=-10_000, le=10_000)


class ComparisonCondition(StrictModel):
    """A comparison of a column; what `value` holds depends on the operator.

    A day may be given as a RelativeDayValue.
    """

    column: Name
    operator: ConditionOperator
    value: Any = None


class FilterCondition(StrictModel):
    """A comparison, or `any`: comparisons of which one holds."""

    column: Name | None = None
    operator: ConditionOperator | None = None
    value: Any = None
    any: list[ComparisonCondition] | None = Field(default=None, min_length=1, max_length=100)


class SortingItem(StrictModel):
    """A column to sort by; NULL comes where PostgreSQL puts it, or `last`."""

    column: Name
    direction: SortDirection = "asc"
    nulls: Literal["last"] | None = None

    @property
    def order(self) -> SortOrder:
        """Return the order of values and NULL; ascending, NULL is the last anyway."""
        if self.direction == "desc" and self.nulls == "last":
            return "desc_nulls_last"

        return self.direction


class JoinParameters(StrictModel):
    """`on` are pairs of a column of the left and one of the right table."""

    left: Name
    right: Name
    how: JoinHow | None = None
    on: list[Annotated[Names, Field(min_length=2, max_length=2)]] | None = Field(
        default=None, min_length=1, max_length=16
    )


class FilterParameters(StrictModel):
    """All conditions hold; `table` is the one that is narrowed before its join."""

    table: Name | None = None
    conditions: list[FilterCondition] = Field(min_length=1, max_length=200)


class RateParameters(StrictModel):
    """Where rates stand; a column without a table is the table's own, if it has one so called.

    `match` is `latest` where a rate holds until the next one; else a day needs a rate of its own.
    """

    table: Name
    from_column: Name
    to: Name
    date_column: Name
    rate_column: Name
    match: RateMatch | None = None


class TransformParameters(StrictModel):
    """Either an expression, or a map of a column's values, or a conversion of an amount."""

    as_: Name = Field(alias="as")
    table: Name | None = None
    expression: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    map: dict[str, Any] | None = Field(default=None, min_length=1, max_length=1000)
    column: Name | None = None
    default: Any = None
    rate: RateParameters | None = None
    amount: Name | None = None


class GroupingItem(StrictModel):
    """A column of the grain; with `unit`, its periods. Without a column, the date is asked."""

    column: Name | None = None
    unit: PeriodUnit | None = None
    as_: Name | None = Field(default=None, alias="as")


class MeasureItem(StrictModel):
    """A figure; of `count`, a column may be missing: then it counts the base's rows."""

    function: MeasureFunction
    column: Name | None = None
    expression: Annotated[str, Field(min_length=1, max_length=4000)] | None = None
    as_: Name | None = Field(default=None, alias="as")
    filter: list[FilterCondition] | None = Field(default=None, max_length=100)
    empty: Literal["null", "zero"] = "null"


class AggregateParameters(StrictModel):
    """One row for each group; with `spine` for each period between the first and the last too."""

    group_by: list[GroupingItem] = Field(max_length=60)
    measures: list[MeasureItem] = Field(max_length=200)
    spine: bool = False


class WindowParameters(StrictModel):
    """A column over the rows of the result."""

    function: WindowFunction
    column: Name | None = None
    partition_by: Names = Field(default_factory=list, max_length=60)
    order_by: list[SortingItem] = Field(default_factory=list, max_length=60)
    offset: int = Field(default=1, ge=1, le=10_000)
    rows: int | None = Field(default=None, ge=1, le=10_000)
    as_: Name = Field(alias="as")


class DedupParameters(StrictModel):
    """One row for each key: the first of that order."""

    table: Name
    keys: Names = Field(min_length=1, max_length=60)
    order_by: list[SortingItem] = Field(default_factory=list, max_length=60)
    keep: Literal["first"] = "first"


class WatermarkItem(StrictModel):
    """The date by which new rows are known, and how far late ones may come behind (`3 days`)."""

    column: Name
    lookback: str = Field(default="0 days", max_length=40)


class SinkParameters(StrictModel):
    """How the target is written, and which columns it has."""

    mode: SinkMode = "replace"
    unique_key: Names | None = Field(default=None, min_length=1, max_length=60)
    watermark: WatermarkItem | None = None
    surrogate_key: bool = False
    columns: Names | None = Field(default=None, min_length=1, max_length=400)


OperationParameters = (
    JoinParameters
    | FilterParameters
    | TransformParameters
    | AggregateParameters
    | WindowParameters
    | DedupParameters
    | SinkParameters
)
PARAMETERS: Mapping[Action, type[OperationParameters]] = {
    "join": JoinParameters,
    "filter": FilterParameters,
    "transform": TransformParameters,
    "aggregate": AggregateParameters,
    "window": WindowParameters,
    "dedup": DedupParameters,
    "sink": SinkParameters,
}
