"""LangGraph's own saver for PostgreSQL, on connections with time limits.

Only `postgres_checkpoints` imports it, at its first use: importing psycopg 3 takes 0.1 s, and most
processes keep no checkpoints.
"""

import asyncio
import logging
import math
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncConnection, AsyncCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from common.errors import StateLost
from common.ports import UrlSource
from postgres.connecting import DEFAULTS, PostgresLimits

logging.getLogger("psycopg.pool").setLevel(
    logging.CRITICAL
)  # its lines name hosts; `OutageLog` logs failures

_LOCK = 0x43697478  # advisory lock number, arbitrary but ours
_CHANNELS = "kept_channels"  # of a checkpoint as it is kept: the channels that have values

_REQUIRE_LEASE = "SELECT citu.require_lease(%s, %s, %s)"

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

deadline: ContextVar[float] = ContextVar("deadline")  # of the call in progress, on the loop's clock


class Saver(AsyncPostgresSaver):
    """Differs from LangGraph's in five ways.

    Each put is one transaction, so a worker killed in the middle leaves the previous checkpoint.
    All values are kept as bytes; LangGraph keeps texts and numbers as JSONB, which PostgreSQL
    refuses for some. A checkpoint that lacks values is refused; LangGraph would go on without them.
    Calls run at the same time, on connections of a pool. Nothing is written of a run that another
    worker holds.

    Args:
        held: parameters of `citu.require_lease`; None: any may write.
    """

    def __init__(
        self, pool: Pool, serde: SerializerProtocol, held: tuple[bytes, bytes, bool] | None
    ) -> None:
        super().__init__(pool, serde=serde)
        self._pool = pool
        self._held = held

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        left_s = deadline.get() - asyncio.get_running_loop().time()
        async with self._pool.connection(timeout=max(left_s, 0.001)) as connection:
            with _cut_after(connection, deadline.get() - asyncio.get_running_loop().time()):
                if not pipeline:
                    async with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                        yield cursor

                    return

                async with (
                    connection.pipeline(),
                    connection.transaction(),
                    connection.cursor(binary=True, row_factory=dict_row) as cursor,
                ):
                    if self._held is not None:
                        await cursor.execute(_REQUIRE_LEASE, self._held)

                    yield cursor

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; return the config that names it."""
        configurable = config["configurable"]
        thread_id, namespace = configurable["thread_id"], configurable.get("checkpoint_ns", "")
        values = checkpoint["channel_values"]
        versions = {
            channel: version for channel, version in new_versions.items() if channel in values
        }
        blobs = await asyncio.to_thread(self._dump_blobs, thread_id, namespace, values, versions)
        rest = Jsonb({**checkpoint, "channel_values": {}, _CHANNELS: list(values)})
        about = Jsonb(get_serializable_checkpoint_metadata(config, metadata))
        names = (thread_id, namespace, checkpoint["id"], configurable.get("checkpoint_id"))
        async with self._cursor(pipeline=True) as cursor:
            if blobs:
                await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, blobs)

            await cursor.execute(self.UPSERT_CHECKPOINTS_SQL, (*names, rest, about))

        return {
            "configurable": {
                "thread_id": thread_id,
                "checkpoint_ns": namespace,
                "checkpoint_id": checkpoint["id"],
            }
        }

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Return the checkpoint of a row. Raises `StateLost` when it lacks values."""
        kept = dict(value["checkpoint"])
        # An older version did not write them.
        channels = kept.pop(_CHANNELS, ())
        checkpoint_tuple = await super()._load_checkpoint_tuple({**value, "checkpoint": kept})
        if not checkpoint_tuple.checkpoint["channel_values"].keys() >= set(channels):
            raise StateLost

        return checkpoint_tuple

    async def setup(self) -> None:
        """Create the tables if needed; any number of processes may do so at once.

        LangGraph's own method builds indexes concurrently, which two processes can't do at once,
        and which waits for every transaction in the database. This one uses one short transaction,
        because the tables are new and empty.
        """
        async with self._cursor() as cursor:
            if await _version(cursor) == len(self.MIGRATIONS) - 1:
                return

            async with cursor.connection.transaction():
                await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                await cursor.execute(self.MIGRATIONS[0])
                version = await _version(cursor)
                for number, migration in enumerate(
                    self.MIGRATIONS[version + 1 :], start=version + 1
                ):
                    await cursor.execute(migration.replace("CONCURRENTLY", ""))
                    await cursor.execute(
                        "INSERT INTO checkpoint_migrations (v) VALUES (%s)", (number,)
                    )


async def _version(cursor: AsyncCursor[DictRow]) -> int:
    """Return the number of the last migration that was applied; -1 for none."""
    await cursor.execute("SELECT to_regclass('checkpoint_migrations') IS NOT NULL AS is_there")
    row = await cursor.fetchone()
    if row is None or not row["is_there"]:
        return -1

    await cursor.execute("SELECT coalesce(max(v), -1) AS v FROM checkpoint_migrations")
    row = await cursor.fetchone()
    return int(row["v"]) if row else -1


def pool_of(source: UrlSource, *, size: int, timeout_s: float) -> Pool:
    """Return a pool of connections to Citu's own database, made when needed; open it on the loop
    that uses it.
    """

    async def conninfo() -> str:
        try:
            return await asyncio.to_thread(_conninfo, source, timeout_s)
        except psycopg.Error:
            raise
        # Whatever the source raises: the pool knows only psycopg's errors.
        except Exception as exc:  # noqa: BLE001
            raise psycopg.OperationalError("the database has no address") from exc

    async def configure(connection: AsyncConnection[DictRow]) -> None:
        settings = {"search_path": "citu", **PostgresLimits(statement_s=timeout_s).settings}
        with _cut_after(connection, timeout_s):
            for name, value in settings.items():
                await connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    return AsyncConnectionPool(
        conninfo,
        min_size=0,
        max_size=size,
        timeout=timeout_s,
        reconnect_timeout=timeout_s,  # then give up; the next call tries again
        configure=configure,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,
            "row_factory": dict_row,
        },  # poolers forget statements
        open=False,
        name="citu-checkpoints",
    )


def _conninfo(source: UrlSource, timeout_s: float) -> str:
    given = {**DEFAULTS, **conninfo_to_dict(source())}
    return make_conninfo(
        **{**given, "application_name": "citu", "connect_timeout": max(2, math.ceil(timeout_s))}
    )


@contextmanager
def _cut_after(connection: AsyncConnection[Any], seconds: float) -> Iterator[None]:
    """Cut the connection when the block takes longer, which ends the block with psycopg's error.

    Cancelling psycopg's task is not enough: it waits until the server confirms, which a silent
    server never does.
    """
    timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), _cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: AsyncConnection[Any]) -> None:
    """Shut the socket down without closing it, because the loop still watches it."""
    with (
        suppress(psycopg.Error, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as twin,
    ):
        twin.shutdown(socket.SHUT_RDWR)
