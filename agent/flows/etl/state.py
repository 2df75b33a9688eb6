"""The state of the graph: JSON values alone, so that any worker of any version can read it.

`EtlInput` begins it, nodes write `EtlUpdate`, `EtlState` is both. Rows of the datasource are never
in it. What can be worked out again (the bound intent, the models' trees) is.
"""

import operator
from typing import Annotated, Any, TypedDict

from common.text import Lang

Json = dict[str, Any]
STATE_VERSION = 2

MOST_CLARIFICATIONS = 3
MOST_REWORKS = 3
MOST_REPAIRS = 3
MOST_MODIFICATIONS = 2


class EtlPath(TypedDict):
    """`execution_path`: names of the nodes passed, in order."""

    execution_path: Annotated[list[str], operator.add]


class EtlInput(EtlPath):
    """The state that a request starts with.

    Attributes:
        given_intent: a `UserIntent`; None: the question's words say what is wanted.
        options: `EtlOptions` and `today`, the day of the request as ISO date.
    """

    question: str
    lang: Lang
    given_intent: Json | None
    options: Json
    graph_version: str


class EtlUpdate(EtlPath, total=False):
    """The keys that nodes write.

    Attributes:
        earlier: `{intent, decisions}` of the conversation's turns before.
        knowledge: a `KnowledgeContext`.
        analysis: an `AnalysisResult`.
        decisions: `{kind, topic, value}` of what was chosen, for later turns.
        meaning: digest of what was asked, before anything of it was decided.
        decided: what examples decided: as of `clarifications`, with `operation`, `example_id` and
            `is_own`.
        clarifications: `{id, kind, prompt, choices, answer}`, in the order they were asked.
        plan, review: an `ArchitecturePlan`, a `ReviewResult`.
        plan_method: who made the plan, `rules` or `llm`.
        code: `{node, sql, method, attempts}`, in topological order.
        code_before: what `code` was before the user changed it last.
        code_written: what it was before the user changed anything.
        refusal: why the user's last change was not taken over; None when it was.
        tests: a `TestReport`.
        failure: `{error_type, sqlstate, message}` of a build that PostgreSQL refused, else None.
        artefact: as the answer has it.
        feedback: a `DraftFeedback`.
        learned: `{example, lesson}`.
        attempts: `{clarify, review, repair: {node: n}, modified}`.
        usage: what the whole run used of the model.
        status: set when it is known how the run ends.
        answer: the body of the answer.
    """

    earlier: Json
    knowledge: Json
    analysis: Json
    decisions: list[Json]
    meaning: str
    decided: list[Json]
    clarifications: list[Json]
    plan: Json
    plan_method: str
    review: Json
    code: list[Json]
    code_before: list[Json]
    code_written: list[Json]
    refusal: str | None
    tests: Json
    failure: Json | None
    artefact: Json
    feedback: Json
    learned: Json
    attempts: Json
    warnings: Annotated[list[str], operator.add]
    usage: Json
    status: str
    answer: Json


class EtlState(EtlInput, EtlUpdate):
    """The state that nodes read."""
