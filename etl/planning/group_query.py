"""The SELECT of an aggregate: each measure counts each row of its own source once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from common.values import PeriodUnit
from etl.meaning.bound import AggregateStep, BoundColumn, BoundMeasure, RowTest
from etl.meaning.read_columns import bound_column, columns_of_test
from etl.meaning.row_expressions import columns_of
from etl.meaning.value_kinds import bare_type, kind_of_type
from etl.planning.row_query import InputRows, RowQuery
from etl.planning.sql_trees import (
    all_of,
    call,
    cast,
    column,
    identifier,
    not_null,
    null_of,
    selection,
    table,
)
from etl.planning.typed_values import (
    Resolve,
    TypedValue,
    computed_value,
    conditions,
    in_period,
)
from etl.schemas.parameters import MeasureFunction

_STEPS: dict[PeriodUnit, tuple[int, str]] = {
    "hour": (1, "hour"),
    "day": (1, "day"),
    "week": (7, "day"),
    "month": (1, "month"),
    "quarter": (3, "month"),
    "year": (1, "year"),
}
_STACK, _PERIODS, _GROUPS = "etl_counted", "etl_periods", "etl_groups"


class Membership(Protocol):
    """Knowledge of the sources' rows in the combinations that are grouped."""

    def is_once(self, source: str) -> bool:
        """Tell whether each row of the source is in at most one combination."""

    def is_always(self, source: str) -> bool:
        """Tell whether each combination has a row of the source."""

    def identity(self, source: str) -> Sequence[BoundColumn]:
        """Return columns that tell the source's rows apart; they are NULL only without a row."""


@dataclass(frozen=True)
class _Member:
    """The value that a row gives to a measure; `exists` tells whether it gives anything."""

    measure: BoundMeasure
    value: TypedValue
    exists: exp.Expr | None

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def function(self) -> MeasureFunction:
        return self.measure.function


@dataclass
class _Branch:
    """Rows of one source that are told apart before they count, and the measures on them."""

    source: str
    tests: tuple[RowTest, ...]
    members: list[_Member] = field(default_factory=list)


@dataclass(frozen=True)
class GroupPart:
    """Measures with the combinations that they are worked out from.

    Attributes:
        rows: a model of them; None for the query that is grouped.
    """

    measures: Sequence[BoundMeasure]
    membership: Membership
    rows: InputRows | None = None


