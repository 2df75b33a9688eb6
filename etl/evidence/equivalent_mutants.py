"""Changes of models that no rows can show, as far as the declared keys and NOT NULL prove it.

A rule for each operator of `mutants` says so of one change; where no rule proves it, the change is
tried.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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

    def hold_a_key(self, columns: Collection[ColumnOf]) -> bool:
        """Tell whether the columns tell the rows of an input apart."""
        return any(key and key.issubset(columns) for key in self.keys)


class NodeChange(NamedTuple):
    """A node of a model's tree, what stands in its place, and what is known of the model's rows."""

    node: exp.Expr
    changed: exp.Expr
    facts: InputFacts


def makes_no_difference(operator: str, change: NodeChange) -> bool:
    """Tell whether it is proven that no rows show what an operator of `mutants` changed."""
    rule = _NO_DIFFERENCE.get(operator)
    return rule is not None and rule(change)


# ------------------------------------------------------------------------------
# facts


def facts_of_inputs(draft: Draft, model: DraftModel) -> InputFacts:
    """Return what the plan proves about the inputs of a model."""
    keys: set[frozenset[ColumnOf]] = set()
    never_null: set[ColumnOf] = set()
    for name in model.node.inputs:
        is_stored_table = "." in name
        if is_stored_table:
            continue

        read = draft.model(name)
        keys.add(frozenset((name, column) for column in read.node.grain))
        filled = _always_in_grain(draft, read)
        if read.meaning is not None:
            filled += _never_null(read.meaning)

        never_null.update((name, column) for column in filled)

    for cte in model.select.find_all(exp.CTE):
        if isinstance(cte.this, exp.Select):
            handed_on = list(_handed_on(cte.this, never_null))
            never_null.update((cte.alias, column) for column in handed_on)

    return InputFacts(frozenset(keys), frozenset(never_null))


def _always_in_grain(draft: Draft, model: DraftModel) -> list[str]:
    """Return the columns of a model's grain that come from a source which all its rows have."""
    grain = model.node.grain
    reads_one_source = len(model.node.inputs) == 1 and model.node.layer in ("ODS", "DWD")
    if reads_one_source:
        return list(grain)

    base_grain = draft.models[0].node.grain
    begins_with_base = grain[: len(base_grain)] == base_grain
    if begins_with_base:
        return list(base_grain)

    return []


def _never_null(meaning: BoundIntent) -> list[str]:
    """Return the columns of a model that have a value in each of its rows."""
    filled = []
    for measure in meaning.measures:
        if measure.function.startswith("count"):
            filled.append(measure.name)

    in_all_rows = _sources_of_all_rows(meaning)
    handed_on = meaning.outputs if meaning.aggregate is None else meaning.keys
    for one in handed_on:
        if one.column.source in in_all_rows and _is_required(meaning, one.column):
            filled.append(one.name)

    return filled


def _sources_of_all_rows(meaning: BoundIntent) -> set[str]:
    joins = meaning.steps_of(JoinSourceStep)
    inner = [step.right for step in joins if step.how == "inner"]
    return {meaning.base.name, *inner}


def _is_required(meaning: BoundIntent, column: BoundColumn) -> bool:
    table = meaning.source(column.source).table
    stored = table.column(column.name)
    return stored is not None and not stored.nullable


def _handed_on(select: exp.Select, never_null: Collection[ColumnOf]) -> Iterator[str]:
    """Yield the outputs of a query that are columns with a value in each of its rows."""
    for output in select.expressions:
        if _has_value(output.unalias(), never_null):
            yield output.alias_or_name


def _has_value(value: exp.Expr, never_null: Collection[ColumnOf]) -> bool:
    """Tell whether a value is a column that is never NULL where it stands."""
    if not isinstance(value, exp.Column) or _column_of(value) not in never_null:
        return False

    select = value.find_ancestor(exp.Select)
    return select is None or value.table not in _left_joined(select)


def _left_joined(select: exp.Select) -> set[str]:
    names = set()
    for join in select.args.get("joins") or ():
        if join.side == "LEFT":
            names.add(join.this.alias_or_name)

    return names


def _column_of(column: exp.Expr) -> ColumnOf:
    return column.text("table"), column.name


# ------------------------------------------------------------------------------
# values and conditions


def _repeats_only_names(change: NodeChange) -> bool:
    """Tell whether a change repeats rows that only list groups, whose figures are all NULL.

    Nothing counts such rows, so that repeating them shows nowhere.
    """
    node = change.node
    selects = [node] if isinstance(node.parent, exp.Union) else []
    around = node.find_ancestor(exp.Select)
    if isinstance(node.parent, exp.Subquery) and around is not None:
        selects.append(around)

    for select in selects:
        for output in select.expressions:
            match output.unalias():
                case exp.Cast(this=exp.Null()):
                    return True

    return False


def _tests_what_has_a_value(change: NodeChange) -> bool:
    """Tell whether a changed IS NOT NULL makes no difference.

    The column is never NULL, or the value that it guards is NULL whenever the column is.
    """
    match change.node, change.changed:
        case exp.Not(this=exp.Is(this=exp.Column() as tested)) as test, exp.Boolean():
            has_value = _has_value(tested, change.facts.never_null)
            return has_value or _guards_columns(test)

    return False


