"""Row rules in place of policies: the same rows, whatever the statement, and nothing of the others anywhere."""

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest

from tests.cases import all_cases
from tests.conftest import alone
from tests.databases import as_admin
from tests.row_rules import CANARIES, FOLDER, Bench, bench, known_of, prepare, statements

KINDS = ("plain", "joins", "subqueries", "ctes", "aggregates", "rows", "names", "raising", "relatives", "ordered")
MOST_REFUSED = 0.05


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str], admin_url: str) -> str:
    url = make_database((FOLDER / "schema.sql").read_text("utf-8"))
    with alone():
        prepare(as_admin(url, admin_url))
    return url


@pytest.fixture(scope="module")
def ann(url: str, admin_url: str) -> Iterator[Bench]:
    with closing(psycopg2.connect(as_admin(url, admin_url))) as connection:
        connection.autocommit = True
        yield bench(connection, known_of(url))
