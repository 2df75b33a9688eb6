"""Answers and logs never hold a DSN, a key, a path of the server or a stack trace, whatever goes
wrong.
"""

import io
import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bootstrap import bootstrap
from app_config import Settings
from common.logs import PACKAGES, JsonLines, TerminalLines
from common.redaction import described, redacted
from databases.source import InvalidDatabaseUrl
from postgres.addresses import described_address
from rules.skills import OfflineSkills
from tests.support.ask_scenarios import SCENARIOS, AskScenario
from tests.support.asking import STREAM, SYNC, Asking, shared_askings
from tests.support.cases import all_cases
from tests.support.openai_replies import Reply
from tests.support.openai_server import OpenAiServer

PASSWORD, KEY = "hunter2-p4ss", "sk-test-0123456789abcdef"
ASKED = {"question": "店铺有多少家", "routing_mode": "database_direct"}
WRITTEN_BY_PYTHON = re.compile(r"Traceback|File \"/|psycopg2\.|site-packages")


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    """Everything logged meanwhile, as operators get it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonLines())
    root, ours = logging.getLogger(), [logging.getLogger(name) for name in PACKAGES]
    levels = [logger.level for logger in ours]
    root.addHandler(handler)
    for logger in ours:
        logger.setLevel("DEBUG")
    try:
        yield written
    finally:
        root.removeHandler(handler)
        for logger, level in zip(ours, levels, strict=True):
            logger.setLevel(level)


def _secret_url(demo_url: str) -> str:
    """The demo database's URL with a password, which the server ignores."""
    parts = urlsplit(demo_url)
    return parts._replace(
        netloc=parts.netloc.replace("citu_reader", f"citu_reader:{PASSWORD}")
    ).geturl()


def _secrets(url: str, data_dir: Path) -> list[str]:
    found = [url, PASSWORD, KEY, str(Path.cwd()), str(data_dir), sys.prefix]
    return found + parse_qs(urlsplit(url).query).get("host", [])


def _ask_both(asking: Asking, body: dict[str, Any], *replies: Reply) -> str:
    model = asking._model
    texts = []
    for path in (SYNC, STREAM):
        if model is not None:
            model.replies(*replies)
        with asking.client.post(path, json=body) as response:  # closing it frees its slot
            texts.append(response.get_data().decode())
    return "\n".join(texts)


def _assert_clean(text: str, secrets: list[str]) -> None:
    assert text
    for secret in secrets:
        assert secret not in text
    assert WRITTEN_BY_PYTHON.search(text) is None


def test_every_way_a_question_can_go(demo_url: str, model: OpenAiServer, tmp_path: Path) -> None:
    url = _secret_url(demo_url)
    secrets = _secrets(url, tmp_path)
    settings = Settings(database_url=url, data_dir=str(tmp_path), llm_max_retries=0)
    with shared_askings(settings) as asking, all_cases() as cases:
        for scenario in SCENARIOS:
            with cases.case(scenario.name):
                with _logged() as log:
                    said = _go(scenario, asking, model)
                _assert_clean(said, secrets)
                _assert_clean(log.getvalue(), secrets)


def _go(scenario: AskScenario, asking: Callable[..., Asking], model: OpenAiServer) -> str:
    if scenario.replies is None:
        return _ask_both(asking(None, **scenario.settings), scenario.body)
    asked = asking(model, **{"openai_api_key": KEY, **scenario.settings})
    return _ask_both(asked, scenario.body, *scenario.replies)


FAULTY = {
    "refused": Reply(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    "busy": Reply(status=429, body={"error": {"message": f"Bearer {KEY} is out of quota"}}),
    "broken": Reply(status=500, body=f"<html>postgresql://u:{PASSWORD}@h/db {KEY}</html>"),
    "garbage": Reply(body="{}"),
    "gone": Reply("x", ending="disconnect"),
    "slow": Reply("x", delay_s=5),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_model(name: str, demo_url: str, model: OpenAiServer, tmp_path: Path) -> None:
    url = _secret_url(demo_url)
    settings = Settings(
        database_url=url,
        data_dir=str(tmp_path),
        openai_api_key=KEY,
        openai_base_url=model.url,
        llm_max_retries=0,
    )
    with _logged() as log, Asking(replace(settings, llm_timeout_s=0.3)) as asking:
        asking._model = model
        said = _ask_both(asking, {**ASKED, "question": "为什么天空是蓝色的"}, FAULTY[name])
    _assert_clean(said, _secrets(url, tmp_path))
    _assert_clean(log.getvalue(), _secrets(url, tmp_path))
    assert "llm_unavailable" in said


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://app:{PASSWORD}@127.0.0.1:1/sales",
        f"host=127.0.0.1 port=1 user=app password={PASSWORD} dbname=sales",
        f"postgresql://app:{PASSWORD}@/sales?host=/nowhere/secret-folder",
        f"postgresql://app:{PASSWORD}@no-such-host.invalid/sales",
    ],
)
def test_a_database_that_is_not_there(url: str, tmp_path: Path) -> None:
    with _logged() as log, Asking(Settings(database_url=url, data_dir=str(tmp_path))) as asking:
        said = _ask_both(asking, ASKED) + asking.client.get("/ready").get_data().decode()
        for path in ("/api/v0/sql/validate", "/api/v0/sql/run"):
            said += asking.client.post(path, json={"sql": "SELECT 1"}).get_data().decode()
    for text in (said, log.getvalue()):
        _assert_clean(text, [PASSWORD, "secret-folder", str(tmp_path), str(Path.cwd())])
    assert "database_unavailable" in said


