"""Requests for transformations over HTTP: asked, answered, rated, and their files taken along."""

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from werkzeug.http import parse_options_header
from werkzeug.test import TestResponse

from app_config import Settings
from tests.support.artefact_files import dbt_path
from tests.support.asking import Asking, frames
from tests.support.effort import slow_beyond
from tests.support.etl_requests import INTENT, SHOP, TESTED

ASK = "/api/v0/etl/ask"
MONTHS = [["2026-01-01", 10.5], ["2026-02-01", 20], [None, 5]]
SENTENCE = "把订单表和用户表 JOIN，按月汇总销售额，写入销售汇总表"
# Nobody has decided before which date it means.
UNDECIDED = "把订单表和用户表 JOIN，按月汇总订单数，写入订单汇总表"
QUICK = {"mutants": False}
needs_dbt = pytest.mark.skipif(dbt_path() is None, reason="no dbt: `make etl` installs it")


@pytest.fixture(scope="module")
def shop(make_database: Callable[[str], str], scratch_url: str) -> Settings:
    return Settings(database_url=make_database(SHOP), scratch_database_url=scratch_url)


@pytest.fixture(scope="module")
def asking(shop: Settings) -> Iterator[Asking]:
    with Asking(shop) as asking:
        yield asking


def post(asking: Asking, body: Mapping[str, Any], path: str = ASK) -> tuple[int, dict[str, Any]]:
    with asking.client.post(path, json=body) as response:
        envelope = json.loads(response.get_data())
    return response.status_code, envelope["data"]


def get(asking: Asking, path: str, **headers: str) -> TestResponse:
    return asking.client.get(path, headers=headers, buffered=True)


def goes_on(asking: Asking, asked: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """The next question or the answer, after this answer."""
    run = f"/api/v0/runs/{asked['run_id']}"
    body = {"interrupt_id": asked["interrupt_id"], "answer": answer}
    status, _ = post(asking, body, f"{run}/resume")
    assert status == 202
    data: dict[str, Any] = list(frames(get(asking, f"{run}/events").text))[-1]["data"]
    return data


def sorted_rows(preview: Mapping[str, Any]) -> list[list[Any]]:
    rows: list[list[Any]] = preview["rows"]
    return sorted(rows, key=lambda row: (row[0] is None, row[0]))


def test_an_intent_becomes_a_proven_draft_with_its_files(asking: Asking) -> None:
    status, answer = post(asking, {"intent": INTENT, "options": {"feedback": False}})
    assert (status, answer["status"], answer["type"]) == (200, "proven", "ETL"), answer
    assert sorted_rows(answer["preview"]) == MONTHS
    assert answer["execution_path"] == [*TESTED, "finalize"]
    assert answer["evidence"]["mutants"]["survivors"] == []
    figures = {
        assumption["id"]: (assumption["rows"], assumption["amount"], assumption["of"])
        for assumption in answer["assumptions"]
    }
    assert figures == {
        "left_join_1": (1, "0", "whole"),
        "null_group_2": (1, "5.00", "whole"),
        "undone_kept": (1, "20.00", "whole"),
    }
    assert {total["difference"] for total in answer["evidence"]["totals"]} == {"0.00"}
    assert answer["artefact"]["target"]["relation"] == "monthly_sales"
    archive = get(asking, answer["artefact"]["url"])
    assert archive.headers["ETag"].strip('"') == answer["artefact"]["sha256"]
    assert "monthly_sales.zip" in archive.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(archive.data)) as files:
        texts = {name: files.read(name) for name in files.namelist()}
    assert b"decides about 1 row of all, 20.00 in all" in texts["README.md"]
    listed = get(asking, answer["artefact"]["files_url"]).get_json()["data"]["files"]
    assert [file["path"] for file in listed] == list(texts)
    for path in ("README.md", "plan.json", "sql/build.sql"):
        assert get(asking, f"{answer['artefact']['files_url']}/{path}").data == texts[path]
    same = get(asking, answer["artefact"]["url"], **{"If-None-Match": archive.headers["ETag"]})
    assert same.status_code == 304


