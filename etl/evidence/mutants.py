"""Models broken in the ways in which people break them, each in one place.

An operator is given a node of a model's tree and yields the nodes that may stand in its place,
with what that changes. Where a change can't make a difference it gives none, or
`equivalent_mutants` says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from etl.evidence.equivalent_mutants import (
    RANKS,
    InputFacts,
    NodeChange,
    facts_of_inputs,
    makes_no_difference,
)
from etl.meaning.value_kinds import DAYS, kind_of_type
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.sql_trees import column, identifier

Change = tuple[str, exp.Expr]
"""What is changed, and what stands in the node's place."""
Types = Mapping[str, Mapping[str, str]]
"""The types of the columns of what a model reads, by its names."""
_MOST_SHOWN = 80  # letters of a node in what is said of a change


@dataclass(frozen=True)
class Mutant:
    """A model with one change.

    Attributes:
        is_equivalent: whether no rows can show the change.
    """

    node: str
    operator: str
    detail: str
    select: exp.Query
    is_equivalent: bool = False


def mutants_of(draft: Draft) -> Iterator[Mutant]:
    """Yield the mutants of all models that do more than read a source.

    A further model has no unit tests, which alone would notice them.
    """
    for model in draft.models:
        if model.node.layer != "ODS" and not model.is_further:
            yield from _mutants(model, _types(draft, model), facts_of_inputs(draft, model))


def _types(draft: Draft, model: DraftModel) -> Types:
    types = {}
    for read in draft.models:
        if read.name in model.node.inputs:
            types[read.name] = read.types

    return types


def _mutants(model: DraftModel, types: Types, facts: InputFacts) -> Iterator[Mutant]:
    original = exp.Subquery(this=model.select.copy())
    for place, node in enumerate(original.walk()):
        for operator, detail, changed in _changes(node, types):
            tree = original.copy()
            replaced = _nth(tree, place)
            is_equivalent = makes_no_difference(operator, NodeChange(replaced, changed, facts))
            replaced.replace(changed)
            yield Mutant(model.name, operator, detail, tree.this, is_equivalent)


def _changes(node: exp.Expr, types: Types) -> Iterator[tuple[str, str, exp.Expr]]:
    """Yield the changes of one node, each behind the name of its operator."""
    for operator, changed_types, changes in _OPERATORS:
        if isinstance(node, changed_types):
            for detail, changed in changes(node, types):
                yield operator, detail, changed


def _nth(tree: exp.Expr, place: int) -> exp.Expr:
    for number, node in enumerate(tree.walk()):
        if number == place:
            return node

    raise IndexError(place)


# ------------------------------------------------------------------------------
# conditions


def _conditions(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.And | exp.Paren | exp.Boolean) or not _is_condition(node):
        return

    is_only_join_key = isinstance(node.parent, exp.Join)
    if not is_only_join_key:
        yield f"without {_short(node)}", exp.true()

    yield f"negated {_short(node)}", exp.Not(this=exp.Paren(this=node.copy()))


def _is_condition(node: exp.Expr) -> bool:
    """Tell whether the node is a part of a condition that has to hold with the others."""
    parent = node.parent
    while isinstance(parent, exp.And | exp.Paren):
        node, parent = parent, parent.parent

    if isinstance(parent, exp.Where | exp.Having):
        return True
    if isinstance(parent, exp.If):
        return parent.this is node

    if not isinstance(parent, exp.Join):
        return False

    return parent.args.get("on") is node


def _alternatives(node: exp.Or, _: Types) -> Iterator[Change]:
    yield f"without {_short(node.expression)}", node.this.copy()
    yield f"without {_short(node.this)}", node.expression.copy()


_BOUNDS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.LTE,
    exp.LTE: exp.LT,
    exp.GT: exp.GTE,
    exp.GTE: exp.GT,
    exp.NullSafeNEQ: exp.NEQ,
}


def _bounds(node: exp.Binary, _: Types) -> Iterator[Change]:
    changed = _binary(_BOUNDS[type(node)], node.this, node.expression)
    yield f"{_short(changed)} for {_short(node)}", changed


def _null_keys(node: exp.EQ, _: Types) -> Iterator[Change]:
    if node.find_ancestor(exp.Join, exp.Exists):
        changed = _binary(exp.NullSafeEQ, node.this, node.expression)
        yield f"NULL keys that meet: {_short(node)}", changed


