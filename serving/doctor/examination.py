"""Runs all checks of the doctor over one installation."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent.asked_databases import AskedDatabase
from agent.bootstrap import Services, bootstrap
from agent.budgets.budgets_file import BudgetsFileError
from agent.extensions.loading import ExtensionError
from agent.tools.tool_groups import InvalidToolGroups
from api.access.key_file import KeyFile
from api.shared_key_store import use_shared_keys
from app_config import ConfigurationError, Settings
from common.actor import NOBODY
from common.check_report import CheckResult, failed, passed
from common.errors import CituError, StoreUnavailable
from common.text import Text
from databases.databases_file import DatabasesFileError
from databases.embedded.embedded_server import EmbeddedServerError
from databases.source import EmbeddedSource, InvalidDatabaseUrl
from files.file_index import FILES
from guard import AccessRuleError
from guard.row_rules import RowRulesError
from knowledge.semantic.problems import SemanticFileError
from llm import InvalidEndpoint
from llm.check_model import check_model
from serving.doctor.database_checks import examine_database
from serving.doctor.folder_checks import file_rights, folder_state, keys_state, log_state
from serving.doctor.issuer_checks import issuer_state
from serving.doctor.machine_checks import (
    address_state,
    metrics_port_state,
    port_state,
    python_version,
)
from serving.doctor.public_address_checks import public_address
from serving.doctor.setting_checks import (
    contradictions,
    exposure,
    readable_settings,
    told_elsewhere,
    unknown_variables,
    unread_lines,
)
from serving.doctor.store_checks import postgres_store_state, reason_of, redis_store_state
from store.open_store import InvalidRedisUrl

# What keeps the service from starting, by the check that reports it.
_START_FAILURES: Mapping[type[Exception], str] = {
    ConfigurationError: "settings.contradiction",
    ExtensionError: "settings.extensions",
    InvalidEndpoint: "model.settings",
    AccessRuleError: "settings.access",
    InvalidToolGroups: "settings.tool_groups",
    InvalidDatabaseUrl: "database.url",
    InvalidRedisUrl: "store.url",
    RowRulesError: "files.row_rules",
    SemanticFileError: "files.semantic",
    DatabasesFileError: "files.databases",
    BudgetsFileError: "files.budgets",
}
_MEND = Text(
    "按这句话修改后重试；各配置项见 docs/configuration.md。",
    "Mend what it names and try again; docs/configuration.md has every setting.",
)
_COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
_LOCAL_COLLECTOR = "http://localhost:4318"  # OpenTelemetry's own default
_NOT_MADE = Text(
    "内嵌服务器还没有建立，第一次启动时建立。",
    "The embedded server is not made yet; the first start makes it.",
)


def examine(
    environ: Mapping[str, str], in_file: Iterable[str] = (), *, with_model: bool = True
) -> list[CheckResult]:
    """Check the installation that the variables describe; return the result of each check.

    Starts the embedded server for the time of the examination if it exists and is used.

    Args:
        environ: the environment, with what `.env` adds to it.
        in_file: the names of the variables in `.env`.
        with_model: ask the model, which costs some thousand tokens.
    """
    settings, results = readable_settings(environ)
    results += unknown_variables(environ, in_file)
    results += unread_lines(Path(".env"))
    results += told_elsewhere(environ)
    results += contradictions(settings)
    results += exposure(settings, has_keys=_has_keys(settings) or settings.knows_callers)
    results += public_address(settings.public_url)
    results += issuer_state(settings.oauth_issuer, settings.oauth_jwks_url, _callback(settings))
    results.append(python_version())
    results += _machine_state(settings)
    results += file_rights(_secret_files(settings))
    results += keys_state(settings.api_keys_path)
    results += address_state("webhook.reachable", "WEBHOOK_URL", settings.webhook_url)
    if settings.traces:
        results += address_state(
            "traces.reachable", _COLLECTOR, environ.get(_COLLECTOR, _LOCAL_COLLECTOR)
        )

    try:
        results += _check_services(settings)
    except OSError as error:  # of the service's own files: those of databases are told apart
        results.append(_not_opened(error))

    if with_model:
        results += asyncio.run(check_model(settings))

    return results


def _machine_state(settings: Settings) -> Iterator[CheckResult]:
    yield port_state(settings.host, settings.port)
    if settings.metrics_port:
        yield metrics_port_state(settings.metrics_host, settings.metrics_port)

    yield from folder_state(settings.data_path)
    if settings.audit_log not in ("", "off"):
        yield from log_state("AUDIT_LOG", Path(settings.audit_log).expanduser())
    if settings.model_log_path is not None:
        yield from log_state("MODEL_LOG", settings.model_log_path)


def _callback(settings: Settings) -> str | None:
    """Return where the issuer sends browsers back; None: nobody signs in."""
    if not settings.oidc_client_id:
        return None

    return f"{settings.public_url.rstrip('/')}/login/callback"


def _has_keys(settings: Settings) -> bool:
    """Tell whether there are keys in this host's file, or in the store for all hosts."""
    if KeyFile(settings.api_keys_path).is_needed():
        return True
    if not settings.shared_api_keys:
        return False

    try:
        return use_shared_keys(settings, lambda keys: keys.are_made())
    except StoreUnavailable:  # which is a finding of its own
        return False


