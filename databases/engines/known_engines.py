"""What probes have found in this process, so that each server is probed once."""

from psycopg2 import ProgrammingError, extensions
from psycopg2.errors import FeatureNotSupported

from common.ports import UrlSource
from databases.engines.capabilities import Capabilities
from databases.engines.engine_probe import Connect, probe_engine
from postgres.connection import Connection

# The same answers mean the same process: one that was started anew is probed anew.
_IDENTITY = "SELECT pg_catalog.version(), pg_catalog.pg_postmaster_start_time()"
_ADDRESS = ("host", "hostaddr", "port", "options", "service")
_MOST_KNOWN = 256

Server = tuple[str | None, ...]


class KnownEngines:
    """Probes servers, and remembers what was found by address and process of the server."""

    def __init__(self) -> None:
        self._found: dict[Server, Capabilities] = {}

    async def of(self, source: UrlSource, connection: Connection, connect: Connect) -> Capabilities:
        """Return what the server can do that `connection` leads to.

        Args:
            source: gives its URL.
            connect: opens connections for the probe.

        Raises:
            DatabaseUnavailable: no connection could be opened.
            psycopg2.Error: the connection is lost.
        """
        server = await _server(source, connection)
        if server is None:
            return await probe_engine(connect)
        if server in self._found:
            return self._found[server]

        capabilities = await probe_engine(connect)
        # A refusal is not remembered: the server may have been busy, or be mended meanwhile.
        if capabilities.is_fit:
            self._remember(server, capabilities)

        return capabilities

    def _remember(self, server: Server, capabilities: Capabilities) -> None:
        if len(self._found) >= _MOST_KNOWN:
            self._found.clear()

        self._found[server] = capabilities


async def _server(source: UrlSource, connection: Connection) -> Server | None:
    """Return what tells the server from others; None when it does not say."""
    try:
        ((version, started),) = (await connection.query(_IDENTITY)).rows
    except (ProgrammingError, FeatureNotSupported):
        return None

    address = extensions.parse_dsn(source())
    return (*(address.get(part) for part in _ADDRESS), version, started)


KNOWN_ENGINES = KnownEngines()
"""Of this process; a child that is forked knows what its parent knew."""
