"""Checkpoints in Redis: a hash for each thread.

`langgraph-checkpoint-redis` needs the modules RedisJSON and RediSearch, which a plain Redis 7 lacks
and hosted servers often don't offer. LangGraph itself needs only the latest checkpoint of a thread
and its writes.

Field names are JSON arrays, and values come from the serializer:

    ["checkpoint", namespace, id]          the checkpoint without its values, its metadata, its
                                           parent's id, and which
                                           channels have values
    ["value", namespace, channel, version] one value; checkpoints that share it name the same
    version ["write", namespace, id, task, number] what a task wrote after checkpoint `id`, before
    the next one

Each put is one script, so a checkpoint is written whole or not at all.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)

from common.errors import LeaseLost, StateLost
from store import Retention, redis_keys
from store.checkpoints import Checkpoints, holder, limited, thread_of
from store.record_json import from_text, to_text
from store.redis_access import RedisAccess, Script

_Field = tuple[str, ...]

# Tells how a run stands to a worker: whether it is running and the worker's, or unknown, or has
# ended. Without a worker all is the caller's.
_HELD = """
local function held(run, worker)
    if worker == '' then return 'mine' end
    local known = redis.call('HMGET', run, 'state', 'worker')
    if not known[1] or known[1] == 'running' and known[2] == worker then return 'mine' end
    return (known[1] == 'running' or known[1] == 'waiting') and 'taken' or 'ended'
end
"""
# Both return whether they did it.
_PUT = Script(
    _HELD
    + """
if held(KEYS[2], ARGV[1]) ~= 'mine' then return 0 end
for i = 3, #ARGV, 3 do redis.call(ARGV[i], KEYS[1], ARGV[i + 1], ARGV[i + 2]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
)
_DELETE = Script(
    _HELD
    + """
if held(KEYS[2], ARGV[1]) == 'taken' then return 0 end
redis.call('UNLINK', KEYS[1])
return 1
"""
)
_REPLACE, _KEEP = "HSET", "HSETNX"


