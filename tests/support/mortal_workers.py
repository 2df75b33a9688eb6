"""Workers that die in this process: from a moment on, nothing of them reaches the store.

That is what the store sees of a kill, and every single write can be tried.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
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

from store import RunRecord, Runs

WRITES = {"write", "resume"}


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


class MortalSaver(BaseCheckpointSaver[Any]):
    """A checkpointer as a worker with that fate reaches it."""

    def __init__(self, saver: BaseCheckpointSaver[Any], fate: Fate) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._fate = fate

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


async def end_what_waits() -> None:
    """End what dead workers still wait for; each of their tasks has several things left to try."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=0.01)
