"""Tables of the aggregate functions and of the parts of a date that questions can ask for.

To add one, add a row here, its name to the `Literal` beside it, and the words that say it.
"""

from dataclasses import dataclass
from typing import Literal

from common.text import Text

Function = Literal[
    "count",
    "count_distinct",
    "sum",
    "avg",
    "min",
    "max",
    "median",
    "percentile",
    "stddev",
    "metric",
]


@dataclass(frozen=True)
class Aggregate:
    """A function over rows.

    Attributes:
        sql: the call; `{}` is the column, `{at}` the fraction of a percentile, from 0 to 1.
        name: the name of its column in the result; `{}` is the column's name, `{percent}` the
            percentile.
        label: the same for people.
        is_wrong_if_repeated: whether a row that a join repeats makes it wrong.
        is_float: whether it gives a floating-point number for a column of any type.
    """

    sql: str
    name: str
    label: Text
    is_wrong_if_repeated: bool = True
    is_float: bool = False


# A metric has no row here: the semantic file holds its expression and its names.
FUNCTIONS: dict[Function, Aggregate] = {
    "count": Aggregate("count({})", "count_{}", Text("{}数量", "number of {}")),
    "count_distinct": Aggregate(
        "count(DISTINCT {})", "{}_count", Text("{}数量", "number of {}"), is_wrong_if_repeated=False
    ),
    "sum": Aggregate("sum({})", "total_{}", Text("{}合计", "total {}")),
    "avg": Aggregate("avg({})", "average_{}", Text("平均{}", "average {}")),
    "min": Aggregate("min({})", "min_{}", Text("最低{}", "lowest {}"), is_wrong_if_repeated=False),
    "max": Aggregate("max({})", "max_{}", Text("最高{}", "highest {}"), is_wrong_if_repeated=False),
    "median": Aggregate(
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})",
        "median_{}",
        Text("{}中位数", "median {}"),
        is_float=True,
    ),
    "percentile": Aggregate(
        "percentile_cont({at}) WITHIN GROUP (ORDER BY {})",
        "percentile_{percent}_{}",
        Text("{}的{percent}%分位数", "percentile {percent} of {}"),
        is_float=True,
    ),
    "stddev": Aggregate(
        "stddev_samp({})", "stddev_{}", Text("{}标准差", "standard deviation of {}")
    ),
}


Part = Literal["weekday", "weekend", "hour", "month", "quarter", "day"]


@dataclass(frozen=True)
class CalendarPart:
    """A part of a date that comes back: in every week, day or year.

    Attributes:
        sql: the expression; `{}` is a date or timestamp.
        name: the name of its column in the result.
        label: the same for people.
        kind: the kind of its values.
        of_clock: whether only dates with a time have it.
        note: a sentence for the user on what the part leaves out.
    """

    sql: str
    name: str
    label: Text
    kind: Literal["number", "boolean"] = "number"
    of_clock: bool = False
    note: Text | None = None


PARTS: dict[Part, CalendarPart] = {
    # Monday is 1.
    "weekday": CalendarPart("extract(isodow FROM {})::int", "weekday", Text("星期", "weekday")),
    "weekend": CalendarPart(
        "(extract(isodow FROM {}) >= 6)",
        "is_weekend",
        Text("是否周末", "weekend"),
        "boolean",
        note=Text(
            "周末指周六和周日，不考虑节假日和调休。",
            "Weekends are Saturdays and Sundays, whatever holidays there are.",
        ),
    ),
    "hour": CalendarPart("extract(hour FROM {})::int", "hour", Text("小时", "hour"), of_clock=True),
    "month": CalendarPart("extract(month FROM {})::int", "month_of_year", Text("月份", "month")),
    "quarter": CalendarPart(
        "extract(quarter FROM {})::int", "quarter_of_year", Text("季度", "quarter")
    ),
    "day": CalendarPart(
        "extract(day FROM {})::int", "day_of_month", Text("日", "day of the month")
    ),
}
