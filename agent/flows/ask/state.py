"""The state of the graph.

Three types describe it, so that mypy catches a misspelt key (LangGraph drops unknown keys without
an error): `AskInput` is what a question starts with, `AskUpdate` what a node may write, `AskState`
both. Keys with a reducer in their annotation accumulate over nodes; a later write to any other key
replaces the earlier one (`agent.flows.single_channel`).
"""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from agent.experience import ReusedExample
from common.errors import CituError
from common.inquiry import StoredValue
from common.learning import Experience
from common.text import Lang
from common.values import Classification, FailureReason, PlanEstimate, QueryResult, Turn, Usage

GenerationMethod = Literal["verified_example", "llm", "rules"]


class AskPath(TypedDict):
    """`execution_path`: names of steps done and of things that happened in them, in order."""

    execution_path: Annotated[list[str], operator.add]


class AskInput(AskPath):
    """The state that a question starts with.

    Attributes:
        routing_mode_source: `request` or `configuration`.
        table, context_type: the caller's hints, see `common.inquiry.Inquiry`.
        wants_tokens: whether text is emitted while it is written.
    """

    question: str
    lang: Lang
    routing_mode: str
    routing_mode_source: str
    table: str | None
    context_type: str | None
    wants_tokens: bool


class AskUpdate(AskPath, total=False):
    """The keys that nodes write.

    Attributes:
        history: earlier turns of the conversation, oldest first.
        found_values: stored values that the question names, looked up in the database.
        reused: the example that answers the question as it is; None when it was found that there is
            none.
        experience: what was learnt that may help with the question.
        generation_method: who wrote `sql`: `verified_example`, `llm` or `rules`.
        prompt_parts: by prompt (`write_sql`, `repair_sql`), the parts of what a model was sent, in
            estimated tokens.
        sql_generation_success: whether `sql` is proven valid and may run.
        understood: what the question was understood as, for the next one of the conversation; see
            `Sql`.
        failure_reason, user_prompt: why no SQL could be written, and what the user can do.
        choices: what may be answered to a question back.
        rewrites: questions that can be answered, in place of one that can't.
        follow_ups: questions that may be asked next.
        error: why the SQL may not run; ends the question with an error.
        notices: what stands before the answer: which stored values were used, and questions back to
            the user.
        nothing_found: in place of a summary, that there are no rows.
        findings: what was computed of the last result's rows for a question about it.
        answer: keys of the final body that the nodes decide.
    """

    usage: Annotated[Usage, operator.add]
    warnings: Annotated[list[str], operator.add]
    history: tuple[Turn, ...]
    found_values: tuple[StoredValue, ...]
    classification: Classification
    reused: ReusedExample | None
    experience: Experience
    generation_method: GenerationMethod
    prompt_parts: Annotated[dict[str, dict[str, int]], operator.or_]
    sql: str
    sql_generation_success: bool
    sql_repair_applied: bool
    understood: Mapping[str, Any] | None
    failure_reason: FailureReason
    user_prompt: str
    choices: tuple[str, ...]
    rewrites: tuple[str, ...]
    follow_ups: tuple[str, ...]
    error: CituError
    plan: PlanEstimate
    query_result: QueryResult
    notices: tuple[str, ...]
    summary: str
    nothing_found: str
    chat_response: str
    findings: tuple[dict[str, Any], ...]
    answer: dict[str, Any]


class AskState(AskInput, AskUpdate):
    """Everything known about a question so far."""
