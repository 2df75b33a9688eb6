"""Databases that questions are asked about, with a connection to compare rows on."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache

import psycopg2

from common.values import Catalog
from tests.support.databases import open_asked

SCHEMAS = ("store", "music", "hr", "clinic", "univ", "lib", "bike", "mall", "iot", "crm")


class QuestionDatabase:
    """A database as the rules see it, and a connection to compare on."""

    def __init__(
        self, url: str, meant: Callable[[Catalog], Catalog] = lambda catalog: catalog
    ) -> None:
        self.database = open_asked(url, pool_size=1, max_rows=10_000, max_result_bytes=10_000_000)
        self.catalog: Catalog = meant(asyncio.run(self.database.catalog()))
        self._connection = psycopg2.connect(url)
        self._connection.autocommit = True

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Return all rows of a statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def close(self) -> None:
        """Close the connections."""
        self.database.close()
        self._connection.close()


@contextmanager
def foreign_databases(
    offline_database: Callable[[str], str],
) -> Iterator[Callable[[str], QuestionDatabase]]:
    """Open databases by the name of their fixture when they are first asked for, and close them."""
    with ExitStack() as opened:

        @cache
        def get(name: str) -> QuestionDatabase:
            return opened.enter_context(closing(QuestionDatabase(offline_database(name))))

        yield get
