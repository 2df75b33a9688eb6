"""The services of one question to the graph: those of every flow with tools, and a scratchpad."""

from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from agent.flows.tool_graph.scratchpad import Scratchpad
from agent.flows.tool_graph.virtual_tools import EXECUTE, GENERATE
from agent.tools.registry import ToolRegistry
from agent.tools.session import ToolSession
from agent.tools.tool import Tool
from agent.tools.tool_context import ToolAgentContext


@dataclass(frozen=True)
class ToolGraphContext:
    """The services that LangGraph hands to the nodes beside the state.

    Attributes:
        agent_context: the services of every flow with tools.
        registry: the tools of this question: without `run_sql`, with the virtual ones.
    """

    agent_context: ToolAgentContext
    registry: ToolRegistry
    scratchpad: Scratchpad

    @property
    def session(self) -> ToolSession:
        """Return the limits and the results of the question's calls."""
        return self.agent_context.session

    def offered(self) -> tuple[Tool[Any], ...]:
        """Return the tools that the actor may call at this point of the question."""
        allowed = self.registry.allowed(self.session.question.actor)
        return tuple(tool for tool in allowed if self._is_due(tool.name))

    def _is_due(self, name: str) -> bool:
        if name == GENERATE:
            return self.scratchpad.knows_schema

        return name != EXECUTE or self.scratchpad.to_run is not None


GraphRuntime = Runtime[ToolGraphContext]
