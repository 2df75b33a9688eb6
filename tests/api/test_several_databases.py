"""A service that asks several databases by name: which one, who may, and that nothing is mixed."""

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from api.access.key_file import KeyFile
from app_config import Settings
from tests.support.asking import SYNC, Asking
from tests.support.databases import as_admin, execute
from tests.support.folders import reachable_folder
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer
from tests.support.postgres_wire import Wire

SHOP = """
CREATE TABLE customer (customer_id int PRIMARY KEY, name text, city text);
CREATE TABLE sale (sale_id int PRIMARY KEY, customer_id int REFERENCES customer, sold_on date,
    price numeric);
INSERT INTO customer VALUES (1, 'Ann', 'Oslo'), (2, 'Bob', 'Rome'), (3, 'Cid', 'Rome');
INSERT INTO sale VALUES (1, 1, '2025-01-05', 10), (2, 2, '2025-02-05', 20);
"""
CLINIC = """
CREATE TABLE patient (patient_id int PRIMARY KEY, name text, born_on date);
CREATE TABLE visit (visit_id int PRIMARY KEY, patient_id int REFERENCES patient, price numeric);
INSERT INTO patient VALUES (1, 'Kim', '1990-01-01'), (2, 'Lee', '1980-01-01');
INSERT INTO visit VALUES (1, 1, 500);
"""
PAY = """
CREATE TABLE canary_payroll (id int PRIMARY KEY, canary_salary numeric);
INSERT INTO canary_payroll VALUES (1, 987654321);
"""
_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
NOWHERE = "postgresql://nobody@127.0.0.1:9/none"


