"""Models broken in the ways in which people break them, each in one place.

An operator looks at one node of a model's tree and gives the nodes that may stand in its place,
with what that changes. Where a change can't make a difference it gives none, or says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from etl.evidence.equivalent_mutants import RANKS, InputFacts, makes_no_difference, reading_of
from etl.meaning.value_kinds import DAYS, kind_of_type
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.sql_trees import column, identifier

Change = tuple[str, exp.Expr]
"""What is changed, and what stands in the node's place."""
Types = Mapping[str, Mapping[str, str]]
"""The types of the columns of what a model reads, by its names."""


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
    """Yield the mutants of all models that do more than read a source."""
    for model in draft.models:
        if model.node.layer != "ODS":
            yield from _mutants(model, _types(draft, model), reading_of(draft, model))


def _types(draft: Draft, model: DraftModel) -> Types:
    types = {}
    for name in model.node.inputs:
        for other in draft.models:
            if other.name == name:
                types[name] = {one.name: one.type for one in other.node.columns}
    return types


def _mutants(model: DraftModel, types: Types, reading: InputFacts) -> Iterator[Mutant]:
    original = exp.Subquery(this=model.select.copy())
    for place, node in enumerate(original.walk()):
        for operator, changes in _OPERATORS.items():
            for detail, changed in changes(node, types):
                tree = original.copy()
                replaced = _nth(tree, place)
                is_equivalent = makes_no_difference(operator, replaced, changed, reading)
                replaced.replace(changed)
                yield Mutant(model.name, operator, detail, tree.this, is_equivalent)


def _nth(tree: exp.Expr, place: int) -> exp.Expr:
    for number, node in enumerate(tree.walk()):
        if number == place:
            return node
    raise IndexError(place)


# ------------------------------------------------------------------------------
# conditions


def _is_condition(node: exp.Expr) -> bool:
    """Tell whether the node is a part of a condition that has to hold with the others."""
    parent = node.parent
    while isinstance(parent, exp.And | exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.Where | exp.Having):
        return True
    if isinstance(parent, exp.If):
        return parent.this is node
    return isinstance(parent, exp.Join) and parent.args.get("on") is node


def _conditions(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.And | exp.Paren | exp.Boolean) or not _is_condition(node):
        return
    is_single_key = isinstance(node.parent, exp.Join)
    if not is_single_key:
        yield f"without {_short(node)}", exp.true()
    yield f"negated {_short(node)}", exp.Not(this=exp.Paren(this=node.copy()))


def _alternatives(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.Or):
        yield f"without {_short(node.expression)}", node.this.copy()
        yield f"without {_short(node.this)}", node.expression.copy()


_BOUNDS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.LTE,
    exp.LTE: exp.LT,
    exp.GT: exp.GTE,
    exp.GTE: exp.GT,
    exp.NullSafeNEQ: exp.NEQ,
}


def _bounds(node: exp.Expr, _: Types) -> Iterator[Change]:
    moved = _BOUNDS.get(type(node))
    if moved is not None:
        changed = moved(this=node.this.copy(), expression=node.expression.copy())
        yield f"{_short(changed)} for {_short(node)}", changed
    if isinstance(node, exp.EQ) and node.find_ancestor(exp.Join, exp.Exists):
        changed = exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy())
        yield f"NULL keys that meet: {_short(node)}", changed
    if isinstance(node, exp.Between):
        subject, low, high = node.this, node.args["low"], node.args["high"]
        above = exp.GT(this=subject.copy(), expression=low.copy())
        below = exp.LT(this=subject.copy(), expression=high.copy())
        upto = exp.LTE(this=subject.copy(), expression=high.copy())
        since = exp.GTE(this=subject.copy(), expression=low.copy())
        yield f"without its lower end: {_short(node)}", exp.Paren(this=exp.and_(above, upto))
        yield f"without its upper end: {_short(node)}", exp.Paren(this=exp.and_(since, below))


def _literals(node: exp.Expr, _: Types) -> Iterator[Change]:
    """Change values that rows are compared with, and values that they are given."""
    if not isinstance(node, exp.Literal) or not _is_compared_or_given(node):
        return
    if node.is_string:
        yield f"another value than {_short(node)}", exp.Literal.string(f"{node.name}x")
        return
    number = exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
    yield f"one more than {_short(node)}", number


def _is_compared_or_given(node: exp.Literal) -> bool:
    parent = node.parent
    if isinstance(parent, exp.If | exp.Case):
        return True
    return isinstance(parent, exp.EQ | exp.NullSafeNEQ | exp.In | exp.LT | exp.GT | exp.GTE)


# ------------------------------------------------------------------------------
# joins


def _joins(node: exp.Expr, _: Types) -> Iterator[Change]:
    if not isinstance(node, exp.Join) or node.args.get("on") is None:
        return
    changed = node.copy()
    is_left = node.side == "LEFT"
    changed.set("side", None if is_left else "LEFT")
    changed.set("kind", "INNER" if is_left else None)
    yield f"{'inner' if is_left else 'left'} join of {_short(node.this)}", changed


