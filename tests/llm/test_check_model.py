"""The check of a model names what does not work, and what to change."""

import asyncio
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app_config import Settings
from common.check_report import CheckResult
from llm.check_model import check_model, main
from llm.known_endpoints import known_endpoint, known_endpoints, thinking_parameters
from tests.support.model_calls import KEY, complete_with
from tests.support.openai_server import Called, OpenAiServer, Reply, Request, openai_server
from tests.support.well_behaved_model import well_behaved

__all__ = ["openai_server"]
ROOT = Path(__file__).resolve().parents[2]


def _settings(server: OpenAiServer, **changes: Any) -> Settings:
    values: dict[str, Any] = {
        "openai_api_key": KEY,
        "openai_base_url": server.url,
        "openai_model": "qwen-plus",
        "llm_timeout_s": 60.0,
        **changes,
    }
    return Settings(**values)


def _checked(settings: Settings) -> dict[str, CheckResult]:
    return {finding.check: finding for finding in asyncio.run(check_model(settings))}


def test_a_model_that_does_everything_passes(openai_server: OpenAiServer) -> None:
    openai_server.default = well_behaved
    found = _checked(_settings(openai_server))
    assert {finding.status for finding in found.values()} == {"ok"}
    assert list(found) == [
        "model.settings",
        "model.reachable",
        "model.chat",
        "model.json",
        "model.tools",
        "model.stream",
        "model.usage",
        "model.first_token",
        "model.context",
        "model.thinking",
    ]
    assert KEY not in str(found)


def test_no_model_is_no_failure() -> None:
    assert _checked(Settings())["model.settings"].status == "ok"


def _refusing(status: int, message: str) -> Reply:
    return Reply(status=status, body={"error": {"message": message}})


def _unless(condition: Callable[[Request], bool], fault: Reply) -> Callable[[Request], Reply]:
    return lambda request: fault if condition(request) else well_behaved(request)


