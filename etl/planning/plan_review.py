"""The review of a draft by rules; an error fails it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from graphlib import CycleError, TopologicalSorter

from sqlglot import exp

from common.text import Lang
from etl.meaning.bound import (
    AnyOf,
    BoundCondition,
    BoundIntent,
    ExpressionStep,
    ExpressionTest,
    FilterStep,
    MapStep,
    RowTest,
    Step,
)
from etl.meaning.value_kinds import DAYS, NUMBERS, kind_of_type
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import MOST_NAME_BYTES
from etl.planning.measure_parts import measure_parts
from etl.planning.query_scopes import QueryScope, scopes_of
from etl.planning.review_texts import RULES
from etl.schemas.plan import ReviewCode, ReviewIssue, ReviewResult
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
    issues: list[ReviewIssue] = []
    for check in _CHECKS:
        issues.extend(_issue(found, lang) for found in check(draft, bound))
    if is_expensive:
        target = draft.target
        issues.append(_issue(("expensive", target.name, target.relation), lang))
    has_errors = any(issue.severity == "error" for issue in issues)
    return ReviewResult(verdict="fail" if has_errors else "pass", issues=issues)


def _issue(found: Found, lang: Lang) -> ReviewIssue:
    code, node, named = found
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


def _graph(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    inputs = {node.name: node.inputs for node in draft.plan.nodes}
    stored = {name for model in draft.models for name in _sources(model)}
    for node in draft.plan.nodes:
        for name in node.inputs:
            if name not in inputs and name not in stored:
                yield "missing_node", node.name, name
    try:
        TopologicalSorter(inputs).prepare()
    except CycleError as error:
        yield "cycle", error.args[1][0], error.args[1][0]
        return
    needed = {draft.plan.target}
    for node in reversed(draft.plan.nodes):
        if node.name in needed:
            needed.update(node.inputs)
    for node in draft.plan.nodes:
        if node.name not in needed:
            yield "orphan_node", node.name, node.name


def _sources(model: DraftModel) -> set[str]:
    return {f"{one.db}.{one.name}" for one in model.select.find_all(exp.Table) if one.db}


# ------------------------------------------------------------------------------
# what a model reads


def _columns(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    types = _known_types(draft, bound)
    for model in draft.models:
        for scope in scopes_of(model.select, types):
            for column in scope.columns():
                if scope.type_of(column) is None:
                    yield "unknown_column", model.name, column.sql("postgres")
            for comparison in scope.select.find_all(exp.EQ):
                if scope.owns(comparison) and not _fits(comparison, scope):
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
    kinds = set()
    for side in (comparison.this, comparison.expression):
        type_ = scope.type_of(side) if isinstance(side, exp.Column) else None
        if not type_:
            return True
        kinds.add(kind_of_type(type_))
    return len(kinds) == 1 or kinds <= NUMBERS or kinds <= DAYS or "other" in kinds


def _joins(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model in draft.models:
        for join in model.select.find_all(exp.Join):
            is_meant = join.kind == "CROSS"  # periods with the groups that occur
            if not is_meant and join.args.get("on") is None and not join.args.get("using"):
                yield "cartesian", model.name, join.this.alias_or_name


def _stars(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model in draft.models:
        for select in model.select.find_all(exp.Select):
            if select.is_star:
                yield "select_star", model.name, model.name


# ------------------------------------------------------------------------------
# what comes out


def _fan_out(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    aggregate = bound.aggregate
    if aggregate is None:
        return
    repeated: set[str] = set()
    for part in measure_parts(bound, aggregate):
        sources = {measure.source for measure in part.measures}
        repeated |= {source for source in sources if not part.joined.is_once(source)}
    if not repeated:
        return
    for model in draft.models:
        if aggregate.order not in model.node.operations:
            continue
        if model.select.find(exp.Distinct, exp.RowNumber) is None:
            for source in sorted(repeated):
                yield "fan_out", model.name, source


def _grain(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.target
    aggregate = bound.aggregate
    is_one_row = aggregate is not None and not aggregate.keys
    if not target.node.grain and not is_one_row:
        yield "grain_unstated", target.name, target.relation


def _personal(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    kept = set(bound.target.columns)
    for output in bound.outputs:
        if output.name not in kept or not output.column.source:
            continue
        table = bound.source(output.column.source).table
        column = table.column(output.column.name)
        if column is not None and privacy_of(table, column) is Privacy.PRIVATE:
            yield "sensitive_column", draft.target.name, output.name


def _repeatable(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.target
    if bound.target.mode == "append":
        yield "not_idempotent", target.name, target.relation
    if bound.target.mode == "merge" and target.increment is None:
        yield "no_partition_filter", target.name, target.relation


def _determined(draft: Draft, _: BoundIntent) -> Iterator[Found]:
    for model in draft.models:
        for found in model.select.find_all(*_OPEN):
            yield "nondeterministic", model.name, found.sql("postgres")
        for function in model.select.find_all(exp.Anonymous):
            if function.name.lower() in _OPEN_FUNCTIONS:
                yield "nondeterministic", model.name, function.sql("postgres")
        for limit in model.select.find_all(exp.Limit):
            if limit.parent is not None and limit.parent.args.get("order") is None:
                yield "nondeterministic", model.name, limit.sql("postgres").strip()
        for window in model.select.find_all(exp.Window):
            is_numbering = isinstance(window.this, exp.RowNumber)
            if is_numbering and window.args.get("order") is None:
                yield "nondeterministic", model.name, window.sql("postgres")


_OPEN = (exp.Rand, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Uuid)
_OPEN_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "timeofday", "gen_random_uuid")


def _dates(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    meant = set(_meant_texts(bound))
    for model in draft.models:
        for cast in model.select.find_all(exp.Cast):
            is_day = cast.to.this in _DAY_TYPES
            is_text = isinstance(cast.this, exp.Literal) and cast.this.is_string
            if is_day and is_text and cast.this.name not in meant:
                yield "hard_coded_date", model.name, cast.this.name


_DAY_TYPES = (
    exp.DataType.Type.DATE,
    exp.DataType.Type.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ,
)


def _meant_texts(bound: BoundIntent) -> Iterator[str]:
    """Yield the texts of all values that an intent names."""
    for step in bound.steps:
        yield from _step_texts(step)
    if bound.aggregate is None:
        return
    for measure in bound.aggregate.measures:
        for test in measure.tests:
            yield from _test_texts(test)
        if measure.value is not None:
            yield from (one.name for one in measure.value.find_all(exp.Literal))


def _step_texts(step: Step) -> Iterator[str]:
    if isinstance(step, FilterStep):
        for test in step.tests:
            yield from _test_texts(test)
    elif isinstance(step, MapStep):
        for pair in step.mapping:
            yield from (_value_text(value) for value in pair)
        yield _value_text(step.default)
    elif isinstance(step, ExpressionStep):
        yield from (one.name for one in step.expression.find_all(exp.Literal))


def _test_texts(test: RowTest) -> Iterator[str]:
    if isinstance(test, AnyOf):
        for part in test.conditions:
            yield from _test_texts(part)
    elif isinstance(test, ExpressionTest):
        yield from (one.name for one in test.expression.find_all(exp.Literal))
    elif isinstance(test, BoundCondition):
        values = test.value if isinstance(test.value, tuple) else (test.value,)
        yield from (_value_text(value) for value in values)


def _value_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else str(value)


# dbt cuts the names of its own relations to 63 characters, which PostgreSQL then cuts to 63 bytes:
# what it puts behind a name has to fit.
_MOST_BYTES_ABROAD = MOST_NAME_BYTES - len("__dbt_backup")


def _sink(draft: Draft, bound: BoundIntent) -> Iterator[Found]:
    target = draft.target
    relation = target.relation
    most_bytes = MOST_NAME_BYTES if relation.isascii() else _MOST_BYTES_ABROAD
    is_long = len(relation.encode()) > most_bytes
    is_path = any(mark in relation for mark in './\\"\0')
    if not relation or is_long or is_path or relation.lower().startswith("pg_"):
        yield "sink_refused", target.name, relation
    if any(source.table.name == relation for source in bound.sources):
        yield "target_exists", target.name, relation


_CHECKS: tuple[Callable[[Draft, BoundIntent], Iterator[Found]], ...] = (
    _graph,
    _columns,
    _joins,
    _fan_out,
    _grain,
    _personal,
    _repeatable,
    _determined,
    _dates,
    _stars,
    _sink,
)