class GroupQuery:
    """Groups the rows of a query, and of further models, by the keys of an aggregate."""

    def __init__(
        self, step: AggregateStep, rows: RowQuery, parts: Sequence[GroupPart], time_zone: str
    ) -> None:
        self._step = step
        self._rows = rows
        self._parts = parts
        self._time_zone = time_zone
        for part in parts:
            if part.rows is None:
                own = replace(step, measures=tuple(part.measures))
                rows.settle(columns_of_aggregate(own, part.membership))

    def apply(self) -> None:
        """Let the query go on from the groups; their columns are named as keys and measures."""
        if self._is_plain and not self._step.has_spine:
            select, types = self._grouped_rows()
        else:
            select, types = self._grouped_stack()

        columns = {BoundColumn("", name): (name, type_) for name, type_ in types.items()}
        self._rows.continue_from(select, columns, _GROUPS)

    @property
    def _is_plain(self) -> bool:
        """Tell whether all rows count once as they are."""
        if len(self._parts) > 1:
            return False

        (part,) = self._parts
        return all(part.membership.is_once(measure.source) for measure in part.measures)

    def _reader(self, part: GroupPart) -> "_PartReader":
        if part.rows is None:
            return _PartReader(self._step, part, self._rows.value, self._time_zone)

        resolve = part.rows.values().__getitem__
        return _PartReader(self._step, part, resolve, self._time_zone)

    def _types(self, keys: Mapping[str, TypedValue], members: Iterable[_Member]) -> dict[str, str]:
        types = {name: key.type for name, key in keys.items()}
        figures = {
            member.name: aggregate_type(member.function, member.value.type) for member in members
        }
        for measure in self._step.measures:
            types[measure.name] = figures[measure.name]

        return types

    def _grouped_rows(self) -> tuple[exp.Select, dict[str, str]]:
        """Group rows that all count once as they are."""
        reader = self._reader(self._parts[0])
        keys, members = reader.key_values(), reader.members()
        outputs = [(name, key.tree()) for name, key in keys.items()]
        for member in members:
            figure = _aggregate(member, member.value, reader.tests(member))
            outputs.append((member.name, figure))

        select = self._rows.level(outputs)
        for key in keys.values():
            select.group_by(key.tree(), copy=False)

        return select, self._types(keys, members)

    def _grouped_stack(self) -> tuple[exp.Select, dict[str, str]]:
        """Tell rows apart first, then count all measures from one list."""
        stored = self._rows.input_rows()
        readers = [self._reader(part) for part in self._parts]
        keys = readers[0].key_values()
        members: dict[str, _Member] = {}
        for reader in readers:
            members |= {member.name: member for member in reader.members()}

        slots = {measure.name: _slot(members[measure.name]) for measure in self._step.measures}
        queries: list[exp.Select] = []
        for reader in readers:
            rows = reader.part.rows or stored
            queries.extend(self._counted(reader, rows.name, slots))

        are_all_apart = not any(reader.once() for reader in readers)
        if keys and are_all_apart:
            queries.append(_groups_only(stored.name, keys, slots))

        self._rows.add_query(_STACK, _union_all(queries))
        select = self._figures(list(keys), members, slots)
        return select, self._types(keys, members.values())

    def _figures(
        self,
        keys: Sequence[str],
        members: Mapping[str, _Member],
        slots: Mapping[str, TypedValue],
    ) -> exp.Select:
        name = _STACK
        source: exp.Expr = table(_STACK)
        if self._step.has_spine:
            name = "etl_rows"
            listed = [(one, column(one, _STACK)) for one in (*keys, *slots)]
            rows = _union_all([selection(listed, table(_STACK)), self._spine(keys, slots)])
            source = exp.Subquery(this=rows, alias=exp.TableAlias(this=identifier(name)))

        outputs: list[tuple[str, exp.Expr]] = [(key, column(key, name)) for key in keys]
        for slot, value in slots.items():
            counted = TypedValue(column(slot, name), value.type)
            outputs.append((slot, _aggregate(members[slot], counted, [])))

        select = selection(outputs, source)
        for key in keys:
            select.group_by(column(key, name), copy=False)

        return select

    def _counted(
        self, reader: "_PartReader", name: str, slots: Mapping[str, TypedValue]
    ) -> Iterator[exp.Select]:
        """Yield the rows of a part that count, each with its keys and its own measures' values."""
        if reader.once():
            yield selection(reader.as_they_are(slots), table(name))

        for branch in reader.branches():
            single = reader.told_apart(branch, name, slots)
            stored = self._rows.add_query(f"etl_{branch.source}", single)
            keys = {key: column(key, stored) for key in reader.key_values()}
            values = {member.name: column(member.name, stored) for member in branch.members}
            yield selection(_outputs(keys, slots, values), table(stored))

    def _spine(self, keys: Sequence[str], slots: Mapping[str, TypedValue]) -> exp.Select:
        """Return a row without values for every period, with each combination of other keys."""
        (cut,) = [key for key in self._step.keys if key.unit]
        assert cut.unit is not None
        self._rows.add_query(_PERIODS, _periods(cut.name, cut.unit))
        outputs: dict[str, exp.Expr] = {}
        others = []
        for key in keys:
            is_period = key == cut.name
            outputs[key] = column(key, _PERIODS if is_period else _GROUPS)
            if not is_period:
                others.append(key)

        select = selection(_outputs(outputs, slots, {}), table(_PERIODS))
        if others:
            select.append("joins", exp.Join(this=_occurring(others), kind="CROSS"))

        return select


def _occurring(keys: Sequence[str]) -> exp.Subquery:
    """Return the combinations of keys that occur."""
    listed = [(key, column(key, _STACK)) for key in keys]
    occurring = selection(listed, table(_STACK)).distinct(copy=False)
    return exp.Subquery(this=occurring, alias=exp.TableAlias(this=identifier(_GROUPS)))


