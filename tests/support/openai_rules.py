"""Mistakes of clients that providers of chat completions refuse.

Each provider refuses a part of this; the tests' server refuses all of it, so that what passes here
passes everywhere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 128
_ROLES = {"system", "user", "assistant", "tool"}
_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}


class _Refused(Exception):
    """The request breaks a rule; the message says which, in a provider's manner."""


def violation(params: Mapping[str, Any]) -> str | None:
    """Return what a provider would refuse in the body of a request; None: nothing."""
    try:
        _check_messages(params.get("messages"))
        _check_tools(params)
    except _Refused as refused:
        return str(refused)
    return None


def _require(is_kept: object, problem: str) -> None:
    if not is_kept:
        raise _Refused(problem)


def _check_messages(messages: Any) -> None:
    _require(
        isinstance(messages, list) and messages, "'messages' must be an array that is not empty."
    )
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        _require(isinstance(message, dict), f"{where} is not an object.")
        role = message.get("role")
        _require(role in _ROLES, f"Invalid value: {role!r} for '{where}.role'.")
        unknown = sorted(set(message) - _KEYS[role])
        _require(not unknown, f"Unrecognized keys {unknown} in {where}.")
        if role == "tool":
            _answer(message, open_ids, where)
            continue
        _require(
            not open_ids,
            "An assistant message with 'tool_calls' must be followed by tool messages "
            "responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(open_ids)}",
        )
        open_ids = _called(message, where)
    _require(
        not open_ids,
        f"The following tool_call_ids did not have response messages: {', '.join(open_ids)}",
    )


def _answer(message: Mapping[str, Any], open_ids: list[str], where: str) -> None:
    call_id = message.get("tool_call_id")
    _require(
        call_id in open_ids,
        f"{where}: messages with role 'tool' must be a response to a preceding message with "
        "'tool_calls'; "
        f"{call_id!r} is not open.",
    )
    open_ids.remove(str(call_id))
    _require(isinstance(message.get("content"), str), f"{where}.content is not a string.")
    _require(_has_text(message), f"{where} is empty.")


def _called(message: Mapping[str, Any], where: str) -> list[str]:
    """Return the ids of the calls of a message that is no tool's."""
    calls = message.get("tool_calls")
    _require(
        calls is not None or _has_text(message),
        f"{where} is empty: it needs 'content' or 'tool_calls'.",
    )
    if calls is None:
        _require("tool_calls" not in message, f"{where}.tool_calls is null.")
        return []
    _require(
        isinstance(calls, list) and calls,
        f"{where}.tool_calls: [] is too short; expected at least one call.",
    )
    content = message.get("content")
    _require(
        content is None or isinstance(content, str | list),
        f"{where}.content is neither text nor null.",
    )
    for place, call in enumerate(calls):
        _check_call(call, f"{where}.tool_calls[{place}]")
    ids = [call["id"] for call in calls]
    _require(len(set(ids)) == len(ids), f"{where}: duplicate tool call ids.")
    return ids


def _has_text(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        return any(
            isinstance(part, dict) and str(part.get("text") or "").strip() for part in content
        )
    return isinstance(content, str) and bool(content.strip())


def _check_call(call: Any, where: str) -> None:
    _require(
        isinstance(call, dict) and set(call) == {"id", "type", "function"},
        f"{where} is not a tool call.",
    )
    _require(isinstance(call["id"], str) and call["id"], f"{where}.id is missing.")
    function = call["function"]
    _require(call["type"] == "function" and isinstance(function, dict), f"{where} is no function.")
    _check_name(function.get("name"), f"{where}.function.name")
    try:
        arguments = json.loads(function.get("arguments"), parse_constant=_no_constant)
    except (TypeError, ValueError):
        raise _Refused(f"{where}.function.arguments is not valid JSON.") from None
    _require(isinstance(arguments, dict), f"{where}.function.arguments is not an object.")


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _check_name(name: Any, where: str) -> None:
    is_name = isinstance(name, str) and _TOOL_NAME.fullmatch(name)
    _require(
        is_name,
        f"Invalid '{where}': string does not match pattern. Expected '^[a-zA-Z0-9_-]{{1,64}}$'.",
    )


def _check_tools(params: Mapping[str, Any]) -> None:
    if "tools" not in params:
        for name in ("tool_choice", "parallel_tool_calls"):
            _require(name not in params, f"'{name}' is only allowed when 'tools' are specified.")
        return
    tools = params["tools"]
    _require(isinstance(tools, list) and tools, "'tools': [] is too short.")
    _require(len(tools) <= _MAX_TOOLS, f"'tools': array too long, expected at most {_MAX_TOOLS}.")
    names = list(_tool_names(tools))
    _require(len(set(names)) == len(names), "'tools': two of them have the same name.")
    _check_choice(params.get("tool_choice", "auto"), names)
    _require(
        isinstance(params.get("parallel_tool_calls", True), bool),
        "'parallel_tool_calls' is not a boolean.",
    )


def _tool_names(tools: Sequence[Any]) -> Iterator[str]:
    for place, tool in enumerate(tools):
        where = f"tools[{place}]"
        is_function = (
            isinstance(tool, dict)
            and tool.get("type") == "function"
            and isinstance(tool["function"], dict)
        )
        _require(is_function, f"{where} is no function.")
        function = tool["function"]
        _check_name(function.get("name"), f"{where}.function.name")
        schema = function.get("parameters")
        _require(
            isinstance(schema, dict) and schema.get("type") == "object",
            (
                f"Invalid schema for function {function['name']!r}: "
                "schema must be a JSON Schema of 'type: \"object\"'."
            ),
        )
        _check_schema(schema, f"Invalid schema for function {function['name']!r}")
        yield function["name"]


# What every endpoint understands that is strict about schemas.
_KEYWORDS = {
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "anyOf",
}


def _check_schema(schema: Any, where: str) -> None:
    _require(isinstance(schema, dict), f"{where} is not an object.")
    unknown = sorted(set(schema) - _KEYWORDS)
    _require(not unknown, f"{where}: {unknown} are not permitted.")
    if schema.get("type") == "object":
        properties = schema.get("properties")
        _require(isinstance(properties, dict), f"{where}: 'properties' is missing.")
        _require(
            schema.get("additionalProperties") is False,
            f"{where}: 'additionalProperties' must be false.",
        )
        _require(
            sorted(schema.get("required", ())) == sorted(properties),
            f"{where}: 'required' must be an array that includes every key in 'properties'.",
        )
        for name, one in properties.items():
            _check_schema(one, f"{where}.{name}")
    for one in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        _check_schema(one, where)


def _check_choice(choice: Any, names: Sequence[str]) -> None:
    if isinstance(choice, dict):
        named = choice["function"].get("name") if isinstance(choice.get("function"), dict) else None
        _require(
            choice.get("type") == "function" and named in names, "'tool_choice' names no tool."
        )
    else:
        _require(
            choice in ("auto", "none", "required"), f"Invalid value: {choice!r} for 'tool_choice'."
        )
