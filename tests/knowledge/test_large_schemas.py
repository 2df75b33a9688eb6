"""Databases of thousands of tables: what is worked out of a catalogue grows with it, and is worked
out once.

Work is counted in calls of functions, which no other load of the machine changes.
"""

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.synthetic_schema import synthetic_catalog
from common.errors import InvalidSql
from common.inquiry import Inquiry
from common.values import Catalog, Column, Sql, Table
from databases.catalog.catalog import CatalogReader, Knowledge
from guard import BUILTIN
from knowledge.index import CatalogIndex, IndexPart, NotMade, index_of, make_elsewhere, renew
from knowledge.index_process import IndexProcesses
from knowledge.tables.name_suggestions import KNOWN_NAMES, suggested_names
from knowledge.tables.relevance import TableIndex
from knowledge.tables.schema_search import RANKING
from rules.schema import lexicon
from rules.schema.lexicon import LEXICON, Lexicon
from rules.skills import OfflineSkills
from tests.support.databases import Opener, as_admin, execute
from tests.support.effort import slow_beyond
from tests.support.live import ROOT
from tests.support.work import calls

SMALL, LARGE, HUGE = map(synthetic_catalog, (150, 500, 1500))
QUESTIONS = (
    "how many crm customers are there",
    "销售订单的金额",
    "name and status",
    "revenu by citty",
    "zzyx by citty",
)


def ask(question: str, catalog: Catalog) -> None:
    asyncio.run(OfflineSkills().write_sql(Inquiry(question, "en", catalog)))


@pytest.mark.slow
@pytest.mark.parametrize("made", [Lexicon, TableIndex])
def test_an_index_takes_time_in_proportion_to_the_tables(made: Callable[[Catalog], Any]) -> None:
    small, large = synthetic_catalog(100), synthetic_catalog(400)
    made(small)  # what is remembered of words is remembered for both
    assert calls(lambda: made(large)) < 6 * calls(lambda: made(small)), "four times the tables"


@pytest.mark.parametrize("question", slow_beyond(1, QUESTIONS))
def test_a_question_over_more_tables_takes_hardly_longer(question: str) -> None:
    costs = []
    for catalog in (LARGE, HUGE):
        LEXICON.of(catalog)
        ask(question, catalog)
        costs.append(calls(lambda catalog=catalog: ask(question, catalog)))  # type: ignore[misc]
    assert costs[1] < 2.5 * costs[0], "three times the tables"


def test_words_that_all_tables_share_take_hardly_longer_with_more_tables() -> None:
    costs = []
    for catalog in (LARGE, HUGE):
        LEXICON.of(catalog)
        costs.append(calls(lambda catalog=catalog: ask("code and city", catalog)))  # type: ignore[misc]
    assert costs[1] < 1.4 * costs[0], "three times the tables"


def test_of_very_many_columns_parts_of_names_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    parcels = Table(
        "public", "parcel", "table", (Column("id", "bigint"), Column("gross_weight", "numeric"))
    )
    assert Lexicon(Catalog((parcels,))).find("gross")
    monkeypatch.setattr(lexicon, "_MOST_NAMED_IN_PART", 1)
    crowded = Lexicon(Catalog((parcels,)))
    assert crowded.find("gross weight") and not crowded.find("gross")


def test_a_misspelt_table_is_found_among_thousands() -> None:
    error = InvalidSql('relation "crm_custmer" does not exist', sqlstate="42P01", position=15)
    sql = "SELECT * FROM crm_custmer"
    assert (
        suggested_names(error, sql, SMALL)[0]
        == suggested_names(error, sql, HUGE)[0]
        == "crm_customer"
    )
    assert calls(lambda: suggested_names(error, sql, HUGE)) < 4 * calls(
        lambda: suggested_names(error, sql, SMALL)
    )


