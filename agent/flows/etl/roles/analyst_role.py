"""The analyst role by a model: it reads requests that the rules can't read whole.

A reading by rules, where every word has its place, stands; a model that reads the same request in
another way is mentioned.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from agent.flows.etl.context import EtlContext
from agent.flows.etl.draft_making import answers_of, binding_of, binding_options
from agent.flows.etl.etl_texts import FURTHER, READ_BY_MODEL, READ_OTHERWISE, with_value
from agent.flows.etl.role_model import RoleTask
from agent.flows.etl.roles.submit_tools import (
    MOST_LINE,
    JsonObject,
    invalid_submission,
    submit_tool,
)
from agent.flows.etl.state import EtlState
from agent.tools.tool import Arguments
from common.text import Text
from common.values import Catalog
from etl.binding.intent_binding import BindingOptions, BindingResult, bind_intent
from etl.binding.proposed_intents import (
    is_decidable,
    means_the_same,
    with_choice,
    with_declared_joins,
)
from etl.planning.further_models import further_problems, without_target
from etl.schemas.further_step import FurtherColumn, FurtherStep
from etl.schemas.reading import read_model
from etl.schemas.requirement import (
    Ambiguity,
    AmbiguityKind,
    AnalysisResult,
    Assumption,
    Choice,
    UserIntent,
)
from knowledge.language.safe_text import one_line

_MOST_INTENT_BYTES = 64 * 1024
_MOST_LISTED = 20  # ambiguities and assumptions each
_MOST_KEPT = 5
_MOST_COLUMNS = 100  # of a further step
_MOST_STEP = 200  # characters of one operation in a sentence
_MOST_STEPS = 12
_FIRST_NUMBER = 20  # of the ids of a model's questions, so that none is one of the rules'
# What no reading of the words can change.
_FINAL = ("not_a_transformation", "sink_refused", "not_allowed")


class AskedChoice(Arguments):
    """A value that answers an ambiguity."""

    value: str
    label: str


class AskedAmbiguity(Arguments):
    """Two readings that give different tables."""

    id: str | None = None
    kind: AmbiguityKind
    prompt: str
    choices: list[AskedChoice]
    operation: int | None = None


class StatedAssumption(Arguments):
    """Something that the model took for granted."""

    id: str | None = None
    text: str


class StepColumn(Arguments):
    """A column of a further step."""

    name: str
    type: str
    description: str | None = None


class StatedStep(Arguments):
    """A step of the request after the intent that none of its operations can express."""

    description: str
    columns: list[StepColumn] = Field(min_length=1, max_length=_MOST_COLUMNS)
    grain: list[str] = Field(default_factory=list, max_length=_MOST_COLUMNS)


class SubmitAnalysis(Arguments):
    """The arguments of `submit_analysis`."""

    intent: JsonObject
    ambiguities: list[AskedAmbiguity] = Field(default_factory=list, max_length=_MOST_LISTED)
    assumptions: list[StatedAssumption] = Field(default_factory=list, max_length=_MOST_LISTED)
    further: StatedStep | None = None


class ModelReading:
    """The intent that a model reads from the words, as the rules bind it."""

    def __init__(self, catalog: Catalog, answers: dict[str, str], options: BindingOptions) -> None:
        self._catalog = catalog
        self._answers = answers
        self._options = options
        self.intent: UserIntent | None = None
        self.result: BindingResult | None = None
        self.further: FurtherStep | None = None
        self.ambiguities: list[Ambiguity] = []
        self.assumptions: list[str] = []

    @property
    def is_done(self) -> bool:
        return self.result is not None

    async def take(self, submission: SubmitAnalysis) -> str:
        """Bind a model's analysis and keep it.

        Raises:
            InvalidRequest: the intent is wrong, or what it wants is not possible.
        """
        if len(json.dumps(submission.intent).encode()) > _MOST_INTENT_BYTES:
            raise invalid_submission("the intent is too large")

        proposed = read_model(UserIntent, submission.intent, "intent")
        intent = with_declared_joins(proposed, self._catalog)
        result = await self._bound(intent)
        if submission.further is not None:
            self.further = _checked_step(submission.further, intent)
            intent = without_target(intent)
            result = await self._bound(intent)

        self.intent, self.result = intent, result
        asked = [
            _ambiguity_of(entry, number) for number, entry in enumerate(submission.ambiguities)
        ]
        decidable = [ambiguity for ambiguity in asked if is_decidable(ambiguity, intent)]
        self.ambiguities = decidable[:_MOST_KEPT]
        self.assumptions = [
            one_line(assumption.text, MOST_LINE) for assumption in submission.assumptions
        ]
        return "Accepted."

    async def _bound(self, intent: UserIntent) -> BindingResult:
        """Return the intent as the rules bind it.

        Raises:
            InvalidRequest: the intent is wrong, or what it wants is not possible.
        """
        result = await asyncio.to_thread(
            bind_intent, intent, self._catalog, self._answers, self._options
        )
        if result.analysis.impossible:
            raise invalid_submission(
                " ".join(problem.text for problem in result.analysis.impossible)
            )

        return result


def _checked_step(stated: StatedStep, intent: UserIntent) -> FurtherStep:
    """Return the step, with the name of the target that the intent was checked with.

    Raises:
        InvalidRequest: no model can be planned for it.
    """
    columns = [
        FurtherColumn(
            name=column.name,
            type=column.type,
            description=one_line(column.description, MOST_LINE) if column.description else None,
        )
        for column in stated.columns
    ]
    step = FurtherStep(
        description=one_line(stated.description, MOST_LINE),
        table_name=intent.data_target.table_name,
        columns=columns,
        grain=stated.grain,
    )
    problems = further_problems(step, intent)
    if problems:
        raise invalid_submission(" ".join(problems))

    return step


def _ambiguity_of(submitted: AskedAmbiguity, number: int) -> Ambiguity:
    """Return a model's ambiguity as the flow asks it, with an id of its own."""
    choices = [
        Choice(value=choice.value, label=one_line(choice.label, MOST_LINE))
        for choice in submitted.choices
    ]
    return Ambiguity(
        id=f"{submitted.kind}_{_FIRST_NUMBER + number}",
        kind=submitted.kind,
        prompt=one_line(submitted.prompt, MOST_LINE),
        choices=choices,
        operation=submitted.operation,
    )


