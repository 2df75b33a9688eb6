"""Plans that somebody proposes in place of the rules' own: checked, and made into drafts."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from etl.planning.draft_model import Draft, DraftModel, nodes_behind
from etl.planning.draft_names import MOST_MODEL_CHARS, MOST_NAME_BYTES, readable_name
from etl.planning.sql_trees import VARIABLE
from etl.schemas.plan import ArchitecturePlan, EtlNode

MOST_NODES = 100
_MOST_COLUMNS = 400
_MODEL_NAME = re.compile(rf"(?=.{{1,{MOST_MODEL_CHARS}}}\Z)(ods|dwd|dws|ads)_[a-z0-9_]+")
_TYPE = re.compile(r"[a-z][a-z ]*(\(\d+(, ?\d+)?\))?( (with|without) time zone)?(\[\])?")


def plan_problems(plan: ArchitecturePlan, rules: Draft) -> list[str]:
    """Return what is wrong with a plan, in English; empty when a draft can be made of it."""
    target = rules.target.node
    shape = _shape_problem(plan, target)
    if shape is not None:
        return [shape]

    problems = list(_target_problems(plan.nodes[-1], target))
    stored_tables = _stored_tables(rules)
    for node in plan.nodes:
        problems += node_problems(node, stored_tables, is_target=node.name == target.name)
        stored_tables.add(node.name)

    needed = nodes_behind(plan.nodes, plan.target)
    for node in plan.nodes:
        if node.name not in needed:
            problems.append(f"The target does not need the node {node.name}.")

    return problems


def _shape_problem(plan: ArchitecturePlan, target: EtlNode) -> str | None:
    """Return what keeps the nodes from being looked at one by one."""
    names = [node.name for node in plan.nodes]
    count = len(names)
    if not 0 < count <= MOST_NODES:
        return f"{count} nodes are not possible: 1 to {MOST_NODES} are."
    if len(set(names)) < count:
        return "Two nodes have the same name."
    if (plan.target, names[-1]) != (target.name, target.name):
        return f"The target is {target.name}, and it stands last."

    return None


def _stored_tables(rules: Draft) -> set[str]:
    """Return the tables of the datasource that the rules' plan reads."""
    stored: set[str] = set()
    for node in rules.plan.nodes:
        stored.update(name for name in node.inputs if "." in name)

    return stored


def _target_problems(node: EtlNode, target: EtlNode) -> Iterator[str]:
    target_columns = _column_names(target)
    if _column_names(node) != target_columns:
        yield f"{target.name} has the columns {', '.join(target_columns)}, in this order."
    if set(node.grain) != set(target.grain):
        yield f"{target.name} has the grain ({', '.join(target.grain)})."


def node_problems(node: EtlNode, readable: Collection[str], *, is_target: bool) -> Iterator[str]:
    """Yield what is wrong with a node, in English; `readable` is what it may read."""
    if not is_target:
        yield from _problems_before_target(node)
    if not node.inputs:
        yield f"{node.name} reads nothing."

    for name in node.inputs:
        if name not in readable:
            short_name = _shortened(name)
            yield f"{node.name} reads {short_name!r}, which is no earlier node or table."

    yield from _column_problems(node)


def _problems_before_target(node: EtlNode) -> Iterator[str]:
    has_prefix = node.name.startswith(f"{node.layer.lower()}_")
    if not has_prefix or _MODEL_NAME.fullmatch(node.name) is None:
        short_name = _shortened(node.name)
        yield f"{short_name!r} is no name for a node of the layer {node.layer}."

    if node.materialization == "incremental":
        yield f"{node.name} is a view or a table: only the target may be incremental."


def _column_problems(node: EtlNode) -> Iterator[str]:
    names = _column_names(node)
    if not 0 < len(names) <= _MOST_COLUMNS:
        yield f"{node.name} has {len(names)} columns: 1 to {_MOST_COLUMNS} are possible."
        return

    has_repeats = len(set(names)) < len(names)
    has_grain = set(node.grain) <= set(names)
    if has_repeats or not has_grain:
        yield f"{node.name} names a column twice, or has one in its grain that it lacks."

    for column in node.columns:
        short_name = _shortened(column.name)
        if not _is_usable(column.name):
            yield f"{node.name} has a column with the name {short_name!r}."
        if _TYPE.fullmatch(column.type) is None:
            yield f"{node.name}.{short_name} has no type of PostgreSQL's."


def _is_usable(name: str) -> bool:
    """Tell whether a column can have the name in PostgreSQL, dbt and YAML."""
    if not 0 < len(name.encode()) <= MOST_NAME_BYTES:
        return False

    return name == readable_name(name) and '"' not in name


def _shortened(name: str) -> str:
    return name[:MOST_NAME_BYTES]


def _column_names(node: EtlNode) -> list[str]:
    return [column.name for column in node.columns]


def adopted_plan(plan: ArchitecturePlan, rules: Draft) -> ArchitecturePlan:
    """Return a model's plan with the rules' target, which the request decides.

    Where all nodes are as in the rules' plan, it is that one.
    """
    shapes = [_shape(node) for node in plan.nodes]
    if shapes == [_shape(node) for node in rules.plan.nodes]:
        return rules.plan

    requested: set[int] = set()
    for node in rules.plan.nodes:
        requested.update(node.operations)

    *before, last = [_with_requested(node, requested) for node in plan.nodes]
    changes = {"inputs": last.inputs, "operations": last.operations}
    target = rules.target.node.model_copy(update=changes)
    return ArchitecturePlan(pattern=plan.pattern, nodes=[*before, target], target=plan.target)


def _shape(node: EtlNode) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return what two nodes have in common that are the same to a plan."""
    return node.name, node.inputs, _column_names(node)


def _with_requested(node: EtlNode, operations: Collection[int]) -> EtlNode:
    """Return the node with those of its operations that the request has."""
    requested = []
    for order in node.operations:
        if order in operations:
            requested.append(order)

    return node.model_copy(update={"operations": requested})


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
    names = []
    for node in plan.nodes:
        model = own.get(node.name)
        if model is None or model.node != node:
            names.append(node.name)

    return names


def writable(plan: ArchitecturePlan, rules: Draft) -> list[str]:
    """Return the names of the nodes that somebody else may write.

    Nodes that only rename sources are the rules', and so are those that read variables of the
    project, which only the renderer writes.
    """
    missing = set(unwritten(plan, rules))
    own = rules_models(rules)
    names = []
    for node in plan.nodes:
        is_renaming = node.layer == "ODS"
        is_rules_own = is_renaming or has_variables(own.get(node.name))
        if node.name in missing or not is_rules_own:
            names.append(node.name)

    return names


def has_variables(model: DraftModel | None) -> bool:
    """Tell whether a model reads variables of the project."""
    if model is None:
        return False

    calls = model.parts(exp.Anonymous)
    return any(call.name == VARIABLE for call in calls)


def rules_models(rules: Draft) -> Mapping[str, DraftModel]:
    """Return the rules' models by their names."""
    return {model.name: model for model in rules.models}
