"""Compiles graphs whose nodes LangGraph runs as they are.

Usually it runs each node in a task and a context of its own and tells its callbacks before and
after, for tracing and for interrupts. That is a third of what a step costs, and nothing here makes
use of it. Where an operator has turned on LangGraph's own tracing there are callbacks to tell, and
nodes run as LangGraph runs them.
"""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.typing import ContextT, InputT, OutputT, StateT

from agent.flows.step_spans import with_step_spans


class _Steps(Runnable[Any, Any]):
    """A node, and then what writes its update into the state.

    Args:
        traced: the same as LangGraph made it.
    """

    def __init__(self, traced: Runnable[Any, Any], *steps: Runnable[Any, Any]) -> None:
        self._traced = traced
        self._steps = steps

    def invoke(
        self,
        input: Any,  # noqa: A002, ARG002
        config: RunnableConfig | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> Any:
        """Raise: nodes are asynchronous."""
        raise NotImplementedError

    async def ainvoke(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run them, each with what the one before gave."""
        if _has_callbacks(config):
            return await self._traced.ainvoke(input, config, **kwargs)

        for step in self._steps:
            input = await step.ainvoke(input, config)  # noqa: A001

        return input


def _has_callbacks(config: RunnableConfig | None) -> bool:
    callbacks: Any = config.get("callbacks") if config is not None else None
    return bool(getattr(callbacks, "handlers", callbacks))


def compiled_lean_graph(
    graph: StateGraph[StateT, ContextT, InputT, OutputT],
) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
    """Return the graph, ready to run.

    Its nodes can't call `ask_user`, or what LangGraph finds by the context of a task.
    """
    ready = graph.compile()
    for name, node in ready.nodes.items():
        if name != START and node.node is not None:
            node.node = _Steps(node.node, node.bound, *node.flat_writers)

    return with_step_spans(ready)
