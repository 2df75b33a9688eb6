"""Configuration: plain constants with their defaults, each overridable by an environment variable of the same name.

`Settings.from_env()` reads the environment (and `.env`) once into a frozen value. Only the entry points and the
composition root use this module; they pass other code what it needs. Standard library only.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

# ------------------------------------------------------------------------------------------------------------ serving
HOST = "127.0.0.1"  # address to listen on
PORT = 8084  # TCP port, 1-65535
DATA_DIR = "./var"  # folder for the embedded PostgreSQL server, the demo database and logs
MAX_STREAMS = 64  # questions running at once in one worker; each holds one thread while it runs
MAX_SOCKETS = (
    1000  # WebSockets open at once in one worker; questions over them count for MAX_STREAMS and hold no thread
)
REQUEST_TIMEOUT_S = 180.0  # seconds for one question from request to answer
PING_INTERVAL_S = 10.0  # seconds between keep-alive comments on a quiet stream, at most 15
MAX_QUESTION_CHARS = 2000  # longest question, in characters
MAX_BODY_BYTES = 65536  # largest request body, in bytes
LOG_LEVEL = "INFO"  # DEBUG, INFO, WARNING or ERROR; logs are JSON lines on stderr
AUDIT_LOG = ""  # file of one JSON line per statement; empty: logs/audit.jsonl in DATA_DIR; off: none

# ----------------------------------------------------------------------------------------------------------- callers
API_KEYS_FILE = ""  # file of API keys, made by `python -m api.keys`; empty: api_keys.json in DATA_DIR
ALLOW_ANONYMOUS = False  # without API keys, answer others than this machine too
REVIEWER_GROUPS = ""  # groups of API keys that may review what Citu learnt, by commas; empty: no key may
OPERATOR_GROUPS = ""  # groups of API keys that may operate the service, by commas; empty: no key may
RATE_LIMIT = ""  # questions and SQL of one caller: 60/minute, 1000/day …, by commas; empty: no limit
CORS_ORIGINS = ""  # origins whose pages may use the API: https://app.example.com, by commas; *: any; empty: none
TRUSTED_PROXIES = 0  # reverse proxies in front that append to X-Forwarded-For; 0: the header is not believed

# --------------------------------------------------------------------------------------------------------- databases
DATABASE_URL = ""  # the PostgreSQL database that is asked; empty: the embedded demo database
MAX_ROWS = 200  # most rows of one answer; more are cut and the answer says is_limited
MAX_RESULT_BYTES = 4194304  # most bytes of one answer's rows, as text
EXPORT_MAX_ROWS = 1000000  # most rows of one exported file, at most 1048575
STATEMENT_TIMEOUT_S = 30.0  # seconds one SQL statement may run
VALUE_LOOKUP_TIMEOUT_S = 0.5  # seconds for looking up the stored values that a question names; 0: none are looked up
MAX_PLAN_COST = 0  # most a plan may be estimated to cost, in the planner's units; 0: no limit
MAX_PLAN_ROWS = 0  # most rows a plan may be estimated to return; 0: no limit
DATABASE_POOL_SIZE = 8  # connections to the asked database in one worker
DATABASE_POOL_WAIT_S = 30.0  # seconds to wait for a free connection before database_unavailable
CATALOG_TTL_S = 300.0  # seconds the table descriptions are kept before they are read again
ALLOWED_FUNCTIONS = ""  # user-defined and extension functions queries may call: name, schema.name, schema.*, by commas
ALLOWED_OBJECTS = ""  # if any, only these may be read: schema, schema.table or schema.table.column with *, by commas
DENIED_OBJECTS = ""  # these may not be read, written the same way; a denial wins
GROUP_DENIED_OBJECTS = ""  # the same for API keys of a group: clerks: hr, public.person.salary; guests: public.visitor
ROW_CONTEXT = False  # tell row-level security policies whose each transaction is: citu.user_id, citu.groups
SEMANTIC_FILE = ""  # YAML file that says what the database means to people; empty: none, for the demo its own
ROW_RULES = ""  # YAML file that says which rows and values of a table a group may see; empty: no rules
REQUIRE_READ_ONLY_ROLE = False  # run nothing for a database role that may do more than read

# ------------------------------------------------------------------------------------------- conversations and runs
REDIS_URL = ""  # Redis 6 or newer that keeps conversations and runs, for example redis://localhost:6379/0
APP_DATABASE_URL = ""  # without REDIS_URL, the PostgreSQL database that keeps them; empty: the embedded server
STORE_TIMEOUT_S = 2.0  # seconds one access to them may take; answers don't wait longer for it
CONVERSATION_TTL_S = 2592000.0  # seconds a conversation is kept after its last turn
MAX_TURNS = 100  # turns kept of one conversation; the oldest go first
RUN_LEASE_S = 10.0  # seconds without a sign of its worker after which a run counts as cut off
RUN_TTL_S = 3600.0  # seconds a run, its events and its Idempotency-Key are kept after its last event
RUN_WAITING_TTL_S = 604800.0  # seconds a run that waits for its user's answer is kept

# ------------------------------------------------------------------------------------------------------------- model
OPENAI_API_KEY = ""  # key of an OpenAI-compatible endpoint; with neither key Citu answers by rules, offline
OPENAI_BASE_URL = ""  # its base URL; empty: OpenAI's own
OPENAI_MODEL = "gpt-4o-mini"  # model name sent to that endpoint
AZURE_OPENAI_API_KEY = ""  # key of an Azure OpenAI resource; used when OPENAI_API_KEY is empty
AZURE_OPENAI_ENDPOINT = ""  # https://<resource>.openai.azure.com
AZURE_OPENAI_API_VERSION = "2024-10-21"  # Azure API version
AZURE_OPENAI_DEPLOYMENT = ""  # Azure deployment name
LLM_TIMEOUT_S = 60.0  # seconds one model call may take, further tries included
LLM_MAX_RETRIES = 2  # further tries after 429, 5xx and broken connections, with back-off
LLM_MAX_TOKENS = 2048  # longest reply of one model call, in tokens
SCHEMA_TOKENS = (
    0  # longest description of the database in a prompt, in tokens; 0: what the model's context has room for
)
SCHEMA_SAMPLES = True  # show the model some stored values, none of them personal
LLM_MAX_IN_FLIGHT = 256  # model calls running at once in one worker; further ones wait within LLM_TIMEOUT_S

EMBEDDING_MODEL = ""  # model whose vectors help to find tables when not all fit a prompt; empty: words alone do
EMBEDDING_BASE_URL = ""  # base URL of its OpenAI-compatible endpoint; empty: OPENAI_BASE_URL
EMBEDDING_API_KEY = ""  # its key; empty: OPENAI_API_KEY, unless EMBEDDING_BASE_URL is set

SECOND_MODEL = ""  # model that is asked when the first one fails; empty: none
SECOND_MODEL_BASE_URL = ""  # base URL of its OpenAI-compatible endpoint; empty: OPENAI_BASE_URL
SECOND_MODEL_API_KEY = ""  # its key; empty: OPENAI_API_KEY
LLM_CACHE_SIZE = 0  # replies kept by one worker, to be given again when the same messages come again; 0: none
LLM_CACHE_TTL_S = 300.0  # seconds such a reply is kept

# ---------------------------------------------------------------------------------------------------------- learning
LEARNING = True  # learn from feedback; false: feedback is kept and teaches nothing
MAX_OWN_EXAMPLES = 200  # examples kept of one user that are not shared; the oldest go first
MAX_SHARED_EXAMPLES = 5000  # examples that reviewers have shared with everybody

NOTES_FILE = (
    ""  # text file with headings about the business, of which a model is told what fits a question; empty: none
)

# -------------------------------------------------------------------------------------------------------- extensions
WORKFLOW_HANDLERS = "agent.extensions.commands:commands"  # answer certain questions before any model
LIFECYCLE_HOOKS = "agent.extensions.daily_quota:daily_quota"  # are told of questions and tool calls, and may stop them
LLM_MIDDLEWARES = (  # stand before the model, the first one outermost
    "agent.extensions.response_cache:response_cache, agent.extensions.second_model:second_model"
)
CONVERSATION_FILTERS = "agent.extensions.turn_budget:turn_budget"  # decide what a question remembers
TOOL_CONTEXT_ENRICHERS = "agent.extensions.trace:trace"  # add to what tools know of a question
LLM_CONTEXT_ENHANCERS = "agent.extensions.notes_file:notes_file"  # add texts to what the model is told
OBSERVABILITY_PROVIDER = ""  # measures spans and counts: agent.extensions.span_log:span_log, or one's own; empty: none
QUESTIONS_PER_DAY = 0  # questions of one user in 24 hours, whichever key asks them; 0: no limit
HISTORY_TURNS = 10  # earlier turns a question looks back on, at most 50
HISTORY_TOKENS = 0  # most tokens of these turns together, estimated; 0: no such limit

# --------------------------------------------------------------------------------------------------------- behaviour
AGENT = "ask"  # ask, tool_loop or tool_graph; a request may choose another
AGENT_MODEL_CALLS = 8  # model calls of one question to a tool agent
AGENT_TOOL_CALLS = 24  # tool calls of one question to a tool agent
AGENT_TOKENS = 200000  # tokens of one question to a tool agent, of prompts and replies together
AGENT_TIMEOUT_S = 120.0  # seconds after which a tool agent calls neither the model nor a tool again
TOOL_GROUPS = ""  # groups that may use a tool, run_sql: analysts, leads; export: everyone; empty: everyone, all tools
ROUTING_MODE = "hybrid"  # hybrid, llm_only, database_direct or chat_direct; a request may choose another
ENABLE_RESULT_SUMMARY = True  # put the result into words when there are rows
ENABLE_SYNTAX_VALIDATION = True  # EXPLAIN every statement before it runs
ENABLE_FORBIDDEN_CHECK = True  # refuse whatever is not a harmless query, by parse tree
ENABLE_AUTO_REPAIR = True  # mend once what PostgreSQL refuses (needs ENABLE_SYNTAX_VALIDATION) or what finds nothing
REUSE_EXAMPLES = True  # answer a question with the SQL of a verified example that says the same, asking no model


_API_KEYS = "api_keys.json"


class ConfigurationError(Exception):
    """A setting has a value it can't have; the message names it and says what is allowed."""


