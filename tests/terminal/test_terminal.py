"""Asking from a terminal: once, line by line, of a server and in this process."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from agent.bootstrap import FLOWS
from api.access.key_file import KeyFile
from app_config import Settings
from terminal.__main__ import main
from terminal.asking import TerminalConversation, converse
from terminal.service_connection import LocalConnection, ServerConnection
from tests.support.asking import Asking
from tests.support.live import GAUGES
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer
from tests.support.survey.survey_flow import SURVEY, SurveyFlow
from tests.support.wsgi_server import serving_app

RANKING = "查询各服务区的营业收入排行"


@pytest.fixture(scope="module")
def asking(demo_url: str) -> Iterator[Asking]:
    with Asking(Settings(database_url=demo_url)) as asking:
        yield asking


@pytest.fixture(scope="module")
def url(asking: Asking) -> Iterator[str]:
    with serving_app(asking.client.application) as port:  # type: ignore[arg-type]
        yield f"http://127.0.0.1:{port}"


def test_one_question_shows_words_rows_bars_sql_and_exports(
    url: str, asking: Asking, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.csv"
    assert main([RANKING, "--url", url, "--export", str(file)]) == 0
    shown = capsys.readouterr().out
    _, envelope = asking.sync({"question": RANKING})
    answer = envelope["data"]
    name, total = answer["query_result"]["rows"][0]
    assert answer["response"] in shown.replace("\n", "")
    assert str(name) in shown
    assert str(total) in shown
    smallest = answer["query_result"]["rows"][-1][1]
    assert f"  {smallest} \n" in shown, "figures end at the right"
    assert "█" in shown
    assert "SELECT" in shown
    assert str(name) in file.read_text("utf-8-sig")


def test_programs_get_json(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["how many companies", "--url", url, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["type"] == "completed"
    assert answer["query_result"]["rows"]


def test_failures_have_an_exit_code_and_a_sentence(
    url: str,
    demo_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["x", "--url", "http://127.0.0.1:9"]) == 1
    assert "can't be reached" in capsys.readouterr().err
    assert main(["x", "--url", url, "--agent", "nobody"]) == 1
    assert "agent" in capsys.readouterr().err
    assert main([RANKING, "--url", url, "--export", str(tmp_path / "rows.doc")]) == 1
    assert ".csv" in capsys.readouterr().err
    settings = Settings(database_url=demo_url, data_dir=str(tmp_path))
    key, _ = KeyFile(settings.api_keys_path).create("ann")
    with (
        Asking(settings) as keyed,
        serving_app(keyed.client.application) as port,  # type: ignore[arg-type]
    ):
        address = f"http://127.0.0.1:{port}"
        assert main(["hello", "--url", address]) == 1
        assert "API key" in capsys.readouterr().err
        assert main(["hello", "--url", address, "--key", key]) == 0


def test_lines_are_one_conversation_in_this_process_too(asking: Asking, tmp_path: Path) -> None:
    console, notes = Console(record=True, width=120), Console(record=True, stderr=True)
    conversation = TerminalConversation(LocalConnection(asking.client.application), console, notes)
    file = tmp_path / "rows.json"
    lines = iter([RANKING, "", "只看前3名", f"/export {file}", "/export nothing", "/new", "/quit"])

    def read(_prompt: str) -> str:
        if conversation.conversation_id is not None:
            ids.append(conversation.conversation_id)
        return next(lines)

    ids: list[str] = []
    converse(conversation, read)
    assert len(set(ids)) == 1
    assert conversation.conversation_id is None, "/new begins another"
    assert len(json.loads(file.read_text())["rows"]) == 3
    assert "must end in" in notes.export_text()
    turns = asking.client.get(f"/api/v0/conversations/{ids[0]}", buffered=True).get_json()
    assert [turn["question"] for turn in turns["data"]["turns"]] == [RANKING, "只看前3名"]


@pytest.mark.parametrize("is_local", [True, False])
def test_what_a_run_asks_is_answered_by_the_next_line(
    is_local: bool, make_database: Callable[[str], str]
) -> None:
    console, notes = Console(record=True, width=120), Console(record=True, stderr=True)
    with pytest.MonkeyPatch.context() as patch, OpenAiServer(lambda _: Reply("hello")) as model:
        patch.setattr("agent.bootstrap.FLOWS", [*FLOWS, SurveyFlow])
        with (
            Asking(Settings(database_url=make_database(GAUGES)), model) as asking,
            serving_app(asking.client.application) as port,  # type: ignore[arg-type]
        ):
            local = LocalConnection(asking.client.application)
            way = local if is_local else ServerConnection(f"http://127.0.0.1:{port}")
            conversation = TerminalConversation(way, console, notes, {"agent": "survey"})
            lines = iter([SURVEY, "name", "99", "2", "hello", "/quit"])
            converse(conversation, lambda _prompt: next(lines))
    shown = console.export_text()
    assert "Which column?" in shown
    assert "gauge 1, gauge 2" in shown
    assert shown.rstrip().endswith("hello"), "the run has ended, and a line is a question again"
    assert "3" in notes.export_text(), "99 is more than may be asked for, and asked again"


def test_what_the_database_holds_can_not_steer_the_terminal(
    make_database: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    setup = "CREATE TABLE note (label text); INSERT INTO note VALUES (E'a\\x1b[31m[bold]b');"
    with (
        Asking(Settings(database_url=make_database(setup))) as noted,
        serving_app(noted.client.application) as port,  # type: ignore[arg-type]
    ):
        assert main(["list all notes", "--url", f"http://127.0.0.1:{port}"]) == 0
    shown = capsys.readouterr().out
    assert "[bold]b" in shown
    assert "\x1b[31m" not in shown