@pytest.mark.parametrize(
    "url", [f"postgresql://app:{PASSWORD}@[/sales", f"postgresql://app:p@{PASSWORD}@db/sales"]
)
@pytest.mark.parametrize("setting", ["database_url", "app_database_url"])
def test_an_address_that_is_none(setting: str, url: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"data_dir": str(tmp_path), setting: url}
    with pytest.raises(InvalidDatabaseUrl) as caught:
        bootstrap(Settings(**values))
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_a_fault_of_our_own(demo_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = _secret_url(demo_url)

    async def broken(*_: object) -> None:
        raise RuntimeError(f"can't use {url} with {KEY}")

    monkeypatch.setattr(OfflineSkills, "write_sql", broken)
    with _logged() as log, Asking(Settings(database_url=url, data_dir=str(tmp_path))) as asking:
        said = _ask_both(asking, ASKED)
    _assert_clean(said, [*_secrets(url, tmp_path), "RuntimeError"])
    _assert_clean(log.getvalue(), _secrets(url, tmp_path))
    assert "internal_error" in said
    (line,) = [json.loads(line) for line in log.getvalue().splitlines() if "exception" in line][:1]
    assert line["exception"].startswith("RuntimeError: can't use postgresql://…")
    assert "agent/flows/ask/nodes/agent_sql_generation.py:" in line["exception"], (
        "operators still see where"
    )


# ------------------------------------------------------------------------------
# redaction


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("see postgresql://u:p@h:5432/db?x=1 now", "see postgresql://… now"),
        ("redis://:p@h/0", "redis://…"),
        ("https://me:pw@proxy:3128/x", "https://…@proxy:3128/x"),
        ("host=h password='p w' x=1", "host=h password='…' x=1"),
        ("host=h password=p.w x=1", "host=h password=… x=1"),
        ("PGPASSWORD: abc, next", "PGPASSWORD: …, next"),
        ('{"api_key":"abc","x":1}', '{"api_key":"…","x":1}'),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer …"),
        ("key sk-abcdef123456 is wrong", "key sk-… is wrong"),
        ("营业收入 password 是什么", "营业收入 password 是什么"),
        ("1.2.3:456 and a@b.c", "1.2.3:456 and a@b.c"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(text: str, safe: str) -> None:
    assert redacted(text) == safe


@given(st.from_regex(r"[A-Za-z0-9!#$%^*()_+.-]{6,20}", fullmatch=True), st.text(max_size=20))
def test_passwords_in_urls_never_stay(password: str, around: str) -> None:
    assert f":{password}@" not in redacted(
        f"{around} postgresql://user:{password}@host/db {around}"
    )


def _raise(error: Exception, cause: Callable[[], object]) -> None:
    try:
        cause()
    except ZeroDivisionError as exc:
        raise error from exc


def test_an_exception_is_one_line_with_its_cause() -> None:
    with pytest.raises(ValueError, match="outer") as caught:
        _raise(ValueError("outer\nlines"), lambda: 1 / 0)
    line = described(caught.value)
    assert re.match(
        r"ValueError: outer lines \(at tests/common/test_secrets\.py:\d+ .*\) "
        r"<- ZeroDivisionError: division",
        line,
    )
    assert "\n" not in line
    assert str(Path.cwd()) not in line


@pytest.mark.parametrize(
    ("dsn", "named"),
    [
        (
            "postgresql://ann:s3cret@db.example.com:5433/shop?sslmode=require",
            "shop at db.example.com:5433",
        ),
        (
            "host=/run/postgresql dbname=shop user=ann password=s3cret port=5432",
            "shop at /run/postgresql",
        ),
        ("postgresql://ann:s3cret@", "ann at this machine"),
        ("postgresql://ann:s3cret@a.example,b.example/shop", "shop at a.example,b.example"),
    ],
)
def test_a_database_is_named_without_its_password(dsn: str, named: str) -> None:
    assert described_address(dsn) == named


LONG = "x" * 5_000
MOST_SHOWN = 200  # characters of foreign text


@pytest.mark.parametrize("formatter", [JsonLines, TerminalLines])
@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        (LONG, ()),
        (LONG, None),
        (RuntimeError(LONG), ()),
        ("%s", (LONG,)),
        ("%s", (RuntimeError(LONG),)),
        ("%r", ([LONG],)),
        ("%(name)s", ({"name": LONG},)),
        ("%s of %d", (LONG, 3)),
    ],
)
def test_foreign_text_is_cut_before_it_is_searched_for_credentials(
    formatter: type[logging.Formatter],
    message: object,
    arguments: tuple[object, ...] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[str] = []

    def watched(text: str) -> str:
        searched.append(text)
        return redacted(text)

    monkeypatch.setattr("common.logs.redacted", watched)
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, message, arguments, None)
    line = formatter().format(record)
    assert max(text.count("x") for text in searched) in (MOST_SHOWN, MOST_SHOWN - 2)
    assert "…" in line


def test_a_terminal_gets_a_line_to_read_for_each_request() -> None:
    def line(level: int, message: str, **extra: Any) -> str:
        record = logging.LogRecord("unified_api.access", level, "", 0, message, (), None)
        vars(record).update(extra)
        return TerminalLines().format(record)[len("09:05:12 ") :]

    request = {"method": "POST", "path": "/api/v0/ask_agent\x1b[2J", "status": 200, "ms": 259.6}
    assert (
        line(logging.INFO, "request", **request) == "POST /api/v0/ask_agent\\u001b[2J 200 in 260 ms"
    )
    assert line(logging.WARNING, "password=s3cret is wrong") == "WARNING password=… is wrong"
