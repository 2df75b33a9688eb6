"""Keeps what libpq takes from the environment away from connections to the embedded server."""

import os
from contextlib import suppress

import psycopg2
from psycopg.pq import Conninfo, ConninfoOption
from psycopg2.extensions import parse_dsn

_IN_EVERY_URL = ("user", "dbname", "host", "port")  # every URL of the server names them
# The name of a service has no neutral value: one that is not defined refuses every connection.
_NOT_UNDONE = ("service", *_IN_EVERY_URL)
_NUMBERS = {"connect_timeout": "0"}


def undoing_parameters() -> dict[str, str]:
    """Return connection parameters that give what variables like PGOPTIONS set its default."""
    parameters = {}
    for option in Conninfo.get_defaults():
        name = option.keyword.decode()
        if _is_set(option) and name not in _NOT_UNDONE and _is_known(name):
            parameters[name] = (option.compiled or b"").decode() or _NUMBERS.get(name, "")

    return parameters


def _is_set(option: ConninfoOption) -> bool:
    return option.envvar is not None and option.envvar.decode() in os.environ


def _is_known(name: str) -> bool:
    """Tell whether psycopg2, whose libpq may be older than psycopg's, takes the parameter."""
    with suppress(psycopg2.ProgrammingError):
        parse_dsn(f"{name}=''")
        return True

    return False