def _flag(text: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in known:
        raise ValueError("true or false")
    return known[text.lower()]


def _positive(kind: type) -> Any:
    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError as exc:
            raise ValueError("a positive number" if kind is float else "a positive whole number") from exc
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


def _one_of(*choices: str) -> Any:
    def parse(text: str) -> str:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        raise ValueError(f"one of {', '.join(choices)}")

    return parse


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ValueError("a port between 1 and 65535")
    return int(text)


def _rate_limit(text: str) -> str:
    for one in re.split("[,;]", text):
        if not re.fullmatch(r"\s*[1-9]\d{0,8}\s*/\s*([1-9]\d{0,3}\s*)?(second|minute|hour|day)s?\s*", one):
            raise ValueError("for example 60/minute or 10/second, 1000/day: numbers per second, minute, hour or day")
    return text


def _groups(text: str) -> str:
    for one in text.split(","):
        if not re.fullmatch(r"[\w.:-]{1,64}", one.strip()):
            raise ValueError("names of groups as API keys have them (letters, digits, _ . : or -), separated by commas")
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
        found = re.fullmatch(r"\s*([\w-]{1,64})\s*:\s*([\w.:-]{1,64}(\s*,\s*[\w.:-]{1,64})*)?\s*", entry)
        if found is None and entry.strip():
            raise ValueError(
                "tools, each with the groups of API keys that may use it (everyone: all; none: nobody), for example "
                "run_sql: analysts, leads; export: everyone; save_memory:"
            )
        if found is not None and found[1] in names:
            raise ValueError(f"each tool once; {found[1]} stands there twice")
        names |= {found[1]} if found is not None else set()
    return text


def _origins(text: str) -> str:
    for one in text.split(","):
        if not re.fullmatch(r"\*|[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?", one.strip().lower()):
            raise ValueError("origins like https://app.example.com, without a path, separated by commas; or *")
    return text


def _ping_interval(text: str) -> float:
    value: float = _positive(float)(text)
    if value > 15:
        raise ValueError("at most 15 seconds")
    return value


def _turns(text: str) -> int:
    value: int = _positive(int)(text)
    if value > 50:
        raise ValueError("at most 50")
    return value


# Parsers for settings that need more than a conversion to the type of the default.
def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError as exc:
        raise ValueError("seconds, 0 or more") from exc
    if not 0 <= value < float("inf"):
        raise ValueError("seconds, 0 or more")
    return value


_PARSERS: dict[str, Any] = {
    "PORT": _port,
    "VALUE_LOOKUP_TIMEOUT_S": _seconds,
    "PING_INTERVAL_S": _ping_interval,
    "HISTORY_TURNS": _turns,
    "EXPORT_MAX_ROWS": _sheet_rows,
    "MAX_PLAN_COST": _count,
    "MAX_PLAN_ROWS": _count,
    "LLM_MAX_RETRIES": _count,
    "SCHEMA_TOKENS": _count,
    "LLM_CACHE_SIZE": _count,
    "QUESTIONS_PER_DAY": _count,
    "HISTORY_TOKENS": _count,
    "RATE_LIMIT": _rate_limit,
    "CORS_ORIGINS": _origins,
    "REVIEWER_GROUPS": _groups,
    "OPERATOR_GROUPS": _groups,
    "GROUP_DENIED_OBJECTS": _objects_by_group,
    "TOOL_GROUPS": _tool_groups,
    "TRUSTED_PROXIES": _count,
    "LOG_LEVEL": _one_of("DEBUG", "INFO", "WARNING", "ERROR"),
    "AGENT": _one_of("ask", "tool_loop", "tool_graph"),
    "ROUTING_MODE": _one_of("hybrid", "llm_only", "database_direct", "chat_direct"),
}
_BY_TYPE: dict[type, Any] = {bool: _flag, int: _positive(int), float: _positive(float), str: str}


@dataclass(frozen=True)
class Settings:
    """A field for each constant above, with its name in lower case; see there for units and choices."""

    host: str = HOST
    port: int = PORT
    data_dir: str = DATA_DIR
    max_streams: int = MAX_STREAMS
    max_sockets: int = MAX_SOCKETS
    request_timeout_s: float = REQUEST_TIMEOUT_S
    ping_interval_s: float = PING_INTERVAL_S
    max_question_chars: int = MAX_QUESTION_CHARS
    max_body_bytes: int = MAX_BODY_BYTES
    log_level: str = LOG_LEVEL
    audit_log: str = AUDIT_LOG
    api_keys_file: str = API_KEYS_FILE
    allow_anonymous: bool = ALLOW_ANONYMOUS
    reviewer_groups: str = REVIEWER_GROUPS
    operator_groups: str = OPERATOR_GROUPS
    rate_limit: str = RATE_LIMIT
    cors_origins: str = CORS_ORIGINS
    trusted_proxies: int = TRUSTED_PROXIES
    database_url: str = DATABASE_URL
    max_rows: int = MAX_ROWS
    max_result_bytes: int = MAX_RESULT_BYTES
    export_max_rows: int = EXPORT_MAX_ROWS
    statement_timeout_s: float = STATEMENT_TIMEOUT_S
    value_lookup_timeout_s: float = VALUE_LOOKUP_TIMEOUT_S
    max_plan_cost: int = MAX_PLAN_COST
    max_plan_rows: int = MAX_PLAN_ROWS
    database_pool_size: int = DATABASE_POOL_SIZE
    database_pool_wait_s: float = DATABASE_POOL_WAIT_S
    catalog_ttl_s: float = CATALOG_TTL_S
    allowed_functions: str = ALLOWED_FUNCTIONS
    allowed_objects: str = ALLOWED_OBJECTS
    denied_objects: str = DENIED_OBJECTS
    group_denied_objects: str = GROUP_DENIED_OBJECTS
    row_context: bool = ROW_CONTEXT
    semantic_file: str = SEMANTIC_FILE
    row_rules: str = ROW_RULES
    require_read_only_role: bool = REQUIRE_READ_ONLY_ROLE
    redis_url: str = REDIS_URL
    app_database_url: str = APP_DATABASE_URL
    store_timeout_s: float = STORE_TIMEOUT_S
    conversation_ttl_s: float = CONVERSATION_TTL_S
    max_turns: int = MAX_TURNS
    run_lease_s: float = RUN_LEASE_S
    run_ttl_s: float = RUN_TTL_S
    run_waiting_ttl_s: float = RUN_WAITING_TTL_S
    openai_api_key: str = OPENAI_API_KEY
    openai_base_url: str = OPENAI_BASE_URL
    openai_model: str = OPENAI_MODEL
    azure_openai_api_key: str = AZURE_OPENAI_API_KEY
    azure_openai_endpoint: str = AZURE_OPENAI_ENDPOINT
    azure_openai_api_version: str = AZURE_OPENAI_API_VERSION
    azure_openai_deployment: str = AZURE_OPENAI_DEPLOYMENT
    llm_timeout_s: float = LLM_TIMEOUT_S
    llm_max_retries: int = LLM_MAX_RETRIES
    llm_max_tokens: int = LLM_MAX_TOKENS
    schema_tokens: int = SCHEMA_TOKENS
    schema_samples: bool = SCHEMA_SAMPLES
    llm_max_in_flight: int = LLM_MAX_IN_FLIGHT
    embedding_model: str = EMBEDDING_MODEL
    embedding_base_url: str = EMBEDDING_BASE_URL
    embedding_api_key: str = EMBEDDING_API_KEY
    second_model: str = SECOND_MODEL
    second_model_base_url: str = SECOND_MODEL_BASE_URL
    second_model_api_key: str = SECOND_MODEL_API_KEY
    llm_cache_size: int = LLM_CACHE_SIZE
    llm_cache_ttl_s: float = LLM_CACHE_TTL_S
    notes_file: str = NOTES_FILE
    workflow_handlers: str = WORKFLOW_HANDLERS
    lifecycle_hooks: str = LIFECYCLE_HOOKS
    llm_middlewares: str = LLM_MIDDLEWARES
    conversation_filters: str = CONVERSATION_FILTERS
    tool_context_enrichers: str = TOOL_CONTEXT_ENRICHERS
    llm_context_enhancers: str = LLM_CONTEXT_ENHANCERS
    observability_provider: str = OBSERVABILITY_PROVIDER
    questions_per_day: int = QUESTIONS_PER_DAY
    history_turns: int = HISTORY_TURNS
    history_tokens: int = HISTORY_TOKENS
    agent: str = AGENT
    agent_model_calls: int = AGENT_MODEL_CALLS
    agent_tool_calls: int = AGENT_TOOL_CALLS
    agent_tokens: int = AGENT_TOKENS
    agent_timeout_s: float = AGENT_TIMEOUT_S
    tool_groups: str = TOOL_GROUPS
    routing_mode: str = ROUTING_MODE
    learning: bool = LEARNING
    max_own_examples: int = MAX_OWN_EXAMPLES
    max_shared_examples: int = MAX_SHARED_EXAMPLES
    enable_result_summary: bool = ENABLE_RESULT_SUMMARY
    enable_syntax_validation: bool = ENABLE_SYNTAX_VALIDATION
    enable_forbidden_check: bool = ENABLE_FORBIDDEN_CHECK
    enable_auto_repair: bool = ENABLE_AUTO_REPAIR
    reuse_examples: bool = REUSE_EXAMPLES

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Settings from `environ` (default: the process environment). An empty value means the default.

        Raises:
            ConfigurationError: a setting can't have its value.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for field in fields(cls):
            name = field.name.upper()
            text = environ.get(name, "").strip()
            if not text:
                continue
            try:
                values[field.name] = _PARSERS.get(name, _BY_TYPE[type(field.default)])(text)
            except ValueError as exc:
                raise ConfigurationError(f"{name}={text!r} is not valid: give {exc}.") from exc
        return cls(**values)

    @property
    def data_path(self) -> Path:
        """`data_dir` as an absolute path."""
        return Path(self.data_dir).expanduser().resolve()

    @property
    def api_keys_path(self) -> Path:
        """The file of API keys, as an absolute path (it need not exist)."""
        return Path(self.api_keys_file).expanduser().absolute() if self.api_keys_file else self.data_path / _API_KEYS
