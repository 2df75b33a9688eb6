"""Last step: makes the answer's body from what the earlier steps found."""

from typing import Any

from langgraph.runtime import Runtime

from agent.answers.reference_rows import reference_names
from agent.answers.shown_result import shown_result
from agent.flows.ask.context import AskContext
from agent.flows.ask.nodes.agent_sql_execution import row_count_sentence
from agent.flows.ask.state import AskState, AskUpdate


async def format_response(state: AskState, runtime: Runtime[AskContext]) -> AskUpdate:
    """Write `answer` into the state, unless there is an error, whose body the runner makes."""
    done: AskUpdate = {"execution_path": ["format_response"]}
    if "error" in state:
        return done

    done["answer"] = {
        "response_type": state["classification"].question_type,
        **await _content(state, runtime.context),
    }
    return done


async def _content(state: AskState, context: AskContext) -> dict[str, Any]:
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
    row_sentence = state.get("nothing_found") or row_count_sentence(result, state["lang"])
    plain = "\n".join((*state.get("notices", ()), row_sentence))
    catalog = await context.database.catalog()
    names = await reference_names(state["sql"], result, context.database, state["lang"])
    return {
        "response": summary or plain,
        "sql": state["sql"],
        **shown_result(state["sql"], result, catalog, state["lang"], names),
        "summary": summary,
        **_offers(state),
    }


def _offers(state: AskState) -> dict[str, Any]:
    """Return what the user may ask next; kinds without offers are left out."""
    shown_offers = {
        "choices": state.get("choices"),
        "rewrites": state.get("rewrites"),
        "follow_ups": state.get("follow_ups"),
    }
    return {name: list(offers) for name, offers in shown_offers.items() if offers}