def _ends(node: exp.Between, _: Types) -> Iterator[Change]:
    """Leave out a value at which a range begins or ends."""
    subject, low, high = node.this, node.args["low"], node.args["high"]
    above = exp.and_(_binary(exp.GT, subject, low), _binary(exp.LTE, subject, high))
    yield f"without its lower end: {_short(node)}", exp.Paren(this=above)
    below = exp.and_(_binary(exp.GTE, subject, low), _binary(exp.LT, subject, high))
    yield f"without its upper end: {_short(node)}", exp.Paren(this=below)


_COMPARING = (exp.EQ, exp.NullSafeNEQ, exp.In, exp.LT, exp.GT, exp.GTE)


def _literals(node: exp.Literal, _: Types) -> Iterator[Change]:
    """Change values that rows are compared with, and values that they are given."""
    if not isinstance(node.parent, (exp.If, exp.Case, *_COMPARING)):
        return
    if node.is_string:
        yield f"another value than {_short(node)}", exp.Literal.string(f"{node.name}x")
    else:
        more = exp.Paren(this=_binary(exp.Add, node, exp.Literal.number(1)))
        yield f"one more than {_short(node)}", more


# ------------------------------------------------------------------------------
# joins


def _joins(node: exp.Join, _: Types) -> Iterator[Change]:
    if node.args.get("on") is None:
        return

    joined = _short(node.this)
    if node.side == "LEFT":
        yield f"inner join of {joined}", _with(node, side=None, kind="INNER")
    else:
        yield f"left join of {joined}", _with(node, side="LEFT", kind=None)


def _join_keys(node: exp.Column, types: Types) -> Iterator[Change]:
    """Join by another column of the same type."""
    is_compared = isinstance(node.parent, exp.EQ)
    if is_compared and node.find_ancestor(exp.Join, exp.Exists):
        yield from _others(node, types, 2)


def _repeats(node: exp.Table, types: Types) -> Iterator[Change]:
    """Read every row of a model twice."""
    name = node.name
    is_read = isinstance(node.parent, exp.Join | exp.From) and name in types
    if not is_read or node.alias not in ("", name) or node.find_ancestor(exp.Exists):
        return

    everything = exp.Select().select(exp.Star()).from_(node.copy())
    twice = exp.union(everything, everything.copy(), distinct=False)
    alias = exp.TableAlias(this=identifier(name))
    yield f"every row of {name} twice", exp.Subquery(this=twice, alias=alias)


# ------------------------------------------------------------------------------
# groups and figures


def _groups(node: exp.Select, types: Types) -> Iterator[Change]:
    """Group by one key less, or by one column more."""
    group = node.args.get("group")
    if group is None:
        return

    keys = group.expressions
    for place, key in enumerate(keys):
        yield f"not grouped by {_short(key)}", _without_key(node, place)

    for added in _ungrouped(node, keys, types):
        changed = node.copy()
        changed.args["group"].append("expressions", added.copy())
        yield f"also grouped by {_short(added)}", changed


def _without_key(node: exp.Select, place: int) -> exp.Select:
    """Return a grouped query with one key less, of which it gives the least value instead."""
    changed = node.copy()
    group = changed.args["group"]
    key = group.expressions.pop(place)
    if not group.expressions:
        changed.set("group", None)

    for output in changed.expressions:
        if output.unalias() == key:
            output.replace(exp.alias_(exp.Min(this=key.copy()), output.alias_or_name))

    return changed


def _ungrouped(node: exp.Select, keys: Sequence[exp.Expr], types: Types) -> Iterator[exp.Expr]:
    """Yield the first columns of the query's input that it is not grouped by."""
    source = node.args["from_"].this
    grouped: set[str] = set()
    for key in keys:
        grouped.update(one.name for one in key.find_all(exp.Column))

    names = []
    for name in types.get(source.name, {}):
        if name not in grouped:
            names.append(name)

    for name in names[:2]:
        yield column(name, source.alias_or_name)


_FIGURES: dict[type[exp.Expr], tuple[type[exp.Func], ...]] = {
    exp.Sum: (exp.Avg, exp.Max),
    exp.Avg: (exp.Sum, exp.Max),
    exp.Min: (exp.Max,),
    exp.Max: (exp.Min,),
}


def _figures(node: exp.AggFunc, _: Types) -> Iterator[Change]:
    for other in _FIGURES[type(node)]:
        yield f"{other.key} for {node.key}", other(this=node.this.copy())


