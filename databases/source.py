"""Finds out where the databases are: at the configured URLs, or in the embedded server."""

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2

from common.errors import DatabaseUnavailable
from common.ports import UrlSource
from common.text import Text
from databases.app_database import ensure_app_database
from databases.catalog import catalog_queries
from databases.catalog.missing_grants import ReadableTables, connect_grant, read_readable_tables
from databases.catalog.privileges import dangers_of, unfit
from databases.demo.loader import ensure_demo
from databases.embedded.embedded_server import EmbeddedServer, EmbeddedServerError
from databases.engines.capabilities import Capabilities
from databases.engines.known_engines import KNOWN_ENGINES
from databases.execution.statement_errors import NAMES_NOT_UNICODE
from databases.other_engines import other_engine
from databases.scratch_database import ensure_scratch_database
from databases.workspace_database import (
    FILES_READER,
    ensure_workspace,
    ensure_workspace_reader,
)
from postgres.connecting import PostgresLimits, connect
from postgres.connection_errors import UNREACHABLE, first_line

_log = logging.getLogger(__name__)
_NAMES = (
    catalog_queries.ALL_RELATIONS,
    catalog_queries.ATTRIBUTES,
    catalog_queries.ROUTINES,
    catalog_queries.TYPES,
)
_PROBE: Mapping[str, Any] = {
    "connect_timeout": 10,
    "application_name": "citu",
    "client_encoding": "UTF8",
}


_ENGINE_CONNECT_S = 4.0
_CHECK_URL = Text("请检查它的地址。", "check its URL.")


class EmbeddedHold:
    """This process's hold on the embedded server of `data_dir`, shared by all databases in it.

    The first call starts the server, and a later one starts it again if it died. It runs as long as
    this process or any other user of the folder. A fork shares the hold.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None

    def server(self) -> EmbeddedServer:
        """Return the server, running.

        Raises:
            EmbeddedServerError: it can't run here; the message says why and what to do.
        """
        with self._lock:
            if self._server is None:
                self._server = EmbeddedServer.acquire(self._data_dir)
            else:
                self._server.ensure_running()

            return self._server

    def release(self) -> None:
        """Give the server up; it stops when its last user has released it."""
        with self._lock:
            if self._server is not None:
                self._server.release()
                self._server = None


class EmbeddedSource:
    """A database of the embedded server.

    Args:
        make: creates the database in the server unless it exists; returns its URL.
    """

    def __init__(self, hold: EmbeddedHold, make: Callable[[EmbeddedServer], str]) -> None:
        self._hold = hold
        self._make = make
        self._lock = threading.Lock()
        self._made_in: EmbeddedServer | None = None
        self._url = ""

    def __call__(self) -> str:
        """Return the URL of the database for its role.

        Raises:
            DatabaseUnavailable: the server can't run now; the log says why.
        """
        try:
            return self.start()
        except EmbeddedServerError as exc:
            _log.error("the embedded server can't run: %s", exc)
            raise DatabaseUnavailable(UNREACHABLE) from exc

    def start(self) -> str:
        """Do as calling the object does, for callers who can show the reason to a person.

        Raises:
            EmbeddedServerError: the server can't run here; the message says why and what to do.
        """
        server = self._hold.server()
        with self._lock:
            if self._made_in is not server:
                try:
                    self._url = self._make(server)
                except psycopg2.Error as exc:
                    reason = first_line(exc, "no answer")
                    raise EmbeddedServerError(
                        f"The embedded database can't be made ({reason}): see the log in DATA_DIR."
                    ) from exc

                self._made_in = server

            return self._url


@dataclass(frozen=True)
class WorkspaceSources:
    """The places of the database in which the tables of people's files are kept.

    Attributes:
        writes: for the role that makes the tables.
        reads: for the role that questions are asked with.
        reader: the name of that role; None: it is the one that makes the tables.
    """

    writes: UrlSource
    reads: UrlSource
    reader: str | None


@dataclass(frozen=True)
class Sources:
    """The places of Citu's databases.

    Attributes:
        asked: the one that questions are about; the demo when none is configured.
        demo: the demo in the embedded server.
        app: Citu's own, for conversations and runs.
        scratch: the one in which drafted transformations are built.
        workspace: the one of people's files.
        hold: on the embedded server, which is not started before one of them needs it.
    """

    asked: UrlSource
    demo: EmbeddedSource
    app: UrlSource
    scratch: UrlSource
    workspace: WorkspaceSources
    hold: EmbeddedHold


class InvalidDatabaseUrl(ValueError):
    """A setting that is no address of a PostgreSQL database; the message shows what one is like."""


def database_sources(
    database_url: str,
    app_database_url: str,
    data_dir: Path,
    scratch_database_url: str = "",
    workspace_url: str = "",
) -> Sources:
    """Return the configured databases, or for each that is not configured one in the embedded
    server. Starts nothing.

    Raises:
        InvalidDatabaseUrl: one of them is not an address.
    """
    _check("DATABASE_URL", database_url)
    _check("APP_DATABASE_URL", app_database_url)
    _check("SCRATCH_DATABASE_URL", scratch_database_url)
    _check("WORKSPACE_URL", workspace_url)
    hold = EmbeddedHold(data_dir)
    demo = EmbeddedSource(hold, ensure_demo)
    asked: UrlSource = demo
    if database_url:
        asked = source_of(database_url)

    app: UrlSource = EmbeddedSource(hold, ensure_app_database)
    if app_database_url:
        app = source_of(app_database_url)

    scratch: UrlSource = EmbeddedSource(hold, ensure_scratch_database)
    if scratch_database_url:
        scratch = source_of(scratch_database_url)

    return Sources(asked, demo, app, scratch, _workspace(hold, workspace_url), hold)


def _workspace(hold: EmbeddedHold, url: str) -> WorkspaceSources:
    if url:
        return WorkspaceSources(source_of(url), source_of(url), None)

    writes = EmbeddedSource(hold, ensure_workspace)
    reads = EmbeddedSource(hold, ensure_workspace_reader)
    return WorkspaceSources(writes, reads, FILES_READER)


def source_of(url: str) -> UrlSource:
    """Return the source of a database at a URL."""
    return lambda: url


def is_address(url: str) -> bool:
    """Tell whether the text is an address of a PostgreSQL database, as far as can be seen."""
    try:
        # A plain @ in a password makes the rest of the password part of the host.
        return "@" not in psycopg2.extensions.parse_dsn(url).get("host", "")
    except psycopg2.ProgrammingError:
        return False


def _check(setting: str, url: str) -> None:
    advice = other_engine(url)
    if advice is not None:
        raise InvalidDatabaseUrl(f"{setting} can't be used. {advice.en}")
    if not is_address(url):
        raise InvalidDatabaseUrl(
            f"{setting} is not a URL such as postgresql://user:password@localhost:5432/database; "
            "special characters of a password are written as %XX, an @ as %40."
        )


class Unreachable(Exception):
    """The configured database can't be used; the text says why and what to do."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(en)
        self.text = Text(zh, en)


