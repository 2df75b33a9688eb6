"""The services of one question to the graph: those of every flow with tools, and what is on its workbench."""

from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from agent.tool_graph.virtual_tools import EXECUTE, GENERATE
from agent.tool_graph.workbench import Workbench
from agent.tools.context import ToolAgentContext
from agent.tools.registry import ToolRegistry
from agent.tools.session import ToolSession
from agent.tools.tool import Tool


@dataclass(frozen=True)
class GraphContext:
    """What LangGraph hands to the nodes beside the state.

    Attributes:
        given: the services of every flow with tools.
        registry: the tools of this question: without `run_sql`, with the virtual ones.
    """

    given: ToolAgentContext
    registry: ToolRegistry
    workbench: Workbench

    @property
    def session(self) -> ToolSession:
        """What the question may still use, and what its calls gave."""
        return self.given.session

    def offered(self) -> tuple[Tool[Any], ...]:
        """The tools that may be called now, as the actor may and as far as the question has come."""
        allowed = self.registry.allowed(self.session.question.actor)
        return tuple(tool for tool in allowed if self._is_due(tool.name))

    def _is_due(self, name: str) -> bool:
        if name == GENERATE:
            return self.workbench.knows_schema
        return name != EXECUTE or self.workbench.to_run is not None


GraphRuntime = Runtime[GraphContext]