class _PartReader:
    """The keys and measures of a part, over what it is read from."""

    def __init__(
        self, step: AggregateStep, part: GroupPart, resolve: Resolve, time_zone: str
    ) -> None:
        self.part = part
        self._step = step
        self._resolve = resolve
        self._time_zone = time_zone

    def key_values(self) -> dict[str, TypedValue]:
        keys = {}
        for key in self._step.keys:
            value = self._resolve(key.column)
            keys[key.name] = in_period(value, key.unit, self._time_zone)

        return keys

    def members(self) -> list[_Member]:
        return [self._member(measure) for measure in self.part.measures]

    def _member(self, measure: BoundMeasure) -> _Member:
        exists = None
        if not self.part.membership.is_always(measure.source):
            mark = self.part.membership.identity(measure.source)[0]
            exists = not_null(self._resolve(mark).tree())

        if measure.value is None:
            return _Member(measure, TypedValue(exp.Literal.number(1), "integer"), exists)

        value = computed_value(measure.value, self._resolve, self._time_zone)
        # The columns of a row that is not there are NULL, which no function counts.
        is_column = isinstance(measure.value, exp.Column) and bool(measure.value.table)
        return _Member(measure, value, None if is_column else exists)

    def tests(self, member: _Member) -> list[exp.Expr]:
        """Return the conditions under which a row counts for a measure."""
        tests = []
        if member.exists is not None:
            tests.append(member.exists)

        own = conditions(member.measure.tests, self._resolve, self._time_zone)
        if own is not None:
            tests.append(own)

        return tests

    def once(self) -> list[_Member]:
        """Return the measures on rows that no join repeats."""
        is_once = self.part.membership.is_once
        members = []
        for member in self.members():
            if is_once(member.measure.source):
                members.append(member)

        return members

    def as_they_are(self, slots: Mapping[str, TypedValue]) -> list[tuple[str, exp.Expr]]:
        """Return the outputs for rows that no join repeats."""
        values = {}
        for member in self.once():
            value = _slot(member).tree()
            tests = all_of(self.tests(member))
            if tests is not None:
                value = exp.Case(ifs=[exp.If(this=tests, true=value)])

            values[member.name] = value

        return _outputs(_trees(self.key_values()), slots, values)

    def branches(self) -> list[_Branch]:
        branches: dict[tuple[str, str], _Branch] = {}
        for member in self.members():
            measure = member.measure
            if self.part.membership.is_once(measure.source):
                continue

            key = (measure.source, repr(measure.tests))
            branch = branches.setdefault(key, _Branch(measure.source, measure.tests))
            branch.members.append(member)

        return list(branches.values())

    def told_apart(self, branch: _Branch, name: str, slots: Mapping[str, TypedValue]) -> exp.Select:
        """Return each row of the branch's source once per group, although joins repeat it."""
        identity = self.part.membership.identity(branch.source)
        marks = [self._resolve(one) for one in identity]
        outputs = _trees(self.key_values())
        for number, mark in enumerate(marks, 1):
            outputs[f"etl_id_{number}"] = mark.tree()

        for member in branch.members:
            outputs[member.name] = slots[member.name].tree()

        kept = [not_null(marks[0].tree())]
        tests = conditions(branch.tests, self._resolve, self._time_zone)
        if tests is not None:
            kept.append(tests)

        single = selection(list(outputs.items()), table(name)).distinct(copy=False)
        return single.where(all_of(kept), copy=False)


def columns_of_aggregate(step: AggregateStep, membership: Membership) -> list[BoundColumn]:
    """Return the columns of the rows that an aggregate reads."""
    needed = [key.column for key in step.keys]
    for measure in step.measures:
        needed.extend(_columns_of_measure(measure))
        is_once = membership.is_once(measure.source)
        if not (is_once and membership.is_always(measure.source)):
            needed.extend(membership.identity(measure.source))

    return list(dict.fromkeys(needed))


def _columns_of_measure(measure: BoundMeasure) -> Iterator[BoundColumn]:
    for test in measure.tests:
        yield from columns_of_test(test)

    if measure.value is not None:
        for node in columns_of(measure.value):
            yield bound_column(node)


def _trees(values: Mapping[str, TypedValue]) -> dict[str, exp.Expr]:
    return {name: value.tree() for name, value in values.items()}


def _outputs(
    keys: Mapping[str, exp.Expr],
    slots: Mapping[str, TypedValue],
    values: Mapping[str, exp.Expr],
) -> list[tuple[str, exp.Expr]]:
    """Return a row of the list of what counts: measures that it has no value for are NULL."""
    outputs = [(name, key.copy()) for name, key in keys.items()]
    for name, slot in slots.items():
        outputs.append((name, values.get(name, null_of(slot.type))))

    return outputs


def _union_all(queries: Sequence[exp.Select]) -> exp.Query:
    stack: exp.Query = queries[0]
    for query in queries[1:]:
        stack = exp.union(stack, query, distinct=False)

    return stack


def _groups_only(
    name: str, keys: Mapping[str, TypedValue], slots: Mapping[str, TypedValue]
) -> exp.Select:
    """Return every group once, so that one without anything to count is there too."""
    rows = selection(_outputs(_trees(keys), slots, {}), table(name))
    return rows.distinct(copy=False)


