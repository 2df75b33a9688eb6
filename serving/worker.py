"""Serves a WSGI application: takes the port early, and adapts gunicorn to long streams and to clients that stall."""

import asyncio
import errno
import gc
import logging
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.http.errors import LimitRequestLine
from gunicorn.workers.gthread import ThreadWorker

from common import runtime, timestamps
from common.envelope import error_data, failure, to_bytes
from common.errors import UriTooLong
from common.text import Text
from serving.binding import OpenToOthers, refuse_strangers

_log = logging.getLogger(__name__)

# Threads beyond MAX_STREAMS: health checks, static files and refusals while every place is taken.
_SPARE_THREADS = 16
_STALL_S = 15.0  # seconds without a byte sent or taken after which a client is dropped, to free its thread
_MARGIN_S = 60.0  # seconds a request may take beyond its question's limit, for clients that read slowly
_GRACE_S = 4.0  # seconds running questions may go on after SIGTERM before they are cancelled
_STOP_S = 8  # seconds until gunicorn kills a stopping worker; container runtimes kill everything after 10
_SETTLE_S = 2.0  # seconds in which runs that nobody watches may store that they were cut off
_COLLECTIONS = (25_000, 5, 160)  # thresholds for gc.set_threshold: fewer collections than by default, none of them long
_TURN_S = 0.001  # seconds a busy thread runs before others get their turn while the worker warms up; Python's are 0.005
_LINE_BYTES = 8190  # of a request's first line, the most that gunicorn reads unless it reads without end
_TOO_LONG = Text(
    f"请求地址连同查询参数最多 {_LINE_BYTES:,} 字节。",
    f"The address with its query string may have {_LINE_BYTES:,} bytes at most.",
)
_LINGER_S = 1.0  # seconds to wait for the client to close its end of a connection that is being closed


class PortUnavailable(Exception):
    """The service can't listen on the address; the message says why and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on `host:port`. Call it before anything slow, so that no other program takes the port.

    Raises:
        PortUnavailable: the port is in use or needs privileges, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as exc:
        raise PortUnavailable(_why(exc, host, port)) from exc


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use: stop the other program, or choose another port with PORT."
    if error.errno == errno.EACCES:
        return f"PORT={port} needs privileges this user does not have: choose one above 1023."
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"HOST={host} is not an address of this machine: use 127.0.0.1, or an address of one of its interfaces."
    return f"HOST={host} PORT={port} can't be listened on: {error.strerror}."


class Log(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """Sends gunicorn's own messages to the root logger, like all others."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn; removes the handlers that gunicorn adds."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Logs one line and no traceback for a client that stalled or vanished: the service is not at fault."""
        if isinstance(sys.exc_info()[1], (BlockingIOError, TimeoutError)):
            _log.info("a client took or sent nothing for too long and was dropped")
        else:
            super().exception(msg, *args, **kwargs)


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's threaded worker, which drops clients that stall, and cancels running questions when it stops.

    Attributes:
        stall_s: seconds without a byte sent or taken after which a client is dropped.
        grace_s: seconds running questions may go on after SIGTERM.
        margin_s: seconds a request may take beyond `question_s`.
        question_s: seconds one question may take.
    """

    stall_s = _STALL_S
    grace_s = _GRACE_S
    margin_s = _MARGIN_S
    question_s = float("inf")
    _hurries = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._since: dict[Any, float] = {}  # since when a connection is served, by time.monotonic()

    def init_process(self) -> None:
        """Called once in the worker process."""
        # Raise the limit: every stream and every model call holds a descriptor, and the usual soft limit is 1024.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(ValueError, OSError):  # on some systems even the hard limit is refused
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Called when a connection has something to read."""
        if not conn.initialized:  # the first request of the connection; the socket keeps the limits
            _limit_stalls(conn.sock, self.stall_s)
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Serves one request in a thread of the pool; returns false when the connection is to be closed."""
        self._since[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
        finally:
            del self._since[conn]
        if goes_on and _has_ended(conn.sock):  # always so after a handshake, which moves the connection elsewhere
            goes_on = False
        if not goes_on:
            # Gunicorn would wait itself, but in the only thread that accepts connections, which would block all others.
            _await_end(conn.sock)
        return goes_on

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answers what is no request: one whose line is too long like other errors, the rest as gunicorn does."""
        if not isinstance(exc, LimitRequestLine):
            super().handle_error(req, client, addr, exc)
            return
        with suppress(OSError):  # the client has left
            client.sendall(_line_too_long())

    def run(self) -> None:
        """Serves until it is told to stop; then until there are neither requests nor open WebSockets."""
        super().run()
        # Gunicorn does not know of connections that have become WebSockets. Those on which questions are answered end
        # when these do, or when they are cancelled.
        runtime.drain(self.grace_s + _LINGER_S)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: stops, and gives running questions `grace_s` seconds to finish."""
        runtime.cancel_all(after_s=self.grace_s)
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """SIGINT and SIGQUIT: stops at once; clients that wait for a running question still get its last event.

        Replaces gunicorn's handler, which shuts the thread pool down inside the signal handler. When the signal arrives
        while the same thread holds the pool's lock, that waits for ever.
        """
        self._hurries = True
        runtime.cancel_all(after_s=0)
        super().handle_exit(sig, frame)

    def murder_keepalived(self, force: bool = False) -> None:
        """Closes connections that have waited too long for a next request, and requests that take too long."""
        super().murder_keepalived(force or self._hurries)
        self._cut_off_drips()

    def _cut_off_drips(self) -> None:
        """Drops clients that send or take a byte now and then: they never stall, and would hold a thread for ever."""
        limit = time.monotonic() - self.question_s - self.margin_s
        for conn, since in tuple(self._since.items()):
            if since < limit:
                _log.info("a client took or sent too little for too long and was dropped")
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def is_parent_alive(self) -> bool:
        """Called once a second. Without its master nobody would end this process, so it cancels what runs and ends."""
        is_alive: bool = super().is_parent_alive()
        if not is_alive:
            runtime.cancel_all(after_s=self.grace_s)
        return is_alive


def _limit_stalls(connection: socket.socket, seconds: float) -> None:
    """Makes blocking reads and writes fail after `seconds` without a byte; in all they may take longer."""
    whole = int(seconds)
    limit = struct.pack("ll", whole, int((seconds - whole) * 1_000_000))  # struct timeval
    with suppress(OSError):  # the client has closed the connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        if hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != socket.AF_UNIX:
            # Notices a client that vanished without closing: it does not acknowledge the next bytes, such as a ping.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _has_ended(connection: socket.socket) -> bool:
    """Whether no further request can come, so that waiting for one would only wake a thread to find that out."""
    if type(connection) is not socket.socket:  # what TLS has read already can't be seen here
        return False
    with suppress(BlockingIOError):
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return False


def _await_end(connection: socket.socket) -> None:
    """Closes the sending end, then waits for the client to close its own: closing both could cut the answer off."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + _LINGER_S
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(65536):
                break
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)  # so that gunicorn's own wait ends at once


