"""The endpoints that Citu knows by name (`endpoints.json`), and how each is told whether to think.

`python docs/make_models.py` writes them into docs/models.md.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TABLE = Path(__file__).with_name("endpoints.json")


class KnownEndpoint(NamedTuple):
    """One endpoint of the table.

    Attributes:
        settings: an example of each setting it needs.
        thinking: the parameters of a request for `on` and `off`; empty: it has no such switch.
        tools, json_mode, usage_in_streams, reply_limit, needs: what it lacks or wants, in Markdown.
        hosts: its host names; those that begin with a dot are the ends of them.
        ports: those of a local server.
    """

    name: str
    settings: Mapping[str, str]
    thinking: Mapping[str, Mapping[str, Any]]
    tools: str
    json_mode: str
    usage_in_streams: str
    reply_limit: str
    needs: str
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()

    def is_at(self, host: str, port: int | None) -> bool:
        for known_host in self.hosts:
            if host == known_host:
                return True
            if known_host.startswith(".") and host.endswith(known_host):
                return True

        return port in self.ports


@cache
def known_endpoints() -> tuple[KnownEndpoint, ...]:
    entries = json.loads(TABLE.read_text("utf-8"))
    return tuple(KnownEndpoint(**entry) for entry in entries)


def known_endpoint(url: str) -> KnownEndpoint | None:
    """Return the endpoint at a valid URL; None: it is not in the table."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    for endpoint in known_endpoints():
        if endpoint.is_at(host, parts.port):
            return endpoint

    return None


def thinking_parameters(thinking: str, url: str) -> Mapping[str, Any]:
    """Return the parameters that tell the endpoint at a valid URL whether to think.

    Args:
        thinking: `on`, `off`, the parameters themselves as a JSON object, or nothing.
    """
    if not thinking:
        return {}
    if thinking.startswith("{"):
        parameters: Mapping[str, Any] = json.loads(thinking)
        return parameters

    endpoint = known_endpoint(url)
    if endpoint is None:
        return {}

    return endpoint.thinking.get(thinking, {})
