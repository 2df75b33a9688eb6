"""Figures of the target against queries of their own on the sources.

Nothing is shared with the models: a row counts because it exists in its own table and belongs to a
combination, not because joins brought it along.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from etl.meaning.bound import (
    AggregateStep,
    BoundColumn,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    DedupStep,
    ExpressionStep,
    FilterStep,
    JoinSourceStep,
    MapStep,
    RateStep,
    RowTest,
)
from etl.meaning.read_columns import bound_column, columns_of_test
from etl.meaning.row_expressions import columns_of
from etl.meaning.value_kinds import kind_of_type
from etl.planning.computed_columns import mapped_value, rated_value
from etl.planning.joined_sources import declared_identity
from etl.planning.row_query import InputRows
from etl.planning.source_types import draft_type
from etl.planning.sql_trees import (
    all_of,
    any_of,
    call,
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
    period,
)

_COUNTED = "etl_counted"
_ADDED = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}
_DIGITS = 6  # to which sums of floating-point numbers are compared


class NotReconcilable(Exception):
    """No query of its own says what a figure should be."""


@dataclass(frozen=True)
class Reconciliation:
    """A figure and its check.

    Attributes:
        name: of the measure, or `rows`.
        failures: gives a row for each period, or one in all, in which the two differ.
        built, independent: give the two totals; None for the number of rows.
    """

    name: str
    failures: exp.Query
    built: exp.Query | None = None
    independent: exp.Query | None = None


def reconciliations(bound: BoundIntent) -> Iterator[Reconciliation]:
    """Yield what can be checked of the target."""
    filter_stages = [step.stage for step in bound.steps_of(FilterStep)]
    dedup_stages = [step.stage for step in bound.steps_of(DedupStep)]
    are_deduped_before = {"table"}.issuperset(dedup_stages)
    if "result" in filter_stages or not are_deduped_before:
        return
    checks = _Checks(bound)
    ways: list[Callable[[], Reconciliation | None]] = [checks.rows]
    step = bound.aggregate
    if step is not None:
        ways += [partial(checks.measure, step, measure) for measure in step.measures]
    for way in ways:
        with suppress(NotReconcilable):
            found = way()
            if found is not None:
                yield found


class _Checks:
    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self._combinations = _Combinations(bound)
        self._target = bound.target.model

    def rows(self) -> Reconciliation | None:
        """Return the check of the number of rows."""
        step = self._bound.aggregate
        rows = self._combinations
        if step is None:
            independent = rows.select([("etl_rows", exp.Count(this=exp.Star()))], None)
        elif step.has_spine or not step.keys:
            return None
        else:
            keys = [(key.name, rows.key(key).tree()) for key in step.keys]
            groups = rows.select(keys, None).distinct()
            source = exp.Subquery(this=groups, alias=_alias("etl_groups"))
            independent = selection([("etl_rows", exp.Count(this=exp.Star()))], source)
        built = selection([("etl_rows", exp.Count(this=exp.Star()))], table(self._target))
        failures = _differing(built, independent, ["etl_rows"], "sum")
        return Reconciliation("rows", failures)

    def measure(self, step: AggregateStep, measure: BoundMeasure) -> Reconciliation | None:
        """Return the check of a measure's total, for each period where its rows have one."""
        is_shown = measure.name in self._bound.target.columns
        if measure.function not in _ADDED or not is_shown:
            return None
        if not self._is_in_one_group(step, measure):
            return None
        cut = self._period(step, measure)
        rows = self._rows(measure, cut)
        figure = self._figure(measure, column("etl_value", _COUNTED))
        independent = selection([("etl_value", figure)], rows)
        again = call(_ADDED[measure.function], column(measure.name, self._target))
        built = selection([("etl_value", _comparable(again, measure, self))], table(self._target))
        total_built, total = built.copy(), independent.copy()
        names = ["etl_value"]
        if cut is not None:
            names.insert(0, "etl_cut")
            built = _by(built, column(cut.name, self._target))
            independent = _by(independent, column("etl_cut", _COUNTED))
        failures = _differing(built, independent, names, _ADDED[measure.function])
        return Reconciliation(measure.name, failures, total_built, total)

    def is_float(self, measure: BoundMeasure) -> bool:
        """Tell whether a measure's values are no exact numbers."""
        if measure.value is None:
            return False
        value = self._combinations.computed(measure.value)
        return kind_of_type(value.type) == "float"

    def _figure(self, measure: BoundMeasure, value: exp.Expr) -> exp.Expr:
        figure = call(measure.function, value)
        return _comparable(figure, measure, self)

    def _rows(self, measure: BoundMeasure, cut: BoundKey | None) -> exp.Subquery:
        """Return the rows that count, each once, with the value and the period."""
        rows = self._combinations
        own = _own(measure, cut)
        value: exp.Expr = exp.Literal.number(1)
        if measure.value is not None:
            value = rows.computed(measure.value).tree()
        outputs: list[tuple[str, exp.Expr]] = [("etl_value", value)]
        if cut is not None:
            outputs.append(("etl_cut", rows.key(cut).tree()))
        needed = rows.needed_joins(measure.tests)
        if not needed and own <= {measure.source} and measure.source == rows.base:
            select = rows.select(outputs, [], measure.tests)
        elif own <= {measure.source}:
            select = rows.members(measure.source, outputs, measure.tests)
        else:
            raise NotReconcilable
        return exp.Subquery(this=select, alias=_alias(_COUNTED))

    def _period(self, step: AggregateStep, measure: BoundMeasure) -> BoundKey | None:
        for key in step.keys:
            is_own = key.unit and key.column.source == measure.source
            if is_own and key.name in self._bound.target.columns:
                return key
        return None

    def _is_in_one_group(self, step: AggregateStep, measure: BoundMeasure) -> bool:
        """Tell whether no row of the measure's source belongs to several groups."""
        determined = self._combinations.determined_by(measure.source)
        return all(self._combinations.origins(key.column) <= determined for key in step.keys)


