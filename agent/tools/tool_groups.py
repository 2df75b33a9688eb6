"""Reads who may use which tool: `run_sql: analysts, leads; export: everyone; save_memory:`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.tools.tool import Tool

GroupsOf = Mapping[str, frozenset[str]]
"""The groups of tools, by the tools' names; an empty set is nobody."""


class InvalidToolGroups(ValueError):
    """TOOL_GROUPS names a tool that there is not; the message is for the operator."""


def groups_of(setting: str) -> GroupsOf:
    """Return the groups that the setting names. `app_config` has checked its form."""
    groups_by_tool = {}
    for entry in filter(str.strip, setting.split(";")):
        name, _, groups = entry.partition(":")
        stripped = [group.strip() for group in groups.split(",")]
        groups_by_tool[name.strip()] = frozenset(filter(None, stripped))

    return groups_by_tool


def regrouped(
    tools: Sequence[Tool[Any]], groups: GroupsOf, tool_names: Sequence[str]
) -> tuple[Tool[Any], ...]:
    """Return the tools with the groups that `groups` names; the others keep theirs.

    Args:
        tool_names: names of all tools there may be, also of those that other settings switch off.

    Raises:
        InvalidToolGroups: `groups` names none of `tool_names`.
    """
    unknown = sorted(groups.keys() - set(tool_names))
    if unknown:
        raise InvalidToolGroups(
            f"TOOL_GROUPS names tools that there are not: {', '.join(unknown)}. "
            f"There are: {', '.join(sorted(tool_names))}."
        )

    return tuple(replace(tool, groups=groups.get(tool.name, tool.groups)) for tool in tools)
