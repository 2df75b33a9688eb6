"""A model that reads the target of the rules' draft, for a step that no operation can express.

The rules don't write its SQL, and they have no rows of their own to compare its rows with.
"""

from dataclasses import replace

from sqlglot import exp

from etl.binding.target_binding import relation_name
from etl.planning.draft_model import Draft, DraftModel
from etl.planning.draft_names import UniqueNames
from etl.planning.proposed_plans import node_problems
from etl.schemas.further_step import FurtherStep
from etl.schemas.plan import ArchitecturePlan, EtlNode, NodeColumn
from etl.schemas.requirement import IntentTarget, Layer, UserIntent

_LAYER: Layer = "ADS"
_WHOLE = "replace"


def further_problems(step: FurtherStep, intent: UserIntent) -> list[str]:
    """Return what is wrong with a step, in English; empty when a model can be planned for it."""
    node = _node(step, "ads_further", "dws_target")
    problems = list(node_problems(node, {"dws_target"}, is_target=True))
    for operation in intent.operations:
        if operation.action == "sink" and operation.parameters.get("mode", _WHOLE) != _WHOLE:
            problems.append(f"With a further step the sink's mode is {_WHOLE}.")

    return problems


def without_target(intent: UserIntent) -> UserIntent:
    """Return the intent with a target that gets a name of its own: the given one is the step's."""
    return intent.model_copy(update={"data_target": IntentTarget()})


def with_further_model(rules: Draft, step: FurtherStep) -> Draft:
    """Return the rules' draft with a model for the step, which reads their target.

    The model is the new target. It has no SQL yet.
    """
    name = step.table_name or rules.target.name
    node_names = UniqueNames(model.name for model in rules.models)
    node = _node(step, node_names.model(_LAYER.lower(), name), rules.target.name)
    relations = UniqueNames(model.relation for model in rules.models)
    relation = relations.technical(relation_name(step.table_name or node.name))
    model = DraftModel(node, exp.select(exp.null()), relation, is_further=True)
    changes = {"nodes": [*rules.plan.nodes, node], "target": node.name}
    plan: ArchitecturePlan = rules.plan.model_copy(update=changes)
    return replace(rules, plan=plan, models=(*rules.models, model))


def _node(step: FurtherStep, name: str, read: str) -> EtlNode:
    columns = [
        NodeColumn(
            name=column.name,
            type=column.type,
            description=column.description,
            role="key" if column.name in step.grain else "attribute",
        )
        for column in step.columns
    ]
    return EtlNode(
        name=name,
        layer=_LAYER,
        materialization="table",
        inputs=[read],
        operations=[],
        grain=step.grain,
        columns=columns,
    )
