"""Workers that die in this process: from a moment on, nothing of them reaches the store.

That is what the store sees of a kill, and every single write can be tried.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from agent.runs.run_service import RunService, RunView
from common.actor import Actor
from common.errors import NotFound
from store import Learned, RunRecord, Runs

WRITES = {"write", "resume"}
LEARNS = {"keep", "add"}


@dataclass
class Fate:
    """When a worker dies: as soon as the store has done its write number `at`, before it hears of
    it; 0: before any.
    """

    at: int | None
    writes: int = 0
    dead: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self, do: Callable[[], Awaitable[Any]]) -> Any:
        """Return what the store says; nothing ever, when the worker is dead."""
        if self.dead.is_set():
            await asyncio.Event().wait()
        return await do()

    async def write(self, do: Callable[[], Awaitable[Any]]) -> Any:
        """Return what the store says, unless it is the worker's last write."""
        if self.at == 0:
            self.dead.set()
        found = await self.read(do)
        self.writes += 1
        if self.writes == self.at:
            self.dead.set()
        return await self.read(partial(_given, found))


async def _given(found: Any) -> Any:
    return found


class MortalRuns:
    """A store's runs as a worker with that fate reaches them; it looks after its own alone."""

    def __init__(self, runs: Runs, fate: Fate) -> None:
        self._runs = runs
        self._fate = fate

    async def abandoned(self) -> tuple[RunRecord, ...]:
        return ()

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        access = self._fate.write if name in WRITES else self._fate.read
        return lambda *given: access(partial(getattr(self._runs, name), *given))


class MortalLearned:
    """What a store has learnt, as a worker with that fate reaches it; knows when it wrote last."""

    def __init__(self, learned: Learned, fate: Fate) -> None:
        self._learned = learned
        self._fate = fate
        self.wrote_at = 0

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return lambda *given: self._access(name, *given)

    async def _access(self, name: str, *given: Any) -> Any:
        do = partial(getattr(self._learned, name), *given)
        if name not in LEARNS:
            return await self._fate.read(do)
        self.wrote_at = self._fate.writes + 1
        return await self._fate.write(do)


class MortalSaver(BaseCheckpointSaver[Any]):
    """A checkpointer as a worker with that fate reaches it.

    Knows with which write each path through the graph was first kept: a worker that dies then dies
    in the node that comes next.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], fate: Fate) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._fate = fate
        self.passed_at: dict[tuple[str, ...], int] = {}

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self._fate.read(lambda: self._saver.aget_tuple(config))
        return cast(CheckpointTuple | None, found)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: Any,
    ) -> RunnableConfig:
        path = tuple(checkpoint["channel_values"].get("execution_path", ()))
        self.passed_at.setdefault(path, self._fate.writes + 1)
        put = await self._fate.write(
            lambda: self._saver.aput(config, checkpoint, metadata, new_versions)
        )
        return cast(RunnableConfig, put)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await self._fate.write(lambda: self._saver.aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._fate.write(lambda: self._saver.adelete_thread(thread_id))

    async def alist(self, *given: Any, **more: Any) -> AsyncIterator[CheckpointTuple]:
        async for found in self._saver.alist(*given, **more):
            yield found


async def answered(
    service: RunService, actor: Actor, asked: Mapping[str, Any], given: Any, fate: Fate | None
) -> bool:
    """Whether the worker has said that it took the answer; one that is dead says nothing."""
    resuming = asyncio.create_task(
        service.resume(actor, asked["run_id"], asked["interrupt_id"], given, on_end=lambda: None)
    )
    if fate is None:
        await resuming
        return True
    dying = asyncio.create_task(fate.dead.wait())
    done, _ = await asyncio.wait({resuming, dying}, return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    if resuming in done:
        await resuming
        return True
    resuming.cancel()
    return False


async def next_stop(service: RunService, user: str, run_id: str, fate: Fate) -> RunView | None:
    """The run when it waits or has ended; None: its worker died before the store knew of it."""
    async with asyncio.timeout(90):
        while True:
            with suppress(NotFound):
                view = await service.look(user, run_id)
                if view.last is not None:
                    return view
                async for _ in service.follow(user, run_id, view.record.last_seq):
                    pass
                continue
            if fate.dead.is_set():
                return None
            await asyncio.sleep(0.01)


async def end_what_waits() -> None:
    """End what dead workers still wait for; each of their tasks has several things left to try."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=0.01)
