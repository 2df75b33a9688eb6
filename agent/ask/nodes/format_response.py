"""Last step: makes the answer's body from what the earlier steps found."""

from typing import Any

from langgraph.runtime import Runtime

from agent.answers.shown_result import shown_result
from agent.ask.context import Context
from agent.ask.nodes.agent_sql_execution import row_count_sentence
from agent.ask.state import State, Update


async def format_response(state: State, runtime: Runtime[Context]) -> Update:
    """Writes `answer` into the state, unless there is an error, whose body the runner makes."""
    done: Update = {"execution_path": ["format_response"]}
    if "error" in state:
        return done
    done["answer"] = {"response_type": state["classification"].question_type, **await _content(state, runtime.context)}
    return done


async def _content(state: State, context: Context) -> dict[str, Any]:
    if "chat_response" in state:
        findings = state.get("findings")
        computed = {"findings": list(findings)} if findings else {}
        return {"response": state["chat_response"], **computed, **_offers(state)}
    if "user_prompt" in state:
        return {
            "response": state["user_prompt"],
            "sql_generation_failed": True,
            "failure_reason": state["failure_reason"],
            **_offers(state),
        }
    result = state["query_result"]
    summary = state.get("summary")
    found = state.get("nothing_found") or row_count_sentence(result, state["lang"])
    plain = "\n".join((*state.get("notices", ()), found))
    return {
        "response": summary or plain,
        "sql": state["sql"],
        **shown_result(state["sql"], result, await context.database.catalog(), state["lang"]),
        "summary": summary,
        **_offers(state),
    }


def _offers(state: State) -> dict[str, Any]:
    """What the user may ask next; each kind is left out when there is none."""
    found = {
        "choices": state.get("choices"),
        "rewrites": state.get("rewrites"),
        "follow_ups": state.get("follow_ups"),
    }
    return {name: list(offers) for name, offers in found.items() if offers}
