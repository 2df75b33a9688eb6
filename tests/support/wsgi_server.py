"""Serves an application of this process over HTTP, for clients that need a real port."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask
from werkzeug.serving import make_server


@contextmanager
def serving_app(app: Flask) -> Iterator[int]:
    """Yield the port at which the application is served, by a thread per connection."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    # The interval is how soon the server notices that it is shut down.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
