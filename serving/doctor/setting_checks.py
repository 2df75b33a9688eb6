"""Checks settings: names that are none, values that can't be, settings that contradict each other
or are unsafe for a public address.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from dotenv.parser import parse_stream

from app_config import ConfigurationError, Settings
from common.check_report import CheckResult, CheckStatus, failed, passed, warned
from common.loopback import is_loopback
from common.text import Text

_NAMES = frozenset(field.name.upper() for field in fields(Settings))
_MISTYPED = 0.86  # least likeness of a variable of the environment, which has many of others
_LIKE = 0.6  # of a name in .env, where all are meant for Citu
# Names by which other programs know the same thing.
_OTHER_NAMES = {
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_MODEL_NAME": "OPENAI_MODEL",
    "DASHSCOPE_API_KEY": "OPENAI_API_KEY",
    "DEEPSEEK_API_KEY": "OPENAI_API_KEY",
    "POSTGRES_URL": "DATABASE_URL",
    "DB_URL": "DATABASE_URL",
    "API_KEYS": "API_KEYS_FILE",
    "ALLOWED_ORIGINS": "CORS_ORIGINS",
}
# What may stand in .env without being a setting: libraries and shells read it.
# Their names begin so.
_OTHERS_PREFIXES = ("PG", "LC_", "SSL_", "GUNICORN_", "CITU_", "LANG", "OTEL_")
# By any of these, LangGraph sends traces of its own to LangSmith.
_GRAPH_TRACING = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
)
_OTHERS_NAMES = ("TZ", "PATH", "WEB_CONCURRENCY")
_OTHERS_ENDING = "_PROXY"
# A worker that computes, or that the machine holds up, gives no sign for about so long.
_SHORTEST_LEASE_S = 2.0
_MOST_BYTES_OF_A_CHARACTER = 4


def readable_settings(environ: Mapping[str, str]) -> tuple[Settings, list[CheckResult]]:
    """Return the settings without those that can't be, and a finding for each of these."""
    usable: dict[str, str] = {}
    results: list[CheckResult] = []
    for name in sorted(_NAMES & environ.keys()):
        try:
            Settings.from_env({name: environ[name]})
        except ConfigurationError as error:
            message = Text(f"{name} 的值不可用。", f"{name} has a value it can't have.")
            results.append(failed("settings.value", message, Text(str(error), str(error))))
        else:
            usable[name] = environ[name]

    return Settings.from_env(usable), results


def unknown_variables(environ: Iterable[str], in_file: Iterable[str]) -> Iterator[CheckResult]:
    """Find names that are no settings but look like some.

    Args:
        environ: names of the environment's variables.
        in_file: those in `.env`, which are all meant for Citu.
    """
    written = set(in_file)
    for name in sorted({*environ, *written} - _NAMES):
        meant = _meant(name, _LIKE if name in written else _MISTYPED)
        if meant is not None:
            yield warned(
                "settings.unknown",
                Text(f"{name} 不是 Citu 的配置项。", f"{name} is no setting."),
                Text(f"是否想写 {meant}？", f"Did you mean {meant}?"),
            )
        elif name in written and not _is_of_other_program(name):
            yield warned(
                "settings.unknown",
                Text(f".env 中的 {name} 不是 Citu 的配置项。", f"{name} in .env is no setting."),
                Text(
                    "删去它，或查看 docs/configuration.md。",
                    "Remove it: see docs/configuration.md.",
                ),
            )


def unread_lines(path: Path) -> Iterator[CheckResult]:
    """Find lines of `.env` that say nothing, or are overruled by a later one."""
    if not os.access(path, os.R_OK):
        return

    lines: dict[str, int] = {}
    with path.open(encoding="utf-8") as file:
        for binding in parse_stream(file):
            number = binding.original.line
            if binding.error or (binding.key is not None and binding.value is None):
                yield warned(
                    "settings.file",
                    Text(f".env 第 {number} 行不起作用。", f"Line {number} of .env has no effect."),
                    Text("写成 NAME=值。", "Write it as NAME=value."),
                )
            elif binding.key in lines:
                first = lines[binding.key]
                yield warned(
                    "settings.file",
                    Text(
                        f".env 两次写了 {binding.key}（第 {first} 和 {number} 行），后者有效。",
                        f"{binding.key} stands twice in .env, in lines {first} and {number}: "
                        "the last one counts.",
                    ),
                    Text(f"删去第 {first} 行。", f"Remove line {first}."),
                )
            if binding.key is not None:
                lines[binding.key] = number


