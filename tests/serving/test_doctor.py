"""The doctor names every fault that is seeded into an installation, with its remedy."""

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import redis
from psycopg2.extensions import parse_dsn

from api.access.key_file import KeyFile
from api.shared_key_store import use_shared_keys
from app_config import Settings
from common.check_report import CheckResult, language_of_environment
from databases.demo.reader import READER
from llm import openai_chat
from serving.doctor.__main__ import main
from serving.doctor.database_checks import clock_state
from serving.doctor.examination import examine
from serving.doctor.folder_checks import room_of
from serving.doctor.issuer_checks import issuer_state
from serving.doctor.machine_checks import metrics_port_state, python_version
from serving.doctor.public_address_checks import public_address
from serving.doctor.setting_checks import contradictions, unread_lines
from tests.support.databases import as_admin, execute
from tests.support.openai_server import OpenAiServer, Reply, openai_server
from tests.support.redis_server import redis_server
from tests.support.tls_server import self_signed, tls_server
from tests.support.token_issuer import TokenIssuer, issuing
from tests.support.well_behaved_model import well_behaved

__all__ = ["openai_server"]
PATIENT_S = 60.0
_NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@contextmanager
def _taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def port() -> int:
    """A port that was free a moment ago."""
    with _taken_port() as port:
        return port


