"""Tests of a draft that are made from its plan: contracts, keys, references, figures."""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from common.text import Text
from common.values import Table
from etl.evidence.reconciliation import reconciliations
from etl.meaning.bound import BoundIntent, JoinSourceStep, RateStep
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import UniqueNames, ascii_name
from etl.planning.draft_test import DraftTest
from etl.planning.sql_trees import column, selection, table
from etl.schemas.evidence import TestKind

_TECHNICAL = ("etl_key", "etl_period")


def checks_of(draft: Draft, bound: BoundIntent) -> Iterator[DraftTest]:
    """Yield the tests of all models, those of sources first."""
    names = UniqueNames()
    sources = _source_models(draft, bound)
    for model in draft.models:
        yield DraftTest(
            names.technical(f"contract_{model.name}"), "contract", model.name, _CONTRACT
        )
        grain = _grain(model, names)
        if grain is not None:
            yield grain

    for name, model in sources.items():
        yield from _of_source(bound.source(name).table, model, names)

    yield from _of_joins(bound, sources, names)
    yield from _of_target(draft, bound, names)
    yield from _of_figures(draft, bound, names)


def _source_models(draft: Draft, bound: BoundIntent) -> dict[str, DraftModel]:
    """Return the model that reads each source, by the source's name."""
    models = []
    for model in draft.models:
        if model.node.layer == "ODS":
            models.append(model)

    model_by_source = {}
    for source in bound.sources:
        read = f"{source.table.schema}.{source.table.name}"
        reading = []
        for model in models:
            if model.node.inputs == [read]:
                reading.append(model)

        if reading:
            model_by_source[source.name] = reading[0]
            models.remove(reading[0])

    return model_by_source


def _output_of(model: DraftModel, name: str) -> str | None:
    """Return the column of a source's model that holds a stored column."""
    if not isinstance(model.select, exp.Select):
        return None

    for output in model.select.expressions:
        stored = output.find(exp.Column)
        if stored is not None and stored.name == name:
            return str(output.alias_or_name)

    return None


def _grain(model: DraftModel, names: UniqueNames) -> DraftTest | None:
    """Return the test that no two rows have the same key, NULL being a value like others."""
    columns = model.node.grain
    is_single = len(columns) == 1 and model.node.layer == "ODS"
    if not columns or is_single:
        return None

    outputs = [(name, column(name)) for name in columns]
    count = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    failures = selection(outputs, table(model.name))
    for name in columns:
        failures.group_by(column(name), copy=False)

    failures.having(count, copy=False)
    test_id = names.technical(f"grain_{model.name}")
    return DraftTest(test_id, "grain", model.name, _GRAIN, None, failures, tuple(columns))


def _of_source(stored: Table, model: DraftModel, names: UniqueNames) -> Iterator[DraftTest]:
    for name in stored.primary_key:
        output = _output_of(model, name)
        if output is None:
            continue

        yield _of_column("not_null", model, output, names)
        if len(stored.primary_key) == 1:
            yield _of_column("unique", model, output, names)

    for one in stored.columns:
        output = _output_of(model, one.name)
        if output is not None and one.allowed:
            yield _of_column("accepted_values", model, output, names, values=one.allowed)


def _of_joins(
    bound: BoundIntent, sources: dict[str, DraftModel], names: UniqueNames
) -> Iterator[DraftTest]:
    """Yield the tests that keys have a row; orphans are told, and the ledger counts them."""
    for step in bound.steps_of(JoinSourceStep):
        looks_up = step.how in ("left", "inner") and not step.is_multiple
        if not looks_up or len(step.on) != 1:
            continue

        ((left, right),) = step.on
        child, parent = sources.get(left.source), sources.get(right.source)
        if child is None or parent is None:
            continue

        output = _output_of(child, left.name)
        key = _output_of(parent, right.name)
        if output is not None and key is not None:
            referred = (parent.name, key)
            yield _of_column(
                "relationships", child, output, names, parent=referred, is_warning=True
            )


def _of_target(draft: Draft, bound: BoundIntent, names: UniqueNames) -> Iterator[DraftTest]:
    target = draft.meant
    for name in _TECHNICAL:
        if name in target.types:
            yield _of_column("not_null", target, name, names)

    if "etl_key" in target.types:
        yield _of_column("unique", target, "etl_key", names)

    yield from _of_rates(draft, bound, names)


def _of_rates(draft: Draft, bound: BoundIntent, names: UniqueNames) -> Iterator[DraftTest]:
    """Yield warnings of converted amounts that no rate was found for."""
    converted = {step.name for step in bound.steps_of(RateStep)}
    for model in draft.models:
        if model.node.layer == "ODS":
            continue  # amounts are converted in later layers

        for name in filter(converted.__contains__, model.types):
            yield _of_column("not_null", model, name, names, is_warning=True)


def _of_column(
    kind: TestKind,
    model: DraftModel,
    name: str,
    names: UniqueNames,
    *,
    values: Sequence[str] = (),
    parent: tuple[str, str] | None = None,
    is_warning: bool = False,
) -> DraftTest:
    test_id = names.technical(_id(kind, model.name, name))
    return DraftTest(
        test_id,
        kind,
        model.name,
        _OF_COLUMN[kind],
        columns=(name,),
        values=tuple(values),
        parent=parent,
        is_warning=is_warning,
    )


def _of_figures(draft: Draft, bound: BoundIntent, names: UniqueNames) -> Iterator[DraftTest]:
    target = draft.meant.name
    for reconciliation in reconciliations(bound):
        test_id = names.technical(_id("reconcile", target, reconciliation.name))
        yield DraftTest(
            test_id,
            "reconcile",
            target,
            _RECONCILE,
            None,
            reconciliation.failures,
            (reconciliation.name,),
        )


def _id(kind: str, node: str, name: str) -> str:
    """Return an id of plain letters; a name that has none is left out."""
    return "_".join(part for part in (kind, node, ascii_name(name)) if part)


_CONTRACT = Text(
    "列名和类型与计划一致。", "The columns have the names and types that the plan says."
)
_GRAIN = Text("同一粒度没有两行。", "No two rows have the same grain.")
_RECONCILE = Text(
    "合计与对来源表的独立查询一致。", "The total is that of an independent query on the sources."
)
_OF_COLUMN: dict[TestKind, Text] = {
    "not_null": Text("没有空值。", "No value is missing."),
    "unique": Text("没有重复的值。", "No value is there twice."),
    "accepted_values": Text("只有约束允许的值。", "Only values that the constraint allows."),
    "relationships": Text("每个键都有对应的行。", "Every key has its row."),
}