def _join_keys(node: exp.Expr, types: Types) -> Iterator[Change]:
    """Join by another column of the same type."""
    is_key = isinstance(node, exp.Column) and node.find_ancestor(exp.Join, exp.Exists)
    if not is_key or not isinstance(node.parent, exp.EQ):
        return
    yield from _others(node, types, 2)


def _repeats(node: exp.Expr, types: Types) -> Iterator[Change]:
    """Read every row of a model twice."""
    is_read = isinstance(node, exp.Table) and isinstance(node.parent, exp.Join | exp.From)
    if not is_read or node.name not in types or node.alias not in ("", node.name):
        return
    if node.find_ancestor(exp.Exists):
        return
    everything = exp.Select().select(exp.Star()).from_(node.copy())
    twice = exp.union(everything, everything.copy(), distinct=False)
    alias = exp.TableAlias(this=identifier(node.name))
    yield f"every row of {node.name} twice", exp.Subquery(this=twice, alias=alias)


# ------------------------------------------------------------------------------
# groups and figures


def _groups(node: exp.Expr, types: Types) -> Iterator[Change]:
    """Group by one key less, or by one column more."""
    if not isinstance(node, exp.Select) or node.args.get("group") is None:
        return
    keys = node.args["group"].expressions
    for place, key in enumerate(keys):
        changed = node.copy()
        del changed.args["group"].expressions[place]
        if not changed.args["group"].expressions:
            changed.set("group", None)
        for output in changed.expressions:
            if output.unalias() == key:
                output.replace(exp.alias_(exp.Min(this=key.copy()), output.alias_or_name))
        yield f"not grouped by {_short(key)}", changed
    for added in _ungrouped(node, keys, types):
        changed = node.copy()
        changed.args["group"].append("expressions", added.copy())
        yield f"also grouped by {_short(added)}", changed


def _ungrouped(node: exp.Select, keys: Sequence[exp.Expr], types: Types) -> Iterator[exp.Expr]:
    source = node.args["from_"].this
    grouped = {one.name for key in keys for one in key.find_all(exp.Column)}
    names = [name for name in types.get(source.name, {}) if name not in grouped]
    for name in names[:2]:
        yield column(name, source.alias_or_name)


_FIGURES: dict[type[exp.Expr], tuple[type[exp.Func], ...]] = {
    exp.Sum: (exp.Avg, exp.Max),
    exp.Avg: (exp.Sum, exp.Max),
    exp.Min: (exp.Max,),
    exp.Max: (exp.Min,),
}


def _figures(node: exp.Expr, _: Types) -> Iterator[Change]:
    for other in _FIGURES.get(type(node), ()):
        yield f"{other.key} for {node.key}", other(this=node.this.copy())
    if isinstance(node, exp.Count):
        counted = node.this
        if isinstance(counted, exp.Distinct):
            yield "count for count distinct", exp.Count(this=counted.expressions[0].copy())
        elif not isinstance(counted, exp.Star | exp.Literal):
            distinct = exp.Distinct(expressions=[counted.copy()])
            yield "count distinct for count", exp.Count(this=distinct)
    if isinstance(node, exp.PercentileCont):
        yield "another percentile", exp.PercentileDisc(this=exp.Literal.number("0.25"))


def _guards(node: exp.Expr, _: Types) -> Iterator[Change]:
    """Leave out what keeps NULL and 0 from doing harm."""
    is_guard = isinstance(node, exp.Coalesce | exp.Nullif)
    if is_guard and not isinstance(node.this, exp.Literal):
        yield f"{_short(node.this)} for {_short(node)}", node.this.copy()


def _distinct(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.Select) and node.args.get("distinct") is not None:
        changed = node.copy()
        changed.set("distinct", None)
        yield "without DISTINCT", changed


def _set_operations(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.Union):
        changed = node.copy()
        changed.set("distinct", not node.args.get("distinct"))
        yield "UNION for UNION ALL" if changed.args["distinct"] else "UNION ALL for UNION", changed


# ------------------------------------------------------------------------------
# periods and values


_LONGER = {"HOUR": "DAY", "DAY": "WEEK", "WEEK": "MONTH", "MONTH": "QUARTER", "QUARTER": "YEAR"}


