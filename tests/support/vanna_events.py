"""Events of a run, as Vanna's endpoints translate them."""

from typing import Any

RUN = "run_1"
MOMENT = "2026-11-22T10:00:00.000+00:00"
IDS = {"conversation_id": "c", "run_id": RUN, "timestamp": MOMENT}


def completed(**body: Any) -> dict[str, Any]:
    return {"type": "completed", "response": "Three.", "warnings": [], **IDS, **body}


def result(columns: list[str], rows: list[list[Any]], **more: Any) -> dict[str, Any]:
    beside = {
        "labels": list(columns),
        "units": [None] * len(columns),
        "column_types": ["text"] * len(columns),
    }
    return {
        "columns": columns,
        **beside,
        "rows": rows,
        "row_count": len(rows),
        "is_limited": False,
        **more,
    }


def progress(node: str, status: str) -> dict[str, Any]:
    said = {"display_name": node.title(), "details": f"{status} {node}", "sub_status": "…"}
    return {"type": "progress", "node": node, "status": status, **said, **IDS}


def token(text: str) -> dict[str, Any]:
    return {
        "type": "token",
        "node": "agent_chat",
        "text": text,
        "conversation_id": "c",
        "run_id": RUN,
    }


def tool(call_id: str, status: str, **more: Any) -> dict[str, Any]:
    said = {
        "name": "run_sql",
        "display_name": "Run SQL",
        "arguments": {"sql": "SELECT 1"},
        "ms": None,
        "summary": None,
    }
    return {
        "type": "tool",
        "node": "execute_tools",
        "call_id": call_id,
        "status": status,
        **said,
        **IDS,
        **more,
    }