def _zeros(node: exp.AggFunc, _: Types) -> Iterator[Change]:
    """Take nothing for 0, but where conditions on figures drop the groups without any."""
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("having") is not None or select.find_ancestor(exp.CTE):
        return
    if isinstance(node.parent, exp.Coalesce | exp.Window | exp.Filter):
        return

    zero = exp.Coalesce(this=node.copy(), expressions=[exp.Literal.number(0)])
    yield f"0 for an empty {_short(node)}", zero


def _counts(node: exp.Count, _: Types) -> Iterator[Change]:
    counted = node.this
    if isinstance(counted, exp.Distinct):
        yield "count for count distinct", exp.Count(this=counted.expressions[0].copy())
    elif not isinstance(counted, exp.Star | exp.Literal):
        distinct = exp.Distinct(expressions=[counted.copy()])
        yield "count distinct for count", exp.Count(this=distinct)


def _percentiles(_: exp.PercentileCont, __: Types) -> Iterator[Change]:
    yield "another percentile", exp.PercentileDisc(this=exp.Literal.number("0.25"))


def _guards(node: exp.Func, _: Types) -> Iterator[Change]:
    """Leave out what keeps NULL and 0 from doing harm."""
    if not isinstance(node.this, exp.Literal):
        yield f"{_short(node.this)} for {_short(node)}", node.this.copy()


def _distinct(node: exp.Select, _: Types) -> Iterator[Change]:
    if node.args.get("distinct") is not None:
        yield "without DISTINCT", _with(node, distinct=None)


def _set_operations(node: exp.Union, _: Types) -> Iterator[Change]:
    is_distinct = node.args.get("distinct")
    detail = "UNION ALL for UNION" if is_distinct else "UNION for UNION ALL"
    yield detail, _with(node, distinct=not is_distinct)


# ------------------------------------------------------------------------------
# periods and values


_LONGER = {"HOUR": "DAY", "DAY": "WEEK", "WEEK": "MONTH", "MONTH": "QUARTER", "QUARTER": "YEAR"}


def _periods(node: exp.TimestampTrunc | exp.DateTrunc, _: Types) -> Iterator[Change]:
    unit = str(node.args["unit"].name).upper()
    interval = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
    shifted = exp.Paren(this=exp.Add(this=node.copy(), expression=interval))
    yield f"periods of a {unit.lower()} shifted by one", shifted
    longer = _with(node, unit=exp.var(_LONGER.get(unit, "MONTH")))
    yield f"longer periods than a {unit.lower()}", longer


def _time_zones(node: exp.AtTimeZone, _: Types) -> Iterator[Change]:
    far_away = exp.Literal.string("Pacific/Kiritimati")
    yield "without the time zone", exp.AtTimeZone(this=node.this.copy(), zone=far_away)


def _dates(node: exp.Column, types: Types) -> Iterator[Change]:
    """Take another date of the same row."""
    columns = types.get(node.table, {})
    is_date = kind_of_type(columns.get(node.name, "")) in DAYS
    if not is_date or isinstance(node.parent, exp.EQ):
        return

    for name, type_ in columns.items():
        if name != node.name and kind_of_type(type_) in DAYS:
            yield f"{name} for {node.name}", column(name, node.table)


def _values(node: exp.Column, types: Types) -> Iterator[Change]:
    """Take another column of the same type, where values are computed or handed on."""
    type_ = types.get(node.table, {}).get(node.name, "date")
    is_date = kind_of_type(type_) in DAYS
    if not is_date and not node.find_ancestor(exp.Join, exp.Exists, exp.Group):
        yield from _others(node, types, 1)


_SIGNS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.Mul: exp.Add,
    exp.Add: exp.Sub,
    exp.Sub: exp.Add,
    exp.Div: exp.Mul,
}


def _signs(node: exp.Binary, _: Types) -> Iterator[Change]:
    other = _SIGNS[type(node)]
    if not isinstance(node.expression, exp.Interval):
        changed = _binary(other, node.this, node.expression)
        yield f"{other.key} for {node.key}", exp.Paren(this=changed)


def _cases(node: exp.Case, _: Types) -> Iterator[Change]:
    branches = node.args["ifs"]
    droppable = branches if len(branches) > 1 else []
    for place, branch in enumerate(droppable):
        yield f"without {_short(branch)}", _without(node, "ifs", place)

    if node.args.get("default") is not None:
        yield "without ELSE", _with(node, default=None)


# ------------------------------------------------------------------------------
# windows


