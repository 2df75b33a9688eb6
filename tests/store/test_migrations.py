"""The migrations of the PostgreSQL store, also of databases that earlier versions made."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import StoreUnavailable
from common.values import Turn
from store import EventFrame, Retention, RunEnd, RunHead, RunWrite, Store
from store.open_store import BACKENDS
from store.postgres_schema import MIGRATIONS
from tests.support.databases import execute, rows_of
from tests.support.store_servers import PATIENT_S, play

_RELEASED = Path(__file__).parents[1] / "fixtures" / "store" / "released_schema.sql"
_LAST_UNRECORDED = 5  # up to here, databases may have one row for all migrations

# What a schema consists of, apart from how its migrations are recorded.
_CATALOG = """
SELECT 'column', attrelid::regclass::text, attname::text,
    format_type(atttypid, atttypmod), attnotnull::text, pg_get_expr(adbin, adrelid)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = 'citu'::regnamespace AND relkind = 'r' AND relname <> 'version'
    AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'table', relname, reloptions::text, NULL, NULL, NULL FROM pg_class
WHERE relnamespace = 'citu'::regnamespace AND relkind = 'r' AND relname <> 'version'
UNION ALL
SELECT 'index', indexname, indexdef, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'citu'
UNION ALL
SELECT 'constraint', conname, pg_get_constraintdef(oid), NULL, NULL, NULL FROM pg_constraint
WHERE connamespace = 'citu'::regnamespace
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid), NULL, NULL, NULL FROM pg_proc
WHERE pronamespace = 'citu'::regnamespace
"""
_RECORDED = "SELECT version, name FROM citu.version ORDER BY version"
_ALL_RECORDED = [(each.number, each.name) for each in MIGRATIONS]


def _catalog(url: str) -> list[tuple[str, ...]]:
    """What is in the schema, however the text of its functions is wrapped."""
    found = rows_of(url, _CATALOG)
    return sorted(tuple(_unwrapped(value) for value in row) for row in found)


def _unwrapped(value: str | None) -> str:
    joined = re.sub(r"\s+", " ", value or "")
    return re.sub(r" ?([(),]) ?", r"\1", joined)


def _make_up_to(url: str, number: int) -> None:
    """The tables as a version of Citu made them that knew so many migrations."""
    execute(url, "CREATE SCHEMA citu; CREATE TABLE citu.version (version integer NOT NULL)")
    for migration in MIGRATIONS[:number]:
        execute(url, migration.sql())
    execute(url, f"INSERT INTO citu.version VALUES ({number})")


def _open(url: str) -> Store:
    return BACKENDS["postgresql"](lambda: url, Retention(), PATIENT_S)


async def _ask(store: Store, run_id: str) -> None:
    asked_at = "2026-01-02T03:04:05.678+00:00"
    head = RunHead(run_id, "user", "c", run_id, "en", "worker", asked_at)
    turn = Turn(run_id, run_id, "CHAT", "hybrid", "!", asked_at)
    await store.runs.write([RunWrite(head, (EventFrame(1, b"{}"),), RunEnd("completed", turn))])


async def _questions(store: Store) -> set[str]:
    return {turn.question for turn in await store.conversations.recent("user", "c", 50)}


def test_migrations_are_numbered_without_gaps() -> None:
    assert [each.number for each in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
    assert all(re.fullmatch(r"\d{3}(_[a-z]+)+", each.name) for each in MIGRATIONS)


def test_migrations_make_what_was_released(make_app_database: Callable[[], str]) -> None:
    released, made = make_app_database(), make_app_database()
    execute(released, _RELEASED.read_text("utf-8"))
    _make_up_to(made, _LAST_UNRECORDED)
    assert _catalog(made) == _catalog(released)


def test_a_database_of_the_release_before_the_files_goes_on(
    make_app_database: Callable[[], str],
) -> None:
    url = make_app_database()
    execute(url, _RELEASED.read_text("utf-8"))
    later = [(each.number, each.name) for each in MIGRATIONS[_LAST_UNRECORDED:]]

    async def scenario(*stores: Store) -> None:
        await asyncio.gather(*(_ask(store, f"r{n}") for n, store in enumerate(stores)))
        assert await _questions(stores[0]) == {"r0", "r1", "r2"}

    play(scenario, *(_open(url) for _ in range(3)))
    numbers = [number for number, *_ in rows_of(url, "SELECT version FROM citu.version")]
    assert sorted(numbers) == [_LAST_UNRECORDED, *(number for number, _ in later)]


@pytest.mark.parametrize("number", range(_LAST_UNRECORDED))
def test_processes_that_start_at_once_apply_each_missing_migration_once(
    make_app_database: Callable[[], str], number: int
) -> None:
    url = make_app_database()
    if number:
        _make_up_to(url, number)

    async def scenario(*stores: Store) -> None:
        await asyncio.gather(*(_ask(store, f"r{n}") for n, store in enumerate(stores)))
        assert len(await _questions(stores[0])) == len(stores)

    play(scenario, *(_open(url) for _ in range(4)))
    unrecorded = [(number, None)] if number else []
    assert rows_of(url, _RECORDED) == [*unrecorded, *_ALL_RECORDED[number:]]


def test_migrations_take_nothing_away_that_older_versions_write_or_read(
    make_app_database: Callable[[], str],
) -> None:
    """Else an older version, still running beside or started again, would fail on the tables."""
    url = make_app_database()
    _make_up_to(url, _LAST_UNRECORDED)
    before = _columns(url)
    for migration in MIGRATIONS[_LAST_UNRECORDED:]:
        execute(url, migration.sql())
        after = _columns(url)
        assert before.items() <= after.items(), migration.name
        known = {table for table, _ in before}
        for (table, column), (_, is_needed, default) in after.items():
            is_new = (table, column) not in before
            has_value = is_needed == "false" or default
            assert not (is_new and table in known) or has_value, (table, column)

        before = after


def _columns(url: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """Each column with its type, whether it needs a value, and its default."""
    found = [row for row in _catalog(url) if row[0] == "column"]
    return {(table, column): tuple(more) for _, table, column, *more in found}


def test_a_migration_that_fails_leaves_nothing_behind(
    make_app_database: Callable[[], str],
) -> None:
    url = make_app_database()
    _make_up_to(url, 1)
    execute(url, "CREATE TABLE citu.shelf (shelf text)")  # in the way of the last one
    before = _catalog(url)

    async def scenario(store: Store) -> None:
        with pytest.raises(StoreUnavailable):
            await store.ping()

    play(scenario, _open(url))
    assert _catalog(url) == before
    assert rows_of(url, "SELECT version FROM citu.version") == [(1,)]
