"""Puts the demo database into a server, and brings it up to yesterday on later starts.

It is built under another name and renamed when complete, so that an interrupted build is never
taken for the database. Processes that start at the same time wait for each other by an advisory
lock.
"""

import hashlib
import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import psycopg2
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT, make_dsn

# psycopg2 names its class in lower case.
from psycopg2.extensions import connection as Connection  # noqa: N812

from databases.demo.measurements import revenue_lines, traffic_lines
from databases.demo.network import COMPANIES, service_areas, shops
from databases.demo.reader import READER, create_reader, grant_reading

LOGGER = logging.getLogger(__name__)

DATABASE = "citu_demo"
DAYS = 730

_BUILDING = "citu_demo_building"
_LOCK = 0x43697475  # advisory lock number, arbitrary but ours
_FOLDER = Path(__file__).parent
_MADE_AT = "2024-06-30 18:00:00+08"
_AREAS = service_areas()
_SHOPS = shops(_AREAS)
_MASTER_COLUMNS = {
    "company": "company_id company_name region founded_on is_deleted",
    "service_area": "service_area_id service_area_name company_id road_name province status "
    "parking_spaces opened_on is_deleted",
    "shop": "shop_id shop_name service_area_id category brand floor_area monthly_rent is_deleted",
}


class DemoServer(Protocol):
    """A PostgreSQL server that the demo can be put into."""

    @property
    def admin_url(self) -> str:
        """Return a superuser's URL of a database that is never dropped."""

    def url(self, dbname: str, user: str) -> str:
        """Return the URL of a database for a role."""


def ensure_demo(server: DemoServer, *, today: date | None = None) -> str:
    """Make the demo database, or append the days it lacks until yesterday; return the reader's
    URL.

    Args:
        today: the day after the last one with figures (default: the current date).

    Raises:
        psycopg2.Error: the server went away, or its disk is full. The next call goes on after the
            last complete step.
    """
    yesterday = (today or date.today()) - timedelta(days=1)
    with _connected(server) as admin, admin.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_lock(%s)", [_LOCK]
        )  # released when the connection closes
        create_reader(admin)
        cursor.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
            [DATABASE],
        )
        if cursor.fetchone() == (_fingerprint(),):
            _append(server, yesterday)
        else:
            _build(server, admin, yesterday)

    return server.url(DATABASE, READER)


def _fingerprint() -> str:
    """Return a digest of the sources, kept with the database: one that was made from other sources
    is made anew.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name in ("schema.sql", "network.py", "measurements.py", "reader.py"):
        digest.update((_FOLDER / name).read_bytes())

    return f"Citu demo {digest.hexdigest()}"


@contextmanager
def _connected(server: DemoServer, dbname: str | None = None) -> Iterator[Connection]:
    """Return a superuser's connection in autocommit mode."""
    dsn = make_dsn(server.admin_url, dbname=dbname) if dbname else server.admin_url
    with closing(psycopg2.connect(dsn)) as connection:
        connection.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
        yield connection


def _build(server: DemoServer, admin: Connection, yesterday: date) -> None:
    LOGGER.info("making the demo database")
    with admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {_BUILDING} WITH (FORCE)")
        cursor.execute(f"CREATE DATABASE {_BUILDING} TEMPLATE template0 ENCODING 'UTF8'")
        with _connected(server, _BUILDING) as building:
            _fill(building, [yesterday - timedelta(days=back) for back in reversed(range(DAYS))])

        cursor.execute(f"COMMENT ON DATABASE {_BUILDING} IS %s", [_fingerprint()])
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        cursor.execute(f"ALTER DATABASE {_BUILDING} RENAME TO {DATABASE}")


def _fill(building: Connection, days: list[date]) -> None:
    with building.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute((_FOLDER / "schema.sql").read_text(encoding="utf-8"))
        # The rows are known to refer to each other; checking each foreign key would take most of
        # the time.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, rows in (("company", COMPANIES), ("service_area", _AREAS), ("shop", _SHOPS)):
            _copy(cursor, table, _master_lines(table, rows))

        _copy_days(cursor, days)
        grant_reading(building)
        cursor.execute("COMMIT")
        cursor.execute("VACUUM (ANALYZE)")


def _append(server: DemoServer, yesterday: date) -> None:
    with _connected(server, DATABASE) as demo, demo.cursor() as cursor:
        cursor.execute(
            "SELECT greatest((SELECT max(revenue_date) FROM daily_revenue), max(traffic_date))"
            " FROM daily_traffic"
        )
        row = cursor.fetchone()
        last = row[0] if row and row[0] else yesterday - timedelta(days=DAYS)
        days = [last + timedelta(days=ahead) for ahead in range(1, (yesterday - last).days + 1)]
        if not days:
            return

        cursor.execute("BEGIN")
        _copy_days(cursor, days)
        cursor.execute("COMMIT")
        cursor.execute("ANALYZE daily_revenue, daily_traffic")


def _copy_days(cursor: Any, days: list[date]) -> None:
    _copy(
        cursor,
        "daily_revenue",
        chain.from_iterable(revenue_lines(day, _AREAS, _SHOPS) for day in days),
    )
    _copy(cursor, "daily_traffic", chain.from_iterable(traffic_lines(day, _AREAS) for day in days))


def _copy(cursor: Any, table: str, lines: Iterable[str]) -> None:
    cursor.copy_expert(f"COPY {table} FROM STDIN", io.StringIO("".join(lines)))


def _master_lines(table: str, rows: Iterable[Any]) -> Iterator[str]:
    columns = _MASTER_COLUMNS[table].split()
    for row in rows:
        values = [getattr(row, column) for column in columns]
        fields = [r"\N" if value is None else str(value) for value in values]
        line = "\t".join([*fields, _MADE_AT])
        yield f"{line}\n"
