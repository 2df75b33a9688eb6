"""What may go wrong when a plan is used, and what could be planned instead."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from common.text import Lang, Text
from common.values import Table
from etl.meaning.bound import BoundIntent, JoinSourceStep, RateStep
from etl.meaning.value_kinds import kind_of_type
from etl.planning.draft_model import Draft
from etl.planning.joined_sources import declared_identity
from etl.planning.sql_trees import variables_among
from etl.schemas.plan import Risk
from etl.schemas.requirement import Materialization

Note = tuple[str, str]
"""The code of a note, and what is named in its sentence."""


def with_notes(draft: Draft, bound: BoundIntent, lang: Lang) -> Draft:
    """Return the draft, its plan with risks and alternatives in that language."""
    risks = []
    for find in _RISKS:
        for code, named in find(draft, bound):
            text = _RISK_TEXTS[code].to(lang).format(named)
            risks.append(Risk(code=code, text=text, severity="warning"))

    alternatives = []
    for code, named in _alternatives(bound):
        alternatives.append(_ALTERNATIVE_TEXTS[code].to(lang).format(named))

    changes = {"risks": risks, "alternatives": alternatives}
    return replace(draft, plan=draft.plan.model_copy(update=changes))


# ------------------------------------------------------------------------------
# risks


def _undeclared_keys(_: Draft, bound: BoundIntent) -> Iterator[Note]:
    for source in bound.sources:
        if not declared_identity(source.table):
            yield "undeclared_key", source.name


def _undeclared_references(_: Draft, bound: BoundIntent) -> Iterator[Note]:
    for step in bound.steps_of(JoinSourceStep):
        if not _is_declared(bound, step):
            yield "undeclared_reference", step.right


def _is_declared(bound: BoundIntent, step: JoinSourceStep) -> bool:
    """Tell whether one side of a join declares that it refers to the other."""
    if step.only_left is None:
        return False

    left = bound.source(step.only_left).table
    right = bound.source(step.right).table
    if _refers(left, right, {(one.name, other.name) for one, other in step.on}):
        return True

    return _refers(right, left, {(other.name, one.name) for one, other in step.on})


def _refers(table: Table, other: Table, pairs: set[tuple[str, str]]) -> bool:
    for key in table.foreign_keys:
        declared = set(zip(key.columns, key.target_columns, strict=True))
        if key.target == other.key and declared == pairs:
            return True

    return False


def _missing_rates(_: Draft, bound: BoundIntent) -> Iterator[Note]:
    for step in bound.steps_of(RateStep):
        yield "missing_rate", step.name


def _relative_days(draft: Draft, _: BoundIntent) -> Iterator[Note]:
    names: dict[str, None] = {}
    for model in draft.models:
        names.update(dict.fromkeys(variables_among(model.parts(exp.Anonymous))))

    for name in names:
        yield "relative_day", name


def _inexact_measures(draft: Draft, _: BoundIntent) -> Iterator[Note]:
    for column in draft.target.node.columns:
        if column.role == "measure" and kind_of_type(column.type) == "float":
            yield "inexact_measure", column.name


def _increments(draft: Draft, bound: BoundIntent) -> Iterator[Note]:
    target = bound.target
    if target.mode == "append":
        yield "append", target.relation
    if target.mode != "merge":
        return
    if draft.target.increment is None:
        yield "merge_by_key", target.relation
    elif target.watermark is not None:
        yield "merge_lookback", str(target.watermark.lookback_days)


_RISKS: tuple[Callable[[Draft, BoundIntent], Iterator[Note]], ...] = (
    _undeclared_keys,
    _undeclared_references,
    _missing_rates,
    _relative_days,
    _inexact_measures,
    _increments,
)
_RISK_TEXTS: Mapping[str, Text] = {
    "undeclared_key": Text(
        "{} 没有声明主键：重复加载的行会被当作不同的行。",
        "{} declares no key: rows that are loaded twice count as two.",
    ),
    "undeclared_reference": Text(
        "与 {} 的连接没有外键：目标环境中可能有对不上或重复的键。",
        "No foreign key stands behind the join with {}: keys may match nothing, or several rows.",
    ),
    "missing_rate": Text(
        "没有汇率的金额在 {} 中为 NULL，不计入合计。",
        "Amounts without a rate are NULL in {}, and in no total.",
    ),
    "relative_day": Text(
        "结果取决于变量 {}：它的默认值是起草当天。",
        "The result depends on the variable {}, whose default is the day of the draft.",
    ),
    "inexact_measure": Text(
        "{} 是浮点数：合计的末位可能每次不同。",
        "{} is a floating point number: the last digits of its totals may differ each time.",
    ),
    "append": Text(
        "{} 只追加：迟到或修改过的行不会再次计算。",
        "{} is only added to: rows that come late or change are not computed again.",
    ),
    "merge_by_key": Text(
        "{} 按键合并：来源中消失的行会留下。",
        "{} is merged by its key: rows that vanish from the sources stay.",
    ),
    "merge_lookback": Text(
        "迟到超过 {} 天的行要等到完全刷新才会出现。",
        "Rows that are late by more than {} days are missing until a full refresh.",
    ),
}


# ------------------------------------------------------------------------------
# alternatives


def _alternatives(bound: BoundIntent) -> Iterator[Note]:
    target = bound.target
    yield _OTHERWISE[target.materialization], target.relation
    if target.mode == "replace":
        yield from _mergeable(bound)

    for step in bound.steps_of(JoinSourceStep):
        if step.how == "left":
            yield "inner_join", step.right


def _mergeable(bound: BoundIntent) -> Iterator[Note]:
    """Yield the first period by which the target could be merged."""
    periods = [key.name for key in bound.keys if key.unit]
    for name in periods[:1]:
        yield "merge", name


# What a target could be instead, by its materialization.
_OTHERWISE: Mapping[Materialization, str] = {
    "table": "view",
    "view": "table",
    "incremental": "replace",
}
_ALTERNATIVE_TEXTS: Mapping[str, Text] = {
    "view": Text(
        "把 {} 建成视图：总是最新，但每次读取都要计算。",
        "{} as a view: always up to date, and computed whenever it is read.",
    ),
    "table": Text(
        "把 {} 建成表：读取快，但只和上次构建一样新。",
        "{} as a table: fast to read, and as old as the last build.",
    ),
    "replace": Text(
        "每次完整重建 {}：更慢，但不会留下旧行。",
        "{} built anew each time: slower, and no old rows stay.",
    ),
    "merge": Text(
        "按 {} 增量合并（sink 的 mode 为 merge）：只重新计算最近的周期。",
        "Merged by {} (`merge` as the sink's mode): only the last periods are computed again.",
    ),
    "inner_join": Text(
        "与 {} 内连接：没有匹配的行会被去掉。",
        "An inner join with {}: rows without a match are left out.",
    ),
}