def _tests_a_guard(change: NodeChange) -> bool:
    """Tell whether a change is of the column by which a CASE guards a value.

    The value is NULL whenever one of its columns is, so any of them guards it as well.
    """
    match change.node.parent:
        case exp.Is(parent=exp.Expr() as test):
            return _guards_columns(test)

    return False


def _guards_columns(test: exp.Expr) -> bool:
    """Tell whether a test guards a value of a CASE that is NULL whenever its columns are."""
    branch = test.parent
    if not isinstance(branch, exp.If) or branch.this is not test:
        return False

    value = branch.args["true"]
    may_fill_in = value.find(exp.Coalesce, exp.Case) is not None
    return not may_fill_in and value.find(exp.Column) is not None


def _meets_no_null(change: NodeChange) -> bool:
    """Tell whether a comparison was changed only in what it does with NULLs, and meets none."""
    node, changed, facts = change
    match changed:
        case exp.NEQ():
            return _has_value(node.this, facts.never_null)
        case exp.NullSafeEQ():
            sides = {_column_of(node.this), _column_of(node.expression)}
            return not facts.never_null.isdisjoint(sides)

    return False


def _drops_a_null_test(change: NodeChange) -> bool:
    """Tell whether only an alternative IS NULL was dropped, of a column that is never NULL."""
    node, kept, facts = change
    dropped = []
    for side in (node.this, node.expression):
        if side != kept:
            dropped.append(side.unnest())

    match dropped:
        case [exp.Is(this=tested, expression=exp.Null())]:
            return _has_value(tested, facts.never_null)

    return False


def _guards_a_value(change: NodeChange) -> bool:
    """Tell whether a COALESCE was dropped whose column is never NULL."""
    node, _, facts = change
    if not isinstance(node, exp.Coalesce):
        return False

    return _has_value(node.this, facts.never_null)


def _adds_up_a_value(change: NodeChange) -> bool:
    """A group has a row, so that something is added up where the column always has a value."""
    node, _, facts = change
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("group") is None:
        return False

    return _has_value(node.this, facts.never_null)


# ------------------------------------------------------------------------------
# rows and their order


def _counts_distinct_rows(change: NodeChange) -> bool:
    """Tell whether a DISTINCT was changed that counts keys of rows which no join repeats."""
    node, changed, facts = change
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("joins"):
        return False

    match [node, changed]:
        case [exp.Count(this=exp.Distinct() as distinct), _] | [
            exp.Count(),
            exp.Count(this=exp.Distinct() as distinct),
        ]:
            counted = {_column_of(column) for column in distinct.find_all(exp.Column)}
            return facts.hold_a_key(counted)

    return False


def _reads_into_distinct(change: NodeChange) -> bool:
    """Tell whether rows are read twice into a SELECT that drops repeated rows."""
    around = change.node.find_ancestor(exp.Select)
    if around is None:
        return False

    dropping = (around.args.get("distinct"), around.args.get("limit"))
    return any(clause is not None for clause in dropping)


def _ranks_without_ties(change: NodeChange) -> bool:
    """Tell whether a rank was changed to a number or another rank where there are no ties."""
    window = change.node.parent
    if not isinstance(change.node, RANKS) or not isinstance(window, exp.Window):
        return False

    columns = _columns_of_window(window)
    for key in filter(None, change.facts.keys):
        names = {name for _, name in key}
        if names <= columns:
            return True

    return False


def _columns_of_window(window: exp.Window) -> set[str]:
    """Return the columns of its partition and of its order."""
    parts = list(window.args.get("partition_by") or ())
    ordering = window.args.get("order")
    if ordering is not None:
        parts.append(ordering)

    columns: set[str] = set()
    for part in parts:
        columns.update(column.name for column in part.find_all(exp.Column))

    return columns


def _looks_up_unused_row(change: NodeChange) -> bool:
    """Tell whether a lookup by key was changed of which no other column is read."""
    node, _, facts = change
    join = node.find_ancestor(exp.Join)
    select = join.find_ancestor(exp.Select) if join is not None else None
    if join is None or select is None or join.side != "LEFT":
        return False

    looked_up = join.this.alias_or_name
    if node.text("table") == looked_up:
        return False

    read = _columns_read(select, looked_up)
    compared = set(_columns_read(join, looked_up))
    is_used = len(read) > len(compared)
    return not is_used and facts.hold_a_key(compared)


def _columns_read(node: exp.Expr, table: str) -> list[ColumnOf]:
    """Return the columns of a table that are read, as often as they are."""
    columns = [_column_of(column) for column in node.find_all(exp.Column)]
    return [column for column in columns if column[0] == table]


_NO_DIFFERENCE: dict[str, Callable[[NodeChange], bool]] = {
    "distinct": _repeats_only_names,
    "condition": _tests_what_has_a_value,
    "value": _tests_a_guard,
    "bound": _meets_no_null,
    "alternative": _drops_a_null_test,
    "guard": _guards_a_value,
    "figure": _counts_distinct_rows,
    "zero": _adds_up_a_value,
    "repeat": _reads_into_distinct,
    "window": _ranks_without_ties,
    "join_key": _looks_up_unused_row,
}