@pytest.fixture
def healthy(
    tmp_path: Path, port: int, app_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The environment of an installation without faults but for its database, which is nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(openai_chat, "_PING_TIMEOUT_S", PATIENT_S)  # the machine may be busy
    return {
        "DATABASE_URL": _NOWHERE,
        "APP_DATABASE_URL": app_database_url,
        "DATA_DIR": str(tmp_path / "var"),
        "PORT": str(port),
    }


class Fault(NamedTuple):
    """Variables that are a fault, and what the doctor says of it."""

    check: str
    status: str
    remedy: str
    environ: Mapping[str, str]


_KEY = {"OPENAI_API_KEY": "sk-x"}
FAULTS = {
    "mistyped": Fault("settings.unknown", "warn", "DATABASE_URL?", {"DATABSE_URL": "x"}),
    "other name": Fault("settings.unknown", "warn", "OPENAI_BASE_URL?", {"OPENAI_API_BASE": "x"}),
    "value": Fault("settings.value", "fail", "between 1 and 65535", {"PORT": "0"}),
    "open": Fault("address.keys", "fail", "api.keys create", {"HOST": "0.0.0.0"}),
    "anonymous": Fault(
        "address.keys",
        "warn",
        "api.keys create",
        {"HOST": "0.0.0.0", "ALLOW_ANONYMOUS": "true"},
    ),
    "no limit": Fault("address.rate_limit", "warn", "60/minute", {"HOST": "0.0.0.0"}),
    "any origin": Fault("settings.origins", "warn", "Name the origins", {"CORS_ORIGINS": "*"}),
    "no guard": Fault("settings.guard", "warn", "to true", {"ENABLE_FORBIDDEN_CHECK": "false"}),
    "told elsewhere": Fault(
        "settings.graph_tracing", "warn", "TRACES=true", {"LANGSMITH_TRACING": "true"}
    ),
    "no audit": Fault("settings.audit", "warn", "AUDIT_LOG", {"AUDIT_LOG": "off"}),
    "two models": Fault(
        "settings.model",
        "warn",
        "Keep one",
        {
            **_KEY,
            "AZURE_OPENAI_API_KEY": "x",
        },
    ),
    "endpoint alone": Fault(
        "settings.model", "warn", "OPENAI_API_KEY=none", {"OPENAI_BASE_URL": "http://x/v1"}
    ),
    "each host its key": Fault(
        "settings.hosts", "warn", "without MCP_STATE_KEY", {"SHARED_API_KEYS": "true"}
    ),
    "each host its sessions": Fault(
        "settings.hosts",
        "warn",
        "without SESSION_KEY",
        {"SHARED_API_KEYS": "true", "OIDC_CLIENT_ID": "page"},
    ),
    "one port": Fault(
        "settings.ports", "fail", "METRICS_PORT to another", {"METRICS_PORT": "1", "PORT": "1"}
    ),
    "metrics for nobody": Fault(
        "settings.metrics", "warn", "OPERATOR_GROUPS or METRICS_PORT", {"METRICS": "true"}
    ),
    "metrics for all": Fault(
        "settings.metrics",
        "warn",
        "METRICS_HOST is open",
        {"METRICS_PORT": "9464", "METRICS_HOST": "0.0.0.0"},
    ),
    "short lease": Fault("settings.lease", "warn", "Set it to 10", {"RUN_LEASE_S": "0.5"}),
    "no traces": Fault("settings.traces", "warn", "TRACES=true", {"TRACE_STATEMENTS": "true"}),
    "azure": Fault("model.settings", "fail", "AZURE", {"AZURE_OPENAI_API_KEY": "x"}),
    "late statement": Fault(
        "settings.timeouts", "warn", "REQUEST_TIMEOUT_S", {"STATEMENT_TIMEOUT_S": "999"}
    ),
    "late model": Fault("settings.timeouts", "warn", "LLM_TIMEOUT_S", {"LLM_TIMEOUT_S": "999"}),
    "no embedding": Fault(
        "settings.embedding", "warn", "EMBEDDING_MODEL", {"EMBEDDING_BASE_URL": "http://x/v1"}
    ),
    "two stores": Fault("settings.store", "warn", "Keep one", {"REDIS_URL": "redis://127.0.0.1:1"}),
    "store gone": Fault(
        "store.reachable", "fail", "Check REDIS_URL", {"REDIS_URL": "redis://127.0.0.1:1"}
    ),
    "no redis": Fault("store.url", "fail", "REDIS_URL", {"REDIS_URL": "localhost"}),
    "other engine": Fault("database.url", "fail", "mysql_fdw", {"DATABASE_URL": "mysql://u@h/d"}),
    "no database": Fault("database.default.reachable", "fail", "host, port", {}),
    "tool": Fault("settings.tool_groups", "fail", "TOOL_GROUPS", {"TOOL_GROUPS": "fly: everyone"}),
    "extension": Fault("settings.extensions", "fail", "no.such", {"LIFECYCLE_HOOKS": "no.such:x"}),
    "semantic": Fault(
        "files.semantic", "fail", "semantic.yaml", {"SEMANTIC_FILE": "semantic.yaml"}
    ),
    "open address": Fault(
        "address.encryption", "fail", "speak TLS", {"PUBLIC_URL": "http://citu.example.com"}
    ),
    "no proxy": Fault(
        "address.proxy", "warn", "Check PUBLIC_URL", {"PUBLIC_URL": "https://127.0.0.1:1"}
    ),
    "no issuer": Fault(
        "issuer.metadata",
        "fail",
        "Check OAUTH_ISSUER",
        {"OAUTH_ISSUER": "http://127.0.0.1:1", "OAUTH_AUDIENCE": "x"},
    ),
    "no login": Fault("settings.contradiction", "fail", "Mend", {"OIDC_CLIENT_ID": "page"}),
    "no folder": Fault(
        "machine.folder", "fail", "another folder in DATA_DIR", {"DATA_DIR": "databases.yaml/var"}
    ),
    "no audit file": Fault("files.logs", "fail", "Let AUDIT_LOG name", {"AUDIT_LOG": "."}),
    "no keys": Fault("files.keys", "fail", "make new keys", {"API_KEYS_FILE": "databases.yaml"}),
    "nobody is told": Fault(
        "webhook.reachable",
        "warn",
        "Check WEBHOOK_URL",
        {"WEBHOOK_URL": "http://127.0.0.1:1/x", "WEBHOOK_SECRET": "sixteen letters or more"},
    ),
    "no secret's use": Fault(
        "settings.webhook", "warn", "Set WEBHOOK_URL", {"WEBHOOK_SECRET": "sixteen letters or more"}
    ),
    "no collector": Fault(
        "traces.reachable",
        "warn",
        "Check OTEL_EXPORTER_OTLP_ENDPOINT",
        {"TRACES": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
    ),
    "one client": Fault(
        "settings.proxies",
        "warn",
        "Set TRUSTED_PROXIES",
        {"PUBLIC_URL": "https://citu.example.com"},
    ),
    "slow store": Fault(
        "settings.lease", "warn", "Lower STORE_TIMEOUT_S", {"STORE_TIMEOUT_S": "30"}
    ),
    "small bodies": Fault(
        "settings.questions", "warn", "Raise MAX_BODY_BYTES", {"MAX_BODY_BYTES": "5000"}
    ),
    "rules": Fault("files.row_rules", "fail", "rules.yaml", {"ROW_RULES": "rules.yaml"}),
    "databases": Fault(
        "files.databases",
        "fail",
        "mysql_fdw",
        {"DATABASES_FILE": "databases.yaml", "DATABASE_URL": ""},
    ),
}


# Whose faults show only when an installation is examined; the others are contradictions.
_EXAMINED = {
    *("settings.unknown", "settings.value", "settings.graph_tracing", "settings.guard"),
    *("settings.contradiction", "settings.extensions", "settings.tool_groups"),
}


def _named(findings: list[CheckResult], check: str, status: str, remedy: str) -> bool:
    for finding in findings:
        if finding.check != check or finding.status != status or finding.advice is None:
            continue
        assert finding.said.zh
        assert finding.advice.zh
        if remedy in f"{finding.said.en} {finding.advice.en}":
            return True
    return False


def _is_of_settings_alone(fault: Fault) -> bool:
    return fault.check.startswith("settings.") and fault.check not in _EXAMINED


@pytest.mark.parametrize(
    "name", [name for name in FAULTS if not _is_of_settings_alone(FAULTS[name])]
)
def test_every_fault_is_named_with_its_remedy(
    healthy: dict[str, str], tmp_path: Path, name: str
) -> None:
    (tmp_path / "databases.yaml").write_text("databases:\n  shop:\n    url: mysql://u:pw@h/d\n")
    fault = FAULTS[name]
    findings = examine({**healthy, **fault.environ}, with_model=False)
    if fault.check.startswith("model."):
        findings = examine({**healthy, **fault.environ})
    assert _named(findings, fault.check, fault.status, fault.remedy), findings


def test_every_contradiction_is_named_with_its_remedy(healthy: dict[str, str]) -> None:
    for fault in filter(_is_of_settings_alone, FAULTS.values()):
        findings = list(contradictions(Settings.from_env({**healthy, **fault.environ})))
        assert _named(findings, fault.check, fault.status, fault.remedy), findings

    assert not list(contradictions(Settings.from_env(healthy)))


def _of_issuer(issuer: TokenIssuer) -> list[str]:
    found = issuer_state(issuer.url, "", "https://citu.example.com/login/callback")
    return [result.status for result in found]


def test_whether_people_can_sign_in(healthy: dict[str, str]) -> None:
    with issuing() as issuer:
        settings = healthy | {
            "OAUTH_ISSUER": issuer.url,
            "OAUTH_AUDIENCE": "x",
            "OIDC_CLIENT_ID": "page",
            "PUBLIC_URL": "http://127.0.0.1:1",
        }
        examined = [found for found in examine(settings) if found.check.startswith("issuer.")]
        [keys, login] = examined
        assert (keys.status, login.status) == ("ok", "ok")
        assert "http://127.0.0.1:1/login/callback" in login.said.en
        issuer.metadata["code_challenge_methods_supported"] = ["plain"]
        assert _of_issuer(issuer) == ["ok", "warn"]
        del issuer.metadata["token_endpoint"]
        assert _of_issuer(issuer) == ["ok", "fail"]


def test_unknown_names_in_the_file_are_all_told(healthy: dict[str, str]) -> None:
    findings = examine({**healthy, "COLOUR": "red"}, ["COLOUR", "PGSSLMODE"], with_model=False)
    unknown = [finding.said.en for finding in findings if finding.check == "settings.unknown"]
    assert unknown == ["COLOUR in .env is no setting."]


def test_keys_that_another_host_made_are_seen(
    healthy: dict[str, str], make_app_database: Callable[[], str], tmp_path: Path
) -> None:
    shared = {
        **healthy,
        "HOST": "0.0.0.0",
        "APP_DATABASE_URL": make_app_database(),
        "SHARED_API_KEYS": "true",
    }
    there = Settings.from_env({**shared, "DATA_DIR": str(tmp_path / "another host")})
    checks = [finding.check for finding in examine(shared, with_model=False)]
    assert "address.keys" in checks
    use_shared_keys(there, lambda keys: keys.change(lambda file: file.create("ann")))
    checks = [finding.check for finding in examine(shared, with_model=False)]
    assert "address.keys" not in checks
    assert not (tmp_path / "var").exists(), "it changes nothing here"


def test_lines_of_the_file_that_say_nothing(healthy: dict[str, str], tmp_path: Path) -> None:
    written = tmp_path / ".env"
    written.write_text("# ours\nPORT=1\nDATABASE_URL\nMETRICS: true\nexport PORT=2\n")
    said = [finding.said.en for finding in unread_lines(written)]
    assert said == [
        "Line 3 of .env has no effect.",
        "Line 4 of .env has no effect.",
        "PORT stands twice in .env, in lines 2 and 5: the last one counts.",
    ]


def test_stores_that_answer_and_keep_nothing(
    healthy: dict[str, str], make_app_database: Callable[[], str], admin_url: str
) -> None:
    url = make_app_database()
    settings = {**healthy, "APP_DATABASE_URL": url}
    assert _of_store(settings) == {"store.reachable": "ok"}
    admin = as_admin(url, admin_url)
    newer = "INSERT INTO citu.version SELECT max(version) + 1 FROM citu.version"
    execute(admin, newer)
    owner = parse_dsn(url)["user"]
    execute(
        admin, "ALTER TABLE citu.run OWNER TO CURRENT_USER", f"GRANT SELECT ON citu.run TO {owner}"
    )
    assert _of_store(settings) == {
        "store.reachable": "ok",
        "store.writable": "fail",
        "store.version": "warn",
    }
    execute(
        admin,
        "DROP SCHEMA citu CASCADE",
        f"REVOKE CREATE ON DATABASE {parse_dsn(url)['dbname']} FROM {owner}, PUBLIC",
    )
    [finding] = [
        one for one in examine(settings, with_model=False) if one.check == "store.reachable"
    ]
    assert "permission denied" in finding.said.en
    forgetful = {"appendonly": "no", "maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}
    with redis_server() as server, redis.Redis.from_url(server.url) as client:
        given = {**healthy, "REDIS_URL": server.url}
        assert _of_store(given) == {"store.reachable": "ok"}
        for name, value in forgetful.items():
            client.config_set(name, value)
        said = [
            one.said.en for one in examine(given, with_model=False) if one.check == "store.kept"
        ]
        assert "when its memory is full" in said[0]
        assert "a restart loses" in said[1]
        client.config_set("maxmemory", "1")
        client.config_set("maxmemory-policy", "noeviction")
        assert _of_store(given)["store.writable"] == "fail"


def _of_store(environ: Mapping[str, str]) -> dict[str, str]:
    findings = examine(environ, with_model=False)
    return {one.check: one.status for one in findings if one.check.startswith("store.")}


def test_files_with_secrets_that_others_may_read(healthy: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("")
    (tmp_path / ".env").chmod(0o644)
    keys = KeyFile(tmp_path / "var" / "api_keys.json")
    keys.create("alice")
    keys.path.chmod(0o640)
    findings = examine(healthy, with_model=False)
    for name in (".env", "api_keys.json"):
        assert _named(findings, "files.rights", "warn", f"chmod 600 {keys.path.parent.parent}")
        assert any(name in finding.said.en for finding in findings)
    keys.path.chmod(0o600)
    (tmp_path / ".env").chmod(0o600)
    again = examine(healthy, with_model=False)
    assert [finding for finding in again if finding.check == "files.rights"] == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may do anything")
def test_folders_that_the_user_may_not_use(healthy: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "var"
    folder.mkdir()
    folder.chmod(0o500)
    findings = examine(healthy, with_model=False)
    assert _named(findings, "machine.folder", "fail", f"this user can't write to {folder}")
    folder.chmod(0o000)
    findings = examine(healthy, with_model=False)
    assert _named(findings, "files.rights", "fail", "Run as the service's user")


def test_a_port_that_another_program_has(healthy: dict[str, str]) -> None:
    with _taken_port() as port:
        findings = examine({**healthy, "PORT": str(port)}, with_model=False)
        metrics = metrics_port_state("127.0.0.1", port)
    assert _named(findings, "machine.port", "fail", "stop the other program")
    assert _named([metrics], "machine.metrics_port", "fail", "choose another port with METRICS")


@pytest.mark.parametrize(
    ("days", "is_trusted", "check", "status", "remedy"),
    [
        (90, True, "address.certificate", "ok", "valid for"),
        (90, True, "address.proxy", "ok", "Citu answers"),
        (3, True, "address.certificate", "warn", "renewed"),
        (-1, True, "address.certificate", "fail", "expired"),
        (90, False, "address.certificate", "fail", "self-signed"),
    ],
)
def test_the_certificate_of_the_proxy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    days: int,
    is_trusted: bool,
    check: str,
    status: str,
    remedy: str,
) -> None:
    certificate = self_signed(tmp_path, days)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate) if is_trusted else os.devnull)
    with tls_server(certificate) as port:
        findings = list(public_address(f"https://127.0.0.1:{port}"))
    told = {finding.check: finding for finding in findings}
    assert told[check].status == status
    assert remedy in " ".join(text.en for text in (told[check].said, told[check].advice) if text)


def test_machines_that_are_not_fit(tmp_path: Path) -> None:
    assert room_of(tmp_path, 50_000_000).status == "fail"
    assert room_of(tmp_path, 500_000_000).status == "warn"
    assert room_of(tmp_path, 5_000_000_000).status == "ok"
    assert python_version((3, 15)).status == "warn"
    assert clock_state("clock", 90.0).status == "warn"
    assert clock_state("clock", -90.0).status == "warn"
    assert clock_state("clock", 1.0).status == "ok"


def test_a_healthy_installation(
    healthy: dict[str, str],
    make_database: Callable[[str], str],
    openai_server: OpenAiServer,
    tmp_path: Path,
) -> None:
    openai_server.default = well_behaved
    (tmp_path / "semantic.yaml").write_text("version: 1\ntables:\n  shop:\n    names: {zh: 店}\n")
    given = {
        "DATABASE_URL": make_database("CREATE TABLE shop (n integer)"),
        "OPENAI_API_KEY": "sk-secret",
        "OPENAI_BASE_URL": openai_server.url,
        "OPENAI_MODEL": "qwen-plus",
        "ROW_CONTEXT": "true",
        "SEMANTIC_FILE": str(tmp_path / "semantic.yaml"),
    }
    findings = examine({**healthy, **given})
    assert [finding for finding in findings if finding.status != "ok"] == []
    checks = {finding.check for finding in findings}
    for part in ("version", "role", "row_security", "grants", "plan", "stopping", "clock"):
        assert f"database.default.{part}" in checks
    assert {"files.semantic", "model.tools", "store.reachable", "machine.disk"} <= checks


def test_roles_that_may_too_much_or_too_little(
    healthy: dict[str, str], make_database: Callable[[str], str], admin_url: str, tmp_path: Path
) -> None:
    url = make_database("CREATE TABLE shop (n integer)")
    admin = as_admin(url, admin_url)
    misfit = tmp_path / "semantic.yaml"
    misfit.write_text("version: 1\ntables:\n  ship:\n    names: {zh: 船}\n")
    given = {"DATABASE_URL": admin, "ROW_CONTEXT": "true", "SEMANTIC_FILE": str(misfit)}
    findings = examine({**healthy, **given}, with_model=False)
    assert _named(findings, "database.default.role", "warn", "can only SELECT")
    assert _named(findings, "database.default.row_security", "fail", "everybody sees all rows")
    assert _named(findings, "files.semantic", "fail", "ship")
    execute(admin, f"REVOKE ALL ON shop FROM {READER}")
    findings = examine({**healthy, "DATABASE_URL": url}, with_model=False)
    grant = f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER};"
    assert _named(findings, "database.default.grants", "fail", grant)
    execute(admin, f"REVOKE CONNECT ON DATABASE {parse_dsn(url)['dbname']} FROM {READER}")
    findings = examine({**healthy, "DATABASE_URL": url}, with_model=False)
    assert _named(findings, "database.default.reachable", "fail", "GRANT CONNECT ON DATABASE")


def test_the_command_reads_the_file_and_exits_by_the_worst(
    healthy: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make_database: Callable[[str], str],
    openai_server: OpenAiServer,
) -> None:
    openai_server.default = lambda _: Reply(status=401)
    for name in healthy:
        monkeypatch.delenv(name, raising=False)
    written = {
        **healthy,
        "DATABASE_URL": make_database("CREATE TABLE shop (n integer)"),
        "OPENAI_API_KEY": "sk-secret",
        "OPENAI_BASE_URL": openai_server.url,
    }
    file = tmp_path / ".env"
    file.touch(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
    assert main(["--no-model", "--lang", "zh"]) == 0
    assert "账号只能读取" in capsys.readouterr().out
    with file.open("a") as appended:
        appended.write("CORS_ORIGIN=*\n")
    assert main(["--no-model", "--json", "--lang", "en"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["status"] == "warn"
    assert shown["findings"][0]["advice"] == "Did you mean CORS_ORIGINS?"
    assert main(["--lang", "en"]) == 2
    said = capsys.readouterr().out
    assert "refused the key" in said
    assert "sk-secret" not in said
    assert "OPENAI_API_KEY" not in os.environ or os.environ["OPENAI_API_KEY"] != "sk-secret"


def test_the_language_is_that_of_the_environment() -> None:
    assert language_of_environment({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language_of_environment({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert language_of_environment({}) == "en"
