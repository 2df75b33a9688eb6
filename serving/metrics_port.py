"""Serves the metrics on a port of their own, which answers nothing else and asks for no key.

The master process opens the socket; each worker answers on it in threads of its own, so that a
worker whose other threads are all busy still answers.
"""

import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from common.metrics import CONTENT_TYPE, Metrics

_PATH = "/metrics"
_PATIENCE_S = 5.0  # that a client may take for its request


class MetricsPort(ThreadingHTTPServer):
    """Answers `GET /metrics` on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, metrics: Metrics) -> None:
        super().__init__(listening.getsockname()[:2], _MetricsRequest, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        # Of the workers that see a connection, one gets it; the others must not wait for the next.
        listening.setblocking(False)
        self.metrics = metrics

    def start(self) -> None:
        """Answer until the process ends."""
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection; OSError, which the server ignores, if another worker has it."""
        accepted, address = self.socket.accept()
        accepted.setblocking(True)
        return accepted, address


class _MetricsRequest(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server: MetricsPort

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        if self.path.partition("?")[0] != _PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return

        text = self.server.metrics.text()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing: a scrape every few seconds tells nobody anything."""
