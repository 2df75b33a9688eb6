"""Files over HTTP: drafts, tables that are asked like any database, and whose they are."""

import io
import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from tests.support.api_schemas import check_schema
from tests.support.asking import SYNC, Asking
from tests.support.databases import rows_of

FILES = "/api/v0/files"
SALES = "区域,日期,金额\n北京,2024-01-05,1200\n上海,2024-02-05,300\n"
CANARIES = ("canary_wages", "canary_person", "Zanzibar77", "987654")
WAGES = "canary_person,amount\nZanzibar77,987654\nOther,5\n"


@pytest.fixture(scope="module")
def settings(
    make_app_database: Callable[[], str],
    make_database: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Settings:
    """A shop, a workspace, and callers with keys."""
    folder = tmp_path_factory.mktemp("files")
    shop = make_database(
        "CREATE TABLE product (product_id int PRIMARY KEY, colour text, weight numeric);"
        "INSERT INTO product VALUES (1, 'red', 5), (2, 'blue', 7);"
    )
    return Settings(
        database_url=shop,
        workspace_url=make_app_database(),
        data_dir=str(folder),
        max_file_bytes=300_000,
        file_tables_per_owner=4,
        reviewer_groups="review",
        audit_log=str(folder / "audit.jsonl"),
    )


@pytest.fixture(scope="module")
def asking(settings: Settings) -> Iterator[Asking]:
    with Asking(settings) as asking:
        yield asking


class Caller:
    """Somebody with a key."""

    def __init__(self, asking: Asking, key: str) -> None:
        self._client = asking.client
        self._headers = {"Authorization": f"Bearer {key}", "Accept-Language": "en"}

    def call(self, method: str, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        """Return status and data; every answer obeys openapi.json."""
        with self._client.open(path, method=method, headers=self._headers, **options) as response:
            envelope = json.loads(response.get_data())
            return response.status_code, envelope["data"]

    def bring(
        self, text: str | bytes, name: str = "sales.csv", path: str = FILES
    ) -> tuple[int, dict[str, Any]]:
        content = text.encode() if isinstance(text, str) else text
        return self.call("POST", path, data={"file": (io.BytesIO(content), name)})

    def confirm(self, draft: dict[str, Any], **body: Any) -> dict[str, Any]:
        status, data = self.call("POST", f"{FILES}/{draft['id']}/confirm", json=body)
        assert status == 200, data
        check_schema("File", data)
        return data

    def load(self, text: str | bytes, name: str = "sales.csv", **body: Any) -> dict[str, Any]:
        status, draft = self.bring(text, name)
        assert status == 201, draft
        check_schema("FileDraft", draft)
        return self.confirm(draft, **body)

    def ask(self, question: str, **fields: Any) -> dict[str, Any]:
        status, data = self.call("POST", SYNC, json={"question": question, **fields})
        assert status == 200, data
        return data

    def run(self, sql: str) -> tuple[int, dict[str, Any]]:
        return self.call("POST", "/api/v0/sql/run", json={"sql": sql, "database": "files"})

    def databases(self) -> dict[str, dict[str, Any]]:
        _, data = self.call("GET", "/api/v0/databases")
        return {database["name"]: database for database in data["databases"]}


@pytest.fixture
def callers(asking: Asking, settings: Settings) -> Iterator[Callable[..., Caller]]:
    """Make callers by name and groups; their files are deleted afterwards."""
    made: list[Caller] = []

    def make(name: str, *groups: str) -> Caller:
        key, _ = KeyFile(settings.api_keys_path).create(name, groups=groups)
        made.append(Caller(asking, key))
        return made[-1]

    yield make
    for caller in made:
        _, listed = caller.call("GET", FILES)
        for file in [*listed["files"], *listed["drafts"]]:
            if file["is_own"]:
                assert caller.call("DELETE", f"{FILES}/{file['id']}")[0] == 200


def _left(settings: Settings) -> list[Any]:
    """Tables in the workspace, and uploads on disk."""
    tables = rows_of(
        settings.workspace_url,
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'files%'",
    )
    folder = Path(settings.data_dir) / "files"
    uploads = [str(path) for path in folder.rglob("*") if path.is_file() and path.name != "used"]
    return [*tables, *uploads]


def test_a_file_is_asked_like_any_database(callers: Callable[..., Caller]) -> None:
    alice = callers("alice")
    assert alice.databases().keys() == {"default"}
    assert alice.databases()["default"]["label"] == "Main database"
    before = alice.ask("how many products are there")
    assert "database" not in before
    file = alice.load(SALES.encode("gbk"), "销售.csv")
    (table,) = file["tables"]
    assert (table["name"], table["rows"]) == ("销售", 2)
    assert alice.databases()["files"]["tables"] == 1
    answer = alice.ask("各区域的金额合计")
    assert answer["database"] == {"name": "files", "source": "words"}
    assert answer["query_result"]["rows"] == [["北京", 1200], ["上海", 300]]
    status, export = 0, b""
    path = f"/api/v0/runs/{answer['run_id']}/export?format=csv"
    with alice._client.get(path, headers=alice._headers) as response:
        status, export = response.status_code, response.get_data()
    assert status == 200
    assert "北京,1200" in export.decode("utf-8-sig")
    _, described = alice.call("GET", "/api/v0/schema/tables/销售?database=files")
    assert "区域" in json.dumps(described, ensure_ascii=False)
    assert alice.ask("how many products are there")["database"]["name"] == "default"
    status, refused = alice.run('DELETE FROM "销售"')
    assert status in (400, 403, 422), refused


def test_a_draft_is_corrected_and_then_loaded_as_said(callers: Callable[..., Caller]) -> None:
    alice = callers("alice")
    status, draft = alice.bring("report,,\nNo.;x,When,How much\n7,05/01/2024,1\n8,06/01/2024,x\n")
    assert status == 201
    corrections = [
        {
            "sheet": "0",
            "name": "orders",
            "header_row": 2,
            "delimiter": "comma",
            "key": "order_no",
            "columns": [
                {"place": 0, "name": "order_no"},
                {"place": 1, "type": "date"},
                {"place": 2, "name": "price", "type": "numeric"},
            ],
        }
    ]
    status, draft = alice.call("PATCH", f"{FILES}/{draft['id']}", json={"tables": corrections})
    assert status == 200, draft
    check_schema("FileDraft", draft)
    (table,) = draft["tables"]
    assert (table["name"], table["key"]) == ("orders", "order_no")
    assert table["columns"][2]["problems"][0]["rows"] == [4]
    file = alice.confirm(draft)
    assert file["loaded"][0]["left_out"] == [{"column": "price", "count": 1, "rows": [4]}]
    status, rows = alice.run("SELECT order_no, price FROM orders ORDER BY order_no")
    assert status == 200
    assert rows["query_result"]["rows"] == [[7, 1], [8, None]]
    for wrong in (
        {"sheet": "9"},
        {"sheet": "0", "name": "Bad Name"},
        {"sheet": "0", "key": "nothing"},
        {"sheet": "0", "columns": [{"place": 9}]},
        {"sheet": "0", "columns": [{"place": 0, "type": "bytea"}]},
    ):
        _, draft = alice.bring(SALES)
        status, refused = alice.call("PATCH", f"{FILES}/{draft['id']}", json={"tables": [wrong]})
        assert (status, refused["error_type"]) == (400, "invalid_request")
        alice.call("DELETE", f"{FILES}/{draft['id']}")


def test_rows_are_replaced_and_appended_with_the_differences_shown_first(
    callers: Callable[..., Caller],
) -> None:
    alice = callers("alice")
    file = alice.load(SALES)
    path = f"{FILES}/{file['id']}"
    status, draft = alice.bring("金额,区域,备注\n5.5,广州,新\n", "b.csv", f"{path}/append")
    assert status == 201, draft
    assert draft["tables"][0]["differences"] == {
        "table": "sales",
        "rows_before": 2,
        "rows_after": 3,
        "new_columns": ["备注"],
        "missing_columns": ["日期"],
        "changed_types": [{"column": "金额", "before": "integer", "after": "numeric"}],
    }
    _, still = alice.run("SELECT count(*) FROM sales")
    assert still["query_result"]["rows"] == [[2]]
    alice.confirm(draft)
    _, after = alice.run('SELECT "区域", "日期", "金额", "备注" FROM sales ORDER BY 3')
    assert after["query_result"]["rows"][0] == ["广州", None, 5.5, "新"]
    _, draft = alice.bring("区域,金额\n深圳,9\n", "c.csv", f"{path}/replace")
    assert draft["tables"][0]["differences"]["rows_after"] == 1
    alice.confirm(draft)
    _, after = alice.run("SELECT * FROM sales")
    assert after["query_result"]["rows"] == [["深圳", 9]]
    _, first = alice.bring(SALES, "d.csv", f"{path}/replace")
    _, second = alice.bring(SALES, "e.csv", f"{path}/replace")
    alice.confirm(first)
    status, late = alice.call("POST", f"{FILES}/{second['id']}/confirm", json={})
    assert (status, late["error_type"]) == (409, "conflict")


@pytest.mark.slow
def test_keys_and_references_are_proposed_and_made(callers: Callable[..., Caller]) -> None:
    alice = callers("alice")
    alice.load("customer_id,name\n1,Ann\n2,Bob\n", "customer.csv")
    status, draft = alice.bring("order_id,customer_id,price\n10,1,5\n11,2,7\n", "orders.csv")
    assert status == 201
    (table,) = draft["tables"]
    assert table["key"] == "order_id"
    assert table["references"] == [
        {"column": "customer_id", "table": "customer", "key": "customer_id"}
    ]
    alice.confirm(draft)
    answer = alice.ask("total price by customer name", database="files")
    assert answer["query_result"]["rows"] == [["Bob", 7], ["Ann", 5]]
    customers = alice.call("GET", FILES)[1]["files"][0]
    _, draft = alice.bring(
        "customer_id,name\n1,Ann\n", "c.csv", f"{FILES}/{customers['id']}/replace"
    )
    replaced = alice.confirm(draft)
    assert "orders.customer_id" in replaced["loaded"][0]["notes"][0]


@pytest.mark.slow
def test_readers_see_the_old_rows_or_the_new_ones(callers: Callable[..., Caller]) -> None:
    alice = callers("alice")
    file = alice.load("n,v\n" + "1,a\n" * 100)
    _, draft = alice.bring("n,v\n" + "2,b\n" * 200, "b.csv", f"{FILES}/{file['id']}/replace")
    seen = []
    with ThreadPoolExecutor(1) as background:
        loading = background.submit(alice.confirm, draft)
        while not loading.done():
            status, data = alice.run("SELECT count(*), min(n), max(n) FROM sales")
            assert status == 200, data
            seen += data["query_result"]["rows"]
    _, data = alice.run("SELECT count(*), min(n), max(n) FROM sales")
    seen += data["query_result"]["rows"]
    assert seen[-1] == [200, 2, 2]
    assert {tuple(row) for row in seen} <= {(100, 1, 1), (200, 2, 2)}


def test_nobody_sees_anything_of_anothers_files(
    callers: Callable[..., Caller], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Canaries in names and values: in no list, choice, answer, error or schema of another.

    Nor in the service's log, also where the role of the workspace owns the tables.
    """
    alice, bob = callers("alice"), callers("bob", "sales")
    file = alice.load(WAGES, "canary_wages.csv")
    alice.ask("how many canary wages are there", database="files")
    _, alices_draft = alice.bring(WAGES, "canary_wages.csv")
    assert "files" not in bob.databases()
    status, refused = bob.run("SELECT 1")
    assert (status, refused["field"]) == (400, "database")
    bob.load(SALES)
    tables = rows_of(settings.workspace_url, "SELECT tablename, schemaname FROM pg_tables")
    schema = dict(tables)["canary_wages"]
    for sql in (
        "SELECT * FROM canary_wages",
        f"SELECT * FROM {schema}.canary_wages",
        f"SELECT '{schema}.canary_wages'::regclass",
        "SELECT relname FROM pg_class",
        "SELECT table_name FROM information_schema.tables",
        "SELECT most_common_vals FROM pg_stats",
        "SELECT * FROM citu_files.file",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
    ):
        status, refused = bob.run(sql)
        assert status != 200, sql
        assert not any(secret in json.dumps(refused) for secret in ("987654", "Zanzibar77"))
    said: list[Any] = [bob.databases(), bob.call("GET", FILES)]
    for question in ("how much does Zanzibar get", "the largest amount", "list persons", "hello"):
        said.append(bob.ask(question, lang="en"))
        said.append(bob.ask(question, database="files"))
    for path in ("schema/tables", "schema/search?q=amount", "examples", "lineage/sales"):
        mark = "&" if "?" in path else "?"
        said.append(bob.call("GET", f"/api/v0/{path}{mark}database=files"))
    for file_id in (file["id"], alices_draft["id"]):
        one = f"{FILES}/{file_id}"
        for method, path, body in (
            ("GET", one, None),
            ("POST", f"{one}/confirm", {}),
            ("PATCH", one, {"tables": []}),
            ("PATCH", one, {"groups": []}),
            ("DELETE", one, None),
        ):
            answered = bob.call(method, path, json=body)
            assert answered[0] == 404, answered
            said.append(answered)
        for way in ("replace", "append"):
            said.append(bob.bring(SALES, "s.csv", f"{one}/{way}"))
            assert said[-1][0] == 404
    said.append(bob.call("GET", "/ready"))
    everything = json.dumps(said, ensure_ascii=False) + caplog.text
    assert not any(canary in everything for canary in CANARIES)


@pytest.mark.slow
def test_what_is_learnt_about_a_file_is_its_owners_and_goes_stale_with_its_columns(
    callers: Callable[..., Caller],
) -> None:
    alice, bob = callers("alice"), callers("bob", "review")
    file = alice.load(WAGES, "canary_wages.csv")
    bob.load(SALES)
    answer = alice.ask("amount by canary_person", database="files")
    feedback = {"run_id": answer["run_id"], "rating": "satisfied"}
    status, learnt = alice.call("POST", "/api/v0/feedback", json=feedback)
    assert status == 200, learnt
    listing = "/api/v0/knowledge/examples?database=files&trust=candidate,personal"
    assert "canary_person" in json.dumps(learnt), learnt
    similar = bob.ask("amount by person", database="files")
    status, listed = bob.call("GET", listing)
    assert status == 200, listed
    seen = json.dumps([listed, similar])
    assert "canary_person" not in seen
    assert "Zanzibar77" not in seen
    changed = "canary_person,bonus\nZanzibar77,1\n"
    _, draft = alice.bring(changed, "b.csv", f"{FILES}/{file['id']}/replace")
    alice.confirm(draft)
    status, data = alice.call(
        "POST", SYNC, json={"question": "amount by canary_person", "database": "files"}
    )
    assert "amount" not in str(data.get("sql")), (status, data)


def test_a_file_is_shared_with_groups(callers: Callable[..., Caller]) -> None:
    alice, bob = callers("alice", "sales"), callers("bob", "sales")
    stranger = callers("carol")
    file = alice.load(SALES)
    path = f"{FILES}/{file['id']}"
    assert alice.call("PATCH", path, json={"groups": ["hr"]})[0] == 400
    status, shared = alice.call("PATCH", path, json={"groups": ["sales"]})
    assert (status, shared["groups"]) == (200, ["sales"])
    answer = bob.ask("各区域的金额合计", database="files")
    assert answer["query_result"]["rows"] == [["北京", 1200], ["上海", 300]]
    assert "files" not in stranger.databases()
    seen = bob.call("GET", path)[1]
    assert (seen["is_own"], seen["groups"]) == (False, [])
    assert bob.call("DELETE", path)[0] == 403
    assert bob.bring(SALES, "s.csv", f"{path}/append")[0] == 403
    alice.call("PATCH", path, json={"groups": []})
    assert "files" not in bob.databases()


def test_what_asks_a_deleted_file_says_so(callers: Callable[..., Caller]) -> None:
    me = callers("eve")
    sales = me.load(SALES)
    me.load("name,age\nann,4\n", "people.csv")
    answered = me.ask("各区域的金额合计", database="files")
    assert me.call("DELETE", f"{FILES}/{sales['id']}")[0] == 200
    export = f"/api/v0/runs/{answered['run_id']}/export?format=csv"
    for status, data in (me.run("SELECT * FROM sales"), me.call("GET", export)):
        assert status == 403
        assert data["error"].startswith("None of your files has a table sales: its file may")
        assert "Upload it again" in data["error"]
        assert "eve" not in json.dumps(data)

    _, listed = me.call("GET", FILES)
    assert me.call("DELETE", f"{FILES}/{listed['files'][0]['id']}")[0] == 200
    for status, data in (me.run("SELECT * FROM sales"), me.call("GET", export)):
        assert status in (400, 404)
        assert "You have no files" in data["error"]

    body = {"question": "按区域呢", "conversation_id": answered["conversation_id"]}
    status, data = me.call("POST", SYNC, json=body)
    assert (status, "文件" in data["error"]) == (404, True), data
    assert me.call("POST", SYNC, json={**body, "database": "default"})[0] == 200


def test_a_table_keeps_a_column_and_a_header_that_is_there(callers: Callable[..., Caller]) -> None:
    me = callers("eve")
    _, draft = me.bring("a,b\n1,2\n", "pg_class.csv")
    assert draft["tables"][0]["name"] == "table_pg_class"
    path = f"{FILES}/{draft['id']}"
    out = [{"place": place, "include": False} for place in (0, 1)]
    for change, said in (
        ({"columns": out}, "at least one column"),
        ({"header_row": 99}, "first 2 rows"),
        ({"name": "pg_class"}, "table_pg_class"),
    ):
        status, data = me.call("PATCH", path, json={"tables": [{"sheet": "0", **change}]})
        assert (status, said in data["error"]) == (400, True), data

    assert me.confirm(draft)["tables"][0]["rows"] == 1


def test_what_is_refused_leaves_nothing(callers: Callable[..., Caller], settings: Settings) -> None:
    alice = callers("alice")
    for content, name in (
        (b"", "empty.csv"),
        (b"PK\x03\x04 broken", "a.xlsx"),
        (b"\x00\x01\x02" * 100, "a.csv"),
        (b"%PDF-1.4", "a.pdf"),
        (b"x" * 400_000, "large.csv"),
    ):
        status, refused = alice.bring(content, name)
        assert (status, refused["error_type"]) == (400, "invalid_request"), refused
        assert refused["field"] == "file"
    status, refused = alice.call("POST", FILES, json={})
    assert (status, refused["field"]) == (400, "file")
    assert _left(settings) == []
    for number in range(4):
        file = alice.load(SALES, f"t{number}.csv")
    _, draft = alice.bring(SALES, "t3.csv", f"{FILES}/{file['id']}/replace")
    alice.confirm(draft)  # takes the place of one of the four
    status, draft = alice.bring(SALES, "t4.csv")
    status, refused = alice.call("POST", f"{FILES}/{draft['id']}/confirm", json={})
    assert status == 400
    assert "at most 4" in refused["error"]
    alice.call("DELETE", f"{FILES}/{draft['id']}")
    listed = alice.call("GET", FILES)[1]
    check_schema("FileList", listed)
    assert listed["quota"]["tables"] == 4
    for file in listed["files"]:
        alice.call("DELETE", f"{FILES}/{file['id']}")
    wide = ",".join(f"c{n}" for n in range(480)) + "\n" + ",".join(["long text " * 4] * 480)
    _, draft = alice.bring(wide, "wide.csv")
    status, refused = alice.call("POST", f"{FILES}/{draft['id']}/confirm", json={})
    assert (status, refused["field"]) == (400, "file"), refused
    assert "too wide" in refused["error"]
    alice.call("DELETE", f"{FILES}/{draft['id']}")
    assert _left(settings) == []


def test_texts_that_cannot_be_stored_or_be_keys_are_loaded_without(
    callers: Callable[..., Caller],
) -> None:
    alice = callers("alice")
    key = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    loaded = alice.load(f"id,b\0c\n{key},1\nx,2\n", "a.csv")["loaded"][0]
    assert loaded["rows"] == 2
    assert "not made the key" in loaded["notes"][0]


def test_without_a_workspace_other_questions_are_answered(
    make_database: Callable[[str], str], tmp_path: Path
) -> None:
    settings = Settings(
        database_url=make_database("CREATE TABLE thing (a int); INSERT INTO thing VALUES (1);"),
        workspace_url="postgresql://nobody@127.0.0.1:9/none",
        data_dir=str(tmp_path),
        audit_log="off",
    )
    with Asking(settings) as asking:
        status, envelope = asking.sync({"question": "how many things are there"})
        assert status == 200
        assert envelope["data"]["query_result"]["rows"] == [[1]]
        with asking.client.get(FILES) as response:
            assert response.status_code == 503


def test_who_takes_no_files_says_so(settings: Settings, tmp_path: Path) -> None:
    without = Asking(settings, files=False, data_dir=str(tmp_path))
    with without as asking, asking.client.get(FILES) as response:
        assert response.status_code == 404
