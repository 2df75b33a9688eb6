"""The PostgreSQL server the tests share: the embedded one, or the one of CITU_TEST_ADMIN_URL (a
superuser's URL).
"""

import fcntl
import gc
import importlib
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import chain, groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import psycopg2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from psycopg2.extensions import make_dsn
from werkzeug.routing import Rule

from common.actor import SERVICE, caller_id
from common.ports import UrlSource
from databases.app_database import ensure_app_database
from databases.demo import loader
from databases.demo.loader import DemoServer, ensure_demo
from databases.demo.measurements import revenue_lines, traffic_lines
from databases.demo.network import ServiceArea, Shop
from databases.demo.reader import READER, create_reader, grant_reading
from databases.embedded.embedded_server import EmbeddedServer
from databases.execution.guarded import GuardedDatabase
from tests.support.databases import Opener, execute, open_asked
from tests.support.effort import EXPLORES, tries
from tests.support.folders import reachable_folder
from tests.support.live import GAUGES, Watch
from tests.support.offline_questions import FIXTURES
from tests.support.openai_server import OpenAiServer, take_violations
from tests.support.store_servers import STORE_SERVERS, StoreServer

T = TypeVar("T")


@dataclass(frozen=True)
class ExternalServer:
    """A server somebody else runs, whose roles need no password."""

    admin_url: str

    def url(self, dbname: str, user: str) -> str:
        """Return the URL of a database for a role."""
        parts = urlsplit(self.admin_url)
        address = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=f"{quote(user)}@{address}", path=f"/{quote(dbname)}").geturl()


# A package of the linters, which jsonschema takes up when it is there: a second of each process for
# the grammar of a format that no schema here names.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Thousands of tests are a million objects, which by default are scanned again and again while they
# are collected.
gc.set_threshold(50_000, 20, 20)

# By default an example that takes 200 ms fails, and examples that are slow to be made, which on a
# busy machine says nothing about the code.
settings.register_profile(
    "citu",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not EXPLORES,
    max_examples=tries(12),
)
settings.load_profile("citu")

# Hypothesis draws constants out of all modules that are imported. Parsing them takes two seconds in
# each process, when tests are collected, and examples would depend on what was imported before.
providers._get_local_constants = Constants

_ROOT = Path(__file__).resolve().parents[1]
# Names the folder of the server that all processes of one run of the tests share.
_FOLDER = "CITU_TEST_FOLDER"


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder, and remove it in the end; processes that this one starts find it in their
    environment.
    """
    _hand_on_signals()
    if _FOLDER in os.environ:
        return
    stack = ExitStack()
    os.environ[_FOLDER] = str(stack.enter_context(reachable_folder()))
    stack.callback(os.environ.pop, _FOLDER)
    config.add_cleanup(stack.close)


def _hand_on_signals() -> None:
    """Let programs that tests start take the signals that a shell keeps from what it runs in the
    background.

    A signal that is ignored stays so in every process that is started; one with a handler does not.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_collection(session: pytest.Session) -> None:
    """Let each of several processes import a share of the modules of tests first.

    All collect the same modules in the same order, and in a fresh checkout all would compile each
    of them; so most are compiled once, by the time that the others come to them.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not number:
        return
    modules = sorted({module for path in session.config.args for module in _modules(path)})
    for name in modules[int(number) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        # Collecting it says what is wrong with it.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def _modules(argument: str) -> Iterator[str]:
    """Yield the names of the modules of tests that a path of the command line means."""
    path = Path(argument.partition("::")[0]).resolve()
    for file in [path] if path.is_file() else path.rglob("test_*.py"):
        yield ".".join(file.relative_to(_ROOT).with_suffix("").parts)


def pytest_collection_finish() -> None:
    """Take the tests that were collected out of what the garbage collector scans."""
    gc.freeze()


# Names that a module imports if its tests start their own services and servers, and wait for them.
_STARTING = ("serving", "serving_by_gunicorn", "EmbeddedServer", "subprocess")
# Modules that take the processor's time, although they start nothing.
_BUSY = (
    *("test_patterns", "test_postgres", "test_etl_flow", "test_audit", "test_guard_robustness"),
    *("test_offline_properties", "test_offline_questions", "test_waiting_kills", "test_ask"),
    *("test_offers", "test_offline_follow_ups", "test_prompts", "test_etl_kills", "test_callers"),
    *("test_bounds", "test_proof", "test_extensions", "test_large_schemas", "test_analysis"),
    *("test_value_lookup", "test_tool_loop", "test_store", "test_architecture", "test_feedback"),
    *("test_etl_learning", "test_etl_models", "test_row_secrets", "test_offline_skills"),
    *("test_offline_understood", "test_experience", "test_tools", "test_exports", "test_secrets"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put slow files first, because at the end the other processes would wait for the one that
    runs a slow file.

    Those of the page come before all others, so that each process starts a browser and a service
    for them only once. Files that wait alternate with those that work, so that processors are
    neither idle nor fought over.
    """
    files = [list(found) for _, found in groupby(items, key=attrgetter("path"))]
    by_turn: dict[str, list[list[pytest.Item]]] = {turn: [] for turn in _TURNS}
    for file in files:
        by_turn[_turn(file[0])].append(file)
    no_file: list[pytest.Item] = []
    slow = zip_longest(by_turn["starting"], by_turn["busy"], fillvalue=no_file)
    ordered = [*by_turn["page"], *chain.from_iterable(slow), *by_turn["short"]]
    items[:] = chain.from_iterable(ordered)


