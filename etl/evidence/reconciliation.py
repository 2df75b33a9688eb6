"""Figures of the target against queries of their own on the sources.

Nothing is shared with the models: a row counts because it exists in its own table and belongs to a
combination, not because joins brought it along.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from etl.evidence.source_combinations import (
    NotReconcilable,
    SourceCombinations,
    alias_of,
)
from etl.meaning.bound import (
    AggregateStep,
    BoundIntent,
    BoundKey,
    BoundMeasure,
    DedupStep,
    FilterStep,
)
from etl.meaning.read_columns import bound_column
from etl.meaning.row_expressions import columns_of
from etl.meaning.value_kinds import kind_of_type
from etl.planning.sql_trees import (
    call,
    cast,
    column,
    identifier,
    selection,
    table,
)

_COUNTED = "etl_counted"
_ADDED = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}
_DIGITS = 6  # to which sums of floating-point numbers are compared


@dataclass(frozen=True)
class Reconciliation:
    """The check of one figure of the target.

    Attributes:
        name: the name of the measure, or `rows`.
        failures: gives a row for each period, or one in all, in which the two differ.
        built, independent: give the two totals; None for the number of rows.
    """

    name: str
    failures: exp.Query
    built: exp.Query | None = None
    independent: exp.Query | None = None


def reconciliations(bound: BoundIntent) -> Iterator[Reconciliation]:
    """Yield the checks of the target's number of rows and measures, as far as there are any."""
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
            reconciliation = way()
            if reconciliation is not None:
                yield reconciliation


class _Checks:
    def __init__(self, bound: BoundIntent) -> None:
        self._bound = bound
        self._combinations = SourceCombinations(bound)
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
            source = exp.Subquery(this=groups, alias=alias_of("etl_groups"))
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
            built = _grouped_by(built, column(cut.name, self._target))
            independent = _grouped_by(independent, column("etl_cut", _COUNTED))

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
        own = self._own(measure, cut)
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

        return exp.Subquery(this=select, alias=alias_of(_COUNTED))

    def _own(self, measure: BoundMeasure, cut: BoundKey | None) -> set[str]:
        """Return the sources whose columns the value and the period are made of."""
        rows = self._combinations
        columns = list(columns_of(measure.value)) if measure.value is not None else []
        own = {cut.column.source} if cut is not None else set()
        for node in columns:
            wanted = bound_column(node)
            # What is made of a table's rows stands in the base's alone.
            is_there = wanted.source or measure.source == rows.base
            own |= rows.origins(wanted) if is_there else {""}

        return own

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


def _comparable(figure: exp.Expr, measure: BoundMeasure, checks: _Checks) -> exp.Expr:
    """Return a figure for comparing: 0 for the sum of no rows, floats rounded."""
    if _ADDED[measure.function] == "sum":
        figure = exp.Coalesce(this=figure, expressions=[exp.Literal.number(0)])
    if not checks.is_float(measure):
        return figure

    return call("round", cast(figure, "numeric"), exp.Literal.number(_DIGITS))


def _grouped_by(select: exp.Select, key: exp.Expr) -> exp.Select:
    outputs = [exp.Alias(this=key, alias=identifier("etl_cut")), *select.expressions]
    select.set("expressions", outputs)
    return select.group_by(key.copy(), copy=False)


_SIDES = ("etl_built", "etl_independent")


def _differing(
    built: exp.Select, independent: exp.Select, names: Sequence[str], added: str
) -> exp.Select:
    """Return the rows of figures that are not the same on both sides.

    Args:
        names: outputs of both: those by which figures belong together, and the figure.
        added: the function that adds figures of one side up.
    """
    *keys, figure = names
    sides = []
    for side, select in zip(_SIDES, (built, independent), strict=True):
        inner = exp.Subquery(this=select, alias=alias_of("etl_side"))
        outputs = _columns(keys, "etl_side")
        for name in _SIDES:
            value = column(figure, "etl_side") if name == side else exp.Null()
            outputs.append((name, value if added == "sum" else cast(value, "text")))

        sides.append(selection(outputs, inner))

    union = exp.union(*sides, distinct=False)
    both = exp.Subquery(this=union, alias=alias_of("etl_both"))
    figures = [_gathered(column(name, "etl_both"), added) for name in _SIDES]
    shown = [*_columns(keys, "etl_both"), *zip(_SIDES, figures, strict=True)]
    select = selection(shown, both)
    for key in keys:
        select.group_by(column(key, "etl_both"), copy=False)

    here, there = (one.copy() for one in figures)
    return select.having(exp.NullSafeNEQ(this=here, expression=there))


def _columns(names: Iterable[str], source: str) -> list[tuple[str, exp.Expr]]:
    return [(name, column(name, source)) for name in names]


def _gathered(value: exp.Expr, added: str) -> exp.Expr:
    """Return the figure of one side; 0 for a sum that the side lacks."""
    if added != "sum":
        return call("max", value)

    return exp.Coalesce(this=call("sum", value), expressions=[exp.Literal.number(0)])