NO_TOOLS = _refusing(400, "this model does not support tools")
WRONG_CALL = Reply(calls=[Called("count_rows", {"tables": ["shop"]})])
NO_STREAM = _refusing(400, "stream is not supported")
FAULTS: dict[str, tuple[Callable[[Request], Reply], str, str, str]] = {
    "key": (lambda _: Reply(status=401), "model.chat", "fail", "OPENAI_API_KEY"),
    "unknown model": (lambda _: Reply(status=404), "model.chat", "fail", "OPENAI_MODEL"),
    "page": (lambda _: Reply(body="<html>Welcome</html>"), "model.chat", "fail", "/v1"),
    "page that takes no POST": (lambda _: Reply(status=405), "model.chat", "fail", "/v1"),
    "other protocol": (lambda _: Reply(body={"done": True}), "model.chat", "fail", "protocol"),
    "proxy without a model": (
        lambda _: Reply(status=502, body="<html>Bad Gateway</html>"),
        "model.chat",
        "fail",
        "model is running",
    ),
    "filter": (
        lambda _: Reply("", finish_reason="content_filter"),
        "model.chat",
        "fail",
        "content filter",
    ),
    "silence": (lambda _: Reply(pieces=[], delay_s=60), "model.chat", "fail", "LLM_TIMEOUT_S"),
    "thoughts": (
        lambda request: Reply(f"<think>so</think> {well_behaved(request).text}"),
        "model.chat",
        "warn",
        "LLM_THINKING=off",
    ),
    "end of thoughts": (
        lambda request: Reply(f"so</think> {well_behaved(request).text}"),
        "model.chat",
        "warn",
        "LLM_THINKING=off",
    ),
    "other JSON": (
        _unless(lambda request: "JSON" in request.question, Reply('{"type": "ORDERS"}')),
        "model.json",
        "warn",
        "larger model",
    ),
    "no JSON": (
        _unless(lambda request: "JSON" in request.question, Reply("Certainly!")),
        "model.json",
        "warn",
        "larger model",
    ),
    "tools refused": (
        _unless(lambda request: bool(request.tool_names), NO_TOOLS),
        "model.tools",
        "warn",
        "enable-auto-tool-choice",
    ),
    "tool with other arguments": (
        _unless(lambda request: bool(request.tool_names), WRONG_CALL),
        "model.tools",
        "warn",
        "Choose a model",
    ),
    "tools ignored": (
        _unless(lambda request: bool(request.tool_names), Reply("About a hundred.")),
        "model.tools",
        "warn",
        "AGENT=ask",
    ),
    "no streaming": (
        _unless(lambda request: request.is_stream, NO_STREAM),
        "model.stream",
        "warn",
        "proxy_buffering",
    ),
    "no usage": (
        _unless(lambda request: request.is_stream, Reply("one two three", usage=False)),
        "model.usage",
        "warn",
        "AGENT_TOKENS",
    ),
    "lost beginning": (
        _unless(lambda request: "codeword" in request.question, Reply("Which codeword?")),
        "model.context",
        "warn",
        "OLLAMA_CONTEXT_LENGTH",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_with_its_remedy(openai_server: OpenAiServer, name: str) -> None:
    openai_server.default, check, status, remedy = FAULTS[name]
    timeout_s = 1.0 if name == "silence" else 60.0
    finding = _checked(_settings(openai_server, llm_timeout_s=timeout_s))[check]
    assert finding.status == status
    assert finding.advice is not None
    assert remedy in finding.advice.en
    assert finding.advice.zh
    assert finding.said.zh


def test_a_model_that_is_not_listed_is_told_with_near_names(openai_server: OpenAiServer) -> None:
    openai_server.default = well_behaved
    openai_server.models = Reply(body={"data": [{"id": "qwen-plus-latest"}, {"id": "gpt-4o"}]})
    finding = _checked(_settings(openai_server))["model.name"]
    assert finding.advice is not None
    assert "qwen-plus-latest" in finding.advice.en


def test_the_command_says_it_in_either_language_and_as_json(
    openai_server: OpenAiServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    openai_server.default = lambda _: Reply(status=401)
    assert main([]) == 1
    assert "密钥" in capsys.readouterr().out
    openai_server.default = well_behaved
    assert main(["--json", "--lang", "en"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["status"] == "ok"
    assert shown["findings"][2] == {
        "check": "model.chat",
        "status": "ok",
        "message": "It answers.",
        "advice": None,
    }


def test_thinking_is_switched_in_the_endpoints_own_words(openai_server: OpenAiServer) -> None:
    openai_server.default = well_behaved
    settings = _settings(openai_server, llm_thinking='{"enable_thinking": false}')
    complete_with(settings)
    assert openai_server.requests[-1].params["enable_thinking"] is False
    assert thinking_parameters("off", "https://dashscope.aliyuncs.com/compatible-mode/v1") == {
        "enable_thinking": False
    }
    assert thinking_parameters("on", "http://127.0.0.1:11434/v1") == {"reasoning_effort": "medium"}
    assert thinking_parameters("off", "http://example.com/v1") == {}


def test_a_switch_that_is_refused_is_left_out(openai_server: OpenAiServer) -> None:
    fault = _refusing(400, "Unrecognized request argument supplied: enable_thinking")
    openai_server.default = _unless(lambda request: "enable_thinking" in request.params, fault)
    settings = _settings(openai_server, llm_thinking='{"enable_thinking": false}')
    assert complete_with(settings).text == "one two three"
    finding = _checked(settings)["model.thinking"]
    assert finding.status == "warn"
    assert finding.advice is not None


def test_the_page_is_made_from_the_table_and_the_table_holds() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_models.py"))["page"]()
    assert made == (ROOT / "docs/models.md").read_text(), "run `python docs/make_models.py`"
    settings = {name.upper() for name in Settings.__dataclass_fields__}
    for endpoint in known_endpoints():
        assert endpoint.settings.keys() <= settings
        base_url = endpoint.settings.get("OPENAI_BASE_URL", "")
        assert not base_url or known_endpoint(base_url) is endpoint
