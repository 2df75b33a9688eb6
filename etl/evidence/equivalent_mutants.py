"""Changes of models that no rows can show, as far as the declared keys and NOT NULL prove it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from etl.meaning.bound import BoundColumn, BoundIntent, JoinSourceStep
from etl.planning.draft_model import Draft, DraftModel

ColumnOf = tuple[str, str]
"""What is read (a model, or a query of the WITH) and a column there."""

RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


@dataclass(frozen=True)
class InputFacts:
    """The proven facts of a model's inputs.

    Attributes:
        keys: columns that tell the rows of an input apart.
        never_null: columns that always have a value.
    """

    keys: frozenset[frozenset[ColumnOf]]
    never_null: frozenset[ColumnOf]


def reading_of(draft: Draft, model: DraftModel) -> InputFacts:
    """Return what the plan proves about the inputs of a model."""
    keys: set[frozenset[ColumnOf]] = set()
    never_null: set[ColumnOf] = set()
    for name in model.node.inputs:
        if "." in name:
            continue  # a table of the datasource
        other = draft.model(name)
        keys.add(frozenset((name, column) for column in other.node.grain))
        filled = _always_in_grain(draft, other)
        if other.meaning is not None:
            filled += _never_null(other.meaning)
        never_null.update((name, column) for column in filled)
    for cte in model.select.find_all(exp.CTE):
        if isinstance(cte.this, exp.Select):
            handed_on = list(_handed_on(cte.this, never_null))
            never_null.update((cte.alias, column) for column in handed_on)
    return InputFacts(frozenset(keys), frozenset(never_null))


def _always_in_grain(draft: Draft, model: DraftModel) -> list[str]:
    """Return the columns of a model's grain that come from a source which all its rows have."""
    base = draft.models[0].node.grain
    grain = model.node.grain
    if len(model.node.inputs) == 1 and model.node.layer in ("ODS", "DWD"):
        return list(grain)
    first = grain[: len(base)]
    return list(base) if first == base else []


def _never_null(meaning: BoundIntent) -> list[str]:
    """Return the columns of a model that have a value in each of its rows."""
    present = _sources_of_all_rows(meaning)
    outputs = [(output.name, output.column) for output in meaning.outputs]
    filled: list[str] = []
    aggregate = meaning.aggregate
    if aggregate is not None:
        outputs = [(key.name, key.column) for key in aggregate.keys]
        counts = [one.name for one in aggregate.measures if one.function.startswith("count")]
        filled += counts
    for name, column in outputs:
        if column.source in present and _is_required(meaning, column):
            filled.append(name)
    return filled


def _sources_of_all_rows(meaning: BoundIntent) -> set[str]:
    present = {meaning.base.name}
    for step in meaning.steps:
        if isinstance(step, JoinSourceStep) and step.how == "inner":
            present.add(step.right)
    return present


def _is_required(meaning: BoundIntent, column: BoundColumn) -> bool:
    table = meaning.source(column.source).table
    stored = table.column(column.name)
    return stored is not None and not stored.nullable


def _handed_on(select: exp.Select, known: Iterable[ColumnOf]) -> Iterator[str]:
    """Yield the outputs of a query that are columns with a value in each of its rows."""
    known = set(known)
    for output in select.expressions:
        value = output.unalias()
        if isinstance(value, exp.Column) and _has_value(value, known):
            yield output.alias_or_name


def _has_value(value: exp.Expr, known: Iterable[ColumnOf]) -> bool:
    """Tell whether a value is a column that is never NULL where it stands."""
    if not isinstance(value, exp.Column) or (value.table, value.name) not in known:
        return False
    select = value.find_ancestor(exp.Select)
    joins = select.args.get("joins") or () if isinstance(select, exp.Select) else ()
    outer = {join.this.alias_or_name for join in joins if join.side == "LEFT"}
    return value.table not in outer


def _is_nothing(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Null)


def makes_no_difference(
    operator: str, node: exp.Expr, changed: exp.Expr, reading: InputFacts
) -> bool:
    rule = _NO_DIFFERENCE.get(operator)
    return rule is not None and rule(node, changed, reading)


def _distinct_makes_none(node: exp.Expr, _: exp.Expr, __: InputFacts) -> bool:
    """Rows that only name groups count nothing, however often they are there."""
    if not isinstance(node, exp.Select):
        return False
    around = node.find_ancestor(exp.Select)
    selects = [node] if isinstance(node.parent, exp.Union) else []
    if isinstance(node.parent, exp.Subquery) and isinstance(around, exp.Select):
        selects.append(around)
    return any(_is_nothing(output.unalias()) for one in selects for output in one.expressions)


def _condition_makes_none(node: exp.Expr, changed: exp.Expr, reading: InputFacts) -> bool:
    """Say that a column with a value needs no test, nor one whose value is NULL with it."""
    tested = node.this if isinstance(node, exp.Not) else None
    is_presence = isinstance(tested, exp.Is) and isinstance(tested.this, exp.Column)
    if tested is None or not is_presence or not isinstance(changed, exp.Boolean):
        return False
    return _has_value(tested.this, reading.never_null) or _guards_columns(node)


