"""`/api/v0/schema`: tables found with reasons, listed by pages and described, as far as the caller
may read them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg2.extensions import parse_dsn

from app_config import Settings
from common.actor import NOBODY, Actor
from common.runtime import run
from databases.datasources import DEFAULT, Datasource, Datasources
from databases.demo import SEMANTIC_FILE
from databases.options import DatabaseOptions
from knowledge.tables.schema_service import SchemaService
from tests.support.api_schemas import check_schema
from tests.support.asking import Asking
from tests.support.databases import as_admin, execute
from tests.support.live import eventually

DDL = """
CREATE TYPE size AS ENUM ('small', 'large');
CREATE TABLE student (student_id int PRIMARY KEY, full_name text, phone text, house text,
    UNIQUE (student_id, house));
CREATE TABLE course (course_id int PRIMARY KEY, "courseTitle" text, room_size size,
                     term text CHECK (term IN ('spring', 'autumn')));
CREATE TABLE taken (student_id int REFERENCES student, course_id int REFERENCES course,
    enrolled_on date,
                    PRIMARY KEY (student_id, course_id));
CREATE TABLE salary_band (band int PRIMARY KEY);
CREATE TABLE kiosk_visit (visit int PRIMARY KEY, kiosk_id int);
CREATE TABLE kiosk (kiosk_id int PRIMARY KEY, place text);
CREATE SCHEMA old; CREATE TABLE old.student (student_id int PRIMARY KEY);
COMMENT ON TABLE course IS '课程安排'; COMMENT ON COLUMN course.term IS '学期';
INSERT INTO student SELECT n, 'Ada Byron', '1380000000' || n % 4, (ARRAY['Ravenhall',
    'Oakfield'])[n % 2 + 1]
    FROM generate_series(1, 40) n;
