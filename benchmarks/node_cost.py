"""Measures the processor's time of each role of a draft, in this process, evidence apart."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from agent.flows.etl import graph
from agent.flows.etl.context import EtlRuntime
from agent.flows.etl.nodes import tester_agent
from agent.flows.etl.state import EtlState, EtlUpdate
from app_config import Settings
from tests.support.asking import Asking

_EVIDENCE = "evidence"
_OUTSIDE = ("prove", "_samples")  # of the tester: the build, its tests, and reading samples


class _NodeClock:
    """Adds up what the process spends in each node; one request at a time is measured."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside = 0.0  # of evidence, within the node that runs

    async def node(self, name: str, run: Callable[[], Awaitable[Any]]) -> Any:
        before, self._inside = time.process_time(), 0.0
        try:
            return await run()
        finally:
            self.seconds[name] += time.process_time() - before - self._inside

    async def evidence(self, run: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        before = time.process_time()
        try:
            return await run(*given)
        finally:
            spent = time.process_time() - before
            self._inside += spent
            self.seconds[_EVIDENCE] += spent


def node_cost(settings: Settings, body: Mapping[str, Any], rounds: int) -> dict[str, float]:
    """Return the milliseconds of processor of each node for one draft, and of its evidence."""
    clock = _NodeClock()
    with _timed(clock), Asking(settings) as asking:
        asking.sync(dict(body))  # the catalogue is read, and code is loaded
        clock.seconds.clear()
        for _ in range(rounds):
            status, answer = asking.sync(dict(body))
            assert status == 200, answer
    return {name: spent * 1000 / rounds for name, spent in clock.seconds.items()}


def roles_ms(cost: Mapping[str, float]) -> float:
    """Return what all nodes cost without the evidence."""
    return sum(spent for name, spent in cost.items() if name != _EVIDENCE)


@contextmanager
def _timed(clock: _NodeClock) -> Iterator[None]:
    nodes = {name: _timed_node(clock, name, node) for name, node in graph.NODES.items()}
    with ExitStack() as patches:
        patches.enter_context(patch.object(graph, "NODES", nodes))
        for name in _OUTSIDE:
            timed = partial(clock.evidence, getattr(tester_agent, name))
            patches.enter_context(patch.object(tester_agent, name, timed))
        yield


def _timed_node(clock: _NodeClock, name: str, node: graph.EtlGraphNode) -> graph.EtlGraphNode:
    async def timed(state: EtlState, runtime: EtlRuntime) -> EtlUpdate:
        update: EtlUpdate = await clock.node(name, partial(node, state, runtime))
        return update

    return timed
