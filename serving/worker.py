"""Serving a WSGI application: a port taken early, and gunicorn made fit for long streams and clients that stall."""

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
from gunicorn.workers.gthread import ThreadWorker

from common import runtime
from serving.binding import OpenToOthers, refuse_strangers

_log = logging.getLogger(__name__)

# Threads beyond MAX_STREAMS: health checks, static files and refusals while every place is taken.
_SPARE_THREADS = 16
_STALL_S = 15.0  # a client that takes and sends nothing for so long is dropped, so that its thread is free again
_MARGIN_S = 60.0  # how much longer than a question may take a request may: for whoever reads its answer slowly
_GRACE_S = 4.0  # how long running questions may go on after SIGTERM; then they are cancelled
_STOP_S = 8  # then gunicorn kills a worker that is still there; container runtimes kill all after 10
_SETTLE_S = 2.0  # how long runs that nobody watches may take to say that they were cut off
_COLLECTIONS = (50_000, 20, 20)  # new objects before a collection; young ones before an older, and before a full one
_LINGER_S = 1.0  # how long to wait for the client's end of a connection that is being closed


class PortUnavailable(Exception):
    """The address can't be listened on; the message says why and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """A socket listening on `host:port`, taken before anything slow, so that nobody else gets the port meanwhile.

    Raises:
        PortUnavailable: the port is taken, or the address is not this machine's.
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
    """Gunicorn's own messages leave like everybody else's, by the root logger."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn; its own handlers are dropped again."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """A client that stalls or vanishes is no fault of ours, and no traceback."""
        if isinstance(sys.exc_info()[1], (BlockingIOError, TimeoutError)):
            _log.info("a client took or sent nothing for too long and was dropped")
        else:
            super().exception(msg, *args, **kwargs)


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's threaded worker where clients can't hold it up, and where stopping stops what runs.

    Attributes:
        question_s: seconds one question may take.
    """

    stall_s = _STALL_S
    grace_s = _GRACE_S
    margin_s = _MARGIN_S
    question_s = float("inf")
    _hurries = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._since: dict[Any, float] = {}  # connections that are served, on time.monotonic()

    def init_process(self) -> None:
        """Called once in the worker process."""
        # Every stream holds a descriptor, and every model call another; the usual soft limit is 1024.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(ValueError, OSError):  # systems where even the hard limit is too high
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """A connection has something to be read."""
        if not conn.initialized:  # the first time: the limits stay
            _limit_stalls(conn.sock, self.stall_s)
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """One request, in a thread of the pool; false when the connection is to be closed."""
        self._since[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
        finally:
            del self._since[conn]
        if not goes_on:
            # Gunicorn would do so itself, but in the one thread that accepts connections: nobody else could come in.
            _await_end(conn.sock)
        return goes_on

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: running questions get a moment to finish."""
        runtime.cancel_all(after_s=self.grace_s)
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """SIGINT and SIGQUIT: now; whoever waits for a running question still gets its last event.

        Not gunicorn's own: that shuts its pool of threads down in the signal handler, and waits for ever for the pool's
        lock if the signal came while the same thread held it.
        """
        self._hurries = True
        runtime.cancel_all(after_s=0)
        super().handle_exit(sig, frame)

    def murder_keepalived(self, force: bool = False) -> None:
        """Closes connections that are kept for a next request and have been for too long."""
        super().murder_keepalived(force or self._hurries)
        self._cut_off_drips()

    def _cut_off_drips(self) -> None:
        """Who sends or takes a few bytes now and then never stalls, and would keep a thread and a place for ever."""
        limit = time.monotonic() - self.question_s - self.margin_s
        for conn, since in tuple(self._since.items()):
            if since < limit:
                _log.info("a client took or sent too little for too long and was dropped")
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def is_parent_alive(self) -> bool:
        """Asked once a second; without the master nobody would end this process."""
        is_alive: bool = super().is_parent_alive()
        if not is_alive:
            runtime.cancel_all(after_s=self.grace_s)
        return is_alive


def _limit_stalls(connection: socket.socket, seconds: float) -> None:
    """Blocking reads and writes fail when nothing moves for `seconds`, however long they take in all."""
    whole = int(seconds)
    limit = struct.pack("ll", whole, int((seconds - whole) * 1_000_000))  # struct timeval
    with suppress(OSError):  # closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        if hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != socket.AF_UNIX:
            # A peer that vanished without a word is noticed when it doesn't acknowledge a ping.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _await_end(connection: socket.socket) -> None:
    """Says that nothing more will come and waits for the client's end; closing at once could cut the answer off."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + _LINGER_S
        while (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(65536):
                break
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)  # gunicorn's own wait ends at once


def gunicorn_options(max_streams: int, *, question_s: float = float("inf")) -> dict[str, Any]:
    """Settings every way of starting shares: one thread per running question, none of gunicorn's own side channels.

    Args:
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
        "control_socket_disable": True,
        "post_worker_init": begin,
        "worker_exit": lambda _arbiter, _worker: runtime.settle(_SETTLE_S),
        "logger_class": Log,
        "loglevel": "warning",
    }


def _begin(worker: Any) -> None:
    """Called in every worker, also in those that a reload or a death brings later."""
    _refuse_strangers(worker)
    _warm(worker)


def _refuse_strangers(worker: Any) -> None:
    """What was looked at when the master started may have changed: the addresses by a reload, the keys by anybody."""
    admission = worker.wsgi.extensions["citu_admission"]
    try:
        refuse_strangers(worker.sockets, keys=admission.keys, is_open=admission.anonymity.is_open)
    except OpenToOthers as error:
        _log.error("%s", error)
        sys.exit(Arbiter.WORKER_BOOT_ERROR)  # the master ends too


def _warm(worker: Any) -> None:
    """Starts the worker's event loop and lets it do what the first question would wait for."""
    warming = asyncio.run_coroutine_threadsafe(worker.wsgi.extensions["citu"].warm(), runtime.loop())
    warming.add_done_callback(lambda _done: _spare_collections())


def _spare_collections() -> None:
    # What is loaded by now stays: without looking through it, full collections take a fraction of their time. What
    # running questions hold is no garbage either; looking through a thousand of them after every 700 new objects is a
    # third of their time.
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


class Foreground(Arbiter):  # type: ignore[misc]  # gunicorn has no types
    """The master process of a server that belongs to a terminal: closing that ends it, where gunicorn would reload."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # under nohup

    def handle_hup(self) -> None:
        """The terminal was closed."""
        if not self._stays:
            self.handle_int()


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn around `make_app`, on an already listening socket.

    Args:
        make_app: called once in the worker process.
        when_ready: called in the master process when requests can come.
    """

    def __init__(
        self,
        make_app: Callable[[], Any],
        listening: socket.socket,
        options: dict[str, Any],
        when_ready: Callable[[], None],
    ) -> None:
        # Gunicorn takes the descriptor over and closes it.
        self._options = {**options, "bind": f"fd://{listening.detach()}", "when_ready": lambda _arbiter: when_ready()}
        self._make_app = make_app
        super().__init__()

    def run(self) -> None:
        """Serves until it is told to end."""
        Foreground(self).run()

    def load_config(self) -> None:
        """Gunicorn asks for its settings."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Gunicorn asks for the application."""
        return self._make_app()
