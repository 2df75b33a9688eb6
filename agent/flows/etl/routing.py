"""Chooses the next node after those with several successors."""

from agent.flows.etl.state import MOST_MODIFICATIONS, EtlState

CLARIFY = "clarify"
FINALIZE = "finalize"
FEEDBACK = "feedback_handler"


def after_analysis(state: EtlState) -> str:
    """Ask what is open, unless the run ends here."""
    if "status" in state:
        return "impossible"

    return "clarify" if state["analysis"]["ambiguities"] else "ready"


def after_review(state: EtlState) -> str:
    """Go on with a plan that passed; a model's plan is made again, at last by the rules."""
    if state["review"]["verdict"] == "pass":
        return "passed"

    if state.get("plan_method") == "llm":
        return "rework"

    return "failed"


def after_tests(state: EtlState) -> str:
    """Have failing SQL of a model written again, and proven drafts judged by the user."""
    if _is_repairable(state):
        return "repair"

    options = state["options"]
    is_judged = options.get("interactive", True) and options.get("feedback", True)
    is_modified = state.get("attempts", {}).get("modified", 0) > 0
    is_worth_it = state["status"] == "proven" or is_modified
    return "done" if is_judged and is_worth_it else "finished"


def _is_repairable(state: EtlState) -> bool:
    """Tell whether a model's work failed; the developer role gives it up after some attempts."""
    has_failed = state["tests"]["status"] == "failed"
    return has_failed and has_model_work(state) and not has_user_work(state)


def has_model_work(state: EtlState) -> bool:
    """Tell whether a model has planned or written a part of the draft."""
    is_planned = state.get("plan_method") == "llm"
    return is_planned or _has_code(state, "llm")


def has_user_work(state: EtlState) -> bool:
    """Tell whether the user has changed a part of the draft."""
    return _has_code(state, "user")


def _has_code(state: EtlState, method: str) -> bool:
    return any(code["method"] == method for code in state.get("code", []))


def after_feedback(state: EtlState) -> str:
    """Test SQL that the user has modified, unless too often; else learn from the rating."""
    is_modified = state["feedback"]["rating"] == "need_modification"
    has_sql = bool(state["feedback"].get("modified_sql"))
    is_allowed = state.get("attempts", {}).get("modified", 0) <= MOST_MODIFICATIONS
    if is_modified and has_sql and is_allowed:
        return "modified"

    return "rated"
