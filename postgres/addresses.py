"""Reads the addresses in connection strings: names them for people, and looks up host names.

libpq can do so itself, but when psycopg2 connects asynchronously it keeps Python's interpreter lock
meanwhile: a slow name server would stop the whole process, not only the caller who waits for a
connection.
"""

import socket
from collections.abc import Mapping
from typing import Any

import psycopg2
from psycopg2.extensions import parse_dsn


def described_address(dsn: str) -> str:
    """Return the database of a connection string as people read it: `shop at db.example.com`.

    The text never holds the password.

    Raises:
        psycopg2.ProgrammingError: it is no connection string.
    """
    known = parse_dsn(dsn)
    host = known.get("host") or known.get("hostaddr") or "this machine"
    if known.get("port", "").isdigit() and not host.startswith("/"):
        host += f":{known['port']}"
    database = known.get("dbname") or known.get("user") or "postgres"
    return f"{database} at {host}"


def with_addresses(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return libpq's parameters with `hostaddr` added, one entry per address.

    This blocks while names are looked up.

    `host` stays, because certificates and password files go by names. Parameters without a host, or
    with addresses, are returned as they are.

    Raises:
        psycopg2.OperationalError: no host has an address.
    """
    if not parameters.get("host") or parameters.get("hostaddr"):
        return dict(parameters)
    hosts = str(parameters["host"]).split(",")
    ports = str(parameters.get("port", "")).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    columns: dict[str, list[str]] = {"host": [], "port": [], "hostaddr": []}
    for host, port in zip(hosts, ports, strict=False):
        for address in _addresses(host):
            columns["host"].append(host)
            columns["port"].append(port)
            columns["hostaddr"].append(address)
    if not columns["host"]:
        raise psycopg2.OperationalError("the host name can't be looked up")
    found = dict(parameters)
    for name, values in columns.items():
        if any(values):
            found[name] = ",".join(values)
    return found


def _addresses(host: str) -> list[str]:
    """Return the addresses of a host name; for the folder of a socket, one empty address."""
    if not host or host[0] in "/@":
        return [""]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(address[0]) for *_, address in found]
