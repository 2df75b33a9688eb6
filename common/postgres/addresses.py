"""Reads the addresses in connection strings: names them for people, and looks up host names.

libpq can do so itself, but when psycopg2 connects asynchronously it keeps Python's interpreter lock meanwhile: a slow
name server would stop the whole process, not only the caller who waits for a connection.
"""

import socket
from collections.abc import Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn


def described_address(dsn: str) -> str:
    """Which database a connection string leads to, for people: `shop at db.example.com`; never its password.

    Raises:
        psycopg2.ProgrammingError: it is no connection string.
    """
    known = parse_dsn(dsn)
    host = known.get("host") or known.get("hostaddr") or "this machine"
    port = f":{known['port']}" if known.get("port", "").isdigit() and not host.startswith("/") else ""
    return f"{known.get('dbname') or known.get('user') or 'postgres'} at {host}{port}"


def with_addresses(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """libpq's parameters with `hostaddr` added, one entry per address; blocks while names are looked up.

    `host` stays, because certificates and password files go by names. Parameters without a host, or with addresses, are
    returned as they are.

    Raises:
        psycopg2.OperationalError: no host has an address.
    """
    if not parameters.get("host") or parameters.get("hostaddr"):
        return dict(parameters)
    hosts = str(parameters["host"]).split(",")
    ports = str(parameters.get("port", "")).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    found = [(host, port, each) for host, port in zip(hosts, ports, strict=False) for each in _addresses(host)]
    if not found:
        raise psycopg2.OperationalError("the host name can't be looked up")
    names = dict(
        zip(("host", "port", "hostaddr"), (",".join(column) for column in zip(*found, strict=True)), strict=True)
    )
    return {**parameters, **{name: text for name, text in names.items() if text.strip(",")}}


def _addresses(host: str) -> list[str]:
    """The addresses of a host name; for the folder of a socket, one empty address."""
    if not host or host[0] in "/@":
        return [""]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for *_, address in found]
