"""Asks the user for a rating; nothing may stand before the question, because it runs again."""

from collections.abc import Mapping
from typing import Any

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.draft_answer import summary_of
from agent.flows.etl.forms import feedback_question
from agent.flows.etl.state import EtlState, EtlUpdate, Json
from agent.flows.flow import ask_user
from etl.schemas.rating import DraftFeedback


async def feedback_handler(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:  # noqa: ARG001
    """Return the rating, and count it when it changes the draft."""
    shown: dict[str, Any] = {
        "summary": summary_of(state),
        "evidence": state["tests"],
        "artefact": state.get("artefact"),
    }
    nodes = [code["node"] for code in state["code"]]
    given = ask_user(feedback_question(shown, nodes, state["lang"]))
    feedback = DraftFeedback.model_validate(given)
    attempts = state.get("attempts", {})
    modified = attempts.get("modified", 0) + (feedback.rating == "need_modification")
    changed = feedback.modified_sql or {}
    return {
        "code": [_changed(code, changed) for code in state["code"]],
        "feedback": feedback.model_dump(mode="json"),
        "attempts": {**attempts, "modified": modified},
        "execution_path": ["feedback_handler"],
    }


def _changed(code: Json, changed: Mapping[str, str]) -> Json:
    """Return the code with what the user changed, and what stood there before."""
    before = {name: value for name, value in code.items() if name != "before"}
    if code["node"] not in changed:
        return before
    return {**before, "sql": changed[code["node"]], "method": "user", "before": before}
