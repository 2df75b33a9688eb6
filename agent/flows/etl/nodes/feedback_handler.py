"""Asks the user for a rating; nothing may stand before the question, because it runs again."""

from collections.abc import Mapping
from typing import Any

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_answer import summary_of
from agent.flows.etl.etl_texts import NOT_TESTED
from agent.flows.etl.forms import feedback_question
from agent.flows.etl.state import MOST_MODIFICATIONS, EtlState, EtlUpdate, Json
from agent.flows.flow import ask_user
from etl.schemas.rating import DraftFeedback


async def feedback_handler(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:  # noqa: ARG001
    """Return the rating, and count it when it changes the draft."""
    shown: dict[str, Any] = {
        "summary": summary_of(state),
        "evidence": state["tests"],
        "artefact": state.get("artefact"),
    }
    code = {model["node"]: model["sql"] for model in state["code"]}
    answer = ask_user(feedback_question(shown, code, state.get("refusal"), state["lang"]))
    feedback = DraftFeedback.model_validate(answer)
    attempts = state.get("attempts", {})
    changed: Mapping[str, str] = {}
    if feedback.rating == "need_modification" and feedback.modified_sql:
        changed = feedback.modified_sql

    modified = attempts.get("modified", 0) + bool(changed)
    update: EtlUpdate = {
        "feedback": feedback.model_dump(mode="json"),
        "attempts": {**attempts, "modified": modified},
        "execution_path": ["feedback_handler"],
    }
    if changed and modified > MOST_MODIFICATIONS:
        update["warnings"] = [NOT_TESTED.to(state["lang"]).format(most=MOST_MODIFICATIONS)]
    elif changed:
        update["code_before"] = state["code"]
        update["code_written"] = state.get("code_written", state["code"])
        update["code"] = [_with_changed_sql(model, changed) for model in state["code"]]

    return update


def _with_changed_sql(code: Json, changed: Mapping[str, str]) -> Json:
    if code["node"] not in changed:
        return code

    return {**code, "sql": changed[code["node"]], "method": "user"}
