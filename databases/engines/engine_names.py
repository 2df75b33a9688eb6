"""Which engine a server is, by what it says of its version and by its extensions."""

import re
from collections.abc import Mapping

from databases.engines.capabilities import Engine

# What stands in the text of `version()`: the engine's name, and its own version behind it. The
# first that fits counts, because most of them call themselves PostgreSQL as well.
_BY_VERSION: tuple[tuple[str, str], ...] = (
    ("CockroachDB", r"CockroachDB\D*?v(\d[\w.]*)"),
    ("YugabyteDB", r"-YB-(\d[\d.]*)"),
    ("Redshift", r"Redshift (\d[\d.]*)"),
    ("Greenplum", r"Greenplum Database (\d[\d.]*)"),
    ("Materialize", r"Materialize (?:v)?(\d[\d.]*)"),
    ("RisingWave", r"RisingWave-(\d[\d.]*)"),
    ("openGauss", r"openGauss(?:-lite)? (\d[\d.]*)"),
    ("GaussDB", r"GaussDB\D*(\d[\d.]*)"),
    ("KingbaseES", r"Kingbase(?:ES)? ?V?(\w[\w.]*)"),
    ("PolarDB", r"PolarDB\D*(\d[\d.]*)"),
    ("EDB Postgres", r"EnterpriseDB\D*(\d[\d.]*)|EDB\D*(\d[\d.]*)"),
)

# Extensions that make another engine of PostgreSQL; the first that is there counts.
_BY_EXTENSION: tuple[tuple[str, str], ...] = (
    ("citus", "Citus"),
    ("timescaledb", "TimescaleDB"),
)
_POSTGRES = re.compile(r"PostgreSQL (\d+(?:\.\d+)*)")


def engine_of(version: str, extensions: Mapping[str, str]) -> Engine:
    """Return the engine's name and version, as far as it tells them.

    Args:
        version: the text of `version()`.
        extensions: the versions of the database's extensions, by name.
    """
    for name, pattern in _BY_VERSION:
        match = re.search(pattern, version)
        if match is not None:
            return Engine(name, next(filter(None, match.groups()), None))

    postgres_match = _POSTGRES.search(version)
    number = postgres_match[1] if postgres_match else None
    for extension, name in _BY_EXTENSION:
        if extension in extensions:
            return Engine(name, extensions[extension], number)

    return Engine("PostgreSQL", number)
