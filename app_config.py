"""Configuration: one table of settings, each with its default, its meaning and what it may be.

`Settings.from_env()` reads the environment (and `.env`) once into a frozen value. Only the entry
points and the composition root use this module; they pass other code what it needs. Standard
library only. `python docs/make_settings.py` writes `.env.example` and the tables of
docs/configuration.md from it.
"""

import ipaddress
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from common.loopback import is_safe_address

_API_KEYS = "api_keys.json"
_MOST_TURNS = 50  # that a question may look back on


class ConfigurationError(Exception):
    """A setting has a value it can't have; the message names it and says what is allowed."""


def _flag(text: str) -> bool:
    flags = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if text.lower() not in flags:
        raise ValueError("true or false")

    return flags[text.lower()]


def _positive(kind: type) -> Any:
    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError as exc:
            raise ValueError(
                "a positive number" if kind is float else "a positive whole number"
            ) from exc

        if not 0 < value < float("inf"):
            raise ValueError("a positive number")

        return value

    return parse


def _count(text: str) -> int:
    if not text.isdigit():
        raise ValueError("a whole number, 0 or more")

    return int(text)


def _sheet_rows(text: str) -> int:
    most = 1_048_575  # rows of a sheet of Excel besides its header
    if not text.isdigit() or not 0 < int(text) <= most:
        raise ValueError(f"a whole number from 1 to {most}, the rows that fit on a sheet")

    return int(text)


def _share(text: str) -> float:
    value: float = _positive(float)(text)
    if value > 1:
        raise ValueError("a part of 1, for example 0.5")

    return value


def _one_of(*choices: str) -> Any:
    def parse(text: str) -> str:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice

        raise ValueError(f"one of {', '.join(choices)}")

    return parse


def _safe_address(text: str) -> str:
    parts = urlsplit(text)
    if not is_safe_address(text) or parts.query or parts.fragment:
        raise ValueError("an https:// address; http:// only on this machine")

    return text


def _scopes(text: str) -> str:
    if not re.fullmatch(r"[!#-\[\]-~]+(?:\s+[!#-\[\]-~]+)*", text):
        raise ValueError("scopes separated by blanks, for example `citu.read profile`")

    return text


def _login_scopes(text: str) -> str:
    if "openid" not in _scopes(text).split():
        raise ValueError("scopes separated by blanks, `openid` among them")

    return text


def claims_by_attribute(text: str) -> dict[str, str]:
    """Return the claims of `OAUTH_ATTRIBUTES` by the names of the attributes they become.

    Raises:
        ValueError: it is not written as the setting is.
    """
    claims: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        name, _, claim = (piece.strip() for piece in part.partition("="))
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", name) or name in claims:
            raise ValueError(
                "attributes with their claims, each once, for example "
                "region, level=employee.level: names of letters, digits and _"
            )

        claims[name] = claim or name

    return claims


def _attributes(text: str) -> str:
    claims_by_attribute(text)
    return text


def _proxies(text: str) -> str:
    for part in text.split(","):
        if part.strip() == "unix":
            continue

        try:
            ipaddress.ip_network(part.strip())
        except ValueError as exc:
            raise ValueError(
                "addresses or networks separated by commas, for example 127.0.0.1, 10.0.0.0/8; "
                "unix for Unix sockets"
            ) from exc

    return text


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address such as https://example.com/citu")

    return text


def _signing_secret(text: str) -> str:
    if len(text) < 16:
        raise ValueError("at least 16 characters, for example from `openssl rand -hex 32`")

    return text


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ValueError("a port between 1 and 65535")

    return int(text)


def _optional_port(text: str) -> int:
    if text == "0":
        return 0

    return _port(text)


def _rate_limit(text: str) -> str:
    for one in re.split("[,;]", text):
        if not re.fullmatch(
            r"\s*[1-9]\d{0,8}\s*/\s*([1-9]\d{0,3}\s*)?(second|minute|hour|day)s?\s*", one
        ):
            raise ValueError(
                "for example 60/minute or 10/second, 1000/day: numbers per second, "
                "minute, hour or day"
            )

    return text


def _groups(text: str) -> str:
    for one in text.split(","):
        if not re.fullmatch(r"[\w.:-]{1,64}", one.strip()):
            raise ValueError(
                "names of groups as API keys have them (letters, digits, _ . : or -), "
                "separated by commas"
            )

    return text


def _objects_by_group(text: str) -> str:
    for entry in filter(str.strip, text.split(";")):
        found = re.fullmatch(r"\s*[\w.:-]{1,64}?\s*:(?:\s+|(?=[^:]*$))(.*)", entry, re.DOTALL)
        if found is None or not found[1].strip(" ,"):
            raise ValueError(
                "groups of API keys, each with what it may not read, for example "
                "clerks: hr, public.person.salary; guests: public.visitor"
            )

    return text


