"""One open WebSocket on the event loop, which answers its messages one at a time.

The protocol itself (RFC 6455) is that of `websockets`, which does no input or output of its own.
What is here decides how much a client may send and hold back, how long it may be silent, and when
it is over.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.protocol import OPEN, SEND_EOF, SERVER, Protocol

from common import runtime
from common.logs import request_id

_log = logging.getLogger(__name__)

Answers = Callable[[str], AsyncGenerator[bytes, None]]
"""Answers one message by frames of UTF-8 text. Closed early when the client leaves."""


@dataclass(frozen=True)
class SocketLimits:
    """The limits of one client.

    Attributes:
        waiting: messages that may wait while another is being answered.
        message_bytes: longest message.
        ping_s: seconds between pings; a client that has not answered one when the next is due is
            dropped.
        idle_s: seconds without a message, and without one being answered, after which the socket is
            closed.
        stall_s: seconds a client may take nothing of what waits for it.
        drip_s: seconds it may take for all of it, however little at a time.
        close_s: seconds a client has to say that it, too, is done.
    """

    waiting: int = 8
    message_bytes: int = 65536
    ping_s: float = 20.0
    idle_s: float = 60.0
    stall_s: float = 15.0
    drip_s: float = 240.0
    close_s: float = 1.0


class LiveSocket(asyncio.Protocol):
    """A WebSocket whose handshake is done. Used on the event loop only.

    Args:
        answers: called for one message at a time.
        on_end: called once, when the connection is gone.
    """

    def __init__(self, answers: Answers, limits: SocketLimits, on_end: Callable[[], None]) -> None:
        self._answers = answers
        self._limits = limits
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._wire = Protocol(SERVER, state=OPEN, max_size=limits.message_bytes)
        self._message = bytearray()  # of which not all frames have come
        self._waiting: deque[str] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._count = 0
        self._is_stopping = False
        self._is_ponged = True
        self._room = asyncio.Event()  # set while the client takes what is sent
        self._room.set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._transport: asyncio.Transport

    # ------------------------------------------------------------------------------------- what the
    # transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin once the socket is on the loop."""
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's own classes are like it, but are no subclasses
        self._after("ping", self._limits.ping_s, self._ping)
        self._rest()
        runtime.track(self, on_stopping=self.stop)

    def data_received(self, data: bytes) -> None:
        """Take bytes that have come: any part of any number of frames."""
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame):
                self._take(event)

        self._flush()

    def eof_received(self) -> None:
        """Note that the client sends no more.

        Without a closing frame it is gone, for it could not even answer a ping.
        """
        self._wire.receive_eof()
        self._flush()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Note that nothing can be sent any more."""
        close_frame = self._wire.close_sent or self._wire.close_rcvd
        _log.info(
            "a socket ended",
            extra={
                "closed_with": close_frame.code if close_frame else None,
                "messages": self._count,
            },
        )
        self._wire.receive_eof()
        for name in tuple(self._timers):
            self._cease(name)

        self._leave()
        self._room.set()
        runtime.untrack(self)
        self._on_end()

    def pause_writing(self) -> None:
        """Note that the client takes less than is sent.

        Reads no more from it either, since it may want to be answered.
        """
        self._room.clear()
        if not self._transport.is_closing():
            self._transport.pause_reading()

        self._stall(
            self._transport.get_write_buffer_size(), self._loop.time() + self._limits.drip_s
        )

    def resume_writing(self) -> None:
        """Go on, because the client has taken enough."""
        self._room.set()
        self._cease("stall")
        if not self._transport.is_closing():
            self._transport.resume_reading()

    # --------------------------------------------------------------------------
    # messages

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            self._is_ponged = True
        elif self._wire.state is not OPEN or frame.opcode not in (
            Opcode.TEXT,
            Opcode.BINARY,
            Opcode.CONT,
        ):
            return
        elif frame.opcode is Opcode.BINARY:
            self._wire.fail(CloseCode.UNSUPPORTED_DATA, "messages are text")
        else:
            self._message += frame.data
            if frame.fin:
                message, self._message = bytes(self._message), bytearray()
                self._hear(message)

    def _hear(self, message: bytes) -> None:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            self._wire.fail(CloseCode.INVALID_DATA, "text is UTF-8")
            return

        if len(self._waiting) >= self._limits.waiting:
            self._wire.fail(
                CloseCode.POLICY_VIOLATION, f"no more than {self._limits.waiting} messages may wait"
            )
            return

        self._waiting.append(text)
        self._answer_next()

    def _answer_next(self) -> None:
        if self._answering is not None or self._wire.state is not OPEN:
            return
        if not self._waiting:
            self._rest()
            return

        self._cease("idle")
        self._count += 1
        self._answering = self._loop.create_task(self._answer(self._waiting.popleft(), self._count))
        self._answering.add_done_callback(self._answer_done)

    async def _answer(self, message: str, number: int) -> None:
        request_id.set(
            f"{request_id.get()}.{number}"
        )  # of the handshake, and which of its messages
        async with aclosing(self._answers(message)) as frames:
            async for frame in frames:
                await self._send(frame)

    def _answer_done(self, task: asyncio.Task[None]) -> None:
        self._answering = None
        if not task.cancelled() and task.exception() is not None:
            _log.error("answering a message broke", exc_info=task.exception())
            self._close(CloseCode.INTERNAL_ERROR, "")
        elif self._is_stopping:
            self._go_away()
        else:
            self._answer_next()

    # --------------------------------------------------------------------------
    # sending

    async def _send(self, frame: bytes) -> None:
        """Send one message, then wait until the client has taken most of what waits for it."""
        if self._wire.state is OPEN:
            self._wire.send_text(frame)
            self._flush()

        await self._room.wait()

    def _flush(self) -> None:
        pieces = self._wire.data_to_send()
        data = b"".join(pieces)
        if data and not self._transport.is_closing():
            self._transport.write(data)
        if SEND_EOF in pieces:
            self._end()

    def _end(self) -> None:
        """Send no more, after a mistake in the protocol or when both sides are done."""
        self._leave()
        if not self._transport.is_closing():
            self._transport.write_eof()

        self._await_end()

    def _leave(self) -> None:
        """Stop, because nobody is there to be answered."""
        self._waiting.clear()
        if self._answering is not None:
            self._answering.cancel()

    # --------------------------------------------------------------------------
    # silence and ends

    def stop(self) -> None:
        """End with code 1001: now, or after the message that is being answered."""
        self._is_stopping = True
        self._waiting.clear()
        if self._answering is None:
            self._go_away()

    def cancel(self) -> None:
        """Stop what is being answered, too; its last frames are still sent."""
        self.stop()
        if self._answering is not None:
            self._answering.cancel()

    def _go_away(self) -> None:
        self._close(CloseCode.GOING_AWAY, "the service is being stopped")

    def _close(self, code: CloseCode, reason: str) -> None:
        if self._wire.state is OPEN:
            self._wire.send_close(code, reason)
            self._flush()
            self._await_end()

    def _rest(self) -> None:
        idle = Close(CloseCode.NORMAL_CLOSURE, "no message for a while")
        self._after("idle", self._limits.idle_s, self._close, idle.code, idle.reason)

    def _ping(self) -> None:
        if (
            self._room.is_set()
        ):  # else its answer is not read, and `_stall` sees to it that the client goes on
            if not self._is_ponged:
                self._wire.fail(CloseCode.INTERNAL_ERROR, "no answer to a ping")
            elif self._wire.state is OPEN:
                self._is_ponged = False
                self._wire.send_ping(b"")

            self._flush()

        self._after("ping", self._limits.ping_s, self._ping)

    def _stall(self, left: int, until: float) -> None:
        """Drop the client if it took no byte within `stall_s`, or not all bytes until `until`."""

        def look() -> None:
            now = self._transport.get_write_buffer_size()
            if now >= left or self._loop.time() >= until:
                _log.info("a client took nothing for too long and was dropped")
                self._transport.abort()
            else:
                self._stall(now, until)

        self._after("stall", self._limits.stall_s, look)

    def _await_end(self) -> None:
        """Cut the connection unless the client closes it, or goes on taking what waits for it."""
        left = self._transport.get_write_buffer_size()

        def look() -> None:
            if 0 < self._transport.get_write_buffer_size() < left:
                self._await_end()
            else:
                self._transport.abort()

        self._cease("ping")
        self._cease("idle")
        self._after("end", self._limits.close_s, look)

    def _after(
        self, name: str, seconds: float, do: Callable[..., None], *arguments: object
    ) -> None:
        """Call it later; a new timer replaces one of the same name."""
        self._cease(name)
        self._timers[name] = self._loop.call_later(seconds, do, *arguments)

    def _cease(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