def test_values_of_persons_are_hidden_in_the_preview(
    make_database: Callable[[str], str], scratch_url: str
) -> None:
    people = """
        CREATE TABLE member (id integer PRIMARY KEY, full_name text, phone text, city text);
        INSERT INTO member VALUES (1, 'Ada Byron', '13800138000', 'Paris'), (2, NULL, NULL, 'Rome');
    """
    operations = [
        {
            "order": 1,
            "action": "transform",
            "parameters": {"as": "shown_as", "expression": "upper(member.full_name)"},
        }
    ]
    intent = {"summary": "x", "data_sources": [{"table_name": "member"}], "operations": operations}
    settings = Settings(database_url=make_database(people), scratch_database_url=scratch_url)
    with Asking(settings) as asking:
        body = {"intent": intent, "options": {"feedback": False, **QUICK}}
        _, answer = post(asking, body)
    preview = answer["preview"]
    rows = [dict(zip(preview["columns"], row, strict=True)) for row in preview["rows"]]
    assert [row["city"] for row in rows] == ["Paris", "Rome"]
    assert {name: rows[0][name] for name in ("full_name", "phone", "shown_as")} == dict.fromkeys(
        ("full_name", "phone", "shown_as"), "•••"
    )
    assert rows[1]["full_name"] is None


def test_there_is_no_file_but_those_of_the_list(asking: Asking) -> None:
    _, answer = post(asking, {"intent": INTENT, "options": {"feedback": False, **QUICK}})
    files_url = answer["artefact"]["files_url"]
    for path in ("..%2fplan.json", "sql/../plan.json", "/etc/passwd", "", "plan.json/", "%00"):
        assert get(asking, f"{files_url}/{path}").status_code in (308, 404)
    assert get(asking, f"{answer['artefact']['url']}?user_id=another").status_code == 404


def test_the_sentence_asks_for_the_date_and_then_for_a_rating(asking: Asking) -> None:
    body = {"question": SENTENCE, "options": QUICK, "context_type": "CHAT"}
    _, asked = post(asking, body)
    assert (asked["type"], asked["kind"]) == ("question", "clarify")
    field = asked["schema"]["properties"]["date_column"]
    assert field["enum"] == ["orders.ordered_on", "orders.paid_at", "__cancel__"]
    assert len(field["x-labels"]) == len(field["enum"])
    wrong = {"interrupt_id": asked["interrupt_id"], "answer": {"date_column": "orders.id"}}
    status, refused = post(asking, wrong, f"/api/v0/runs/{asked['run_id']}/resume")
    assert (status, refused["field"]) == (400, "answer.date_column")
    judged = goes_on(asking, asked, {"date_column": "orders.ordered_on"})
    assert (judged["type"], judged["kind"]) == ("question", "feedback")
    assert judged["evidence"]["status"] == "passed"
    archive = get(asking, judged["artefact"]["url"])
    disposition = archive.headers["Content-Disposition"]
    # One file name is for clients that don't know the other, encoded one.
    run_id, encoded = disposition.removeprefix("attachment; filename=").split(".zip; ")
    assert (archive.status_code, run_id, encoded.isascii()) == (200, judged["run_id"], True)
    assert parse_options_header(f"attachment; {encoded}")[1]["filename"] == "销售汇总表.zip"
    answer = goes_on(asking, judged, {"rating": "satisfied", "comment": "好"})
    assert (answer["type"], answer["status"]) == ("completed", "proven")
    assert sorted_rows(answer["preview"]) == MONTHS
    assert answer["feedback"]["rating"] == "satisfied"
    assert answer["warnings"] == ["以下参数对 etl 无效：context_type。"]
    assert [clarification["answer"] for clarification in answer["clarifications"]] == [
        "orders.ordered_on"
    ]
    assert answer["artefact"]["target"]["relation"] == "销售汇总表"
    conversation = f"/api/v0/conversations/{answer['conversation_id']}"
    (turn,) = get(asking, conversation).get_json()["data"]["turns"]
    assert (turn["question"], turn["question_type"]) == (SENTENCE, "ETL")
    asking.client.delete(conversation)
    assert get(asking, answer["artefact"]["url"]).status_code == 404


def test_a_request_that_is_given_up_ends(asking: Asking) -> None:
    _, asked = post(asking, {"question": UNDECIDED})
    answer = goes_on(asking, asked, {"date_column": "__cancel__"})
    assert (answer["status"], answer["artefact"]) == ("cancelled_by_user", None)


def test_a_program_is_told_what_is_open_and_never_asked(asking: Asking) -> None:
    body = {"question": UNDECIDED, "agent": "etl", "options": {"interactive": False}}
    _, answer = post(asking, {**body, "routing_mode": "hybrid"}, "/api/v0/ask_agent")
    assert answer["status"] == "needs_input"
    assert [question["kind"] for question in answer["questions"]] == ["date_column"]
    assert "routing_mode" in answer["warnings"][0]


