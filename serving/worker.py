"""Serves a WSGI application: takes the port early, and adapts gunicorn to long streams."""

import asyncio
import gc
import logging
import math
import mmap
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from common import runtime
from serving.connection_loop import LINGER_S, ConnectionLoop
from serving.early_refusals import LINE_BYTES
from serving.listen_address import OpenToOthers, refuse_strangers
from serving.measuring_workers import begin_worker, end_worker

_log = logging.getLogger(__name__)

# Threads beyond MAX_STREAMS: health checks, static files and refusals while every place is taken.
_SPARE_THREADS = 16
_LEAVE_S = 2  # seconds clients may take for what was answered when questions had to end
# Seconds beyond those for running questions until gunicorn kills a stopping worker.
_END_S = 6
_SETTLE_S = 2.0  # seconds in which runs that nobody watches may store that they were cut off
# Thresholds for gc.set_threshold: fewer collections than by default, none of them long.
_COLLECTIONS = (25_000, 5, 160)
# How often this process has replaced its workers. Shared by all of them, so that one that has to
# stop knows whether others go on in its place.
_reloads = mmap.mmap(-1, 1)
# Seconds a busy thread runs before others get their turn while the worker warms up; Python's are
# 0.005
_TURN_S = 0.001


class Log(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """Sends gunicorn's own messages to the root logger, like all others."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn; removes the handlers that gunicorn adds."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True

    def exception(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log one line, without a traceback, for a client that stalled or vanished."""
        if isinstance(sys.exc_info()[1], (BlockingIOError, TimeoutError)):
            _log.info("a client took or sent nothing for too long and was dropped")
        else:
            super().exception(msg, *args, **kwargs)


class Worker(ConnectionLoop):
    """The worker process: serves until it is told to stop, and then until questions have ended.

    Attributes:
        drain_s: seconds running questions may go on after SIGTERM, before they are cancelled.
    """

    drain_s = 0.0
    _drained_by = float("inf")  # by time.monotonic()
    _reload = 0

    def init_process(self) -> None:
        """Called once in the worker process."""
        # Raise the limit: every stream and every model call holds a descriptor, and the usual soft
        # limit is 1024.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(ValueError, OSError):  # on some systems even the hard limit is refused
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        self._reload = _reloads[0]
        super().init_process()

    def run(self) -> None:
        """Serve until it is told to stop, and then until requests and WebSockets have ended."""
        super().run()
        # Gunicorn does not know of connections that have become WebSockets.
        runtime.drain(LINGER_S)

    def handle_exit(self, *_signal: object) -> None:
        """Begin to drain on SIGTERM: running questions have `drain_s` seconds to finish.

        Meanwhile other requests are answered, so that balancers see that it is not ready. Gunicorn
        may send the signal again.
        """
        if self.is_draining:
            return

        self._drained_by = time.monotonic() + self.drain_s + LINGER_S
        self.is_replaced = _reloads[0] != self._reload
        self.is_draining = True
        self.cfg.set("graceful_timeout", _LEAVE_S)
        runtime.cancel_all(after_s=self.drain_s)
        self.method_queue.defer(self.begin_draining)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop at once, on SIGINT and SIGQUIT; waiting clients still get their run's last event.

        Replaces gunicorn's handler, which shuts the thread pool down inside the signal handler.
        When the signal arrives while the same thread holds the pool's lock, that waits for ever.
        """
        self.hurries = True
        self.cfg.set("graceful_timeout", _LEAVE_S)
        runtime.cancel_all(after_s=0)
        super().handle_exit(sig, frame)

    def is_parent_alive(self) -> bool:
        """Called after all that happens, and once a second; ends a worker that is drained.

        Without its master nobody would end this process, so it drains and ends.
        """
        if not super().is_parent_alive():
            self.handle_exit()
        if self.is_draining and self._is_drained():
            self.alive = False

        return True

    def _is_drained(self) -> bool:
        has_work = self.serves_requests or runtime.has_work()
        return not has_work or time.monotonic() >= self._drained_by


def gunicorn_options(
    max_streams: int,
    *,
    question_s: float = float("inf"),
    drain_s: float = 4.0,
    connections_per_address: int = 0,
    trusted_proxies: int = 0,
    is_measured: bool = False,
) -> dict[str, Any]:
    """Return the settings of gunicorn that all ways of starting share.

    Args:
        max_streams: questions that may run at once in one worker.
        question_s: seconds one question may take.
        drain_s: seconds running questions may go on when the worker has to stop.
        connections_per_address, trusted_proxies: see `Worker`.
        is_measured: whether workers measure, see `begin_measuring`.
    """

    def begin(worker: Any) -> None:
        worker.question_s = question_s
        worker.drain_s = drain_s
        worker.connections_per_address = connections_per_address
        worker.trusted_proxies = trusted_proxies
        _begin(worker)
        if is_measured:
            begin_worker(worker)

    options = {
        "worker_class": Worker,
        "workers": 1,
        "threads": max_streams + _SPARE_THREADS,
        "worker_connections": 4 * max_streams + 1000,
        "graceful_timeout": math.ceil(drain_s) + _END_S,
        "keepalive": 30,
        "limit_request_line": LINE_BYTES,
        "control_socket_disable": True,
        "post_worker_init": begin,
        "on_reload": _count_reload,
        "worker_exit": lambda _arbiter, _worker: runtime.settle(_SETTLE_S),
        # A master that has loaded all of Citu (`--preload`) would search that for garbage when it
        # ends, which takes a second.
        "on_exit": lambda _arbiter: gc.freeze(),
        "logger_class": Log,
        "loglevel": "warning",
    }
    if is_measured:
        options["child_exit"] = end_worker

    return options


def _begin(worker: Any) -> None:
    """Called once in every worker, also in those that replace others after a reload or a crash."""
    _refuse_strangers(worker)
    _judge_heads(worker)
    _spare_collections()
    _warm(worker)


def _count_reload(_arbiter: object) -> None:
    """Called in the master process before it replaces its workers."""
    _reloads[0] = (_reloads[0] + 1) % 256


def _refuse_strangers(worker: Any) -> None:
    """Repeat the check of the start: a reload may have changed the addresses or the keys."""
    admission = worker.wsgi.extensions["citu_admission"]
    try:
        refuse_strangers(
            worker.sockets, keys=admission.authentication, is_open=admission.anonymity.is_open
        )
    except OpenToOthers as error:
        _log.error("%s", error)
        sys.exit(Arbiter.WORKER_BOOT_ERROR)  # makes the master end, too


def _judge_heads(worker: Any) -> None:
    """Tell the worker what it needs to know of the application before it reads a body."""
    worker.body_bytes = worker.wsgi.config["MAX_CONTENT_LENGTH"]
    worker.large_bodies = worker.wsgi.extensions.get("citu_large_bodies")
    worker.knows = worker.wsgi.extensions["citu_admission"].knows
    worker.screening = worker.wsgi.extensions["citu_screening"]


def _warm(worker: Any) -> None:
    """Start the worker's event loop and prepare there what the first question needs."""
    usual_s = sys.getswitchinterval()

    def end(_done: object) -> None:
        _spare_collections()
        sys.setswitchinterval(usual_s)

    # A request passes from thread to thread several times, and each time waits for the turn of the
    # one that reads a large catalogue. Later on such short turns would cost a tenth of each answer.
    sys.setswitchinterval(_TURN_S)
    warming = asyncio.run_coroutine_threadsafe(
        worker.wsgi.extensions["citu"].warm(), runtime.loop()
    )
    warming.add_done_callback(end)
    keys = worker.wsgi.extensions.get("citu_shared_keys")
    if keys is not None:
        asyncio.run_coroutine_threadsafe(keys.follow(), runtime.loop())


def _spare_collections() -> None:
    """Keep the garbage collector from scanning objects that stay alive anyway.

    What is loaded by now stays, so full collections may skip it. The objects of running questions
    stay for a while: with a thousand questions, scanning them after every 700 new objects (the
    default) takes a third of the time. A large catalogue is a million new objects, and to scan them
    all at once would stop all threads for 0.3 seconds.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


class Foreground(Arbiter):  # type: ignore[misc]  # gunicorn has no types
    """The master process of a server in a terminal.

    Closing the terminal ends it; gunicorn's own would reload.
    """

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        # Under nohup SIGHUP is ignored: closing the terminal must not end the server then.
        self._stays = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def handle_hup(self) -> None:
        """Called when the terminal was closed."""
        if not self._stays:
            self.handle_int()


class GunicornServer(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
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
        self._options = {
            **options,
            "bind": f"fd://{listening.detach()}",
            "when_ready": lambda _arbiter: when_ready(),
        }
        self._make_app = make_app
        super().__init__()

    def run(self) -> None:
        """Serve until a signal ends it."""
        Foreground(self).run()

    def load_config(self) -> None:
        """Called by gunicorn for its settings."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Called by gunicorn for the application."""
        return self._make_app()
