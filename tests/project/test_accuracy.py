"""The measurement of accuracy: what counts as the same result, and each question's outcome."""

import datetime
import json
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.serving import make_server

from api.access.key_file import KeyFile
from app_config import Settings
from benchmarks.__main__ import main
from benchmarks.accuracy_judging import (
    Judged,
    NotLetIn,
    Outcome,
    citu_at,
    citu_here,
    measure,
    measured_settings,
)
from benchmarks.accuracy_questions import AccuracyQuestion, read_questions
from benchmarks.accuracy_report import comparison, lines, read_report, report
from benchmarks.result_sets import same_result
from tests.support.live import GAUGES
from tests.support.openai_replies import Reply, Request
from tests.support.openai_server import OpenAiServer
from unified_api import create_app

# ------------------------------------------------------------------------------
# results

_DAY = datetime.date(2026, 3, 1)
_MIDNIGHT = datetime.datetime(2026, 3, 1)


@pytest.mark.parametrize(
    ("wanted", "answer", "is_same"),
    [
        ([], [], True),
        ([], [(None,)], False),
        ([(1, "a"), (2, "b")], [("b", 2), ("a", 1)], True),
        ([(1, "a"), (2, "b")], [("a", 2), ("b", 1)], False),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(1,)], [(1, "more")], True),
        ([(1, 1)], [(1,)], False),
        ([(1, 1)], [(1, 2)], False),
        ([(0.1 + 0.2,)], [(Decimal("0.3"),)], True),
        ([(Decimal("3.33333333"),)], [(Decimal("3.3333"),)], True),
        ([(Decimal("3.33"),)], [(Decimal("3.34"),)], False),
        ([(3,)], [(3.0,)], True),
        ([(10**18,)], [(10**18 + 1,)], False),
        ([(1e15 + 0.5,)], [(1e15 + 0.625,)], True),
        ([(float("nan"), float("inf"))], [(Decimal("inf"), Decimal("nan"))], True),
        ([(True,)], [(1,)], False),
        ([("1",)], [(1,)], False),
        ([("a  ",)], [("a",)], True),
        ([("a",)], [("A",)], False),
        ([(None,)], [(None,)], True),
        ([(None,)], [(0,)], False),
        ([(_DAY,)], [(_MIDNIGHT,)], True),
        ([(_DAY,)], [("2026-03-01",)], False),
        ([([1, 2.00001], {"a": None})], [({"a": None}, [1.0, 2])], True),
        (
            [(memoryview(b"a"), datetime.timedelta(1))],
            [(memoryview(b"a"), datetime.timedelta(2))],
            False,
        ),
    ],
)
def test_which_results_are_the_same(wanted: Any, answer: Any, is_same: bool) -> None:
    assert same_result(wanted, answer) is is_same


def test_order_counts_only_where_it_is_asked_for() -> None:
    wanted, turned = [(1, "a"), (2, "a")], [("a", 2, 0), ("a", 1, 0)]
    assert same_result(wanted, turned)
    assert not same_result(wanted, turned, in_order=True)
    assert same_result(wanted, turned[::-1], in_order=True)
    assert not same_result([(1, 1), (2, 2)], [(1, 0), (2, 0)], in_order=True)


_VALUES = st.sampled_from([0, 1, 2, 0.5, "a", "b", None, True])


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.tuples(*[_VALUES] * n), min_size=1, max_size=6)
    ),
    st.randoms(),
)
def test_columns_and_rows_in_any_order_are_the_same_until_a_value_differs(
    rows: list[tuple[Any, ...]], chance: random.Random
) -> None:
    order = chance.sample(range(len(rows[0])), len(rows[0]))
    answer = [[*(row[at] for at in order), "more"] for row in rows]
    chance.shuffle(answer)
    assert same_result(rows, answer)
    answer[chance.randrange(len(rows))][chance.randrange(len(order))] = "another"
    assert not same_result(rows, answer)


# ------------------------------------------------------------------------------
# questions