def _own(measure: BoundMeasure, cut: BoundKey | None) -> set[str]:
    columns = list(columns_of(measure.value)) if measure.value is not None else []
    own = {bound_column(node).source for node in columns}
    return own | ({cut.column.source} if cut is not None else set())


def _comparable(figure: exp.Expr, measure: BoundMeasure, checks: _Checks) -> exp.Expr:
    """Return a figure of which equal ones are equal: sums of nothing 0, and rounded floats."""
    if _ADDED[measure.function] == "sum":
        figure = exp.Coalesce(this=figure, expressions=[exp.Literal.number(0)])
    if not checks.is_float(measure):
        return figure
    return call("round", cast(figure, "numeric"), exp.Literal.number(_DIGITS))


def _by(select: exp.Select, key: exp.Expr) -> exp.Select:
    outputs = [exp.Alias(this=key, alias=identifier("etl_cut")), *select.expressions]
    select.set("expressions", outputs)
    return select.group_by(key.copy(), copy=False)


_SIDES = ("etl_built", "etl_independent")


def _differing(
    built: exp.Select, independent: exp.Select, names: Sequence[str], added: str
) -> exp.Select:
    """Return the rows of figures that are not the same on both sides."""
    *keys, figure = names
    sides = []
    for side, select, other in (
        ("etl_built", built, "etl_independent"),
        ("etl_independent", independent, "etl_built"),
    ):
        inner = exp.Subquery(this=select, alias=_alias("etl_side"))
        values = {side: column(figure, "etl_side"), other: exp.Null()}
        if added != "sum":
            values = {name: cast(value, "text") for name, value in values.items()}
        outputs: list[tuple[str, exp.Expr]] = [(key, column(key, "etl_side")) for key in keys]
        outputs += [(name, values[name]) for name in _SIDES]
        sides.append(selection(outputs, inner))
    both = exp.Subquery(
        this=exp.union(sides[0], sides[1], distinct=False), alias=_alias("etl_both")
    )
    figures = [_gathered(column(name, "etl_both"), added) for name in _SIDES]
    shown: list[tuple[str, exp.Expr]] = [(key, column(key, "etl_both")) for key in keys]
    shown += [("etl_built", figures[0]), ("etl_independent", figures[1])]
    select = selection(shown, both)
    for key in keys:
        select.group_by(column(key, "etl_both"), copy=False)
    return select.having(exp.NullSafeNEQ(this=figures[0].copy(), expression=figures[1].copy()))


def _gathered(value: exp.Expr, added: str) -> exp.Expr:
    """Return the one figure of a side; of sums that a side has not, 0."""
    if added != "sum":
        return call("max", value)
    return exp.Coalesce(this=call("sum", value), expressions=[exp.Literal.number(0)])