def _tool_groups(text: str) -> str:
    names: set[str] = set()
    for entry in text.split(";"):
        found = re.fullmatch(
            r"\s*+([\w-]{1,64})\s*+:\s*+([\w.:-]{1,64}(\s*+,\s*+[\w.:-]{1,64})*)?\s*+", entry
        )
        if found is None and entry.strip():
            raise ValueError(
                "tools, each with the groups of API keys that may use it (everyone: all; none: "
                "nobody), for example "
                "run_sql: analysts, leads; export: everyone; save_memory:"
            )
        if found is not None and found[1] in names:
            raise ValueError(f"each tool once; {found[1]} stands there twice")

        names |= {found[1]} if found is not None else set()

    return text


def _origins(text: str) -> str:
    for one in text.split(","):
        if not re.fullmatch(
            r"\*|[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?", one.strip().lower()
        ):
            raise ValueError(
                "origins like https://app.example.com, without a path, separated by commas; or *"
            )

    return text


def _ping_interval(text: str) -> float:
    value: float = _positive(float)(text)
    if value > 15:
        raise ValueError("at most 15 seconds")

    return value


def _time_zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError("the name of a time zone, such as UTC or Asia/Shanghai") from exc

    return text


def _turn_count(text: str) -> int:
    value: int = _positive(int)(text)
    if value > _MOST_TURNS:
        raise ValueError(f"at most {_MOST_TURNS}")

    return value


def _thinking(text: str) -> str:
    if text.lower() in {"on", "off"}:
        return text.lower()

    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False

    if not is_object:
        raise ValueError('on, off, or a JSON object such as {"enable_thinking": false}')

    return text


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError as exc:
        raise ValueError("seconds, 0 or more") from exc

    if not 0 <= value < float("inf"):
        raise ValueError("seconds, 0 or more")

    return value


_BY_TYPE: dict[type, Any] = {bool: _flag, int: _positive(int), float: _positive(float), str: str}


def setting(default: Any, meaning: str, *, parse: Callable[[str], Any] | None = None) -> Any:
    """Declare a setting: its default, its description and its check.

    Args:
        meaning: units, choices, what 0 or nothing means; Markdown, for docs/configuration.md.
        parse: turns its text into its value and raises ValueError with what it may be; default:
            by the type of the default.
    """
    return field(default=default, metadata={"meaning": meaning, "parse": parse})


SECTIONS = {
    "host": "Serving",
    "api_keys_file": "Callers",
    "database_url": "Databases",
    "redis_url": "Conversations and runs",
    "learning": "What is learnt",
    "openai_api_key": "Language model",
    "workflow_handlers": "Extensions",
    "scratch_database_url": "Transformations",
    "agent": "Behaviour",
}
"""The headings of docs/configuration.md, by the first setting of each."""