class RedisCheckpoints(Checkpoints):
    """Implements LangGraph's asynchronous saver.

    A thread is kept for the waiting TTL plus the run TTL after its last change, because a run may
    need it that long.
    """

    def __init__(self, access: RedisAccess, retention: Retention) -> None:
        super().__init__()
        self._access = access
        self._ttl = redis_keys.milliseconds(retention.waiting_ttl_s + retention.run_ttl_s)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint, and return the config that names it.

        Raises `StateTooLarge`, `LeaseLost`, `StoreUnavailable`.
        """
        thread_id, namespace, parent_id = _names(config)
        values = checkpoint["channel_values"]
        rest = {**checkpoint, "channel_values": {}}
        fields: list[tuple[str, _Field, Any]] = []
        for channel, version in new_versions.items():
            if channel in values:
                field = ("value", namespace, channel, str(version))
                fields.append((_REPLACE, field, values[channel]))

        about = [rest, dict(get_checkpoint_metadata(config, metadata)), parent_id, list(values)]
        fields.append((_REPLACE, ("checkpoint", namespace, checkpoint["id"]), about))
        await self._put(thread_id, fields)
        return _config(thread_id, namespace, checkpoint["id"])

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote, once.

        Later errors, interrupts and answers replace earlier ones.
        """
        thread_id, namespace, checkpoint_id = _names(config)
        fields: list[tuple[str, _Field, Any]] = []
        for position, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, position)
            field = ("write", namespace, checkpoint_id or "", task_id, str(number))
            fields.append((_KEEP if number >= 0 else _REPLACE, field, [task_path, channel, value]))

        await self._put(thread_id, fields)

    async def _put(self, thread_id: str, fields: Sequence[tuple[str, _Field, Any]]) -> None:
        if not fields:
            return

        with limited():
            arguments = await asyncio.to_thread(self._put_arguments, fields)

        await self._write(thread_id, _PUT, self._ttl, *arguments)

    async def _write(self, thread_id: str, script: Script, *arguments: Any) -> None:
        worker_id = holder.get()
        worker = "" if worker_id is None else redis_keys.digest(worker_id)
        keys = [_key(thread_id), redis_keys.run(redis_keys.digest(thread_id))]
        if not await self._access.reply(script.command(keys, worker, *arguments)):
            raise LeaseLost

    def _put_arguments(self, fields: Sequence[tuple[str, _Field, Any]]) -> list[Any]:
        parts: list[Any] = []
        for how, field, value in fields:
            _, data = self.serde.dumps_typed([value])
            parts += [how, to_text(field), data]

        return parts

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, else the thread's latest; None when there is
        none.

        Raises:
            StateLost: Redis has lost values of the checkpoint.
            StoreUnavailable: Redis can't be read.
        """
        thread_id, namespace, checkpoint_id = _names(config)
        fields = await self._fields(thread_id)
        if checkpoint_id is None:
            ids = [field[2] for field in fields if field[:2] == ("checkpoint", namespace)]
            checkpoint_id = max(ids, default=None)

        if not checkpoint_id:
            return None

        return await self._tuple(thread_id, namespace, checkpoint_id, fields)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return a thread's checkpoints, the latest first; of all namespaces unless `config` names
        one.

        Raises:
            NotImplementedError: `config` names no thread.
        """
        if config is None:
            raise NotImplementedError("checkpoints are listed thread by thread")

        thread_id, *_ = _names(config)
        fields = await self._fields(thread_id)
        bound = get_checkpoint_id(before) if before else None
        wanted = filter or {}
        left = len(fields) if limit is None else limit
        for checkpoint_id, namespace in _listed(fields, config, bound):
            if left <= 0:
                return

            each = await self._tuple(thread_id, namespace, checkpoint_id, fields)
            if each is None:
                continue
            if wanted.items() <= dict(each.metadata).items():
                left -= 1
                yield each

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget all checkpoints of a thread. Raises `LeaseLost`, `StoreUnavailable`."""
        await self._write(thread_id, _DELETE)

    async def _fields(self, thread_id: str) -> list[_Field]:
        names = await self._access.reply(("HKEYS", _key(thread_id)))
        return [tuple(from_text(name)) for name in names]

    async def _tuple(
        self, thread_id: str, namespace: str, checkpoint_id: str, fields: Sequence[_Field]
    ) -> CheckpointTuple | None:
        checkpoint_values = await self._values(
            thread_id, [("checkpoint", namespace, checkpoint_id)]
        )
        if not checkpoint_values:  # deleted meanwhile, or never there
            return None

        checkpoint: Checkpoint
        checkpoint, metadata, parent_id, channels = checkpoint_values[0]
        versions = checkpoint["channel_versions"]
        values = {
            channel: ("value", namespace, channel, str(versions[channel])) for channel in channels
        }
        writes = [field for field in fields if field[:3] == ("write", namespace, checkpoint_id)]
        kept = await self._values(thread_id, [*values.values(), *writes])
        if len(kept) < len(values) + len(writes):
            raise StateLost

        checkpoint["channel_values"] = dict(zip(values, kept, strict=False))
        written = []
        for field, each in zip(writes, kept[len(values) :], strict=True):
            _, _, _, task_id, number = field
            written.append((task_id, int(number), *each))

        written.sort(key=lambda each: writes_sort_key(each[2], each[0], each[1]))
        return CheckpointTuple(
            config=_config(thread_id, namespace, checkpoint_id),
            checkpoint=checkpoint,
            metadata=metadata,
            parent_config=_config(thread_id, namespace, parent_id) if parent_id else None,
            pending_writes=[(task_id, channel, value) for task_id, _, _, channel, value in written],
        )

    async def _values(self, thread_id: str, fields: Sequence[_Field]) -> list[Any]:
        """Return the values of the fields that exist."""
        if not fields:
            return []

        reply = await self._access.reply(("HMGET", _key(thread_id), *map(to_text, fields)))
        return [self.serde.loads_typed(("msgpack", data))[0] for data in reply if data is not None]


def _listed(
    fields: Sequence[_Field], config: RunnableConfig, before: str | None
) -> list[tuple[str, str]]:
    """Return ids and namespaces of the checkpoints that `config` names, the latest first.

    Args:
        before: only those before this id, if given.
    """
    only_id = get_checkpoint_id(config)
    only_namespace = config["configurable"].get("checkpoint_ns")
    listed = []
    for kind, namespace, *rest in fields:
        if kind != "checkpoint":
            continue

        checkpoint_id = rest[0]
        if only_id not in (None, checkpoint_id):
            continue
        if only_namespace not in (None, namespace):
            continue
        if before is None or checkpoint_id < before:
            listed.append((checkpoint_id, namespace))

    return sorted(listed, reverse=True)


def _key(thread_id: str) -> str:
    return redis_keys.checkpoints(redis_keys.digest(str(thread_id)))


def _names(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return thread, namespace, and the checkpoint when one is named."""
    configurable = config["configurable"]
    return (
        thread_of(config),
        configurable.get("checkpoint_ns", ""),
        get_checkpoint_id(config),
    )


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
