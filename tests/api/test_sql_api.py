"""SQL that callers give: any is judged, and it runs under the same proof as the agent's own."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app_config import Settings
from tests.support.api_schemas import check_schema
from tests.support.asking import Asking
from tests.support.effort import tries

VALIDATE, RUN = "/api/v0/sql/validate", "/api/v0/sql/run"
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000) AS endless"


@pytest.fixture(scope="module")
def audit_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def asking(demo_url: str, audit_path: Path) -> Iterator[Asking]:
    with Asking(
        Settings(database_url=demo_url), audit_log=str(audit_path), statement_timeout_s=20
    ) as asking:
        yield asking


def _post(asking: Asking, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    response = asking.client.post(path, json=body, headers=headers, buffered=True)
    envelope = json.loads(response.get_data())
    assert (envelope["code"], envelope["success"]) == (
        response.status_code,
        response.status_code == 200,
    )
    return response.status_code, envelope["data"]


def _verdict(asking: Asking, sql: str, **fields: Any) -> dict[str, Any]:
    code, data = _post(asking, VALIDATE, {"sql": sql, **fields})
    assert code == 200
    check_schema("Verdict", data)
    return data


# ------------------------------------------------------------------------------
# validate


def test_an_accepted_statement(asking: Asking) -> None:
    data = _verdict(
        asking,
        "SELECT s.category, round(avg(s.floor_area), 1) FROM shop AS s JOIN service_area "
        "USING (service_area_id)"
        " GROUP BY 1;",
    )
    assert (data["ok"], data["verdict"], data["error_type"], data["error"]) == (
        True,
        "accepted",
        None,
        None,
    )
    assert data["tables"] == ["service_area", "shop"]
    assert {"s.category", "s.floor_area"} <= set(data["columns"])
    assert data["functions"] == ["avg", "round"]
    assert data["plan"]["total_cost"] > 0
    assert sorted(data["plan"]["scans"]) == ["service_area", "shop"]
    assert data["suggestions"] == []


@pytest.mark.parametrize(
    ("sql", "error_type", "says"),
    [
        ("DELETE FROM shop", "forbidden_keywords", "DELETE"),
        ("SELECT 1; SELECT 2", "forbidden_keywords", "multiple statements"),
        ("SELECT pg_read_file('/etc/passwd')", "forbidden_object", "pg_read_file"),
        ("SELECT * FROM pg_catalog.pg_authid", "forbidden_object", "pg_authid"),
        ("SELECT 1 +", "syntax_error", "syntax error"),
        ("what is this", "syntax_error", "syntax error"),
        ("-- nothing", "syntax_error", "empty"),
        (";", "syntax_error", "empty"),
        ("SELECT 1 \0 ; DROP TABLE shop", "validation_exception", "invalid character"),
        ("SELECT \ud800", "validation_exception", "invalid character"),
        ("SELECT " + "1 + (" * 700 + "1" + ")" * 700, "validation_exception", "nested"),
    ],
)
def test_a_refused_statement(asking: Asking, sql: str, error_type: str, says: str) -> None:
    data = _verdict(asking, sql)
    assert (data["ok"], data["verdict"], data["error_type"]) == (False, "refused", error_type)
    assert says in data["error"]
    assert data["plan"] is None


def test_an_unknown_name_comes_with_the_real_ones(asking: Asking) -> None:
    data = _verdict(asking, "SELECT categry FROM shop", lang="zh")
    assert (data["error_type"], data["position"]) == ("syntax_error", 8)
    assert data["suggestions"] == ["category"]
    assert "您是不是要找：category？" in data["error"]
    assert (data["tables"], data["columns"]) == (["shop"], ["categry"])


def test_an_expensive_statement(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url), max_plan_cost=1000) as asking:
        data = _verdict(asking, "SELECT * FROM daily_revenue")
    assert (data["ok"], data["error_type"]) == (False, "cost_exceeded")
    assert data["plan"]["total_cost"] > 1000
    assert data["plan"]["scans"] == data["tables"] == ["daily_revenue"]


@settings(
    max_examples=tries(18),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.text(st.characters(codec=None), min_size=1, max_size=80).filter(str.strip))
def test_any_text_has_a_verdict(asking: Asking, sql: str) -> None:
    data = _verdict(asking, sql)
    assert data["ok"] == (data["error_type"] is None)


def test_validating_runs_and_records_nothing(asking: Asking, audit_path: Path) -> None:
    before = audit_path.read_bytes() if audit_path.exists() else b""
    assert _verdict(asking, ENDLESS)["ok"]
    _verdict(asking, "DELETE FROM shop")
    assert (audit_path.read_bytes() if audit_path.exists() else b"") == before


# ------------------------------------------------------------------------------
# run


def test_a_statement_is_run(asking: Asking, audit_path: Path) -> None:
    sql = "SELECT shop_id, floor_area FROM shop ORDER BY shop_id LIMIT 2"
    code, data = _post(asking, RUN, {"sql": sql, "user_id": "ops"})
    assert code == 200
    check_schema("SqlResult", data)
    assert data["sql"] == sql
    assert data["query_result"]["columns"] == ["shop_id", "floor_area"]
    assert data["query_result"]["row_count"] == 2
    assert data["plan"]["rows"] == 2
    assert set(data["timings_ms"]) == {"validate", "execute", "total"}
    line = json.loads(audit_path.read_text("utf-8").splitlines()[-1])
    assert (line["source"], line["user_id"], line["question"]) == ("sql_run", "ops", None)
    assert (line["sql"], line["verdict"], line["rows"], line["run_id"]) == (
        sql,
        "executed",
        2,
        data["run_id"],
    )


def test_keys_are_told_by_the_names_of_the_rows_that_they_refer_to(
    make_database: Callable[[str], str], tmp_path: Path
) -> None:
    url = make_database(
        """
        CREATE TABLE members (code text PRIMARY KEY, name text NOT NULL);
        CREATE TABLE orders (id int PRIMARY KEY, member_code text REFERENCES members);
        INSERT INTO members VALUES ('m''1', 'Ann'), ('m2', 'Bob'), ('m3', 'Eve');
        INSERT INTO orders VALUES (1, 'm''1'), (2, NULL), (3, 'm2'), (4, 'm3');
        """
    )
    hides_eve = tmp_path / "rules.yaml"
    hides_eve.write_text(
        "tables:\n  public.members:\n    - groups: everyone\n      rows: name <> 'Eve'\n"
    )
    with Asking(Settings(database_url=url, row_rules=str(hides_eve))) as asking:
        _, listed = _post(asking, RUN, {"sql": "SELECT id, member_code FROM orders ORDER BY id"})
        _, joined = _post(asking, RUN, {"sql": "SELECT member_code, name FROM orders, members"})
    result = listed["query_result"]
    assert result["rows"][0] == [1, "m'1"], "rows keep what is stored"
    assert result["value_labels"] == [None, {"m'1": "Ann", "m2": "Bob"}], "Eve is hidden"
    assert result["labels"] == ["id", "member"], "not the codes"
    assert "value_labels" not in joined["query_result"], "they stand beside"


def test_the_caps_are_the_agent_s(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url), max_rows=3) as asking:
        code, data = _post(asking, RUN, {"sql": "SELECT * FROM daily_revenue"})
        assert (code, data["query_result"]["row_count"], data["query_result"]["is_limited"]) == (
            200,
            3,
            True,
        )
        assert "cut_columns" not in data["query_result"]
        code, data = _post(asking, RUN, {"sql": "SELECT repeat('x', 5000000) AS body FROM shop"})
    result = data["query_result"]
    assert (code, result["cut_columns"], result["is_limited"]) == (200, ["body"], True)
    assert result["rows"][0][0].endswith("x…")


@pytest.mark.parametrize(
    ("sql", "code", "error_type"),
    [
        ("DELETE FROM shop", 403, "forbidden_keywords"),
        ("SELECT current_user", 403, "forbidden_object"),
        ("SELECT nope FROM shop", 422, "syntax_error"),
        ("SELECT 1 / (count(*) - count(*)) FROM shop", 422, "syntax_error"),
        ("SELECT \0", 422, "validation_exception"),
    ],
)
def test_errors_are_those_of_a_question(
    asking: Asking, audit_path: Path, sql: str, code: int, error_type: str
) -> None:
    found, data = _post(asking, RUN, {"sql": sql, "lang": "zh"})
    assert (found, data["type"], data["error_type"], data["retryable"]) == (
        code,
        "error",
        error_type,
        False,
    )
    assert data["request_id"]
    line = json.loads(audit_path.read_text("utf-8").splitlines()[-1])
    assert (line["sql"], line["error_type"]) == (sql, error_type)


def test_timeouts_and_limits(demo_url: str) -> None:
    with Asking(
        Settings(database_url=demo_url), statement_timeout_s=0.2, max_plan_rows=1000
    ) as asking:
        assert _post(asking, RUN, {"sql": ENDLESS})[1]["error_type"] == "query_timeout"
        assert (
            _post(asking, RUN, {"sql": "SELECT * FROM daily_revenue"})[1]["error_type"]
            == "cost_exceeded"
        )
    with Asking(Settings(database_url=demo_url), request_timeout_s=0.2) as asking:
        code, data = _post(asking, RUN, {"sql": ENDLESS})
    assert (code, data["error_type"], data["retryable"]) == (504, "query_timeout", True)


def test_a_literal_is_run_as_it_is_given(asking: Asking) -> None:
    _, data = _post(asking, RUN, {"sql": "SELECT shop_id FROM shop WHERE category = '餐饮业'"})
    assert data["query_result"]["rows"] == []
    assert "餐饮业" in data["sql"]


# ------------------------------------------------------------------------------
# both


@pytest.mark.parametrize("path", [VALIDATE, RUN])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "sql"),
        ({"sql": None}, "sql"),
        ({"sql": " \n"}, "sql"),
        ({"sql": 5}, "sql"),
        ({"sql": ["SELECT 1"]}, "sql"),
        ({"sql": "SELECT 1", "lang": "fr"}, "lang"),
        ({"sql": "SELECT 1", "user_id": 5}, "user_id"),
        ([], None),
        ({"sql": "SELECT '" + "x" * 200_000 + "'"}, None),
    ],
)
def test_malformed_requests(asking: Asking, path: str, body: Any, field: str | None) -> None:
    code, data = _post(asking, path, body)
    assert (code, data["error_type"], data.get("field")) == (400, "invalid_request", field)


@pytest.mark.parametrize(
    ("fields", "accepted", "says"),
    [
        ({}, "", "Operation not allowed"),
        ({}, "zh-CN,zh;q=0.9", "不允许的操作"),
        ({"lang": "en"}, "zh-CN", "Operation not allowed"),
        ({"lang": "zh"}, "en", "不允许的操作"),
    ],
)
def test_the_language(asking: Asking, fields: dict[str, str], accepted: str, says: str) -> None:
    for path in (VALIDATE, RUN):
        _, data = _post(
            asking, path, {"sql": "DROP TABLE shop", **fields}, **{"Accept-Language": accepted}
        )
        assert says in data["error"]


def test_without_a_database_only_refusals_are_certain() -> None:
    with Asking(
        Settings(database_url="postgresql://nobody@127.0.0.1:1/none", database_pool_wait_s=1)
    ) as asking:
        assert _verdict(asking, "DELETE FROM shop")["error_type"] == "forbidden_keywords"
        for path in (VALIDATE, RUN):
            code, data = _post(asking, path, {"sql": "SELECT 1"})
            assert (code, data["error_type"], data["retryable"]) == (
                503,
                "database_unavailable",
                True,
            )


def test_a_client_that_leaves_cancels_its_statement(
    asking: Asking, demo_url: str, audit_path: Path
) -> None:
    ours, theirs = socket.socketpair()
    codes: list[int] = []

    def post() -> None:
        response = asking.client.post(
            RUN, json={"sql": ENDLESS}, environ_overrides={"werkzeug.socket": ours}, buffered=True
        )
        codes.append(response.status_code)

    client = threading.Thread(target=post)
    client.start()
    with _watching(demo_url) as cursor:
        while not _running(cursor):
            client.join(0.05)
        theirs.close()
        client.join()
        while _running(cursor):
            threading.Event().wait(0.05)
    ours.close()
    assert codes == [499]
    assert json.loads(audit_path.read_text("utf-8").splitlines()[-1])["verdict"] == "cancelled"


@contextmanager
def _watching(url: str) -> Iterator[Any]:
    """A cursor outside any transaction, where the view of activity is never an old one."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        yield cursor


def _running(cursor: Any) -> int:
    cursor.execute(
        (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s "
            "AND pid <> pg_backend_pid()"
        ),
        ("%AS endless%",),
    )
    return int(cursor.fetchone()[0])


def test_places_are_shared_and_given_back(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url), max_streams=1) as asking:
        for _ in range(3):
            assert _post(asking, RUN, {"sql": "SELECT 1"})[0] == 200
            assert _post(asking, RUN, {"sql": "DROP TABLE shop"})[0] == 403
        running = threading.Thread(target=lambda: _post(asking, RUN, {"sql": ENDLESS}))
        running.daemon = True
        running.start()
        with _watching(demo_url) as cursor:
            while not _running(cursor):
                running.join(0.05)
            code, data = _post(asking, VALIDATE, {"sql": "SELECT 1"})
            assert (code, data["error_type"]) == (503, "too_many_streams")
            cursor.execute(
                (
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE %s "
                    "AND pid <> pg_backend_pid()"
                ),
                ("%AS endless%",),
            )
            running.join()