def _orders(node: exp.Ordered, _: Types) -> Iterator[Change]:
    if node.find_ancestor(exp.Window, exp.Select):
        is_descending = not node.args.get("desc")
        changed = exp.Ordered(this=node.this.copy(), desc=is_descending, nulls_first=is_descending)
        yield f"the other way round: {_short(node.this)}", changed


def _partitions(node: exp.Window, _: Types) -> Iterator[Change]:
    keys = node.args.get("partition_by") or ()
    for place, key in enumerate(keys):
        yield f"not for each {_short(key)}", _without(node, "partition_by", place)


def _ranks(node: exp.Func, _: Types) -> Iterator[Change]:
    for other in RANKS:
        if type(node) is not other:
            yield f"{other.key} for {node.key}", other()


def _neighbours(node: exp.Lag | exp.Lead, _: Types) -> Iterator[Change]:
    """Look at the row on the other side."""
    other_way = exp.Lead if isinstance(node, exp.Lag) else exp.Lag
    arguments = {name: value.copy() for name, value in node.args.items() if value}
    yield f"{other_way.key} for {node.key}", other_way(**arguments)


def _frames(node: exp.WindowSpec, _: Types) -> Iterator[Change]:
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        longer = _with(node, start=exp.Literal.number(int(start.name) + 1))
        yield "a row more in the frame", longer

    whole = _with(
        node,
        kind="ROWS",
        start="UNBOUNDED",
        start_side="PRECEDING",
        end="UNBOUNDED",
        end_side="FOLLOWING",
    )
    yield "the whole partition as frame", whole


# ------------------------------------------------------------------------------
# changed nodes


def _with(node: exp.Expr, **arguments: Any) -> exp.Expr:
    """Return a copy of the node with other arguments."""
    changed = node.copy()
    for name, value in arguments.items():
        changed.set(name, value)

    return changed


def _without(node: exp.Expr, argument: str, place: int) -> exp.Expr:
    """Return a copy of the node whose list of arguments lacks one."""
    changed = node.copy()
    del changed.args[argument][place]
    return changed


def _binary(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Binary:
    return kind(this=left.copy(), expression=right.copy())


def _others(node: exp.Column, types: Types, most: int) -> Iterator[Change]:
    """Yield the first other columns of the same table and kind."""
    columns = types.get(node.table, {})
    if node.name not in columns:
        return

    kind = kind_of_type(columns[node.name])
    same = []
    for name, type_ in columns.items():
        if kind_of_type(type_) == kind:
            same.append(name)

    same.remove(node.name)
    for name in same[:most]:
        yield f"{node.table}.{name} for {node.table}.{node.name}", column(name, node.table)


def _short(node: exp.Expr) -> str:
    text: str = node.sql(dialect="postgres")
    if len(text) <= _MOST_SHOWN:
        return text

    return f"{text[: _MOST_SHOWN - 1]}…"


_Types = tuple[type[exp.Expr], ...]
_Operator = tuple[str, _Types, Callable[[Any, Types], Iterator[Change]]]
_OPERATORS: tuple[_Operator, ...] = (
    ("condition", (exp.Expr,), _conditions),
    ("alternative", (exp.Or,), _alternatives),
    ("bound", tuple(_BOUNDS), _bounds),
    ("bound", (exp.EQ,), _null_keys),
    ("bound", (exp.Between,), _ends),
    ("literal", (exp.Literal,), _literals),
    ("join", (exp.Join,), _joins),
    ("join_key", (exp.Column,), _join_keys),
    ("repeat", (exp.Table,), _repeats),
    ("group", (exp.Select,), _groups),
    ("figure", tuple(_FIGURES), _figures),
    ("figure", (exp.Count,), _counts),
    ("zero", (exp.Sum, exp.Avg), _zeros),
    ("figure", (exp.PercentileCont,), _percentiles),
    ("guard", (exp.Coalesce, exp.Nullif), _guards),
    ("distinct", (exp.Select,), _distinct),
    ("set_operation", (exp.Union,), _set_operations),
    ("period", (exp.TimestampTrunc, exp.DateTrunc), _periods),
    ("period", (exp.AtTimeZone,), _time_zones),
    ("date", (exp.Column,), _dates),
    ("value", (exp.Column,), _values),
    ("sign", tuple(_SIGNS), _signs),
    ("case", (exp.Case,), _cases),
    ("order", (exp.Ordered,), _orders),
    ("partition", (exp.Window,), _partitions),
    ("window", RANKS, _ranks),
    ("window", (exp.Lag, exp.Lead), _neighbours),
    ("window", (exp.WindowSpec,), _frames),
)