def probe(
    url: str, setting: str = "DATABASE_URL", *, require_read_only_role: bool = False
) -> Capabilities:
    """Find out at the start, and not at the first question, whether a database can be used; return
    what its server can do.

    Raises:
        Unreachable: with the message of PostgreSQL's client library, which names host and database
            but no password; with what the role may do beyond reading, when that is not allowed; or
            with what the server does otherwise than it must.
    """
    try:
        with closing(psycopg2.connect(url, **_PROBE)) as connection:
            _check_names(connection)
            dangers = dangers_of(connection)
    except psycopg2.errors.CharacterNotInRepertoire as exc:
        raise Unreachable(
            f"{setting} 不能使用。{NAMES_NOT_UNICODE.zh}",
            f"{setting} can't be used. {NAMES_NOT_UNICODE.en}",
        ) from exc
    except psycopg2.Error as exc:
        reason = first_line(exc, "no connection")
        advice = _missing_connect(reason, url) or _CHECK_URL
        raise Unreachable(
            f"{setting} 无法连接到数据库（{reason}）：{advice.zh}",
            f"{setting} does not lead to a database ({reason}): {advice.en}",
        ) from exc

    if dangers and require_read_only_role:
        raise Unreachable(*unfit(dangers))

    capabilities = _capabilities_of(url, setting)
    if not capabilities.is_fit:
        refusal = capabilities.refusal()
        raise Unreachable(f"{setting}：{refusal.zh}", f"{setting}: {refusal.en}")

    return capabilities


def _capabilities_of(url: str, setting: str) -> Capabilities:
    source = source_of(url)
    opening = partial(connect, source, PostgresLimits(), timeout_s=_ENGINE_CONNECT_S)

    async def found() -> Capabilities:
        connection = await opening()
        try:
            return await KNOWN_ENGINES.of(source, connection, opening)
        finally:
            connection.close()

    try:
        return asyncio.run(found())
    except (DatabaseUnavailable, psycopg2.Error) as exc:
        raise Unreachable(
            f"{setting}：服务器拒绝 Citu 所用的设置，或没有回答。",
            f"{setting}: the server refuses the settings that Citu works with, or does not answer.",
        ) from exc


def readable_tables(url: str) -> ReadableTables | None:
    """Return what the role of a database may read; None: it can't be found out."""
    try:
        with closing(psycopg2.connect(url, **_PROBE)) as connection:
            return read_readable_tables(connection)
    except psycopg2.Error:
        return None


def _missing_connect(reason: str, url: str) -> Text | None:
    """Return what to do when the server says that the role may not connect."""
    match = re.search(r'permission denied for database "(.+?)"', reason)
    if match is None:
        return None

    role = psycopg2.extensions.parse_dsn(url).get("user", "ROLE")
    grant = connect_grant(match[1], role)
    return Text(f"请以所有者执行 {grant}", f"run as its owner {grant}")


def _check_names(connection: psycopg2.extensions.connection) -> None:
    """Read all names of a database with the encoding SQL_ASCII: the server refuses names that are
    not UTF-8.
    """
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_encoding")
        if cursor.fetchone() == ("SQL_ASCII",):
            for query in _NAMES:
                cursor.execute(query)
