"""Asks the user what is open; nothing may stand before the question, because it runs again."""

from typing import Any

from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.forms import CANCEL, MOST_AT_ONCE, clarify_question
from agent.flows.etl.state import EtlState, EtlUpdate
from agent.flows.flow import ask_user
from etl.schemas.requirement import Ambiguity


async def clarify(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:  # noqa: ARG001
    """Return the answers to the first open ambiguities."""
    ambiguities = [
        Ambiguity.model_validate(ambiguity) for ambiguity in state["analysis"]["ambiguities"]
    ]
    answers: dict[str, str] = ask_user(clarify_question(ambiguities, state["lang"]))
    asked = [_clarification(ambiguity, answers) for ambiguity in ambiguities[:MOST_AT_ONCE]]
    attempts = state.get("attempts", {})
    update: EtlUpdate = {
        "clarifications": [*state.get("clarifications", []), *asked],
        "attempts": {**attempts, "clarify": attempts.get("clarify", 0) + 1},
        "execution_path": ["clarify"],
    }
    if CANCEL in answers.values():
        update["status"] = "cancelled_by_user"

    return update


def _clarification(ambiguity: Ambiguity, answers: dict[str, str]) -> dict[str, Any]:
    shown = ambiguity.model_dump(mode="json", include={"id", "kind", "prompt", "choices"})
    return {**shown, "answer": answers[ambiguity.id]}