def test_what_a_name_shared_by_thousands_means_is_told_by_the_table_beside_it() -> None:
    """More columns are called `created_at` than are looked at; the one meant is among them."""
    written = asyncio.run(
        OfflineSkills().write_sql(
            Inquiry("created_at of water_estate_room", "en", _with_last(LARGE))
        )
    )
    assert isinstance(written.value, Sql), written
    assert "FROM water_estate_room" in written.value.text and "created_at" in written.value.text


def _with_last(catalog: Catalog) -> Catalog:
    return replace(
        catalog, tables=(*catalog.tables, replace(catalog.tables[0], name="water_estate_room"))
    )


# ------------------------------------------------------------------------------
# once


def test_waiting_questions_share_one_index_and_others_go_on() -> None:
    began, go_on, made = threading.Event(), threading.Event(), []

    def make(index: CatalogIndex) -> object:
        made.append(index)
        began.set()
        assert go_on.wait(60), "the event loop does not go on"
        return object()

    async def main() -> None:
        part, catalog = IndexPart(make), Catalog(())
        waiting = [asyncio.create_task(part.ready(catalog)) for _ in range(100)]
        assert await asyncio.to_thread(began.wait, 10)
        waiting[0].cancel()
        go_on.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError)
        assert len(made) == 1 and set(found[1:]) == {part.of(catalog)}

    asyncio.run(main())


def test_a_process_of_its_own_makes_the_index_of_a_large_catalogue(tmp_path: Path) -> None:
    catalog = replace(SMALL)
    index, folder = index_of(catalog), tmp_path / "index"
    with pytest.raises(NotMade):
        IndexProcesses(folder).made(LEXICON, index)  # it is small
    processes = IndexProcesses(folder, least_tables=len(SMALL.tables))
    ranking: TableIndex = processes.made(RANKING, index)
    found: Lexicon = processes.made(LEXICON, index)
    for question in QUESTIONS:
        tables = ranking.ranked(question, 5)
        assert tables == RANKING.of(catalog).ranked(question, 5)
        assert {id(table) for table in tables} <= {id(table) for table in catalog.tables}
    for name in ("status", "customer name", "订单", "order"):
        assert found.find(name) == LEXICON.of(catalog).find(name) != ()
    other = index_of(Catalog(tuple(replace(table, row_estimate=7) for table in SMALL.tables)))
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}
    again: Lexicon = IndexProcesses(folder, 1).made(LEXICON, other)
    assert again.find("status") == found.find("status")
    assert before == {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}, (
        "another worker reads what is there, whatever the numbers of rows"
    )
    assert {oct(path.stat().st_mode & 0o077) for path in (folder, *folder.iterdir())} == {"0o0"}


def test_an_index_that_no_process_gives_is_made_by_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    processes = IndexProcesses(tmp_path / "file" / "index", least_tables=1)
    monkeypatch.setattr("knowledge.index._ELSEWHERE", [])
    make_elsewhere(processes.made)
    assert LEXICON.of(replace(SMALL)).find("status")


ENDLESS = IndexPart(lambda _: threading.Event().wait())


def test_the_process_of_an_index_ends_with_its_parent(tmp_path: Path) -> None:
    words = ["-m", "knowledge.index_process", str(tmp_path), f"{__name__}:ENDLESS"]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(Catalog(())))
    process.stdin.close()  # as when the parent is killed
    assert process.wait(60) == 1


def test_an_index_goes_with_its_catalogue() -> None:
    part = IndexPart(lambda index: TableIndex(index.catalog))
    catalog = replace(SMALL)
    made = weakref.ref(part.of(catalog))
    assert part.of(catalog) is made() is part.of(index_of(catalog).catalog), (
        "parts may ask for each other"
    )
    del catalog
    assert made() is None
    assert index_of(replace(SMALL)).parts == ()


