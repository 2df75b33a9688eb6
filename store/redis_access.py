"""Access to Redis: sends commands in one round trip within a time limit, and again if the server
was restarted.

Commands that must take effect together are a Lua script. The server knows scripts by their digests;
they are sent again when it has forgotten them. Redis never rolls back, so a script checks
everything before it writes.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError

from common.after_fork import restart_after_fork
from common.errors import StoreUnavailable
from common.ports import UrlSource
from store.outages import SLOW, UNREACHABLE, OutageLog

_log = logging.getLogger(__name__)

Command = tuple[Any, ...]


class Script:
    """A Lua script; `command` is a call of it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        _scripts[self._digest] = text

    def command(self, keys: Sequence[str], *arguments: Any) -> Command:
        """Return the command that runs it."""
        return ("EVALSHA", self._digest, len(keys), *keys, *arguments)


_scripts: dict[str, str] = {}  # by digest


class RedisAccess:
    """A pool of connections to the Redis at `source`; `timeout_s` bounds each call, connecting
    included.
    """

    def __init__(self, source: UrlSource, *, timeout_s: float, pool_size: int) -> None:
        self._source = source
        self._timeout_s = timeout_s
        self._pool_size = pool_size
        self._outages = OutageLog(_log, "Redis")
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Begin without connections, as a forked child does."""
        self._client: Redis | None = None

    async def reply(self, command: Command) -> Any:
        """Return the reply to one command; raises what `replies` raises."""
        return (await self.replies([command]))[0]

    async def replies(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies, command by command.

        Raises:
            StoreUnavailable: it can't be reached, refuses a command, or doesn't answer in time.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                replies = await self._replies(commands)
        except TimeoutError as exc:
            self._outages.fails("no answer in time")
            raise StoreUnavailable(SLOW) from exc
        except (RedisError, OSError) as exc:  # don't log their messages, which name hosts
            self._outages.fails(type(exc).__name__)
            raise StoreUnavailable(UNREACHABLE) from exc

        self._outages.works()
        return replies

    async def _replies(self, commands: Sequence[Command]) -> list[Any]:
        try:
            return await self._replies_once(commands)
        except NoScriptError:
            await self._replies_once([("SCRIPT LOAD", text) for text in _scripts.values()])
        except (RedisConnectionError, OSError):
            pass  # the connection broke, perhaps while it was idle

        return await self._replies_once(commands)

    async def _replies_once(self, commands: Sequence[Command]) -> list[Any]:
        async with self._redis().pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)

            replies: list[Any] = await pipeline.execute()
            return replies

    def _redis(self) -> Redis:
        if self._client is None:
            self._client = Redis.from_pool(
                BlockingConnectionPool.from_url(
                    self._source(),
                    max_connections=self._pool_size,
                    timeout=None,  # `replies` limits the time
                    socket_timeout=None,
                    socket_connect_timeout=None,
                    socket_keepalive=True,
                    protocol=2,
                    retry=Retry(NoBackoff(), 0),
                    client_name="citu",
                )
            )

        return self._client

    async def aclose(self) -> None:
        """Close the connections; the next command opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
