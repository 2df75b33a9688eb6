"""An answer's rows as files: all of them, equal in every format, harmless in spreadsheets, read
while they are sent.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from openpyxl import load_workbook
from werkzeug.http import parse_options_header
from werkzeug.wrappers import Response

from app_config import Settings
from common.errors import CituError
from tests.support.asking import Asking
from tests.support.live import eventually
from tests.support.memory import peak_growth
from tests.support.openai_replies import Called
from tests.support.openai_server import OpenAiServer, Reply

MANY = 60_000
# One row per kind of value: as SQL, in JSON, in CSV, in XLSX.
VALUES: list[tuple[str, Any, str, Any]] = [
    ("NULL::int", None, "", None),
    ("true", True, "true", True),
    ("-42", -42, "-42", -42),
    ("9007199254740993", 9007199254740993, "9007199254740993", "9007199254740993"),
    ("12.50", Decimal("12.50"), "12.50", 12.5),
    (
        "0.1234567890123456789",
        Decimal("0.1234567890123456789"),
        "0.1234567890123456789",
        "0.1234567890123456789",
    ),
    (f"{'9' * 35}::numeric", 10**35 - 1, "9" * 35, "9" * 35),
    (f"1{'0' * 30}2::numeric", 10**31 + 2, f"1{'0' * 30}2", f"1{'0' * 30}2"),
    ("1e300::numeric", 10**300, "1" + "0" * 300, 1e300),
    ("1e400::numeric", 10**400, "1" + "0" * 400, "1" + "0" * 400),
    ("2.5::float8", 2.5, "2.5", 2.5),
    ("date '2026-02-28'", "2026-02-28", "2026-02-28", datetime(2026, 2, 28)),
    ("date '0044-03-15 BC'", "0044-03-15 BC", "0044-03-15 BC", "0044-03-15 BC"),
    (
        "timestamp '2026-02-28 12:30:01'",
        "2026-02-28T12:30:01",
        "2026-02-28T12:30:01",
        datetime(2026, 2, 28, 12, 30, 1),
    ),
    ("timestamp 'infinity'", "infinity", "infinity", "infinity"),
    ("'=cmd()'::text", "=cmd()", "'=cmd()", "=cmd()"),
    ("'＝cmd()'::text", "＝cmd()", "'＝cmd()", "＝cmd()"),
    (
        "U&'\\3000\\FEFF ＠cmd()'::text",
        "\u3000\ufeff ＠cmd()",
        "'\u3000\ufeff ＠cmd()",
        "\u3000\ufeff ＠cmd()",
    ),
    ("'＋１'::text", "＋１", "'＋１", "＋１"),
    ("'@sum(1)'::text", "@sum(1)", "'@sum(1)", "@sum(1)"),
    ("E'\\n=1'", "\n=1", "'\n=1", "\n=1"),
    ("'-1.5'::text", "-1.5", "-1.5", "-1.5"),
    (
        "'https://example.com'::text",
        "https://example.com",
        "https://example.com",
        "https://example.com",
    ),
    (r"E'\x01'", "\x01", "\x01", "_x0001_"),  # as workbooks write what XML can't hold
    ("E'a\"b,c\\nd'::text", 'a"b,c\nd', 'a"b,c\nd', 'a"b,c\nd'),
    ("'昭山服务区 🚗'::text", "昭山服务区 🚗", "昭山服务区 🚗", "昭山服务区 🚗"),
    ("ARRAY[1, 2]", [1, 2], "[1,2]", "[1,2]"),
    ("""'{"a": [1.10]}'::jsonb""", {"a": [Decimal("1.10")]}, '{"a":[1.10]}', '{"a":[1.10]}'),
]
WIDE = "SELECT " + ", ".join(f"{sql} AS c{number}" for number, (sql, *_) in enumerate(VALUES))


@pytest.fixture(scope="module")
def audit_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit") / "audit.jsonl"


@pytest.fixture(scope="module")
def asking(demo_url: str, model: OpenAiServer, audit_path: Path) -> Iterator[Asking]:
    changes = {
        "audit_log": str(audit_path),
        "export_max_rows": 100_000,
        "enable_result_summary": False,
    }
    with Asking(Settings(database_url=demo_url), model, **changes) as asking:
        yield asking


def _asked(asking: Asking, sql: str, user_id: str = "ann") -> dict[str, Any]:
    """The answer that `sql` gives."""
    body = {"question": "Some rows", "user_id": user_id, "routing_mode": "database_direct"}
    code, envelope = asking.sync(body, Reply(sql))
    assert code == 200, envelope
    return dict(envelope["data"])


def _export(asking: Asking, run_id: str, **query: str) -> Response:
    return asking.client.get(
        f"/api/v0/runs/{run_id}/export", query_string={"user_id": "ann", **query}
    )


def _refused(response: Response) -> tuple[int, str, str]:
    envelope = json.loads(response.get_data())
    return response.status_code, envelope["data"]["error_type"], envelope["data"].get("field", "")


def _rows_of_csv(text: bytes) -> list[list[str]]:
    assert text.startswith(b"\xef\xbb\xbf")  # Excel takes it for UTF-8
    return list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))


def test_every_kind_of_value_is_the_same_in_every_format(asking: Asking) -> None:
    run_id = _asked(asking, WIDE)["run_id"]
    names = [f"c{number}" for number in range(len(VALUES))]
    with _export(asking, run_id, format="json") as response:
        told = json.loads(response.get_data(), parse_float=Decimal)
    assert told["columns"] == names
    assert told["rows"] == [
        [Decimal(str(one)) if isinstance(one, float) else one for _, one, _, _ in VALUES]
    ]
    assert (told["row_count"], told["is_limited"]) == (1, False)
    with _export(asking, run_id, values="stored") as response:
        assert response.content_type == "text/csv; charset=utf-8"
        name = parse_options_header(response.headers["Content-Disposition"])[1]["filename"]
        assert re.fullmatch(r"Some rows \d{4}-\d\d-\d\d\.csv", name), "the question and the day"
        assert _rows_of_csv(response.get_data()) == [names, [one for _, _, one, _ in VALUES]]
    with _export(asking, run_id, format="xlsx", values="stored") as response:
        sheet = load_workbook(io.BytesIO(response.get_data())).active
    assert sheet is not None
    assert [[cell.value for cell in row] for row in sheet.iter_rows()] == [
        names,
        [one for *_, one in VALUES],
    ]
    assert {cell.data_type for cell in sheet[2]} <= {"n", "s", "b", "d"}  # "f" would be a formula


def test_files_say_what_people_call_columns_and_values(
    make_database: Callable[[str], str], model: OpenAiServer
) -> None:
    url = make_database(
        """
        CREATE TABLE shop (shop_id int PRIMARY KEY, shop_name text NOT NULL);
        CREATE TABLE member (id int PRIMARY KEY, level int, joined_on date, paid numeric(9,2),
            shop_id int REFERENCES shop);
        COMMENT ON COLUMN member.level IS '会员等级：1=普通 2=银卡';
        COMMENT ON COLUMN member.paid IS '消费金额（元）';
        COMMENT ON TABLE member IS '会员';
        COMMENT ON TABLE shop IS '门店';
        INSERT INTO shop VALUES (7, '东湖店');
        INSERT INTO member VALUES (1, 2, '2026-02-28', 1234.5, 7);
        """
    )
    sql = "SELECT id, level, joined_on, paid, shop_id FROM member"
    settings = Settings(database_url=url, enable_result_summary=False)
    with Asking(settings, model) as asking:
        run_id = _asked(asking, sql)["run_id"]
        with _export(asking, run_id, lang="zh") as response:
            labelled = _rows_of_csv(response.get_data())
        with _export(asking, run_id, lang="zh", values="stored") as response:
            stored = _rows_of_csv(response.get_data())
        with _export(asking, run_id, lang="zh", format="xlsx") as response:
            sheet = load_workbook(io.BytesIO(response.get_data())).active
    assert labelled[0][:2] == ["编号", "会员等级"] and labelled[1] == [
        "1",
        "银卡",
        "2026-02-28",
        "1234.50",
        "东湖店",
    ]
    assert labelled[0][3:] == ["消费金额 (元)", "门店"]
    assert stored == [
        ["id", "level", "joined_on", "paid", "shop_id"],
        ["1", "2", "2026-02-28", "1234.50", "7"],
    ]
    assert sheet is not None
    key, level, day, paid, shop = sheet[2]
    assert (level.value, day.value, paid.value) == ("银卡", datetime(2026, 2, 28), 1234.5)
    assert (shop.value, sheet["E1"].value) == ("东湖店", "门店")
    assert (key.number_format, paid.number_format) == ("General", "#,##0.00")
    assert sheet.column_dimensions["C"].width >= len("2026-02-28")


def test_a_reader_that_streams_the_sheet_finds_all_rows(asking: Asking) -> None:
    """Read with the size that the sheet states, or as it is found where it states none."""
    run_id = _asked(
        asking, "SELECT x AS number, DATE '2026-01-01' + x AS day FROM generate_series(1, 500) AS x"
    )["run_id"]
    with _export(asking, run_id, format="xlsx") as response:
        book = load_workbook(io.BytesIO(response.get_data()), read_only=True)
    sheet = book.worksheets[0]
    numbers = [row[0] for row in sheet.iter_rows(values_only=True)]
    assert numbers == ["number", *range(1, 501)]


def test_a_result_without_columns_is_a_file_all_the_same(asking: Asking) -> None:
    run_id = _asked(asking, "SELECT FROM service_area LIMIT 2")["run_id"]
    with _export(asking, run_id, format="json") as response:
        assert (response.get_json()["columns"], response.get_json()["row_count"]) == ([], 2)
    with _export(asking, run_id, format="xlsx") as response:
        sheet = load_workbook(io.BytesIO(response.get_data())).active
    assert sheet is not None
    assert not any(sheet.iter_rows())


@pytest.mark.slow
def test_rows_beyond_those_of_the_answer_take_no_memory(asking: Asking) -> None:
    """The worker holds a page, not the result."""
    sql = (
        "SELECT x AS number, x * 1.5 AS amount, 'name ' || x AS label FROM generate_series(1, "
        f"{MANY}) AS x"
    )
    answer = _asked(asking, sql)
    assert (answer["query_result"]["row_count"], answer["query_result"]["is_limited"]) == (
        200,
        True,
    )
    for kind in ("csv", "json", "xlsx"):
        with peak_growth() as growth, _export(asking, answer["run_id"], format=kind) as response:
            lengths = [len(piece) for piece in response.iter_encoded()]
        assert len(lengths) > MANY // 3_000, kind  # it was sent while it was read
        assert max(lengths) < 1_000_000, kind
        assert growth.megabytes < 30, kind


@pytest.mark.parametrize(("rows", "is_limited"), [(40, False), (41, True), (0, False)])
def test_the_most_rows_of_a_file(
    demo_url: str, model: OpenAiServer, rows: int, *, is_limited: bool
) -> None:
    settings = Settings(database_url=demo_url, enable_result_summary=False)
    with Asking(settings, model, export_max_rows=40) as asking:
        run_id = _asked(asking, f"SELECT x FROM generate_series(1, {rows}) AS x")["run_id"]
        with _export(asking, run_id, format="json") as response:
            told = json.loads(response.get_data())
            assert response.headers["X-Max-Rows"] == "40"
    assert [row[0] for row in told["rows"]] == list(range(1, min(rows, 40) + 1))
    assert (told["row_count"], told["is_limited"]) == (min(rows, 40), is_limited)


def test_only_an_answer_of_one_s_own_with_rows_is_exported(asking: Asking) -> None:
    answer = _asked(asking, "SELECT 1 AS one")
    hello = {"question": "Hello", "user_id": "ann", "routing_mode": "chat_direct"}
    chat = asking.sync(hello, Reply("Hi"))[1]["data"]
    with _export(asking, answer["run_id"], user_id="bob") as response:
        assert _refused(response) == (404, "not_found", "")
    with _export(asking, chat["run_id"]) as response:
        assert _refused(response) == (404, "not_found", "")
    with _export(asking, "run_0123456789abcdef01234567") as response:
        assert _refused(response) == (404, "not_found", "")
    with _export(asking, answer["run_id"], format="pdf") as response:
        assert _refused(response) == (400, "invalid_request", "format")


def test_an_answer_is_found_in_its_conversation_when_its_run_is_gone(
    demo_url: str, model: OpenAiServer
) -> None:
    settings = Settings(database_url=demo_url, enable_result_summary=False)
    with Asking(settings, model, run_ttl_s=0.2) as asking:
        answer = _asked(asking, "SELECT 7 AS seven", "ann")
        address = f"/api/v0/runs/{answer['run_id']}"
        eventually(
            lambda: asking.client.get(address, query_string={"user_id": "ann"}).status_code == 404,
            20,
        )
        for named in ({}, {"conversation_id": answer["conversation_id"]}):
            with _export(asking, answer["run_id"], **named) as response:
                assert _rows_of_csv(response.get_data()) == [["seven"], ["7"]]
        with _export(asking, answer["run_id"], user_id="bob") as response:
            assert _refused(response) == (404, "not_found", "")


def test_an_error_in_the_middle_is_no_whole_file(asking: Asking) -> None:
    """Sorting would show the error at once; so the rows come as they are made."""
    fails_late = "SELECT x, 100 / (30000 - x) AS share FROM generate_series(1, 60000) AS x"
    run_id = _asked(asking, fails_late)["run_id"]
    for kind in ("csv", "json", "xlsx"):
        with _export(asking, run_id, format=kind) as response, pytest.raises(CituError):
            for _ in response.iter_encoded():
                pass


def test_the_audit_log_says_what_was_exported_and_how_much_of_it(
    asking: Asking, audit_path: Path, demo_url: str
) -> None:
    sql = f"SELECT x AS left_early FROM generate_series(1, {MANY}) AS x"
    answer = _asked(asking, sql)
    with _export(asking, answer["run_id"]) as response:
        next(iter(response.iter_encoded()))

    def exported() -> list[dict[str, Any]]:
        lines = map(json.loads, audit_path.read_text().splitlines())
        return [
            line
            for line in lines
            if line["run_id"] == answer["run_id"] and line["source"] == "export"
        ]

    line = eventually(exported)[0]
    assert (line["sql"], line["user_id"], line["verdict"]) == (sql, "ann", "cancelled")
    assert line["rows"] < MANY

    def is_gone() -> bool:
        with psycopg2.connect(demo_url) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' "
                "AND query LIKE '%FROM citu'"
            )
            return bool(cursor.fetchall() == [(0,)])

    eventually(is_gone)


CHARTS = {
    "line": (
        "SELECT x::text AS year, x * 2 AS n, 'a$b$' AS part FROM generate_series(2000, 2040) AS x"
    ),
    "bar": "SELECT '<b>' || x AS part, -x::numeric AS n FROM generate_series(1, 20) AS x",
    "number": "SELECT 1234567.5 AS n",
}


@pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed (requirements-charts.txt)"
)
def test_a_chart_is_a_picture(asking: Asking) -> None:
    for sql in CHARTS.values():
        with _export(asking, _asked(asking, sql)["run_id"], format="png") as response:
            assert (response.status_code, response.content_type) == (200, "image/png"), sql
            assert response.get_data().startswith(b"\x89PNG")


def test_a_picture_needs_a_chart_and_matplotlib(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = _asked(asking, "SELECT 'a' AS text")["run_id"]
    if find_spec("matplotlib") is not None:
        with _export(asking, run_id, format="png") as response:
            assert _refused(response) == (404, "not_found", "")
    monkeypatch.setattr("agent.services.export_service.can_draw", lambda: False)
    with _export(asking, run_id, format="png") as response:
        assert _refused(response) == (400, "invalid_request", "format")


def test_a_picture_is_of_the_chart_that_the_user_saw(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool may have been asked for it, and it is not the one the rows would get by themselves."""
    sql = (
        "SELECT category, count(*) AS n, sum(monthly_rent) AS rent FROM shop GROUP BY 1 ORDER BY 2"
    )
    chart = {"call_id": "rows", "type": "pie", "x": None, "y": "rent"}
    calls = [Called("run_sql", {"sql": sql}, "rows"), Called("chart", chart, "pie")]
    body = {"question": "Some rows", "user_id": "ann", "agent": "tool_loop", "lang": "en"}
    code, envelope = asking.sync(body, *(Reply(calls=[call]) for call in calls), Reply("Done."))
    assert code == 200, envelope
    seen: list[dict[str, Any]] = []

    def chart_png(chart: dict[str, Any], *_others: Any) -> bytes:
        seen.append(chart)
        return b"picture"

    monkeypatch.setattr("agent.services.export_service.can_draw", lambda: True)
    monkeypatch.setattr("agent.services.export_service.chart_png", chart_png)
    for call in ({}, {"call_id": "pie"}, {"call_id": "rows"}):
        with _export(
            asking, envelope["data"]["run_id"], format="png", lang="en", **call
        ) as response:
            assert response.status_code == 200, response.get_data()
    assert seen[:2] == [envelope["data"]["chart"]] * 2
    assert [(chart["type"], chart["y"]) for chart in seen] == [
        ("pie", "rent"),
        ("pie", "rent"),
        ("bar", "n"),
    ]
