"""`python -m llm.check_model`: says what works at the configured model, and what to change.

It sends five short prompts and one of some 6,000 tokens. Settings come from the environment and
`.env`, as for the service.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from time import monotonic

from dotenv import load_dotenv

from app_config import ConfigurationError, Settings
from common.check_report import (
    CheckResult,
    add_report_options,
    failed,
    passed,
    report,
    warned,
    worst,
)
from common.errors import LlmUnavailable
from common.special_tokens import CLOSING_THOUGHTS, OPENING_THOUGHTS
from common.text import Text
from llm import InvalidEndpoint, Message, OpenAiChat, endpoint_of
from llm.call_failures import MEANINGS, FailureKind, kind_of_failure
from llm.chat_model import Completion
from llm.contexts import context_tokens
from llm.known_endpoints import known_endpoint
from llm.loose_fields import object_in
from llm.providers import Endpoint, ModelSettings
from llm.tool_calls import InvalidArguments, ToolDefinition, ToolOffer

_FAILS_FROM = 2  # of `worst`
_SLOW_S = 5.0  # until the first token
_LEAST_CONTEXT = 16_000  # tokens, for a prompt with the description of a database
_SHOWN_NAMES = 3
_FILLING = "The ledger of the harbour lists one more crate of tea. "
_FILLING_TIMES = 500  # about 6,000 tokens
_CODEWORD = "KINGFISHER"
_TOOL = ToolDefinition(
    "count_rows",
    "Counts the rows of a table.",
    {
        "type": "object",
        "properties": {"table": {"type": "string"}},
        "required": ["table"],
        "additionalProperties": False,
    },
)

_CHANGE: Mapping[FailureKind, Text] = {
    "key": Text(
        "检查 OPENAI_API_KEY（或 AZURE_OPENAI_API_KEY）是否属于这个地址。",
        "Check that OPENAI_API_KEY (or AZURE_OPENAI_API_KEY) belongs to this address.",
    ),
    "model": Text(
        "检查 OPENAI_MODEL 的写法，以及 OPENAI_BASE_URL 是否以 /v1 一类的路径结尾。",
        "Check the spelling of OPENAI_MODEL, and that OPENAI_BASE_URL ends with a path such as "
        "/v1.",
    ),
    "settings": Text(
        "检查 OPENAI_BASE_URL 和代理变量（HTTPS_PROXY）的写法。",
        "Check the spelling of OPENAI_BASE_URL, and of proxies (HTTPS_PROXY).",
    ),
    "connection": Text(
        "检查 OPENAI_BASE_URL 的主机和端口、网络与代理（HTTPS_PROXY）；本地模型要先启动。",
        "Check host and port of OPENAI_BASE_URL, the network and proxies (HTTPS_PROXY); a local "
        "model has to be running.",
    ),
    "timeout": Text(
        "调大 LLM_TIMEOUT_S，或换用更快的模型；思考型模型可设 LLM_THINKING=off。",
        "Raise LLM_TIMEOUT_S or choose a faster model; for one that thinks, LLM_THINKING=off.",
    ),
    "unusable": Text(
        "OPENAI_BASE_URL 可能指向网页或另一种协议，而不是 chat completions：多数地址以 /v1 结尾。",
        "OPENAI_BASE_URL may lead to a web page or another protocol and not to chat completions: "
        "most end with /v1.",
    ),
    "server": Text(
        "查看接口服务自己的日志；地址属于代理时，确认它后面的模型已启动。",
        "Look into the log of the endpoint; behind a proxy, check that the model is running.",
    ),
    "filtered": Text(
        "测试提示词没有任何敏感内容：检查接口的内容审核设置，或换一个模型。",
        "The prompts of this check are harmless: look at the endpoint's content filter, or choose "
        "another model.",
    ),
    "redirect": Text(
        "把 OPENAI_BASE_URL 改成最终地址，通常是 https。",
        "Set OPENAI_BASE_URL to the address it leads to, usually with https.",
    ),
    "quota": Text("为账户充值，或换一个密钥。", "Top the account up, or use another key."),
    "rate": Text(
        "稍后再试，或减小 LLM_MAX_IN_FLIGHT。", "Try again later, or lower LLM_MAX_IN_FLIGHT."
    ),
    "tools": Text(
        "换用会调用工具的模型，或按文档启动服务（vLLM：--enable-auto-tool-choice）；"
        "否则只用 AGENT=ask。",
        "Choose a model that can call tools, or start its server so that it does (vLLM: "
        "--enable-auto-tool-choice); without, AGENT=ask is the one agent that works.",
    ),
    "exhausted": Text(
        "调大 LLM_MAX_TOKENS，或设 LLM_THINKING=off。", "Raise LLM_MAX_TOKENS, or LLM_THINKING=off."
    ),
    "empty": Text(
        "换一个模型；思考型模型可设 LLM_THINKING=off。",
        "Choose another model; for one that thinks, LLM_THINKING=off.",
    ),
    "context": Text(
        "换用上下文更长的模型，或减小 SCHEMA_TOKENS。",
        "Choose a model with a longer context, or lower SCHEMA_TOKENS.",
    ),
}
_CHANGE_ELSE = Text(
    "查看接口服务自己的日志；docs/models.md 列出各接口需要什么。",
    "Look into the log of the endpoint; docs/models.md says what each one needs.",
)


async def check_model(settings: ModelSettings) -> tuple[CheckResult, ...]:
    """Return what works at the model that `settings` describe; sends six prompts."""
    try:
        endpoint = endpoint_of(settings)
    except InvalidEndpoint as error:
        message = Text(f"设置不完整：{error}", str(error))
        return (failed("model.settings", message, _CHANGE["settings"]),)

    if endpoint is None:
        return (
            passed(
                "model.settings",
                Text("没有配置大模型，由规则回答。", "No model is configured: rules answer."),
            ),
        )

    model = OpenAiChat(
        endpoint,
        timeout_s=settings.llm_timeout_s,
        max_retries=0,
        max_tokens=settings.llm_max_tokens,
    )
    try:
        return await _Check(model, endpoint, settings).findings()
    finally:
        await model.aclose()


class _Check:
    def __init__(self, model: OpenAiChat, endpoint: Endpoint, settings: ModelSettings) -> None:
        self._model = model
        self._endpoint = endpoint
        self._settings = settings

    async def findings(self) -> tuple[CheckResult, ...]:
        """Return one finding for each step; where chat fails, the rest is not tried."""
        results = [self._endpoint_result()]
        results += await self._reach_model()
        if worst(results) == _FAILS_FROM:
            return tuple(results)

        chat = await self._chat()
        results.append(chat)
        if chat.status == "fail":
            return tuple(results)

        results.append(await self._json_reply())
        results.append(await self._tools())
        results += await self._stream()
        results.append(await self._long_prompt())
        results.append(self._thinking())
        return tuple(results)

    def _endpoint_result(self) -> CheckResult:
        endpoint = known_endpoint(self._endpoint.url)
        name = "OpenAI-compatible" if endpoint is None else endpoint.name
        model = self._endpoint.model
        return passed("model.settings", Text(f"{name}，模型 {model}。", f"{name}, model {model}."))

    async def _reach_model(self) -> list[CheckResult]:
        try:
            names = await self._model.model_names()
        except LlmUnavailable as error:
            return [_failure("model.reachable", error)]

        reached = passed(
            "model.reachable",
            Text("可以连接，密钥被接受。", "The endpoint answers and takes the key."),
        )
        is_listed = any(_same_model(name, self._model.name) for name in names)
        if not names or is_listed or self._endpoint.provider == "azure":
            return [reached]

        near = get_close_matches(self._model.name, names, _SHOWN_NAMES, 0.3) or names[:_SHOWN_NAMES]
        listed = ", ".join(near)
        unlisted = warned(
            "model.name",
            Text(
                f"接口的模型列表中没有 {self._model.name}。",
                f"The endpoint's list of models has no {self._model.name}.",
            ),
            Text(f"设 OPENAI_MODEL，例如 {listed}。", f"Set OPENAI_MODEL, for example {listed}."),
        )
        return [reached, unlisted]

    async def _chat(self) -> CheckResult:
        try:
            reply = await self._ask("Reply with the one word OK.")
        except LlmUnavailable as error:
            return _failure("model.chat", error)

        if reply.is_withheld:
            return failed("model.chat", MEANINGS["filtered"].text, _CHANGE["filtered"])
        if _writes_thoughts(reply.text):
            return warned(
                "model.chat",
                Text("模型把思考过程写进了回答。", "The model writes its thoughts into its reply."),
                Text(
                    "设 LLM_THINKING=off，或让服务分开它们（vLLM：--reasoning-parser）。",
                    "Set LLM_THINKING=off, or have its server part them (vLLM: "
                    "--reasoning-parser).",
                ),
            )

        return passed("model.chat", Text("能回答。", "It answers."))

    async def _json_reply(self) -> CheckResult:
        prompt = (
            'Reply with JSON only: {"type": "DATABASE", "reason": "…"} if a database can answer '
            '"How many orders were there in May?", else {"type": "CHAT", "reason": "…"}.'
        )
        try:
            reply = await self._ask(prompt)
        except LlmUnavailable as error:
            return _failure("model.json", error)

        if object_in(reply.text).get("type") in ("DATABASE", "CHAT"):
            return passed("model.json", Text("能按要求给出 JSON。", "It gives JSON as asked."))

        return warned(
            "model.json",
            Text("没有按要求给出 JSON。", "It gives no JSON when asked for it."),
            Text(
                "换用更大的模型；否则问题由规则分类。",
                "Choose a larger model; until then, rules decide what a question is about.",
            ),
        )

    async def _tools(self) -> CheckResult:
        prompt = "How many rows has the table shop? Use the tool."
        try:
            reply = await self._ask(prompt, offer=ToolOffer((_TOOL,)))
        except LlmUnavailable as error:
            if kind_of_failure(error) != "tools":
                return _failure("model.tools", error)

            return warned("model.tools", MEANINGS["tools"].text, _CHANGE["tools"])

        calls = [call for call in reply.tool_calls if call.name == _TOOL.name]
        if not calls:
            message = Text("提供了工具，但没有调用。", "It was offered a tool and did not call it.")
            return warned("model.tools", message, _CHANGE["tools"])

        arguments = calls[0].arguments
        if isinstance(arguments, InvalidArguments) or "table" not in arguments:
            message = Text(
                "调用了工具，但参数不符合工具的说明。",
                "It calls tools, with arguments other than the tool's.",
            )
            return warned("model.tools", message, _CHANGE["tools"])

        return passed("model.tools", Text("能调用工具。", "It calls tools."))

    async def _stream(self) -> list[CheckResult]:
        times: list[float] = []
        started = monotonic()
        messages = [_user("Count from one to ten in words.")]
        try:
            reply = await self._model.complete(
                messages, on_token=lambda _: times.append(monotonic() - started)
            )
        except LlmUnavailable as error:
            return [_failure("model.stream", error)]

        return [_stream_result(len(times)), _usage_result(reply), _first_token(times)]

    async def _long_prompt(self) -> CheckResult:
        prompt = f"The codeword is {_CODEWORD}. {_FILLING * _FILLING_TIMES}What is the codeword?"
        try:
            reply = await self._ask(prompt)
        except LlmUnavailable as error:
            return _failure("model.context", error)

        if _CODEWORD not in reply.text.upper():
            return warned(
                "model.context",
                Text(
                    "较长的提示词（约 6000 个词元）开头丢失了。",
                    "The beginning of a long prompt (about 6,000 tokens) was lost.",
                ),
                Text(
                    "调大服务端的上下文（Ollama：OLLAMA_CONTEXT_LENGTH=32768），"
                    "或设 SCHEMA_TOKENS=2000。",
                    "Raise the context of the server (Ollama: OLLAMA_CONTEXT_LENGTH=32768), or set "
                    "SCHEMA_TOKENS=2000.",
                ),
            )

        return _context_by_name(self._model.name)

    def _thinking(self) -> CheckResult:
        wanted = self._settings.llm_thinking
        if not wanted:
            return passed(
                "model.thinking",
                Text("LLM_THINKING 未设置。", "LLM_THINKING is not set."),
            )

        refused = self._model.refused_parts & self._endpoint.thinking.keys()
        if self._endpoint.thinking and not refused:
            sent = json.dumps(dict(self._endpoint.thinking))
            return passed("model.thinking", Text(f"已发送 {sent}。", f"{sent} is sent."))

        return warned(
            "model.thinking",
            Text(
                "接口没有 Citu 认识的思考开关，LLM_THINKING 不起作用。",
                "The endpoint takes no switch for thinking that Citu knows: LLM_THINKING has no "
                "effect.",
            ),
            Text(
                "清空 LLM_THINKING，或写成接口自己的 JSON 参数，见 docs/models.md。",
                "Leave LLM_THINKING empty, or give the endpoint's own parameters as JSON: see "
                "docs/models.md.",
            ),
        )

    async def _ask(self, prompt: str, offer: ToolOffer | None = None) -> Completion:
        return await self._model.complete([_user(prompt)], offer=offer)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _writes_thoughts(text: str) -> bool:
    marks = (*OPENING_THOUGHTS, *CLOSING_THOUGHTS)  # of some models only the closing one
    return any(mark in text.lower() for mark in marks)


def _same_model(listed: str, configured: str) -> bool:
    """Compare names; lists may add a path before them (`models/…`) or a tag behind (`:latest`)."""
    if listed == configured:
        return True

    return listed.rpartition("/")[2] == configured or listed.removesuffix(":latest") == configured


def _failure(check: str, error: LlmUnavailable) -> CheckResult:
    kind = kind_of_failure(error)
    return failed(check, MEANINGS[kind].text, _CHANGE.get(kind, _CHANGE_ELSE))


def _stream_result(pieces: int) -> CheckResult:
    if pieces > 1:
        message = Text(f"边写边发（{pieces} 段）。", f"It streams ({pieces} pieces).")
        return passed("model.stream", message)

    return warned(
        "model.stream",
        Text("回答一次到达，没有流式输出。", "The reply comes in one piece and is not streamed."),
        Text(
            "在接口或其前面的代理上打开流式输出（nginx：proxy_buffering off）。",
            "Switch streaming on at the endpoint or the proxy before it (nginx: proxy_buffering "
            "off).",
        ),
    )


def _usage_result(reply: Completion) -> CheckResult:
    usage = reply.usage
    if usage.prompt_tokens and usage.completion_tokens:
        message = Text("流中报告用量。", "Streams report how many tokens were used.")
        return passed("model.usage", message)

    return warned(
        "model.usage",
        Text("流中没有用量。", "Streams do not report how many tokens were used."),
        Text(
            "升级接口服务；否则 usage 和 AGENT_TOKENS 不准。",
            "Upgrade the endpoint; until then `usage` and AGENT_TOKENS count too little.",
        ),
    )


def _first_token(times: Sequence[float]) -> CheckResult:
    seconds = next(iter(times), 0.0)
    message = Text(
        f"{seconds:.1f} 秒后出现第一个词元。", f"The first token came after {seconds:.1f} s."
    )
    if seconds <= _SLOW_S:
        return passed("model.first_token", message)

    return warned("model.first_token", message, _CHANGE["timeout"])


def _context_by_name(model: str) -> CheckResult:
    context = context_tokens(model)
    if context is None:
        message = Text(
            "约 6000 个词元的提示词完整送达；上下文长度未知。",
            "A prompt of about 6,000 tokens arrives whole; the context's length is not known.",
        )
        return passed("model.context", message)

    message = Text(f"上下文约 {context} 个词元。", f"The context has about {context} tokens.")
    if context >= _LEAST_CONTEXT:
        return passed("model.context", message)

    return warned("model.context", message, _CHANGE["context"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 when something fails."""
    logging.basicConfig(handlers=[logging.NullHandler()])
    parser = argparse.ArgumentParser(
        prog="python -m llm.check_model", description="what works at the configured model"
    )
    parser.add_argument("--model", help="default: OPENAI_MODEL")
    add_report_options(parser)
    given = parser.parse_args(arguments)
    try:
        load_dotenv(Path(".env"))
        settings = Settings.from_env()
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 1

    if given.model:
        settings = replace(settings, openai_model=given.model)

    findings = asyncio.run(check_model(settings))
    sys.stdout.write(report(findings, given.lang, as_json=given.json))
    return int(worst(findings) == _FAILS_FROM)


if __name__ == "__main__":
    sys.exit(main())