async def analysed(state: EtlState, context: EtlContext) -> AnalysisResult:
    """Return the analysis by the rules, or where they can't read the words, by the model."""
    before = state.get("analysis", {})
    if before.get("method") == "llm":
        return await _decided(AnalysisResult.model_validate(before), state, context)

    own = await binding_of(state, context)
    if context.roles is None or _is_settled(own.analysis, state):
        return own.analysis

    reading = await _model_reading(state, context)
    if reading.result is None:
        return own.analysis
    if not _is_read_by_rules(own.analysis):
        return _by_model(reading, state)

    is_other = _mean_different_rows(own, reading.result)
    if is_other and reading.intent is not None:
        steps = one_line(_steps(reading.intent), MOST_LINE)
        context.roles.model.warn(with_value(READ_OTHERWISE, Text(steps, steps)))

    return own.analysis


def _is_settled(analysis: AnalysisResult, state: EtlState) -> bool:
    """Tell whether nothing is left for a model to read."""
    if state["given_intent"] is not None:
        return True
    if any(problem.kind in _FINAL for problem in analysis.impossible):
        return True

    # The model has read the same words before the user was asked.
    return "clarifications" in state and _is_read_by_rules(analysis)


def _is_read_by_rules(analysis: AnalysisResult) -> bool:
    return analysis.intent is not None and not analysis.impossible


def _mean_different_rows(own: BindingResult, read: BindingResult) -> bool:
    if own.bound is None or read.bound is None:
        return False

    return not means_the_same(own.bound, read.bound)


async def _model_reading(state: EtlState, context: EtlContext) -> ModelReading:
    assert context.roles is not None
    catalog = await context.database.catalog()
    reading = ModelReading(catalog, answers_of(state), binding_options(state, context))
    answers = [
        {name: asked[name] for name in ("prompt", "answer")}
        for asked in state.get("clarifications", [])
    ]
    opening = await context.roles.prompts.of_request(
        "etl_analysis", state, catalog, known=_knowledge_for_prompt(state), answers=answers
    )
    tool = submit_tool(
        "submit_analysis",
        Text("提交分析", "Hand in the analysis"),
        "Hands in the intent that the request means, what is ambiguous, what was assumed.",
        SubmitAnalysis,
        reading.take,
    )
    task = RoleTask("analyst_agent", opening, tool, lambda: reading.is_done)
    await context.roles.model.attempt(task, state)
    return reading


def _knowledge_for_prompt(state: EtlState) -> dict[str, Any]:
    knowledge = state.get("knowledge", {})
    return {name: knowledge.get(name) for name in ("tables", "join_hints", "quality_rules", "gaps")}


def _by_model(reading: ModelReading, state: EtlState) -> AnalysisResult:
    """Return the model's reading: the rules' questions come first."""
    assert reading.intent is not None
    assert reading.result is not None
    analysis = reading.result.analysis
    kinds = {ambiguity.kind for ambiguity in analysis.ambiguities}
    further = [ambiguity for ambiguity in reading.ambiguities if ambiguity.kind not in kinds]
    steps = _steps(reading.intent)
    read_by_model = with_value(READ_BY_MODEL, Text(steps, steps)).to(state["lang"])
    texts = [read_by_model, *reading.assumptions]
    if reading.further is not None:
        further_step = FURTHER.to(state["lang"]).format(step=reading.further.description)
        texts.insert(1, further_step)

    return AnalysisResult(
        intent=reading.intent,
        ambiguities=[*analysis.ambiguities, *further],
        assumptions=[*_assumptions(texts), *analysis.assumptions],
        method="llm",
        further=reading.further,
    )


async def _decided(before: AnalysisResult, state: EtlState, context: EtlContext) -> AnalysisResult:
    """Return a model's reading with what the user has decided since."""
    assert before.intent is not None
    answers = answers_of(state)
    intent = before.intent
    for ambiguity in before.ambiguities:
        if ambiguity.id in answers and is_decidable(ambiguity, intent):
            intent = with_choice(intent, ambiguity, answers[ambiguity.id])

    changed = before.model_copy(update={"intent": intent})
    now: EtlState = {**state, "analysis": changed.model_dump(mode="json")}
    analysis = (await binding_of(now, context)).analysis
    own_assumptions = [
        assumption for assumption in before.assumptions if assumption.id.startswith(_PREFIX)
    ]
    changes = {
        "assumptions": [*own_assumptions, *analysis.assumptions],
        "method": "llm",
        "further": before.further,
    }
    return analysis.model_copy(update=changes)


_PREFIX = "model"


def _assumptions(texts: Sequence[str]) -> list[Assumption]:
    return [
        Assumption(id=f"{_PREFIX}_{number}", text=text)
        for number, text in enumerate(texts[: _MOST_KEPT + 1], 1)
    ]


def _steps(intent: UserIntent) -> str:
    """Return the operations of an intent as people can check them."""
    lines = []
    for operation in intent.operations[:_MOST_STEPS]:
        parameters = json.dumps(operation.parameters, ensure_ascii=False)
        lines.append(one_line(f"{operation.order}. {operation.action} {parameters}", _MOST_STEP))

    return " ".join(lines)