class _Combinations:
    """The combinations of an intent's sources, straight from the datasource's tables."""

    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self.base = bound.base.name
        self._joins = [step for step in bound.steps_of(JoinSourceStep) if step.stage == "rows"]

    # columns

    def value(self, wanted: BoundColumn) -> TypedValue:
        """Return a column of a source, or one that a step makes."""
        if wanted.source:
            return self._stored(wanted.source, wanted.name)
        for step in self._bound.steps:
            if isinstance(step, ExpressionStep | MapStep | RateStep) and step.name == wanted.name:
                return self._made(step)
        raise NotReconcilable

    def _stored(self, source: str, name: str, alias: str | None = None) -> TypedValue:
        stored = self._bound.source(source).table.column(name)
        if stored is None:
            raise NotReconcilable
        type_ = draft_type(stored.type)
        value: exp.Expr = column(name, alias or source)
        if type_ != stored.type:
            value = cast(value, type_)
        return TypedValue(value, type_)

    def _made(self, step: ExpressionStep | MapStep | RateStep) -> TypedValue:
        if isinstance(step, RateStep):
            return self._rated(step)
        if step.stage == "table" and step.source != self.base:
            raise NotReconcilable
        if isinstance(step, MapStep):
            return mapped_value(step, self.value)
        return self.computed(step.expression)

    def _rated(self, step: RateStep) -> TypedValue:
        """Return the converted amount; the rates are read under their own name."""
        names = (step.rate, step.rate_currency, step.rate_day)
        known = {}
        for name in names:
            stored = self._bound.source(step.rates).table.column(name)
            if stored is None:
                raise NotReconcilable
            known[BoundColumn(step.rates, name)] = (name, draft_type(stored.type))
        rows = InputRows("etl_rates", known)
        value = rated_value(step, self.value, rows, self._bound.time_zone)
        rates = self._bound.source(step.rates).table
        tree = value.tree()
        for one in tree.find_all(exp.Table):
            if one.name == "etl_rates":
                read = table(rates.name, rates.schema)
                read.set("alias", _alias("etl_rates"))
                one.replace(read)
        return TypedValue(tree, value.type)

    def computed(self, expression: exp.Expression) -> TypedValue:
        """Return the value of an expression of the intent."""
        return computed_value(expression, self.value, self._bound.time_zone)

    def key(self, key: BoundKey) -> TypedValue:
        """Return the value of a group's key."""
        value = self.value(key.column)
        return period(value, key.unit, self._bound.time_zone) if key.unit else value

    def origins(self, wanted: BoundColumn) -> set[str]:
        """Return the sources whose columns a column is made of."""
        if wanted.source:
            return {wanted.source}
        value = self.value(wanted).expression
        return {node.table for node in value.find_all(exp.Column)} - {"etl_rates"}

    # which rows there are

    def determined_by(self, source: str) -> set[str]:
        """Return the sources of which a row of `source` leaves at most one row to choose."""
        known = {source}
        for _ in self._joins:
            for step in self._joins:
                lefts = {left.source for left, _ in step.on}
                if lefts <= known and not step.is_multiple:
                    known.add(step.right)
                if step.right in known and self._is_key(lefts, step):
                    known |= lefts
        return known

    def _is_key(self, lefts: set[str], step: JoinSourceStep) -> bool:
        if len(lefts) != 1 or "" in lefts:
            return False
        left = self._bound.source(next(iter(lefts))).table
        columns = {one.name for one, _ in step.on}
        return any(key and columns.issuperset(key) for key in (left.primary_key, *left.unique_keys))

    def needed_joins(self, tests: Sequence[RowTest]) -> list[JoinSourceStep]:
        """Return the joins that decide whether a base row is there and fulfils the tests."""
        wanted = {step.right for step in self._joins if step.how != "left"}
        for test in [*self._row_tests(), *tests]:
            for one in columns_of_test(test):
                wanted |= self.origins(one)
        needed: list[JoinSourceStep] = []
        for step in reversed(self._joins):
            if step.right in wanted:
                needed.insert(0, step)
                for left, _ in step.on:
                    wanted |= self.origins(left)
        return needed

    def select(
        self,
        outputs: Iterable[tuple[str, exp.Expr]],
        joins: Sequence[JoinSourceStep] | None,
        tests: Sequence[RowTest] = (),
    ) -> exp.Select:
        """Return a SELECT over the combinations; with `joins` only over these."""
        rows = selection(outputs, self._read(self.base))
        kept = [*self._of_table(self.base)]
        for step in self._joins if joins is None else joins:
            if step.how in ("left", "inner"):
                rows.append("joins", self._join(step))
            else:
                kept.append(self._membership(step))
        for test in [*self._row_tests(), *tests]:
            kept.append(condition(test, self.value, self._bound.time_zone))
        condition_of_all = all_of(kept)
        return rows.where(condition_of_all, copy=False) if condition_of_all else rows

    def members(
        self, source: str, outputs: Sequence[tuple[str, exp.Expr]], tests: Sequence[RowTest]
    ) -> exp.Select:
        """Return a SELECT over the rows of a source that some combination holds."""
        key = declared_identity(self._bound.source(source).table)
        if not key:
            raise NotReconcilable
        joins = self._joins_to(source, tests)
        held = self.select([("etl_one", exp.Literal.number(1))], joins, tests)
        same = [
            exp.EQ(this=column(name, source), expression=column(name, "etl_member")) for name in key
        ]
        held.where(all_of(same), copy=False)
        renamed = []
        for name, value in outputs:
            root = exp.Paren(this=value.copy())
            for node in list(root.find_all(exp.Column)):
                if node.table == source:
                    node.set("table", identifier("etl_member"))
            renamed.append((name, root.this))
        read = self._read(source)
        read.set("alias", _alias("etl_member"))
        return selection(renamed, read).where(exp.Exists(this=held))

    def _joins_to(self, source: str, tests: Sequence[RowTest]) -> list[JoinSourceStep]:
        needed = {id(step) for step in self.needed_joins(tests)}
        wanted = {source}
        for step in reversed(self._joins):
            if step.right in wanted or id(step) in needed:
                needed.add(id(step))
                for left, _ in step.on:
                    wanted |= self.origins(left)
        return [step for step in self._joins if id(step) in needed]

    def _row_tests(self) -> list[RowTest]:
        found: list[RowTest] = []
        for step in self._bound.steps_of(FilterStep):
            if step.stage == "rows":
                found.extend(step.tests)
        return found

    def _read(self, source: str) -> exp.Table:
        stored = self._bound.source(source).table
        read = table(stored.name, stored.schema)
        read.set("alias", _alias(source))
        return read

    def _join(self, step: JoinSourceStep) -> exp.Join:
        on = all_of([*self._pairs(step), *self._of_table(step.right)])
        side = {"side": "LEFT"} if step.how == "left" else {"kind": "INNER"}
        return exp.Join(this=self._read(step.right), on=on, **side)

    def _membership(self, step: JoinSourceStep) -> exp.Expr:
        one = selection([("etl_one", exp.Literal.number(1))], self._read(step.right))
        one.where(all_of([*self._pairs(step), *self._of_table(step.right)]), copy=False)
        found = exp.Exists(this=one)
        return exp.Not(this=found) if step.how == "anti" else found

    def _pairs(self, step: JoinSourceStep) -> Iterator[exp.Expr]:
        for left, right in step.on:
            one, other = aligned(self.value(left), self.value(right), self._bound.time_zone)
            yield exp.EQ(this=one, expression=other)

    # steps on one table

    def _of_table(self, source: str) -> Iterator[exp.Expr]:
        """Yield what a row of the source fulfils that the steps on its table keep."""
        earlier: list[RowTest] = []
        has_dedup = False
        for step in self._bound.steps:
            if isinstance(step, FilterStep) and step.stage == "table" and step.source == source:
                for test in step.tests:
                    yield condition(test, self.value, self._bound.time_zone)
                earlier.extend(step.tests)
            elif isinstance(step, JoinSourceStep) and step.source == source:
                if has_dedup:
                    raise NotReconcilable
                yield self._membership(step)
            elif isinstance(step, DedupStep) and step.source == source:
                if has_dedup:
                    raise NotReconcilable
                has_dedup = True
                yield self._is_first(step, earlier)

    def _is_first(self, step: DedupStep, tests: Sequence[RowTest]) -> exp.Expr:
        """Return whether no other row of the key comes before this one."""
        source = self._bound.source(step.source)
        if not source.table.primary_key or tests:
            raise NotReconcilable
        other = table(source.table.name, source.table.schema)
        other.set("alias", _alias("etl_other"))
        same = [
            exp.EQ(this=column(key, "etl_other"), expression=column(key, step.source))
            for key in step.keys
        ]
        order = [*step.sorting, *((name, "desc") for name in source.table.primary_key)]
        before = self._before(step.source, order)
        one = selection([("etl_one", exp.Literal.number(1))], other)
        one.where(all_of([*same, before]), copy=False)
        nobodys = [is_null(column(key, step.source)) for key in step.keys]
        return any_of([*nobodys, exp.Not(this=exp.Exists(this=one))])

    def _before(self, source: str, order: Sequence[tuple[str, str]]) -> exp.Expr:
        ways = []
        equal: list[exp.Expr] = []
        for name, direction in order:
            ours = self._stored(source, name).tree()
            theirs = self._stored(source, name, "etl_other").tree()
            comparison = exp.GT if direction == "desc" else exp.LT
            is_before = comparison(this=theirs.copy(), expression=ours.copy())
            null, value = (theirs, ours) if direction == "desc" else (ours, theirs)
            null_before = exp.and_(is_null(null.copy()), not_null(value.copy()))
            way = any_of([is_before, null_before])
            ways.append(exp.and_(*[one.copy() for one in equal], way) if equal else way)
            equal.append(exp.NullSafeEQ(this=theirs.copy(), expression=ours.copy()))
        return any_of(ways)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=identifier(name))