CONVERSATIONS = {
    "zh": [
        ("再按城市拆分", [["2026-01-01", "北京", 10.5], ["2026-02-01", "北京", 20],
                    ["2026-02-01", None, None], [None, None, 5]]),
        ("去掉void的，不要按城市", [["2026-01-01", 10.5], ["2026-02-01", None], [None, 5]]),
        ("改用paid_at", [["2026-02-01", 10.5], ["2026-03-01", None], [None, 5]]),
        ("再按彩虹拆分", "彩虹"),
        ("只看2026年2月，再统计订单数", [["2026-02-01", 10.5, 1]]),
    ],
    "en": [
        ("also by city", [["2026-01-01", "北京", 10.5], ["2026-02-01", "北京", 20],
                          ["2026-02-01", None, None], [None, None, 5]]),
        ("without the voided ones, drop city",
         [["2026-01-01", 10.5], ["2026-02-01", None], [None, 5]]),
        ("use paid_at instead", [["2026-02-01", 10.5], ["2026-03-01", None], [None, 5]]),
        ("split by rainbow", "rainbow"),
        ("only February 2026, also count orders", [["2026-02-01", 10.5, 1]]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("lang", slow_beyond(1, ["zh", "en"]))
def test_a_follow_up_changes_the_request_before(asking: Asking, lang: str) -> None:
    options = {**QUICK, "feedback": False}
    first = f"从订单表按月汇总销售额，写入 sales_{lang}"
    _, asked = post(asking, {"question": first, "options": options})
    answer = goes_on(asking, asked, {"date_column": "orders.ordered_on"})
    conversation = {"conversation_id": answer["conversation_id"], "lang": lang}
    for question, expected in CONVERSATIONS[lang]:
        body = {"question": question, "agent": "etl", "options": options}
        _, answer = post(asking, {**body, **conversation}, "/api/v0/ask_agent")
        if isinstance(expected, str):  # a word without a place: the request before stays
            assert answer["status"] == "not_possible", answer
            assert any(expected in one["text"] for one in answer["impossible"])
            continue
        assert answer["status"] == "proven", answer
        assert sorted(answer["preview"]["rows"], key=str) == sorted(expected, key=str)
        assert answer["artefact"]["target"]["relation"] == f"sales_{lang}"


def test_what_can_not_be_built_says_why(asking: Asking) -> None:
    sources = [{"table_name": "ordrs"}, {"table_name": "users"}]
    _, answer = post(asking, {"intent": {**INTENT, "data_sources": sources}})
    assert answer["status"] == "not_possible"
    assert answer["impossible"][0]["suggestions"] == ["orders"]


def test_without_a_database_to_build_in_nothing_is_proven(
    asking: Asking, make_database: Callable[[str], str]
) -> None:
    url = make_database(SHOP)
    settings = Settings(database_url=url, scratch_database_url=url)
    with Asking(settings) as nowhere:
        _, answer = post(nowhere, {"intent": INTENT})
        assert (answer["status"], answer["preview"]) == ("unproven", None)
        assert "SCRATCH_DATABASE_URL" in answer["warnings"][0]
        assert get(nowhere, answer["artefact"]["url"]).status_code == 200


def test_a_draft_that_its_datasource_finds_expensive_is_built_with_a_warning(
    shop: Settings,
) -> None:
    codes = []
    for cost in (0, 1):
        with Asking(shop, max_plan_cost=cost) as asking:
            body = {"intent": INTENT, "options": {"feedback": False, **QUICK}}
            _, answer = post(asking, body)
        assert (answer["status"], answer["review"]["verdict"]) == ("proven", "pass"), answer
        codes.append([issue["code"] for issue in answer["review"]["issues"]])
    assert codes == [[], ["expensive"]]


def changed(sql: str) -> dict[str, Any]:
    return {"rating": "need_modification", "modified_sql": {"monthly_sales": sql}}


def losing_rows(source: str) -> str:
    """The target's SQL without the rows that have no month, which the tests notice."""
    return (
        "SELECT date_trunc('month', ordered_on)::date AS month, sum(amount) AS sales "
        f"FROM {source} WHERE ordered_on IS NOT NULL GROUP BY 1"
    )


def test_changed_sql_counts_once_it_is_proven(asking: Asking) -> None:
    _, judged = post(asking, {"intent": INTENT, "options": QUICK})
    files_url = judged["artefact"]["files_url"]
    # What reads anything but the model's inputs is not taken over.
    judged = goes_on(asking, judged, changed("SELECT 1 AS month, 2 AS sales FROM public.orders"))
    assert (judged["kind"], judged["evidence"]["status"]) == ("feedback", "passed")
    plan = json.loads(get(asking, f"{files_url}/plan.json").data)["plan"]
    (source,) = plan["nodes"][-1]["inputs"]
    judged = goes_on(asking, judged, changed(losing_rows(source)))
    assert (judged["kind"], judged["evidence"]["status"]) == ("feedback", "failed")
    answer = goes_on(asking, judged, {"rating": "unsatisfied"})
    assert answer["status"] == "failed"
    assert any("inputs" in warning for warning in answer["warnings"])
    assert answer["execution_path"].count("tester_agent") == 3


@needs_dbt
def test_the_dbt_that_is_installed_builds_drafts_and_what_was_changed_in_them(
    shop: Settings,
) -> None:
    with Asking(shop, etl_dbt=os.environ.get("ETL_DBT", "")) as asking:
        _, judged = post(asking, {"intent": INTENT, "options": QUICK})
        assert (judged["evidence"]["status"], judged["evidence"]["built_by"]) == ("passed", "dbt")
        tests = judged["evidence"]["tests"]
        assert {test["status"] for test in tests if not test["is_warning"]} == {"pass"}
        plan = json.loads(get(asking, f"{judged['artefact']['files_url']}/plan.json").data)["plan"]
        (source,) = plan["nodes"][-1]["inputs"]
        judged = goes_on(asking, judged, changed(losing_rows(source)))
        assert (judged["evidence"]["status"], judged["evidence"]["built_by"]) == ("failed", "dbt")


OPERATION = {"order": 1, "action": "join", "parameters": {"left": "orders", "right": "users"}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "question"),
    ({"question": " "}, "question"),
    ({"intent": 5}, "intent"),
    ({"intent": {}}, "intent.summary"),
    ({"intent": {**INTENT, "summary": " "}}, "intent.summary"),
    ({"intent": {**INTENT, "summary": "a\0"}}, "intent"),
    ({"intent": {**INTENT, "summary": "x" * 70_000}}, "intent"),
    ({"intent": {**INTENT, "constraints": ["x"], "extra": 1}}, "intent.extra"),
    (
        {"intent": {**INTENT, "operations": [{**OPERATION, "action": "jion"}]}},
        "intent.operations[0].action",
    ),
    (
        {"intent": {**INTENT, "operations": [OPERATION, OPERATION]}},
        "intent.operations[1].order",
    ),
    (
        {"intent": {**INTENT, "operations": [{**OPERATION, "parameters": {"left": 1}}]}},
        "intent.operations[0].parameters.left",
    ),
    ({"intent": INTENT, "options": {"rows": 1}}, "options.rows"),
    ({"intent": INTENT, "options": {"sample_rows": 0}}, "options.sample_rows"),
    ({"intent": INTENT, "options": {"time_zone": "Mars/Olympus"}}, "options.time_zone"),
    ({"intent": INTENT, "agent": "ask"}, "agent"),
]


@pytest.mark.parametrize(("body", "field"), WRONG, ids=[field for _, field in WRONG])
def test_what_is_wrong_in_a_request_is_named(
    asking: Asking, body: dict[str, Any], field: str
) -> None:
    status, error = post(asking, body)
    assert (status, error["error_type"], error["field"]) == (400, "invalid_request", field)


STRANGE_VALUES = """
    CREATE TABLE strange (
        id integer PRIMARY KEY, u uuid, i interval, t time, e inet, b bytea, j jsonb, a integer[],
        r int4range, ts timestamp, n numeric, d date
    );
    INSERT INTO strange VALUES
        (1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1 day 2 hours', '10:00', '10.0.0.1', '\\xde',
         '{"a": 1}', '{1,2}', '[1,3)', 'infinity', 'NaN', '9999-12-31'),
        (2, NULL, NULL, NULL, NULL, NULL, '[]', '{}', 'empty', '0044-03-15 BC', 1.5, '2026-01-01');
    CREATE TABLE visits (kind text, who integer, page text, about jsonb, at timestamp);
    INSERT INTO visits VALUES
        ('a', 1, 'x', '[]', '2024-01-01'), ('a', 1, 'x', '[]', '2024-01-01'),
        ('a', 2, 'y', '[]', '2024-01-02'), ('b', 1, NULL, '[]', NULL), ('b', 2, 'z', NULL, NULL),
        (NULL, 3, 'z', '{}', '2024-01-05'), (NULL, 3, 'z', '{}', '2024-01-05');
"""


@pytest.fixture(scope="module")
def strange_settings(make_database: Callable[[str], str], scratch_url: str) -> Settings:
    return Settings(database_url=make_database(STRANGE_VALUES), scratch_database_url=scratch_url)


@pytest.fixture(scope="module")
def strange(strange_settings: Settings) -> Iterator[Asking]:
    with Asking(strange_settings) as asking:
        yield asking


def of_strange(*operations: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "intent": {
            "summary": "strange",
            "data_sources": [{"table_name": "strange"}],
            "data_target": {"table_name": "strange_rows"},
            "operations": [
                {"order": order, "action": action, "parameters": parameters}
                for order, (action, parameters) in enumerate(operations)
            ],
        },
        "options": {"interactive": False, "mutants": False},
    }


KEPT_ONCE = ("dedup", {"table": "strange", "keys": ["id"]})


def test_values_of_all_types_are_handed_on_and_shown(strange: Asking) -> None:
    status, answer = post(strange, of_strange(KEPT_ONCE))
    assert (status, answer["status"]) == (200, "proven"), answer
    shown = dict(zip(answer["preview"]["columns"], answer["preview"]["rows"][0], strict=True))
    assert shown["u"] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert (shown["a"], shown["ts"], shown["n"]) == ("{1,2}", "infinity", "NaN")
    # Python has no such moments: what could not be compared is said.
    states = {test["id"]: test["status"] for test in answer["evidence"]["tests"]}
    assert states["reconcile_meaning_strange_rows"] == "skipped"
    assert any("interpreter" in warning for warning in answer["warnings"])


@pytest.mark.parametrize("sorting", [[], [{"column": "at", "direction": "desc"}]])
def test_a_dedup_of_rows_without_a_key_leaves_no_choice(
    strange: Asking, sorting: list[dict[str, str]]
) -> None:
    body = of_strange(("dedup", {"table": "visits", "keys": ["kind"], "order_by": sorting}))
    body["intent"]["data_sources"] = [{"table_name": "visits"}]
    status, answer = post(strange, body | {"options": {"interactive": False}})
    assert (status, answer["status"]) == (200, "proven"), answer
    assert answer["evidence"]["mutants"]["survivors"] == []
    assumed = [assumption["id"] for assumption in answer["assumptions"]]
    assert assumed == ([] if sorting else ["dedup_order_0"])


TYPES = ("u", "i", "t", "e", "b", "j", "a", "r", "ts", "n", "d")


def grouped_by(*columns: str) -> tuple[str, Mapping[str, Any]]:
    counted = {"function": "count", "as": "rows"}
    return "aggregate", {
        "group_by": [{"column": column} for column in columns],
        "measures": [counted],
    }


@pytest.mark.parametrize("column", TYPES)
def test_groups_of_values_of_all_types_are_proven(strange: Asking, column: str) -> None:
    status, answer = post(strange, of_strange(grouped_by(column)))
    assert (status, answer["status"]) == (200, "proven"), answer


@needs_dbt
def test_dbt_hands_on_values_of_all_types_and_groups_by_them(strange_settings: Settings) -> None:
    with Asking(strange_settings, etl_dbt=os.environ.get("ETL_DBT", "")) as asking:
        status, answer = post(asking, of_strange(KEPT_ONCE, grouped_by(*TYPES)))
        assert (status, answer["status"]) == (200, "proven"), answer
        assert answer["evidence"]["built_by"] == "dbt"


@pytest.mark.parametrize(
    ("column", "operator", "value", "expected"),
    [
        ("d", "=", "9999-12-31", 200),
        ("d", ">=", "0001-01-01", 200),
        ("ts", "<=", "9999-12-31", 400),
        ("d", ">", {"unit": "year", "offset": -10_000}, 400),
    ],
)
def test_days_at_the_ends_of_the_calendar_are_taken_or_refused(
    strange: Asking, column: str, operator: str, value: Any, expected: int
) -> None:
    condition = {"column": column, "operator": operator, "value": value}
    columns = ("sink", {"columns": ["id", "d"]})
    status, answer = post(strange, of_strange(("filter", {"conditions": [condition]}), columns))
    assert status == expected, answer
    if status == 200:
        assert answer["status"] == "proven", answer
    else:
        assert answer["field"].startswith("intent.operations[0].parameters.conditions[0].value")