def _is_of_other_program(name: str) -> bool:
    """Tell whether an environment variable is meant for PostgreSQL, gunicorn or the system."""
    upper = name.upper()
    if upper in _OTHERS_NAMES or upper.endswith(_OTHERS_ENDING):
        return True

    return upper.startswith(_OTHERS_PREFIXES)


def _meant(name: str, likeness: float) -> str | None:
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    if _is_of_other_program(name):
        return None

    return next(iter(get_close_matches(name, _NAMES, 1, likeness)), None)


def told_elsewhere(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Find what sends questions and rows to a service for traces of graphs."""
    for name in _GRAPH_TRACING:
        if environ.get(name) == "true":
            yield warned(
                "settings.graph_tracing",
                Text(
                    f"{name}=true：每个问题、它的语句和行都会发送到 LANGSMITH_ENDPOINT。",
                    f"{name}=true: each question, its statement and its rows are sent to "
                    "LANGSMITH_ENDPOINT.",
                ),
                Text(
                    f"若非本意，删去 {name}；TRACES=true 不发送这些内容。",
                    f"Remove {name} unless you mean it; TRACES=true sends none of these.",
                ),
            )
            return


class _Rule(NamedTuple):
    """A combination of settings that is a mistake."""

    check: str
    status: CheckStatus
    is_broken: Callable[[Settings], object]
    said: Text
    advice: Text


_RULES = (
    _Rule(
        "settings.model",
        "warn",
        lambda settings: settings.openai_api_key and settings.azure_openai_api_key,
        Text(
            "OPENAI_API_KEY 和 AZURE_OPENAI_API_KEY 都已设置：Azure 的不起作用。",
            "OPENAI_API_KEY and AZURE_OPENAI_API_KEY are both set: Azure's has no effect.",
        ),
        Text("只留一个。", "Keep one of them."),
    ),
    _Rule(
        "settings.model",
        "warn",
        lambda settings: (
            settings.openai_base_url
            and not settings.openai_api_key
            and not settings.azure_openai_api_key
        ),
        Text(
            "设置了 OPENAI_BASE_URL，但没有 OPENAI_API_KEY：由规则回答，不问大模型。",
            "OPENAI_BASE_URL is set without OPENAI_API_KEY: rules answer, and no model is asked.",
        ),
        Text(
            "设置密钥；不需要密钥的服务设 OPENAI_API_KEY=none。",
            "Set the key; OPENAI_API_KEY=none for an endpoint that needs none.",
        ),
    ),
    _Rule(
        "settings.hosts",
        "warn",
        lambda settings: settings.shared_api_keys and not settings.mcp_state_key,
        Text(
            "SHARED_API_KEYS=true，但没有 MCP_STATE_KEY：一台机器封存的 MCP 状态，另一台读不了。",
            "SHARED_API_KEYS=true without MCP_STATE_KEY: what one host seals for clients of /mcp, "
            "another can't read.",
        ),
        Text(
            "在所有机器上设同一个：openssl rand -hex 32。",
            "Set the same one on all hosts: openssl rand -hex 32.",
        ),
    ),
    _Rule(
        "settings.hosts",
        "warn",
        lambda settings: (
            settings.shared_api_keys and settings.oidc_client_id and not settings.session_key
        ),
        Text(
            "SHARED_API_KEYS=true，但没有 SESSION_KEY：在一台机器登录的人，另一台不认识。",
            "SHARED_API_KEYS=true without SESSION_KEY: who has signed in at one host is a stranger "
            "to another.",
        ),
        Text(
            "在所有机器上设同一个：openssl rand -hex 32。",
            "Set the same one on all hosts: openssl rand -hex 32.",
        ),
    ),
    _Rule(
        "settings.ports",
        "fail",
        lambda settings: settings.metrics_port == settings.port,
        Text(
            "METRICS_PORT 与 PORT 相同：服务不会启动。",
            "METRICS_PORT is PORT: the service won't start.",
        ),
        Text("设为另一个端口。", "Set METRICS_PORT to another one."),
    ),
    _Rule(
        "settings.metrics",
        "warn",
        lambda settings: (
            settings.metrics and not settings.metrics_port and not settings.operator_groups
        ),
        Text(
            "METRICS=true，但没有 OPERATOR_GROUPS 和 METRICS_PORT：没有人读得到指标。",
            "METRICS=true without OPERATOR_GROUPS or METRICS_PORT: nobody can read the metrics.",
        ),
        Text(
            "设 OPERATOR_GROUPS 为密钥的组，或设 METRICS_PORT。",
            "Name a key's group in OPERATOR_GROUPS, or set METRICS_PORT.",
        ),
    ),
    _Rule(
        "settings.metrics",
        "warn",
        lambda settings: settings.metrics_port and _listens_to_others(settings.metrics_host),
        Text(
            "METRICS_HOST 对外开放：能连接 METRICS_PORT 的人不用密钥就能读指标。",
            "METRICS_HOST is open to others: who can connect to METRICS_PORT reads the metrics "
            "without a key.",
        ),
        Text(
            "设为 127.0.0.1，或用防火墙只让监控系统连接。",
            "Set it to 127.0.0.1, or let a firewall admit the monitoring system alone.",
        ),
    ),
    _Rule(
        "settings.proxies",
        "warn",
        lambda settings: (
            settings.public_url
            and not settings.trusted_proxies
            and not _listens_to_others(settings.host)
            and _listens_to_others(urlsplit(settings.public_url).hostname or "localhost")
        ),
        Text(
            "PUBLIC_URL 经反向代理到达本机，但 TRUSTED_PROXIES=0：所有访问者算作一个地址。",
            "PUBLIC_URL leads here by a proxy, and TRUSTED_PROXIES is 0: all clients count as one "
            "address.",
        ),
        Text(
            "设 TRUSTED_PROXIES 为代理的层数，例如 1。",
            "Set TRUSTED_PROXIES to the number of proxies, for example 1.",
        ),
    ),
    _Rule(
        "settings.webhook",
        "warn",
        lambda settings: settings.webhook_secret and not settings.webhook_url,
        Text(
            "设置了 WEBHOOK_SECRET，但没有 WEBHOOK_URL：不会通知任何人。",
            "WEBHOOK_SECRET is set without WEBHOOK_URL: nobody is told anything.",
        ),
        Text("设 WEBHOOK_URL，或删去它。", "Set WEBHOOK_URL, or remove it."),
    ),
    _Rule(
        "settings.questions",
        "warn",
        lambda settings: (
            settings.max_body_bytes < settings.max_question_chars * _MOST_BYTES_OF_A_CHARACTER
        ),
        Text(
            "MAX_BODY_BYTES 装不下 MAX_QUESTION_CHARS 个字符的问题：长问题得到 413。",
            "MAX_BODY_BYTES has no room for a question of MAX_QUESTION_CHARS: long ones get 413.",
        ),
        Text("调大 MAX_BODY_BYTES。", "Raise MAX_BODY_BYTES."),
    ),
    _Rule(
        "settings.lease",
        "warn",
        lambda settings: settings.store_timeout_s >= settings.run_lease_s,
        Text(
            "STORE_TIMEOUT_S 不小于 RUN_LEASE_S：会话存储一慢，正在回答的问题就算作中断。",
            "STORE_TIMEOUT_S is not below RUN_LEASE_S: while the store is slow, questions count as "
            "cut off.",
        ),
        Text("调小 STORE_TIMEOUT_S。", "Lower STORE_TIMEOUT_S."),
    ),
    _Rule(
        "settings.lease",
        "warn",
        lambda settings: settings.run_lease_s < _SHORTEST_LEASE_S,
        Text(
            "RUN_LEASE_S 很短：进程忙一会儿，它的问题就算作中断。",
            "RUN_LEASE_S is very short: questions of a worker that is busy for a moment count as "
            "cut off.",
        ),
        Text("设为 10。", "Set it to 10."),
    ),
    _Rule(
        "settings.traces",
        "warn",
        lambda settings: settings.trace_statements and not settings.traces,
        Text(
            "TRACE_STATEMENTS=true，但没有 TRACES=true：不起作用。",
            "TRACE_STATEMENTS=true without TRACES=true has no effect.",
        ),
        Text("设 TRACES=true，或删去它。", "Set TRACES=true, or remove it."),
    ),
    _Rule(
        "settings.store",
        "warn",
        lambda settings: settings.redis_url and settings.app_database_url,
        Text(
            "REDIS_URL 和 APP_DATABASE_URL 都已设置：后者不起作用。",
            "REDIS_URL and APP_DATABASE_URL are both set: the second has no effect.",
        ),
        Text("只留一个。", "Keep one of them."),
    ),
    _Rule(
        "settings.embedding",
        "warn",
        lambda settings: settings.embedding_base_url and not settings.embedding_model,
        Text(
            "设置了 EMBEDDING_BASE_URL，但没有 EMBEDDING_MODEL：不会使用。",
            "EMBEDDING_BASE_URL is set without EMBEDDING_MODEL: it is not used.",
        ),
        Text(
            "设置 EMBEDDING_MODEL，或清空前者。", "Set EMBEDDING_MODEL, or leave the other empty."
        ),
    ),
    _Rule(
        "settings.timeouts",
        "warn",
        lambda settings: settings.statement_timeout_s > settings.request_timeout_s,
        Text(
            "STATEMENT_TIMEOUT_S 大于 REQUEST_TIMEOUT_S：语句还在运行，问题已超时。",
            "STATEMENT_TIMEOUT_S is above REQUEST_TIMEOUT_S: a question ends before its statement "
            "may.",
        ),
        Text("调大 REQUEST_TIMEOUT_S。", "Raise REQUEST_TIMEOUT_S."),
    ),
    _Rule(
        "settings.timeouts",
        "warn",
        lambda settings: settings.llm_timeout_s > settings.request_timeout_s,
        Text(
            "LLM_TIMEOUT_S 大于 REQUEST_TIMEOUT_S：大模型失败时来不及由规则回答。",
            "LLM_TIMEOUT_S is above REQUEST_TIMEOUT_S: rules can't answer when the model is late.",
        ),
        Text("调小 LLM_TIMEOUT_S。", "Lower LLM_TIMEOUT_S."),
    ),
    _Rule(
        "settings.guard",
        "warn",
        lambda settings: not settings.enable_forbidden_check,
        Text(
            "ENABLE_FORBIDDEN_CHECK=false：语句在执行前不再按语法树检查。",
            "ENABLE_FORBIDDEN_CHECK=false: statements are not proven harmless before they run.",
        ),
        Text("设为 true。", "Set it to true."),
    ),
    _Rule(
        "settings.audit",
        "warn",
        lambda settings: settings.audit_log == "off",
        Text("AUDIT_LOG=off：没有审计日志。", "AUDIT_LOG=off: nobody can tell what was run."),
        Text("清空 AUDIT_LOG。", "Leave AUDIT_LOG empty."),
    ),
    _Rule(
        "settings.origins",
        "warn",
        lambda settings: "*" in settings.cors_origins,
        Text(
            "CORS_ORIGINS=*：任何网站的页面都可以调用 API。",
            "CORS_ORIGINS=*: pages of every site may call the API.",
        ),
        Text("写出允许的来源。", "Name the origins that may."),
    ),
)


def contradictions(settings: Settings) -> Iterator[CheckResult]:
    """Find settings that can't both be meant, or that switch a safeguard off."""
    for rule in _RULES:
        if rule.is_broken(settings):
            yield CheckResult(rule.check, rule.status, rule.said, rule.advice)


def _listens_to_others(host: str) -> bool:
    return host != "localhost" and not is_loopback(host)


def exposure(settings: Settings, *, has_keys: bool) -> Iterator[CheckResult]:
    """Find what is unsafe where other machines can connect."""
    if not _listens_to_others(settings.host):
        message = Text(
            f"只在本机监听（{settings.host}）。",
            f"Only this machine can connect ({settings.host}).",
        )
        yield passed("address.public", message)
        return

    if not has_keys:
        yield _without_keys(settings)
    if not settings.rate_limit:
        yield warned(
            "address.rate_limit",
            Text(
                f"HOST={settings.host} 对外开放，但没有限速。",
                f"HOST={settings.host} is open to others, and RATE_LIMIT is not set.",
            ),
            Text("例如 RATE_LIMIT=60/minute。", "Set it, for example RATE_LIMIT=60/minute."),
        )


def _without_keys(settings: Settings) -> CheckResult:
    advice = Text(
        "创建密钥：.venv/bin/python -m api.keys create --user 名字；或设 HOST=127.0.0.1。",
        "Make a key: .venv/bin/python -m api.keys create --user NAME; or set HOST=127.0.0.1.",
    )
    if settings.allow_anonymous:
        message = Text(
            "ALLOW_ANONYMOUS=true：能连接的人都可以提问。",
            "ALLOW_ANONYMOUS=true: everybody who can connect may ask.",
        )
        return warned("address.keys", message, advice)

    message = Text(
        f"HOST={settings.host} 对外开放但没有 API 密钥：服务不会启动。",
        f"HOST={settings.host} is open to others and there are no API keys: the service won't "
        "start.",
    )
    return failed("address.keys", message, advice)