@pytest.fixture(scope="module")
def settings(
    make_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """A shop (the default), a clinic, one that only the group `hr` may ask, one that is down."""
    folder = tmp_path_factory.mktemp("databases")
    os.environ["TEST_CLINIC_URL"] = make_database(CLINIC)
    (folder / "clinic.yaml").write_text(
        "version: 1\nreports:\n  oldest:\n    sql: SELECT max(born_on) FROM patient\n", "utf-8"
    )
    file = {
        "shop": {"url": make_database(SHOP), "default": True, "names": {"zh": "商店"}},
        "clinic": {
            "url": "${TEST_CLINIC_URL}",
            "names": {"en": "Clinic", "zh": "诊所"},
            "description": {"en": "Patients and visits"},
            "semantic_file": "clinic.yaml",
        },
        "pay": {"url": make_database(PAY), "groups": ["hr"]},
        "down": {"url": NOWHERE},
    }
    path = folder / "databases.yaml"
    path.write_text(json.dumps({"databases": file}), "utf-8")
    return Settings(
        databases_file=str(path), data_dir=str(folder), audit_log=str(folder / "audit.jsonl")
    )


@pytest.fixture(scope="module")
def asking(settings: Settings) -> Iterator[Asking]:
    with Asking(settings) as asking:
        yield asking


@pytest.fixture
def audited(settings: Settings) -> Callable[[], list[Any]]:
    """Reads the lines that the audit log gained since the test began."""
    path = Path(settings.audit_log)
    before = path.stat().st_size if path.exists() else 0

    def read() -> list[Any]:
        return [json.loads(line) for line in path.read_bytes()[before:].splitlines()]

    return read


def _asked(asking: Asking, question: str, **fields: Any) -> dict[str, Any]:
    status, envelope = asking.sync({"question": question, "lang": "en", **fields})
    assert status == 200, envelope
    data: dict[str, Any] = envelope["data"]
    return data


def _rows(data: dict[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = data["query_result"]["rows"]
    return rows


def test_a_question_is_about_the_database_that_it_names(
    asking: Asking, audited: Callable[[], list[Any]]
) -> None:
    data = _asked(asking, "how many patients are there", database="clinic")
    assert data["database"] == {"name": "clinic", "source": "request"}
    assert _rows(data) == [[2]]
    assert {line["database"] for line in audited()} == {"clinic"}


def test_the_database_that_knows_the_words_is_asked(asking: Asking) -> None:
    for question, name, rows in (
        ("how many patients are there", "clinic", [[2]]),
        ("有多少 customer", "shop", [[3]]),
        ("number of customers by city", "shop", [["Rome", 2], ["Oslo", 1]]),
    ):
        data = _asked(asking, question)
        assert data["database"] == {"name": name, "source": "words"}
        assert _rows(data) == rows
    assert _asked(asking, "total price in the clinic database")["database"] == {
        "name": "clinic",
        "source": "name",
    }
    assert _asked(asking, "hello")["database"]["source"] == "default"


def test_where_two_fit_the_user_is_asked_and_the_answer_goes_on(asking: Asking) -> None:
    data = _asked(asking, "total price")
    assert data["type"] == "question"
    assert (data["kind"], sorted(data["choices"])) == ("database", ["clinic", "shop"])
    assert "Clinic (clinic)" in data["prompt"]
    run = f"/api/v0/runs/{data['run_id']}"
    wrong = asking.client.post(
        f"{run}/resume", json={"interrupt_id": data["interrupt_id"], "answer": "pay"}
    )
    assert wrong.status_code == 400
    answer = {"interrupt_id": data["interrupt_id"], "answer": "clinic"}
    assert asking.client.post(f"{run}/resume", json=answer).status_code == 202
    asking.client.get(f"{run}/events").get_data()
    ended = asking.client.get(run).get_json()["data"]["result"]["data"]
    assert ended["database"] == {"name": "clinic", "source": "user"}
    assert _rows(ended) == [[500]]
    again = asking.client.post(f"{run}/resume", json=answer)
    assert again.status_code == 409
    never = {"question": "total price", "options": {"interactive": False}}
    refused = asking.client.post("/api/v0/etl/ask", json=never)
    assert (refused.status_code, refused.get_json()["data"]["field"]) == (400, "database")


def test_a_stored_value_tells_which_database_is_meant(
    make_database: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values are too many for the catalogue to know them all."""
    # However busy the machine is, both catalogues are read before the question is compared.
    monkeypatch.setattr("agent.database_choice._READING_S", 60.0)
    made = """CREATE TABLE supply (supply_id int PRIMARY KEY, label text, price numeric);
    INSERT INTO supply SELECT n, '{} ' || n, n FROM generate_series(1, 3000) n; ANALYZE;"""
    file = {
        "harbour": {"url": make_database(made.format("Marine Rope"))},
        "office": {"url": make_database(made.format("Blue Folder"))},
    }
    path = tmp_path / "databases.yaml"
    path.write_text(json.dumps({"databases": file}), "utf-8")
    settings = Settings(databases_file=str(path), data_dir=str(tmp_path), audit_log="off")
    with Asking(settings) as asking:
        data = _asked(asking, "price of supply Blue Folder 1734")
        assert data["database"] == {"name": "office", "source": "words"}
        assert data["query_result"]["rows"][0][-1] == 1734


def test_a_model_chooses_where_two_fit_and_the_user_where_it_does_not(settings: Settings) -> None:
    """The call counts in `usage`, also when the user had to be asked after it."""
    sql = Reply("```sql\nSELECT sum(price) FROM visit\n```")
    quiet = {"enable_result_summary": False, "routing_mode": "database_direct"}
    with OpenAiServer() as model, Asking(settings, model, **quiet) as asking:
        asked = {"question": "total price", "lang": "en"}
        _, envelope = asking.sync(asked, Reply('{"database": "clinic"}'), sql)
        data = envelope["data"]
        assert data["database"] == {"name": "clinic", "source": "model"}
        assert (_rows(data), data["usage"]["llm_calls"]) == ([[500]], 2)
        choosing = model.requests[0].question
        assert "Patients and visits" in choosing
        assert "sale" in choosing
        assert "canary" not in choosing
        for unsure in ('{"database": null}', '{"database": "pay"}', "I can't tell"):
            _, envelope = asking.sync(asked, Reply(unsure), sql)
            data = envelope["data"]
            assert (data["type"], sorted(data["choices"])) == ("question", ["clinic", "shop"])
        run = f"/api/v0/runs/{data['run_id']}"
        answer = {"interrupt_id": data["interrupt_id"], "answer": "clinic"}
        assert asking.client.post(f"{run}/resume", json=answer).status_code == 202
        asking.client.get(f"{run}/events").get_data()
        ended = asking.client.get(run).get_json()["data"]["result"]["data"]
        assert ended["database"] == {"name": "clinic", "source": "user"}
        assert ended["usage"]["llm_calls"] == 2
        _, envelope = asking.sync(asked, Reply(status=500), Reply(status=500), Reply(status=500))
        assert envelope["data"]["type"] == "question"


def test_a_conversation_stays_with_its_database(asking: Asking) -> None:
    first = _asked(asking, "how many patients are there")
    conversation = first["conversation_id"]
    second = _asked(asking, "total price", conversation_id=conversation)
    assert second["database"] == {"name": "clinic", "source": "conversation"}
    other = _asked(asking, "total price", conversation_id=conversation, database="shop")
    assert _rows(other) == [[30]]


def test_a_follow_up_looks_back_at_its_own_database(asking: Asking) -> None:
    first = _asked(asking, "how many patients are there")
    conversation = {"conversation_id": first["conversation_id"]}
    _asked(asking, "how many customers are there", database="shop", **conversation)
    back = _asked(asking, "by name", database="clinic", **conversation)
    assert sorted(_rows(back)) == [["Kim", 1], ["Lee", 1]]


def test_what_one_may_not_ask_leaves_no_trace(asking: Asking) -> None:
    client = asking.client
    said = []
    for question in ("canary_payroll", "total canary salary", "SELECT * FROM canary_payroll"):
        said.append(str(asking.sync({"question": question})))
    refused = client.post(SYNC, json={"question": "hi", "database": "pay"})
    unknown = client.post(SYNC, json={"question": "hi", "database": "none"})
    assert refused.status_code == unknown.status_code == 400
    for response in (refused, unknown):
        data = response.get_json()["data"]
        assert (data["field"], data["error_type"]) == ("database", "invalid_request")
        assert data["error"].endswith("one of shop, clinic, down.")
    for address in ("schema/tables", "examples", "knowledge/examples", "etl/lineage?table=x"):
        mark = "&" if "?" in address else "?"
        response = client.get(f"/api/v0/{address}{mark}database=pay")
        assert response.status_code == 400
        said.append(response.get_data(as_text=True))
    run = client.post("/api/v0/sql/run", json={"sql": "SELECT 1", "database": "pay"})
    assert run.status_code == 400
    said.append(client.get("/api/v0/databases").get_data(as_text=True))
    said.append(client.get("/api/v0/schema/search?q=canary").get_data(as_text=True))
    assert "987654321" not in str(said)
    assert "canary_salary" not in str(said[3:])
    assert '"pay"' not in said[-2]


def test_no_address_names_a_database_that_one_may_not_ask(
    settings: Settings, tmp_path: Path
) -> None:
    """All addresses that are read, by somebody who has said nothing of it, and tools over MCP."""
    key, _ = KeyFile(tmp_path / "api_keys.json").create("stan", groups=("sales",))
    headers = {"Authorization": f"Bearer {key}"}
    with Asking(replace(settings, data_dir=str(tmp_path), audit_log="off")) as asking:
        with asking.client.get("/openapi.json") as described:
            paths = json.loads(described.get_data())["paths"]
        said = []
        for path in (re.sub(r"{[^}]+}", "x", one) for one in paths if "get" in paths[one]):
            for query in ("", "?database=shop", "?q=salary", "?database=pay"):
                with asking.client.get(path + query, headers=headers) as response:
                    said.append((path, query, response.get_data(as_text=True)))
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        for tool in ("list_databases", "list_reports", "search_schema"):
            body = {**call, "params": {"name": tool, "arguments": {"query": "salary"}}}
            accept = {**headers, "Accept": "application/json, text/event-stream"}
            with asking.client.post("/mcp", json=body, headers=accept) as response:
                said.append((tool, "", response.get_data(as_text=True)))
    found = [one[:2] for one in said if "canary" in one[2] or '"pay"' in one[2]]
    assert len(said) > 100
    assert found == []


def test_groups_may_ask_what_is_theirs(settings: Settings, tmp_path: Path) -> None:
    key, _ = KeyFile(tmp_path / "api_keys.json").create("carol", groups=("hr",))
    headers = {"Authorization": f"Bearer {key}"}
    with Asking(replace(settings, data_dir=str(tmp_path), audit_log="off")) as asking:
        asked = asking.client.post(SYNC, json={"question": "total canary salary"}, headers=headers)
        data = asked.get_json()["data"]
        assert data["database"] == {"name": "pay", "source": "words"}
        assert _rows(data) == [[987654321]]
        listed = asking.client.get("/api/v0/databases", headers=headers).get_json()["data"]
        assert {database["name"] for database in listed["databases"]} == {
            "shop",
            "clinic",
            "pay",
            "down",
        }


def test_ready_names_to_strangers_what_every_caller_may_ask(
    settings: Settings, tmp_path: Path
) -> None:
    """An operator sees each; a key that is none is nobody's."""
    key, _ = KeyFile(tmp_path / "api_keys.json").create("olga", groups=("ops",))
    kept = replace(settings, data_dir=str(tmp_path), audit_log="off", operator_groups="ops")

    def seen(asking: Asking, **headers: str) -> set[str]:
        ready = asking.client.get("/ready", headers=headers)
        assert ready.status_code == 200
        database = ready.get_json()["data"]["database"]
        assert database["status"] == "degraded", "the one that is down is open to all"
        return set(database["databases"])

    with Asking(kept) as asking:
        strangers = {"shop", "clinic", "down"}
        assert seen(asking) == seen(asking, Authorization="Bearer citu_none") == strangers
        assert seen(asking, Authorization=f"Bearer {key}") == {*strangers, "pay"}


def test_ready_names_nothing_where_each_database_has_groups(
    make_database: Callable[[str], str], tmp_path: Path
) -> None:
    KeyFile(tmp_path / "api_keys.json").create("carol", groups=("hr",))
    path = tmp_path / "databases.yaml"
    file = {"pay": {"url": make_database(PAY), "groups": ["hr"]}}
    path.write_text(json.dumps({"databases": file}), "utf-8")
    with Asking(Settings(databases_file=str(path), data_dir=str(tmp_path))) as asking:
        ready = asking.client.get("/ready").get_json()["data"]
        assert ready["database"] == {"status": "ok"}


def test_the_list_says_how_each_database_is(asking: Asking) -> None:
    listed = asking.client.get("/api/v0/databases?lang=zh").get_json()["data"]["databases"]
    found = {one.pop("name"): one for one in listed}
    assert {name: one["state"] for name, one in found.items()} == {
        "shop": "ok",
        "clinic": "ok",
        "down": "unavailable",
    }
    assert found["clinic"]["label"] == "诊所"
    assert found["clinic"]["description"] == "Patients and visits"
    assert found["clinic"]["tables"] == 2
    assert found["clinic"]["engine"]["name"] == "PostgreSQL"
    assert found["down"]["tables"] is None
    assert [name for name, one in found.items() if one["is_default"]] == ["shop"]


def test_a_database_that_is_down_costs_only_its_own_questions(asking: Asking) -> None:
    status, envelope = asking.sync({"question": "how many patients", "database": "down"})
    assert (status, envelope["data"]["error_type"]) == (503, "database_unavailable")
    assert envelope["data"]["database"]["name"] == "down"
    assert _rows(_asked(asking, "how many patients are there")) == [[2]]
    ready = asking.client.get("/ready")
    assert ready.status_code == 200
    database = ready.get_json()["data"]["database"]
    assert database["status"] == "degraded"
    assert database["databases"]["down"] == {"status": "unavailable"}
    shop = database["databases"]["shop"]
    assert (shop["status"], shop["engine"]["name"]) == ("ok", "PostgreSQL")


def test_a_dead_a_silent_and_a_changed_database_cost_the_others_nothing(
    make_database: Callable[[str], str], admin_url: str, tmp_path: Path
) -> None:
    """Fifty questions about two others, half of which name none, while a third hangs all along."""
    changed, silent = make_database(PAY), make_database(PAY.replace("canary_", "quiet_"))
    with reachable_folder() as folder, Wire(silent, folder) as wire:
        file = {
            "shop": {"url": make_database(SHOP)},
            "clinic": {"url": make_database(CLINIC)},
            "changed": {"url": changed},
            "silent": {"url": wire.url},
            "dead": {"url": NOWHERE},
        }
        path = tmp_path / "databases.yaml"
        path.write_text(json.dumps({"databases": file}), "utf-8")
        settings = Settings(databases_file=str(path), data_dir=str(tmp_path), audit_log="off")
        with Asking(settings) as asking, ThreadPoolExecutor(5) as callers:
            for name in ("changed", "silent"):
                assert _asked(asking, "how many payrolls are there", database=name)
            wire.is_silent = True
            quiet = {"question": "the highest quiet salary", "database": "silent"}
            hanging = callers.submit(asking.sync, quiet)
            execute(as_admin(changed, admin_url), "ALTER TABLE canary_payroll RENAME TO gone")

            def about_others(number: int) -> tuple[list[list[Any]], str]:
                name, things, found = (("shop", "customers", 3), ("clinic", "patients", 2))[
                    number % 2
                ]
                database = {"database": name} if number % 4 < 2 else {}
                data = _asked(asking, f"how many {things} are there", **database)
                assert _rows(data) == [[found]]
                return _rows(data), data["database"]["name"]

            found = list(callers.map(about_others, range(50)))
            assert {name for _, name in found} == {"shop", "clinic"}
            for name, statuses in (("changed", (200, 422, 503)), ("dead", (503,))):
                status, envelope = asking.sync(
                    {"question": "total canary salary", "database": name}
                )
                assert status in statuses, envelope
                assert envelope["data"].get("query_result") is None
            assert not hanging.done(), "what is silent keeps its own caller waiting, and no other"
            execute(as_admin(silent, admin_url), _END_OTHERS)
            assert hanging.result()[0] in (503, 504)


def test_everything_else_takes_the_name_as_well(
    asking: Asking, audited: Callable[[], list[Any]]
) -> None:
    client = asking.client
    tables = client.get("/api/v0/schema/tables?database=clinic").get_json()["data"]["tables"]
    assert {table["name"] for table in tables} == {"patient", "visit"}
    ran = client.post(
        "/api/v0/sql/run", json={"sql": "SELECT count(*) FROM patient", "database": "clinic"}
    ).get_json()["data"]
    assert _rows(ran) == [[2]]
    refused = client.post("/api/v0/sql/run", json={"sql": "SELECT count(*) FROM patient"})
    assert refused.status_code == 422
    examples = client.get("/api/v0/examples?database=clinic&lang=en").get_json()["data"]["examples"]
    assert any("patient" in example.lower() for example in examples)
    report = _asked(asking, "oldest", database="clinic")
    assert _rows(report) == [["1990-01-01"]]
    assert {line["database"] for line in audited()} >= {"clinic", "shop"}


def test_what_is_learnt_and_exported_is_of_the_answers_database(asking: Asking) -> None:
    client = asking.client
    data = _asked(asking, "how many patients are there", database="clinic")
    with client.get(f"/api/v0/runs/{data['run_id']}/export?format=csv") as exported:
        assert exported.get_data(as_text=True).split()[-1] == "2"
    analysed = client.post(f"/api/v0/runs/{data['run_id']}/analyze", json={})
    assert analysed.status_code == 200
    rated = client.post(
        "/api/v0/feedback", json={"run_id": data["run_id"], "rating": "satisfied"}
    ).get_json()
    assert rated["success"], rated
    listed = {
        name: client.get(f"/api/v0/knowledge/examples?database={name}").get_json()["data"]
        for name in ("clinic", "shop")
    }
    questions = [item["question"] for item in listed["clinic"]["examples"]]
    assert questions == ["how many patients are there"]
    assert listed["shop"]["examples"] == []


def test_the_file_is_read_again_while_it_runs(
    make_database: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.asked_databases._LOOK_S", 0.0)
    path = tmp_path / "databases.yaml"
    shop, clinic = make_database(SHOP), make_database(CLINIC)

    def write(**databases: Any) -> None:
        path.write_text(json.dumps({"databases": databases}), "utf-8")
        os.utime(path, ns=(path.stat().st_mtime_ns, path.stat().st_mtime_ns + 1_000_000))

    write(shop={"url": shop})
    settings = Settings(databases_file=str(path), data_dir=str(tmp_path))
    with Asking(settings) as asking:

        def names() -> list[str]:
            listed = asking.client.get("/api/v0/databases").get_json()["data"]["databases"]
            return [one["name"] for one in listed]

        assert names() == ["shop"]
        assert _asked(asking, "how many customers")["database"]["source"] == "only"
        write(shop={"url": shop}, clinic={"url": clinic, "default": True})
        assert names() == ["shop", "clinic"]
        assert _rows(_asked(asking, "how many patients are there")) == [[2]]
        path.write_text("databases: oops", "utf-8")
        assert names() == ["shop", "clinic"]
        ready = asking.client.get("/ready").get_json()["data"]["database"]
        assert ready["status"] == "degraded"
        write(clinic={"url": clinic})
        assert names() == ["clinic"]
        status, _ = asking.sync({"question": "how many customers", "database": "shop"})
        assert status == 400


def test_a_url_with_a_database_that_is_gone_is_no_secret(asking: Asking) -> None:
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(NOWHERE, connect_timeout=1)
    _, envelope = asking.sync({"question": "how many", "database": "down"})
    assert "127.0.0.1" not in str(envelope)
