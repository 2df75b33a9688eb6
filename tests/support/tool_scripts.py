"""A model that calls tools by a script.

What it says depends on how far a conversation has come, which is in the request itself. So a
question that goes on unseen, because its client has left, takes nothing from the next one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.openai_replies import Called, Reply, Request

WRITES_SQL = "NO_SQL:"  # only prompts that want SQL without tools name it


def turns(request: Request) -> int:
    """Return how often the model has replied in this conversation."""
    return sum(message["role"] == "assistant" for message in request.messages)


def results(request: Request) -> dict[str, str]:
    """Return what the tools of this conversation have answered, by the ids of the calls."""
    return {
        message["tool_call_id"]: message["content"]
        for message in request.messages
        if message["role"] == "tool"
    }


def following(replies: Sequence[Reply], sql: str = "SELECT 1 AS one") -> Callable[[Request], Reply]:
    """Give the replies one after another, the last again and again; `sql` where SQL is wanted
    without tools.
    """

    def script(request: Request) -> Reply:
        if WRITES_SQL in str(request.messages[0]["content"]):
            return Reply(sql)
        return replies[min(turns(request), len(replies) - 1)]

    return script


def calling(name: str, /, **arguments: Any) -> Reply:
    """Return a reply that calls one tool."""
    return Reply(calls=[Called(name, arguments)])


def generating(sql: str | None, instruction: str = "What was asked") -> Called:
    """Return a call that puts a statement up, or has it written."""
    return Called("generate_sql", {"instruction": instruction, "sql": sql})


EXECUTING = Called("execute_current_sql", {})


def querying(sql: str, text: str = "Done.") -> list[Reply]:
    """Return the three replies of a simple question to `tool_graph`."""
    return [Reply(calls=[generating(sql)]), Reply(calls=[EXECUTING]), Reply(text)]
