"""Runs nodes within spans, so that what a node does is a part of its span.

Graphs are compiled once for a process, and whoever measures belongs to a question. So a run says
for its own context what makes spans, and the nodes of its graph find it there.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.typing import ContextT, InputT, OutputT, StateT

StepSpan = Callable[[str], AbstractContextManager[None]]
"""Gives the span of a node, by its name."""

_step_span: ContextVar[StepSpan | None] = ContextVar("step_span", default=None)


@contextmanager
def steps_spanned_by(span: StepSpan) -> Iterator[None]:
    """Make a span of each node that runs in this context."""
    token = _step_span.set(span)
    try:
        yield
    finally:
        _step_span.reset(token)


class _SpannedNode(Runnable[Any, Any]):
    """A node that runs within a span, if its run makes any."""

    def __init__(self, name: str, node: Runnable[Any, Any]) -> None:
        self._name = name
        self._node = node

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
        span = _step_span.get()
        if span is None:
            return await self._node.ainvoke(input, config, **kwargs)

        # A question to the user is no failure of its node.
        asked: GraphBubbleUp | None = None
        result: Any = None
        with span(self._name):
            try:
                result = await self._node.ainvoke(input, config, **kwargs)
            except GraphBubbleUp as exc:
                asked = exc

        if asked is not None:
            raise asked

        return result


def with_step_spans(
    graph: CompiledStateGraph[StateT, ContextT, InputT, OutputT],
) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
    """Return the graph, whose nodes run within spans from now on."""
    for name, node in graph.nodes.items():
        if name != START and node.node is not None:
            node.node = _SpannedNode(name, node.node)

    return graph
