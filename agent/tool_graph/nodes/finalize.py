"""Last step: makes the answer's body from what was said and found."""

from typing import Any

from agent.tool_graph.context import GraphRuntime
from agent.tool_graph.state import State, Update
from agent.tools.tool import Found
from common.text import Text

_NOTHING_FOUND = Text("到达上限之前没有查到结果。", "Nothing was found before the limit was reached.")


async def finalize(state: State, runtime: GraphRuntime) -> Update:
    """Writes `answer` into the state."""
    session = runtime.context.session
    last = next(reversed(session.found.values()), None)
    return {"answer": await _body(state, runtime, last), "execution_path": ["finalize"]}


async def _body(state: State, runtime: GraphRuntime, last: Found | None) -> dict[str, Any]:
    session = runtime.context.session
    warnings = [*state.get("warnings", []), *runtime.context.workbench.warnings]
    if "limit" in state:
        warnings.append(state["limit"].to(state["lang"]))
    kind = "DATABASE" if last else "CHAT"
    response = state["text"] if "text" in state else await _so_far(state, runtime, last)
    return {
        "response_type": kind,
        "response": response,
        **({"sql": last.sql, "summary": response, **last.shown} if last else {}),
        **session.shown,
        "classification_info": {"question_type": kind, "confidence": 1.0, "method": "tool_graph", "reason": ""},
        "routing_mode_used": "tool_graph",
        "routing_mode_source": "request",
        "sql_repair_applied": False,
        "warnings": warnings,
        "usage": dict(vars(session.usage)),
    }


async def _so_far(state: State, runtime: GraphRuntime, last: Found | None) -> str:
    inquiry = runtime.context.workbench.inquiry
    if last is None or inquiry is None:
        return _NOTHING_FOUND.to(state["lang"])
    return (await runtime.context.given.rules.summarize(inquiry, last.sql, last.result)).value