_TURNS = ("page", "starting", "busy", "short")


def _turn(item: pytest.Item) -> str:
    module = item.getparent(pytest.Module)
    if module is None:
        return "short"
    if module.path.parent.name == "page":
        return "page"
    if any(name in vars(module.obj) for name in _STARTING):
        return "starting"
    return "busy" if module.path.stem in _BUSY else "short"


@pytest.fixture(autouse=True)
def protocol_is_kept() -> Iterator[None]:
    """Fails a test in which a scripted model refused a request, even if the code under test went on
    without it.
    """
    yield
    problems = take_violations()
    if problems:
        pytest.fail("Requests that providers refuse: " + "; ".join(problems))


@pytest.fixture(scope="session")
def embedded_server() -> Iterator[DemoServer]:
    """Yield the server; the last process that releases it stops it."""
    external = os.environ.get("CITU_TEST_ADMIN_URL")
    if external:
        yield ExternalServer(external)
        return
    server = EmbeddedServer.acquire(shared_data_dir())
    # Nothing in it outlives the tests, and a process that is killed loses nothing that it gave to
    # the kernel. Tests that need statistics run ANALYZE themselves.
    switched_off = (
        f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes", "autovacuum")
    )
    execute(server.admin_url, *switched_off, "SELECT pg_reload_conf()")
    yield server
    server.release()


def shared_data_dir() -> Path:
    """Return the data directory of the embedded server that all processes of one run share."""
    return Path(os.environ[_FOLDER]) / "var"


