"""The combinations of an intent's sources, by queries that read the datasource's own tables.

Nothing is shared with the models of a draft, so that figures of theirs can be checked by these.
"""

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from etl.meaning.bound import (
    BoundColumn,
    BoundIntent,
    BoundKey,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    RowTest,
)
from etl.meaning.read_columns import columns_of_test
from etl.planning.computed_columns import mapped_value, rated_value
from etl.planning.joined_sources import declared_identity
from etl.planning.row_query import InputRows
from etl.planning.source_types import draft_type
from etl.planning.sql_trees import (
    all_of,
    any_of,
    cast,
    column,
    identifier,
    is_null,
    not_null,
    selection,
    table,
)
from etl.planning.typed_values import (
    TypedValue,
    aligned,
    computed_value,
    condition,
    in_period,
)

_RATES = "etl_rates"


class NotReconcilable(Exception):
    """No query of its own says what a figure should be."""


class SourceCombinations:
    """The combinations of an intent's sources, straight from the datasource's tables."""

    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self.base = bound.base.name
        self._joins = [step for step in bound.steps_of(JoinSourceStep) if step.stage == "rows"]

    # columns

    def value(self, bound_column: BoundColumn) -> TypedValue:
        """Return a column of a source, or one that a step makes."""
        if bound_column.source:
            return self._stored_value(bound_column.source, bound_column.name)

        for step in self._bound.steps:
            if (
                isinstance(step, ExpressionStep | MapStep | RateStep)
                and step.name == bound_column.name
            ):
                return self._computed_value(step)

        raise NotReconcilable

    def _stored_value(self, source: str, name: str, alias: str | None = None) -> TypedValue:
        stored = self._bound.source(source).table.column(name)
        if stored is None:
            raise NotReconcilable

        type_ = draft_type(stored.type)
        value: exp.Expr = column(name, alias or source)
        if type_ != stored.type:
            value = cast(value, type_)

        return TypedValue(value, type_)

    def _computed_value(self, step: ExpressionStep | MapStep | RateStep) -> TypedValue:
        if isinstance(step, RateStep):
            return self._rated(step)
        if step.stage == "table" and step.source != self.base:
            raise NotReconcilable
        if isinstance(step, MapStep):
            return mapped_value(step, self.value)

        return self.computed(step.expression)

    def _rated(self, step: RateStep) -> TypedValue:
        """Return the converted amount; the rates are read under their own name."""
        rate_columns = {}
        names = [step.rate, step.rate_currency, step.rate_day, step.target_currency]
        for name in filter(None, names):
            type_ = self._stored_value(step.rates, name).type
            rate_columns[BoundColumn(step.rates, name)] = (name, type_)

        rows = InputRows(_RATES, rate_columns)
        value = rated_value(step, self.value, rows, self._bound.time_zone)
        tree = value.tree()
        for read in tree.find_all(exp.Table):
            if read.name == _RATES:
                read.replace(self._read(step.rates, _RATES))

        return TypedValue(tree, value.type)

    def computed(self, expression: exp.Expression) -> TypedValue:
        """Return the value of an expression of the intent."""
        return computed_value(expression, self.value, self._bound.time_zone)

    def key(self, key: BoundKey) -> TypedValue:
        """Return the value of a group's key."""
        value = self.value(key.column)
        return in_period(value, key.unit, self._bound.time_zone)

    def origins(self, bound_column: BoundColumn) -> set[str]:
        """Return the sources whose columns a column is made of."""
        if bound_column.source:
            return {bound_column.source}

        value = self.value(bound_column).expression
        return {node.table for node in value.find_all(exp.Column)} - {_RATES}

    # which rows there are

    def determined_by(self, source: str) -> set[str]:
        """Return the sources of which a row of `source` leaves at most one row to choose."""
        sources = {source}
        for _ in self._joins:
            for step in self._joins:
                is_reached = step.left_sources <= sources
                if is_reached and not step.is_multiple:
                    sources.add(step.right)
                if step.right in sources and self._is_unique(step):
                    sources |= step.left_sources

        return sources

    def _is_unique(self, step: JoinSourceStep) -> bool:
        """Tell whether a row of the join's right source belongs to one row before it at most."""
        if step.only_left is None:
            return False

        joined = {left.name for left, _ in step.on}
        keys = self._bound.source(step.only_left).table.declared_keys
        return any(map(joined.issuperset, keys))

    def needed_joins(
        self, tests: Sequence[RowTest], source: str | None = None
    ) -> list[JoinSourceStep]:
        """Return the joins that decide whether a base row is there and fulfils the tests.

        Args:
            source: whose rows are joined as well.
        """
        sources = {step.right for step in self._joins if step.how != "left"}
        if source is not None:
            sources.add(source)

        for test in [*self._row_tests(), *tests]:
            sources |= self._all_origins(columns_of_test(test))

        needed: list[JoinSourceStep] = []
        for step in reversed(self._joins):
            if step.right in sources:
                needed.append(step)
                sources |= self._all_origins(left for left, _ in step.on)

        return needed[::-1]

    def _all_origins(self, columns: Iterable[BoundColumn]) -> set[str]:
        origins: set[str] = set()
        for one in columns:
            origins |= self.origins(one)

        return origins

    def select(
        self,
        outputs: Iterable[tuple[str, exp.Expr]],
        joins: Sequence[JoinSourceStep] | None,
        tests: Sequence[RowTest] = (),
    ) -> exp.Select:
        """Return a SELECT over the combinations; with `joins` only over these."""
        rows = selection(outputs, self._read(self.base))
        holding = [*self._of_table(self.base)]
        for step in self._joins if joins is None else joins:
            if step.how in ("left", "inner"):
                rows.append("joins", self._join(step))
            else:
                holding.append(self._membership(step))

        holding += self._conditions([*self._row_tests(), *tests])
        condition_of_all = all_of(holding)
        if condition_of_all:
            return rows.where(condition_of_all, copy=False)

        return rows

    def members(
        self, source: str, outputs: Sequence[tuple[str, exp.Expr]], tests: Sequence[RowTest]
    ) -> exp.Select:
        """Return a SELECT over the rows of a source that some combination holds."""
        key = declared_identity(self._bound.source(source).table)
        if not key:
            raise NotReconcilable

        combined = self.select(_one(), self.needed_joins(tests, source), tests)
        combined.where(all_of(_equal(key, source, "etl_member")), copy=False)
        renamed = [(name, _read_from("etl_member", source, value)) for name, value in outputs]
        members = self._read(source, "etl_member")
        return selection(renamed, members).where(exp.Exists(this=combined))

    def _row_tests(self) -> list[RowTest]:
        tests: list[RowTest] = []
        for step in self._bound.steps_of(FilterStep):
            if step.stage == "rows":
                tests.extend(step.tests)

        return tests

    def _conditions(self, tests: Iterable[RowTest]) -> Iterator[exp.Expr]:
        for test in tests:
            yield condition(test, self.value, self._bound.time_zone)

    def _read(self, source: str, alias: str | None = None) -> exp.Table:
        """Return the table of a source under the source's name, or under another one."""
        stored = self._bound.source(source).table
        read = table(stored.name, stored.schema)
        read.set("alias", alias_of(alias or source))
        return read

    def _join(self, step: JoinSourceStep) -> exp.Join:
        on = all_of(self._meeting(step))
        side = {"side": "LEFT"} if step.how == "left" else {"kind": "INNER"}
        return exp.Join(this=self._read(step.right), on=on, **side)

    def _membership(self, step: JoinSourceStep) -> exp.Expr:
        """Return whether a row of the right source meets, or that none does."""
        exists = _exists(self._read(step.right), self._meeting(step))
        if step.how == "anti":
            return exp.Not(this=exists)

        return exists

    def _meeting(self, step: JoinSourceStep) -> list[exp.Expr]:
        """Return what holds for the rows of the right source that the join takes."""
        holding: list[exp.Expr] = []
        for left, right in step.on:
            left_value, right_value = aligned(
                self.value(left), self.value(right), self._bound.time_zone
            )
            holding.append(exp.EQ(this=left_value, expression=right_value))

        holding += self._of_table(step.right)
        return holding

    # steps on one table

    def _of_table(self, source: str) -> Iterator[exp.Expr]:
        """Yield what a row of the source fulfils that the steps on its table keep."""
        earlier: list[RowTest] = []
        has_dedup = False
        for step in self._steps_on(source):
            if isinstance(step, FilterStep):
                yield from self._conditions(step.tests)
                earlier.extend(step.tests)
                continue

            if has_dedup:
                raise NotReconcilable
            if isinstance(step, DedupStep):
                has_dedup = True
                yield self._is_first(step, earlier)
            else:
                yield self._membership(step)

    def _steps_on(self, source: str) -> Iterator[FilterStep | JoinSourceStep | DedupStep]:
        for step in self._bound.steps:
            match step:
                case FilterStep(stage="table") | JoinSourceStep() | DedupStep():
                    if step.source == source:
                        yield step

    def _is_first(self, step: DedupStep, tests: Sequence[RowTest]) -> exp.Expr:
        """Return whether no other row of the key comes before this one."""
        primary_key = self._bound.source(step.source).table.primary_key
        if not primary_key or tests:
            raise NotReconcilable

        same = _equal(step.keys, "etl_other", step.source)
        last_first = [(name, "desc") for name in primary_key]
        before = self._before(step.source, [*step.sorting, *last_first])
        earlier = _exists(self._read(step.source, "etl_other"), [*same, before])
        nobodys = [is_null(column(key, step.source)) for key in step.keys]
        return any_of([*nobodys, exp.Not(this=earlier)])

    def _before(self, source: str, order: Sequence[tuple[str, str]]) -> exp.Expr:
        """Return whether the other row comes before this one in an order of columns."""
        ways = []
        equal: list[exp.Expr] = []
        for name, direction in order:
            ours = self._stored_value(source, name).tree()
            theirs = self._stored_value(source, name, "etl_other").tree()
            way = _is_ahead(theirs, ours, direction)
            ways.append(exp.and_(*[equality.copy() for equality in equal], way) if equal else way)
            equal.append(exp.NullSafeEQ(this=theirs.copy(), expression=ours.copy()))

        return any_of(ways)


