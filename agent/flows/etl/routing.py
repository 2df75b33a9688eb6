"""What follows on the nodes with several successors."""

from agent.flows.etl.state import MOST_MODIFICATIONS, MOST_REPAIRS, MOST_REWORKS, EtlState

CLARIFY = "clarify"
FINALIZE = "finalize"
FEEDBACK = "feedback_handler"


def after_analysis(state: EtlState) -> str:
    """Ask what is open, unless the run ends here."""
    if "status" in state:
        return "impossible"
    return "clarify" if state["analysis"]["ambiguities"] else "ready"


def after_review(state: EtlState) -> str:
    """Go on with a plan that passed; only a model's plan is worth another try."""
    if state["review"]["verdict"] == "pass":
        return "passed"
    is_by_model = state.get("analysis", {}).get("method") == "llm"
    has_tries = state.get("attempts", {}).get("review", 0) < MOST_REWORKS
    return "rework" if is_by_model and has_tries else "failed"


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
    if state["tests"]["status"] != "failed":
        return False
    return any(
        code["method"] == "llm" and code["attempts"] < MOST_REPAIRS for code in state["code"]
    )


def after_feedback(state: EtlState) -> str:
    """Test what the user has changed, as often as that is allowed."""
    is_modified = state["feedback"]["rating"] == "need_modification"
    has_sql = bool(state["feedback"].get("modified_sql"))
    has_tries = state.get("attempts", {}).get("modified", 0) <= MOST_MODIFICATIONS
    return "modified" if is_modified and has_sql and has_tries else "rated"