def test_a_catalogue_that_says_the_same_keeps_its_objects() -> None:
    read = [Knowledge(replace(SMALL), replace(BUILTIN)) for _ in range(3)]
    read.append(Knowledge(Catalog(SMALL.tables[:-1]), replace(BUILTIN)))

    async def load() -> Knowledge:
        return read.pop(0)

    async def main() -> None:
        reader = CatalogReader(load, ttl_s=-1)  # always out of date
        first = await reader.get()
        assert await reader.get() is first and await reader.get() is first
        changed = await reader.get()
        assert changed.facts is first.facts, "the guard's verdicts stay"
        assert len(changed.catalog.tables) == len(SMALL.tables) - 1
        assert changed.catalog.tables[0] is first.catalog.tables[0], (
            "what has not changed is held once"
        )

    asyncio.run(main())


def test_words_stay_when_only_rows_were_counted() -> None:
    counted = Catalog(tuple(replace(table, row_estimate=7) for table in SMALL.tables))
    changed = Catalog((replace(SMALL.tables[0], comment="renamed"), *SMALL.tables[1:]))

    async def main() -> None:
        for catalog in (counted, changed):
            await renew(catalog, SMALL)

    lexicon = LEXICON.of(SMALL)
    asyncio.run(main())
    assert LEXICON.of(counted) is lexicon
    assert LEXICON.of(changed) is not lexicon


def test_while_a_changed_catalogue_is_prepared_the_one_before_answers(
    make_database: Callable[[str], str], admin_url: str, opened: Opener
) -> None:
    """The work for the new one is held up until questions have been answered."""
    url = make_database("CREATE TABLE one (n integer)")
    go_on, made = threading.Event(), []

    def make(index: CatalogIndex) -> Catalog:
        made.append(len(index.catalog.tables))
        assert made == [1] or go_on.wait(60), "questions wait"
        return index.catalog

    async def main() -> None:
        rules, part = OfflineSkills(), IndexPart(make)
        database = opened(url, catalog_ttl_s=0.001, prepare=renew)
        before = await database.catalog()
        await part.ready(before)
        for _ in range(20):
            await asyncio.sleep(0.001)
            assert await database.catalog() is before
        assert made == [1], "nothing has changed"
        grant = "GRANT SELECT ON two TO PUBLIC"
        await asyncio.to_thread(
            execute, as_admin(url, admin_url), "CREATE TABLE two (n integer)", grant
        )
        while made == [1]:
            await database.catalog()
        catalog = await database.catalog()
        written = await rules.write_sql(Inquiry("how many one are there", "en", catalog))
        assert catalog is before and isinstance(written.value, Sql), written
        go_on.set()
        async with asyncio.timeout(10):
            while (catalog := await database.catalog()) is before:  # noqa: ASYNC110 - nobody is told of it
                await asyncio.sleep(0)
        assert len(catalog.tables) == 2 and made == [1, 2]
        assert part in index_of(catalog).parts and await part.ready(catalog) is not before

    asyncio.run(main())


def test_what_questions_leave_behind_does_not_keep_an_index() -> None:
    """Errors that were caught may keep a question, and its catalogue, until garbage is collected:
    not for longer.
    """
    catalog = replace(SMALL)
    known = [weakref.ref(part.of(catalog)) for part in (LEXICON, KNOWN_NAMES, RANKING)]
    for question in ("zzyx by citty", "hello"):
        ask(question, catalog)
    asyncio.run(renew(replace(catalog, tables=catalog.tables[1:]), catalog))
    del catalog
    gc.collect()
    assert [one() for one in known] == [None] * 3


def test_a_part_that_fails_is_tried_again() -> None:
    tries = []

    def make(index: CatalogIndex) -> object:
        tries.append(index)
        if len(tries) == 1:
            raise ValueError("not now")
        return object()

    async def main() -> None:
        part = IndexPart(make)
        with pytest.raises(ValueError, match="not now"):
            await part.ready(SMALL)
        assert await part.ready(SMALL) is part.of(SMALL)
        assert len(tries) == 2

    asyncio.run(main())
