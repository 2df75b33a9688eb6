"""Reports of the semantic file over a table of a file that somebody brought, attached to a hub."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from app_config import Settings
from databases.demo.loader import DemoServer
from databases.demo.reader import READER
from tests.support.asking import Asking
from tests.support.databases import as_admin, execute, rows_of
from tests.support.folders import reachable_folder
from tests.support.hub_server import HubWorld, hub_server, make_hub, make_source

REPORT = """
reports:
  target_sum:
    names: {en: sum of targets}
    sql: SELECT sum(target) AS total FROM book.targets
"""


@pytest.fixture(scope="module")
def server(embedded_server: DemoServer) -> Iterator[DemoServer]:
    with reachable_folder() as folder, hub_server(folder, embedded_server) as server:
        yield server


@pytest.fixture
def world(server: DemoServer) -> HubWorld:
    return make_hub(server, {})


@pytest.fixture
def workspace(server: DemoServer) -> str:
    return make_source(server, "")


@pytest.fixture
def asking(
    world: HubWorld, workspace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asking]:
    folder = tmp_path_factory.mktemp("reports")
    meanings = folder / "semantic.yaml"
    meanings.write_text(f"version: 1\n{REPORT}", "utf-8")
    settings = Settings(
        database_url=world.url,
        workspace_url=as_admin(workspace, world.admin_url),
        semantic_file=str(meanings),
        data_dir=str(folder),
        audit_log="off",
    )
    with Asking(settings) as asking:
        yield asking


def _sent(asking: Asking, path: str, content: str) -> Mapping[str, Any]:
    """Send a file and confirm what was guessed of it; return the file."""
    sent = {"file": (io.BytesIO(content.encode()), "targets.csv")}
    draft = asking.client.post(path, data=sent).get_json()["data"]
    confirm = f"/api/v0/files/{draft['id']}/confirm"
    answer = asking.client.post(confirm, json={}).get_json()
    assert answer["success"], answer
    found: Mapping[str, Any] = answer["data"]
    return found


def _reported(asking: Asking) -> tuple[object, str]:
    """Return the report's figure, None without one, and what the answer says."""
    _, envelope = asking.sync({"question": "/report target_sum", "database": "default"})
    data = envelope["data"]
    result = data.get("query_result")
    return (None if result is None else result["rows"][0][0]), str(
        data.get("response") or data.get("error") or envelope["message"]
    )


@pytest.mark.slow
def test_a_report_follows_the_file_that_its_table_comes_from(
    asking: Asking, world: HubWorld, workspace: str
) -> None:
    file = _sent(asking, "/api/v0/files", "area,target\nnorth,10\nsouth,20\n")
    ((schema,),) = rows_of(
        as_admin(workspace, world.admin_url),
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'files%'",
    )
    admin = as_admin(workspace, world.admin_url)
    execute(admin, f"GRANT USAGE ON SCHEMA {schema} TO {READER}")
    execute(admin, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {READER}")
    assert world.hub("attach", "book", workspace, "--schemas", schema, "--reader", READER) == 0
    changes = f"/api/v0/files/{file['id']}"
    assert _reported(asking)[0] == 30
    for way, content, figure, said in (
        ("append", "area,target\neast,5\n", 35, "35"),
        ("replace", "area,target\nwest,7\n", 7, "7"),
        ("replace", "area,target,more\nwest,8,x\n", 8, "8"),
        ("replace", "area,goal\nwest,8\n", None, 'column "target" does not exist'),
        ("replace", "area,target\nwest,9\n", 9, "9"),
    ):
        _sent(asking, f"{changes}/{way}", content)
        found, answer = _reported(asking)
        assert (found, said in answer) == (figure, True), (way, content, answer)

    assert asking.client.delete(changes).status_code == 200
    assert "its file may have been deleted" in _reported(asking)[1]
    assert world.hub("refresh") == 0
    assert _reported(asking)[0] is None
