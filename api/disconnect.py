"""Has the client left? WSGI servers notice only when they write; the socket knows at once."""

import socket
from typing import Any

# The keys under which gunicorn and werkzeug put the connection into the WSGI environment.
_KEYS = ("gunicorn.socket", "werkzeug.socket")


def client_has_left(environ: dict[str, Any]) -> bool:
    """True when the peer closed its end; False when it is there, or when the server doesn't show its socket."""
    connection = next((environ[key] for key in _KEYS if key in environ), None)
    if connection is None:
        return False
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except (BlockingIOError, InterruptedError):
        return False
    except ValueError:
        return False  # TLS sockets can't peek; such a client is noticed at the next ping
    except OSError:
        return True
