"""The review of a draft by rules; an error fails it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from sqlglot import exp

from common.text import Lang
from etl.meaning.bound import (
    AggregateStep,
    AnyOf,
    BoundColumn,
    BoundIntent,
    ExpressionStep,
    ExpressionTest,
    FilterStep,
    MapStep,
    RowTest,
    Step,
)
from etl.meaning.value_kinds import DAYS, NUMBERS, kind_of_type
from etl.planning.draft_model import Draft, DraftModel, nodes_behind
from etl.planning.draft_names import MOST_NAME_BYTES
from etl.planning.measure_parts import measure_parts
from etl.planning.query_scopes import QueryScope, scopes_of
from etl.planning.review_texts import RULES
from etl.schemas.plan import PlanVerdict, ReviewCode, ReviewIssue, ReviewResult
from knowledge.values.personal_data import Privacy, privacy_of

Found = tuple[ReviewCode, str, str]
"""A code, the node that it is found at, and what is named in its sentence."""


def review(
    draft: Draft, bound: BoundIntent, lang: Lang = "en", *, is_expensive: bool = False
) -> ReviewResult:
    """Look for what makes a draft wrong or unsafe to run.

    Args:
        is_expensive: whether the datasource's planner finds the draft beyond its limits.
    """
    findings: list[Found] = []
    for check in _CHECKS:
        findings.extend(check(draft, bound))

    if is_expensive:
        target = draft.target
        findings.append(("expensive", target.name, target.relation))

    issues = [_issue(one, lang) for one in findings]
    has_errors = any(issue.severity == "error" for issue in issues)
    verdict: PlanVerdict = "fail" if has_errors else "pass"
    return ReviewResult(verdict=verdict, issues=issues)


def _issue(finding: Found, lang: Lang) -> ReviewIssue:
    code, node, named = finding
    rule = RULES[code]
    return ReviewIssue(
        code=code,
        severity=rule.severity,
        node=node,
        message=rule.message.to(lang).format(named),
        suggestion=rule.suggestion.to(lang),
    )


# ------------------------------------------------------------------------------
# the graph


def _missing_nodes(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    node_names = {node.name for node in draft.plan.nodes}
    for _model, table in _parts(draft, exp.Table):
        if table.db:
            node_names.add(f"{table.db}.{table.name}")

    for node in draft.plan.nodes:
        for name in node.inputs:
            if name not in node_names:
                yield "missing_node", node.name, name


def _cycles(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    inputs = {node.name: node.inputs for node in draft.plan.nodes}
    try:
        TopologicalSorter(inputs).prepare()
    except CycleError as error:
        first = error.args[1][0]
        yield "cycle", first, first
        return

    needed = nodes_behind(draft.plan.nodes, draft.plan.target)
    for node in draft.plan.nodes:
        if node.name not in needed:
            yield "orphan_node", node.name, node.name


def _parts(draft: Draft, *kinds: type[exp.Expr]) -> Iterator[tuple[DraftModel, Any]]:
    """Yield the parts of these kinds in the trees of all models."""
    for model in draft.models:
        for part in model.parts(*kinds):
            yield model, part


# ------------------------------------------------------------------------------
# what a model reads


def _columns(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    types = _known_types(draft, bound)
    for model in draft.models:
        for scope in scopes_of(model.select, types):
            yield from _findings_of_scope(scope, model)


def _findings_of_scope(scope: QueryScope, model: DraftModel) -> Iterator[Found]:
    """Yield columns that its sources lack, and comparisons of types that don't fit."""
    for column in scope.columns():
        if scope.type_of(column) is None:
            yield "unknown_column", model.name, column.sql("postgres")

    for comparison in scope.select.find_all(exp.EQ):
        is_within = not scope.owns(comparison)
        if is_within or _fits(comparison, scope):
            continue

        yield "type_mismatch", model.name, comparison.sql("postgres")


def _known_types(draft: Draft, bound: BoundIntent) -> dict[str, Mapping[str, str]]:
    """Return the columns of all that models may read, with their types."""
    types: dict[str, Mapping[str, str]] = {}
    for source in bound.sources:
        name = f"{source.table.schema}.{source.table.name}"
        types[name] = {column.name: column.type for column in source.table.columns}

    for model in draft.models:
        types[model.name] = {column.name: column.type for column in model.node.columns}

    return types


def _fits(comparison: exp.EQ, scope: QueryScope) -> bool:
    """Tell whether two columns that are compared are of one kind; other values always fit."""
    kinds: set[str] = set()
    for side in (comparison.this, comparison.expression):
        if not isinstance(side, exp.Column):
            return True

        type_ = scope.type_of(side)
        if not type_:
            return True

        kinds.add(kind_of_type(type_))

    is_one_kind = len(kinds) == 1
    is_comparable = any(kinds <= family for family in (NUMBERS, DAYS))
    return is_one_kind or is_comparable or "other" in kinds


