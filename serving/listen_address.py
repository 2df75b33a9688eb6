"""Keeps a service without API keys from listening where other machines can connect."""

from collections.abc import Iterable
from typing import Any, Protocol

from api.access.key_file import KeyFile
from common.loopback import is_loopback


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


def refuse_strangers(listening: Iterable[Listening], *, keys: KeyFile, is_open: bool) -> None:
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
