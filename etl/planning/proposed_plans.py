"""Plans that somebody proposes in place of the rules' own: checked, and made into drafts."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import MOST_MODEL_CHARS, MOST_NAME_BYTES, readable_name
from etl.planning.sql_trees import VARIABLE
from etl.schemas.plan import ArchitecturePlan, EtlNode

MOST_NODES = 100
_MOST_COLUMNS = 400
_MODEL_NAME = re.compile(rf"(?=.{{1,{MOST_MODEL_CHARS}}}\Z)(ods|dwd|dws|ads)_[a-z0-9_]+")
_TYPE = re.compile(r"[a-z][a-z ]*(\(\d+(, ?\d+)?\))?( (with|without) time zone)?(\[\])?")


def plan_problems(plan: ArchitecturePlan, rules: Draft) -> list[str]:
    """Return what is wrong with a plan, in English; empty when a draft can be made of it."""
    count = len(plan.nodes)
    if not 0 < count <= MOST_NODES:
        return [f"{count} nodes are not possible: 1 to {MOST_NODES} are."]
    names = [node.name for node in plan.nodes]
    if len(set(names)) < count:
        return ["Two nodes have the same name."]
    target = rules.target.node
    if plan.target != target.name or names[-1] != target.name:
        return [f"The target is {target.name}, and it stands last."]
    problems = list(_target_problems(plan.nodes[-1], target))
    known = {name for node in rules.plan.nodes for name in node.inputs if "." in name}
    for node in plan.nodes:
        problems += _node_problems(node, known, is_target=node.name == target.name)
        known.add(node.name)
    problems += _unneeded(plan)
    return problems


def _target_problems(node: EtlNode, target: EtlNode) -> Iterator[str]:
    wanted = [column.name for column in target.columns]
    given = [column.name for column in node.columns]
    if given != wanted:
        yield f"{target.name} has the columns {', '.join(wanted)}, in this order."
    if set(node.grain) != set(target.grain):
        yield f"{target.name} has the grain ({', '.join(target.grain)})."


def _node_problems(node: EtlNode, known: Collection[str], *, is_target: bool) -> Iterator[str]:
    prefix = f"{node.layer.lower()}_"
    is_named = _MODEL_NAME.fullmatch(node.name) and node.name.startswith(prefix)
    if not is_target and not is_named:
        yield f"{node.name[:MOST_NAME_BYTES]!r} is no name for a node of the layer {node.layer}."
    if not is_target and node.materialization == "incremental":
        yield f"{node.name} is a view or a table: only the target may be incremental."
    if not node.inputs:
        yield f"{node.name} reads nothing."
    for name in node.inputs:
        if name not in known:
            said = name[:MOST_NAME_BYTES]
            yield f"{node.name} reads {said!r}, which is no earlier node or table."
    yield from _column_problems(node)


def _column_problems(node: EtlNode) -> Iterator[str]:
    names = [column.name for column in node.columns]
    if not 0 < len(names) <= _MOST_COLUMNS:
        yield f"{node.name} has {len(names)} columns: 1 to {_MOST_COLUMNS} are possible."
        return
    if len(set(names)) < len(names) or not set(node.grain) <= set(names):
        yield f"{node.name} names a column twice, or has one in its grain that it lacks."
    for column in node.columns:
        name = column.name
        is_short = 0 < len(name.encode()) <= MOST_NAME_BYTES
        if not is_short or name != readable_name(name) or '"' in name:
            yield f"{node.name} has a column with the name {name[:MOST_NAME_BYTES]!r}."
        if _TYPE.fullmatch(column.type) is None:
            yield f"{node.name}.{name[:MOST_NAME_BYTES]} has no type of PostgreSQL's."


def _unneeded(plan: ArchitecturePlan) -> Iterator[str]:
    needed = {plan.target}
    for node in reversed(plan.nodes):
        if node.name in needed:
            needed.update(node.inputs)
    for node in plan.nodes:
        if node.name not in needed:
            yield f"The target does not need the node {node.name}."


def adopted_plan(plan: ArchitecturePlan, rules: Draft) -> ArchitecturePlan:
    """Return the plan with the rules' target, which the request decides.

    Where all nodes are as in the rules' plan, it is that one.
    """
    if [_shape(node) for node in plan.nodes] == [_shape(node) for node in rules.plan.nodes]:
        return rules.plan
    known = {operation for node in rules.plan.nodes for operation in node.operations}
    last = plan.nodes[-1]
    changes = {"inputs": last.inputs, "operations": _known(last, known)}
    target = rules.target.node.model_copy(update=changes)
    nodes = [
        node.model_copy(update={"operations": _known(node, known)}) for node in plan.nodes[:-1]
    ]
    return ArchitecturePlan(pattern=plan.pattern, nodes=[*nodes, target], target=plan.target)


def _shape(node: EtlNode) -> tuple[str, Sequence[str], Sequence[str]]:
    return node.name, node.inputs, [column.name for column in node.columns]


def _known(node: EtlNode, operations: Collection[int]) -> list[int]:
    return [order for order in node.operations if order in operations]


def planned_draft(plan: ArchitecturePlan, rules: Draft) -> Draft:
    """Return a draft of the plan: with the rules' SQL where a node is theirs, else with none yet.

    A model without SQL selects nothing but NULL; `unwritten` names it.
    """
    return Draft(plan, tuple(_model(node, rules) for node in plan.nodes))


def _model(node: EtlNode, rules: Draft) -> DraftModel:
    own = rules_models(rules).get(node.name)
    if own is not None and own.node == node:
        return own
    nothing = exp.select(exp.null())
    if own is None or node.name != rules.plan.target:
        return DraftModel(node, nothing, node.name)
    return DraftModel(node, nothing, own.relation, own.increment, own.merge_key)


def unwritten(plan: ArchitecturePlan, rules: Draft) -> list[str]:
    """Return the names of the nodes that the rules have no SQL for."""
    own = rules_models(rules)
    return [node.name for node in plan.nodes if node.name not in own or own[node.name].node != node]


def writable(plan: ArchitecturePlan, rules: Draft) -> list[str]:
    """Return the names of the nodes that somebody else may write.

    Nodes that only rename sources are the rules', and so are those that read variables of the
    project, which only the renderer writes.
    """
    missing = set(unwritten(plan, rules))
    own = rules_models(rules)
    names = []
    for node in plan.nodes:
        is_plain = node.layer != "ODS" and not has_variables(own.get(node.name))
        if node.name in missing or is_plain:
            names.append(node.name)
    return names


def has_variables(model: DraftModel | None) -> bool:
    """Tell whether a model reads variables of the project."""
    if model is None:
        return False
    calls = model.select.find_all(exp.Anonymous)
    return any(call.name == VARIABLE for call in calls)


def rules_models(rules: Draft) -> Mapping[str, DraftModel]:
    """Return the rules' models by their names."""
    return {model.name: model for model in rules.models}