@dataclass(frozen=True)
class Settings:
    """All settings. A field is the environment variable of its name in capitals."""

    # Serving
    host: str = setting(
        "127.0.0.1",
        "address to listen on",
    )
    port: int = setting(
        8084,
        "TCP port, 1–65535",
        parse=_port,
    )
    data_dir: str = setting(
        "./var",
        "folder for the embedded PostgreSQL server, the demo database and its logs; several "
        "processes may share one",
    )
    max_streams: int = setting(
        64,
        "questions running at once in one worker; one more gets 503 `too_many_streams` at once. "
        "Each holds one thread, unless it came over a WebSocket",
    )
    max_sockets: int = setting(
        1000,
        "WebSockets open at once in one worker; one more gets 503 `too_many_streams`. An open "
        "one holds a descriptor and no thread; questions over it count for `MAX_STREAMS`",
    )
    max_connections_per_address: int = setting(
        0,
        "connections that one address (for IPv6, one /64 network) may have open in one worker, "
        "WebSockets left out; one more gets 429 `too_many_connections` and is closed. `0`: half "
        "of the `4 × MAX_STREAMS + 1000` that a worker takes. With `TRUSTED_PROXIES` the proxy "
        "may have any number, and requests count for the client that it names",
        parse=_count,
    )
    request_timeout_s: float = setting(
        180.0,
        "seconds for one question from request to answer; then 504 `query_timeout`",
    )
    drain_s: float = setting(
        20.0,
        "seconds running questions may go on after `SIGTERM`, while `/ready` says 503; then they "
        "are cancelled, or left to another worker. Give the service manager ten seconds more; see "
        "[deployment](deployment.md#stopping-and-restarting)",
        parse=_seconds,
    )
    ping_interval_s: float = setting(
        10.0,
        "seconds between keep-alive comments on a quiet stream, at most 15",
        parse=_ping_interval,
    )
    max_question_chars: int = setting(
        2000,
        "longest question, in characters",
    )
    max_body_bytes: int = setting(
        196608,
        "largest request body, in bytes",
    )
    log_level: str = setting(
        "INFO",
        "`DEBUG`, `INFO`, `WARNING` or `ERROR`; logs are JSON lines on stderr",
        parse=_one_of("DEBUG", "INFO", "WARNING", "ERROR"),
    )
    metrics: bool = setting(
        False,
        "measure the service, and answer `GET /metrics` to operators (`OPERATOR_GROUPS`); see "
        "[monitoring](monitoring.md)",
    )
    metrics_port: int = setting(
        0,
        "TCP port that answers `GET /metrics`, and nothing else, without a key, 1–65535; the "
        "service measures then, whatever `METRICS` says. `0`: none",
        parse=_optional_port,
    )
    metrics_host: str = setting(
        "127.0.0.1",
        "address of `METRICS_PORT`; who can connect to it may read the metrics",
    )
    traces: bool = setting(
        False,
        "trace requests, questions, model calls, statements and tools with OpenTelemetry; see "
        "[monitoring](monitoring.md#traces)",
    )
    trace_statements: bool = setting(
        False,
        "traces have the text of statements, without literals",
    )
    audit_log: str = setting(
        "",
        "file of the audit log; empty: `logs/audit.jsonl` in `DATA_DIR`; `off`: none",
    )

    # Callers
    api_keys_file: str = setting(
        "",
        "file of API keys; empty: `api_keys.json` in `DATA_DIR`. Made and changed by `python -m "
        "api.keys`",
    )
    shared_api_keys: bool = setting(
        False,
        "API keys are kept in the store, for all hosts; `API_KEYS_FILE` is this host's copy. "
        "Needs `REDIS_URL` or `APP_DATABASE_URL`",
    )
    allow_anonymous: bool = setting(
        False,
        "without API keys, answer others than this machine too",
    )
    examples_without_key: bool = setting(
        False,
        "with API keys, show example questions to those who have not given theirs yet; they name "
        "tables and columns that a caller of no group may see",
    )
    reviewer_groups: str = setting(
        "",
        "groups of API keys that may review what Citu learnt, for example `stewards, leads`; "
        "empty: no key may",
        parse=_groups,
    )
    operator_groups: str = setting(
        "",
        "groups of API keys that may operate the service, written the same way; empty: no key may",
        parse=_groups,
    )
    rate_limit: str = setting(
        "",
        "how often one caller may send a request that runs SQL, reads the catalogue, asks a model "
        "or signs somebody in (the table in `api/access/charges.py` names them), for example "
        "`60/minute` or `2/second, 1000/day`; beyond it 429 `rate_limited`; empty: no limit",
        parse=_rate_limit,
    )
    caller_share: float = setting(
        0.5,
        "the part of `MAX_STREAMS`, `MAX_SOCKETS`, `DATABASE_POOL_SIZE` and `LLM_MAX_IN_FLIGHT` "
        "that one caller may have at once, rounded down, at least one of each; `1`: all. Who "
        "waits for a connection or a model call is served in turn, caller by caller. See "
        "[deployment.md](deployment.md#a-share-for-each-caller)",
        parse=_share,
    )
    cors_origins: str = setting(
        "",
        "origins whose pages may use the API and open WebSockets, for example "
        "`https://app.example.com, http://localhost:3000`; `*`: any; empty: only the service's "
        "own page",
        parse=_origins,
    )
    trusted_proxies: int = setting(
        0,
        "how many reverse proxies in front append to `X-Forwarded-For`; `0`: the header is ignored",
        parse=_count,
    )
    public_url: str = setting(
        "",
        "the address by which clients reach the service, for example `https://citu.example.com`: "
        "what tells them where access tokens are had begins with it. Empty: as each request "
        "names it",
        parse=_web_address,
    )
    oauth_issuer: str = setting(
        "",
        "the issuer of [access tokens](security.md#access-tokens) (OAuth 2, OpenID Connect), "
        "exactly as its tokens name it in `iss`. Requests then need a token or an API key. Needs "
        "`OAUTH_AUDIENCE`, `OIDC_CLIENT_ID` or both. Empty: no tokens are taken",
        parse=_safe_address,
    )
    oauth_audience: str = setting(
        "",
        "what a token must name in `aud` to be meant for this service: one or several, separated "
        "by commas. Empty: no tokens are taken; people may still sign in on the page "
        "(`OIDC_CLIENT_ID`)",
    )
    oauth_jwks_url: str = setting(
        "",
        "the address of the issuer's keys (JWKS); empty: as the issuer's own metadata say",
        parse=_safe_address,
    )
    oauth_scopes: str = setting(
        "",
        "scopes that a token must have, separated by blanks; else 403 `insufficient_scope`",
        parse=_scopes,
    )
    oauth_user_claim: str = setting(
        "sub",
        "the claim that is the user id: one that users can't choose or change",
    )
    oauth_groups_claim: str = setting(
        "groups",
        "the claim that lists the groups; a path into objects is written `realm_access.roles`",
    )
    oauth_attributes: str = setting(
        "",
        "the attributes that [row rules](row-rules.md) may name (`:attribute.region`), each with "
        "its claim where that is called otherwise: `region, level=employee.level`",
        parse=_attributes,
    )
    oidc_client_id: str = setting(
        "",
        "the name by which `OAUTH_ISSUER` knows this service as a client; people then [sign in on "
        "the page](security.md#signing-in-on-the-page). Needs `PUBLIC_URL`, whose "
        "`/login/callback` is registered there. Empty: the page asks for an API key",
    )
    oidc_client_secret: str = setting(
        "",
        "the client's secret; empty: a public client, protected by PKCE alone",
    )
    oidc_scopes: str = setting(
        "openid",
        "scopes that are asked for when somebody signs in; `openid` is one of them",
        parse=_login_scopes,
    )
    session_ttl_s: float = setting(
        28800.0,
        "seconds after which people have to sign in again; until then they keep the groups and "
        "attributes with which they signed in",
    )
    session_key: str = setting(
        "",
        "signs the sessions of people who have signed in; at least 16 characters, the same on all "
        "hosts; another one ends all sessions. Without it, the workers of one host share a key in "
        "`DATA_DIR`",
        parse=_signing_secret,
    )
    user_resolver: str = setting(
        "",
        "tells the user of requests without a key or a token, as `module:name`, by what a proxy "
        "in front says or by a session's cookie; see "
        "[security](security.md#users-whom-a-proxy-names). Empty: nobody does",
    )
    user_resolver_proxies: str = setting(
        "",
        "addresses and networks of the proxies whose requests it is asked about, for example "
        "`127.0.0.1, 10.0.0.0/8`; `unix`: Unix sockets; needed with `USER_RESOLVER`",
        parse=_proxies,
    )

    # Databases
    database_url: str = setting(
        "",
        "the PostgreSQL database that is asked, as a URL or `key=value` text; empty: the "
        "embedded demo database",
    )
    databases_file: str = setting(
        "",
        "the YAML file of several databases that are asked, each with its URL, its names, who may "
        "ask it and what it has of its own; see [databases](databases.md). It takes the place of "
        "`DATABASE_URL`, `SEMANTIC_FILE` and `ROW_RULES`, which stay empty; the other settings of "
        "this section hold for databases that don't say otherwise. Empty: one database",
    )
    max_rows: int = setting(
        200,
        "most rows of one answer; when there are more, `is_limited` is true",
    )
    max_result_bytes: int = setting(
        4194304,
        "most bytes of one answer's rows, as text, each value counting 32 bytes more; beyond it "
        "rows are left out, and values that are too long for their share are cut",
    )
    export_max_rows: int = setting(
        1000000,
        "most rows of one exported file, at most 1048575, which is what a sheet has room for; "
        "`MAX_ROWS` and `MAX_RESULT_BYTES` don't apply to it",
        parse=_sheet_rows,
    )
    statement_timeout_s: float = setting(
        30.0,
        "seconds one SQL statement may run; then 504 `query_timeout`",
    )
    value_lookup_timeout_s: float = setting(
        0.5,
        "seconds for looking up the stored values that a question names in columns of too many "
        "values to be known ([security.md](security.md#what-a-question-has-looked-up)); then the "
        "question goes on without; `0`: none are looked up",
        parse=_seconds,
    )
    max_plan_cost: int = setting(
        0,
        "most a plan may be estimated to cost, in the planner's units; above it 422 "
        "`cost_exceeded` and nothing runs; `0`: no limit",
        parse=_count,
    )
    max_plan_rows: int = setting(
        0,
        "most rows a plan may be estimated to return; above it 422 `cost_exceeded`; `0`: no limit",
        parse=_count,
    )
    database_pool_size: int = setting(
        8,
        "connections to the datasource in one worker; one whose statement PostgreSQL can't "
        "stop stays taken until it has ended, and one more is opened to check whether it has",
    )
    database_pool_wait_s: float = setting(
        30.0,
        "seconds to wait for a free connection; then 503 `database_unavailable`",
    )
    catalog_ttl_s: float = setting(
        300.0,
        "seconds the descriptions of tables are kept before they are read again",
    )
    allowed_functions: str = setting(
        "",
        "user-defined and extension functions that queries may call, separated by commas: "
        "`name`, `schema.name` or `schema.*`; built-in functions without side effects are always "
        "allowed",
    )
    allowed_objects: str = setting(
        "",
        "if any, only these may be read, separated by commas: `schema`, `schema.table` or "
        "`schema.table.column`, each as stored, in double quotes where it holds dots; `*` stands "
        "for any characters. A view that reads something else is open only if it is named in "
        "full: see [what is closed](security.md#what-is-closed)",
    )
    denied_objects: str = setting(
        "",
        "these may not be read, written the same way; a denial wins, also over views, partitions "
        "and generated columns that show them",
    )
    group_denied_objects: str = setting(
        "",
        "more of these for API keys of a group: `clerks: hr, public.person.salary; guests: "
        "public.visitor`. All groups of a key count. Rows and masks of a group are said in "
        "`ROW_RULES`",
        parse=_objects_by_group,
    )
    row_context: bool = setting(
        False,
        "tell the server's row-level security policies whose each transaction is, by the "
        "settings `citu.user_id`, `citu.groups` and `citu.attributes`; see [row "
        "rules](row-rules.md#policies-of-the-database)",
    )
    semantic_file: str = setting(
        "",
        "the YAML file that says what the database means to people: names, values, units, "
        "metrics; see [the semantic file](semantic.md). Empty: none; the embedded demo has its "
        "own",
    )
    row_rules: str = setting(
        "",
        "the YAML file that says which rows and which values of a table a group of API keys may "
        "see, without a change to the database; see [row rules](row-rules.md). Empty: no rules",
    )
    require_read_only_role: bool = setting(
        False,
        "run nothing for a database role that may do more than read; otherwise it is only warned "
        "about",
    )

    # Files that people bring
    files: bool = setting(
        True,
        "take CSV, TSV and XLSX files, whose tables their owners ask as the database `files`; see "
        "[files](files.md)",
    )
    workspace_url: str = setting(
        "",
        "the PostgreSQL database in which their tables are kept; its role may create schemas "
        "there; empty: a database of the embedded server",
    )
    max_file_bytes: int = setting(
        209715200,
        "largest file that is taken, as it is sent",
    )
    file_bytes_per_owner: int = setting(
        2147483648,
        "most bytes that one owner's tables may take on disk",
    )
    file_tables_per_owner: int = setting(
        100,
        "most tables of one owner",
    )
    file_timeout_s: float = setting(
        300.0,
        "seconds of reading or of loading one file",
    )
    file_draft_ttl_s: float = setting(
        86400.0,
        "seconds an uploaded file waits for its owner to confirm it",
    )

    # Conversations and runs
    redis_url: str = setting(
        "",
        "Redis 6 or newer that keeps conversations and runs, for example "
        "`redis://localhost:6379/0`; no modules needed",
    )
    app_database_url: str = setting(
        "",
        "without `REDIS_URL`, the PostgreSQL database that keeps them; empty: the embedded server",
    )
    store_timeout_s: float = setting(
        2.0,
        "seconds one access to them may take; then the question is answered without, and the "
        "answer warns",
    )
    conversation_ttl_s: float = setting(
        2592000.0,
        "seconds a conversation is kept after its last turn",
    )
    max_turns: int = setting(
        100,
        "turns kept of one conversation; the oldest go first",
    )
    run_lease_s: float = setting(
        10.0,
        "seconds without a sign of its worker after which a run counts as cut off and ends with "
        "an error",
    )
    run_ttl_s: float = setting(
        3600.0,
        "seconds a run, its events and its `Idempotency-Key` are kept after its last event",
    )
    run_waiting_ttl_s: float = setting(
        604800.0,
        "seconds a run that waits for its user's answer is kept",
    )

    # What is learnt
    learning: bool = setting(
        True,
        "learn from feedback; `false`: feedback is kept and teaches nothing",
    )
    max_own_examples: int = setting(
        200,
        "examples kept of one user that are not shared; the oldest go first",
    )
    max_shared_examples: int = setting(
        5000,
        "examples that reviewers have shared with everybody; beyond that nothing more is shared",
    )

    # Language model
    openai_api_key: str = setting(
        "",
        "key of the endpoint",
    )
    openai_base_url: str = setting(
        "",
        "its base URL, for example `http://127.0.0.1:11434/v1`; empty: OpenAI's own",
    )
    openai_model: str = setting(
        "gpt-4o-mini",
        "model name sent to the endpoint",
    )
    azure_openai_api_key: str = setting(
        "",
        "key of an Azure OpenAI resource; used when `OPENAI_API_KEY` is empty",
    )
    azure_openai_endpoint: str = setting(
        "",
        "`https://<resource>.openai.azure.com`",
    )
    azure_openai_api_version: str = setting(
        "2024-10-21",
        "Azure API version",
    )
    azure_openai_deployment: str = setting(
        "",
        "Azure deployment name",
    )
    llm_timeout_s: float = setting(
        60.0,
        "seconds one model call may take, however slowly the reply arrives",
    )
    llm_max_retries: int = setting(
        2,
        "further tries after 429, 5xx and broken connections, with back-off",
        parse=_count,
    )
    llm_max_tokens: int = setting(
        2048,
        "longest reply of one model call, in tokens",
    )
    llm_thinking: str = setting(
        "",
        "`on` or `off`: whether a thinking model thinks before it answers, told to each endpoint "
        "in [its own words](models.md#endpoints); or a JSON object of parameters that go into "
        "every request, for other endpoints; empty: as the endpoint does by itself",
        parse=_thinking,
    )
    schema_tokens: int = setting(
        0,
        "longest description of the database in a prompt, in estimated tokens; `0`: what the "
        "model's context has room for",
        parse=_count,
    )
    schema_samples: bool = setting(
        True,
        "show the model, and in `/api/v0/schema`, some stored values of columns that are not "
        "personal; `false`: none",
    )
    llm_max_in_flight: int = setting(
        256,
        "model calls running at once in one worker; further ones wait for their caller's turn "
        "within `LLM_TIMEOUT_S`; the same number of calls of `EMBEDDING_MODEL`",
    )
    embedding_model: str = setting(
        "",
        "model of an OpenAI-compatible `/embeddings` endpoint whose vectors help to find the "
        "tables of a question when not all fit a prompt; empty: words alone do",
    )
    embedding_base_url: str = setting(
        "",
        "its base URL; empty: that of `OPENAI_BASE_URL`",
    )
    embedding_api_key: str = setting(
        "",
        "its key; empty: `OPENAI_API_KEY`, which is not sent to an `EMBEDDING_BASE_URL` of its own",
    )
    second_model: str = setting(
        "",
        "model that is asked when the first one fails, before the rules are; empty: none",
    )
    second_model_base_url: str = setting(
        "",
        "base URL of its OpenAI-compatible endpoint; empty: `OPENAI_BASE_URL`",
    )
    second_model_api_key: str = setting(
        "",
        "its key; empty: `OPENAI_API_KEY`",
    )
    llm_cache_size: int = setting(
        0,
        "replies that one worker keeps, to give them again when the same messages come again; "
        "replies that call tools are never kept; `0`: none",
        parse=_count,
    )
    llm_cache_ttl_s: float = setting(
        300.0,
        "seconds such a reply is kept",
    )

    # Extensions
    workflow_handlers: str = setting(
        "agent.extensions.commands:commands",
        "answer certain questions before any model: `/help`, `/reset`, `/schema`, and the "
        "reports of the [semantic file](semantic.md#reports)",
    )
    lifecycle_hooks: str = setting(
        "agent.extensions.daily_quota:daily_quota",
        "are told of questions and of tools' calls, and may stop them",
    )
    llm_middlewares: str = setting(
        (
            "agent.extensions.response_cache:response_cache, "
            "agent.extensions.second_model:second_model"
        ),
        "stand before the model, the first one outermost",
    )
    conversation_filters: str = setting(
        "agent.extensions.turn_budget:turn_budget",
        "decide which earlier turns a question remembers",
    )
    tool_context_enrichers: str = setting(
        "agent.extensions.trace:trace",
        "add to what tools know of a question",
    )
    llm_context_enhancers: str = setting(
        "agent.extensions.notes_file:notes_file",
        "add texts to what the model is told, as data",
    )
    observability_provider: str = setting(
        "",
        "measures questions, model calls, tools and statements: "
        "`agent.extensions.span_log:span_log` writes them to the log; empty: nothing is measured",
    )
    graph_callbacks: str = setting(
        "",
        "callback handlers of LangChain, which are told of each graph and of its nodes, with their "
        "states; empty: none",
    )
    own_tools: str = setting(
        "",
        "further [tools](agents.md#own-tools) that models may call; `TOOL_GROUPS` may name them",
    )
    argument_transforms: str = setting(
        "",
        "change the arguments of tools' calls, or refuse them, one after the other",
    )
    recovery_strategies: str = setting(
        "",
        "decide what is done about tools' calls that have failed: again, otherwise, or with advice "
        "to the model; the first that knows decides",
    )
    audit_sinks: str = setting(
        "",
        "take what the audit log notes, to keep it elsewhere as well",
    )
    result_renderers: str = setting(
        "",
        "add cards to answers of the kinds that they name, on the page, in Vanna's component and "
        "in every protocol",
    )
    notes_file: str = setting(
        "",
        "text file with headings about the business, of which models are told the sections that "
        "fit a question; empty: none",
    )
    questions_per_day: int = setting(
        0,
        "questions of one user in 24 hours, whichever key asks them; counted in the store, for "
        "all workers together; `0`: no limit",
        parse=_count,
    )
    budgets_file: str = setting(
        "",
        "the YAML file of what models may cost in a day, in tokens or money: each user, groups, "
        "everybody; see [budgets](deployment.md#budgets). Empty: as much as they do",
    )
    model_log: str = setting(
        "",
        "file of a log of all prompts and replies, which hold questions, names and stored values; "
        "see [models](models.md#a-log-of-prompts). `on`: `logs/prompts.jsonl` in `DATA_DIR`; "
        "empty: none",
    )
    webhook_url: str = setting(
        "",
        "an `http(s)://` address that is told of spent budgets, failures that pile up, bad "
        "feedback and reports that fail; see [monitoring](monitoring.md#webhooks). Empty: none",
        parse=_web_address,
    )
    webhook_secret: str = setting(
        "",
        "signs what is sent to `WEBHOOK_URL`; at least 16 characters",
        parse=_signing_secret,
    )
    mcp_state_key: str = setting(
        "",
        "seals what clients of `/mcp` keep while a run waits for its user; at least 16 characters, "
        "the same on all hosts. Without it, the workers of one host share a key in `DATA_DIR`",
        parse=_signing_secret,
    )
    history_turns: int = setting(
        10,
        "earlier turns a question looks back on, at most 50",
        parse=_turn_count,
    )
    history_tokens: int = setting(
        0,
        "most tokens of these turns together, estimated; `0`: no such limit",
        parse=_count,
    )

    # Transformations
    scratch_database_url: str = setting(
        "",
        "the PostgreSQL database in which drafted transformations are built and tested; its role "
        "has to own it, and it must be neither the datasource nor Citu's own; empty: a "
        "database of the embedded server",
    )
    etl_builds: int = setting(
        2,
        "drafts that are built at once in one worker; others wait",
    )
    etl_sample_rows: int = setting(
        20000,
        "most rows that are copied from one table to test a draft; smaller tables are copied whole",
    )
    etl_dbt: str = setting(
        "",
        "the program `dbt` by which drafts are built; empty: the one that `make etl` has put into "
        "`.venv-etl`, and without it plain SQL",
    )
    etl_model_calls: int = setting(
        40,
        "model calls of one request for a transformation; `AGENT_TOKENS` bounds its tokens. "
        "Afterwards, and after half of `ETL_TIMEOUT_S`, rules do the rest",
    )
    etl_timeout_s: float = setting(
        600.0,
        "seconds of work on a draft until it is done or the next question to its user",
    )
    etl_time_zone: str = setting(
        "UTC",
        "the time zone in which periods of times with a zone are cut, unless a request names "
        "another: `Asia/Shanghai`",
        parse=_time_zone,
    )
    max_own_artefacts: int = setting(
        200,
        "drafts kept of one user; the oldest go first",
    )

    # Behaviour
    agent: str = setting(
        "ask",
        "the flow that answers questions whose request names none: `ask`, `tool_loop` or "
        "`tool_graph`; a request's `agent` wins",
        parse=_one_of("ask", "tool_loop", "tool_graph"),
    )
    agent_model_calls: int = setting(
        8,
        "model calls of one question to a tool agent",
    )
    agent_tool_calls: int = setting(
        24,
        "tool calls of one question to a tool agent; refused ones count",
    )
    agent_tokens: int = setting(
        200000,
        "tokens of one question to a tool agent, of prompts and replies together",
    )
    agent_timeout_s: float = setting(
        120.0,
        "seconds after which a tool agent begins no further call of the model or a tool, and "
        "answers with what it found",
    )
    tool_groups: str = setting(
        "",
        "the groups of API keys that may use a tool, for example `run_sql: analysts, leads; "
        "save_memory: ; export: everyone`. `everyone` is every caller, also without a key; a "
        "tool with no group is for nobody; tools that are not named are for everyone. A name "
        "that is no tool's ([agents.md](agents.md#tools)) keeps the service from starting",
        parse=_tool_groups,
    )
    routing_mode: str = setting(
        "hybrid",
        "`hybrid` (rules for what they understand, the model for everything else), `llm_only`, "
        "`database_direct` or `chat_direct`; a request's `routing_mode` wins",
        parse=_one_of("hybrid", "llm_only", "database_direct", "chat_direct"),
    )
    enable_result_summary: bool = setting(
        True,
        "put the result into words when there are rows",
    )
    follow_up_wait_s: float = setting(
        0.02,
        "seconds an answer waits for the questions to ask next, once all else of it is ready; "
        "without a model, more of them are offered where it may wait longer",
    )
    enable_syntax_validation: bool = setting(
        True,
        "EXPLAIN every statement before it runs",
    )
    enable_forbidden_check: bool = setting(
        True,
        "refuse whatever is not a harmless query, by parse tree; always on with "
        "`ALLOWED_OBJECTS`, `DENIED_OBJECTS`, `GROUP_DENIED_OBJECTS`, `ROW_CONTEXT` or "
        "`ROW_RULES`",
    )
    enable_auto_repair: bool = setting(
        True,
        "one attempt to mend a statement PostgreSQL refuses (needs `ENABLE_SYNTAX_VALIDATION`), "
        "and one second look at an empty result whose filter holds another spelling of a stored "
        "value; where there is only a similar one, the answer asks whether it was meant",
    )
    reuse_examples: bool = setting(
        True,
        "answer a question with the SQL of a verified example whose question says the same, with "
        "the question's own literals, and without asking the model for SQL; see "
        "[learning.md](learning.md#an-example-that-answers-a-question). `false`: examples only "
        "stand in prompts",
    )

    def refuse_halves(self) -> None:
        """Raise `ConfigurationError` where a setting would open too much without another."""
        if self.shared_api_keys and not (self.redis_url or self.app_database_url):
            raise ConfigurationError(
                "SHARED_API_KEYS needs a store that other hosts reach too: set REDIS_URL or "
                "APP_DATABASE_URL."
            )
        if self.user_resolver and not self.user_resolver_proxies:
            raise ConfigurationError(
                "USER_RESOLVER needs USER_RESOLVER_PROXIES: without it, everybody who can "
                "connect could name any user."
            )

        self._refuse_half_issuers()

    def _refuse_half_issuers(self) -> None:
        if self.oauth_issuer and not (self.oauth_audience or self.oidc_client_id):
            raise ConfigurationError(
                "OAUTH_ISSUER needs OAUTH_AUDIENCE, because tokens that were issued for other "
                "services would be taken without it; or OIDC_CLIENT_ID, where people only sign in "
                "on the page."
            )
        if self.oidc_client_id and not (self.oauth_issuer and self.public_url):
            raise ConfigurationError(
                "OIDC_CLIENT_ID needs OAUTH_ISSUER, where people sign in, and PUBLIC_URL, to which "
                "they come back."
            )
        if self.oidc_client_id and not is_safe_address(self.public_url):
            raise ConfigurationError(
                "OIDC_CLIENT_ID needs a PUBLIC_URL with https://, because sessions are as secret "
                "as the connection; http:// only on this machine."
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Return settings from `environ` (default: the process environment). An empty value means
        the default.

        Raises:
            ConfigurationError: a setting can't have its value.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for declared in fields(cls):
            name = declared.name.upper()
            text = environ.get(name, "").strip()
            if not text:
                continue

            parse = declared.metadata["parse"] or _BY_TYPE[type(declared.default)]
            try:
                values[declared.name] = parse(text)
            except ValueError as exc:
                raise ConfigurationError(f"{name}={text!r} is not valid: give {exc}.") from exc

        return cls(**values)

    @property
    def data_path(self) -> Path:
        """Return `data_dir` as an absolute path."""
        return Path(self.data_dir).expanduser().resolve()

    @property
    def model_log_path(self) -> Path | None:
        """Return the file of the log of prompts; None where there is none."""
        if self.model_log.lower() in ("", "off"):
            return None
        if self.model_log.lower() == "on":
            return self.data_path / "logs/prompts.jsonl"

        return Path(self.model_log).expanduser().resolve()

    @property
    def is_measured(self) -> bool:
        """Tell whether metrics are measured."""
        return self.metrics or self.metrics_port > 0

    @property
    def knows_callers(self) -> bool:
        """Tell whether requests need a caller even where there are no API keys."""
        return bool(self.oauth_issuer or self.user_resolver)

    @property
    def takes_access_tokens(self) -> bool:
        """Tell whether requests may bring tokens of the issuer."""
        return bool(self.oauth_issuer and self.oauth_audience)

    @property
    def api_keys_path(self) -> Path:
        """Return the file of API keys, as an absolute path (it need not exist)."""
        if self.api_keys_file:
            return Path(self.api_keys_file).expanduser().absolute()

        return self.data_path / _API_KEYS
