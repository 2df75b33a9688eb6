"""Sixty questions over four databases and a workbook, attached to one hub."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
import xlsxwriter

from app_config import Settings
from databases.demo.loader import DemoServer
from databases.demo.reader import READER, grant_reading
from tests.support.asking import Asking
from tests.support.cases import all_cases
from tests.support.databases import Opener, as_admin, rows_of
from tests.support.folders import reachable_folder
from tests.support.hub_server import HubWorld, hub_server, make_hub, make_source
from tests.support.offline_questions import FIXTURES, cases_of, same_rows

FOLDER = FIXTURES / "sources"
SOURCES = ("crm", "shop", "hr", "erp")
BOOK = "book"
SHEETS = {"targets": ("category", "month", "target"), "areas": ("country", "region", "manager")}
QUESTIONS = cases_of(FOLDER / "questions.sql")
# Those that the rules don't read, or not as they were meant.
_MOST_REFUSED, _MOST_WRONG = 9, 1


def _ddl(name: str) -> str:
    return (FOLDER / f"{name}.sql").read_text("utf-8")


@pytest.fixture(scope="module")
def server(embedded_server: DemoServer) -> Iterator[DemoServer]:
    with reachable_folder() as folder, hub_server(folder, embedded_server) as server:
        yield server


@pytest.fixture(scope="module")
def whole(server: DemoServer) -> str:
    """Give a database that has all tables itself, in schemas called as the sources."""
    parts = [
        f"CREATE SCHEMA {name}; SET search_path = {name}; {_ddl(name)}" for name in (*SOURCES, BOOK)
    ]
    return make_source(server, "; ".join(parts))


@pytest.fixture(scope="module")
def asking(server: DemoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """Ask a hub with the sources, and with the workbook that was brought to the workspace."""
    world = make_hub(server, {name: _ddl(name) for name in SOURCES})
    workspace = make_source(server, "")
    settings = Settings(
        database_url=world.url,
        workspace_url=as_admin(workspace, server.admin_url),
        data_dir=str(tmp_path_factory.mktemp("hub")),
        audit_log="off",
    )
    with Asking(settings) as asking:
        _bring(asking, _workbook(server))
        _attach_files(world, workspace)
        yield asking


def _workbook(server: DemoServer) -> bytes:
    """Return a workbook with a sheet for each table of the fixture."""
    url = make_source(server, _ddl(BOOK))
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"remove_timezone": True}) as book:
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        for table, columns in SHEETS.items():
            sheet = book.add_worksheet(table)
            rows = [columns, *rows_of(url, f"SELECT {', '.join(columns)} FROM {table}")]
            for at, row in enumerate(rows):
                for place, value in enumerate(row):
                    is_date = at > 0 and columns[place] == "month"
                    sheet.write(at, place, value, date if is_date else None)

    return content.getvalue()


def _bring(asking: Asking, workbook: bytes) -> None:
    """Load the workbook as its user confirms it: the country is the key of the areas."""
    sent = {"file": (io.BytesIO(workbook), "book.xlsx")}
    draft = asking.client.post("/api/v0/files", data=sent).get_json()["data"]
    said = [
        {"sheet": table["sheet"], "key": "country"}
        for table in draft["tables"]
        if table["name"] == "areas"
    ]
    confirm = f"/api/v0/files/{draft['id']}/confirm"
    loaded = asking.client.post(confirm, json={"tables": said}).get_json()["data"]
    assert [table["rows"] for table in loaded["tables"]] == [24, 5]


def _attach_files(world: HubWorld, workspace: str) -> None:
    with closing(psycopg2.connect(as_admin(workspace, world.admin_url))) as admin:
        admin.autocommit = True
        grant_reading(admin)
        with admin.cursor() as cursor:
            cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'files%'")
            ((schema,),) = cursor.fetchall()

    attach = ("attach", BOOK, workspace, "--schemas", schema, "--reader", READER)
    assert world.hub(*attach) == 0


@pytest.mark.slow
def test_statements_over_several_sources_give_what_one_database_gives(
    asking: Asking, whole: str, opened: Opener
) -> None:
    hub = opened(asking.services.asked.all()[0].datasource.source, max_rows=1_000)
    one = opened(whole, max_rows=1_000)

    async def ask_all() -> None:
        with all_cases() as cases:
            for _, gold in QUESTIONS:
                with cases.case(gold):
                    found, expected = await hub.run(gold), await one.run(gold)
                    assert same_rows(expected.rows, found.rows)

    asyncio.run(ask_all())
    assert len(QUESTIONS) == 60


@pytest.mark.slow
def test_questions_over_several_sources_are_answered_by_the_rules(
    asking: Asking, whole: str
) -> None:
    refused, wrong = [], []
    for question, gold in QUESTIONS:
        _, envelope = asking.sync({"question": question, "database": "default"})
        result = envelope["data"].get("query_result")
        if result is None:
            refused.append(question)
        elif not same_rows([list(row) for row in rows_of(whole, gold)], result["rows"]):
            wrong.append(question)

    assert len(refused) <= _MOST_REFUSED, refused
    assert len(wrong) <= _MOST_WRONG, wrong