def test_a_bad_line_is_named_and_the_others_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    written: list[bytes] = [
        b'\xef\xbb\xbf{"id": 7, "question": "how many", "sql": "SELECT 1"}',
        b"",
        b"{",
        b"[]",
        b'{"id": "x", "question": " ", "sql": "SELECT 1"}',
        b'{"id": "x", "question": "q"}',
        b'{"id": "x", "question": "q", "sql": "SELECT 1", "order_matters": "yes"}',
        b'{"id": "7", "question": "again", "sql": "SELECT 1"}',
        b'{"id": "x", "question": "\xff", "sql": "SELECT 1"}',
        b'{"id": "x", "question": "q", "sql": "SELECT 1", "difficulty": {}}',
        (
            '{"question": "多少\u2028", "sql": "SELECT 1", "order_matters": true, '
            '"difficulty": "hard"}'
        ).encode(),
    ]
    file.write_bytes(b"\r\n".join(written))
    asked, bad = read_questions([file])
    assert asked == [
        AccuracyQuestion("7", "how many", "SELECT 1"),
        AccuracyQuestion("q:11", "多少\u2028", "SELECT 1", True, "zh", "hard"),
    ]
    assert [line.line for line in bad] == [3, 4, 5, 6, 7, 8, 9, 10]
    assert all(line.file == str(file) and line.problem for line in bad)


# ------------------------------------------------------------------------------
# judging

NAMES = "SELECT name FROM gauge ORDER BY n"
# Question → its own SQL, whether order matters, what the model replies, and what becomes of it.
CASES: dict[str, tuple[str, bool, Reply, Outcome]] = {
    "all names": (NAMES, False, Reply("SELECT n, name FROM gauge ORDER BY n DESC"), "right"),
    "names in order": (NAMES, True, Reply("SELECT name FROM gauge ORDER BY n DESC"), "wrong"),
    "few names": (NAMES, False, Reply("SELECT name FROM gauge LIMIT 2"), "wrong"),
    "many names": (
        "SELECT name FROM gauge LIMIT 2",
        False,
        Reply("SELECT name FROM gauge"),
        "wrong",
    ),
    "other names": (NAMES, False, Reply("SELECT n FROM gauge"), "wrong"),
    "no names": (NAMES, False, Reply("There is nothing about that in this database."), "refused"),
    "lost names": (NAMES, False, Reply("DELETE FROM gauge"), "refused"),
    "failing names": (NAMES, False, Reply(status=401), "failed"),
    "unknown names": ("SELECT name FROM gauges", False, Reply(status=500), "gold_failed"),
    "two at once": ("SELECT 1; SELECT 2", False, Reply(status=500), "gold_failed"),
    "written names": ("DELETE FROM gauge RETURNING name", False, Reply(status=500), "gold_failed"),
}
QUESTIONS = [
    AccuracyQuestion(question, question, sql, order, "en", question.split()[0])
    for question, (sql, order, *_) in CASES.items()
]


def reply_of(request: Request) -> Reply:
    said = " ".join(str(message["content"]) for message in request.messages)
    return next(reply for question, (_, _, reply, _) in CASES.items() if question in said)


@pytest.fixture(scope="module")
def settings(make_database: Callable[[str], str]) -> Iterator[Settings]:
    with OpenAiServer(reply_of) as model:
        yield Settings(
            database_url=make_database(GAUGES),
            app_database_url=os.environ["APP_DATABASE_URL"],
            openai_api_key="test",
            openai_base_url=model.url,
            openai_model="scripted",
            llm_max_retries=0,
            routing_mode="database_direct",
            enable_result_summary=False,
            audit_log="off",
            max_streams=2,  # fewer than are asked at once
        )


@pytest.fixture(scope="module")
def judged(settings: Settings) -> list[Judged]:
    with citu_here(settings) as (ask, _):
        return list(measure(QUESTIONS, ask, settings.database_url, concurrency=4, pause_s=0.05))


def test_every_question_is_judged_by_its_result(judged: list[Judged]) -> None:
    assert {one.id: one.outcome for one in judged} == {
        name: case[-1] for name, case in CASES.items()
    }
    assert [one.id for one in judged] == list(CASES), "in their order"
    by_id = {one.id: one for one in judged}
    assert by_id["names in order"].reason == "another order"
    assert by_id["few names"].reason == "2 rows, not 3"
    assert by_id["lost names"].reason.startswith("forbidden_keywords: ")
    assert by_id["unknown names"].reason == 'relation "gauges" does not exist'
    right = by_id["all names"]
    assert (right.llm_calls, right.gold_rows, right.reason) == (1, 3, "")
    assert right.prompt_tokens > right.completion_tokens > 0 < right.ms
    assert (by_id["unknown names"].ms, by_id["unknown names"].llm_calls) == (0, 0), (
        "it is not asked"
    )