@contextmanager
def alone() -> Iterator[None]:
    """Lets one process at a time in: roles belong to the whole server, and two can't alter one role
    at once.
    """
    with (Path(os.environ[_FOLDER]) / "roles.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def make_app_database(embedded_server: DemoServer) -> Iterator[Callable[[], str]]:
    """Make throwaway databases for conversations and runs; each call returns a URL."""
    names: list[str] = []

    def make() -> str:
        names.append(f"citu_test_{uuid.uuid4().hex[:12]}")
        return ensure_app_database(embedded_server, names[-1])

    yield make
    _drop(embedded_server, names)


@pytest.fixture(scope="session", autouse=True)
def app_database_url(make_app_database: Callable[[], str]) -> Iterator[str]:
    """Citu's own database for every test that names no other; processes that a test starts get it
    by environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APP_DATABASE_URL", make_app_database())
        yield os.environ["APP_DATABASE_URL"]


@pytest.fixture(scope="session")
def admin_url(embedded_server: DemoServer) -> str:
    """Return a superuser's URL."""
    return embedded_server.admin_url


@pytest.fixture(scope="session")
def demo_url(embedded_server: DemoServer) -> str:
    """Return the demo database for the role that can only SELECT, with a sample of the rows of
    days before
    the last month.

    Every shop, area, day and month has figures, and a question costs a sixth of what it costs over
    all of them.
    """
    with alone(), pytest.MonkeyPatch.context() as patch:
        # An external server keeps its demo after the tests, so it gets the complete one.
        if not isinstance(embedded_server, ExternalServer):
            patch.setattr(loader, "revenue_lines", _sampled_revenue)
            patch.setattr(loader, "traffic_lines", _sampled_traffic)
        return ensure_demo(embedded_server)


_COMPLETE_DAYS = 31
_SHOPS_STEP, _AREAS_STEP = 10, 5  # earlier days have figures of one shop in 10, one area in 5


def _sampled_revenue(
    day: date, areas: tuple[ServiceArea, ...], shops: tuple[Shop, ...]
) -> Iterator[str]:
    return revenue_lines(day, areas, _sample(day, shops, _SHOPS_STEP))


def _sampled_traffic(day: date, areas: tuple[ServiceArea, ...]) -> Iterator[str]:
    return traffic_lines(day, _sample(day, areas, _AREAS_STEP))


def _sample(day: date, things: tuple[T, ...], step: int) -> tuple[T, ...]:
    """One in `step` of the things, others each day, so that all occur within `step` days."""
    is_recent = day >= date.today() - timedelta(days=_COMPLETE_DAYS)
    return things if is_recent else things[day.toordinal() % step :: step]


@pytest.fixture(scope="session")
def make_database(embedded_server: DemoServer) -> Iterator[Callable[[str], str]]:
    """Make throwaway databases from DDL (any SQL, run by a superuser); each call returns a URL for
    a SELECT-only role.
    """
    names: list[str] = []

    def make(ddl_sql: str) -> str:
        names.append(f"citu_test_{uuid.uuid4().hex[:12]}")
        # By default every page is written to the log as well, which takes four times as long; older
        # servers always do.
        strategy = "" if isinstance(embedded_server, ExternalServer) else "STRATEGY FILE_COPY"
        _administer(
            embedded_server,
            f"CREATE DATABASE {names[-1]} TEMPLATE template0 ENCODING 'UTF8' {strategy}",
        )
        with closing(
            psycopg2.connect(make_dsn(embedded_server.admin_url, dbname=names[-1]))
        ) as admin:
            admin.autocommit = True
            with alone():
                create_reader(admin)
            with admin.cursor() as cursor:
                cursor.execute(ddl_sql or "SELECT")
            grant_reading(admin)
            with admin.cursor() as cursor:
                cursor.execute("ANALYZE")
        return embedded_server.url(names[-1], READER)

    yield make
    _drop(embedded_server, names)


@pytest.fixture(scope="session")
def offline_database(make_database: Callable[[str], str]) -> Callable[[str], str]:
    """Give the URL of a database of `fixtures/offline`; the tests of one process share it, and
    none changes it.
    """
    return cache(
        lambda name: make_database((FIXTURES / "offline" / f"{name}.sql").read_text("utf-8"))
    )


@pytest.fixture(scope="module", params=list(STORE_SERVERS))
def place(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    """Yield a server for a store, for each adapter; the module's own, so that its tests may stop
    it.
    """
    with STORE_SERVERS[request.param]() as place:
        yield place


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    """Yield a model that says what a test tells it to."""
    with OpenAiServer() as server:
        yield server


@pytest.fixture(scope="module")
def database(make_database: Callable[[str], str]) -> str:
    """Return the URL of a database whose views keep statements running."""
    return make_database(GAUGES)


@pytest.fixture(scope="module")
def watch(admin_url: str, database: str) -> Iterator[Watch]:
    """Yield a superuser's look at the module's database."""
    with closing(Watch(admin_url, database)) as watch:
        yield watch


# Named only, so that the process that hands out the tests imports none of the product's rules.
_PATIENT = (
    "knowledge.experience.experience_service._PATIENCE_S",
    "knowledge.tables.table_vectors._WAIT_S",
    "agent.flows.ask.follow_up_offers._PATIENCE_S",
)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Lengthen the second that a question waits for what it can do without."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _PATIENT:
            patch.setattr(name, 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def addresses_are_not_composed() -> Iterator[None]:
    """Let applications begin in a quarter of the time, of which there are a thousand.

    For `url_for`, werkzeug compiles two functions for each of an application's routes. Here they
    are compiled when one is called, which nothing does by now.
    """
    compiled = Rule._compile_builder

    def when_called(_rule: Rule, append_unknown: bool = True) -> Callable[..., Any]:
        def build(rule: Rule, **values: Any) -> Any:
            return compiled(rule, append_unknown)(rule, **values)

        return build

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rule, "_compile_builder", when_called)
        yield


@pytest.fixture
def opened() -> Iterator[Opener]:
    """`open_asked`; what it opened is closed when the test ends."""
    databases: list[GuardedDatabase] = []

    def open_one(source: str | UrlSource, **changes: Any) -> GuardedDatabase:
        databases.append(open_asked(source, **changes))
        return databases[-1]

    yield open_one
    for database in databases:
        database.close()


@pytest.fixture(autouse=True)
def charged_to_the_service() -> None:
    """Start each test as the service itself.

    A request that a test sends in process leaves its caller in the test's thread, as it does in a
    server's thread, where the next request sets its own.
    """
    caller_id.set(SERVICE)


def _drop(server: DemoServer, names: list[str]) -> None:
    """Drop the databases of somebody else's server; those of our own go with it."""
    if isinstance(server, ExternalServer):
        for name in names:
            _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: DemoServer, statement: str) -> None:
    with closing(psycopg2.connect(server.admin_url)) as admin:
        admin.autocommit = True
        with admin.cursor() as cursor:
            cursor.execute(statement)
