"""Has the client left? WSGI servers notice only when they write; the socket knows at once."""

import select
from typing import Any

# The keys under which gunicorn and werkzeug put the connection into the WSGI environment.
_KEYS = ("gunicorn.socket", "werkzeug.socket")
# Linux tells a closed peer also when there are bytes left to read (a line break after the body, a pipelined request),
# which a look at the data would mistake for a client that is there. Elsewhere POLLHUP, always watched, has to do.
_PEER_CLOSED = getattr(select, "POLLRDHUP", 0)


def client_has_left(environ: dict[str, Any]) -> bool:
    """True when the peer closed its end; False when it is there, or when the server doesn't show its socket."""
    connection = next((environ[key] for key in _KEYS if key in environ), None)
    if connection is None:
        return False
    descriptor = connection.fileno()
    if descriptor < 0:
        return True
    watch = select.poll()
    watch.register(descriptor, _PEER_CLOSED)
    return bool(watch.poll(0))
