"""A scripted model for the roles of transformations: what it hands in by the tool it is offered."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.openai_replies import Called, Reply, Request
from tests.support.tool_scripts import turns

Part = Reply | Callable[[Request], Reply]


def hands_in(**parts: Part) -> Callable[[Request], Reply]:
    """Answers each role by the part of its tool (`sql=…` for `submit_sql`); others with words.

    Roles that are not named agree with the rules.
    """

    def script(request: Request) -> Reply:
        for name in request.tool_names:
            kind = name.removeprefix("submit_")
            if name == kind:
                continue
            part = parts.get(kind, AGREEING.get(kind))
            if part is not None:
                return part if isinstance(part, Reply) else part(request)
        return Reply("I am done.")

    return script


def submitted(kind: str, /, **arguments: Any) -> Reply:
    """A reply that hands in by the tool of that kind."""
    return Reply(calls=[Called(f"submit_{kind}", arguments)])


def shown(request: Request, tag: str) -> Any:
    """The JSON that the prompt holds between these tags."""
    text = str(request.messages[1]["content"])
    return json.loads(text.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0])


def same_plan(request: Request) -> Reply:
    """The plan that the prompt holds."""
    return submitted("plan", plan=shown(request, "plan"))


def by_node(sql: Mapping[str, str]) -> Callable[[Request], Reply]:
    """Hands in the SQL of these nodes, all at once."""

    def script(request: Request) -> Reply:
        if turns(request):
            return Reply("That is all.")
        calls = [
            Called("submit_sql", {"node": node, "sql": text, "notes": None}, f"call_{place}")
            for place, (node, text) in enumerate(sql.items())
        ]
        return Reply(calls=calls)

    return script


AGREEING: Mapping[str, Part] = {
    "knowledge": submitted("knowledge", tables=[], gaps=[]),
    "plan": same_plan,
    "review": submitted("review", verdict="pass", issues=[]),
}
