"""The log of prompts: what a line holds, that it waits for nobody, and sending a call again."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from app_config import Settings
from common.errors import LlmUnavailable
from llm import Completion, open_model
from llm.model_log import LoggedModel, open_model_log
from llm.replay import main
from llm.tool_calls import ToolDefinition, ToolOffer
from tests.support.openai_server import Called, OpenAiServer, Reply, openai_server

__all__ = ["openai_server"]

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
TOOL = ToolDefinition("count_rows", "Counts.", SCHEMA)
CREDENTIAL = "sk-" + "0123456789abcdef"


@pytest.fixture
def settings(
    openai_server: OpenAiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Settings:
    """Settings of the scripted model, also in the environment of commands."""
    monkeypatch.chdir(tmp_path)
    values = {
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": openai_server.url,
        "OPENAI_MODEL": "scripted",
        "LLM_MAX_RETRIES": "0",
        "MODEL_LOG": str(tmp_path / "logs" / "prompts.jsonl"),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return Settings.from_env(values)


def logged(settings: Settings, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Make the calls, one after the other; return the lines of the log."""
    path = settings.model_log_path
    assert path is not None

    async def main() -> None:
        inner = open_model(settings)
        assert inner is not None
        model = LoggedModel(inner, open_model_log(path), lambda usage: usage.llm_calls * 0.5)
        for call in calls:
            try:
                await model.complete(**call)
            except LlmUnavailable:
                continue
        await asyncio.get_running_loop().shutdown_default_executor()
        await model.aclose()

    asyncio.run(main())
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def asked(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": text}]}


def test_each_call_is_a_line_without_credentials_for_its_owner_alone(
    settings: Settings, openai_server: OpenAiServer
) -> None:
    openai_server.replies(Reply(f"你的密钥是 {CREDENTIAL}"), Reply(status=500))
    answered, failed = logged(settings, asked(f"密钥 {CREDENTIAL} 是什么"), asked("second"))
    assert answered["model"] == "scripted"
    assert answered["messages"][0]["content"] == "密钥 sk-… 是什么"
    assert answered["reply"]["text"] == "你的密钥是 sk-…"
    assert answered["parts"][0]["role"] == "system"
    assert answered["parts"][0]["chars"] == len(f"密钥 {CREDENTIAL} 是什么")
    assert answered["usage"]["prompt_tokens"] > 0
    assert answered["cost"] == answered["usage"]["llm_calls"] * 0.5
    assert answered["error"] is None
    assert (failed["reply"], failed["error"]) == (None, "llm_unavailable")
    assert answered["id"] != failed["id"]
    path = settings.model_log_path
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_costs_no_reply(
    settings: Settings, openai_server: OpenAiServer, caplog: pytest.LogCaptureFixture
) -> None:
    path = settings.model_log_path
    assert path is not None
    path.mkdir(parents=True)
    openai_server.replies(Reply("one"))

    async def main() -> Completion:
        inner = open_model(settings)
        assert inner is not None
        model = LoggedModel(inner, open_model_log(path))
        try:
            return await model.complete(**asked("q"))
        finally:
            await asyncio.get_running_loop().shutdown_default_executor()
            await model.aclose()

    assert asyncio.run(main()).text == "one"
    assert "the log of prompts can't be written, calls go unrecorded" in caplog.text


def test_a_call_is_sent_again_to_another_model(
    settings: Settings, openai_server: OpenAiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.replies(Reply("one"), Reply("", calls=[Called("count_rows", {})]))
    call = {**asked("q"), "max_tokens": 50, "offer": ToolOffer((TOOL,))}
    first, second = logged(settings, asked("q"), call)
    requests: list[Any] = []

    def script(request: Any) -> Reply:
        requests.append(request.params)
        return Reply("two")

    openai_server.forget_replies()
    openai_server.default = script
    assert main([second["id"], "--model", "other"]) == 0
    sent = requests[0]
    assert (sent["model"], sent["messages"]) == ("other", second["messages"])
    assert sent["tools"][0]["function"]["name"] == "count_rows"
    shown = capsys.readouterr().out
    assert "→ count_rows({})" in shown
    assert "--- other, now\ntwo" in shown
    assert main([first["id"]]) == 0
    assert main(["last"]) == 0
    assert requests[-1]["tools"] == sent["tools"]


def test_what_cannot_be_sent_is_said(
    settings: Settings, openai_server: OpenAiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.replies(Reply("one"))
    logged(settings, asked("q"))
    assert main(["unknown"]) == 2
    assert "no line with the id 'unknown'" in capsys.readouterr().err
    openai_server.default = lambda _: Reply(status=500)
    assert main(["last"]) == 1
