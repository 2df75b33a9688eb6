"""Sends events to the operator's address: signed, a few times if need be, never in the way."""

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from common import timestamps
from common.after_fork import restart_after_fork

_log = logging.getLogger(__name__)

_MOST_WAITING = 100  # events; the oldest go first
_PAUSES_S = (1.0, 5.0, 30.0)  # before each further try
_TIMEOUT_S = 10.0  # of one try, from its connection to the status
_MOMENTARY = {408, 425, 429}  # refusals that may pass; all others below 500 are final


class WebhookSender:
    """Sends events one after the other, in a task of its own; used on the event loop only.

    An event that is not taken is sent again with the same id, three times at most, and then
    dropped. What waits when the service ends is dropped, too.

    Args:
        url: the address; redirects are not followed.
        secret: signs what is sent; see docs/monitoring.md.
        pauses_s: seconds before each further try.
        timeout_s: seconds that one try may take.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        pauses_s: tuple[float, ...] = _PAUSES_S,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._url = url
        self._secret = secret.encode()
        self._pauses_s = pauses_s
        self._timeout_s = timeout_s
        self.start_anew()
        restart_after_fork(self)

    def start_anew(self) -> None:
        """Forget what waits; a forked child begins with nothing."""
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._sending: asyncio.Task[None] | None = None

    def send(self, event: str, data: Mapping[str, Any]) -> None:
        """Send the event soon; return at once, raise nothing."""
        body = {
            "id": secrets.token_hex(16),
            "event": event,
            "at": timestamps.now(),
            "data": data,
        }
        if len(self._waiting) == _MOST_WAITING:
            dropped, _ = self._waiting.popleft()
            _log.warning("a webhook was dropped, because %d wait: %s", _MOST_WAITING, dropped)

        self._waiting.append((event, json.dumps(body, ensure_ascii=False).encode()))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    async def aclose(self) -> None:
        """Stop sending, and drop what waits."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])

        self.start_anew()

    async def _send_all(self) -> None:
        import httpx2  # noqa: PLC0415 - only services with a webhook need it

        # `_try` bounds the whole; the client's own limits begin anew with each byte that comes.
        async with httpx2.AsyncClient(timeout=None, follow_redirects=False) as client:
            while self._waiting:
                event, body = self._waiting.popleft()
                problem = await self._sent(client, event, body)
                if problem:
                    _log.warning("a webhook was not taken: %s: %s", event, problem)

    async def _sent(self, client: Any, event: str, body: bytes) -> str:
        """Send one event until it is taken; return what went wrong, or an empty text."""
        problem, is_final = await self._try(client, event, body)
        for pause_s in self._pauses_s:
            if not problem or is_final:
                break

            await asyncio.sleep(pause_s)
            problem, is_final = await self._try(client, event, body)

        return problem

    async def _try(self, client: Any, event: str, body: bytes) -> tuple[str, bool]:
        """Send once; return what went wrong, and whether another try would end the same."""
        headers = {
            "Content-Type": "application/json",
            "X-Citu-Event": event,
            "X-Citu-Signature": signature(self._secret, int(time.time()), body),
        }
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                status = response.status_code
        # Whatever a client library raises must not end the task: its name tells what happened.
        except Exception as error:  # noqa: BLE001
            return type(error).__name__, False

        if 200 <= status < 300:
            return "", True

        return f"status {status}", status < 500 and status not in _MOMENTARY


def signature(secret: bytes, at: int, body: bytes) -> str:
    """Return `X-Citu-Signature`: the second, and the HMAC-SHA256 of it and the body."""
    digest = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