def _secret_files(settings: Settings) -> list[Path]:
    files = [Path(".env").absolute(), settings.api_keys_path]
    if settings.databases_file:
        files.append(Path(settings.databases_file).expanduser().absolute())

    return files


def _check_services(settings: Settings) -> list[CheckResult]:
    try:
        services = bootstrap(settings)
    except tuple(_START_FAILURES) as error:
        check = next(name for kind, name in _START_FAILURES.items() if isinstance(error, kind))
        message = Text(f"服务不能启动：{error}", f"The service can't start. {error}")
        return [failed(check, message, _MEND)]

    try:
        results: list[CheckResult] = []
        for database in services.asked.all():
            if database.name != FILES:  # made by Citu itself, with roles of its own
                results += _database(database, settings)

        results += asyncio.run(_store_and_semantic_files(services, settings, results))
        return results
    finally:
        services.sources.hold.release()


def _not_opened(error: OSError) -> CheckResult:
    reason = f"{error.filename or 'A file'}: {error.strerror or type(error).__name__}"
    message = Text(f"服务不能启动：{reason}。", f"The service can't start. {reason}.")
    advice = Text(
        "以服务的用户运行，或把文件交给它（chown）。",
        "Run as the service's user, or give it the file (chown).",
    )
    return failed("machine.files", message, advice)


def _database(database: AskedDatabase, settings: Settings) -> list[CheckResult]:
    source = database.datasource.source
    if not isinstance(source, EmbeddedSource):
        return examine_database(database.name, source(), database.datasource.options)
    if not settings.data_path.exists():
        return [passed(f"database.{database.name}", _NOT_MADE)]

    try:
        url = source.start()
    except EmbeddedServerError as error:
        message = Text(f"内嵌服务器不能运行：{error}", str(error))
        return [failed(f"database.{database.name}", message, _MEND)]

    return examine_database(database.name, url, database.datasource.options)


async def _store_and_semantic_files(
    services: Services, settings: Settings, before: Iterable[CheckResult]
) -> list[CheckResult]:
    """Look at the store, and at the files about databases that can be reached."""
    unreachable = {finding.check for finding in before if finding.status == "fail"}
    try:
        results = await _store(services, settings)
        for database in services.asked.all():
            check = f"database.{database.name}.reachable"
            is_asked = database.name != FILES and check not in unreachable
            if is_asked and _is_made(database, settings):
                results += await _meanings(services, database)

        return results
    finally:
        await services.aclose()


def _is_made(database: AskedDatabase, settings: Settings) -> bool:
    is_embedded = isinstance(database.datasource.source, EmbeddedSource)
    return settings.data_path.exists() or not is_embedded


async def _store(services: Services, settings: Settings) -> list[CheckResult]:
    is_configured = settings.redis_url or settings.app_database_url
    if not is_configured and not settings.data_path.exists():
        return [passed("store.reachable", _NOT_MADE)]

    try:
        await services.store.ping()
    except CituError as error:
        reason = reason_of(error)
        message = Text(f"{error.text.zh}（{reason}）", f"{error.text.en} ({reason})")
        advice = Text(
            "检查 REDIS_URL 或 APP_DATABASE_URL；在此之前对话不会保存。",
            "Check REDIS_URL or APP_DATABASE_URL; until then conversations are not kept.",
        )
        return [failed("store.reachable", message, advice)]

    name = services.store.name
    kept = Text(f"对话保存在 {name}。", f"Conversations are kept in {name}.")
    return [passed("store.reachable", kept), *_store_state(settings)]


def _store_state(settings: Settings) -> list[CheckResult]:
    """Look closer at a store of the operator's own."""
    if settings.redis_url:
        return list(redis_store_state(settings.redis_url))
    if settings.app_database_url:
        return list(postgres_store_state(settings.app_database_url))

    return []


async def _meanings(services: Services, database: AskedDatabase) -> list[CheckResult]:
    """Read the catalogue, and with it what the files about it say."""
    name, datasources = database.name, services.asked.datasources
    try:
        await datasources.open(name, NOBODY).catalog()
    except CituError as error:
        advice = Text("查看数据库服务器的日志。", "Look into the server's log.")
        return [failed(f"database.{name}.catalog", error.text, advice)]

    problems = datasources.row_problems(name)
    meanings = database.meanings.problems if database.meanings is not None else None
    files = {"files.semantic": meanings, "files.row_rules": problems.rules}
    return list(_misfits(name, files))


def _misfits(name: str, files: Mapping[str, Iterable[object] | None]) -> Iterator[CheckResult]:
    for check, problems in files.items():
        if problems is None:
            continue

        listed = "; ".join(str(problem) for problem in problems)
        if listed:
            message = Text(f"不符合数据库 {name}：{listed}", f"It does not fit {name}: {listed}")
            yield failed(check, message, _MEND)
        else:
            yield passed(check, Text(f"符合数据库 {name}。", f"It fits {name}."))
