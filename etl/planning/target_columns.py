"""The technical columns of a target, and which of its rows are computed again."""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from common.values import PeriodUnit
from etl.meaning.bound import BoundColumn, BoundIntent, BoundKey
from etl.planning.row_query import RowQuery
from etl.planning.sql_trees import any_of, call, cast, column, is_null, selection, table
from etl.planning.typed_values import TypedValue, period

KEY = "etl_key"
PERIOD = "etl_period"
_NO_PERIOD = "none"
_SEPARATOR = "|"


class TargetColumns:
    """Columns that a target has beside those of its request."""

    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self._target = bound.target
        self._period = self._find_period()

    @property
    def is_incremental(self) -> bool:
        """Tell whether a target that is there already is only added to."""
        return self._target.mode != "replace"

    @property
    def merge_key(self) -> str | None:
        """Return the technical column by which rows are replaced; None when none are."""
        if self._target.mode != "merge":
            return None

        if self._period is None:
            return KEY

        return PERIOD

    @property
    def names(self) -> list[str]:
        """Return the technical columns, in the order in which they follow the others."""
        names = []
        if self._target.has_surrogate_key or self.merge_key == KEY:
            names.append(KEY)
        if self.merge_key == PERIOD:
            names.append(PERIOD)

        return names

    def key_columns(self) -> Sequence[str]:
        """Return the columns that tell the target's rows apart."""
        if self._target.unique_key:
            return self._target.unique_key

        aggregate = self._bound.aggregate
        if aggregate is not None:
            return [key.name for key in aggregate.keys]

        return self._target.columns

    def add(self, rows: RowQuery) -> None:
        """Compute the technical columns."""
        if KEY in self.names:
            columns = [BoundColumn("", name) for name in self.key_columns()]
            rows.settle(columns)
            values = [rows.value(one) for one in columns]
            rows.compute(BoundColumn("", KEY), TypedValue(_digest(values), "text"))

        if PERIOD in self.names and self._period is not None:
            name, unit = self._period
            rows.settle([BoundColumn("", name)])
            value = self._cut(rows.value(BoundColumn("", name)), unit)
            text = cast(value.tree(), "text")
            marked = exp.Coalesce(this=text, expressions=[exp.Literal.string(_NO_PERIOD)])
            rows.compute(BoundColumn("", PERIOD), TypedValue(marked, "text"))

    def increment(self, types: dict[str, str]) -> exp.Expr | None:
        """Return which rows are computed again, over the target's columns; None for all."""
        watermark = self._target.watermark
        if self._period is None or watermark is None or not self.is_incremental:
            return None

        name, unit = self._period
        own = TypedValue(column(name), types[name])
        value = self._cut(own, unit)
        last = self._cut(TypedValue(call("max", column(name)), types[name]), unit)
        if self._target.mode == "append":
            return exp.GT(this=value.tree(), expression=self._or_ever(last, last))

        first = self._looked_back(last, unit, watermark.lookback_days)
        again = exp.GTE(this=value.tree(), expression=self._or_ever(first, last))
        return any_of([again, is_null(column(name))])

    def _looked_back(self, last: TypedValue, unit: PeriodUnit | None, days: int) -> TypedValue:
        interval = exp.Interval(this=exp.Literal.string(str(days)), unit=exp.var("DAY"))
        moment = exp.Sub(this=cast(last.tree(), "timestamp"), expression=interval)
        typed = TypedValue(moment, "timestamp without time zone")
        return period(typed, unit or "day", self._bound.time_zone)

    def _or_ever(self, moment: TypedValue, last: TypedValue) -> exp.Expr:
        """Return the moment in the target that is there, or one before all others."""
        there = selection([("last_period", moment.tree())], table(self._target.model))
        kind = "date" if last.type == "date" else "timestamp"
        ever = cast(exp.Literal.string("-infinity"), kind)
        return exp.Coalesce(this=exp.Subquery(this=there), expressions=[ever])

    def _cut(self, value: TypedValue, unit: PeriodUnit | None) -> TypedValue:
        """Return the period of a column: of one that is no period of the grain, its day."""
        if unit is not None:
            return value

        return period(value, "day", self._bound.time_zone)

    def _find_period(self) -> tuple[str, PeriodUnit | None] | None:
        """Return the column of the target that says a row's period, and its unit if it is cut."""
        watermark = self._target.watermark
        wanted = None if watermark is None else watermark.column
        aggregate = self._bound.aggregate
        if aggregate is not None:
            return _period_among(aggregate.keys, wanted)

        for output in self._bound.outputs:
            if output.column == wanted:
                return output.name, None

        return None


def _period_among(
    keys: Iterable[BoundKey], wanted: BoundColumn | None
) -> tuple[str, PeriodUnit] | None:
    """Return the period of the wanted column, else the first one, with its unit."""
    first = None
    for key in keys:
        if key.unit is None:
            continue

        period = (key.name, key.unit)
        if wanted in (key.column, BoundColumn("", key.name)):
            return period
        if first is None:
            first = period

    return first


def _digest(values: Sequence[TypedValue]) -> exp.Expr:
    """Return a hash of values that no other values have: each text has its length before it."""
    texts: list[exp.Expr] = []
    for value in values:
        text = cast(value.tree(), "text")
        length = cast(call("length", text.copy()), "text")
        marked = exp.DPipe(
            this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=text
        )
        texts.append(exp.Coalesce(this=marked, expressions=[exp.Literal.string("-")]))

    if not texts:
        texts.append(exp.Literal.string(""))  # of the one row of a total

    joined: exp.Expr = texts[0]
    for part in texts[1:]:
        separated = exp.DPipe(this=joined, expression=exp.Literal.string(_SEPARATOR))
        joined = exp.DPipe(this=separated, expression=part)

    return call("md5", joined)
