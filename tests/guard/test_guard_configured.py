"""What operators may change about the guard, what it reports, and what extensions it trusts."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from common.errors import ForbiddenObject, ForbiddenStatement, InvalidSql
from databases.execution.guarded import GuardedDatabase
from guard import Guard
from tests.support.databases import as_admin, execute, open_asked, rows_of, run
from tests.support.guarded_statements import REJECTED, SCHEMA


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(SCHEMA)


@pytest.mark.parametrize(
    "sql", [case.sql for case in REJECTED if case.named in ("DELETE", "COPY", "SELECT INTO")]
)
def test_structure_is_judged_with_the_forbidden_check_off(sql: str) -> None:
    with pytest.raises(ForbiddenStatement):
        Guard(forbidden_check=False).check(sql)


def test_without_the_forbidden_check_a_query_is_one_statement_in_a_transaction_that_can_not_write(
    url: str, admin_url: str
) -> None:
    database = open_asked(as_admin(url, admin_url), forbidden_check=False)
    assert run(database, "SELECT current_user, pg_sleep(0)").row_count == 1
    for sql in (
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE customer",
        "COMMIT",
        "EXPLAIN SELECT 1",
    ):
        with pytest.raises(ForbiddenStatement):
            run(database, sql)
    with pytest.raises(ForbiddenStatement, match="INSERT"):
        run(database, "SELECT note('x')")
    assert rows_of(as_admin(url, admin_url), "SELECT count(*) FROM journal") == [(0,)]
    database.close()


@pytest.mark.parametrize("allowed", ["twice", "public.twice", "public.*"])
def test_allowed_functions(url: str, admin_url: str, allowed: str) -> None:
    database = open_asked(as_admin(url, admin_url), allowed_functions=[allowed])
    assert run(database, "SELECT twice(2), public.twice(3)").rows == ([4, 6],)
    with pytest.raises(ForbiddenObject, match=r"sales\.note"):
        run(database, "SELECT sales.note('x')")
    with pytest.raises(ForbiddenObject, match="pg_sleep"):
        run(database, "SELECT pg_sleep(0)")
    database.close()


def test_an_allowed_function_may_be_written_like_a_column(url: str, admin_url: str) -> None:
    database = open_asked(as_admin(url, admin_url), allowed_functions=["public.wipe"])
    with pytest.raises(
        ForbiddenStatement, match="DELETE"
    ):  # the guard lets it, the transaction does not
        run(database, "SELECT c.wipe FROM customer c")
    database.close()


def test_a_built_in_may_be_allowed_too(url: str) -> None:
    database = open_asked(url, allowed_functions=["pg_catalog.version"])
    assert "PostgreSQL" in str(run(database, "SELECT version()").rows)
    database.close()


def test_inspection() -> None:
    found = Guard().inspect(
        "WITH a AS (SELECT id FROM sales.region) SELECT lower(c.name), count(*), c.*"
        " FROM customer c JOIN a USING (id) JOIN customer d ON d.id = c.id ; -- the end"
    )
    assert found.statement.rstrip().endswith("d.id = c.id")
    assert found.tables == ("customer", "sales.region")
    assert found.functions == ("count", "lower")
    assert found.columns == ("c.*", "c.id", "c.name", "d.id", "id")


def test_positions_and_statements_are_the_user_s() -> None:
    assert Guard().inspect("  SELECT '文' ;  ").statement.rstrip() == "  SELECT '文'"


# ------------------------------------------------------------------------------
# extensions


@pytest.fixture(scope="module")
def extended(url: str, admin_url: str) -> Iterator[GuardedDatabase]:
    if not rows_of(admin_url, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        pytest.skip("this server has no pgvector")
    execute(
        as_admin(url, admin_url),
        "CREATE EXTENSION vector",
        "CREATE TABLE item (v vector(2))",
        "INSERT INTO item VALUES ('[1,2]'), ('[3,4]')",
        "GRANT SELECT ON item TO PUBLIC",
        "CREATE TABLE extension_secret (token text)",
        "ALTER EXTENSION vector ADD TABLE extension_secret",
        "GRANT SELECT ON extension_secret TO PUBLIC",
    )
    database = open_asked(url)
    asyncio.run(database.catalog())
    yield database
    database.close()


def test_types_operators_and_aggregates_of_extensions_are_usable(extended: GuardedDatabase) -> None:
    sql = "SELECT v, v <-> '[1,2]'::vector AS d FROM item ORDER BY v <-> '[1,2]' LIMIT 1"
    assert run(extended, sql).rows == (["[1,2]", 0.0],)
    assert run(extended, "SELECT avg(v) FROM item").rows == (["[2,3]"],)


def test_functions_of_extensions_are_not(extended: GuardedDatabase) -> None:
    with pytest.raises(ForbiddenObject, match="l2_distance"):
        run(extended, "SELECT l2_distance(v, v) FROM item")


def test_tables_of_extensions_are_not(extended: GuardedDatabase) -> None:
    for sql in ("SELECT * FROM extension_secret", "SELECT * FROM public.extension_secret"):
        with pytest.raises(ForbiddenObject, match="extension_secret"):
            run(extended, sql)
    assert "extension_secret" not in {
        table.name for table in asyncio.run(extended.catalog()).tables
    }


def test_what_does_not_exist_may_be_mended(extended: GuardedDatabase) -> None:
    for sql in (
        "SELECT datediff('day', a, b) FROM item",
        "SELECT public.nope(1)",
        "SELECT nvl(1, 2)",
    ):
        with pytest.raises(InvalidSql) as caught:
            extended.check(sql)
        assert caught.value.sqlstate == "42883"
        assert caught.value.position == 8
