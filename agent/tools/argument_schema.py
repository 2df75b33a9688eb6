"""Writes the JSON Schema of a tool's arguments as every endpoint takes it.

Strict endpoints refuse keywords that they don't know, properties that are not required, and objects
that allow more. So an argument that may be left out is required and may be null, and limits of a
value are not in the schema: its description has to name them, and pydantic checks them.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

_KEPT = frozenset(
    {
        "type",
        "description",
        "enum",
        "items",
        "properties",
        "required",
        "anyOf",
        "additionalProperties",
    }
)
_REFERENCE = "#/$defs/"
_MOST_NESTING = 10


@cache  # it takes milliseconds, and some flows make tools for each question
def argument_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of the arguments without what says nothing; one object for all callers.

    Raises:
        ValueError: the arguments hold themselves, or are nested too deeply.
    """
    whole = arguments.model_json_schema()
    written = _plain_schema(whole, whole.get("$defs", {}), 0)
    written.pop("description", None)  # the tool's own says more
    return written


def _plain_schema(
    node: Mapping[str, Any], definitions: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    if depth > _MOST_NESTING:
        raise ValueError("The arguments of a tool are nested too deeply.")

    node = _resolved(node, definitions)
    written = {key: value for key, value in node.items() if key in _KEPT}
    if "const" in node:
        written["enum"] = [node["const"]]
    if "items" in node:
        written["items"] = _plain_schema(node["items"], definitions, depth + 1)
    if "anyOf" in node:
        return _alternatives(
            written, [_plain_schema(part, definitions, depth + 1) for part in node["anyOf"]]
        )
    if node.get("type") == "object":
        properties = node.get("properties", {})
        written["properties"] = {
            name: _plain_schema(part, definitions, depth + 1) for name, part in properties.items()
        }
        written["required"] = list(properties)
        written["additionalProperties"] = False

    return written


def _resolved(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the node with what it refers to; its own keys replace those of the reference."""
    if "$ref" not in node:
        return node

    referred = definitions[node["$ref"].removeprefix(_REFERENCE)]
    own = {key: value for key, value in node.items() if key != "$ref"}
    return {**referred, **own}


def _alternatives(written: dict[str, Any], branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one type or null as one node, as strict endpoints document it; others as they are."""
    annotations = {key: value for key, value in written.items() if key != "anyOf"}
    others = [branch for branch in branches if branch.get("type") != "null"]
    is_nullable = len(others) == 1 and len(branches) > 1
    if not is_nullable or not isinstance(others[0].get("type"), str):
        return {**annotations, "anyOf": branches}

    only = others[0]
    nullable = {**only, **annotations, "type": [only["type"], "null"]}
    if "enum" in only:
        nullable["enum"] = [*only["enum"], None]

    return nullable
