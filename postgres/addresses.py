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
    parameters = {name: value for name, value in parse_dsn(dsn).items() if value}
    host = parameters.get("host", parameters.get("hostaddr", "this machine"))
    database = parameters.get("dbname", parameters.get("user", "postgres"))
    port = parameters.get("port", "")
    is_socket_folder = host.startswith("/")
    if port.isdigit() and not is_socket_folder:
        host = f"{host}:{port}"

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
    if len(ports) == 1:
        ports = ports * len(hosts)

    columns: dict[str, list[str]] = {"host": [], "port": [], "hostaddr": []}
    for host, port in zip(hosts, ports, strict=False):
        found = _addresses(host)
        columns["host"] += [host] * len(found)
        columns["port"] += [port] * len(found)
        columns["hostaddr"] += found

    if not columns["host"]:
        raise psycopg2.OperationalError("the host name can't be looked up")

    named = {name: ",".join(values) for name, values in columns.items() if any(values)}
    return {**parameters, **named}


def _addresses(host: str) -> list[str]:
    """Return the addresses of a host name; a socket, or no host, has one empty address."""
    is_socket_folder = host.startswith(("/", "@"))
    if is_socket_folder or not host:
        return [""]

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []

    return [str(address[0]) for *_, address in found]