def _line_too_long() -> bytes:
    """The response; in English, because the headers that may ask for another language have not been read."""
    error = UriTooLong(_TOO_LONG)
    data = {**error_data(error, "en"), "request_id": "-", "timestamp": timestamps.now()}
    body = to_bytes(failure(error.code, error.title.en, data))
    head = (
        f"HTTP/1.1 {error.code} {error.title.en}\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n"
        f"Content-Type: application/json; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def gunicorn_options(max_streams: int, *, question_s: float = float("inf")) -> dict[str, Any]:
    """The settings of gunicorn that all ways of starting share: one thread per running question, no control socket.

    Args:
        max_streams: questions that may run at once in one worker.
        question_s: seconds one question may take.
    """

    def begin(worker: Any) -> None:
        worker.question_s = question_s
        _begin(worker)

    return {
        "worker_class": Worker,
        "workers": 1,
        "threads": max_streams + _SPARE_THREADS,
        "worker_connections": 4 * max_streams + 1000,
        "graceful_timeout": _STOP_S,
        "keepalive": 30,
        "limit_request_line": _LINE_BYTES,
        "control_socket_disable": True,
        "post_worker_init": begin,
        "worker_exit": lambda _arbiter, _worker: runtime.settle(_SETTLE_S),
        "logger_class": Log,
        "loglevel": "warning",
    }


def _begin(worker: Any) -> None:
    """Called once in every worker, also in those that replace others after a reload or a crash."""
    _refuse_strangers(worker)
    _spare_collections()
    _warm(worker)


def _refuse_strangers(worker: Any) -> None:
    """Repeats the check of the start, because a reload may have changed the addresses, and anybody the keys."""
    admission = worker.wsgi.extensions["citu_admission"]
    try:
        refuse_strangers(worker.sockets, keys=admission.keys, is_open=admission.anonymity.is_open)
    except OpenToOthers as error:
        _log.error("%s", error)
        sys.exit(Arbiter.WORKER_BOOT_ERROR)  # makes the master end, too


def _warm(worker: Any) -> None:
    """Starts the worker's event loop and prepares there what the first question would otherwise wait for."""
    usual_s = sys.getswitchinterval()

    def end(_done: object) -> None:
        _spare_collections()
        sys.setswitchinterval(usual_s)

    # A request passes from thread to thread several times, and each time waits for the turn of the one that reads a
    # large catalogue. Later on such short turns would cost a tenth of each answer.
    sys.setswitchinterval(_TURN_S)
    warming = asyncio.run_coroutine_threadsafe(worker.wsgi.extensions["citu"].warm(), runtime.loop())
    warming.add_done_callback(end)


def _spare_collections() -> None:
    """Keeps the garbage collector from scanning objects that stay alive anyway.

    What is loaded by now stays, so full collections may skip it. The objects of running questions stay for a while:
    with a thousand questions, scanning them after every 700 new objects (the default) takes a third of the time. A
    large catalogue is a million new objects, and to scan them all at once would stop all threads for 0.3 seconds.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


class Foreground(Arbiter):  # type: ignore[misc]  # gunicorn has no types
    """The master process of a server in a terminal. Closing the terminal ends it; gunicorn's own would reload."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        # Under nohup SIGHUP is ignored: closing the terminal must not end the server then.
        self._stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def handle_hup(self) -> None:
        """Called when the terminal was closed."""
        if not self._stays:
            self.handle_int()


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """Serves the application of `make_app` with gunicorn, on a socket that listens already.

    Args:
        make_app: called once in the worker process.
        listening: given to gunicorn, which closes it.
        options: settings of gunicorn.
        when_ready: called in the master process when the server can take requests.
    """

    def __init__(
        self,
        make_app: Callable[[], Any],
        listening: socket.socket,
        options: dict[str, Any],
        when_ready: Callable[[], None],
    ) -> None:
        self._options = {**options, "bind": f"fd://{listening.detach()}", "when_ready": lambda _arbiter: when_ready()}
        self._make_app = make_app
        super().__init__()

    def run(self) -> None:
        """Serves until a signal ends it."""
        Foreground(self).run()

    def load_config(self) -> None:
        """Called by gunicorn for its settings."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Called by gunicorn for the application."""
        return self._make_app()