def _guards_columns(node: exp.Expr) -> bool:
    branch = node.parent
    if not isinstance(branch, exp.If) or branch.this is not node:
        return False
    value = branch.args["true"]
    return bool(value.find(exp.Column)) and not value.find(exp.Coalesce, exp.Case)


def _value_makes_none(node: exp.Expr, _: exp.Expr, __: InputFacts) -> bool:
    test = node.parent
    return isinstance(test, exp.Is) and test.parent is not None and _guards_columns(test.parent)


def _bound_makes_none(node: exp.Expr, changed: exp.Expr, reading: InputFacts) -> bool:
    """NULL keys don't meet where one side has none, and what has a value differs from another."""
    if isinstance(changed, exp.NEQ):
        return _has_value(node.this, reading.never_null)
    if not isinstance(changed, exp.NullSafeEQ):
        return False
    sides = [(side.table, side.name) for side in (node.this, node.expression)]
    return any(side in reading.never_null for side in sides)


def _alternative_makes_none(node: exp.Expr, changed: exp.Expr, reading: InputFacts) -> bool:
    """A column with a value is not NULL, so that nothing is lost without that alternative."""
    dropped = [side for side in (node.this, node.expression) if side != changed]
    tested = dropped[0].unnest() if len(dropped) == 1 else None
    if not isinstance(tested, exp.Is) or not isinstance(tested.expression, exp.Null):
        return False
    return _has_value(tested.this, reading.never_null)


def _guard_makes_none(node: exp.Expr, _: exp.Expr, reading: InputFacts) -> bool:
    """Say that a column with a value needs none in its place."""
    return isinstance(node, exp.Coalesce) and _has_value(node.this, reading.never_null)


def _figure_makes_none(node: exp.Expr, changed: exp.Expr, reading: InputFacts) -> bool:
    """Keys of rows that no join repeats differ anyway."""
    select = node.find_ancestor(exp.Select)
    if not isinstance(node, exp.Count) or select is None:
        return False
    if select.args.get("joins"):
        return False
    distinct = changed.this if isinstance(changed.this, exp.Distinct) else node.this
    if not isinstance(distinct, exp.Distinct):
        return False
    counted = {(one.table, one.name) for one in distinct.find_all(exp.Column)}
    return _holds_a_key(counted, reading)


def _repeat_makes_none(node: exp.Expr, _: exp.Expr, __: InputFacts) -> bool:
    around = node.find_ancestor(exp.Select)
    if around is None:
        return False
    limit = around.args.get("limit")
    return around.args.get("distinct") is not None or limit is not None


def _window_makes_none(node: exp.Expr, _: exp.Expr, reading: InputFacts) -> bool:
    """Ranks differ from numbers only where there are ties."""
    window = node.parent
    if not isinstance(node, RANKS) or not isinstance(window, exp.Window):
        return False
    columns = _columns_of_window(window)
    for key in reading.keys:
        names = {name for _, name in key}
        if names and names <= columns:
            return True
    return False


def _columns_of_window(window: exp.Window) -> set[str]:
    """Return the columns of its partition and of its order."""
    telling = list(window.args.get("partition_by") or ())
    order = window.args.get("order")
    if order is not None:
        telling.append(order)
    columns: set[str] = set()
    for one in telling:
        columns.update(column.name for column in one.find_all(exp.Column))
    return columns


def _join_key_makes_none(node: exp.Expr, _: exp.Expr, reading: InputFacts) -> bool:
    """A row that is looked up by its key and not used may be any row."""
    join = node.find_ancestor(exp.Join)
    if join is None or join.side != "LEFT" or not isinstance(node, exp.Column):
        return False
    select = join.find_ancestor(exp.Select)
    if select is None:
        return False
    right = join.this.alias_or_name
    used = _columns_of(select, right)
    joined = set(_columns_of(join, right))
    if node.table == right or len(used) > len(joined):
        return False
    return _holds_a_key(joined, reading)


def _columns_of(node: exp.Expr, table: str) -> list[ColumnOf]:
    """Return the columns of a table that are read, as often as they are."""
    return [(one.table, one.name) for one in node.find_all(exp.Column) if one.table == table]


def _holds_a_key(columns: set[ColumnOf], reading: InputFacts) -> bool:
    return any(key and key <= columns for key in reading.keys)


_NO_DIFFERENCE: dict[str, Callable[[exp.Expr, exp.Expr, InputFacts], bool]] = {
    "distinct": _distinct_makes_none,
    "condition": _condition_makes_none,
    "value": _value_makes_none,
    "bound": _bound_makes_none,
    "alternative": _alternative_makes_none,
    "guard": _guard_makes_none,
    "figure": _figure_makes_none,
    "repeat": _repeat_makes_none,
    "window": _window_makes_none,
    "join_key": _join_key_makes_none,
}