def test_the_report_counts_by_class(judged: list[Judged], tmp_path: Path) -> None:
    found = report(judged, [], files=[Path("q.jsonl")], answered_by="scripted")
    counts = {name: each["count"] for name, each in found["total"]["outcomes"].items()}
    assert counts == {"right": 1, "wrong": 4, "refused": 2, "failed": 1}
    assert found["gold_failed"] == ["unknown names", "two at once", "written names"]
    (few,) = [each for each in found["classes"] if each["difficulty"] == "few"]
    assert (few["lang"], few["count"], few["outcomes"]["wrong"]["llm_calls"]) == ("en", 1, 1)
    assert few["latency_ms"]["p50"] == few["latency_ms"]["p95"] > 0
    assert len(found["classes"]) == 8, "none of questions that were not asked"
    path = tmp_path / "r.json"
    path.write_text(json.dumps(found), "utf-8")
    assert read_report(path) == json.loads(path.read_text("utf-8"))
    shown = list(lines(found))
    assert any("1 of 8, 12%" in line for line in shown)
    assert {name for name in CASES if any(f": {name} " in line for line in shown)} == set(CASES) - {
        "all names"
    }
    assert list(lines(report([], [], files=[], answered_by="nobody")))


_TWO: tuple[Outcome, Outcome] = ("wrong", "right")


def test_what_changed_between_two_reports() -> None:
    def reported(**outcomes: Outcome) -> dict[str, Any]:
        questions = [
            Judged(name, "q", "en", "", "SELECT 1", outcome) for name, outcome in outcomes.items()
        ]
        return report(questions, [], files=[], answered_by="a model")

    old = reported(
        a="right",
        b="wrong",
        c="refused",
        d="refused",
        e="right",
        f="gold_failed",
        g="right",
        h="wrong",
    )
    new = reported(
        a="right", b="right", c="right", d="wrong", e="failed", f="right", g="right", i="right"
    )
    new["questions"][6]["gold"] = "SELECT 2"
    said = list(comparison(old, new))
    assert f"right   {'2 of 5, 40%':>18}{'3 of 5, 60%':>18}" in said
    assert "became right: 2: b (was wrong), c (was refused)" in said
    assert "became wrong: 1: d (was refused)" in said
    assert "became failed: 1: e (was right)" in said
    assert "right gained 2, lost 1: p = 1 (sign test, two-sided)" in said
    assert said[-4:] == [
        "not compared, their question or SQL differs: 1: g",
        "not compared, their SQL fails: 1: f",
        "only in the old report: 1: h",
        "only in the new report: 1: i",
    ]
    before, after = (reported(a=each, b=each, c=each, d=each, e=each, f=each) for each in _TWO)
    assert "right gained 6, lost 0: p = 0.0312 (sign test, two-sided)" in list(
        comparison(before, after)
    )


def test_a_citu_elsewhere_is_asked_by_its_address(settings: Settings, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    key, _ = keys.create("alice")
    app = create_app(replace(settings, api_keys_file=str(keys.path)))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    url = f"http://127.0.0.1:{server.port}/"
    try:
        (one,) = measure(QUESTIONS[:1], citu_at(url, key), settings.database_url)
        assert one.outcome == "right"
        with pytest.raises(NotLetIn):
            list(measure(QUESTIONS[:1], citu_at(url), settings.database_url))
        (elsewhere,) = measure(QUESTIONS[:1], citu_at(f"{url}docs"), settings.database_url)
        assert elsewhere.outcome == "failed"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    (nobody,) = measure(QUESTIONS[:1], citu_at(url, key), settings.database_url)
    assert (nobody.outcome, nobody.reason.split(":")[0]) == ("failed", "unreachable")


def test_nothing_of_the_configured_service_is_touched(tmp_path: Path) -> None:
    given = Settings(
        database_url="db",
        redis_url="r",
        app_database_url="app",
        api_keys_file="k",
        rate_limit="1/day",
    )
    used = measured_settings(
        replace(given, schema_tokens=9), tmp_path, database_url="", concurrency=500
    )
    assert (used.redis_url, used.app_database_url, used.audit_log, used.data_dir) == (
        "",
        "",
        "off",
        str(tmp_path),
    )
    assert used.rate_limit == Settings().rate_limit
    assert used.api_keys_path.parent == tmp_path
    assert (used.database_url, used.schema_tokens, used.max_streams) == ("db", 9, 500)
    assert (
        measured_settings(given, tmp_path, database_url="other", concurrency=1).database_url
        == "other"
    )


def test_mistakes_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    none = str(tmp_path / "none")
    for arguments in (
        [],
        ["--questions", none],
        ["--questions", none, "--url", "http://127.0.0.1:1"],
        ["--questions", none, "--concurrency", "0"],
        ["--compare", none, none],
    ):
        monkeypatch.setattr(sys, "argv", ["benchmarks", "accuracy", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code
    assert "Traceback" not in capsys.readouterr().err