def _periods(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = str(node.args["unit"].name).upper()
        interval = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
        shifted = exp.Paren(this=exp.Add(this=node.copy(), expression=interval))
        yield f"periods of a {unit.lower()} shifted by one", shifted
        longer = node.copy()
        longer.set("unit", exp.var(_LONGER.get(unit, "MONTH")))
        yield f"longer periods than a {unit.lower()}", longer
    if isinstance(node, exp.AtTimeZone):
        yield (
            "without the time zone",
            exp.AtTimeZone(this=node.this.copy(), zone=exp.Literal.string("Pacific/Kiritimati")),
        )


def _dates(node: exp.Expr, types: Types) -> Iterator[Change]:
    """Take another date of the same row."""
    if not isinstance(node, exp.Column) or isinstance(node.parent, exp.EQ):
        return
    type_ = types.get(node.table, {}).get(node.name)
    if type_ is None or kind_of_type(type_) not in DAYS:
        return
    for name, other in types[node.table].items():
        if name != node.name and kind_of_type(other) in DAYS:
            yield f"{name} for {node.name}", column(name, node.table)


def _values(node: exp.Expr, types: Types) -> Iterator[Change]:
    """Take another column of the same type, where values are computed or handed on."""
    if not isinstance(node, exp.Column) or node.find_ancestor(exp.Join, exp.Exists):
        return
    type_ = types.get(node.table, {}).get(node.name, "date")
    if kind_of_type(type_) not in DAYS and not node.find_ancestor(exp.Group):
        yield from _others(node, types, 1)


_SIGNS: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.Mul: exp.Add,
    exp.Add: exp.Sub,
    exp.Sub: exp.Add,
    exp.Div: exp.Mul,
}


def _signs(node: exp.Expr, _: Types) -> Iterator[Change]:
    other = _SIGNS.get(type(node))
    if other is None or isinstance(node.expression, exp.Interval):
        return
    if isinstance(node, exp.Binary):
        changed = other(this=node.this.copy(), expression=node.expression.copy())
        yield f"{other.key} for {node.key}", exp.Paren(this=changed)


def _cases(node: exp.Expr, _: Types) -> Iterator[Change]:
    if not isinstance(node, exp.Case):
        return
    branches = node.args["ifs"]
    for place, branch in enumerate(branches):
        if len(branches) > 1:
            changed = node.copy()
            del changed.args["ifs"][place]
            yield f"without {_short(branch)}", changed
    if node.args.get("default") is not None:
        changed = node.copy()
        changed.set("default", None)
        yield "without ELSE", changed


# ------------------------------------------------------------------------------
# windows


def _orders(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, exp.Ordered) and node.find_ancestor(exp.Window, exp.Select):
        is_descending = not node.args.get("desc")
        changed = exp.Ordered(this=node.this.copy(), desc=is_descending, nulls_first=is_descending)
        yield f"the other way round: {_short(node.this)}", changed


def _partitions(node: exp.Expr, _: Types) -> Iterator[Change]:
    if not isinstance(node, exp.Window):
        return
    for place, key in enumerate(node.args.get("partition_by") or ()):
        changed = node.copy()
        del changed.args["partition_by"][place]
        yield f"not for each {_short(key)}", changed


def _windows(node: exp.Expr, _: Types) -> Iterator[Change]:
    if isinstance(node, RANKS):
        for other in RANKS:
            if type(node) is not other:
                yield f"{other.key} for {node.key}", other()
    if isinstance(node, exp.Lag | exp.Lead):
        other_way = exp.Lead if isinstance(node, exp.Lag) else exp.Lag
        arguments = {name: value.copy() for name, value in node.args.items() if value}
        yield f"{other_way.key} for {node.key}", other_way(**arguments)
    if isinstance(node, exp.WindowSpec):
        yield from _frames(node)


def _frames(node: exp.WindowSpec) -> Iterator[Change]:
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        changed = node.copy()
        changed.set("start", exp.Literal.number(int(start.name) + 1))
        yield "a row more in the frame", changed
    whole = node.copy()
    whole.set("kind", "ROWS")
    whole.set("start", "UNBOUNDED")
    whole.set("start_side", "PRECEDING")
    whole.set("end", "UNBOUNDED")
    whole.set("end_side", "FOLLOWING")
    yield "the whole partition as frame", whole


# ------------------------------------------------------------------------------


def _others(node: exp.Expr, types: Types, most: int) -> Iterator[Change]:
    if not isinstance(node, exp.Column):
        return
    columns = types.get(node.table, {})
    own = columns.get(node.name)
    if own is None:
        return
    same = [
        name
        for name, type_ in columns.items()
        if name != node.name and kind_of_type(type_) == kind_of_type(own)
    ]
    for name in same[:most]:
        yield f"{node.table}.{name} for {node.table}.{node.name}", column(name, node.table)


def _short(node: exp.Expr) -> str:
    text: str = node.sql(dialect="postgres")
    return text if len(text) <= 80 else f"{text[:79]}…"


_OPERATORS: dict[str, Callable[[exp.Expr, Types], Iterator[Change]]] = {
    "condition": _conditions,
    "alternative": _alternatives,
    "bound": _bounds,
    "literal": _literals,
    "join": _joins,
    "join_key": _join_keys,
    "repeat": _repeats,
    "group": _groups,
    "figure": _figures,
    "guard": _guards,
    "distinct": _distinct,
    "set_operation": _set_operations,
    "period": _periods,
    "date": _dates,
    "value": _values,
    "sign": _signs,
    "case": _cases,
    "order": _orders,
    "partition": _partitions,
    "window": _windows,
}