def _periods(name: str, unit: PeriodUnit) -> exp.Select:
    count, part = _STEPS[unit]
    first = cast(call("min", column(name, _STACK)), "timestamp")
    last = cast(call("max", column(name, _STACK)), "timestamp")
    step = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(part.upper()))
    series: exp.Expr = exp.GenerateSeries(start=first, end=last, step=step)
    if unit != "hour":
        series = cast(series, "date")

    return selection([(name, series)], table(_STACK))


def _slot(member: _Member) -> TypedValue:
    """Return what a row that counts hands on: its value, or 1 where it is only counted."""
    if member.measure.function != "count" or member.measure.value is None:
        return member.value

    is_there = not_null(member.value.tree())
    one = exp.Case(ifs=[exp.If(this=is_there, true=exp.Literal.number(1))])
    return TypedValue(one, "integer")


# ------------------------------------------------------------------------------
# functions

_EXACT = ("integer", "numeric")
_Aggregate = Callable[[exp.Expr], exp.Expr]
_FUNCTIONS: dict[MeasureFunction, _Aggregate] = {
    "sum": lambda value: call("sum", value),
    "avg": lambda value: call("avg", value),
    "min": lambda value: call("min", value),
    "max": lambda value: call("max", value),
    "count": lambda value: call("count", value),
    "count_distinct": lambda value: exp.Count(this=exp.Distinct(expressions=[value])),
}


def aggregate_type(function: MeasureFunction, type_: str) -> str:
    """Return PostgreSQL's type of an aggregate over values of that type."""
    if function in ("count", "count_distinct"):
        return "bigint"

    kind = kind_of_type(type_)
    if function in ("avg", "median"):
        return _mean_type(kind, type_)
    if function in ("min", "max"):
        if kind == "other":
            return type_

        return bare_type(type_)

    return _sum_type(kind, type_)


def _mean_type(kind: str, type_: str) -> str:
    if kind in _EXACT:
        return "numeric"
    if kind == "float":
        return "double precision"

    return bare_type(type_)


def _sum_type(kind: str, type_: str) -> str:
    bare = bare_type(type_)
    if kind == "integer" and bare != "bigint":
        return "bigint"
    if kind in _EXACT:
        return "numeric"

    return bare


def _aggregate(member: _Member, value: TypedValue, tests: Sequence[exp.Expr]) -> exp.Expr:
    """Return the measure's figure over the rows of a group that fulfil the tests."""
    measure = member.measure
    is_of_rows = measure.value is None and isinstance(value.expression, exp.Literal)
    kept = all_of(test.copy() for test in tests)
    if measure.function == "median":
        figure = _median(value, kept)
    else:
        counted = exp.Star() if is_of_rows else value.tree()
        figure = _with_filter(_FUNCTIONS[measure.function](counted), kept)

    if measure.is_zero_when_empty and not measure.function.startswith("count"):
        return exp.Coalesce(this=figure, expressions=[exp.Literal.number(0)])

    return figure


def _with_filter(figure: exp.Expr, kept: exp.Expr | None) -> exp.Expr:
    if kept is None:
        return figure

    return exp.Filter(this=figure, expression=exp.Where(this=kept))


def _median(value: TypedValue, kept: exp.Expr | None) -> exp.Expr:
    """Return the mean of the two values in the middle, exactly where they are exact."""
    if kind_of_type(value.type) not in _EXACT:
        figure = exp.PercentileCont(this=exp.Literal.number("0.5"))
        return _with_filter(_within_group(figure, value, False), kept)

    if kind_of_type(value.type) == "integer":
        value = TypedValue(cast(value.tree(), "numeric"), "numeric")

    middle = exp.PercentileDisc(this=exp.Literal.number("0.5"))
    lower = _with_filter(_within_group(middle.copy(), value, False), kept)
    upper = _with_filter(_within_group(middle, value, True), kept and kept.copy())
    both = exp.Paren(this=exp.Add(this=lower, expression=upper))
    return exp.Div(this=both, expression=exp.Literal.number("2.0"), typed=True)


def _within_group(figure: exp.Expr, value: TypedValue, descends: bool) -> exp.Expr:
    ordered = exp.Ordered(this=value.tree(), desc=descends, nulls_first=descends)
    return exp.WithinGroup(this=figure, expression=exp.Order(expressions=[ordered]))
