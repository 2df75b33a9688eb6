"""A client that loses nothing: it asks again, and follows what broke off, as docs/deployment.md
says clients should.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp

ASK = "/api/v0/ask_agent_stream"
_RUNS = "/api/v0/runs"
_LONGEST_PAUSE_S = 10.0
_OK, _NO_CONTENT = 200, 204
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass
class ClientReply:
    """What a client was told of one question.

    Attributes:
        ends: the types of last events that it took for the answer; one, if nothing is doubled.
        disorder: events that came twice, or too early.
        resumed: streams that were taken up where they had broken off.
        repeated: times it was asked again.
        errors: why it was asked again.
        gap_s: the longest time without an event, from the first request to the answer.
        text: what the tokens of the answer say together.
    """

    ends: list[str] = field(default_factory=list)
    disorder: int = 0
    resumed: int = 0
    repeated: int = 0
    errors: list[str] = field(default_factory=list)
    gap_s: float = 0.0
    text: str = ""


class _AskAgain(Exception):
    """The question has to be asked again, after so many seconds if they were named."""

    def __init__(self, reason: str, after_s: float | None = None) -> None:
        super().__init__(reason)
        self.after_s = after_s


class PersistentClient:
    """Asks one question after the other, each until it is answered.

    Args:
        silence_s: a stream on which nothing comes for so long is taken for broken.
        patience_s: a question that is not answered for so long is given up.
    """

    def __init__(
        self, session: aiohttp.ClientSession, root: str, *, silence_s: float, patience_s: float
    ) -> None:
        self._session = session
        self._root = root
        self._silence_s = silence_s
        self._patience_s = patience_s

    async def ask(self, body: dict[str, Any]) -> ClientReply:
        """Ask until there is an answer."""
        told = ClientReply()
        asked = _Asked(self, body, told)
        try:
            async with asyncio.timeout(self._patience_s):
                await asked.until_answered()
        except TimeoutError:
            told.ends.append("given up")
        return told

    async def blocks(
        self, method: str, path: str, headers: dict[str, str], body: Any = None
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield the events of one stream, each with its id, until the stream ends.

        Raises:
            _AskAgain: the service refused, and may answer later.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=self._silence_s, sock_read=self._silence_s
        )
        request = self._session.request(
            method, self._root + path, json=body, headers=headers, timeout=limits
        )
        async with request as response:
            if response.status == _NO_CONTENT:
                return
            if response.status != _OK:
                after = response.headers.get("Retry-After")
                reason = f"HTTP {response.status}"
                raise _AskAgain(reason, float(after) if after is not None else None)
            number = ""
            async for line in response.content:
                if line.startswith(b"id: "):
                    number = line[4:].decode().strip()
                if line.startswith(b"data: "):
                    yield number, json.loads(line[6:])["data"]


class _Asked:
    """One question on its way to its answer."""

    def __init__(self, client: PersistentClient, body: dict[str, Any], told: ClientReply) -> None:
        self._client = client
        self._body = body
        self._told = told
        self._key = uuid4().hex
        self._last_id = ""  # of the run that is followed
        self._heard_at = time.monotonic()

    async def until_answered(self) -> None:
        pause_s = 0.0
        while True:
            try:
                await self._one_try()
                return
            except _AskAgain as again:
                self._told.repeated += 1
                self._told.errors.append(str(again))
                await asyncio.sleep(pause_s if again.after_s is None else again.after_s)
                pause_s = min(max(1.0, pause_s * 2), _LONGEST_PAUSE_S)

    async def _one_try(self) -> None:
        """Ask once, and follow the run to its end."""
        self._last_id, self._told.text = "", ""
        headers = {"Idempotency-Key": self._key}
        if await self._hear("POST", ASK, headers, self._body):
            return
        if not self._last_id:
            raise _AskAgain("no stream")
        while True:
            self._told.resumed += 1
            run_id = self._last_id.partition(":")[0]
            path = f"{_RUNS}/{run_id}/events?user_id={self._body['user_id']}"
            if await self._hear("GET", path, {"Last-Event-ID": self._last_id}):
                return
            await asyncio.sleep(0)

    async def _hear(
        self, method: str, path: str, headers: dict[str, str], body: Any = None
    ) -> bool:
        """Take what one stream brings; return whether the answer was there."""
        try:
            async for number, data in self._client.blocks(method, path, headers, body):
                self._take(number, data)
                if data["type"] in ("completed", "error"):
                    self._end(data)
                    return True
        except _BROKEN:
            return False
        return False

    def _take(self, number: str, data: dict[str, Any]) -> None:
        now = time.monotonic()
        self._told.gap_s = max(self._told.gap_s, now - self._heard_at)
        self._heard_at = now
        before = int(self._last_id.partition(":")[2] or 0)
        self._told.disorder += int(number.partition(":")[2]) != before + 1
        self._last_id = number
        if data["type"] == "token":
            self._told.text += data["text"]

    def _end(self, data: dict[str, Any]) -> None:
        if data["type"] == "error" and data["retryable"]:
            raise _AskAgain(data["error_type"], data.get("retry_after_s"))
        self._told.ends.append(data["type"])