def _joins(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model, join in _parts(draft, exp.Join):
        is_meant = join.kind == "CROSS"  # periods with the groups that occur
        columns = join.args.get("using")
        has_condition = join.args.get("on") is not None or columns
        if not is_meant and not has_condition:
            yield "cartesian", model.name, join.this.alias_or_name


def _stars(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model, select in _parts(draft, exp.Select):
        if select.is_star:
            yield "select_star", model.name, model.name


# ------------------------------------------------------------------------------
# what comes out


def _fan_out(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    aggregate = bound.aggregate
    if aggregate is None:
        return

    repeated = sorted(_repeated_sources(bound, aggregate))
    for model in draft.models:
        # The aggregate's order is also that of a filter by the currency that was chosen for it
        is_aggregating = next(model.parts(exp.AggFunc), None) is not None
        is_of_it = aggregate.order in model.node.operations
        if not (is_of_it and is_aggregating) or _tells_apart(model):
            continue

        for source in repeated:
            yield "fan_out", model.name, source


def _repeated_sources(bound: BoundIntent, aggregate: AggregateStep) -> set[str]:
    """Return the sources of measures whose rows joins repeat."""
    repeated: set[str] = set()
    for part in measure_parts(bound, aggregate):
        for measure in part.measures:
            if not part.joined.is_once(measure.source):
                repeated.add(measure.source)

    return repeated


def _tells_apart(model: DraftModel) -> bool:
    return next(model.parts(exp.Distinct, exp.RowNumber), None) is not None


def _grain(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.meant
    aggregate = bound.aggregate
    is_one_row = aggregate is not None and not aggregate.keys
    has_grain = bool(target.node.grain)
    if not has_grain and not is_one_row:
        yield "grain_unstated", target.name, target.relation


def _personal(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    for output in bound.outputs:
        is_kept = output.name in bound.target.columns
        if is_kept and _is_private(output.column, bound):
            yield "sensitive_column", draft.meant.name, output.name


def _is_private(bound_column: BoundColumn, bound: BoundIntent) -> bool:
    if not bound_column.source:
        return False

    table = bound.source(bound_column.source).table
    column = table.column(bound_column.name)
    if column is None:
        return False

    return privacy_of(table, column) is Privacy.PRIVATE


def _repeatable(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.meant
    if bound.target.mode == "append":
        yield "not_idempotent", target.name, target.relation
    if bound.target.mode == "merge" and target.increment is None:
        yield "no_partition_filter", target.name, target.relation


def _undetermined_parts(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model in draft.models:
        for kinds, is_open in _OPEN:
            for part in model.parts(*kinds):
                if is_open(part):
                    yield "nondeterministic", model.name, part.sql("postgres").strip()


def _is_open_function(function: exp.Anonymous) -> bool:
    return function.name.lower() in _OPEN_FUNCTIONS


def _is_unsorted_limit(limit: exp.Limit) -> bool:
    around = limit.parent
    return around is not None and around.args.get("order") is None


def _is_unsorted_numbering(window: exp.Window) -> bool:
    is_numbering = isinstance(window.this, exp.RowNumber)
    return is_numbering and window.args.get("order") is None


_CURRENT = (exp.Rand, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Uuid)
_OPEN_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "timeofday", "gen_random_uuid")
# Parts of a tree, and the test whether such a part leaves the result open.
_OPEN: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[Any], bool]], ...] = (
    (_CURRENT, lambda _: True),
    ((exp.Anonymous,), _is_open_function),
    ((exp.Limit,), _is_unsorted_limit),
    ((exp.Window,), _is_unsorted_numbering),
)


def _hard_coded_dates(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    intended = set(_meant_texts(bound))
    for model, cast in _parts(draft, exp.Cast):
        day = cast.this
        is_day = cast.to.this in _DAY_TYPES
        is_text = isinstance(day, exp.Literal) and day.is_string
        if is_day and is_text and day.name not in intended:
            yield "hard_coded_date", model.name, day.name


_DAY_TYPES = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
)


def _meant_texts(bound: BoundIntent) -> Iterator[str]:
    """Yield the texts of all values that an intent names."""
    for step in bound.steps:
        yield from _texts_in_step(step)

    for measure in bound.measures:
        yield from _texts_in_tests(measure.tests)
        if measure.value is not None:
            yield from _literals(measure.value)


def _texts_in_step(step: Step) -> Iterator[str]:
    """Yield the texts of the values that a step compares with or puts in."""
    if isinstance(step, FilterStep):
        yield from _texts_in_tests(step.tests)
    elif isinstance(step, ExpressionStep):
        yield from _literals(step.expression)
    elif isinstance(step, MapStep):
        for old, new in step.mapping:
            yield _value_text(old)
            yield _value_text(new)

        yield _value_text(step.default)


def _texts_in_tests(tests: Iterable[RowTest]) -> Iterator[str]:
    for test in tests:
        if isinstance(test, AnyOf):
            yield from _texts_in_tests(test.conditions)
        elif isinstance(test, ExpressionTest):
            yield from _literals(test.expression)
        elif isinstance(test.value, tuple):
            yield from map(_value_text, test.value)
        else:
            yield _value_text(test.value)


def _literals(expression: exp.Expr) -> Iterator[str]:
    for literal in expression.find_all(exp.Literal):
        yield literal.name


def _value_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()

    return str(value)


# dbt cuts the names of its own relations to 63 characters, which PostgreSQL then cuts to 63 bytes:
# what it puts behind a name has to fit.
_MOST_BYTES_ABROAD = MOST_NAME_BYTES - len("__dbt_backup")


def _sink(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.target
    if not _is_usable(target.relation):
        yield "sink_refused", target.name, target.relation

    names = {source.table.name for source in bound.sources}
    if target.relation in names:
        yield "target_exists", target.name, target.relation


def _is_usable(relation: str) -> bool:
    """Tell whether PostgreSQL and dbt can name a relation so."""
    if not relation or relation.lower().startswith("pg_"):
        return False
    if _PATH_MARKS.search(relation):
        return False

    most_bytes = MOST_NAME_BYTES if relation.isascii() else _MOST_BYTES_ABROAD
    return len(relation.encode()) <= most_bytes


_PATH_MARKS = re.compile(r'[./\\"\0]')
_CHECKS: tuple[Callable[[Draft, BoundIntent], Iterator[Found]], ...] = (
    _missing_nodes,
    _cycles,
    _columns,
    _joins,
    _fan_out,
    _grain,
    _personal,
    _repeatable,
    _undetermined_parts,
    _hard_coded_dates,
    _stars,
    _sink,
)