INSERT INTO kiosk SELECT n, 'Harbourside' FROM generate_series(1, 20) n;
"""
SEARCH, TABLES = "/api/v0/schema/search", "/api/v0/schema/tables"


@pytest.fixture(scope="module")
def url(make_database: Callable[[str], str]) -> str:
    return make_database(DDL)


@pytest.fixture(scope="module")
def asking(url: str) -> Iterator[Asking]:
    with Asking(
        Settings(database_url=url, denied_objects="public.salary_band,public.student.full_name")
    ) as asking:
        yield asking


def get(asking: Asking, path: str, status: int = 200, **query: Any) -> dict[str, Any]:
    """`data` of the answer, which has that status."""
    with asking.client.get(path, query_string=query) as response:
        assert response.json is not None
        assert response.status_code == response.json["code"] == status, response.json
        data: dict[str, Any] = response.json["data"]
        return data


def search(asking: Asking, question: str, **query: Any) -> dict[str, dict[str, Any]]:
    """The tables found for a question by name, in their order."""
    data = get(asking, SEARCH, q=question, **query)
    check_schema("SchemaSearch", data)
    return {table["name"]: table for table in data["tables"]}


def test_tables_that_were_added_are_there_after_a_reload(
    make_database: Callable[[str], str], admin_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databases.catalog.catalog._FRESH_S", 0)
    url = make_database("CREATE TABLE one (a int)")
    with Asking(Settings(database_url=url)) as asking:
        assert get(asking, TABLES)["table_count"] == 1
        role = parse_dsn(url)["user"]
        add = ("CREATE TABLE two (b int)", f"GRANT SELECT ON two TO {role}")
        execute(as_admin(url, admin_url), *add)
        with asking.client.post("/api/v0/schema/reload") as reply:
            assert reply.get_json()["data"] == {"table_count": 2}


# ------------------------------------------------------------------------------
# completions


def completions(asking: Asking, typed: str, **query: Any) -> list[tuple[str, str, str]]:
    """Kind, text and completed question of each."""
    data = get(asking, "/api/v0/completions", q=typed, **query)
    check_schema("Completions", data)
    return [
        (completion["kind"], completion["text"], completion["completed"])
        for completion in data["completions"]
    ]


def test_what_is_typed_is_completed_by_names_and_values(asking: Asking) -> None:
    assert ("table", "课程安排", "这学期的课程安排") in completions(asking, "这学期的课")
    assert ("column", "room size", "courses by room size") in completions(asking, "courses by roo")
    assert ("value", "Ravenhall", "who is in Ravenhall") in completions(asking, "who is in rav")
    assert completions(asking, "xqzt") == completions(asking, " ") == []
    assert len(completions(asking, "co", limit=1)) == 1
    assert get(asking, "/api/v0/completions", 400)["field"] == "q"
    assert get(asking, "/api/v0/completions", 400, q="a\0")["field"] == "q"


def test_what_may_not_be_read_completes_nothing(asking: Asking) -> None:
    for typed in ("salary", "full", "Ada", "138"):
        assert completions(asking, typed) == [], typed


def test_earlier_questions_complete_those_of_their_user_alone(asking: Asking) -> None:
    body = {"question": "How many kiosks?", "user_id": "ann"}
    asking.client.post("/api/v0/ask_agent", json=body, buffered=True)
    wanted = ("question", "How many kiosks?", "How many kiosks?")
    # They are left out where reading them takes longer than a person who types would wait.
    eventually(lambda: wanted in completions(asking, "how many k", user_id="ann"))
    assert wanted not in completions(asking, "how many k", user_id="bob")


# ------------------------------------------------------------------------------
# search


def test_tables_are_found_by_names_cut_at_their_humps(asking: Asking) -> None:
    found = search(asking, "titles of the courses")
    assert next(iter(found)) == "course"
    reasons = found["course"]["reasons"]
    assert {
        "kind": "name",
        "words": ["course"],
        "text": "course",
        "column": None,
        "is_literal": True,
    } in reasons
    assert {"course", "title"} in [
        set(reason["words"]) for reason in reasons if reason.get("column") == "courseTitle"
    ]


def test_a_table_that_is_called_so_comes_before_those_that_say_it_often(demo_url: str) -> None:
    for semantic_file in ("", str(SEMANTIC_FILE)):
        settings = Settings(database_url=demo_url, semantic_file=semantic_file)
        with Asking(settings) as demo:
            found = search(demo, "revenue")
            assert next(iter(found)) == "daily_revenue"
            scores = [one["score"] for one in found.values()]
            assert scores == sorted(scores, reverse=True)


def test_tables_are_found_by_comments_in_chinese(asking: Asking) -> None:
    (reason, *_) = search(asking, "这学期的课程")["course"]["reasons"]
    assert reason["kind"] in ("comment", "column_comment") and reason["is_literal"]


def test_a_word_of_the_same_stem_is_no_literal_one(asking: Asking) -> None:
    reasons = search(asking, "enrollments")["taken"]["reasons"]
    assert [
        (reason["words"], reason["column"], reason["is_literal"])
        for reason in reasons
        if reason["kind"] == "column"
    ] == [(["enrollment"], "enrolled_on", False)]


def test_a_link_table_comes_along_and_says_who_led_to_it(asking: Asking) -> None:
    found = search(asking, "which students are in the course")
    led = [
        (reason["kind"], reason["table"], reason["is_declared"])
        for reason in found["taken"]["reasons"]
        if "is_declared" in reason
    ]
    assert set(led) == {("refers_to", "student", True), ("refers_to", "course", True)}


def test_a_link_may_be_told_by_names_alone(asking: Asking) -> None:
    (link,) = [
        reason
        for reason in search(asking, "places")["kiosk_visit"]["reasons"]
        if "is_declared" in reason
    ]
    assert (link["kind"], link["table"], link["is_declared"]) == ("refers_to", "kiosk", False)


def test_stored_values_lead_to_their_table(asking: Asking) -> None:
    reasons = search(asking, "Ravenhall")["student"]["reasons"]
    assert [(reason["kind"], reason["text"], reason["column"]) for reason in reasons] == [
        ("value", "Ravenhall", "house")
    ]


def test_personal_values_lead_nowhere(asking: Asking) -> None:
    assert search(asking, "13800000001") == search(asking, "Byron") == {}


def test_the_limit_is_kept(asking: Asking) -> None:
    assert len(search(asking, "students in courses", limit=1)) == 1
    assert len(search(asking, "students in courses")) > 2


# ------------------------------------------------------------------------------
# tables


def test_tables_come_by_pages(asking: Asking) -> None:
    names, cursor = [], None
    while True:
        page = get(asking, TABLES, limit=2, **({"cursor": cursor} if cursor else {}))
        check_schema("TablePage", page)
        assert len(page["tables"]) <= 2 and page["table_count"] == 6
        names += [(table["schema"], table["name"]) for table in page["tables"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    everything = [
        ("public", name) for name in ("course", "kiosk", "kiosk_visit", "student", "taken")
    ]
    assert names == [("old", "student"), *everything], "salary_band may not be read"


def test_a_table_is_described(asking: Asking) -> None:
    data = get(asking, f"{TABLES}/Course")
    check_schema("DescribedTable", data)
    columns = {column["name"]: column for column in data["columns"]}
    assert (data["schema"], data["name"], data["kind"], data["comment"]) == (
        "public",
        "course",
        "table",
        "课程安排",
    )
    assert (data["primary_key"], columns["course_id"]["nullable"]) == (["course_id"], False)
    assert (columns["room_size"]["allowed"], columns["term"]["allowed"]) == (
        ["small", "large"],
        ["spring", "autumn"],
    )
    assert columns["term"]["comment"] == "学期"
    assert data["referenced_by"] == [
        {
            "schema": "public",
            "table": "taken",
            "columns": ["course_id"],
            "target_columns": ["course_id"],
        }
    ]
    keys = get(asking, f"{TABLES}/public.taken")["foreign_keys"]
    assert [(key["table"], key["columns"]) for key in keys] == [
        ("course", ["course_id"]),
        ("student", ["student_id"]),
    ]


def test_only_values_that_are_nobody_s_are_shown(asking: Asking, url: str) -> None:
    columns = {
        column["name"]: column for column in get(asking, f"{TABLES}/public.student")["columns"]
    }
    assert list(columns) == ["student_id", "phone", "house"], "full_name may not be read"
    assert (columns["house"]["values"], columns["house"]["values_are_all"]) == (
        ["Oakfield", "Ravenhall"],
        True,
    )
    assert (columns["phone"]["is_personal"], columns["phone"]["values"]) == (True, [])
    with Asking(Settings(database_url=url, schema_samples=False)) as silent:
        described = get(silent, f"{TABLES}/public.student")
        assert [column["values"] for column in described["columns"]] == [[]] * 4
        assert search(silent, "Ravenhall") == {}
        assert get(silent, f"{TABLES}/course")["columns"][3]["allowed"] == ["spring", "autumn"], (
            "not a stored value"
        )


def test_a_name_of_several_tables_is_refused_with_both(asking: Asking) -> None:
    data = get(asking, f"{TABLES}/student", status=400)
    assert (data["error_type"], data["field"]) == ("invalid_request", "name")
    assert "old.student" in data["error"] and "public.student" in data["error"]
    assert get(asking, f'{TABLES}/"old"."student"')["schema"] == "old"


@pytest.mark.parametrize(
    ("wrong", "meant"), [("studnet", "student"), ("public.cours", "course"), ("课程", "course")]
)
def test_an_unknown_name_comes_with_near_ones(asking: Asking, wrong: str, meant: str) -> None:
    data = get(asking, f"{TABLES}/{wrong}", status=404)
    assert data["error_type"] == "not_found" and meant in data["suggestions"][0]
    assert f"Did you mean: {data['suggestions'][0]}" in data["error"]
    assert "您是不是要找" in get(asking, f"{TABLES}/{wrong}", status=404, lang="zh")["error"]


def test_what_may_not_be_read_is_not_there(asking: Asking) -> None:
    data = get(asking, f"{TABLES}/salary_band", status=404)
    assert "suggestions" not in data
    assert "salary_band" not in search(asking, "salary band")
    assert search(asking, "full name") == {}


def test_callers_see_what_their_groups_may_read(url: str) -> None:
    options = DatabaseOptions(group_denied_objects={"guests": ["public.course"]})
    datasources = Datasources({DEFAULT: Datasource(lambda: url, options)})
    service = SchemaService(lambda actor: datasources.open(DEFAULT, actor), samples=True)

    def names(actor: Actor) -> list[str]:
        return [
            table["name"]
            for table in run(service.search("course", 10, actor), timeout_s=30)["tables"]
        ]

    try:
        assert names(NOBODY)[0] == "course"
        assert "course" not in names(Actor("eve", groups=("guests",)))
        assert names(NOBODY)[0] == "course"
    finally:
        datasources.close()


# ------------------------------------------------------------------------------
# bad input


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        (SEARCH, {}, "q"),
        (SEARCH, {"q": "  "}, "q"),
        (SEARCH, {"q": "x" * 5000}, "q"),
        (SEARCH, {"q": "a\0b"}, "q"),
        (SEARCH, {"q": "course", "limit": 0}, "limit"),
        (SEARCH, {"q": "course", "limit": 51}, "limit"),
        (SEARCH, {"q": "course", "limit": "ten"}, "limit"),
        (SEARCH, {"q": "course", "lang": "fr"}, "lang"),
        (TABLES, {"limit": 101}, "limit"),
        (TABLES, {"cursor": "nonsense"}, "cursor"),
        (TABLES, {"cursor": "é"}, "cursor"),
        (TABLES, {"cursor": "YQBi!"}, "cursor"),
        (f"{TABLES}/{'x' * 300}", {}, "name"),
    ],
)
def test_bad_input_names_its_field(
    asking: Asking, path: str, query: dict[str, Any], field: str
) -> None:
    data = get(asking, path, status=400, **query)
    assert (data["error_type"], data["field"]) == ("invalid_request", field)


def test_a_database_that_is_away_is_said_so() -> None:
    with Asking(Settings(database_url="postgresql://nobody@127.0.0.1:1/nothing")) as asking:
        for path in (SEARCH, TABLES, f"{TABLES}/a"):
            assert get(asking, path, status=503, q="a")["error_type"] == "database_unavailable"
