"""The tools a model may call, and the calls it makes."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llm.loose_fields import encodable

MAX_TOOLS = 128  # what endpoints take at most
_MAX_NESTING = 50  # levels of arguments, so that walking them by recursion is safe
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_CHOICES = ("auto", "none", "required")
_INCOMPLETE = "The reply ended before the arguments were complete."
_TOO_DEEP = f"The arguments are nested more than {_MAX_NESTING} levels deep."


@dataclass(frozen=True)
class ToolDefinition:
    """A tool as it is described to a model.

    Attributes:
        parameters: the JSON Schema of its arguments; its root describes an object.

    Raises:
        ValueError: endpoints would refuse the name or the schema.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        is_name = _NAME.fullmatch(self.name) is not None
        if not is_name or self.name in _CHOICES:
            raise ValueError(f"{self.name!r} can't be the name of a tool.")

        root = self.parameters.get("type")
        if root != "object":
            raise ValueError(f"The schema of {self.name} does not describe an object.")


@dataclass(frozen=True)
class ToolOffer:
    """The tools that a model may call in one reply.

    Attributes:
        choice: `auto` (the model decides), `none`, `required` (at least one), or the name of the
            one tool to call. A conversation that already holds calls needs its tools also in a
            request that wants text: some endpoints refuse calls of tools that they are not told of.
            `none` is meant for that.
        parallel: whether one reply may hold several calls. Some endpoints don't care, so several
            may come all the same.

    An endpoint may refuse `choice` or `parallel` by name. It is then asked without them, so that a
    caller can't rely on them being followed.

    Raises:
        ValueError: there is no tool or too many, two have one name, or `choice` names none of them.
    """

    tools: tuple[ToolDefinition, ...]
    choice: str = "auto"
    parallel: bool = False

    def __post_init__(self) -> None:
        count = len(self.tools)
        if not 0 < count <= MAX_TOOLS:
            raise ValueError(f"{count} tools can't be offered; 1 to {MAX_TOOLS} can.")
        if len(self.names) < count:
            raise ValueError("Two tools have the same name.")

        choices = {*_CHOICES, *self.names}
        if self.choice not in choices:
            kinds = ", ".join(_CHOICES)
            raise ValueError(f"{self.choice!r} is neither a tool nor one of {kinds}.")

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)


@dataclass(frozen=True)
class InvalidArguments:
    """Arguments that are no JSON object.

    Attributes:
        text: what the model wrote.
        problem: what is wrong with it, in English, as the model can be told.
        is_cut: the reply ended before the arguments were complete.
    """

    text: str
    problem: str
    is_cut: bool = False


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for.

    Attributes:
        id: unique within the reply and among the calls of the conversation it belongs to.
        name: as the model wrote it, which may be no tool's name; empty if it wrote none.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | InvalidArguments

    @property
    def spelled_name(self) -> str:
        """Return the name to be sent back, without the characters that endpoints refuse."""
        name = _NO_NAME_CHARACTER.sub("_", self.name)
        if not name:
            return "unnamed"

        return name[:64]

    @property
    def spelled_arguments(self) -> str:
        """Return the arguments as JSON, to be sent back; `{}` for those that are no JSON object."""
        sent = self.arguments
        if isinstance(self.arguments, InvalidArguments):
            sent = {}

        return json.dumps(sent, ensure_ascii=False, separators=(",", ":"))


def read_arguments(text: str, *, is_cut: bool = False) -> Mapping[str, Any] | InvalidArguments:
    """Return the arguments that a model wrote as `text`; no text stands for no arguments.

    Args:
        is_cut: the reply ended before the model was finished, so that nothing may also be a
            beginning.
    """
    is_blank = not text.strip()
    if is_blank and not is_cut:
        return {}

    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        return InvalidArguments(text, _TOO_DEEP)
    except ValueError as exc:
        if is_cut:
            return InvalidArguments(text, _INCOMPLETE, is_cut=True)

        return InvalidArguments(text, f"The arguments are not valid JSON: {exc}.")

    if not isinstance(value, dict):
        return InvalidArguments(text, "The arguments are not a JSON object.")
    if _is_too_deep(value):
        return InvalidArguments(text, _TOO_DEEP)

    return _encodable(value, text)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is not a number of JSON")

    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_NESTING):
        deeper: list[Any] = []
        for outer in level:
            deeper.extend(_inside(outer))

        if not deeper:
            return False

        level = deeper

    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value

    return ()


def _encodable(value: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the value without single surrogates, which the text may spell as escapes."""
    if "\\ud" not in text.lower():
        return value

    cleaned: dict[str, Any] = json.loads(encodable(json.dumps(value, ensure_ascii=False)))
    return cleaned
