"""Serving a WSGI application from a terminal: a port taken early, and gunicorn with settings fit for long streams."""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any

from gunicorn import glogging
from gunicorn.app.base import BaseApplication

from common import runtime

# Threads beyond MAX_STREAMS: health checks, static files and refusals while every place is taken.
_SPARE_THREADS = 16


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


def gunicorn_options(max_streams: int) -> dict[str, Any]:
    """Settings every way of starting shares: one thread per running question, none of gunicorn's own side channels."""
    return {
        "worker_class": "gthread",
        "workers": 1,
        "threads": max_streams + _SPARE_THREADS,
        "worker_connections": 4 * max_streams + 1000,
        "graceful_timeout": 10,
        "keepalive": 30,
        "control_socket_disable": True,
        "post_worker_init": _warm,
        "logger_class": Log,
        "loglevel": "warning",
    }


def _warm(worker: Any) -> None:
    """Starts the worker's event loop and lets it do what the first question would wait for."""
    asyncio.run_coroutine_threadsafe(worker.wsgi.extensions["citu"].warm(), runtime.loop())


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

    def load_config(self) -> None:
        """Gunicorn asks for its settings."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Gunicorn asks for the application."""
        return self._make_app()
