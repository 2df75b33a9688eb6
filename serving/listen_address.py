"""Opens sockets, and keeps a service without API keys from listening where others can connect."""

import errno
import socket
from collections.abc import Iterable
from typing import Any, Protocol

from common.loopback import is_loopback


class PortUnavailable(Exception):
    """The service can't listen on the address; the message says why and what to do."""


def listen(host: str, port: int, names: tuple[str, str] = ("HOST", "PORT")) -> socket.socket:
    """Return a socket that listens on `host:port`, which the settings of these names give.

    Call it before anything slow, so that no other program takes the port.

    Raises:
        PortUnavailable: the port is in use or needs privileges, or the address is not this
            machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as exc:
        raise PortUnavailable(_why(exc, host, port, names)) from exc


def _why(error: OSError, host: str, port: int, names: tuple[str, str]) -> str:
    name_of_host, name_of_port = names
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use: stop the other program, "
            f"or choose another port with {name_of_port}."
        )
    if error.errno == errno.EACCES:
        return (
            f"{name_of_port}={port} needs privileges this user does not have: "
            "choose one above 1023."
        )
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{name_of_host}={host} is not an address of this machine: "
            "use 127.0.0.1, or an address of one of its interfaces."
        )

    return f"{name_of_host}={host} {name_of_port}={port} can't be listened on: {error.strerror}."


class OpenToOthers(Exception):
    """Other machines could ask although there are no API keys; the message says what to do."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} can be reached by others than this machine, and there are no API keys: "
            f"make one with "
            "'.venv/bin/python -m api.keys create --user NAME', or listen on 127.0.0.1, or, if "
            "everybody who can connect may ask, set ALLOW_ANONYMOUS=true."
        )


class Listening(Protocol):
    """A listening socket, or gunicorn's wrapper of one."""

    def getsockname(self) -> Any:
        """Return a tuple that begins with the IP address, or the path of a Unix socket."""


class KnowsCallers(Protocol):
    """The API keys, or whatever else callers are known by."""

    def is_needed(self) -> bool:
        """Tell whether requests must say who sends them."""


def refuse_strangers(listening: Iterable[Listening], *, keys: KnowsCallers, is_open: bool) -> None:
    """Raise `OpenToOthers` when other machines can connect without keys or `is_open`.

    Args:
        listening: the sockets themselves, because an address can be configured in several places.
        keys: once there are any, everybody may connect.
        is_open: everybody may connect and ask (`ALLOW_ANONYMOUS`).
    """
    if is_open or keys.is_needed():
        return

    for one in listening:
        address = one.getsockname()
        if isinstance(address, tuple) and not is_loopback(str(address[0])):
            raise OpenToOthers(f"The address {address[0]}")