def _is_ahead(theirs: exp.Expr, ours: exp.Expr, direction: str) -> exp.Expr:
    """Return whether one value is sorted before another; NULL is the largest, or the last."""
    comparison = exp.LT if direction == "asc" else exp.GT
    null, value = (theirs, ours) if direction == "desc" else (ours, theirs)
    is_before = comparison(this=theirs.copy(), expression=ours.copy())
    null_before = exp.and_(is_null(null.copy()), not_null(value.copy()))
    return any_of([is_before, null_before])


def _one() -> list[tuple[str, exp.Expr]]:
    """Return the output of a query of which only matters whether it has rows."""
    return [("etl_one", exp.Literal.number(1))]


def _equal(names: Iterable[str], one: str, other: str) -> list[exp.Expr]:
    """Return that two tables have the same values in these columns."""
    return [exp.EQ(this=column(name, one), expression=column(name, other)) for name in names]


def _exists(read: exp.Table, holding: Sequence[exp.Expr]) -> exp.Exists:
    """Return whether the table has a row for which all of it holds."""
    selected = selection(_one(), read)
    return exp.Exists(this=selected.where(all_of(holding), copy=False))


def _read_from(alias: str, source: str, value: exp.Expr) -> exp.Expr:
    """Return a copy of the value that reads a source's columns under another name."""
    root = exp.Paren(this=value.copy())
    for node in root.find_all(exp.Column):
        if node.table == source:
            node.set("table", identifier(alias))

    renamed: exp.Expr = root.this
    return renamed


def alias_of(name: str) -> exp.TableAlias:
    """Return the name as that of a table in a query."""
    return exp.TableAlias(this=identifier(name))
