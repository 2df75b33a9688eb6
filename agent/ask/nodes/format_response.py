"""Last step: makes the answer's body from what the earlier steps found."""

from typing import Any

from langgraph.runtime import Runtime

from agent.ask.context import Context
from agent.ask.nodes.agent_sql_execution import row_count_sentence
from agent.ask.state import State, Update
from common.values import QueryResult


async def format_response(state: State, runtime: Runtime[Context]) -> Update:  # noqa: ARG001 - a node's signature
    """Writes `answer` into the state, unless there is an error, whose body the runner makes."""
    done: Update = {"execution_path": ["format_response"]}
    if "error" in state:
        return done
    done["answer"] = {"response_type": state["classification"].question_type, **_content(state)}
    return done


def _content(state: State) -> dict[str, Any]:
    if "chat_response" in state:
        return {"response": state["chat_response"]}
    if "user_prompt" in state:
        return {
            "response": state["user_prompt"],
            "sql_generation_failed": True,
            "failure_reason": state["failure_reason"],
        }
    result = state["query_result"]
    summary = state.get("summary")
    plain = "\n".join((*state.get("notices", ()), row_count_sentence(result, state["lang"])))
    return {
        "response": summary or plain,
        "sql": state["sql"],
        "query_result": result_body(result),
        "summary": summary,
    }


def result_body(result: QueryResult) -> dict[str, Any]:
    """The rows as the HTTP contract has them, with `cut_columns` only if there are any."""
    body = {
        "columns": list(result.columns),
        "column_types": list(result.column_types),
        "rows": list(result.rows),
        "row_count": result.row_count,
        "is_limited": result.is_limited,
    }
    return body | {"cut_columns": list(result.cut_columns)} if result.cut_columns else body
