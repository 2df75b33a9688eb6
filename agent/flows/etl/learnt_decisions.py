"""Decides what a request leaves open as it was decided before, and says so."""

from collections.abc import Sequence

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import binding_of
from agent.flows.etl.etl_texts import DECIDED_BY_REVIEWED, DECIDED_BY_YOURS
from agent.flows.etl.state import EtlState, Json
from common.learning import EtlExample
from common.text import Lang
from etl.schemas.requirement import Ambiguity, AnalysisResult, Assumption

_MOST_ROUNDS = 5  # answers may open further questions


async def learnt_decisions(meaning: str, state: EtlState, context: EtlContext) -> list[Json]:
    """Return the decisions that earlier drafts of the same request give, none when nothing is open.

    Each is `{id, kind, prompt, choices, operation, answer, example_id, is_own}`.
    """
    analysis = (await binding_of(state, context)).analysis
    if not analysis.ambiguities:
        return []

    examples = await context.experience.decisive(meaning)
    decided: list[Json] = []
    for _ in range(_MOST_ROUNDS):
        decisions = _decisions(analysis.ambiguities, examples, context.question.owner)
        decided += decisions
        if not decisions:
            break

        changed: EtlState = {**state, "decided": decided}
        analysis = (await binding_of(changed, context)).analysis

    used = {one["example_id"] for one in decided}
    context.experience.used([example for example in examples if example.example_id in used])
    return decided


def _decisions(
    ambiguities: Sequence[Ambiguity], examples: Sequence[EtlExample], owner: str
) -> list[Json]:
    decisions: list[Json] = []
    for ambiguity in ambiguities:
        values = {choice.value for choice in ambiguity.choices}
        decisive = [one for one in examples if one.answers.get(ambiguity.id) in values]
        if decisive:
            example = decisive[0]
            decision = ambiguity.model_dump(mode="json")
            decision["answer"] = example.answers[ambiguity.id]
            decision["example_id"] = example.example_id
            decision["is_own"] = example.author == owner
            decisions.append(decision)

    return decisions


def with_decisions(analysis: AnalysisResult, decided: Sequence[Json], lang: Lang) -> AnalysisResult:
    """Return the analysis with what examples decided among its assumptions."""
    assumptions = [*analysis.assumptions, *(_assumption(one, lang) for one in decided)]
    return analysis.model_copy(update={"assumptions": assumptions})


def _assumption(decision: Json, lang: Lang) -> Assumption:
    labels = {choice["value"]: choice["label"] for choice in decision["choices"]}
    text = DECIDED_BY_YOURS if decision["is_own"] else DECIDED_BY_REVIEWED
    words = {"prompt": decision["prompt"], "label": labels[decision["answer"]]}
    return Assumption(
        id=f"example_{decision['id']}",
        text=text.to(lang).format(**words),
        operation=decision["operation"],
        decided_by="example",
    )
