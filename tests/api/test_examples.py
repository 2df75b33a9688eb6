"""Questions to begin with: about the database that is connected, and answered by it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from api.access.key_file import KeyFile
from app_config import Settings
from databases.demo.questions import DEMO_QUESTIONS
from tests.support.asking import Asking

PATH = "/api/v0/examples"
LANGUAGES = ("zh", "en")
DDL = """
CREATE TABLE vessel (vessel_id int PRIMARY KEY, vessel_name text NOT NULL, flag text,
    tonnage numeric,
                     captain_phone text);
CREATE TABLE voyage (voyage_id int PRIMARY KEY, vessel_id int REFERENCES vessel, sailed_on date,
    cargo_weight numeric);
COMMENT ON TABLE vessel IS '船舶'; COMMENT ON COLUMN vessel.tonnage IS '吨位';
COMMENT ON TABLE voyage IS '航次';
COMMENT ON COLUMN voyage.cargo_weight IS '货物重量';
INSERT INTO vessel SELECT n, 'vessel ' || n, (ARRAY['NO', 'PA'])[n % 2 + 1], n * 10,
    '1380000000' || n % 3
    FROM generate_series(1, 20) n;
INSERT INTO voyage SELECT n, n % 20 + 1, DATE '2024-01-01' + n, n FROM generate_series(1, 60) n;
"""


def answered(asking: Asking, lang: str) -> list[dict[str, Any]]:
    """The answers to the examples of a language."""
    listed = asking.client.get(PATH, query_string={"lang": lang}).json
    assert listed is not None and listed["data"]["lang"] == lang
    bodies = [asking.sync({"question": question}) for question in listed["data"]["examples"]]
    assert [status for status, _ in bodies] == [200] * len(bodies)
    return [body["data"] for _, body in bodies]


def test_examples_are_about_the_connected_database_and_it_answers_them(
    make_database: Callable[[str], str],
) -> None:
    with Asking(Settings(database_url=make_database(DDL))) as asking:
        for lang in LANGUAGES:
            answers = answered(asking, lang)
            assert answers
            assert all(answer["query_result"]["rows"] for answer in answers)
            assert all("ORDER BY" in answer["sql"] for answer in answers), "no mere number of rows"
            assert not any("13800" in answer["sql"] for answer in answers)


def test_a_database_without_tables_has_none(make_database: Callable[[str], str]) -> None:
    with Asking(Settings(database_url=make_database(""))) as asking:
        assert answered(asking, "en") == []


def test_the_demo_has_its_own_and_answers_them(demo_url: str, tmp_path: Path) -> None:
    with Asking(Settings(data_dir=str(tmp_path))) as asking:
        for index, lang in enumerate(LANGUAGES):
            body = asking.client.get(PATH, query_string={"lang": lang}).json
            assert body is not None
            assert body["data"]["examples"] == [question[index] for question in DEMO_QUESTIONS]
        assert list(tmp_path.iterdir()) == [], "nothing has to be started to name them"
    with Asking(Settings(database_url=demo_url)) as asking:
        for question in (text for pair in DEMO_QUESTIONS for text in pair):
            status, answer = asking.sync({"question": question})
            assert (status, bool(answer["data"]["query_result"]["rows"])) == (200, True), question


def test_the_language_is_checked(demo_url: str) -> None:
    with Asking(Settings(database_url=demo_url)) as asking:
        assert asking.client.get(PATH, query_string={"lang": "fr"}).status_code == 400
        spoken = asking.client.get(PATH, headers={"Accept-Language": "zh-CN"}).json
        assert spoken is not None and spoken["data"]["lang"] == "zh"


def test_a_database_that_is_away_is_said_so() -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    with Asking(Settings(database_url=url)) as asking:
        answer = asking.client.get(PATH)
        assert answer.json is not None
        assert (answer.status_code, answer.json["data"]["error_type"]) == (
            503,
            "database_unavailable",
        )


def test_examples_come_before_the_key_where_the_operator_allows_it(
    make_database: Callable[[str], str], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    KeyFile(keys).create("ann")
    database = make_database(DDL)
    for is_allowed, status in ((True, 200), (False, 401)):
        settings = Settings(
            database_url=database, api_keys_file=str(keys), examples_without_key=is_allowed
        )
        with Asking(settings) as asking:
            assert asking.client.get(PATH).status_code == status
            assert asking.client.get("/api/v0/completions?q=v").status_code == 401
            headers = {"X-API-Key": "citu_key_wrong"}
            assert asking.client.get(PATH, headers=headers).status_code == 401
